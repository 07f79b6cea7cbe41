"""`ces_requests`: HTTP for app code, in the manner of `requests`, within the call's deadline."""

from __future__ import annotations

import json
import time
from typing import Any

import requests

from gateway.agent.scope import current

MAX_RESPONSE_BYTES = 10 << 20
DEFAULT_TIMEOUT_S = 30.0
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


class CesRequests:
    """The `ces_requests` global. Every method takes the keywords of `requests.request`."""

    def request(self, method: str, url: str, **options: Any) -> CesResponse:
        """One HTTP request; never raises for the network's faults."""
        scope = current()
        timeout = options.pop("timeout", None)
        seconds = float(timeout) if isinstance(timeout, int | float) else DEFAULT_TIMEOUT_S
        deadline = time.monotonic() + seconds
        if scope is not None:
            deadline = min(deadline, scope.deadline)
        options.pop("stream", None)
        try:
            with requests.request(
                method, url, stream=True, timeout=self._left(deadline), **options
            ) as response:
                content = bytearray()
                for chunk in response.iter_content(_CHUNK_BYTES):
                    content += chunk
                    self._left(deadline)
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
        except (requests.RequestException, OSError) as error:
            return CesResponse(0, reason=str(error), url=url)

    @staticmethod
    def _left(deadline: float) -> float:
        left = deadline - time.monotonic()
        if left <= 0:
            raise requests.Timeout("the deadline has passed")
        return left

    def get(self, url: str, **options: Any) -> CesResponse:
        """GET."""
        return self.request("GET", url, **options)

    def post(self, url: str, **options: Any) -> CesResponse:
        """POST."""
        return self.request("POST", url, **options)

    def put(self, url: str, **options: Any) -> CesResponse:
        """PUT."""
        return self.request("PUT", url, **options)

    def patch(self, url: str, **options: Any) -> CesResponse:
        """PATCH."""
        return self.request("PATCH", url, **options)

    def delete(self, url: str, **options: Any) -> CesResponse:
        """DELETE."""
        return self.request("DELETE", url, **options)

    def head(self, url: str, **options: Any) -> CesResponse:
        """HEAD."""
        return self.request("HEAD", url, **options)
