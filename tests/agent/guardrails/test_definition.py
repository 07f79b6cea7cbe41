"""Guardrails as an export has them: words to find, defaults, clear errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.agent.guardrails.definition import (
    ActionKind,
    ContentFilter,
    Guardrail,
    plain_letters,
    read_guardrail,
)
from gateway.errors import AppError
from tests.agent.made import made_app


def _read(folder: Path, content: dict[str, Any]) -> Guardrail | None:
    return read_guardrail(made_app(folder), "G", {"enabled": True, **content})


def _filter(folder: Path, **content: Any) -> ContentFilter:
    guard = _read(folder, {"contentFilter": content})
    assert guard is not None
    assert guard.filter is not None
    return guard.filter


@pytest.mark.parametrize(
    ("match_type", "word", "text", "found"),
    [
        ("SIMPLE_STRING_MATCH", "cash", "Cashback", True),
        ("SIMPLE_STRING_MATCH", "c.sh", "cash", False),
        ("WORD_BOUNDARY_STRING_MATCH", "cash", "Cashback", False),
        ("WORD_BOUNDARY_STRING_MATCH", "cash", "in CASH, please", True),
        ("WORD_BOUNDARY_STRING_MATCH", "c++", "I write c++ daily", True),
        ("WORD_BOUNDARY_STRING_MATCH", "c++", "abc++", False),
        ("REGEXP_MATCH", r"\d{4}-\d{4}", "it is 1234-5678", True),
        ("REGEXP_MATCH", r"^only$", "not only", False),
    ],
)
def test_three_ways_to_match(
    tmp_path: Path, match_type: str, word: str, text: str, found: bool
) -> None:
    banned = _filter(tmp_path, bannedContents=[word], matchType=match_type)
    assert banned.finds(text, by_user=True) is found
    assert banned.finds(text, by_user=False) is found


def test_marks_on_letters_count_unless_they_are_disregarded(tmp_path: Path) -> None:
    strict = _filter(tmp_path, bannedContents=["café"])
    lenient = _filter(tmp_path, bannedContents=["café"], disregardDiacritics=True)
    assert not strict.finds("cafe", by_user=True)
    assert lenient.finds("a CAFE", by_user=True)
    assert lenient.finds("a Café", by_user=True)


def test_each_direction_has_its_own_words(tmp_path: Path) -> None:
    banned = _filter(
        tmp_path, bannedContentsInUserInput=["mine"], bannedContentsInAgentResponse=["yours"]
    )
    assert banned.finds("mine", by_user=True)
    assert not banned.finds("mine", by_user=False)
    assert banned.finds("yours", by_user=False)
    assert not banned.finds("yours", by_user=True)


@given(st.text(max_size=40))
def test_plain_letters_stay_plain(text: str) -> None:
    assert plain_letters(plain_letters(text)) == plain_letters(text)


def test_what_is_not_enabled_guards_nothing(tmp_path: Path) -> None:
    app = made_app(tmp_path)
    assert read_guardrail(app, "G", {"contentFilter": {"bannedContents": ["x"]}}) is None


def test_defaults_of_an_action_and_of_a_policy(tmp_path: Path) -> None:
    guard = _read(tmp_path, {"llmPolicy": {"prompt": "No politics."}})
    assert guard is not None
    assert guard.action.kind is ActionKind.GENERATE
    policy = guard.policy
    assert policy is not None
    assert (policy.user, policy.agent, policy.fail_open) == (True, True, False)
    assert (policy.max_messages, policy.short_utterances) == (10, False)


def test_a_custom_policy_of_prompt_security_has_its_own_fail_open(tmp_path: Path) -> None:
    custom = {"prompt": "No tricks.", "failOpen": True, "policyScope": "USER_QUERY"}
    guard = _read(tmp_path, {"llmPromptSecurity": {"failOpen": False, "customPolicy": custom}})
    assert guard is not None
    assert guard.policy is not None
    assert guard.policy.fail_open is True
    assert guard.policy.agent is False


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"contentFilter": {"bannedContents": ["("], "matchType": "REGEXP_MATCH"}},
        {"contentFilter": {}, "action": {"transferAgent": {"agent": "Nobody"}}},
        {"contentFilter": {}, "action": {"respondImmediately": {"responses": []}}},
        {"llmPolicy": {"prompt": " "}},
    ],
)
def test_a_wrong_guardrail_is_told_with_its_place(tmp_path: Path, content: dict[str, Any]) -> None:
    with pytest.raises(AppError) as caught:
        _read(tmp_path, content)
    assert caught.value.code == "app.guardrail"
    assert str(caught.value.where).startswith("guardrails/G")
