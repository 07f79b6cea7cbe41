"""App-relative audio: what is in the app plays, nothing outside of it is ever read."""

import pytest

from gateway.agent.app.files import FolderFiles, open_files
from gateway.assets.app_files import app_path, read_app_path
from gateway.errors import AssetError

LIMIT = 1000


@pytest.fixture
def app(tmp_path):
    root = tmp_path / "app"
    (root / "audio").mkdir(parents=True)
    (root / "audio" / "hold.wav").write_bytes(b"music")
    (tmp_path / "secret.wav").write_bytes(b"secret")
    return root


def code_of(read, uri: str) -> str:
    with pytest.raises(AssetError) as caught:
        read_app_path(read, uri, LIMIT)
    assert caught.value.where == uri
    return caught.value.code


@pytest.mark.parametrize("uri", ["audio/hold.wav", "./audio/hold.wav", "audio//./hold.wav"])
def test_a_path_from_the_root_is_read(app, uri):
    assert read_app_path(FolderFiles(app).read, uri, LIMIT) == b"music"


@pytest.mark.parametrize(
    "uri",
    [
        "../secret.wav",
        "audio/../../secret.wav",
        "audio/..",
        "/etc/passwd",
        "//host/share.wav",
        "..\\secret.wav",
        "audio\\hold.wav",
        "C:/secret.wav",
        "audio/hold.wav\x00.txt",
        "",
        ".",
    ],
)
def test_a_path_that_leads_out_is_refused_before_anything_is_read(uri):
    asked: list[str] = []

    def read(path: str) -> bytes:
        asked.append(path)
        return b""

    assert code_of(read, uri) == "asset.outside_app"
    assert asked == []


def test_a_link_out_of_the_app_is_refused(app):
    (app / "audio" / "leak.wav").symlink_to(app.parent / "secret.wav")
    (app / "out").symlink_to(app.parent)
    read = FolderFiles(app).read
    assert code_of(read, "audio/leak.wav") == "asset.outside_app"
    assert code_of(read, "out/secret.wav") == "asset.outside_app"


def test_a_link_inside_the_app_is_followed(app):
    (app / "audio" / "same.wav").symlink_to(app / "audio" / "hold.wav")
    assert read_app_path(FolderFiles(app).read, "audio/same.wav", LIMIT) == b"music"


@pytest.mark.parametrize("uri", ["none.wav", "audio", "audio/hold.wav/x", "%2e%2e/secret.wav"])
def test_a_file_that_is_not_there(app, uri):
    assert code_of(FolderFiles(app).read, uri) == "asset.not_found"


def test_other_readers_may_say_so_in_their_own_way(tmp_path):
    def of_mapping(path: str) -> bytes:
        return {}[path]

    assert code_of(of_mapping, "a.wav") == "asset.not_found"
    assert code_of((lambda path: (tmp_path / path).read_bytes()), "a.wav") == "asset.not_found"
    assert code_of(None, "a.wav") == "asset.not_found"


def test_a_file_beyond_the_limit(app):
    (app / "audio" / "long.wav").write_bytes(bytes(LIMIT + 1))
    assert code_of(FolderFiles(app).read, "audio/long.wav") == "asset.too_large"


def test_an_app_that_is_gone_has_no_files(app):
    read = open_files(app).read
    (app / "audio" / "hold.wav").unlink()
    assert code_of(read, "audio/hold.wav") == "asset.not_found"


def test_paths_are_cleaned():
    assert app_path("./a//b/./c.wav") == "a/b/c.wav"
