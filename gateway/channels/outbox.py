"""Sizes audio messages as a dialect wants them: gathered, cut, padded; sans-IO.

The engine gives one 20 ms frame at a time, a platform may want 200 ms in a message, exactly so
many bytes, or a multiple of some. Frames wait here until a message is full. What is left at the
end of a stretch goes out before its mark, or once nothing follows it; at a clear it is dropped.
"""

from __future__ import annotations

from gateway.audio.formats import FRAME_MS, AudioFormat
from gateway.channels.base import (
    Channel,
    ChannelCommand,
    Clear,
    Close,
    Hangup,
    SendMark,
    Transfer,
    Wire,
)
from gateway.channels.capabilities import Capabilities


def needs_outbox(capabilities: Capabilities, audio_format: AudioFormat) -> bool:
    """Whether plain 20 ms frames are not what the dialect wants."""
    frame_bytes = audio_format.frame_bytes
    return (
        capabilities.min_message_ms > FRAME_MS
        or frame_bytes > capabilities.max_out_bytes
        or frame_bytes % capabilities.frame_multiple_bytes != 0
    )


class Outbox:
    """The audio of one call on its way to the codec."""

    def __init__(
        self, channel: Channel, capabilities: Capabilities, audio_format: AudioFormat
    ) -> None:
        self._channel = channel
        frame_bytes = audio_format.frame_bytes
        multiple = capabilities.frame_multiple_bytes
        wanted = frame_bytes * max(1, capabilities.min_message_ms // FRAME_MS)
        if not capabilities.frame_exact:
            # The next size that keeps to the multiple, if the largest message has room for it.
            wanted += -wanted % multiple
            wanted = min(wanted, capabilities.max_out_bytes // multiple * multiple)
        self._message_bytes = wanted
        self._pad_bytes = wanted if capabilities.frame_exact else multiple
        self._silence = audio_format.silence[: audio_format.sample_bytes]
        self._gap_ticks = max(1, capabilities.min_message_ms // FRAME_MS)
        self._kept = bytearray()
        self._turn = 0
        self._grew = False
        self._ticks = 0
        """Ticks since the last message."""

    @property
    def kept_bytes(self) -> int:
        """Encoded audio that waits for more."""
        return len(self._kept)

    def audio(self, data: bytes, turn: int) -> list[Wire]:
        """Take one frame; the messages that are full now."""
        self._kept += data
        self._turn = turn
        self._grew = True
        out: list[Wire] = []
        size = self._message_bytes
        while len(self._kept) >= size:
            out += self._messages(bytes(self._kept[:size]))
            del self._kept[:size]
        return out

    def tick(self) -> list[Wire]:
        """A tick of the engine is over: a stretch that has not gone on since the last is sent.

        Never sooner after another message than the dialect's messages are long, so that a
        stumbling stream does not break a limit on messages a second.
        """
        self._ticks += 1
        grew, self._grew = self._grew, False
        if grew or not self._kept or self._ticks < self._gap_ticks:
            return []
        return self._flush()

    def command(self, command: ChannelCommand) -> list[Wire | Close]:
        """A command in its place among the audio."""
        out: list[Wire | Close] = []
        if isinstance(command, SendMark | Hangup | Transfer):
            out += self._flush()
        elif isinstance(command, Clear):
            self._kept.clear()
        return out + self._channel.command(command)

    def _flush(self) -> list[Wire]:
        if not self._kept:
            return []
        data = bytes(self._kept)
        self._kept.clear()
        short = -len(data) % self._pad_bytes
        if short:
            data += self._silence * -(-short // len(self._silence))
        return self._messages(data)

    def _messages(self, data: bytes) -> list[Wire]:
        self._ticks = 0
        made = self._channel.audio(data, self._turn)
        return list(made) if isinstance(made, tuple) else [made]
