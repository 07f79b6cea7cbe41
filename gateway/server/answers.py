"""How the server answers with an error, the same on both stacks: a small JSON object."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

import orjson

from gateway.errors import AdmissionError, AuthError, GatewayError
from gateway.server.head import HeadError


def status_of(error: GatewayError | HeadError) -> HTTPStatus:
    """The HTTP status of an error."""
    if isinstance(error, HeadError):
        return error.status
    return HTTPStatus(error.status if isinstance(error, AdmissionError) else 400)


def headers_of(error: GatewayError | HeadError) -> dict[str, str]:
    """The header fields that belong to an error's status."""
    headers = dict(error.headers) if isinstance(error, HeadError) else {}
    if isinstance(error, AdmissionError) and error.retry_after_s is not None:
        headers["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, AuthError) and error.status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = 'Bearer realm="voice-gateway"'
    if status_of(error) is HTTPStatus.UPGRADE_REQUIRED:
        headers["Upgrade"] = "websocket"
        headers["Sec-WebSocket-Version"] = "13"
    return headers


def body_of(error: GatewayError | HeadError) -> bytes:
    """`{"error": {"code", "message", "hint"}}`."""
    fields = {"code": error.code, "message": error.message}
    if error.hint:
        fields["hint"] = error.hint
    return orjson.dumps({"error": fields}) + b"\n"


def raw(error: GatewayError | HeadError) -> bytes:
    """A whole HTTP response, for answers before any stack took over."""
    status = status_of(error)
    body = body_of(error)
    headers: Mapping[str, str] = {
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Connection": "close",
        **headers_of(error),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status.value} {status.phrase}\r\n{lines}\r\n".encode("latin-1") + body
