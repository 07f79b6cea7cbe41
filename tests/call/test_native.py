"""What a client of the native dialect is told, and text sessions."""

from __future__ import annotations

from gateway.call.events import (
    InputType,
    LoadAudio,
    RuntimeAudio,
    RuntimeToolCalls,
    Synthesize,
)
from gateway.call.profile import CallProfile
from gateway.channels.base import (
    AgentPayload,
    AgentText,
    AgentToolCalls,
    Clear,
    EventIn,
    Hangup,
    Started,
    TextIn,
    ToolResponsesIn,
    TurnCompleted,
    UserTranscript,
    VariablesIn,
)
from gateway.channels.capabilities import Capabilities, ClearBy
from gateway.errors import RuntimeFailure
from tests.call.harness import EMULATED, LINEAR_8K, Line, tone

CLIENT = Capabilities(
    dialect="ces", clear=ClearBy.NATIVE, kickoff=False, agent_messages=True, max_lead_ms=500
)
TEXT_ONLY = Started(call_id="text-1")


def test_the_client_reads_what_the_agent_says() -> None:
    line = Line(capabilities=CLIENT).run(0.1)
    line.text("Hello there.", 1)
    line.payload(1, customizedResponse={"content": "Terms."})
    line.payload(1, chips=["a"])
    line.files["a.wav"] = tone(9, 0.2)
    line.payload(1, audioUri="a.wav", transcript="la la")
    line.output(RuntimeToolCalls([{"id": "7"}], 1))
    assert line.commands == [
        AgentText("Hello there.", 1),
        AgentText("Terms.", 1),
        AgentPayload({"chips": ["a"]}, 1),
        AgentText("la la", 1),
        AgentToolCalls([{"id": "7"}], 1),
    ]


def test_the_turn_is_completed_for_the_client_when_its_audio_was_sent() -> None:
    line = Line(capabilities=CLIENT).run(0.1)
    line.say("A sentence of two seconds or even more.", 1)
    line.run(1.0)
    assert not line.sent(TurnCompleted)
    line.run(1.0)
    assert line.sent(TurnCompleted) == [TurnCompleted(1)]
    assert line.find("utterance_ended") != [] or line.run(1.0).quiet


def test_music_that_goes_on_does_not_hold_back_the_end_of_the_turn() -> None:
    line = Line(capabilities=CLIENT).run(0.1)
    line.files["m.wav"] = tone(9, 60.0)
    line.payload(1, audioUri="m.wav", cancellable=True)
    line.completed(1)
    line.run(0.1)
    assert line.sent(TurnCompleted) == [TurnCompleted(1)]


def test_an_interrupted_turn_is_completed_for_the_client_once() -> None:
    line = Line(capabilities=CLIENT).greeted()
    line.text("A sentence of two seconds or even more.", 2)
    line.run(0.5)
    line.do(line.machine.channel(TextIn("stop"), line.now))
    line.completed(2)
    line.completed(2)
    line.run(0.5)
    assert line.sent(TurnCompleted) == [TurnCompleted(1), TurnCompleted(2)]
    assert line.sent(Clear) == [Clear(barge_in=True)]


def test_the_client_reads_what_was_understood() -> None:
    line = Line(capabilities=CLIENT).greeted()
    line.complete = False
    line.speak(0.5, "I would like")
    line.run(2.0)
    assert line.sent(UserTranscript) == [UserTranscript("I would like")] * 2
    assert [r.fields["final"] for r in line.find("user_text")] == [False, True]


def test_events_variables_and_tool_responses_pass_through() -> None:
    line = Line(capabilities=CLIENT).run(0.1)
    line.do(line.machine.channel(VariablesIn({"b": 1, "a": "secret"}), line.now))
    line.do(line.machine.channel(EventIn("session_start"), line.now))
    line.do(line.machine.channel(ToolResponsesIn([{"id": "7"}]), line.now))
    assert [(i.type, i.text) for i in line.inputs] == [
        (InputType.VARIABLES, ""),
        (InputType.EVENT, "session_start"),
        (InputType.TOOL_RESPONSES, ""),
    ]
    assert line.one("runtime_input", type="variables").fields["variables"] == ["a", "b"]
    assert "secret" not in str(line.records)


