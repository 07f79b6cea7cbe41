"""The platform's end of a call, over real sockets: how calls start, end, and come back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from gateway.call.profile import CallProfile
from gateway.channels.capabilities import DtmfOut, EndOut, TransferBy
from gateway.channels.dialects import DIALECTS
from gateway.channels.twilio_rest import TwilioRest
from gateway.platform_settings import TwilioSettings
from gateway.platforms import line as line_module
from gateway.platforms.rest import RestControl
from gateway.platforms.terms import Terms
from tests.platforms.live import Live, live, probe
from tests.platforms.rest_server import RestServer, rest_server
from tests.server.echo import until
from tests.server.wire import media_path, request, ws_url

NUMBER = {"params": {"PHONE_GATEWAY_TRANSFER": {"phoneNumber": "+15550123"}}}


@pytest.fixture
def with_probe(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Enter a probe with such a record in the registry."""

    def enter(**over: Any) -> None:
        monkeypatch.setattr(
            "gateway.channels.dialects.DIALECTS", {**DIALECTS, "probe": probe(**over)}
        )
        monkeypatch.setattr("gateway.server.routes.DIALECTS", {**DIALECTS, "probe": probe(**over)})

    return enter


def dial(running: Live, path: str = "/probe/blue", **more: Any) -> connect:
    return connect(
        ws_url(running.gateway, path), compression=None, ping_interval=None, close_timeout=2, **more
    )


async def tell(client: ClientConnection, kind: str, **fields: Any) -> None:
    await client.send(json.dumps({"t": kind, **fields}))


async def words(client: ClientConnection) -> list[dict[str, Any]]:
    """Everything that is said until the socket closes, audio left out."""
    said = []
    try:
        while True:
            message = await client.recv()
            if isinstance(message, str):
                said.append(json.loads(message))
    except ConnectionClosed:
        return said


async def next_word(client: ClientConnection, kind: str) -> dict[str, Any]:
    async with asyncio.timeout(5):
        while True:
            message = await client.recv()
            if isinstance(message, str):
                body: dict[str, Any] = json.loads(message)
                if body["t"] == kind:
                    return body


# ---- the upgrade


async def test_query_path_and_headers_reach_the_codec(with_probe: Callable[..., None]) -> None:
    with_probe(starts_when_opened=True)
    address = "/probe/blue%20room?tier=g%C3%B6ld&x="
    async with live() as running, dial(running, address) as client:
        await until(lambda: running.agents and running.agents[0].inputs("variables"))
        assert running.agents[0].inputs("variables") == [{"room": "blue room", "tier": "göld"}]
        await tell(client, "bye")


@pytest.mark.parametrize(
    ("offered", "agreed"),
    [([], None), (["x"], None), (["x", "probe"], "probe"), (["probe", "new.probe"], "new.probe")],
)
async def test_a_subprotocol_that_was_offered_is_agreed_on(
    with_probe: Callable[..., None], offered: list[str], agreed: str | None
) -> None:
    with_probe()
    names = [Subprotocol(name) for name in offered]
    async with live() as running, dial(running, subprotocols=names or None) as client:
        assert client.subprotocol == agreed


async def test_binary_messages_end_a_dialect_of_text(with_probe: Callable[..., None]) -> None:
    with_probe(binary_in=False)
    async with live() as running, dial(running) as client:
        await tell(client, "start", id="c1")
        await client.send(b"\xff" * 160)
        await words(client)
        assert client.close_code == 1003
        assert running.codes("c1") == ["protocol.binary"]


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_platform_that_must_not_be_pinged_may_be_silent(
    with_probe: Callable[..., None], allowed: bool
) -> None:
    with_probe(ping_allowed=allowed)
    async with live() as running, dial(running) as client:
        await tell(client, "start", id="c1")
        await until(lambda: running.agents)
        [line] = running.gateway._sockets
        now = asyncio.get_running_loop().time()
        line.check(now + 30)
        assert line._pinged == allowed
        line.check(now + 1000)
        assert (line._closing_s is not None) == allowed


