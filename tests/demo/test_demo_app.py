"""The demo app is a complete export: it reads, its files exist, its code compiles."""

from __future__ import annotations

import ast
import json
import re
import shutil
import zipfile
from collections import Counter
from pathlib import Path

import pytest
import yaml

from gateway.agent.app.models import SYSTEM_TOOLS, App, CallbackKind
from gateway.agent.app.read import read_app
from gateway.agent.code import AppCode
from gateway.agent.models.script_file import Say, parse_script
from gateway.demo import APP_PATH, SCENARIOS_PATH
from gateway.demo.make_audio import GREETING
from gateway.simulate.scenario import Scenario, read_scenario

PARAMETERS = {
    CallbackKind.BEFORE_AGENT: ["callback_context"],
    CallbackKind.AFTER_AGENT: ["callback_context"],
    CallbackKind.BEFORE_MODEL: ["callback_context", "llm_request"],
    CallbackKind.AFTER_MODEL: ["callback_context", "llm_response"],
    CallbackKind.BEFORE_TOOL: ["tool", "input", "callback_context"],
    CallbackKind.AFTER_TOOL: ["tool", "input", "callback_context", "tool_response"],
}

SCENARIO_FILES = sorted(SCENARIOS_PATH.glob("*.yaml"))


@pytest.fixture(scope="module")
def app() -> App:
    return read_app(APP_PATH)


def function(source: str, name: str) -> ast.FunctionDef:
    """The one function `name` of a source; fails where it is missing or there twice."""
    found = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and node.name == name
    ]
    assert len(found) == 1, name
    return found[0]


def test_the_app_reads_without_warnings(app: App) -> None:
    assert app.warnings == ()
    assert app.root_agent.display_name == "Front Desk"
    assert set(app.agents) == {"Front Desk", "Billing", "Outage Desk", "Escalation"}


def test_the_export_mixes_yaml_and_json() -> None:
    suffixes = Counter(path.suffix for path in APP_PATH.rglob("*") if path.is_file())
    assert suffixes[".yaml"] > suffixes[".json"] >= 2


