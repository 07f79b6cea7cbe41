"""jambonz `listen`, message by message; its webhook and its REST interface."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from gateway.audio.formats import AudioFormat, Encoding
from gateway.channels import jambonz_rest
from gateway.channels.base import (
    AudioIn,
    Clear,
    Close,
    DtmfIn,
    EndReason,
    Hangup,
    MarkReached,
    SendMark,
    Started,
    Transfer,
)
from gateway.channels.capabilities import DtmfOut, EndOut, Marks, MarksOnClear, TransferBy
from gateway.channels.dialect import Bearer, CallRef, Hook, Opening, Request
from gateway.channels.jambonz import JambonzChannel, answer, transfer
from gateway.errors import ProtocolError
from gateway.platform_settings import JambonzSettings
from tests.channels.fuzz import messages, only_protocol_errors
from tests.channels.test_audio_fork import NAMES

LISTEN: dict[str, Any] = {
    "sampleRate": 16000,
    "mixType": "mono",
    "callSid": "9a2c-41",
    "direction": "inbound",
    "from": "+15550100",
    "to": "+15550199",
    "callId": "af31@sbc",
    "sipStatus": 200,
    "callStatus": "in-progress",
    "accountSid": "acc-1",
    "customerData": {"plan": "gold"},
}
REST = {"api_secret": "token", "public_origin": "https://voice.example.com"}
LINEAR16_8K = AudioFormat(Encoding.LINEAR16, 8000)
LINEAR16_16K = AudioFormat(Encoding.LINEAR16, 16000)


def jambonz(expected_call_id: str = "", **settings: Any) -> JambonzChannel:
    return JambonzChannel(Opening(JambonzSettings(**settings), expected_call_id=expected_call_id))


def listening(**settings: Any) -> JambonzChannel:
    channel = jambonz(**settings)
    channel.receive(json.dumps(LISTEN))
    return channel


def test_the_first_message_tells_the_call_and_its_audio() -> None:
    assert jambonz().receive(json.dumps(LISTEN)) == [
        Started(
            call_id="9a2c-41",
            channel_id="af31@sbc",
            from_="+15550100",
            to="+15550199",
            in_format=LINEAR16_16K,
            out_format=LINEAR16_8K,
            custom=LISTEN,
            account="acc-1",
        )
    ]


def test_audio_before_it_is_kept_by_the_session() -> None:
    assert jambonz().receive(b"\x01\x00") == [AudioIn(b"\x01\x00")]
    assert jambonz().overdue() == []


@pytest.mark.parametrize(
    ("message", "code", "close_code"),
    [
        ("hello", "protocol.order", 1002),
        ("[]", "protocol.order", 1002),
        ("{}", "protocol.shape", 1007),
        ('{"callSid":"a b"}', "protocol.shape", 1007),
        ('{"callSid":7}', "protocol.shape", 1007),
        ('{"callSid":"a","sampleRate":11025}', "protocol.format", 1007),
    ],
)
def test_a_first_message_that_says_too_little(message: str, code: str, close_code: int) -> None:
    with pytest.raises(ProtocolError) as caught:
        jambonz().receive(message)
    assert (caught.value.code, caught.value.close_code) == (code, close_code)


def test_another_call_than_the_tokens_is_refused() -> None:
    with pytest.raises(ProtocolError) as caught:
        jambonz("other").receive(json.dumps(LISTEN))
    assert (caught.value.code, caught.value.close_code) == ("protocol.other_call", 1008)
    assert jambonz("9a2c-41").receive(json.dumps(LISTEN))


def test_keys() -> None:
    message = {"event": "dtmf", "dtmf": "5", "duration": "1600"}
    assert listening().receive(json.dumps(message)) == [DtmfIn("5")]


def test_clips_are_marked_by_their_play_done() -> None:
    channel = listening(streaming=False)
    assert channel.command(SendMark("0.1")) == [], "nothing was sent that it could wait for"
    channel.audio(b"\x00\x00" * 160, 1)
    assert channel.command(SendMark("1.1")) == []
    channel.audio(b"\x00\x00" * 160, 1)
    assert channel.command(SendMark("1.2")) == []
    done = {"type": "playDone", "data": {"id": "1", "playbackSeconds": "0"}}
    assert channel.receive(json.dumps(done)) == [MarkReached("1.1")]
    assert channel.receive(json.dumps(done)) == []
    assert channel.command(Clear()) == ['{"type":"killAudio"}']
    assert channel.receive('{"type":"playDone","data":{"id":"2"}}') == []
    assert channel.receive('{"type":"playDone","data":7}') == []
    capabilities = channel.capabilities
    assert (capabilities.marks, capabilities.marks_on_clear) == (Marks.NATIVE, MarksOnClear.LOST)


def test_a_hang_up_ends_the_verb_and_leaves_the_rest_to_the_next() -> None:
    channel = listening()
    assert channel.command(Hangup(EndReason.COMPLETED)) == ['{"type":"disconnect"}']
    assert channel.command(Transfer("+1")) == ['{"type":"disconnect"}']
    assert channel.capabilities.end_out is EndOut.MESSAGE
    assert channel.capabilities.transfer is TransferBy.MESSAGE


def test_with_rest_and_an_origin_the_call_is_given_new_verbs() -> None:
    channel = listening(**REST)
    assert channel.capabilities.transfer is TransferBy.REST
    assert channel.capabilities.dtmf_out is DtmfOut.REST
    assert channel.command(Transfer("+1")) == [Close(1000, "transferred")]
    assert listening(api_secret="token").capabilities.transfer is TransferBy.MESSAGE


def hook(request: Request, **settings: Any) -> Hook[JambonzSettings]:
    return Hook(
        JambonzSettings(**settings), request, lambda call: f"wss://voice/jambonz/media/{call}-t"
    )


def test_the_webhook_answers_with_listen_then_hangup() -> None:
    request = Request("", body=b'{"call_sid":"9a2c-41","direction":"inbound"}')
    web = answer(hook(request, in_rate_hz=16000))
    assert web.content_type == "application/json"
    assert json.loads(web.body) == [
        {
            "verb": "listen",
            "url": "wss://voice/jambonz/media/9a2c-41-t",
            "mixType": "mono",
            "sampleRate": 16000,
            "passDtmf": True,
            "bidirectionalAudio": {"enabled": True, "streaming": True, "sampleRate": 8000},
        },
        {"verb": "hangup"},
    ]


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"call_sid":"a/b"}', b'{"call_sid":7}'])
def test_a_webhook_without_a_call_is_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        answer(hook(Request("", body=body)))


@pytest.mark.parametrize(
    ("target", "dialled"),
    [
        ("+15550123", {"type": "phone", "number": "+15550123"}),
        ("tel:+15550123", {"type": "phone", "number": "+15550123"}),
        ("sip:desk@example.com", {"type": "sip", "sipUri": "sip:desk@example.com"}),
        ("user:ann", {"type": "user", "name": "ann"}),
    ],
)
def test_the_verbs_of_a_transfer(target: str, dialled: dict[str, str]) -> None:
    web = transfer(hook(Request("", query={"target": [target]})))
    assert json.loads(web.body) == [{"verb": "dial", "target": [dialled]}, {"verb": "hangup"}]
    with pytest.raises(ProtocolError):
        transfer(hook(Request("")))


CALL = CallRef("9a2c-41", account="acc-1")


def rest(**over: Any) -> jambonz_rest.JambonzRest:
    found = jambonz_rest.rest(JambonzSettings(**{**REST, **over}))
    assert found is not None
    return found


def test_rest_updates_the_call() -> None:
    assert jambonz_rest.rest(JambonzSettings()) is None
    assert rest().auth(0.0) == Bearer("token")
    assert rest().base_url == "https://jambonz.cloud/api"
    assert rest().hangup(CALL, {"params": {"a": "1"}}) == [], "the verbs behind `listen` decide"
    (request,) = rest(account="mine").transfer(CALL, "+1", {})
    assert (request.method, request.path) == ("PUT", "/v1/Accounts/mine/Calls/9a2c-41")


def test_rest_presses_one_key_a_request() -> None:
    assert [request.json["dtmf"]["digit"] for request in rest().send_dtmf(CALL, "12#")] == [
        "1",
        "2",
        "#",
    ]


def test_rest_transfers_to_our_own_verbs() -> None:
    (request,) = rest(username="u", password="p").transfer(CALL, "+1", {})
    assert request.json == {
        "call_hook": {
            "url": "https://voice.example.com/jambonz/transfer?target=%2B1",
            "method": "POST",
            "username": "u",
            "password": "p",
        }
    }
    assert rest().transfer(CALL, "", {}) == []
    assert rest(public_origin=None).transfer(CALL, "+1", {}) == []


@given(messages(NAMES))
def test_only_protocol_errors_escape(received: list[str | bytes]) -> None:
    only_protocol_errors(jambonz, received)
    only_protocol_errors(lambda: listening(streaming=False), received)
