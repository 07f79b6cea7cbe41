"""The caller's side of a call: speech, keys and typed text, and when they interrupt the agent."""

from __future__ import annotations

from collections.abc import Iterable

from gateway.bidi import NOISE_TEXT, inactivity_text, interrupted_text
from gateway.call import wording
from gateway.call.desk import Desk
from gateway.call.dtmf import KEYS
from gateway.call.events import Recognise
from gateway.call.life import Life
from gateway.call.listening import (
    Ask,
    ListenEvent,
    Listening,
    Partial,
    Segment,
    SpeechEnded,
    SpeechStarted,
    Understood,
)
from gateway.call.profile import BargeIn, ProtectedKeys
from gateway.call.speaking import Speaking
from gateway.call.transcript import Speaker
from gateway.call.utterance import Utterance
from gateway.channels.base import UserTranscript


def _has_words(text: str) -> bool:
    return any(character.isalnum() for character in text)


class Attending:
    """Takes what the caller does and gives it to the runtime."""

    def __init__(self, desk: Desk, speaking: Speaking) -> None:
        self._desk = desk
        self._speaking = speaking
        self._held: tuple[Segment, float] | None = None
        """The sound for which the agent fell silent, and since when."""
        self._kept: list[str] = []
        """Words that were too few to interrupt; they are given when the agent has finished."""
        self._told = ""
        """What the runtime itself understood of the caller and has not answered yet."""

    # ---- interruptions

    def _barge_in(self, by: str) -> bool:
        heard = self._speaking.barge_in(by)
        if heard is None:
            return False
        desk = self._desk
        desk.turn.interrupted(caller=True)
        aware = desk.profile.barge_in_awareness and not heard.whole
        desk.interrupt(interrupted_text(heard.words) if aware else "")
        self._held = None
        return True

    def interrupted_by_runtime(self, barge_in: bool) -> None:
        """The runtime says: stop what you play. It knows of the cut, so it is not told.

        An audio runtime says so also where it goes on itself with other audio in the same turn.
        """
        cut = self._speaking.barge_in("runtime", by_caller=barge_in)
        if self._desk.profile.audio_runtime:
            # What it made before it heard the caller may still be under way, also where all of it
            # that has come was heard.
            void = barge_in and (cut is not None or not self._protected())
        else:
            void = cut is not None
        if void:
            self._desk.turn.interrupted(caller=False)

    # ---- a runtime that listens itself

    def told(self, text: str) -> None:
        """What it understood of the caller in this turn so far."""
        self._told = text
        if text:
            self._transcribe(text, final=False)

    def answered(self) -> None:
        """It goes on to something else: what it understood is final."""
        text, self._told = self._told, ""
        if text:
            self._desk.record("user_text", {"text": text, "final": True})
            self._desk.transcript.add(self._desk.now, Speaker.CALLER, text, self._desk.turn.last)

    def _protected(self) -> bool:
        """Whether what sounds now may not be interrupted."""
        sounding = self._speaking.sounding()
        return sounding is not None and not self._speaking.interruptable(sounding)

    # ---- speech

    def window(self, listening: Listening, probability: float, position_s: float) -> None:
        """One window of voice activity."""
        guarded = listening.segment is None and self._speaking.sounding() is not None
        self.handle(listening.window(probability, position_s, self._desk.now, guarded))
        if listening.segment is not None:
            self.reconsider()

    def handle(self, events: Iterable[ListenEvent]) -> None:
        """Act on what listening found, one event after the other."""
        for event in events:
            match event:
                case SpeechStarted(segment):
                    self._desk.record("user_speech_started", {})
                    self._judge(segment)
                case SpeechEnded():
                    self._desk.record("user_speech_ended", {})
                case Ask():
                    if self._desk.conversing:
                        self._ask(event)
                case Partial(text):
                    if self._desk.conversing:
                        self._transcribe(text, final=False)
                        self._by_words(text)
                case Understood(segment, text):
                    self._understood(segment, text)

    def reconsider(self) -> None:
        """Speech that was ignored counts after all once it goes on beyond the protected audio."""
        listening = self._desk.listening
        if listening is not None and listening.speaking:
            segment = listening.segment
            if segment is not None and not segment.counts:
                self._judge(segment)

    def _judge(self, segment: Segment) -> None:
        """Decide whether speech that is going on counts, and whether it interrupts."""
        desk = self._desk
        if not desk.conversing or self._protected():
            return
        strategy = desk.profile.barge_in
        segment.over_agent = self._speaking.sounding() is not None
        if not strategy.by_speech:
            segment.counts = not segment.over_agent
            return
        segment.counts = True
        if not strategy.by_voice:
            segment.watched = segment.over_agent
        elif desk.profile.resume_after_noise and self._speaking.hold():
            segment.watched = True
            self._held = (segment, desk.now)
        else:
            segment.barged = self._barge_in("speech")

    def _by_words(self, text: str) -> None:
        """Words of the speech that is going on: do they interrupt?"""
        desk = self._desk
        segment = desk.listening.segment if desk.listening is not None else None
        if segment is None or not (desk.profile.barge_in.by_words or self._speaking.held):
            return
        if self._interrupting(text) and not self._protected():
            segment.barged = self._barge_in("speech") or segment.barged

    def _interrupting(self, text: str) -> bool:
        """Whether these words are enough to interrupt."""
        profile = self._desk.profile
        least = profile.barge_in_words if profile.barge_in is BargeIn.WORDS else 1
        return wording.count_words(text) >= least and not self._attention(text)

    def _attention(self, text: str) -> bool:
        """Whether they only show that the caller listens."""
        return wording.is_back_channel(text, self._desk.language, self._desk.profile.back_channel)

    def words(self, text: str, start_s: float, end_s: float) -> None:
        """Words that a streaming recogniser hears while they are said: they interrupt."""
        desk = self._desk
        if desk.listening is None or not desk.conversing or not _has_words(text):
            return
        self.handle(desk.listening.words(text, start_s, end_s, desk.now))
        segment = desk.listening.segment
        if segment is None:
            return
        if not segment.counts:
            self._judge(segment)
            if segment.counts:
                self._by_words(text)

    def _ask(self, ask: Ask) -> None:
        listening = self._desk.listening
        assert listening is not None
        self._desk.out.append(
            Recognise(
                ask.ask_id,
                ask.pcm,
                listening.rate_hz,
                self._desk.language,
                ask.ask_complete,
                ask.start_s,
                ask.end_s,
            )
        )

    def _understood(self, segment: Segment, text: str) -> None:
        desk = self._desk
        held = self._held is not None and self._held[0] is segment
        if not desk.conversing:
            if held:
                self._go_on()
            return
        if not _has_words(text):
            if held:
                self._go_on()
            elif segment.barged and desk.turn.caller_open:
                desk.say_text(NOISE_TEXT)
            return
        self._transcribe(text, final=True)
        if segment.over_agent and not segment.barged and self._agent_goes_on(text):
            if held:
                self._go_on()
            return
        desk.transcript.add(desk.now, Speaker.CALLER, text, desk.turn.last)
        if desk.profile.barge_in.by_speech:
            # Words given into an answer that began meanwhile make that answer out of date.
            self._barge_in("speech")
        self._say(text)

    def _agent_goes_on(self, text: str) -> bool:
        """Whether the agent keeps the word: it still speaks, and these words do not interrupt."""
        if self._speaking.sounding() is None or self._interrupting(text):
            return False
        if not self._attention(text):
            self._kept.append(text)
            self._desk.transcript.add(self._desk.now, Speaker.CALLER, text, self._desk.turn.last)
        return True

    def _say(self, text: str) -> None:
        """Give the agent the caller's words, those kept back before them first."""
        self._desk.say_text(" ".join([*self._kept, text]))
        self._kept.clear()

    def _caller_talks(self) -> bool:
        listening = self._desk.listening
        return listening is not None and listening.pending

    def _go_on(self) -> None:
        self._held = None
        self._speaking.release()

    def _transcribe(self, text: str, *, final: bool) -> None:
        self._desk.record("user_text", {"text": text, "final": final})
        if self._desk.capabilities.agent_messages:
            self._desk.command(UserTranscript(text))

    # ---- keys and text

    def keys(self, keys: str) -> None:
        """Keys were pressed."""
        desk = self._desk
        if not desk.conversing or desk.profile.disable_dtmf:
            return
        if desk.profile.audio_runtime or desk.profile.single_keys:
            self._pass_keys(keys)
            return
        sounding = self._speaking.sounding()
        if sounding is not None and not self._speaking.interruptable(sounding):
            if not self._keeps_keys(sounding):
                return
            _, done = desk.keypad.press(keys, desk.now)
        else:
            new, done = desk.keypad.press(keys, desk.now)
            if new and desk.profile.barge_in is not BargeIn.OFF:
                self._barge_in("dtmf")
        for digits in done:
            desk.say_digits(digits)

    def _pass_keys(self, keys: str) -> None:
        """Give each key to a runtime that collects them itself."""
        desk = self._desk
        if not desk.profile.audio_runtime and self._protected():
            return
        new, _ = desk.keypad.press(keys, desk.now)
        if not new:
            return
        desk.keypad.forget()
        if not desk.profile.audio_runtime and desk.profile.barge_in is not BargeIn.OFF:
            # Else it says itself what is cut.
            self._barge_in("dtmf")
        for key in keys.upper():
            if key in KEYS:
                desk.say_digits(key)

    def _keeps_keys(self, sounding: Utterance) -> bool:
        """Whether keys count that are pressed under this protected utterance."""
        setting = self._desk.profile.keys_under_protection
        if setting is not ProtectedKeys.AUTO:
            return setting is ProtectedKeys.KEEP
        policy = self._speaking.dtmf_policy(sounding.turn)
        return policy is not None and policy.enabled

    def text(self, text: str, will_continue: bool) -> None:
        """The client typed; under protected audio that is ignored like speech."""
        desk = self._desk
        if not desk.conversing or self._protected():
            return
        self._barge_in("speech")
        if will_continue:
            desk.pass_fragment(text)
            return
        if text:
            desk.record("user_text", {"text": text, "final": True})
            desk.transcript.add(desk.now, Speaker.CALLER, text, desk.turn.last)
        desk.say_text(text)

    # ---- time

    def tick(self) -> None:
        """Time-outs of keys and recogniser, and the silence clock."""
        desk = self._desk
        listening = desk.listening
        if listening is not None:
            self.handle(listening.poll(desk.now))
        if self._held is not None and desk.now >= self._held[1] + desk.profile.resume_wait_s:
            self._go_on()
        if not desk.conversing:
            return
        if listening is not None and listening.segment is not None:
            self.reconsider()
        if self._kept and not self._caller_talks() and self._speaking.sounding() is None:
            self._say(self._kept.pop())
        digits = desk.keypad.expired(desk.now)
        if digits is not None:
            desk.say_digits(digits)
        if listening is not None and desk.inactivity.fires(
            self._silent(), listening.pending, desk.now
        ):
            seconds = desk.inactivity.seconds
            desk.record("inactivity", {"seconds": seconds})
            desk.say_text(inactivity_text(seconds))

    def _silent(self) -> bool:
        desk, turn = self._desk, self._desk.turn
        return (
            desk.life is Life.TALKING
            and turn.any_completed
            and not turn.is_open
            and not turn.caller_open
            and not desk.on_hold
            and (desk.playout is None or desk.playout.idle)
            and not desk.keypad.collecting
        )
