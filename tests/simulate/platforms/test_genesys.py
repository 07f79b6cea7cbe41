"""Genesys' habits: numbers, an allowance of messages, pings, and ends that it makes itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.errors import ProtocolError, ScenarioError
from gateway.simulate.platforms import call_id
from gateway.simulate.platforms.base import Identity
from gateway.simulate.platforms.genesys import GenesysPlatform, signature

IDENTITY = Identity(call_id("genesys", "test"), "+15550100", "+15550199", {"tier": 1})


class Server:
    """What a gateway would send."""

    def __init__(self, far_side: GenesysPlatform) -> None:
        self.far_side = far_side
        self.seq = 0

    def say(self, kind: str, told: dict[str, Any] | None = None, **over: Any) -> list[Any]:
        self.seq += 1
        body = {
            "version": "2",
            "id": IDENTITY.call_id,
            "type": kind,
            "seq": self.seq,
            "clientseq": 1,
            "parameters": told or {},
        }
        said = {name: value for name, value in {**body, **over}.items() if value is not None}
        return self.far_side.receive(json.dumps(said))


def opened() -> tuple[GenesysPlatform, Server]:
    far_side = GenesysPlatform(IDENTITY)
    (message,) = far_side.open()
    server = Server(far_side)
    server.say("opened", {"media": json.loads(message)["parameters"]["media"][:1]})
    return far_side, server


def kinds(messages: Any) -> list[str]:
    return [json.loads(one)["type"] for one in messages if isinstance(one, str)]


def test_open_tells_the_call_and_audio_waits_for_the_answer() -> None:
    far_side = GenesysPlatform(IDENTITY)
    (message,) = far_side.open()
    told = json.loads(message)
    assert (told["type"], told["seq"], told["position"]) == ("open", 1, "PT0.00S")
    assert told["parameters"]["inputVariables"] == {"tier": "1"}
    assert far_side.media(None) == []


def test_audio_comes_in_200_ms_and_pings_are_counted() -> None:
    far_side, _ = opened()
    sent = [message for _ in range(260) for message in far_side.media(None)]
    assert {len(one) for one in sent if isinstance(one, bytes)} == {1600}
    assert kinds(sent) == ["ping", "ping", "ping"]


def test_a_ping_without_a_pong_is_found_out() -> None:
    far_side, server = opened()
    for _ in range(100):
        far_side.media(None)
    with pytest.raises(ProtocolError, match="without a pong"):
        server.say("pong")


@pytest.mark.parametrize(
    ("over", "words"),
    [
        ({"seq": 3}, "seq 3 after 1"),
        ({"clientseq": 9}, "never sent"),
        ({"parameters": None}, "other fields"),
        ({"position": "PT1S"}, "other fields"),
        ({"id": "another"}, "another session"),
        ({"version": "1"}, "another version"),
        ({"parameters": []}, "no object"),
        ({"type": "paused"}, "unknown message"),
    ],
)
def test_a_wrong_envelope_is_found_out(over: dict[str, Any], words: str) -> None:
    _, server = opened()
    with pytest.raises(ProtocolError, match=words):
        server.say("pong", **over)


def test_an_offer_must_be_chosen_as_it_was_made() -> None:
    far_side = GenesysPlatform(IDENTITY)
    far_side.open()
    with pytest.raises(ProtocolError, match="first offer"):
        Server(far_side).say("opened", {"media": [{"type": "audio", "format": "PCMU"}]})


def test_frames_of_20_ms_are_too_many_messages() -> None:
    far_side, _ = opened()

    def stream() -> None:
        for _ in range(50):
            far_side.receive(b"\xff" * 160)
            far_side.play()

    with pytest.raises(ProtocolError, match="five binary messages"):
        stream()


def test_four_messages_a_second_are_not() -> None:
    far_side, _ = opened()
    for _ in range(100):
        far_side.receive(b"\xff" * 1920)
        for _ in range(12):
            far_side.play()


def test_it_tells_when_playing_begins_and_has_run_dry() -> None:
    far_side, server = opened()
    far_side.receive(b"\x10" * 320)
    assert kinds(far_side.play().replies) == ["playback_started"]
    assert kinds(far_side.play().replies) == ["playback_completed"]
    far_side.receive(b"\x10" * 1600)
    far_side.play()
    barge_in = {"entities": [{"type": "barge_in", "data": {}}]}
    assert kinds(server.say("event", barge_in)) == ["playback_completed"]
    assert not any(far_side.play().pcm)


def test_the_gateway_asks_and_the_platform_closes() -> None:
    far_side, server = opened()
    (close,) = server.say("disconnect", {"reason": "completed", "outputVariables": {"a": "b"}})
    assert json.loads(close)["parameters"] == {"reason": "disconnect"}
    assert not far_side.finished
    server.say("closed")
    assert far_side.finished
    assert far_side.outputs == {"a": "b"}


@pytest.mark.parametrize(
    "parameters", [{}, {"reason": "bored"}, {"reason": "error", "outputVariables": {"a": 1}}]
)
def test_a_disconnect_that_the_flow_could_not_read(parameters: dict[str, Any]) -> None:
    _, server = opened()
    with pytest.raises(ProtocolError):
        server.say("disconnect", parameters)


@pytest.mark.parametrize("message", [b"\xff", "hello", "[]"])
def test_what_comes_before_opened_or_is_no_message(message: str | bytes) -> None:
    with pytest.raises(ProtocolError):
        GenesysPlatform(IDENTITY).receive(message)


def test_a_secret_that_is_not_base64_is_said_so() -> None:
    with pytest.raises(ScenarioError, match="base64"):
        signature({"X-API-KEY": "key"}, "127.0.0.1", "/genesys/audiohook", "THE_SECRET")
