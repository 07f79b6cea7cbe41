"""Finds numbers in what was said, in digits and in words, and counts their digits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from gateway.records.words import COUNTED, SCALES, SPOKEN, TENS, WITHIN

MIN_DIGITS: Final = 4
"""Numbers of at least so many digits are found."""
MIN_PIECE: Final = 2
"""So many are enough for what looks like a piece of a longer number, given line by line: a line
that is nothing but digits, or that begins or ends with digits said one by one."""

_COMPOUNDS: Final = (
    (re.compile(r"\w*tausend\w*"), 4),
    (re.compile(r"\w*hundert\w*"), 3),
    (re.compile(r"(?:ein|zwei|drei|vier|fünf|sechs|sieben|acht|neun)und\w+zig|veinti\w+"), 2),
)
_JOINT: Final = re.compile(r"[\s\-./,:;()+*#_'’–]*")
_CLOCK: Final = re.compile(r"\d{1,2}:\d\d")
_DECIMAL: Final = re.compile(r"\d{1,3}[.,]\d\d")


class _Run:
    """Numbers in a row, and what may stand between them."""

    def __init__(self) -> None:
        self.tokens: list[re.Match[str]] = []
        self.last = 0
        """How many of the tokens it takes to the last number."""
        self.digits = 0
        self.one_by_one = True
        """Every number so far has one digit."""
        self._waiting = 0
        """Digits of words that only count if another number follows."""
        self._open = 0
        """Digits that a scale has left open: "hundred and twenty" has three, not five."""
        self._after_ten = False

    def number(self, token: re.Match[str], word: str, digits: int) -> None:
        """Add a number."""
        self.tokens.append(token)
        self.last = len(self.tokens)
        self.one_by_one = self.one_by_one and digits == 1
        self.digits += self._waiting + self._new(word, digits)
        self._waiting = 0

    def _new(self, word: str, digits: int) -> int:
        after_ten, self._after_ten = self._after_ten, False
        if word not in SPOKEN:
            self._open = 0
            return digits
        if word in SCALES:
            new = max(0, digits - self._open)
            self._open = digits
            return new
        if after_ten and digits == 1:
            return 0
        self._after_ten = word in TENS
        new = max(0, digits - self._open)
        self._open = max(0, self._open - digits)
        return new

    def between(self, token: re.Match[str], word: str) -> None:
        """Add what stands between numbers."""
        self.tokens.append(token)
        self._waiting += word in COUNTED

    def spans(self, text: str, *, piece: bool, at_edge: bool) -> Iterator[tuple[int, int]]:
        """The run from its first number to its last, where it is long enough."""
        piece = piece or (at_edge and self.one_by_one)
        if self.digits >= (MIN_PIECE if piece else MIN_DIGITS):
            start, end = self.tokens[0].start(), self.tokens[self.last - 1].end()
            if not _harmless(text[start:end]):
                yield start, end


def digits_of(word: str) -> int:
    """How many digits a word in lower case stands for; 0: it is no number."""
    written = sum(character.isdigit() for character in word)
    if written:
        return written
    spoken = SPOKEN.get(word)
    if spoken is None:
        spoken = next((n for pattern, n in _COMPOUNDS if pattern.fullmatch(word)), 0)
    return spoken


def find_numbers(text: str, tokens: Sequence[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """Where long numbers stand; `tokens` are the words of `text`."""
    words = [token.group().casefold() for token in tokens]
    alone = all(digits_of(word) or word in WITHIN for word in words)
    run = _Run()
    at_edge = True
    for number, (token, word) in enumerate(zip(tokens, words, strict=True)):
        digits = digits_of(word)
        begun = bool(run.tokens)
        if begun and not _JOINT.fullmatch(text, run.tokens[-1].end(), token.start()):
            yield from run.spans(text, piece=alone, at_edge=at_edge)
            run, begun = _Run(), False
        if digits:
            at_edge = number == 0 if not begun else at_edge
            run.number(token, word, digits)
        elif begun and (word in WITHIN or len(word) == 1):
            run.between(token, word)
        elif begun:
            yield from run.spans(text, piece=alone, at_edge=at_edge)
            run = _Run()
    yield from run.spans(text, piece=alone, at_edge=True)


def _harmless(number: str) -> bool:
    """A time of day or a small amount of money."""
    return bool(_CLOCK.fullmatch(number) or _DECIMAL.fullmatch(number))
