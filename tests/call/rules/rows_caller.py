"""Rows: keys, silence, the end of the caller's turn, the end of the call."""

from __future__ import annotations

from gateway.bidi import NOISE_TEXT, REMOTE_DISCONNECTED, inactivity_text
from gateway.call.profile import ProtectedKeys
from tests.call.rules.row import (
    FALLBACK,
    Done,
    End,
    HangUp,
    Interrupt,
    Lose,
    Row,
    Text,
    agent,
    custom,
    hold,
    keys,
    length,
    play,
    protected,
    says,
)

LONG = "This is a rather long sentence that takes its time to be spoken."
ASKS = agent(0.1, Text("Your number."), Done())
TICK = inactivity_text(2)

KEYS = [
    Row("digits end with the finish key", [ASKS, keys(1.0, "1234#")], told=["#1234"]),
    Row("or with a pause", [ASKS, keys(1.0, "12")], told=["#12"]),
    Row(
        "digits may be spread over seconds",
        [ASKS, keys(1.0, "1"), keys(3.0, "2"), keys(5.0, "3#")],
        told=["#123"],
    ),
    Row(
        "a pause that is too long makes two numbers",
        [ASKS, keys(1.0, "1"), keys(5.0, "2#")],
        told=["#1", "#2"],
    ),
    Row("the finish key alone is an answer", [ASKS, keys(1.0, "#")], told=["##"]),
    Row(
        "too many digits are given in pieces",
        [ASKS, keys(1.0, "123456#")],
        {"dtmf_max_digits": 4},
        told=["#1234", "#56"],
    ),
    Row(
        "a key told twice is one",
        [ASKS, keys(1.0, "1"), keys(1.14, "1#")],
        {"dtmf_dedupe_s": 0.15},
        told=["#1"],
        wire=False,
    ),
    Row("the same key pressed twice is two", [ASKS, keys(1.0, "11#")], told=["#11"]),
    Row(
        "another finish key by setting",
        [ASKS, keys(1.0, "1#2*")],
        {"dtmf_finish_digit": "*"},
        told=["#1#2"],
    ),
    Row(
        "no finish key: only the pause ends",
        [ASKS, keys(1.0, "1#")],
        {"dtmf_finish_digit": "", "dtmf_timeout_s": 1.0},
        told=["#1#"],
    ),
    Row(
        "a channel without keys ignores them",
        [ASKS, keys(1.0, "1#")],
        {"disable_dtmf": True},
        told=[],
    ),
    Row(
        "keys are a turn that the agent answers",
        [ASKS, keys(1.0, "12#")],
        answers={"#12": [Text("Thank you.")]},
        ends={1: "completed", 2: "completed"},
    ),
    Row(
        "keys interrupt, and the number goes on",
        [agent(0.1, Text(LONG), Done()), keys(1.0, "12#")],
        ends={1: "barge_in"},
        cut=[("dtmf", [1])],
        cut_at=1.0,
        told=["~", "#12"],
    ),
    Row(
        "a response's own finish key",
        [
            agent(0.1, custom("Your pin.", enableDtmf=True, dtmfFinishDigit="*"), Done()),
            keys(1.5, "12*"),
        ],
        told=["#12"],
    ),
    Row(
        "a response's own pause",
        [
            agent(
                0.1, custom("Your pin.", enableDtmf=True, dtmfEndpointingTimeout="short"), Done()
            ),
            keys(1.5, "12"),
        ],
        told=["#12"],
        seconds=3.0,
    ),
    Row(
        "the next response has the common settings again",
        [
            agent(0.1, custom("Your pin.", enableDtmf=True, dtmfFinishDigit="*"), Done()),
            agent(1.5, Text("And now."), Done()),
            keys(3.0, "1#"),
        ],
        told=["#1"],
    ),
    Row(
        "a wrong finish key is reported and the response spoken",
        [agent(0.1, custom("Your pin.", enableDtmf=True, dtmfFinishDigit="##"), Done())],
        errors=["payload.value"],
        ends={1: "completed"},
    ),
    Row(
        "barge-in off and keys on together: keys are taken and cut nothing",
        [
            agent(0.1, custom(LONG, disableBargeIn=True, enableDtmf=True), Done()),
            says(0.5, 0.5, "hello"),
            keys(1.5, "12#"),
        ],
        ends={1: "completed"},
        told=["#12"],
        cut=[],
    ),
]


def _under(setting: ProtectedKeys, asked: bool) -> Row:
    kept = setting is ProtectedKeys.KEEP or (setting is ProtectedKeys.AUTO and asked)
    return Row(
        f"keys under protection: {setting}, {'asked for' if asked else 'not asked for'}",
        [
            agent(0.1, custom(LONG, disableBargeIn=True, enableDtmf=asked), Done()),
            keys(1.0, "12#"),
        ],
        {"keys_under_protection": setting},
        ends={1: "completed"},
        heard={1: length(LONG)},
        told=["#12"] if kept else [],
    )


