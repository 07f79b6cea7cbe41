"""Telnyx's proof: webhooks are signed with Ed25519, sockets carry a stream token.

A signature is good for one request. A webhook that Telnyx itself sends again has another time, so
it is signed anew and answered anew; that makes no second call: the command that answers one has an
id that stays the same, and a media socket is opened once for a call.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from gateway.channels.dialect import Request
from gateway.channels.proofs import Once
from gateway.errors import AuthError, ConfigError
from gateway.platform_settings import TelnyxSettings

TOLERANCE_S: Final = 300.0
"""Oldest webhook that is taken; those that are sent again are signed anew."""


class TelnyxProof:
    """Knows the public keys and the stream tokens of `platforms.telnyx`."""

    covers_origin = False

    def __init__(self, settings: TelnyxSettings) -> None:
        self._keys = [_key(text) for text in settings.public_keys]
        self._tokens = [token.get_secret_value().encode() for token in settings.auth_tokens]
        self._once = Once()

    @property
    def configured(self) -> bool:
        """Whether there are keys or tokens to check against."""
        return bool(self._keys or self._tokens)

    def check(self, request: Request, now_s: float) -> None:
        """Whether the platform asks. Raises AuthError (401; 403 for a wrong signature)."""
        signature = request.header("telnyx-signature-ed25519")
        if signature:
            self._check_signature(request, signature, now_s)
            return
        # Its form is not written down: with and without a scheme.
        given = request.header("authorization").strip()
        if not given:
            raise AuthError(
                "auth.unsigned", "the request carries no signature and no token", status=401
            )
        offered = given.encode("utf-8", "replace")
        bare = given.partition(" ")[2].strip().encode("utf-8", "replace")
        sound = False
        for token in self._tokens:
            sound |= hmac.compare_digest(token, offered) | hmac.compare_digest(token, bare)
        if not sound:
            raise AuthError("auth.bearer", "the stream token is not known here", status=401)

    def _check_signature(self, request: Request, signature: str, now_s: float) -> None:
        stamp = request.header("telnyx-timestamp")
        if not stamp.isascii() or not stamp.isdigit() or len(stamp) > 12:
            raise AuthError("auth.unsigned", "the request carries no timestamp", status=403)
        if abs(now_s - int(stamp)) > TOLERANCE_S:
            raise AuthError(
                "auth.expired",
                "the signature is too old, or from the future",
                status=403,
                hint="check this machine's clock",
            )
        signed = f"{stamp}|".encode() + request.body
        try:
            value = base64.b64decode(signature, validate=True)
        except (binascii.Error, ValueError):
            value = b""
        if not any(_verifies(key, value, signed) for key in self._keys):
            raise AuthError(
                "auth.signature",
                "the signature does not fit this body",
                status=403,
                hint="check platforms.telnyx.public_keys",
            )
        # The decoded value: the same bytes can be spelled in several ways. Without a body only
        # the second is signed, which several calls may share; their addresses tell them apart.
        used = value.hex() if request.body else f"{value.hex()} {request.target}"
        self._once.use(used, int(stamp) + TOLERANCE_S, now_s)


def _verifies(key: Ed25519PublicKey, signature: bytes, signed: bytes) -> bool:
    try:
        key.verify(signature, signed)
    except InvalidSignature:
        return False
    return True


def _key(text: str) -> Ed25519PublicKey:
    try:
        return Ed25519PublicKey.from_public_bytes(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        raise ConfigError(
            "config.public_key",
            "this is no Ed25519 public key",
            where="platforms.telnyx.public_keys",
            hint="32 bytes as base64, as the portal shows them",
        ) from None
