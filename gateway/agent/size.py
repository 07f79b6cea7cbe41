"""How large a value may be that app code gives away.

The bound comes before a value is copied or written as JSON: both take several times its size, and
not all that does so survives the end of the process's memory.
"""

from __future__ import annotations

from typing import Any

from gateway.errors import RuntimeFailure

MAX_CHARS = 4 << 20
"""For the answer of a tool, and whatever else becomes JSON."""
MAX_PARTS = 1_000
"""Of one response: each is a message to the client."""
MAX_DEPTH = 300
"""JSON is not written deeper than this anyway."""
_ITEM_CHARS = 4
"""What an item counts for beside its text."""


class TooLarge(RuntimeFailure):
    """App code gives away more than it may."""

    def __init__(self, what: str, limit: int, unit: str = "characters") -> None:
        super().__init__(
            "runtime.too_large",
            f"{what} has more than {limit} {unit}",
            hint="give away what is needed of it",
        )


def check_size(value: Any, what: str, limit_chars: int = MAX_CHARS) -> None:
    """Raise TooLarge where `value`, with all that is in it, is above the limit."""
    left = limit_chars
    waiting: list[tuple[Any, int]] = [(value, 0)]
    while waiting:
        item, depth = waiting.pop()
        left -= _ITEM_CHARS
        inner: Any = ()
        if isinstance(item, str | bytes | bytearray):
            left -= len(item)
        elif isinstance(item, dict):
            left -= _ITEM_CHARS * len(item)
            inner = (item.keys(), item.values())
        elif isinstance(item, list | tuple | set | frozenset):
            left -= _ITEM_CHARS * len(item)
            inner = (item,)
        elif hasattr(type(item), "__dataclass_fields__"):
            inner = (vars(item).values() if hasattr(item, "__dict__") else (),)
        if left < 0:
            raise TooLarge(what, limit_chars)
        if depth < MAX_DEPTH:
            for items in inner:
                waiting.extend((one, depth + 1) for one in items)
