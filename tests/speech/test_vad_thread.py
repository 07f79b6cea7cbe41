"""The live voice activity thread: same verdicts, on the event loop, bounded, gone when closed."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest

from gateway.speech.engines import Engines
from gateway.speech.silero import WINDOW_BYTES, InlineSilero, SileroModel
from gateway.speech.vad_thread import MAX_WAITING_BYTES, SileroThread
from tests.speech.conftest import VOICE
from tests.speech.telephone import over_the_line, silence


class Listener:
    """Collects windows and tells when so many have come."""

    def __init__(self, expected: int) -> None:
        self.windows: list[tuple[float, float]] = []
        self.threads: set[int] = set()
        self.done = asyncio.Event()
        self._expected = expected

    def __call__(self, probability: float, at: float) -> None:
        self.windows.append((probability, at))
        self.threads.add(threading.get_ident())
        if len(self.windows) == self._expected:
            self.done.set()


async def test_fifty_live_calls_hear_what_a_simulation_hears(
    engines: Engines, silero: SileroModel
) -> None:
    speech = engines.synthesise("How much is it?", VOICE, "en-US", 8000)
    clips = [over_the_line(silence(n * 0.011) + speech) for n in range(50)]
    activity = SileroThread()
    await activity.start()
    try:
        listeners = [Listener(len(clip) // WINDOW_BYTES) for clip in clips]
        streams = [activity.open(listener) for listener in listeners]
        for start in range(0, max(map(len, clips)), 320):
            for stream, clip in zip(streams, clips, strict=True):
                stream.feed(clip[start : start + 320])
            await asyncio.sleep(0)
        async with asyncio.timeout(20):
            for listener in listeners:
                await listener.done.wait()
    finally:
        await activity.aclose()
    for listener, clip in zip(listeners, clips, strict=True):
        alone: list[tuple[float, float]] = []
        InlineSilero(silero).open(lambda p, at, into=alone: into.append((p, at))).feed(clip)
        assert [at for _, at in listener.windows] == [at for _, at in alone]
        assert np.allclose([p for p, _ in listener.windows], [p for p, _ in alone], atol=1e-3)
        assert listener.threads == {threading.get_ident()}


async def test_a_closed_stream_reports_nothing_and_the_others_go_on() -> None:
    activity = SileroThread()
    await activity.start()
    try:
        closed, open_one = Listener(1), Listener(31)
        stream, other = activity.open(closed), activity.open(open_one)
        stream.feed(silence(1))
        other.feed(silence(1))
        stream.close()
        async with asyncio.timeout(10):
            await open_one.done.wait()
        assert closed.windows == []
    finally:
        await activity.aclose()


async def test_what_the_thread_cannot_keep_up_with_is_dropped_and_positions_stay_true() -> None:
    activity = SileroThread()
    await activity.start()
    try:
        kept = MAX_WAITING_BYTES // WINDOW_BYTES
        listener = Listener(kept)
        stream = activity.open(listener)
        stream.feed(silence(10))
        async with asyncio.timeout(10):
            await listener.done.wait()
        assert listener.windows[-1][1] == pytest.approx(10 // 0.032 * 0.032)
    finally:
        await activity.aclose()


async def test_closing_ends_the_thread_and_may_be_repeated() -> None:
    before = threading.active_count()
    activity = SileroThread()
    await activity.aclose()
    await activity.start()
    assert threading.active_count() == before + 1
    await activity.aclose()
    await activity.aclose()
    assert threading.active_count() == before
