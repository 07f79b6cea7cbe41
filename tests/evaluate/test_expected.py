"""Golden turns as history: Messages as the published protos have them, in the golden's order."""

from __future__ import annotations

from pathlib import Path

from google.cloud.ces_v1beta.types import Message
from google.protobuf import json_format

from gateway.agent.historical import read_history
from gateway.evaluate.expected import expected_messages
from tests.evaluate.made import calls, expect, turn_of


def test_a_turn_as_it_should_have_gone(tmp_path: Path) -> None:
    response = {"role": "Desk", "chunks": [{"text": "Hold on."}, {"payload": {"card": 1}}]}
    turn = turn_of(
        tmp_path,
        {"userInput": {"variables": {"caller": "Ada"}}},
        {"userInput": {"event": {"event": "session_start"}}},
        {"userInput": {"dtmf": "12"}},
        {"userInput": {"image": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}},
        expect(agentResponse=response),
        calls("find", {"n": 1}),
        expect(mockToolResponse={"tool": "find", "response": {"day": "Monday"}}),
        expect(updatedVariables={"found": True}),
        expect(noToolCalls=False),
        {"agentTransfer": {"targetAgent": "Care"}},
    )
    messages = list(expected_messages(turn))
    for message in messages:
        json_format.ParseDict(message, Message.pb(Message()))
    assert [(m["role"], *m["chunks"]) for m in messages] == [
        ("user", {"updatedVariables": {"caller": "Ada"}}),
        ("user", {"text": "<event>session start</event>"}),
        ("user", {"text": "<context>user pressed 12 on keypad.</context>"}),
        ("user", {"image": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}),
        ("Desk", {"text": "Hold on."}),
        ("Desk", {"payload": {"card": 1}}),
        ("agent", {"toolCall": {"tool": "find", "args": {"n": 1}}}),
        ("agent", {"toolResponse": {"tool": "find", "response": {"day": "Monday"}}}),
        ("agent", {"updatedVariables": {"found": True}}),
        ("user", {"agentTransfer": {"targetAgent": "Care"}}),
    ]
    assert len(read_history(messages)) == len(messages)
