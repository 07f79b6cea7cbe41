"""The socket to Google's agent service: how it is opened, refused, and closed."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Mapping
from typing import Any, Final

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from gateway.errors import RuntimeFailure
from gateway.runtime.link import CLOSE_S, MAX_MESSAGE_BYTES, WebsocketLink

CLEAN: Final = frozenset({1000, 1001, 1005})
TRANSIENT: Final = frozenset(
    {
        "runtime.lost",
        "runtime.unreachable",
        "runtime.unavailable",
        "runtime.aborted",
        "runtime.cancelled",
        "runtime.deadline_exceeded",
    }
)
"""Losses after which the same session may go on over another connection."""

_STATUS: Final = {
    400: "invalid_argument",
    401: "unauthenticated",
    403: "permission_denied",
    404: "not_found",
    409: "aborted",
    429: "resource_exhausted",
    500: "internal",
    501: "unimplemented",
    502: "unavailable",
    503: "unavailable",
    504: "deadline_exceeded",
}
_TRY_LATER: Final = "the service's own fault: try again later, and see Google Cloud's status page"
_HINTS: Final = {
    "unauthenticated": "check the credentials: runtime.google.credentials",
    "permission_denied": "grant roles/ces.client to the credentials and enable the API; a user's"
    " credentials need runtime.google.quota_project, too",
    "not_found": "check runtime.google.app, deployment and location",
    "invalid_argument": "check the settings of runtime.google",
    "resource_exhausted": "raise the quota, or lower server.max_calls",
    "failed_precondition": "check that the app can be talked to: runtime.google.app, deployment",
    "unimplemented": "check runtime.google.endpoint and api_version",
    "lost": "check the network between here and the service",
    **dict.fromkeys(("internal", "unavailable", "deadline_exceeded", "unknown"), _TRY_LATER),
}
_CODES: Final = frozenset(_STATUS.values()) | {
    "already_exists",
    "cancelled",
    "data_loss",
    "failed_precondition",
    "out_of_range",
    "unknown",
}
_CLOSE_CODES: Final = {1007: "invalid_argument", 1008: "permission_denied", 1011: "internal"}
_GENERIC: Final = re.compile(r"generic::(\w+)")
_GOODBYE: Final = re.compile(r"\bgoodbye\W*\Z", re.IGNORECASE)
_BAD_TOKEN: Final = re.compile(r"token expired|credential sent is invalid", re.IGNORECASE)


def failure(code: str, message: str) -> RuntimeFailure:
    """A failure of the service by one of its codes; `runtime.lost` for a code that is none."""
    known = code if code in _CODES else "lost"
    return RuntimeFailure(
        f"runtime.{known}",
        f"the agent service {message}",
        where="runtime.google",
        hint=_HINTS.get(known),
    )


def read_close(code: int | None, reason: str) -> RuntimeFailure | None:
    """What the end of a connection means; None for one in peace. `code`: None without any."""
    if _GOODBYE.search(reason):
        return None
    named = _GENERIC.search(reason)
    if named is not None and named[1].lower() != "ok":
        return failure(named[1].lower(), f"closed the session: {named[1].lower()}")
    if _BAD_TOKEN.search(reason):
        return failure("unauthenticated", "closed the session: it does not take the token")
    if code in CLEAN:
        return None
    if code is None:
        return failure("lost", "went away without a word")
    return failure(_CLOSE_CODES.get(code, "lost"), f"closed the session with code {code}")


class GoogleLink(WebsocketLink):
    """A connection to the service."""

    def __init__(self, connection: ClientConnection) -> None:
        super().__init__(connection)
        self._spoken = False
        self._parted = False

    async def receive(self) -> dict[str, Any] | None:
        """The next message; a close in peace is told as the end of the session, then None."""
        if self._parted:
            return None
        message = await super().receive()
        self._spoken = True
        return message

    def _unsent(self, error: ConnectionClosed) -> RuntimeFailure:
        received = error.rcvd
        if received is None:
            return failure("lost", "went away without a word")
        return read_close(received.code, received.reason) or failure(
            "failed_precondition", "closed the session before it was told everything"
        )

    def _closed(self, code: int | None, reason: str) -> dict[str, Any] | None:
        lost = read_close(code, reason)
        if lost is not None:
            raise lost
        if not self._spoken:
            # In peace or not: nobody has been answered.
            raise failure("failed_precondition", "closed the session before it said anything")
        self._parted = True
        return {"endSession": {}}


class _Connect(connect):
    """Follows no redirect: the token is for the service alone."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


async def open_link(
    url: str, headers: Mapping[str, str], tls: ssl.SSLContext | None, timeout_s: float
) -> GoogleLink:
    """Connect. Raises RuntimeFailure by what went wrong; runtime.unauthenticated for a 401."""
    try:
        return GoogleLink(
            await _Connect(
                url,
                additional_headers=dict(headers),
                user_agent_header="voice-gateway",
                ssl=tls,
                compression=None,
                max_size=MAX_MESSAGE_BYTES,
                open_timeout=timeout_s,
                close_timeout=CLOSE_S,
            )
        )
    except InvalidStatus as error:
        status = error.response.status_code
        raise failure(_STATUS.get(status, "unknown"), f"answers {status}") from None
    except ssl.SSLError as error:
        raise _unreachable("runtime.tls", url, error.reason or type(error).__name__) from None
    except socket.gaierror:
        raise _unreachable("runtime.unreachable", url, "its name is not known") from None
    except TimeoutError:
        raise _unreachable("runtime.unreachable", url, f"no answer in {timeout_s:g} s") from None
    except (OSError, InvalidHandshake) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise _unreachable("runtime.unreachable", url, reason) from None


def _unreachable(code: str, url: str, reason: str) -> RuntimeFailure:
    return RuntimeFailure(
        code,
        f"cannot reach the agent service: {reason}",
        where=url,
        hint="check the network and runtime.google.endpoint",
    )
