"""gs:// files through the real client, from an emulator on the wire."""

import asyncio
import gzip
import socket

import pytest
from aiohttp import web

from gateway.assets.deadline import Deadline
from gateway.assets.guard import Guard
from gateway.assets.storage import StorageSource
from gateway.errors import AssetError

from .servers import http_server, in_thread, storage_emulator

BUCKET = "voice-prompts"
MAX_BYTES = 100_000
WHERE = "the uri"


@pytest.fixture(scope="module")
def endpoint():
    with storage_emulator(BUCKET) as url:
        source = StorageSource(Guard(), max_bytes=MAX_BYTES, endpoint=url)
        bucket = source._connected().bucket(BUCKET)
        for name, body in {
            "hold.wav": b"music",
            "a folder/ä #1?.ulaw": b"odd name",
            "at": bytes(MAX_BYTES),
            "beyond": bytes(MAX_BYTES + 1),
        }.items():
            bucket.blob(name).upload_from_string(body, content_type="audio/x-wav")
        source.close()
        yield url


@pytest.fixture
def source(endpoint):
    made = StorageSource(Guard(), max_bytes=MAX_BYTES, endpoint=endpoint)
    yield made
    made.close()


def code_of(source: StorageSource, uri: str, timeout_s: float = 20.0) -> str:
    with pytest.raises(AssetError) as caught:
        source.fetch(uri, Deadline.after(timeout_s, WHERE))
    assert caught.value.where == WHERE
    return caught.value.code


@pytest.mark.parametrize(
    ("name", "body"), [("hold.wav", b"music"), ("a folder/ä #1?.ulaw", b"odd name")]
)
def test_an_object_is_fetched(source, name, body):
    assert source.fetch(f"gs://{BUCKET}/{name}", Deadline.after(20, WHERE)) == body


def test_the_emulator_may_be_named_by_the_environment(endpoint, monkeypatch):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", endpoint.removeprefix("http://"))
    source = StorageSource(Guard(), max_bytes=MAX_BYTES)
    assert source.fetch(f"gs://{BUCKET}/hold.wav", Deadline.after(20, WHERE)) == b"music"
    source.close()


def test_an_object_or_bucket_that_is_not_there(source):
    assert code_of(source, f"gs://{BUCKET}/none.wav") == "asset.not_found"
    assert code_of(source, "gs://another-bucket/hold.wav") == "asset.not_found"


def test_the_size_is_bounded(source):
    assert len(source.fetch(f"gs://{BUCKET}/at", Deadline.after(20, WHERE))) == MAX_BYTES
    assert code_of(source, f"gs://{BUCKET}/beyond") == "asset.too_large"


async def test_an_object_that_unpacks_beyond_the_limit_is_too_large():
    async def packed(request: web.Request) -> web.Response:
        body = gzip.compress(bytes(50 * MAX_BYTES))
        assert len(body) < MAX_BYTES
        return web.Response(body=body, headers={"Content-Encoding": "gzip"})

    app = web.Application()
    app.router.add_get("/{path:.*}", packed)
    async with http_server(app) as base:
        source = StorageSource(Guard(), max_bytes=MAX_BYTES, endpoint=base)
        code = await in_thread(lambda: code_of(source, f"gs://{BUCKET}/a.wav"))
        assert code == "asset.too_large"
        source.close()


@pytest.mark.parametrize(
    "uri", ["gs://", "gs://bucket", "gs://bucket/", "gs:///a.wav", "gs://UPPER/a", "gs://b/a\nb"]
)
def test_a_uri_that_names_no_object(source, uri):
    assert code_of(source, uri) == "asset.uri"


def test_a_bucket_that_is_not_listed(endpoint):
    source = StorageSource(
        Guard(allowed_hosts=("gs://others",)), max_bytes=MAX_BYTES, endpoint=endpoint
    )
    assert code_of(source, f"gs://{BUCKET}/hold.wav") == "asset.forbidden"


@pytest.mark.parametrize(
    ("status", "code"),
    [(401, "asset.forbidden"), (403, "asset.forbidden"), (400, "asset.unreachable")],
)
async def test_a_refusal_has_its_code(status, code):
    async def refuse(request: web.Request) -> web.Response:
        return web.json_response({"error": {"code": status, "message": "no"}}, status=status)

    app = web.Application()
    app.router.add_get("/{path:.*}", refuse)
    async with http_server(app) as base:
        source = StorageSource(Guard(), max_bytes=MAX_BYTES, endpoint=base)
        assert await in_thread(lambda: code_of(source, f"gs://{BUCKET}/a.wav")) == code
        source.close()


async def test_a_store_that_does_not_answer_is_given_up():
    async def never(request: web.Request) -> web.Response:
        await asyncio.Event().wait()
        return web.Response()

    app = web.Application()
    app.router.add_get("/{path:.*}", never)
    async with http_server(app) as base:
        source = StorageSource(Guard(), max_bytes=MAX_BYTES, endpoint=base)
        code = await in_thread(lambda: code_of(source, f"gs://{BUCKET}/a.wav", 0.3))
        assert code == "asset.timeout"
        source.close()


def test_nobody_there_is_given_up():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    source = StorageSource(Guard(), max_bytes=MAX_BYTES, endpoint=f"127.0.0.1:{port}")
    assert code_of(source, f"gs://{BUCKET}/a.wav", 0.3) in ("asset.timeout", "asset.unreachable")
    source.close()


async def test_one_fetch_is_one_request():
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(body=b"music")

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    async with http_server(app) as base:
        source = StorageSource(Guard(), max_bytes=MAX_BYTES, endpoint=base)
        uri = f"gs://{BUCKET}/a.wav"
        assert await in_thread(lambda: source.fetch(uri, Deadline.after(20, WHERE))) == b"music"
        source.close()
    assert asked == [f"/download/storage/v1/b/{BUCKET}/o/a.wav"]
