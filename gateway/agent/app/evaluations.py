"""The evaluations of an app: goldens (a conversation as it should go) and scenarios (a task)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gateway.agent.app.models import App


class Kind(StrEnum):
    """What an expectation is about; the value is its key in the file."""

    AGENT_RESPONSE = "agentResponse"
    TOOL_CALL = "toolCall"
    TOOL_RESPONSE = "toolResponse"
    MOCK_TOOL_RESPONSE = "mockToolResponse"
    AGENT_TRANSFER = "agentTransfer"
    UPDATED_VARIABLES = "updatedVariables"
    NO_TOOL_CALLS = "noToolCalls"


class Comparison(StrEnum):
    """How the words of a response are compared."""

    EQUALS = "EQUALS"
    CONTAINS = "CONTAINS"
    SIMILAR = "SEMANTIC_SIMILARITY"


class UserGoal(StrEnum):
    """What a scenario says about the simulated user's goal."""

    SATISFIED = "USER_GOAL_SATISFIED"
    REJECTED = "USER_GOAL_REJECTED"
    IGNORED = "USER_GOAL_IGNORED"


class Method(StrEnum):
    """How the turns of a golden follow one another."""

    NAIVE = "naive"
    """All in one session."""
    STABLE = "stable"
    """Each in a session of its own, after the turns before it as they should have gone."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From where on a comparison passes; the defaults are the platform's."""

    similarity: float = 3
    """0 to 4."""
    tool_calls: float = 1.0
    """Share of a turn's expected calls that must have been made, 0 to 1."""
    arguments: float = 1.0
    """Share of a call's arguments that must be right, 0 to 1."""
    extra_calls_fail: bool = True


@dataclass(frozen=True, slots=True)
class UserInput:
    """What the user does. `message`: a `realtimeInput` of the wire."""

    kind: str
    message: Mapping[str, Any]
    line: int

    @property
    def value(self) -> Any:
        """The content of the input."""
        return self.message[self.kind]

    @property
    def event(self) -> str:
        """Name of the event; empty for another input."""
        return str(self.value["event"]) if self.kind == "event" else ""

    @property
    def complete(self) -> bool:
        """Whether the agent answers it."""
        answered = self.kind not in ("variables", "toolResponses")
        return answered and not self.message.get("willContinue", False)

    def __str__(self) -> str:
        if self.kind in ("text", "dtmf"):
            return str(self.value)
        if self.kind == "variables":
            return f"variables {', '.join(self.value)}"
        return f"event {self.event}" if self.event else self.kind


@dataclass(frozen=True, slots=True)
class Injected:
    """The conversation goes on with another agent, whatever the app thinks of it."""

    agent: str
    line: int


@dataclass(frozen=True, slots=True)
class Expectation:
    """One requirement. `value`: a Message, ToolCall, ToolResponse, … of the wire."""

    kind: Kind
    value: Any
    line: int
    note: str = ""
    skip: bool = False
    comparison: Comparison = Comparison.SIMILAR
    similarity: bool = True
    """False: the words of the response are not judged."""
    arguments_threshold: float | None = None


Step = UserInput | Injected | Expectation


@dataclass(frozen=True, slots=True)
class GoldenTurn:
    """One turn: what the user does, and what is expected of the agent."""

    steps: tuple[Step, ...]
    line: int
    thresholds: Thresholds

    @property
    def inputs(self) -> tuple[UserInput, ...]:
        """What the user does."""
        return tuple(step for step in self.steps if isinstance(step, UserInput))

    @property
    def expectations(self) -> tuple[Expectation, ...]:
        """What is expected."""
        return tuple(step for step in self.steps if isinstance(step, Expectation))


@dataclass(frozen=True, slots=True)
class Golden:
    """A whole conversation as it should go."""

    turns: tuple[GoldenTurn, ...]


@dataclass(frozen=True, slots=True)
class ScenarioExpectation:
    """Something that must happen in a scenario; `mock`: the tool's answer, a ToolResponse."""

    kind: Kind
    value: Mapping[str, Any]
    line: int
    mock: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """A task for a simulated user."""

    task: str
    facts: Mapping[str, str]
    max_turns: int
    rubrics: tuple[str, ...]
    expectations: tuple[ScenarioExpectation, ...]
    variables: Mapping[str, Any]
    goal: UserGoal


@dataclass(frozen=True, slots=True)
class Criterion:
    """A question about the whole conversation, for a model to judge."""

    name: str
    prompt: str


NOTHING_INVENTED = Criterion(
    "nothing is invented",
    "Each fact about the user, their affairs or the company that the agent states follows from what"
    " the user said or from an answer of a tool in the conversation. Greetings, questions, promises"
    " to look something up and general politeness are no facts.",
)
"""The hallucination metric, as far as a conversation shows it."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation with all that it refers to."""

    name: str
    file: str
    line: int
    golden: Golden | None
    scenario: Scenario | None
    thresholds: Thresholds
    criteria: tuple[Criterion, ...] = ()
    datasets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EvaluationSettings:
    """The app's `evaluationSettings`, as far as a run uses them."""

    method: Method = Method.NAIVE
    golden_fakes: bool = False
    scenario_fakes: bool = False
    agent_begins: bool = False


@dataclass(frozen=True, slots=True)
class Suite:
    """All evaluations of an app, by display name, and its datasets: name → members."""

    evaluations: Mapping[str, Evaluation]
    datasets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    settings: EvaluationSettings = EvaluationSettings()


def has_goldens(app: App) -> bool:
    """Whether any evaluation of the app is a golden one."""
    return any(content.get("golden") for content in app.resources["evaluations"].values())
