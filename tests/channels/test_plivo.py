"""Plivo audio streaming, message by message; its webhooks, signature and REST interface."""

from __future__ import annotations

import base64
import json
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plivo.utils.signature_v3 import validate_v3_signature

from gateway.audio.formats import MULAW_8K, AudioFormat, Encoding
from gateway.channels import plivo_rest
from gateway.channels.base import (
    AgentText,
    AudioIn,
    Clear,
    Close,
    DtmfIn,
    Ended,
    EndReason,
    Hangup,
    MarkReached,
    SendMark,
    Started,
    Transfer,
)
from gateway.channels.capabilities import DtmfOut, EndOut, Marks, MarksOnClear, TransferBy
from gateway.channels.dialect import Basic, CallRef, Hook, Opening, Request
from gateway.channels.plivo import MAX_HEADERS_CHARS, PlivoChannel, answer, custom_of, transfer
from gateway.channels.plivo_proof import PlivoProof, sign
from gateway.errors import AuthError, ProtocolError
from gateway.platform_settings import PlivoSettings
from tests.channels.fuzz import messages, only_protocol_errors

START: dict[str, Any] = {
    "event": "start",
    "sequenceNumber": 0,
    "start": {
        "callId": "call-1",
        "streamId": "stream-1",
        "accountId": "MA1",
        "tracks": ["inbound"],
        "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000},
    },
    "extra_headers": '{"from":"15550100","tier":"gold"}',
}
NAMES = [
    *("event", "start", "media", "dtmf", "playedStream", "stop", "extra_headers", "name", "digit"),
    *("callId", "streamId", "mediaFormat", "encoding", "sampleRate", "payload", "track"),
]


def plivo(expected_call_id: str = "", **settings: Any) -> PlivoChannel:
    return PlivoChannel(Opening(PlivoSettings(**settings), expected_call_id=expected_call_id))


def started(**settings: Any) -> PlivoChannel:
    channel = plivo(**settings)
    channel.receive(json.dumps(START))
    return channel


def in_format(encoding: str, rate_hz: Any) -> str:
    told = {**START["start"], "mediaFormat": {"encoding": encoding, "sampleRate": rate_hz}}
    return json.dumps({**START, "start": told})


def media(payload: bytes, **over: Any) -> str:
    body = {"track": "inbound", "timestamp": "20", "chunk": 1}
    body |= {"payload": base64.b64encode(payload).decode(), **over}
    return json.dumps({"event": "media", "streamId": "stream-1", "media": body})


# ---- in


def test_the_first_message_is_the_start() -> None:
    assert plivo().receive(json.dumps(START)) == [
        Started(
            call_id="call-1",
            channel_id="stream-1",
            from_="15550100",
            in_format=MULAW_8K,
            out_format=MULAW_8K,
            custom={"from": "15550100", "tier": "gold"},
            account="MA1",
        )
    ]


@pytest.mark.parametrize("rate_hz", [8000, 16000])
def test_linear16_at_both_rates(rate_hz: int) -> None:
    channel = plivo()
    (event,) = channel.receive(in_format("audio/x-l16", rate_hz))
    assert isinstance(event, Started)
    assert event.in_format == event.out_format == AudioFormat(Encoding.LINEAR16, rate_hz)
    told = json.loads(channel.audio(b"\x01\x00", 1))
    assert told["media"] == {
        "contentType": "audio/x-l16",
        "sampleRate": rate_hz,
        "payload": "AQA=",
    }


@pytest.mark.parametrize(
    "headers",
    [
        {"X-PH-tier": "gold"},
        '{"X-PH-tier": "gold"}',
        "X-PH-tier=gold",
        "{X-PH-tier: gold}",
        "other=1;X-PH-tier=gold",
    ],
)
def test_custom_values_in_every_spelling(headers: object) -> None:
    custom = custom_of(headers)
    assert custom["tier"] == custom["X-PH-tier"] == "gold"


@pytest.mark.parametrize("headers", [None, "", "{}", "[]", 7, [], "alone", "=x"])
def test_custom_values_that_are_none(headers: object) -> None:
    assert custom_of(headers) == {}


