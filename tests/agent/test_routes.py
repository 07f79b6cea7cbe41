"""Who may hand over to whom, and the rules that hand over by themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.agent.routes import Routes
from gateway.errors import AppError
from tests.agent.made import made_app, make_app
from tests.agent.talk import talk, texts

AGENTS: dict[str, dict[str, Any]] = {
    "Front": {"childAgents": ["Bills", "Outage"], "tools": ["mark"]},
    "Bills": {"childAgents": ["Dunning"]},
    "Outage": {},
    "Dunning": {},
    "Stray": {},
}
MARK = {
    "tools/mark/mark.yaml": {
        "displayName": "mark",
        "pythonFunction": {"name": "mark", "pythonCode": "tools/mark/code.py"},
    },
    "tools/mark/code.py": "def mark(value: str):\n    set_variable('mark', value)\n",
}


def _with_rule(rule: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {**AGENTS, "Front": {**AGENTS["Front"], "transferRules": [rule]}}


def test_children_parents_and_siblings_are_reachable(tmp_path: Path) -> None:
    routes = Routes(made_app(tmp_path, agents=AGENTS))
    assert routes.reachable("Front") == ["Bills", "Outage"]
    assert routes.reachable("Bills") == ["Dunning", "Front", "Outage"]
    assert routes.reachable("Dunning") == ["Bills"]
    assert routes.reachable("Stray") == []


SCRIPT = """
rules:
  - agent: Bills
    when: {user: stray}
    do: [{transfer: Stray}]
  - when: {tool: transfer_to_agent, result: error}
    do: [{say: "{result.error}"}]
  - {agent: Bills, do: [{say: Bills here.}]}
  - {agent: Outage, do: [{say: Outage here.}]}
  - {agent: Stray, do: [{say: Stray here.}]}
  - when: {tool: mark}
    do: [{say: Marked.}]
  - when: {user: "mark (?P<what>[a-z]+)"}
    do: [{call: {tool: mark, args: {value: "{user.what}"}}}]
  - when: {user: bill}
    do: [{transfer: Bills}]
  - when: {user: stray}
    do: [{transfer: Stray}]
