"""A scenario: who calls, what the caller does, and what must have happened afterwards.

Read from YAML by `read_scenario`. Unknown keys, wrong types and missing files are ScenarioErrors
with `file:line` and a hint. Relative paths count from the scenario's own folder. Times in seconds.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.channels.base import EndReason
from gateway.errors import ScenarioError
from gateway.simulate.nodes import Node, read_document

DEFAULT_TIMEOUT_S = 30.0
_MAX_FILE_BYTES = 1 << 20
_DIGITS = frozenset("0123456789*#ABCD")


@dataclass(frozen=True, slots=True)
class EventPattern:
    """Which timeline records are meant: the kind, and fields that must all match."""

    kind: str
    fields: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        parts = [self.kind, *(f"{key}={value}" for key, value in self.fields.items())]
        return " ".join(parts)


# ---- what the caller does


@dataclass(frozen=True, slots=True)
class WaitQuiet:
    """Until the agent has spoken (or its turn is complete) and is quiet."""

    line: int
    timeout_s: float = DEFAULT_TIMEOUT_S


@dataclass(frozen=True, slots=True)
class WaitHeard:
    """Until the caller has heard words that match `pattern`."""

    line: int
    pattern: str
    timeout_s: float = DEFAULT_TIMEOUT_S


@dataclass(frozen=True, slots=True)
class WaitEvent:
    """Until a record of the timeline matches."""

    line: int
    event: EventPattern
    timeout_s: float = DEFAULT_TIMEOUT_S


@dataclass(frozen=True, slots=True)
class WaitTime:
    """For a stretch of time."""

    line: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Say:
    """Synthesised caller speech; `as_text`: what the recogniser shall return for it."""

    line: int
    text: str
    as_text: str | None = None


@dataclass(frozen=True, slots=True)
class Play:
    """Recorded caller speech."""

    line: int
    path: Path
    as_text: str | None = None


@dataclass(frozen=True, slots=True)
class Dtmf:
    """Keys pressed one after the other."""

    line: int
    digits: str


@dataclass(frozen=True, slots=True)
class Silence:
    """Nothing is said."""

    line: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Noise:
    """White noise, the same at each run."""

    line: int
    seconds: float
    level_dbfs: float


@dataclass(frozen=True, slots=True)
class Hangup:
    """The caller hangs up."""

    line: int


Step = WaitQuiet | WaitHeard | WaitEvent | WaitTime | Say | Play | Dtmf | Silence | Noise | Hangup


# ---- what must have happened


@dataclass(frozen=True, slots=True)
class Window:
    """When it must have happened: `within_s` of the last caller step, `after`/`before` events."""

    within_s: float | None = None
    after: EventPattern | None = None
    before: EventPattern | None = None


@dataclass(frozen=True, slots=True)
class ExpectHeard:
    """The caller heard words that match; with `negative`: never did."""

    line: int
    pattern: str
    window: Window
    negative: bool = False


@dataclass(frozen=True, slots=True)
class ExpectEvent:
    """Matching records exist; `count`: exactly so many."""

    line: int
    event: EventPattern
    window: Window
    count: int | None = None


@dataclass(frozen=True, slots=True)
class ExpectEnded:
    """The call ended for this reason."""

    line: int
    reason: EndReason


Expectation = ExpectHeard | ExpectEvent | ExpectEnded


@dataclass(frozen=True, slots=True)
class Latency:
    """What the simulator pretends the services take, in seconds."""

    runtime_s: float = 0.0
    tts_s: float = 0.0
    stt_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Scenario:
    """One call from beginning to end."""

    name: str
    file: str
    app: Path | None = None
    channel: str = "ces"
    from_: str = "+15550100"
    to: str = "+15550199"
    variables: Mapping[str, Any] = field(default_factory=dict)
    functions: Mapping[str, Sequence[Any]] | None = None
    """What functions of the caller's client answer, by name; scenario files have none."""
    latency: Latency = Latency()
    caller: tuple[Step, ...] = ()
    expect: tuple[Expectation, ...] = ()


_KEYS = ("app", "channel", "from", "to", "variables", "latency", "caller", "expect")
_STEPS = ("wait", "say", "play", "dtmf", "silence", "noise", "hangup")
_EXPECTATIONS = ("heard", "not_heard", "event", "ended")
_WINDOW = ("within", "after", "before")
KINDS = (
    "call_started",
    "user_speech_started",
    "user_speech_ended",
    "user_text",
    "dtmf",
    "dtmf_sent",
    "runtime_input",
    "runtime_output",
    "utterance_queued",
    "utterance_started",
    "utterance_ended",
    "barge_in",
    "held",
    "resumed",
    "listening",
    "cleared",
    "inactivity",
    "error",
    "transfer",
    "call_ended",
)
"""What a timeline can hold: a misspelt kind would never come, and never be missed."""


