"""The user's own words, told from what the platform puts beside them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gateway.agent.platform import Part

_PLATFORM_TEXT = re.compile(r"<(context|event|state_update)>.*?</\1>", re.DOTALL)


def spoken(parts: Iterable[Part]) -> str:
    """The user's own words among the parts of a turn; empty where there are none."""
    texts = (_PLATFORM_TEXT.sub(" ", part.text).strip() for part in parts if part.text)
    return "\n".join(text for text in texts if text)
