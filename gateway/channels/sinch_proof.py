"""Sinch's proof: callbacks are signed with the application's secret.

The signature is an HMAC over method, digest and type of the body, time and path. Its sockets come
without any header, so they carry a media token; Basic credentials or a bearer token open them too,
where something on the way adds them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

from gateway.channels.dialect import Request
from gateway.channels.proofs import AuthorizationProof, Once
from gateway.errors import AuthError, ConfigError
from gateway.platform_settings import SinchSettings

TOLERANCE_S: Final = 300.0
"""How far a callback's time may be from ours."""


def sign(secret: bytes, method: str, body: bytes, content_type: str, stamp: str, path: str) -> str:
    """The signature of a request: base64 text. `stamp`: its `x-timestamp` as it is written."""
    digest = base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
    signed = "\n".join((method, digest, content_type, f"x-timestamp:{stamp}", path))
    made = hmac.digest(secret, signed.encode("utf-8", "replace"), "sha256")
    return base64.b64encode(made).decode()


class SinchProof:
    """Knows the application of `platforms.sinch`; each signature is good once."""

    covers_origin = False

    def __init__(self, settings: SinchSettings) -> None:
        self._header = AuthorizationProof(settings)
        self._key = settings.api_key.encode()
        self._secret = b""
        if settings.api_secret is not None:
            try:
                self._secret = base64.b64decode(
                    settings.api_secret.get_secret_value(), validate=True
                )
            except (binascii.Error, ValueError):
                raise ConfigError(
                    "config.sinch_secret",
                    "the application's secret is not base64",
                    where="platforms.sinch.api_secret",
                    hint="enter it here as the dashboard shows it",
                ) from None
        self._once = Once()

    @property
    def configured(self) -> bool:
        """Whether there are credentials to check against."""
        return bool(self._key and self._secret) or self._header.configured

    def check(self, request: Request, now_s: float) -> None:
        """Whether the platform asks. Raises AuthError (401)."""
        scheme, _, value = request.header("authorization").partition(" ")
        if scheme.lower() != "application":
            self._header.check(request, now_s)
            return
        key, _, signature = value.strip().partition(":")
        stamp = request.header("x-timestamp")
        content_type = request.header("content-type")
        offered = signature.encode("utf-8", "replace")
        sound = False
        for path in _paths(request):
            made = sign(self._secret, request.method, request.body, content_type, stamp, path)
            sound |= hmac.compare_digest(made.encode(), offered)
        known = hmac.compare_digest(self._key, key.encode("utf-8", "replace"))
        if not (sound and known and self._key and self._secret):
            raise AuthError(
                "auth.signature",
                "the signature does not fit key, path, time and body",
                status=401,
                hint="check platforms.sinch.api_key and api_secret",
            )
        at_s = _seconds(stamp)
        if at_s is None or abs(now_s - at_s) > TOLERANCE_S:
            raise AuthError(
                "auth.expired",
                "the signature is too old, or from the future",
                status=401,
                hint="check this machine's clock",
            )
        self._once.use(signature, at_s + TOLERANCE_S, now_s)


def _paths(request: Request) -> list[str]:
    """Paths that may have been signed: as it came, and below the public origin's own."""
    public = urlsplit(request.origin).path
    return list(dict.fromkeys((request.path, public + request.path)))


def _seconds(stamp: str) -> float | None:
    """A time in UTC as the platform writes it, with any number of decimals."""
    whole, _, _ = stamp.removesuffix("Z").partition(".")
    try:
        return datetime.fromisoformat(whole).replace(tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        return None
