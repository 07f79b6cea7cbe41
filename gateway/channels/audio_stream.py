"""FreeSWITCH mod_audio_stream.

The community edition plays nothing by itself: a `streamAudio` message becomes a file and an event,
and an application on the event socket has to play it. The commercial one plays binary messages.
Neither has marks or a clear. An application that obeys our texts (each becomes a
`mod_audio_stream::json` event) can stop the sound, end the call and hand it on: see the setting
`controlled`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pybase64

from gateway.channels.audio_fork import said
from gateway.channels.base import ChannelCommand, Clear, Close, Hangup, Transfer, Wire
from gateway.channels.capabilities import (
    Capabilities,
    ClearBy,
    EndOut,
    Marks,
    MarksOnClear,
    TransferBy,
)
from gateway.channels.dialect import Dialect, MediaRoute, Opening, Proof
from gateway.channels.freeswitch import FreeswitchChannel, account
from gateway.channels.proofs import AuthorizationProof
from gateway.platform_settings import AudioStreamSettings

CAPABILITIES: Final = Capabilities(
    dialect="audio_stream",
    marks=Marks.EMULATED,
    marks_on_clear=MarksOnClear.LOST,
    clear=ClearBy.LOCAL_ONLY,
    max_lead_ms=100,
    max_out_bytes=64_000,
    max_message_bytes=1 << 18,
    binary_in=True,
    starts_within_s=3.0,
    end_out=EndOut.CLOSE,
    transfer=TransferBy.NONE,
)


def fitted(settings: AudioStreamSettings) -> Capabilities:
    """The record for the edition of the module and for what its application obeys."""
    capabilities = CAPABILITIES
    if settings.playback == "files":
        capabilities = replace(
            capabilities, min_message_ms=settings.clip_ms, max_lead_ms=2 * settings.clip_ms
        )
    if settings.controlled:
        capabilities = replace(
            capabilities,
            clear=ClearBy.NATIVE,
            end_out=EndOut.MESSAGE,
            transfer=TransferBy.MESSAGE,
        )
    return capabilities


class StreamChannel(FreeswitchChannel):
    """The codec of one stream."""

    def __init__(self, opening: Opening[AudioStreamSettings]) -> None:
        settings = opening.settings
        super().__init__(
            opening,
            fitted(settings),
            in_rate_hz=settings.rate_hz,
            out_rate_hz=settings.rate_hz,
            stereo=settings.channels == 2,
        )
        self._binary = settings.playback == "binary"
        self._controlled = settings.controlled
        self._head = (
            '{"type":"streamAudio","data":{"audioDataType":"raw",'
            f'"sampleRate":{settings.rate_hz},"audioData":"'
        )

    def audio(self, data: bytes, turn: int) -> Wire:
        """Raw samples, or one `streamAudio` file."""
        if self._binary:
            return data
        return f'{self._head}{pybase64.b64encode_as_string(data)}"}}}}'

    def command(self, command: ChannelCommand) -> list[Wire | Close]:
        """Words for the call's application, and the close that ends the stream."""
        words: list[Wire | Close] = []
        if isinstance(command, Clear):
            return [said("killAudio")] if self._controlled else []
        if isinstance(command, Hangup):
            if self._controlled:
                words.append(said("disconnect", command.outputs))
            return [*words, Close(1000, command.reason.value)]
        if isinstance(command, Transfer):
            if self._controlled:
                words.append(said("transfer", {**command.outputs, "target": command.target}))
            return [*words, Close(1000, "transferred")]
        return []


DIALECT: Final = Dialect(
    capabilities=CAPABILITIES,
    open=StreamChannel,
    settings=lambda platforms: platforms.audio_stream,
    routes=(MediaRoute("/audio-stream/media", Proof.PLATFORM),),
    proof=AuthorizationProof,
    account=account,
)
