"""How alike two texts are by their words alone: no model, no network, the same everywhere."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

_WORD = re.compile(
    # Scripts without spaces: each sign for itself. Then numbers, then words.
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*"
)


def words(text: str) -> list[str]:
    """The words and numbers of a text: lower case, no punctuation, no apostrophes."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return [word.replace("'", "").replace("’", "") for word in _WORD.findall(folded)]


def likeness(one: Sequence[str], other: Sequence[str]) -> float:
    """0 (nothing in common) to 1 (the same words in the same order) of two lists of words.

    The mean of two measures: the share of words in common (F1), and of words in common in order.
    """
    if not one or not other:
        return 1.0 if list(one) == list(other) else 0.0
    common = sum((Counter(one) & Counter(other)).values())
    shared = 2 * common / (len(one) + len(other))
    ordered = difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()
    return (shared + ordered) / 2
