"""The agent's side of a call: the runtime's outputs become utterances, and utterances sound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gateway.audio.formats import Pcm
from gateway.audio.tones import dtmf, silence
from gateway.bidi import get
from gateway.call.desk import Desk
from gateway.call.events import (
    AudioUnheard,
    CancelUtterance,
    LoadAudio,
    RuntimeAudio,
    RuntimePayload,
    RuntimeText,
    RuntimeToolCalls,
    RuntimeTurnCompleted,
    Source,
    Synthesize,
    UtteranceEnd,
)
from gateway.call.playout import PlayEvent
from gateway.call.policy import DtmfPolicy, Plan, Policy, read_payload
from gateway.call.transcript import Speaker
from gateway.call.utterance import Utterance
from gateway.channels.base import (
    AgentPayload,
    AgentText,
    AgentToolCalls,
    Clear,
    SendDtmf,
    TurnCompleted,
)
from gateway.channels.capabilities import DtmfOut
from gateway.errors import AssetError, GatewayError

KEY_MS = 100
KEY_GAP_MS = 80
"""Length of a key played as tones, and of the silence after it."""
MAX_QUEUE = 256
"""Utterances waiting to be heard; one more is dropped with an error record."""
MAX_CAPTIONS = 64
"""Texts waiting for their audio; the oldest are dropped."""
MAX_UTTERANCE_S = 600.0
"""Audio of one utterance; more is dropped with an error record."""
AUDIO_WAIT_S = 30.0
"""How long the queue waits for the audio of its next utterance."""

TurnOutput = RuntimeText | RuntimePayload | RuntimeAudio | RuntimeToolCalls


def _no_client(call: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a call of a client function where there is no client: the agent goes on."""
    keys = ("id", "tool", "toolsetTool")
    named = {key: value for key in keys if (value := get(call, key)) is not None}
    return {**named, "response": {"error": "this caller's client has no such function"}}


@dataclass(frozen=True, slots=True)
class HeardPart:
    """What the caller heard of an interrupted response; `whole`: no word of it was lost."""

    words: str
    whole: bool


