"""The report's four files: complete, self-contained, and the same bytes for the same call."""

from __future__ import annotations

import json
import re
import wave
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from gateway.errors import ScenarioError
from gateway.simulate.judge import judge
from gateway.simulate.picture import Bar, _rows, draw
from gateway.simulate.report import page, write_report
from gateway.simulate.result import RunResult, at_one_rate
from gateway.simulate.waveform import outline
from tests.simulate import sample


@pytest.fixture
def result() -> RunResult:
    log = sample.log()
    return RunResult(log, judge(log))


def test_identical_calls_make_identical_files(result: RunResult, tmp_path: Path) -> None:
    write_report(result, tmp_path / "one")
    write_report(RunResult(sample.log(), judge(sample.log())), tmp_path / "two")
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == ["call.wav", "report.html", "result.json", "timeline.jsonl"]
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_the_recording_has_the_caller_left_and_the_agent_right(
    result: RunResult, tmp_path: Path
) -> None:
    write_report(result, tmp_path)
    with wave.open(str(tmp_path / "call.wav")) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (2, 2, 8000)
        both = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, 2)
    assert both[:, 0].tobytes() == result.log.sent
    assert both[:, 1].tobytes() == result.log.heard


def test_tracks_of_unequal_length_and_rate_are_brought_together(tmp_path: Path) -> None:
    sent, heard, rate_hz = at_one_rate(bytes(16000), 8000, bytes(32000), 16000)
    assert (len(sent), len(heard), rate_hz) == (32000, 32000, 16000)
    log = replace(sample.log(), sent=bytes(320))
    write_report(RunResult(log, ()), tmp_path)
    with wave.open(str(tmp_path / "call.wav")) as file:
        assert file.getnframes() == len(log.heard) // 2


def test_the_timeline_is_one_object_a_line(result: RunResult, tmp_path: Path) -> None:
    write_report(result, tmp_path)
    lines = (tmp_path / "timeline.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == list(result.log.timeline)


def test_the_result_says_what_came_of_it(result: RunResult, tmp_path: Path) -> None:
    write_report(result, tmp_path)
    document = json.loads((tmp_path / "result.json").read_text())
    assert document["ok"] is True
    assert document["ended"] == "completed"
    assert document["seconds"] == pytest.approx(16.4)
    assert [v["text"] for v in document["verdicts"]][-1] == "ended: completed"
    assert document["understood"][0] == "is there a power cut in my street"
    assert [h["reason"] for h in document["heard"]] == ["completed", "cancelled", "barge_in"]


def test_the_picture_is_well_formed_and_shows_everybodys_words(result: RunResult) -> None:
    svg = ElementTree.fromstring(draw(result.log))
    words = " ".join("".join(node.itertext()) for node in svg.iter())
    for part in ("Caller", "Agent", "Welcome to", "hold_music.wav", "barge-in by speech", "16s"):
        assert part in words
    space = "{http://www.w3.org/2000/svg}"
    assert len(svg.findall(f"{space}path")) == 2
    assert len(svg.findall(f"{space}line[@class='cut']")) == 2
    styles = [node.get("class") for node in svg.iter(f"{space}rect")]
    assert "bar file protected" in styles
    assert "bar voice ended-early" in styles
    assert "bar detected" in styles


def test_the_page_needs_no_network(result: RunResult) -> None:
    text = page(result)
    links = re.findall(r"""(?:src|href)\s*=\s*["']([^"']*)""", text)
    assert links == ["call.wav"]
    assert "url(" not in text
    assert "@import" not in text
    assert set(re.findall(r"https?://[^\"' ]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "prefers-color-scheme: dark" in text
    assert "<!--" not in text, "every hole of the template is filled"


def test_words_that_look_like_markup_stay_words() -> None:
    log = sample.log()
    nasty = "<script>alert(1)</script> & <!--timeline-->"
    timeline = [
        {**record, **({"text": nasty, "heard_text": nasty} if "text" in record else {})}
        for record in log.timeline
    ]
    log = replace(log, timeline=timeline)
    text = page(RunResult(log, judge(log)))
    assert "<script" not in text

    class Checker(HTMLParser):
        comments = 0

        def handle_comment(self, data: str) -> None:
            self.comments += 1

    checker = Checker()
    checker.feed(text)
    assert checker.comments == 0


def test_a_failed_run_says_so_at_the_top() -> None:
    log = sample.log()
    text = page(RunResult(replace(log, timeline=log.timeline[:-1]), judge(log)))
    assert "all expectations hold" in text
    failed = replace(log, timeline=log.timeline[:-1])
    assert "not as expected" in page(RunResult(failed, judge(failed)))


def test_a_call_without_a_single_record_still_has_a_report(tmp_path: Path) -> None:
    log = replace(sample.log(), timeline=[], steps=[], sent=b"", heard=b"")
    write_report(RunResult(log, judge(log)), tmp_path)
    assert (tmp_path / "report.html").exists()


def test_bars_share_a_row_where_they_do_not_overlap() -> None:
    bars = [Bar(0, 2, "a", "", ""), Bar(1, 3, "b", "", ""), Bar(2, 4, "c", "", "")]
    assert [[bar.text for bar in row] for row in _rows(bars)] == [["a", "c"], ["b"]]


def test_the_outline_follows_the_level() -> None:
    loud = (20000).to_bytes(2, "little", signed=True) * 4000
    soft = (200).to_bytes(2, "little", signed=True) * 4000
    heights = outline(loud + soft, 8000, 2.0, 4)
    assert heights[0] > heights[1] > 0 == heights[2] == heights[3]
    assert outline(b"", 8000, 0.0, 4) == []


def test_a_folder_that_cannot_be_written_is_named(result: RunResult, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(ScenarioError, match=r"scenario\.out"):
        write_report(result, blocked / "out")
