"""Rows: payloads, order, protection, music, fades, levels, the bed."""

from __future__ import annotations

import itertools

from gateway.call.profile import AmbientSound
from tests.call.rules.row import (
    Done,
    End,
    Output,
    Payload,
    Row,
    Text,
    agent,
    custom,
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
STARTS = 0.12
CUT = detected(1.0)
TERMS = "Terms apply here."
FILE = {"clip.wav": 2.0}

# ---- who may be interrupted: part flag, channel, app


def _precedence(flag: bool | None, app: bool, channel: bool) -> Row:
    said = {} if flag is None else {"interruptable": flag}
    may = not channel and (flag is True or (flag is None and not app))
    return Row(
        f"a file that says {flag}, an app that says {not app}, a channel that says {not channel}",
        [agent(0.1, play("clip.wav", **said), Done()), says(1.0, 0.4, "stop")],
        {"disable_barge_in": app, "forbid_barge_in": channel},
        FILE,
        ends={1: "barge_in" if may else "completed"},
        audible=[(1, STARTS, CUT if may else STARTS + 2.0)],
        told=["~", "stop"] if may else [],
    )


PRECEDENCE = [
    _precedence(flag, app, channel)
    for flag in (None, True, False)
    for app in (False, True)
    for channel in (False, True)
]

SPELLINGS = [
    Row(
        f"{spelling}: {may} is understood",
        [agent(0.1, play("clip.wav", **{spelling: may}), Done()), says(1.0, 0.4, "stop")],
        files=FILE,
        ends={1: "barge_in" if may else "completed"},
    )
    for spelling in ("interruptable", "interrupable", "interruptible")
    for may in (True, False)
]

# ---- protection

BEHIND = [
    Row(
        "a protected part behind an interruptible one is heard whole, and at once",
        [agent(0.1, Text(LONG), protected(TERMS), Done()), says(1.0, 0.4, "stop")],
        ends={1: "barge_in", 2: "completed"},
        cut=[("speech", [1])],
        cut_at=CUT,
        audible=[(1, STARTS, CUT), (2, CUT, CUT + length(TERMS))],
    ),
    Row(
        "an interruptible part behind a protected one is cut when its turn comes",
        [agent(0.1, protected(TERMS), Text(LONG), Done()), says(0.5, 1.0, "stop")],
        ends={1: "completed", 2: "barge_in"},
        heard={1: length(TERMS)},
        told=["~", "stop"],
    ),
    Row(
        "speech that is over before the protected part ends was never heard",
        [agent(0.1, protected(LONG), Text("And now."), Done()), says(0.5, 0.5, "hello")],
        ends={1: "completed", 2: "completed"},
        told=[],
        user=[],
    ),
    Row(
        "only what stands before the protected part is cut",
        [
            agent(0.1, Text(LONG), Text("More of it."), protected(TERMS), Text("Well."), Done()),
            says(1.0, 0.3, "stop"),
        ],
        ends={1: "barge_in", 2: "dropped", 3: "completed", 4: "completed"},
        cut=[("speech", [1, 2])],
        order=[1, 3, 4],
    ),
    Row(
        "two protected parts in a row are both heard",
        [agent(0.1, protected(TERMS), protected("And these."), Done()), says(0.4, 0.4, "no")],
        ends={1: "completed", 2: "completed"},
        heard={1: length(TERMS), 2: length("And these.")},
        told=[],
    ),
    Row(
        "speech under protection that goes on into silence is a turn",
        [agent(0.1, protected(TERMS), Done()), says(0.6, 1.2, "I agree")],
        ends={1: "completed"},
        told=["I agree"],
    ),
    Row(
        "a customised response without the flag is interruptible",
        [agent(0.1, custom(LONG), Done()), says(1.0, 0.4, "stop")],
        ends={1: "barge_in"},
        cut_at=CUT,
    ),
    Row(
        "barge-in off for one part is off for that part only",
        [
            agent(0.1, Text(LONG), Done()),
            says(1.0, 0.4, "stop"),
            agent(2.5, protected(LONG), Done()),
            says(3.5, 0.4, "stop"),
        ],
        ends={1: "barge_in", 2: "completed"},
        told=["~", "stop"],
        seconds=9.0,
    ),
]

# ---- order of everything

_PARTS: dict[str, Output] = {
    "text": Text("These are words."),
    "music": hold(),
    "file": play("clip.wav"),
}


def _orders() -> list[Row]:
    rows = []
    for names in itertools.permutations(_PARTS):
        # Music plays to its end only where nothing follows it.
        ends = {n + 1: "completed" for n in range(3)}
        if names[-1] != "music":
            ends[names.index("music") + 1] = "cancelled"
        heard = [n + 1 for n, name in enumerate(names) if ends[n + 1] == "completed"]
        rows.append(
            Row(
                f"{', '.join(names)}",
                [agent(0.1, *(_PARTS[name] for name in names), Done())],
                files={"music.wav": 1.0, "clip.wav": 0.6},
                ends=ends,
                order=heard,
            )
        )
    return rows


PAYLOADS = [
    Row(
        "a payload between two texts keeps its place",
        [agent(0.1, Text("First."), play("clip.wav"), Text("Last."), Done())],
        files={"clip.wav": 0.5},
        order=[1, 2, 3],
        audible=[(1, 0.12, 0.42), (2, 0.42, 0.92), (3, 0.92, 1.18)],
    ),
    Row(
        "two files in a row",
        [agent(0.1, play("a.wav"), play("b.wav"), Done())],
        files={"a.wav": 0.5, "b.wav": 0.3},
        audible=[(1, 0.12, 0.62), (2, 0.62, 0.92)],
    ),
    Row(
        "the same file twice is heard twice",
        [agent(0.1, play("a.wav"), Text("Again."), play("a.wav"), Done())],
        files={"a.wav": 0.5},
        ends={1: "completed", 2: "completed", 3: "completed"},
        heard={1: 1.0},
    ),
    Row(
        "several payloads and texts of one response",
        [
            agent(
                0.1,
                Text("One."),
                play("a.wav"),
                custom("Two.", enableDtmf=True),
                play("b.wav", interruptable=False),
                Text("Three."),
                Done(),
            )
        ],
        files={"a.wav": 0.2, "b.wav": 0.2},
        order=[1, 2, 3, 4, 5],
    ),
    Row(
        "one payload with a file and a customised response plays both",
        [
            agent(
                0.1,
                Payload({"audioUri": "a.wav", "customizedResponse": {"content": "And this."}}),
                Done(),
            )
        ],
        files={"a.wav": 0.4},
        kinds={"utterance_queued": 2},
        order=[1, 2],
    ),
    Row(
        "unknown keys do not disturb",
        [agent(0.1, play("a.wav", volume="loud", x={"y": 1}), Done())],
        files={"a.wav": 0.4},
        ends={1: "completed"},
    ),
    Row(
        "a payload without a file is the client's and not spoken",
        [agent(0.1, Payload({"chips": ["yes", "no"]}), Text("Well."), Done())],
        kinds={"utterance_queued": 1},
        order=[1],
    ),
    Row(
        "a file that cannot be had is spoken by its transcript",
        [agent(0.1, play("gone.wav", transcript="The words of it."), Text("Next."), Done())],
        files={"gone.wav": "asset.not_found"},
        ends={1: "completed", 2: "completed"},
        errors=["asset.not_found"],
        heard={1: length("The words of it.")},
    ),
    Row(
        "without a transcript it is left out and the turn goes on",
        [agent(0.1, Text("One."), play("gone.wav"), Text("Two."), Done())],
        files={"gone.wav": "asset.decode"},
        ends={1: "completed", 2: "failed", 3: "completed"},
        errors=["asset.decode"],
        order=[1, 3],
    ),
    Row(
        "a file without sound is left out too",
        [agent(0.1, play("empty.wav"), Text("Two."), Done())],
        files={"empty.wav": 0.0},
        ends={1: "failed", 2: "completed"},
        errors=["asset.empty"],
    ),
    Row(
        "a wrong flag is reported and the file plays",
        [agent(0.1, play("a.wav", interruptable="yes"), Done())],
        files={"a.wav": 0.4},
        ends={1: "completed"},
        errors=["payload.value"],
    ),
    Row(
        "an empty uri is spoken by its transcript",
        [agent(0.1, play("", transcript="Only words."), Done())],
        errors=["payload.value"],
        heard={1: length("Only words.")},
    ),
    Row(
        "a payload that comes while the caller speaks is cut by the caller's words",
        [agent(0.1, Done()), says(0.5, 1.5, "wait"), agent(1.0, play("clip.wav"), Done())],
        files=FILE,
        ends={1: "barge_in"},
        told=["~", "wait"],
    ),
    Row(
        "and goes on if there were no words",
        [agent(0.1, Done()), says(0.5, 1.5), agent(1.0, play("clip.wav"), Done())],
        files=FILE,
        ends={1: "completed"},
        told=[],
    ),
    Row(
        "and is heard whole where it is protected",
        [
            agent(0.1, Done()),
            says(0.5, 1.2, "wait"),
            agent(1.0, play("clip.wav", interruptable=False), Done()),
        ],
        files=FILE,
        ends={1: "completed"},
        heard={1: 2.0},
        told=["wait"],
    ),
    Row(
        "texts without words are not spoken",
        [agent(0.1, Text("  "), Text("Yes."), Done())],
        kinds={"utterance_queued": 1},
    ),
    Row(
        "speech that is slow to come leaves a pause and keeps the order",
        [agent(0.1, Text("One. Two."), play("a.wav"), Done())],
        files={"a.wav": 0.3},
        tts_s=0.4,
        order=[1, 2],
        ends={1: "completed", 2: "completed"},
    ),
]

# ---- music

MUSIC = {"music.wav": 4.0, "short.wav": 0.5}
GETS = agent(1.5, Text("Here it is."), Done())
ENDS_AT = 1.52
CANCELLED = {1: "cancelled", 2: "completed"}
HOLD_MUSIC = [
    Row(
        "music stops for the answer",
        [agent(0.1, hold()), GETS],
        files=MUSIC,
        ends=CANCELLED,
        audible=[(1, STARTS, 1.5), (2, ENDS_AT, ENDS_AT + length("Here it is."))],
        click_free=True,
    ),
    Row(
        "music stops before it has started",
        [agent(0.1, Text(LONG), hold(), Text("Oh."), Done())],
        files=MUSIC,
        ends={1: "completed", 2: "cancelled", 3: "completed"},
        order=[1, 3],
        silent_between=[(3.7, 8.0)],
    ),
    Row(
        "music stops in its first frame",
        [agent(0.1, hold()), agent(0.14, Text("Oh."), Done())],
        files=MUSIC,
        ends=CANCELLED,
        heard={1: 0.02, 2: length("Oh.")},
        wire=False,
    ),
    Row(
        "music stops in its last frame",
        [agent(0.1, hold("short.wav")), agent(0.6, Text("Oh."), Done())],
        files=MUSIC,
        ends=CANCELLED,
        heard={1: 0.49, 2: length("Oh.")},
        wire=False,
    ),
    Row(
        "music that is over is over",
        [agent(0.1, hold("short.wav")), agent(1.0, Text("Oh."), Done())],
        files=MUSIC,
        ends={1: "completed", 2: "completed"},
        audible=[(1, STARTS, 0.62), (2, 1.02, 1.02 + length("Oh."))],
    ),
    Row(
        "music plays once",
        [agent(0.1, hold("short.wav")), agent(3.0, Done())],
        files=MUSIC,
        ends={1: "completed"},
        heard={1: 0.5},
    ),
    Row(
        "music that loops plays on",
        [agent(0.1, hold("short.wav", loop=True)), agent(3.0, Text("Oh."), Done())],
        files=MUSIC,
        ends=CANCELLED,
        audible=[(1, STARTS, 3.0), (2, 3.02, 3.02 + length("Oh."))],
    ),
    Row(
        "a loop that cannot be cancelled plays once, and that is reported",
        [agent(0.1, play("short.wav", loop=True), Text("Oh."), Done())],
        files=MUSIC,
        ends={1: "completed", 2: "completed"},
        errors=["payload.value"],
        heard={1: 0.5},
    ),
    Row(
        "new music takes the place of the old",
        [agent(0.1, hold("music.wav")), agent(1.0, hold("short.wav"), Done())],
        files=MUSIC,
        ends={1: "cancelled", 2: "completed"},
        audible=[(1, STARTS, 1.0), (2, 1.02, 1.52)],
    ),
    Row(
        "music of an open turn cannot be interrupted",
        [agent(0.1, hold()), says(1.0, 0.5, "hello")],
        files=MUSIC,
        ends={1: "completed"},
        told=[],
        cut=[],
    ),
    Row(
        "music of a complete turn can",
        [agent(0.1, hold(), Done()), says(1.0, 0.5, "hello")],
        files=MUSIC,
        ends={1: "barge_in"},
        told=["~", "hello"],
        audible=[(1, STARTS, CUT)],
        click_free=True,
    ),
    Row(
        "unless it says no",
        [agent(0.1, hold(interruptable=False), Done()), says(1.0, 0.5, "hello")],
        files=MUSIC,
        ends={1: "completed"},
        told=[],
    ),
    Row(
        "protected music still stops for the answer",
        [agent(0.1, hold(interruptable=False)), GETS],
        files=MUSIC,
        ends=CANCELLED,
        audible=[(1, STARTS, 1.5), (2, ENDS_AT, ENDS_AT + length("Here it is."))],
    ),
    Row(
        "speech over music interrupts once the turn is complete",
        [agent(0.1, hold()), says(0.8, 1.0, "hello"), agent(1.3, Done())],
        files=MUSIC,
        ends={1: "barge_in"},
        cut_at=1.3,
    ),
    Row(
        "music goes with the words before it",
        [agent(0.1, Text(LONG), hold()), says(1.0, 0.5, "stop")],
        files=MUSIC,
        ends={1: "barge_in", 2: "cancelled"},
        order=[1],
    ),
    Row(
        "a client's payload does not stop the music",
        [agent(0.1, hold()), agent(1.0, Payload({"chips": []})), agent(2.0, Text("Oh."), Done())],
        files=MUSIC,
        audible=[(1, STARTS, 2.0), (2, 2.02, 2.02 + length("Oh."))],
    ),
    Row(
        "a file that cannot be cancelled plays to its end before the answer",
        [agent(0.1, play("short.wav")), agent(0.2, Text("Oh."), Done())],
        files=MUSIC,
        audible=[(1, STARTS, 0.62), (2, 0.62, 0.62 + length("Oh."))],
    ),
    Row(
        "music stops at the end of the session",
        [agent(0.1, Text("Bye."), hold(), Done(), End({"reason": "done"}))],
        files=MUSIC,
        ends={1: "completed", 2: "cancelled"},
        ended="completed",
        order=[1],
    ),
    Row(
        "a key over music of a complete turn interrupts it",
        [agent(0.1, hold(), Done()), keys(1.0, "1")],
        files=MUSIC,
        ends={1: "barge_in"},
        cut=[("dtmf", [1])],
    ),
]

LEVELS = [
    Row(
        f"music with {gain_db:+g} dB",
        [agent(0.1, hold(gainDb=gain_db)), GETS],
        files=MUSIC,
        level_db={1: gain_db, 2: 0.0},
        ends=CANCELLED,
    )
    for gain_db in (-20.0, -6.0, -0.5, 3.0, 6.0)
] + [
    Row(
        "a level out of bounds is reported and plays as it is",
        [agent(0.1, hold(gainDb=90)), GETS],
        files=MUSIC,
        level_db={1: 0.0},
        errors=["payload.value"],
    )
]

FADES = (
    [
        Row(
            f"what the caller cuts fades within {fade_ms} ms",
            [agent(0.1, Text(LONG), Done()), says(1.0, 0.4, "stop")],
            {"fade_ms": fade_ms},
            fade_s={1: fade_ms / 1000},
            click_free=fade_ms >= 10,
            audible=[(1, STARTS, CUT)],
        )
        for fade_ms in (5, 10, 20)
    ]
    + [
        Row(
            f"music with fadeMs {fade_ms} fades that long for the answer",
            [
                agent(0.1, hold(fadeMs=fade_ms)),
                agent(2.0, Text("Oh."), Done()),
            ],
            files=MUSIC,
            ends=CANCELLED,
            click_free=True,
        )
        for fade_ms in (20, 100, 500)
    ]
    + [
        Row(
            "a fade of the app's is cut short for the caller",
            [agent(0.1, hold(fadeMs=800), Done()), says(2.0, 0.4, "stop")],
            files=MUSIC,
            ends={1: "barge_in"},
            fade_s={1: 0.02},
            click_free=True,
        ),
        Row(
            "a file with fadeMs begins and ends softly",
            [agent(0.1, play("clip.wav", fadeMs=200), Done())],
            files=FILE,
            audible=[(1, 0.295, 1.945)],
        ),
        Row(
            "a fade that is no number is reported",
            [agent(0.1, play("clip.wav", fadeMs="slow"), Done())],
            files=FILE,
            errors=["payload.value"],
            heard={1: 2.0},
        ),
        Row(
            "keys cut as softly as words",
            [agent(0.1, Text(LONG), Done()), keys(1.0, "1")],
            click_free=True,
            audible=[(1, STARTS, 1.0)],
        ),
    ]
)

# ---- the bed

BED = [
    Row(
        "the bed runs the whole call, under speech and in silence",
        [agent(0.3, Text("Hello."), Done())],
        bed=200,
        audible=[(1, 0.36, 0.66)],
        silent_between=[(0.1, 0.3), (0.7, 7.9)],
    ),
    Row(
        "the bed is there at once after an interruption",
        [agent(0.1, Text(LONG), Done()), says(1.0, 0.4, "stop")],
        bed=200,
        ends={1: "barge_in"},
        silent_between=[(CUT + 0.04, 8.0)],
    ),
    Row(
        "the caller's words reach the recogniser without the bed",
        [agent(0.1, Text("Hello."), Done()), says(1.0, 0.5, "my balance")],
        bed=200,
        told=["my balance"],
    ),
    Row(
        "with a bed only under speech there is silence between",
        [agent(0.1, Text("Hello."), Done()), agent(2.0, Text("Are you there."), Done())],
        {"ambience": AmbientSound("room_1", True, -96.0, whole_call=False)},
        order=[1, 2],
        ends={1: "completed", 2: "completed"},
    ),
    Row(
        "a bed does not keep the call from ending",
        [agent(0.1, Text("Bye."), Done(), End({}))],
        bed=200,
        ends={1: "completed"},
        ended="completed",
        seconds=3.0,
    ),
]

ROWS = [
    *PRECEDENCE,
    *SPELLINGS,
    *BEHIND,
    *_orders(),
    *PAYLOADS,
    *HOLD_MUSIC,
    *LEVELS,
    *FADES,
    *BED,
]
