"""A language model that judges conversations and plays the user of a scenario."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from typing import Any

from gateway.agent.app.evaluations import Criterion, Scenario
from gateway.agent.app.models import App
from gateway.agent.models.base import Model, ModelStep
from gateway.agent.models.choose import choose_model, provider_of
from gateway.agent.platform import Content, GenerateContentConfig, LlmRequest, Part
from gateway.agent.prompt import conversation_lines
from gateway.config import Settings
from gateway.errors import RuntimeFailure
from gateway.evaluate import similarity
from gateway.evaluate.result import Line, Verdict

NO_MODEL = "no language model is configured to judge it (model.* or judge.*)"
DONE = "<done>"
_LANGUAGE_MODELS = frozenset({"gemini", "openai"})
_SCORE = re.compile(r"[0-4]")
_YES_NO = re.compile(r"\W*(yes|no)\b[\s.,:;–-]*(.*)", re.IGNORECASE | re.DOTALL)

_SCORING = """You compare two utterances of a telephone agent: the expected and the actual one.
Score how well the actual one conveys the meaning of the expected one: 4 the same meaning;
3 the same in all that matters; 2 partly; 1 hardly; 0 not at all or the opposite.
Different numbers, names, dates or promises are never more than 1. Answer with the digit alone."""

_JUDGING = """You judge a conversation between a user and a telephone agent.
You are given the conversation and one statement about it. Answer YES where the statement holds,
NO where it does not, and after that, on the same line, the reason in one short sentence.
Judge only by what stands in the conversation."""

_PLAYING = """You play a person who calls a telephone agent. Stay in this role.
Your task: {task}
What you know about yourself:
{facts}
Say one short utterance at a time, as people speak on the telephone. Give what you know only when
you are asked for it or need it, and never invent other facts. When your task is done, or has been
refused for good, or the agent says goodbye, answer with {done} and nothing else."""


def judge_model(app: App, settings: Settings) -> Model | None:
    """The language model that judges: `judge`, else the app's own where that is one.

    Raises AppError model.* where `judge` cannot be used.
    """
    if settings.judge is not None:
        return choose_model(app, settings.model_copy(update={"model": settings.judge}))
    if provider_of(app, settings) not in _LANGUAGE_MODELS:
        return None
    return choose_model(app, settings)


class Judge:
    """Questions to the model. Each raises RuntimeFailure where the model fails."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def score(self, expected: str, actual: str) -> int:
        """How alike two texts are, 0 to 4; those of the same words are not asked about."""
        offline = similarity.score(expected, actual)
        if offline == similarity.SAME or not actual:
            return offline
        found = _SCORE.search(
            await self._ask(_SCORING, f"Expected: {expected}\n\nActual: {actual}")
        )
        if found is None:
            raise _unclear()
        return int(found[0])

    async def holds(self, statement: str, history: Iterable[Mapping[str, Any]]) -> tuple[bool, str]:
        """Whether a statement about a conversation holds, and why."""
        talk = "\n".join(conversation_lines(history))
        answer = await self._ask(
            _JUDGING, f"<conversation>\n{talk}\n</conversation>\n\nStatement: {statement}"
        )
        found = _YES_NO.match(answer)
        if found is None:
            raise _unclear()
        return found[1].lower() == "yes", found[2].strip()

    async def line(self, text: str, statement: str, history: Iterable[Mapping[str, Any]]) -> Line:
        """The verdict on a statement as a line of a result; a judge that fails is no pass."""
        try:
            good, why = await self.holds(statement, history)
        except RuntimeFailure as error:
            good, why = False, str(error)
        verdict = Verdict.PASSED if good else Verdict.FAILED
        return Line(verdict, text, () if good else (why or "the judge says no",))

    async def next_words(self, scenario: Scenario, history: Iterable[Mapping[str, Any]]) -> str:
        """What the simulated user says next; empty where they are done."""
        facts = "\n".join(f"- {name}: {value}" for name, value in scenario.facts.items())
        role = _PLAYING.format(task=scenario.task, facts=facts or "- nothing more", done=DONE)
        talk = "\n".join(conversation_lines(history))
        asked = f"<conversation>\n{talk}\n</conversation>\n\nWhat do you say?"
        answer = (await self._ask(role, asked)).strip()
        return "" if DONE in answer else answer.strip('"')

    async def _ask(self, instruction: str, text: str) -> str:
        request = LlmRequest(
            model="",
            contents=[Content(parts=[Part(text=text)], role="user")],
            config=GenerateContentConfig(
                system_instruction=Content(parts=[Part(text=instruction)]), tools=[]
            ),
        )
        step = ModelStep(request, agent="", variables={}, memory={})
        async with aclosing(self._model.generate(step)) as parts:
            return "".join([part.text async for part in parts if part.text])


def _unclear() -> RuntimeFailure:
    return RuntimeFailure(
        "model.judge", "the judging model did not answer in the form that it was asked for"
    )


async def judge_criteria(
    criteria: Iterable[Criterion], history: list[Mapping[str, Any]], judge: Judge | None
) -> list[Line]:
    """Verdicts on questions about the whole conversation; without a model they are not run."""
    return [
        Line(Verdict.NOT_RUN, f"meets {one.name}", (NO_MODEL,))
        if judge is None
        else await judge.line(f"meets {one.name}", one.prompt, history)
        for one in criteria
    ]
