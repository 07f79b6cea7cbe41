"""App code compiled and found."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from gateway.agent.app import read_app
from gateway.agent.app.models import App, SourceCode
from gateway.agent.code import FALLBACKS, SESSION_NAMES, AppCode, CodeSpace, undefined
from gateway.agent.platform import INJECTED
from gateway.errors import AppError
from tests.agent.made import make_app, python_tool
from tests.agent.talk import talk, texts


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


async def test_the_names_that_a_session_gives_are_known_to_the_check(tmp_path: Path) -> None:
    code = "def t():\n  return ' '.join(sorted(globals()))\n"
    script = {
        "rules": [{"when": {"tool": "t"}, "do": [{"say": "{result}"}]}],
        "default": [{"call": {"tool": "t"}}],
    }
    app = make_app(
        tmp_path, script=script, agents={"Main": {"tools": ["t"]}}, files=python_tool("t", code)
    )
    async with talk(app) as client:
        (said,) = texts(await client.say("Hello."))
    given = {name for name in said.split() if not name.startswith("__")}
    assert given - {"t"} == SESSION_NAMES | INJECTED.keys() | FALLBACKS.keys()


@pytest.mark.parametrize(
    "code",
    [
        "def t(a, *b, c=1, **d):\n  return [a, b, c, d, (lambda e: e)(1), [f for f in b]]",
        "def t():\n  global n\n  n = 1\ndef u():\n  return n",
        "try:\n  import a.b as c, d.e\nexcept ImportError as error:\n  print(error, d)\nc",
        "match 1:\n  case {'a': x, **y}:\n    x, y\n  case [*z]:\n    z",
        "class A:\n  def b(self) -> Part: return A\n",
        "from x import *\nanything",
        "try:\n  maybe\nexcept NameError:\n  pass",
    ],
)
def test_what_is_defined_in_any_way_counts_as_defined(code: str) -> None:
    assert undefined(ast.parse(code)) == {}


def test_what_nothing_defines_has_the_line_of_its_first_use() -> None:
    code = "def t():\n  return a.b\nx = a + len(c) + json.d"
    assert undefined(ast.parse(code)) == {"a": 2, "c": 3}


IMPORTS = """
import ces_requests
import ces_requests as http
from ces_requests import post

def before_model_callback(callback_context, llm_request):
    answers = [
        ces_requests.get("http://127.0.0.1:9/"),
        http.request("PUT", url="http://127.0.0.1:9/"),
        post(url="http://127.0.0.1:9/", json={}),
    ]
    return LlmResponse.from_parts([Part.from_text(str([a.status_code for a in answers]))])
"""


async def test_what_the_platform_gives_may_be_imported_as_well(tmp_path: Path) -> None:
    files = {"cb.py": IMPORTS}
    agents = {"Main": {"beforeModelCallbacks": [{"pythonCode": "cb.py"}]}}
    async with talk(make_app(tmp_path, agents=agents, files=files)) as client:
        assert texts(await client.say("hello")) == ["[0, 0, 0]"]
