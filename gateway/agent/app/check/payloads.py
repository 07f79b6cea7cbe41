"""Audio and response payloads that app code writes: keys, values, files."""

from __future__ import annotations

import ast
import difflib
import json
import re
from collections.abc import Mapping
from typing import Any

from gateway.agent.app.check.literals import (
    HOLE,
    UNKNOWN,
    Written,
    written_mappings,
    written_texts,
)
from gateway.agent.app.check.problem import Code
from gateway.agent.app.check.tree import Text, Tree
from gateway.agent.app.files import clean_path
from gateway.errors import AppError

AUDIO_KEYS = (
    *("audioUri", "transcript", "cancellable", "interruptable"),
    *("loop", "gainDb", "fadeMs", "listen"),
)
_TOLERATED = frozenset({"interrupable", "interruptible"})
"""Spellings of `interruptable` that this runtime takes too; Google's service does not."""
_FLAGS = frozenset({"cancellable", "interruptable", "loop", "listen", *_TOLERATED})
_URI_LIKE = re.compile(r"audio[_-]?(ur[il]s?|file|link)$", re.IGNORECASE)
_KEY = re.compile(r"[\"'](\w+)[\"']\s*:")
_PYTHON = re.compile(r'"\s*:\s*(True|False|None)\b')
"""Words of Python in the place of JSON's."""

_FACTORIES: dict[str, frozenset[str]] = {
    "from_audio": frozenset({"audio_uri", "cancellable", "interruptable"}),
    "from_customized_response": frozenset(
        {
            *("content", "disable_barge_in", "enable_dtmf", "dtmf_finish_digit"),
            "dtmf_endpointing_timeout",
        }
    ),
    "from_end_session": frozenset({"reason", "escalated"}),
}


def check_payloads(tree: Tree, text: Text, module: ast.Module) -> None:
    """Report payloads that would not sound, or not as meant."""
    checker = _Checker(tree, text)
    for line, mapping in written_mappings(module):
        checker.payload(line, mapping)
    for written in written_texts(module):
        checker.json(written)
    for node in ast.walk(module):
        if isinstance(node, ast.Call):
            checker.factory(node)


class _Checker:
    def __init__(self, tree: Tree, text: Text) -> None:
        self._tree = tree
        self._problems = tree.problems
        self._text = text

    def json(self, written: Written) -> None:
        """A text that may be a payload in JSON."""
        text = written.text.strip()
        keys = _KEY.findall(text)
        if not text.startswith("{") or not _about_audio(keys):
            return
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            # A part of a text, or one with values to come, may become JSON yet.
            whole = written.whole and text.endswith("}") and not text.startswith("{{")
            if whole or _PYTHON.search(text):
                self._problems.error(
                    Code.PAYLOAD_VALUE,
                    self._text.file,
                    self._text.line_of(written.line),
                    "the audio payload is not JSON",
                    "Mind quotes and commas, and write true and false in small letters; "
                    "json.dumps makes no mistakes.",
                )
            value = dict.fromkeys(keys, UNKNOWN)
        if isinstance(value, dict):
            self.payload(written.line, {key: _known(one) for key, one in value.items()})

    def payload(self, line: int, payload: Mapping[str, Any]) -> None:
        """A mapping that may be an audio payload."""
        if not _about_audio(payload):
            return
        place = self._text.line_of(line)
        for key, value in payload.items():
            if key in _TOLERATED:
                self._problems.warn(
                    Code.PAYLOAD_KEY,
                    self._text.file,
                    place,
                    f"{key!r} is understood here but not by Google's service",
                    "Write 'interruptable'.",
                )
            elif key not in AUDIO_KEYS:
                self._misspelt(place, key)
            wrong = key in _FLAGS and value is not UNKNOWN and not isinstance(value, bool)
            if wrong:
                self._problems.error(
                    Code.PAYLOAD_VALUE,
                    self._text.file,
                    place,
                    f"{key} is {value!r}, not true or false",
                    "Give it without quotes.",
                )
        self._uri(place, payload.get("audioUri", UNKNOWN))

    def _misspelt(self, line: int, key: str) -> None:
        meant = _meant(key)
        if meant is not None:
            self._problems.error(
                Code.PAYLOAD_KEY,
                self._text.file,
                line,
                f"{key!r} is not a key of an audio payload",
                f"Write {meant!r}.",
            )

    def _uri(self, line: int, uri: Any) -> None:
        if uri is UNKNOWN:
            return
        if not isinstance(uri, str) or not uri:
            self._problems.error(
                Code.PAYLOAD_VALUE,
                self._text.file,
                line,
                "audioUri is not a text",
                "Give a gs:// or https:// address, or a path in the app.",
            )
            return
        if "://" in uri:
            return
        try:
            known = clean_path(uri) in self._tree.paths
        except AppError:
            known = False
        if not known:
            self._problems.error(
                Code.AUDIO_MISSING,
                self._text.file,
                line,
                f"the app has no audio file {uri[:100]!r}",
                "Paths are relative to the app's root folder; else give a gs:// or https:// "
                "address.",
            )

    def factory(self, node: ast.Call) -> None:
        """A call of a factory of `Part`."""
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in _FACTORIES:
            return
        name, known = node.func.attr, _FACTORIES[node.func.attr]
        for keyword in node.keywords:
            if keyword.arg is not None and keyword.arg not in known:
                near = difflib.get_close_matches(keyword.arg, known, 1, 0.5)
                self._problems.error(
                    Code.PAYLOAD_KEY,
                    self._text.file,
                    self._text.line_of(node.lineno),
                    f"Part.{name} has no argument {keyword.arg!r}",
                    f"Write {near[0]!r}." if near else f"It has {', '.join(sorted(known))}.",
                )
        if name == "from_audio":
            keywords = {word.arg: word.value for word in node.keywords}
            uri = node.args[0] if node.args else keywords.get("audio_uri")
            if isinstance(uri, ast.Constant):
                self._uri(self._text.line_of(node.lineno), uri.value)


def _known(value: Any) -> Any:
    """A value of JSON, or that only the running code knows it."""
    return UNKNOWN if HOLE in str(value) else value


def _meant(key: str) -> str | None:
    """The key of an audio payload that a wrong one stands for."""
    if _URI_LIKE.fullmatch(key):
        return "audioUri"
    camel = re.sub(r"_(\w)", lambda m: m[1].upper(), key)
    close = difflib.get_close_matches(camel, AUDIO_KEYS, 1, 0.8)
    return close[0] if close else None


def _about_audio(keys: Mapping[str, Any] | list[str]) -> bool:
    return any(key == "audioUri" or _meant(key) == "audioUri" for key in keys)
