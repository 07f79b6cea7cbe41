"""The caller's yes before a sensitive tool runs: the question, and what the answer means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from gateway.agent.languages import by_language, root
from gateway.agent.platform import FunctionCall, Part
from gateway.agent.words import spoken

CANCELLED: Mapping[str, Any] = {
    "status": "CANCELLED_BY_USER",
    "message": "The user does not want this to be done.",
}
AWAITING: Mapping[str, Any] = {"status": "AWAITING_CONSENT"}
YES_KEY, NO_KEY = "1", "2"
KEY_TIMEOUT_S = 1.0
"""One key is a whole answer: there is no other to wait for."""

_KEYS = re.compile(r"user pressed (\S+) on keypad")

QUESTIONS = {
    "en": "Shall I go on with this: {tool}? Please say yes or no, or press 1 for yes and 2 for no.",
    "de": "Soll ich das ausführen: {tool}? Bitte sagen Sie ja oder nein, oder drücken Sie 1 für "
    "ja und 2 für nein.",
    "fr": "Voulez-vous que je continue : {tool} ? Dites oui ou non, ou appuyez sur 1 pour oui et "
    "2 pour non.",
    "es": "¿Quiere que siga con esto: {tool}? Diga sí o no, o pulse 1 para sí y 2 para no.",
    "it": "Devo procedere con: {tool}? Dica sì o no, oppure prema 1 per sì e 2 per no.",
    "pt": "Posso continuar com isto: {tool}? Diga sim ou não, ou carregue em 1 para sim e 2 para "
    "não.",
    "nl": "Zal ik dit doen: {tool}? Zeg ja of nee, of druk op 1 voor ja en 2 voor nee.",
}
_YES = {
    "en": "yes|yeah|yep|yup|sure|okay|ok|certainly|absolutely|of course|please do|go ahead"
    "|go on|confirm|confirmed|correct|i agree|agreed|do it",
    "de": "ja|jawohl|jo|gerne|sicher|natürlich|einverstanden|okay|ok|bitte schön|machen sie das"
    "|mach das|stimmt|genau",
    "fr": "oui|ouais|d'accord|bien sûr|certainement|allez-y|vas-y|ok|volontiers",
    "es": "sí|si|claro|de acuerdo|vale|por supuesto|adelante|ok|correcto",
    "it": "sì|si|certo|d'accordo|va bene|ok|proceda|procedi|certamente",
    "pt": "sim|claro|com certeza|pode|de acordo|ok|está bem|continue",
    "nl": "ja|jazeker|zeker|graag|natuurlijk|akkoord|oké|ok|prima|doe maar",
}
_NO = {
    "en": "no|not|nope|nah|never|don't|dont|stop|cancel|i disagree|wait",
    "de": "nein|nee|nö|nicht|kein|keine|stopp|halt|abbrechen|niemals|warten",
    "fr": "non|pas|jamais|arrêtez|arrête|annulez|annuler|attendez",
    "es": "no|nunca|jamás|cancele|cancelar|alto|pare|espere",
    "it": "no|non|mai|annulla|annulli|fermo|fermi|aspetti",
    "pt": "não|nunca|cancele|cancelar|pare|espere",
    "nl": "nee|niet|nooit|stop|annuleer|annuleren|wacht",
}


class Answer(Enum):
    """What the caller meant."""

    YES = auto()
    NO = auto()
    UNCLEAR = auto()


@dataclass(frozen=True, slots=True)
class Pending:
    """A call that waits for the caller's answer. `asked`: how often the question was put."""

    call: FunctionCall
    asked: int = 1


def question(questions: Mapping[str, str], tool: str, *languages: str) -> str:
    """How consent is asked: the operator's words for the tool, for the language, else ours."""
    for language in languages:
        for key in (f"{tool}:{language}", f"{tool}:{root(language)}"):
            if key in questions:
                return _filled(questions[key], tool)
    general = {code: text for code, text in questions.items() if ":" not in code}
    text = general.pop(tool, None) or by_language(general, *languages)
    return _filled(text or by_language(QUESTIONS, *languages) or QUESTIONS["en"], tool)


def _filled(text: str, tool: str) -> str:
    return text.replace("{tool}", tool.replace("_", " ").strip())


def question_part(text: str) -> Part:
    """The question as it is spoken: it may be interrupted, and a key answers it."""
    return Part.from_customized_response(
        content=text,
        enable_dtmf=True,
        dtmf_finish_digit="",
        dtmf_endpointing_timeout=KEY_TIMEOUT_S,
    )


def read_answer(parts: Iterable[Part], *languages: str) -> Answer:
    """Yes, no or neither. Who says both, or neither, has not agreed."""
    parts = list(parts)
    keys = [m[1] for part in parts for m in _KEYS.finditer(part.text or "")]
    if keys:
        last = keys[-1].strip("#*")
        return {YES_KEY: Answer.YES, NO_KEY: Answer.NO}.get(last, Answer.UNCLEAR)
    text = spoken(parts).replace("’", "'").casefold()
    codes = dict.fromkeys([*(root(language) for language in languages), "en"])
    known = [code for code in codes if code in _YES]
    # The session's language alone decides where it is known: "no" is a word in many.
    code = known[0]
    yes, no = _says(_YES[code], text), _says(_NO[code], text)
    if yes is no:
        return Answer.UNCLEAR
    return Answer.YES if yes else Answer.NO


def _says(words: str, text: str) -> bool:
    return re.search(rf"(?<!\w)(?:{words})(?!\w)", text) is not None
