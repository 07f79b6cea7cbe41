"""What the parts of one call share: its settings, its state, and the list of actions being made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.call.dtmf import Keypad
from gateway.call.events import Action, InputType, Record, ToChannel, ToRuntime
from gateway.call.inactivity import Inactivity
from gateway.call.life import Life
from gateway.call.listening import Listening
from gateway.call.playout import Playout
from gateway.call.profile import CallProfile
from gateway.call.transcript import Transcript
from gateway.call.turn import Turn
from gateway.channels.base import ChannelCommand, Listen, Started
from gateway.channels.capabilities import Capabilities
from gateway.errors import GatewayError

MAX_HELD = 256
"""Inputs kept for a runtime that is not open yet; more are refused with an error record."""


class Desk:
    """The state of one call. `now` never runs backwards."""

    def __init__(self, profile: CallProfile, capabilities: Capabilities, now: float) -> None:
        self.profile = profile
        self.capabilities = capabilities
        self.now = now
        self.out: list[Action] = []
        self.life = Life.IDLE
        self.started = Started(call_id="")
        self.language = profile.language
        self.on_hold = False
        """The platform holds the caller: silence means nothing."""
        self.deaf = False
        """The agent does not want to hear the caller: nothing of it is understood or kept."""
        self.playout: Playout | None = None
        self.listening: Listening | None = None
        self.turn = Turn(profile.turn_timeout_s)
        self.keypad = Keypad(profile)
        self.inactivity = Inactivity(profile.inactivity_s, profile.noise_limit_s)
        self.transcript = Transcript()
        self._runtime_open = False
        self._held: list[ToRuntime] = []
        self._last_record = now

    @property
    def conversing(self) -> bool:
        """Whether what the caller says still goes to the agent."""
        return self.life is Life.TALKING or self.life is Life.OPENING

    def record(self, kind: str, fields: Mapping[str, Any], t: float | None = None) -> None:
        """Add a line to the timeline; lines never go back in time."""
        t = self._last_record = max(self._last_record, self.now if t is None else t)
        self.out.append(Record(t, kind, fields))

    def record_start(self) -> None:
        """Add the first line of the timeline."""
        event = self.started
        formats = [
            f"{f.encoding.value}/{f.rate_hz}" if f is not None else None
            for f in (event.in_format, event.out_format)
        ]
        self.record(
            "call_started",
            {
                "channel": self.capabilities.dialect,
                "call_id": event.call_id,
                "from": event.from_,
                "to": event.to,
                "language": self.language,
                "in_format": formats[0],
                "out_format": formats[1],
            },
        )

    def error(self, code: str, message: str, said: str = "") -> None:
        """Add an error to the timeline. `said`: others' words about it, which no log repeats."""
        self.record("error", {"code": code, "message": message, **({"said": said} if said else {})})

    def failed(self, error: GatewayError) -> None:
        """Add to the timeline what has failed around the engine."""
        self.record("error", error.fields())

    def command(self, command: ChannelCommand) -> None:
        """Tell the platform."""
        self.out.append(ToChannel(command))

    def listen(self, wanted: bool) -> None:
        """Whether the caller's audio is wanted from here on."""
        if wanted is self.deaf:
            self.deaf = not wanted
            self.record("listening", {"on": wanted})
            self.command(Listen(wanted))

    # ---- the runtime's inputs

    def open_runtime(self) -> None:
        """The runtime takes input: give it what was kept, in order."""
        self._runtime_open = True
        self.out.extend(self._held)
        self._held.clear()

    def say_text(self, text: str) -> None:
        """Words, or a platform text, that complete the caller's turn."""
        self._input(ToRuntime(InputType.TEXT, text=text), {"text": text})
        self.turn.asked(self.now)

    def interrupt(self, text: str) -> None:
        """Open the caller's turn before its words are known; cancels the agent's turn."""
        fields = {"text": text, "will_continue": True}
        self._input(ToRuntime(InputType.TEXT, text=text, will_continue=True), fields)

    def pass_fragment(self, text: str) -> None:
        """A part of a text that the client types; more follows."""
        self.interrupt(text)
        self.turn.caller_open = True

    def say_digits(self, digits: str) -> None:
        """Digits that the caller entered."""
        self.record("dtmf", {"digits": digits})
        self._input(ToRuntime(InputType.DTMF, text=digits), {"digits": digits})
        self.turn.asked(self.now)

    def say_event(self, name: str) -> None:
        """A named event."""
        self._input(ToRuntime(InputType.EVENT, text=name), {"event": name})
        self.turn.asked(self.now)

    def say_variables(self, variables: Mapping[str, Any]) -> None:
        """Session variables; nothing is answered. Only their names are recorded."""
        self._input(
            ToRuntime(InputType.VARIABLES, data=variables), {"variables": sorted(variables)}
        )

    def say_tool_responses(self, items: Sequence[Mapping[str, Any]]) -> None:
        """What the client's functions returned."""
        self._input(ToRuntime(InputType.TOOL_RESPONSES, items=items), {})
        # The turn that called them goes on, where it is still open.
        if not self.turn.speaking:
            self.turn.asked(self.now)

    def _input(self, item: ToRuntime, fields: Mapping[str, Any]) -> None:
        if not self._runtime_open and len(self._held) >= MAX_HELD:
            self.error("call.early_input", "too much input before the runtime was open")
            return
        self.record("runtime_input", {"type": item.type.value, **fields})
        (self.out if self._runtime_open else self._held).append(item)
