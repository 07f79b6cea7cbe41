"""Exported apps as they come: mixed formats, both spellings, odd texts, clear errors."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.agent.app import App, read_app
from gateway.agent.app.models import CallbackKind
from gateway.errors import AppError
from tests.agent.talk import APPS

MINIMAL = {
    "app.yaml": "displayName: X\nrootAgent: Main\n",
    "agents/Main/Main.yaml": "displayName: Main\n",
}


def _write(folder: Path, files: dict[str, str], **more: str) -> Path:
    for name, text in {**files, **more}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
    return folder


def _app(folder: Path, files: dict[str, str]) -> App:
    return read_app(_write(folder, {**MINIMAL, **files}))


def _error(folder: Path, files: dict[str, str]) -> AppError:
    with pytest.raises(AppError) as caught:
        _app(folder, files)
    assert caught.value.where
    return caught.value


def test_a_folder_and_its_zip_read_alike(tmp_path: Path) -> None:
    folder = APPS / "voice_patterns"
    path = tmp_path / "app.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(p for p in folder.rglob("*") if p.is_file()):
            archive.write(file, f"My_App/{file.relative_to(folder)}")
    zipped, plain = read_app(path), read_app(folder)
    assert zipped.definition == plain.definition
    assert zipped.agents == plain.agents
    assert zipped.tools == plain.tools
    assert zipped.read_file("global_instruction.txt") == plain.read_file("global_instruction.txt")


def test_audio_settings_voices_and_variables_are_at_hand() -> None:
    app = read_app(APPS / "voice_patterns")
    assert app.inactivity_s == 8.0
    voices = app.audio_processing_config.synthesize_speech_configs
    assert voices["en-US"].voice == "some-voice"
    assert voices["en-US"].speaking_rate == 1.1
    assert voices["de-DE"].voice == ""
    assert app.audio_processing_config.barge_in_config.barge_in_awareness
    assert app.audio_processing_config.ambient_sound_config is None
    assert app.variable_declarations == {"style": "plain", "mood": "calm"}
    assert app.language == "en-US"


def test_disabled_callbacks_are_left_out_and_the_others_keep_their_order() -> None:
    callbacks = read_app(APPS / "voice_patterns").root_agent.callbacks
    names = [source.where.rsplit("/", 1)[1] for source in callbacks[CallbackKind.BEFORE_MODEL]]
    assert names == ["greeting.py", "music.py"]


def test_json_yaml_snake_case_null_and_unknown_keys_mix(tmp_path: Path) -> None:
    app = _app(
        tmp_path,
        {
            "app.yaml": "# licence\ndisplay_name: X\nroot_agent: Front Desk\n"
            "audioProcessingConfig: null\nfutureThing: {a: 1}\n"
            "variable_declarations:\n"
            "  - {name: v, schema: {type: STRING, default: d, required: []}}\n",
            "agents/Main/Main.yaml": "",
            "agents/fd/fd.json": json.dumps(
                {"displayName": "Front Desk", "instruction": "Isn\u0027t it\nnice", "tools": None}
            ),
        },
    )
    assert app.root_agent.instruction == "Isn't it\nnice"
    assert app.agents["Main"].display_name == "Main"
    assert app.definition.model_extra == {"futureThing": {"a": 1}}
    assert app.variable_declarations == {"v": "d"}


def test_windows_line_ends_and_byte_order_marks_are_read(tmp_path: Path) -> None:
    app = _app(
        tmp_path,
        {
            "agents/Main/Main.yaml": "\ufeffdisplayName: Main\r\ninstruction: i.txt\r\n",
            "i.txt": "one\r\ntwo\r\n",
        },
    )
    assert app.root_agent.instruction == "one\ntwo\n"


def test_environment_overrides_and_fills_in(tmp_path: Path) -> None:
    app = _app(
        tmp_path,
        {
            "environment.json": json.dumps(
                {
                    "toolsets": {"Meters": {"openApiToolset": {"url": "https://example.com"}}},
                    "tools": {"t": {"timeout": "3s"}},
                    "place": "Berlin",
                }
            ),
            "toolsets/meters/meters.yaml": "displayName: Meters\n"
            "openApiToolset: {openApiSchema: s.yaml, region: $place}\n",
            "tools/t/t.yaml": "displayName: t\npythonFunction: {pythonCode: 'def t():\n\n  1'}",
        },
    )
    assert app.resources["toolsets"]["Meters"]["openApiToolset"] == {
        "openApiSchema": "s.yaml",
        "region": "Berlin",
        "url": "https://example.com",
    }
    assert app.tools["t"].timeout_s == 3.0


def test_environment_fills_in_the_app_itself(tmp_path: Path) -> None:
    app = _app(
        tmp_path,
        {
            "environment.json": '{"app": {"description": "d"}, "voice": "v"}',
            "app.yaml": MINIMAL["app.yaml"]
            + "audioProcessingConfig: {synthesizeSpeechConfigs: {en-US: {voice: $voice}}}\n",
        },
    )
    assert app.definition.description == "d"
    assert app.audio_processing_config.synthesize_speech_configs["en-US"].voice == "v"


def test_placeholders_without_a_value_are_named_with_their_line(tmp_path: Path) -> None:
    app = _app(
        tmp_path,
        {
            "app.yaml": MINIMAL["app.yaml"] + "loggingSettings:\n  bucket: gs://${bucket}/x\n"
            "  audioRecordingConfig: {gcsPathPrefix: $project}\n",
            "tools/d/d.json": '{"displayName": "d",\n"dataStoreTool": {"name": "$store"}}',
        },
    )
    found = [(warning.code, warning.where, warning.message) for warning in app.warnings]
    assert found == [
        ("app.placeholder", "app.yaml:4", "nothing gives a value for ${bucket}"),
        ("app.placeholder", "tools/d/d.json:2", "nothing gives a value for $store"),
    ]


def test_a_name_that_points_elsewhere_is_no_display_name(tmp_path: Path) -> None:
    app = _app(
        tmp_path,
        {
            "tools/a/a.yaml": "name: 0f8fad5b-d9cb-469f-a165-70867728950e\n",
            "tools/b/b.yaml": "name: projects/p/tools/x\n",
            "tools/c/c.yaml": "name: slug\n",
        },
    )
    assert set(app.tools) == {"a", "b", "slug"}


def test_all_folders_of_an_export_are_read(tmp_path: Path) -> None:
    folders = ("toolsets", "guardrails", "examples", "evaluations", "evaluationDatasets")
    folders += ("evaluationExpectations",)
    files = {f"{folder}/f/f.yaml": f"displayName: {folder} 1\nmore: 1\n" for folder in folders}
    app = _app(tmp_path, {**files, "pythonEnvFiles/pythonEnvFiles.json": '{"a": 1}'})
    for folder in folders:
        assert app.resources[folder] == {f"{folder} 1": {"displayName": f"{folder} 1", "more": 1}}
    assert app.resources["pythonEnvFiles"] == {"pythonEnvFiles": {"a": 1}}


def test_callbacks_may_stand_anywhere(tmp_path: Path) -> None:
    app = _app(
        tmp_path,
        {
            "agents/Main/Main.yaml": "displayName: Main\nbeforeModelCallbacks:\n"
            "- pythonCode: agents/Main/before_model_callbacks/flat.py\n"
            "- python_code: agents/Main/before_model_callbacks/nested/python_code.py\n",
            "agents/Main/before_model_callbacks/flat.py": "a = 1\r\n",
            "agents/Main/before_model_callbacks/nested/python_code.py": "b = 2",
        },
    )
    sources = app.root_agent.callbacks[CallbackKind.BEFORE_MODEL]
    assert [source.text for source in sources] == ["a = 1\n", "b = 2"]


def test_a_template_is_not_an_app_yet(tmp_path: Path) -> None:
    with pytest.raises(AppError) as caught:
        read_app(_write(tmp_path, {"app.json.tftpl": "{}"}))
    assert caught.value.code == "app.template"
    assert "app.json.tftpl" in caught.value.message


def test_a_tool_of_another_kind_is_read_and_named(tmp_path: Path) -> None:
    app = _app(tmp_path, {"tools/d/d.yaml": "displayName: d\ndataStoreTool: {name: d}\n"})
    assert app.tools["d"].kind == "dataStoreTool"
    assert app.tools["d"].code is None


def test_tools_that_are_not_there_are_warnings(tmp_path: Path) -> None:
    app = _app(tmp_path, {"agents/Main/Main.yaml": "displayName: Main\ntools: [gone, end_session]"})
    (warning,) = app.warnings
    assert (warning.code, warning.where) == ("app.reference", "agents/Main/Main.yaml:tools[0]")


@pytest.mark.parametrize(
    ("files", "code", "where"),
    [
        ({"app.yaml": "rootAgent: Nobody"}, "app.reference", "app.yaml:rootAgent"),
        ({"app.yaml": "a: [1"}, "app.yaml", "app.yaml:1"),
        ({"app.yaml": "- a"}, "app.shape", "app.yaml"),
        ({"agents/A/A.json": '{\n"a": }'}, "app.json", "agents/A/A.json:2"),
        (
            {"agents/A/A.yaml": "childAgents: [B]"},
            "app.reference",
            "agents/A/A.yaml:childAgents[0]",
        ),
        ({"agents/A/A.yaml": "displayName: Main"}, "app.duplicate_name", "agents/Main/Main.yaml"),
        (
            {"agents/A/A.yaml": "instruction: agents/A/none.txt"},
            "app.missing_file",
            "agents/A/A.yaml:instruction",
        ),
        (
            {"agents/A/A.yaml": "instruction: ../../etc/none.txt"},
            "app.path",
            "agents/A/A.yaml:instruction",
        ),
        (
            {"agents/A/A.yaml": "beforeModelCallbacks: [{pythonCode: a.py}]"},
            "app.missing_file",
            "agents/A/A.yaml:before_model_callbacks[0].pythonCode",
        ),
        ({"agents/A/A.yaml": "tools: 3"}, "app.value", "agents/A/A.yaml:tools"),
        (
            {"tools/t/t.yaml": "timeout: soon\ndisplayName: t"},
            "app.duration",
            "tools/t/t.yaml:timeout",
        ),
        (
            {"tools/t/t.yaml": "pythonFunction: {name: t}"},
            "app.no_code",
            "tools/t/t.yaml:pythonFunction.pythonCode",
        ),
        (
            {
                "tools/t/t.yaml": "displayName: end_session\n"
                "pythonFunction: {pythonCode: 'def a():\n\n  1'}"
            },
            "app.reserved",
            "tools/t/t.yaml",
        ),
        ({"agents/A/A.yaml": "", "agents/A/A.json": "{}"}, "app.ambiguous", None),
        ({"app.json": "{}"}, "app.ambiguous", "app.json, app.yaml"),
        (
            {"guardrails/a/a.yaml": "displayName: g", "guardrails/b/b.yaml": "displayName: g"},
            "app.duplicate_name",
            "guardrails/b/b.yaml",
        ),
    ],
)
def test_errors_name_file_and_key(
    tmp_path: Path, files: dict[str, str], code: str, where: str | None
) -> None:
    error = _error(tmp_path, files)
    assert error.code == code
    assert where is None or error.where == where


def test_an_app_without_files_is_named(tmp_path: Path) -> None:
    with pytest.raises(AppError) as caught:
        read_app(tmp_path)
    assert caught.value.code == "app.no_app_file"
    with pytest.raises(AppError) as caught:
        read_app(_write(tmp_path, {"app.yaml": "rootAgent: x"}))
    assert caught.value.code == "app.no_agents"


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2)
    ),
    max_leaves=5,
)


@settings(max_examples=40)
@given(
    st.dictionaries(
        st.sampled_from(
            ["displayName", "rootAgent", "variableDeclarations", "audioProcessingConfig", "tools"]
        )
        | st.text(max_size=5),
        _values,
    )
)
def test_any_mapping_is_an_app_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, content: dict[str, Any]
) -> None:
    folder = tmp_path_factory.mktemp("app")
    _write(folder, MINIMAL)
    (folder / "app.yaml").write_text(yaml.safe_dump(content))
    (folder / "agents/Main/Main.yaml").write_text(yaml.safe_dump(content))
    try:
        app = read_app(folder)
    except AppError as error:
        assert error.where  # noqa: PT017
    else:
        assert app.root_agent
