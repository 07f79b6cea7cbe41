"""What is silenced: the place of masked words, tones of keys, and what nobody understood."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gateway.call.profile import VoiceConfig
from gateway.call.transcript import Speaker
from gateway.records.muting import KEY_AFTER_S, KEY_BEFORE_S, MARGIN_S, merged, muted
from gateway.records.redaction import Redactor, shares
from gateway.records.tracks import Track
from gateway.records.transcript import Line, Story
from gateway.speech.engines import EnginePlan
from gateway.speech.local import shared_engines
from tests.records.makers import RATE


def track(folder: Path, *spoken: tuple[float, float], seconds: float = 20.0) -> Track:
    """A track with sound in these stretches."""
    samples = np.zeros(round(seconds * RATE), "<i2")
    for start, end in spoken:
        at = np.arange(round(start * RATE), round(end * RATE))
        samples[at] = (8000 * np.sin(at / 5)).astype("<i2")
    path = folder / f"{len(list(folder.iterdir()))}.pcm"
    path.write_bytes(samples.tobytes())
    return Track(path, RATE)


def line(start: float, end: float, *hidden: tuple[float, float], **over: object) -> Line:
    made = Line(start, end, Speaker.CALLER, "text", list(hidden))
    for key, value in over.items():
        setattr(made, key, value)
    return made


def mute(
    folder: Path, story: Story, caller: Track, keys: tuple[float, ...] = ()
) -> list[tuple[float, float]]:
    left, right = muted(story, keys, caller, track(folder))
    assert right == []
    return left


def test_masked_words_are_looked_for_where_there_is_sound(tmp_path: Path) -> None:
    # The first half of what is said lies before a long pause, the hidden second half behind it.
    caller = track(tmp_path, (1.0, 2.0), (8.0, 9.0))
    ((start, end),) = mute(tmp_path, Story([line(0.5, 9.5, (0.5, 1.0))]), caller)
    assert 7.3 < start < 8.0
    assert end > 9.0


def test_words_beside_the_masked_ones_stay(tmp_path: Path) -> None:
    caller = track(tmp_path, (1.0, 9.0))
    ((start, end),) = mute(tmp_path, Story([line(1.0, 9.0, (0.5, 0.6))]), caller)
    assert 3.5 < start < 5.0 - MARGIN_S
    assert 5.8 + MARGIN_S < end < 7.5


def test_the_agent_s_side_is_muted_for_the_agent_s_words(tmp_path: Path) -> None:
    said = line(1.0, 2.0, (0.0, 1.0), speaker=Speaker.AGENT)
    left, right = muted(Story([said]), (), track(tmp_path), track(tmp_path, (1.0, 2.0)))
    assert left == []
    assert right[0][0] < 1.0
    assert right[0][1] > 2.0


def test_a_line_whose_end_is_not_known_is_muted_whole(tmp_path: Path) -> None:
    caller = track(tmp_path, (1.0, 9.0))
    story = Story([line(1.0, 9.0, (0.5, 0.6), known=False)])
    assert mute(tmp_path, story, caller) == [(1.0, 9.0)]


def test_tones_of_keys_are_muted(tmp_path: Path) -> None:
    assert mute(tmp_path, Story(), track(tmp_path), keys=(5.0, 5.2)) == [
        (5.0 - KEY_BEFORE_S, 5.2 + KEY_AFTER_S)
    ]


def test_speech_that_nobody_understood_is_muted(tmp_path: Path) -> None:
    story = Story(unclear=[(5.0, 6.0)])
    assert mute(tmp_path, story, track(tmp_path)) == [(5.0 - MARGIN_S, 6.0 + MARGIN_S)]


def test_what_has_no_sound_mutes_nothing(tmp_path: Path) -> None:
    story = Story([line(1.0, 1.0, (0, 1), typed=True), line(2.0, 2.0, (0, 1), keys=True)])
    assert mute(tmp_path, story, track(tmp_path)) == []


def test_spans_are_joined_and_begin_with_the_call() -> None:
    assert merged([(3.0, 4.0), (-1.0, 0.5), (0.4, 1.0), (5.0, 5.0)]) == [(0.0, 1.0), (3.0, 4.0)]


@pytest.mark.parametrize(
    ("before", "secret", "after"),
    [
        ("Hello, my account number is", "four seven one one two two", "and I want my balance."),
        ("Please book it for", "4711 2233 8", "if that is still possible today."),
        ("You can reach me under", "anna dot smith at example dot com", "during the week."),
    ],
)
def test_real_speech_loses_the_secret_and_keeps_most_of_the_rest(
    tmp_path: Path, before: str, secret: str, after: str
) -> None:
    engines = shared_engines(EnginePlan(tts="hibari", stt="none", vad="energy", turn="silence"))
    pieces = [
        engines.synthesise(text, VoiceConfig(), "en-US", RATE) for text in (before, secret, after)
    ]
    lengths = [len(piece) / 2 / RATE for piece in pieces]
    path = tmp_path / "caller.pcm"
    path.write_bytes(bytes(2 * RATE) + b"".join(pieces))
    said = f"{before} {secret} {after}"
    redacted = Redactor().redact(said)
    spoken = line(1.0, 1.0 + sum(lengths), *shares(said, redacted.hidden))
    spans = mute(tmp_path, Story([spoken]), Track(path, RATE))
    assert len(spans) == 1
    start, end = 1.0 + lengths[0], 1.0 + lengths[0] + lengths[1]
    sounding = np.flatnonzero(np.abs(np.frombuffer(pieces[1], "<i2")) > 1000) / RATE + start
    assert spans[0][0] <= sounding[0]
    assert spans[0][1] >= sounding[-1]
    kept_s = sum(lengths) - (min(spans[0][1], 1.0 + sum(lengths)) - spans[0][0])
    assert kept_s > 0.4 * (lengths[0] + lengths[2]), (spans, start, end)
