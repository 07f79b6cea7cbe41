"""The call engine: `(event, now) -> actions`, with no socket, task or clock inside.

It composes the agent's side (`speaking`), the caller's side (`attending`) and the call's life
(`life`). The first action of a call is its `call_started` record; the last are `call_ended` and
`CallEnded`, exactly once; after them every method returns nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.audio.formats import AudioFormat, Encoding, Pcm
from gateway.bidi import REMOTE_DISCONNECTED, SESSION_LANGUAGE, language_code
from gateway.call import life
from gateway.call.attending import Attending
from gateway.call.desk import Desk
from gateway.call.ending import grant, read_wish
from gateway.call.events import (
    Action,
    CallEnded,
    CloseRuntime,
    RuntimeAudio,
    RuntimeEndSession,
    RuntimeInterruption,
    RuntimeOutput,
    RuntimePayload,
    RuntimeTranscript,
    RuntimeTurnCompleted,
)
from gateway.call.far_end import FarEnd, FarEvent
from gateway.call.life import Life, LifeEvent
from gateway.call.listening import Listening
from gateway.call.opening import open_runtime, playout_of
from gateway.call.output_log import OutputLog
from gateway.call.pace import Pace
from gateway.call.profile import CallProfile
from gateway.call.speaking import Speaking, TurnOutput
from gateway.call.transcript import Transcript
from gateway.channels.base import (
    ChannelEvent,
    DtmfIn,
    Ended,
    EndReason,
    EventIn,
    GoAway,
    Hangup,
    PlatformFault,
    Started,
    TextIn,
    ToolResponsesIn,
    VariablesIn,
)
from gateway.channels.capabilities import Capabilities
from gateway.errors import GatewayError, RuntimeFailure

FAREWELL_WAIT_S = 5.0
"""Longest wait for the speech of the gateway's own last message."""
END_GRACE_S = 0.5
"""Wait for late outputs of a turn that the end of the session overtook."""
END_OUTPUTS_S = 10.0
"""Longest stretch of such outputs; a runtime that never falls silent is not waited for."""
START_TIMEOUT = RuntimeFailure("runtime.start_timeout", "the runtime has not answered in time")
TURN_TIMEOUT = RuntimeFailure("runtime.turn_timeout", "the runtime does not go on with its turn")


