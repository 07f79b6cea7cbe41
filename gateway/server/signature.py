"""Twilio's request signature: an HMAC over the address and the sorted form fields.

The platform signs the address that *it* used. That is built from the configured public origin,
never from what a proxy passed on, and tried in the spellings that the platform is known to use:
with and without the default port, with and without a final slash, websocket and HTTP scheme.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from urllib.parse import urlsplit, urlunsplit

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
