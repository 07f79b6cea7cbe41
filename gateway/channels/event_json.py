"""JSON messages that name their kind in the field `event`, decoded by type in one pass."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

import msgspec

from gateway.errors import ProtocolError

M = TypeVar("M", bound=msgspec.Struct)


class _Envelope(msgspec.Struct):
    event: str


_decode_envelope = msgspec.json.Decoder(_Envelope).decode


class EventDecoder(Generic[M]):
    """Decodes the messages of one dialect. Not strict: numbers may be written as strings.

    `known`: the events whose shape matters; others may hold anything.
    """

    def __init__(self, message: type[M], known: Iterable[str]) -> None:
        self._decode = msgspec.json.Decoder(message, strict=False).decode
        self._known = frozenset(known)

    def decode(self, text: str) -> M | None:
        """One message; None for an unknown event of another shape. Raises ProtocolError."""
        try:
            return self._decode(text)
        except msgspec.ValidationError as error:
            fault = ProtocolError("protocol.shape", f"message has a wrong shape: {error}")
            try:
                known = _decode_envelope(text).event in self._known
            except msgspec.MsgspecError:
                raise fault from None
            if known:
                raise fault from None
            return None
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise ProtocolError("protocol.json", f"message is not JSON: {error}") from None
