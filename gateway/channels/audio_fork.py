"""FreeSWITCH mod_audio_fork, as drachtio and jambonz build it.

Audio goes out as binary messages where bidirectional streaming was switched on, else as `playAudio`
clips, which the module only hands to the call's application. So do `transfer` and `disconnect`:
each becomes an event of the event socket.

While a mark is on its way the module takes a sample of -1 for it, so none is sent. It keeps 30
marks and forgets more. `killAudio` reports waiting marks as `cleared`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import orjson
import pybase64

from gateway.channels.base import (
    ChannelCommand,
    ChannelEvent,
    Clear,
    Close,
    Hangup,
    MarkReached,
    SendMark,
    Transfer,
    Wire,
)
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
from gateway.channels.l16 import without_minus_one
from gateway.channels.proofs import AuthorizationProof
from gateway.platform_settings import ForkSettings

MAX_MARKS: Final = 30

CAPABILITIES: Final = Capabilities(
    dialect="audio_fork",
    marks=Marks.NATIVE,
    marks_on_clear=MarksOnClear.CLEARED_STATUS,
    clear=ClearBy.NATIVE,
    max_lead_ms=500,
    # The module holds back what does not fill its prebuffer: the last words of an utterance
    # would wait for the next one.
    continuous=True,
    max_out_bytes=192_000,
    # Everything since the socket was last writable, up to five seconds.
    max_message_bytes=1 << 20,
    binary_in=True,
    subprotocols=("audio.drachtio.org", "audio.jambonz.org"),
    starts_within_s=3.0,
    end_out=EndOut.MESSAGE,
    transfer=TransferBy.MESSAGE,
)


def fitted(capabilities: Capabilities, settings: ForkSettings) -> Capabilities:
    """The record for the way in which audio goes out."""
    if settings.streaming:
        return capabilities
    return replace(
        capabilities,
        marks=Marks.EMULATED,
        marks_on_clear=MarksOnClear.LOST,
        continuous=False,
        min_message_ms=settings.clip_ms,
        max_lead_ms=2 * settings.clip_ms,
    )


class ForkChannel(FreeswitchChannel):
    """The codec of one fork."""

    def __init__(
        self,
        opening: Opening[Any],
        capabilities: Capabilities = CAPABILITIES,
        *,
        metadata_needed: bool = False,
    ) -> None:
        settings: ForkSettings = opening.settings
        super().__init__(
            opening,
            fitted(capabilities, settings),
            in_rate_hz=settings.in_rate_hz,
            out_rate_hz=settings.out_rate_hz,
            metadata_needed=metadata_needed,
        )
        self._streaming = settings.streaming
        self._waiting: set[str] = set()
        self._clips = 0
        self._clip_head = f'","sampleRate":{settings.out_rate_hz},"audioContent":"'

    def _told(self, body: Mapping[str, Any]) -> list[ChannelEvent]:
        data = body.get("data")
        if body.get("type") != "mark" or not isinstance(data, dict):
            return []
        name = data.get("name")
        if not isinstance(name, str) or name not in self._waiting:
            return []
        self._waiting.discard(name)
        return [MarkReached(name)] if data.get("event") == "playout" else []

    def audio(self, data: bytes, turn: int) -> Wire:
        """Raw samples, or one `playAudio` clip that waits for those before it."""
        if self._streaming:
            return without_minus_one(data)
        self._clips += 1
        content = pybase64.b64encode_as_string(data)
        return (
            f'{{"type":"playAudio","data":{{"audioContentType":"raw","id":"{self._clips}'
            f'{self._clip_head}{content}","queuePlay":true}}}}'
        )

    def command(self, command: ChannelCommand) -> list[Wire | Close]:
        """Marks, `killAudio`, and the two words with which the call's application goes on."""
        if isinstance(command, SendMark):
            return self._mark(command.name)
        if isinstance(command, Clear):
            return ['{"type":"killAudio"}']
        if isinstance(command, Hangup):
            return [said("disconnect", command.outputs), Close(1000, command.reason.value)]
        if isinstance(command, Transfer):
            return [
                said("transfer", {**command.outputs, "target": command.target}),
                Close(1000, "transferred"),
            ]
        return []

    def _mark(self, name: str) -> list[Wire | Close]:
        if not self._streaming or len(self._waiting) >= MAX_MARKS:
            return []
        self._waiting.add(name)
        return [said("mark", {"name": name})]


def said(kind: str, data: Mapping[str, str] | None = None) -> str:
    """One text message to the module."""
    body: dict[str, Any] = {"type": kind}
    if data:
        body["data"] = data
    return orjson.dumps(body).decode()


DIALECT: Final = Dialect(
    capabilities=CAPABILITIES,
    open=ForkChannel,
    settings=lambda platforms: platforms.audio_fork,
    routes=(MediaRoute("/audio-fork/media", Proof.PLATFORM),),
    proof=AuthorizationProof,
    account=account,
)
