"""What one call costs a frame pair (one in, one out) on the Twilio dialect, without speech.

The real codec, session and engine on a real loop; the socket and the speech engines are left out.
CPU time of this process, the best of several rounds.
"""

from __future__ import annotations

import asyncio
import base64
import json
import math
import struct
import time
from collections.abc import Mapping
from typing import Any

from gateway.assets import AudioAssets, run_inline
from gateway.audio import g711
from gateway.audio.formats import Encoding
from gateway.call.profile import CallProfile, VoiceConfig
from gateway.channels.base import EndReason
from gateway.channels.dialects import open_channel
from gateway.config import AssetSettings
from gateway.runtime.client import RuntimeClient
from gateway.services import CallServices
from gateway.session import LiveCall
from gateway.speech.base import OnWindow, SpeechServices
from gateway.ticker import Ticker

FRAMES = 5000
ROUNDS = 5
BAR_US = 120.0
RATE_HZ = 8000


class _Nothing:
    """Engines that hear and say nothing."""

    name = "none"

    async def synthesise(self, text: str, voice: VoiceConfig, language: str, rate_hz: int) -> bytes:
        return b""

    async def recognise(self, pcm: bytes, rate_hz: int, language: str) -> str:
        return ""

    async def complete(self, pcm: bytes, rate_hz: int) -> bool:
        return True


class _Deaf:
    """Voice activity that finds none."""

    name = "none"

    def open(self, on_window: OnWindow) -> _Deaf:
        return self

    def feed(self, pcm_8k: bytes) -> None:
        pass

    def close(self) -> None:
        pass


class _Wire:
    """A socket that takes everything."""

    buffered_bytes = 0
    close_code = None

    def __init__(self) -> None:
        self.audio = 0

    def send(self, message: str | bytes) -> None:
        self.audio += '"media"' in message[:20] if isinstance(message, str) else 0

    def close(self, code: int, reason: str) -> None:
        pass

    def abort(self) -> None:
        pass


class _Nobody:
    """An observer that looks away."""

    def record(self, call_id: str, t: float, kind: str, fields: Mapping[str, Any]) -> None:
        pass

    def frame_late(self, late_s: float) -> None:
        pass

    def ended(self, call_id: str, reason: EndReason) -> None:
        pass


class _Link:
    """A runtime that plays one long file and stays."""

    def __init__(self) -> None:
        self._sent = False

    async def send(self, message: Mapping[str, Any]) -> None:
        pass

    async def receive(self) -> dict[str, Any] | None:
        if self._sent:
            await asyncio.Event().wait()
        self._sent = True
        payload = {"audioUri": "long.raw", "interruptable": False}
        return {"sessionOutput": {"payload": payload, "turnIndex": 1, "turnCompleted": True}}

    async def aclose(self) -> None:
        pass


def _tone(seconds: float) -> bytes:
    count = int(RATE_HZ * seconds)
    return struct.pack(
        f"<{count}h", *(int(8000 * math.sin(2 * math.pi * 440 * n / RATE_HZ)) for n in range(count))
    )


async def _round() -> float:
    async def connect() -> _Link:
        return _Link()

    async def open_runtime(call_id: str, config: Mapping[str, Any]) -> RuntimeClient:
        client = RuntimeClient(f"projects/p/locations/l/apps/a/sessions/{call_id}", config, connect)
        await client.open()
        return client

    nothing = _Nothing()
    ticker = Ticker(asyncio.get_running_loop())
    services = CallServices(
        profile=CallProfile(),
        speech=SpeechServices(nothing, nothing, nothing, _Deaf()),
        assets=AudioAssets(
            AssetSettings(max_bytes=1 << 30), lambda _rel: _tone(FRAMES / 50 + 20), run_inline
        ),
        open_runtime=open_runtime,
        ticker=ticker,
        observer=_Nobody(),
    )
    wire = _Wire()
    call = LiveCall(open_channel("twilio"), wire, services)
    start = {
        "event": "start",
        "streamSid": "MZ1",
        "start": {"streamSid": "MZ1", "callSid": "CA00001", "customParameters": {}},
    }
    call.message(json.dumps(start))
    for _ in range(50):
        await asyncio.sleep(0)
    await asyncio.sleep(0.2)
    frame = base64.b64encode(g711.encode(_tone(0.02), Encoding.MULAW)).decode()
    media = {"track": "inbound", "chunk": "1", "timestamp": "20", "payload": frame}
    message = json.dumps(
        {"event": "media", "sequenceNumber": "3", "streamSid": "MZ1", "media": media}
    )
    ticker.close()
    now = asyncio.get_running_loop().time()
    before = wire.audio
    begun = time.process_time()
    for n in range(FRAMES):
        call.message(message)
        call._tick(now + n * 0.02, 0.0)
    used = time.process_time() - begun
    sent = wire.audio - before
    assert sent >= FRAMES * 0.98, f"only {sent} of {FRAMES} frames were sent"
    call.end(EndReason.COMPLETED)
    await call.wait_ended()
    await services.assets.aclose()
    return used / FRAMES * 1e6


def main() -> None:
    """Print µs of CPU a frame pair."""
    rounds = [asyncio.run(_round()) for _ in range(ROUNDS)]
    best, worst = min(rounds), max(rounds)
    verdict = "within" if best <= BAR_US else "ABOVE"
    print(f"engine, session and codec: {best:.1f} µs a frame pair (worst round {worst:.1f})")
    print(f"{verdict} the bar of {BAR_US:.0f} µs")
