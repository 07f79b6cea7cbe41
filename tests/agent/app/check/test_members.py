"""What is asked of the platform's objects exists; what is the author's own is not judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.app.check.app import problems

CALLBACK = "agents/Main/cb.py"
HEAD = "def before_model_callback(callback_context, llm_request):\n"


def found(folder: Path, body: str, head: str = HEAD) -> list[str]:
    text = head + "".join(f"    {line}\n" for line in body.splitlines())
    return [f"{p.message} / {p.hint}" for p in problems(folder, {CALLBACK: text})]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("callback_context.get_varible('x')", "Did you mean 'get_variable'?"),
        ("callback_context.save_artifact('x')", "CallbackContext has no 'save_artifact'"),
        ("return LlmResponse.from_part([])", "Did you mean 'from_parts'?"),
        ("llm_request.zzz", "It has config, contents, model."),
    ],
)
def test_what_does_not_exist_is_told_with_what_does(tmp_path: Path, body: str, says: str) -> None:
    assert says in found(tmp_path, body)[0]


@pytest.mark.parametrize(
    "body",
    [
        "callback_context.state['_x'] = callback_context.variables",
        "callback_context.events[-1].parts()[0].anything",
        "if hasattr(callback_context, 'more'): callback_context.more()",
        "callback_context = 5\ncallback_context.bit_length()",
        "callback_context.own = 5\ncallback_context.own",
        "class Part:\n    mine = 1\nPart.mine",
        "import collections as Content\nContent.deque",
        "return Content().part",
        "llm_request.model_dump()",
        "def helper(context): return context.whatever",
        "for Event in (1, 2): Event.real",
        "context.function_call_id",
    ],
)
def test_what_is_there_or_the_authors_own_is_no_problem(tmp_path: Path, body: str) -> None:
    assert found(tmp_path, body) == []


def test_an_annotation_says_what_a_parameter_is(tmp_path: Path) -> None:
    head = "def before_model_callback(ctx: CallbackContext, req: 'LlmRequest'):\n"
    assert "no 'nothing'" in found(tmp_path, "ctx.nothing", head)[0]
    head = "def before_model_callback(callback_context: dict, llm_request):\n"
    assert found(tmp_path, "callback_context.keys()", head) == []
