"""Telephone calls whose agent is Google's service, both ways of speech."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import pi, sin
from pathlib import Path
from typing import Any

import pytest

from gateway.audio import g711
from gateway.audio.formats import Encoding
from gateway.config import CREDENTIALS_VARIABLE, load
from gateway.errors import ConfigError
from gateway.server.app import Gateway
from gateway.server.compose import running
from gateway.simulate.platforms.access import Access
from gateway.simulate.result import RunResult
from gateway.simulate.scenario import parse_scenario
from gateway.simulate.wire import call
from tests.runtime.ces_service import APP, WAIT_S, CesService, Connection, ces_service, sound

QUIET = {"tts": "nanotts", "stt": "none", "vad": "energy", "turn": "silence"}
PCM = b"".join(struct.pack("<h", round(9000 * sin(2 * pi * 440 * n / 8000))) for n in range(8000))
TONE = g711.encode(PCM, Encoding.MULAW)
"""One second that sounds like speech."""
WORD = TONE[:3200]
MORE = {"server": {"port": 0}, "speech": QUIET, "call": {"fallback_message": "Sorry."}}


@asynccontextmanager
async def gateway(folder: Path, **google: Any) -> AsyncIterator[tuple[CesService, Gateway]]:
    async with (
        ces_service(folder, more=MORE, **google) as service,
        running(service.settings) as front,
    ):
        yield service, front


async def phone(service: CesService, front: Gateway, text: str) -> RunResult:
    scenario = parse_scenario(text, Path("call.yaml"))
    result = await call(Access(front.url), scenario, "twilio", service.settings)
    assert result.ok, "; ".join(str(v) for v in result.verdicts if not v.ok)
    return result


async def greet(connection: Connection, event: str = "session_start") -> None:
    await connection.until(lambda: bool(connection.given("event")))
    assert connection.given("event") == [{"event": event}]
    await connection.say(1, text="Welcome to the desk.")
    await connection.say(1, audio=sound(WORD))
    await connection.say(1, turnCompleted=True)


async def part(connection: Connection) -> None:
    """The caller hangs up, and the service has nothing more to do."""
    await connection.until(lambda: len(connection.given("event")) > 1)
    assert connection.given("event")[1:] == [{"event": "sys.remote-call-disconnected"}]
    await connection.close(1000)


AUDIO_CALL = """
from: "+15550100"
variables: {customer_id: "4711"}
caller:
  - wait: {heard: "welcome to the desk", timeout: 20s}
  - wait: agent_quiet
  - noise: {seconds: 0.3, level_dbfs: -20}
  - wait: {heard: "you asked", timeout: 20s}
expect:
  - event: {kind: call_started, in_format: MULAW/8000}
  - event: {kind: utterance_queued, source: speech, count: 0}
  - event: {kind: user_text, text: "my question", final: true}
  - event: {kind: utterance_ended, reason: completed, heard_text: "Goodbye.*"}
  - ended: completed
"""


async def test_a_call_that_the_service_hears_and_speaks_itself(tmp_path: Path) -> None:
    async def play(service: CesService) -> Connection:
        connection = await service.next()
        await greet(connection)
        before = len(connection.audio)
        await connection.until(
            lambda: any(
                abs(s) > 1000
                for (s,) in struct.iter_unpack(
                    "<h", g711.decode(connection.audio[before:], Encoding.MULAW)
                )
            )
        )
        await connection.send({"recognitionResult": {"transcript": "my question"}})
        # An empty output, and one completed twice, are nobody's answer.
        await connection.say(2, text="")
        await connection.say(2, text="You asked.", audio=sound(WORD))
        await connection.say(2, turnCompleted=True)
        await connection.say(2, turnCompleted=True)
        await connection.until(lambda: len(connection.audio) > before + 6000)
        # The end overtakes the last words.
        await connection.send({"endSession": {"metadata": {"reason": "done"}}})
        await connection.say(3, text="Goodbye.", audio=sound(WORD))
        await connection.say(3, turnCompleted=True)
        # Nobody here closes the socket; the call does.
        async with asyncio.timeout(WAIT_S):
            await connection.gone.wait()
        return connection

    async with gateway(tmp_path) as (service, front):
        played = asyncio.create_task(play(service))
        await phone(service, front, AUDIO_CALL)
        connection = await played
    mulaw = {"audioEncoding": "MULAW", "sampleRateHertz": 8000}
    assert connection.config["inputAudioConfig"] == mulaw
    assert connection.config["outputAudioConfig"] == mulaw
    assert connection.config["session"].startswith(f"{APP}/sessions/")
    assert connection.given("variables")[0]["customer_id"] == "4711"
    kinds = [next(iter(item)) for item in connection.inputs if "audio" not in item]
    assert kinds[:2] == ["variables", "event"]
    # 60 ms pieces, without a hole also where the caller says nothing.
    assert {len(piece) for piece in connection.given("audio")[:-1]} == {len(sound(b"0" * 480))}


CUT = """
caller:
  - wait: {event: barge_in, timeout: 20s}
  - wait: {heard: "next", timeout: 20s}
  - hangup: true
expect:
  - event: {kind: barge_in, by: runtime}
  - event: {kind: utterance_ended, reason: barge_in, heard_text: ".*"}
  - ended: remote_hangup
