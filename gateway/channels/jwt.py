"""JSON web tokens, as far as platforms need them: HS256 to check, RS256 to sign."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from gateway.errors import ConfigError

MAX_TOKEN_CHARS: Final = 8192
MIN_RSA_BITS: Final = 2048


def claims_of(token: str, secrets: Iterable[str]) -> Mapping[str, Any] | None:
    """The claims of a token that any of the secrets has signed with HS256; None of all others.

    Times in the claims are not judged here.
    """
    parts = token.split(".")
    if len(parts) != 3 or len(token) > MAX_TOKEN_CHARS or not token.isascii():
        return None
    head, body, signature = (_decoded(part) for part in parts)
    signed = f"{parts[0]}.{parts[1]}".encode()
    sound = False
    for secret in secrets:
        made = hmac.digest(secret.encode(), signed, "sha256")
        sound |= hmac.compare_digest(made, signature)
    header, claims = _object(head), _object(body)
    # The algorithm is ours to say, never the token's; it only must not say another one.
    if not sound or header is None or claims is None or header.get("alg") != "HS256":
        return None
    return claims


def unproven_claims(token: str) -> Mapping[str, Any]:
    """What a token says, whoever signed it; empty where it is none."""
    parts = token.split(".")
    if len(parts) != 3 or len(token) > MAX_TOKEN_CHARS:
        return {}
    return _object(_decoded(parts[1])) or {}


def rsa_key(pem: str, where: str) -> RSAPrivateKey:
    """A private key. Raises ConfigError where it is none."""
    hint = "the whole PEM text, from BEGIN PRIVATE KEY to END PRIVATE KEY"
    try:
        # Line breaks in environment variables are often written as two characters.
        key = load_pem_private_key(pem.replace("\\n", "\n").encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ConfigError(
            "config.private_key", "this is no private key", where=where, hint=hint
        ) from None
    if not isinstance(key, RSAPrivateKey) or key.key_size < MIN_RSA_BITS:
        raise ConfigError(
            "config.private_key",
            f"an RSA key of {MIN_RSA_BITS} bits or more is needed",
            where=where,
            hint=hint,
        )
    return key


def sign_rs256(key: RSAPrivateKey, claims: Mapping[str, Any]) -> str:
    """A token with these claims; takes about a millisecond."""
    head = _encoded(orjson.dumps({"alg": "RS256", "typ": "JWT"}))
    body = _encoded(orjson.dumps(claims))
    signature = key.sign(f"{head}.{body}".encode(), PKCS1v15(), SHA256())
    return f"{head}.{body}.{_encoded(signature)}"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    try:
        raw = text.encode("ascii")
        return base64.b64decode(raw + b"=" * (-len(raw) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b""


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
