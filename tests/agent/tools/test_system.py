"""The reserved tools' arguments."""

from __future__ import annotations

import pytest

from gateway.agent.app import read_app
from gateway.agent.app.models import SYSTEM_TOOLS
from gateway.agent.tools import system
from tests.agent.talk import APPS


def test_every_reserved_tool_is_declared() -> None:
    assert system.DECLARATIONS.keys() == SYSTEM_TOOLS


@pytest.mark.parametrize(
    ("args", "metadata"),
    [
        ({}, {"reason": ""}),
        ({"reason": "r", "session_escalated": False, "params": {}}, {"reason": "r"}),
        (
            {"reason": "r", "session_escalated": True, "params": {"a": {1: 2}}},
            {"reason": "r", "session_escalated": True, "params": {"a": {"1": 2}}},
        ),
        ({"reason": "r", "params": "no mapping"}, {"reason": "r"}),
    ],
)
def test_metadata_of_an_end(args: dict[str, object], metadata: dict[str, object]) -> None:
    assert system.end_metadata(args) == metadata


def test_a_transfer_finds_its_agent_whatever_the_case() -> None:
    app = read_app(APPS / "transfer")
    assert system.transfer_target(app, {"agent_name": "Front Desk"}) == "Front Desk"
    assert system.transfer_target(app, {"agent_name": "front desk"}) == "Front Desk"
    assert system.transfer_target(app, {"agent_name": "Nobody"}) is None
    assert system.transfer_target(app, {"agent_name": 3}) is None
