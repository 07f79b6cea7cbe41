"""Runs the evaluations of an app, one after the other, in text or as simulated phone calls."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gateway.agent.app.evaluation_files import read_evaluations
from gateway.agent.app.evaluations import Evaluation, EvaluationSettings, Method
from gateway.agent.app.read import read_app
from gateway.agent.models.base import Model
from gateway.agent.models.choose import provider_of
from gateway.channels.dialects import dialect
from gateway.config import Settings
from gateway.errors import AppError, RuntimeFailure
from gateway.evaluate import text_run, voice_run
from gateway.evaluate.compare import Scorer, by_words
from gateway.evaluate.judge import NO_MODEL, Judge, judge_criteria, judge_model
from gateway.evaluate.mocks import mocked_calls, write_mocks
from gateway.evaluate.result import GOLDEN, SCENARIO, TEXT, EvaluationResult, Line, Report, Verdict
from gateway.evaluate.scenario_run import ScenarioRun
from gateway.evaluate.selection import select
from gateway.evaluate.talk import Talk
from gateway.runtime.embedded import EmbeddedRuntime
from gateway.simulate.platforms import side
from gateway.simulate.report import write_report
from gateway.simulate.run import Simulator
from gateway.simulate.virtual_loop import SimulationError

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Options:
    """What is run, and how. `channel`: `text` or a dialect. `calls`: folder for reports of calls.

    `method`: None: the app's own. `as_text`: in calls the recogniser gives the evaluation's words.
    """

    channel: str = TEXT
    method: Method | None = None
    names: Sequence[str] = ()
    dataset: str | None = None
    as_text: bool = False
    calls: Path | None = None


def evaluate(path: Path, settings: Settings, options: Options, progress: Progress) -> Report:
    """Run the evaluations of the app at `path`. Raises AppError, ScenarioError, RuntimeFailure."""
    app = read_app(path)
    suite = read_evaluations(app)
    chosen = select(suite, str(path), options.names, options.dataset)
    if options.channel != TEXT:
        side(options.channel)
    provider = provider_of(app, settings)
    if provider == "replay":
        progress(
            "no model is configured: the goldens are replayed, so that only the app's code and "
            "tools are put to the test"
        )
    model = judge_model(app, settings)
    results = []
    with tempfile.TemporaryDirectory(prefix="voice-gateway-") as folder, asyncio.Runner() as runner:
        stage = _Stage(path, settings, Path(folder))
        try:
            for number, one in enumerate(chosen, 1):
                progress(f"evaluating {one.name} ({number} of {len(chosen)}) …")
                begun = time.monotonic()
                result = _Run(stage, options, suite.settings, one, model).run(runner)
                results.append(replace(result, seconds=time.monotonic() - begun))
        finally:
            runner.run(stage.aclose())
            if model is not None:
                runner.run(model.aclose())
    return Report(str(path), options.channel, provider, tuple(results))


class _Stage:
    """Where evaluations run: runtime processes and simulators, one for each set of mocks."""

    def __init__(self, app: Path, settings: Settings, folder: Path) -> None:
        self.app = app
        self.turn_s = settings.runtime.turn_timeout_s
        told = settings.runtime.model_copy(update={"diagnostics": True, "processes": 1})
        self._settings = settings.model_copy(update={"runtime": told})
        self._folder = folder
        self._runtimes: dict[str, EmbeddedRuntime] = {}
        self._simulators: dict[str, Simulator] = {}

    def _with(self, evaluation: Evaluation, fakes: bool) -> Settings:
        """The settings under which the evaluation's own mocks answer."""
        tools = self._settings.tools
        if fakes:
            tools = tools.model_copy(update={"fakes": True})
        calls = mocked_calls(evaluation)
        if calls:
            file = self._folder / f"mocks-{len(self._runtimes)}-{len(self._simulators)}.yaml"
            write_mocks(calls, tools.mocks, file)
            tools = tools.model_copy(update={"mocks": file})
        return self._settings.model_copy(update={"tools": tools})

    async def runtime(self, evaluation: Evaluation, fakes: bool) -> EmbeddedRuntime:
        """A runtime process for the evaluation. Raises AppError where the app cannot run."""
        key = _key(evaluation, fakes)
        if key not in self._runtimes:
            runtime = EmbeddedRuntime(self._with(evaluation, fakes), self.app)
            self._runtimes[key] = runtime
            try:
                await runtime.start()
            except RuntimeFailure as error:
                # Not one evaluation fails: the app cannot run at all.
                raise AppError(
                    error.code, error.message, where=str(self.app), hint=error.hint
                ) from None
        return self._runtimes[key]

    def simulator(self, evaluation: Evaluation, fakes: bool) -> Simulator:
        """A simulator for the evaluation."""
        key = _key(evaluation, fakes)
        if key not in self._simulators:
            self._simulators[key] = Simulator(self._with(evaluation, fakes))
        return self._simulators[key]

    async def aclose(self) -> None:
        """End all processes."""
        await asyncio.gather(*(runtime.aclose() for runtime in self._runtimes.values()))