async def test_a_platform_that_sends_all_the_time_is_missed_by_its_own_measure(
    with_probe: Callable[..., None],
) -> None:
    with_probe(receive_idle_s=7.0)
    async with live() as running, dial(running) as client:
        await tell(client, "start", id="c1")
        await until(lambda: running.agents)
        [line] = running.gateway._sockets
        now = asyncio.get_running_loop().time()
        line.check(now + 6.0)
        assert line._closing_s is None
        line.check(now + 7.5)
        assert line._closing_s is not None


async def test_a_platform_that_is_switched_off_is_not_served() -> None:
    async with live(platforms={"twilio": {"enabled": False}}) as running:
        with pytest.raises(InvalidStatus) as caught:
            async with dial(running, "/twilio/media"):
                pass
        assert caught.value.response.status_code == 404


# ---- the start


async def test_a_start_that_does_not_come_is_assumed(with_probe: Callable[..., None]) -> None:
    with_probe(starts_within_s=0.05)
    async with live() as running, dial(running) as client:
        await until(lambda: running.calls and running.calls[0].started)
        assert running.calls[0].call_id == "assumed-1"
        await tell(client, "bye")
        await until(lambda: running.ends("assumed-1") == ["remote_hangup"], 10)


async def test_a_start_that_comes_is_not_assumed_again(with_probe: Callable[..., None]) -> None:
    with_probe(starts_within_s=0.05)
    async with live() as running, dial(running) as client:
        await tell(client, "start", id="c1")
        await until(lambda: running.calls and running.calls[0].started)
        await asyncio.sleep(0.1)
        assert running.calls[0].call_id == "c1"
        assert not running.codes("c1")


async def test_names_entry_agent_and_length_are_the_operator_s(
    with_probe: Callable[..., None],
) -> None:
    with_probe(end_out=EndOut.MESSAGE)
    terms = Terms(variables={"X-Tier": "tier"}, entry_agent="Billing", max_call_s=0.1)
    profile = CallProfile(variables=frozenset({"tier"}), limit_message="")
    async with live({"probe": terms}, profile=profile) as running, dial(running) as client:
        await tell(client, "start", id="c1", custom={"X-Tier": "gold", "stranger": "x"})
        await until(lambda: running.agents and running.agents[0].inputs("variables"))
        assert running.agents[0].inputs("variables") == [{"tier": "gold"}]
        assert running.agents[0].heard[0]["config"]["entryAgent"] == "Billing"
        assert (await next_word(client, "Hangup"))["reason"] == "limit"


async def test_an_account_has_no_more_calls_than_it_may(with_probe: Callable[..., None]) -> None:
    with_probe()
    async with live({"probe": Terms(max_calls_per_account=1)}) as running:
        async with dial(running) as first:
            await tell(first, "start", id="c1", account="A")
            await until(lambda: running.calls and running.calls[0].started)
            async with dial(running) as second, dial(running) as other:
                await tell(second, "start", id="c2", account="A")
                assert (await next_word(second, "Hangup"))["reason"] == "limit"
                assert running.codes("c2") == ["admission.account"]
                await tell(other, "start", id="c3", account="B")
                await until(lambda: len(running.agents) == 2)
                assert running.ends("c1") == running.ends("c3") == []
        await until(lambda: running.ends("c1"), 10)
        async with dial(running) as third:
            await tell(third, "start", id="c4", account="A")
            await until(lambda: len(running.agents) == 3)


async def test_a_call_has_one_socket_and_is_not_begun_again_at_its_end(
    with_probe: Callable[..., None],
) -> None:
    with_probe(end_out=EndOut.REST)
    async with rest_server() as server:
        settings = TwilioSettings(account="AC1", auth_tokens=["t"], rest_url=server.url)
        words_of = TwilioRest(settings)
        async with live({"probe": Terms(control=RestControl(words_of))}) as running:
            async with dial(running) as first:
                await tell(first, "start", id="c1")
                await until(lambda: running.calls and running.calls[0].started)
                async with dial(running) as second:
                    await tell(second, "start", id="c1")
                    await words(second)
                    assert second.close_code == 1008
                    assert "has a socket already" in (second.close_reason or "")
                # The first goes on, and the platform was not asked to hang up its call.
                assert running.ends("c1") == []
                assert len(running.agents) == 1
                assert not server.asked
                await tell(first, "bye")
                await until(lambda: running.ends("c1"))
            async with dial(running) as third:
                await tell(third, "start", id="c1")
                await words(third)
                assert third.close_code == 1008
                assert "is over" in (third.close_reason or "")
            assert running.ends("c1") == ["remote_hangup"]
            assert len(running.agents) == 1


