"""Folders and zips as one tree that cannot be left."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.agent.app import files
from gateway.agent.app.files import clean_path, open_files
from gateway.errors import AppError


def _zip(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def _code(path: Path) -> str:
    with pytest.raises(AppError) as caught:
        open_files(path)
    assert caught.value.where
    return caught.value.code


def test_a_zip_may_have_a_root_folder_or_none(tmp_path: Path) -> None:
    for prefix in ("", "My_App/"):
        path = _zip(tmp_path / "a.zip", {f"{prefix}app.yaml": b"x", f"{prefix}a/b.txt": b"y"})
        read = open_files(path)
        assert read.paths() == ["a/b.txt", "app.yaml"]
        assert read.read("./a/b.txt") == b"y"


def test_a_folder_reads_like_a_zip(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/b.txt").write_bytes(b"y")
    (tmp_path / ".git").write_bytes(b"hidden")
    assert open_files(tmp_path).paths() == ["a/b.txt"]
    assert open_files(tmp_path).read("a/b.txt") == b"y"


@pytest.mark.parametrize("rel", ["../x", "/etc/passwd", "a/../../x", "..\\x", "C:\\x", "", "a\0"])
def test_no_path_leaves_the_app(tmp_path: Path, rel: str) -> None:
    with pytest.raises(AppError) as caught:
        open_files(tmp_path).read(rel)
    assert caught.value.code == "app.path"


@given(st.text())
def test_a_clean_path_stays_inside(rel: str) -> None:
    try:
        path = clean_path(rel)
    except AppError:
        return
    assert (Path("/root") / path).resolve().is_relative_to("/root")


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "secret").write_text("s")
    (tmp_path / "app/link").symlink_to(tmp_path / "secret")
    assert open_files(tmp_path / "app").paths() == []
    with pytest.raises(AppError) as caught:
        open_files(tmp_path / "app").read("link")
    assert caught.value.code == "app.path"


def test_links_that_lead_to_each_other_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text("displayName: X")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    files = open_files(tmp_path)
    assert files.paths() == ["app.yaml"]
    with pytest.raises(AppError) as caught:
        files.read("loop")
    # From Python 3.13 on such a link leads nowhere; before, it cannot be followed at all.
    assert caught.value.code in ("app.path", "app.missing_file")


def test_what_is_too_long_to_be_a_path_is_missing() -> None:
    with pytest.raises(AppError) as caught:
        open_files(Path("x" * 5_000))
    assert caught.value.code == "app.missing"


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    assert _code(tmp_path / "nothing") == "app.missing"
    with pytest.raises(AppError) as caught:
        open_files(tmp_path).read("audio/x.wav")
    assert caught.value.code == "app.missing_file"
    assert _code(_zip(tmp_path / "a.zip", {"x/y/app.yaml": b""})) == "app.no_app_file"


def test_a_zip_that_leaves_its_folder_is_refused(tmp_path: Path) -> None:
    for name in ("../evil", "/evil", "a/../../evil"):
        assert _code(_zip(tmp_path / "a.zip", {"app.yaml": b"", name: b"x"})) == "app.zip_path"


def test_a_name_that_no_folder_can_hold_is_refused(tmp_path: Path) -> None:
    for name, good in (
        ("x" * 255, True),
        ("é" * 127, True),
        ("x" * 256, False),
        ("é" * 128, False),
    ):
        path = _zip(tmp_path / "a.zip", {"app.yaml": b"", f"a/{name}/b": b"x"})
        if good:
            assert open_files(path).read(f"a/{name}/b") == b"x"
        else:
            assert _code(path) == "app.zip_path"


def test_a_zip_with_a_link_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("app.yaml", "")
        link = zipfile.ZipInfo("link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    assert _code(path) == "app.zip_link"


def test_a_zip_with_a_member_twice_is_refused(tmp_path: Path) -> None:
    assert _code(_zip(tmp_path / "a.zip", {"app.yaml": b"", "App.yaml": b""})) == (
        "app.zip_duplicate"
    )


def test_names_that_are_one_on_some_systems_count_as_twice(tmp_path: Path) -> None:
    members = {"app.yaml": b"", "a/\u00e9.txt": b"", "a/e\u0301.txt": b""}
    assert _code(_zip(tmp_path / "a.zip", members)) == "app.zip_duplicate"
    for file in ("a", "A"):
        members = {"app.yaml": b"", file: b"", "a/b.txt": b""}
        assert _code(_zip(tmp_path / "a.zip", members)) == "app.zip_duplicate"


def test_what_tools_leave_behind_is_left_out_of_zips_as_of_folders(tmp_path: Path) -> None:
    members = {"app.yaml": b"", ".git/config": b"", "a/.DS_Store": b"", "__MACOSX/app.yaml": b""}
    members["a/__pycache__/b.pyc"] = b""
    path = _zip(tmp_path / "a.zip", members)
    assert open_files(path).paths() == ["app.yaml"]
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path / "folder")
    shutil.rmtree(tmp_path / "folder/__MACOSX")
    assert open_files(tmp_path / "folder").paths() == ["app.yaml"]


def test_names_in_utf_8_are_read_also_where_the_zip_does_not_say_so(tmp_path: Path) -> None:
    # A name of plain letters carries no flag; then its bytes become those of another name.
    path = _zip(tmp_path / "a.zip", {"app.yaml": b"", "a/B##ro.txt": b"x"})
    path.write_bytes(path.read_bytes().replace(b"B##ro", "B\u00fcro".encode()))
    assert open_files(path).read("a/B\u00fcro.txt") == b"x"


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = _zip(tmp_path / "a.zip", {"app.yaml": b"", "zeros": bytes(16 << 20)})
    assert _code(path) == "app.zip_size"


def test_too_many_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_MEMBERS", 3)
    members = {"app.yaml": b"", **{f"f{n}": b"" for n in range(3)}}
    assert _code(_zip(tmp_path / "a.zip", members)) == "app.zip_members"


def test_a_member_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 10)
    assert _code(_zip(tmp_path / "a.zip", {"app.yaml": b"", "big": b"x" * 11})) == "app.size"


@given(st.binary(max_size=400))
def test_any_bytes_are_a_zip_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.mktemp("zip") / "a.zip"
    path.write_bytes(data)
    with pytest.raises(AppError):
        open_files(path)


@given(position=st.integers(0, 300), value=st.integers(0, 255))
def test_a_damaged_zip_is_read_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, position: int, value: int
) -> None:
    path = _zip(tmp_path_factory.mktemp("zip") / "a.zip", {"app.yaml": b"x: 1", "a.txt": b"a" * 50})
    data = bytearray(path.read_bytes())
    data[position % len(data)] = value
    path.write_bytes(data)
    with contextlib.suppress(AppError):
        open_files(path).read("app.yaml")


# ---- folders that are no app, or no longer one


def test_a_folder_that_is_no_app_is_not_searched_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_LOOK", 5)
    for number in range(20):
        (tmp_path / f"{number:02}").mkdir()
        (tmp_path / f"{number:02}/file.txt").write_text("x")
    assert open_files(tmp_path).paths() == ["00/file.txt", "01/file.txt"]
    (tmp_path / "app.yaml").write_text("displayName: x")
    assert len(open_files(tmp_path).paths()) == 21


def test_an_app_among_too_many_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_MEMBERS", 3)
    for name in ("app.yaml", "a", "b", "c"):
        (tmp_path / name).write_text("x")
    with pytest.raises(AppError) as caught:
        open_files(tmp_path).paths()
    assert caught.value.code == "app.size"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_an_error_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text("x")
    (tmp_path / "agents").mkdir(mode=0)
    with pytest.raises(AppError) as caught:
        open_files(tmp_path).paths()
    assert (caught.value.code, caught.value.where) == ("app.unreadable", str(tmp_path / "agents"))
    (tmp_path / "agents").rmdir()
