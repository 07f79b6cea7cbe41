"""A call as one picture: what the caller sent above, what the caller heard below, one time axis.

Plain SVG text; colours come from the CSS classes of the page around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from textwrap import wrap
from typing import Any

from gateway.simulate.patterns import TimelineRecord
from gateway.simulate.result import CallLog
from gateway.simulate.waveform import outline, path

MARGIN = 108.0
RIGHT = 24.0
CHAR_WIDTH = 6.2
"""Average width of a character at the picture's 11 px text."""
ROW = 20.0
WAVE = 34.0
"""Half the height of a waveform."""
_MAX_WIDTH = 12000.0
_MIN_WIDTH = 1040.0
_PX_PER_S = 40.0
_LINE = 14.0
_MAX_LINES = 3


@dataclass(frozen=True, slots=True)
class Scale:
    """Seconds to pixels."""

    seconds: float
    px_per_s: float

    def x(self, t: float) -> float:
        """The horizontal place of a moment."""
        return MARGIN + max(0.0, min(t, self.seconds)) * self.px_per_s

    @property
    def width(self) -> float:
        """Of the whole picture."""
        return MARGIN + self.seconds * self.px_per_s + RIGHT


@dataclass(frozen=True, slots=True)
class Bar:
    """A stretch of time with words on it."""

    start: float
    end: float
    text: str
    style: str
    title: str
    dot: float = 0.0
    """Of an event's label: the moment it belongs to."""


def draw(log: CallLog) -> str:
    """The SVG element."""
    seconds = max(1.0, log.seconds, _last(log.timeline))
    width = min(_MAX_WIDTH, max(_MIN_WIDTH, seconds * _PX_PER_S))
    scale = Scale(seconds, width / seconds)
    parts: list[str] = []
    y = 26.0
    caller_bars = _rows([*_caller_bars(log), *_speech_bars(log)])
    y = _lane(parts, scale, y, "Caller", "what was sent", log.sent, log.rate_hz, caller_bars, "c")
    agent_bars = _rows(_agent_bars(log))
    agent_top = y
    y = _lane(parts, scale, y, "Agent", "what was heard", log.heard, log.rate_hz, agent_bars, "a")
    marks = _event_marks(log, scale)
    y = _events(parts, scale, y, marks)
    cuts = [
        f'<line class="cut" x1="{scale.x(t):.1f}" x2="{scale.x(t):.1f}" '
        f'y1="{agent_top:.0f}" y2="{y:.0f}"/>'
        for t in _cut_times(log.timeline)
    ]
    axis = _axis(scale, y)
    height = y + 8
    body = "\n".join([*axis, *cuts, *parts])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{scale.width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {scale.width:.0f} {height:.0f}" role="img" '
        f'aria-label="Timeline of the call">\n{body}\n</svg>'
    )


def _last(timeline: Sequence[TimelineRecord]) -> float:
    return max((float(record["t"]) for record in timeline), default=0.0)


def _axis(scale: Scale, bottom: float) -> list[str]:
    step = next(s for s in (1, 2, 5, 10, 20, 30, 60, 120, 300, 600) if s * scale.px_per_s >= 50)
    lines: list[str] = []
    for moment in range(0, int(scale.seconds) + 1, step):
        x = scale.x(moment)
        lines.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="20" y2="{bottom:.0f}"/>')
        words = f"{moment}s" if moment < 60 else f"{moment // 60}:{moment % 60:02d}"
        lines.append(f'<text class="tick" x="{x:.1f}" y="14">{words}</text>')
    return lines


def _rows(bars: Sequence[Bar]) -> list[list[Bar]]:
    """Bars in as few rows as possible without overlap, in order of time."""
    rows: list[list[Bar]] = []
    for bar in sorted(bars, key=lambda b: (b.start, b.end, b.text)):
        for row in rows:
            if row[-1].end <= bar.start + 1e-6:
                row.append(bar)
                break
        else:
            rows.append([bar])
    return rows


def _lane(
    parts: list[str],
    scale: Scale,
    top: float,
    name: str,
    subtitle: str,
    pcm: bytes,
    rate_hz: int,
    rows: Sequence[Sequence[Bar]],
    style: str,
) -> float:
    """A waveform with its bars below; returns the next free y."""
    middle = top + WAVE + 4
    columns = int(scale.seconds * scale.px_per_s / 2)
    heights = outline(pcm, rate_hz, scale.seconds, columns)
    step = scale.seconds * scale.px_per_s / max(1, columns)
    parts.append(f'<text class="lane" x="8" y="{middle:.0f}">{name}</text>')
    parts.append(f'<text class="sub" x="8" y="{middle + 15:.0f}">{subtitle}</text>')
    parts.append(
        f'<path class="wave-{style}" d="{path(heights, MARGIN, step, middle, WAVE - 2)}"/>'
    )
    y = middle + WAVE + 8
    for row in rows:
        texts = [_lines(bar, scale) for bar in row]
        height = max(1, *(len(lines) for lines in texts)) * _LINE + 4
        parts.extend(
            _bar(bar, lines, scale, y, height) for bar, lines in zip(row, texts, strict=True)
        )
        y += height + 4
    return y + 14


def _lines(bar: Bar, scale: Scale) -> list[str]:
    """The bar's words in lines that fit its width."""
    room = int((scale.x(bar.end) - scale.x(bar.start) - 8) / CHAR_WIDTH)
    if room < 4:
        return []
    return wrap(bar.text, room, max_lines=_MAX_LINES, placeholder="…")


