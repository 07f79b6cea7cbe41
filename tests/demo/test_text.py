"""The demo in text, one test a pattern: what the runtime sends to the gateway."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from gateway.bidi import CUSTOMIZED_RESPONSE, interrupted_text
from tests.demo.talk import talking

HOLD = {"audioUri": "audio/hold_music.wav", "cancellable": True, "loop": True}
WAIT = {"audioUri": "audio/async_music.wav", "cancellable": True}
CHIME = {"audioUri": "audio/closing.wav", "interruptable": False}


async def test_the_session_starts_with_a_protected_recording(tmp_path: Path) -> None:
    async with talking(tmp_path) as (_, greeting):
        assert greeting.parts == [
            {
                "audioUri": "audio/greeting.wav",
                "transcript": "Welcome to Northlight Energy. How can I help you today?",
                "interruptable": False,
            }
        ]


async def test_a_prefix_is_spoken_before_the_model_s_answer(tmp_path: Path) -> None:
    async with talking(tmp_path) as (talk, _):
        turn = await talk.say("Which tariff is the cheapest for me?")
        assert turn.texts[0] == "Let me look at that for you."
        assert "Green Day is the cheapest" in turn.said


async def test_terms_are_protected_and_the_question_after_them_is_not(tmp_path: Path) -> None:
    async with talking(tmp_path) as (talk, _):
        terms, question = (await talk.say("I need a payment plan.")).parts
        assert isinstance(terms, dict)
        assert terms[CUSTOMIZED_RESPONSE]["disableBargeIn"] is True
        assert "credit agreement" in terms[CUSTOMIZED_RESPONSE]["content"]
        assert isinstance(question, str)
        assert "six months" in question
        assert (await talk.say("Six months please.")).said.startswith("Done.")


async def test_terms_are_read_out_once_a_call(tmp_path: Path) -> None:
    async with talking(tmp_path) as (talk, _):
        await talk.say("I need a payment plan.")
        turn = await talk.say("A payment plan, I said.")
        assert turn.payloads == []
        assert "six months or all in one go" in turn.said


async def test_music_stands_before_the_result_of_a_slow_tool(tmp_path: Path) -> None:
    async with talking(tmp_path) as (talk, _):
        said, music, result = (await talk.say("My power is out.")).parts
        assert said == "I will test your line."
        assert music == HOLD
        assert isinstance(result, str)
        assert "a broken cable" in result
        assert "at four o'clock" in result


async def test_a_background_tool_answers_in_a_turn_of_its_own(tmp_path: Path) -> None:
    async with talking(tmp_path) as (talk, _):
        said, music = (await talk.say("Please book an engineer.")).parts
        assert isinstance(said, str)
        assert said.startswith("I am booking an engineer.")
        assert music == WAIT
        assert (await talk.turn()).said == "Your engineer is booked and comes on Tuesday morning."


async def test_the_caller_is_answered_while_a_tool_works(tmp_path: Path) -> None:
    async with talking(tmp_path) as (talk, _):
        await talk.say("Please book an engineer.")
        assert "nine to five" in (await talk.say("What are your opening hours?")).said
        assert "on Tuesday morning" in (await talk.turn()).said


async def test_the_third_silence_in_a_row_ends_the_call(tmp_path: Path) -> None:
    async with talking(tmp_path) as (talk, _):
        assert (await talk.silent()).said == "Are you still there?"
        assert "cannot hear you" in (await talk.silent()).said
        assert "Goodbye" in (await talk.silent()).said
        assert (await talk.end())["reason"] == "caller silent"


async def test_a_word_in_between_starts_the_count_again(tmp_path: Path) -> None:
    async with talking(tmp_path) as (talk, _):
        await talk.silent()
        await talk.silent()
        await talk.say("What are your opening hours?")
        assert (await talk.silent()).said == "Are you still there?"


async def test_the_notice_is_added_to_the_first_balance_only(tmp_path: Path) -> None:
    async with talking(tmp_path) as (talk, _):
        first = await talk.say("What is my balance?")
        assert first.texts[-1] == "This figure is provisional."
        second = await talk.say("What is my balance?")
        assert "84 euros" in second.said
        assert "provisional" not in second.said


async def test_a_notice_that_the_model_gives_itself_is_not_doubled(tmp_path: Path) -> None:
    async with talking(tmp_path) as (talk, _):
        turn = await talk.say("Please tell me my exact balance.")
        assert turn.said.count("provisional") == 1


async def test_the_screen_gets_the_trimmed_balance_before_it_is_spoken(tmp_path: Path) -> None:
    async with talking(tmp_path) as (talk, _):
        turn = await talk.say("What is my balance?")
        card = {"balanceCard": {"euros": 84, "due": "the first of the month"}}
        assert turn.parts[0] == card


async def test_a_failed_tool_hands_over_to_another_agent(tmp_path: Path) -> None:
    async with talking(tmp_path) as (talk, _):
        turn = await talk.say("I have a meter reading for you.")
        assert "something went wrong" in turn.texts[0]
        assert "This is the care team." in turn.texts[1]
        assert "meter service" not in turn.said


async def test_a_failed_payment_ends_the_session_politely(tmp_path: Path) -> None:
    async with talking(tmp_path) as (talk, _):
        turn = await talk.say("I want to pay my bill.")
        assert "Nothing was charged." in turn.said
        assert (await talk.end())["reason"] == "payment service failed"


async def test_the_account_number_comes_from_the_keypad(tmp_path: Path) -> None:
    async with talking(tmp_path) as (talk, _):
        (asked,) = (await talk.say("I want to see my contract.")).payloads
        response = asked[CUSTOMIZED_RESPONSE]
        assert response["enableDtmf"] is True
        assert response["dtmfFinishDigit"] == "#"
        (again,) = (await talk.press("4711")).payloads
        assert "not six digits" in again[CUSTOMIZED_RESPONSE]["content"]
        assert "Green Day" in (await talk.press("471100")).said


async def test_a_known_account_number_is_not_asked_for(tmp_path: Path) -> None:
    async with talking(tmp_path, account_number="471100") as (talk, _):
        turn = await talk.say("I want to see my contract.")
        assert turn.payloads == []
        assert "Green Day" in turn.said


async def test_the_call_is_logged_before_its_session_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "app")
    async with talking(tmp_path) as (talk, _):
        turn = await talk.say("Goodbye.")
        assert "Thank you for calling" in turn.said
        assert turn.parts[-1] == CHIME
        assert (await talk.end())["reason"] == "caller said goodbye"
    (line,) = [record.getMessage() for record in caplog.records if "logged" in record.getMessage()]
    assert line.startswith("call logged: reference=NL-002")
    assert "Goodbye" not in line


async def test_options_travel_as_chips_too(tmp_path: Path) -> None:
    async with talking(tmp_path) as (talk, _):
        said, payload = (await talk.say("What are my options?")).parts
        assert said == "Available options are: bills, power cuts and tariffs."
        assert payload == {"chips": ["bills", "power cuts", "tariffs"]}


async def test_the_prompt_changes_with_what_the_caller_asks_for(tmp_path: Path) -> None:
    async with talking(tmp_path) as (talk, _):
        assert "Monday to Friday" in (await talk.say("What are your opening hours?")).said
        await talk.say("Please keep it short.")
        assert (await talk.say("What are your opening hours?")).said == "Nine to five."


async def test_the_prompt_changes_with_the_platform_s_variables(tmp_path: Path) -> None:
    async with talking(tmp_path, customer_tier="gold", customer_name="Maria") as (talk, _):
        assert "gold customers" in (await talk.say("What are your opening hours?")).said
        assert (await talk.say("What is my balance?")).said.startswith("Maria, your balance")


async def test_an_interrupted_agent_knows_what_was_heard(tmp_path: Path) -> None:
    async with talking(tmp_path) as (talk, _):
        await talk.say("Tell me about your tariffs.")
        talk.interrupt(interrupted_text("We have three tariffs."))
        assert "I stopped there" in (await talk.say("Stop, please.")).said


async def test_the_model_protects_a_safety_message_itself(tmp_path: Path) -> None:
    async with talking(tmp_path) as (talk, _):
        (payload,) = (await talk.say("I smell gas.")).payloads
        response = payload[CUSTOMIZED_RESPONSE]
        assert response["disableBargeIn"] is True
        assert "leave the house" in response["content"]


async def test_a_person_is_reached_with_the_number_to_dial(tmp_path: Path) -> None:
    async with talking(tmp_path) as (talk, _):
        assert "care team" in (await talk.say("I want to talk to a person.")).said
        turn = await talk.say("Yes please.")
        assert turn.said == "I am connecting you now."
        assert turn.payloads == []
        metadata = await talk.end()
        assert metadata["session_escalated"] is True
        assert metadata["params"]["PHONE_GATEWAY_TRANSFER"]["phoneNumber"] == "+15550123"


async def test_the_desks_find_each_other(tmp_path: Path) -> None:
    async with talking(tmp_path) as (talk, _):
        assert "84 euros" in (await talk.say("What is my balance?")).said
        assert "tested your line" in (await talk.say("My power is out.")).said
        assert "three tariffs" in (await talk.say("Tell me about your tariffs.")).said
