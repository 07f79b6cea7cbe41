"""Rows: what interrupts the agent, and what the agent learns of it."""

from __future__ import annotations

from gateway.bidi import NOISE_TEXT, interrupted_text
from gateway.call.profile import BargeIn
from tests.call.rules.row import (
    Done,
    Interrupt,
    Row,
    Text,
    agent,
    detected,
    hold,
    keys,
    length,
    play,
    protected,
    says,
)

LONG = "This is a rather long sentence that takes its time to be spoken."
ALL = length(LONG)
TALKS = agent(0.1, Text(LONG), Done())
STARTS = 0.12
CUT = detected(1.0)
VOICE = (BargeIn.VAD, BargeIn.BOTH)
SPOKEN = (*VOICE, BargeIn.WORDS)


def _strategy(strategy: BargeIn) -> list[Row]:
    voice, spoken = strategy in VOICE, strategy in SPOKEN
    pressed = strategy is not BargeIn.OFF
    profile = {"barge_in": strategy}
    whole = {1: "completed"}
    until = CUT if voice else STARTS + ALL
    return [
        Row(
            f"{strategy}: words spoken over the agent",
            [TALKS, says(1.0, 0.6, "stop please")],
            profile,
            ends={1: "barge_in"} if spoken else whole,
            cut=[("speech", [1])] if spoken else [],
            cut_at=CUT if voice else None,
            told=["~", "stop please"] if spoken else [],
            user=["stop please"] if spoken else [],
            audible=None if strategy is BargeIn.WORDS else [(1, STARTS, until)],
            click_free=True,
        ),
        Row(
            f"{strategy}: noise over the agent",
            [TALKS, says(1.0, 0.4)],
            profile,
            ends={1: "barge_in"} if voice else whole,
            cut=[("speech", [1])] if voice else [],
            cut_at=CUT if voice else None,
            told=["~", NOISE_TEXT] if voice else [],
            heard={1: CUT - STARTS if voice else ALL},
        ),
        Row(
            f"{strategy}: a key over the agent",
            [TALKS, keys(1.0, "5")],
            profile,
            ends={1: "barge_in"} if pressed else whole,
            cut=[("dtmf", [1])] if pressed else [],
            cut_at=1.0 if pressed else None,
            told=["~", "#5"] if pressed else ["#5"],
            heard={1: 1.0 - STARTS if pressed else ALL},
        ),
        Row(
            f"{strategy}: attention over the agent",
            [TALKS, says(1.0, 0.6, "Uh-huh, right.")],
            profile,
            ends={1: "barge_in"} if voice else whole,
            told=["~", "Uh-huh, right."] if voice else [],
            user=["Uh-huh, right."] if spoken else [],
        ),
        Row(
            f"{strategy}: words into silence",
            [agent(0.1, Text("Hello."), Done()), says(1.5, 0.6, "my balance")],
            profile,
            ends=whole,
            cut=[],
            told=["my balance"],
        ),
        Row(
            f"{strategy}: words into an answer that begins meanwhile",
            [
                agent(0.1, Done()),
                says(1.0, 1.2, "no the other one"),
                agent(1.6, Text(LONG), Done()),
            ],
            profile,
            ends={1: "barge_in"} if spoken else whole,
            told=["~", "no the other one"] if spoken else ["no the other one"],
        ),
    ]


STRATEGIES = [row for strategy in BargeIn for row in _strategy(strategy)]

COUNTS = [
    Row(
        f"of three words that it takes, {said!r} {'interrupts' if enough else 'waits'}",
        [TALKS, says(1.0, 0.6, said)],
        {"barge_in": BargeIn.WORDS, "barge_in_words": 3},
        ends={1: "barge_in" if enough else "completed"},
        told=["~", said] if enough else [said],
        user=[said],
    )
    for said, enough in (("stop", False), ("stop it", False), ("stop it now", True))
] + [
    Row(
        "words that were too few go with those that follow",
        [TALKS, says(1.0, 0.5, "well"), says(2.2, 0.9, "stop it now")],
        {"barge_in": BargeIn.WORDS, "barge_in_words": 3},
        ends={1: "barge_in"},
        told=["~", "well stop it now"],
    ),
    Row(
        "the count holds for words over the agent only",
        [agent(0.1, Text("Yes or no."), Done()), says(1.5, 0.4, "no")],
        {"barge_in": BargeIn.WORDS, "barge_in_words": 3},
        told=["no"],
    ),
]

