"""A check finds every problem at once: code, severity, file, line, way out."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.agent.app import read_app
from gateway.agent.app.check import Code, check_app
from gateway.agent.code import AppCode
from gateway.demo import APP_PATH, TEMPLATE_PATH
from gateway.errors import AppError
from tests.agent.app.check.app import GOOD, problems, report, said
from tests.agent.app.check.case import Case, app, callback, main, other
from tests.agent.app.check.cases import CASES
from tests.agent.talk import APPS

_GOLDEN = """\
golden:
  turns:
    - steps:
        - userInput: {event: {event: session start}}
        - expectation: {toolCall: {tool: look_up, args: {tool: none}}}
        - expectation: {toolCall: {tool: end_session}}
        - expectation: {agentTransfer: {targetAgent: projects/p/agents/x}}
"""


def _id(case: Case) -> str:
    return f"{case.code}-{case.place}-{CASES.index(case)}"


@pytest.mark.parametrize("case", CASES, ids=_id)
def test_every_problem_has_its_code_and_place(tmp_path: Path, case: Case) -> None:
    found = problems(tmp_path, case.files)
    wanted = (str(case.code), case.severity, case.place)
    assert wanted in [(p.code, p.severity, p.place) for p in found]
    assert any(case.says in p.message for p in found)
    if case.alone:
        assert len(found) == 1, [p.to_json() for p in found]


def test_every_code_is_proven() -> None:
    assert {case.code for case in CASES} == set(Code)


def test_the_good_app_has_no_problem(tmp_path: Path) -> None:
    assert said(tmp_path, {}) == []


@pytest.mark.parametrize("path", [APP_PATH, TEMPLATE_PATH], ids=["demo", "template"])
def test_what_we_ship_has_no_problem(path: Path) -> None:
    assert check_app(path).problems == ()


def test_all_problems_are_found_at_once_and_sorted_by_place(tmp_path: Path) -> None:
    files = {
        **callback("    tools.none({})\n"),
        "agents/Main/instruction.txt": "{@TOOL: none}\n{{nothing}}\n",
        "tools/b/b.json": "{",
    }
    # With a file that cannot be read, nothing is concluded from what is not in it.
    assert [code for code, _ in said(tmp_path, files)] == ["app.json"]
    del files["tools/b/b.json"]
    (tmp_path / "tools/b/b.json").unlink()
    assert said(tmp_path, files) == [
        ("app.reference", "agents/Main/cb.py:3"),
        ("app.reference", "agents/Main/instruction.txt:1"),
        ("app.undeclared_variable", "agents/Main/instruction.txt:2"),
    ]


_FAULT = {"tools/zz/zz.yaml": other("clientFunction: {name: zz}\ntimeout: 8 seconds\n", "zz")}
"""Something for which a session refuses the app as a whole."""
_UNREADABLE = {"app.json", "app.yaml", "app.shape", "app.encoding", "app.ambiguous", "app.template"}
"""After these, nothing is concluded from what the files do not say."""


@pytest.mark.parametrize("case", CASES, ids=_id)
def test_no_problem_hides_another(tmp_path: Path, case: Case) -> None:
    found = said(tmp_path, {**case.files, **_FAULT})
    assert (str(case.code), case.place) in found
    if case.code not in _UNREADABLE:
        assert ("app.duration", "tools/zz/zz.yaml:3") in found


def test_every_evaluation_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    files = {
        **main("childAgents: [Nobody]\n"),
        "evaluations/b/b.yaml": other("golden: {turns: [{steps: [{userInput: {a: 1}}]}]}\n"),
        "evaluations/c/c.yaml": other("golden: {turns: 3}\n", "C"),
        "evaluations/d/d.yaml": other("", "D"),
    }
    assert said(tmp_path, files) == [
        ("app.reference", "agents/Main/Main.yaml:6"),
        ("evaluation.step", "evaluations/b/b.yaml:2"),
        ("evaluation.type", "evaluations/c/c.yaml:2"),
        ("evaluation.step", "evaluations/d/d.yaml:1"),
    ]


@pytest.mark.parametrize(
    ("files", "place"),
    [
        (
            {
                "guardrails/b/b.yaml": other(
                    "enabled: true\ncontentFilter: {}\naction:\n  transferAgent:\n"
                    "    agent: Nobody\n"
                )
            },
            "guardrails/b/b.yaml:6",
        ),
        (main("transferRules:\n  - direction: X\n    childAgent: Nobody\n"), None),
    ],
)
def test_what_two_checks_find_is_told_once(
    tmp_path: Path, files: dict[str, str | bytes | None], place: str | None
) -> None:
    found = [where for code, where in said(tmp_path, files) if code != "app.enum"]
    assert found == [place or "agents/Main/Main.yaml:8"]


def test_what_a_broken_file_would_have_named_is_not_reported(tmp_path: Path) -> None:
    files = {"agents/Main/Main.yaml": GOOD["agents/Main/Main.yaml"] + "tools: [\n"}
    assert said(tmp_path, files) == [("app.yaml", "agents/Main/Main.yaml:6")]


def test_a_wrong_name_is_answered_with_the_nearest(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, {"agents/Main/instruction.txt": "{@TOOL: lookup}"})
    assert "'look_up'" in problem.hint


def test_a_wrong_name_in_an_evaluation_is_answered_with_what_there_is(tmp_path: Path) -> None:
    expected = "{golden: {turns: [{steps: [{expectation: {toolCall: {tool: zzz}}}]}]}}"
    (problem,) = problems(tmp_path, {"evaluations/b/b.yaml": expected})
    assert "'look_up'" in problem.hint
    assert "None" not in problem.hint


def test_code_and_texts_inside_objects_have_their_lines(tmp_path: Path) -> None:
    block = "displayName: Main\ninstruction: |\n  one\n  {@TOOL: none}\n"
    inline = 'displayName: Main\n\ninstruction: "one\\n\\n{@TOOL: none}"\n'
    gone = {"agents/Main/instruction.txt": None, "agents/Main/cb.py": None}
    for text, line in ((block, 4), (inline, 3)):
        found = said(tmp_path, {**gone, "agents/Main/Main.yaml": text})
        assert found == [("app.reference", f"agents/Main/Main.yaml:{line}")]


def test_one_file_of_code_that_many_use_is_reported_once(tmp_path: Path) -> None:
    shared = "beforeModelCallbacks: [{pythonCode: agents/Main/cb.py}]\n"
    files = {
        **main("childAgents: [B]\n"),
        **callback("    x = = 1\n"),
        "agents/B/B.yaml": other(shared),
    }
    assert said(tmp_path, files) == [("app.syntax", "agents/Main/cb.py:3")]


@pytest.mark.parametrize(
    "files",
    [
        main("afterModelCallbacks: [{pythonCode: agents/Main/off.py, disabled: true}]\n")
        | {"agents/Main/off.py": "broken ("},
        main("childAgents: [B, C]\n")
        | {
            "agents/B/B.yaml": other("childAgents: [C]\n"),
            "agents/C/C.yaml": other("description: Shared utility agent.\n", "C"),
        },
        main("toolsets: [{toolset: S}]\n")
        | {
            "toolsets/s/s.yaml": "displayName: S\n"
            "openApiToolset: {openApiSchema: toolsets/s/x.yaml}\n",
            "toolsets/s/x.yaml": "{openapi: 3.0.0, paths: {/x: {get: {operationId: find}}}}",
            "agents/Main/instruction.txt": "{@TOOL: S_find}",
        }
        | callback("    tools.S_find({})\n"),
        {"tools/e/e.yaml": "displayName: end_session\nsystemTool: {name: end_session}\n"},
        {
            "tools/b/b.yaml": "displayName: b\ndataStoreTool: {name: b}\n"
            "toolFakeConfig: {codeBlock: {pythonCode: tools/b/f.py}}\n",
            "tools/b/f.py": "def fake_tool_call(tool, input, callback_context):\n    return None\n",
        },
        app("timeZoneSettings: {timeZone: $zone}\n") | {"environment.json": '{"zone": "UTC"}'},
        callback("    callback_context.state['_scratch'] = 1\n"),
        {"agents/Main/instruction.txt": "It is {current_date}, say {known}. Write {} or {1}.\n"},
        callback("    P = {'audioUri': 'a.wav', 'cancellable': bool(1)}\n") | {"a.wav": b""},
        callback("    password = 'changeme-example'\n    token_key = get_variable('known')\n"),
        {"agents/Main/cb.py": "def before_model_callback(*args):\n    pass\n"},
        app("futureSettings: {a: 1}\nexecutionPlan: 3\n"),
        *(
            callback(f"    u = str(1)\n    P = {written}\n")
            for written in (
                """f'{{"audioUri": "{u}", "cancellable": true}}'""",
                """f'{{"audioUri": "{u}", "cancellable": {u}}}'""",
                """f'{{"audioUri": "a" {u}}}'""",
                """'{"audioUri": "' + u + '", "cancellable": true}'""",
                """'{{"audioUri": "{}"}}'.format(u)""",
                """'{"audioUri": "%s", "cancellable": %s}' % (u, u)""",
                """'{"audioUri": "'\n    P += u""",
                """'{{"audioUri": "{}"}}'\n    P = P.format(u)""",
                """{}\n    P['audio_file'] = u""",
                """{'audioUri': u}\n    P = {}\n    P['cancelable'] = True""",
                """dict(audioUri=u, cancellable=True)""",
                """1 + 2 + len(u)""",
            )
        ),
        {
            "evaluations/b/b.yaml": other(_GOLDEN.replace("look_up", "My_Shop_find_it")),
            "toolsets/s/s.yaml": "displayName: My Shop\n"
            "openApiToolset: {openApiSchema: toolsets/s/x.yaml}\n",
            "toolsets/s/x.yaml": "{openapi: 3.0.0, paths: {/x: {get: {operationId: find-it}}}}",
        },
        {
            "evaluations/b/b.yaml": other(_GOLDEN.replace("look_up", "S_anything")),
            "toolsets/s/s.yaml": other("mcpToolset: {serverAddress: https://x.example}\n", "S"),
        },
        {"evaluations/b/b.yaml": other(_GOLDEN)},
        {"tools/look_up/code.py": "def look_up(a: str = '', *, b: int = 0) -> dict:\n    pass\n"},
        {
            "tools/b/b.yaml": "displayName: b\nclientFunction: {name: b}\n"
            "toolFakeConfig: {codeBlock: {pythonCode: tools/b/f.py}}\n",
            "tools/b/f.py": "def helper(): pass\ndef fake_b(tool, input, callback_context): pass\n",
        },
        *(
            {"toolsets/m/m.yaml": other(f"mcpToolset: {{customHeaders: {{X: {value}}}}}\n", "M")}
            for value in ("$context.turn_index", "$context.variables.known", "$context.variables")
        ),
        {
            "evaluations/b/b.yaml": other(_GOLDEN),
            "tools/look_up/look_up.yaml": GOOD["tools/look_up/look_up.yaml"]
            + "name: projects/p/tools/x\n",
        },
        main("toolsets: [{toolset: M, toolIds: [whatever]}]\n")
        | {"toolsets/m/m.yaml": other("mcpToolset: {serverAddress: https://x.example}\n", "M")},
        app("languageSettings: {fallbackAction: escalate}\n"),
        app("languageSettings: {fallbackAction: look_up}\n"),
        app("languageSettings: {fallbackAction: projects/p/tools/x}\n"),
        {
            "agents/Main/cb.py": "def before_model_callback(a, b, *, c=1):\n    pass\n",
            "tools/look_up/look_up.yaml": "displayName: look_up\n"
            "pythonFunction: {pythonCode: tools/look_up/code.py}\n",
        },
        callback("    print([y for y in (1,)], Optional_, Part)\nOptional_ = 1\n"),
        callback("    match 1:\n        case {**rest}:\n            print(rest)\n"),
        callback("    try:\n        extra\n    except NameError:\n        pass\n"),
        callback("    import orjson, ces_requests\n    ces_requests.get(orjson.dumps(1))\n"),
        callback("    try:\n        import pandas\n    except ImportError:\n        pass\n"),
        callback("import typing\nif typing.TYPE_CHECKING:\n    from gecx.types import Tool\n"),
        {"agents/Main/cb.py": f"from math import *\n{GOOD['agents/Main/cb.py']}    sin(1)\n"},
    ],
)
def test_what_is_right_is_not_reported(
    tmp_path: Path, files: dict[str, str | bytes | None]
) -> None:
    assert [p.to_json() for p in problems(tmp_path, files)] == []


def test_a_script_that_cannot_be_used_is_a_problem(tmp_path: Path) -> None:
    script = "rules:\n  - when: {user: a}\n    dance: 1\n"
    ((code, place),) = said(tmp_path, {"scripted_model.yaml": script})
    assert code.startswith("script.")
    assert place == "scripted_model.yaml:3"


def test_a_secret_is_never_repeated(tmp_path: Path) -> None:
    key = "AIza" + "s3cr3t" * 5 + "abcde"
    files = {**callback(f"    K = '{key}'\n"), "a.txt": "password: 'hunter22!x'"}
    found = report(tmp_path, files)
    assert len(found.problems) == 2
    assert key not in str(found.to_json())
    assert "hunter22" not in str(found.to_json())


def test_a_zip_is_checked_like_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**GOOD, "agents/Main/cb.py": "x = = 1"}.items():
            archive.writestr(f"My_App/{name}", text)
    (problem,) = check_app(path).problems
    assert (problem.code, problem.place) == ("app.syntax", "agents/Main/cb.py:1")


def test_where_there_is_no_app_there_is_no_report(tmp_path: Path) -> None:
    for path, code in ((tmp_path, "app.no_app_file"), (tmp_path / "none", "app.missing")):
        with pytest.raises(AppError) as caught:
            check_app(path)
        assert caught.value.code == code


def test_the_small_apps_of_the_tests_can_be_checked() -> None:
    for path in sorted(APPS.iterdir()):
        assert check_app(path).path == str(path)


_pieces = st.sampled_from([text for case in CASES for text in case.files.values() if text])


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([*GOOD, "environment.json", "tools/b/b.yaml"]), _pieces, max_size=3
    )
)
def test_an_app_without_errors_can_be_read_and_compiled(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, str | bytes]
) -> None:
    folder = tmp_path_factory.mktemp("app")
    if report(folder, files).errors == 0:
        AppCode(read_app(folder))