UNDER = [_under(setting, asked) for setting in ProtectedKeys for asked in (True, False)] + [
    Row(
        "keys under a protected file are ignored",
        [agent(0.1, play("clip.wav", interruptable=False), Done()), keys(1.0, "1#")],
        files={"clip.wav": 2.0},
        told=[],
    ),
    Row(
        "keys under music of an open turn are ignored",
        [agent(0.1, hold(), Done(), turn=1), agent(0.2, hold(), turn=2), keys(1.0, "1#")],
        files={"music.wav": 2.0},
        told=[],
    ),
    Row(
        "a number begun under protection is finished after it",
        [
            agent(0.1, custom("Your pin.", disableBargeIn=True, enableDtmf=True), Done()),
            keys(0.3, "1"),
            keys(1.5, "2#"),
        ],
        told=["#12"],
    ),
]

SILENT = {"inactivity_s": 2.0}
SILENCE = [
    Row(
        "silence is told from when the agent was heard to the end",
        [ASKS],
        SILENT,
        told=[TICK],
        kinds={"inactivity": 1},
        seconds=4.0,
    ),
    Row("once, until it is answered", [ASKS], SILENT, told=[TICK], seconds=20.0),
    Row(
        "again after each answer was heard",
        [ASKS],
        SILENT,
        answers={TICK: [Text("Still there.")]},
        told=[TICK, TICK, TICK],
        seconds=9.2,
    ),
    Row("never, where the app does not ask for it", [ASKS], told=[], seconds=20.0),
    Row(
        "words put it off",
        [ASKS, says(2.0, 0.5, "hm well")],
        SILENT,
        answers={"hm well": [Text("Yes.")]},
        told=["hm well"],
        seconds=4.5,
    ),
    Row(
        "noise does not put it off for ever",
        [ASKS, says(1.5, 0.4)],
        SILENT,
        told=[TICK],
        seconds=5.0,
    ),
    Row("not while a number is keyed in", [ASKS, keys(2.0, "1")], SILENT, told=["#1"], seconds=5.4),
    Row(
        "not while music bridges an open turn",
        [agent(0.1, hold())],
        SILENT,
        files={"music.wav": 6.0},
        told=[],
        seconds=5.0,
    ),
    Row(
        "not while a turn is open",
        [agent(0.1, Text("Let me see."))],
        SILENT,
        told=[],
        seconds=6.0,
    ),
    Row(
        "not while a long file plays",
        [agent(0.1, play("clip.wav"), Done())],
        SILENT,
        files={"clip.wav": 5.0},
        told=[],
        seconds=5.0,
    ),
    Row(
        "after protected speech as after any other",
        [agent(0.1, protected("Terms."), Done())],
        SILENT,
        told=[TICK],
        seconds=4.0,
    ),
    Row(
        "after a response without words too",
        [agent(0.1, Done())],
        SILENT,
        told=[TICK],
        seconds=3.0,
    ),
]

TURNS = [
    Row(
        "a finished turn is given at the first pause",
        [ASKS, says(1.5, 0.5, "my balance")],
        told=["my balance"],
        seconds=2.5,
    ),
    Row(
        "an unfinished one after the longer silence",
        [ASKS, says(1.5, 0.5, "I would like")],
        complete=False,
        told=[],
        seconds=2.6,
    ),
    Row(
        "the silence that ends a turn is a setting",
        [ASKS, says(1.5, 0.5, "I would like")],
        {"end_silence_s": 0.4},
        complete=False,
        told=["I would like"],
        seconds=2.6,
    ),
    Row(
        "a pause within the silence joins what is said",
        [ASKS, says(1.5, 0.5, "I would"), says(2.5, 0.5, "I would like tea")],
        complete=False,
        told=["I would like tea"],
    ),
    Row(
        "two turns are two turns",
        [ASKS, says(1.5, 0.5, "first"), says(4.0, 0.5, "second")],
        told=["first", "second"],
    ),
    Row(
        "a long number waits for its next group though it sounds finished",
        [ASKS, says(1.5, 0.5, "four seven one"), says(3.1, 0.5, "four seven one one two two")],
        told=["four seven one one two two"],
    ),
    Row(
        "and is given after the silence of numbers",
        [ASKS, says(1.5, 0.5, "4711")],
        told=["4711"],
        seconds=4.0,
    ),
    Row(
        "not before",
        [ASKS, says(1.5, 0.5, "4711")],
        told=[],
        seconds=3.2,
    ),
    Row(
        "that silence is a setting",
        [ASKS, says(1.5, 0.5, "4711")],
        {"number_silence_s": 0.7},
        told=["4711"],
        seconds=3.2,
    ),
    Row(
        "a short number that sounds finished is finished",
        [ASKS, says(1.5, 0.5, "at nine")],
        told=["at nine"],
        seconds=2.6,
    ),
    Row(
        "a short number that does not sound finished may go on",
        [ASKS, says(1.5, 0.5, "four seven"), says(3.1, 0.5, "four seven one")],
        complete=False,
        told=["four seven one"],
    ),
    Row(
        "a joint between numbers waits too",
        [ASKS, says(1.5, 0.5, "two hundred and"), says(3.1, 0.5, "two hundred and six")],
        told=["two hundred and six"],
    ),
    Row(
        "numbers of another language",
        [ASKS, says(1.5, 0.5, "vier sieben eins"), says(3.1, 0.5, "vier sieben eins eins")],
        {"language": "de-DE"},
        told=["vier sieben eins eins"],
    ),
    Row(
        "a slow recogniser answers late and loses nothing",
        [ASKS, says(1.5, 0.5, "first")],
        stt_s=2.5,
        told=["first"],
    ),
    Row(
        "words while the agent thinks are a turn of their own",
        [agent(0.1, Done()), says(0.5, 0.5, "first"), says(2.0, 0.5, "second")],
        told=["first", "second"],
        cut=[],
    ),
    Row("noise into silence is nothing", [ASKS, says(1.5, 0.5)], told=[], user=[]),
    Row(
        "noise that interrupted is told as noise",
        [agent(0.1, Text(LONG), Done()), says(1.0, 0.4)],
        told=["~", NOISE_TEXT],
    ),
]

