"""How a platform reaches a server: its address, its proof, and the websocket it is sent to."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

import aiohttp
import orjson

from gateway.channels.dialect import Request
from gateway.errors import AdmissionError, RuntimeFailure, ScenarioError
from gateway.platform_settings import PlatformsSettings
from gateway.platforms.rest import beginning
from gateway.simulate.platforms.base import Identity, Platform

TIMEOUT_S = 10.0
PROOF_HINT = (
    "call proves itself with --secret and --key (the platform), --token (timelines, ces, raw)"
)
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
    def credentials(self) -> dict[str, str]:
        """`key` and `secret` as HTTP Basic credentials, a `secret` alone as a bearer token."""
        if not self.secret:
            return {}
        if not self.key:
            return {"Authorization": f"Bearer {self.secret}"}
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
    proof: str = "--key USERNAME --secret PASSWORD"
    """What `voice-gateway call` is given where the server asks this platform for its proof."""

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
            answer = await beginning(response.content, MAX_ANSWER_BYTES)
            if response.status == 200:
                return answer
            raise refused("the webhook", response.status, answer)
    except (TimeoutError, aiohttp.ClientError) as error:
        raise unreachable(url, error) from None


def first_line(body: bytes | bytearray) -> str:
    """The beginning of an answer, for a message."""
    return body[:200].decode("utf-8", "replace").strip().partition("\n")[0]


def refused(who: str, status: int, body: bytes | bytearray) -> AdmissionError:
    """The server is there and says no; with its reason and its way out, where it gives them."""
    message = f"{who} answered {status}: {first_line(body)}"
    hint = PROOF_HINT if status in (401, 403) else None
    with contextlib.suppress(orjson.JSONDecodeError, KeyError, TypeError):
        told = orjson.loads(body)["error"]
        message = f"{who} answered {status}: {told['code']}: {told['message']}"
        hint = "; ".join(one for one in (told.get("hint"), hint) if one) or None
    return AdmissionError("admission.refused", message, status=status, hint=hint)


def unreachable(url: str, error: BaseException, called: str = "") -> RuntimeFailure:
    """The server could not be reached at `url`; `called`: the address that led there."""
    parts = urlsplit(url)
    words = str(error) or type(error).__name__
    hint = "is it running? start one with: voice-gateway serve"
    if "WRONG_VERSION_NUMBER" in words:
        hint = "this port speaks plain HTTP: call http://…"
    elif called and parts.netloc != urlsplit(called).netloc:
        hint = (
            f"{called} is there, but its answer leads to {parts.netloc}: set server.public_origin"
            " to the address that is called, or call it by that name"
        )
    return RuntimeFailure(
        "runtime.unreachable",
        f"cannot reach the server: {words}",
        # A media address holds a token that opens a call.
        where=f"{parts.scheme}://{parts.netloc}",
        hint=hint,
    )
