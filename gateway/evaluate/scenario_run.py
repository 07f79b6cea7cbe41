"""Scenario evaluations: a model plays the user in text, then judges what came of it."""

from __future__ import annotations

from gateway.agent.app.evaluations import (
    Evaluation,
    Kind,
    Scenario,
    ScenarioExpectation,
    UserGoal,
    UserInput,
)
from gateway.agent.prompt import tool_name
from gateway.agent.tools.python import attribute_name
from gateway.evaluate.calls import share_right
from gateway.evaluate.judge import Judge
from gateway.evaluate.observed import Observed
from gateway.evaluate.result import Line, TurnResult, Verdict
from gateway.evaluate.similarity import alike
from gateway.evaluate.talk import Talk
from gateway.evaluate.text_run import START
from gateway.evaluate.titles import call_text, calls_made, text_of
from gateway.evaluate.values import shown

_GOALS = {
    UserGoal.SATISFIED: ("the user's goal is met", "The agent has done what the user called for"),
    UserGoal.REJECTED: (
        "the user's goal is refused",
        "The agent has refused, or could not do, what the user called for",
    ),
}


class ScenarioRun:
    """One scenario from the first words to the verdicts."""

    def __init__(
        self, evaluation: Evaluation, talk: Talk, judge: Judge, *, agent_begins: bool
    ) -> None:
        assert evaluation.scenario is not None
        self._evaluation = evaluation
        self._scenario: Scenario = evaluation.scenario
        self._talk = talk
        self._judge = judge
        self._agent_begins = agent_begins
        self._all = Observed()

    async def run(self) -> tuple[tuple[TurnResult, ...], tuple[Line, ...]]:
        """(the turns as they went, the verdicts). Raises RuntimeFailure."""
        turns = await self._converse()
        history = self._talk.history
        judged = [await self._expected(one) for one in self._scenario.expectations]
        if self._scenario.goal in _GOALS:
            text, statement = _GOALS[self._scenario.goal]
            task = f"{statement}: {self._scenario.task}"
            judged.append(await self._judge.line(text, task, history))
        judged += [await self._judge.line(r, r, history) for r in self._scenario.rubrics]
        return tuple(turns), tuple(judged)

    async def _converse(self) -> list[TurnResult]:
        talk, scenario = self._talk, self._scenario
        talk.answers = [one.mock for one in scenario.expectations if one.mock is not None]
        await talk.open()
        if scenario.variables:
            await talk.send(UserInput("variables", {"variables": dict(scenario.variables)}, 0))
        turns: list[TurnResult] = []
        if self._agent_begins:
            turns.append(await self._turn(START))
        while len(turns) < scenario.max_turns and not talk.ended:
            words = await self._judge.next_words(scenario, talk.history)
            if not words:
                break
            turns.append(await self._turn(UserInput("text", {"text": words}, 0)))
        return turns

    async def _turn(self, given: UserInput) -> TurnResult:
        talk = self._talk
        talk.observed = Observed()
        await talk.send(given)
        while talk.observed.pending > 0 and not talk.ended:
            await talk.turn()
        seen = talk.observed
        self._all.texts += seen.texts
        self._all.calls += seen.calls
        return TurnResult(str(given), (), said=tuple(seen.texts), called=calls_made(seen))

    async def _expected(self, one: ScenarioExpectation) -> Line:
        if one.kind is Kind.AGENT_RESPONSE:
            return await self._said(one)
        name, args = tool_name(one.value), one.value.get("args") or {}
        text = f"calls {call_text(name, args)}"
        calls = [c for c in self._all.calls if attribute_name(c.name) == attribute_name(name)]
        if any(share_right(args, c.args) >= self._evaluation.thresholds.arguments for c in calls):
            return Line(Verdict.PASSED, text, line=one.line)
        made = tuple(f"called {call_text(c.name, c.args)}" for c in calls)
        return Line(Verdict.FAILED, text, made or ("it was not called",), one.line)

    async def _said(self, one: ScenarioExpectation) -> Line:
        wanted = text_of(one.value)
        text = f"says {shown(wanted)}"
        best = 0
        # The most likely ones first: each question to the judge costs time.
        for said in sorted(self._all.texts, key=lambda said: -alike(wanted, said)):
            best = max(best, await self._judge.score(wanted, said))
            if best >= self._evaluation.thresholds.similarity:
                return Line(Verdict.PASSED, text, line=one.line)
        least = self._evaluation.thresholds.similarity
        why = f"the nearest response is alike by {best} of 4, {least:g} are needed"
        return Line(Verdict.FAILED, text, (why,), one.line)
