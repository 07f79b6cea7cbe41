"""What was heard, in words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.call.transcript import Speaker, Transcript, heard_words


def test_a_part_is_cut_at_the_last_whole_word() -> None:
    text = "One two three."
    shares = {0.0: "", 0.1: "", 0.3: "One", 0.5: "One two", 0.99: "One two", 1.0: text}
    assert {share: heard_words(text, share) for share in shares} == shares


@given(st.text(), st.floats(-1, 2))
def test_it_is_always_a_start_of_the_text_in_whole_words(text: str, share: float) -> None:
    words = heard_words(text, share)
    rest = text.strip()
    assert rest.startswith(words)
    assert not words or len(words) == len(rest) or rest[len(words)].isspace()


@given(st.text(), st.floats(0, 1), st.floats(0, 1))
def test_more_sound_is_never_fewer_words(text: str, one: float, other: float) -> None:
    less, more = sorted((one, other))
    assert heard_words(text, more).startswith(heard_words(text, less))


def test_lines_of_one_turn_are_joined() -> None:
    transcript = Transcript()
    transcript.add(1.0, Speaker.AGENT, "Old.", 1)
    transcript.add(2.0, Speaker.CALLER, "Yes.", 2)
    transcript.add(3.0, Speaker.AGENT, "Your", 2)
    transcript.add(4.0, Speaker.AGENT, "", 2)
    transcript.add(5.0, Speaker.AGENT, "balance", 2)
    assert transcript.heard_in_turn(2) == "Your balance"
    assert len(transcript.lines) == 4


def test_a_transcript_is_bounded() -> None:
    transcript = Transcript(limit=2)
    for n in range(5):
        transcript.add(n, Speaker.AGENT, str(n), 1)
    assert [line.text for line in transcript.lines] == ["0", "1"]