class Speaking:
    """Queues, plays and cuts what the agent says."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._last_id = 0
        self._streaming: Utterance | None = None
        """Audio of the runtime that may still grow."""
        self._captions: list[tuple[int, str]] = []
        """Turn and words of audio that is still to come."""
        self._completed: list[int] = []
        """Turns that the client is to be told of once they were sent."""
        self._dtmf: tuple[int, DtmfPolicy] | None = None
        """Turn and settings of the last customised response."""

    # ---- outputs of a turn

    def output(self, output: TurnOutput) -> None:
        """One output of an open turn."""
        match output:
            case RuntimeText():
                self._text(output)
            case RuntimePayload():
                self._payload(output)
            case RuntimeAudio():
                self._audio(output)
            case RuntimeToolCalls():
                self._tool_calls(output)

    def completed(self, output: RuntimeTurnCompleted) -> None:
        """The runtime has said all of a turn."""
        self.end_stream()
        turn = output.turn or self._desk.turn.last
        if self._desk.capabilities.agent_messages and turn not in self._completed:
            self._completed.append(turn)

    def _text(self, output: RuntimeText) -> None:
        self._show(output.text, output.turn)
        if self._desk.profile.audio_runtime and self._desk.playout is not None:
            self._caption(output)
        elif output.text.strip():
            self._queue(Source.SPEECH, Policy(), output.turn, text=output.text.strip())

    def _payload(self, output: RuntimePayload) -> None:
        reading = read_payload(output.payload)
        for problem in reading.problems:
            self._desk.error("payload.value", problem)
        if reading.listen is not None:
            self._desk.listen(reading.listen)
        if not reading.ours:
            self._pass_on(output.payload, output.turn)
        for plan in reading.plans:
            self._play(plan, output)

    def _play(self, plan: Plan, output: RuntimePayload) -> None:
        if plan.policy.dtmf is not None:
            self._dtmf = (output.turn, plan.policy.dtmf)
            self._show(plan.text, output.turn)
        if plan.uri:
            if self._desk.playout is None:
                self._pass_on(output.payload, output.turn)
            else:
                # A client that is sent the sound is told its words, as with speech.
                self._show(plan.policy.transcript, output.turn)
            self._queue(
                Source.FILE,
                plan.policy,
                output.turn,
                text=plan.policy.transcript,
                uri=plan.uri,
            )
        elif plan.text:
            self._queue(Source.SPEECH, plan.policy, output.turn, text=plan.text)
        elif plan.keys:
            self._press(plan, output)

    def _press(self, plan: Plan, output: RuntimePayload) -> None:
        """Press keys towards the far end, once everything before them was heard."""
        way = self._desk.capabilities.dtmf_out
        if way is DtmfOut.NONE or self._desk.playout is None:
            if self._desk.capabilities.agent_messages:
                self._pass_on(output.payload, output.turn)
            else:
                self._desk.error("dtmf.unsupported", "keys cannot be pressed on this line")
            return
        utterance = self._queue(Source.KEYS, plan.policy, output.turn, keys=plan.keys)
        if utterance is None:
            return
        if way is DtmfOut.INBAND:
            rate_hz = self._desk.playout.format.rate_hz
            for key in plan.keys:
                pcm = dtmf(key, KEY_MS, rate_hz) + silence(KEY_GAP_MS, rate_hz)
                utterance.append("", pcm)
        utterance.finish()

    def _audio(self, output: RuntimeAudio) -> None:
        if self._desk.playout is None:
            return
        # Background is an utterance of its own: of speech it is known when it began. It never
        # stands behind anything, so nothing has to wait for it either.
        number = 0 if output.background else output.turn
        if not self.is_streaming(number):
            if output.background and self._desk.playout.queue:
                return
            text = " ".join(text for turn, text in self._captions if turn == output.turn)
            if output.background:
                text = ""
            else:
                self._captions.clear()
            self._streaming = self._queue(Source.AUDIO, Policy(), number, text=text)
            if self._streaming is not None:
                self._streaming.caption("")
        streaming = self._streaming
        if streaming is not None and self._fits(streaming, output.pcm):
            streaming.stream(output.pcm, output.wire)

    def _caption(self, output: RuntimeText) -> None:
        """Words of audio that the runtime makes itself, sent before or among it."""
        streaming, text = self._streaming, output.text.strip()
        if streaming is not None and streaming.turn == output.turn:
            streaming.caption(text)
        else:
            self._captions.append((output.turn, text))
            del self._captions[:-MAX_CAPTIONS]

    def is_streaming(self, turn: int) -> bool:
        """Whether audio of this turn goes on in the last utterance."""
        return self._streaming is not None and self._streaming.turn == turn

    def end_stream(self) -> None:
        """Audio that the runtime made itself will not go on."""
        if self._streaming is not None:
            self._streaming.finish()
            self._streaming = None

    def _tool_calls(self, output: RuntimeToolCalls) -> None:
        if self._desk.capabilities.agent_messages:
            self._desk.command(AgentToolCalls(output.tool_calls, output.turn))
        else:
            self._desk.error(
                "runtime.client_tools", "the agent calls client functions; this caller has none"
            )
            if self._desk.conversing:
                self._desk.say_tool_responses([_no_client(call) for call in output.tool_calls])

    def _show(self, text: str, turn: int) -> None:
        if text and self._desk.capabilities.agent_messages:
            self._desk.command(AgentText(text, turn))

    def _pass_on(self, payload: Mapping[str, Any], turn: int) -> None:
        if self._desk.capabilities.agent_messages:
            self._desk.command(AgentPayload(payload, turn))

    # ---- the queue

    def farewell(self, message: str) -> Utterance | None:
        """The gateway's own last message, protected; None where nothing has to be spoken."""
        turn = self._desk.turn.last + 1
        self._show(message, turn)
        return self._queue(
            Source.SPEECH, Policy(interruptable=False), turn, text=message, farewell=True
        )

    def _queue(
        self,
        source: Source,
        policy: Policy,
        turn: int,
        *,
        text: str = "",
        uri: str = "",
        keys: str = "",
        farewell: bool = False,
    ) -> Utterance | None:
        desk, playout = self._desk, self._desk.playout
        if playout is not None and len(playout.queue) >= MAX_QUEUE:
            desk.error("playout.full", "too many utterances wait; this one is dropped")
            return None
        self.end_stream()
        self.cancel_music()
        self._last_id += 1
        frame_bytes = playout.frame_bytes if playout is not None else 2
        utterance = Utterance(
            self._last_id, source, policy, turn, frame_bytes, text, uri, keys, farewell
        )
        desk.record(
            "utterance_queued",
            {
                "id": utterance.id,
                "source": source.value,
                "text": text,
                "uri": uri,
                "interruptable": self._may_interrupt(policy),
                "cancellable": policy.cancellable,
                "turn": turn,
            },
        )
        if playout is None:
            self._read_at_once(utterance)
            return None
        playout.add(utterance)
        if source is Source.FILE:
            desk.out.append(LoadAudio(utterance.id, uri))
        elif source is Source.SPEECH:
            desk.out.append(Synthesize(utterance.id, text, desk.language))
        return utterance

    def _may_interrupt(self, policy: Policy) -> bool:
        profile = self._desk.profile
        if profile.forbid_barge_in or not policy.interruptable:
            return False
        return policy.said or not profile.disable_barge_in

    def _read_at_once(self, utterance: Utterance) -> None:
        """A text session: who is shown an utterance has taken it in."""
        desk = self._desk
        self._started(utterance, desk.now)
        self._record_end(utterance, desk.now, UtteranceEnd.COMPLETED, 0.0, utterance.text)

    # ---- audio of the queue

    def _find(self, utterance_id: int) -> Utterance | None:
        playout = self._desk.playout
        return playout.find(utterance_id) if playout is not None else None

    def _fits(self, utterance: Utterance, pcm: Pcm) -> bool:
        playout = self._desk.playout
        assert playout is not None
        if utterance.total + len(pcm) <= MAX_UTTERANCE_S * playout.format.rate_hz * 2:
            return True
        if not utterance.finished:
            self._desk.error("playout.too_long", f"over {MAX_UTTERANCE_S:.0f} s of audio")
            self._give_up(utterance)
        return False

    def add_speech(self, utterance_id: int, text: str, pcm: Pcm, more: bool) -> None:
        """One synthesised sentence, or a piece of one that goes on (`more`)."""
        utterance, playout = self._find(utterance_id), self._desk.playout
        if utterance is None or playout is None or utterance.finished:
            return
        if self._fits(utterance, pcm):
            utterance.append(text, playout.louder(utterance, pcm), more)

    def finish_speech(self, utterance_id: int) -> None:
        """All sentences are there."""
        utterance = self._find(utterance_id)
        if utterance is not None and not utterance.finished:
            utterance.finish()

    def fail_speech(self, utterance_id: int, error: GatewayError) -> None:
        """An utterance cannot be spoken (further): what is there plays, the turn goes on."""
        utterance = self._find(utterance_id)
        if utterance is not None and not utterance.finished:
            self._desk.failed(error)
            self._fail(utterance)

    def add_file(self, utterance_id: int, pcm: Pcm) -> None:
        """A decoded file."""
        utterance, playout = self._find(utterance_id), self._desk.playout
        if utterance is None or playout is None or utterance.finished:
            return
        if not pcm:
            self.fail_file(utterance_id, AssetError("asset.empty", "the file holds no audio"))
        elif self._fits(utterance, pcm):
            utterance.append(utterance.text, playout.shaped(utterance, pcm))
            utterance.finish()

    def fail_file(self, utterance_id: int, error: GatewayError) -> None:
        """A file cannot be played: its transcript is spoken, or it is skipped."""
        utterance = self._find(utterance_id)
        if utterance is None or utterance.finished:
            return
        self._desk.failed(error)
        if utterance.text:
            self._desk.out.append(Synthesize(utterance.id, utterance.text, self._desk.language))
        else:
            self._fail(utterance)

    def give_up_farewell(self) -> None:
        """The last message took too long to make: what there is of it must do."""
        playout = self._desk.playout
        for utterance in playout.queue if playout is not None else ():
            if utterance.farewell and not utterance.finished:
                self._desk.error("speech.timeout", "the last message was not ready in time")
                self._give_up(utterance)

    def _fail(self, utterance: Utterance) -> None:
        utterance.failed = True
        utterance.finish()

    def _give_up(self, utterance: Utterance) -> None:
        self._desk.out.append(CancelUtterance(utterance.id))
        self._fail(utterance)
        if utterance is self._streaming:
            self._streaming = None

    # ---- time

    def advance(self) -> None:
        """Record what has started or ended by now."""
        playout = self._desk.playout
        if playout is not None and playout.queue:
            for event in playout.advance(self._desk.now):
                self._on_play(event)

    def tick(self) -> None:
        """Send the frames that are due, and what follows from them."""
        desk, playout = self._desk, self._desk.playout
        if playout is not None:
            playout.frames(desk.now, desk.out)
            if playout.queue:
                self.advance()
                starving = playout.starving(desk.now, AUDIO_WAIT_S)
                if starving is not None and starving is not self._streaming:
                    desk.error("playout.starved", f"no audio for {AUDIO_WAIT_S:.0f} s")
                    self._give_up(starving)
        if self._completed:
            self._tell_completed()

    def _tell_completed(self) -> None:
        playout = self._desk.playout
        for turn in list(self._completed):
            if playout is None or playout.sent_turn(turn):
                self._completed.remove(turn)
                self._desk.command(TurnCompleted(turn))

    def _on_play(self, event: PlayEvent) -> None:
        if event.reason is None:
            self._started(event.utterance, event.t)
            return
        playout = self._desk.playout
        assert playout is not None
        utterance, heard = event.utterance, event.heard
        if utterance.source is Source.KEYS and event.reason is UtteranceEnd.COMPLETED:
            self._pressed(utterance, event.t)
        seconds = utterance.seconds(heard, playout.format.rate_hz)
        self._record_end(utterance, event.t, event.reason, seconds, utterance.words(heard))

    def _pressed(self, utterance: Utterance, t: float) -> None:
        if self._desk.capabilities.dtmf_out is not DtmfOut.INBAND:
            self._desk.command(SendDtmf(utterance.keys))
        self._desk.record("dtmf_sent", {"digits": utterance.keys}, t)

    def _started(self, utterance: Utterance, t: float) -> None:
        self._desk.record("utterance_started", {"id": utterance.id}, t)
        self._desk.keypad.configure(self.dtmf_policy(utterance.turn))

    def _record_end(
        self, utterance: Utterance, t: float, reason: UtteranceEnd, seconds: float, words: str
    ) -> None:
        fields = {
            "id": utterance.id,
            "reason": reason.value,
            "heard_s": round(seconds, 3),
            "heard_text": words,
            "uri": utterance.uri,
        }
        self._desk.record("utterance_ended", fields, t)
        self._desk.transcript.add(t, Speaker.AGENT, words, utterance.turn)

    # ---- cutting

    def dtmf_policy(self, turn: int) -> DtmfPolicy | None:
        """The keypad settings of a response, if it has any."""
        return self._dtmf[1] if self._dtmf is not None and self._dtmf[0] == turn else None

    def interruptable(self, utterance: Utterance) -> bool:
        """Whether the caller may interrupt this utterance while it sounds.

        Hold music may not be while the turn that brought it is open: there is no answer yet.
        """
        if not self._may_interrupt(utterance.policy):
            return False
        return not (utterance.policy.cancellable and self._desk.turn.is_turn_open(utterance.turn))

    def sounding(self) -> Utterance | None:
        """What the caller hears now."""
        playout = self._desk.playout
        return playout.sounding(self._desk.now) if playout is not None else None

    def cuttable(self) -> list[Utterance]:
        """What an interruption takes: from the sounding one up to the first protected one."""
        playout = self._desk.playout
        if playout is None:
            return []
        taken: list[Utterance] = []
        for utterance in playout.live(self._desk.now):
            if not self.interruptable(utterance):
                break
            taken.append(utterance)
        return taken

    def barge_in(self, by: str, *, by_caller: bool = True) -> HeardPart | None:
        """Stop for the caller (or the runtime); None where nothing may be cut.

        Gives back what was heard of the response. Who calls tells the runtime.
        """
        desk = self._desk
        taken = self.cuttable()
        if not taken or desk.playout is None:
            return None
        ends = [(u, UtteranceEnd.BARGE_IN if u.started else UtteranceEnd.DROPPED) for u in taken]
        # Music of the turn that is void now has nothing left to bridge.
        ends += [
            (u, UtteranceEnd.CANCELLED)
            for u in desk.playout.queue
            if u.policy.cancellable and u not in taken and desk.turn.is_turn_open(u.turn)
        ]
        whole = all(u.said_by(desk.playout.heard(u, desk.now)) for u in taken)
        self._cut(ends, by=by, barge_in=by_caller)
        return HeardPart(desk.transcript.heard_in_turn(taken[0].turn), whole)

    def hold(self) -> bool:
        """Fall silent for a sound of the caller that may be a word; False where nothing may be cut.

        `release` goes on where this stopped; `barge_in` makes it an interruption.
        """
        desk, playout = self._desk, self._desk.playout
        taken = self.cuttable()
        if not taken or playout is None:
            return False
        if playout.held:
            return True
        cut = playout.hold(desk.now)
        if cut.clear:
            desk.out.append(AudioUnheard(cut.heard_until))
            desk.command(Clear())
        desk.record("held", {"ids": [u.id for u in taken]})
        if cut.clear:
            desk.record("cleared", {"unheard_ms": cut.unheard_ms})
        if playout.fading:
            playout.frames(desk.now, desk.out)
        return True

    @property
    def held(self) -> bool:
        """Whether the queue waits for what the caller's sound turns out to be."""
        return self._desk.playout is not None and self._desk.playout.held

    def release(self) -> None:
        """The sound was none that interrupts: go on."""
        playout = self._desk.playout
        if playout is not None and playout.held:
            playout.release()
            self._desk.record("resumed", {"ids": [u.id for u in self.cuttable()]})

    def cancel_music(self) -> None:
        """The agent goes on: everything cancellable stops."""
        playout = self._desk.playout
        if playout is not None and any(u.policy.cancellable for u in playout.queue):
            self._cut([(u, UtteranceEnd.CANCELLED) for u in playout.queue if u.policy.cancellable])

    def drop_interruptable(self) -> None:
        """The gateway takes the word: only protected utterances are still heard."""
        playout = self._desk.playout
        if playout is not None:
            self._cut(
                [
                    (u, UtteranceEnd.CANCELLED if u.started else UtteranceEnd.DROPPED)
                    for u in playout.queue
                    if self._may_interrupt(u.policy) or u.policy.cancellable
                ]
            )

    def forget(self) -> None:
        """The call is over: end what is left. Nobody listens, so the platform is not asked."""
        playout = self._desk.playout
        if playout is not None and playout.queue:
            ends = [(u, UtteranceEnd.DROPPED) for u in playout.queue]
            self._cut(ends, tell_platform=False)

    def _cut(
        self,
        ends: list[tuple[Utterance, UtteranceEnd]],
        *,
        by: str | None = None,
        barge_in: bool = False,
        tell_platform: bool = True,
    ) -> None:
        desk = self._desk
        if not ends or desk.playout is None:
            return
        cut = desk.playout.cut(ends, desk.now, by_caller=by is not None)
        if cut.clear:
            desk.out.append(AudioUnheard(cut.heard_until))
        clear = cut.clear and tell_platform
        if clear:
            desk.command(Clear(barge_in))
        desk.out.extend(CancelUtterance(event.utterance.id) for event in cut.ends)
        if by is not None:
            ids = [u.id for u, reason in ends if reason is not UtteranceEnd.CANCELLED]
            desk.record("barge_in", {"by": by, "cut": ids})
        if clear:
            desk.record("cleared", {"unheard_ms": cut.unheard_ms})
        for event in cut.ends:
            if event.utterance is self._streaming:
                self._streaming = None
            self._on_play(event)
        if tell_platform and desk.playout.fading:
            # At once: a fade that came a frame after the clear would be a click of its own.
            desk.playout.frames(desk.now, desk.out)
