"""A scenario file means what it says, and every mistake in it is named with its line."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway
from gateway import demo
from gateway.channels.base import EndReason
from gateway.errors import ScenarioError
from gateway.simulate.scenario import (
    KINDS,
    Dtmf,
    EventPattern,
    ExpectEnded,
    ExpectEvent,
    ExpectHeard,
    Hangup,
    Latency,
    Noise,
    Play,
    Say,
    Scenario,
    Silence,
    WaitEvent,
    WaitHeard,
    WaitQuiet,
    WaitTime,
    Window,
    parse_scenario,
    read_scenario,
    undeclared,
)

FULL = """\
app: .
channel: twilio
from: +15550100
variables: {customer_id: "4711", gold: true}
latency: {runtime: 300ms, tts: 150ms, stt: 0.2s}
caller:
  - wait: agent_quiet
  - wait: {heard: "how can I", timeout: 5s}
  - wait: {event: barge_in}
    timeout: 2s
  - wait: {event: {kind: utterance_ended, reason: cancelled}}
  - wait: 1.5s
  - say: yes
    as: yes please
  - play: voice.wav
    as: no
  - dtmf: 0123#
  - silence: 2m
  - noise: {seconds: 3, level_dbfs: -30}
  - noise: {seconds: 1}
  - hangup: true
expect:
  - heard: "your balance is .*"
    within: 2s
    after: barge_in
  - not_heard: "internal error"
    before: {kind: call_ended, reason: completed}
  - event: {kind: utterance_ended, uri: ".*hold.*", count: 2}
  - event: dtmf
    count: 0
  - ended: completed
