"""The request head, read just far enough to know which stack it belongs to.

Plain requests travel on untouched to the HTTP stack, which parses them again by its own rules.
Upgrades are judged here in full, so that a wrong one gets a clear answer.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qs

END = b"\r\n\r\n"
MAX_HEADERS = 100
MAX_TARGET = 4096

_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_TARGET = re.compile(rb"[\x21-\x7e]+\Z")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*\Z")
_LENGTH = re.compile(r"[0-9]{1,18}")


class HeadError(Exception):
    """A request that is answered before any stack sees it."""

    def __init__(
        self,
        status: HTTPStatus,
        code: str,
        message: str,
        *,
        hint: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.hint = hint
        self.headers = dict(headers or {})
        """Fields that belong to the answer."""


@dataclass(frozen=True, slots=True)
class Head:
    """Request line and header fields; names in lower case."""

    method: str
    path: str
    query: str
    version: str
    headers: tuple[tuple[str, str], ...]

    def get(self, name: str) -> str:
        """The first value of a header, or an empty string."""
        return next((value for key, value in self.headers if key == name), "")

    def fields(self) -> dict[str, str]:
        """All headers by name; values of a name that comes more than once are joined by a comma."""
        fields: dict[str, str] = {}
        for name, value in self.headers:
            fields[name] = f"{fields[name]}, {value}" if name in fields else value
        return fields

    def tokens(self, name: str) -> set[str]:
        """The comma-separated members of a header, in lower case."""
        values = (value for key, value in self.headers if key == name)
        return {part.strip().lower() for value in values for part in value.split(",")}

    def listed(self, name: str) -> list[str]:
        """The comma-separated members of a header as they are written, in order."""
        values = (value for key, value in self.headers if key == name)
        return [part.strip() for value in values for part in value.split(",")]

    def query_values(self) -> dict[str, list[str]]:
        """The query fields; none where there are too many."""
        try:
            return parse_qs(self.query, keep_blank_values=True, max_num_fields=50)
        except ValueError:
            return {}

    def query_value(self, name: str) -> str:
        """The first value of a query field, or an empty string."""
        return self.query_values().get(name, [""])[0]

    @property
    def is_upgrade(self) -> bool:
        """Whether the client asks for a websocket."""
        return "upgrade" in self.tokens("connection") and "websocket" in self.tokens("upgrade")


def refuse_early(begun: bytes) -> None:
    """Refuse what cannot become an HTTP request. Raises HeadError.

    `begun`: the bytes so far, without an end of head.
    """
    if begun[:1] == b"\x16":
        raise HeadError(
            HTTPStatus.BAD_REQUEST,
            "http.tls",
            "this port speaks plain HTTP, not TLS",
            hint="use http:// and ws://, or set server.tls_cert and server.tls_key",
        )
    line = begun.split(b"\r\n", 1)[0]
    if not all(0x20 <= byte < 0x7F for byte in line.removesuffix(b"\r")):
        raise HeadError(HTTPStatus.BAD_REQUEST, "http.malformed", "this is not an HTTP request")


def parse(raw: bytes) -> Head:
    """A head without its final empty line. Raises HeadError."""
    lines = raw.split(b"\r\n")
    parts = lines[0].split(b" ")
    if len(parts) != 3 or not _TOKEN.match(parts[0]) or not parts[2].startswith(b"HTTP/"):
        raise HeadError(HTTPStatus.BAD_REQUEST, "http.malformed", "this is not an HTTP request")
    method, target, version = parts
    if version not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise HeadError(
            HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "http.version", "only HTTP/1.1 is spoken here"
        )
    if len(target) > MAX_TARGET:
        raise HeadError(HTTPStatus.REQUEST_URI_TOO_LONG, "http.target", "the address is too long")
    if not _TARGET.match(target):
        raise HeadError(HTTPStatus.BAD_REQUEST, "http.malformed", "the address is not a URL")
    if len(lines) - 1 > MAX_HEADERS:
        raise HeadError(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "http.headers", "too many header fields"
        )
    headers: list[tuple[str, str]] = []
    for line in lines[1:]:
        name, colon, value = line.partition(b":")
        if not colon or not _TOKEN.match(name) or not _VALUE.match(value):
            raise HeadError(HTTPStatus.BAD_REQUEST, "http.malformed", "a header field is malformed")
        headers.append((name.decode("ascii").lower(), value.strip().decode("latin-1")))
    if sum(name == "host" for name, _ in headers) > 1:
        # Which of them the other parts of the way believe cannot be known.
        raise HeadError(HTTPStatus.BAD_REQUEST, "http.host", "more than one Host")
    path, _, query = _origin_form(target.decode("ascii")).partition("?")
    return Head(method.decode("ascii"), path, query, version.decode("ascii"), tuple(headers))


def _origin_form(target: str) -> str:
    """`http://host/path` as proxies write it becomes `/path`."""
    scheme, marker, rest = target.partition("://")
    if marker and scheme.lower() in ("http", "https", "ws", "wss"):
        return "/" + rest.partition("/")[2]
    return target


def check_body(head: Head) -> None:
    """Whether it is plain how long the body of a request is. Raises HeadError.

    The HTTP stack refuses the same, but in words that repeat the client's own.
    """
    lengths = [value for name, value in head.headers if name == "content-length"]
    encoding = head.listed("transfer-encoding")
    sound = len(lengths) + len(encoding) <= 1
    sound = sound and all(_LENGTH.fullmatch(value) for value in lengths)
    if not sound or any(value.lower() != "chunked" for value in encoding):
        raise HeadError(
            HTTPStatus.BAD_REQUEST, "http.length", "how long the request body is cannot be told"
        )


def check_upgrade(head: Head) -> None:
    """Whether the handshake is sound. Raises HeadError."""
    if head.method != "GET" or head.version != "HTTP/1.1":
        raise HeadError(
            HTTPStatus.BAD_REQUEST, "http.upgrade", "a websocket begins with GET and HTTP/1.1"
        )
    if head.get("content-length") not in ("", "0") or head.get("transfer-encoding"):
        raise HeadError(HTTPStatus.BAD_REQUEST, "http.upgrade", "a websocket has no request body")
    if head.get("sec-websocket-version") != "13":
        raise HeadError(
            HTTPStatus.UPGRADE_REQUIRED, "http.upgrade", "only websocket version 13 is spoken"
        )
    keys = [value for name, value in head.headers if name == "sec-websocket-key"]
    try:
        sound = len(keys) == 1 and len(base64.b64decode(keys[0], validate=True)) == 16
    except (binascii.Error, ValueError):
        sound = False
    if not sound:
        raise HeadError(HTTPStatus.BAD_REQUEST, "http.upgrade", "Sec-WebSocket-Key is malformed")


def canonical(head: Head) -> bytes:
    """The upgrade head in the one spelling that the websocket stack takes.

    Browsers send `Connection: keep-alive, Upgrade` and much more; nothing of it is needed there.
    """
    return (
        f"GET {head.path or '/'} HTTP/1.1\r\n"
        f"Host: {head.get('host')}\r\n"
        "Upgrade: websocket\r\n"
        "Connection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\n"
        f"Sec-WebSocket-Key: {head.get('sec-websocket-key')}\r\n\r\n"
    ).encode("latin-1")
