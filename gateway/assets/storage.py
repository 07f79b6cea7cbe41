"""gs:// files by the google-cloud-storage client.

Credentials are the environment's own (Application Default Credentials); without any, and with a
storage emulator, the client is anonymous, which suffices for public buckets. Blocking: runs in a
worker thread.
"""

from __future__ import annotations

import io
import os
import re
import threading
from typing import Any

from gateway.assets.deadline import Deadline
from gateway.assets.guard import Guard
from gateway.errors import AssetError

_URI = re.compile(r"gs://([a-z0-9][a-z0-9._-]{1,220}[a-z0-9])/([^\x00\r\n]{1,1024})")


class StorageSource:
    """Fetches objects of Cloud Storage buckets within the limits it is given."""

    def __init__(self, guard: Guard, *, max_bytes: int, endpoint: str | None = None) -> None:
        self._guard = guard
        self._max_bytes = max_bytes
        self._endpoint = endpoint
        self._lock = threading.Lock()
        self._client: Any = None
        self._thread = threading.local()

    def fetch(self, uri: str, deadline: Deadline) -> bytes:
        """The object's bytes. Raises AssetError with the code that says what went wrong."""
        # The client library takes most of a second to import: only gateways that use it pay.
        import google.auth.exceptions
        import requests
        from google.api_core import exceptions
        from google.cloud.storage.exceptions import DataCorruption, InvalidResponse
        from google.cloud.storage.retry import DEFAULT_RETRY

        where = deadline.where
        found = _URI.fullmatch(uri)
        if found is None:
            raise AssetError("asset.uri", "want gs://bucket/object", where=where)
        bucket, name = found.groups()
        self._guard.check_bucket(bucket, where)
        body = _Bounded(self._max_bytes, deadline)
        responses: list[Any] = []
        self._thread.responses = responses
        try:
            timeout_s = deadline.remaining_s()
            blob = self._connected().bucket(bucket).blob(name)
            blob.download_to_file(
                body, timeout=timeout_s, retry=DEFAULT_RETRY.with_timeout(timeout_s)
            )
        except exceptions.NotFound:
            raise AssetError("asset.not_found", "no such object or bucket", where=where) from None
        except (
            exceptions.Forbidden,
            exceptions.Unauthorized,
            google.auth.exceptions.GoogleAuthError,
        ):
            raise AssetError(
                "asset.forbidden",
                "the gateway may not read this object",
                where=where,
                hint="grant storage.objects.get to the gateway's service account",
            ) from None
        except (requests.Timeout, exceptions.RetryError):
            raise deadline.passed() from None
        except DataCorruption:
            raise AssetError("asset.truncated", "the checksum is wrong", where=where) from None
        except (
            exceptions.GoogleAPICallError,
            InvalidResponse,
            requests.RequestException,
            OSError,
        ) as error:
            raise AssetError(
                "asset.unreachable", f"storage failed: {type(error).__name__}", where=where
            ) from None
        finally:
            # The library leaves the connections of refused and broken-off downloads open.
            for response in responses:
                response.close()
        return body.getvalue()

    def close(self) -> None:
        """Close the client's connections."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = storage_client(self._endpoint)
                self._client._http.hooks["response"].append(self._remember)
            return self._client

    def _remember(self, response: Any, *_args: Any, **_options: Any) -> None:
        getattr(self._thread, "responses", []).append(response)


def storage_client(endpoint: str | None) -> Any:
    """A client with the credentials of the environment; anonymous without any, or by `endpoint`.

    `endpoint`: an emulator or a private address; default STORAGE_EMULATOR_HOST.
    """
    import google.auth.exceptions
    from google.auth.credentials import AnonymousCredentials
    from google.cloud.storage import Client

    # Else the library starts a thread and a request of its own for each bucket, for traces.
    os.environ.setdefault("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")
    endpoint = endpoint or os.environ.get("STORAGE_EMULATOR_HOST")
    if endpoint:
        url = endpoint if "://" in endpoint else f"http://{endpoint}"
        return Client(
            project="none",
            credentials=AnonymousCredentials(),  # type: ignore[no-untyped-call]
            client_options={"api_endpoint": url.rstrip("/")},
        )
    try:
        return Client()
    except (google.auth.exceptions.DefaultCredentialsError, OSError):
        return Client.create_anonymous_client()


class _Bounded(io.BytesIO):
    """A buffer that refuses to grow beyond a size, or past a deadline."""

    def __init__(self, max_bytes: int, deadline: Deadline) -> None:
        super().__init__()
        self._max_bytes = max_bytes
        self._deadline = deadline

    def write(self, data: Any, /) -> int:
        self._deadline.remaining_s()
        if self.tell() + len(data) > self._max_bytes:
            raise AssetError(
                "asset.too_large",
                f"larger than {self._max_bytes} bytes",
                where=self._deadline.where,
                hint="see assets.max_bytes",
            )
        return super().write(data)
