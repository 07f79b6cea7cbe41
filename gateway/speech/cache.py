"""Speech that was made lately, by what it was made of: greetings and goodbyes are made once."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from dataclasses import astuple
from typing import NamedTuple

from gateway.audio.formats import AudioFormat, Pcm
from gateway.call.profile import VoiceConfig


class SpeechKey(NamedTuple):
    """All that a sentence's sound depends on.

    `format` is what the engine is asked for; the speech is kept as PCM at its rate.
    """

    engine: str
    voice: VoiceConfig
    language: str
    text: str
    format: AudioFormat

    @property
    def digest(self) -> str:
        """A name for the key from which the text cannot be read, the same in every process."""
        parts = (self.engine, astuple(self.voice), self.language, self.text, astuple(self.format))
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


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
