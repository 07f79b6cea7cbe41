"""One BidiRunSession served: inputs, interruption, asynchronous tools, resume, refusal."""

from __future__ import annotations

import asyncio

import pytest

from gateway.agent.runner import ThreadRunner
from gateway.agent.store import SessionStore
from tests.agent.talk import WAIT_S, Talk, talk, texts

INTERRUPTED = "<context>agent speaking was interrupted. user only heard 'Think'</context>"


async def test_turns_are_counted_from_one() -> None:
    async with talk("tools") as client:
        await client.send(text="hello")
        assert await client.receive() == {"sessionOutput": {"text": "Pardon?", "turnIndex": 1}}
        assert await client.receive() == {"sessionOutput": {"turnIndex": 1, "turnCompleted": True}}
        await client.send(text="hello")
        assert await client.receive() == {"sessionOutput": {"text": "Pardon?", "turnIndex": 2}}


async def test_tool_arguments_in_camel_case_reach_a_function_in_snake_case() -> None:
    async with talk("tools") as client:
        assert texts(await client.say("add 2 and 3")) == ["Let me see.", "It is 5, Bob."]


async def test_tools_call_tools_and_start_asynchronous_ones() -> None:
    async with talk("tools") as client:
        assert texts(await client.say("chain")) == ["3 and ValueError: no such meter"]
        assert texts(await client.turn()) == ["Done is true."]


async def test_a_raising_tool_is_an_error_to_the_model() -> None:
    async with talk("tools") as client:
        assert texts(await client.say("fail")) == ["It failed: ValueError: no such meter"]


async def test_collected_digits_become_the_users_words() -> None:
    async with talk("tools") as client:
        await client.send(dtmf="1")
        assert texts(await client.turn()) == ["You pressed one."]


async def test_customize_response_by_the_model_is_a_payload_and_ends_the_turn() -> None:
    async with talk("tools") as client:
        assert await client.say("menu") == [
            {
                "payload": {
                    "customizedResponse": {
                        "content": "Press one.",
                        "disableBargeIn": False,
                        "enableDtmf": True,
                        "dtmfFinishDigit": "",
                        "dtmfEndpointingTimeout": 5.0,
                    }
                }
            }
        ]


async def test_only_declared_variables_are_taken_from_the_client() -> None:
    async with talk("tools") as client:
        await client.send(variables={"customer": 4711.0, "secret": "x"})
        assert texts(await client.say("bye")) == ["Goodbye."]
        assert (await client.receive())["endSession"]["metadata"] == {
            "reason": "done",
            "session_escalated": True,
            "params": {"queue": "billing", "by": "4711"},
        }


async def test_the_server_closes_when_the_client_does_not_after_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gateway.agent.session.CLOSE_WAIT_S", 0.05)
    async with talk("tools") as client:
        await client.say("bye")
        assert await client.closed() == (1000, "")


async def test_the_end_of_the_call_is_answered_and_then_ends_the_session() -> None:
    async with talk("tools") as client:
        await client.event("sys.remote-call-disconnected")
        assert "endSession" in await client.receive()


# ---- interruption


async def _until_thinking(client: Talk) -> None:
    await client.send(text="think")
    assert (await client.receive())["sessionOutput"]["text"] == "Thinking."


async def test_new_input_cancels_the_open_turn_with_one_completion() -> None:
    async with talk("tools") as client:
        await _until_thinking(client)
        await client.send(text="add 2 and 3")
        assert await client.receive() == {"sessionOutput": {"turnIndex": 1, "turnCompleted": True}}
        assert texts(await client.turn()) == ["Let me see.", "It is 5, Bob."]


async def test_a_fragment_cancels_at_once_and_the_rest_completes_the_same_turn() -> None:
    async with talk("tools") as client:
        await _until_thinking(client)
        await client.send(text=INTERRUPTED, willContinue=True)
        assert await client.receive() == {"sessionOutput": {"turnIndex": 1, "turnCompleted": True}}
        await client.send(text="", will_continue=True)
        await client.send(text="chain")
        assert texts(await client.turn()) == ["3 and ValueError: no such meter"]


async def test_a_running_tool_is_waited_for_and_its_result_is_kept() -> None:
    async with talk("voice_patterns") as client:
        await client.send(text="hang on")
        await client.receive()  # the music: the tool runs now
        await client.send(text="", willContinue=True)
        assert "turnCompleted" in (await client.receive())["sessionOutput"]
        await client.send(text="my rights")
        # The next turn starts after the tool; nothing of the old turn comes any more.
        assert texts(await client.turn()) == ["DISCLAIMER", "You have rights."]


