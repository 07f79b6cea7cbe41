"""What no peer should send, for every codec."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from gateway.channels.base import Channel
from gateway.errors import ProtocolError


def json_of(names: Sequence[str]) -> st.SearchStrategy[Any]:
    """Any JSON whose objects like these field names."""
    return st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(max_size=8)
        | st.sampled_from(names),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(names), inner, max_size=5)
        ),
        max_leaves=12,
    )


def messages(names: Sequence[str]) -> st.SearchStrategy[list[str | bytes]]:
    """A few messages: JSON of the dialect's words, its words as text, any text, any bytes."""
    words = st.lists(st.sampled_from(names) | st.text(max_size=6), max_size=6)
    return st.lists(
        json_of(names).map(json.dumps)
        | words.map(" ".join)
        | st.text(max_size=40)
        | st.binary(max_size=40),
        max_size=5,
    )


def only_protocol_errors(make: Callable[[], Channel], received: list[str | bytes]) -> None:
    """Feed a fresh codec until it objects; any other exception is the test's failure."""
    channel = make()
    for message in received:
        try:
            channel.receive(message)
        except ProtocolError:
            return
