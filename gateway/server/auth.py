"""Who may do what. Fails closed.

With nothing configured only this machine may call, and only under a loopback name: a tunnel or a
rebound name reaches the port from a loopback address too, but with another `Host`. A page of
another site in a local browser is told by its `Origin`.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from gateway.channels.dialect import Dialect, PlatformProof, Request
from gateway.config import AuthSettings, Settings
from gateway.errors import AuthError, ConfigError
from gateway.server.routes import served
from gateway.server.tokens import MediaClaim, MediaTokens

_HOST = re.compile(r"[\w.-]+(:\d+)?|\[[0-9a-fA-F:.]+\](:\d+)?", re.ASCII)

NO_TOKENS_HINT = "set auth.tokens (bearer) to let others in"
BEHIND_HINT = (
    "behind a proxy or a tunnel set the platform's secrets (platforms.twilio.auth_tokens, …)"
    " and server.public_origin, or auth.tokens"
)
FORWARDING = frozenset(
    {
        "forwarded",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-real-ip",
        "cf-connecting-ip",
        "true-client-ip",
    }
)
"""Who sends one of these has been called by somebody else."""


@dataclass(frozen=True, slots=True)
class Caller:
    """What the server knows of who asks."""

    address: str
    host: str = ""
    origin: str = ""
    authorization: str = ""
    access_token: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    """By lower-case name, as `Request.headers`.

    Some proxies add a field of their own behind the client's: none of them may hide another.
    """


def is_loopback(host: str) -> bool:
    """Whether a name or address (brackets allowed, no port) is this machine's own."""
    bare = host.strip("[]").partition("%")[0]
    if bare.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def host_name(host: str) -> str:
    """A Host header without its port; empty where it is malformed."""
    if not _HOST.fullmatch(host):
        # More than a name and a port: others may read another name from it.
        return ""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def public_origin(settings: Settings, dialect: Dialect[Any]) -> str:
    """What a platform sees of this server, without a final slash; empty where not configured."""
    own = dialect.settings(settings.platforms).public_origin
    return (own or settings.server.public_origin or "").rstrip("/")


def shares_timelines(settings: Settings) -> bool:
    """Whether the timelines of calls are served."""
    share = settings.server.share_timeline
    return is_loopback(settings.server.host) if share is None else share


def platform_proofs(settings: Settings) -> dict[str, PlatformProof]:
    """The proofs of all enabled dialects that have credentials for theirs, by name."""
    proofs: dict[str, PlatformProof] = {}
    for dialect in served(settings.platforms):
        if dialect.proof is not None:
            proof = dialect.proof(dialect.settings(settings.platforms))
            if proof.configured:
                proofs[dialect.name] = proof
    return proofs


def check_exposure(settings: Settings) -> None:
    """Whether the server may bind where it is told to. Raises ConfigError."""
    auth, server = settings.auth, settings.server
    Proxies(auth)
    proofs = platform_proofs(settings)
    if auth.none and auth.tokens:
        raise ConfigError(
            "config.auth_conflict",
            "auth.none says that no proof is asked, auth.tokens that one is",
            where="auth",
            hint="remove one of them",
        )
    for dialect in served(settings.platforms):
        proof = proofs.get(dialect.name)
        if proof is not None and proof.covers_origin and not public_origin(settings, dialect):
            raise ConfigError(
                "config.public_origin",
                f"the signatures of {dialect.name} cover the public address, which is not set",
                where="server.public_origin",
                hint="set server.public_origin to what the platform calls,"
                " e.g. https://voice.example.com",
            )
    if (server.tls_cert is None) != (server.tls_key is None):
        raise ConfigError(
            "config.tls", "TLS needs both a certificate and a key", where="server.tls_cert"
        )
    closed = bool(auth.tokens or proofs or auth.client_cert_names)
    if auth.client_cert_names and not (auth.client_cert_header and auth.trusted_proxies):
        raise ConfigError(
            "config.client_cert",
            "names of client certificates are believed from a header of trusted proxies only",
            where="auth.client_cert_names",
            hint="set auth.client_cert_header and auth.trusted_proxies as well",
        )
    if not all(name.strip() for name in auth.client_cert_names):
        raise ConfigError(
            "config.client_cert",
            "a name is blank, which callers without a certificate have as well",
            where="auth.client_cert_names",
            hint="leave it out",
        )
    if not is_loopback(server.host) and not closed and not (auth.none and auth.allow_open):
        raise ConfigError(
            "config.open_server",
            f"{server.host} can be reached by others, and nobody is asked for a proof",
            where="server.host",
            hint="set auth.tokens or a platform's secrets (platforms.twilio.auth_tokens, …), or"
            " bind 127.0.0.1; to be open on purpose set both auth.none and auth.allow_open",
        )


