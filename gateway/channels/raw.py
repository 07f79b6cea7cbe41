"""Plain audio both ways, for anything that has no dialect of its own, and for tests.

Everything about the call stands in the query of the upgrade:

    /raw/media?encoding=mulaw&rate=8000&call_id=42&from=%2B15550100&to=…&language=en-US

`encoding` is `mulaw`, `alaw`, `l16` (little endian) or `l16be`; `out_encoding` and `out_rate` say
where the other direction differs; `account` is whose calls are counted together. All fields but
the formats are custom data, too. Binary messages of any size are the caller's audio, a text message
is keys, and closing the socket ends the call.

    1007  a format that is not spoken, text that is not keys
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Final

from gateway.audio.formats import AudioFormat, Encoding
from gateway.channels.base import (
    DTMF_KEYS,
    AudioIn,
    ChannelEvent,
    Codec,
    DtmfIn,
    Started,
    Wire,
)
from gateway.channels.capabilities import Capabilities, ClearBy, Marks, MarksOnClear
from gateway.channels.dialect import Dialect, MediaRoute, Opening, Proof
from gateway.channels.l16 import Swapper
from gateway.errors import ProtocolError
from gateway.platform_settings import PlatformSettings

CAPABILITIES: Final = Capabilities(
    dialect="raw",
    marks=Marks.EMULATED,
    marks_on_clear=MarksOnClear.LOST,
    clear=ClearBy.LOCAL_ONLY,
    max_lead_ms=100,
    binary_in=True,
)

_ENCODINGS: Final = {
    "mulaw": Encoding.MULAW,
    "alaw": Encoding.ALAW,
    "l16": Encoding.LINEAR16,
    "l16be": Encoding.LINEAR16,
}
_RATES_HZ: Final = (8000, 16000, 24000, 48000)
_CALL_ID: Final = re.compile(r"[\w.:@+-]{1,128}", re.ASCII)
_OURS: Final = frozenset(
    ("encoding", "rate", "out_encoding", "out_rate", "call_id", "access_token")
)
MAX_KEYS: Final = 32


class RawChannel(Codec):
    """The codec of one socket."""

    def __init__(self, opening: Opening[PlatformSettings]) -> None:
        super().__init__(CAPABILITIES)
        query = {name: values[0] for name, values in opening.request.query.items() if values}
        encoding, rate = query.get("encoding", "mulaw"), query.get("rate", "8000")
        out_encoding, out_rate = query.get("out_encoding", encoding), query.get("out_rate", rate)
        in_format = _format(encoding, rate, "")
        out_format = _format(out_encoding, out_rate, "out_")
        self._swap_in = Swapper() if encoding == "l16be" else None
        self._swap_out = Swapper() if out_encoding == "l16be" else None
        self._start = _started(query, opening.expected_call_id, in_format, out_format)

    def opened(self) -> list[ChannelEvent]:
        """The query has said all."""
        return [self._start]

    def receive(self, message: Wire) -> list[ChannelEvent]:
        """Audio or keys. Raises ProtocolError as the module says."""
        if isinstance(message, bytes):
            if self._swap_in is not None:
                message = self._swap_in.process(message)
            return [AudioIn(message)] if message else []
        keys = message.strip().upper()
        if not 0 < len(keys) <= MAX_KEYS or not DTMF_KEYS.issuperset(keys):
            raise ProtocolError("protocol.dtmf", "text that is not telephone keys")
        return [DtmfIn(keys)]

    def audio(self, data: bytes, turn: int) -> bytes:
        """The samples in the format that the query asked for."""
        return data if self._swap_out is None else self._swap_out.process(data)


def _format(encoding: str, rate: str, prefix: str) -> AudioFormat:
    found = _ENCODINGS.get(encoding)
    if found is None:
        raise ProtocolError(
            "protocol.format",
            "the query asks for an encoding that is not spoken",
            where=f"{prefix}encoding",
            hint=f"one of {', '.join(_ENCODINGS)}",
        )
    rates = _RATES_HZ if found is Encoding.LINEAR16 else _RATES_HZ[:1]
    if rate not in map(str, rates):
        raise ProtocolError(
            "protocol.format",
            "the query asks for a rate that is not spoken",
            where=f"{prefix}rate",
            hint=f"one of {', '.join(map(str, rates))} with {encoding}",
        )
    return AudioFormat(found, int(rate))


def _started(
    query: Mapping[str, str], expected: str, in_format: AudioFormat, out_format: AudioFormat
) -> Started:
    call_id = expected or query.get("call_id") or f"raw-{secrets.token_hex(8)}"
    if not _CALL_ID.fullmatch(call_id):
        raise ProtocolError("protocol.shape", "that is no call id", where="call_id")
    return Started(
        call_id=call_id,
        channel_id=call_id,
        from_=query.get("from", ""),
        to=query.get("to", ""),
        language=query.get("language", ""),
        in_format=in_format,
        out_format=out_format,
        custom={name: value for name, value in query.items() if name not in _OURS},
        account=query.get("account", ""),
    )


DIALECT: Final = Dialect(
    capabilities=CAPABILITIES,
    open=RawChannel,
    settings=lambda platforms: platforms.raw,
    routes=(MediaRoute("/raw/media", Proof.BEARER),),
    account=lambda request: request.query_value("account"),
)
