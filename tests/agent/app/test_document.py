"""One file as data with line numbers, the same from JSON and from YAML."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.agent.app import document
from gateway.agent.app.document import Document, to_json, to_yaml
from gateway.errors import AppError

YAML = """\
# licence
displayName: Main
tools:
  - a
  - b: 1
    c: [1, 2]
text: |
  one
"""
JSON = """\
{
  "displayName": "Main",
  "tools": ["a",
    {"b": 1,
     "c": [1, 2]}],
  "text": "{[,:]}\\"",
  "last": true
}"""


def _error(name: str, text: str) -> AppError:
    with pytest.raises(AppError) as caught:
        Document(name, text)
    return caught.value


@pytest.mark.parametrize(
    ("path", "in_yaml", "in_json"),
    [
        (("displayName",), 2, 2),
        (("display_name",), 2, 2),
        (("tools", 0), 4, 3),
        (("tools", 1, "b"), 5, 4),
        (("tools", 1, "c", 1), 6, 5),
        (("tools", 1, "absent", "deeper"), 5, 4),
        (("text",), 7, 6),
    ],
)
def test_every_key_and_item_has_its_line(
    path: tuple[str | int, ...], in_yaml: int, in_json: int
) -> None:
    assert Document("a.yaml", YAML).line(*path) == in_yaml
    assert Document("a.json", JSON).line(*path) == in_json


def test_what_is_absent_at_the_top_has_no_line() -> None:
    assert Document("a.yaml", YAML).line("absent") is None


def test_a_key_that_is_there_twice_is_found() -> None:
    assert Document("a.yaml", "a: 1\nb: {c: 1, c: 2}\n").find_duplicates() == [("c", 2)]
    assert Document("a.json", '{"a": [{"b": 1}, {"b": 1}],\n"a": 2}').find_duplicates() == [
        ("a", 2)
    ]


def test_yaml_scalars_are_those_of_its_newer_schema() -> None:
    text = "a: no\nb: 0123\nc: 1:30\nd: 2024-05-01\ne: 1e3\nf: ~\ng:\nh: True\nno: 0\n200: x\n"
    assert Document("a.yaml", text).data == {
        "a": "no",
        "b": "0123",
        "c": "1:30",
        "d": "2024-05-01",
        "e": 1000.0,
        "f": None,
        "g": None,
        "h": True,
        "no": 0,
        "200": "x",
    }


def test_anchors_and_merges_are_resolved() -> None:
    text = "base: &b {x: 1, y: 2}\none: {<<: *b, y: 3}\ntwo: {<<: [*b, {z: 4}]}\n"
    assert Document("a.yaml", text).data == {
        "base": {"x": 1, "y": 2},
        "one": {"x": 1, "y": 3},
        "two": {"x": 1, "y": 2, "z": 4},
    }


def test_json_may_have_comments_and_a_licence_header() -> None:
    text = '# licence\n/* more\nof it */\n{"a": "http://x", // why\n"b": }'
    assert _error("a.json", text).where == "a.json:5"
    assert Document("a.json", text.replace("}", "1}")).data == {"a": "http://x", "b": 1}
    assert Document("a.json", text.replace("}", "1}")).line("b") == 5


def test_an_empty_file_is_an_empty_mapping() -> None:
    assert Document("a.yaml", "# nothing\n").data == {}
    assert Document("a.json", " \n").data == {}


@pytest.mark.parametrize(
    ("name", "text", "code", "where"),
    [
        ("a.yaml", "a: 1\nb: [", "app.yaml", "a.yaml:2"),
        ("a.yaml", "a: !!python/name:os.system x", "app.yaml", "a.yaml:1"),
        ("a.yaml", "a: !thing {b: 1}", "app.yaml", "a.yaml:1"),
        ("a.yaml", "a: 1\n? [x]\n: 1", "app.yaml", "a.yaml:2"),
        ("a.yaml", "a: 1\n<<: 2", "app.yaml", "a.yaml:2"),
        ("a.yaml", "a: &a [*a]", "app.yaml", "a.yaml"),
        ("a.yaml", "a: !!int x", "app.yaml", "a.yaml:1"),
        ("a.yaml", "a: 9e999", "app.yaml", "a.yaml:1"),
        ("a.yaml", "a: " + "[" * 400 + "]" * 400, "app.yaml", "a.yaml"),
        ("a.yaml", "a: 1\n---\nb: 1", "app.yaml", "a.yaml:2"),
        ("a.yaml", "- a", "app.shape", "a.yaml"),
        ("a.json", '{"a": NaN}', "app.json", "a.json"),
        ("a.json", '{"a": 1e999}', "app.json", "a.json"),
        ("a.json", '{"a": ' + "9" * 5000 + "}", "app.json", "a.json"),
        ("a.json", "[" * 100_000, "app.json", "a.json"),
        ("a.json", '{"a": "\\ud800"}', "app.encoding", "a.json"),
        ("a.json", '"a"', "app.shape", "a.json"),
    ],
)
def test_what_cannot_be_data_is_an_error_with_its_line(
    name: str, text: str, code: str, where: str
) -> None:
    error = _error(name, text)
    assert error.code == code
    assert (error.where or "").removesuffix(":1") == where.removesuffix(":1")


def test_aliases_that_multiply_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "MAX_VALUES", 1000)
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 8)}]" for n in range(1, 8)]
    assert "more than 1000" in _error("a.yaml", "\n".join(lines)).message


def test_aliases_may_repeat_some_values_and_not_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "MAX_REPEATED", 8)
    text = "a: &a [1, 2, 3]\nb: *a\nc: {d: *a}\n"
    assert Document("a.yaml", text).data == {"a": [1, 2, 3], "b": [1, 2, 3], "c": {"d": [1, 2, 3]}}
    error = _error("a.yaml", f"{text}e: *a\n")
    assert "repeat more than 8" in error.message
    assert (error.where or "").startswith("a.yaml:")


def test_yaml_is_written_for_people() -> None:
    data = {"displayName": "Main", "instruction": "one\ntwo\n", "n": "012", "y": "yes", "é": []}
    assert to_yaml(data) == (
        "displayName: Main\ninstruction: |\n  one\n  two\nn: '012'\ny: 'yes'\né: []\n"
    )
    assert to_json({"é": "'"}) == '{\n  "é": "\'"\n}\n'


_texts = st.text(max_size=8) | st.from_regex(r"[-+0-9.eExoyn:~_<# \n\t|>]{0,7}", fullmatch=True)
_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | _texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=150)
@given(st.dictionaries(_texts, _values, max_size=4))
def test_any_data_survives_both_formats(data: dict[str, Any]) -> None:
    # The text tells 1 from 1.0 and from true, which compare equal.
    assert repr(Document("a.json", to_json(data)).data) == repr(data)
    assert repr(Document("a.yaml", to_yaml(data)).data) == repr(data)


@settings(max_examples=100)
@given(st.dictionaries(_texts, _values, max_size=4))
def test_what_other_writers_wrote_is_read_as_they_meant_it(data: dict[str, Any]) -> None:
    for text in (yaml.safe_dump(data), yaml.safe_dump(data, default_flow_style=True)):
        assert Document("a.yaml", text).data == data
    assert Document("a.json", json.dumps(data).replace("'", "\\u0027")).data == data


@settings(max_examples=150)
@given(
    st.sampled_from(["a.json", "a.yaml"]), st.text(max_size=30) | st.binary(max_size=20).map(str)
)
def test_any_text_is_data_or_an_error(name: str, text: str) -> None:
    try:
        data = Document(name, text).data
    except AppError as error:
        assert error.where  # noqa: PT017
    else:
        assert isinstance(data, dict)
