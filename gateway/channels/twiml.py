"""Call instructions as XML, as several platforms take them: to a media socket, or to a number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from xml.etree import ElementTree

from gateway.channels.sip import is_sip

MAX_PARAMETER_CHARS: Final = 499
"""Name and value together; the platform takes fewer than 500."""


def connect_stream(
    url: str, parameters: Mapping[str, str], attributes: Mapping[str, str] | None = None
) -> bytes:
    """`<Response><Connect><Stream url …><Parameter…>`; parameters that do not fit are left out."""
    response = ElementTree.Element("Response")
    stream = ElementTree.SubElement(
        ElementTree.SubElement(response, "Connect"), "Stream", {"url": url, **(attributes or {})}
    )
    for name, value in parameters.items():
        # XML cannot spell control characters.
        shown = "".join(char for char in value if char.isprintable())
        if shown and len(name) + len(shown) <= MAX_PARAMETER_CHARS:
            ElementTree.SubElement(stream, "Parameter", {"name": name, "value": shown})
    body: bytes = ElementTree.tostring(response, encoding="utf-8", xml_declaration=True)
    return body


def dial(target: str, after: str = "") -> str:
    """`<Response><Dial>` with a number, or a SIP address inside; `after`: asked what comes then."""
    response = ElementTree.Element("Response")
    dialled = ElementTree.SubElement(response, "Dial", {"action": after} if after else {})
    if is_sip(target):
        ElementTree.SubElement(dialled, "Sip").text = target
    else:
        dialled.text = target.removeprefix("tel:")
    return ElementTree.tostring(response, encoding="unicode")
