"""Texts by language: exact code, then the language without its region, then the app's default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")


def root(language: str) -> str:
    """`en-GB` to `en`."""
    return language.replace("_", "-").split("-")[0].casefold()


def by_language(values: Mapping[str, T], *languages: str) -> T | None:
    """The value for the first language that has one; codes are compared without case."""
    folded = {code.replace("_", "-").casefold(): value for code, value in values.items()}
    for language in languages:
        for code in (language.replace("_", "-").casefold(), root(language)):
            if code in folded:
                return folded[code]
        for code, value in folded.items():
            # A text for another region is better than one in another language.
            if language and root(code) == root(language):
                return value
    return None
