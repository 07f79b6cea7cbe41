"""What a simulated call has instead of the slow world: services that take pretended time.

The engines themselves are real; these wrap them with a latency, and let a scenario say what the
recogniser understood (`as: text`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from gateway.agent.link import Link
from gateway.audio.formats import Pcm
from gateway.call.profile import VoiceConfig
from gateway.errors import RuntimeFailure
from gateway.simulate.caller import StepSpan
from gateway.speech.base import Recogniser, Synthesiser

_TRAILING_S = 0.45
"""A segment is understood at most so long after its last sample, silence not counted."""


class LateSynthesiser:
    """A synthesiser that takes `latency_s` for each sentence."""

    def __init__(self, engine: Synthesiser, latency_s: float) -> None:
        self._engine = engine
        self._latency_s = latency_s
        self.name = engine.name

    async def synthesise(self, text: str, voice: VoiceConfig, language: str, rate_hz: int) -> Pcm:
        """The engine's speech, later."""
        pcm = await self._engine.synthesise(text, voice, language, rate_hz)
        await asyncio.sleep(self._latency_s)
        return pcm


class ScriptedRecogniser:
    """A recogniser that takes `latency_s` and obeys the caller's `as: text`.

    `spans`: the caller's steps so far, on the loop's clock less `origin_s`.
    """

    def __init__(
        self,
        engine: Recogniser,
        latency_s: float,
        spans: Callable[[], Sequence[StepSpan]],
        origin_s: float,
    ) -> None:
        self._engine = engine
        self._latency_s = latency_s
        self._spans = spans
        self._origin_s = origin_s
        self.name = engine.name

    async def recognise(self, pcm: Pcm, rate_hz: int, language: str) -> str:
        """What the script says was understood, else what the engine understands."""
        now = asyncio.get_running_loop().time() - self._origin_s
        start = now - len(pcm) / 2 / rate_hz - _TRAILING_S
        told = [
            span.as_text
            for span in self._spans()
            if span.as_text is not None
            and span.start < now
            and (span.end is None or span.end > start)
        ]
        if told:
            text = " ".join(told).strip()
        else:
            text = await self._engine.recognise(pcm, rate_hz, language)
        await asyncio.sleep(self._latency_s)
        return text


class LateLink:
    """The gateway's end of an in-memory link to the agent; inputs arrive `latency_s` later.

    Messages cross as JSON, so neither side can see the other's objects. `observe` is told what
    the agent says.
    """

    def __init__(
        self,
        link: Link,
        latency_s: float,
        observe: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> None:
        self._link = link
        self._observe = observe
        self._latency_s = latency_s
        self._on_the_way: set[asyncio.Task[None]] = set()
        self._closed = False

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send one message. Raises RuntimeFailure after the close."""
        if self._closed:
            raise RuntimeFailure("runtime.lost", "the link is closed")
        copy = orjson.loads(orjson.dumps(message))
        if self._latency_s == 0:
            await self._link.send(copy)
            return
        task = asyncio.get_running_loop().create_task(self._later(copy), name="late-message")
        self._on_the_way.add(task)
        task.add_done_callback(self._on_the_way.discard)

    async def _later(self, message: dict[str, Any]) -> None:
        await asyncio.sleep(self._latency_s)
        await self._link.send(message)

    async def receive(self) -> dict[str, Any] | None:
        """The next message of the agent; None once it has closed."""
        message = await self._link.receive()
        if message is None:
            return None
        copy: dict[str, Any] = orjson.loads(orjson.dumps(message))
        if self._observe is not None:
            self._observe(copy)
        return copy

    async def aclose(self) -> None:
        """Close; what is on the way is lost."""
        self._closed = True
        for task in tuple(self._on_the_way):
            task.cancel()
        await self._link.aclose()
