"""How payloads are read."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.call.policy import DtmfPolicy, Plan, Policy, read_payload


def plan(**payload: Any) -> Plan:
    reading = read_payload(payload)
    assert reading.problems == ()
    (only,) = reading.plans
    return only


def test_an_audio_uri_is_ours_with_the_documented_defaults() -> None:
    assert plan(audioUri="a.wav") == Plan(Policy(), uri="a.wav")


def test_all_spellings_of_interruptable_count() -> None:
    for spelling in ("interruptable", "interrupable", "interruptible"):
        assert plan(audioUri="a.wav", **{spelling: False}).policy.interruptable is False


def test_every_key_is_read_and_unknown_ones_are_kept() -> None:
    policy = plan(
        audioUri="m.wav", cancellable=True, loop=True, gainDb=-6, transcript=" la ", mood="calm"
    ).policy
    assert policy == Policy(
        cancellable=True, loop=True, gain_db=-6.0, transcript="la", extra={"mood": "calm"}
    )


def test_a_payload_without_audio_is_the_clients() -> None:
    reading = read_payload({"chips": ["yes", "no"]})
    assert (reading.ours, reading.plans, reading.problems) == (False, (), ())


def test_wrong_types_are_reported_and_the_rest_is_used() -> None:
    reading = read_payload(
        {"audioUri": "a.wav", "interruptable": "no", "cancellable": True, "gainDb": "loud"}
    )
    (only,) = reading.plans
    assert only.uri == "a.wav"
    assert only.policy.interruptable is True
    assert only.policy.cancellable is True
    assert reading.problems == (
        "interruptable is str, not true or false",
        "gainDb is str, not a number from -60 to 20",
    )


def test_a_uri_that_is_no_text_leaves_the_transcript_to_be_spoken() -> None:
    reading = read_payload({"audioUri": 5, "transcript": "Welcome.", "interruptable": False})
    assert reading.plans == (
        Plan(Policy(interruptable=False, transcript="Welcome."), text="Welcome."),
    )
    assert reading.problems == ("audioUri is int, not a text",)


def test_a_loop_that_nothing_can_stop_plays_once() -> None:
    reading = read_payload({"audioUri": "a.wav", "loop": True})
    assert reading.plans[0].policy.loop is False
    assert reading.problems


def test_a_customised_response() -> None:
    only = plan(
        customizedResponse={
            "content": "Terms apply.",
            "disableBargeIn": True,
            "enableDtmf": True,
            "dtmfFinishDigit": "*",
            "dtmfEndpointingTimeout": 5,
        }
    )
    assert only.text == "Terms apply."
    assert only.policy == Policy(interruptable=False, dtmf=DtmfPolicy(True, "*", 5.0))


def test_the_key_timeout_in_all_its_forms() -> None:
    forms = {"short": 1.0, "mid": 3.0, "long": 5.0, "2.5s": 2.5, 4: 4.0}
    for timeout, seconds in forms.items():
        only = plan(customizedResponse={"content": "x", "dtmfEndpointingTimeout": timeout})
        assert only.policy.dtmf is not None
        assert only.policy.dtmf.timeout_s == seconds


def test_a_key_timeout_that_makes_no_sense_is_reported() -> None:
    for timeout in ("soon", "", -1, 0, True, [], 1e9, "nan"):
        reading = read_payload(
            {"customizedResponse": {"content": "x", "dtmfEndpointingTimeout": timeout}}
        )
        assert reading.plans[0].text == "x"
        assert reading.plans[0].policy.dtmf == DtmfPolicy()
        assert len(reading.problems) == 1


def test_an_empty_finish_digit_means_none() -> None:
    policy = plan(customizedResponse={"content": "x", "dtmfFinishDigit": ""}).policy
    assert policy.dtmf is not None
    assert policy.dtmf.finish_digit == ""


VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.lists(st.integers(), max_size=2)
)
AUDIO = st.dictionaries(
    st.sampled_from(["audioUri", "transcript", "loop", "gainDb", "cancellable", "interruptible"]),
    VALUES,
)
RESPONSE = st.dictionaries(
    st.sampled_from(
        ["content", "enableDtmf", "disableBargeIn", "dtmfFinishDigit", "dtmfEndpointingTimeout"]
    ),
    VALUES,
)


@given(AUDIO, RESPONSE | VALUES)
def test_no_payload_can_make_reading_fail(audio: dict[str, Any], response: Any) -> None:
    reading = read_payload({**audio, "customizedResponse": response})
    assert all(isinstance(p.uri, str) and isinstance(p.text, str) for p in reading.plans)
