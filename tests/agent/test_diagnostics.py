"""`diagnosticInfo`: the last output of a turn tells what the agent did, where that is asked for."""

from __future__ import annotations

from typing import Any

from gateway.config import Settings
from tests.agent.talk import APPS, Talk, talk

TELLING = Settings.model_validate({"runtime": {"diagnostics": True}})


async def told(session: Talk, text: str) -> list[tuple[str, dict[str, Any]]]:
    """(role, chunk) of all that the turn tells."""
    await session.send(text=text)
    while True:
        output = (await session.receive())["sessionOutput"]
        if output.get("turnCompleted"):
            messages = output["diagnosticInfo"]["messages"]
            return [(m["role"], chunk) for m in messages for chunk in m["chunks"]]


async def test_words_calls_results_and_variables_are_told_in_order() -> None:
    async with talk(APPS / "goldens", TELLING) as session:
        await told(session, "Thank you")
        chunks = await told(session, "Parcel number 4711")
    tool = {"id": "call-1", "displayName": "find_parcel"}
    tool["tool"] = "projects/p/locations/l/apps/a/tools/find_parcel"
    answer = {"result": {"number": "4711", "day": "Monday"}}
    assert chunks == [
        ("user", {"text": "Parcel number 4711"}),
        ("Desk", {"toolCall": {**tool, "args": {"number": "4711"}}}),
        ("Desk", {"toolResponse": {**tool, "response": answer}}),
        ("Desk", {"text": "Parcel 4711 comes on Monday."}),
        ("Desk", {"updatedVariables": {"parcel": "4711"}}),
    ]


async def test_hand_overs_and_payloads_are_told() -> None:
    async with talk(APPS / "goldens", TELLING) as session:
        card = await told(session, "The card")
        moved = await told(session, "A person")
    assert ("Desk", {"payload": {"card": {"number": 4711, "day": "Monday"}}}) in card
    target = {
        "targetAgent": "projects/p/locations/l/apps/a/agents/Care",
        "displayName": "Care",
    }
    assert ("Care", {"agentTransfer": target}) in moved
    assert moved[-1] == ("Care", {"text": "Care here."})


async def test_nothing_is_told_where_nobody_asks() -> None:
    async with talk(APPS / "goldens") as session:
        await session.send(text="Thank you")
        while not (output := (await session.receive())["sessionOutput"]).get("turnCompleted"):
            pass
    assert output == {"turnIndex": 1, "turnCompleted": True}