def read_scenario(path: Path) -> Scenario:
    """Read one scenario file. Raises ScenarioError with file and line."""
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise ScenarioError("scenario.size", "the file is larger than 1 MiB", where=str(path))
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = "it is not text" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise ScenarioError(
            "scenario.file",
            f"cannot be read: {reason}",
            where=str(path),
            hint="give the path of a YAML file",
        ) from None
    return parse_scenario(text, path)


def parse_scenario(text: str, path: Path) -> Scenario:
    """Read a scenario from `text`; `path` gives its name and its folder."""
    root = read_document(text, str(path))
    entries = root.mapping("the scenario", _KEYS)
    if "caller" not in entries:
        raise root.fail("scenario.caller", "nobody calls", "add caller: with a list of steps")
    folder = path.parent
    options: dict[str, Any] = {}
    if "app" in entries:
        options["app"] = _existing(entries["app"], "app", folder)
    for key, name in (("channel", "channel"), ("from", "from_"), ("to", "to")):
        if key in entries:
            options[name] = entries[key].words(key)
    if "variables" in entries:
        options["variables"] = entries["variables"].plain_mapping("variables")
    if "latency" in entries:
        options["latency"] = _latency(entries["latency"])
    if "expect" in entries:
        options["expect"] = tuple(_expectation(node) for node in entries["expect"].items("expect"))
    steps = tuple(_step(node, folder) for node in entries["caller"].items("caller"))
    if not steps:
        raise entries["caller"].fail("scenario.caller", "the caller does nothing")
    return Scenario(name=path.stem, file=str(path), caller=steps, **options)


def _existing(node: Node, what: str, folder: Path) -> Path:
    path = folder / Path(node.words(what)).expanduser()
    if not path.exists():
        raise node.fail(
            "scenario.path", f"{what} does not exist: {path}", f"paths count from {folder}/"
        )
    return path


def _latency(node: Node) -> Latency:
    entries = node.mapping("latency", ("runtime", "tts", "stt"))
    return Latency(
        **{f"{key}_s": value.seconds(f"latency.{key}") for key, value in entries.items()}
    )


def _one_of(entries: Mapping[str, Node], choices: tuple[str, ...], node: Node, what: str) -> str:
    found = [key for key in entries if key in choices]
    if len(found) != 1:
        named = " and ".join(found) or "none"
        raise node.fail(
            "scenario.step", f"{what} names {named}", f"give exactly one of: {', '.join(choices)}"
        )
    return found[0]


def _step(node: Node, folder: Path) -> Step:
    entries = node.mapping("a caller step", (*_STEPS, "as", "timeout"))
    kind = _one_of(entries, _STEPS, node, "a caller step")
    value = entries[kind]
    for extra, kinds in (("as", ("say", "play")), ("timeout", ("wait",))):
        if extra in entries and kind not in kinds:
            raise entries[extra].fail(
                "scenario.unknown_key", f"{kind} takes no {extra!r}", f"it goes with {kinds[0]}"
            )
    as_text = entries["as"].text("as").strip() if "as" in entries else None
    if kind == "wait":
        return _wait(value, entries.get("timeout"))
    if kind == "say":
        return Say(node.line, value.words("say"), as_text)
    if kind == "play":
        return Play(node.line, _existing(value, "play", folder), as_text)
    if kind == "dtmf":
        return Dtmf(node.line, _digits(value))
    if kind == "silence":
        return Silence(node.line, value.seconds("silence"))
    if kind == "noise":
        return _noise(value, node.line)
    if value.text("hangup") != "true":
        raise value.fail("scenario.hangup", "hangup takes only true", "write hangup: true")
    return Hangup(node.line)


def _digits(node: Node) -> str:
    digits = node.words("dtmf").upper()
    wrong = sorted(set(digits) - _DIGITS)
    if wrong:
        raise node.fail("scenario.dtmf", f"not a key: {wrong[0]!r}", "keys are 0-9 * # A-D")
    return digits


