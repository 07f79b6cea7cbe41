"""What a payload says about how its audio is to be played.

`audioUri` (with interruptable, cancellable, transcript, loop, gainDb, fadeMs), `sendDtmf`, `listen`
and `customizedResponse` are read here; everything else belongs to the client. A wrong type is a
problem that is reported and never a reason to drop what can still be used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gateway.bidi import CUSTOMIZED_RESPONSE, get
from gateway.channels.base import DTMF_KEYS

INTERRUPTABLE_SPELLINGS = ("interruptable", "interrupable", "interruptible")
TIMEOUT_MODES_S = {"short": 1.0, "mid": 3.0, "long": 5.0}
GAIN_MIN_DB, GAIN_MAX_DB = -60.0, 20.0
FADE_MAX_MS = 5000.0
MAX_TIMEOUT_S = 60.0
SEND_DTMF = "sendDtmf"
MAX_KEYS = 64
LISTEN = "listen"
_AUDIO_KEYS = frozenset(
    {
        "audioUri",
        "cancellable",
        "transcript",
        "loop",
        "gainDb",
        "fadeMs",
        SEND_DTMF,
        LISTEN,
        *INTERRUPTABLE_SPELLINGS,
    }
)
_SNAKE_KEYS = frozenset({"audio_uri", "send_dtmf", "gain_db", "fade_ms"})


@dataclass(frozen=True, slots=True)
class DtmfPolicy:
    """How keys are taken while a response waits for them. None: the profile's value."""

    enabled: bool = False
    finish_digit: str | None = None
    """Empty: only the time-out or the maximum ends the collection."""
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """How one utterance may be treated."""

    interruptable: bool = True
    said: bool = False
    """The payload itself says that it is interruptable: that outranks the app's default."""
    cancellable: bool = False
    loop: bool = False
    gain_db: float = 0.0
    fade_ms: float = 0.0
    """Length of its fades: in at the start, out at the end or when it is cancelled."""
    transcript: str = ""
    """What is said in the audio, for the agent's context and for a file that cannot be played."""
    dtmf: DtmfPolicy | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the payload that are not ours, unchanged."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to play for a payload: a file (`uri`), words (`text`), `keys`, or nothing."""

    policy: Policy
    uri: str = ""
    text: str = ""
    keys: str = ""
    """Keys to press towards the far end."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A payload as understood: `ours` is false where it goes to the client untouched."""

    ours: bool
    plans: tuple[Plan, ...] = ()
    problems: tuple[str, ...] = ()
    listen: bool | None = None
    """Whether the caller's audio is wanted from here on; None: nothing is said of it."""


class _Fields:
    """Typed access that collects complaints; `name` in them is the payload's key."""

    def __init__(self, source: Mapping[str, Any]) -> None:
        self.source = source
        self.problems: list[str] = []

    def flag(self, name: str, default: bool) -> bool:
        value = get(self.source, name)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        self._wrong(name, "true or false", value)
        return default

    def text(self, name: str, default: str | None) -> str | None:
        value = get(self.source, name)
        if value is None or isinstance(value, str):
            return default if value is None else value
        self._wrong(name, "a text", value)
        return default

    def number(self, name: str, default: float, low: float, high: float) -> float:
        value = get(self.source, name)
        if value is None:
            return default
        if isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high:
            return float(value)
        self._wrong(name, f"a number from {low:g} to {high:g}", value)
        return default

    def _wrong(self, name: str, wanted: str, value: object) -> None:
        self.problems.append(f"{name} is {type(value).__name__}, not {wanted}")

    def complain(self, problem: str) -> None:
        self.problems.append(problem)


