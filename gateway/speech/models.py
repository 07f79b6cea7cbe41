"""Where model files lie (inside installed wheels) and how they are run: one thread, no spinning."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gateway.audio.formats import Pcm

Floats = NDArray[np.float32]
"""Samples in -1..1, or features and states of a model."""


def has_module(name: str) -> bool:
    """Whether a top-level package can be imported; it is not imported by asking."""
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def package_file(package: str, inside: str) -> Path | None:
    """A file shipped in a top-level package, found without importing it; None where missing."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        file = Path(folder) / inside
        if file.is_file():
            return file
    return None


def open_session(file: Path) -> Any:
    """An onnxruntime session on one thread; every state stays outside it, so threads may share."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


def to_floats(pcm: Pcm) -> Floats:
    """16-bit samples as floats in -1..1; half a sample at the end is dropped."""
    samples = np.frombuffer(pcm, "<i2", count=len(pcm) // 2)
    return samples.astype(np.float32) / np.float32(32768)


def to_pcm(samples: Floats) -> Pcm:
    """Floats in -1..1 as 16-bit samples, limited to full scale."""
    scaled = np.rint(samples * np.float32(32768))
    limited: NDArray[np.int16] = np.clip(scaled, -32768, 32767).astype("<i2")
    return limited.tobytes()
