"""The registry: every dialect's entry keeps to the rules that the server relies on."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gateway.channels.base import (
    AgentPayload,
    AgentText,
    AgentToolCalls,
    GoAway,
    TurnCompleted,
    UserTranscript,
)
from gateway.channels.capabilities import DtmfOut, EndOut, TransferBy
from gateway.channels.dialect import Dialect, Opening, Proof
from gateway.channels.dialects import DIALECTS, dialect, open_channel
from gateway.errors import ConfigError, ProtocolError
from gateway.platform_settings import PlatformsSettings

ALL = pytest.mark.parametrize("entry", DIALECTS.values(), ids=list(DIALECTS))
PLATFORMS = PlatformsSettings()
GATEWAY = Path(__file__).parents[2] / "gateway"
OURS = (
    AgentText("hi", 1),
    AgentPayload({"card": 1}, 1),
    AgentToolCalls([{"id": "1"}], 1),
    TurnCompleted(1),
    UserTranscript("hi"),
    GoAway(),
)
"""What only a client of the agent understands."""


@ALL
def test_a_dialect_has_its_own_section_of_settings(entry: Dialect[Any]) -> None:
    settings = entry.settings(PLATFORMS)
    named = [name for name in type(PLATFORMS).model_fields if getattr(PLATFORMS, name) is settings]
    assert entry.name in named


@ALL
def test_without_settings_a_dialect_asks_for_no_proof_of_its_own_and_has_no_rest(
    entry: Dialect[Any],
) -> None:
    settings = entry.settings(PLATFORMS)
    assert entry.proof is None or not entry.proof(settings).configured
    assert entry.rest is None or entry.rest(settings) is None


@ALL
def test_routes_and_webhooks_are_sound(entry: Dialect[Any]) -> None:
    for route in entry.routes:
        assert route.pattern.startswith("/")
        assert (route.proof is Proof.TOKEN) == ("{token}" in route.pattern)
    assert all(hook.pattern.startswith("/") for hook in entry.webhooks)
    if any(route.proof is Proof.PLATFORM for route in entry.routes):
        assert entry.proof is not None


def test_no_address_is_served_twice() -> None:
    patterns = [
        re.sub(r"\{\w+\}", "{}", place.pattern)
        for entry in DIALECTS.values()
        for place in (*entry.routes, *entry.webhooks)
    ]
    assert len(patterns) == len(set(patterns))


@ALL
def test_the_record_is_consistent(entry: Dialect[Any]) -> None:
    able = entry.capabilities
    assert able.min_message_ms % 20 == 0
    assert able.max_lead_ms >= 20
    assert able.max_out_bytes >= able.frame_multiple_bytes
    by_rest = (able.end_out is EndOut.REST, able.transfer is TransferBy.REST)
    if any(by_rest) or able.dtmf_out is DtmfOut.REST:
        assert entry.rest is not None
    poor = able.without_rest()
    assert EndOut.REST is not poor.end_out
    assert TransferBy.REST is not poor.transfer
    assert DtmfOut.REST is not poor.dtmf_out


@ALL
@pytest.mark.parametrize("step", ["[", '{"a":'], ids=["lists", "objects"])
@pytest.mark.parametrize("field", ["event", "start", "data", "parameters", "anything"])
def test_a_message_without_a_bottom_is_a_message_like_others(
    entry: Dialect[Any], step: str, field: str
) -> None:
    kind = '"event":"start","eventType":"start","type":"open","command":"connect"'
    with suppress(ProtocolError):
        entry.open(Opening(entry.settings(PLATFORMS))).receive(
            f'{{{kind},"{field}":{step * 100_000}'
        )


@pytest.mark.parametrize(
    "entry",
    [entry for entry in DIALECTS.values() if not entry.capabilities.agent_messages],
    ids=lambda entry: entry.name,
)
def test_what_only_clients_understand_is_not_sent_to_a_platform(entry: Dialect[Any]) -> None:
    channel = entry.open(Opening(entry.settings(PLATFORMS)))
    assert [channel.command(command) for command in OURS] == [[]] * len(OURS)


def compared(tree: ast.AST) -> Iterator[object]:
    """Constants that something is compared with, or matched against."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare | ast.MatchValue):
            yield from (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))


@pytest.mark.parametrize("place", ["audio", "call", "platforms", "records", "runtime", "server"])
def test_nobody_but_the_dialects_asks_for_a_name(place: str) -> None:
    files = [*(GATEWAY / place).rglob("*.py"), *GATEWAY.glob("*.py")]
    assert len(files) > 10
    found = {
        (file.name, value)
        for file in files
        for value in compared(ast.parse(file.read_text(encoding="utf-8")))
        if value in DIALECTS
    }
    assert not found


@pytest.mark.parametrize("name", ["ces", "twilio"])
def test_a_codec_is_made_by_name(name: str) -> None:
    assert open_channel(name).capabilities.dialect == name
    entry = dialect(name)
    assert entry.open(Opening(entry.settings(PLATFORMS))).capabilities.dialect == name


def test_an_unknown_dialect_is_named() -> None:
    with pytest.raises(ConfigError, match="pigeon") as caught:
        dialect("pigeon")
    assert caught.value.hint
    assert "twilio" in caught.value.hint