BYE = agent(0.1, Text("Thank you and goodbye."), Done(), End({"reason": "done"}))
ENDS = [
    Row(
        "the goodbye is heard before the hang-up",
        [BYE],
        ends={1: "completed"},
        heard={1: length("Thank you and goodbye.")},
        ended="completed",
    ),
    Row(
        "a file that cannot be cancelled is heard to its end as well",
        [agent(0.1, play("clip.wav"), Done(), End({}))],
        files={"clip.wav": 2.0},
        ends={1: "completed"},
        heard={1: 2.0},
        ended="completed",
    ),
    Row(
        "words, file and words: all of them",
        [agent(0.1, Text("One."), play("clip.wav"), Text("Two."), Done(), End({}))],
        files={"clip.wav": 0.5},
        order=[1, 2, 3],
        ends={1: "completed", 2: "completed", 3: "completed"},
        ended="completed",
    ),
    Row(
        "the end may overtake the last words of its turn",
        [agent(0.1, Text("One."), End({})), agent(0.3, Text("Two."), Done(), turn=1)],
        order=[1, 2],
        ended="completed",
    ),
    Row(
        "nobody interrupts the goodbye",
        [BYE, says(0.5, 0.5, "wait")],
        ends={1: "completed"},
        told=[],
        ended="completed",
    ),
    Row(
        "keys after the end are nothing",
        [BYE, keys(0.5, "1#")],
        ends={1: "completed"},
        told=[],
        ended="completed",
    ),
    Row(
        "an end without words hangs up",
        [agent(0.1, Done(), End({}))],
        ends={},
        ended="completed",
        seconds=2.0,
    ),
    Row(
        "a second end changes nothing",
        [BYE, agent(0.5, End({"reason": "again"}))],
        ended="completed",
        kinds={"call_ended": 1},
    ),
    Row(
        "a caller who hangs up is told to the agent",
        [agent(0.1, Text(LONG), Done()), HangUp(1.0)],
        ends={1: "dropped"},
        told=[f"!{REMOTE_DISCONNECTED}"],
        ended="remote_hangup",
    ),
    Row(
        "an agent that is lost makes the caller hear the fallback",
        [agent(0.1, Text("One."), Done()), agent(1.0, Lose())],
        errors=["runtime.lost"],
        ends={1: "completed", 2: "completed"},
        heard={2: length(FALLBACK)},
        ended="error",
    ),
    Row(
        "an agent that is lost after its end is no fault",
        [BYE, agent(0.5, Lose())],
        ends={1: "completed"},
        ended="completed",
    ),
    Row(
        "an escalation without a way to transfer ends as handed over",
        [agent(0.1, Text("Please hold."), Done(), End({"session_escalated": True}))],
        kinds={"transfer": 1},
        ended="transferred",
    ),
    Row(
        "what the agent stops itself does not keep the call",
        [agent(0.1, Text(LONG), Done()), agent(0.6, Interrupt()), agent(0.8, End({}))],
        ends={1: "barge_in"},
        ended="completed",
        seconds=3.0,
    ),
]

ROWS = [*KEYS, *UNDER, *SILENCE, *TURNS, *ENDS]
