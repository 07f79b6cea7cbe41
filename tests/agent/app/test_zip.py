"""Zips of apps: packed like exports, and unpack, pack, unpack gives the same."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.agent.app.files import AppFiles, open_files
from gateway.agent.app.write import Format, write_folder
from gateway.agent.app.zip import write_zip
from gateway.demo import APP_PATH
from gateway.errors import AppError
from tests.agent.app.memory import MemoryFiles


def _content(files: AppFiles) -> dict[str, bytes]:
    return {path: files.read(path) for path in files.paths()}


def test_unpack_pack_unpack_gives_the_same(tmp_path: Path) -> None:
    first, second = tmp_path / "first.zip", tmp_path / "second.zip"
    count = write_zip(open_files(APP_PATH), first, "Demo")
    assert write_folder(open_files(first), tmp_path / "one") == count
    write_zip(open_files(tmp_path / "one"), second, "Demo")
    write_folder(open_files(second), tmp_path / "two")
    assert _content(open_files(tmp_path / "one")) == _content(open_files(APP_PATH))
    assert _content(open_files(tmp_path / "two")) == _content(open_files(tmp_path / "one"))
    # Neither the day nor the folder's order of files shows.
    assert first.read_bytes() == second.read_bytes()


def test_a_zip_has_one_root_folder_and_plain_files(tmp_path: Path) -> None:
    write_zip(open_files(APP_PATH), tmp_path / "a.zip", "Demo", Format.JSON)
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert {name.split("/")[0] for name in names} == {"Demo"}
        assert "Demo/app.json" in names
        assert {info.external_attr >> 16 for info in archive.infolist()} == {0o100644}


def test_a_file_that_is_there_is_replaced_only_when_asked(tmp_path: Path) -> None:
    target = tmp_path / "a.zip"
    target.write_text("mine")
    files = MemoryFiles({"app.yaml": ""})
    with pytest.raises(AppError) as caught:
        write_zip(files, target, "X")
    assert caught.value.code == "app.exists"
    assert target.read_text() == "mine"
    write_zip(files, target, "X", replace=True)
    assert open_files(target).paths() == ["app.yaml"]
    with pytest.raises(AppError) as caught:
        write_zip(files, tmp_path, "X", replace=True)
    assert caught.value.code == "app.exists"


def test_what_is_no_file_is_not_replaced_though_it_is_asked_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(AppError) as caught:
        write_zip(MemoryFiles({"app.yaml": ""}), pipe, "X", replace=True)
    assert caught.value.code == "app.exists"
    assert pipe.is_fifo()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(AppError) as caught:
        write_zip(MemoryFiles({"app.yaml": ""}), tmp_path / "none/a.zip", "X")
    assert caught.value.code == "app.write"
    with pytest.raises(AppError) as caught:
        write_zip(MemoryFiles({"app.yaml": ""}), tmp_path / ("x" * 300), "X")
    assert caught.value.code == "app.write"


def test_nothing_is_left_of_a_zip_whose_packing_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(zipfile.ZipFile, "writestr", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_zip(MemoryFiles({"app.yaml": ""}), tmp_path / "a.zip", "X")
    assert list(tmp_path.iterdir()) == []


_names = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters='\\/:.~"'),
    min_size=1,
    max_size=8,
)


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(_names, st.binary(max_size=50), max_size=4))
def test_any_names_and_bytes_come_back(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]
) -> None:
    target = tmp_path_factory.mktemp("zip") / "a.zip"
    content = {"app.yaml": b"", **{f"audio/{name}.wav": data for name, data in files.items()}}
    write_zip(MemoryFiles(content), target, "X")
    try:
        read = open_files(target)
    except AppError as error:
        assert error.code == "app.zip_duplicate"  # noqa: PT017 - names that differ by case only
    else:
        assert _content(read) == content
