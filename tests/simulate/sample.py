"""A finished call made by hand: greeting, question, hold music, a barge-in, the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gateway.simulate.caller import StepSpan
from gateway.simulate.result import CallLog
from gateway.simulate.scenario import Scenario, parse_scenario

RATE_HZ = 8000

SCENARIO = """
caller:
  - wait: agent_quiet
  - say: Is there a power cut in my street?
  - wait: {event: utterance_started}
  - say: Thank you, that is enough.
expect:
  - heard: "welcome"
  - not_heard: "internal error"
  - event: {kind: utterance_ended, reason: barge_in}
  - ended: completed
"""


def scenario() -> Scenario:
    return parse_scenario(SCENARIO, Path("sample.yaml"))


def _tone(spans: list[tuple[float, float, float]], seconds: float) -> bytes:
    t = np.arange(int(seconds * RATE_HZ)) / RATE_HZ
    samples = np.zeros(len(t))
    for start, end, hz in spans:
        swell = 0.35 + 0.3 * np.sin(2 * np.pi * 3.1 * t)
        loud = (t >= start) & (t < end)
        samples[loud] = (9000 * swell * np.sin(2 * np.pi * hz * t))[loud]
    return samples.round().astype("<i2").tobytes()


def _records() -> list[dict[str, Any]]:
    greeting = "Welcome to Northlight Energy. How can I help you today?"
    music = "audio/hold_music.wav"
    answer = (
        "There is a power cut in your street since nine o'clock. Our engineers expect it "
        "to last until noon, and I can send you a message once the power is back."
    )
    return [
        {"t": 0.0, "kind": "call_started", "channel": "twilio", "call_id": "CA1", "from": "+1"},
        {"t": 0.0, "kind": "runtime_input", "type": "event", "event": "session start"},
        {
            "t": 0.3,
            "kind": "utterance_queued",
            "id": 1,
            "source": "file",
            "text": greeting,
            "uri": "audio/greeting.wav",
            "interruptable": False,
            "cancellable": False,
            "turn": 1,
        },
        {"t": 0.4, "kind": "utterance_started", "id": 1},
        {"t": 0.5, "kind": "runtime_output", "type": "turnCompleted", "turn": 1},
        {
            "t": 3.9,
            "kind": "utterance_ended",
            "id": 1,
            "reason": "completed",
            "heard_s": 3.5,
            "heard_text": greeting,
            "uri": "audio/greeting.wav",
        },
        {"t": 4.5, "kind": "user_speech_started"},
        {"t": 6.4, "kind": "user_speech_ended"},
        {"t": 6.6, "kind": "user_text", "text": "is there a power cut in my street", "final": True},
        {"t": 6.6, "kind": "runtime_input", "type": "text", "text": "is there a power cut"},
        {
            "t": 6.8,
            "kind": "utterance_queued",
            "id": 2,
            "source": "file",
            "text": "",
            "uri": music,
            "interruptable": True,
            "cancellable": True,
            "turn": 2,
        },
        {"t": 6.8, "kind": "runtime_output", "type": "payload", "turn": 2, "payload": {"a": 1}},
        {"t": 6.9, "kind": "utterance_started", "id": 2},
        {
            "t": 10.2,
            "kind": "utterance_ended",
            "id": 2,
            "reason": "cancelled",
            "heard_s": 3.3,
            "heard_text": "",
            "uri": music,
        },
        {
            "t": 10.2,
            "kind": "utterance_queued",
            "id": 3,
            "source": "speech",
            "text": answer,
            "uri": "",
            "interruptable": True,
            "cancellable": False,
            "turn": 2,
        },
        {"t": 10.3, "kind": "utterance_started", "id": 3},
        {"t": 14.1, "kind": "user_speech_started"},
        {"t": 14.1, "kind": "barge_in", "by": "speech", "cut": [3]},
        {"t": 14.1, "kind": "cleared", "unheard_ms": 100},
        {
            "t": 14.1,
            "kind": "utterance_ended",
            "id": 3,
            "reason": "barge_in",
            "heard_s": 3.8,
            "heard_text": "There is a power cut in your street since nine o'clock.",
            "uri": "",
        },
        {"t": 15.3, "kind": "user_speech_ended"},
        {"t": 15.5, "kind": "user_text", "text": "thank you that is enough", "final": True},
        {"t": 15.5, "kind": "runtime_input", "type": "text", "text": "thank you that is enough"},
        {"t": 15.7, "kind": "runtime_output", "type": "endSession", "turn": 3},
        {"t": 16.4, "kind": "call_ended", "reason": "completed"},
    ]


def log() -> CallLog:
    steps = [
        StepSpan(0, "wait", "wait for agent_quiet", 3, 0.0, 4.2),
        StepSpan(1, "say", "say 'Is there a power cut in my street?'", 4, 4.2, 6.1),
        StepSpan(2, "wait", "wait for event utterance_started", 5, 6.1, 13.9),
        StepSpan(3, "say", "say 'Thank you, that is enough.'", 6, 13.9, 15.0),
    ]
    return CallLog(
        scenario=scenario(),
        channel="twilio",
        call_id="CA1",
        timeline=_records(),
        steps=steps,
        missed=(),
        sent=_tone([(4.2, 6.1, 180), (13.9, 15.0, 190)], 16.4),
        heard=_tone([(0.4, 3.9, 230), (6.9, 10.2, 330), (10.3, 14.1, 240)], 16.4),
        rate_hz=RATE_HZ,
    )