def test_the_same_app_reads_from_a_zip(app: App, tmp_path: Path) -> None:
    packed = tmp_path / "northlight.zip"
    with zipfile.ZipFile(packed, "w") as out:
        for path in sorted(APP_PATH.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                out.write(path, Path("Northlight_Energy") / path.relative_to(APP_PATH))
    unpacked = read_app(packed)
    assert unpacked.definition == app.definition
    assert {name: agent.definition for name, agent in unpacked.agents.items()} == {
        name: agent.definition for name, agent in app.agents.items()
    }
    assert unpacked.read_file("audio/greeting.wav") == app.read_file("audio/greeting.wav")


def test_the_same_app_reads_when_every_file_is_json(app: App, tmp_path: Path) -> None:
    copy = tmp_path / "app"
    shutil.copytree(APP_PATH, copy)
    for path in copy.rglob("*.yaml"):
        if path.name != "scripted_model.yaml":
            content = yaml.safe_load(path.read_text(encoding="utf-8"))
            path.with_suffix(".json").write_text(json.dumps(content), encoding="utf-8")
            path.unlink()
    converted = read_app(copy)
    assert converted.definition == app.definition
    assert {name: tool.definition for name, tool in converted.tools.items()} == {
        name: tool.definition for name, tool in app.tools.items()
    }


def test_the_audio_settings_are_those_the_scenarios_count_on(app: App) -> None:
    audio = app.audio_processing_config
    assert app.inactivity_s == 8
    assert audio.barge_in_config.barge_in_awareness
    assert not audio.barge_in_config.disable_barge_in
    assert "en-US" in audio.synthesize_speech_configs
    assert app.language == "en-US"
    assert app.definition.model_settings.model == "scripted"


def test_every_callback_defines_its_function_with_the_platform_s_parameters(app: App) -> None:
    for agent in app.agents.values():
        for kind, sources in agent.callbacks.items():
            for source in sources:
                arguments = function(source.text, kind.value).args
                names = [argument.arg for argument in arguments.args]
                assert names == PARAMETERS[kind], source.where
                assert arguments.vararg is None
                assert arguments.kwarg is None


def test_all_six_callback_kinds_are_shown(app: App) -> None:
    shown = {
        kind
        for agent in app.agents.values()
        for kind, sources in agent.callbacks.items()
        if sources
    }
    assert shown == set(CallbackKind)


def test_every_source_file_is_used(app: App) -> None:
    used = {source.text for source in app.code()}
    for path in APP_PATH.rglob("*.py"):
        assert path.read_text(encoding="utf-8") in used, path


def test_the_code_compiles_and_imports_what_it_uses(app: App) -> None:
    assert AppCode(app).warnings == []


def test_the_script_parses_and_fills_in_only_what_exists(app: App) -> None:
    text = (APP_PATH / "scripted_model.yaml").read_text(encoding="utf-8")
    script = parse_script(text, "scripted_model.yaml", app)
    assert script.default
    roots = {"result", "user", *app.variable_declarations}
    for rule in script.rules:
        assert set(rule.variables) <= set(app.variable_declarations), rule.line
        for step in rule.steps:
            if isinstance(step, Say):
                assert set(re.findall(r"\{(\w+)", step.text)) <= roots, rule.line


def test_every_tool_has_typed_parameters_without_defaults(app: App) -> None:
    for tool in app.tools.values():
        assert tool.code is not None
        definition = tool.definition.python_function
        assert definition is not None
        found = function(tool.code.text, definition.name)
        assert ast.get_docstring(found)
        assert found.args.defaults == []
        assert all(argument.annotation is not None for argument in found.args.args)


def test_agents_name_only_tools_and_agents_that_exist(app: App) -> None:
    for agent in app.agents.values():
        assert set(agent.tools) <= set(app.tools) | SYSTEM_TOOLS
        assert set(agent.definition.child_agents) <= set(app.agents)
        assert "end_session" in agent.tools


def test_the_root_agent_is_nobody_s_child_and_only_escalation_has_several_parents(
    app: App,
) -> None:
    parents = Counter(
        child for agent in app.agents.values() for child in agent.definition.child_agents
    )
    assert "Front Desk" not in parents
    assert {name for name, count in parents.items() if count > 1} == {"Escalation"}


def test_instructions_refer_to_tools_agents_and_variables_that_exist(app: App) -> None:
    texts = [app.global_instruction, *(agent.instruction for agent in app.agents.values())]
    for text in texts:
        assert set(re.findall(r"\{@TOOL: (\w+)\}", text)) <= set(app.tools) | SYSTEM_TOOLS
        assert set(re.findall(r"\{@AGENT: ([\w ]+)\}", text)) <= set(app.agents)
        assert set(re.findall(r"\{+(\w+)\}+", text)) <= set(app.variable_declarations)


def test_code_uses_declared_variables_only(app: App) -> None:
    for source in app.code():
        names = re.findall(r"[gs]et_variable\(\s*\"(\w+)\"", source.text)
        assert set(names) <= set(app.variable_declarations), source.where


def test_every_audio_file_that_code_plays_is_in_the_app(app: App) -> None:
    played = {
        uri for source in app.code() for uri in re.findall(r'"audioUri": "([^"]+)"', source.text)
    }
    assert played == {f"audio/{path.name}" for path in (APP_PATH / "audio").iterdir()}
    for uri in played:
        assert app.read_file(uri)


def test_the_greeting_s_transcript_is_what_the_recording_says() -> None:
    source = APP_PATH / "agents/Front_Desk/before_model_callbacks/greeting/python_code.py"
    assert json.dumps(GREETING) in source.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", SCENARIO_FILES, ids=lambda path: path.stem)
def test_every_scenario_parses_and_says_what_must_happen(path: Path) -> None:
    scenario = read_scenario(path)
    assert isinstance(scenario, Scenario)
    assert scenario.app is None, "the demo is the default app"
    assert scenario.expect


def test_the_readme_names_every_scenario_and_only_files_that_exist() -> None:
    demo = APP_PATH.parent
    readme = (demo / "README.md").read_text(encoding="utf-8")
    for path in SCENARIO_FILES:
        assert f"`scenarios/{path.name}`" in readme
    for named in re.findall(r"`((?:app|scenarios)/[^`]+)`", readme):
        assert (demo / named).exists(), named
