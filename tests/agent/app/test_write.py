"""Apps written again: in either format nothing is lost, and what was read reads the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gateway.agent.app.files import AppFiles, open_files
from gateway.agent.app.layout import RESOURCE_FOLDERS
from gateway.agent.app.models import App
from gateway.agent.app.read import read_app, read_files
from gateway.agent.app.write import Format, rewritten, root_name, write_folder
from gateway.bidi import snake
from gateway.demo import APP_PATH
from gateway.errors import AppError
from tests.agent.app.memory import MemoryFiles

APP = {
    "app.yaml": "# licence\ndisplay_name: X\nrootAgent: Main\naudioProcessingConfig: null\n",
    "agents/Main/Main.json": '{"displayName": "Main", "future": {"a": [1, 1.0, null, "no"]}}',
    "environment.json": '{"a": 1}',
    "pythonEnvFiles/pythonEnvFiles.json": "{}",
    "audio/a.json": "not ours",
}


def _said(app: App) -> dict[str, Any]:
    """All that an app says, without the names of the files that say it."""
    return {
        "app": app.definition.model_dump(),
        "instruction": app.global_instruction,
        "agents": {
            name: (
                agent.definition.model_dump(),
                agent.instruction,
                {kind: [code.text for code in codes] for kind, codes in agent.callbacks.items()},
            )
            for name, agent in app.agents.items()
        },
        "tools": {
            name: (tool.definition.model_dump(), tool.code and tool.code.text, tool.timeout_s)
            for name, tool in app.tools.items()
        },
        "resources": {folder: dict(objects) for folder, objects in app.resources.items()},
        "warnings": [(warning.code, warning.message) for warning in app.warnings],
    }


def _written(files: AppFiles, format_: Format | None) -> dict[str, bytes]:
    return dict(rewritten(files, format_))


def test_without_a_format_every_byte_stays() -> None:
    files = MemoryFiles(APP)
    assert _written(files, None) == {path: files.read(path) for path in files.paths()}


def test_a_format_changes_objects_and_nothing_else() -> None:
    files = MemoryFiles(APP)
    in_json = _written(files, Format.JSON)
    assert json.loads(in_json.pop("app.json")) == {
        "display_name": "X",
        "rootAgent": "Main",
        "audioProcessingConfig": None,
    }
    assert in_json == {path: files.read(path) for path in files.paths() if path != "app.yaml"}
    in_yaml = _written(files, Format.YAML)
    assert in_yaml["app.yaml"] == files.read("app.yaml")
    assert yaml.safe_load(in_yaml["agents/Main/Main.yaml"])["future"] == {"a": [1, 1.0, None, "no"]}
    assert in_yaml["pythonEnvFiles/pythonEnvFiles.yaml"] == b"{}\n"
    assert in_yaml["environment.json"] == b'{"a": 1}'
    assert in_yaml["audio/a.json"] == b"not ours"


def test_a_file_is_never_written_over_another() -> None:
    odd = {**APP, "agents/Main/Main.YAML": "# a note", "agents/B/B.yml": "displayName: B"}
    written = _written(MemoryFiles(odd), Format.YAML)
    assert "agents/Main/Main.json" in written
    assert written["agents/Main/Main.YAML"] == b"# a note"
    assert written["agents/B/B.yaml"] == b"displayName: B\n"


@pytest.mark.parametrize("format_", [None, *Format])
def test_the_demo_app_says_the_same_in_any_format(tmp_path: Path, format_: Format | None) -> None:
    files = open_files(APP_PATH)
    assert write_folder(files, tmp_path / "out", format_) == len(files.paths())
    assert _said(read_app(tmp_path / "out")) == _said(read_app(APP_PATH))


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    for target in (tmp_path, tmp_path / "mine"):
        with pytest.raises(AppError) as caught:
            write_folder(MemoryFiles(APP), target)
        assert caught.value.code == "app.exists"
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_nothing_is_written_of_an_app_that_cannot_be_converted(tmp_path: Path) -> None:
    broken = MemoryFiles({**APP, "agents/B/B.json": "{"})
    with pytest.raises(AppError) as caught:
        write_folder(broken, tmp_path / "out", Format.YAML)
    assert caught.value.code == "app.json"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("there", [False, True])
def test_what_the_disk_refuses_is_named_and_nothing_is_left_of_it(
    tmp_path: Path, there: bool
) -> None:
    target = tmp_path / "out"
    if there:
        target.mkdir()
    with pytest.raises(AppError) as caught:
        write_folder(MemoryFiles({**APP, "b" * 300: "x"}), target)
    assert caught.value.code == "app.write"
    assert list(tmp_path.rglob("*")) == ([target] if there else [])


def test_nothing_is_left_of_an_app_whose_writing_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = Path.write_bytes

    def interrupted(path: Path, data: bytes) -> int:
        if path.name == "environment.json":
            raise KeyboardInterrupt
        return written(path, data)

    monkeypatch.setattr(Path, "write_bytes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_folder(MemoryFiles(APP), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_root_folder_of_an_export_has_the_apps_name() -> None:
    assert root_name(MemoryFiles({"app.json": '{"displayName": "Café (test) 2"}'})) == (
        "Caf___test__2"
    )
    assert root_name(MemoryFiles({"app.json": "{}"})) == "memory"


# ---- any app

_words = st.text(st.characters(codec="utf-8", exclude_characters="$"), min_size=1, max_size=6)
_extra = st.dictionaries(
    st.sampled_from(["future", "Yet another", "x_y", "no"]),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(-1e9, 1e9) | st.text(max_size=6),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_words, inner, max_size=2),
        max_leaves=4,
    ),
    max_size=2,
)
_styles = st.sampled_from(["json", "ascii", "noted", "yaml", "yml", "flow", "crlf", "comment"])


def _spelled(content: dict[str, Any], snaked: bool) -> dict[str, Any]:
    return {snake(key) if snaked else key: value for key, value in content.items()}


def _as_file(path: str, content: dict[str, Any], style: str) -> tuple[str, str]:
    if style in ("json", "ascii", "noted"):
        text = json.dumps(content, ensure_ascii=style == "ascii", indent=1)
        return f"{path}.json", "// licence\n/* of it */\n" * (style == "noted") + text
    text = yaml.safe_dump(content, allow_unicode=True, default_flow_style=style == "flow")
    if style == "crlf":
        text = text.replace("\n", "\r\n")
    suffix = "yml" if style == "yml" else "yaml"
    return f"{path}.{suffix}", "# licence\n" * (style == "comment") + text


@st.composite
def _apps(draw: st.DrawFn) -> MemoryFiles:
    files: dict[str, str] = {}

    def put(path: str, content: dict[str, Any]) -> None:
        content = {**_spelled(content, draw(st.booleans())), **draw(_extra)}
        name, text = _as_file(path, content, draw(_styles))
        files[name] = text

    agents = draw(st.lists(_words, min_size=1, max_size=3, unique=True))
    put(
        "app",
        {
            "displayName": draw(_words),
            "rootAgent": agents[0],
            "globalInstruction": draw(st.none() | st.text(max_size=10)),
            "audioProcessingConfig": draw(
                st.none()
                | st.fixed_dictionaries(
                    {"synthesizeSpeechConfigs": st.dictionaries(_words, st.just({}), max_size=2)}
                )
            ),
            "variableDeclarations": [{"name": n} for n in draw(st.lists(_words, max_size=2))],
        },
    )
    for number, name in enumerate(agents):
        code = draw(
            st.sampled_from(["agents/cb.py", "agents/a0/before_model_callbacks/x/python_code.py"])
        )
        files[code] = "def before_model_callback(callback_context, llm_request):\r\n    pass\r\n"
        put(
            f"agents/a{number}/a{number}",
            {
                "displayName": name,
                "childAgents": agents[number + 1 :],
                "instruction": draw(st.text(max_size=20)),
                "beforeModelCallbacks": [
                    {"pythonCode": draw(st.sampled_from([code, "def f():\n  pass\n"]))}
                ],
            },
        )
    for number, tool in enumerate(draw(st.lists(_words, max_size=2, unique=True))):
        kind = draw(st.sampled_from(["pythonFunction", "dataStoreTool", "clientFunction"]))
        put(
            f"tools/t{number}/t{number}",
            {"displayName": tool, "timeout": "3s", kind: {"pythonCode": "def f(): pass\n"}},
        )
    for folder in RESOURCE_FOLDERS:
        if draw(st.booleans()):
            put(f"{folder}/r/{draw(st.sampled_from('rs'))}", {"displayName": draw(_words)})
    if draw(st.booleans()):
        overrides = {
            "app": draw(_extra),
            "tools": {"t0": {"timeout": "$limit"}},
            "guardrails": {"r": draw(_extra)},
            "limit": "7s",
        }
        files["environment.json"] = json.dumps(overrides)
    if draw(st.booleans()):
        put("pythonEnvFiles/pythonEnvFiles", {})
    return MemoryFiles(files)


@settings(max_examples=80, deadline=None)
@given(_apps(), st.sampled_from(list(Format)))
def test_any_app_that_is_read_survives_being_written(files: MemoryFiles, format_: Format) -> None:
    try:
        said = _said(read_files(files))
    except AppError:
        # Hypothesis complains where this becomes the rule.
        assume(False)
    once = MemoryFiles(_written(files, format_))
    assert _said(read_files(once)) == said
    described = [path for path in once.paths() if not path.endswith(".py")]
    assert all(path.endswith(format_) or path == "environment.json" for path in described)
    # Written in the other format and back, the files are the same to the byte.
    other = Format.JSON if format_ is Format.YAML else Format.YAML
    there = MemoryFiles(_written(once, other))
    back = MemoryFiles(_written(there, format_))
    assert _said(read_files(there)) == said
    if format_ is Format.JSON:
        again = MemoryFiles(_written(MemoryFiles(_written(back, other)), format_))
        assert {p: again.read(p) for p in again.paths()} == {p: back.read(p) for p in back.paths()}
