"""One live call: joins channel, engine, speech, assets and runtime, and owns the call's tasks.

The engine decides; this file only performs its actions and brings it what comes back. It runs
on any asyncio loop, also one whose clock is virtual.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any

import structlog

from gateway.audio import g711
from gateway.audio.formats import Encoding, Pcm
from gateway.audio.resample import Resampler
from gateway.call import events
from gateway.call.events import Action
from gateway.call.machine import CallMachine
from gateway.channels import base
from gateway.channels.base import Channel, EndReason, Wire
from gateway.errors import GatewayError, ProtocolError, RestError, RuntimeFailure, SpeechError
from gateway.notices import CallNotice
from gateway.platforms.line import PlatformLine, Transport
from gateway.platforms.terms import Terms, full_account
from gateway.records.recorder import CallRecorder
from gateway.runtime.audio import AudioBridge
from gateway.runtime.client import RuntimeClient
from gateway.services import CallServices
from gateway.speech.base import Heard, RecognitionStream, StreamingRecogniser, VoiceActivityStream
from gateway.speech.speaker import Speaker

EARLY_AUDIO_BYTES = 1 << 17
"""Caller audio kept before the call has started; older audio is dropped first."""
VAD_RATE_HZ = 8000
TEARDOWN_S = 3.0
REJOIN_S = 0.02
"""Wait for the end of a socket that was dropped for another."""
CLEAN_CLOSES = frozenset({1000, 1001})
"""Close codes with which a platform hangs up; any other is a lost line."""


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
        self._services = services
        self._terms = services.terms.get(channel.capabilities.dialect, Terms())
        self._line = PlatformLine(channel, transport, self._terms, self._spawn)
        self._custom = dict(custom or {})
        self._loop = asyncio.get_running_loop()
        self._begun = self._loop.time()
        profile = self._terms.profile(services.profile)
        self._machine = CallMachine(profile, self._line.capabilities, self._begun)
        self._started: base.Started | None = None
        self._early = bytearray()
        self._tick_key = services.ticker.add(self._tick)
        self._tasks: set[asyncio.Task[None]] = set()
        self._halves = g711.Decoder(Encoding.LINEAR16)
        self._vad: VoiceActivityStream | None = None
        self._to_vad: Resampler | None = None
        self._hearing: RecognitionStream | None = None
        """Where the recogniser hears the caller all the time."""
        self._bridge: AudioBridge | None = None
        """Where the runtime listens and speaks itself."""
        self._runtime: RuntimeClient | None = None
        self._recorder: CallRecorder | None = None
        self._notice: CallNotice | None = None
        self._closed = False
        self._teardown_task: asyncio.Task[None] | None = None
        self._counted = False
        self._known = False
        self._host: LiveCall | None = None
        """The call that this socket has come back to: it gets everything."""
        self._waiting: asyncio.TimerHandle | None = None
        """For the platform: to start the call, or to come back."""
        self._done: asyncio.Future[EndReason] = self._loop.create_future()
        self._speaker = Speaker(services.speech.synthesiser, profile, self._machine)
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
        self._take(channel.opened)
        starts_within_s = channel.capabilities.starts_within_s
        if starts_within_s is not None and self._started is None:
            self._waiting = self._loop.call_later(starts_within_s, self._overdue)

    # ---- identity

    @property
    def call_id(self) -> str:
        """The platform's id of the call; empty before it has started."""
        if self._host is not None:
            return self._host.call_id
        return self._started.call_id if self._started else ""

    @property
    def started(self) -> bool:
        """Whether the platform has said that the call exists."""
        return self._started is not None or self._host is not None

    @property
    def ended(self) -> bool:
        """Whether the call is over (its teardown may still run)."""
        return self._closed

    async def wait_ended(self) -> EndReason:
        """Wait until this socket's part of the call holds nothing any more; why it ended."""
        if self._host is not None:
            return await self._host.wait_ended()
        return await asyncio.shield(self._done)

    # ---- from the transport

    def message(self, data: Wire) -> None:
        """One websocket message of the platform."""
        if self._host is not None:
            self._host.message(data)
        elif self._closed:
            self._line.late(data)
        else:
            self._take(lambda: self._line.receive(data))

    def _take(self, told: Callable[[], list[base.ChannelEvent]]) -> None:
        now = self._loop.time()
        try:
            for event in told():
                self._event(event, now)
        except ProtocolError as error:
            self._protocol_error(error, now)

    def _overdue(self) -> None:
        self._waiting = None
        if self._started is None and not self._closed:
            self._take(self._line.channel.overdue)

    def transport_closed(self) -> None:
        """The socket is gone, cleanly or not."""
        if self._host is not None:
            self._host.transport_closed()
            return
        self._line.lost()
        if self._closed:
            return
        now = self._loop.time()
        resume_s = self._line.capabilities.resume_s
        if self._line.transport.close_code in CLEAN_CLOSES:
            self._apply(self._machine.channel(base.Ended(), now))
        elif self._started is not None and resume_s > 0:
            self._apply(self._machine.channel(base.Paused(), now))
            self._waiting = self._loop.call_later(resume_s, self._never_came_back)
        else:
            self._apply(self._machine.transport_lost(now))

    # ---- a platform that comes back

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _never_came_back(self) -> None:
        self._waiting = None
        self._services.resumable.pop(self.call_id, None)
        if not self._closed:
            self._apply(self._machine.transport_lost(self._loop.time()))

    def _rejoin(self, call_id: str) -> None:
        """This socket goes on with a call that lost its own."""
        self._stop_waiting()
        host = self._services.resumable.get(call_id)
        if host is None or host._line.capabilities.dialect != self._line.capabilities.dialect:
            self._line.command(base.Rejoined(False))
            self._apply(self._machine.end(EndReason.ERROR, self._loop.time()))
        elif not host._line.gone:
            # The platform knows sooner than we do that the old one is dead.
            host._line.transport.abort()
            self._waiting = self._loop.call_later(REJOIN_S, self._rejoin, call_id)
        else:
            self._host = host
            self._services.ticker.remove(self._tick_key)
            self._line.command(base.Rejoined(True, host._started))
            host._come_back(self._line, self._loop.time())

    def _come_back(self, line: PlatformLine, now: float) -> None:
        self._stop_waiting()
        assert self._started is not None
        line.start(self._started)
        self._line = line
        # The lost socket may be let go; the call ends with the new one.
        self._done.set_result(EndReason.TRANSPORT_LOST)
        self._done = self._loop.create_future()
        self._apply(self._machine.channel(base.Resumed(), now))

    def shutdown(self) -> None:
        """The server closes: say goodbye, then hang up (bounded by the engine)."""
        if self._host is not None:
            self._host.shutdown()
        elif not self._closed:
            now = self._loop.time()
            self._apply(self._machine.shutdown(self._services.shutdown_message, now))

    def end(self, reason: EndReason) -> None:
        """End the call now, without further words."""
        if self._host is not None:
            self._host.end(reason)
        elif not self._closed:
            self._apply(self._machine.end(reason, self._loop.time()))

    def _event(self, event: base.ChannelEvent, now: float) -> None:
        if self._closed:
            return
        if isinstance(event, base.AudioIn):
            self._audio(event.data, now)
        elif isinstance(event, base.Reply):
            self._line.out(event.message)
        elif isinstance(event, base.Started):
            self._start(event, now)
        elif isinstance(event, base.Rejoin):
            self._rejoin(event.call_id)
        elif isinstance(event, base.ParamsUpdated):
            named = replace(event, custom=self._terms.named(event.custom))
            self._apply(self._machine.channel(named, now))
        else:
            if self._recorder is not None and isinstance(event, base.DtmfIn):
                self._recorder.key(now)
            if isinstance(event, base.Ended):
                self._line.left()
            self._apply(self._machine.channel(event, now))

    def _start(self, event: base.Started, now: float) -> None:
        if self._started is not None:
            raise ProtocolError("protocol.started_twice", "the call has started already")
        able = self._line.capabilities
        if able.once and event.call_id:
            # Before anything is told or recorded under its id: that belongs to the first socket.
            known = self._services.known.enter(able.dialect, event.call_id, now)
            if known:
                raise ProtocolError("protocol.call_id", known, where="call_id", close_code=1008)
            self._known = True
        if able.resume_s > 0:
            self._services.resumable[event.call_id] = self
        self._stop_waiting()
        custom = {**self._custom, **event.custom}
        started = self._terms.started(replace(event, custom=custom))
        self._started = started
        self._line.start(started)
        # Tasks of the call inherit this, and so do ticks: each of their log lines carries the id.
        structlog.contextvars.bind_contextvars(call_id=started.call_id)
        self._services.ticker.adopt(self._tick_key)
        limit = self._terms.max_calls_per_account
        self._counted = self._services.accounts.enter(able.dialect, started.account, limit)
        if not self._counted:
            self._apply(self._machine.refused(started, full_account(), now))
            return
        if self._services.notices is not None:
            self._notice = self._services.notices.begin(able.dialect, started)
        if self._services.records is not None:
            self._recorder = self._services.records.begin(started, self._begun, now)
        profile = self._services.profile
        if profile.audio_runtime:
            self._bridge = AudioBridge(
                started.in_format,
                started.out_format,
                self._services.runtime_audio,
                profile.noise_suppression,
            )
        elif started.in_format is not None:
            self._vad = self._services.speech.voice_activity.open(self._vad_window)
            if started.in_format.rate_hz != VAD_RATE_HZ:
                self._to_vad = Resampler(started.in_format.rate_hz, VAD_RATE_HZ)
            recogniser = self._services.speech.recogniser
            if isinstance(recogniser, StreamingRecogniser):
                languages = (started.language or profile.language, *profile.languages)
                self._hearing = recogniser.open(started.in_format.rate_hz, languages, self._heard)
        self._apply(self._machine.started(started, now, self._line.capabilities))
        if profile.ambience is not None and started.out_format is not None:
            self._spawn(self._load_ambience(started.out_format.rate_hz), "ambience")
        if self._early:
            early, self._early = bytes(self._early), bytearray()
            self._audio(early, now)

    def _audio(self, data: bytes, now: float) -> None:
        started = self._started
        if started is None:
            self._early += data
            excess = len(self._early) - EARLY_AUDIO_BYTES
            if excess > 0:
                # Whole samples, whatever the format will turn out to be.
                del self._early[: excess + (excess & 1)]
            return
        in_format = started.in_format
        if in_format is None:
            raise ProtocolError("protocol.audio", "audio in a call that declared none")
        if in_format.encoding is Encoding.LINEAR16:
            data = self._halves.process(data)
        if self._machine.deaf:
            data = in_format.silence[:1] * len(data)
        if self._recorder is not None:
            self._recorder.caller(data, now)
        self._machine.pace(len(data) // in_format.sample_bytes, now)
        if self._bridge is not None:
            self._bridge.hear(data, now)
            return
        pcm = g711.decode(data, in_format.encoding)
        self._apply(self._machine.audio(pcm, now))
        if not self._closed and self._vad is not None:
            self._vad.feed(pcm if self._to_vad is None else self._to_vad.process(pcm))
            if self._hearing is not None:
                self._hearing.feed(pcm)

    def _protocol_error(self, error: ProtocolError, now: float) -> None:
        self._failed(error)
        for item in self._line.channel.protocol_close(error):
            self._line.out(item)
        self._apply(self._machine.end(EndReason.ERROR, now))

    # ---- from the surroundings

    def _tick(self, due: float, late_s: float) -> None:
        self._services.observer.frame_late(late_s)
        line = self._line
        self._apply(self._machine.tick(due))
        if self._bridge is not None and self._runtime is not None and self._machine.conversing:
            for chunk in self._bridge.chunks(due):
                self._to_runtime(events.ToRuntime(events.InputType.AUDIO, audio=chunk))
        line.tick()
        if line.transport.buffered_bytes > self._services.send_buffer_bytes and not self._closed:
            self._failed(GatewayError("transport.not_reading", "the peer does not read"))
            line.transport.abort()
            line.lost()
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

    def _send_audio(self, action: events.SendAudio) -> None:
        if not self._line.gone:
            self._line.audio(action.data, action.turn)
            if self._recorder is not None:
                self._recorder.agent(action.data, action.due)

    def _audio_unheard(self, action: events.AudioUnheard) -> None:
        if self._recorder is not None:
            self._recorder.unheard(action.since)

    def _to_channel(self, action: events.ToChannel) -> None:
        if self._line.asks_to_hand_on(action.command):
            self._spawn(self._hand_on(action.command), "hand-on")
        else:
            self._line.command(action.command)

    async def _hand_on(self, command: base.Transfer) -> None:
        try:
            await self._line.hand_on(command)
        except RestError as error:
            self._apply_if_open(self._machine.not_handed_on(error, self._loop.time()))
        else:
            self._apply_if_open(self._machine.handed_on(self._loop.time()))

    def _open_runtime(self, action: events.OpenRuntime) -> None:
        self._spawn(self._run_runtime(action), "runtime")

    def _to_runtime(self, action: events.ToRuntime) -> None:
        if self._runtime is None:
            return
        try:
            self._runtime.send(action)
        except RuntimeFailure as error:
            self._apply(self._machine.runtime_lost(error, self._loop.time()))

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
        if self._notice is not None:
            self._notice.note(kind, fields)

    def _failed(self, error: GatewayError) -> None:
        self._observe(self._loop.time(), "error", error.fields())

    def _call_ended(self, action: events.CallEnded) -> None:
        if self._closed:
            return
        self._closed = True
        self._services.ticker.remove(self._tick_key)
        if self._recorder is not None:
            self._recorder.end(self._loop.time())
        self._stop_waiting()
        dialect = self._line.capabilities.dialect
        if self._counted and self._started is not None:
            self._services.accounts.leave(dialect, self._started.account)
        if self._known:
            self._services.known.leave(dialect, self.call_id, self._loop.time())
        self._services.resumable.pop(self.call_id, None)
        if not self._line.parting:
            self._line.close(1000, action.reason.value)
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
        error, now = task.exception(), self._loop.time()
        what = f"{type(error).__name__} in the task {task.get_name().partition(':')[0]}"
        fields = {"code": "internal.task", "message": what, "said": str(error)}
        self._observe(now, "error", fields)
        self._apply(self._machine.end(EndReason.ERROR, now))

    def _apply_if_open(self, actions: list[Action]) -> None:
        if not self._closed:
            self._apply(actions)

    async def _run_runtime(self, action: events.OpenRuntime) -> None:
        started = self._started
        assert started is not None
        client: RuntimeClient | None = None
        config = {**started.config, **(self._bridge.config if self._bridge is not None else {})}
        try:
            client = await self._services.open_runtime(started.call_id, config)
            self._runtime = client
            if action.variables:
                client.send(
                    events.ToRuntime(events.InputType.VARIABLES, data=dict(action.variables))
                )
            if action.kickoff is not None:
                client.send(events.ToRuntime(events.InputType.EVENT, text=action.kickoff))
            if action.first_words:
                client.send(events.ToRuntime(events.InputType.TEXT, text=action.first_words))
            self._apply_if_open(self._machine.runtime_opened(self._loop.time()))
            if self._bridge is not None:
                self._bridge.open()
            async for output in client.outputs():
                now = self._loop.time()
                taken = output if self._bridge is None else self._bridge.take(output, now)
                if taken is not None:
                    self._apply_if_open(self._machine.runtime(taken, now))
            raise RuntimeFailure("runtime.closed", "the runtime closed the session")
        except RuntimeFailure as error:
            self._apply_if_open(self._machine.runtime_lost(error, self._loop.time()))
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
            now = self._loop.time()
            self._apply_if_open(self._machine.audio_failed(action.utterance_id, error, now))
            return
        self._apply_if_open(self._machine.audio_loaded(action.utterance_id, pcm, self._loop.time()))

    async def _load_ambience(self, rate_hz: int) -> None:
        sound = self._services.profile.ambience
        assert sound is not None
        try:
            loop = await self._services.assets.ambient_loop(sound, rate_hz)
        except GatewayError as error:
            # A call without its background is still a call.
            self._failed(error)
            return
        self._apply_if_open(self._machine.ambience(loop, self._loop.time()))

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
            self._failed(error)
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
                self._failed(error)
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
        if self._line.parting:
            await self._line.part(reason)
        self._services.observer.ended(self.call_id, reason)
        if self._notice is not None and self._services.notices is not None:
            self._services.notices.ended(self._notice, reason)
        if not self._done.done():
            self._done.set_result(reason)
