"""Lines of a call as rows of BigQuery and entries of Cloud Logging, by the real clients."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from gateway.errors import RecordError
from gateway.records.bigquery import BigQueryCourier
from gateway.records.cloud_logging import CloudLoggingCourier
from gateway.records.finished import FinishedCall
from gateway.records.plan import Delivery, Identity, Target
from gateway.records.rows import COLUMNS
from tests.records.cloud import Cloud, cloud
from tests.records.makers import SESSION

TABLE = Delivery(Target.BIGQUERY, "p.d.turns", True)
LOG = Delivery(Target.CLOUD_LOGGING, "p", True)
TRANSCRIPT = {
    "call_id": "CA1",
    "session": SESSION,
    "channel": "twilio",
    "language": "en-US",
    "started_at": "2026-01-01T00:00:00.000+00:00",
    "reason": "completed",
    "redacted": True,
    "lines": [
        {
            "start": 0.0,
            "end": 1.5,
            "speaker": "agent",
            "text": "Hello.",
            "turn": 1,
            "reason": "completed",
        },
        {"start": 2.0, "end": 3.0, "speaker": "caller", "text": "it is [number]"},
        {"start": 4.0, "end": 4.0, "speaker": "caller", "text": "[digits]", "kind": "dtmf"},
    ],
}
DENIED = (403, {"error": {"code": 403, "message": "no"}})


@pytest.fixture
def far() -> Iterator[Cloud]:
    with cloud() as made:
        yield made


@pytest.fixture
def call(tmp_path: Path) -> FinishedCall:
    (tmp_path / "masked.json").write_bytes(orjson.dumps(TRANSCRIPT))
    return FinishedCall(tmp_path, Identity("CA1", SESSION, 1_767_225_600.0), ())


@pytest.fixture
def table(far: Cloud) -> Iterator[BigQueryCourier]:
    courier = BigQueryCourier(far.url, 5.0)
    yield courier
    courier.close()


@pytest.fixture
def log(far: Cloud) -> Iterator[CloudLoggingCourier]:
    courier = CloudLoggingCourier(far.url, "conversations")
    yield courier
    courier.close()


def test_each_line_is_a_row(far: Cloud, table: BigQueryCourier, call: FinishedCall) -> None:
    table.deliver(call, TABLE)
    assert [(r["line"], r["speaker"], r["kind"], r["text"]) for r in far.rows] == [
        (0, "agent", "speech", "Hello."),
        (1, "caller", "speech", "it is [number]"),
        (2, "caller", "dtmf", "[digits]"),
    ]
    assert all(set(row) == set(COLUMNS) for row in far.rows)
    paths = [path for _, path, _ in far.requests]
    assert paths[-1] == "/bigquery/v2/projects/p/datasets/d/tables/turns/insertAll"


def test_the_table_is_made_with_its_columns_once(
    far: Cloud, table: BigQueryCourier, call: FinishedCall
) -> None:
    table.deliver(call, TABLE)
    table.deliver(call, TABLE)
    made = [body for _, path, body in far.requests if path.endswith("/tables")]
    assert len(made) == 1
    assert {f["name"]: f["type"] for f in made[0]["schema"]["fields"]} == COLUMNS
    assert len(far.rows) == 3, "a repeated delivery adds nothing"


def test_a_table_that_exists_is_used(
    far: Cloud, table: BigQueryCourier, call: FinishedCall
) -> None:
    far.tables.add("turns")
    table.deliver(call, TABLE)
    assert len(far.rows) == 3


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (DENIED, "records.forbidden"),
        ((404, {"error": {"code": 404, "message": "no dataset"}}), "records.not_found"),
        ((500, {"error": {"code": 500, "message": "later"}}), "records.unreachable"),
    ],
)
def test_a_refused_table_says_why(
    far: Cloud,
    table: BigQueryCourier,
    call: FinishedCall,
    fault: tuple[int, dict[str, object]],
    code: str,
) -> None:
    far.faults.append(fault)
    with pytest.raises(RecordError) as caught:
        table.deliver(call, TABLE)
    assert caught.value.code == code
    assert caught.value.where == "p.d.turns"
    table.deliver(call, TABLE)
    assert len(far.rows) == 3


def test_refused_rows_are_an_error(far: Cloud, table: BigQueryCourier, call: FinishedCall) -> None:
    table.deliver(call, TABLE)
    far.faults.append((200, {"insertErrors": [{"index": 0, "errors": [{"reason": "invalid"}]}]}))
    with pytest.raises(RecordError) as caught:
        table.deliver(call, TABLE)
    assert caught.value.code == "records.rows"


def test_each_line_is_an_entry(far: Cloud, log: CloudLoggingCourier, call: FinishedCall) -> None:
    log.deliver(call, LOG)
    log.deliver(call, LOG)
    assert [entry["jsonPayload"]["text"] for entry in far.entries] == [
        "Hello.",
        "it is [number]",
        "[digits]",
    ]
    first = far.entries[0]
    assert far.requests[0][2]["logName"] == "projects/p/logs/conversations"
    assert [entry["timestamp"] for entry in far.entries] == [
        "2026-01-01T00:00:00.000000Z",
        "2026-01-01T00:00:02.000000Z",
        "2026-01-01T00:00:04.000000Z",
    ]
    assert first["labels"] == {"call_id": "CA1", "session": SESSION}
    assert first["resource"]["type"] == "global"


def test_a_log_that_refuses_says_why(
    far: Cloud, log: CloudLoggingCourier, call: FinishedCall
) -> None:
    far.faults.append(DENIED)
    with pytest.raises(RecordError) as caught:
        log.deliver(call, LOG)
    assert caught.value.code == "records.forbidden"


def test_a_call_without_words_exports_nothing(
    far: Cloud, table: BigQueryCourier, log: CloudLoggingCourier, tmp_path: Path
) -> None:
    silent = FinishedCall(tmp_path, Identity("CA1", SESSION, 0.0), ())
    table.deliver(silent, TABLE)
    log.deliver(silent, LOG)
    assert far.requests == []
