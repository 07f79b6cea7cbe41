"""The timeline's lines on what the runtime says."""

from __future__ import annotations

from typing import Any

from gateway.call.desk import Desk
from gateway.call.events import (
    RuntimeAudio,
    RuntimeEndSession,
    RuntimeInterruption,
    RuntimeOutput,
    RuntimePayload,
    RuntimeText,
    RuntimeToolCalls,
    RuntimeTurnCompleted,
)


class OutputLog:
    """Writes one `runtime_output` line for each output, and one for a stretch of audio."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._audio_noted: tuple[int, bool] | None = None

    def note(self, output: RuntimeOutput, current: bool = True) -> None:
        """Note an output; not `current`: it came too late, from an interrupted turn."""
        match output:
            case RuntimeText(text, turn):
                self._line("text", turn, current, text=text)
            case RuntimePayload(payload, turn):
                self._line("payload", turn, current, payload=dict(payload))
            case RuntimeToolCalls(_, turn):
                self._line("toolCalls", turn, current)
            case RuntimeTurnCompleted(turn):
                self._line("turnCompleted", turn, current)
            case RuntimeEndSession(metadata):
                self._line("endSession", None, current, payload=dict(metadata))
            case RuntimeInterruption():
                self._line("interruptionSignal", None, current)
            case RuntimeAudio(_, turn):
                if self._audio_noted != (turn, current):
                    self._audio_noted = (turn, current)
                    self._line("audio", turn, current)

    def _line(self, kind: str, turn: int | None, current: bool, **fields: object) -> None:
        line: dict[str, Any] = {"type": kind, **fields}
        if turn is not None:
            line["turn"] = turn
        if not current:
            line["dropped"] = True
        self._desk.record("runtime_output", line)
