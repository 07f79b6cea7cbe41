"""The whole way of a record: over a dead bucket, a full disk, a stop, a kill and a restart."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gateway.assets.storage import storage_client
from gateway.config import RecordSettings
from gateway.errors import RecordError
from gateway.records.couriers import Courier, couriers
from gateway.records.finished import SPOOL, FinishedCall
from gateway.records.keeper import Records
from gateway.records.plan import Delivery, Plan, Target
from tests.assets.servers import storage_emulator
from tests.records.makers import BEGUN, SESSION, found, started, to_folder, tone, wav

WAIT_S = 20.0


class Place:
    """A courier whose place is away until it is opened."""

    def __init__(self, *, away: bool = True) -> None:
        self.away = away
        self.brought: list[str] = []
        self.attempts = 0

    def deliver(self, call: FinishedCall, delivery: Delivery) -> None:
        self.attempts += 1
        if self.away:
            raise RecordError("records.unreachable", "away", where=delivery.place)
        self.brought.append(call.identity.call_id)

    def close(self) -> None:
        pass


def settings(folder: Path, **over: Any) -> RecordSettings:
    given = {"save_to": folder, "retry_s": 0.01, "retry_max_s": 0.05, **over}
    return RecordSettings(**given)


def never_named(_call: str, _config: Mapping[str, Any]) -> str:
    return SESSION


@asynccontextmanager
async def records(
    wanted: RecordSettings, plan: Plan, brings: Mapping[Target, Courier] | None = None
) -> AsyncIterator[Records]:
    made = Records(wanted, plan, never_named, brings or couriers(wanted, None))
    made.start()
    try:
        yield made
    finally:
        await made.aclose()


def talk(keeper: Records, call_id: str = "CA1", *, seconds: float = 1.0, end: bool = True) -> None:
    """One call, as the session reports it."""
    recorder = keeper.begin(started(call_id), BEGUN, BEGUN)
    assert recorder is not None
    recorder.note(BEGUN, "call_started", {"channel": "twilio", "call_id": call_id})
    for n in range(round(seconds * 50)):
        recorder.caller(tone(1000), BEGUN + n * 0.02)
        recorder.agent(tone(2000), BEGUN + n * 0.02)
    recorder.note(BEGUN + seconds, "call_ended", {"reason": "completed"})
    if end:
        recorder.end(BEGUN + seconds)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not true():
            await asyncio.sleep(0.005)


async def test_a_call_is_recorded_while_others_go_on(tmp_path: Path) -> None:
    async with records(settings(tmp_path), to_folder(tmp_path)) as keeper:
        talk(keeper, "CA1", end=False)
        talk(keeper, "CA2")
        await until(lambda: len(found(tmp_path, ".wav")) == 1)
        assert keeper.figures["started"] == 2
    rate, samples = wav(found(tmp_path, "CA2.wav")[0])
    assert (rate, samples.shape) == (8000, (8000, 2))
    assert set(samples[:, 0]) == {1000}
    assert set(samples[:, 1]) == {2000}
    transcript = json.loads(found(tmp_path, "CA2.json")[0].read_bytes())
    assert transcript["reason"] == "completed"
    assert transcript["recording"]["lost_frames"] == 0


async def test_stopping_finishes_calls_that_have_just_ended(tmp_path: Path) -> None:
    async with records(settings(tmp_path), to_folder(tmp_path)) as keeper:
        for n in range(5):
            talk(keeper, f"CA{n}")
    assert len(found(tmp_path, ".wav")) == 5
    assert list((tmp_path / ".spool").iterdir()) == []


async def test_while_a_bucket_is_away_calls_wait_on_disk_and_nothing_is_lost(
    tmp_path: Path,
) -> None:
    place = Place()
    plan = Plan((Delivery(Target.BUCKET, "b", False),))
    async with records(settings(tmp_path), plan, {Target.BUCKET: place}) as keeper:
        talk(keeper, "CA1")
        talk(keeper, "CA2")
        await until(lambda: place.attempts >= 3)
        assert place.brought == []
        place.away = False
        await until(lambda: len(place.brought) == 2)
    assert sorted(place.brought) == ["CA1", "CA2"]


async def test_a_place_that_is_away_does_not_keep_others_waiting(tmp_path: Path) -> None:
    away, here = Place(), Place(away=False)
    plan = Plan((Delivery(Target.BUCKET, "b", False), Delivery(Target.FOLDER, "f", False)))
    both = {Target.BUCKET: away, Target.FOLDER: here}
    async with records(settings(tmp_path, retry_s=60.0, retry_max_s=60.0), plan, both) as keeper:
        for n in range(3):
            talk(keeper, f"CA{n}")
        await until(lambda: len(here.brought) == 3)
        assert away.attempts == 1, "a place that is away rests for all calls"
        assert keeper.figures["waiting"] >= 1
    again = Place(away=False)
    brings = {Target.BUCKET: again, Target.FOLDER: here}
    async with records(settings(tmp_path), Plan(), brings):
        await until(lambda: len(again.brought) == 3)
    assert len(here.brought) == 3, "what was delivered is not delivered again"


async def test_the_real_bucket_comes_back_after_a_restart(tmp_path: Path) -> None:
    plan = Plan((Delivery(Target.BUCKET, "calls", False, "$session"),))
    away = settings(tmp_path, upload_timeout_s=0.1, shutdown_s=0.0)
    async with records(away, plan, couriers(away, "http://127.0.0.1:9")) as keeper:
        talk(keeper)
        await until(lambda: keeper.figures["failures"] > 0)
    with storage_emulator("calls") as endpoint:
        back = settings(tmp_path)
        async with records(back, plan, couriers(back, endpoint)) as keeper:
            await until(lambda: keeper.figures["delivered"] == 1)
        client = storage_client(endpoint)
        names = sorted(blob.name.rpartition(".")[2] for blob in client.list_blobs("calls"))
        client.close()
    assert names == ["json", "wav"]


async def test_a_courier_that_breaks_is_a_place_that_is_away(tmp_path: Path) -> None:
    class Broken(Place):
        def deliver(self, call: FinishedCall, delivery: Delivery) -> None:
            if self.attempts == 0:
                self.attempts = 1
                raise ZeroDivisionError
            super().deliver(call, delivery)

    place = Broken(away=False)
    plan = Plan((Delivery(Target.BUCKET, "b", False),))
    async with records(settings(tmp_path), plan, {Target.BUCKET: place}) as keeper:
        talk(keeper)
        await until(lambda: place.brought == ["CA1"])
        assert keeper.figures["failures"] == 1


async def test_a_full_spool_takes_no_more_calls_and_keeps_those_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.records.keeper.MEASURE_S", 0.0)
    place = Place()
    plan = Plan((Delivery(Target.BUCKET, "b", False),))
    small = settings(tmp_path, max_spool_bytes=1 << 20)
    async with records(small, plan, {Target.BUCKET: place}) as keeper:
        talk(keeper, "CA1", seconds=60.0)
        await until(lambda: place.attempts >= 1)
        await until(lambda: keeper.figures["full"] == 1)
        assert keeper.begin(started("CA2"), BEGUN, BEGUN) is None
        assert keeper.figures["refused"] == 1
        place.away = False
        await until(lambda: place.brought == ["CA1"])
        await until(lambda: keeper.begin(started("CA3"), BEGUN, BEGUN) is not None)


async def test_what_is_no_call_any_more_is_cleared_away(tmp_path: Path) -> None:
    wrecked = tmp_path / ".spool" / "calls-1-x" / "CA1-x"
    wrecked.mkdir(parents=True)
    (wrecked / SPOOL).write_bytes(b"\0\0\0")
    async with records(settings(tmp_path), to_folder(tmp_path)) as keeper:
        await until(lambda: keeper.figures["unusable"] == 1)
    assert list((tmp_path / ".spool").iterdir()) == []


async def test_a_call_of_which_nothing_is_wanted_is_not_begun(tmp_path: Path) -> None:
    async with records(settings(tmp_path), Plan()) as keeper:
        assert keeper.begin(started(), BEGUN, BEGUN) is None


async def test_redaction_holds_for_every_byte_on_the_disk(tmp_path: Path) -> None:
    place = Place()
    plan = Plan((Delivery(Target.BUCKET, "b", True),), redact=True)
    async with records(settings(tmp_path), plan, {Target.BUCKET: place}) as keeper:
        recorder = keeper.begin(started(), BEGUN, BEGUN)
        assert recorder is not None
        recorder.note(BEGUN, "user_text", {"text": "my code is 47112233", "final": True})
        recorder.note(BEGUN, "dtmf", {"digits": "47112233"})
        await until(lambda: any(p.name == SPOOL for p in tmp_path.rglob("*")))
        recorder.end(BEGUN + 1)
        await until(lambda: place.attempts >= 1)
        files = [p for p in tmp_path.rglob("*") if p.is_file()]
        assert len(files) >= 2
        assert not any(b"47112233" in p.read_bytes() for p in files)


KILLED = """
import sys, time
from pathlib import Path
from tests.records.test_records import records, settings, talk
from tests.records.makers import to_folder
import asyncio

async def main(folder):
    async with records(settings(folder), to_folder(folder)) as keeper:
        talk(keeper, "CA1", seconds=2.0, end=False)
        while not any(p.name == "call.spool" and p.stat().st_size > 60_000
                      for p in folder.rglob("*")):
            await asyncio.sleep(0.01)
        print("recorded", flush=True)
        await asyncio.sleep(60)

asyncio.run(main(Path(sys.argv[1])))
"""


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A folder whose gateway was killed in the middle of a call."""
    root = Path(__file__).parent.parent.parent
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        stdout=subprocess.PIPE,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == b"recorded\n"
        assert found(tmp_path, ".wav") == []
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
    return tmp_path


async def test_a_call_whose_gateway_was_killed_is_finished_by_the_next(killed: Path) -> None:
    async with records(settings(killed), Plan()) as keeper:
        await until(lambda: keeper.figures["delivered"] == 1)
    (recording,) = found(killed, ".wav")
    samples = wav(recording)[1]
    assert len(samples) == 2 * 8000
    assert np.count_nonzero(samples[:, 0]) == 2 * 8000
    assert np.count_nonzero(samples[:, 1]) == 2 * 8000
    assert list((killed / ".spool").iterdir()) == []
