"""One live call: joins channel, engine, speech, assets and runtime, and owns the call's tasks.

The engine decides; this file only performs its actions and brings it what comes back. It runs
on any asyncio loop, also one whose clock is virtual.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import structlog

from gateway.assets import AudioAssets
from gateway.audio import g711
from gateway.audio.formats import Pcm
from gateway.audio.resample import Resampler
from gateway.call import events
from gateway.call.events import Action
from gateway.call.machine import CallMachine
from gateway.call.profile import CallProfile
from gateway.channels import base
from gateway.channels.base import Channel, EndReason, Wire
from gateway.errors import GatewayError, ProtocolError, RuntimeFailure, SpeechError
from gateway.records.recorder import CallRecorder
from gateway.runtime.client import RuntimeClient
from gateway.runtime.messages import RuntimeTranscript
from gateway.speech.base import (
    Heard,
    RecognitionStream,
    SpeechServices,
    StreamingRecogniser,
    VoiceActivityStream,
)
from gateway.speech.speaker import Speaker
from gateway.ticker import Ticker

EARLY_AUDIO_BYTES = 1 << 17
"""Caller audio kept before the call has started; older audio is dropped first."""
VAD_RATE_HZ = 8000
TEARDOWN_S = 3.0
CLEAN_CLOSES = frozenset({1000, 1001})
"""Close codes with which a platform hangs up; any other is a lost line."""


class Transport(Protocol):
    """The socket of a call, as the call sees it. Nothing here blocks."""

    @property
    def buffered_bytes(self) -> int:
        """Bytes accepted by `send` that the peer has not taken yet."""
        ...

    @property
    def close_code(self) -> int | None:
        """The peer's close code; 1006 where the socket was lost; None while it is open."""
        ...

    def send(self, message: Wire) -> None:
        """Send one websocket message."""
        ...

    def close(self, code: int, reason: str) -> None:
        """Start the close handshake."""
        ...

    def abort(self) -> None:
        """Drop the connection at once."""
        ...


class Observer(Protocol):
    """Who watches calls: logs, metrics, timelines, the simulator."""

    def record(self, call_id: str, t: float, kind: str, fields: Mapping[str, Any]) -> None:
        """One line of a call's timeline; `t` in seconds since the call started."""
        ...

    def frame_late(self, late_s: float) -> None:
        """A tick ran this much after its due time."""
        ...

    def ended(self, call_id: str, reason: EndReason) -> None:
        """The call is over and holds nothing any more."""
        ...


OpenRuntimeClient = Callable[[str, Mapping[str, Any]], Awaitable[RuntimeClient]]
"""Makes an opened client from call id and session configuration. Raises RuntimeFailure."""


@dataclass(frozen=True, slots=True)
class CallServices:
    """What every call of a process shares."""

    profile: CallProfile
    speech: SpeechServices
    assets: AudioAssets
    open_runtime: OpenRuntimeClient
    ticker: Ticker
    observer: Observer
    send_buffer_bytes: int = 1 << 18
    shutdown_message: str = "This service is closing now. Please call again later. Goodbye."
    records: CallRecords | None = None


class CallRecords(Protocol):
    """Keeps records of calls."""

    def begin(self, started: base.Started, begun: float, now: float) -> CallRecorder | None:
        """The recorder of a call whose time 0 is `begun`; None where nothing is to be kept."""
        ...


