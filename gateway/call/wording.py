"""What a caller's words are good for: attention only, half a number, or a turn."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_BACK_CHANNEL: Mapping[str, Sequence[str]] = {
    "en": (
        "uh huh", "mm hmm", "mhm", "mm", "hmm", "hm", "yeah", "yep", "yup", "ok", "okay", "right",
        "i see", "sure", "aha", "ah", "oh", "got it", "uh",
    ),
    "de": (
        "mhm", "hm", "hmm", "mm", "ja", "aha", "ach so", "okay", "ok", "genau", "gut", "klar",
        "verstehe", "ah",
    ),
    "es": ("mhm", "ajá", "aja", "sí", "si", "ya", "vale", "claro", "ok", "okay", "bueno", "ah"),
    "fr": ("mhm", "hm", "oui", "ouais", "d accord", "ok", "okay", "je vois", "ah", "bien", "voilà"),
    "it": ("mhm", "sì", "si", "ok", "okay", "certo", "ah", "va bene", "capisco", "ecco"),
    "pt": ("mhm", "sim", "tá", "ok", "okay", "certo", "ah", "entendi", "pois"),
    "nl": ("mhm", "ja", "oké", "ok", "okay", "precies", "juist", "ah"),
}  # fmt: skip

_DIGITS: Mapping[str, str] = {
    "en": "zero oh one two three four five six seven eight nine",
    "de": "null eins zwei zwo drei vier fünf sechs sieben acht neun",
    "es": "cero uno dos tres cuatro cinco seis siete ocho nueve",
    "fr": "zéro un deux trois quatre cinq six sept huit neuf",
    "it": "zero uno due tre quattro cinque sei sette otto nove",
    "pt": "zero um dois três quatro cinco seis sete oito nove meia",
    "nl": "nul een twee drie vier vijf zes zeven acht negen",
}
_OPEN: Mapping[str, str] = {
    "en": "and point dash double triple hundred thousand plus slash",
    "de": "und komma strich plus minus",
    "es": "y coma punto guion mil cien ciento más",
    "fr": "et virgule point tiret mille cent plus",
    "it": "e virgola punto trattino mila cento più",
    "pt": "e vírgula ponto traço mil cento mais",
    "nl": "en komma punt streepje honderd duizend plus",
}
"""Words after which more of a number must come."""

LONG_NUMBER = 3
"""From so many digits on it is a code or a number to dial, which people say in groups."""

_WORD = re.compile(r"[^\W_]+")


def _root(language: str) -> str:
    return language.replace("_", "-").split("-")[0].lower()


def _by_language(table: Mapping[str, Sequence[str]], language: str) -> Sequence[str] | None:
    """The entry of a language: exact code, then root language."""
    lower = {key.lower(): value for key, value in table.items()}
    return lower.get(language.lower(), lower.get(_root(language)))


def tokens(text: str) -> list[str]:
    """Words in small letters, without what stands between them."""
    return _WORD.findall(text.casefold())


def count_words(text: str) -> int:
    """How many words; in scripts without spaces two signs count as one."""
    words = tokens(text)
    return sum(1 if word[0] < "⺀" else max(1, len(word) // 2) for word in words)


def is_back_channel(text: str, language: str, own: Mapping[str, Sequence[str]]) -> bool:
    """Whether `text` consists of words of attention only. `own` lists replace the built-in ones."""
    listed = _by_language(own, language)
    if listed is None:
        listed = _by_language(_BACK_CHANNEL, language) or ()
    phrases = {" ".join(tokens(phrase)) for phrase in listed}
    words = tokens(text)
    at = 0
    while at < len(words):
        # Phrases are short, so the longest one that fits is soon found.
        for length in (3, 2, 1):
            if " ".join(words[at : at + length]) in phrases and at + length <= len(words):
                at += length
                break
        else:
            return False
    return bool(words)


def digits_at_end(text: str, language: str) -> int:
    """Digits of the number that `text` ends with, written or spoken one by one."""
    spoken = _DIGITS.get(_root(language), "").split()
    count = 0
    for word in reversed(tokens(text)):
        if word.isdecimal():
            count += len(word)
        elif word in spoken:
            count += 1
        else:
            break
    return count


def expects_more(text: str, language: str) -> bool:
    """Whether a number is surely not over at the end of `text`.

    It is long, or it ends in a word that joins its parts after a digit.
    """
    if digits_at_end(text, language) >= LONG_NUMBER:
        return True
    words = tokens(text)
    joints = _OPEN.get(_root(language), "").split()
    said = len(words)
    while words and words[-1] in joints:
        words.pop()
    return len(words) < said and digits_at_end(" ".join(words), language) > 0
