"""Voice activity of a live process: one thread judges the windows of all calls in batches.

Policy. A stream keeps at most two seconds of audio that waits for the thread. Beyond that the
oldest windows are dropped unjudged: positions stay true, and no call falls behind for good.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import structlog

from gateway.audio.formats import Pcm
from gateway.errors import SpeechError
from gateway.speech.base import VAD_RATE_HZ, OnWindow
from gateway.speech.silero import WINDOW_BYTES, SileroModel, Track, advance

GATHER_S = 0.01
"""Time that the first window of a batch waits for others: a batch costs a third for each."""
MAX_WAITING_BYTES = 2 * VAD_RATE_HZ * 2
_START_TIMEOUT_S = 30.0

_log = structlog.get_logger()


class _LiveStream(Track):
    """One call's stream. `inbox` and `dropped_windows` belong to the lock of its owner."""

    __slots__ = ("_owner", "dropped_windows", "inbox", "on_window", "queued")

    def __init__(self, owner: SileroThread, on_window: OnWindow) -> None:
        super().__init__()
        self._owner = owner
        self.on_window: OnWindow | None = on_window
        self.inbox = bytearray()
        self.queued = False
        self.dropped_windows = 0

    def feed(self, pcm_8k: Pcm) -> None:
        """Leave audio for the thread."""
        if self.on_window is not None:
            self._owner.leave(self, pcm_8k)

    def close(self) -> None:
        """Report nothing more."""
        self.on_window = None


class SileroThread:
    """Owns the thread and its model. Open and feed streams from the event loop only."""

    name = "silero"

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._ready: list[_LiveStream] = []
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._overloaded = False

    async def start(self) -> None:
        """Load the model and start the thread. Raises SpeechError (load)."""
        self._loop = asyncio.get_running_loop()
        started: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(
            target=self._run, args=(started,), name="voice-activity", daemon=True
        )
        self._thread.start()
        async with asyncio.timeout(_START_TIMEOUT_S):
            await started

    def open(self, on_window: OnWindow) -> _LiveStream:
        """A new stream; its windows are reported on the event loop."""
        return _LiveStream(self, on_window)

    async def aclose(self) -> None:
        """End the thread; it is done within one batch."""
        if self._thread is None:
            return
        with self._lock:
            self._stop.set()
            self._lock.notify()
        self._thread.join()
        self._thread = None

    def leave(self, stream: _LiveStream, pcm: Pcm) -> None:
        """Hand a stream's audio to the thread."""
        with self._lock:
            inbox = stream.inbox
            inbox += pcm
            if len(inbox) > MAX_WAITING_BYTES:
                excess = -(-(len(inbox) - MAX_WAITING_BYTES) // WINDOW_BYTES)
                del inbox[: excess * WINDOW_BYTES]
                stream.dropped_windows += excess
                overloaded, self._overloaded = self._overloaded, True
                if not overloaded:
                    _log.warning("speech.vad_overload", waiting_streams=len(self._ready))
            if not stream.queued:
                stream.queued = True
                self._ready.append(stream)
                if len(self._ready) == 1:
                    self._lock.notify()

    def _collect(self) -> list[_LiveStream] | None:
        """Wait for audio and a little longer, then move it to the streams; None at the end."""
        with self._lock:
            while not self._ready and not self._stop.is_set():
                self._lock.wait()
        if self._stop.wait(GATHER_S):
            return None
        with self._lock:
            streams, self._ready = self._ready, []
            for stream in streams:
                stream.queued = False
                stream.windows += stream.dropped_windows
                stream.dropped_windows = 0
                stream.pending += stream.inbox
                stream.inbox.clear()
        return streams

    def _run(self, started: asyncio.Future[None]) -> None:
        loop = started.get_loop()
        try:
            model = SileroModel()
        except Exception as error:
            failure = SpeechError("speech.load", f"silero does not load: {type(error).__name__}")
            loop.call_soon_threadsafe(_settle, started, failure)
            return
        loop.call_soon_threadsafe(_settle, started, None)
        while (streams := self._collect()) is not None:
            try:
                judged = advance(model, streams)
            except Exception as error:
                # Without this the thread would end and every call of the process go deaf.
                _log.error("speech.vad_failed", reason=type(error).__name__)
                continue
            if judged:
                try:
                    loop.call_soon_threadsafe(_report, judged)
                except RuntimeError:
                    return  # the loop was closed under a running thread


def _settle(started: asyncio.Future[None], failure: SpeechError | None) -> None:
    if started.done():
        return  # nobody waits any longer
    if failure is None:
        started.set_result(None)
    else:
        started.set_exception(failure)


def _report(judged: Sequence[tuple[_LiveStream, float, float]]) -> None:
    for stream, probability, position_s in judged:
        if stream.on_window is not None:
            stream.on_window(probability, position_s)
