"""The transcript: who was heard when, what they said, and what nobody understood."""

from __future__ import annotations

from typing import Any

from gateway.records.transcript import LOST, Story, tell

Notes = list[tuple[float, dict[str, Any]]]


def note(t: float, kind: str, **fields: Any) -> tuple[float, dict[str, Any]]:
    return t, {"kind": kind, **fields}


def story(*notes: tuple[float, dict[str, Any]], end: float = 60.0, plain: bool = False) -> Story:
    return tell(notes, end, plain=plain)


def said(of: Story) -> list[tuple[float, float, str, str]]:
    return [(line.start, line.end, line.speaker.value, line.text) for line in of.lines]


def utterance(number: int, start: float, end: float, heard: str, reason: str) -> Notes:
    return [
        note(start, "utterance_queued", id=number, text="all of it", turn=number, uri=""),
        note(start, "utterance_started", id=number),
        note(end, "utterance_ended", id=number, heard_text=heard, reason=reason),
    ]


def test_an_agent_s_line_is_what_was_heard_while_it_was() -> None:
    told = story(*utterance(1, 0.5, 2.0, "all of", "barge_in"))
    assert said(told) == [(0.5, 2.0, "agent", "all of")]
    assert told.lines[0].reason == "barge_in"


def test_what_was_never_heard_is_no_line() -> None:
    queued, _, ended = utterance(1, 0.5, 2.0, "", "dropped")
    assert said(story(queued, ended)) == []


def test_a_caller_s_line_is_its_speech() -> None:
    told = story(
        note(1.0, "user_speech_started"),
        note(2.5, "user_speech_ended"),
        note(2.9, "user_text", text="hello"),
    )
    assert said(told) == [(0.9, 2.5, "caller", "hello")]
    assert told.unclear == []


def test_words_that_come_while_the_caller_goes_on() -> None:
    told = story(
        note(1.0, "user_speech_started"),
        note(2.0, "user_text", text="first"),
        note(3.0, "user_speech_ended"),
        note(3.2, "user_text", text="second"),
    )
    assert said(told) == [(0.9, 2.0, "caller", "first"), (2.0, 3.0, "caller", "second")]


def test_speech_without_words_is_unclear() -> None:
    told = story(
        note(1.0, "user_speech_started"),
        note(2.0, "user_speech_ended"),
        note(5.0, "user_speech_started"),
        note(6.0, "user_speech_ended"),
        note(6.5, "user_text", text="yes"),
        note(9.0, "user_speech_started"),
        end=10.0,
    )
    assert told.unclear == [(0.9, 2.0), (8.9, 10.0)]
    assert said(told) == [(4.9, 6.0, "caller", "yes")]


def test_typed_words_have_no_sound() -> None:
    told = story(note(3.0, "user_text", text="hello"))
    assert said(told) == [(3.0, 3.0, "caller", "hello")]
    assert told.lines[0].typed


def test_keys_are_a_line_of_the_caller() -> None:
    (line,) = story(note(3.0, "dtmf", digits="12")).lines
    assert line.to_json() == {
        "start": 3.0,
        "end": 3.0,
        "speaker": "caller",
        "text": "12",
        "kind": "dtmf",
    }


def test_lines_stand_in_the_order_in_which_they_began() -> None:
    told = story(
        *utterance(1, 0.0, 5.0, "long", "completed"),
        note(6.0, "user_speech_started"),
        note(7.0, "user_speech_ended"),
        note(7.2, "utterance_queued", id=2, text="x", turn=2),
        note(7.3, "utterance_started", id=2),
        note(7.5, "user_text", text="late words"),
        note(8.0, "utterance_ended", id=2, heard_text="x", reason="completed"),
    )
    assert [line.text for line in told.lines] == ["long", "late words", "x"]


def test_a_call_that_broke_off_tells_what_was_sounding() -> None:
    told = story(*utterance(1, 1.0, 9.0, "", "")[:2], end=4.0)
    assert told.reason == LOST
    (line,) = told.lines
    assert (line.end, line.text, line.known) == (4.0, "all of it", False)


def test_the_plain_story_has_the_words_as_they_were() -> None:
    masked = note(3.0, "dtmf", digits="[digits]", plain={"digits": "4711"})
    assert story(masked).lines[0].text == "[digits]"
    assert story(masked, plain=True).lines[0].text == "4711"


def test_the_rest_of_the_story() -> None:
    told = story(
        note(0.0, "call_started", channel="twilio", call_id="CA1", **{"from": "+1", "to": "+2"}),
        note(1.0, "barge_in", by="speech"),
        note(2.0, "error", code="asset.timeout"),
        note(3.0, "inactivity", seconds=8),
        note(4.0, "transfer", target="+3"),
        note(5.0, "call_ended", reason="transferred"),
    )
    assert told.started["channel"] == "twilio"
    assert (told.barge_ins, told.errors, told.inactivities) == (1, ["asset.timeout"], 1)
    assert (told.transfer, told.reason) == ("+3", "transferred")
    assert told.lines == []
