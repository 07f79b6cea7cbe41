"""What app code sees of the history, and what the model reads."""

from __future__ import annotations

from gateway.agent import history
from gateway.agent.history import History
from gateway.agent.platform import Content, Part


def _add(log: History, author: str, role: str, *parts: Part) -> None:
    content = Content.model_validate({"role": role})
    content.parts = list(parts)
    log.add(author, content, "turn-1", 0)


def _read(log: History) -> list[tuple[str | None, list[str | None]]]:
    return [(c.role, [p.text for p in c.parts]) for c in log.contents()]


def test_payloads_never_reach_the_model_and_transcripts_do() -> None:
    log = History()
    _add(
        log,
        "Main",
        "model",
        Part.from_json('{"chips": [1]}'),
        Part.from_json('{"audioUri": "a", "transcript": "said"}'),
        Part.from_customized_response(content="warned"),
        Part(text="plain"),
    )
    _add(log, "Main", "model", Part.from_json('{"chips": [1]}'))
    assert _read(log) == [("model", ["said", "warned", "plain"])]
    assert len(log.events()[0].parts()) == 4


def test_notes_stand_before_the_last_event_and_app_code_does_not_see_them() -> None:
    log = History()
    log.note(["lost: there is no event yet"])
    _add(log, "user", "user", Part(text="hi"))
    log.note(["<state_update>a: 1</state_update>"])
    _add(log, "Main", "model", Part(text="ho"))
    log.note(["<state_update>a: 2</state_update>"])
    assert _read(log) == [
        ("user", ["<state_update>a: 1</state_update>", "hi"]),
        ("user", ["<state_update>a: 2</state_update>"]),
        ("model", ["ho"]),
    ]
    assert [p.text for e in log.events() for p in e.parts()] == ["hi", "ho"]


def test_old_turns_are_forgotten_whole() -> None:
    log = History()
    for _ in range(history.MAX_EVENTS):
        _add(log, "user", "user", Part(text="hi"))
        _add(log, "Main", "model", Part(text="ho"))
    events = log.events()
    assert len(events) <= history.MAX_EVENTS
    assert events[0].is_user()