default: [{say: Front here.}]
"""


async def test_the_model_hands_over_along_the_hierarchy_only(tmp_path: Path) -> None:
    async with talk(make_app(tmp_path, script=SCRIPT, agents=AGENTS, files=MARK)) as client:
        assert texts(await client.say("stray")) == [
            "'Front' cannot hand over to 'Stray'; it can to: Bills, Outage"
        ]
        assert texts(await client.say("bill")) == ["Bills here."]


async def test_a_rule_hands_over_as_soon_as_its_condition_holds(tmp_path: Path) -> None:
    rule = {
        "childAgent": "Outage",
        "direction": "PARENT_TO_CHILD",
        "deterministicTransfer": {"expressionCondition": {"expression": "mark == 'dark'"}},
    }
    app = make_app(tmp_path, script=SCRIPT, agents=_with_rule(rule), files=MARK)
    async with talk(app) as client:
        assert texts(await client.say("mark bright")) == ["Marked."]
        # The tool sets the variable: the next step belongs to the other agent already.
        assert texts(await client.say("mark dark")) == ["Outage here."]


async def test_a_rule_may_be_code_and_lead_back_to_the_parent(tmp_path: Path) -> None:
    code = "def due(callback_context):\n    return callback_context.state.get('mark') == 'home'\n"
    rule = {
        "childAgent": "Bills",
        "direction": "CHILD_TO_PARENT",
        "deterministicTransfer": {"pythonCodeCondition": {"pythonCode": code}},
    }
    app = make_app(
        tmp_path,
        script=SCRIPT,
        agents=_with_rule(rule),
        files=MARK,
        app={"variableDeclarations": [{"name": "mark", "schema": {"type": "STRING"}}]},
    )
    async with talk(app) as client:
        assert texts(await client.say("bill")) == ["Bills here."]
        await client.send(variables={"mark": "home"})
        assert texts(await client.say("hello")) == ["Front here."]


async def test_a_rule_can_keep_the_model_from_handing_over(tmp_path: Path) -> None:
    rule = {
        "childAgent": "Bills",
        "disablePlannerTransfer": {"expressionCondition": {"expression": "mark != 'paid'"}},
    }
    app = make_app(tmp_path, script=SCRIPT, agents=_with_rule(rule), files=MARK)
    async with talk(app) as client:
        assert texts(await client.say("bill")) == ["handing over to 'Bills' is not allowed now"]
        await client.say("mark paid")
        assert texts(await client.say("bill")) == ["Bills here."]


@pytest.mark.parametrize(
    ("rule", "code", "says"),
    [
        ({"childAgent": "Nobody"}, "app.transfer_rule", "not an agent"),
        ({"childAgent": "Bills", "direction": "SIDEWAYS"}, "app.transfer_rule", "'SIDEWAYS'"),
        ({"childAgent": "Bills"}, "app.transfer_rule", ""),
        ({"childAgent": "Bills", "deterministicTransfer": {}}, "app.transfer_rule", ""),
        (
            {
                "childAgent": "Bills",
                "deterministicTransfer": {"expressionCondition": {"expression": "a =="}},
            },
            "app.expression",
            "",
        ),
    ],
)
def test_a_wrong_rule_is_told_with_its_place(
    tmp_path: Path, rule: dict[str, Any], code: str, says: str
) -> None:
    with pytest.raises(AppError) as caught:
        Routes(made_app(tmp_path, agents=_with_rule(rule)))
    assert caught.value.code == code
    assert says in caught.value.message
    assert str(caught.value.where).startswith("agents/Front/Front.yaml:transferRules[0]")


async def test_an_agent_that_lives_in_dialogflow_is_not_handed_to(tmp_path: Path) -> None:
    agents = {"Main": {"childAgents": ["Away"]}, "Away": {"remoteDialogflowAgent": {"agent": "x"}}}
    script = """
rules:
  - when: {tool: transfer_to_agent, result: error}
    do: [{say: "{result.error}"}]
  - when: {user: away}
    do: [{transfer: Away}]
"""
    async with talk(make_app(tmp_path, script=script, agents=agents)) as client:
        assert texts(await client.say("away")) == [
            "the agent 'Away' lives in Dialogflow and is not available here"
        ]


async def test_an_agent_of_an_unknown_kind_is_not_handed_to(tmp_path: Path) -> None:
    agents: dict[str, dict[str, Any]] = {
        "Main": {"childAgents": ["Away", "Here"]},
        "Away": {"declarativeAgent": {"configSource": {}}},
        "Here": {"llmAgent": {}, "instruction": "Be kind."},
    }
    script = """
rules:
  - when: {tool: transfer_to_agent, result: error}
    do: [{say: "{result.error}"}]
  - when: {user: away}
    do: [{transfer: Away}]
  - agent: Here
    do: [{say: "Here I am."}]
  - when: {user: here}
    do: [{transfer: Here}]
"""
    async with talk(make_app(tmp_path, script=script, agents=agents)) as client:
        assert texts(await client.say("away")) == [
            "the agent 'Away' is a declarativeAgent, which is not available here"
        ]
        assert texts(await client.say("here")) == ["Here I am."]


async def test_a_root_agent_that_lives_in_dialogflow_answers_with_an_apology(
    tmp_path: Path,
) -> None:
    agents: dict[str, dict[str, Any]] = {"Away": {"remoteDialogflowAgent": {"agent": "x"}}}
    script = "default: [{say: Never.}]"
    async with talk(make_app(tmp_path, script=script, agents=agents)) as client:
        (said,) = texts(await client.say("hello"))
        assert "Dialogflow" not in said
        assert said != "Never."
