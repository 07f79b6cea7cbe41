"""What speech costs: CPU time of each engine on one core, and of a minute of call.

CPU time rather than wall time, the least of several runs: other work on the machine changes it
little. Synthesis, recognition and turn detection run in worker processes, voice activity in a
thread of the media process.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from gateway.call.profile import VoiceConfig
from gateway.config import Settings
from gateway.speech.choose import choose
from gateway.speech.engines import load_engines
from gateway.speech.silero import SileroModel, Track, advance

RATE_HZ = 8000
SENTENCES = (
    "Thank you for calling, your appointment is at nine thirty.",
    "Your balance is forty two euros and ten cents.",
    "Is there anything else I can help you with today?",
)
# A minute of call: the agent says eight sentences, the caller speaks five times for four seconds,
# pausing twice each time; the line is silent for the rest.
AGENT_SENTENCES = 8
CALLER_TURNS = 5
CALLER_TURN_S = 4.0
PAUSES = 2 * CALLER_TURNS


def cpu_ms(work: Callable[[], object], runs: int = 5) -> float:
    """Least CPU time of a piece of work in milliseconds."""
    least = float("inf")
    for _ in range(runs):
        start = time.process_time()
        work()
        least = min(least, time.process_time() - start)
    return least * 1e3


def voice_activity_us(model: SileroModel, streams: int, pcm: bytes) -> float:
    """CPU microseconds of one window of one stream, `streams` judged together."""
    windows = len(pcm) // 512
    clip = pcm[: windows * 512]

    def judge() -> None:
        tracks = [Track() for _ in range(streams)]
        for start in range(0, len(clip), 512):
            for track in tracks:
                track.pending += clip[start : start + 512]
            advance(model, tracks)

    return cpu_ms(judge) * 1e3 / windows / streams


def measure() -> dict[str, float]:
    """All figures by name; the unit is the end of the name."""
    plan = choose(Settings().speech)
    engines = load_engines(plan)
    voice = VoiceConfig()
    spoken = [engines.synthesise(text, voice, "en-US", RATE_HZ) for text in SENTENCES]
    speech_s = sum(map(len, spoken)) / 2 / RATE_HZ
    all_speech = b"".join(spoken)
    turn = all_speech[: int(CALLER_TURN_S * RATE_HZ) * 2]
    model = SileroModel()
    figures = {
        "synthesis_ms_per_sentence": cpu_ms(
            lambda: [engines.synthesise(text, voice, "en-US", RATE_HZ) for text in SENTENCES]
        )
        / len(SENTENCES),
        "recognition_ms_per_turn": cpu_ms(lambda: engines.recognise(turn, RATE_HZ, "en-US")),
        "turn_detection_ms_per_pause": cpu_ms(lambda: engines.complete(turn, RATE_HZ)),
    }
    figures["synthesis_times_real_time"] = (
        speech_s * 1e3 / (figures["synthesis_ms_per_sentence"] * len(SENTENCES))
    )
    for streams in (1, 16, 64, 256):
        figures[f"voice_activity_{streams}_calls_us_per_window"] = voice_activity_us(
            model, streams, all_speech[: 20 * 512]
        )
    figures["voice_activity_silence_us_per_window"] = voice_activity_us(model, 16, bytes(500 * 512))
    windows = 60 / 0.032
    talking = CALLER_TURNS * CALLER_TURN_S / 60
    figures["worker_ms_per_call_minute"] = (
        AGENT_SENTENCES * figures["synthesis_ms_per_sentence"]
        + CALLER_TURNS * figures["recognition_ms_per_turn"]
        + PAUSES * figures["turn_detection_ms_per_pause"]
    )
    figures["voice_activity_ms_per_call_minute"] = (
        windows
        / 1e3
        * (
            talking * figures["voice_activity_64_calls_us_per_window"]
            + (1 - talking) * figures["voice_activity_silence_us_per_window"]
        )
    )
    figures["calls_per_worker_core"] = 60e3 / figures["worker_ms_per_call_minute"]
    return figures


def main() -> None:
    """Measure and print."""
    figures = measure()
    width = max(map(len, figures))
    for name, value in figures.items():
        print(f"{name.replace('_', ' '):<{width}}  {value:10.1f}")


if __name__ == "__main__":
    main()
