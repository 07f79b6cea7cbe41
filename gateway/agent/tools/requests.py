"""HTTP for app code and tools: `ces_requests`, in the manner of `requests`, always in time."""

from __future__ import annotations

import json
import sys
import time
from contextlib import nullcontext
from types import ModuleType
from typing import Any

import requests
from urllib3.exceptions import HTTPError
from urllib3.util import Timeout

from gateway.agent.scope import current
from gateway.agent.tools.punctual import session_in_time

MAX_RESPONSE_BYTES = 10 << 20
DEFAULT_TIMEOUT_S = 30.0
MARGIN_S = 0.25
_CHUNK_BYTES = 1 << 16


class CesResponse:
    """The answer. `status_code` 0: there was none (connection failed, deadline, too large)."""

    def __init__(
        self,
        status_code: int,
        content: bytes = b"",
        headers: dict[str, str] | None = None,
        encoding: str | None = None,
        reason: str = "",
        url: str = "",
    ) -> None:
        self.status_code = status_code
        self.content = content
        self.headers = requests.structures.CaseInsensitiveDict(headers or {})
        self.encoding = encoding
        self.reason = reason
        self.url = url

    @property
    def ok(self) -> bool:
        """True for a status below 400."""
        return 0 < self.status_code < 400

    @property
    def text(self) -> str:
        """The body as text."""
        try:
            return self.content.decode(self.encoding or "utf-8", "replace")
        except LookupError:
            return self.content.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body as JSON. Raises ValueError where it is not."""
        return json.loads(self.content)

    def raise_for_status(self) -> None:
        """Raise requests.HTTPError where the request failed."""
        if not self.ok:
            raise requests.HTTPError(f"{self.status_code} {self.reason} for {self.url}")


def seconds_left(limit_s: float = DEFAULT_TIMEOUT_S) -> float:
    """Seconds that an exchange in this thread may take, at most `limit_s`.

    It ends a little before the call's own deadline: a thread that is ended in the middle of an
    exchange leaves its connection open.
    """
    scope = current()
    if scope is None:
        return limit_s
    left = scope.deadline - time.monotonic()
    return min(limit_s, left - min(MARGIN_S, left * 0.2))


def fetch(
    method: str, url: str, *, session: requests.Session | None = None, **options: Any
) -> CesResponse:
    """One HTTP request within the call's deadline; never raises for the network's faults.

    `options`: the keywords of `requests.request`; `timeout` bounds the whole exchange.
    """
    timeout = options.pop("timeout", None)
    limit_s = float(timeout) if isinstance(timeout, int | float) else DEFAULT_TIMEOUT_S
    deadline = time.monotonic() + seconds_left(limit_s)
    options.pop("stream", None)
    held = session_in_time() if session is None else nullcontext(session)
    try:
        # One bound for connecting and waiting together, not one for each.
        options["timeout"] = Timeout(total=_left(deadline))
        with held as asking, asking.request(method, url, stream=True, **options) as response:
            content = bytearray()
            # One reception at a time: a server that drips must not outlast the deadline.
            while chunk := response.raw.read1(_CHUNK_BYTES, decode_content=True):
                content += chunk
                _left(deadline)
                if len(content) > MAX_RESPONSE_BYTES:
                    raise requests.RequestException("response is too large")
            return CesResponse(
                response.status_code,
                bytes(content),
                dict(response.headers),
                response.encoding,
                response.reason,
                response.url,
            )
    # A ValueError is the address of a redirect, which no one has looked at before.
    except (requests.RequestException, HTTPError, OSError, ValueError) as error:
        return CesResponse(0, reason=str(error), url=url)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise requests.Timeout("the deadline has passed")
    return left


class CesRequests:
    """The `ces_requests` global. Every method takes the keywords of `requests.request`."""

    def request(self, method: str, url: str, **options: Any) -> CesResponse:
        """One HTTP request; never raises for the network's faults."""
        return fetch(method, url, **options)

    def get(self, url: str, **options: Any) -> CesResponse:
        """GET."""
        return fetch("GET", url, **options)

    def post(self, url: str, **options: Any) -> CesResponse:
        """POST."""
        return fetch("POST", url, **options)

    def put(self, url: str, **options: Any) -> CesResponse:
        """PUT."""
        return fetch("PUT", url, **options)

    def patch(self, url: str, **options: Any) -> CesResponse:
        """PATCH."""
        return fetch("PATCH", url, **options)

    def delete(self, url: str, **options: Any) -> CesResponse:
        """DELETE."""
        return fetch("DELETE", url, **options)

    def head(self, url: str, **options: Any) -> CesResponse:
        """HEAD."""
        return fetch("HEAD", url, **options)

    def options(self, url: str, **options: Any) -> CesResponse:
        """OPTIONS."""
        return fetch("OPTIONS", url, **options)


def give_module() -> None:
    """Let app code of this process `import ces_requests`, too, as its authors may write."""
    module = ModuleType("ces_requests", CesRequests.__doc__)
    http = CesRequests()
    for name in vars(CesRequests):
        if not name.startswith("_"):
            setattr(module, name, getattr(http, name))
    sys.modules[module.__name__] = module
