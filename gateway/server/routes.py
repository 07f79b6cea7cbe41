"""The one table of routes; the HTTP stack and the media stack both look here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote

from gateway.server.head import HeadError


class Page(Enum):
    """What a plain request can ask for."""

    ABOUT = "about"
    HEALTH = "health"
    READY = "ready"
    METRICS = "metrics"
    TWILIO_VOICE = "twilio_voice"
    TIMELINE = "timeline"


class Proof(Enum):
    """What opens a media route."""

    BEARER = "bearer"
    TOKEN = "token"
    SIGNATURE = "signature"


@dataclass(frozen=True, slots=True)
class Media:
    """A websocket route: its dialect and the proof that it asks for."""

    dialect: str
    proof: Proof


@dataclass(frozen=True, slots=True)
class Route:
    """One line of the table; `{name}` in the pattern is one path segment."""

    pattern: str
    target: Page | Media
    methods: tuple[str, ...] = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class Match:
    """A route and the values of its path segments, unquoted."""

    route: Route
    values: Mapping[str, str] = field(default_factory=dict)


NATIVE: Final = "/ws/google.cloud.ces.{version}.SessionService/BidiRunSession/locations/{location}"

ROUTES: Final = (
    Route("/", Page.ABOUT),
    Route("/healthz", Page.HEALTH),
    Route("/readyz", Page.READY),
    Route("/metrics", Page.METRICS),
    Route("/twilio/voice", Page.TWILIO_VOICE, ("POST",)),
    Route("/calls/{call_id}/timeline", Page.TIMELINE),
    Route(NATIVE.format(version="v1", location="{location}"), Media("ces", Proof.BEARER), ("GET",)),
    Route(
        NATIVE.format(version="v1beta", location="{location}"), Media("ces", Proof.BEARER), ("GET",)
    ),
    Route("/twilio/media/{token}", Media("twilio", Proof.TOKEN), ("GET",)),
    # For TwiML that is not ours: the platform's signature on the upgrade is the proof.
    Route("/twilio/media", Media("twilio", Proof.SIGNATURE), ("GET",)),
)


def _compile(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", pattern)
    return re.compile(
        "".join(
            f"(?P<{part}>[^/]+)" if index % 2 else re.escape(part)
            for index, part in enumerate(parts)
        )
    )


_COMPILED: Final = tuple((_compile(route.pattern), route) for route in ROUTES)


def match(path: str) -> Match:
    """The route of a raw request path. Raises HeadError (404)."""
    for pattern, route in _COMPILED:
        found = pattern.fullmatch(path)
        if found is not None:
            return Match(route, {name: unquote(raw) for name, raw in found.groupdict().items()})
    raise HeadError(
        HTTPStatus.NOT_FOUND,
        "http.not_found",
        "there is nothing at this address",
        hint="GET / lists what is served",
    )


def media_route(path: str) -> Match:
    """The websocket route of a path. Raises HeadError (404, or 400 for a page)."""
    found = match(path)
    if not isinstance(found.route.target, Media):
        raise HeadError(
            HTTPStatus.BAD_REQUEST, "http.not_a_websocket", "this address is no websocket"
        )
    return found