def test_audio_keys_and_checkpoints() -> None:
    channel = started()
    assert channel.receive(media(b"\x01\x02\x03")) == [AudioIn(b"\x01\x02\x03")]
    assert channel.receive(media(b"")) == []
    assert channel.receive(media(b"\x01", track="outbound")) == []
    dtmf = {"event": "dtmf", "dtmf": {"track": "inbound", "digit": "#", "timestamp": "4"}}
    assert channel.receive(json.dumps(dtmf)) == [DtmfIn("#")]
    played = {"event": "playedStream", "streamId": "stream-1", "name": "7.3"}
    assert channel.receive(json.dumps(played)) == [MarkReached("7.3")]
    assert channel.receive('{"event":"clearedAudio","streamId":"stream-1"}') == []
    assert channel.receive('{"event":"new","media":7}') == []


def test_before_the_start_only_audio_is_passed_on() -> None:
    assert plivo().receive(media(b"\x7f")) == [AudioIn(b"\x7f")]
    assert plivo().receive('{"event":"playedStream","name":"x"}') == []
    assert plivo().receive('{"event":"dtmf","dtmf":{"digit":"1"}}') == []


def test_a_stop_of_a_kindred_platform_ends_the_call() -> None:
    channel = started()
    assert channel.receive('{"event":"stop"}') == [Ended()]
    assert channel.receive(media(b"\x01")) == []


@pytest.mark.parametrize(
    ("message", "code", "close_code"),
    [
        (b"{}", "protocol.binary", 1003),
        ("hello", "protocol.json", 1007),
        ("[]", "protocol.shape", 1007),
        ('{"event":"media","media":{"payload":"%"}}', "protocol.shape", 1007),
        ('{"event":"media"}', "protocol.shape", 1007),
        ('{"event":"dtmf","dtmf":{"digit":"12"}}', "protocol.dtmf", 1007),
        (json.dumps(START), "protocol.started_twice", 1002),
    ],
)
def test_a_broken_peer_is_told_how(message: str | bytes, code: str, close_code: int) -> None:
    with pytest.raises(ProtocolError) as caught:
        started().receive(message)
    assert (caught.value.code, caught.value.close_code) == (code, close_code)


@pytest.mark.parametrize(
    "audio", [("audio/x-mulaw", 16000), ("audio/x-l16", 24000), ("audio/opus", 8000)]
)
def test_another_format_is_refused(audio: tuple[str, int]) -> None:
    with pytest.raises(ProtocolError) as caught:
        plivo().receive(in_format(*audio))
    assert caught.value.code == "protocol.format"


def test_another_call_than_the_token_s_is_refused() -> None:
    with pytest.raises(ProtocolError) as caught:
        plivo("other").receive(json.dumps(START))
    assert (caught.value.code, caught.value.close_code) == ("protocol.other_call", 1008)
    assert plivo("call-1").receive(json.dumps(START))


# ---- out


def test_commands() -> None:
    channel = started()
    assert json.loads(channel.audio(b"\xff" * 160, 1)) == {
        "event": "playAudio",
        "media": {
            "contentType": "audio/x-mulaw",
            "sampleRate": 8000,
            "payload": base64.b64encode(b"\xff" * 160).decode(),
        },
    }
    (checkpoint,) = channel.command(SendMark("7.3"))
    assert json.loads(str(checkpoint)) == {
        "event": "checkpoint",
        "streamId": "stream-1",
        "name": "7.3",
    }
    (clear,) = channel.command(Clear())
    assert json.loads(str(clear)) == {"event": "clearAudio", "streamId": "stream-1"}
    assert channel.command(Hangup(EndReason.COMPLETED)) == [Close(1000, "completed")]
    assert channel.command(Transfer("+1")) == [Close(1000, "transferred")]
    assert channel.command(AgentText("hi", 1)) == []


def test_a_stream_that_would_come_back_is_stopped_first() -> None:
    stop, close = started(stop_stream=True).command(Hangup(EndReason.COMPLETED))
    assert json.loads(str(stop)) == {"event": "stop", "streamId": "stream-1"}
    assert close == Close(1000, "completed")
    assert plivo(stop_stream=True).command(Hangup(EndReason.LIMIT)) == [Close(1000, "limit")]


