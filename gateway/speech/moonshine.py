"""Recognition by the Moonshine tiny English model: greedy decoding on onnxruntime.

Only the model files of the wheel are used. The encoder takes raw 16 kHz samples; the decoder gives
one token a step and keeps its past in tensors that are handed back at the next step.
"""

from __future__ import annotations

import unicodedata
from pathlib import Path

import numpy as np

from gateway.audio.formats import Pcm
from gateway.audio.resample import resample_clip
from gateway.speech.models import Floats, has_module, open_session, package_file, to_floats

INSTALL = "pip install moonshine-voice==0.0.73"

_FOLDER = "assets/tiny-en"
_RATE_HZ = 16000
_START, _END = 1, 2
_TOKENS_PER_S = 6.5
"""English speech stays below; more is the model repeating itself."""
_NOTHING_SAID = "You"
"""What the model answers to noise, clicks and silence. A spoken "you" comes with a full stop."""
_DOUBT = -1.5
"""Mean log probability of the tokens below which the words are guessed: real speech over a poor
line stays above -0.7, noise that is taken for sentences lies near -2."""
_MIN_SAMPLES = _RATE_HZ // 10
_PADDED_SAMPLES = _RATE_HZ
"""Shorter clips are padded with silence: the model was trained on whole seconds."""


def model_files() -> tuple[Path, Path, Path] | None:
    """Encoder, decoder and vocabulary in the wheel; None unless all are there."""
    names = ("encoder_model.ort", "decoder_model_merged.ort", "tokenizer.bin")
    encoder, decoder, vocabulary = (
        package_file("moonshine_voice", f"{_FOLDER}/{name}") for name in names
    )
    if encoder is None or decoder is None or vocabulary is None:
        return None
    return encoder, decoder, vocabulary


def available() -> bool:
    """Whether the wheel is installed and holds its model (later releases do not)."""
    return has_module("onnxruntime") and model_files() is not None


def read_vocabulary(data: bytes) -> list[bytes]:
    """Tokens in order: each a length (7 bits, or 15 in two bytes, low ones first) and its bytes.

    A token spelled `<0xNN>` stands for that byte; a token of length 0 is unused.
    """
    tokens: list[bytes] = []
    at = 0
    while at < len(data):
        size = data[at]
        at += 1
        if size & 0x80:
            size = (size & 0x7F) | data[at] << 7
            at += 1
        token = data[at : at + size]
        at += size
        if len(token) == 6 and token.startswith(b"<0x") and token.endswith(b">"):
            token = bytes([int(token[3:5], 16)])
        tokens.append(token)
    return tokens


def _is_latin(char: str) -> bool:
    return char.isascii() or unicodedata.name(char, "").startswith("LATIN ")


class Moonshine:
    """The model with its vocabulary; holds no state between calls."""

    name = "moonshine"

    def __init__(self) -> None:
        files = model_files()
        if files is None:
            raise FileNotFoundError("the moonshine_voice wheel holds no tiny-en model")
        self._encoder = open_session(files[0])
        self._decoder = open_session(files[1])
        self._vocabulary = read_vocabulary(files[2].read_bytes())
        self._outputs = [output.name for output in self._decoder.get_outputs()][1:]
        self._empty_past: dict[str, Floats] = {
            put.name: np.zeros((1, put.shape[1], 0, put.shape[3]), np.float32)
            for put in self._decoder.get_inputs()
            if put.name.startswith("past_key_values")
        }

    def words(self, pcm: Pcm, rate_hz: int, language: str) -> str:
        """The words of a clip; "" for less than a tenth of a second or where nothing is said."""
        samples = to_floats(resample_clip(pcm, rate_hz, _RATE_HZ))
        if len(samples) < _MIN_SAMPLES:
            return ""
        limit = int(len(samples) / _RATE_HZ * _TOKENS_PER_S) + 2
        if len(samples) < _PADDED_SAMPLES:
            samples = np.pad(samples, (0, _PADDED_SAMPLES - len(samples)))
        tokens, mean_log = self._decode(samples, limit)
        spelled = b"".join(self._vocabulary[token] for token in tokens)
        text = spelled.decode("utf-8", "ignore").replace("\u2581", " ")
        said = " ".join("".join(char for char in text if _is_latin(char)).split())
        # Musical notes and foreign scripts are this English model's other ways to hear nothing.
        if mean_log < _DOUBT or said == _NOTHING_SAID or not any(c.isalnum() for c in said):
            return ""
        return said

    def _decode(self, samples: Floats, limit: int) -> tuple[list[int], float]:
        """Tokens up to the end sign or `limit`, and the mean log probability of all steps."""
        mask = np.ones((1, len(samples)), np.int64)
        encoded = self._encoder.run(
            None, {"input_values": samples[np.newaxis], "attention_mask": mask}
        )[0]
        past = dict(self._empty_past)
        tokens: list[int] = []
        log_probabilities: list[float] = []
        token = _START
        for step in range(limit):
            logits, *present = self._decoder.run(
                None,
                {
                    "input_ids": np.array([[token]], np.int64),
                    "encoder_hidden_states": encoded,
                    "encoder_attention_mask": mask,
                    "use_cache_branch": np.array([step > 0]),
                    **past,
                },
            )
            # After the first step the encoder's part of the past is final; the model gives dummies.
            for name, value in zip(self._outputs, present, strict=True):
                if step == 0 or ".decoder." in name:
                    past[name.replace("present", "past_key_values")] = value
            scores = logits[0, -1]
            token = int(scores.argmax())
            log_probabilities.append(-float(np.log(np.exp(scores - scores[token]).sum())))
            if token == _END:
                break
            tokens.append(token)
        return tokens, sum(log_probabilities) / len(log_probabilities)