class Proxies:
    """The proxies whose header fields are believed, and what they say of a caller."""

    def __init__(self, settings: AuthSettings) -> None:
        try:
            self._networks = [
                ipaddress.ip_network(text, strict=False) for text in settings.trusted_proxies
            ]
        except ValueError as error:
            raise ConfigError("config.proxies", str(error), where="auth.trusted_proxies") from None
        self._header = settings.client_cert_header.lower()
        self._names = [name.encode() for name in settings.client_cert_names]

    def trusted(self, address: str) -> bool:
        """Whether this address is a proxy's."""
        try:
            ip = ipaddress.ip_address(address)
        except ValueError:
            return False
        # A socket that listens on IPv6 tells IPv4 peers as ::ffff:192.0.2.1.
        ip = getattr(ip, "ipv4_mapped", None) or ip
        return any(ip.version == network.version and ip in network for network in self._networks)

    def source(self, caller: Caller) -> str:
        """Who called: what the proxy itself has seen last, else the address."""
        if not self._networks or not self.trusted(caller.address):
            return caller.address
        last = caller.headers.get("x-forwarded-for", "").rpartition(",")[2].strip()
        return last or caller.address

    def certified(self, caller: Caller) -> bool:
        """Whether a trusted proxy has verified a client certificate that opens this server."""
        if not self._header or not self.trusted(caller.address):
            return False
        offered = caller.headers.get(self._header, "").encode("utf-8", "replace")
        sound = False
        for name in self._names:
            sound |= hmac.compare_digest(name, offered)
        return sound


class Gate:
    """Judges callers by the settings."""

    def __init__(self, settings: Settings, tokens: MediaTokens) -> None:
        self._bearer = [token.get_secret_value().encode() for token in settings.auth.tokens]
        self._proofs = platform_proofs(settings)
        self._secrets = {
            entry.name: f"platforms.{entry.name}: {entry.secrets}"
            for entry in served(settings.platforms)
        }
        self._open = settings.auth.none and settings.auth.allow_open
        self._tokens = tokens
        self.proxies = Proxies(settings.auth)

    def bearer(self, caller: Caller) -> None:
        """Native sessions and timelines: a bearer token. Raises AuthError."""
        if self.proxies.certified(caller):
            return
        if not self._bearer:
            self._local(caller)
            return
        scheme, _, value = caller.authorization.partition(" ")
        given = value.strip() if scheme.lower() == "bearer" else caller.access_token
        if not given:
            raise AuthError(
                "auth.missing",
                "a bearer token is needed",
                status=401,
                hint="send Authorization: Bearer TOKEN, or ?access_token=TOKEN",
            )
        offered = given.encode("utf-8", "replace")
        sound = False
        for token in self._bearer:
            sound |= hmac.compare_digest(token, offered)
        if not sound:
            raise AuthError(
                "auth.bearer",
                "the bearer token is not known here",
                status=401,
                hint="check auth.tokens",
            )

    def platform(self, dialect: str, caller: Caller, request: Request) -> None:
        """The platform's own proof; without its secrets, this machine only. Raises AuthError."""
        if self.proxies.certified(caller):
            return
        proof = self._proofs.get(dialect)
        if proof is None:
            self._local(caller, f"to let the platform in set {self._secrets[dialect]}")
            return
        try:
            proof.check(request, time.time())
        except AuthError as error:
            error.hint = error.hint or f"check {self._secrets[dialect]}"
            raise

    def media_token(self, token: str, dialect: str) -> MediaClaim:
        """A media token, not used up yet. Raises AuthError."""
        return self._tokens.verify(token, dialect, time.time())

    def issue(self, dialect: str, call_id: str, account: str = "") -> str:
        """A media token for one socket of a call."""
        return self._tokens.issue(dialect, call_id, time.time(), account)

    def use(self, claim: MediaClaim) -> None:
        """Use a media token up. Raises AuthError where it was used before."""
        self._tokens.use(claim)

    def _local(self, caller: Caller, hint: str = NO_TOKENS_HINT) -> None:
        if self._open:
            return
        if not is_loopback(self.proxies.source(caller)):
            raise AuthError(
                "auth.local_only",
                "only this machine may call, since no proof is configured",
                status=403,
                hint=hint,
            )
        if not self.proxies.trusted(caller.address) and not FORWARDING.isdisjoint(caller.headers):
            raise AuthError(
                "auth.local_only",
                "a proxy or a tunnel passes this call on; only this machine may call, since no"
                " proof is configured",
                status=403,
                hint=BEHIND_HINT,
            )
        # Not a browser: no Origin. Otherwise the page must be one of this machine, too.
        site = host_name(caller.origin.partition("://")[2]) if caller.origin else "localhost"
        if not is_loopback(host_name(caller.host)) or not is_loopback(site):
            raise AuthError(
                "auth.local_only",
                "this server answers only under localhost, since no proof is configured",
                status=403,
                hint=BEHIND_HINT,
            )