def test_the_record() -> None:
    able = plivo().capabilities
    assert (able.marks, able.marks_on_clear) == (Marks.NATIVE, MarksOnClear.LOST)
    assert (able.dtmf_out, able.end_out, able.transfer) == (
        DtmfOut.REST,
        EndOut.REST,
        TransferBy.REST,
    )


# ---- webhooks

FORM = {"CallUUID": ["call-1"], "From": ["15550100"], "To": ["15550199"], "Tier_X": ["go ld"]}


def hook(request: Request, **settings: Any) -> Hook[PlivoSettings]:
    return Hook(PlivoSettings(**settings), request, lambda call: f"wss://h/{call}/t")


@pytest.mark.parametrize(
    "request_", [Request("", method="POST", form=FORM), Request("", query=FORM)]
)
def test_the_answer_streams_the_call_both_ways(request_: Request) -> None:
    settings = {"variables": {"Tier_X": "tier"}, "content_type": "audio/x-l16;rate=16000"}
    (stream,) = ElementTree.fromstring(answer(hook(request_, **settings)).body)
    assert (stream.tag, stream.text) == ("Stream", "wss://h/call-1/t")
    assert stream.attrib == {
        "bidirectional": "true",
        "keepCallAlive": "true",
        "contentType": "audio/x-l16;rate=16000",
        "extraHeaders": "TierX=gold,from=15550100,to=15550199",
    }


def test_no_more_is_given_along_than_the_platform_carries() -> None:
    form = {**FORM, "Tier_X": ["x" * 600]}
    web = answer(hook(Request("", method="POST", form=form), variables={"Tier_X": "tier"}))
    (stream,) = ElementTree.fromstring(web.body)
    assert stream.get("extraHeaders") == "from=15550100,to=15550199"
    assert len(str(stream.get("extraHeaders"))) <= MAX_HEADERS_CHARS
    nameless = answer(hook(Request("", query={"CallUUID": ["call-1"]})))
    assert b"extraHeaders" not in nameless.body


@pytest.mark.parametrize("call_uuid", ["", "a/b", "x" * 65])
def test_a_webhook_without_a_call_is_refused(call_uuid: str) -> None:
    with pytest.raises(ProtocolError):
        answer(hook(Request("", query={"CallUUID": [call_uuid]})))


@pytest.mark.parametrize(
    ("target", "dialled"),
    [
        ("+15550123", "<Number>+15550123</Number>"),
        ("tel:+15550123", "<Number>+15550123</Number>"),
        ("sip:desk@example.com", "<User>sip:desk@example.com</User>"),
    ],
)
def test_the_page_of_a_transfer(target: str, dialled: str) -> None:
    body = transfer(hook(Request("", query={"target": [target]}))).body.decode()
    assert body.endswith(f"<Response><Dial>{dialled}</Dial></Response>")
    with pytest.raises(ProtocolError):
        transfer(hook(Request("")))


# ---- the proof, with the platform's own check as the oracle

TOKEN = "an auth token"
ORIGIN = "https://voice.example.com"


def genuine(method: str, url: str, fields: dict[str, list[str]], signature: str) -> bool:
    return bool(validate_v3_signature(method, url, "n1", TOKEN, signature, fields))


texts = st.text("abcXYZ09 &=+ü", min_size=1, max_size=5)
forms = st.dictionaries(texts, st.lists(texts, min_size=1, max_size=2), max_size=3)


@given(forms, st.sampled_from(["", "?z=1&b=2", "?target=%2B1555&e="]))
def test_forms_and_queries_are_signed_as_the_platform_does(
    form: dict[str, list[str]], query: str
) -> None:
    url = f"{ORIGIN}/plivo/answer{query}"
    assert genuine("POST", url, form, sign(TOKEN, "POST", url, form, "n1"))
    assert genuine("GET", url, {}, sign(TOKEN, "GET", url, {}, "n1"))


