"""Habits of Plivo, Exotel, Bandwidth, Sinch, Infobip and AudioCodes, and what each refuses."""

from __future__ import annotations

import base64
import json
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from gateway.audio.formats import AudioFormat, Encoding
from gateway.errors import ProtocolError, RuntimeFailure
from gateway.simulate.platforms import call_id, side
from gateway.simulate.platforms.access import Access
from gateway.simulate.platforms.audiocodes import AudioCodesPlatform
from gateway.simulate.platforms.bandwidth import BandwidthPlatform
from gateway.simulate.platforms.base import Identity, Platform
from gateway.simulate.platforms.exotel import ExotelPlatform
from gateway.simulate.platforms.infobip import InfobipPlatform
from gateway.simulate.platforms.plivo import PlivoPlatform, format_of
from gateway.simulate.platforms.sinch import SinchPlatform


def identity(dialect: str) -> Identity:
    return Identity(call_id(dialect, "test"), "+15550100", "+15550199", {"tier": "gold"})


def audio(size: int) -> str:
    return base64.b64encode(bytes(size)).decode()


def told(platform: Platform, **body: Any) -> list[Any]:
    return [json.loads(str(one)) for one in platform.receive(json.dumps(body))]


# ---- Plivo


def plivo() -> PlivoPlatform:
    return PlivoPlatform(identity("plivo"))


def plivo_audio(platform: PlivoPlatform, content_type: str = "audio/x-mulaw") -> None:
    media = {"contentType": content_type, "sampleRate": 8000, "payload": audio(160)}
    told(platform, event="playAudio", media=media)


def test_plivo_begins_with_start_and_ends_without_a_word() -> None:
    far_side = plivo()
    (start,) = far_side.open()
    assert json.loads(str(start))["extra_headers"] == (
        '{"from":"15550100","to":"15550199","tier":"gold"}'
    )
    assert far_side.hangup() == []


def test_plivo_reports_checkpoints_and_forgets_them_at_a_clear() -> None:
    far_side = plivo()
    mark = {"event": "checkpoint", "streamId": far_side.stream_id, "name": "1.0"}
    (at_once,) = told(far_side, **mark)
    assert (at_once["event"], at_once["name"]) == ("playedStream", "1.0")
    plivo_audio(far_side)
    assert told(far_side, **mark) == []
    assert len(far_side.play().replies) == 1
    plivo_audio(far_side)
    told(far_side, **mark)
    (cleared,) = told(far_side, event="clearAudio", streamId=far_side.stream_id)
    assert cleared["event"] == "clearedAudio"
    assert far_side.play().replies == ()


def test_plivo_refuses() -> None:
    far_side = plivo()
    with pytest.raises(ProtocolError, match="audio as"):
        plivo_audio(far_side, "audio/x-l16")
    for body in (
        {"event": "playAudio"},
        {"event": "clearAudio", "streamId": "another"},
        {"event": "checkpoint", "streamId": far_side.stream_id},
        {"event": "other", "streamId": far_side.stream_id},
    ):
        with pytest.raises(ProtocolError):
            told(far_side, **body)
    for message in (b"x", "hello", "[]"):
        with pytest.raises(ProtocolError):
            far_side.receive(message)
    with pytest.raises(RuntimeFailure):
        format_of("audio/x-mulaw;rate=16000")


# ---- Exotel


def exotel_media(far_side: ExotelPlatform, size: int, **over: Any) -> None:
    media = {"chunk": 1, "timestamp": "0", "payload": audio(size), **over}
    kept = {name: value for name, value in media.items() if value is not None}
    head = {"event": "media", "stream_sid": far_side.stream_sid, "sequence_number": 1}
    told(far_side, **head, media=kept)


def test_exotel_sends_100_ms_in_a_message_and_numbers_as_text() -> None:
    far_side = ExotelPlatform(identity("exotel"))
    _, start = (json.loads(str(one)) for one in far_side.open())
    assert start["start"]["media_format"]["sample_rate"] == "8000"
    sent = [message for _ in range(12) for message in far_side.media(bytes(320))]
    assert len(sent) == 2
    media = json.loads(str(sent[1]))["media"]
    assert (media["chunk"], len(base64.b64decode(media["payload"]))) == ("2", 1600)
    *_, stop = far_side.hangup()
    assert json.loads(str(stop))["event"] == "stop"


@pytest.mark.parametrize("size", [0, 160, 321, 100_160])
def test_exotel_wants_multiples_of_320_bytes(size: int) -> None:
    with pytest.raises(ProtocolError, match="multiple"):
        exotel_media(ExotelPlatform(identity("exotel")), size)


@pytest.mark.parametrize("over", [{"chunk": None}, {"timestamp": None}, {"chunk": 0}])
def test_exotel_wants_its_numbers(over: dict[str, Any]) -> None:
    far_side = ExotelPlatform(identity("exotel"))
    with pytest.raises(ProtocolError):
        exotel_media(far_side, 320, **over)
    exotel_media(far_side, 320)
    assert far_side.received_bytes == 320


# ---- Bandwidth


def test_bandwidth_has_no_keys_and_plays_one_kind_of_audio() -> None:
    far_side = BandwidthPlatform(identity("bandwidth"))
    assert far_side.digit("1") == []
    kind = "audio/pcm;rate=16000;channels=1;bit-depth=16;endian=little;encoding=signed"
    told(far_side, eventType="playAudio", media={"contentType": kind, "payload": audio(640)})
    assert far_side.out_format == AudioFormat(Encoding.LINEAR16, 16000)
    for content_type in ("audio/pcmu", "audio/pcm", "audio/opus"):
        media = {"contentType": content_type, "payload": audio(160)}
        with pytest.raises(ProtocolError):
            told(far_side, eventType="playAudio", media=media)
    assert told(far_side, eventType="clear") == []
    with pytest.raises(ProtocolError):
        told(far_side, eventType="mark")


