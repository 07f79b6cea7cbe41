"""The platform's score of likeness, 0 to 4, measured by words alone.

4: the same words. 3, 2, 1: a likeness (see `gateway.agent.likeness`) of at least 0.7, 0.45, 0.2.
Texts that differ in a number or in a negation score 2 at most, however alike they are: `12 euros`
is not `13 euros`, and `it is open` is not `it is not open`.
"""

from __future__ import annotations

from collections import Counter

from gateway.agent.likeness import likeness, words

STEPS = ((3, 0.7), (2, 0.45), (1, 0.2))
SAME = 4
CONTRADICTION = 2
_NEGATIONS = frozenset(
    words(
        "no not never none nobody nothing cannot without don't doesn't didn't isn't aren't wasn't "
        "weren't hasn't haven't hadn't won't wouldn't can't couldn't shouldn't mustn't needn't "
        "nein nicht nie kein keine keinen non pas jamais nunca"
    )
)


def score(expected: str, actual: str) -> int:
    """How alike two texts are, 0 to 4."""
    one, other = words(expected), words(actual)
    if one == other:
        return SAME
    alike = likeness(one, other)
    points = next((step for step, least in STEPS if alike >= least), 0)
    return points if _facts(one) == _facts(other) else min(points, CONTRADICTION)


def contains(text: str, part: str) -> bool:
    """Whether the words of `part` stand in `text`, side by side and in their order."""
    all_words, wanted = words(text), words(part)
    last = len(all_words) - len(wanted)
    return any(all_words[at : at + len(wanted)] == wanted for at in range(last + 1))


def _facts(text: list[str]) -> Counter[str]:
    """Numbers, and how often something is denied."""
    facts = Counter(word for word in text if word[0].isdigit())
    facts["not"] = sum(1 for word in text if word in _NEGATIONS)
    return +facts


def alike(expected: str, actual: str) -> float:
    """The measure behind the score, 0 to 1, facts left aside."""
    return likeness(words(expected), words(actual))
