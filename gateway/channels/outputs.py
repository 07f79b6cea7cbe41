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
    taken = sum(sizes.values())
    for name in sorted(sizes, key=lambda one: sizes[one], reverse=True):
        if taken <= room:
            break
        taken -= sizes[name]
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
    return _continued(url, {"action": "hangup"}, outputs) if url and outputs else ""


def after_transfer(url: str | None, target: str, metadata: Mapping[str, Any]) -> str:
    """Where a call goes on that the agent hands on, and that is not dialled here; empty: nowhere.

    `target`: whom the agent named, if anybody.
    """
    if not url:
        return ""
    own = {"action": "transfer", **({"target": target} if target else {})}
    return _continued(url, own, outputs_of(metadata))


def after_dialled(
    url: str | None, target: str, metadata: Mapping[str, Any], most_chars: int = MAX_URL_CHARS
) -> str:
    """Where a call goes on that was dialled on to `target` here, with `params`, once that is over.

    Empty: nowhere.
    """
    outputs = outputs_of(metadata)
    if not url or not outputs:
        return ""
    return _continued(url, {"action": "transferred", "target": target}, outputs, most_chars)


def _continued(
    url: str,
    own: Mapping[str, str],
    outputs: Mapping[str, str],
    most_chars: int = MAX_URL_CHARS,
) -> str:
    """The address with our own fields and the outputs in its query, as far as there is room.

    What stands there already stays as it is; an output cannot pass for a field of ours.
    """
    parts = urlsplit(url)
    taken = {name for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    ours = _query({name: value for name, value in own.items() if name not in taken})
    others = {k: v for k, v in outputs.items() if k not in taken and k not in own}
    room = most_chars - len(url) - len(ours) - 1
    theirs = _query(fitting(others, lambda name, value: len(_query({name: value})) + 1, room))
    query = "&".join(part for part in (parts.query, ours, theirs) if part)
    return urlunsplit(parts._replace(query=query))


def _query(fields: Mapping[str, str]) -> str:
    return urlencode(fields, errors="replace")
