"""Sentences under way and sentences kept: what many calls want at once is made once.

A sentence is made by a task of its own, piece by piece; every call that wants it follows the same
pieces. A call that hangs up does not take the sentence from the others, nor from the next call.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from functools import partial

from gateway.audio.formats import Pcm
from gateway.errors import SpeechError
from gateway.speech.aside import Aside
from gateway.speech.cache import SpeechCache, SpeechKey
from gateway.speech.phrase_folder import PhraseFolder

Make = Callable[[SpeechKey], AsyncIterator[Pcm]]
"""One attempt at a sentence: its pieces in order. Raises SpeechError."""
FIRST_RETRY_S = 0.1


class _Making:
    """A sentence that is being made."""

    __slots__ = ("_grown", "done", "error", "pieces")

    def __init__(self) -> None:
        self.pieces: list[Pcm] = []
        self.done = False
        self.error: SpeechError | None = None
        self._grown = asyncio.Event()

    def add(self, pcm: Pcm) -> None:
        self.pieces.append(pcm)
        self._wake()

    def finish(self, error: SpeechError | None = None) -> None:
        self.error = error
        self.done = True
        self._wake()

    def _wake(self) -> None:
        grown, self._grown = self._grown, asyncio.Event()
        grown.set()

    async def piece(self, number: int) -> Pcm | None:
        """Wait for a piece; None after the last. Raises the error that ended the sentence."""
        while number >= len(self.pieces):
            if self.error is not None:
                # A copy: one exception raised in many calls would collect all their tracebacks.
                error = self.error
                raise SpeechError(error.code, error.message, where=error.where, hint=error.hint)
            if self.done:
                return None
            await self._grown.wait()
        return self.pieces[number]


class Phrases:
    """Sentences by their key. `attempts` tries for those errors whose code is in `worth_retrying`.

    A try that fails half-way is followed by the whole sentence: nothing is lost, some is heard
    twice.
    """

    def __init__(
        self,
        make: Make,
        cache: SpeechCache,
        *,
        folder: PhraseFolder | None = None,
        attempts: int = 1,
        worth_retrying: frozenset[str] = frozenset(),
    ) -> None:
        self._make = make
        self._cache = cache
        self._folder = folder
        self._aside = Aside("phrases")
        self._attempts = attempts
        self._worth_retrying = worth_retrying
        self._under_way: dict[SpeechKey, _Making] = {}
        self._tasks: dict[asyncio.Task[None], _Making] = {}
        self._closed = False

    async def start(self) -> None:
        """Open the folder, where there is one. Raises ConfigError."""
        if self._folder is not None:
            await self._aside.run(self._folder.open)

    async def stream(self, key: SpeechKey) -> AsyncGenerator[Pcm, None]:
        """The pieces of a sentence as they come, at once where it is kept. Raises SpeechError."""
        if (kept := self._cache.get(key)) is not None:
            yield kept
            return
        if self._closed:
            raise _closed()
        making = self._under_way.get(key)
        if making is None:
            making = self._under_way[key] = _Making()
            task = asyncio.create_task(self._run(key, making), name="speech-synthesis")
            self._tasks[task] = making
            task.add_done_callback(self._tasks.pop)
        number = 0
        while (pcm := await making.piece(number)) is not None:
            number += 1
            yield pcm

    async def whole(self, key: SpeechKey) -> Pcm:
        """A whole sentence. Raises SpeechError."""
        return b"".join([pcm async for pcm in self.stream(key)])

    async def _run(self, key: SpeechKey, making: _Making) -> None:
        try:
            made = await self._kept_on_disk(key)
            if made is not None:
                making.add(made)
                self._cache.put(key, made)
                making.finish()
            else:
                made = await self._try(key, making)
                self._cache.put(key, made)
                making.finish()
                if self._folder is not None:
                    await self._aside.run(partial(self._folder.put, key.digest, made))
        except SpeechError as error:
            making.finish(error)
        except BaseException:
            making.finish(_closed())
            raise
        finally:
            del self._under_way[key]

    async def _kept_on_disk(self, key: SpeechKey) -> Pcm | None:
        if self._folder is None:
            return None
        return await self._aside.run(partial(self._folder.get, key.digest))

    async def _try(self, key: SpeechKey, making: _Making) -> Pcm:
        for attempt in range(1, self._attempts + 1):
            pieces: list[Pcm] = []
            try:
                async for pcm in self._make(key):
                    pieces.append(pcm)
                    making.add(pcm)
            except SpeechError as error:
                if attempt == self._attempts or error.code not in self._worth_retrying:
                    raise
                await asyncio.sleep(FIRST_RETRY_S * 2 ** (attempt - 1))
            else:
                return b"".join(pieces)
        raise AssertionError("unreachable")

    async def aclose(self) -> None:
        """Break off what is under way; who waits for it meets speech.closed.

        What is made already is still written down.
        """
        self._closed = True
        for task, making in self._tasks.items():
            if not making.done:
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._aside.close()


def _closed() -> SpeechError:
    return SpeechError("speech.closed", "the speech engines have ended")
