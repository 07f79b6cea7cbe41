"""The built-in ambient sounds: what each is known by, the seam, the level."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from gateway.audio.limiting import louder
from gateway.audio.mixing import level_dbfs
from gateway.audio.scenes import LEVEL_DBFS, SECONDS, SOUNDS, render

RATE_HZ = 8000
PREBUILT = (
    *("coffee_shop", "keyboard", "keypad", "hum", "office_1", "office_2", "office_3"),
    *("room_1", "room_2", "room_3", "room_4", "room_5", "air_conditioner"),
)
OLDER = ("RETAIL_STORE", "CONVENTION_HALL", "OUTDOOR")


made_once = cache(render)


def samples(name: str, rate_hz: int = RATE_HZ) -> NDArray[np.float64]:
    return np.frombuffer(made_once(name, rate_hz), "<i2").astype(float)


def frames_level(name: str) -> NDArray[np.float64]:
    """Level of each 20 ms in dB over the quietest tenth."""
    rms = np.sqrt((samples(name).reshape(-1, 160) ** 2).mean(1)) + 1
    return np.asarray(20 * np.log10(rms / np.quantile(rms, 0.1)))


def spectrum(name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    made = samples(name)
    return np.fft.rfftfreq(len(made), 1 / RATE_HZ), np.abs(np.fft.rfft(made)) ** 2


def share(name: str, low_hz: float, high_hz: float) -> float:
    """Part of the energy between two frequencies."""
    hz, power = spectrum(name)
    return float(power[(hz >= low_hz) & (hz < high_hz)].sum() / power.sum())


def strokes(name: str) -> int:
    """Sudden rises of 8 dB from one 20 ms to the next."""
    return int((np.diff(frames_level(name)) > 8).sum())


def syllables(name: str) -> float:
    """How much of the loudness changes three to seven times a second, as that of talk does."""
    rms = np.sqrt((samples(name).reshape(-1, 80) ** 2).mean(1))
    power = np.abs(np.fft.rfft(rms - rms.mean())) ** 2
    hz = np.fft.rfftfreq(len(rms), 0.01)
    return float(power[(hz >= 2.5) & (hz < 7)].sum() / power[hz < 25].sum())


def test_every_name_of_the_session_api_has_a_sound() -> None:
    assert tuple(SOUNDS) == PREBUILT + OLDER


@pytest.mark.parametrize("name", SOUNDS)
def test_the_loop_has_no_click_at_its_seam(name: str) -> None:
    made = samples(name)
    steps = np.abs(np.diff(made))
    seam = np.concatenate([made[-400:], made[:400]])
    assert abs(made[0] - made[-1]) <= np.quantile(steps, 0.9999)
    # Nor does its curve break: bends at the seam are no sharper than elsewhere.
    bends = np.abs(np.diff(made, 2))
    assert np.abs(np.diff(seam, 2))[397:403].max() <= np.quantile(bends, 0.9999)


@pytest.mark.parametrize("name", SOUNDS)
def test_all_have_the_stated_level_and_whole_frames(name: str) -> None:
    pcm = made_once(name, RATE_HZ)
    assert level_dbfs(pcm) == pytest.approx(LEVEL_DBFS, abs=0.1)
    assert len(pcm) == SECONDS * RATE_HZ * 2
    assert np.abs(samples(name)).max() < 32767 * 0.25


@pytest.mark.parametrize("rate_hz", [16000, 24000, 48000])
@pytest.mark.parametrize("name", ["hum", "room_4"])
def test_other_rates_sound_the_same(name: str, rate_hz: int) -> None:
    pcm = made_once(name, rate_hz)
    assert len(pcm) == SECONDS * rate_hz * 2
    assert level_dbfs(pcm) == pytest.approx(LEVEL_DBFS, abs=0.1)
    made = samples(name, rate_hz)
    assert abs(made[0] - made[-1]) <= np.quantile(np.abs(np.diff(made)), 0.9999)


@pytest.mark.parametrize("gain_db", [-96.0, -20.3, -6.0, -0.1, 0.1, 6.0, 16.0])
def test_the_gain_is_exact_to_a_tenth_of_a_decibel(gain_db: float) -> None:
    """Down to where 16 bits end; the loudest sound may be bent softly, but keeps its level."""
    for name in ("room_1", "keyboard"):
        level = level_dbfs(louder(made_once(name, RATE_HZ), gain_db))
        if gain_db > -40:
            assert level == pytest.approx(LEVEL_DBFS + gain_db, abs=0.1), name
        else:
            assert level < -90


def test_the_same_name_gives_the_same_samples() -> None:
    assert render("office_1", RATE_HZ) == render("office_1", RATE_HZ)


# ---- what each is known by


@pytest.mark.parametrize("name", ["coffee_shop", "office_1", "RETAIL_STORE"])
def test_where_people_talk_the_loudness_has_the_rhythm_of_talk(name: str) -> None:
    assert syllables(name) > 2 * syllables("room_1")
    assert share(name, 250, 3400) > 0.5


def test_a_crowd_in_a_hall_has_the_colour_of_voices_but_no_single_one() -> None:
    assert share("CONVENTION_HALL", 250, 3400) > 0.5
    assert syllables("CONVENTION_HALL") < syllables("coffee_shop")


@pytest.mark.parametrize(("name", "least"), [("keyboard", 25), ("keypad", 12), ("room_4", 11)])
def test_strokes_and_ticks_stand_out(name: str, least: int) -> None:
    assert strokes(name) >= least


def test_a_keyboard_is_faster_and_brighter_than_a_keypad() -> None:
    assert strokes("keyboard") > 1.5 * strokes("keypad")
    assert share("keyboard", 1500, 4000) > share("keypad", 1500, 4000)


def test_a_hum_is_the_mains_and_its_multiples() -> None:
    assert sum(share("hum", hz - 2, hz + 2) for hz in (60, 120, 180, 240, 360, 480)) > 0.9


def test_an_air_conditioner_is_steady() -> None:
    assert np.quantile(frames_level("air_conditioner"), 0.95) < 6
    assert strokes("air_conditioner") == 0


def test_an_office_telephone_rings() -> None:
    ring = samples("office_2")[int(3.0 * RATE_HZ) : int(3.5 * RATE_HZ)]
    power = np.abs(np.fft.rfft(ring * np.hanning(len(ring)))) ** 2
    hz = np.fft.rfftfreq(len(ring), 1 / RATE_HZ)
    near = power[(hz > 1000) & (hz < 1400)].max()
    assert near > 20 * np.median(power[(hz > 1500) & (hz < 3000)])


def test_a_printer_runs_for_some_seconds() -> None:
    level = frames_level("office_3")
    running, still = level[110:400].mean(), level[450:590].mean()
    assert running > still + 1.5


def test_rooms_differ_in_colour() -> None:
    dull = [share(name, 0, 300) for name in ("room_3", "room_1", "room_2")]
    assert dull == sorted(dull, reverse=True)
    assert share("room_5", 95, 105) > 0.15


def test_outdoors_the_wind_swells_and_birds_call() -> None:
    quarters = samples("OUTDOOR").reshape(24, -1)
    wind = np.sqrt((quarters**2).mean(1))
    assert wind.max() > 2.5 * wind.min()
    assert share("OUTDOOR", 2200, 3500) > 1.5 * share("room_1", 2200, 3500)