# ---- the end


@pytest.fixture
async def twilio_api() -> AsyncIterator[tuple[RestServer, Terms]]:
    """Twilio's REST interface, and the terms that use it."""
    async with rest_server() as server:
        settings = TwilioSettings(account="AC1", auth_tokens=["t"], rest_url=server.url)
        control = RestControl(TwilioRest(settings))
        yield server, Terms(control=control)
        await control.aclose()


TWILIO_START = {"streamSid": "MZ1", "callSid": "CA1", "accountSid": "AC1"}


async def twilio_call(running: Live, client: ClientConnection) -> None:
    start = {"event": "start", "streamSid": "MZ1", "start": TWILIO_START}
    await client.send(json.dumps(start))
    await until(lambda: running.agents)


@pytest.mark.parametrize(
    ("metadata", "form", "reason"),
    [
        ({"reason": "done"}, {"Status": "completed"}, "completed"),
        (NUMBER, {"Twiml": "<Response><Dial>+15550123</Dial></Response>"}, "transferred"),
    ],
)
async def test_twilio_calls_end_and_are_handed_on_by_rest(
    twilio_api: tuple[RestServer, Terms], metadata: Any, form: dict[str, str], reason: str
) -> None:
    server, terms = twilio_api
    async with live({"twilio": terms}) as running:
        async with dial(running, await media_path(running.gateway)) as client:
            await twilio_call(running, client)
            running.agents[0].end(**metadata)
            await words(client)
            assert client.close_code == 1000
        assert [asked.form for asked in server.asked] == [form]
        assert running.ends("CA1") == [reason]


async def test_an_account_that_the_webhook_names_is_refused_before_the_upgrade() -> None:
    limits = {"twilio": {"max_calls_per_account": 1}}
    terms = {"twilio": Terms(max_calls_per_account=1)}
    async with live(terms, platforms=limits) as running:
        paths = [await media_path(running.gateway, sid, account="AC1") for sid in ("CA1", "CA2")]
        async with dial(running, paths[0]) as first:
            await twilio_call(running, first)
            with pytest.raises(InvalidStatus) as caught:
                async with dial(running, paths[1]):
                    pass
            assert caught.value.response.status_code == 503
            assert "Retry-After" in caught.value.response.headers
            form = {"CallSid": "CA3", "AccountSid": "AC1"}
            status, _, body = await request(running.gateway, "POST", "/twilio/voice", data=form)
            assert (status, b"this account" in body) == (503, True)
            await media_path(running.gateway, "CA4", account="AC2")
            assert running.ends("CA1") == []
            await first.send(json.dumps({"event": "stop", "streamSid": "MZ1"}))
            await until(lambda: running.ends("CA1"))
        # The token was not used up by the refusal.
        async with dial(running, paths[1]):
            pass


async def test_a_caller_who_hung_up_is_not_hung_up_again(
    twilio_api: tuple[RestServer, Terms],
) -> None:
    server, terms = twilio_api
    async with live({"twilio": terms}) as running:
        async with dial(running, await media_path(running.gateway)) as client:
            await twilio_call(running, client)
            await client.send(json.dumps({"event": "stop", "streamSid": "MZ1"}))
            running.agents[0].end()
            await words(client)
        assert running.ends("CA1") == ["remote_hangup"]
        assert not server.asked