def read_payload(payload: Mapping[str, Any]) -> Reading:
    """Read a custom payload. Never raises."""
    plans: list[Plan] = []
    problems: list[str] = []
    ours = False
    customised = get(payload, CUSTOMIZED_RESPONSE)
    if customised is not None:
        ours = True
        if isinstance(customised, Mapping):
            plan, found = _customised(customised)
            plans.append(plan)
            problems += found
        else:
            problems.append(f"{CUSTOMIZED_RESPONSE} is {type(customised).__name__}, not an object")
    if get(payload, "audioUri") is not None:
        ours = True
        plan, found = _audio(payload)
        plans.append(plan)
        problems += found
    keys = get(payload, SEND_DTMF)
    if keys is not None:
        ours = True
        pressed = keys.strip().upper() if isinstance(keys, str) else ""
        if 0 < len(pressed) <= MAX_KEYS and DTMF_KEYS.issuperset(pressed):
            plans.append(Plan(Policy(interruptable=False), keys=pressed))
        else:
            problems.append(f"{SEND_DTMF} is not a text of 1 to {MAX_KEYS} keys 0-9 * # A-D")
    # Clients that mute their microphone themselves are told as well, so this makes it not ours.
    listen = payload.get(LISTEN)
    wanted = listen if isinstance(listen, bool) else None
    return Reading(ours, tuple(plans), tuple(problems), wanted)


def _audio(payload: Mapping[str, Any]) -> tuple[Plan, list[str]]:
    fields = _Fields(payload)
    uri = (fields.text("audioUri", "") or "").strip()
    transcript = (fields.text("transcript", "") or "").strip()
    spelling = next((s for s in INTERRUPTABLE_SPELLINGS if payload.get(s) is not None), "")
    policy = Policy(
        interruptable=fields.flag(spelling, True) if spelling else True,
        said=payload.get(spelling) is True,
        cancellable=fields.flag("cancellable", False),
        loop=fields.flag("loop", False),
        gain_db=fields.number("gainDb", 0.0, GAIN_MIN_DB, GAIN_MAX_DB),
        fade_ms=fields.number("fadeMs", 0.0, 0.0, FADE_MAX_MS),
        transcript=transcript,
        extra={k: v for k, v in payload.items() if k not in _AUDIO_KEYS | _SNAKE_KEYS},
    )
    if policy.loop and not policy.cancellable:
        # It would hold up everything behind it for ever.
        fields.complain("loop needs cancellable; the audio plays once")
        policy = replace(policy, loop=False)
    if uri:
        return Plan(policy, uri=uri), fields.problems
    if not fields.problems:
        fields.complain("audioUri is empty")
    return Plan(replace(policy, loop=False), text=transcript), fields.problems


def _customised(response: Mapping[str, Any]) -> tuple[Plan, list[str]]:
    fields = _Fields(response)
    content = fields.text("content", None)
    if content is None and not fields.problems:
        fields.complain("content is missing")
    finish = fields.text("dtmfFinishDigit", None)
    if finish is not None and len(finish) > 1:
        fields.complain("dtmfFinishDigit is more than one key")
        finish = None
    dtmf = DtmfPolicy(
        enabled=fields.flag("enableDtmf", False),
        finish_digit=finish,
        timeout_s=_timeout(fields),
    )
    policy = Policy(interruptable=not fields.flag("disableBargeIn", False), dtmf=dtmf)
    return Plan(policy, text=(content or "").strip()), fields.problems


def _timeout(fields: _Fields) -> float | None:
    """Seconds as a number, as `3s`, or as short, mid, long."""
    name = "dtmfEndpointingTimeout"
    value = get(fields.source, name)
    if value is None:
        return None
    seconds: float = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    elif isinstance(value, str):
        words = value.strip().lower()
        try:
            seconds = TIMEOUT_MODES_S[words] if words in TIMEOUT_MODES_S else _seconds(words)
        except ValueError:
            seconds = math.nan
    if 0 < seconds <= MAX_TIMEOUT_S:
        return seconds
    fields.complain(f"{name} is not a time of up to {MAX_TIMEOUT_S:g} seconds")
    return None


def _seconds(words: str) -> float:
    return float(words.removesuffix("s"))
