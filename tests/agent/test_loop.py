"""The agent loop: order of callbacks, parts, tools, transfers and ends, pattern by pattern."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config import Settings
from tests.agent.talk import SESSION, talk, texts

MUSIC = {"audioUri": "audio/music.wav", "cancellable": True}


async def test_six_callbacks_run_in_order_and_after_agent_replaces_the_output() -> None:
    async with talk("six_callbacks") as client:
        assert texts(await client.say("look")) == [
            "before_agent before_model after_model before_tool:look_up after_tool:ABC"
            " before_model after_model after_agent"
        ]


async def test_greeting_file_disclaimer_and_question_keep_their_order_and_flags() -> None:
    async with talk("voice_patterns") as client:
        assert await client.event("session_start") == [
            {
                "payload": {
                    "audioUri": "audio/hello.wav",
                    "transcript": "Hello from a file.",
                    "interruptable": False,
                    "extra": 1,
                }
            },
            {
                "payload": {
                    "customizedResponse": {
                        "content": "Calls are recorded.",
                        "disableBargeIn": True,
                        "enableDtmf": False,
                        "dtmfFinishDigit": "#",
                        "dtmfEndpointingTimeout": 3,
                    }
                }
            },
            {"text": "How can I help?"},
        ]


async def test_a_partial_response_is_said_and_the_model_goes_on() -> None:
    async with talk("voice_patterns") as client:
        assert texts(await client.say("prefix please")) == ["One second.", "Here is the rest."]


async def test_music_goes_out_before_the_slow_tool_runs() -> None:
    async with talk("voice_patterns") as client:
        assert await client.say("activate it") == [
            {"text": "I activate it."},
            {"payload": MUSIC},
            {"text": "It is active."},
        ]


async def test_an_asynchronous_tool_leaves_the_turn_and_its_result_starts_another() -> None:
    async with talk("voice_patterns") as client:
        assert await client.say("order it") == [
            {"text": "This may take a while."},
            {
                "payload": {
                    "audioUri": "audio/music.wav",
                    "cancellable": True,
                    "interruptable": True,
                }
            },
        ]
        assert texts(await client.turn()) == ["Your order is sent."]


async def test_mandatory_content_is_added_only_where_it_is_missing() -> None:
    async with talk("voice_patterns") as client:
        assert texts(await client.say("my rights")) == ["DISCLAIMER", "You have rights."]
        assert texts(await client.say("say it twice")) == ["DISCLAIMER and rights."]


async def test_variables_set_before_the_model_change_its_prompt() -> None:
    async with talk("voice_patterns") as client:
        assert texts(await client.say("talk like a pirate")) == ["Arr, amused."]


async def test_a_tool_inserted_before_the_end_runs_first() -> None:
    async with talk("voice_patterns") as client:
        assert texts(await client.say("bye")) == ["Goodbye."]
        assert await client.receive() == {"endSession": {"metadata": {"reason": "done"}}}


async def test_silence_is_asked_about_once_and_then_ends_the_session() -> None:
    silence = "<context>no user activity detected for 8 seconds.</context>"
    async with talk("voice_patterns") as client:
        assert texts(await client.say(silence)) == ["Are you still there?"]
        assert texts(await client.say(silence)) == ["Goodbye then."]
        assert (await client.receive())["endSession"]["metadata"] == {"reason": "silence"}


async def test_the_model_transfers_and_the_new_agent_answers_in_the_same_turn() -> None:
    async with talk("transfer") as client:
        assert texts(await client.say("my bill")) == ["One moment.", "Billing here."]
        assert texts(await client.say("my bill")) == ["Billing here."]


async def test_a_failed_tool_is_handed_to_another_agent_by_a_callback() -> None:
    async with talk("transfer") as client:
        await client.say("my bill")
        assert texts(await client.say("log in")) == [
            "Something failed, I hand you over.",
            "Rescue here.",
        ]


async def test_entry_agent_is_taken_from_the_config() -> None:
    entry = f"{SESSION.rsplit('/sessions', 1)[0]}/agents/Rescue"
    async with talk("transfer", entryAgent=entry) as client:
        assert texts(await client.say("hello")) == ["Rescue here."]


async def test_neighbouring_calls_run_at_the_same_time() -> None:
    async with talk("parallel") as client:
        assert texts(await client.say("meet")) == ["Going.", '{"met": true}']


async def test_what_stands_between_two_calls_is_said_between_them() -> None:
    async with talk("parallel") as client:
        assert texts(await client.say("alone")) == ["And then.", '{"error": "nobody came"}']


async def test_an_unknown_tool_is_an_error_to_the_model() -> None:
    async with talk("misbehaving") as client:
        assert texts(await client.say("unknown")) == ["Still here."]


async def test_too_many_model_steps_end_the_turn_with_an_apology(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("default: [{say: Let me see.}, {call: authentication}]\n")
    settings = Settings.model_validate(
        {"model": {"script": str(script)}, "runtime": {"max_steps": 3}}
    )
    async with talk("transfer", settings) as client:
        said = texts(await client.say("hello"))
    assert said == ["Let me see."] * 3 + [settings.call.fallback_message]


async def test_endless_transfers_end_the_turn_with_an_apology(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text(
        "rules:\n"
        "  - {agent: Front Desk, do: [{transfer: Rescue}]}\n"
        "  - {agent: Rescue, do: [{transfer: Front Desk}]}\n"
    )
    settings = Settings.model_validate({"model": {"script": str(script)}})
    async with talk("transfer", settings) as client:
        assert texts(await client.say("hello")) == [settings.call.fallback_message]


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("loop", "Still here."),
        ("raise", "Still here."),
        ("exit", "Still here."),
        ("nonsense", "Still here."),
    ],
)
async def test_a_callback_that_misbehaves_counts_as_silent(words: str, answer: str) -> None:
    settings = Settings.model_validate({"runtime": {"callback_timeout_s": 0.2}})
    async with talk("misbehaving", settings) as client:
        assert texts(await client.say(words)) == [answer]
        assert texts(await client.say("again")) == ["Still here."]


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("tool spin", 'Tool: {"error": "the tool took longer than 0.2 seconds"}'),
        ("tool exit", 'Tool: {"error": "AppCodeExit: app code raised SystemExit"}'),
    ],
)
async def test_a_tool_that_misbehaves_gives_the_model_an_error(words: str, answer: str) -> None:
    async with talk("misbehaving") as client:
        assert texts(await client.say(words)) == [answer]
        assert texts(await client.say("again")) == ["Still here."]