ATTENTION = (
    [
        Row(
            f"attention in {language} does not interrupt: {said}",
            [TALKS, says(1.0, 0.6, said)],
            {"barge_in": BargeIn.WORDS, "language": language},
            ends={1: "completed"},
            told=[],
        )
        for language, said in (
            ("en-GB", "mm-hmm"),
            ("de-DE", "Ja, genau."),
            ("es-US", "vale, claro"),
            ("fr", "d'accord"),
            ("it-IT", "va bene, certo"),
            ("pt-BR", "tá, entendi"),
            ("nl", "ja precies"),
        )
    ]
    + [
        Row(
            f"attention of another language interrupts: {said}",
            [TALKS, says(1.0, 0.6, said)],
            {"barge_in": BargeIn.WORDS, "language": language},
            ends={1: "barge_in"},
            told=["~", said],
        )
        for language, said in (("en-US", "genau"), ("de-DE", "vale"), ("xx", "uh huh"))
    ]
    + [
        Row(
            f"an own list takes the place of the built-in one: {said}",
            [TALKS, says(1.0, 0.6, said)],
            {"barge_in": BargeIn.WORDS, "back_channel": {"en": ("go on", "lovely")}},
            ends={1: "completed" if goes_on else "barge_in"},
            told=[] if goes_on else ["~", said],
        )
        for said, goes_on in (("Go on, go on!", True), ("lovely", True), ("uh huh", False))
    ]
    + [
        Row(
            "an empty list of attention makes every word count",
            [TALKS, says(1.0, 0.6, "yeah")],
            {"barge_in": BargeIn.WORDS, "back_channel": {"en": ()}},
            ends={1: "barge_in"},
        ),
        Row(
            "attention with a word of its own interrupts",
            [TALKS, says(1.0, 0.6, "yeah but no")],
            {"barge_in": BargeIn.WORDS},
            ends={1: "barge_in"},
            told=["~", "yeah but no"],
        ),
        Row(
            "a word of attention is an answer where the agent is silent",
            [agent(0.1, Text("Shall I."), Done()), says(1.5, 0.4, "yeah")],
            {"barge_in": BargeIn.WORDS},
            told=["yeah"],
        ),
        Row(
            "a word of attention that outlasts the agent is an answer",
            [agent(0.1, Text("Shall I do it."), Done()), says(0.6, 0.5, "yeah")],
            {"barge_in": BargeIn.WORDS},
            told=["yeah"],
        ),
    ]
)

RESUMES = {"resume_after_noise": True}
RESUME = [
    Row(
        "after noise the agent goes on where it fell silent",
        [TALKS, says(1.0, 0.3)],
        RESUMES,
        ends={1: "completed"},
        cut=[],
        told=[],
        kinds={"held": 1, "resumed": 1, "cleared": 1},
        heard={1: ALL},
        click_free=True,
    ),
    Row(
        "after words it does not",
        [TALKS, says(1.0, 0.6, "stop please")],
        RESUMES,
        ends={1: "barge_in"},
        cut=[("speech", [1])],
        told=["~", "stop please"],
        kinds={"held": 1, "resumed": 0, "cleared": 1},
        heard={1: CUT - STARTS},
        audible=[(1, STARTS, CUT)],
    ),
    Row(
        "after attention it goes on, and is not told",
        [TALKS, says(1.0, 0.5, "uh huh")],
        RESUMES,
        ends={1: "completed"},
        told=[],
        user=["uh huh"],
        heard={1: ALL},
    ),
    Row(
        "it waits for words no longer than it is set to",
        [TALKS, says(1.0, 3.0)],
        {**RESUMES, "resume_wait_s": 1.0},
        ends={1: "completed"},
        audible=[(1, STARTS, CUT), (1, CUT + 1.03, CUT + 1.02 + ALL - (CUT - STARTS))],
    ),
    Row(
        "it falls silent for each noise",
        [TALKS, says(1.0, 0.3), says(2.6, 0.3)],
        RESUMES,
        ends={1: "completed"},
        kinds={"held": 2, "resumed": 2},
        heard={1: ALL - 0.03},
        seconds=10.0,
    ),
    Row(
        "a key while it waits interrupts",
        [TALKS, says(1.0, 1.2), keys(1.5, "5")],
        RESUMES,
        ends={1: "barge_in"},
        cut=[("dtmf", [1])],
        heard={1: CUT - STARTS},
    ),
    Row(
        "what comes while it waits is heard after it",
        [agent(0.1, Text(LONG)), says(1.0, 0.6), agent(1.3, Text("And this too."), Done())],
        RESUMES,
        ends={1: "completed", 2: "completed"},
        order=[1, 2],
    ),
    Row(
        "protected speech behind it is not touched",
        [agent(0.1, Text(LONG), protected("Terms apply."), Done()), says(1.0, 0.6, "stop")],
        RESUMES,
        ends={1: "barge_in", 2: "completed"},
        heard={2: length("Terms apply.")},
    ),
    Row(
        "with words as the strategy there is nothing to resume",
        [TALKS, says(1.0, 0.3)],
        {**RESUMES, "barge_in": BargeIn.WORDS},
        ends={1: "completed"},
        kinds={"held": 0},
    ),
    Row(
        "what the agent learns is what was heard before it fell silent",
        [TALKS, says(1.0, 0.6, "stop")],
        {**RESUMES, "barge_in_awareness": True},
        told=[f"~{interrupted_text('This is a rather')}", "stop"],
        heard_words={1: "This is a rather"},
    ),
]