def request(signature: str, nonce: str = "n1", **over: Any) -> Request:
    headers = {"x-plivo-signature-v3": signature, "x-plivo-signature-v3-nonce": nonce}
    told = {"path": "/plivo/answer", "method": "POST", "form": FORM, "origin": ORIGIN}
    return Request(**{**told, "headers": headers, **over})  # type: ignore[arg-type]


def test_any_token_opens_and_any_of_several_signatures() -> None:
    proof = PlivoProof(PlivoSettings(auth_tokens=["old", TOKEN]))
    for nonce, before in (("n1", ""), ("n2", "AAAA, ")):
        made = sign(TOKEN, "POST", f"{ORIGIN}/plivo/answer", FORM, nonce)
        proof.check(request(before + made, nonce), 0.0)
    upgrade = sign(TOKEN, "GET", "wss://voice.example.com/plivo/media", {}, "n3")
    proof.check(request(upgrade, "n3", path="/plivo/media", method="GET", form={}), 0.0)
    assert not PlivoProof(PlivoSettings()).configured


def test_a_nonce_counts_once_and_a_refusal_uses_none_up() -> None:
    proof = PlivoProof(PlivoSettings(auth_tokens=[TOKEN]))
    made = sign(TOKEN, "POST", f"{ORIGIN}/plivo/answer", FORM, "n1")
    with pytest.raises(AuthError):
        proof.check(request(made, form={}), 0.0)
    proof.check(request(made), 0.0)
    for later_s in (0.0, 3600.0):
        with pytest.raises(AuthError) as caught:
            proof.check(request(made), later_s)
        assert (caught.value.code, caught.value.status) == ("auth.replayed", 401)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"headers": {}}, "auth.unsigned"),
        ({"form": {}}, "auth.signature"),
        ({"origin": "https://elsewhere.example"}, "auth.signature"),
        ({"method": "GET"}, "auth.signature"),
        ({"raw_query": "&".join(f"a{n}=1" for n in range(200))}, "auth.signature"),
    ],
)
def test_anything_else_does_not(change: dict[str, Any], code: str) -> None:
    made = sign(TOKEN, "POST", f"{ORIGIN}/plivo/answer", FORM, "n1")
    with pytest.raises(AuthError) as caught:
        PlivoProof(PlivoSettings(auth_tokens=[TOKEN])).check(request(made, **change), 0.0)
    assert (caught.value.code, caught.value.status) == (code, 403)


# ---- REST


def rest(**over: Any) -> plivo_rest.PlivoRest:
    told = {"account": "MA1", "auth_tokens": [TOKEN], "public_origin": f"{ORIGIN}/", **over}
    found = plivo_rest.rest(PlivoSettings(**told))
    assert found is not None
    return found


def test_what_rest_is_asked() -> None:
    assert rest().auth(0.0) == Basic("MA1", TOKEN)
    assert rest(api_secret="s").auth(0.0) == Basic("MA1", "s")
    assert rest().base_url == "https://api.plivo.com"
    call = CallRef("a/b")
    (end,) = rest().hangup(call, {})
    assert (end.method, end.path) == ("DELETE", "/v1/Account/MA1/Call/a%2Fb/")
    (move,) = rest().transfer(call, "+1555", {})
    assert move.json == {
        "legs": "aleg",
        "aleg_url": "https://voice.example.com/plivo/transfer?target=%2B1555",
        "aleg_method": "POST",
    }
    (keys,) = rest().send_dtmf(call, "12#")
    assert (keys.path, keys.json, keys.repeatable) == (
        "/v1/Account/MA1/Call/a%2Fb/DTMF/",
        {"digits": "12#", "leg": "aleg"},
        False,
    )
    assert rest().transfer(call, "", {}) == []
    assert rest(public_origin=None).transfer(call, "+1555", {}) == []
    assert plivo_rest.rest(PlivoSettings(account="MA1")) is None
    assert plivo_rest.rest(PlivoSettings(auth_tokens=[TOKEN])) is None


@given(messages(NAMES))
def test_only_protocol_errors_escape(received: list[str | bytes]) -> None:
    only_protocol_errors(plivo, received)
    only_protocol_errors(started, received)
