"""What is wrong with settings, in words that show the way out; never a value that was given."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError

MAX_TOLD: Final = 10
_SHAPES: Final = {
    "list_type": "write a list: [one, another]",
    "dict_type": "write a mapping: {name: value}",
    "model_type": "write its keys below it, indented",
    "model_attributes_type": "write its keys below it, indented",
}


def wrong_settings(model: type[BaseModel], error: ValidationError) -> list[str]:
    """One clause a fault, `key: what is wrong`; at most ten, and how many more there are."""
    faults = error.errors(include_input=False, include_url=False, include_context=False)
    told = [_told(model, fault["loc"], fault["type"], fault["msg"]) for fault in faults[:MAX_TOLD]]
    more = len(faults) - len(told)
    return [*told, f"and {more} more"] if more else told


def _told(model: type[BaseModel], loc: tuple[int | str, ...], kind: str, message: str) -> str:
    key = ".".join(map(str, loc))
    if kind == "extra_forbidden":
        return f"{key}: no such setting{_meant(model, loc)}"
    plain = _SHAPES.get(kind) or message.removeprefix("Value error, ")
    return f"{key}: {plain[0].lower()}{plain[1:]}" if key else plain


def _meant(model: type[BaseModel], loc: tuple[int | str, ...]) -> str:
    """What may have been meant: a key of the same section, or one of that name elsewhere."""
    name = str(loc[-1])
    section: type[BaseModel] | None = model
    for part in loc[:-1]:
        section = _section(section, str(part)) if section is not None else None
    near = difflib.get_close_matches(name, section.model_fields if section else (), n=1)
    if near:
        return f", did you mean {near[0]}?"
    elsewhere = [key for key in _keys(model) if key.rpartition(".")[2] == name]
    return f", did you mean {elsewhere[0]}?" if len(elsewhere) == 1 else ""


def _section(model: type[BaseModel], name: str) -> type[BaseModel] | None:
    field = model.model_fields.get(name)
    kinds: tuple[Any, ...] = (
        () if field is None else (field.annotation, *get_args(field.annotation))
    )
    return next((k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)), None)


def _keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name in model.model_fields:
        yield prefix + name
        section = _section(model, name)
        if section is not None:
            yield from _keys(section, f"{prefix}{name}.")
