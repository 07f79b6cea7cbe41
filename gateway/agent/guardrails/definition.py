"""The guardrails of an export: kinds, conditions and what follows when one is triggered."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from gateway import bidi
from gateway.agent.app.models import App, CallbackKind, ModelConfig, SourceCode
from gateway.agent.texts import source
from gateway.errors import AppError

CODE_KINDS = (
    CallbackKind.BEFORE_AGENT,
    CallbackKind.BEFORE_MODEL,
    CallbackKind.AFTER_MODEL,
    CallbackKind.AFTER_AGENT,
)
DEFAULT_MESSAGES = 10
MAX_SEARCHED_CHARS = 20_000
"""Only so much of one text is searched: patterns are the author's, texts are anybody's."""


class ActionKind(Enum):
    """What follows a triggered guardrail."""

    RESPOND = auto()
    TRANSFER = auto()
    GENERATE = auto()


@dataclass(frozen=True, slots=True)
class Action:
    """`responses`: one of them is said. `agent`: takes over. `prompt`: how the model answers."""

    kind: ActionKind
    responses: tuple[str, ...] = ()
    agent: str = ""
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class ContentFilter:
    """Banned words, ready to be searched for."""

    user: tuple[re.Pattern[str], ...]
    agent: tuple[re.Pattern[str], ...]
    disregard_diacritics: bool

    def finds(self, text: str, by_user: bool) -> bool:
        """Whether the text holds what is banned in its direction."""
        text = text[:MAX_SEARCHED_CHARS]
        if self.disregard_diacritics:
            text = plain_letters(text)
        return any(pattern.search(text) for pattern in (self.user if by_user else self.agent))


@dataclass(frozen=True, slots=True)
class Policy:
    """What a model judges. `prompt` empty: the default one for attacks on the prompt."""

    prompt: str
    user: bool
    agent: bool
    fail_open: bool
    short_utterances: bool
    max_messages: int
    model: ModelConfig
    attack: bool
    """True: about attempts to take the agent over, else about a policy of the house."""


@dataclass(frozen=True, slots=True)
class Guardrail:
    """One guardrail; exactly one of `filter`, `policy`, `code` and `safety` is set."""

    name: str
    action: Action
    where: str
    filter: ContentFilter | None = None
    policy: Policy | None = None
    code: Mapping[CallbackKind, SourceCode] | None = None
    safety: tuple[Mapping[str, Any], ...] = ()
    """`safetySettings`: for models that filter by themselves."""


def plain_letters(text: str) -> str:
    """The text without accents and other marks on letters."""
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


def read_guardrail(app: App, name: str, content: Mapping[str, Any]) -> Guardrail | None:
    """One guardrail; None where it is not enabled. Raises AppError app.guardrail."""
    where = f"guardrails/{name}"
    if content.get("enabled") is not True:
        return None
    action = _action(app, bidi.get(content, "action"), where)
    banned = bidi.get(content, "contentFilter")
    if isinstance(banned, Mapping):
        return Guardrail(name, action, where, filter=_filter(banned, where))
    policy = bidi.get(content, "llmPolicy")
    if isinstance(policy, Mapping):
        return Guardrail(name, action, where, policy=_policy(app, policy, where))
    security = bidi.get(content, "llmPromptSecurity")
    if isinstance(security, Mapping):
        return Guardrail(name, action, where, policy=_security(app, security, where))
    callback = bidi.get(content, "codeCallback")
    if isinstance(callback, Mapping):
        return Guardrail(name, action, where, code=_code(app, callback, where))
    safety = bidi.get(content, "modelSafety")
    if isinstance(safety, Mapping):
        entries = bidi.get(safety, "safetySettings") or ()
        settings = tuple(entry for entry in entries if isinstance(entry, Mapping))
        return Guardrail(name, action, where, safety=settings)
    raise _fault(
        "the guardrail has no kind",
        where,
        "contentFilter, llmPolicy, llmPromptSecurity, modelSafety or codeCallback.",
    )


def _fault(message: str, where: str, hint: str | None = None) -> AppError:
    return AppError("app.guardrail", message, where=where, hint=hint)


def _action(app: App, value: Any, where: str) -> Action:
    value = value if isinstance(value, Mapping) else {}
    respond = bidi.get(value, "respondImmediately")
    if isinstance(respond, Mapping):
        responses = tuple(
            str(entry["text"])
            for entry in respond.get("responses") or ()
            if isinstance(entry, Mapping)
            and entry.get("text")
            and entry.get("disabled") is not True
        )
        if not responses:
            raise _fault("respondImmediately has no response", f"{where}:action")
        return Action(ActionKind.RESPOND, responses=responses)
    transfer = bidi.get(value, "transferAgent")
    if isinstance(transfer, Mapping):
        agent = str(transfer.get("agent") or "").rsplit("/", 1)[-1]
        if agent not in app.agents:
            place = f"{where}:action.transferAgent.agent"
            raise _fault(f"{agent!r} is not an agent of the app", place)
        return Action(ActionKind.TRANSFER, agent=agent)
    generate = bidi.get(value, "generativeAnswer")
    prompt = generate.get("prompt") if isinstance(generate, Mapping) else ""
    return Action(ActionKind.GENERATE, prompt=str(prompt or ""))


def _filter(content: Mapping[str, Any], where: str) -> ContentFilter:
    match_type = str(bidi.get(content, "matchType") or "SIMPLE_STRING_MATCH")
    bare = bidi.get(content, "disregardDiacritics") is True

    def patterns(key: str) -> list[re.Pattern[str]]:
        words = bidi.get(content, key) or ()
        return [
            _pattern(str(word), match_type, bare, f"{where}:contentFilter.{key}") for word in words
        ]

    both = patterns("bannedContents")
    return ContentFilter(
        user=(*both, *patterns("bannedContentsInUserInput")),
        agent=(*both, *patterns("bannedContentsInAgentResponse")),
        disregard_diacritics=bare,
    )


def _pattern(word: str, match_type: str, bare: bool, where: str) -> re.Pattern[str]:
    word = plain_letters(word) if bare else word
    if match_type == "REGEXP_MATCH":
        try:
            return re.compile(word, re.IGNORECASE)
        except re.error as error:
            raise _fault(f"not a regular expression: {error}", where) from None
    if match_type == "WORD_BOUNDARY_STRING_MATCH":
        # Not \b: a banned word may itself begin or end with a sign.
        return re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
    return re.compile(re.escape(word), re.IGNORECASE)


def _policy(app: App, content: Mapping[str, Any], where: str) -> Policy:
    scope = str(bidi.get(content, "policyScope") or "USER_QUERY_AND_AGENT_RESPONSE")
    both = scope in ("USER_QUERY_AND_AGENT_RESPONSE", "POLICY_SCOPE_UNSPECIFIED")
    prompt = source(app, str(content.get("prompt") or ""), f"{where}:llmPolicy.prompt").text
    if not prompt.strip():
        raise _fault("the policy has no prompt", f"{where}:llmPolicy.prompt")
    count = bidi.get(content, "maxConversationMessages")
    return Policy(
        prompt=prompt,
        user=both or scope == "USER_QUERY",
        agent=both or scope == "AGENT_RESPONSE",
        fail_open=bidi.get(content, "failOpen") is True,
        short_utterances=bidi.get(content, "allowShortUtterance") is True,
        max_messages=count if isinstance(count, int) and count > 0 else DEFAULT_MESSAGES,
        model=_model(bidi.get(content, "modelSettings")),
        attack=False,
    )


def _model(settings: Any) -> ModelConfig:
    if not isinstance(settings, Mapping):
        return ModelConfig()
    temperature = settings.get("temperature")
    return ModelConfig(
        model=str(settings.get("model") or ""),
        temperature=temperature if isinstance(temperature, int | float) else None,
    )


def _security(app: App, content: Mapping[str, Any], where: str) -> Policy:
    custom = bidi.get(content, "customPolicy")
    if isinstance(custom, Mapping):
        return _policy(app, custom, where)
    default = bidi.get(content, "defaultSettings")
    template = bidi.get(default, "defaultPromptTemplate") if isinstance(default, Mapping) else ""
    return Policy(
        prompt=str(template or ""),
        user=True,
        agent=False,
        fail_open=bidi.get(content, "failOpen") is True,
        short_utterances=False,
        max_messages=DEFAULT_MESSAGES,
        model=ModelConfig(),
        attack=True,
    )


def _code(app: App, content: Mapping[str, Any], where: str) -> Mapping[CallbackKind, SourceCode]:
    found: dict[CallbackKind, SourceCode] = {}
    for kind in CODE_KINDS:
        first, second, _ = kind.value.split("_")
        key = f"{first}{second.capitalize()}Callback"
        callback = bidi.get(content, key)
        if not isinstance(callback, Mapping) or callback.get("disabled") is True:
            continue
        code = bidi.get(callback, "pythonCode")
        if isinstance(code, str) and code:
            found[kind] = source(app, code, f"{where}:codeCallback.{key}.pythonCode")
    return found