def _key(evaluation: Evaluation, fakes: bool) -> str:
    return json.dumps([mocked_calls(evaluation), fakes])


class _Run:
    """One evaluation."""

    def __init__(
        self,
        stage: _Stage,
        options: Options,
        settings: EvaluationSettings,
        evaluation: Evaluation,
        model: Model | None,
    ) -> None:
        self._stage = stage
        self._options = options
        self._settings = settings
        golden = evaluation.golden is not None
        self._fakes = settings.golden_fakes if golden else settings.scenario_fakes
        self._evaluation = evaluation
        self._judge = Judge(model) if model is not None else None
        self._scorer: Scorer = self._judge.score if self._judge is not None else by_words
        kind = GOLDEN if golden else SCENARIO
        where = f"{evaluation.file}:{evaluation.line}"
        self._empty = EvaluationResult(evaluation.name, kind, where)

    def run(self, runner: asyncio.Runner) -> EvaluationResult:
        """The result; what the conversation failed of is part of it. Raises AppError."""
        reason = self._refusal()
        if reason:
            return replace(self._empty, reason=reason)
        try:
            if self._evaluation.scenario is not None:
                return runner.run(self._scenario())
            if self._options.channel == TEXT:
                return runner.run(self._text())
            return self._voice(runner)
        except RuntimeFailure as error:
            line = Line(Verdict.FAILED, "the conversation comes to its end", (str(error),))
            return replace(self._empty, whole=(line,))

    def _refusal(self) -> str:
        golden, in_text = self._evaluation.golden, self._options.channel == TEXT
        if golden is not None:
            if in_text:
                return text_run.refusal(golden)
            able = dialect(self._options.channel).capabilities
            return voice_run.refusal(golden, able.dtmf_in, client=able.agent_messages)
        if not in_text:
            return "scenarios are run in text only"
        return "" if self._judge is not None else NO_MODEL

    async def _text(self) -> EvaluationResult:
        golden = self._evaluation.golden
        assert golden is not None
        talk = await self._talk()
        try:
            method = self._options.method or self._settings.method
            turns = await text_run.GoldenRun(golden, talk, self._scorer, method).run()
            whole = await judge_criteria(self._evaluation.criteria, talk.history, self._judge)
        finally:
            await talk.aclose()
        return replace(self._empty, turns=turns, whole=tuple(whole))

    async def _scenario(self) -> EvaluationResult:
        assert self._judge is not None
        talk = await self._talk()
        try:
            begins = self._settings.agent_begins
            run = ScenarioRun(self._evaluation, talk, self._judge, agent_begins=begins)
            turns, whole = await run.run()
            criteria = self._evaluation.criteria
            judged = await judge_criteria(criteria, talk.history, self._judge)
        finally:
            await talk.aclose()
        return replace(self._empty, turns=turns, whole=(*whole, *judged))

    async def _talk(self) -> Talk:
        runtime = await self._stage.runtime(self._evaluation, self._fakes)
        return Talk(runtime.connect, self._evaluation.name, self._stage.turn_s)

    def _voice(self, runner: asyncio.Runner) -> EvaluationResult:
        evaluation, options = self._evaluation, self._options
        golden = evaluation.golden
        assert golden is not None
        simulator = self._stage.simulator(evaluation, self._fakes)
        call = voice_run.plan_call(
            evaluation, options.channel, self._stage.turn_s, as_text=options.as_text
        )
        listener = voice_run.Listener()
        try:
            result = simulator.run(call.scenario, self._stage.app, observe=listener)
        except SimulationError as error:
            line = Line(Verdict.FAILED, "the call comes to its end", (str(error),))
            return replace(self._empty, whole=(line,))
        if options.calls is not None:
            write_report(result, options.calls / call.scenario.name)
        turns = runner.run(voice_run.judge_call(golden, call, result.log, listener, self._scorer))
        whole = runner.run(judge_criteria(evaluation.criteria, listener.history, self._judge))
        return replace(self._empty, turns=turns, whole=tuple(whole))