async def test_a_transfer_that_rest_refuses_is_no_transfer(
    twilio_api: tuple[RestServer, Terms],
) -> None:
    server, terms = twilio_api
    server.will(401)
    with capture_logs() as lines:
        async with live({"twilio": terms}) as running:
            async with dial(running, await media_path(running.gateway)) as client:
                await twilio_call(running, client)
                running.agents[0].end(**NUMBER)
                await words(client)
                assert client.close_code == 1000
            assert running.ends("CA1") == ["error"]
            told = running.timeline("CA1")
    heard = [line["heard_text"] for line in told if line["kind"] == "utterance_ended"]
    assert heard == [CallProfile().fallback_message]
    assert [asked.form.get("Status") for asked in server.asked] == [None, "completed"]
    (line,) = [line for line in lines if line.get("code", "").startswith("rest.")]
    assert line["event"] == "call.error"
    assert line["message"] == "the platform answered 401"
    assert (line["where"], line["hint"]) == ("platforms", "check account and secret")
    assert "15550123" not in str(lines)


async def test_a_platform_that_takes_the_caller_before_it_answers_has_handed_them_on(
    twilio_api: tuple[RestServer, Terms],
) -> None:
    server, terms = twilio_api
    server.hold = asyncio.Event()
    async with live({"twilio": terms}) as running:
        async with dial(running, await media_path(running.gateway)) as client:
            await twilio_call(running, client)
            running.agents[0].end(**NUMBER)
            await server.arrived.wait()
            await client.send(json.dumps({"event": "stop", "streamSid": "MZ1"}))
        server.hold.set()
        await until(lambda: running.ends("CA1") == ["transferred"])
    assert len(server.asked) == 1


async def test_a_hand_over_to_nobody_in_particular_is_the_close(
    twilio_api: tuple[RestServer, Terms],
) -> None:
    server, terms = twilio_api
    async with live({"twilio": terms}) as running:
        async with dial(running, await media_path(running.gateway)) as client:
            await twilio_call(running, client)
            running.agents[0].end(session_escalated=True)
            await words(client)
            assert client.close_code == 1000
        assert running.ends("CA1") == ["transferred"]
    assert not server.asked, "the verbs behind the stream go on"


async def logged(frames: int) -> list[str]:
    """The events in the log of a call that brings so many messages of audio."""
    with capture_logs() as lines:
        async with live() as running, dial(running) as client:
            await tell(client, "start", id="c1")
            await until(lambda: running.agents)
            for _ in range(frames):
                await client.send(b"\xff" * 160)
            running.agents[0].say("One moment.")
            await tell(client, "bye")
            running.agents[0].end()
            await words(client)
            await until(lambda: running.ends("c1"))
    return sorted(line["event"] for line in lines)


async def test_no_message_of_audio_is_a_line_in_the_log(with_probe: Callable[..., None]) -> None:
    with_probe()
    few = await logged(2)
    assert few
    assert await logged(300) == few


async def test_a_hang_up_that_fails_is_one_line(twilio_api: tuple[RestServer, Terms]) -> None:
    server, terms = twilio_api
    server.will(403)
    with capture_logs() as lines:
        async with live({"twilio": terms}) as running:
            async with dial(running, await media_path(running.gateway)) as client:
                await twilio_call(running, client)
                running.agents[0].end()
                await words(client)
            assert running.ends("CA1") == ["completed"]
    (line,) = [line for line in lines if line["log_level"] == "warning"]
    assert (line["event"], line["code"]) == ("platform.hangup_failed", "rest.refused")


async def test_a_line_in_the_log_names_its_own_call_whoever_else_calls(
    with_probe: Callable[..., None], twilio_api: tuple[RestServer, Terms]
) -> None:
    with_probe()
    server, terms = twilio_api
    server.will(403)
    with capture_logs(processors=[merge_contextvars]) as lines:
        async with live({"twilio": terms}) as running:
            path = await media_path(running.gateway)
            async with dial(running, path) as client, dial(running) as other:
                await twilio_call(running, client)
                await tell(other, "start", id="c1")
                await until(lambda: len(running.agents) == 2)
                running.agents[0].say("Goodbye.")
                running.agents[0].end()
                await words(client)
    (line,) = [line for line in lines if line["log_level"] == "warning"]
    assert (line["event"], line["call_id"]) == ("platform.hangup_failed", "CA1")
    assert line["dialect"] == "twilio"