def test_other_dialects_get_none_of_it() -> None:
    line = Line(capabilities=EMULATED).greeted()
    line.payload(2, chips=["a"])
    line.output(RuntimeToolCalls([{"id": "7"}], 2))
    line.say("Hello.", 2)
    line.run(1.0)
    line.speak(0.4, "hi")
    line.run(2.0)
    assert line.texts() == ["hi"]
    assert line.commands == []
    assert line.one("error").fields["code"] == "runtime.client_tools"


# ---- text sessions


def test_a_text_session_synthesises_nothing_and_reads_at_once() -> None:
    line = Line(capabilities=CLIENT, start=TEXT_ONLY).run(0.1)
    line.say("Hello there.", 1)
    assert not [a for a in line.actions if isinstance(a, Synthesize)]
    ended = line.one("utterance_ended").fields
    assert (ended["reason"], ended["heard_text"], ended["heard_s"]) == (
        "completed",
        "Hello there.",
        0.0,
    )
    line.run(0.04)
    assert line.commands == [AgentText("Hello there.", 1), TurnCompleted(1)]


def test_files_of_a_text_session_go_to_the_client() -> None:
    line = Line(capabilities=CLIENT, start=TEXT_ONLY).run(0.1)
    line.payload(1, audioUri="a.wav", transcript="la", mood="calm")
    assert not [a for a in line.actions if isinstance(a, LoadAudio)]
    assert line.commands == [
        AgentPayload({"audioUri": "a.wav", "transcript": "la", "mood": "calm"}, 1)
    ]
    assert line.one("utterance_ended").fields["heard_text"] == "la"
    line.output(RuntimeAudio(tone(1, 0.1), 1))
    assert len(line.find("utterance_queued")) == 1


def test_typing_in_a_text_session() -> None:
    line = Line(capabilities=CLIENT, start=TEXT_ONLY).run(0.1)
    line.do(line.machine.channel(TextIn("hi"), line.now))
    line.say("Hello.", 1)
    line.do(line.machine.channel(TextIn("bye"), line.now))
    assert line.texts() == ["hi", "bye"]
    assert not line.find("barge_in")


def test_the_fallback_of_a_text_session_is_read() -> None:
    line = Line(capabilities=CLIENT, start=TEXT_ONLY).run(0.1)
    line.do(line.machine.runtime_lost(RuntimeFailure("runtime.closed", "gone"), line.now))
    line.run(0.04)
    assert line.machine.ended
    assert line.sent(AgentText)[0].text == line.profile.fallback_message
    assert len(line.sent(Hangup)) == 1


def test_a_call_that_only_listens_or_only_speaks() -> None:
    speaks = Line(start=Started(call_id="c", out_format=LINEAR_8K)).run(0.1)
    speaks.say("Hello.", 1)
    assert speaks.machine.vad(1.0, 1.0, speaks.now) == []
    assert speaks.run(1.0).quiet
    listens = Line(start=Started(call_id="c", in_format=LINEAR_8K)).run(0.1)
    listens.say("Hello.", 1)
    listens.speak(0.4, "hi")
    listens.run(2.0)
    assert listens.texts() == ["hi"]


def test_partial_words_are_the_words_so_far() -> None:
    profile = CallProfile(max_segment_s=2.0)
    line = Line(profile, CLIENT).greeted()
    line.complete = False
    line.speak(3.0, "blah")
    line.run(5.0)
    assert line.texts() == ["blah blah"]
    assert line.sent(UserTranscript)[-1] == UserTranscript("blah blah")
