"""Speech that was made lately, by what it was made of: greetings and goodbyes are made once."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from gateway.audio.formats import Pcm


class SpeechKey(NamedTuple):
    """All that a sentence's sound depends on, within one process."""

    text: str
    speaking_rate: float
    language: str
    rate_hz: int


class SpeechCache:
    """A bounded cache; the sentence unused for longest goes first."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._kept: OrderedDict[SpeechKey, Pcm] = OrderedDict()

    def get(self, key: SpeechKey) -> Pcm | None:
        """The speech, if it is still there."""
        pcm = self._kept.get(key)
        if pcm is not None:
            self._kept.move_to_end(key)
        return pcm

    def put(self, key: SpeechKey, pcm: Pcm) -> None:
        """Keep speech; what alone is larger than the cache is not kept."""
        if len(pcm) > self._max_bytes:
            return
        old = self._kept.pop(key, b"")
        self._kept[key] = pcm
        self._bytes += len(pcm) - len(old)
        while self._bytes > self._max_bytes:
            _, dropped = self._kept.popitem(last=False)
            self._bytes -= len(dropped)
