"""Transfers to SIP addresses: what the agent says of the call travels in headers of the request."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from gateway.bidi import AGENT_HANDOFF
from gateway.channels.outputs import CARRIED_OUT

MAX_HEADERS_CHARS: Final = 900
"""Names and values together; platforms take about 1000."""


USER_TO_USER: Final = "User-to-User"
"""The standard's own header for what one application tells another (RFC 7433)."""


def is_sip(target: str) -> bool:
    """Whether a target is a SIP address, not a number."""
    return target.lower().startswith(("sip:", "sips:"))


def named_headers(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The headers that a `LIVE_AGENT_HANDOFF` names itself (`xHeaders`), without their `X-`."""
    headers = _handoff(metadata).get("xHeaders")
    if not isinstance(headers, Mapping):
        return {}
    return {re.sub("^[Xx]-", "", str(name)): value for name, value in headers.items()}


def user_to_user(metadata: Mapping[str, Any]) -> str:
    """The `uuiHeaders` of a `LIVE_AGENT_HANDOFF` as the value of one header.

    They are written as the header wants them, encoding and all, so that plain ASCII alone is taken.
    What does not fit is left out.
    """
    told = _handoff(metadata).get("uuiHeaders")
    values: list[str] = []
    for value in told if isinstance(told, list) else []:
        if isinstance(value, str) and value.strip() and value.isascii() and value.isprintable():
            longer = [*values, value.strip()]
            if len(", ".join(longer)) <= MAX_HEADERS_CHARS:
                values = longer
    return ", ".join(values)


def _handoff(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    params = metadata.get("params")
    handoff = params.get(AGENT_HANDOFF) if isinstance(params, Mapping) else None
    return handoff if isinstance(handoff, Mapping) else {}


def headers_of(target: str, metadata: Mapping[str, Any]) -> dict[str, str]:
    """The `params` of an end of session that are text, numbers or truths, for a SIP target.

    The headers that the agent names itself come first. Names in letters, digits and hyphens,
    without the `X-` that headers of one's own begin with; what is not plain ASCII is quoted as in
    an address. What does not fit is left out.
    """
    params = metadata.get("params")
    if not is_sip(target) or not isinstance(params, Mapping):
        return {}
    found: dict[str, str] = {}
    size = 0
    named = named_headers(metadata)
    for name, value in [*named.items(), *(one for one in params.items() if one[0] not in named)]:
        if name in CARRIED_OUT or not isinstance(value, str | int | float):
            continue
        header = re.sub("[^A-Za-z0-9]+", "-", str(name)).strip("-").removeprefix("X-")
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if not (text.isascii() and text.isprintable()):
            text = quote(text, safe=" ")
        longer = size + len(header) + len(text)
        if header and text and longer <= MAX_HEADERS_CHARS:
            found[header] = text
            size = longer
    return found


def wire_headers(target: str, metadata: Mapping[str, Any]) -> dict[str, str]:
    """All headers for a SIP target under their names on the wire."""
    if not is_sip(target):
        return {}
    headers = {f"X-{name}": text for name, text in headers_of(target, metadata).items()}
    uui = user_to_user(metadata)
    return {**headers, **({USER_TO_USER: uui} if uui else {})}


def page_query(target: str, metadata: Mapping[str, Any], after: str = "") -> str:
    """The query of a page of ours that hands a call on; `page_headers` reads the headers again.

    `after`: where the call goes on behind that, which `page_after` reads.
    """
    headers = wire_headers(target, metadata)
    return urlencode({"target": target, **headers, **({"after": after} if after else {})})


def page_headers(query: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The headers of a page's query, as they are called on the wire."""
    ours = {name: values[0] for name, values in query.items() if name.startswith("X-")}
    uui = next(iter(query.get(USER_TO_USER, ())), "")
    return {**ours, **({USER_TO_USER: uui} if uui else {})}


def page_after(query: Mapping[str, Sequence[str]], onward: str | None) -> str:
    """Where a page's query says that the call goes on: at the operator's own page, or nowhere."""
    after = next(iter(query.get("after", ())), "")
    # The same but for the query; who reads a page must not be led elsewhere.
    return after if onward and urlsplit(after)[:3] == urlsplit(onward)[:3] else ""


def with_headers(target: str, metadata: Mapping[str, Any]) -> str:
    """A SIP address with the headers in its query, as call instructions in XML take them."""
    headers = wire_headers(target, metadata)
    if not headers:
        return target
    return f"{target}{'&' if '?' in target else '?'}{urlencode(headers, quote_via=quote)}"
