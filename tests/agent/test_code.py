"""App code compiled and found."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.agent.app import read_app
from gateway.agent.app.models import App, SourceCode
from gateway.agent.code import AppCode, CodeSpace
from gateway.errors import AppError


def _app(tmp_path: Path, code: str) -> tuple[App, SourceCode]:
    for name, text in {
        "app.yaml": "rootAgent: Main",
        "agents/Main/Main.yaml": "displayName: Main",
        "tools/t/t.yaml": "displayName: t\npythonFunction: {pythonCode: tools/t/code.py}",
        "tools/t/code.py": code,
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    app = read_app(tmp_path)
    source = app.tools["t"].code
    assert source is not None
    return app, source


def test_a_syntax_error_names_file_and_line(tmp_path: Path) -> None:
    app, _ = _app(tmp_path, "def t():\n  return (\n")
    with pytest.raises(AppError) as caught:
        AppCode(app)
    assert caught.value.code == "app.syntax"
    assert caught.value.where == "tools/t/code.py:2"


def test_names_that_samples_take_for_granted_are_there_with_a_warning(tmp_path: Path) -> None:
    code = "def t() -> Optional[str]:\n  return json.dumps({'a': re.sub('x', 'y', 'x')})\n"
    app, source = _app(tmp_path, code)
    compiled = AppCode(app)
    (warning,) = compiled.warnings
    assert warning.message == "uses without importing: Optional, json, re"
    assert CodeSpace(compiled, {}).function(source, "t")() == '{"a": "y"}'


def test_imported_names_are_no_warning(tmp_path: Path) -> None:
    code = "import json\nfrom typing import Optional\ndef t() -> Optional[str]:\n  json.dumps(1)\n"
    assert AppCode(_app(tmp_path, code)[0]).warnings == []


def test_each_session_has_its_own_globals_and_a_file_runs_once(tmp_path: Path) -> None:
    app, source = _app(tmp_path, "n = 0\ndef t():\n  global n\n  n += 1\n  return n\n")
    compiled = AppCode(app)
    first, second = CodeSpace(compiled, {}), CodeSpace(compiled, {})
    assert [first.function(source, "t")() for _ in range(2)] == [1, 2]
    assert second.function(source, "t")() == 1


def test_an_empty_name_means_the_first_function(tmp_path: Path) -> None:
    app, source = _app(tmp_path, "def first():\n  return 1\ndef second():\n  return 2\n")
    assert CodeSpace(AppCode(app), {}).function(source, "")() == 1


@pytest.mark.parametrize(("code", "name"), [("x = 1\n", ""), ("def a(): pass\n", "b")])
def test_a_missing_function_is_named(tmp_path: Path, code: str, name: str) -> None:
    app, source = _app(tmp_path, code)
    with pytest.raises(AppError) as caught:
        CodeSpace(AppCode(app), {}).function(source, name)
    assert caught.value.code == "app.no_function"