class LiveCall:
    """One call from the upgrade to the last closed file."""

    def __init__(
        self,
        channel: Channel,
        transport: Transport,
        services: CallServices,
        *,
        custom: Mapping[str, Any] | None = None,
    ) -> None:
        self._channel = channel
        self._transport = transport
        self._services = services
        self._custom = dict(custom or {})
        self._loop = asyncio.get_running_loop()
        self._begun = self._loop.time()
        capabilities = channel.capabilities.without_rest()
        self._machine = CallMachine(services.profile, capabilities, self._begun)
        self._started: base.Started | None = None
        self._early = bytearray()
        self._tick_key = services.ticker.add(self._tick)
        self._tasks: set[asyncio.Task[None]] = set()
        self._vad: VoiceActivityStream | None = None
        self._to_vad: Resampler | None = None
        self._hearing: RecognitionStream | None = None
        """Where the recogniser hears the caller all the time."""
        self._runtime: RuntimeClient | None = None
        self._recorder: CallRecorder | None = None
        self._closed = False
        self._teardown_task: asyncio.Task[None] | None = None
        self._transport_gone = False
        self._done: asyncio.Future[EndReason] = self._loop.create_future()
        self._speaker = Speaker(services.speech.synthesiser, services.profile, self._machine)
        self._perform: dict[type, Callable[[Any], None]] = {
            events.SendAudio: self._send_audio,
            events.AudioUnheard: self._audio_unheard,
            events.ToChannel: self._to_channel,
            events.OpenRuntime: self._open_runtime,
            events.ToRuntime: self._to_runtime,
            events.CloseRuntime: self._close_runtime,
            events.Synthesize: self._synthesize,
            events.LoadAudio: self._load_audio,
            events.CancelUtterance: self._cancel_utterance,
            events.Recognise: self._recognise,
            events.Record: self._record,
            events.CallEnded: self._call_ended,
        }

    # ---- identity

    @property
    def call_id(self) -> str:
        """The platform's id of the call; empty before it has started."""
        return self._started.call_id if self._started else ""

    @property
    def started(self) -> bool:
        """Whether the platform has said that the call exists."""
        return self._started is not None

    @property
    def ended(self) -> bool:
        """Whether the call is over (its teardown may still run)."""
        return self._closed

    async def wait_ended(self) -> EndReason:
        """Wait until the call holds nothing any more; its end reason."""
        return await asyncio.shield(self._done)

    # ---- from the transport

    def message(self, data: Wire) -> None:
        """One websocket message of the platform."""
        if self._closed:
            return
        now = self._loop.time()
        try:
            for event in self._channel.receive(data):
                self._event(event, now)
        except ProtocolError as error:
            self._protocol_error(error, now)

    def transport_closed(self) -> None:
        """The socket is gone, cleanly or not."""
        self._transport_gone = True
        if self._closed:
            return
        now = self._loop.time()
        if self._transport.close_code in CLEAN_CLOSES:
            self._apply(self._machine.channel(base.Ended(), now))
        else:
            self._apply(self._machine.transport_lost(now))

    def shutdown(self) -> None:
        """The server closes: say goodbye, then hang up (bounded by the engine)."""
        if not self._closed:
            now = self._loop.time()
            self._apply(self._machine.shutdown(self._services.shutdown_message, now))

    def end(self, reason: EndReason) -> None:
        """End the call now, without further words."""
        if not self._closed:
            self._apply(self._machine.end(reason, self._loop.time()))

    def _event(self, event: base.ChannelEvent, now: float) -> None:
        if self._closed:
            return
        if isinstance(event, base.AudioIn):
            self._audio(event.data, now)
        elif isinstance(event, base.Reply):
            self._out(event.message)
        elif isinstance(event, base.Started):
            self._start(event, now)
        else:
            if self._recorder is not None and isinstance(event, base.DtmfIn):
                self._recorder.key(now)
            self._apply(self._machine.channel(event, now))

    def _start(self, event: base.Started, now: float) -> None:
        if self._started is not None:
            raise ProtocolError("protocol.started_twice", "the call has started already")
        started = replace(event, custom={**self._custom, **event.custom})
        self._started = started
        # Tasks of the call inherit this: each of their log lines carries the id.
        structlog.contextvars.bind_contextvars(call_id=started.call_id)
        if self._services.records is not None:
            self._recorder = self._services.records.begin(started, self._begun, now)
        if started.in_format is not None:
            self._vad = self._services.speech.voice_activity.open(self._vad_window)
            if started.in_format.rate_hz != VAD_RATE_HZ:
                self._to_vad = Resampler(started.in_format.rate_hz, VAD_RATE_HZ)
            recogniser = self._services.speech.recogniser
            if isinstance(recogniser, StreamingRecogniser):
                profile = self._services.profile
                languages = (started.language or profile.language, *profile.languages)
                self._hearing = recogniser.open(started.in_format.rate_hz, languages, self._heard)
        self._apply(self._machine.started(started, now))
        if self._early:
            early, self._early = bytes(self._early), bytearray()
            self._audio(early, now)

    def _audio(self, data: bytes, now: float) -> None:
        started = self._started
        if started is None:
            self._early += data
            if len(self._early) > EARLY_AUDIO_BYTES:
                del self._early[: len(self._early) - EARLY_AUDIO_BYTES]
            return
        in_format = started.in_format
        if in_format is None or self._vad is None:
            raise ProtocolError("protocol.audio", "audio in a call that declared none")
        if self._recorder is not None:
            self._recorder.caller(data, now)
        pcm = g711.decode(data, in_format.encoding)
        self._apply(self._machine.audio(pcm, now))
        if not self._closed:
            self._vad.feed(pcm if self._to_vad is None else self._to_vad.process(pcm))
            if self._hearing is not None:
                self._hearing.feed(pcm)

    def _protocol_error(self, error: ProtocolError, now: float) -> None:
        self._observe(now, "error", {"code": error.code, "message": error.message})
        for item in self._channel.protocol_close(error):
            self._out(item)
        self._apply(self._machine.end(EndReason.ERROR, now))

    # ---- from the surroundings

    def _tick(self, due: float, late_s: float) -> None:
        self._services.observer.frame_late(late_s)
        self._apply(self._machine.tick(due))
        if self._transport.buffered_bytes > self._services.send_buffer_bytes and not self._closed:
            self._observe(
                self._loop.time(),
                "error",
                {"code": "transport.not_reading", "message": "the peer does not read"},
            )
            self._transport.abort()
            self._transport_gone = True
            self._apply(self._machine.transport_lost(self._loop.time()))

    def _vad_window(self, probability: float, position_s: float) -> None:
        if not self._closed:
            self._apply(self._machine.vad(probability, position_s, self._loop.time()))

    def _heard(self, heard: Heard) -> None:
        if self._closed:
            return
        now, profile = self._loop.time(), self._services.profile
        if profile.languages and heard.language:
            spoken = heard.language.lower()
            for language in (profile.language, *profile.languages):
                if language.lower() == spoken:
                    self._apply(self._machine.speak_language(language, now))
        self._apply_if_open(self._machine.interim(heard.text, heard.start_s, heard.end_s, now))

    # ---- actions

    def _apply(self, actions: list[Action]) -> None:
        perform = self._perform
        for action in actions:
            perform[type(action)](action)

    def _out(self, item: Wire | base.Close) -> None:
        if self._transport_gone:
            return
        if isinstance(item, base.Close):
            self._transport.close(item.code, item.reason)
            self._transport_gone = True
        else:
            self._transport.send(item)

    def _send_audio(self, action: events.SendAudio) -> None:
        if not self._transport_gone:
            self._transport.send(self._channel.audio(action.data, action.turn))
            if self._recorder is not None:
                self._recorder.agent(action.data, action.due)

    def _audio_unheard(self, action: events.AudioUnheard) -> None:
        if self._recorder is not None:
            self._recorder.unheard(action.since)

    def _to_channel(self, action: events.ToChannel) -> None:
        for item in self._channel.command(action.command):
            self._out(item)

    def _open_runtime(self, action: events.OpenRuntime) -> None:
        self._spawn(self._run_runtime(action), "runtime")

    def _to_runtime(self, action: events.ToRuntime) -> None:
        if self._runtime is None:
            return
        try:
            self._runtime.send(action)
        except RuntimeFailure as error:
            now = self._loop.time()
            self._apply(self._machine.runtime_lost(error.code, error.message, now))

    def _close_runtime(self, _action: events.CloseRuntime) -> None:
        runtime, self._runtime = self._runtime, None
        if runtime is not None:
            self._spawn(runtime.aclose(), "runtime-close")

    def _synthesize(self, action: events.Synthesize) -> None:
        if self._hearing is not None:
            self._hearing.speak(action.language)
        if self._speaker.say(action):
            self._spawn(self._speaker.run(self._apply_if_open, self._loop.time), "speaker")

    def _cancel_utterance(self, action: events.CancelUtterance) -> None:
        self._speaker.cancel(action.utterance_id)

    def _load_audio(self, action: events.LoadAudio) -> None:
        self._spawn(self._load(action), "load-audio")

    def _recognise(self, action: events.Recognise) -> None:
        if self._hearing is not None:
            self._hearing.speak(action.language)
        self._spawn(self._understand(action), "recognise")

    def _record(self, action: events.Record) -> None:
        self._observe(action.t, action.kind, action.fields)

    def _observe(self, t: float, kind: str, fields: Mapping[str, Any]) -> None:
        self._services.observer.record(self.call_id, t - self._begun, kind, fields)
        if self._recorder is not None:
            self._recorder.note(t, kind, fields)

    def _call_ended(self, action: events.CallEnded) -> None:
        if self._closed:
            return
        self._closed = True
        self._services.ticker.remove(self._tick_key)
        if self._recorder is not None:
            self._recorder.end(self._loop.time())
        if not self._transport_gone:
            self._transport.close(1000, action.reason.value)
            self._transport_gone = True
        self._teardown_task = self._loop.create_task(
            self._teardown(action.reason), name=f"teardown:{self.call_id}"
        )

    # ---- tasks

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        if self._closed:
            work.close()
            return
        task = self._loop.create_task(work, name=f"{name}:{self.call_id}")
        self._tasks.add(task)
        task.add_done_callback(self._task_done)

    def _task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or task.exception() is None or self._closed:
            return
        error = task.exception()
        now = self._loop.time()
        self._observe(now, "error", {"code": "internal.task", "message": repr(error)})
        self._apply(self._machine.end(EndReason.ERROR, now))

    def _apply_if_open(self, actions: list[Action]) -> None:
        if not self._closed:
            self._apply(actions)

    async def _run_runtime(self, action: events.OpenRuntime) -> None:
        started = self._started
        assert started is not None
        client: RuntimeClient | None = None
        try:
            client = await self._services.open_runtime(started.call_id, started.config)
            self._runtime = client
            if action.variables:
                client.send(
                    events.ToRuntime(events.InputType.VARIABLES, data=dict(action.variables))
                )
            if action.kickoff is not None:
                client.send(events.ToRuntime(events.InputType.EVENT, text=action.kickoff))
            self._apply_if_open(self._machine.runtime_opened(self._loop.time()))
            async for output in client.outputs():
                if isinstance(output, RuntimeTranscript):
                    continue
                self._apply_if_open(self._machine.runtime(output, self._loop.time()))
            raise RuntimeFailure("runtime.closed", "the runtime closed the session")
        except RuntimeFailure as error:
            now = self._loop.time()
            self._apply_if_open(self._machine.runtime_lost(error.code, error.message, now))
        finally:
            self._runtime = None
            if client is not None:
                await client.aclose()

    async def _load(self, action: events.LoadAudio) -> None:
        assert self._started is not None
        out_format = self._started.out_format
        assert out_format is not None
        try:
            pcm = await self._services.assets.load(action.uri, out_format.rate_hz)
        except GatewayError as error:
            self._apply_if_open(
                self._machine.audio_failed(
                    action.utterance_id, error.code, error.message, self._loop.time()
                )
            )
            return
        self._apply_if_open(self._machine.audio_loaded(action.utterance_id, pcm, self._loop.time()))

    async def _understand(self, action: events.Recognise) -> None:
        try:
            if action.ask_complete:
                text, complete = await asyncio.gather(
                    self._words(action),
                    self._is_complete(action.pcm, action.rate_hz),
                )
            else:
                text = await self._words(action)
                complete = False
        except SpeechError as error:
            self._observe(
                self._loop.time(), "error", {"code": error.code, "message": error.message}
            )
            self._apply_if_open(
                self._machine.recognise_failed(action.segment_id, error.code, self._loop.time())
            )
            return
        self._apply_if_open(
            self._machine.recognised(action.segment_id, text, complete, self._loop.time())
        )

    async def _words(self, action: events.Recognise) -> str:
        if self._hearing is not None:
            try:
                return await self._hearing.words(action.start_s, action.end_s)
            except SpeechError as error:
                # The stretch itself is still here to be recognised.
                fields = {"code": error.code, "message": error.message}
                self._observe(self._loop.time(), "error", fields)
        recogniser = self._services.speech.recogniser
        return await recogniser.recognise(action.pcm, action.rate_hz, action.language)

    async def _is_complete(self, pcm: Pcm, rate_hz: int) -> bool:
        try:
            return await self._services.speech.turn_detector.complete(pcm, rate_hz)
        except SpeechError:
            # Without a verdict the hard silence ends the turn.
            return False

    async def _teardown(self, reason: EndReason) -> None:
        if self._vad is not None:
            self._vad.close()
        if self._hearing is not None:
            await self._hearing.aclose()
        tasks = list(self._tasks)
        for task in tasks:
            if not task.get_name().startswith("runtime-close"):
                task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=TEARDOWN_S)
        self._services.observer.ended(self.call_id, reason)
        if not self._done.done():
            self._done.set_result(reason)
