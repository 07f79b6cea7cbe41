"""Who brings the records of a call where they belong: to a folder, or into a bucket."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from gateway.assets.storage import storage_client
from gateway.config import RecordSettings
from gateway.errors import RecordError
from gateway.records.bigquery import BigQueryCourier
from gateway.records.cloud import cloud_errors
from gateway.records.cloud_logging import CloudLoggingCourier
from gateway.records.finished import FinishedCall
from gateway.records.plan import Delivery, Target

TYPES = {".wav": "audio/wav", ".json": "application/json"}
CHUNK_BYTES = 8 << 20
"""Larger files are sent in resumable pieces of this size."""


class Courier(Protocol):
    """Delivers to one kind of place. Blocking; called by one thread at a time."""

    def deliver(self, call: FinishedCall, delivery: Delivery) -> None:
        """Bring the call's records there; done again, it changes nothing. Raises RecordError."""
        ...

    def close(self) -> None:
        """Close connections."""
        ...


def couriers(settings: RecordSettings, storage_endpoint: str | None) -> Mapping[Target, Courier]:
    """One for each kind of place; the cloud's clients are only loaded by the first delivery."""
    return {
        Target.FOLDER: FolderCourier(),
        Target.BUCKET: BucketCourier(storage_endpoint, settings.upload_timeout_s),
        Target.BIGQUERY: BigQueryCourier(settings.bigquery_endpoint, settings.upload_timeout_s),
        Target.CLOUD_LOGGING: CloudLoggingCourier(
            settings.cloud_logging_endpoint, settings.cloud_logging_name
        ),
    }


def _files(call: FinishedCall, delivery: Delivery) -> list[Path]:
    return [f for f in (call.recording(delivery), call.transcript(delivery)) if f is not None]


class FolderCourier:
    """Copies into a folder of this machine."""

    def deliver(self, call: FinishedCall, delivery: Delivery) -> None:
        """Files appear under their names when they are complete."""
        target = Path(delivery.place) / call.identity.path(delivery.prefix)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            for file in _files(call, delivery):
                whole = target.with_name(target.name + file.suffix)
                beside = whole.with_name(f".{whole.name}.new")
                shutil.copyfile(file, beside)
                os.replace(beside, whole)
        except OSError as error:
            raise RecordError(
                "records.folder",
                f"cannot save: {error.strerror or error}",
                where=delivery.place,
                hint="see records.save_to",
            ) from None

    def close(self) -> None:
        """Nothing is open."""


class BucketCourier:
    """Uploads by the google-cloud-storage client, with the environment's own credentials."""

    def __init__(self, endpoint: str | None, timeout_s: float) -> None:
        self._endpoint = endpoint
        self._timeout_s = timeout_s
        self._client: Any = None
        self._responses: list[Any] = []

    def deliver(self, call: FinishedCall, delivery: Delivery) -> None:
        """Small files go in one request, large ones in resumable pieces."""
        from google.cloud.storage.exceptions import DataCorruption, InvalidResponse
        from google.cloud.storage.retry import DEFAULT_RETRY

        name = call.identity.path(delivery.prefix)
        permission = "storage.objects.create and .delete"
        try:
            with cloud_errors(
                "storage", f"gs://{delivery.place}", permission, DataCorruption, InvalidResponse
            ):
                bucket = self._connected().bucket(delivery.place)
                for file in _files(call, delivery):
                    blob = bucket.blob(name + file.suffix)
                    if file.stat().st_size > CHUNK_BYTES:
                        blob.chunk_size = CHUNK_BYTES
                    blob.upload_from_filename(
                        str(file),
                        content_type=TYPES[file.suffix],
                        timeout=self._timeout_s,
                        # The same name gets the same content: sending twice does no harm.
                        retry=DEFAULT_RETRY.with_timeout(self._timeout_s),
                    )
        except RecordError:
            # The next attempt looks for credentials anew.
            self.close()
            raise
        finally:
            for response in self._responses:
                response.close()
            self._responses.clear()

    def close(self) -> None:
        """Close the client's connections."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _connected(self) -> Any:
        if self._client is None:
            self._client = storage_client(self._endpoint)
            # The library leaves connections of refused requests open.
            self._client._http.hooks["response"].append(
                lambda response, *_args, **_options: self._responses.append(response)
            )
        return self._client
