"""The four files of a call: call.wav, timeline.jsonl, result.json and report.html.

Nothing in them depends on the clock on the wall, so identical calls make identical files.
"""

from __future__ import annotations

import io
import tempfile
import wave
from collections.abc import Sequence
from html import escape
from importlib import resources
from pathlib import Path

import numpy as np
import orjson

from gateway.errors import ScenarioError
from gateway.simulate.patterns import TimelineRecord
from gateway.simulate.picture import draw
from gateway.simulate.result import CallLog, RunResult

_INDENT = orjson.OPT_INDENT_2


def write_report(result: RunResult, folder: Path) -> None:
    """Write all four files into `folder`, which is made. Raises ScenarioError if it cannot be."""
    files = {
        "call.wav": stereo_wav(result.log),
        "timeline.jsonl": timeline_lines(result.log.timeline),
        "result.json": orjson.dumps(result.to_json(), option=_INDENT) + b"\n",
        "report.html": page(result).encode(),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
    except OSError as error:
        raise _unwritable(folder, error) from None


def check_folder(folder: Path) -> None:
    """Make `folder` and see that reports can be written there, before the work for them is done.

    Raises ScenarioError.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _unwritable(folder, error) from None


def _unwritable(folder: Path, error: OSError) -> ScenarioError:
    return ScenarioError(
        "scenario.out",
        f"cannot write the report: {error.strerror or error}",
        where=str(folder),
        hint="--out takes a folder, new or your own",
    )


def stereo_wav(log: CallLog) -> bytes:
    """Left: what the caller sent; right: what the caller heard."""
    samples = max(len(log.sent), len(log.heard)) // 2
    both = np.zeros((samples, 2), dtype="<i2")
    for column, pcm in enumerate((log.sent, log.heard)):
        track = np.frombuffer(pcm, dtype="<i2")
        both[: len(track), column] = track
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(log.rate_hz)
        file.writeframes(both.tobytes())
    return buffer.getvalue()


def timeline_lines(timeline: Sequence[TimelineRecord]) -> bytes:
    """One JSON object a line."""
    return b"".join(orjson.dumps(dict(record), default=str) + b"\n" for record in timeline)


def page(result: RunResult) -> str:
    """The report as one HTML page that needs nothing else (and plays call.wav beside it)."""
    log = result.log
    template = resources.files("gateway.simulate").joinpath("report_page.html").read_text("utf-8")
    verdict = "all expectations hold" if result.ok else "not as expected"
    if not result.verdicts:
        verdict = "nothing was expected"
    holes = {
        "title": f"{log.scenario.name} on {log.channel}",
        "state": "good" if result.ok else "bad",
        "verdict": verdict,
        "facts": f"{log.seconds:.1f} s · ended: {log.ended or 'unknown'} · {log.call_id}",
        "verdicts": _verdicts(result),
        "picture": draw(log),
        "words": _conversation(log),
        "timeline": _timeline(log),
    }
    for name, content in holes.items():
        safe = content if name in ("verdicts", "picture", "words", "timeline") else escape(content)
        template = template.replace(f"<!--{name}-->", safe)
    return template


def _verdicts(result: RunResult) -> str:
    rows = [
        f'<li class="{"good" if v.ok else "bad"}"><b>{"✓" if v.ok else "✗"}</b> '
        f"{escape(v.text)} <span>{escape(v.detail)}</span></li>"
        for v in result.verdicts
    ]
    return "\n".join(rows)


def _conversation(log: CallLog) -> str:
    rows: list[tuple[float, str, str, str]] = []
    starts: dict[object, float] = {}
    for record in log.timeline:
        kind = record["kind"]
        t = float(record["t"])
        if kind == "utterance_started":
            starts[record.get("id")] = t
        elif kind == "utterance_ended" and (record.get("heard_text") or record.get("uri")):
            reason = str(record.get("reason"))
            words = str(record.get("heard_text") or f"♪ {record.get('uri')}")
            note = "" if reason == "completed" else reason
            rows.append((starts.get(record.get("id"), t), "agent", words, note))
        elif kind == "user_text" and record.get("final", True):
            rows.append((t, "caller", str(record.get("text") or ""), ""))
        elif kind == "dtmf":
            rows.append((t, "caller", f"⌨ {record.get('digits')}", ""))
    rows.sort(key=lambda row: row[0])
    return "\n".join(
        f'<tr class="{who}"><td>{t:.2f}</td><td>{who}</td><td>{escape(words)}</td>'
        f"<td>{escape(note)}</td></tr>"
        for t, who, words, note in rows
    )


def _timeline(log: CallLog) -> str:
    rows: list[str] = []
    for record in log.timeline:
        shown = " ".join(
            f"{key}={_plain(value)}"
            for key, value in record.items()
            if key not in ("t", "kind") and value not in (None, "")
        )
        rows.append(
            f"<tr><td>{float(record['t']):.3f}</td><td>{escape(str(record['kind']))}</td>"
            f"<td>{escape(shown)}</td></tr>"
        )
    return "\n".join(rows)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
