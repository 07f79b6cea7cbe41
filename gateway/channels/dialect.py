"""A dialect's entry in the registry: where it is met, what opens it, and how it is spoken to.

One file makes a dialect: its codec, its `CAPABILITIES`, its proof, its webhook answer, its REST
words, and at the end `DIALECT = Dialect(…)`. One line registers it: its section in
`PlatformsSettings`, by the module's name (`gateway.channels.dialects`). Server and session read the
entry and know no names. The far side, which callers speak, is a file apart from it
(`gateway.simulate.platforms`). All of it is pure: requests are values that others send.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from gateway.channels.base import Channel
from gateway.channels.capabilities import Capabilities
from gateway.platform_settings import PlatformSettings

S = TypeVar("S", bound=PlatformSettings)


@dataclass(frozen=True, slots=True)
class Request:
    """What a platform asks for: the upgrade of a socket, or a webhook."""

    path: str
    """Raw path, still quoted."""
    raw_query: str = ""
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    """By lower-case name; values of a name that comes more than once are joined by a comma."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Segments of the route's pattern, unquoted."""
    form: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Fields of a form body."""
    body: bytes = b""
    method: str = "GET"
    origin: str = ""
    """Public origin of this server by its settings, without a final slash; may be empty."""

    @property
    def target(self) -> str:
        """Path and query as they came."""
        return f"{self.path}?{self.raw_query}" if self.raw_query else self.path

    def header(self, name: str) -> str:
        """A header by its lower-case name, or an empty string."""
        return self.headers.get(name, "")

    def query_value(self, name: str) -> str:
        """The first value of a query field, or an empty string."""
        return next(iter(self.query.get(name, ())), "")

    def form_value(self, name: str) -> str:
        """The first value of a form field, or an empty string."""
        return next(iter(self.form.get(name, ())), "")


@dataclass(frozen=True, slots=True)
class Opening(Generic[S]):
    """What a codec is made from."""

    settings: S
    request: Request = field(default_factory=lambda: Request(""))
    expected_call_id: str = ""
    """The call that the media token was issued for; empty: any."""
    account: str = ""
    """Whose call it is, where that was told before the socket opened (`Dialect.account`)."""


class Proof(Enum):
    """What opens a route."""

    TOKEN = "token"
    """A one-use media token in the path segment `{token}` (issued by a webhook's answer)."""
    BEARER = "bearer"
    """A token of `auth.tokens`."""
    PLATFORM = "platform"
    """The platform's own: `Dialect.proof`. Where that is not configured: this machine only."""


class PlatformProof(Protocol):
    """The platform's own proof by its settings; made once a server, so it may remember nonces."""

    @property
    def configured(self) -> bool:
        """Whether there are credentials to check against."""
        ...

    @property
    def covers_origin(self) -> bool:
        """Whether it covers the public address, which must be configured then."""
        ...

    def check(self, request: Request, now_s: float) -> None:
        """Whether the request is genuine; compares in constant time. `now_s`: wall clock.

        Raises AuthError (401 where the proof is missing, 403 where it is wrong).
        """
        ...


@dataclass(frozen=True, slots=True)
class MediaRoute:
    """A websocket address; `{name}` is one path segment, found in `Request.values`."""

    pattern: str
    proof: Proof


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A socket that the server opens itself, to a platform that waits for it."""

    url: str
    subprotocols: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WebAnswer:
    """A webhook's answer."""

    body: bytes
    content_type: str = "text/xml"
    connect: Outgoing | None = None
    """Opened before the answer is given; where that fails, the answer is 502."""
    requests: tuple[RestRequest, ...] = ()
    """Asked of the platform's REST interface before the answer is given; likewise."""


@dataclass(frozen=True, slots=True)
class Hook(Generic[S]):
    """One webhook request, proven genuine, to be answered."""

    settings: S
    request: Request
    media_url: Callable[[str], str]
    """`call id -> wss://origin/…/token`: the address of one socket for this call."""


@dataclass(frozen=True, slots=True)
class Webhook(Generic[S]):
    """A page that a platform asks what to do with a call.

    `answer` raises ProtocolError where the request names no call (answered 400).
    """

    pattern: str
    answer: Callable[[Hook[S]], WebAnswer]
    proof: Proof = Proof.PLATFORM
    methods: tuple[str, ...] = ("POST",)


# ---- REST


@dataclass(frozen=True, slots=True)
class CallRef:
    """A call as its platform's REST interface names it."""

    call_id: str
    channel_id: str = ""
    account: str = ""
    custom: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RestRequest:
    """One request to a platform; it succeeds with 2xx, or a status or code that says `gone`."""

    method: str
    path: str
    """Appended to the base URL; segments are quoted by who makes it (`quote`)."""
    form: Mapping[str, str] | None = None
    json: Any = None
    xml: bytes = b""
    """A document as body; at most one of the three is given."""
    headers: Mapping[str, str] = field(default_factory=dict)
    gone: tuple[int, ...] = (404, 410)
    """Statuses that mean: the call has ended already."""
    gone_words: tuple[str, ...] = ()
    """Words in the body of an error that mean the same, such as a quoted code."""
    repeatable: bool = True
    """Whether it may be sent again where it is not known if the first one was carried out."""
    needed: bool = True
    """False: if it fails, the requests behind it are made all the same."""


@dataclass(frozen=True, slots=True)
class Basic:
    """HTTP Basic credentials."""

    user: str
    password: str


@dataclass(frozen=True, slots=True)
class Bearer:
    """A bearer token."""

    token: str


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """OAuth 2 client credentials: a bearer token is fetched from `token_url` and kept."""

    token_url: str
    client_id: str
    client_secret: str


RestAuth = Basic | Bearer | ClientCredentials | None


class RestWords(Protocol):
    """A platform's REST interface, sans-IO: what to ask, not how it is sent."""

    @property
    def base_url(self) -> str:
        """Scheme, host and maybe a path prefix, without a final slash."""
        ...

    def auth(self, now_s: float) -> RestAuth:
        """The credentials (a signed token is made for `now_s`, wall clock)."""
        ...

    def hangup(self, call: CallRef, metadata: Mapping[str, Any]) -> Sequence[RestRequest]:
        """What ends the call, and leaves the `params` there; empty: the codec's words do.

        Without `params` nothing but the end is asked for.
        """
        ...

    def transfer(
        self, call: CallRef, target: str, metadata: Mapping[str, Any]
    ) -> Sequence[RestRequest]:
        """What hands the call on; empty: it cannot."""
        ...

    def send_dtmf(self, call: CallRef, digits: str) -> Sequence[RestRequest]:
        """What presses these keys; empty: it cannot."""
        ...


# ---- the entry


@dataclass(frozen=True, slots=True)
class Dialect(Generic[S]):
    """All there is to know of a dialect."""

    capabilities: Capabilities
    open: Callable[[Opening[S]], Channel]
    """A fresh codec for one socket. Raises ProtocolError where the upgrade's query is wrong."""
    settings: Callable[[Any], S]
    """Its section of `PlatformsSettings`: `lambda platforms: platforms.twilio`."""
    routes: tuple[MediaRoute, ...]
    webhooks: tuple[Webhook[S], ...] = ()
    proof: Callable[[S], PlatformProof] | None = None
    secrets: str = "username and password, or auth_tokens"
    """Which of its settings make the proof, for hints."""
    proof_keys: frozenset[str] = frozenset()
    """REST credentials that the proof reads, too: they mean something without the others."""
    rest: Callable[[S], RestWords | None] | None = None
    """Its REST interface; None where the settings hold no credentials for it."""
    account: Callable[[Request], str] = lambda _: ""
    """Whose call a webhook or an upgrade is about, as `Started.account` will name it.

    Empty where the request does not say it. Its words are not trusted before the proof.
    """

    @property
    def name(self) -> str:
        """The dialect's name."""
        return self.capabilities.dialect
