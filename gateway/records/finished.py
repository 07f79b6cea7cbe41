"""From the spool file of a call that is over to the files that are delivered.

A call has a folder. While it runs, `call.spool` grows there; afterwards recording and transcript
stand there, in the forms that somebody gets (`masked`, `plain`), and `todo.json` says who has not
got them yet. Each step may be broken off at any point and done again.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import orjson

from gateway.errors import RecordError
from gateway.records.muting import muted
from gateway.records.plan import Delivery, Identity
from gateway.records.tracks import (
    Span,
    SpooledCall,
    agent_track,
    caller_track,
    line_format,
    read_call,
    write_wav,
)
from gateway.records.transcript import TIME_DIGITS, Story, tell

SPOOL: Final = "call.spool"
TODO: Final = "todo.json"


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """A call whose files are made, and what is left to be delivered."""

    folder: Path
    identity: Identity
    left: tuple[Delivery, ...]

    def recording(self, delivery: Delivery) -> Path | None:
        """The WAV that this delivery gets; None where the call has none."""
        return _existing(self.folder / f"{_form(delivery.redacted)}.wav")

    def transcript(self, delivery: Delivery) -> Path | None:
        """The JSON that this delivery gets; None where no words are kept."""
        return _existing(self.folder / f"{_form(delivery.redacted)}.json")

    def without(self, delivery: Delivery) -> FinishedCall:
        """The same once `delivery` is done, also on disk."""
        rest = replace(self, left=tuple(d for d in self.left if d != delivery))
        rest.save()
        return rest

    def save(self) -> None:
        """Write down what is left to do."""
        content = {
            "call_id": self.identity.call_id,
            "session": self.identity.session,
            "started_at": self.identity.started_at,
            "left": [delivery.to_json() for delivery in self.left],
        }
        write_whole(self.folder / TODO, orjson.dumps(content))


def _form(redacted: bool) -> str:
    return "masked" if redacted else "plain"


def _existing(path: Path) -> Path | None:
    return path if path.exists() else None


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is there with all of its content, or not at all."""
    beside = path.with_name(path.name + ".new")
    with beside.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def finish(folder: Path) -> FinishedCall:
    """Make the files of the call in `folder`, unless they are made already.

    Raises RecordError records.spool where there is nothing to make them of.
    """
    todo = folder / TODO
    spool = folder / SPOOL
    if not todo.exists():
        _make(folder, spool)
    spool.unlink(missing_ok=True)
    content = orjson.loads(todo.read_bytes())
    return FinishedCall(
        folder,
        Identity(content["call_id"], content["session"], content["started_at"]),
        tuple(Delivery.from_json(delivery) for delivery in content["left"]),
    )


def _make(folder: Path, spool: Path) -> None:
    try:
        file = spool.open("rb")
    except FileNotFoundError:
        raise RecordError("records.spool", "no spool file", where=str(folder)) from None
    with file:
        call = read_call(file)
        header = call.header
        identity = Identity(header["call_id"], header["session"], header["started_at"])
        deliveries = tuple(Delivery.from_json(given) for given in header["deliveries"])
        stories = {
            redacted: tell(call.notes, call.end_s, plain=not redacted)
            for redacted in {d.redacted for d in deliveries}
        }
        audio = (call.caller or call.agent) and any(d.audio for d in deliveries)
        mutes: dict[bool, tuple[list[Span], list[Span]]] = {r: ([], []) for r in stories}
        if audio:
            caller = caller_track(file, call, folder / "caller.pcm")
            agent = agent_track(file, call, folder / "agent.pcm")
            for redacted, story in stories.items():
                if redacted:
                    mutes[redacted] = muted(story, call.keys, caller, agent)
                wav = folder / f"{_form(redacted)}.wav"
                write_wav(wav, caller, agent, call.end_s, mutes[redacted])
                _sync(wav)
            for track in (caller, agent):
                track.path.unlink()
        if header["words"]:
            for redacted, story in stories.items():
                content = _transcript(call, identity, story, redacted, bool(audio), mutes[redacted])
                (folder / f"{_form(redacted)}.json").write_bytes(
                    orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n"
                )
    FinishedCall(folder, identity, deliveries).save()


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _transcript(
    call: SpooledCall,
    identity: Identity,
    story: Story,
    redacted: bool,
    audio: bool,
    mute: tuple[Sequence[Span], Sequence[Span]],
) -> dict[str, Any]:
    ended = identity.started + datetime.timedelta(seconds=call.end_s)
    content: dict[str, Any] = {
        "call_id": identity.call_id,
        "session": identity.session,
        **{key: story.started.get(key) for key in ("channel", "from", "to", "language")},
        "started_at": identity.started.isoformat(timespec="milliseconds"),
        "ended_at": ended.isoformat(timespec="milliseconds"),
        "seconds": round(call.end_s, TIME_DIGITS),
        "reason": story.reason,
        "redacted": redacted,
        "lines": [line.to_json() for line in story.lines if line.text or line.uri],
        "barge_ins": story.barge_ins,
        "inactivities": story.inactivities,
        "errors": story.errors,
    }
    if story.transfer:
        content["transferred_to"] = story.transfer
    if audio:
        formats = [line_format(call.header, side) for side in ("in_format", "out_format")]
        content["recording"] = {
            "file": f"{identity.stem}.wav",
            "channels": ["caller", "agent"],
            "rate_hz": max(f.rate_hz for f in formats if f is not None),
            "lost_frames": call.end.get("lost_frames", 0),
            "muted": {
                side: [[round(t, TIME_DIGITS) for t in span] for span in spans]
                for side, spans in zip(("caller", "agent"), mute, strict=True)
            },
        }
    return content
