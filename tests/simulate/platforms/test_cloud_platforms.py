"""Habits of Vonage, Telnyx and SignalWire: sizes, order, marks, and what each refuses."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from gateway.audio import g711
from gateway.audio.formats import ALAW_8K, AudioFormat, Encoding
from gateway.errors import ProtocolError, RuntimeFailure, ScenarioError
from gateway.simulate.platforms import call_id
from gateway.simulate.platforms.base import Identity
from gateway.simulate.platforms.signalwire import SignalWirePlatform, audio_of
from gateway.simulate.platforms.telnyx import TelnyxPlatform, out_format_of, signed
from gateway.simulate.platforms.vonage import VonagePlatform, endpoint_of
from gateway.simulate.platforms.xml_answer import stream_of

LINEAR16_16K = AudioFormat(Encoding.LINEAR16, 16000)


def identity(dialect: str) -> Identity:
    return Identity(call_id(dialect, "test"), "+15550100", "+15550199", {"tier": "gold"})


# ---- Vonage


def vonage() -> VonagePlatform:
    return VonagePlatform(identity("vonage"))


def test_vonage_puts_custom_values_beside_the_event() -> None:
    (message,) = vonage().open()
    told = json.loads(message)
    assert (told["event"], told["content-type"]) == (
        "websocket:connected",
        "audio/l16;rate=16000",
    )
    assert (told["uuid"], told["tier"]) == (identity("vonage").call_id, "gold")


@pytest.mark.parametrize("size", [0, 160, 320, 639, 1280])
def test_vonage_drops_the_socket_at_a_wrong_size(size: int) -> None:
    far_side = vonage()
    far_side.receive(bytes(640))
    with pytest.raises(ProtocolError, match="where 640 are taken"):
        far_side.receive(bytes(size))
    assert far_side.finished


def test_vonage_keeps_a_minute_and_no_more() -> None:
    far_side = vonage()
    for _ in range(3072):
        far_side.receive(bytes(640))
    with pytest.raises(ProtocolError, match="3072"):
        far_side.receive(bytes(640))


def test_vonage_notifies_when_it_was_played_and_forgets_at_a_clear() -> None:
    far_side = vonage()
    notify = '{"action":"notify","payload":{"mark":"1.0"}}'
    assert far_side.receive(notify) == ['{"event":"websocket:notify","payload":{"mark":"1.0"}}'], (
        "with nothing before it, at once"
    )
    far_side.receive(bytes(640))
    assert far_side.receive(notify) == []
    assert len(far_side.play().replies) == 1
    far_side.receive(bytes(640))
    far_side.receive(notify)
    assert far_side.receive('{"action":"clear"}') == ['{"event":"websocket:cleared"}']
    assert far_side.play().replies == ()


@pytest.mark.parametrize("message", ["hello", "[]", "{}", '{"action":"notify"}'])
def test_vonage_refuses(message: str) -> None:
    with pytest.raises(ProtocolError):
        vonage().receive(message)


@pytest.mark.parametrize("answer", [b"", b"{}", b"[]", b'[{"action":"talk"}]', b"[7]"])
def test_an_ncco_that_connects_nothing(answer: bytes) -> None:
    with pytest.raises(RuntimeFailure, match=r"protocol\.ncco"):
        endpoint_of(answer)


# ---- Telnyx


def media_of(message: Any) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(message)["media"]
    return body


def test_telnyx_sends_alaw_and_every_fifth_message_is_overtaken() -> None:
    far_side = TelnyxPlatform(identity("telnyx"))
    pcm = b"\x00\x10" * 160
    sent = [message for _ in range(11) for message in far_side.media(pcm)]
    chunks = [int(media_of(message)["chunk"]) for message in sent]
    assert chunks == [1, 2, 3, 4, 6, 5, 7, 8, 9, 11, 10]
    assert base64.b64decode(media_of(sent[0])["payload"]) == g711.encode(pcm, ALAW_8K.encoding)


def test_telnyx_takes_20_ms_to_30_s() -> None:
    far_side = TelnyxPlatform(identity("telnyx"))
    for size, fits in ((159, False), (160, True), (240000, True), (240001, False)):
        payload = base64.b64encode(bytes(size)).decode()
        message = json.dumps({"event": "media", "media": {"payload": payload}})
        if fits:
            assert far_side.receive(message) == []
        else:
            with pytest.raises(ProtocolError, match="shorter than 20 ms or longer than 30 s"):
                far_side.receive(message)


def test_telnyx_echoes_marks_and_loses_them_at_a_clear() -> None:
    far_side = TelnyxPlatform(identity("telnyx"))
    mark = '{"event":"mark","mark":{"name":"1.0"}}'
    assert len(far_side.receive(mark)) == 1
    payload = base64.b64encode(bytes(160)).decode()
    far_side.receive(json.dumps({"event": "media", "media": {"payload": payload}}))
    far_side.receive(mark)
    assert far_side.receive('{"event":"clear"}') == []
    assert far_side.play().replies == ()


@pytest.mark.parametrize(
    "message", [b"{}", "hello", "[]", '{"event":"x"}', '{"event":"mark"}', '{"event":"media"}']
)
def test_telnyx_refuses(message: str | bytes) -> None:
    with pytest.raises(ProtocolError):
        TelnyxPlatform(identity("telnyx")).receive(message)


@pytest.mark.parametrize(
    ("attributes", "rate_hz"),
    [
        ('bidirectionalMode="rtp"', 8000),
        (
            'bidirectionalMode="rtp" bidirectionalCodec="L16" bidirectionalSamplingRate="16000"',
            16000,
        ),
        ("", 0),
        ('bidirectionalMode="mp3"', 0),
        ('bidirectionalMode="rtp" bidirectionalCodec="G722"', 0),
    ],
)
def test_without_the_mode_telnyx_would_play_nothing(attributes: str, rate_hz: int) -> None:
    answer = f'<Response><Connect><Stream url="wss://a" {attributes}/></Connect></Response>'
    stream = stream_of(answer.encode())
    if rate_hz:
        assert out_format_of(stream).rate_hz == rate_hz
    else:
        with pytest.raises(RuntimeFailure):
            out_format_of(stream)


def test_a_secret_that_signs_nothing_is_told() -> None:
    with pytest.raises(ScenarioError, match="Ed25519"):
        signed("short", b"")


# ---- SignalWire


def signalwire(**more: Any) -> SignalWirePlatform:
    return SignalWirePlatform(identity("signalwire"), **more)


def said(far_side: SignalWirePlatform, event: str, **body: Any) -> list[Any]:
    told = {"event": event, "streamSid": far_side.stream_sid, **body}
    return far_side.receive(json.dumps(told))


def test_signalwire_tells_the_stream_only_inside_start() -> None:
    connected, start = (json.loads(one) for one in signalwire(audio=LINEAR16_16K).open())
    assert connected["version"] == "0.2.0"
    assert "streamSid" not in start
    assert start["start"]["streamSid"]
    assert start["start"]["mediaFormat"]["encoding"] == "audio/x-L16"
    (stop,) = signalwire().hangup()
    assert "stop" not in {name for name in json.loads(stop) if name != "event"}


def test_signalwire_echoes_marks_also_at_a_clear_and_hears_keys() -> None:
    far_side = signalwire()
    said(far_side, "media", media={"payload": base64.b64encode(bytes(160)).decode()})
    assert said(far_side, "mark", mark={"name": "1.0"}) == []
    (echo,) = said(far_side, "clear")
    assert json.loads(echo)["mark"] == {"name": "1.0"}
    for digit in "1#":
        said(far_side, "dtmf", dtmf={"digit": digit})
    assert far_side.keys == "1#"


@pytest.mark.parametrize(
    ("event", "body"),
    [
        ("media", {"media": {"payload": ""}}),
        ("media", {}),
        ("mark", {"mark": {}}),
        ("dtmf", {"dtmf": {"digit": "12"}}),
        ("other", {}),
        ("clear", {"streamSid": "another"}),
    ],
)
def test_signalwire_refuses(event: str, body: dict[str, Any]) -> None:
    far_side = signalwire()
    with pytest.raises(ProtocolError):
        far_side.receive(json.dumps({"event": event, "streamSid": far_side.stream_sid, **body}))


def test_signalwire_knows_three_codecs() -> None:
    assert audio_of("L16@16000h") == LINEAR16_16K
    with pytest.raises(RuntimeFailure, match="codec_error"):
        audio_of("OPUS")
