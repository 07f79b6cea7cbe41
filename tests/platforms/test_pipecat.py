"""An independent peer: pipecat's serializers on the other end of a real socket.

They are written for servers. What they write for a platform is here what the caller says, and what
our server writes for one is theirs to read, which Twilio's kin allow: both directions look alike.
"""

from __future__ import annotations

import json
import math
import warnings
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from gateway.audio import g711
from gateway.audio.formats import Encoding
from gateway.channels.base import AudioIn, Clear, EndReason, Hangup
from gateway.channels.dialect import Opening
from gateway.channels.genesys import GenesysChannel
from gateway.channels.plivo import PlivoChannel
from gateway.platform_settings import GenesysSettings, PlivoSettings
from gateway.simulate.platforms import platform
from gateway.simulate.platforms.access import Access
from tests.platforms import live as harness
from tests.platforms.calling import dial, found, identity, serving
from tests.server.echo import until

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    frames = pytest.importorskip("pipecat.frames.frames")
    from loguru import logger
    from pipecat.serializers import exotel, genesys, plivo, telnyx, twilio, vonage

logger.remove()

RATE_HZ = 8000
TONE = array("h", [round(8000 * math.sin(n * math.pi / 4)) for n in range(1600)]).tobytes()


def telnyx_serializer(reads: str = "PCMU", writes: str = "PCMA") -> Any:
    params = telnyx.TelnyxFrameSerializer.InputParams(auto_hang_up=False)
    return telnyx.TelnyxFrameSerializer("stream", reads, writes, params=params)


def twilio_serializer() -> Any:
    params = twilio.TwilioFrameSerializer.InputParams(auto_hang_up=False)
    return twilio.TwilioFrameSerializer("stream", params=params)


def vonage_serializer() -> Any:
    params = vonage.VonageFrameSerializer.InputParams(vonage_sample_rate=RATE_HZ)
    return vonage.VonageFrameSerializer(params)


def genesys_serializer() -> Any:
    serializer = genesys.GenesysAudioHookSerializer()
    serializer._is_open = True
    return serializer


def exotel_serializer() -> Any:
    return exotel.ExotelFrameSerializer("stream")


def plivo_serializer() -> Any:
    params = plivo.PlivoFrameSerializer.InputParams(auto_hang_up=False)
    far_side = platform("plivo", identity("plivo"))
    stream_id = json.loads(str(far_side.open()[0]))["start"]["streamId"]
    return plivo.PlivoFrameSerializer(stream_id, params=params)


@dataclass(frozen=True)
class Peer:
    """A dialect and the serializer that speaks it; how much of a tone survives its codec."""

    dialect: str
    serializer: Callable[[], Any]
    encoding: Encoding
    settings: dict[str, Any]


PEERS = [
    Peer("telnyx", telnyx_serializer, Encoding.ALAW, {}),
    Peer("twilio", twilio_serializer, Encoding.MULAW, {}),
    Peer("vonage", vonage_serializer, Encoding.LINEAR16, {"rate_hz": RATE_HZ}),
    Peer("exotel", exotel_serializer, Encoding.LINEAR16, {}),
    Peer("genesys", genesys_serializer, Encoding.MULAW, {}),
]
PLIVO = Peer("plivo", plivo_serializer, Encoding.MULAW, {})
"""What it writes for the platform is no message of the platform's own: read and compared below."""
ALL = pytest.mark.parametrize("peer", PEERS, ids=[peer.dialect for peer in PEERS])


async def made(peer: Peer) -> Any:
    serializer = peer.serializer()
    await serializer.setup(SimpleNamespace(audio_in_sample_rate=RATE_HZ))
    return serializer


