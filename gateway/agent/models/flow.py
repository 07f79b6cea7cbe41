"""Tokens of a model as sentences: what goes out is fit to be spoken at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from gateway.agent.models.base import Fragment
from gateway.agent.platform import Part
from gateway.sentences import CLAUSE_END, complete_until, seems_complete

PAUSE_S = 0.15
"""A pause of the model after which what looks like the end of a sentence is one."""
MAX_HELD_CHARS = 300
"""A longer sentence goes out in pieces, cut between clauses or words."""


async def in_sentences(parts: AsyncGenerator[Part, None]) -> AsyncGenerator[Part, None]:
    """The same parts, their fragments put together to whole sentences.

    Each sentence keeps the white space behind it, so that all of them are still the model's text.
    """
    held = Fragment(text="")
    coming: asyncio.Task[Part | None] | None = None
    try:
        while True:
            coming = coming or asyncio.ensure_future(anext(parts, None))
            if seems_complete(held.text or ""):
                await asyncio.wait((coming,), timeout=PAUSE_S)
                if not coming.done():
                    yield held
                    held = Fragment(text="")
            part, coming = await coming, None
            if isinstance(part, Fragment):
                held = Fragment(text=f"{held.text}{part.text}", kept=part.kept or held.kept)
                end = _end_of_piece(held.text or "")
                if end:
                    text = held.text or ""
                    yield Fragment(text=text[:end])
                    held = Fragment(text=text[end:], kept=held.kept)
                continue
            if held.text or held.kept is not None:
                yield held
                held = Fragment(text="")
            if part is None:
                return
            yield part
    finally:
        if coming is not None:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)
        await parts.aclose()


def _end_of_piece(text: str) -> int:
    """How much of a growing text can go out; 0: nothing yet."""
    end = complete_until(text)
    if end or len(text) <= MAX_HELD_CHARS:
        return end
    clauses = [found.end() for found in CLAUSE_END.finditer(text)]
    return clauses[-1] if clauses else text.rfind(" ") + 1
