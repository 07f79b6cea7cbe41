"""Makes calls as the recorder of a live one would, and reads what became of them."""

from __future__ import annotations

import io
import os
import wave
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gateway.audio.formats import AudioFormat, Encoding
from gateway.channels.base import Started
from gateway.records.entries import Kind, entry, entry_json
from gateway.records.plan import Delivery, Plan, Target

RATE = 8000
LINEAR_8K = AudioFormat(Encoding.LINEAR16, RATE)
BEGUN = 100.0
"""The engine's clock when calls begin."""
SESSION = "projects/p/locations/eu/apps/a/sessions/s-0001"


def started(call_id: str = "CA1", **over: Any) -> Started:
    """A call as a dialect reports it."""
    given: dict[str, Any] = {
        "session": SESSION,
        "in_format": LINEAR_8K,
        "out_format": LINEAR_8K,
        **over,
    }
    return Started(call_id, **given)


def to_folder(folder: Path, *, redacted: bool = False) -> Plan:
    """Everything goes to a folder."""
    return Plan((Delivery(Target.FOLDER, str(folder), redacted, ""),), redact=redacted)


def tone(value: int, seconds: float = 0.02) -> bytes:
    """A constant sample."""
    return value.to_bytes(2, "little", signed=True) * round(seconds * RATE)


def header(deliveries: Sequence[Delivery] = (), **over: Any) -> dict[str, Any]:
    """The beginning of a spool file."""
    return {
        "call_id": "CA1",
        "session": SESSION,
        "started_at": 1_767_225_600.0,
        "in_format": ["LINEAR16", RATE],
        "out_format": ["LINEAR16", RATE],
        "words": True,
        "deliveries": [d.to_json() for d in deliveries],
        **over,
    }


class SpoolFile:
    """A spool file in the making; times in seconds of the call."""

    def __init__(self, head: dict[str, Any] | None = None) -> None:
        self.data = entry_json(Kind.CALL, BEGUN, head or header())

    def caller(self, t: float, pcm: bytes) -> SpoolFile:
        self.data += entry(Kind.CALLER, BEGUN + t, pcm)
        return self

    def agent(self, t: float, pcm: bytes) -> SpoolFile:
        self.data += entry(Kind.AGENT, BEGUN + t, pcm)
        return self

    def unheard(self, t: float) -> SpoolFile:
        self.data += entry(Kind.UNHEARD, BEGUN + t)
        return self

    def note(self, t: float, kind: str, **fields: Any) -> SpoolFile:
        self.data += entry_json(Kind.NOTE, BEGUN + t, {"kind": kind, **fields})
        return self

    def end(self, t: float) -> SpoolFile:
        self.data += entry_json(Kind.END, BEGUN + t, {"lost_frames": 0})
        return self

    def file(self) -> io.BytesIO:
        return io.BytesIO(self.data)


def wav(path: Path) -> tuple[int, NDArray[np.int16]]:
    """Rate and samples of a WAV, shape (samples, channels)."""
    with wave.open(str(path)) as file:
        data = file.readframes(file.getnframes())
        samples = np.frombuffer(data, "<i2").reshape(-1, file.getnchannels())
        return file.getframerate(), samples


def found(folder: Path, ending: str) -> list[Path]:
    """Delivered files, hidden ones and the spool left out."""
    paths: list[Path] = []
    for here, folders, files in os.walk(folder):
        # The spool changes while others go on: it is not entered.
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths += [
            Path(here, name) for name in files if name.endswith(ending) and not name.startswith(".")
        ]
    return sorted(paths)
