"""Variables: defaults, types, substitution, updates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.agent import variables
from gateway.agent.app import read_app
from gateway.agent.app.models import App

DECLARATIONS = """
displayName: x
rootAgent: Main
variableDeclarations:
  - {name: flag, schema: {type: BOOLEAN}, default: "True"}
  - {name: count, schema: {type: INTEGER, default: 3}}
  - {name: price, schema: {type: NUMBER}}
  - {name: person, schema: {type: OBJECT, default: {name: Ann}}}
  - {name: number, schema: {type: STRING}}
  - {name: cities, schema: {type: ARRAY, items: {type: STRING}}}
  - {name: marks, schema: {type: ARRAY, items: {type: INTEGER}}}
"""


def _app(tmp_path: Path) -> App:
    (tmp_path / "agents/Main").mkdir(parents=True)
    (tmp_path / "app.yaml").write_text(DECLARATIONS)
    (tmp_path / "agents/Main/Main.yaml").write_text("displayName: Main")
    return read_app(tmp_path)


def test_defaults_are_typed_and_each_session_has_its_own(tmp_path: Path) -> None:
    app = _app(tmp_path)
    first, second = variables.initial(app), variables.initial(app)
    assert first == {"flag": True, "count": 3, "person": {"name": "Ann"}}
    first["person"]["name"] = "Bob"
    assert second["person"]["name"] == "Ann"


def test_updates_are_for_declared_names_in_their_types(tmp_path: Path) -> None:
    given = {"count": 4.0, "price": "1.5", "number": 4711.0, "flag": "false", "other": 1}
    assert variables.accepted(_app(tmp_path), given) == {
        "count": 4,
        "price": 1.5,
        "number": "4711",
        "flag": False,
    }


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({"cities": "Bern, New York ,Rome"}, {"cities": ["Bern", "New York", "Rome"]}),
        ({"cities": "Bern"}, {"cities": ["Bern"]}),
        ({"cities": " "}, {"cities": []}),
        ({"cities": '["Bern, Switzerland"]'}, {"cities": ["Bern, Switzerland"]}),
        ({"cities": "[old] town, port"}, {"cities": ["[old] town", "port"]}),
        ({"marks": "1, 2, many"}, {"marks": [1, 2, "many"]}),
        ({"marks": [1.0, "2"]}, {"marks": [1, 2]}),
        ({"person": '{"name": "Cid"}'}, {"person": {"name": "Cid"}}),
        ({"person": "{}", "cities": "[]"}, {"person": {}, "cities": []}),
        ({"person": "Cid"}, {"person": "Cid"}),
        ({"person": "[1]"}, {"person": "[1]"}),
        ({"person": '{"age": NaN}'}, {"person": '{"age": NaN}'}),
        ({"cities": "[" * 100_000}, {"cities": ["[" * 100_000]}),
    ],
)
def test_lists_and_objects_may_come_as_text(
    tmp_path: Path, given: dict[str, Any], taken: dict[str, Any]
) -> None:
    assert variables.accepted(_app(tmp_path), given) == taken


def test_what_does_not_fit_its_type_stays_as_it_is(tmp_path: Path) -> None:
    given = {"count": "many", "price": [1], "number": True}
    assert variables.accepted(_app(tmp_path), given) == given


def test_static_names_are_replaced_and_dynamic_ones_are_not() -> None:
    text = "{{a}} {b} {{ c }} {@TOOL: look_up} {@AGENT: Front Desk}"
    assert variables.substitute(text, {"a": {"x": 1}, "b": 2}) == '{"x": 1} {b}  look_up Front Desk'
    assert variables.dynamic_names("{{a}} {b} {c d} {e}") == {"b", "e"}
    assert variables.substitute_dynamic("{b} {z}", {"b": 2.0}) == "2 {z}"
    assert variables.state_update("b", True) == "<state_update>b: true</state_update>"