async def test_without_credentials_a_twilio_call_ends_by_its_close() -> None:
    async with live() as running:
        async with dial(running, await media_path(running.gateway)) as client:
            await twilio_call(running, client)
            running.agents[0].end(session_escalated=True, **NUMBER)
            await words(client)
            assert client.close_code == 1000
        assert running.ends("CA1") == ["transferred"]


async def test_keys_are_pressed_by_rest(
    with_probe: Callable[..., None], twilio_api: tuple[RestServer, Terms]
) -> None:
    with_probe(dtmf_out=DtmfOut.REST)
    server, terms = twilio_api
    async with live({"probe": terms}) as running, dial(running) as client:
        await tell(client, "start", id="c1")
        await until(lambda: running.agents)
        running.agents[0].payload({"sendDtmf": "12#"})
        await until(lambda: server.asked)
        assert 'digits="12#"' in server.asked[0].form["Twiml"]
        await tell(client, "bye")


async def test_data_goes_back_with_the_end(with_probe: Callable[..., None]) -> None:
    with_probe(end_out=EndOut.MESSAGE, transfer=TransferBy.OUTPUTS)
    async with live() as running, dial(running) as client:
        await tell(client, "start", id="c1")
        await until(lambda: running.agents)
        running.agents[0].end(session_escalated=True, params={"queue": "gold", "n": 3})
        assert (await next_word(client, "Transfer"))["outputs"] == {"queue": "gold", "n": "3"}
        await client.close()
        await until(lambda: running.ends("c1") == ["transferred"])


async def test_a_platform_that_closes_first_is_answered_until_then(
    with_probe: Callable[..., None],
) -> None:
    with_probe(end_out=EndOut.MESSAGE)
    async with live() as running, dial(running) as client:
        await tell(client, "start", id="c1")
        await until(lambda: running.agents)
        running.agents[0].end()
        await next_word(client, "Hangup")
        await client.send(b"\xff" * 160)
        await tell(client, "bye")
        assert await next_word(client, "bye-bye")
        await words(client)
        assert client.close_code == 1000


async def test_one_that_does_not_close_is_closed(
    with_probe: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_module, "PEER_CLOSE_S", 0.05)
    with_probe(end_out=EndOut.MESSAGE)
    async with live() as running, dial(running) as client:
        await tell(client, "start", id="c1")
        await until(lambda: running.agents)
        running.agents[0].end()
        assert [word["t"] for word in await words(client)] == ["Hangup"]
        assert client.close_code == 1000


# ---- a platform that comes back


async def test_a_call_goes_on_over_another_socket(with_probe: Callable[..., None]) -> None:
    with_probe(resume_s=5.0, end_out=EndOut.MESSAGE)
    async with live() as running:
        async with dial(running) as client:
            await tell(client, "start", id="c1")
            await until(lambda: running.agents)
            client.transport.abort()
        async with dial(running) as client:
            await until(lambda: running.gateway.active == 2)
            await tell(client, "rejoin", id="c1")
            assert (await next_word(client, "Rejoined"))["accepted"] is True
            # The lost socket's line is free again.
            await until(lambda: running.gateway.active == 1)
            running.agents[0].payload({"sendDtmf": "1"})
            async with asyncio.timeout(5):
                while not isinstance(await client.recv(), bytes):
                    pass
            await tell(client, "bye")
            await words(client)
        await until(lambda: running.ends("c1") == ["remote_hangup"], 10)
        assert len(running.agents) == 1


async def test_a_call_whose_platform_stays_away_is_lost(with_probe: Callable[..., None]) -> None:
    with_probe(resume_s=0.05)
    async with live() as running:
        async with dial(running) as client:
            await tell(client, "start", id="c1")
            await until(lambda: running.agents)
            client.transport.abort()
        await until(lambda: running.ends("c1") == ["transport_lost"], 10)


async def test_nobody_rejoins_a_call_that_is_not_there(with_probe: Callable[..., None]) -> None:
    with_probe(resume_s=5.0)
    async with live() as running, dial(running) as client:
        await tell(client, "rejoin", id="c9")
        said = await words(client)
        assert {"t": "Rejoined", "accepted": False} in said
        assert not running.agents
