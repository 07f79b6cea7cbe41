"""JSON messages that name their kind in one field, decoded by type in one pass."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

import msgspec

from gateway.errors import ProtocolError

M = TypeVar("M", bound=msgspec.Struct)


_decode_envelope = msgspec.json.Decoder(dict[str, Any]).decode


class EventDecoder(Generic[M]):
    """Decodes the messages of one dialect. Not strict: numbers may be written as strings.

    `known`: the events whose shape matters; others may hold anything. `kind`: the field that
    names them.
    """

    def __init__(self, message: type[M], known: Iterable[str], kind: str = "event") -> None:
        self._decode = msgspec.json.Decoder(message, strict=False).decode
        self._known = frozenset(known)
        self._kind = kind

    def decode(self, text: str) -> M | None:
        """One message; None for an unknown event of another shape. Raises ProtocolError."""
        try:
            return self._decode(text)
        except msgspec.ValidationError as error:
            fault = ProtocolError("protocol.shape", f"message has a wrong shape: {error}")
            try:
                kind = _decode_envelope(text).get(self._kind)
            except (msgspec.MsgspecError, RecursionError):
                raise fault from None
            if not isinstance(kind, str) or kind in self._known:
                raise fault from None
            return None
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise ProtocolError("protocol.json", f"message is not JSON: {error}") from None
