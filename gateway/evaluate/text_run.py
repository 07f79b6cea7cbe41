"""Golden evaluations in text, over the wire to a real runtime process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway import bidi
from gateway.agent.app.evaluations import Golden, GoldenTurn, Injected, Kind, Method, UserInput
from gateway.errors import RuntimeFailure
from gateway.evaluate.compare import Scorer, judge_turn, unreached
from gateway.evaluate.expected import expected_messages
from gateway.evaluate.observed import USER, Observed
from gateway.evaluate.result import TurnResult, Verdict
from gateway.evaluate.talk import Talk, responses

START = UserInput("event", {"event": {"event": bidi.SESSION_START}}, 0)


def refusal(golden: Golden) -> str:
    """Why a golden cannot be run in text; empty where it can."""
    inputs = (one for turn in golden.turns for one in turn.inputs)
    return "its user input is audio" if any(one.kind == "audio" for one in inputs) else ""


class GoldenRun:
    """One golden, turn by turn."""

    def __init__(self, golden: Golden, talk: Talk, scorer: Scorer, method: Method) -> None:
        self._turns = golden.turns
        self._stable = method is Method.STABLE
        self._talk = talk
        self._scorer = scorer
        self._variables: dict[str, Any] = {}
        """Variables that are known to have been set."""
        self._begun = False

    async def run(self) -> tuple[TurnResult, ...]:
        """The verdicts on all turns; those after a failure of the runtime never came."""
        results: list[TurnResult] = []
        problem = ""
        for turn in self._turns:
            if problem or (self._talk.ended and not self._stable):
                results.append(unreached(turn, problem or "the session had ended before"))
                continue
            self._talk.observed = Observed()
            try:
                results.append(await self._turn(turn))
            except RuntimeFailure as error:
                problem = str(error)
                results.append(unreached(turn, problem))
        return tuple(results)

    async def _turn(self, turn: GoldenTurn) -> TurnResult:
        talk = self._talk
        if self._stable and turn is not self._turns[0]:
            await self._inject(turn)
        talk.answers = [one for given in turn.inputs for one in responses(given)]
        talk.answers += [e.value for e in turn.expectations if e.kind is Kind.TOOL_RESPONSE]
        for step in turn.steps:
            if isinstance(step, Injected):
                await self._move(step.agent)
            elif isinstance(step, UserInput) and not talk.ended:
                await self._give(step)
        if turn is self._turns[0] and not any(one.complete for one in turn.inputs):
            # The agent speaks first.
            await self._give(START)
        while True:
            known = {**self._variables, **talk.observed.variables}
            met = (await judge_turn(turn, talk.observed, known)).verdict is Verdict.PASSED
            if met or talk.ended or talk.observed.pending <= 0:
                break
            # What is missing may come when an asynchronous tool has finished.
            await talk.turn()
        self._variables = known
        return await judge_turn(turn, talk.observed, known, self._scorer)

    async def _give(self, given: UserInput) -> None:
        if not self._begun:
            await self._talk.open()
            self._begun = True
        if given.kind == "toolResponses":
            return
        if given.kind == "variables":
            self._variables.update(given.value)
        await self._talk.send(given)

    async def _inject(self, turn: GoldenTurn) -> None:
        """A new session in which the turns before this one went as they should."""
        before = self._turns[: self._turns.index(turn)]
        past = [message for one in before for message in expected_messages(one)]
        await self._talk.open(historicalContexts=past)
        self._talk.history = past

    async def _move(self, agent: str) -> None:
        """Go on with another agent: a new session that knows all that was said in this one."""
        past: list[Mapping[str, Any]] = list(self._talk.history)
        if self._variables:
            past.append({"role": USER, "chunks": [{"updatedVariables": self._variables}]})
        past.append({"role": USER, "chunks": [{"agentTransfer": {"targetAgent": agent}}]})
        await self._talk.open(entryAgent=agent, historicalContexts=past)
        self._begun = True
