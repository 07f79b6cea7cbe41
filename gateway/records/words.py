"""Words that tell what is a number and what a name, in English, German, Spanish and French."""

from __future__ import annotations

from typing import Final


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _words(text: str, digits: int) -> dict[str, int]:
    return dict.fromkeys(text.split(), digits)


SCALES: Final[dict[str, int]] = {
    **_words("hundred hundert cien ciento cent", 2),
    **_words("thousand tausend mil mille", 3),
    **_words("million millions millionen millón millones", 6),
}
"""Words that set how many digits follow."""
TENS: Final = _set(
    "twenty thirty forty fourty fifty sixty seventy eighty ninety treinta cuarenta cincuenta "
    "sesenta setenta ochenta noventa vingt trente quarante cinquante soixante septante nonante"
)
"""Words that a unit may follow without a digit more."""
SPOKEN: Final[dict[str, int]] = {
    **_words("zero one two three four five six seven eight nine nought niner", 1),
    **_words("null eins zwei zwo drei vier fünf fuenf sechs sieben acht neun", 1),
    **_words("cero uno dos tres cuatro cinco seis siete ocho nueve", 1),
    **_words("zéro deux trois quatre cinq sept huit neuf", 1),
    **_words("ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen", 2),
    **_words("twenty thirty forty fourty fifty sixty seventy eighty ninety", 2),
    **_words("zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn", 2),
    **_words("zwanzig dreißig dreissig vierzig fünfzig sechzig siebzig achtzig neunzig", 2),
    **_words("diez doce trece catorce quince dieciséis diecisiete dieciocho diecinueve veinte", 2),
    **_words("treinta cuarenta cincuenta sesenta setenta ochenta noventa", 2),
    **_words("dix onze douze treize quatorze quinze seize vingt trente quarante cinquante", 2),
    **_words("soixante septante huitante nonante", 2),
    **_words("double doble doppel doppelt", 1),
    **_words("triple dreifach", 2),
    **SCALES,
}
"""Words of numbers and how many digits each adds."""
WITHIN: Final = _set(
    "oh o to too for ate won un une ein eine and und y et uh um er äh ähm eh euh dash hyphen minus "
    "slash stroke point dot plus space then komma comma bindestrich strich guion tiret barra"
)
"""Words that do not end a number, but belong to one only between others."""
COUNTED: Final = _set("oh o to too for ate won un une ein eine")
"""Those of them that are a digit misheard, or one said differently."""
NO_NAME: Final = _set(
    "and but or i i'm i’m from calling speaking here with because so is are was on in at for it my "
    "the a an not your you we he she they that this what please thanks thank yes no ok okay und "
    "aber ich von aus bin der die das y pero soy de et mais je suis le la "
    "back again later now when if about today tomorrow tonight"
)
"""What cannot be a name where one is expected."""
LINKS: Final = _set("van von der den de da di del la le el al bin ibn mc o zu zur")
"""Small words inside names."""
FILLERS: Final = _set("uh um er äh ähm eh euh well")
"""What may come between a cue and the name."""