"""


def parse(text: str, folder: Path = Path()) -> Scenario:
    return parse_scenario(text, folder / "test.yaml")


def test_everything_that_a_scenario_can_say(tmp_path: Path) -> None:
    (tmp_path / "voice.wav").write_bytes(b"")
    scenario = parse(FULL, tmp_path)
    assert scenario.name == "test"
    assert scenario.app == tmp_path / "."
    assert (scenario.channel, scenario.from_) == ("twilio", "+15550100")
    assert scenario.variables == {"customer_id": "4711", "gold": True}
    assert scenario.latency == Latency(0.3, 0.15, 0.2)
    assert scenario.caller == (
        WaitQuiet(7),
        WaitHeard(8, "how can I", 5.0),
        WaitEvent(9, EventPattern("barge_in"), 2.0),
        WaitEvent(11, EventPattern("utterance_ended", {"reason": "cancelled"})),
        WaitTime(12, 1.5),
        Say(13, "yes", "yes please"),
        Play(15, tmp_path / "voice.wav", "no"),
        Dtmf(17, "0123#"),
        Silence(18, 120.0),
        Noise(19, 3.0, -30.0),
        Noise(20, 1.0, -40.0),
        Hangup(21),
    )
    ended = EventPattern("call_ended", {"reason": "completed"})
    assert scenario.expect == (
        ExpectHeard(23, "your balance is .*", Window(2.0, EventPattern("barge_in"), None)),
        ExpectHeard(26, "internal error", Window(None, None, ended), negative=True),
        ExpectEvent(28, EventPattern("utterance_ended", {"uri": ".*hold.*"}), Window(), 2),
        ExpectEvent(29, EventPattern("dtmf"), Window(), 0),
        ExpectEnded(31, EndReason.COMPLETED),
    )


def test_the_defaults() -> None:
    scenario = parse("caller: [{hangup: true}]")
    assert (scenario.channel, scenario.app, scenario.expect) == ("ces", None, ())
    assert scenario.latency == Latency()


CALL = "caller:\n  - hangup: true\n"
MISTAKES = [
    ("", "scenario.empty", 1),
    ("caller: [", "scenario.yaml", 1),
    ("- hangup", "scenario.type", 1),
    ("channel: ces", "scenario.caller", 1),
    ("caller: []", "scenario.caller", 1),
    ("caller: hello", "scenario.type", 1),
    (CALL + "speed: fast", "scenario.unknown_key", 3),
    (CALL + "channel: ces\nchannel: twilio", "scenario.duplicate_key", 4),
    (CALL + "channel: ''", "scenario.empty", 3),
    (CALL + "channel: [a]", "scenario.type", 3),
    (CALL + "app: nowhere", "scenario.path", 3),
    (CALL + "variables: 3", "scenario.type", 3),
    (CALL + "latency: {llm: 3s}", "scenario.unknown_key", 3),
    (CALL + "latency: {tts: 3}", "scenario.duration", 3),
    ("caller:\n  - {say: a, dtmf: 1}", "scenario.step", 2),
    ("caller:\n  - {timeout: 1s}", "scenario.step", 2),
    ("caller:\n  - {shout: a}", "scenario.unknown_key", 2),
    ("caller:\n  - say", "scenario.type", 2),
    ("caller:\n  - say: ''", "scenario.empty", 2),
    ("caller:\n  - say: a\n    timeout: 1s", "scenario.unknown_key", 3),
    ("caller:\n  - wait: 1s\n    as: b", "scenario.unknown_key", 3),
    ("caller:\n  - wait: forever", "scenario.wait", 2),
    ("caller:\n  - wait: 3", "scenario.duration", 2),
    ("caller:\n  - wait: {}", "scenario.step", 2),
    ("caller:\n  - wait: {heard: a, event: b}", "scenario.step", 2),
    ("caller:\n  - wait: {heard: '('}", "scenario.regex", 2),
    ("caller:\n  - wait: {event: {reason: a}}", "scenario.event", 2),
    ("caller:\n  - wait: {event: {kind: dtmf, uri: '['}}", "scenario.regex", 2),
    ("caller:\n  - wait: {event: {kind: dtmf, count: 2}}", "scenario.unknown_key", 2),
    ("caller:\n  - play: nothing.wav", "scenario.path", 2),
    ("caller:\n  - dtmf: 12x", "scenario.dtmf", 2),
    ("caller:\n  - silence: long", "scenario.duration", 2),
    ("caller:\n  - noise: {level_dbfs: -3}", "scenario.noise", 2),
    ("caller:\n  - noise: {seconds: loud}", "scenario.number", 2),
    ("caller:\n  - noise: {seconds: 0}", "scenario.noise", 2),
    ("caller:\n  - noise: {seconds: 1, level_dbfs: 3}", "scenario.noise", 2),
    ("caller:\n  - hangup: false", "scenario.hangup", 2),
    (CALL + "expect:\n  - ended: sadly", "scenario.ended", 4),
    (CALL + "expect:\n  - ended: completed\n    within: 2s", "scenario.unknown_key", 5),
    (CALL + "expect:\n  - {heard: a, ended: completed}", "scenario.step", 4),
    (CALL + "expect:\n  - heard: a\n    count: 3", "scenario.unknown_key", 5),
    (CALL + "expect:\n  - heard: a\n    within: soon", "scenario.duration", 5),
    (CALL + "expect:\n  - event: dtmf\n    count: 1.5", "scenario.number", 5),
    (CALL + "expect:\n  - event: dtmf\n    count: -1", "scenario.number", 5),
]


@pytest.mark.parametrize(
    ("text", "code", "line"), MISTAKES, ids=[m[0] or "empty" for m in MISTAKES]
)
def test_every_mistake_is_named_with_its_line(text: str, code: str, line: int) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse(text)
    assert caught.value.code == code
    assert caught.value.where == f"test.yaml:{line}"


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"scenario\.file"):
        read_scenario(tmp_path / "none.yaml")
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScenarioError, match=r"scenario\.file"):
        read_scenario(binary)
    huge = tmp_path / "huge.yaml"
    huge.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(ScenarioError, match=r"scenario\.size"):
        read_scenario(huge)


@given(st.text(max_size=200))
def test_no_text_is_worse_than_a_scenario_error(text: str) -> None:
    with pytest.raises(ScenarioError):
        parse(f"{text}\nbroken: yes")


@pytest.mark.parametrize("path", sorted(demo.SCENARIOS_PATH.glob("*.yaml")), ids=lambda p: p.stem)
def test_the_demo_scenarios_are_read(path: Path) -> None:
    assert read_scenario(path).caller


# ---- kinds of events, variables


@pytest.mark.parametrize(
    "line",
    [
        "caller: [{wait: {event: barge_inn}}, {hangup: true}]",
        "caller: [{hangup: true}]\nexpect: [{event: {kind: barge_inn}}]",
        "caller: [{hangup: true}]\nexpect: [{heard: x, after: barge_inn}]",
    ],
)
def test_a_kind_that_no_timeline_holds_is_an_error_with_its_line(line: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse(line)
    assert caught.value.code == "scenario.event"
    assert caught.value.where == f"test.yaml:{line.count(chr(10)) + 1}"
    assert (caught.value.hint or "").startswith("did you mean barge_in?")


def test_every_kind_that_the_call_engine_records_can_be_expected() -> None:
    package = Path(gateway.__file__).parent
    recorded = set()
    for path in (*package.glob("call/*.py"), package / "session.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            name = getattr(getattr(node, "func", None), "attr", None)
            if isinstance(node, ast.Call) and name in ("record", "_observe"):
                recorded |= {a.value for a in node.args if isinstance(a, ast.Constant)}
    assert recorded == set(KINDS)


def test_variables_that_the_app_does_not_declare_are_named() -> None:
    scenario = parse("variables: {gold: true, golf: true}\ncaller: [{hangup: true}]")
    assert undeclared(scenario, {"gold"}) == [
        "test.yaml: the app declares no variable 'golf': it will not take it"
    ]
