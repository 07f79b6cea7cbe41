"""An agent of your own behind the gateway, in one file: a websocket that speaks BidiRunSession.

    python examples/own_agent.py
    voice-gateway serve --set runtime.url=ws://127.0.0.1:9000

`answer` is where your model goes. The gateway does the rest: it hears, speaks, interrupts and ends.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

from websockets.asyncio.server import ServerConnection, serve

PORT = 9000


async def answer(words: str, variables: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    """The outputs of one turn, each as soon as it is there. A sentence is spoken at once."""
    if words == "<event>session start</event>":
        yield {"text": f"Welcome, {variables.get('caller_name', 'caller')}. What shall I repeat?"}
    elif words.startswith("<context>"):  # what the gateway says, such as a caller's silence
        yield {"text": "Are you still there?"}
    elif "hang up" in words.lower():
        yield {"text": "Good bye."}
        yield {"endSession": {"metadata": {"reason": "done", "params": {"last_words": words}}}}
    else:
        yield {"text": "You said:"}
        yield {"text": words}


class Session:
    """One call."""

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection
        self._variables: dict[str, Any] = {}
        self._words: list[str] = []
        self._turn = 0
        self._answering: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Until the gateway closes."""
        await self._connection.recv()  # {"config": {"session": …, …}}
        try:
            async for message in self._connection:
                self._hear(json.loads(message)["realtimeInput"])
        finally:
            self._stop()

    def _hear(self, told: dict[str, Any]) -> None:
        self._variables |= told.get("variables", {})
        if "event" in told:
            self._words.append(f"<event>{told['event']['event']}</event>")
        elif words := told.get("text") or told.get("dtmf"):
            self._words.append(words)
        # More of this turn follows: the caller talks, and the answer before is of no use any more.
        self._stop()
        if not told.get("willContinue") and self._words:
            words = " ".join(self._words)
            self._words.clear()
            self._turn += 1
            self._answering = asyncio.create_task(self._answer(words))

    async def _answer(self, words: str) -> None:
        async for output in answer(words, self._variables):
            await self._say(output)
        await self._say({"turnCompleted": True})

    async def _say(self, output: dict[str, Any]) -> None:
        if "endSession" in output:
            message = output
        else:
            message = {"sessionOutput": {**output, "turnIndex": self._turn}}
        await self._connection.send(json.dumps(message))

    def _stop(self) -> None:
        if self._answering is not None:
            self._answering.cancel()
            self._answering = None


async def main(port: int) -> None:
    """Serve calls until Ctrl-C."""
    async with serve(lambda connection: Session(connection).run(), "127.0.0.1", port) as server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else PORT))
