"""The built-in ambient sounds, made of noise, tones and little events; nothing is recorded.

Each is a loop of twelve seconds with no seam: noise is shaped on a circle (by its spectrum), and
an event that begins before the end goes on at the start. All have the same level, `LEVEL_DBFS`,
whatever the rate, and the same seed gives the same samples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from gateway.audio.formats import Pcm
from gateway.audio.limiting import limit

SECONDS = 12
MADE_AT_HZ = 16000
"""Highest rate that they are made at; they hold nothing that a higher one would show."""
LEVEL_DBFS = -42.0
"""Root mean square level of every built-in sound at 0 dB of gain."""

Samples = NDArray[np.float64]
Shape = Callable[[Samples], Samples]


class Scene:
    """A circle of samples that sounds are put on. Times in seconds, levels relative."""

    def __init__(self, seed: int, rate_hz: int) -> None:
        self.rate_hz = rate_hz
        self.count = SECONDS * rate_hz
        self.random = np.random.Generator(np.random.PCG64(seed))
        self.samples: Samples = np.zeros(self.count)

    # ---- steady sounds

    def noise(self, level: float, shape: Shape) -> Samples:
        """Noise whose spectrum follows `shape` (Hz to amplitude), at this RMS level; not added."""
        hz = np.fft.rfftfreq(self.count, 1 / self.rate_hz)
        # Phases are drawn for the telephone band first, so that each rate has the same ones.
        phases = self.random.uniform(0, 2 * np.pi, len(hz))
        # A telephone passes little below 200 Hz: energy there would only cost level.
        hz = np.maximum(hz, 1)
        amplitude = np.where(hz < 0.45 * self.rate_hz, shape(hz) / (1 + (150 / hz) ** 4), 0)
        made = np.fft.irfft(amplitude * np.exp(1j * phases), self.count)
        made *= level / max(1e-12, float(np.sqrt(np.mean(made * made))))
        return np.asarray(made)

    def hiss(self, level: float, shape: Shape, swell: float = 0.0, swells: int = 1) -> None:
        """Add noise that swells (0: steady, 1: to silence and back) so often in the loop."""
        circle = np.arange(self.count) * (2 * np.pi / self.count)
        wave = np.sin(swells * circle) + 0.5 * np.sin((swells + 2) * circle + 1.0)
        self.samples += self.noise(level, shape) * (1 + swell * wave / 1.5)

    def tone(self, hz: float, level: float, wobble: float = 0.0) -> None:
        """Add a tone; its pitch is moved to a whole number of cycles, so the loop closes."""
        cycles = round(hz * SECONDS)
        at = np.arange(self.count) / self.count
        turn = 2 * np.pi * cycles * at + wobble * np.sin(2 * np.pi * 5 * at)
        self.samples += level * np.sqrt(2) * np.sin(turn)

    # ---- events

    def put(self, at_s: float, sound: Samples) -> None:
        """Add an event; what reaches beyond the end goes on at the start."""
        start = round(at_s * self.rate_hz) % self.count
        head = sound[: self.count - start]
        self.samples[start : start + len(head)] += head
        rest = sound[len(head) : self.count]
        self.samples[: len(rest)] += rest

    def times(self, a_second: float, least_gap_s: float = 0.0) -> list[float]:
        """Random moments, so many a second on average."""
        found: list[float] = []
        for at in np.sort(self.random.uniform(0, SECONDS, round(a_second * SECONDS))):
            if not found or at - found[-1] >= least_gap_s:
                found.append(float(at))
        return found

    def tap(self, level: float, body_hz: float, edge_hz: float, length_s: float) -> Samples:
        """A knock: a burst of noise around `edge_hz` on a dull body."""
        t = np.arange(round(length_s * self.rate_hz)) / self.rate_hz
        edge = self.random.normal(size=len(t)) * np.sin(2 * np.pi * edge_hz * t)
        body = np.sin(2 * np.pi * body_hz * t)
        made = (edge * np.exp(-t / (length_s / 8)) + body * np.exp(-t / (length_s / 4))) * level
        return np.asarray(made * np.minimum(1, t * 2000))

    def ring(self, level: float, parts_hz: tuple[float, ...], length_s: float) -> Samples:
        """A struck thing: tones that die away."""
        t = np.arange(round(length_s * self.rate_hz)) / self.rate_hz
        made = np.zeros(len(t))
        for number, hz in enumerate(parts_hz):
            if hz < 0.45 * self.rate_hz:
                made += np.sin(2 * np.pi * hz * t) * np.exp(-t * (4 + 3 * number) / length_s)
        edges = np.minimum(1, np.minimum(t * 1000, (t[-1] - t) * 200 + 1e-9))
        return np.asarray(made * level * edges)

    def syllable(self, level: float, pitch_hz: float) -> Samples:
        """A voiced sound without a meaning: harmonics under three formants."""
        length_s = self.random.uniform(0.1, 0.26)
        t = np.arange(round(length_s * self.rate_hz)) / self.rate_hz
        glide = pitch_hz * (1 + self.random.uniform(-0.15, 0.15) * t / length_s)
        turn = 2 * np.pi * np.cumsum(glide) / self.rate_hz
        formants = [self.random.uniform(*band) for band in ((300, 800), (900, 2200), (2300, 3000))]
        made = np.zeros(len(t))
        for number in range(1, int(3400 / pitch_hz)):
            hz = number * pitch_hz
            weight = sum(
                share / (1 + ((hz - formant) / 120) ** 2)
                for share, formant in zip((1.0, 0.5, 0.2), formants, strict=True)
            )
            made += weight * np.sin(number * turn + number)
        return np.asarray(made * np.hanning(len(t)) * level)

    def babble(self, voices: int, level: float) -> None:
        """People who talk at some distance: sentences of syllables, with pauses."""
        for voice in range(voices):
            pitch_hz = 95 + 130 * ((voice * 0.618) % 1)
            near = level * self.random.uniform(0.5, 1.0)
            at = self.random.uniform(0, 2)
            end = at + SECONDS - 0.5
            while at < end:
                for _ in range(int(self.random.integers(4, 14))):
                    self.put(at, self.syllable(near, pitch_hz * self.random.uniform(0.85, 1.2)))
                    at += self.random.uniform(0.14, 0.24)
                at += self.random.uniform(0.3, 1.2)

    def echo(self, delay_s: float, share: float) -> None:
        """Let everything so far come back from the walls."""
        dry = self.samples.copy()
        for number in range(1, 5):
            shift = round(delay_s * number * (1 + 0.13 * number) * self.rate_hz)
            self.samples += np.roll(dry, shift) * share**number

    def typing(self, level: float, a_second: float, body_hz: float, edge_hz: float) -> None:
        """Runs of key strokes, with pauses for thought."""
        at = 0.3
        while at < SECONDS - 0.5:
            for _ in range(int(self.random.integers(5, 16))):
                strength = level * self.random.uniform(0.6, 1.0)
                self.put(at, self.tap(strength, body_hz, edge_hz, 0.05))
                self.put(at + 0.07, self.tap(strength * 0.35, body_hz, edge_hz * 1.2, 0.03))
                at += self.random.uniform(0.6, 1.6) / a_second
            at += self.random.uniform(0.5, 1.4)


# ---- spectra: amplitude by frequency


def _falling(power: float) -> Shape:
    return lambda hz: hz**-power


def _band(low_hz: float, high_hz: float) -> Shape:
    return lambda hz: 1 / (1 + (low_hz / hz) ** 4) / (1 + (hz / high_hz) ** 4)


# ---- the sounds


def _coffee_shop(scene: Scene) -> None:
    scene.babble(7, 0.8)
    scene.echo(0.041, 0.35)
    scene.hiss(0.12, _falling(0.7))
    for at in scene.times(0.8, 0.4):
        pitch = scene.random.uniform(1900, 3100)
        scene.put(at, scene.ring(0.5, (pitch, pitch * 1.34), 0.25))
    scene.put(7.0, scene.noise(0.5, _band(1500, 3400))[: 2 * scene.rate_hz] * _swell(scene, 2))


def _swell(scene: Scene, seconds: int) -> Samples:
    return np.hanning(seconds * scene.rate_hz)


def _keyboard(scene: Scene) -> None:
    scene.hiss(0.05, _falling(0.8))
    scene.typing(1.0, 6.0, 320, 2400)


def _keypad(scene: Scene) -> None:
    scene.hiss(0.05, _falling(0.9))
    scene.typing(1.0, 1.6, 180, 900)


def _hum(scene: Scene) -> None:
    for hz, level in ((60, 0.6), (120, 1.0), (180, 0.5), (240, 0.4), (360, 0.2), (480, 0.1)):
        scene.tone(hz, level)
    scene.hiss(0.12, _falling(0.8))


def _air_conditioner(scene: Scene) -> None:
    scene.hiss(1.0, _falling(0.9), swell=0.08, swells=3)
    scene.hiss(0.5, _band(300, 900))
    scene.tone(118, 0.12, wobble=0.4)
    scene.tone(236, 0.06, wobble=0.4)


def _office(scene: Scene, voices: int, typing: float, ring: bool, printer: bool) -> None:
    scene.hiss(0.3, _falling(0.8), swell=0.1)
    if voices:
        scene.babble(voices, 0.6)
        scene.echo(0.03, 0.3)
    if typing:
        scene.typing(typing, 5.0, 300, 2200)
    if ring:
        for start in (3.0, 6.0):
            for pulse in range(10):
                scene.put(start + pulse * 0.05, scene.ring(0.16, (1320, 1056), 0.08))
    if printer:
        for stroke in range(28):
            at = 2.0 + stroke * 0.22
            piece = scene.noise(0.45, _band(500, 2500))[: scene.rate_hz // 6]
            scene.put(at, piece * np.hanning(len(piece)))


def _office_1(scene: Scene) -> None:
    _office(scene, 3, 0.5, ring=False, printer=False)


def _office_2(scene: Scene) -> None:
    _office(scene, 4, 0.0, ring=True, printer=False)


def _office_3(scene: Scene) -> None:
    _office(scene, 0, 0.35, ring=False, printer=True)


def _room_1(scene: Scene) -> None:
    scene.hiss(1.0, _falling(1.0))


def _room_2(scene: Scene) -> None:
    scene.hiss(1.0, _falling(0.5))


def _room_3(scene: Scene) -> None:
    scene.hiss(1.0, _falling(1.4), swell=0.25, swells=2)
    scene.hiss(0.15, _band(200, 700))


def _room_4(scene: Scene) -> None:
    scene.hiss(0.4, _falling(0.9))
    for second in range(SECONDS):
        scene.put(second + 0.25, scene.tap(4.0, 900 if second % 2 else 780, 2600, 0.03))


def _room_5(scene: Scene) -> None:
    scene.hiss(0.6, _falling(0.9))
    scene.tone(100, 0.5)
    scene.tone(200, 0.25)


def _retail_store(scene: Scene) -> None:
    scene.babble(8, 0.6)
    scene.echo(0.055, 0.4)
    scene.hiss(0.2, _falling(0.6))
    for at in scene.times(0.5, 1.0):
        scene.put(at, scene.ring(0.45, (2050,), 0.12))
    for step in range(20):
        scene.put(1.0 + step * 0.52, scene.tap(0.4, 110, 500, 0.08))


def _convention_hall(scene: Scene) -> None:
    scene.babble(14, 0.6)
    scene.echo(0.13, 0.55)
    scene.hiss(0.3, _falling(0.8), swell=0.2)


def _outdoor(scene: Scene) -> None:
    scene.hiss(0.8, _falling(1.0), swell=0.6, swells=2)
    scene.put(4.0, scene.noise(1.2, _falling(1.2))[: 4 * scene.rate_hz] * _swell(scene, 4))
    for at in scene.times(0.7, 0.5):
        for chirp in range(3):
            pitch = 2300 + 250 * chirp
            scene.put(at + 0.11 * chirp, scene.ring(1.5, (pitch, pitch * 1.2), 0.09))


SOUNDS: Mapping[str, Callable[[Scene], None]] = {
    "coffee_shop": _coffee_shop,
    "keyboard": _keyboard,
    "keypad": _keypad,
    "hum": _hum,
    "office_1": _office_1,
    "office_2": _office_2,
    "office_3": _office_3,
    "room_1": _room_1,
    "room_2": _room_2,
    "room_3": _room_3,
    "room_4": _room_4,
    "room_5": _room_5,
    "air_conditioner": _air_conditioner,
    # The older names of the session API's enum.
    "RETAIL_STORE": _retail_store,
    "CONVENTION_HALL": _convention_hall,
    "OUTDOOR": _outdoor,
}


def render(name: str, rate_hz: int) -> Pcm:
    """The loop of a built-in sound at `LEVEL_DBFS`. Raises KeyError for an unknown name."""
    scene = Scene(sorted(SOUNDS).index(name) + 1, min(rate_hz, MADE_AT_HZ))
    SOUNDS[name](scene)
    samples = scene.samples
    if rate_hz > MADE_AT_HZ:
        # On the circle too, so the seam stays closed.
        samples = np.fft.irfft(np.fft.rfft(samples), SECONDS * rate_hz)
    level = float(np.sqrt(np.mean(samples**2)))
    return limit(samples * (32768 * 10 ** (LEVEL_DBFS / 20) / level))
