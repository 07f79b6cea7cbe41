"""Text made fit for a synthesiser: cut into sentences, then each sentence cleaned. Pure functions.

Engines read markup aloud, choke on letters that they were not trained on, speak telephone numbers
as millions and make minutes of audio from a text without a full stop. `sentences` and `prepare`
mend that before any engine is asked, in a way that holds for every language: digits stay digits,
only set apart from one another.
"""

from __future__ import annotations

import html
import re
import unicodedata
from xml.etree import ElementTree

from gateway.sentences import CLAUSE_END, PARAGRAPH, sentence_ends

MAX_SENTENCE_CHARS = 200
"""Longest piece that `sentences` returns: about 12 s of speech."""

_MIN_CLAUSE_CHARS = 40
"""A clause border nearer to the start than this is not worth a cut."""

_TAG = re.compile(r"<!--.*?-->|<[/?!]?[a-zA-Z][^<>]*>", re.DOTALL)
_SUB = re.compile(r"<sub\b[^<>]*\balias\s*=\s*[\"']([^\"']*)[\"'][^<>]*>.*?</sub\s*>", re.I | re.S)
_SPELLED = re.compile(
    r"<say-as\b[^<>]*\binterpret-as\s*=\s*[\"'](?:characters|spell-out|verbatim|digits|telephone)"
    r"[\"'][^<>]*>(.*?)</say-as\s*>",
    re.I | re.S,
)
_BORDER_TAG = re.compile(r"</?(?:s|p|break)\b[^<>]*>", re.I)


def strip_markup(text: str) -> str:
    """`text` without SSML tags and entities; sentence tags and breaks become line breaks."""
    if "<" in text:
        text = _SUB.sub(lambda found: found[1], text)
        text = _SPELLED.sub(lambda found: " ".join(_TAG.sub("", found[1]).replace(" ", "")), text)
        text = _BORDER_TAG.sub("\n\n", text)
        text = _TAG.sub("", text)
    return html.unescape(text) if "&" in text else text


def is_ssml(text: str) -> bool:
    """Whether `text` is an SSML document: well-formed, rooted in `speak`, declaring nothing."""
    text = text.strip()
    if not text.startswith("<") or "<!DOCTYPE" in text.upper():
        return False
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return False
    return root.tag.rpartition("}")[2] == "speak"


def _cut(sentence: str) -> list[str]:
    pieces: list[str] = []
    while len(sentence) > MAX_SENTENCE_CHARS:
        room = sentence[: MAX_SENTENCE_CHARS + 1]
        clauses = [m.end() for m in CLAUSE_END.finditer(room) if m.end() > _MIN_CLAUSE_CHARS]
        end = clauses[-1] if clauses else room.rfind(" ")
        if end <= 0:
            end = MAX_SENTENCE_CHARS
        pieces.append(sentence[:end].strip())
        sentence = sentence[end:].strip()
    pieces.append(sentence)
    return pieces


def sentences(text: str) -> list[str]:
    """The sentences of a text in order, markup removed, each at most `MAX_SENTENCE_CHARS` long.

    A longer sentence is cut at its last clause border that fits, else between words. Abbreviations,
    initials and decimal points end nothing. White space is reduced to single blanks.
    """
    out: list[str] = []
    for part in PARAGRAPH.split(strip_markup(text)):
        start = 0
        for end in [*sentence_ends(part), len(part)]:
            sentence = " ".join(part[start:end].split())
            start = end
            if sentence:
                out.extend(_cut(sentence))
    return out


# --- one sentence -------------------------------------------------------------------------------

_LINK = re.compile(r"\[([^\]]+)\]\([^)\s]*\)")
_MARKDOWN = re.compile(r"[*_`~#|]{1,3}(?=\S)|(?<=\S)[*`~|]{1,3}|^\s*(?:[-\u2022\u2013>]|#{1,6})\s+")
_DATE = re.compile(r"(?<!\d)(?:\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./-]\d{1,2}[./-]\d{4})(?!\d)")
_DIGIT_GROUPS = re.compile(
    r"(?<![\w.,$€£¥])(?P<plus>\+?)(?P<body>\(?\d+\)?(?:[ .\-/]{1,2}\(?\d+\)?)*)(?![\w%°$€£¥])"
)
_NAMED_NUMBER = re.compile(
    r"\b(?P<name>(?:account|number|code|pin|id|reference|ref|extension|ext|ticket|order|case|"
    r"postcode|zip|meter)(?:\s+(?:number|code|id|no))?\.?(?:\s+(?:is|was))?[\s:#]*)"
    r"(?P<digits>\d{3,})(?![\w%°]|[.,]\d)",
    re.I,
)
_PHONE_DIGITS = 7
_PLAIN_DIGITS = 6
_PUNCTUATION = {
    "\u2018": "'",
    "\u2019": "'",
    "\u201c": '"',
    "\u201d": '"',
    "\u2013": "-",
    "\u2014": ", ",
    "\u2011": "-",
    "\u2044": "/",
}
_LOOSE_MARK = re.compile(r"\s+([,.;:!?])(?=\s|$)")
_KEPT_SYMBOLS = frozenset(".,;:!?'\"()-/%&$€£¥+=@°#<>")


def _spell_groups(found: re.Match[str]) -> str:
    groups = re.findall(r"\d+", found["body"])
    count = sum(map(len, groups))
    if found["plus"] or len(groups) > 1:
        plain_number = all(group == "000" for group in groups[1:]) and len(groups) > 1
        listed = all(len(group) == 1 for group in groups)
        if plain_number or listed or count < _PHONE_DIGITS:
            return found[0]
    elif count < _PLAIN_DIGITS and not (groups[0][0] == "0" and count > 2):
        return found[0]
    plus = "plus " if found["plus"] else ""
    tail = " " if found[0].endswith(" ") else ""
    return plus + ", ".join(" ".join(group) for group in groups) + tail


def _spell_digits(sentence: str) -> str:
    sentence = _NAMED_NUMBER.sub(lambda found: found["name"] + " ".join(found["digits"]), sentence)
    out: list[str] = []
    start = 0
    for date in [*_DATE.finditer(sentence), None]:
        end = date.start() if date else len(sentence)
        out.append(_DIGIT_GROUPS.sub(_spell_groups, sentence[start:end]))
        if date:
            out.append(date[0])
            start = date.end()
    return "".join(out)


def _speakable(char: str) -> bool:
    if char.isspace() or char in _KEPT_SYMBOLS:
        return True
    if char.isascii():
        return char.isalnum()
    return unicodedata.name(char, "").startswith("LATIN ")


def without_markdown(text: str) -> str:
    """`text` without Markdown signs; of a link its words stay."""
    return _MARKDOWN.sub("", _LINK.sub(lambda found: found[1], text))


def prepare(sentence: str) -> str:
    """One sentence as an engine should read it; "" when it holds nothing that can be spoken.

    Markup, Markdown signs, emoji and letters outside the Latin script go; typographic signs become
    plain ones; telephone numbers, long digit runs and numbers after words such as "account" or
    "code" are spelled digit by digit, with a comma for each group.
    """
    text = without_markdown(unicodedata.normalize("NFKC", strip_markup(sentence)))
    text = "".join(_PUNCTUATION.get(char, char) for char in text)
    text = "".join(char if _speakable(char) else " " for char in text)
    text = _spell_digits(" ".join(text.split()))
    text = _LOOSE_MARK.sub(r"\1", " ".join(text.split()))
    return text if any(char.isalnum() for char in text) else ""