class CallMachine:
    """The engine of one call. Times are seconds of one monotonic clock."""

    def __init__(self, profile: CallProfile, capabilities: Capabilities, now: float) -> None:
        self._desk = Desk(profile, capabilities, now)
        self._speaking = Speaking(self._desk)
        self._attending = Attending(self._desk, self._speaking)
        self._far_end = FarEnd(self._desk, self._speaking, self._attending)
        self._early_audio: list[Pcm] = []
        self._pace: Pace | None = None
        self._bed = b""
        self._answer_owed = True
        self._answer_by: float | None = None
        """When the runtime must have answered for the first time."""
        self._end_by: float | None = None
        """When the call has hung up at the latest, once it is ending."""
        self._limit_at: float | None = None
        self._farewell_by: float | None = None
        self._over_at = 0.0
        """When the runtime ended its session."""
        self._log = OutputLog(self._desk)
        self._reason = EndReason.COMPLETED
        self._metadata: Mapping[str, Any] = {}
        self._left: EndReason | None = None
        """How the caller left our socket while the platform was asked to hand them on."""

    # ---- what is known of the call

    @property
    def ended(self) -> bool:
        """Whether the call is over."""
        return self._desk.life is Life.ENDED

    @property
    def output_format(self) -> AudioFormat:
        """Format of the line; speech and files are wanted as PCM at its rate.

        Where there is no output audio: Linear16 at 8000 Hz.
        """
        playout = self._desk.playout
        return playout.format if playout is not None else AudioFormat(Encoding.LINEAR16, 8000)

    @property
    def conversing(self) -> bool:
        """Whether what the caller says still goes to the agent."""
        return self._desk.conversing

    @property
    def deaf(self) -> bool:
        """Whether the caller's audio is to be taken for silence."""
        return self._desk.deaf

    @property
    def transcript(self) -> Transcript:
        """What both sides have heard of each other."""
        return self._desk.transcript

    def buffered_s(self) -> float:
        """Seconds of audio that wait to be sent."""
        playout = self._desk.playout
        return playout.buffered_s if playout is not None else 0.0

    # ---- the channel

    def started(
        self, event: Started, now: float, capabilities: Capabilities | None = None
    ) -> list[Action]:
        """The platform has started the call: open the runtime.

        `capabilities`: the record as the start has refined it.
        """
        desk = self._begin(now)
        if desk is None or desk.life is not Life.IDLE:
            return self._done()
        desk.capabilities = capabilities or desk.capabilities
        self._step(LifeEvent.STARTED)
        profile = desk.profile
        desk.started = event
        desk.language = event.language or profile.language
        if profile.declares(profile.language_variable):
            self._switch_language(event.custom.get(profile.language_variable))
        self._desk.record_start()
        if event.in_format is not None and not profile.audio_runtime:
            desk.listening = Listening(profile, event.in_format.rate_hz)
            for pcm in self._early_audio:
                desk.listening.feed(pcm)
        self._early_audio.clear()
        if event.out_format is not None:
            desk.playout = playout_of(desk, event.out_format)
            if self._bed:
                desk.playout.set_bed(self._bed, profile.bed_whole_call)
        if event.in_format is not None:
            self._pace = Pace(event.in_format.rate_hz, desk.now)
        self._limit_at = desk.now + profile.max_call_s
        self._answer_by = desk.now + profile.start_timeout_s
        self._answer_owed = open_runtime(desk, event)
        return self._done()

    def refused(self, event: Started, error: GatewayError, now: float) -> list[Action]:
        """A call that has started but may not go on: hang up at once, in the dialect's words."""
        desk = self._begin(now)
        if desk is not None:
            desk.started = event
            self._ensure_start()
            desk.failed(error)
            self._step(LifeEvent.CUT_OFF)
            self._finish(EndReason.LIMIT, hang_up=True)
        return self._done()

    def channel(self, event: ChannelEvent, now: float) -> list[Action]:
        """An event of the platform other than `Started` and audio."""
        desk = self._begin(now)
        if desk is None:
            return []
        match event:
            case DtmfIn(digits):
                self._attending.keys(digits)
            case TextIn(text, will_continue):
                self._attending.text(text, will_continue)
            case EventIn(name) if desk.conversing:
                desk.say_event(name)
            case VariablesIn(variables) if desk.conversing:
                self._switch_language(variables.get(desk.profile.language_variable))
                desk.say_variables(variables)
            case ToolResponsesIn(items) if desk.conversing:
                desk.say_tool_responses(items)
            case PlatformFault(code, message):
                said = f"{code}: {message}"[:300]
                desk.error("platform.fault", "the platform reports an error", said)
            case Ended(reason):
                self._part(reason)
            case _ if isinstance(event, FarEvent):
                self._far_end.handle(event)
            case _:
                pass
        return self._done()

    def transport_lost(self, now: float) -> list[Action]:
        """The socket is gone."""
        if self._begin(now) is not None:
            self._part(EndReason.TRANSPORT_LOST)
        return self._done()

    # ---- caller audio

    def audio(self, pcm: Pcm, now: float) -> list[Action]:
        """Decoded caller audio of any length, at the input rate."""
        listening = self._desk.listening
        if listening is not None and self._desk.conversing:
            listening.feed(pcm)
        elif self._desk.life is Life.IDLE:
            self._early_audio.append(pcm)
            # About ten seconds of frames; the platform should have started the call by then.
            del self._early_audio[:-512]
        return []

    def pace(self, samples: int, now: float) -> None:
        """So many samples of the caller came: what is sent keeps to the clock that sent them."""
        if self._pace is not None and self._desk.playout is not None:
            moved_s = self._pace.heard(samples, now)
            if moved_s:
                self._desk.playout.follow(moved_s)

    def vad(self, probability: float, position_s: float, now: float) -> list[Action]:
        """One voice activity window that ends at `position_s` of the caller's audio."""
        desk = self._begin(now)
        if desk is None or desk.listening is None:
            return self._done()
        self._attending.window(desk.listening, probability, position_s)
        return self._done()

    def recognised(self, segment_id: int, text: str, complete: bool, now: float) -> list[Action]:
        """The recogniser's answer; `complete`: the turn detector says the caller has finished."""
        desk = self._begin(now)
        if desk is not None and desk.listening is not None:
            desk.listening.language = desk.language
            self._attending.handle(
                desk.listening.answer(segment_id, text.strip(), complete, desk.now)
            )
        return self._done()

    def interim(self, text: str, start_s: float, end_s: float, now: float) -> list[Action]:
        """Words that a streaming recogniser hears, between two positions of the caller's audio.

        They interrupt the agent. The caller's turn is made of what `recognised` brings.
        """
        if self._begin(now) is not None:
            self._attending.words(text.strip(), start_s, end_s)
        return self._done()

    def speak_language(self, language: str, now: float) -> list[Action]:
        """The conversation goes on in another language: voice and recogniser follow from here."""
        if self._begin(now) is not None:
            self._switch_language(language)
        return self._done()

    def _switch_language(self, value: object) -> None:
        self._desk.language = language_code(value) or self._desk.language

    @property
    def language(self) -> str:
        """Language that is spoken now."""
        return self._desk.language

    def recognise_failed(self, segment_id: int, error_code: str, now: float) -> list[Action]:
        """The recogniser failed: the piece counts as having no words.

        Who asked it knows what went wrong and keeps the record of `error_code`.
        """
        desk = self._begin(now)
        if desk is not None and desk.listening is not None:
            self._attending.handle(desk.listening.answer(segment_id, "", False, desk.now))
        return self._done()

    # ---- the runtime

    def runtime_opened(self, now: float) -> list[Action]:
        """The runtime's session takes input."""
        desk = self._begin(now)
        if desk is not None:
            if desk.life is Life.OPENING:
                desk.open_runtime()
                if not self._answer_owed:
                    self._answer_by = None
            self._step(LifeEvent.OPENED)
        return self._done()

    def runtime(self, output: RuntimeOutput, now: float) -> list[Action]:
        """One output of the runtime."""
        desk = self._begin(now)
        if desk is None or desk.life is Life.IDLE:
            return self._done()
        if isinstance(output, RuntimeAudio) and output.background:
            if desk.conversing:
                self._speaking.output(output)
            return self._done()
        self._answer_by = None
        if not isinstance(output, RuntimeTranscript):
            self._attending.answered()
        match output:
            case RuntimeTranscript(text):
                self._attending.told(text)
            case RuntimeEndSession(metadata):
                self._log.note(output)
                self._end_session(metadata)
            case RuntimeInterruption(barge_in):
                self._log.note(output)
                if desk.conversing:
                    self._attending.interrupted_by_runtime(barge_in)
            case RuntimeTurnCompleted(turn):
                self._log.note(output)
                if desk.turn.completed(turn, desk.now) and self._playing:
                    self._speaking.completed(output)
                    self._attending.reconsider()
            case _:
                self._turn_output(output)
        return self._done()

    @property
    def _playing(self) -> bool:
        """Whether the agent's outputs are still played."""
        if self._desk.life is Life.DRAINING:
            return self._desk.now < self._over_at + END_OUTPUTS_S
        return self._desk.conversing

    def _turn_output(self, output: TurnOutput) -> None:
        desk = self._desk
        current = desk.turn.output(output.turn, desk.now)
        self._log.note(output, current)
        if current and isinstance(output, RuntimePayload) and SESSION_LANGUAGE in output.payload:
            self._switch_language(output.payload[SESSION_LANGUAGE])
            rest = {k: v for k, v in output.payload.items() if k != SESSION_LANGUAGE}
            if not rest:
                return
            output = RuntimePayload(rest, output.turn)
        if current and self._playing:
            self._speaking.output(output)

    def _end_session(self, metadata: Mapping[str, Any]) -> None:
        desk = self._desk
        was = desk.life
        self._step(LifeEvent.END_SESSION)
        if desk.life is Life.ENDED:
            self._finish(self._reason)
        elif desk.life is Life.DRAINING and was is not Life.DRAINING:
            self._metadata = metadata
            self._over_at = desk.now
            self._end_by = desk.now + desk.profile.drain_s
            desk.turn.session_over()
            self._speaking.cancel_music()
            wish = read_wish(metadata)
            if wish.transfer and wish.message:
                self._farewell_by = desk.now + FAREWELL_WAIT_S
                self._speaking.farewell(wish.message)

    def runtime_lost(self, error: GatewayError, now: float) -> list[Action]:
        """The runtime failed or went away: the caller hears the fallback, then hangs up."""
        if self._begin(now) is not None:
            self._lose(error)
        return self._done()

    def _lose(self, error: GatewayError) -> None:
        desk = self._desk
        was = desk.life
        self._step(LifeEvent.LOST)
        if desk.life is Life.FAREWELL and was is not Life.FAREWELL:
            desk.failed(error)
            self._say_farewell(desk.profile.fallback_message, EndReason.ERROR)
        elif desk.life is Life.ENDED:
            self._finish(self._reason)

    # ---- speech and files

    def speech_audio(
        self, utterance_id: int, text: str, pcm: Pcm, now: float, more: bool = False
    ) -> list[Action]:
        """One synthesised sentence at the output rate, with its words.

        `more`: only a piece of it; the next call goes on with the same sentence.
        """
        if self._begin(now) is not None:
            self._speaking.add_speech(utterance_id, text, pcm, more)
        return self._done()

    def speech_finished(self, utterance_id: int, now: float) -> list[Action]:
        """All sentences of an utterance were given."""
        if self._begin(now) is not None:
            self._speaking.finish_speech(utterance_id)
        return self._done()

    def speech_failed(self, utterance_id: int, error: GatewayError, now: float) -> list[Action]:
        """An utterance cannot be synthesised (further)."""
        if self._begin(now) is not None:
            self._speaking.fail_speech(utterance_id, error)
        return self._done()

    def audio_loaded(self, utterance_id: int, pcm: Pcm, now: float) -> list[Action]:
        """A file was fetched and decoded, at the output rate."""
        if self._begin(now) is not None:
            self._speaking.add_file(utterance_id, pcm)
        return self._done()

    def audio_failed(self, utterance_id: int, error: GatewayError, now: float) -> list[Action]:
        """A file cannot be fetched or decoded."""
        if self._begin(now) is not None:
            self._speaking.fail_file(utterance_id, error)
        return self._done()

    def ambience(self, pcm_loop: Pcm, now: float) -> list[Action]:
        """Play this loop (output rate, final level) from now on, as the profile says when."""
        if self._begin(now) is not None:
            self._bed = pcm_loop
            if self._desk.playout is not None:
                self._desk.playout.set_bed(pcm_loop, self._desk.profile.bed_whole_call)
        return self._done()

    # ---- time

    def tick(self, now: float) -> list[Action]:
        """Every 20 ms: send what is due, and let timers fire."""
        desk = self._begin(now)
        if desk is None:
            return []
        if desk.life is not Life.IDLE:
            self._timers()
            if desk.life is not Life.ENDED and desk.life is not Life.LEAVING:
                self._attending.tick()
                self._speaking.tick()
                self._drain()
        return self._done()

    def _timers(self) -> None:
        desk, now = self._desk, self._desk.now
        if self._end_by is not None:
            if now >= self._end_by:
                self._drained()
            return
        if self._answer_by is not None and now >= self._answer_by:
            self._answer_by = None
            self._lose(START_TIMEOUT)
        elif self._limit_at is not None and now >= self._limit_at:
            self._dismiss(desk.profile.limit_message, EndReason.LIMIT)
        elif desk.turn.timed_out(now):
            self._lose(TURN_TIMEOUT)

    def _drain(self) -> None:
        """Hang up once everything that had to be heard was heard."""
        desk = self._desk
        if desk.life is not Life.DRAINING and desk.life is not Life.FAREWELL:
            return
        if self._farewell_by is not None and desk.now >= self._farewell_by:
            self._farewell_by = None
            self._speaking.give_up_farewell()
        if desk.life is Life.DRAINING and not self._outputs_over():
            return
        self._speaking.end_stream()
        if desk.playout is None or desk.playout.idle:
            self._drained()

    def _outputs_over(self) -> bool:
        """Whether nothing is to come any more of the session that the runtime has ended."""
        now, turn, over_at = self._desk.now, self._desk.turn, self._over_at
        if turn.speaking:
            return now >= min(turn.last_output_at + END_GRACE_S, over_at + END_OUTPUTS_S)
        return turn.completed_at >= over_at or now >= over_at + self._desk.profile.end_grace_s

    # ---- endings

    def shutdown(self, message: str, now: float) -> list[Action]:
        """The server closes: say `message`, then hang up."""
        if self._begin(now) is not None:
            self._dismiss(message, EndReason.SHUTDOWN)
        return self._done()

    def end(self, reason: EndReason, now: float) -> list[Action]:
        """End the call now, without further words."""
        desk = self._begin(now)
        if desk is not None:
            # A caller who is being handed on must not lose the new leg.
            gone = desk.life in (Life.LEAVING, Life.HANDING)
            self._ensure_start()
            self._step(LifeEvent.CUT_OFF)
            self._finish(reason, hang_up=not gone)
        return self._done()

    def _dismiss(self, message: str, reason: EndReason) -> None:
        desk = self._desk
        was = desk.life
        self._ensure_start()
        self._step(LifeEvent.DISMISSED)
        if desk.life is Life.ENDED:
            self._finish(reason, hang_up=True)
        elif desk.life is Life.FAREWELL and was is not Life.FAREWELL:
            if reason is EndReason.SHUTDOWN:
                desk.command(GoAway())
            self._speaking.drop_interruptable()
            self._say_farewell(message, reason)

    def _say_farewell(self, message: str, reason: EndReason) -> None:
        desk = self._desk
        self._reason = reason
        self._answer_by = None
        self._end_by = desk.now + desk.profile.drain_s
        self._farewell_by = desk.now + FAREWELL_WAIT_S
        desk.turn.session_over()
        if message.strip():
            self._speaking.farewell(message.strip())

    def _part(self, reason: EndReason) -> None:
        """The caller has gone: nobody hears anything more; the runtime may finish."""
        desk = self._desk
        was = desk.life
        self._ensure_start()
        self._step(LifeEvent.PARTED)
        if desk.life is Life.ENDED:
            self._finish(reason)
        elif desk.life is Life.HANDING:
            self._left = reason
        elif was is not Life.LEAVING:
            self._reason = reason
            self._answer_by = None
            self._end_by = desk.now + desk.profile.hangup_wait_s
            self._speaking.forget()
            desk.say_event(REMOTE_DISCONNECTED)

    def _drained(self) -> None:
        desk = self._desk
        was = desk.life
        if was is Life.DRAINING:
            self._speaking.forget()
            reason = grant(desk, self._metadata)
            if reason is None:
                self._end_by = None
                self._step(LifeEvent.ASKED)
                return
            self._reason = reason
        self._step(LifeEvent.DRAINED)
        if desk.life is Life.ENDED:
            self._finish(self._reason, hang_up=was is Life.FAREWELL)

    def handed_on(self, now: float) -> list[Action]:
        """The platform, asked by REST, has handed the caller on."""
        if self._begin(now) is not None and self._desk.life is Life.HANDING:
            self._step(LifeEvent.DRAINED)
            self._finish(EndReason.TRANSFERRED)
        return self._done()

    def not_handed_on(self, error: GatewayError, now: float) -> list[Action]:
        """It has not: a caller who is still here hears the fallback, then it hangs up."""
        desk = self._begin(now)
        if desk is not None and desk.life is Life.HANDING:
            desk.failed(error)
            if self._left is None:
                self._step(LifeEvent.REFUSED)
                self._say_farewell(desk.profile.fallback_message, EndReason.ERROR)
            else:
                self._step(LifeEvent.DRAINED)
                self._finish(self._left)
        return self._done()

    def _finish(self, reason: EndReason, *, hang_up: bool = False) -> None:
        desk = self._desk
        self._speaking.forget()
        if hang_up:
            desk.command(Hangup(reason))
        desk.out.append(CloseRuntime())
        desk.record("call_ended", {"reason": reason.value})
        desk.out.append(CallEnded(reason))

    # ---- each call of a method

    def _begin(self, now: float) -> Desk | None:
        """Move to `now` and record what has happened on the playout side; None once ended."""
        desk = self._desk
        if desk.life is Life.ENDED:
            return None
        if now > desk.now:
            desk.now = now
        self._speaking.advance()
        return desk

    def _done(self) -> list[Action]:
        out, self._desk.out = self._desk.out, []
        return out

    def _step(self, event: LifeEvent) -> None:
        self._desk.life = life.after(self._desk.life, event)

    def _ensure_start(self) -> None:
        """A call that ends before it started still has a beginning in its timeline."""
        if self._desk.life is Life.IDLE:
            self._desk.record_start()
