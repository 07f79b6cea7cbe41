"""A model behind a network in a simulated call: the call stands still while the service answers.

Virtual time then moves on by as much as the answer took, so that the caller waits as long as on
the telephone. Such runs differ from one another as the answers and their times do.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Coroutine
from typing import Any, TypeVar

from gateway.agent.models.base import Model, ModelStep
from gateway.agent.models.remote import RemoteModel
from gateway.agent.platform import Part

T = TypeVar("T")


def waited(model: Model) -> Model:
    """The model as a virtual loop can ask it; one that needs no network is so already."""
    return _WaitedModel(model) if isinstance(model, RemoteModel) else model


class _WaitedModel:
    """Asks the model in a loop with sockets, which runs in a thread of its own."""

    def __init__(self, model: RemoteModel) -> None:
        self.name = model.name
        self._model = model
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="waited-model")
        self._thread.start()

    async def generate(self, step: ModelStep) -> AsyncGenerator[Part, None]:
        """The parts of the answer, each after the virtual time that it took in ours."""
        parts = self._model.generate(step)
        try:
            while True:
                began_s = time.perf_counter()
                part = self._wait(_next(parts))
                await asyncio.sleep(time.perf_counter() - began_s)
                if part is None:
                    return
                yield part
        finally:
            self._wait(_close(parts))

    async def aclose(self) -> None:
        """Close the model and end the thread."""
        self._wait(self._model.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


async def _next(parts: AsyncGenerator[Part, None]) -> Part | None:
    return await anext(parts, None)


async def _close(parts: AsyncGenerator[Part, None]) -> None:
    await parts.aclose()
