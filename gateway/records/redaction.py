"""Masks personal data in what was said: numbers, mail and street addresses, names.

The rules are the gateway's own and lean to caution: what may be a number is taken for one. They
know the number words of English, German, Spanish and French, whatever language is spoken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.records.numbers import find_numbers
from gateway.records.words import FILLERS, LINKS, NO_NAME

MAX_TEXT: Final = 20_000
"""Longer texts are masked as a whole: no rule may take long."""
MAX_NAMES: Final = 200

NUMBER, EMAIL, NAME, ADDRESS, TEXT = "[number]", "[email]", "[name]", "[address]", "[text]"
DIGITS: Final = "[digits]"
"""What stands for pressed keys."""


_TOKEN: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")

_DOT = r"(?:dot|punkt|punto|point)"
_AT = r"(?:at|ät|arroba|arobase)"
_EMAIL: Final = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,6}", re.IGNORECASE)
_SPOKEN_EMAIL: Final = re.compile(
    rf"\b(?:\w\s+){{0,40}}\w[\w'.-]{{0,63}}"
    rf"(?:\s+(?:{_DOT}|underscore|dash|hyphen|minus|plus|unterstrich|tiret|guion)\s+\w{{1,64}}){{0,6}}"
    rf"\s+(?:{_AT}|@)\s+(?:\w\s+){{0,20}}\w[\w-]{{0,63}}"
    rf"(?:\.\w{{2,12}}|\s+{_DOT}\s+\w{{1,12}}){{1,4}}\b",
    re.IGNORECASE,
)
_ADDRESS: Final = re.compile(
    r"\b\d{1,5}\s?[a-z]?,?\s+(?:[\w'’]+\s+){1,3}"
    r"(?:street|road|avenue|lane|drive|close|court|boulevard|square|terrace|crescent)\b"
    r"|\b\w*(?:straße|strasse|gasse|allee)\s+\d{1,4}(?:\s?[a-z])?\b"
    r"|\b(?:calle|avenida|rue|avenue)\s+(?:[\w'’]+\s+){1,4}\d{1,4}\b",
    re.IGNORECASE,
)

_CUE: Final = re.compile(
    r"\b(?:(?:my|the|first|last|full|family|middle|sur)\s*name(?:\s+is|['’]s|:)"
    r"|call me|i am called|i['’]m called"
    r"|(?:mein|der)\s+(?:vor|nach)?name\s+(?:ist|lautet)|ich hei(?:ß|ss)e"
    r"|me llamo|mi (?:nombre|apellido) es|je m['’]appelle|mon (?:pré)?nom est)\s*",
    re.IGNORECASE,
)
_WEAK_CUE: Final = re.compile(
    r"\b(?:this is|i am|i['’]m|here is|ich bin|hier ist|hier spricht|soy|je suis)\s+", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Redacted:
    """A masked text, and which characters of the original are hidden in it."""

    text: str
    hidden: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    end: int
    mask: str


class Redactor:
    """Masks the lines of one call in order; a name once given is masked wherever it comes again."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def redact(self, text: str, *, by_caller: bool = True) -> Redacted:
        """One line. What only a caller would mean as a name is looked for in a caller's only."""
        if len(text) > MAX_TEXT:
            return Redacted(TEXT, ((0, len(text)),))
        tokens = list(_TOKEN.finditer(text))
        spans = [
            *(_Span(*found.span(), EMAIL) for found in _EMAIL.finditer(text)),
            *(_Span(*found.span(), EMAIL) for found in _SPOKEN_EMAIL.finditer(text)),
            *(_Span(*found.span(), ADDRESS) for found in _ADDRESS.finditer(text)),
            *(_Span(*found, NUMBER) for found in find_numbers(text, tokens)),
            *self._new_names(text, tokens, by_caller),
        ]
        spans += self._known_names(tokens)
        return _masked(text, _merged(spans))

    def _new_names(
        self, text: str, tokens: Sequence[re.Match[str]], by_caller: bool
    ) -> Iterator[_Span]:
        cues = [(found, False) for found in _CUE.finditer(text)]
        if by_caller:
            cues += [(found, True) for found in _WEAK_CUE.finditer(text)]
        for cue, weak in cues:
            name = _name_after(text, cue.end(), tokens, weak)
            for token in name:
                if len(token.group()) > 2 and len(self._names) < MAX_NAMES:
                    self._names.add(token.group().casefold())
            if name:
                yield _Span(name[0].start(), name[-1].end(), NAME)

    def _known_names(self, tokens: Sequence[re.Match[str]]) -> Iterator[_Span]:
        for token in tokens:
            word = token.group().casefold()
            if word in self._names or re.split("['’]", word)[0] in self._names:
                yield _Span(*token.span(), NAME)


def _name_after(
    text: str, at: int, tokens: Sequence[re.Match[str]], weak: bool
) -> list[re.Match[str]]:
    """The words of a name that begins at `at`; none where that is no name."""
    name: list[re.Match[str]] = []
    end = at
    capital = False
    for token in tokens:
        word = token.group()
        if token.start() < at:
            continue
        if re.search(r"[.?!,;:]", text[end : token.start()]):
            break
        end = token.end()
        small = word.casefold()
        if small in FILLERS and not name:
            continue
        spelled = len(word) == 1 and bool(name) and len(name[-1].group()) == 1
        if small in NO_NAME and not spelled and not (small in LINKS and capital):
            break
        if word[0].isupper():
            capital = True
        elif not spelled and small not in LINKS and (weak or capital or len(name) >= 2):
            break
        name.append(token)
        if len(name) >= (4 if len(word) > 1 else 24):
            break
    while name and capital and name[-1].group().casefold() in LINKS:
        name.pop()
    return name


def _merged(spans: Sequence[_Span]) -> list[_Span]:
    merged: list[_Span] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        if merged and span.start < merged[-1].end:
            before = merged[-1]
            merged[-1] = _Span(before.start, max(before.end, span.end), before.mask)
        else:
            merged.append(span)
    return merged


def _masked(text: str, spans: Sequence[_Span]) -> Redacted:
    if not spans:
        return Redacted(text)
    parts: list[str] = []
    at = 0
    for span in spans:
        parts += (text[at : span.start], span.mask)
        at = span.end
    parts.append(text[at:])
    return Redacted("".join(parts), tuple((s.start, s.end) for s in spans))


def shares(text: str, hidden: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
    """Where hidden characters lie in the time it takes to say `text`: pairs within 0..1.

    A digit takes as long as its word; pauses take none.
    """
    at = [0.0]
    for character in text:
        at.append(at[-1] + _WEIGHTS.get(_sort(character), 0.0))
    whole = at[-1]
    if not whole:
        return [(0.0, 1.0)] if hidden else []
    return [(at[start] / whole, at[end] / whole) for start, end in hidden]


_WEIGHTS: Final = {"digit": 4.5, "letter": 1.0, "space": 0.3}


def _sort(character: str) -> str:
    if character.isdigit():
        return "digit"
    if character.isalpha():
        return "letter"
    return "space" if character.isspace() else "mark"
