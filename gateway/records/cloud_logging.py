"""One entry for each line of a call in Cloud Logging, by the google-cloud-logging client."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from gateway.errors import RecordError
from gateway.records.cloud import cloud_errors, missing_extra
from gateway.records.finished import FinishedCall
from gateway.records.plan import Delivery
from gateway.records.rows import rows

BATCH = 200
"""Entries of one request."""


class CloudLoggingCourier:
    """Writes entries with ids of their own, so that a repeated delivery adds nothing."""

    def __init__(self, endpoint: str | None, name: str) -> None:
        self._endpoint = endpoint
        self._name = name
        self._clients: dict[str, Any] = {}

    def deliver(self, call: FinishedCall, delivery: Delivery) -> None:
        """All lines of the call."""
        transcript = call.transcript(delivery)
        if transcript is None:
            return
        where = delivery.place or "the project of the credentials"
        with cloud_errors("cloud logging", where, "logging.logEntries.create"):
            client = self._connected(delivery.place)
            from google.cloud.logging import Resource

            # Named, or the library would ask the machine's surroundings what it runs on.
            resource = Resource(type="global", labels={})
            batch = client.logger(self._name, resource=resource).batch()
            for row in rows(transcript):
                batch.log_struct(
                    row,
                    timestamp=call.identity.started + timedelta(seconds=row["start_s"]),
                    insert_id=f"{call.identity.stem}-{row['line']}",
                    labels={"call_id": call.identity.call_id, "session": call.identity.session},
                )
                if len(batch.entries) >= BATCH:
                    batch.commit()
            if batch.entries:
                batch.commit()

    def _connected(self, project: str) -> Any:
        client = self._clients.get(project)
        if client is None:
            try:
                from google.cloud.logging import Client
            except ImportError:
                raise missing_extra("google-cloud-logging") from None
            from google.auth.credentials import AnonymousCredentials

            options: dict[str, Any] = {"project": project or None}
            if self._endpoint is not None:
                options["credentials"] = AnonymousCredentials()  # type: ignore[no-untyped-call]
                options["client_options"] = {"api_endpoint": self._endpoint}
            try:
                # Plain HTTP requests: a channel of its own threads is not worth a few lines a call.
                client = Client(_use_grpc=False, **options)  # type: ignore[no-untyped-call]
            except OSError as error:
                raise RecordError(
                    "records.project", str(error), hint="see records.cloud_logging_project"
                ) from None
            self._clients[project] = client
        return client

    def close(self) -> None:
        """Close the clients' connections."""
        while self._clients:
            self._clients.popitem()[1].close()
