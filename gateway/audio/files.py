"""Decoding audio files of every supported kind into one mono clip.

Known by their first bytes: WAV (PCM, float, A-law, mu-law, extensible), AU, AIFF, FLAC, OGG, MP3.
Known by the name's ending, without a header, 8000 Hz unless the name says otherwise:
`.ulaw .mulaw .ul` (mu-law), `.alaw .al` (A-law), `.raw .pcm .l16` (16-bit, little endian).
A name states another rate as `clip_16000.raw` or `clip.raw;rate=16000`, a URL as `?rate=16000` too.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import soundfile
from numpy.typing import NDArray

from gateway.audio import g711, wav
from gateway.audio.formats import Encoding, Pcm
from gateway.audio.resample import MAX_RATE_HZ, MIN_RATE_HZ
from gateway.errors import AssetError

MAX_CHANNELS = 32
MAX_CLIP_BYTES = 128 << 20
"""Bound on decoded samples: a small compressed file may hold hours of silence."""

_HEADERLESS = {
    "ulaw": Encoding.MULAW,
    "mulaw": Encoding.MULAW,
    "ul": Encoding.MULAW,
    "alaw": Encoding.ALAW,
    "al": Encoding.ALAW,
    "raw": Encoding.LINEAR16,
    "pcm": Encoding.LINEAR16,
    "l16": Encoding.LINEAR16,
}
_MAGIC = (b"fLaC", b"OggS", b".snd", b"FORM", b"ID3", b"RIFX")
_PARAMETER = re.compile(r"[;?&]rate=(\d+)(?:[&#].*)?$")
_IN_NAME = re.compile(r"[_-](8000|11025|12000|16000|22050|24000|32000|44100|48000)$")
_HINT = "use WAV, AU, FLAC or OGG, or headerless .ulaw, .alaw or .raw"
_BLOCK_FRAMES = 1 << 16
_SAMPLE_FORMS = {(1, 1), (1, 2), (1, 3), (1, 4), (3, 4), (3, 8), (6, 1), (7, 1)}
"""(format tag, bytes of a sample) that are decoded here; all else goes to soundfile."""


@dataclass(frozen=True, slots=True)
class Clip:
    """Decoded audio, mono, at the rate of its file."""

    pcm: Pcm
    rate_hz: int

    @property
    def seconds(self) -> float:
        """Length in seconds."""
        return len(self.pcm) / 2 / self.rate_hz


def without_rate(name: str) -> str:
    """The name under which a file is stored: a trailing `;rate=16000` is for the decoder only."""
    return re.sub(r";rate=\d+$", "", name)


def decode(data: bytes, name: str, max_seconds: float = 600.0) -> Clip:
    """The audio in `data`; `name` (path or uri) tells headerless encodings and places errors.

    Raises AssetError: asset.empty, asset.format, asset.too_long, asset.truncated.
    """
    if not data:
        raise AssetError("asset.empty", "the file is empty", where=name)
    if wav.is_wav(data):
        clip = _from_wav(data, name, max_seconds)
    elif data.startswith(_MAGIC) or _is_mpeg(data, name):
        clip = _from_soundfile(data, name, max_seconds)
    else:
        clip = _from_headerless(data, name, max_seconds)
    if not clip.pcm:
        raise AssetError("asset.empty", "the file holds no samples", where=name)
    return clip


def _from_wav(data: bytes, name: str, max_seconds: float) -> Clip:
    found = wav.read(data, name)
    if (found.tag, found.sample_bytes) not in _SAMPLE_FORMS:
        return _from_soundfile(data, name, max_seconds)
    _check_shape(found.channels, found.rate_hz, name)
    frame_bytes = found.sample_bytes * found.channels
    _check_length(len(found.body) // frame_bytes, found.rate_hz, max_seconds, name)
    to_samples = _READERS[found.tag]
    block = _BLOCK_FRAMES * frame_bytes
    pcm = b"".join(
        _downmix(to_samples(found.body[at : at + block], found.sample_bytes), found.channels)
        for at in range(0, len(found.body), block)
    )
    return Clip(pcm, found.rate_hz)


def _from_soundfile(data: bytes, name: str, max_seconds: float) -> Clip:
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            _check_shape(file.channels, file.samplerate, name)
            pcm = b"".join(_blocks(file, max_seconds, name))
            return Clip(pcm, file.samplerate)
    except soundfile.SoundFileError as error:
        raise AssetError(
            "asset.format", f"cannot be decoded: {error}", where=name, hint=_HINT
        ) from None


def _blocks(file: soundfile.SoundFile, max_seconds: float, name: str) -> Iterator[Pcm]:
    frames = 0
    while True:
        try:
            block = file.read(_BLOCK_FRAMES, dtype="float64", always_2d=True)
        except soundfile.SoundFileError:
            if not frames:
                raise
            return  # cut off on the way: what came before still plays
        if not len(block):
            return
        frames += len(block)
        _check_length(frames, file.samplerate, max_seconds, name)
        yield _downmix(block.reshape(-1), file.channels)


def _from_headerless(data: bytes, name: str, max_seconds: float) -> Clip:
    if _is_text(data):
        raise AssetError(
            "asset.format",
            "holds text and no audio",
            where=name,
            hint="the store may have answered with an error page",
        )
    path = re.split(r"[;?#]", name, maxsplit=1)[0]
    stem, _, ending = path.rpartition(".")
    encoding = _HEADERLESS.get(ending.lower()) if stem else None
    if encoding is None:
        raise AssetError("asset.format", "no known kind of audio file", where=name, hint=_HINT)
    stated = _PARAMETER.search(name) or _IN_NAME.search(stem)
    rate_hz = int(stated[1]) if stated else 8000
    _check_shape(1, rate_hz, name)
    _check_length(
        len(data) // (2 if encoding is Encoding.LINEAR16 else 1), rate_hz, max_seconds, name
    )
    return Clip(g711.decode(data, encoding), rate_hz)


def _check_shape(channels: int, rate_hz: int, name: str) -> None:
    if not 1 <= channels <= MAX_CHANNELS:
        raise AssetError("asset.format", f"{channels} channels", where=name)
    if not MIN_RATE_HZ <= rate_hz <= MAX_RATE_HZ:
        raise AssetError("asset.format", f"a sample rate of {rate_hz} Hz", where=name)


def _check_length(frames: int, rate_hz: int, max_seconds: float, name: str) -> None:
    if frames > max_seconds * rate_hz or frames * 2 > MAX_CLIP_BYTES:
        raise AssetError(
            "asset.too_long",
            f"longer than {min(max_seconds, MAX_CLIP_BYTES / 2 / rate_hz):g} s",
            where=name,
            hint="raise assets.max_seconds or cut the file",
        )


def _is_mpeg(data: bytes, name: str) -> bool:
    path = re.split(r"[;?#]", name, maxsplit=1)[0]
    return path.lower().endswith(".mp3") and data[0] == 0xFF and data[1:2] >= b"\xe0"


def _is_text(data: bytes) -> bool:
    """Whether the bytes can only be text: audio soon has a byte that no text holds."""
    head = data[:1024].removeprefix(b"\xef\xbb\xbf")
    if len(head) < 4 or any(byte < 0x20 and byte not in b"\t\r\n" for byte in head):
        return False
    if head.isascii():
        return b"\x7f" not in head
    if head.lstrip()[:1] not in (b"<", b"{", b"["):
        return False
    # The head may end inside a character of several bytes.
    return any(_is_utf8(head[: len(head) - cut]) for cut in range(4))


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


# ---- samples of a file as numbers of full scale 1.0

_Samples = NDArray[np.float64]


def _pcm_samples(body: bytes, sample_bytes: int) -> _Samples:
    if sample_bytes == 1:
        return (np.frombuffer(body, np.uint8).astype(np.float64) - 128.0) / 128.0
    if sample_bytes == 3:
        # Three bytes as the upper ones of four; the lowest stays zero.
        wide = np.zeros((len(body) // 3, 4), np.uint8)
        wide[:, 1:] = np.frombuffer(body, np.uint8).reshape(-1, 3)
        return wide.reshape(-1).view("<i4").astype(np.float64) / 2.0**31
    return np.frombuffer(body, f"<i{sample_bytes}").astype(np.float64) / 2.0 ** (
        8 * sample_bytes - 1
    )


def _float_samples(body: bytes, sample_bytes: int) -> _Samples:
    return np.frombuffer(body, f"<f{sample_bytes}").astype(np.float64)


def _mulaw_samples(body: bytes, sample_bytes: int) -> _Samples:
    return _pcm_samples(g711.decode(body, Encoding.MULAW), 2)


def _alaw_samples(body: bytes, sample_bytes: int) -> _Samples:
    return _pcm_samples(g711.decode(body, Encoding.ALAW), 2)


_READERS: dict[int, Callable[[bytes, int], _Samples]] = {
    wav.Tag.PCM: _pcm_samples,
    wav.Tag.FLOAT: _float_samples,
    wav.Tag.MULAW: _mulaw_samples,
    wav.Tag.ALAW: _alaw_samples,
}


def _downmix(samples: _Samples, channels: int) -> Pcm:
    """Interleaved samples of full scale 1.0 as mono PCM: the mean of the channels."""
    # Float files may hold anything, sums of the largest numbers included.
    samples = np.clip(np.nan_to_num(samples, nan=0.0), -1.0, 1.0)
    if channels > 1:
        samples = samples.reshape(-1, channels).mean(axis=1)
    return np.minimum(np.rint(samples * 32768.0), 32767).astype("<i2").tobytes()
