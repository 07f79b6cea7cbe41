"""How soon speech in café noise interrupts the agent, and how often the noise alone does.

Forty sentences of several voices, each in noise at 10 dB, over a mu-law line, while the agent
speaks all the time; then minutes of the noise alone. The noise is babble of eight voices with pink
noise. The engine, the voice detector and the default settings are those of a live call; time is
virtual, so what a live call adds between a frame and its verdict is added as `LIVE_S`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gateway import demo
from gateway.agent.app import read_app
from gateway.audio import g711
from gateway.audio.formats import MULAW_8K, Encoding, Pcm
from gateway.call import events
from gateway.call.machine import CallMachine
from gateway.call.profile import VoiceConfig
from gateway.channels.base import Started
from gateway.channels.twilio import CAPABILITIES
from gateway.config import Settings
from gateway.runtime.profile import call_profile
from gateway.speech.choose import choose
from gateway.speech.engines import load_engines
from gateway.speech.silero import InlineSilero, SileroModel
from gateway.speech.vad_thread import GATHER_S

RATE_HZ = 8000
FRAME = RATE_HZ // 50
SNR_DB = 10.0
SPEECH_DBFS = -22.0
LEAD_S, TAIL_S = 2.0, 0.5
NOISE_MINUTES = 5
BAR_S, BAR_SHARE, BAR_FALSE = 0.3, 0.95, 1.0
LIVE_S = GATHER_S + 0.005
"""The voice detector's thread gathers windows of all calls for so long, and takes its time."""

SENTENCES = (
    "Stop, please.",
    "Wait a moment.",
    "No, that is not what I asked.",
    "Can I speak to a person?",
    "Yes, that is right.",
    "I would like to book an engineer.",
    "What is my balance?",
    "Hold on, I need a pen.",
    "My number is four seven one one.",
    "Sorry, could you say that again?",
)
PITCHES = (0.82, 0.92, 1.06, 1.18)
BABBLE = (0.78, 0.85, 0.93, 1.0, 1.08, 1.15, 1.22, 1.3)

Samples = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Figures:
    """What came out. `delays_s`: of the sentences that interrupted, from their first sound."""

    delays_s: tuple[float, ...]
    sentences: int
    false_alarms: int
    noise_minutes: float

    @property
    def in_time(self) -> float:
        """Share of all sentences that interrupted within the bar."""
        return sum(delay <= BAR_S for delay in self.delays_s) / self.sentences

    @property
    def false_a_minute(self) -> float:
        """Interruptions by noise alone."""
        return self.false_alarms / self.noise_minutes

    @property
    def good(self) -> bool:
        """Whether both bars hold."""
        return self.in_time >= BAR_SHARE and self.false_a_minute <= BAR_FALSE


# ---- sounds


class Voices:
    """One synthesiser at several pitches: played faster or slower, as other throats would be."""

    def __init__(self) -> None:
        self._engines = load_engines(choose(Settings().speech))

    def say(self, text: str, pitch: float) -> Samples:
        """Speech at RATE_HZ without the silence around it."""
        rate_hz = round(RATE_HZ * pitch)
        pcm = self._engines.synthesise(text, VoiceConfig(), "en-US", rate_hz)
        samples = np.frombuffer(pcm, "<i2").astype(float)
        loud = np.flatnonzero(np.abs(samples) > 0.03 * np.abs(samples).max())
        return samples[loud[0] : loud[-1]]


