"""Sessions with Google's agent service over a real socket, also where it misbehaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway import bidi
from gateway.call.events import (
    InputType,
    RuntimeAudio,
    RuntimeEndSession,
    RuntimeInterruption,
    RuntimeOutput,
    RuntimePayload,
    RuntimeText,
    RuntimeTurnCompleted,
    ToRuntime,
)
from gateway.config import GoogleRuntimeSettings
from gateway.errors import RuntimeFailure
from gateway.runtime.client import RuntimeClient
from gateway.runtime.google import GoogleRuntime
from gateway.runtime.google_link import read_close
from gateway.runtime.google_names import session_name
from gateway.runtime.messages import RuntimeTranscript
from tests.assets.servers import certificate
from tests.runtime.ces_service import APP, CesService, Connection, ces_service, sound

MULAW = {"audioEncoding": "MULAW", "sampleRateHertz": 8000}
AUDIO = {"inputAudioConfig": MULAW, "outputAudioConfig": MULAW}


@asynccontextmanager
async def runtime(service: CesService) -> AsyncIterator[GoogleRuntime]:
    google = GoogleRuntime(service.settings)
    try:
        await google.start()
        yield google
    finally:
        await google.aclose()


@asynccontextmanager
async def session(
    service: CesService, config: dict[str, Any] | None = None
) -> AsyncIterator[tuple[RuntimeClient, Connection]]:
    async with runtime(service) as google:
        client = await google.open("CA0001", config or {})
        try:
            yield client, await service.next()
        finally:
            await client.aclose()


async def refusal(service: CesService) -> RuntimeFailure:
    async with runtime(service) as google:
        with pytest.raises(RuntimeFailure) as caught:
            await google.open("CA0001", {})
    return caught.value


class Heard:
    """What a session brings, collected while the test goes on."""

    def __init__(self, client: RuntimeClient) -> None:
        self.items: list[RuntimeOutput] = []
        self.failure: RuntimeFailure | None = None
        self._news = asyncio.Event()
        self.task = asyncio.create_task(self._read(client))

    async def _read(self, client: RuntimeClient) -> None:
        try:
            async for item in client.outputs():
                self.items.append(item)
                self._news.set()
        except RuntimeFailure as error:
            self.failure = error
        self._news.set()

    async def until(self, count: int) -> list[RuntimeOutput]:
        async with asyncio.timeout(10):
            while len(self.items) < count:
                self._news.clear()
                await self._news.wait()
        return self.items

    async def end(self) -> RuntimeFailure | None:
        async with asyncio.timeout(10):
            await self.task
        return self.failure


def text(words: str) -> ToRuntime:
    return ToRuntime(InputType.TEXT, text=words)


# ---- how it is reached


async def test_the_address_and_the_headers_of_the_public_service(tmp_path: Path) -> None:
    async with (
        ces_service(tmp_path, quota_project="payer", routing_header=True) as service,
        session(service) as (_, connection),
    ):
        assert connection.path == (
            "/ws/google.cloud.ces.v1.SessionService/BidiRunSession/locations/eu"
        )
        assert connection.headers["Authorization"] == "Bearer token-1"
        assert connection.headers["X-Goog-User-Project"] == "payer"
        assert connection.headers["x-goog-request-params"] == "location=locations/eu"


async def test_region_and_version_of_the_interface_are_settings(tmp_path: Path) -> None:
    async with (
        ces_service(tmp_path, location="us", api_version="v1beta") as service,
        session(service) as (_, connection),
    ):
        assert connection.path.endswith(".v1beta.SessionService/BidiRunSession/locations/us")
        assert "X-Goog-User-Project" not in connection.headers
        assert "x-goog-request-params" not in connection.headers


async def test_the_first_message_names_what_is_talked_to(tmp_path: Path) -> None:
    more = {
        "deployment": "phone",
        "entry_agent": "front",
        "time_zone": "Europe/Berlin",
        "use_tool_fakes": True,
    }
    async with (
        ces_service(tmp_path, **more) as service,
        session(service, {**AUDIO, "deployment": "theirs", "timeZone": "UTC"}) as (_, connection),
    ):
        await connection.until(lambda: bool(connection.config))
        assert connection.config == {
            "session": f"{APP}/sessions/CA0001",
            **AUDIO,
            "deployment": f"{APP}/deployments/phone",
            "entryAgent": f"{APP}/agents/front",
            "timeZone": "Europe/Berlin",
            "useToolFakes": True,
        }


def test_calls_never_share_a_session_and_clients_choose_its_last_part_only() -> None:
    google = GoogleRuntimeSettings(app=APP)
    ids = ["CA0001", "1", "10", "a.b@c", "a-b@c", "x" * 70, "x" * 71, "-" * 9, ""]
    named = [session_name(google, call_id, {}) for call_id in ids]
    assert named[0] == f"{APP}/sessions/CA0001"
    assert len(set(named)) == len(ids)
    assert all(bidi.session_id(name) for name in named)
    theirs = {"session": "projects/x/locations/y/apps/z/sessions/mine-1"}
    assert session_name(google, "CA0001", theirs) == f"{APP}/sessions/mine-1"


async def test_variables_and_event_are_messages_of_their_own(tmp_path: Path) -> None:
    async with ces_service(tmp_path) as service, session(service) as (client, connection):
        client.send(ToRuntime(InputType.VARIABLES, data={"ani": "+15550100"}))
        client.send(ToRuntime(InputType.EVENT, text="session_start"))
        client.send(ToRuntime(InputType.DTMF, text="5"))
        await connection.until(lambda: len(connection.inputs) == 3)
        assert connection.inputs == [
            {"variables": {"ani": "+15550100"}},
            {"event": {"event": "session_start"}},
            {"dtmf": "5"},
        ]


async def test_an_interruption_without_words_is_not_told_it_hears_it_itself(
    tmp_path: Path,
) -> None:
    async with ces_service(tmp_path) as service, session(service) as (client, connection):
        client.send(ToRuntime(InputType.TEXT, text="", will_continue=True))
        client.send(text("after"))
        await connection.until(lambda: bool(connection.inputs))
        assert connection.inputs == [{"text": "after"}]


# ---- who it lets in


async def test_a_refused_token_is_fetched_anew_once(tmp_path: Path) -> None:
    async with ces_service(tmp_path) as service:
        service.answers = [(401, {})]
        async with session(service) as (_, connection):
            assert service.upgrades == ["Bearer token-1", "Bearer token-2"]
            assert connection.headers["Authorization"] == "Bearer token-2"


async def test_a_token_refused_twice_ends_the_attempt(tmp_path: Path) -> None:
    async with ces_service(tmp_path) as service:
        service.answers = [(401, {}), (401, {})]
        failure = await refusal(service)
        assert failure.code == "runtime.unauthenticated"
        assert len(service.upgrades) == 2


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "invalid_argument"),
        (403, "permission_denied"),
        (404, "not_found"),
        (429, "resource_exhausted"),
        (500, "internal"),
        (503, "unavailable"),
        (504, "deadline_exceeded"),
        (418, "lost"),
    ],
)
async def test_a_refused_upgrade_has_a_code_of_its_own(
    tmp_path: Path, status: int, code: str
) -> None:
    async with ces_service(tmp_path) as service:
        service.answers = [(status, {})]
        failure = await refusal(service)
    assert failure.code == f"runtime.{code}" or (status == 418 and failure.code.endswith("unknown"))
    assert str(status) in failure.message
    assert "token-" not in f"{failure}"


async def test_a_redirect_is_not_followed_with_the_token(tmp_path: Path) -> None:
    async with ces_service(tmp_path) as service:
        service.answers = [(302, {"Location": service.settings.runtime.google.endpoint + "/x"})]
        failure = await refusal(service)
        assert "302" in failure.message
        assert len(service.upgrades) == 1


async def test_a_service_that_hangs_is_given_up_within_the_time_to_start(tmp_path: Path) -> None:
    async with ces_service(tmp_path, runtime={"start_timeout_s": 0.5}) as service:
        service.hang = True
        assert (await refusal(service)).code == "runtime.unreachable"


async def test_a_service_that_is_not_there(tmp_path: Path) -> None:
    async with ces_service(tmp_path, endpoint="wss://127.0.0.1:9") as service:
        assert (await refusal(service)).code == "runtime.unreachable"


async def test_a_certificate_that_nobody_vouches_for(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    _, stranger = certificate(other, "127.0.0.1")
    async with ces_service(tmp_path, ca_file=str(stranger)) as service:
        assert (await refusal(service)).code == "runtime.tls"


# ---- what it says


async def test_names_numbers_and_frames_of_any_legal_spelling(tmp_path: Path) -> None:
    async with ces_service(tmp_path) as service, session(service, AUDIO) as (client, connection):
        heard = Heard(client)
        await connection.send({"session_output": {"text": "Hello", "turn_index": 4.0}})
        await connection.send({"recognitionResult": {"transcript": "hi"}}, binary=True)
        await connection.send({"interruption_signal": {"barge_in": True}, "news": {"x": 1}})
        await connection.say(4, payload={"a": 1.0}, unheardOf=[1], diagnosticInfo={"x": "y" * 5000})
        await connection.say(4, audio=sound(b"\x20" * 160), turnCompleted=True)
        assert await heard.until(6) == [
            RuntimeText("Hello", 4),
            RuntimeTranscript("hi"),
            RuntimeInterruption(True),
            RuntimePayload({"a": 1.0}, 4),
            RuntimeAudio(b"\x20" * 160, 4),
            RuntimeTurnCompleted(4),
        ]
        heard.task.cancel()


async def test_a_message_of_many_megabytes(tmp_path: Path) -> None:
    async with ces_service(tmp_path) as service, session(service) as (client, connection):
        heard = Heard(client)
        await connection.say(1, text="done", diagnosticInfo={"x": "y" * (6 << 20)})
        assert await heard.until(1) == [RuntimeText("done", 1)]
        heard.task.cancel()


@pytest.mark.parametrize("nested", [True, False])
async def test_the_end_of_the_session_in_both_places(tmp_path: Path, nested: bool) -> None:
    end = {"metadata": {"session_escalated": True, "params": {"queue": "billing"}}}
    async with ces_service(tmp_path) as service, session(service) as (client, connection):
        heard = Heard(client)
        await connection.send(
            {"sessionOutput": {"endSession": end}} if nested else {"endSession": end}
        )
        assert await heard.until(1) == [RuntimeEndSession(end["metadata"])]
        heard.task.cancel()


@pytest.mark.parametrize("key", ["transferToNga", "transferToDialogflow"])
async def test_a_payload_that_hands_over_ends_the_session(tmp_path: Path, key: str) -> None:
    async with ces_service(tmp_path) as service, session(service) as (client, connection):
        heard = Heard(client)
        await connection.say(2, payload={key: {"agent": "x"}})
        payload, end = await heard.until(2)
        assert payload == RuntimePayload({key: {"agent": "x"}}, 2)
        assert end == RuntimeEndSession({"reason": key, "session_escalated": True})
        heard.task.cancel()


# ---- how it ends


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (1000, ""),
        (1001, ""),
        (1000, "generic::failed_precondition: [ORIGINAL ERROR] … - goodbye"),
        (1011, "generic::failed_precondition: session over - goodbye."),
    ],
)
async def test_a_close_in_peace_is_the_end_of_the_session(
    tmp_path: Path, code: int, reason: str
) -> None:
    async with ces_service(tmp_path) as service, session(service) as (client, connection):
        heard = Heard(client)
        await connection.say(1, text="Bye.")
        await connection.close(code, reason)
        assert await heard.end() is None
        assert heard.items == [RuntimeText("Bye.", 1), RuntimeEndSession({})]


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (1011, "[ORIGINAL ERROR] generic::resource_exhausted: quota", "resource_exhausted"),
        (1007, "generic::invalid_argument: bad", "invalid_argument"),
        (1008, "generic::permission_denied", "permission_denied"),
        (1000, "generic::internal: trace 1234", "internal"),
        (1011, "", "internal"),
        (1007, "", "invalid_argument"),
        (1008, "Token expired", "unauthenticated"),
        (4321, "what", "lost"),
    ],
)
async def test_a_close_with_a_reason_is_a_failure_with_its_code(
    tmp_path: Path, code: int, reason: str, expected: str
) -> None:
    async with ces_service(tmp_path) as service:
        # The last one may be mended on another connection; here there is none.
        async with session(service) as (client, connection):
            heard = Heard(client)
            await connection.say(1, text="Hello")
            await heard.until(1)
            service.answers = [(403, {})]
            await connection.close(code, reason)
            failure = await heard.end()
        assert failure is not None
        if expected == "lost":
            assert failure.code == "runtime.permission_denied"
        else:
            assert failure.code == f"runtime.{expected}"


@pytest.mark.parametrize(("code", "lost"), [(1005, None), (None, "runtime.lost")])
def test_a_close_without_code_is_peace_and_no_close_at_all_a_loss(
    code: int | None, lost: str | None
) -> None:
    found = read_close(code, "")
    assert (found.code if found else None) == lost


@pytest.mark.parametrize("frame", ["{", "[1]", b"\xff\xfe"])
async def test_a_frame_that_is_no_message_is_a_failure(tmp_path: Path, frame: str | bytes) -> None:
    async with ces_service(tmp_path) as service, session(service) as (client, connection):
        heard = Heard(client)
        await connection.raw(frame)
        failure = await heard.end()
    assert failure is not None
    assert failure.code == "runtime.protocol"


async def test_audio_in_a_session_that_asked_for_none_does_not_break_a_renewal(
    tmp_path: Path,
) -> None:
    async with ces_service(tmp_path, renew_s=0.001) as service, session(service) as (client, first):
        heard = Heard(client)
        await first.say(1, audio=sound(b"\x20" * 160), turnCompleted=True)
        second = await service.next()
        await second.say(2, text="Hello")
        await heard.until(3)
        assert heard.failure is None
        heard.task.cancel()


async def test_a_close_before_any_word_is_no_peace(tmp_path: Path) -> None:
    async with ces_service(tmp_path) as service, session(service) as (client, connection):
        heard = Heard(client)
        await connection.close(1000)
        failure = await heard.end()
    assert failure is not None
    assert failure.code == "runtime.failed_precondition"


async def test_a_close_that_comes_before_the_configuration_keeps_its_reason(tmp_path: Path) -> None:
    async with ces_service(tmp_path) as service, runtime(service) as google:
        link = await google._connect()
        connection = await service.next()
        await connection.close(1011, "generic::resource_exhausted: quota")
        with pytest.raises(RuntimeFailure) as caught:
            await link.send({"config": {}})
        assert caught.value.code == "runtime.resource_exhausted"
        await link.aclose()


# ---- one session over many connections


async def test_go_away_goes_on_with_the_session_and_what_was_said_meanwhile(
    tmp_path: Path,
) -> None:
    async with ces_service(tmp_path) as service:
        service.tokens = [(200, {"access_token": "short", "expires_in": 200})]
        async with session(service) as (client, first):
            heard = Heard(client)
            client.send(ToRuntime(InputType.EVENT, text="session_start"))
            await first.say(1, text="Hello", turnCompleted=True)
            await heard.until(2)
            await first.send({"goAway": {}})
            client.send(text("one"))
            client.send(text("two"))
            second = await service.next()
            # What was on its way when the service spoke has reached it on the first connection.
            await second.until(lambda: bool(second.config))
            client.send(text("three"))
            await second.until(lambda: "three" in second.given("text"))
            assert second.config == first.config
            assert first.given("text") + second.given("text") == ["one", "two", "three"]
            assert not second.given("event")
            assert service.upgrades[-1] == "Bearer token-1"
            await first.until(first.gone.is_set)
            await second.say(1, text="Counting anew")
            assert (await heard.until(3))[2] == RuntimeText("Counting anew", 2)
            heard.task.cancel()


async def test_a_turn_that_go_away_cuts_short_is_over(tmp_path: Path) -> None:
    async with ces_service(tmp_path) as service, session(service) as (client, first):
        heard = Heard(client)
        await first.say(1, text="I was about to")
        await first.send({"goAway": {}})
        await service.next()
        assert (await heard.until(2))[1] == RuntimeTurnCompleted(1)
        heard.task.cancel()


async def test_a_service_that_keeps_sending_us_away_is_left(tmp_path: Path) -> None:
    async with ces_service(tmp_path) as service, session(service) as (client, connection):
        heard = Heard(client)
        for _ in range(6):
            await connection.send({"goAway": {}})
            if len(service.taken) < 6:
                connection = await service.next()
        failure = await heard.end()
    assert failure is not None
    assert failure.code == "runtime.go_away"


async def test_a_connection_that_breaks_is_replaced(tmp_path: Path) -> None:
    async with ces_service(tmp_path) as service, session(service) as (client, first):
        heard = Heard(client)
        await first.say(1, text="Hello", turnCompleted=True)
        await heard.until(2)
        first.vanish()
        second = await service.next()
        await second.say(2, text="Still here")
        assert (await heard.until(3))[2] == RuntimeText("Still here", 2)
        heard.task.cancel()


async def test_a_busy_moment_of_the_service_is_waited_for(tmp_path: Path) -> None:
    async with ces_service(tmp_path) as service, session(service) as (client, first):
        heard = Heard(client)
        await first.say(1, text="Hello", turnCompleted=True)
        await heard.until(2)
        service.answers = [(503, {})]
        first.vanish()
        await first.gone.wait()
        client.send(text("Anybody there?"))
        second = await service.next()
        await second.until(lambda: second.given("text") == ["Anybody there?"])
        await second.say(2, text="Back")
        assert (await heard.until(3))[2] == RuntimeText("Back", 2)
        heard.task.cancel()


async def test_a_silent_service_is_tried_once_more_and_then_given_up(tmp_path: Path) -> None:
    async with (
        ces_service(tmp_path, silence_s=0.3) as service,
        session(service, AUDIO) as (client, first),
    ):
        heard = Heard(client)
        await first.say(1, text="Hello", turnCompleted=True)
        await heard.until(2)
        loud = b"\x00\x80" * 240
        client.send(ToRuntime(InputType.AUDIO, audio=loud))
        second = await service.next()
        await second.until(lambda: bool(second.config))
        assert second.config == first.config
        failure = await heard.end()
    assert failure is not None
    assert failure.code == "runtime.silent"
    assert len(service.taken) == 2


async def test_a_caller_who_says_nothing_is_not_what_a_service_falls_silent_of(
    tmp_path: Path,
) -> None:
    async with (
        ces_service(tmp_path, silence_s=0.05) as service,
        session(service, AUDIO) as (client, first),
    ):
        heard = Heard(client)
        await first.say(1, text="Hello", turnCompleted=True)
        await heard.until(2)
        # Many times the limit, all of it heard by the service.
        for _ in range(20):
            client.send(ToRuntime(InputType.AUDIO, audio=b"\xff" * 480))
            await asyncio.sleep(0.02)
        await first.until(lambda: len(first.audio) == 20 * 480)
        await first.say(2, text="Are you there?", turnCompleted=True)
        assert (await heard.until(4))[2] == RuntimeText("Are you there?", 2)
        assert len(service.taken) == 1
        heard.task.cancel()


async def test_an_old_connection_is_replaced_at_a_quiet_moment(tmp_path: Path) -> None:
    async with (
        ces_service(tmp_path, renew_s=0.2) as service,
        session(service) as (client, first),
    ):
        heard = Heard(client)
        await first.say(1, text="Hello", turnCompleted=True)
        await heard.until(2)
        second = await service.next()
        await second.until(lambda: bool(second.config))
        assert second.config["session"] == first.config["session"]
        assert heard.failure is None
        heard.task.cancel()


def test_a_token_is_never_shown() -> None:
    """Nor is anything that may quote one: reasons of closes and of handshakes."""
    failure = read_close(1011, "generic::internal: Bearer secret-token +15550100")
    assert failure is not None
    assert "secret" not in f"{failure} {failure.message} {failure.hint} {failure.where}"
