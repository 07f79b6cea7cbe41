"""What all models on the other side of a network share: deadlines, further attempts, failures."""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Any

import aiohttp
import structlog

from gateway.agent.models.base import ModelStep
from gateway.agent.models.flow import in_sentences
from gateway.agent.platform import Part
from gateway.config import ModelSettings
from gateway.errors import AppError, RuntimeFailure

log = structlog.get_logger()

PAUSE_S = 0.3
"""Wait before another attempt where the service does not say how long; doubled each time."""
MAX_ANSWER_CHARS = 100_000
"""A model that says more repeats itself without end."""
MAX_SILENT_WAITS = 4
"""How many of the settings' waits a model may think, with signs of life only."""
_CODE = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_HINTS = {
    "model.auth": "check model.api_key, or the machine's credentials for model.project",
    "model.unknown": "check the name (modelSettings.model of the app, or model.name) and model.url",
    "model.rejected": "the service does not take the request: model.extra or a tool's schema",
    "model.quota": "the quota is used up: ask for more, or send fewer calls",
    "model.cut": "the answer reached its bound: raise model.max_tokens, or ask for shorter ones",
    "model.blocked": "the service's own filters: see the app's modelSafety guardrail",
}


class ModelFailure(RuntimeFailure):
    """A model that cannot answer. `again_s`: worth another attempt after so many seconds."""

    def __init__(self, code: str, message: str, where: str, again_s: float | None = None) -> None:
        super().__init__(code, message, where=where, hint=_HINTS.get(code))
        self.again_s = again_s


class RemoteModel(ABC):
    """A model behind HTTP. A subclass asks once; this asks again and keeps the time."""

    name = "remote"

    def __init__(self, settings: ModelSettings, wanted: str) -> None:
        """`wanted`: the model that the app names. Raises AppError model.name where none is."""
        self.settings = settings
        self._default = settings.name or wanted
        if not self._default:
            raise AppError(
                "model.name",
                "neither the app nor the settings name a model",
                where="model.name",
                hint="--set model.name=NAME, as the service calls it",
            )

    @abstractmethod
    def ask(self, step: ModelStep, model: str) -> AsyncGenerator[Part | None, None]:
        """The parts of one answer; None is a sign of life. Raises ModelFailure."""

    @abstractmethod
    async def aclose(self) -> None:
        """Give connections back."""

    def model_of(self, step: ModelStep) -> str:
        """The model that answers this step: the operator's choice, else the agent's."""
        return self.settings.name or step.request.model or self._default

    def temperature_of(self, step: ModelStep) -> float | None:
        """The temperature of this step, likewise."""
        own = self.settings.temperature
        return step.temperature if own is None else own

    def generate(self, step: ModelStep) -> AsyncGenerator[Part, None]:
        """The parts of the answer, texts by the sentence. Raises ModelFailure model.*."""
        return in_sentences(self._attempts(step))

    async def _attempts(self, step: ModelStep) -> AsyncGenerator[Part, None]:
        model = self.model_of(step)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.settings.timeout_s
        for attempt in range(self.settings.attempts):
            answered = False
            said = 0
            try:
                async with aclosing(self._timed(step, model, deadline)) as parts:
                    async for part in parts:
                        answered = answered or bool(part.text) or part.function_call is not None
                        said += len(part.text or "")
                        if said > MAX_ANSWER_CHARS:
                            raise ModelFailure("model.cut", "the answer has no end", model)
                        yield part
                if answered:
                    return
                failure = ModelFailure("model.empty", "the answer is empty", model, PAUSE_S)
            except ModelFailure as error:
                failure = error
            wait_s = (failure.again_s or 0.0) * 2**attempt
            if (
                answered
                or failure.again_s is None
                or attempt + 1 == self.settings.attempts
                or loop.time() + wait_s >= deadline
            ):
                raise failure
            log.warning("model.again", code=failure.code, model=model, wait_s=round(wait_s, 1))
            await asyncio.sleep(wait_s)

    async def _timed(
        self, step: ModelStep, model: str, deadline: float
    ) -> AsyncGenerator[Part, None]:
        """One attempt, its first part by the deadline, each next one in time."""
        loop = asyncio.get_running_loop()
        limit_s = self.settings.timeout_s
        silent_until = deadline + (MAX_SILENT_WAITS - 1) * limit_s
        async with aclosing(self.ask(step, model)) as parts:
            while True:
                try:
                    async with asyncio.timeout_at(min(deadline, silent_until)):
                        part = await anext(parts)
                except StopAsyncIteration:
                    return
                except TimeoutError:
                    silent = deadline > silent_until
                    wait_s = limit_s * (MAX_SILENT_WAITS if silent else 1)
                    raise ModelFailure(
                        "model.timeout", f"nothing came for {wait_s:g} s", model
                    ) from None
                deadline = loop.time() + limit_s
                if part is not None:
                    silent_until = loop.time() + MAX_SILENT_WAITS * limit_s
                    yield part


def open_session(
    response_class: type[aiohttp.ClientResponse] = aiohttp.ClientResponse,
) -> aiohttp.ClientSession:
    """Connections to a service: as many as there are calls, without deadlines of their own."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=None),
        response_class=response_class,
    )


def http_failure(
    status: int, model: str, reasons: Iterable[Any] = (), retry_after_s: float | None = None
) -> ModelFailure:
    """The failure that an HTTP status means.

    `reasons`: what may be the service's own short code. Its sentences stay out of the message:
    they may repeat the key, or what was said.
    """
    codes = (one for one in reasons if isinstance(one, str) and _CODE.fullmatch(one))
    reason = next(codes, "")
    said = f"status {status}{f' ({reason})' if reason else ''}"
    again_s = PAUSE_S if retry_after_s is None else retry_after_s
    if status in (401, 403):
        return ModelFailure("model.auth", f"the service refuses us: {said}", model)
    if status == 404:
        return ModelFailure("model.unknown", f"the service has no such model: {said}", model)
    if status == 429:
        return ModelFailure("model.quota", f"too many requests: {said}", model, again_s)
    if status == 408 or status >= 500:
        return ModelFailure("model.unavailable", f"the service failed: {said}", model, again_s)
    return ModelFailure("model.rejected", f"the service rejects the request: {said}", model)
