"""The stream that a webhook's XML answer connects a call to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

from gateway.errors import RuntimeFailure
from gateway.simulate.platforms.access import first_line


@dataclass(frozen=True, slots=True)
class Stream:
    """`<Connect><Stream url …><Parameter name value>…`."""

    url: str
    parameters: Mapping[str, str]
    attributes: Mapping[str, str]


def stream_of(answer: bytes) -> Stream:
    """The stream of an answer. Raises RuntimeFailure without one."""
    try:
        stream = ElementTree.fromstring(answer).find("Connect/Stream")
    except ElementTree.ParseError:
        stream = None
    if stream is None or not stream.get("url"):
        raise RuntimeFailure(
            "protocol.twiml", f"the webhook's answer connects no stream: {first_line(answer)}"
        )
    parameters = {
        str(one.get("name")): str(one.get("value") or "") for one in stream.findall("Parameter")
    }
    return Stream(str(stream.get("url")), parameters, dict(stream.attrib))