def _bar(bar: Bar, lines: Sequence[str], scale: Scale, y: float, height: float) -> str:
    x = scale.x(bar.start)
    width = max(3.0, scale.x(bar.end) - x)
    label = "".join(
        f'<text class="word" x="{x + 4:.1f}" y="{y + 13 + n * _LINE:.1f}">{escape(line)}</text>'
        for n, line in enumerate(lines)
    )
    return (
        f"<g><title>{escape(bar.title)}</title>"
        f'<rect class="bar {bar.style}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
        f'height="{height:.0f}" rx="3"/>{label}</g>'
    )


def _caller_bars(log: CallLog) -> list[Bar]:
    bars: list[Bar] = []
    for step in log.steps:
        if step.kind not in ("say", "play", "dtmf", "noise"):
            continue
        end = step.end if step.end is not None else log.seconds
        text = step.label.removeprefix("say ").strip("'\"") if step.kind == "say" else step.label
        bars.append(Bar(step.start, end, text, step.kind, f"{step.label} at {step.start:.2f}s"))
    return bars


def _speech_bars(log: CallLog) -> list[Bar]:
    """Where the gateway believed that the caller was speaking, with the words it understood."""
    bars: list[Bar] = []
    began: float | None = None
    spans: list[tuple[float, float, list[str]]] = []
    for record in log.timeline:
        t = float(record["t"])
        kind = record["kind"]
        if kind == "user_speech_started":
            began = t
        elif kind == "user_speech_ended" and began is not None:
            spans.append((began, t, []))
            began = None
        elif kind == "user_text" and spans and record.get("text"):
            spans[-1][2].append(str(record["text"]))
    if began is not None:
        spans.append((began, log.seconds, []))
    for start, end, texts in spans:
        words = texts[-1] if texts else "speech"
        bars.append(Bar(start, end, words, "detected", f"understood: {words}"))
    return bars


def _agent_bars(log: CallLog) -> list[Bar]:
    queued: dict[Any, TimelineRecord] = {}
    started: dict[Any, float] = {}
    bars: list[Bar] = []
    for record in log.timeline:
        number = record.get("id")
        kind = record["kind"]
        if kind == "utterance_queued":
            queued[number] = record
        elif kind == "utterance_started":
            started[number] = float(record["t"])
        elif kind == "utterance_ended" and number in started:
            bars.append(_agent_bar(record, queued.get(number, {}), started[number]))
    return bars


def _agent_bar(ended: TimelineRecord, queued: TimelineRecord, start: float) -> Bar:
    end = float(ended["t"])
    uri = str(queued.get("uri") or ended.get("uri") or "")
    text = str(queued.get("text") or "") or uri.rsplit("/", 1)[-1] or "audio"
    if uri:
        text = f"♪ {text}"
    style = {"file": "file", "audio": "audio"}.get(str(queued.get("source")), "voice")
    if queued.get("interruptable") is False:
        style += " protected"
    reason = str(ended.get("reason"))
    if reason != "completed":
        style += " ended-early"
    title = f"{text}\n{start:.2f}s to {end:.2f}s, {reason}"
    if ended.get("heard_text") and reason != "completed":
        title += f"\nheard: {ended['heard_text']}"
    return Bar(start, end, text, style, title)


def _cut_times(timeline: Sequence[TimelineRecord]) -> list[float]:
    return [float(record["t"]) for record in timeline if record["kind"] in ("barge_in", "cleared")]


def _event_words(record: Mapping[str, Any]) -> tuple[str, str] | None:
    """Label and style of a record that is a moment; None for those drawn otherwise."""
    kind = str(record["kind"])
    if kind == "barge_in":
        return f"barge-in by {record.get('by')}", "hot"
    if kind == "error":
        return f"error {record.get('code')}", "bad"
    if kind == "inactivity":
        return f"inactive {record.get('seconds'):g}s", "calm"
    if kind == "dtmf":
        return f"keys {record.get('digits')}", "calm"
    if kind == "transfer":
        return f"transfer {record.get('target') or ''}".strip(), "hot"
    if kind == "call_ended":
        return f"ended: {record.get('reason')}", "hot"
    if kind == "runtime_input":
        what = record.get("text") or record.get("event") or record.get("digits") or ""
        return f"→ {record.get('type')} {what}".strip(), "in"
    if kind == "runtime_output" and record.get("type") in ("payload", "endSession", "toolCalls"):
        return f"← {record.get('type')}", "out"
    return None


def _event_marks(log: CallLog, scale: Scale) -> list[Bar]:
    marks: list[Bar] = []
    for record in log.timeline:
        found = _event_words(record)
        if found is None:
            continue
        words, style = found
        t = float(record["t"])
        shown = words if len(words) <= 44 else words[:43] + "…"
        needed = (len(shown) * CHAR_WIDTH + 16) / scale.px_per_s
        mark = Bar(t, t + needed, shown, style, f"{t:.2f}s {words}", dot=t)
        if t + needed > scale.seconds:
            # Near the right edge the words stand before their dot.
            mark = replace(mark, start=t - needed, end=t + 8 / scale.px_per_s)
        marks.append(mark)
    return marks


def _events(parts: list[str], scale: Scale, top: float, marks: Sequence[Bar]) -> float:
    rows = _rows(marks)
    parts.append(f'<text class="lane" x="8" y="{top + 12:.0f}">Events</text>')
    y = top
    for row in rows:
        for mark in row:
            x = scale.x(mark.dot)
            flip = mark.start < mark.dot
            anchor = ' text-anchor="end"' if flip else ""
            at = x - 6 if flip else x + 6
            parts.append(
                f"<g><title>{escape(mark.title)}</title>"
                f'<circle class="dot {mark.style}" cx="{x:.1f}" cy="{y + 8:.1f}" r="3.5"/>'
                f'<text class="word" x="{at:.1f}" y="{y + 12:.1f}"{anchor}>'
                f"{escape(mark.text)}</text></g>"
            )
        y += ROW
    return y + 6