GUARD = [
    Row(
        "a voice below the raised threshold does not interrupt",
        [TALKS, says(1.0, 0.6, "echo")],
        {"echo_guard": 0.49},
        ends={1: "completed"},
        told=[],
    ),
    Row(
        "the same voice counts where the agent is silent",
        [agent(0.1, Text("Hello."), Done()), says(1.5, 0.6, "hello")],
        {"echo_guard": 0.49},
        told=["hello"],
    ),
    Row(
        "a guard of more windows makes the interruption that much later",
        [TALKS, says(1.0, 0.8, "stop")],
        {"echo_guard_windows": 3},
        cut_at=detected(1.0, 5),
        ends={1: "barge_in"},
    ),
    Row(
        "a click of two windows is no voice under the guard",
        [TALKS, says(1.0, 0.07, "")],
        {"echo_guard_windows": 3},
        ends={1: "completed"},
        cut=[],
    ),
    Row(
        "speech that goes on when the agent starts is no echo",
        [agent(0.1, Done()), says(0.5, 1.5, "one more thing"), agent(1.0, Text(LONG), Done())],
        {"echo_guard": 0.49},
        ends={1: "barge_in"},
        told=["~", "one more thing"],
    ),
]

AWARE = {"barge_in_awareness": True}
AWARENESS = [
    Row(
        "the agent learns the whole words that were heard",
        [TALKS, says(1.0, 0.6, "stop")],
        AWARE,
        told=[f"~{interrupted_text('This is a rather')}", "stop"],
        heard_words={1: "This is a rather"},
    ),
    Row(
        "it learns nothing where it is not aware",
        [TALKS, says(1.0, 0.6, "stop")],
        told=["~", "stop"],
        heard_words={1: "This is a rather"},
    ),
    Row(
        "it learns all parts of its answer that were heard",
        [agent(0.1, Text("First part."), Text(LONG), Done()), says(1.6, 0.6, "stop")],
        AWARE,
        told=[f"~{interrupted_text('First part. This is a rather')}", "stop"],
        seconds=9.0,
    ),
    Row(
        "it learns that nothing was heard",
        [agent(0.1, Text(LONG), Done()), keys(0.12, "1")],
        {**AWARE, "lead_ms": 100},
        told=[f"~{interrupted_text('')}", "#1"],
    ),
    Row(
        "only music was cut: no word was lost",
        [agent(0.1, Text("One moment."), hold(loop=True), Done()), says(1.6, 0.5, "hello")],
        AWARE,
        files={"music.wav": 1.0},
        ends={1: "completed", 2: "barge_in"},
        told=["~", "hello"],
    ),
    Row(
        "a file without a transcript has no words to lose",
        [agent(0.1, play("jingle.wav"), Done()), says(1.0, 0.5, "hello")],
        AWARE,
        files={"jingle.wav": 4.0},
        ends={1: "barge_in"},
        told=["~", "hello"],
    ),
    Row(
        "the words of a file count by its length",
        [
            agent(0.1, play("terms.wav", transcript="one two three four"), Done()),
            says(2.1, 0.5, "ok"),
        ],
        AWARE,
        files={"terms.wav": 4.0},
        told=[f"~{interrupted_text('one two')}", "ok"],
    ),
    Row(
        "by keys too",
        [TALKS, keys(1.0, "7")],
        AWARE,
        told=[f"~{interrupted_text('This is a rather')}", "#7"],
    ),
]

RUNTIME = [
    Row(
        f"the agent can stop itself (barge-in {flag}) and is not told",
        [TALKS, agent(1.0, Interrupt(flag))],
        ends={1: "barge_in"},
        cut=[("runtime", [1])],
        cut_at=1.0,
        told=[],
        audible=[(1, STARTS, 1.0)],
        click_free=True,
    )
    for flag in (True, False)
] + [
    Row(
        "the agent cannot stop what is protected",
        [agent(0.1, protected(LONG), Done()), agent(1.0, Interrupt(True))],
        ends={1: "completed"},
        cut=[],
    ),
    Row(
        "outputs of the interrupted turn come too late",
        [
            agent(0.1, Text(LONG)),
            says(1.0, 0.5, "stop"),
            agent(1.3, Text("Too late."), Done()),
            agent(2.0, Text("All right."), Done()),
        ],
        ends={1: "barge_in", 2: "completed"},
        kinds={"utterance_queued": 2},
        told=["~", "stop"],
    ),
    Row(
        "a recogniser that is slow loses no words",
        [TALKS, says(1.0, 0.6, "stop please")],
        stt_s=2.0,
        told=["~", "stop please"],
        cut_at=CUT,
    ),
    Row(
        "what is not heard yet is dropped with what is",
        [agent(0.1, Text(LONG), Text("Another one."), Done()), says(1.0, 0.5, "stop")],
        ends={1: "barge_in", 2: "dropped"},
        cut=[("speech", [1, 2])],
        order=[1],
    ),
    Row(
        "an answer that is still being made gives way",
        [agent(0.1, Done()), agent(0.5, Text(LONG), Done()), says(1.0, 0.5, "wait")],
        tts_s=2.0,
        ends={1: "dropped"},
        told=["~", "wait"],
        order=[],
    ),
]

ROWS = [*STRATEGIES, *COUNTS, *ATTENTION, *RESUME, *GUARD, *AWARENESS, *RUNTIME]
