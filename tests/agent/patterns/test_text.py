"""Each voice pattern as its author expects it, in text: order, parts, what the model reads."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agent.loopback import Api, api_server
from tests.agent.talk import APPS, talk, texts

START = "session_start"


def _app(pattern: str) -> str:
    return f"pattern_{pattern}"


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with api_server() as server:
        yield server


async def test_greeting_is_said_without_the_model() -> None:
    async with talk(_app("greeting")) as client:
        assert await client.event(START) == [{"text": "Welcome to the library."}]
        assert texts(await client.say("when are you open")) == ["We are open until six."]


async def test_prefix_is_out_before_the_model_has_thought() -> None:
    async with talk(_app("prefix")) as client:
        await client.send(event={"event": START})
        # The model waits two seconds; the first sentence does not.
        assert (await client.receive())["sessionOutput"]["text"] == "Hello, this is the museum."
        assert texts(await client.turn()) == ["Today we show old maps."]


async def test_mandatory_content_is_added_once_and_only_where_it_is_missing() -> None:
    notice = "This call is recorded."
    async with talk(_app("mandatory")) as client:
        assert texts(await client.say("you forget")) == [notice, "Here I am."]
        assert texts(await client.say("you forget")) == ["Here I am."]
    async with talk(_app("mandatory")) as client:
        assert texts(await client.say("you remember")) == [f"{notice} Here I am."]


async def test_a_tool_of_the_apps_own_runs_before_the_end(api: Api) -> None:
    async with talk(_app("end_tool")) as client:
        await client.send(variables={"log_url": f"{api.url}/log"})
        assert texts(await client.say("bye")) == ["Goodbye."]
        assert await client.receive() == {"endSession": {"metadata": {"reason": "caller said bye"}}}
    assert (api.last["path"], api.last["body"]) == ("/log", {"session": "session-1"})


async def test_a_screen_is_updated_before_the_model_speaks_of_it() -> None:
    async with talk(_app("ui_update")) as client:
        assert await client.say("my order") == [
            {"payload": {"order": "12", "step": "packed"}},
            {"text": "Your order is packed."},
        ]


async def test_chips_go_to_the_client_and_never_to_the_model() -> None:
    async with talk(_app("chips")) as client:
        assert await client.say("my options") == [
            {"text": "You can choose: tea, coffee, water."},
            {"payload": {"chips": ["tea", "coffee", "water"]}},
        ]
        assert texts(await client.say("what did you say")) == ["I said something."]


async def test_markdown_of_a_tool_is_passed_on_as_it_is() -> None:
    async with talk(_app("markdown")) as client:
        (said,) = texts(await client.say("show me"))
        assert said == (
            "**Our house**\n\n![house](https://example.com/house.png)\n\n"
            "[the way](https://example.com/way)"
        )


async def test_a_greeting_file_brings_its_words_and_its_rule() -> None:
    async with talk(_app("greeting_file")) as client:
        assert await client.event(START) == [
            {
                "payload": {
                    "audioUri": "audio/hello.wav",
                    "transcript": "You have reached the harbour office.",
                    "interruptable": False,
                }
            }
        ]


async def test_music_goes_out_before_the_slow_tool() -> None:
    music = {"audioUri": "audio/music.wav", "cancellable": True, "loop": True}
    async with talk(_app("music_slow_tool")) as client:
        await client.send(variables={"takes_s": 0.1})
        assert await client.say("my card") == [
            {"text": "One moment."},
            {"payload": music},
            {"text": "The card works now."},
        ]


async def test_music_of_an_asynchronous_tool_ends_the_turn_and_the_result_begins_one() -> None:
    async with talk(_app("music_async_tool")) as client:
        await client.send(variables={"takes_s": 1})
        said, music = await client.say("a lamp")
        assert said == {"text": "I send it off, that takes a while."}
        assert music["payload"]["cancellable"] is True
        # Meanwhile the caller may go on.
        assert texts(await client.say("the price")) == ["A lamp costs ten euros."]
        assert texts(await client.turn()) == ["It is order number 31."]


async def test_one_part_of_a_response_forbids_barge_in_the_next_does_not() -> None:
    async with talk(_app("no_barge_in")) as client:
        protected, free = await client.event(START)
        assert protected["payload"]["customizedResponse"]["disableBargeIn"] is True
        assert free["text"].startswith("Now tell me")


async def test_silence_is_answered_by_the_app_and_then_ends_the_call() -> None:
    silence = "<context>no user activity detected for 4 seconds.</context>"
    async with talk(_app("silence")) as client:
        assert texts(await client.event(START)) == ["Good day."]
        assert texts(await client.say(silence)) == ["Are you still with me?"]
        assert texts(await client.say(silence)) == ["Then I hang up. Bye."]
        assert (await client.receive())["endSession"]["metadata"] == {"reason": "silence"}


async def test_a_failed_tool_hands_over() -> None:
    async with talk(_app("transfer_on_failure")) as client:
        assert texts(await client.say("my password")) == [
            "That did not work, a colleague takes over.",
            "Here is the colleague.",
        ]


async def test_a_failed_tool_ends_the_session_politely() -> None:
    async with talk(_app("end_on_failure")) as client:
        assert texts(await client.say("my password")) == [
            "That did not work, please call again tomorrow."
        ]
        assert (await client.receive())["endSession"]["metadata"] == {"reason": "sign-in failed"}


def with_api(folder: Path, api: Api) -> Path:
    """The OpenAPI pattern with the loopback service in its environment."""
    app = folder / "app"
    shutil.copytree(APPS / "pattern_openapi_context", app)
    toolsets: dict[str, Any] = {"Readings": {"openApiToolset": {"url": api.url}}}
    (app / "environment.json").write_text(json.dumps({"toolsets": toolsets}))
    return app


async def test_an_api_learns_of_the_session_what_the_model_never_sees(
    tmp_path: Path, api: Api
) -> None:
    api.answers["/sessions/session-1/latest"] = (200, {"kwh": "470"})
    async with talk(with_api(tmp_path, api)) as client:
        assert texts(await client.say("my meter")) == ["The meter shows 470."]
    assert sorted(api.last["query"]) == [["meter", "M-77"], ["unit", "kwh"]]
    assert api.last["body"] == {"meter": "M-77"}


async def test_the_prompt_changes_with_the_caller() -> None:
    async with talk(_app("dynamic_prompt")) as client:
        assert texts(await client.say("a joke")) == ["A plain joke."]
        assert texts(await client.say("my name is Peter")) == ["Noted, Peter."]
        assert texts(await client.say("a joke")) == ["Ahoy, a joke."]
        await client.say("my name is Bob")
        assert texts(await client.say("a joke")) == ["Order, a joke."]