async def test_an_asynchronous_result_waits_for_the_callers_open_turn() -> None:
    async with talk("tools") as client:
        assert texts(await client.say("slow")) == ["I am on it."]
        await client.send(text="", willContinue=True)
        await client.send(text="hello there")
        # Both are in the one input that the caller completed: the context comes first.
        assert texts(await client.turn()) in (["Done is true."], ["Pardon?"])


# ---- functions of the client


async def test_a_client_function_is_asked_of_the_client_and_answered() -> None:
    async with talk("tools") as client:
        await client.send(text="phone")
        (call,) = (await client.receive())["sessionOutput"]["toolCalls"]["toolCalls"]
        assert (call["displayName"], call["args"]) == ("on_phone", {"colour": "red"})
        await client.send(
            toolResponses={
                "toolResponses": [{"id": call["id"], "response": {"output": {"answer": "yes"}}}]
            }
        )
        assert texts(await client.turn()) == ["The phone says yes."]


async def test_a_barge_in_ends_the_wait_for_a_client_function() -> None:
    async with talk("tools") as client:
        await client.send(text="phone")
        await client.receive()
        await client.send(text="hello")
        assert await client.turn() == []
        assert texts(await client.turn()) == ["Pardon?"]


# ---- resume


async def test_a_session_is_taken_up_again_by_its_name() -> None:
    store, runner = SessionStore(), ThreadRunner()
    async with talk("tools", store=store, runner=runner) as client:
        await client.say("add 2 and 3")
        assert texts(await client.say("slow")) == ["I am on it."]
    async with talk("tools", store=store, runner=runner) as client:
        # What the agent said meanwhile was kept; the variables are those of the first connection.
        assert texts(await client.turn()) == ["Done is true."]
        await client.say("bye")
        assert (await client.receive())["endSession"]["metadata"]["params"]["by"] == "Bob"
    # A session that has ended is not kept.
    assert len(store) == 0
    await store.aclose()


async def test_a_second_connection_takes_the_session_over() -> None:
    store = SessionStore()
    async with talk("tools", store=store) as first:
        await first.say("hello")
        async with talk("tools", store=store) as second:
            assert (await first.closed())[0] == 1000
            await second.send(text="hello")
            assert (await second.receive())["sessionOutput"]["turnIndex"] == 2
    await store.aclose()


async def test_a_client_that_does_not_read_loses_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gateway.agent.link.QUEUE_SIZE", 2)
    monkeypatch.setattr("gateway.agent.session.SEND_TIMEOUT_S", 0.05)
    async with talk("tools") as client:
        async with asyncio.timeout(WAIT_S):
            while client.link.close_code is None:
                await client.send(text="hello")
        assert await client.closed() == (1008, "the client does not read")


async def test_kept_sessions_are_bounded_and_forgotten_in_time() -> None:
    store = SessionStore(keep_s=0.0, max_kept=2)
    for number in range(5):
        name = f"projects/p/locations/l/apps/a/sessions/many-{number}"
        async with talk("tools", store=store, session=name) as client:
            await client.say("hello")
        assert len(store) <= 2
    await asyncio.sleep(0.01)
    assert len(store) == 0
    await store.aclose()


# ---- refusal


async def test_a_wrong_message_closes_with_its_reason() -> None:
    for message in (
        {"config": {"session": "again"}},
        {"realtimeInput": {"text": "a", "dtmf": "1"}},
        {"somethingElse": {}},
    ):
        async with talk("tools") as client:
            await client.link.send(message)
            code, reason = await client.closed()
            assert code == 1007
            assert reason.startswith("generic::invalid_argument: ")


async def test_a_wrong_config_closes_with_its_reason() -> None:
    for config in (
        {"session": "projects/p/locations/l/apps/a/sessions/bad!"},
        {"entryAgent": "projects/p/locations/l/apps/a/agents/Nobody"},
    ):
        async with talk("tools", **config) as client:
            code, reason = await client.closed()
            assert code == 1007
            assert reason.startswith("generic::invalid_argument: ")


async def test_a_flood_of_fragments_is_bounded() -> None:
    async with talk("tools") as client:
        for _ in range(1001):
            await client.send(text="x", willContinue=True)
        code, reason = await client.closed()
        assert code == 1008
        assert reason.startswith("generic::resource_exhausted: ")
