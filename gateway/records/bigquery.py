"""One row for each line of a call into a BigQuery table, by the google-cloud-bigquery client."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from gateway.errors import RecordError
from gateway.records.cloud import cloud_errors, missing_extra
from gateway.records.finished import FinishedCall
from gateway.records.plan import Delivery
from gateway.records.rows import COLUMNS, rows

BATCH: Final = 200
"""Rows of one request."""


class BigQueryCourier:
    """Inserts rows; makes the table where there is none (the dataset must exist).

    Row ids are the same each time, so that a repeated delivery adds nothing.
    """

    def __init__(self, endpoint: str | None, timeout_s: float) -> None:
        self._endpoint = endpoint
        self._timeout_s = timeout_s
        self._clients: dict[str, Any] = {}
        self._known: set[str] = set()

    def deliver(self, call: FinishedCall, delivery: Delivery) -> None:
        """All rows of the call."""
        transcript = call.transcript(delivery)
        if transcript is None:
            return
        project = delivery.place.rpartition(".")[0].rpartition(".")[0]
        with cloud_errors("bigquery", delivery.place, "bigquery.tables.updateData"):
            client = self._connected(project)
            self._ensure_table(client, delivery.place)
            lines = rows(transcript)
            while batch := list(islice(lines, BATCH)):
                problems = client.insert_rows_json(
                    delivery.place,
                    batch,
                    row_ids=[f"{call.identity.stem}-{row['line']}" for row in batch],
                    timeout=self._timeout_s,
                    retry=None,
                )
                if problems:
                    raise RecordError(
                        "records.rows",
                        f"{len(problems)} row(s) were refused",
                        where=delivery.place,
                        hint="the table's columns must be those that the gateway makes",
                    )

    def _ensure_table(self, client: Any, place: str) -> None:
        if place in self._known:
            return
        from google.cloud.bigquery import SchemaField, Table

        schema = [SchemaField(name, kind) for name, kind in COLUMNS.items()]
        table = Table(place, schema=schema)
        client.create_table(table, exists_ok=True, timeout=self._timeout_s, retry=None)
        self._known.add(place)

    def _connected(self, project: str) -> Any:
        client = self._clients.get(project)
        if client is None:
            try:
                from google.cloud.bigquery import Client
            except ImportError:
                raise missing_extra("google-cloud-bigquery") from None
            from google.auth.credentials import AnonymousCredentials

            if self._endpoint is None:
                client = Client(project=project)
            else:
                client = Client(
                    project=project,
                    credentials=AnonymousCredentials(),  # type: ignore[no-untyped-call]
                    client_options={"api_endpoint": self._endpoint},
                )
            self._clients[project] = client
        return client

    def close(self) -> None:
        """Close the clients' connections."""
        while self._clients:
            self._clients.popitem()[1].close()
        self._known.clear()
