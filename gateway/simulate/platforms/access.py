"""How a platform reaches a server: its address, its proof, and the websocket it is sent to."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

import aiohttp

from gateway.channels.dialect import Request
from gateway.errors import AdmissionError, RuntimeFailure, ScenarioError
from gateway.platform_settings import PlatformsSettings
from gateway.simulate.platforms.base import Identity, Platform

TIMEOUT_S = 10.0
MAX_ANSWER_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Access:
    """A server's address and what proves that one may call. `url`: `http(s)://host:port`."""

    url: str
    token: str = field(default="", repr=False)
    """Bearer token of the native dialect and the timeline."""
    secret: str = field(default="", repr=False)
    """What the platform proves itself with: auth token, signing key or password."""
    key: str = ""
    """Who the platform says it is, where its proof names that: user, API key or application."""

    def __post_init__(self) -> None:
        if urlsplit(self.url).scheme not in ("http", "https") or not urlsplit(self.url).netloc:
            raise ScenarioError(
                "scenario.url",
                f"not a server's address: {self.url!r}",
                hint="http://127.0.0.1:8080",
            )

    def http(self, path: str) -> str:
        """The address of a page."""
        return self.url.rstrip("/") + path

    def websocket(self, path: str) -> str:
        """The address of a websocket."""
        parts = urlsplit(self.http(path))
        scheme = "wss" if parts.scheme == "https" else "ws"
        return urlunsplit((scheme, parts.netloc, parts.path, parts.query, ""))

    @property
    def headers(self) -> dict[str, str]:
        """The proof, as request headers."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    @property
    def basic(self) -> dict[str, str]:
        """`key` and `secret` as HTTP Basic credentials; empty without a secret."""
        if not self.secret:
            return {}
        pair = base64.b64encode(f"{self.key}:{self.secret}".encode()).decode()
        return {"Authorization": f"Basic {pair}"}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A websocket to open and the platform that will speak on it."""

    url: str
    platform: Platform
    headers: Mapping[str, str] = field(default_factory=dict)
    subprotocols: tuple[str, ...] = ()
    """What the platform offers in its handshake."""


Find = Callable[[Access, Identity, aiohttp.ClientSession], Awaitable[Endpoint]]
"""Asks the server, as the platform would, where the media go.

Raises AdmissionError where the server refuses, RuntimeFailure where it cannot be reached.
"""


def no_upgrade(_identity: Identity) -> Request:
    """Nothing of the upgrade matters to the dialect."""
    return Request("")


@dataclass(frozen=True, slots=True)
class Side:
    """The platform side of one dialect."""

    make: Callable[[Identity], Platform]
    """For simulated calls, which have no webhook."""
    call_id: Callable[[str], str]
    """A call id in the dialect's shape, always the same for a name."""
    find: Find
    upgrade: Callable[[Identity], Request] = no_upgrade
    """What a simulated upgrade says, for dialects that read its path, query or headers."""
    configured: Callable[[Identity, PlatformsSettings], Platform] | None = None
    """For simulated calls where the operator's settings have a counterpart on the far side."""

    def simulated(self, identity: Identity, platforms: PlatformsSettings) -> Platform:
        """The platform of a simulated call, set up as the operator's settings ask for."""
        if self.configured is None:
            return self.make(identity)
        return self.configured(identity, platforms)


async def ask(
    http: aiohttp.ClientSession,
    url: str,
    *,
    method: str = "POST",
    form: Mapping[str, str] | None = None,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """What a webhook answers, at most 64 KiB. Raises AdmissionError, RuntimeFailure."""
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
    try:
        async with http.request(
            method, url, data=body if form is None else form, headers=headers, timeout=timeout
        ) as response:
            answer = await response.content.read(MAX_ANSWER_BYTES)
            if response.status == 200:
                return answer
            raise AdmissionError(
                "admission.refused",
                f"the webhook answered {response.status}: {first_line(answer)}",
                status=response.status,
                where=url,
            )
    except (TimeoutError, aiohttp.ClientError) as error:
        raise unreachable(url, error) from None


def first_line(body: bytes) -> str:
    """The beginning of an answer, for a message."""
    return body[:200].decode("utf-8", "replace").strip().partition("\n")[0]


def unreachable(url: str, error: BaseException) -> RuntimeFailure:
    """The server could not be reached."""
    words = str(error) or type(error).__name__
    return RuntimeFailure(
        "runtime.unreachable",
        f"cannot reach the server: {words}",
        where=url,
        hint="is it running? start one with: voice-gateway serve",
    )
