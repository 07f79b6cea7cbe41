"""Proofs that several platforms share. A dialect's own stands in its own file."""

from __future__ import annotations

import base64
import binascii
import hmac
from typing import Final

from gateway.channels.dialect import Request
from gateway.errors import AuthError
from gateway.platform_settings import PlatformSettings

MAX_REMEMBERED: Final = 100_000
"""Proofs that are remembered; beyond that the oldest is forgotten first."""


class Once:
    """Proofs that are good for one request: those that were used, as long as they would be taken.

    Only sound proofs come here, so that strangers cannot push others out.
    """

    def __init__(self) -> None:
        self._used: dict[str, float] = {}
        """Until when each is remembered, about the oldest first."""

    def use(self, proof: str, until_s: float, now_s: float) -> None:
        """Use a proof up. Raises AuthError (401) where it was used before."""
        used = self._used
        while used:
            oldest = next(iter(used))
            if used[oldest] >= now_s and len(used) < MAX_REMEMBERED:
                break
            del used[oldest]
        if proof in used:
            raise AuthError("auth.replayed", "the signature was used before", status=401)
        used[proof] = until_s


class AuthorizationProof:
    """The `Authorization` header: Basic by `username` and `password`, Bearer by `auth_tokens`.

    Where both are configured either one opens. Every comparison takes the same time.
    """

    covers_origin = False

    def __init__(self, settings: PlatformSettings) -> None:
        self._tokens = [token.get_secret_value().encode() for token in settings.auth_tokens]
        self._basic = b""
        if settings.password is not None:
            password = settings.password.get_secret_value()
            self._basic = f"{settings.username}:{password}".encode()

    @property
    def configured(self) -> bool:
        """Whether there are credentials to check against."""
        return bool(self._tokens or self._basic)

    def check(self, request: Request, now_s: float) -> None:
        """Whether the header is one of ours. Raises AuthError (401)."""
        scheme, _, value = request.header("authorization").partition(" ")
        value = value.strip()
        if not value:
            raise AuthError(
                "auth.missing", "the request carries no Authorization header", status=401
            )
        sound = False
        if scheme.lower() == "basic":
            offered = _decoded(value)
            sound = bool(self._basic) and hmac.compare_digest(offered, self._basic)
        elif scheme.lower() == "bearer":
            offered = value.encode("utf-8", "replace")
            for token in self._tokens:
                sound |= hmac.compare_digest(token, offered)
        if not sound:
            raise AuthError("auth.credentials", "the credentials are not known here", status=401)


def _decoded(value: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return b""
