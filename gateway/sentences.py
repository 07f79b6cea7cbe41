"""Where sentences end: in a whole text, and in one that still grows. Pure functions.

Abbreviations, initials and decimal points end nothing.
"""

from __future__ import annotations

import re

PARAGRAPH = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*\u2022\u2013]|\d+[.)]|[^\W\d_a-z]))")
"""A line break that also ends a sentence."""
CLAUSE_END = re.compile(r"[,;:\u2014\u2013]\s|\s[-\u2014\u2013]\s")

_MARK = r"(?P<mark>[.!?\u2026\u3002\uff01\uff1f]+)(?P<close>[\"'\u201d\u2019)\]\u00bb]*)"
_SENTENCE_END = re.compile(_MARK + r"\s+(?=\S)")
_LAST_MARK = re.compile(_MARK + r"\s*$")
_NEVER_LAST = frozenset(
    re.split(
        r"\s+",
        "dr mr mrs ms prof st rev gen col capt lt sgt hon mt ft vs cf e.g i.e approx dept fig",
    )
)
"""Abbreviations that a name or a number follows: their full stop ends nothing."""
_BEFORE_NUMBER = frozenset({"no", "nos", "nr", "art", "sec", "ch", "pp", "p", "vol", "ext", "tel"})
"""Abbreviations only where a number follows: "No. 5", but "No. I cannot."."""


def sentence_ends(part: str) -> list[int]:
    """Where the sentences of a paragraph end (white space included), all but its last."""
    return [found.end() for found in _SENTENCE_END.finditer(part) if _ends_here(part, found)]


def complete_until(text: str) -> int:
    """Length of the whole sentences and paragraphs at the start of a text that still grows."""
    start = max((found.end() for found in PARAGRAPH.finditer(text)), default=0)
    return start + max(sentence_ends(text[start:]), default=0)


def seems_complete(text: str) -> bool:
    """Whether a growing text may be at the end of a sentence; what follows could still deny it."""
    found = _LAST_MARK.search(text)
    if found is None:
        return False
    if found["mark"] != ".":
        return True
    word = _word_before(text, found)
    return not (_is_short_form(word) or word in _BEFORE_NUMBER or word[-1:].isdigit())


def _ends_here(part: str, found: re.Match[str]) -> bool:
    following = part[found.end()]
    if found["mark"] != ".":
        return not (following.islower() and (found["close"] or found["mark"][0] in ".\u2026"))
    if following.islower():
        return False
    word = _word_before(part, found)
    return not (_is_short_form(word) or (word in _BEFORE_NUMBER and following.isdigit()))


def _word_before(text: str, found: re.Match[str]) -> str:
    start = max(text.rfind(space, 0, found.start()) for space in " \n\t") + 1
    return text[start : found.start()].lstrip("(\"'\u201c\u2018[").lower()


def _is_short_form(word: str) -> bool:
    return word in _NEVER_LAST or (len(word) == 1 and word.isalpha() and word != "i")
