"""The native dialect, server side: `BidiRunSession` as websocket JSON.

`config` comes first and once; then any number of `realtimeInput`, one kind of input each. Names
are read in camelCase and snake_case, unknown ones are ignored; everything out is camelCase.
Audio is LINEAR16, MULAW or ALAW at 8, 16, 24 or 48 kHz, independent for each direction; a
direction without a config carries no audio. How a session is closed:

    1000  the session ended (after `endSession`)
    1001  this server is going away (after `endSession`)
    1003  `generic::unimplemented: …`        images and blobs
    1007  `generic::invalid_argument: …`     wrong shape, wrong order, not JSON, not base64
    1009  `generic::invalid_argument: …`     more than ten seconds of audio in one message
    1011  `generic::internal: …`             the agent or this server failed

Source of the field names: the published `google-cloud-ces` protos.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Mapping
from typing import Any, Final

import pybase64

from gateway import bidi
from gateway.audio.formats import AudioFormat, Encoding
from gateway.channels.base import (
    AgentPayload,
    AgentText,
    AgentToolCalls,
    AudioIn,
    ChannelCommand,
    ChannelEvent,
    Clear,
    Close,
    Codec,
    DtmfIn,
    Ended,
    EndReason,
    EventIn,
    GoAway,
    Hangup,
    Started,
    TextIn,
    ToolResponsesIn,
    Transfer,
    TurnCompleted,
    UserTranscript,
    VariablesIn,
    Wire,
    close_reason,
)
from gateway.channels.capabilities import Capabilities, ClearBy, DtmfOut, EndOut, TransferBy
from gateway.channels.dialect import Dialect, MediaRoute, Opening, Proof
from gateway.errors import ProtocolError
from gateway.platform_settings import PlatformSettings

CAPABILITIES: Final = Capabilities(
    dialect="ces",
    clear=ClearBy.NATIVE,
    max_lead_ms=500,
    kickoff=False,
    agent_messages=True,
    # The client is given the payload and presses the keys itself.
    dtmf_out=DtmfOut.NONE,
    end_out=EndOut.MESSAGE,
    transfer=TransferBy.MESSAGE,
    max_out_bytes=1 << 18,
    max_message_bytes=4 << 20,
    # A client names a session, and may come back to it.
    once=False,
    # JSON as UTF-8 bytes is taken as well.
    binary_in=True,
)

RATES_HZ: Final = (8000, 16000, 24000, 48000)
MAX_AUDIO_S: Final = 10
MAX_DTMF_KEYS: Final = 128
_KEYS: Final = frozenset("0123456789*#ABCD")
_ENCODINGS: Final[Mapping[str | int, Encoding]] = {
    "LINEAR16": Encoding.LINEAR16,
    "MULAW": Encoding.MULAW,
    "ALAW": Encoding.ALAW,
    1: Encoding.LINEAR16,
    2: Encoding.MULAW,
    3: Encoding.ALAW,
}
_PASSED_ON: Final[Mapping[str, type]] = {
    "entryAgent": str,
    "deployment": str,
    "timeZone": str,
    "historicalContexts": list,
    "useToolFakes": bool,
    "enableTextStreaming": bool,
    "remoteDialogflowQueryParameters": dict,
}
_TOOL_FIELDS: Final = ("id", "displayName", "tool", "toolsetTool", "args", "response")


class CesChannel(Codec):
    """The codec of one `BidiRunSession` websocket."""

    def __init__(self) -> None:
        super().__init__(CAPABILITIES)
        self._in_format: AudioFormat | None = None
        self._configured = False
        self._odd_byte = b""
        self._kinds: dict[str, Callable[[Any, bool], list[ChannelEvent]]] = {
            "audio": self._audio_in,
            "text": self._text_in,
            "dtmf": self._dtmf_in,
            "event": self._event_in,
            "variables": self._variables_in,
            "toolResponses": self._tool_responses_in,
            "image": self._unsupported,
            "blob": self._unsupported,
        }

    # ---- in

    def receive(self, message: Wire) -> list[ChannelEvent]:
        """Take one message, text or UTF-8 binary. Raises ProtocolError as the module says."""
        body = bidi.parse(message)
        config = bidi.get(body, "config")
        realtime = bidi.get(body, "realtimeInput")
        if (config is None) == (realtime is None):
            raise ProtocolError(
                "protocol.shape", "a message holds either config or realtimeInput", where="message"
            )
        if config is not None:
            return [self._config(_object(config, "config"))]
        if not self._configured:
            raise ProtocolError("protocol.order", "the first message must be config")
        return self._realtime(_object(realtime, "realtimeInput"))

    def _config(self, config: dict[str, Any]) -> Started:
        if self._configured:
            raise ProtocolError("protocol.started_twice", "config may come only once")
        session = bidi.get(config, "session")
        if not isinstance(session, str):
            raise ProtocolError("protocol.shape", "session is missing", where="config.session")
        session_id = bidi.session_id(session)
        in_format = _audio_format(config, "inputAudioConfig")
        out_format = _audio_format(config, "outputAudioConfig")
        passed_on: dict[str, Any] = {}
        for name, kind in _PASSED_ON.items():
            value = bidi.get(config, name)
            if value is None:
                continue
            if not isinstance(value, kind):
                raise ProtocolError(
                    "protocol.shape", f"{name} is not a {kind.__name__}", where=f"config.{name}"
                )
            passed_on[name] = value
        self._in_format = in_format
        self._configured = True
        return Started(
            call_id=session_id,
            in_format=in_format,
            out_format=out_format,
            session=session,
            config=passed_on,
        )

    def _realtime(self, body: dict[str, Any]) -> list[ChannelEvent]:
        more = bidi.get(body, "willContinue")
        if more is not None and not isinstance(more, bool):
            raise ProtocolError(
                "protocol.shape", "willContinue is not a bool", where="realtimeInput.willContinue"
            )
        given = [name for name in self._kinds if bidi.get(body, name) is not None]
        if len(given) != 1:
            raise ProtocolError(
                "protocol.shape",
                f"one kind of input a message, not {' and '.join(given) or 'none'}",
                where="realtimeInput",
            )
        kind = given[0]
        return self._kinds[kind](bidi.get(body, kind), bool(more))

    def _audio_in(self, value: Any, _more: bool) -> list[ChannelEvent]:
        where = "realtimeInput.audio"
        if self._in_format is None:
            raise ProtocolError(
                "protocol.audio", "audio in a session without inputAudioConfig", where=where
            )
        data = _base64(value, where)
        if len(data) > MAX_AUDIO_S * self._in_format.rate_hz * self._in_format.sample_bytes:
            raise ProtocolError(
                "protocol.too_much_audio",
                f"more than {MAX_AUDIO_S} seconds of audio in one message",
                where=where,
                hint="send 40 to 120 ms a message, in real time",
                close_code=1009,
            )
        if self._in_format.encoding is Encoding.LINEAR16:
            # A sample cut in two by the sender is put together again, or all after it is noise.
            data = self._odd_byte + data
            even = len(data) & ~1
            data, self._odd_byte = data[:even], data[even:]
        return [AudioIn(data)] if data else []

    def _text_in(self, value: Any, more: bool) -> list[ChannelEvent]:
        return [TextIn(_string(value, "realtimeInput.text"), more)]

    def _dtmf_in(self, value: Any, _more: bool) -> list[ChannelEvent]:
        digits = _string(value, "realtimeInput.dtmf").upper()
        if len(digits) > MAX_DTMF_KEYS or not _KEYS.issuperset(digits):
            raise ProtocolError(
                "protocol.dtmf",
                f"dtmf is at most {MAX_DTMF_KEYS} of 0-9 * # A-D",
                where="realtimeInput.dtmf",
            )
        return [DtmfIn(digits)] if digits else []

    def _event_in(self, value: Any, _more: bool) -> list[ChannelEvent]:
        where = "realtimeInput.event"
        name = bidi.get(_object(value, where), "event")
        if not isinstance(name, str) or not name:
            raise ProtocolError(
                "protocol.shape",
                "an event is an object whose field event holds its name",
                where=where,
                hint='{"realtimeInput": {"event": {"event": "session start"}}}',
            )
        if name == bidi.REMOTE_DISCONNECTED:
            # An adapter's way of saying that its caller hung up.
            return [Ended()]
        return [EventIn(name)]

    def _variables_in(self, value: Any, _more: bool) -> list[ChannelEvent]:
        return [VariablesIn(_object(value, "realtimeInput.variables"))]

    def _tool_responses_in(self, value: Any, _more: bool) -> list[ChannelEvent]:
        where = "realtimeInput.toolResponses"
        items = bidi.get(_object(value, where), "toolResponses")
        if not isinstance(items, list):
            raise ProtocolError("protocol.shape", "toolResponses is not a list", where=where)
        return [ToolResponsesIn([_tool(_object(item, where)) for item in items])]

    def _unsupported(self, _value: Any, _more: bool) -> list[ChannelEvent]:
        raise ProtocolError(
            "protocol.unsupported",
            "images and blobs are not taken in a voice session",
            where="realtimeInput",
            close_code=1003,
        )

    # ---- out

    def audio(self, data: bytes, turn: int) -> str:
        """One `sessionOutput` with audio in the output encoding."""
        encoded = pybase64.b64encode_as_string(data)
        return f'{{"sessionOutput":{{"audio":"{encoded}","turnIndex":{turn}}}}}'

    def command(self, command: ChannelCommand) -> list[Wire | Close]:
        """Everything but marks has words in this dialect."""
        if isinstance(command, AgentText):
            return [_output(command.turn, text=command.text)]
        if isinstance(command, AgentPayload):
            return [_output(command.turn, payload=command.payload)]
        if isinstance(command, AgentToolCalls):
            calls = [_tool(call) for call in command.tool_calls]
            return [_output(command.turn, toolCalls={"toolCalls": calls})]
        if isinstance(command, TurnCompleted):
            return [_output(command.turn, turnCompleted=True)]
        if isinstance(command, UserTranscript):
            return [bidi.dump({"recognitionResult": {"transcript": command.text}})]
        if isinstance(command, Clear):
            signal = {"bargeIn": True} if command.barge_in else {}
            return [bidi.dump({"interruptionSignal": signal})]
        if isinstance(command, GoAway):
            return [bidi.dump({"goAway": {}})]
        if isinstance(command, Transfer):
            return [_end_session(command.metadata), Close(1000, "transferred")]
        if isinstance(command, Hangup):
            return _hang_up(command)
        return []

    def protocol_close(self, error: Exception) -> list[Wire | Close]:
        """Only a close, with a `generic::…` reason."""
        if not isinstance(error, ProtocolError):
            return [Close(1011, "generic::internal: the session failed")]
        unsupported = error.code == "protocol.unsupported"
        status = "unimplemented" if unsupported else "invalid_argument"
        place = f" ({error.where})" if error.where else ""
        return [Close(error.close_code, close_reason(f"generic::{status}: {error.message}{place}"))]


def _output(turn: int, **fields: Any) -> str:
    return bidi.dump({"sessionOutput": {**fields, "turnIndex": turn}})


def _end_session(metadata: Mapping[str, Any]) -> str:
    return bidi.dump({"endSession": {"metadata": dict(metadata)} if metadata else {}})


def _hang_up(command: Hangup) -> list[Wire | Close]:
    reason = command.reason
    if reason is EndReason.ERROR:
        return [Close(1011, "generic::internal: the session failed")]
    if reason in (EndReason.REMOTE_HANGUP, EndReason.TRANSPORT_LOST):
        return [Close(1000, reason.value)]
    code = 1001 if reason is EndReason.SHUTDOWN else 1000
    return [_end_session(command.metadata), Close(code, reason.value)]


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ProtocolError("protocol.shape", "not an object", where=where)
    return value


def _string(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise ProtocolError("protocol.shape", "not a string", where=where)
    return value


def _base64(value: Any, where: str) -> bytes:
    """Standard or URL-safe base64, padded or not, as the proto JSON mapping allows."""
    text = _string(value, where)
    try:
        return pybase64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        pass
    try:
        plain = text.rstrip("=").translate(_URL_SAFE)
        return pybase64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ProtocolError("protocol.base64", "not base64", where=where) from None


_URL_SAFE: Final = str.maketrans("-_", "+/")


def _audio_format(config: dict[str, Any], name: str) -> AudioFormat | None:
    value = bidi.get(config, name)
    if value is None:
        return None
    where = f"config.{name}"
    audio = _object(value, where)
    encoding = bidi.get(audio, "audioEncoding")
    named = isinstance(encoding, str | int) and not isinstance(encoding, bool)
    known = _ENCODINGS.get(encoding) if named else None
    if known is None:
        raise ProtocolError(
            "protocol.format",
            "audioEncoding is one of LINEAR16, MULAW, ALAW",
            where=f"{where}.audioEncoding",
        )
    rate_hz = _whole(bidi.get(audio, "sampleRateHertz"))
    if rate_hz not in RATES_HZ:
        raise ProtocolError(
            "protocol.format",
            "sampleRateHertz is one of 8000, 16000, 24000, 48000",
            where=f"{where}.sampleRateHertz",
        )
    return AudioFormat(known, rate_hz)


def _whole(value: Any) -> int:
    """An int32 as proto JSON spells it: number, integral float or decimal string; else -1."""
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() and len(value) <= 10 else -1
    if isinstance(value, bool) or not isinstance(value, int | float):
        return -1
    return int(value) if value == value // 1 else -1


def _tool(item: Mapping[str, Any]) -> dict[str, Any]:
    """A tool call or response with its known fields alone, in camelCase."""
    tool: dict[str, Any] = {}
    for name in _TOOL_FIELDS:
        value = bidi.get(item, name)
        if value is not None:
            tool[name] = value
    toolset = tool.get("toolsetTool")
    if isinstance(toolset, Mapping):
        parts = {name: bidi.get(toolset, name) for name in ("toolset", "toolId")}
        tool["toolsetTool"] = {name: part for name, part in parts.items() if part is not None}
    return tool


NATIVE: Final = "/ws/google.cloud.ces.{version}.SessionService/BidiRunSession/locations/{location}"


def _open(_opening: Opening[PlatformSettings]) -> CesChannel:
    return CesChannel()


DIALECT: Final = Dialect(
    capabilities=CAPABILITIES,
    open=_open,
    settings=lambda platforms: platforms.ces,
    routes=tuple(
        MediaRoute(NATIVE.format(version=version, location="{location}"), Proof.BEARER)
        for version in ("v1", "v1beta")
    ),
)
