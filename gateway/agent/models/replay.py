"""The replay model: an app with golden evaluations answers as these say, with no account.

A user turn is matched with what users say in the goldens; the golden that the conversation follows
is preferred, its next turn most of all. What the golden expects of the agent in that turn is what
the model says and calls; the tools and callbacks are the app's own.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gateway import bidi
from gateway.agent.app.evaluation_files import read_evaluations
from gateway.agent.app.evaluations import Expectation, GoldenTurn, Kind, UserInput
from gateway.agent.app.layout import directory_name
from gateway.agent.app.models import END_SESSION, TRANSFER_TO_AGENT, App
from gateway.agent.likeness import likeness, words
from gateway.agent.models.base import ModelStep, Purpose
from gateway.agent.models.situation import Situation, pressed, read_input, situation_of
from gateway.agent.platform import Content, Part
from gateway.agent.prompt import agent_name, tool_name
from gateway.errors import AppError

ALIKE = 0.5
"""Likeness from which on what a user says counts as what a golden's user says."""
NEXT, SAME = 0.2, 0.1
"""What it counts for a turn to come next in the golden at hand, or to be in it at all."""
UNKNOWN = "I am sorry, my recorded conversations have no answer to that."
GREETING = "Hello. How can I help you?"
_MEMORY = "replay"


@dataclass(frozen=True, slots=True)
class _Action:
    """One thing that the agent does: a part, as JSON since parts are changed on their way."""

    part: str
    waits: bool
    """What follows needs the answer of this call."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """A golden turn as it is replayed."""

    said: tuple[str, ...]
    events: frozenset[str]
    digits: str
    contexts: tuple[str, ...]
    """The words of what the platform says for the user."""
    actions: tuple[_Action, ...]

    def match(self, situation: Situation) -> float:
        """How well the turn's user input fits what the user did, 0 to 1."""
        if situation.digits:
            return float(self.digits == situation.digits)
        if situation.words:
            return likeness(self.said, words(situation.words))
        if situation.events:
            return float(bool(self.events & _events(situation.events)))
        contexts = words(" ".join(situation.contexts))
        return likeness(self.contexts, contexts) if contexts else 0.0


@dataclass(slots=True)
class _Place:
    """Where a session stands: the golden it follows, the turn, and what of it is done."""

    golden: int = -1
    turn: int = -1
    done: int = 0


class ReplayModel:
    """Answers as the golden evaluations of the app say."""

    name = "replay"

    def __init__(self, app: App) -> None:
        """Raises AppError model.replay where the app has no golden evaluation, evaluation.*."""
        evaluations = read_evaluations(app).evaluations.values()
        # Exports name an agent by its display name, or by its folder.
        agents = {directory_name(name): name for name in app.agents}
        self._goldens = tuple(
            tuple(_replayed(turn, agents) for turn in one.golden.turns)
            for one in evaluations
            if one.golden is not None
        )
        if not self._goldens:
            raise AppError(
                "model.replay",
                "the app has no golden evaluation to replay",
                where="model.provider",
                hint="Add evaluations/NAME/NAME.yaml with golden: turns, or set another model.",
            )

    async def generate(self, step: ModelStep) -> AsyncGenerator[Part, None]:
        """What comes next in the golden turn; a guardrail's question is always answered OK."""
        if step.purpose is Purpose.GUARDRAIL:
            yield Part(text="OK")
        if step.purpose is not Purpose.ANSWER:
            return
        situation = situation_of(step)
        place: _Place = step.memory.setdefault(_MEMORY, _Place())
        if not situation.tools and not situation.tool_finished:
            found = self._find(situation, place)
            if found is None:
                for part in _unknown(situation):
                    yield part
                return
            place.golden, place.turn = found
            place.done = 0
        for action in self._next(place):
            yield Part.model_validate_json(action.part)

    async def aclose(self) -> None:
        """Nothing is open."""

    def _next(self, place: _Place) -> Iterator[_Action]:
        """The actions up to the next answer that the agent waits for."""
        if place.golden < 0:
            return
        actions = self._goldens[place.golden][place.turn].actions
        while place.done < len(actions):
            action = actions[place.done]
            place.done += 1
            yield action
            if action.waits:
                return

    def _find(self, situation: Situation, place: _Place) -> tuple[int, int] | None:
        """The golden and the turn that fit the user's input best; None: nothing is alike."""
        best: tuple[int, int] | None = None
        most = 0.0
        for golden, turns in enumerate(self._goldens):
            for index, turn in enumerate(turns):
                alike = turn.match(situation)
                if alike < ALIKE:
                    continue
                if golden == place.golden:
                    alike += NEXT if index == place.turn + 1 else SAME
                if alike > most:
                    best, most = (golden, index), alike
        return best


