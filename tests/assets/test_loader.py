"""Audio by uri: one interface over app, web and buckets; each file is fetched once."""

import asyncio

import pytest
from aiohttp import web

from gateway.assets import AudioAssets, ThreadRunner, run_inline
from gateway.assets.loader import MAX_PENDING, public
from gateway.audio.resample import resample_clip
from gateway.config import AssetSettings
from gateway.errors import AssetError

from .servers import PCM, http_server, storage_emulator, wav

FILES = {"audio/hold.wav": wav(), "audio/hold.raw": PCM, "audio/page.wav": b"<html>sorry</html>"}


def opened(**settings) -> AssetSettings:
    return AssetSettings(allow_private_addresses=True, allow_http=True, **settings)


@pytest.fixture
async def run():
    runner = ThreadRunner(2)
    yield runner
    await runner.aclose()


async def code_of(assets: AudioAssets, uri: str) -> str:
    with pytest.raises(AssetError) as caught:
        await assets.load(uri, 8000)
    return caught.value.code


async def test_a_file_of_the_app_comes_at_the_rate_asked_for():
    assets = AudioAssets(AssetSettings(), FILES.__getitem__, run_inline)
    assert await assets.load("audio/hold.wav", 8000) == PCM
    assert await assets.load("audio/hold.wav", 24000) == resample_clip(PCM, 8000, 24000)
    await assets.aclose()


async def test_a_headerless_file_may_state_its_rate_in_the_uri():
    assets = AudioAssets(AssetSettings(), FILES.__getitem__, run_inline)
    assert await assets.load("audio/hold.raw;rate=16000", 8000) == resample_clip(PCM, 16000, 8000)
    await assets.aclose()


async def test_every_source_gives_the_same_audio(run):
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=wav())

    app = web.Application()
    app.router.add_get("/hold.wav", answer)
    with storage_emulator("prompts") as endpoint:
        async with http_server(app) as base:
            assets = AudioAssets(opened(gcs_endpoint=endpoint), FILES.__getitem__, run)
            bucket = assets._storage._connected().bucket("prompts")
            blob = bucket.blob("a/hold.wav")
            await run(lambda: blob.upload_from_string(wav()))
            for uri in ("audio/hold.wav", f"{base}/hold.wav", "gs://prompts/a/hold.wav"):
                assert await assets.load(uri, 8000) == PCM
            await assets.aclose()


@pytest.mark.parametrize(
    ("uri", "code"),
    [
        ("audio/none.wav", "asset.not_found"),
        ("../hold.wav", "asset.outside_app"),
        ("audio/page.wav", "asset.format"),
        ("ftp://example.com/hold.wav", "asset.scheme"),
        ("file:///etc/passwd", "asset.scheme"),
        ("http://example.com/hold.wav", "asset.scheme"),
        ("https://127.0.0.1/hold.wav", "asset.blocked_address"),
        ("https://169.254.169.254/hold.wav", "asset.blocked_address"),
        ("HTTPS://[::ffff:127.0.0.1]/hold.wav", "asset.blocked_address"),
        ("https://[::1/hold.wav", "asset.uri"),
        ("gs://bucket", "asset.uri"),
        ("data:audio/wav;base64,UklGRg==", "asset.not_found"),
        ("", "asset.outside_app"),
    ],
)
async def test_each_failure_has_its_code(uri, code):
    assets = AudioAssets(AssetSettings(), FILES.__getitem__, run_inline)
    assert await code_of(assets, uri) == code
    await assets.aclose()


async def test_a_signature_never_stands_in_an_error():
    assets = AudioAssets(AssetSettings(), None, run_inline)
    with pytest.raises(AssetError) as caught:
        await assets.load("https://127.0.0.1/hold.wav?X-Signature=secret", 8000)
    assert "secret" not in caught.value.lines()
    assert caught.value.where == "https://127.0.0.1/hold.wav"
    assert public("audio/what?.wav") == "audio/what?.wav"
    await assets.aclose()


