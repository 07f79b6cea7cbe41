"""Pretended latency passes on the loop's clock; `as: text` overrules the recogniser."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

import pytest

from gateway.agent.link import memory_links
from gateway.call.profile import VoiceConfig
from gateway.errors import RuntimeFailure
from gateway.simulate.caller import StepSpan
from gateway.simulate.stand_ins import LateLink, LateSynthesiser, ScriptedRecogniser
from gateway.simulate.virtual_loop import VirtualLoop
from tests.simulate.voices import EchoRecogniser, ToneSynthesiser

T = TypeVar("T")
ONE_SECOND = bytes(16000)


class Clocked:
    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)


@pytest.fixture
def clocked() -> Iterator[Clocked]:
    loop = VirtualLoop()
    yield Clocked(loop)
    loop.cancel_all()
    loop.close()


def said(start: float, end: float | None, as_text: str | None) -> StepSpan:
    return StepSpan(0, "say", "say", 1, start, end, as_text=as_text)


def test_speech_takes_as_long_as_it_is_told(clocked: Clocked) -> None:
    voice = LateSynthesiser(ToneSynthesiser(), 0.15)
    pcm = clocked.run(voice.synthesise("hello", VoiceConfig(), "en-US", 8000))
    assert len(pcm) == 8000
    assert (clocked.loop.time(), voice.name) == (0.15, "tones")


@pytest.mark.parametrize(
    ("spans", "words"),
    [
        ([], "1 s"),
        ([said(8.5, 9.5, None)], "1 s"),
        ([said(8.5, 9.5, "yes please")], "yes please"),
        ([said(8.5, None, "yes please")], "yes please"),
        ([said(8.5, 9.5, "")], ""),
        ([said(1.0, 2.0, "long ago"), said(8.5, 9.5, "now")], "now"),
        ([said(8.6, 9.0, "one"), said(9.0, 9.5, "two")], "one two"),
        ([said(1.0, 2.0, "long ago")], "1 s"),
    ],
)
def test_the_script_says_what_was_understood_in_its_stretch(
    clocked: Clocked, spans: list[StepSpan], words: str
) -> None:
    async def script() -> str:
        recogniser = ScriptedRecogniser(EchoRecogniser(), 0.2, lambda: spans, origin_s=100.0)
        await asyncio.sleep(109.8)
        return await recogniser.recognise(ONE_SECOND, 8000, "en-US")

    assert clocked.run(script()) == words
    assert clocked.loop.time() == pytest.approx(110.0)


def test_inputs_arrive_late_and_in_order_and_outputs_at_once(clocked: Clocked) -> None:
    async def script() -> list[Any]:
        near, far = memory_links()
        link = LateLink(near, 0.3)
        await link.send({"n": 1})
        await link.send({"n": 2})
        got = [await far.receive(), await far.receive(), clocked.loop.time()]
        await far.send({"answer": [1]})
        got += [await link.receive(), clocked.loop.time()]
        await link.aclose()
        with pytest.raises(RuntimeFailure):
            await link.send({})
        got.append(await link.receive())
        return got

    assert clocked.run(script()) == [{"n": 1}, {"n": 2}, 0.3, {"answer": [1]}, 0.3, None]


def test_neither_side_sees_the_others_objects(clocked: Clocked) -> None:
    async def script() -> bool:
        near, far = memory_links()
        link = LateLink(near, 0.0)
        inner = {"a": [1]}
        await link.send({"inner": inner})
        received = await far.receive()
        assert received is not None
        return received["inner"] == inner and received["inner"] is not inner

    assert clocked.run(script())
