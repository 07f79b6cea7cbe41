"""The one table of routes; the HTTP stack and the media stack both look here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import unquote

from gateway.channels.dialect import Dialect, Proof, Webhook
from gateway.channels.dialects import DIALECTS
from gateway.platform_settings import PlatformsSettings
from gateway.server.head import HeadError


class Page(Enum):
    """What a plain request can ask for."""

    ABOUT = "about"
    HEALTH = "health"
    READY = "ready"
    METRICS = "metrics"
    TIMELINE = "timeline"


@dataclass(frozen=True, slots=True)
class Media:
    """A websocket route: its dialect and the proof that it asks for."""

    dialect: Dialect[Any]
    proof: Proof


@dataclass(frozen=True, slots=True)
class Asked:
    """A page that a platform asks what to do with a call."""

    dialect: Dialect[Any]
    webhook: Webhook[Any]


@dataclass(frozen=True, slots=True)
class Route:
    """One line of the table; `{name}` in the pattern is one path segment."""

    pattern: str
    target: Page | Media | Asked
    methods: tuple[str, ...] = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class Match:
    """A route and the values of its path segments, unquoted."""

    route: Route
    values: Mapping[str, str] = field(default_factory=dict)


MAX_PARTS: Final = 6
_WORD: Final = re.compile(r"[A-Za-z_-]{1,24}")

PAGES: Final = (
    Route("/", Page.ABOUT),
    Route("/healthz", Page.HEALTH),
    Route("/readyz", Page.READY),
    Route("/metrics", Page.METRICS),
    Route("/calls/{call_id}/timeline", Page.TIMELINE),
)


def served(platforms: PlatformsSettings) -> list[Dialect[Any]]:
    """The dialects that are enabled."""
    return [entry for entry in DIALECTS.values() if entry.settings(platforms).enabled]


class Routes:
    """The table of one server: its pages and the addresses of every enabled dialect."""

    def __init__(self, platforms: PlatformsSettings) -> None:
        routes = list(PAGES)
        for entry in served(platforms):
            routes += [
                Route(media.pattern, Media(entry, media.proof), ("GET",)) for media in entry.routes
            ]
            routes += [
                Route(webhook.pattern, Asked(entry, webhook), webhook.methods)
                for webhook in entry.webhooks
            ]
        self.routes: tuple[Route, ...] = tuple(routes)
        self._compiled = tuple((_compile(route.pattern), route) for route in routes)

    def match(self, path: str) -> Match:
        """The route of a raw request path. Raises HeadError (404)."""
        for pattern, route in self._compiled:
            found = pattern.fullmatch(path)
            if found is not None:
                return Match(route, {name: unquote(raw) for name, raw in found.groupdict().items()})
        raise HeadError(
            HTTPStatus.NOT_FOUND,
            "http.not_found",
            "there is nothing at this address",
            hint="GET / lists what is served",
        )

    def named(self, path: str) -> tuple[str, str]:
        """The pattern of a raw path and its dialect, as they may be logged."""
        try:
            route = self.match(path).route
        except HeadError:
            return shown(path), ""
        target = route.target
        return route.pattern, "" if isinstance(target, Page) else target.dialect.name

    def media(self, path: str) -> tuple[Match, Media]:
        """The websocket route of a path. Raises HeadError (404, or 400 for a page)."""
        found = self.match(path)
        if not isinstance(found.route.target, Media):
            raise HeadError(
                HTTPStatus.BAD_REQUEST,
                "http.not_a_websocket",
                "this address is no websocket",
                hint="GET / lists the websockets",
            )
        return found, found.route.target

    def token_path(self, entry: Dialect[Any], token: str) -> str:
        """The media address of a dialect that a one-use token opens."""
        for media in entry.routes:
            if media.proof is Proof.TOKEN:
                return media.pattern.replace("{token}", token)
        raise ValueError(f"{entry.name} has no route for media tokens")


def shown(path: str) -> str:
    """A path that is not ours as it may be logged: a token or a number in it is left out."""
    parts = path.split("/", MAX_PARTS)
    return "/".join(
        part if not part or _WORD.fullmatch(part) else "…" for part in parts[:MAX_PARTS]
    )


def _compile(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", pattern)
    return re.compile(
        "".join(
            f"(?P<{part}>[^/]+)" if index % 2 else re.escape(part)
            for index, part in enumerate(parts)
        )
    )