class Counted:
    """An app whose one file is read as often as `reads` says."""

    def __init__(self) -> None:
        self.reads = 0
        self.broken = False

    def __call__(self, path: str) -> bytes:
        self.reads += 1
        if self.broken:
            raise FileNotFoundError(path)
        return wav()


async def test_a_file_is_read_once_for_each_rate():
    app = Counted()
    assets = AudioAssets(AssetSettings(), app, run_inline)
    for _ in range(3):
        await assets.load("hold.wav", 8000)
        await assets.load("hold.wav", 16000)
    assert app.reads == 2
    await assets.aclose()


async def test_callers_at_the_same_time_share_one_read(run):
    app = Counted()
    assets = AudioAssets(AssetSettings(cache_bytes=0), app, run)
    loaded = await asyncio.gather(*(assets.load("hold.wav", 8000) for _ in range(20)))
    assert loaded == [PCM] * 20
    assert app.reads == 1
    await assets.load("hold.wav", 8000)
    assert app.reads == 2  # nothing is kept in a cache of no size
    await assets.aclose()


async def test_a_failure_is_shared_and_not_repeated_at_once():
    app = Counted()
    app.broken = True
    assets = AudioAssets(AssetSettings(), app, run_inline)
    for _ in range(3):
        assert await code_of(assets, "hold.wav") == "asset.not_found"
    assert app.reads == 1
    await assets.aclose()


def gate() -> tuple[web.Application, asyncio.Event, asyncio.Event]:
    """A site that answers when it is told to: app, reached, go."""
    reached, go = asyncio.Event(), asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        reached.set()
        await go.wait()
        return web.Response(body=wav())

    app = web.Application()
    app.router.add_get("/hold.wav", answer)
    return app, reached, go


async def test_a_caller_that_hangs_up_does_not_take_the_file_from_the_others(run):
    app, reached, go = gate()
    async with http_server(app) as base:
        assets = AudioAssets(opened(), None, run)
        first = asyncio.ensure_future(assets.load(f"{base}/hold.wav", 8000))
        second = asyncio.ensure_future(assets.load(f"{base}/hold.wav", 8000))
        await reached.wait()
        first.cancel()
        go.set()
        assert await second == PCM
        assert first.cancelled()
        await assets.aclose()


async def test_closing_ends_what_is_under_way_with_an_error(run):
    app, reached, _ = gate()
    async with http_server(app) as base:
        assets = AudioAssets(opened(timeout_s=30), None, run)
        waiting = asyncio.ensure_future(code_of(assets, f"{base}/hold.wav"))
        await reached.wait()
        await assets.aclose()
        assert await waiting == "asset.busy"
        assert await code_of(assets, f"{base}/hold.wav") == "asset.busy"


async def test_a_slow_server_is_given_up(run):
    app, _, _ = gate()
    async with http_server(app) as base:
        assets = AudioAssets(opened(timeout_s=0.2), None, run)
        assert await code_of(assets, f"{base}/hold.wav") == "asset.timeout"
        await assets.aclose()


async def test_only_so_many_files_are_under_way_at_once():
    never = asyncio.Event()

    async def stuck(_fn, /):
        await never.wait()

    assets = AudioAssets(AssetSettings(), FILES.__getitem__, stuck)
    waiting = [
        asyncio.ensure_future(assets.load(f"{number}.wav", 8000)) for number in range(MAX_PENDING)
    ]
    await asyncio.sleep(0)
    assert await code_of(assets, "one-more.wav") == "asset.busy"
    await assets.aclose()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert {type(result) for result in results} == {AssetError}


async def test_limits_come_from_the_settings():
    assets = AudioAssets(AssetSettings(max_bytes=1024), FILES.__getitem__, run_inline)
    assert await code_of(assets, "audio/hold.wav") == "asset.too_large"
    await assets.aclose()
    assets = AudioAssets(AssetSettings(max_seconds=0.1), FILES.__getitem__, run_inline)
    assert await code_of(assets, "audio/hold.wav") == "asset.too_long"
    await assets.aclose()