def _noise(node: Node, line: int) -> Noise:
    entries = node.mapping("noise", ("seconds", "level_dbfs"))
    if "seconds" not in entries:
        raise node.fail("scenario.noise", "noise needs seconds", "noise: {seconds: 3}")
    seconds = entries["seconds"].number("noise.seconds")
    level = entries["level_dbfs"].number("noise.level_dbfs") if "level_dbfs" in entries else -40.0
    if not 0 < seconds <= 600:
        raise entries["seconds"].fail("scenario.noise", "noise.seconds is not within 0 and 600")
    if not -90 <= level <= 0:
        raise entries["level_dbfs"].fail(
            "scenario.noise", "noise.level_dbfs is not within -90 and 0", "0 is full scale"
        )
    return Noise(line, seconds, level)


def _wait(node: Node, timeout: Node | None) -> Step:
    timeout_s = timeout.seconds("timeout") if timeout is not None else DEFAULT_TIMEOUT_S
    if node.is_scalar:
        words = node.words("wait")
        if words == "agent_quiet":
            return WaitQuiet(node.line, timeout_s)
        if words[0].isdigit():
            return WaitTime(node.line, node.seconds("wait"))
        raise node.fail(
            "scenario.wait",
            f"cannot wait for {words!r}",
            'write agent_quiet, {heard: "regex"}, {event: KIND} or a duration',
        )
    entries = node.mapping("wait", ("heard", "event", "agent_quiet", "timeout"))
    kind = _one_of(entries, ("heard", "event", "agent_quiet"), node, "wait")
    if "timeout" in entries:
        timeout_s = entries["timeout"].seconds("timeout")
    if kind == "agent_quiet":
        return WaitQuiet(node.line, timeout_s)
    if kind == "heard":
        return WaitHeard(node.line, entries["heard"].pattern("heard"), timeout_s)
    return WaitEvent(node.line, _event(entries["event"]), timeout_s)


def _event(node: Node, *, counted: bool = False) -> EventPattern:
    if node.is_scalar:
        return EventPattern(_kind(node))
    entries = node.mapping("event")
    if "kind" not in entries:
        raise node.fail("scenario.event", "the event has no kind", "{kind: barge_in}")
    kind = _kind(entries.pop("kind"))
    if "count" in entries and not counted:
        raise entries["count"].fail("scenario.unknown_key", "count goes with an expected event")
    entries.pop("count", None)
    for key, value in entries.items():
        if value.is_scalar and isinstance(value.plain(), str):
            value.pattern(key)
    return EventPattern(kind, {key: value.plain() for key, value in entries.items()})


def _kind(node: Node) -> str:
    kind = node.words("event")
    if kind not in KINDS:
        close = difflib.get_close_matches(kind, KINDS, 1)
        meant = f"did you mean {close[0]}? " if close else ""
        raise node.fail(
            "scenario.event",
            f"a timeline holds no events of the kind {kind!r}",
            f"{meant}the kinds are: {', '.join(KINDS)}",
        )
    return kind


def undeclared(scenario: Scenario, declared: Collection[str]) -> list[str]:
    """What is wrong with the scenario's variables: an app takes only those that it declares."""
    return [
        f"{scenario.file}: the app declares no variable {name!r}: it will not take it"
        for name in scenario.variables
        if name not in declared
    ]


def _count(node: Node) -> int:
    number = node.number("count")
    if number != int(number) or number < 0:
        raise node.fail("scenario.number", "count is not a whole number from 0")
    return int(number)


def _expectation(node: Node) -> Expectation:
    entries = node.mapping("an expectation", (*_EXPECTATIONS, *_WINDOW, "count"))
    kind = _one_of(entries, _EXPECTATIONS, node, "an expectation")
    value = entries[kind]
    if kind == "ended":
        for extra in (*_WINDOW, "count"):
            if extra in entries:
                raise entries[extra].fail("scenario.unknown_key", f"ended takes no {extra!r}")
        reason = value.words("ended")
        try:
            return ExpectEnded(node.line, EndReason(reason))
        except ValueError:
            raise value.fail(
                "scenario.ended", f"no call ends as {reason!r}", f"one of: {', '.join(EndReason)}"
            ) from None
    window = Window(
        entries["within"].seconds("within") if "within" in entries else None,
        _event(entries["after"]) if "after" in entries else None,
        _event(entries["before"]) if "before" in entries else None,
    )
    if kind == "event":
        count = entries.get("count")
        if value.is_mapping and "count" in value.mapping("event"):
            count = value.mapping("event")["count"]
        return ExpectEvent(
            node.line, _event(value, counted=True), window, None if count is None else _count(count)
        )
    if "count" in entries:
        raise entries["count"].fail("scenario.unknown_key", f"{kind} takes no 'count'")
    return ExpectHeard(node.line, value.pattern(kind), window, negative=kind == "not_heard")
