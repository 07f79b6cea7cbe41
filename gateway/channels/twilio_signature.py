"""Twilio's request signature: an HMAC over the address and the sorted form fields.

The platform signs the address that *it* used. That is built from the configured public origin,
never from what a proxy passed on, and tried in the spellings that the platform is known to use:
with and without the default port, with and without a final slash, websocket and HTTP scheme.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from urllib.parse import urlsplit, urlunsplit

from gateway.channels.dialect import Request
from gateway.errors import AuthError
from gateway.platform_settings import TwilioSettings

_DEFAULT_PORTS = {"https": 443, "wss": 443, "http": 80, "ws": 80}
_SISTERS = {"https": "wss", "wss": "https", "http": "ws", "ws": "http"}


def sign(token: str, url: str, fields: Mapping[str, Sequence[str]], algorithm: str = "sha1") -> str:
    """The signature of a request: base64 text. `fields`: form fields with all their values."""
    text = url + "".join(
        name + value for name in sorted(fields) for value in sorted(set(fields[name]))
    )
    return base64.b64encode(hmac.digest(token.encode(), text.encode(), algorithm)).decode()


def spellings(url: str) -> list[str]:
    """The address in every spelling that may have been signed; the given one first."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    found = [url]
    paths = [parts.path, parts.path.rstrip("/") if parts.path.endswith("/") else parts.path + "/"]
    for scheme, path in product((parts.scheme, _SISTERS.get(parts.scheme, parts.scheme)), paths):
        default = _DEFAULT_PORTS.get(scheme)
        port = parts.port or default
        places = [f"{host}:{port}"]
        if port == default:
            places.append(host)
        found += [urlunsplit((scheme, place, path, parts.query, "")) for place in places]
    return list(dict.fromkeys(found))


def genuine(
    tokens: Iterable[str], url: str, fields: Mapping[str, Sequence[str]], signature: str
) -> bool:
    """Whether any token signs any spelling so. Compares in constant time.

    Account tokens sign with SHA-1, shared keys of newer accounts with SHA-256.
    """
    given = signature.encode("utf-8", "replace")
    sound = False
    for token, spelling, algorithm in product(tokens, spellings(url), ("sha1", "sha256")):
        made = sign(token, spelling, fields, algorithm)
        sound |= hmac.compare_digest(made.encode(), given)
    return sound


class TwilioProof:
    """`X-Twilio-Signature` on webhooks and upgrades, with the primary or the secondary token.

    A JSON webhook is signed by its address alone, which then holds the body's digest.
    """

    covers_origin = True

    def __init__(self, settings: TwilioSettings) -> None:
        self._tokens = [token.get_secret_value() for token in settings.auth_tokens]

    @property
    def configured(self) -> bool:
        """Whether there are tokens to check against."""
        return bool(self._tokens)

    def check(self, request: Request, now_s: float) -> None:
        """Whether the platform signed this. Raises AuthError (403)."""
        given = request.header("x-twilio-signature")
        if not given:
            raise AuthError(
                "auth.unsigned", "the request carries no X-Twilio-Signature", status=403
            )
        digest = request.query_value("bodySHA256")
        whole = not digest or hmac.compare_digest(
            digest.encode("utf-8", "replace"), hashlib.sha256(request.body).hexdigest().encode()
        )
        fields = {} if digest else request.form
        signed = genuine(self._tokens, request.origin + request.target, fields, given)
        if not (signed and whole):
            raise AuthError(
                "auth.signature",
                "the signature does not fit the public address and these fields",
                status=403,
                hint="check platforms.twilio.auth_tokens and server.public_origin",
            )