@ALL
async def test_each_hears_the_other(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    heard = bytearray()
    monkeypatch.setattr(harness._Deaf, "feed", lambda _self, pcm: heard.extend(pcm))
    serializer = await made(peer)
    spoken = frames.OutputAudioRawFrame(audio=TONE, sample_rate=RATE_HZ, num_channels=1)
    said = bytearray()
    async with serving(peer.dialect, **peer.settings) as running:
        endpoint = await found(peer.dialect, Access(running.gateway.url), identity(peer.dialect))
        async with dial(endpoint) as client:
            for message in endpoint.platform.open():
                await client.send(message)
            await client.send(await serializer.serialize(spoken))
            await until(lambda: len(heard) >= len(TONE))
            running.agents[0].say("One moment.")
            try:
                while len(said) < RATE_HZ * 2 // 10:
                    frame = await serializer.deserialize(await client.recv())
                    if isinstance(frame, frames.InputAudioRawFrame):
                        assert (frame.sample_rate, frame.num_channels) == (RATE_HZ, 1)
                        said += frame.audio
            except ConnectionClosed:
                pass
    assert heard == g711.decode(g711.encode(TONE, peer.encoding), peer.encoding)
    assert len(said) == RATE_HZ * 2 // 10


@pytest.mark.parametrize("peer", [*PEERS, PLIVO], ids=lambda peer: peer.dialect)
async def test_our_platform_sides_are_understood(peer: Peer) -> None:
    serializer = await made(peer)
    far_side = platform(peer.dialect, identity(peer.dialect))
    for message in far_side.open():
        await serializer.deserialize(message)
    (message,) = far_side.digit("5")
    frame = await serializer.deserialize(message)
    assert isinstance(frame, frames.InputDTMFFrame)
    assert frame.button.value == "5"


@pytest.mark.parametrize(
    "peer",
    [peer for peer in [*PEERS, PLIVO] if peer.dialect not in ("genesys", "exotel")],
    ids=lambda peer: peer.dialect,
)
async def test_our_platform_sides_play_what_it_writes_and_are_cleared(peer: Peer) -> None:
    # Exotel's serializer leaves out numbers without which some of that platform's streams ended.
    serializer = await made(peer)
    far_side = platform(peer.dialect, identity(peer.dialect))
    far_side.open()
    if peer.dialect == "twilio":
        serializer._stream_sid = far_side.stream_sid  # type: ignore[attr-defined]
    frame_bytes = far_side.out_format.pcm_frame_bytes
    rate_hz = far_side.out_format.rate_hz
    if peer.dialect == "telnyx":
        serializer = telnyx_serializer(reads="PCMA", writes="PCMU")
        await serializer.setup(SimpleNamespace(audio_in_sample_rate=rate_hz))
    if peer.dialect == "vonage":
        params = vonage.VonageFrameSerializer.InputParams(vonage_sample_rate=rate_hz)
        serializer = vonage.VonageFrameSerializer(params)
        await serializer.setup(SimpleNamespace(audio_in_sample_rate=rate_hz))
    for _ in range(3):
        spoken = frames.OutputAudioRawFrame(
            audio=TONE[:frame_bytes], sample_rate=rate_hz, num_channels=1
        )
        assert far_side.receive(await serializer.serialize(spoken)) == []
    encoding = far_side.out_format.encoding
    expected = g711.decode(g711.encode(TONE[:frame_bytes], encoding), encoding)
    assert far_side.play().pcm == expected
    far_side.receive(await serializer.serialize(frames.InterruptionFrame()))
    assert not any(far_side.play().pcm), "nothing is left to play"


async def test_an_interruption_of_genesys_is_written_alike() -> None:
    serializer = await made(PEERS[-1])
    channel = GenesysChannel(Opening(GenesysSettings()))
    (message,) = platform("genesys", identity("genesys")).open()
    channel.receive(message)
    (answer,) = [await serializer.deserialize(message)]
    assert (
        answer.message["parameters"]["media"] == json.loads(str(message))["parameters"]["media"][:1]
    )
    channel.audio(b"\xff", 1)
    (ours,) = channel.command(Clear())
    theirs = json.loads(await serializer.serialize(frames.InterruptionFrame()))
    fields = ("version", "id", "type", "seq", "parameters")
    assert [json.loads(str(ours))[name] for name in fields] == [theirs[name] for name in fields]


async def test_the_end_of_a_genesys_call_is_written_alike() -> None:
    serializer = await made(PEERS[-1])
    channel = GenesysChannel(Opening(GenesysSettings()))
    (message,) = platform("genesys", identity("genesys")).open()
    channel.receive(message)
    await serializer.deserialize(message)
    serializer.set_output_variables({"intent": "billing", "action": "hangup"})
    params = {"params": {"intent": "billing"}}
    (ours,) = channel.command(Hangup(EndReason.COMPLETED, params))
    theirs = json.loads(await serializer.serialize(frames.EndFrame()))
    fields = ("version", "id", "type", "seq", "parameters")
    assert [json.loads(str(ours))[name] for name in fields] == [theirs[name] for name in fields]


async def test_a_session_of_genesys_whose_server_is_pipecat() -> None:
    """Our platform side numbers, judges and counts; it finds nothing to complain of."""
    serializer = genesys.GenesysAudioHookSerializer()
    await serializer.setup(SimpleNamespace(audio_in_sample_rate=RATE_HZ))
    far_side = platform("genesys", identity("genesys"))

    async def tell(messages: Any) -> None:
        """What the platform says, and what it is answered."""
        for message in messages:
            frame = await serializer.deserialize(message)
            if isinstance(frame, frames.OutputTransportMessageUrgentFrame):
                await hear(frame.message)

    async def hear(said: dict[str, Any]) -> None:
        # Pipecat tells positions, too, which are the platform's to tell.
        said.pop("position", None)
        await tell(far_side.receive(json.dumps(said)))

    await tell(far_side.open())
    spoken = frames.OutputAudioRawFrame(audio=TONE, sample_rate=RATE_HZ, num_channels=1)
    await tell(far_side.receive(await serializer.serialize(spoken)))
    played = far_side.play()
    await tell(played.replies)
    assert played.pcm == g711.decode(g711.encode(TONE[:320], Encoding.MULAW), Encoding.MULAW)
    for _ in range(60):
        # A second and more of the caller, with the pings that are due.
        await tell(far_side.media(TONE[:320]))
    await hear(json.loads(await serializer.serialize(frames.InterruptionFrame())))
    assert not any(far_side.play().pcm)
    serializer.set_output_variables({"action": "hangup"})
    await hear(json.loads(await serializer.serialize(frames.EndFrame())))
    assert far_side.finished
    assert far_side.outputs == {"action": "hangup"}  # type: ignore[attr-defined]


async def test_what_is_written_for_plivo_is_written_alike() -> None:
    serializer = await made(PLIVO)
    far_side = platform("plivo", identity("plivo"))
    channel = PlivoChannel(Opening(PlivoSettings()))
    for message in far_side.open():
        channel.receive(message)
    (caller,) = far_side.media(TONE[:320])
    (ours,) = channel.receive(caller)
    assert isinstance(ours, AudioIn)
    theirs = await serializer.deserialize(caller)
    assert theirs.audio == g711.decode(ours.data, Encoding.MULAW)
    spoken = frames.OutputAudioRawFrame(audio=TONE, sample_rate=RATE_HZ, num_channels=1)
    written = json.loads(await serializer.serialize(spoken))
    played = json.loads(channel.audio(g711.encode(TONE, Encoding.MULAW), 1))
    assert {**played, "streamId": written["streamId"]} == written
    (clear,) = channel.command(Clear())
    assert json.loads(str(clear)) == json.loads(
        await serializer.serialize(frames.InterruptionFrame())
    )
    assert far_side.receive(json.dumps(written)) == []
    assert far_side.received_bytes == len(TONE) // 2