def _unknown(situation: Situation) -> Iterator[Part]:
    """What to do where no golden has an answer."""
    events = _events(situation.events)
    if bidi.event_text(bidi.REMOTE_DISCONNECTED) in events:
        yield Part.from_function_call(END_SESSION, {"reason": "caller hung up"})
    elif situation.words or situation.digits:
        yield Part(text=UNKNOWN)
    elif bidi.event_text(bidi.SESSION_START) in events:
        yield Part(text=GREETING)


# ---- goldens as scripts


def _replayed(turn: GoldenTurn, agents: Mapping[str, str]) -> _Turn:
    parts = [Part(text=text) for one in turn.inputs if (text := _as_read(one))]
    said, events, contexts = read_input(Content(parts=parts, role="user"))
    digits = pressed(contexts)
    return _Turn(
        said=tuple(words(said)),
        events=_events(events),
        digits=digits,
        contexts=() if digits else tuple(words(" ".join(contexts))),
        actions=tuple(_actions(turn, agents)),
    )


def _as_read(given: UserInput) -> str:
    """The input as the model reads it."""
    if given.kind == "dtmf":
        return bidi.dtmf_text(given.value)
    if given.event:
        return bidi.event_text(given.event)
    return str(given.value) if given.kind == "text" else ""


def _events(names: Iterable[str]) -> frozenset[str]:
    """Events by one spelling each."""
    return frozenset(map(bidi.event_text, names))


def _actions(turn: GoldenTurn, agents: Mapping[str, str]) -> Iterator[_Action]:
    """What the agent does in the turn. Calls that follow one another are made together."""
    done = [part for one in turn.expectations for part in _parts(one, agents)]
    for index, part in enumerate(done):
        if part is None:
            continue
        following = done[index + 1] if index + 1 < len(done) else None
        call = part.function_call
        together = following is not None and following.function_call is not None
        # What stands behind a hand-over is the other agent's to do.
        waits = call is not None and (not together or call.name == TRANSFER_TO_AGENT)
        yield _Action(part.model_dump_json(exclude_none=True), waits)


def _parts(expectation: Expectation, agents: Mapping[str, str]) -> Iterator[Part | None]:
    """The parts that an expectation asks for; None: an answer of a tool lies between."""
    value = expectation.value
    if expectation.kind is Kind.AGENT_RESPONSE:
        for chunk in value.get("chunks") or ():
            yield from _chunk(chunk)
    elif expectation.kind is Kind.TOOL_CALL:
        yield Part.from_function_call(tool_name(value), dict(value.get("args") or {}))
    elif expectation.kind is Kind.AGENT_TRANSFER:
        name = agent_name(value)
        yield Part.from_agent_transfer(agents.get(directory_name(name), name))
    elif expectation.kind in (Kind.TOOL_RESPONSE, Kind.MOCK_TOOL_RESPONSE):
        yield None


def _chunk(chunk: Mapping[str, Any]) -> Iterator[Part]:
    text = chunk.get("text") or chunk.get("transcript")
    payload = chunk.get("payload")
    if isinstance(text, str) and text:
        yield Part(text=text)
    elif isinstance(payload, Mapping):
        yield Part.from_json(bidi.dump(payload))
