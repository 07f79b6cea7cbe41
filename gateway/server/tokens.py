"""One-use media tokens: an HMAC over dialect, call, expiry and a nonce, fit for a URL path.

A token opens one socket of one dialect for one call and dies with its first use. Times are wall
clock seconds, given by the caller.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from dataclasses import dataclass

import orjson

from gateway.errors import AuthError

MAX_TOKEN_CHARS = 1024
MAX_USED = 100_000
_MAC_BYTES = 32


@dataclass(frozen=True, slots=True)
class MediaClaim:
    """What a genuine token says."""

    dialect: str
    call_id: str
    expires_s: float
    nonce: str
    account: str = ""
    """Whose call it is, where the platform has said so."""


class MediaTokens:
    """Issues tokens and takes each of them back once."""

    def __init__(self, secret: bytes | None, lifetime_s: float) -> None:
        self._secret = secret or secrets.token_bytes(32)
        self._lifetime_s = lifetime_s
        # Used nonces, oldest first, until they would have expired anyway.
        self._used: dict[str, float] = {}

    def issue(self, dialect: str, call_id: str, now_s: float, account: str = "") -> str:
        """A token for one socket of this call."""
        claim = [dialect, call_id, now_s + self._lifetime_s, secrets.token_urlsafe(12), account]
        body = orjson.dumps(claim)
        return base64.urlsafe_b64encode(self._mac(body) + body).decode().rstrip("=")

    def verify(self, token: str, dialect: str, now_s: float) -> MediaClaim:
        """What the token says, without using it up. Raises AuthError (403)."""
        claim = self._open(token)
        if claim is None:
            raise AuthError(
                "auth.token",
                "the media token is not genuine",
                status=403,
                hint="connect to the address in the webhook's answer; behind several processes"
                " set the same auth.media_secret for all",
            )
        if claim.dialect != dialect:
            raise AuthError(
                "auth.token",
                f"the media token opens a socket of {claim.dialect}, not of {dialect}",
                status=403,
            )
        if now_s >= claim.expires_s:
            raise AuthError(
                "auth.token_expired",
                "the media token is too old",
                status=403,
                hint="ask the webhook again; auth.media_token_s is how long one lives",
            )
        self._forget(now_s)
        if claim.nonce in self._used:
            raise _used_before()
        return claim

    def use(self, claim: MediaClaim) -> None:
        """Use the token up. Raises AuthError (403) where it was used before."""
        if claim.nonce in self._used:
            raise _used_before()
        if len(self._used) >= MAX_USED:
            raise AuthError("auth.token_flood", "too many media tokens are in use", status=403)
        self._used[claim.nonce] = claim.expires_s

    def _mac(self, body: bytes) -> bytes:
        return hmac.digest(self._secret, b"voice-gateway media\0" + body, "sha256")

    def _open(self, token: str) -> MediaClaim | None:
        if len(token) > MAX_TOKEN_CHARS or not token.isascii():
            return None
        try:
            raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            return None
        mac, body = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(body)):
            return None
        return MediaClaim(*orjson.loads(body))

    def _forget(self, now_s: float) -> None:
        for nonce, expires_s in list(self._used.items()):
            if expires_s > now_s:
                break
            del self._used[nonce]


def _used_before() -> AuthError:
    return AuthError(
        "auth.token_used",
        "the media token was used before",
        status=403,
        hint="a token opens one socket; ask the webhook again",
    )
