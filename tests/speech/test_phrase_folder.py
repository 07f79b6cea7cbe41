"""Sentences on disk: bounded, private, and never a reason to fail a call."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from gateway.errors import ConfigError
from gateway.speech.phrase_folder import PhraseFolder


def opened(path: Path, max_bytes: int = 1000) -> PhraseFolder:
    folder = PhraseFolder(path, max_bytes)
    folder.open()
    return folder


def test_what_was_put_is_found_by_another_process(tmp_path: Path) -> None:
    opened(tmp_path / "p").put("a", b"12")
    assert opened(tmp_path / "p").get("a") == b"12"
    assert opened(tmp_path / "p").get("b") is None


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    opened(tmp_path / "p").put("a", b"12")
    assert stat.S_IMODE((tmp_path / "p").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "p" / "a.pcm").stat().st_mode) == 0o600


def test_beyond_its_size_the_longest_unused_goes(tmp_path: Path) -> None:
    folder = opened(tmp_path, 100)
    for age, name in enumerate("abcd"):
        folder.put(name, bytes(25))
        os.utime(tmp_path / f"{name}.pcm", (1000 + age, 1000 + age))
    assert folder.get("a")
    folder.put("e", bytes(25))
    assert [name for name in "abcde" if folder.get(name)] == ["a", "d", "e"]
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 100


def test_what_alone_is_larger_than_the_folder_is_not_kept(tmp_path: Path) -> None:
    folder = opened(tmp_path, 10)
    folder.put("a", bytes(11))
    assert folder.get("a") is None


def test_what_a_crash_left_half_written_is_removed(tmp_path: Path) -> None:
    (tmp_path / "a.1.part").write_bytes(b"12")
    folder = opened(tmp_path)
    assert folder.get("a") is None
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_goes_away_is_logged_once(tmp_path: Path) -> None:
    folder = opened(tmp_path / "p")
    (tmp_path / "p").rmdir()
    with capture_logs() as logs:
        folder.put("a", b"12")
        folder.put("b", b"12")
    assert [log["event"] for log in logs] == ["speech.cache_folder"]
    assert folder.get("a") is None


def test_a_folder_that_cannot_be_made_is_a_wrong_setting(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError) as raised:
        opened(tmp_path / "file" / "p")
    assert raised.value.where == "speech.cache_folder"