# ---- Sinch


def test_sinch_waits_to_be_answered() -> None:
    far_side = SinchPlatform(identity("sinch"))
    assert far_side.media(None) == []
    with pytest.raises(ProtocolError, match="before answer"):
        far_side.receive(bytes(640))
    told(far_side, command="answer")
    assert far_side.media(None) == [bytes(640)]
    with pytest.raises(ProtocolError, match="answered"):
        told(far_side, command="busy")
    refused = SinchPlatform(identity("sinch"))
    told(refused, command="reject")
    assert refused.finished


def test_sinch_drops_the_oldest_beyond_five_megabytes() -> None:
    far_side = SinchPlatform(identity("sinch"))
    told(far_side, command="answer")
    far_side.receive(b"\x01\x00" * 320)
    for _ in range(5):
        far_side.receive(b"\x02\x00" * 500_000)
    assert far_side.play().pcm == b"\x02\x00" * 320, "the first frame is gone"
    told(far_side, command="clear")
    assert far_side.play().pcm == bytes(640)
    with pytest.raises(ProtocolError, match="half a sample"):
        far_side.receive(b"\x01")


# ---- Infobip


@pytest.mark.parametrize("message", ['{"action":"notify","payload":{}}', "hello", "{}"])
def test_infobip_knows_frames_and_clear_only(message: str) -> None:
    far_side = InfobipPlatform(identity("infobip"))
    far_side.receive(bytes(640))
    far_side.receive('{"action":"clear"}')
    with pytest.raises(ProtocolError):
        far_side.receive(message)


# ---- AudioCodes


def vaic() -> AudioCodesPlatform:
    far_side = AudioCodesPlatform(identity("audiocodes"))
    far_side.open()
    told(far_side, type="session.accepted", mediaFormat="raw/lpcm16")
    told(far_side, type="userStream.started")
    return far_side


def stream(far_side: AudioCodesPlatform, kind: str, name: str = "1", **more: Any) -> list[Any]:
    return told(far_side, type=f"playStream.{kind}", streamId=name, **more)


def test_audiocodes_tells_of_each_stream_when_it_was_played() -> None:
    far_side = vaic()
    stream(far_side, "start", mediaFormat="raw/lpcm16")
    stream(far_side, "chunk", audioChunk=audio(640))
    assert stream(far_side, "stop") == []
    (finished,) = far_side.play().replies
    assert json.loads(str(finished))["activities"][0]["name"] == "playFinished"


def test_audiocodes_forgets_streams_that_are_aborted() -> None:
    far_side = vaic()
    stream(far_side, "start", mediaFormat="raw/lpcm16")
    stream(far_side, "chunk", audioChunk=audio(640))
    stream(far_side, "stop")
    told(far_side, type="activities", activities=[{"type": "event", "name": "abortPrompts"}])
    assert far_side.play().replies == ()


@pytest.mark.parametrize(
    "body",
    [
        {"type": "playStream.start", "streamId": "1", "mediaFormat": "raw/lpcm16"},
        {"type": "playStream.start", "streamId": "2", "mediaFormat": "raw/lpcm16"},
        {"type": "playStream.chunk", "streamId": "2", "audioChunk": ""},
        {"type": "playStream.chunk", "streamId": "1", "audioChunk": "%"},
        {"type": "playStream.stop"},
        {"type": "session.accepted", "mediaFormat": "raw/opus"},
        {"type": "activities"},
        {"type": "activities", "activities": [{"name": "dance"}]},
        {
            "type": "activities",
            "activities": [{"name": "transfer", "activityParams": {"transferTarget": "+1"}}],
        },
        {"type": "other"},
    ],
)
def test_audiocodes_refuses(body: dict[str, Any]) -> None:
    far_side = vaic()
    stream(far_side, "start", mediaFormat="raw/lpcm16")
    with pytest.raises(ProtocolError):
        told(far_side, **body)


def test_audiocodes_hears_nothing_before_it_is_accepted() -> None:
    far_side = AudioCodesPlatform(identity("audiocodes"))
    with pytest.raises(ProtocolError, match=r"before session\.accepted"):
        told(far_side, type="userStream.started")
    assert far_side.media(None) == []
    told(far_side, type="session.error", reason="busy")
    assert far_side.finished


# ---- answers that lead nowhere


@pytest.mark.parametrize(
    ("dialect", "answer"),
    [
        ("plivo", "<Response/>"),
        ("plivo", "no XML"),
        ("plivo", "<Response><Stream>wss://h</Stream></Response>"),
        ("bandwidth", "no XML"),
        ("bandwidth", "<Response><Pause/></Response>"),
        (
            "bandwidth",
            '<Response><StartStream mode="bidirectional" destination="wss://h"/></Response>',
        ),
        ("exotel", "{}"),
        ("exotel", "wss://h"),
    ],
)
async def test_an_answer_that_streams_nothing(dialect: str, answer: str) -> None:
    async def handle(_: web.Request) -> web.Response:
        return web.Response(text=answer)

    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        host, port = runner.addresses[0][:2]
        async with aiohttp.ClientSession() as http:
            access = Access(f"http://{host}:{port}")
            with pytest.raises(RuntimeFailure):
                await side(dialect).find(access, identity(dialect), http)
    finally:
        await runner.cleanup()