"""


async def test_an_interruption_drops_what_waits_and_what_comes_late(tmp_path: Path) -> None:
    async def play(service: CesService) -> None:
        connection = await service.next()
        await connection.until(lambda: bool(connection.given("event")))
        await connection.say(1, text="A long answer.", audio=sound(TONE * 20))
        mark = len(connection.audio)
        await connection.until(lambda: len(connection.audio) > mark + 4000)
        await connection.send({"interruptionSignal": {"bargeIn": True}})
        await connection.say(1, audio=sound(TONE * 20))
        await connection.say(1, turnCompleted=True)
        await connection.say(2, text="Next.", audio=sound(WORD))
        await connection.say(2, turnCompleted=True)
        await part(connection)

    async with gateway(tmp_path) as (service, front):
        played = asyncio.create_task(play(service))
        result = await phone(service, front, CUT)
        await played
    # Twenty seconds were sent twice; what was heard is a fraction.
    assert sum(1 for s in result.log.heard if abs(s) > 500) < 8000 * 8


OWN_TURNS = """
caller:
  - wait: {heard: "still there", timeout: 20s}
  - wait: {event: call_ended, timeout: 20s}
expect:
  - heard: "Welcome.*still there"
  - event: {kind: runtime_output, type: goAway, count: 0}
  - event: {kind: user_text, count: 0}
  - event: {kind: transfer, count: 1}
  - ended: transferred
"""


async def test_turns_of_the_services_own_over_two_connections_and_a_transfer(
    tmp_path: Path,
) -> None:
    async def play(service: CesService) -> list[Connection]:
        first = await service.next()
        await greet(first)
        # Nobody has said a word: it asks of itself, and is sent away as it speaks.
        await first.say(2, text="Are you", audio=sound(WORD))
        await first.say(2, audio=sound(WORD))
        await first.send({"goAway": {}})
        second = await service.next()
        await second.until(lambda: bool(second.audio))
        # The second half comes as a turn of its own, and clears nothing that was said.
        await second.say(1, text="still there?", audio=sound(WORD))
        await second.say(1, turnCompleted=True)
        await second.until(lambda: len(second.audio) > len(WORD) * 5)
        # It takes its words back where it has better ones; the caller did nothing.
        await second.say(2, text="One moment.", audio=sound(TONE * 5))
        await second.send({"interruptionSignal": {}})
        metadata = {"session_escalated": True, "params": {"queue": "billing"}}
        await second.say(3, text="Goodbye.", audio=sound(WORD), turnCompleted=True)
        await second.send({"endSession": {"metadata": metadata}})
        return [first, second]

    async with gateway(tmp_path) as (service, front):
        played = asyncio.create_task(play(service))
        await phone(service, front, OWN_TURNS)
        first, second = await played
    assert first.config == second.config
    assert second.given("event") == []


TEXT_CALL = """
caller:
  - wait: {heard: "welcome", timeout: 20s}
  - wait: agent_quiet
  - dtmf: "12"
  - wait: {heard: "one two", timeout: 20s}
  - hangup: true
expect:
  - event: {kind: utterance_queued, source: speech, text: "Welcome."}
  - ended: remote_hangup
"""


async def test_a_call_in_text_where_the_gateway_speaks(tmp_path: Path) -> None:
    async def play(service: CesService) -> Connection:
        connection = await service.next()
        await connection.until(lambda: bool(connection.given("event")))
        assert connection.given("event") == [{"event": "session start"}]
        await connection.say(1, text="Welcome.")
        await connection.say(1, turnCompleted=True)
        # One key a message: the service collects them.
        await connection.until(lambda: connection.given("dtmf") == ["1", "2"])
        await connection.say(2, text="One two.")
        await connection.say(2, turnCompleted=True)
        await part(connection)
        return connection

    async with gateway(tmp_path, kickoff="session start", runtime={"modality": "text"}) as (
        service,
        front,
    ):
        played = asyncio.create_task(play(service))
        await phone(service, front, TEXT_CALL)
        connection = await played
    assert "inputAudioConfig" not in connection.config
    assert not connection.given("audio")


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"google": {"app": APP}, "url": "ws://127.0.0.1:1/x"}, "runtime.google.app"),
        ({"google": {"deployment": "d"}}, "runtime.google.app"),
        ({"google": {"app": "desk"}}, "runtime.google.app"),
        ({"google": {"app": APP, "endpoint": "ws://ces.example"}}, "runtime.google.endpoint"),
        ({"google": {"app": APP, "endpoint": "https://x/y"}}, "runtime.google.endpoint"),
        (
            {"google": {"app": APP, "deployment": "projects/x/deployments/d"}},
            "runtime.google.deployment",
        ),
        ({"google": {"app": APP, "credentials": "/nowhere.json"}}, "/nowhere.json"),
    ],
)
async def test_settings_that_contradict_each_other_are_named(
    settings: dict[str, Any], key: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        async with running(
            load(overrides={"server": {"port": 0}, "speech": QUIET, "runtime": settings})
        ):
            pass
    assert key in f"{caught.value.message} {caught.value.where}"


async def test_a_file_that_the_environment_names_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CREDENTIALS_VARIABLE, "/nowhere.json")
    runtime = {"google": {"app": APP}}
    with pytest.raises(ConfigError) as caught:
        async with running(
            load(overrides={"server": {"port": 0}, "speech": QUIET, "runtime": runtime})
        ):
            pass
    assert (caught.value.code, caught.value.where) == ("config.credentials", "/nowhere.json")
