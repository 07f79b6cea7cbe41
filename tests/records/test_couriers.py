"""Records reach a folder and a bucket whole; what refuses says why."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.assets.storage import storage_client
from gateway.errors import RecordError
from gateway.records.couriers import CHUNK_BYTES, BucketCourier, FolderCourier
from gateway.records.finished import FinishedCall
from gateway.records.plan import Delivery, Identity, Target
from tests.assets.servers import storage_emulator
from tests.records.makers import SESSION

BUCKET = "calls"
START = 1_767_225_600.0
STEM = "p/eu/a/2026-01-01/s-0001/000000-CA1"
PREFIX = "$project/$location/$app/$date/$session/"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with storage_emulator(BUCKET) as url:
        yield url


@pytest.fixture
def bucket(endpoint: str) -> Iterator[BucketCourier]:
    courier = BucketCourier(endpoint, 10.0)
    yield courier
    courier.close()


@pytest.fixture
def call(tmp_path: Path) -> FinishedCall:
    (tmp_path / "plain.wav").write_bytes(b"RIFF the recording")
    (tmp_path / "plain.json").write_bytes(b"{}")
    return FinishedCall(tmp_path, Identity("CA1", SESSION, START), ())


def objects(endpoint: str) -> dict[str, tuple[bytes, str]]:
    client = storage_client(endpoint)
    try:
        return {
            blob.name: (blob.download_as_bytes(), blob.content_type)
            for blob in client.list_blobs(BUCKET)
        }
    finally:
        client.close()


def test_a_bucket_gets_both_files_under_the_prefix(
    bucket: BucketCourier, call: FinishedCall, endpoint: str
) -> None:
    for _ in range(2):  # again changes nothing
        bucket.deliver(call, Delivery(Target.BUCKET, BUCKET, False, PREFIX))
        kept = objects(endpoint)
        assert kept[f"{STEM}.wav"] == (b"RIFF the recording", "audio/wav")
        assert kept[f"{STEM}.json"] == (b"{}", "application/json")


def test_a_long_recording_is_sent_in_pieces(
    bucket: BucketCourier, call: FinishedCall, endpoint: str
) -> None:
    long = os.urandom(CHUNK_BYTES + 100_000)
    (call.folder / "plain.wav").write_bytes(long)
    bucket.deliver(call, Delivery(Target.BUCKET, BUCKET, False, "long/"))
    assert objects(endpoint)["long/000000-CA1.wav"][0] == long


def test_a_bucket_that_does_not_exist(bucket: BucketCourier, call: FinishedCall) -> None:
    with pytest.raises(RecordError) as caught:
        bucket.deliver(call, Delivery(Target.BUCKET, "elsewhere", False, PREFIX))
    assert caught.value.code == "records.not_found"
    assert caught.value.where == "gs://elsewhere"


def test_storage_that_is_away(call: FinishedCall) -> None:
    courier = BucketCourier("http://127.0.0.1:9", 0.2)
    with pytest.raises(RecordError) as caught:
        courier.deliver(call, Delivery(Target.BUCKET, BUCKET, False, PREFIX))
    assert caught.value.code == "records.unreachable"
    courier.close()


def test_a_folder_gets_both_files(call: FinishedCall, tmp_path: Path) -> None:
    target = tmp_path / "saved"
    for _ in range(2):
        FolderCourier().deliver(call, Delivery(Target.FOLDER, str(target), False, "$date/"))
        assert sorted(p.name for p in (target / "2026-01-01").iterdir()) == [
            "000000-CA1.json",
            "000000-CA1.wav",
        ]
    assert (target / "2026-01-01" / "000000-CA1.wav").read_bytes() == b"RIFF the recording"


def test_a_folder_that_cannot_be_written(call: FinishedCall, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError) as caught:
        FolderCourier().deliver(call, Delivery(Target.FOLDER, str(tmp_path / "file"), False, ""))
    assert caught.value.code == "records.folder"
    assert "records.save_to" in str(caught.value.hint)
