"""Plivo's request signature, version 3: an HMAC over the address, the form fields and a nonce."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Final
from urllib.parse import parse_qs, urlsplit, urlunsplit

from gateway.channels.dialect import Request
from gateway.channels.proofs import Once
from gateway.channels.twilio_signature import spellings
from gateway.errors import AuthError
from gateway.platform_settings import PlivoSettings

MAX_FIELDS: Final = 100
REMEMBER_S: Final = 24 * 3600.0
"""How long a nonce is remembered."""


def sign(token: str, method: str, url: str, fields: Mapping[str, Sequence[str]], nonce: str) -> str:
    """The signature of a request: base64 text. `fields`: form fields with all their values."""
    parts = urlsplit(url)
    query: dict[str, Sequence[str]] = dict(
        parse_qs(parts.query, keep_blank_values=True, max_num_fields=MAX_FIELDS)
    )
    if method == "GET":
        query = {**fields, **query}
        fields = {}
    text = urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
    told = "&".join(f"{name}={value}" for name in sorted(query) for value in sorted(query[name]))
    if told or fields:
        text += f"?{told}"
    if told and fields:
        text += "."
    text += "".join(name + value for name in sorted(fields) for value in sorted(fields[name]))
    digest = hmac.digest(token.encode(), f"{text}.{nonce}".encode("utf-8", "replace"), "sha256")
    return base64.b64encode(digest).decode()


class PlivoProof:
    """`X-Plivo-Signature-V3` and its nonce, on webhooks and upgrades, by any of the tokens.

    The header may hold several signatures, of an account and of its parent. Each nonce is good
    once; it tells no time, so it is remembered for long.
    """

    covers_origin = True

    def __init__(self, settings: PlivoSettings) -> None:
        self._tokens = [token.get_secret_value() for token in settings.auth_tokens]
        self._once = Once()

    @property
    def configured(self) -> bool:
        """Whether there are tokens to check against."""
        return bool(self._tokens)

    def check(self, request: Request, now_s: float) -> None:
        """Whether the platform signed this. Raises AuthError (403)."""
        given = request.header("x-plivo-signature-v3")
        nonce = request.header("x-plivo-signature-v3-nonce")
        if not given or not nonce:
            raise AuthError(
                "auth.unsigned",
                "the request carries no X-Plivo-Signature-V3 with its nonce",
                status=403,
            )
        offered = [one.strip().encode("utf-8", "replace") for one in given.split(",")[:4]]
        sound = False
        try:
            for token, url in product(self._tokens, spellings(request.origin + request.target)):
                made = sign(token, request.method, url, request.form, nonce).encode()
                for one in offered:
                    sound |= hmac.compare_digest(made, one)
        except ValueError:
            # More fields in the query than anyone signs.
            sound = False
        if not sound:
            raise AuthError(
                "auth.signature",
                "the signature does not fit the public address and these fields",
                status=403,
                hint="check platforms.plivo.auth_tokens and server.public_origin",
            )
        self._once.use(nonce, now_s + REMEMBER_S, now_s)
