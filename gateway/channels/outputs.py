"""The data with which the agent ends a call, in the forms in which platforms take them.

What does not fit a form's room is left out, the longest first: a platform that cuts, or refuses,
what is too long would lose the rest as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import orjson

from gateway.bidi import ESCALATION_MESSAGE, PHONE_TRANSFER
from gateway.channels.base import flat

MAX_URL_CHARS: Final = 2000
"""Longest address that a call is sent on to."""
MAX_INNER_URL_CHARS: Final = 1200
"""The same where it stands in the query of a page of ours, in which it grows."""
CARRIED_OUT: Final = frozenset({PHONE_TRANSFER, ESCALATION_MESSAGE})
"""What the gateway itself has done already."""


def outputs_of(metadata: Mapping[str, Any]) -> dict[str, str]:
    """The `params` of an end of session as flat text, for whoever goes on with the call."""
    params = flat(metadata.get("params"))
    return {name: value for name, value in params.items() if name not in CARRIED_OUT}


def fitting(
    outputs: Mapping[str, str], size_of: Callable[[str, str], int], room: int
) -> dict[str, str]:
    """As many outputs as there is room for; the longest are left out first."""
    sizes = {name: size_of(name, value) for name, value in outputs.items()}
    left = dict(outputs)
    for name in sorted(sizes, key=lambda one: sizes[one], reverse=True):
        if sum(sizes[one] for one in left) <= room:
            break
        del left[name]
    return left


def json_size(name: str, value: str) -> int:
    """Bytes of one output in a JSON object, with its comma."""
    return len(orjson.dumps({name: value})) - 1


def as_json(outputs: Mapping[str, str], room_bytes: int) -> str:
    """A JSON object of at most so many bytes; empty where there is nothing to say."""
    fit = fitting(outputs, json_size, room_bytes - 1)
    return orjson.dumps(fit).decode() if fit else ""


def after_hangup(url: str | None, metadata: Mapping[str, Any]) -> str:
    """Where a call goes on that the agent has ended with `params`; empty: nowhere."""
    outputs = outputs_of(metadata)
    return _continued(url, {"action": "hangup", **outputs}) if url and outputs else ""


def after_transfer(url: str | None, target: str, metadata: Mapping[str, Any]) -> str:
    """Where a call goes on that the agent hands on, and that is not dialled here; empty: nowhere.

    `target`: whom the agent named, if anybody.
    """
    if not url:
        return ""
    told = {"action": "transfer", **({"target": target} if target else {})}
    return _continued(url, {**told, **outputs_of(metadata)})


def after_dialled(
    url: str | None, target: str, metadata: Mapping[str, Any], most_chars: int = MAX_URL_CHARS
) -> str:
    """Where a call goes on that was dialled on to `target` here, with `params`, once that is over.

    Empty: nowhere.
    """
    outputs = outputs_of(metadata)
    if not url or not outputs:
        return ""
    return _continued(url, {"action": "transferred", "target": target, **outputs}, most_chars)


def _continued(url: str, told: Mapping[str, str], most_chars: int = MAX_URL_CHARS) -> str:
    """The address with what is told in its query; what stands there already stays as it is."""
    parts = urlsplit(url)
    taken = {name for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    new = {name: value for name, value in told.items() if name not in taken}
    fit = fitting(new, lambda *one: len(_query([one])) + 1, most_chars - len(url))
    query = "&".join(part for part in (parts.query, _query(fit.items())) if part)
    return urlunsplit(parts._replace(query=query))


def _query(fields: Any) -> str:
    return urlencode(list(fields), errors="replace")