def level(samples: Samples, dbfs: float) -> Samples:
    """Scaled so that its loud parts have this RMS level."""
    frames = samples[: len(samples) // FRAME * FRAME].reshape(-1, FRAME)
    rms = np.sqrt((frames**2).mean(1))
    active = np.sqrt(np.mean(rms[rms > 0.1 * rms.max()] ** 2))
    return np.asarray(samples * (32768 * 10 ** (dbfs / 20) / active))


def pink(count: int, random: np.random.Generator) -> Samples:
    """Noise that falls by 3 dB an octave."""
    hz = np.maximum(np.fft.rfftfreq(count, 1 / RATE_HZ), 20)
    phases = random.uniform(0, 2 * np.pi, len(hz))
    return np.asarray(np.fft.irfft(np.exp(1j * phases) / np.sqrt(hz), count))


def cafe(voices: Voices, seconds: float, random: np.random.Generator) -> Samples:
    """Babble of eight voices, none louder than the others, and pink noise 3 dB below it."""
    count = round(seconds * RATE_HZ)
    babble = np.zeros(count)
    for pitch in BABBLE:
        clips = [level(voices.say(text, pitch), -20) for text in SENTENCES]
        at = int(random.integers(0, RATE_HZ))
        while at < count:
            clip = clips[int(random.integers(len(clips)))]
            piece = clip[: count - at]
            babble[at : at + len(piece)] += piece
            at += len(clip) + int(random.integers(RATE_HZ // 10, RATE_HZ))
    noise = level(babble, 0.0) + level(pink(count, random), -3.0)
    return level(noise, SPEECH_DBFS - SNR_DB)


# ---- a call


class Line:
    """A caller on the engine while the agent talks without end."""

    def __init__(self, silero: SileroModel) -> None:
        profile = call_profile(read_app(demo.APP_PATH), Settings())
        self.now = 0.0
        self.cuts: list[float] = []
        self._turn = 0
        self._machine = CallMachine(profile, CAPABILITIES, 0.0)
        self._vad = InlineSilero(silero).open(self._window)
        started = Started("bench", in_format=MULAW_8K, out_format=MULAW_8K)
        self._do(self._machine.started(started, 0.0))
        self._do(self._machine.runtime_opened(0.0))
        self._talk()

    def _talk(self) -> None:
        self._turn += 1
        self._do(self._machine.runtime(events.RuntimeText("On and on.", self._turn), self.now))
        self._do(self._machine.runtime(events.RuntimeTurnCompleted(self._turn), self.now))

    def _window(self, probability: float, position_s: float) -> None:
        self._do(self._machine.vad(probability, position_s, self.now))

    def _do(self, actions: list[events.Action]) -> None:
        for action in actions:
            if isinstance(action, events.Synthesize):
                pcm: Pcm = (3000).to_bytes(2, "little") * (60 * RATE_HZ)
                number = action.utterance_id
                self._do(self._machine.speech_audio(number, action.text, pcm, self.now))
                self._do(self._machine.speech_finished(number, self.now))
            elif isinstance(action, events.Record) and action.kind == "barge_in":
                self.cuts.append(action.t)

    def hear(self, samples: Samples) -> None:
        """Caller audio over the line; the agent begins anew a second after it was interrupted."""
        pcm = np.clip(np.rint(samples), -32768, 32767).astype("<i2").tobytes()
        wire = g711.encode(pcm, Encoding.MULAW)
        for start in range(0, len(wire) - FRAME + 1, FRAME):
            self.now += 0.02
            frame = g711.decode(wire[start : start + FRAME], Encoding.MULAW)
            self._do(self._machine.audio(frame, self.now))
            self._vad.feed(frame)
            self._do(self._machine.tick(self.now))
            if self.cuts and 1.0 <= self.now - self.cuts[-1] < 1.02:
                self._talk()


def measure(sentences: int = 40, noise_minutes: float = NOISE_MINUTES) -> Figures:
    """All figures."""
    random = np.random.Generator(np.random.PCG64(11))
    voices, silero = Voices(), SileroModel()
    noise = cafe(voices, 60.0 * noise_minutes, random)
    delays: list[float] = []
    cases = [(text, pitch) for text in SENTENCES for pitch in PITCHES][:sentences]
    for text, pitch in cases:
        clip = level(voices.say(text, pitch), SPEECH_DBFS)
        lead = round(LEAD_S * RATE_HZ) // FRAME * FRAME + int(random.integers(FRAME))
        count = lead + len(clip) + round(TAIL_S * RATE_HZ)
        start = int(random.integers(0, len(noise) - count))
        sound = noise[start : start + count].copy()
        sound[lead : lead + len(clip)] += clip
        line = Line(silero)
        line.hear(sound)
        onset = lead / RATE_HZ
        cut = next((at for at in line.cuts if at >= onset), None)
        if cut is not None:
            delays.append(cut - onset + LIVE_S)
    line = Line(silero)
    line.hear(noise)
    return Figures(tuple(delays), len(cases), len(line.cuts), noise_minutes)


def main() -> None:
    """Measure and print."""
    figures = measure()
    delays_ms = np.array(figures.delays_s) * 1e3
    heard = len(figures.delays_s)
    print(f"speech at {SNR_DB:.0f} dB in café noise: {heard} of {figures.sentences} interrupt")
    p50, p95 = np.quantile(delays_ms, [0.5, 0.95])
    print(f"from its first sound to the clear: p50 {p50:.0f} ms, p95 {p95:.0f} ms")
    print(f"within {BAR_S * 1e3:.0f} ms: {figures.in_time:.1%} (bar {BAR_SHARE:.0%})")
    print(f"noise alone: {figures.false_a_minute:.1f} a minute (bar {BAR_FALSE:.0f})")
    print("within the bars" if figures.good else "BELOW the bars")


if __name__ == "__main__":
    main()
