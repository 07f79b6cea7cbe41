"""Who may do what. Fails closed.

With nothing configured only this machine may call, and only under a loopback name: a tunnel or a
rebound name reaches the port from a loopback address too, but with another `Host`. A page of
another site in a local browser is told by its `Origin`.
"""

from __future__ import annotations

import hmac
import ipaddress
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from gateway.config import Settings
from gateway.errors import AuthError, ConfigError
from gateway.server import signature
from gateway.server.tokens import MediaClaim, MediaTokens

NO_TOKENS_HINT = "set auth.tokens (bearer) to let others in"


@dataclass(frozen=True, slots=True)
class Caller:
    """What the server knows of who asks."""

    address: str
    host: str = ""
    origin: str = ""
    authorization: str = ""
    access_token: str = ""
    signature: str = ""


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
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def check_exposure(settings: Settings) -> None:
    """Whether the server may bind where it is told to. Raises ConfigError."""
    auth, server, twilio = settings.auth, settings.server, settings.twilio
    if auth.none and auth.tokens:
        raise ConfigError(
            "config.auth_conflict",
            "auth.none says that no proof is asked, auth.tokens that one is",
            where="auth",
            hint="remove one of them",
        )
    if twilio.auth_tokens and server.public_origin is None:
        raise ConfigError(
            "config.public_origin",
            "webhook signatures cover the public address, which is not set",
            where="server.public_origin",
            hint="set server.public_origin to what Twilio calls, e.g. https://voice.example.com",
        )
    if (server.tls_cert is None) != (server.tls_key is None):
        raise ConfigError(
            "config.tls", "TLS needs both a certificate and a key", where="server.tls_cert"
        )
    proofs = bool(auth.tokens or twilio.auth_tokens)
    if not is_loopback(server.host) and not proofs and not (auth.none and auth.allow_open):
        raise ConfigError(
            "config.open_server",
            f"{server.host} can be reached by others, and nobody is asked for a proof",
            where="server.host",
            hint="set auth.tokens or twilio.auth_tokens, or bind 127.0.0.1; to be open on"
            " purpose set both auth.none and auth.allow_open",
        )


class Gate:
    """Judges callers by the settings."""

    def __init__(self, settings: Settings, tokens: MediaTokens) -> None:
        self._bearer = [token.get_secret_value().encode() for token in settings.auth.tokens]
        self._twilio = [token.get_secret_value() for token in settings.twilio.auth_tokens]
        self._open = settings.auth.none and settings.auth.allow_open
        self._origin = (settings.server.public_origin or "").rstrip("/")
        self._tokens = tokens

    def bearer(self, caller: Caller) -> None:
        """Native sessions and timelines: a bearer token. Raises AuthError."""
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
            raise AuthError("auth.bearer", "the bearer token is not known here", status=401)

    def webhook(self, caller: Caller, path: str, fields: Mapping[str, Sequence[str]]) -> None:
        """Twilio webhooks: the platform's signature over address and form. Raises AuthError.

        `path`: raw path and query of the request.
        """
        if not self._twilio:
            self._local(caller)
            return
        if not caller.signature:
            raise AuthError(
                "auth.unsigned", "the request carries no X-Twilio-Signature", status=403
            )
        if not signature.genuine(self._twilio, self._origin + path, fields, caller.signature):
            raise AuthError(
                "auth.signature",
                "the signature does not fit the public address and these fields",
                status=403,
                hint="check twilio.auth_tokens and server.public_origin",
            )

    def media_token(self, token: str, dialect: str) -> MediaClaim:
        """A media token, not used up yet. Raises AuthError."""
        return self._tokens.verify(token, dialect, time.time())

    def issue(self, dialect: str, call_id: str) -> str:
        """A media token for one socket of a call."""
        return self._tokens.issue(dialect, call_id, time.time())

    def use(self, claim: MediaClaim) -> None:
        """Use a media token up. Raises AuthError where it was used before."""
        self._tokens.use(claim)

    def _local(self, caller: Caller) -> None:
        if self._open:
            return
        if not is_loopback(caller.address):
            raise AuthError(
                "auth.local_only",
                "only this machine may call, since no proof is configured",
                status=403,
                hint=NO_TOKENS_HINT,
            )
        # Not a browser: no Origin. Otherwise the page must be one of this machine, too.
        site = host_name(caller.origin.partition("://")[2]) if caller.origin else "localhost"
        if not is_loopback(host_name(caller.host)) or not is_loopback(site):
            raise AuthError(
                "auth.local_only",
                "this server answers only under localhost, since no proof is configured",
                status=403,
                hint="behind a tunnel set twilio.auth_tokens and server.public_origin,"
                " or auth.tokens",
            )
