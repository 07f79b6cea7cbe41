"""Whose calls are whose: a process's folder is its own for as long as it lives."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from gateway.errors import RecordError
from gateway.records.spool import Spool


def test_calls_of_a_living_process_are_left_alone(tmp_path: Path) -> None:
    living, other = Spool(tmp_path), Spool(tmp_path)
    living.new_call("CA1")
    assert other.adopt() == []
    living.close()
    other.close()


def test_calls_of_a_dead_process_are_taken_over_once(tmp_path: Path) -> None:
    dead = Spool(tmp_path)
    call = dead.new_call("CA1")
    (call / "call.spool").write_bytes(b"x")
    dead.close()
    one, two = Spool(tmp_path), Spool(tmp_path)
    adopted = one.adopt()
    assert [path.name for path in adopted] == [call.name]
    assert (adopted[0] / "call.spool").read_bytes() == b"x"
    assert two.adopt() == []
    assert not dead.folder.exists()
    one.close()
    two.close()


def test_an_empty_folder_is_removed_at_the_end(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "a" / "b")
    spool.close()
    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_two_calls_of_one_name_have_two_folders(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    assert spool.new_call("CA1") != spool.new_call("CA1")
    spool.close()


def test_nobody_else_may_look_inside(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    for folder in (tmp_path / "spool", spool.folder, spool.new_call("CA1")):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    spool.close()


def test_the_room_that_calls_take_is_known(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    before = spool.bytes_used()
    (spool.new_call("CA1") / "x").write_bytes(bytes(100_000))
    assert 100_000 <= spool.bytes_used() - before < 200_000
    spool.close()


def test_a_folder_that_cannot_be_made_says_which_setting(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError) as caught:
        Spool(tmp_path / "file" / "spool")
    assert caught.value.code == "records.spool_folder"
    assert "records.spool" in str(caught.value.hint)
