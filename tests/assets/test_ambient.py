"""Ambient loops: built in or from a bucket, at their final level, made once for all calls."""

from __future__ import annotations

import asyncio
import math

import pytest

from gateway.assets import AudioAssets, ThreadRunner, run_inline
from gateway.audio.mixing import level_dbfs
from gateway.audio.scenes import LEVEL_DBFS, render
from gateway.call.profile import AmbientSound
from gateway.config import AssetSettings
from gateway.errors import AssetError

from .servers import storage_emulator, wav

RATE_HZ = 8000
SINE_DBFS = 20 * math.log10(9000 / 2**0.5 / 32768)


async def test_a_built_in_sound_comes_at_its_gain() -> None:
    assets = AudioAssets(AssetSettings(), None, run_inline)
    plain = await assets.ambient_loop(AmbientSound("room_1", True), RATE_HZ)
    assert plain == render("room_1", RATE_HZ)
    for gain_db in (-12.3, 16.0):
        louder = await assets.ambient_loop(AmbientSound("room_1", True, gain_db), RATE_HZ)
        assert level_dbfs(louder) == pytest.approx(LEVEL_DBFS + gain_db, abs=0.1)
    await assets.aclose()


async def test_a_file_from_a_bucket_is_made_into_a_loop() -> None:
    runner = ThreadRunner(2)
    with storage_emulator("sounds") as endpoint:
        settings = AssetSettings(gcs_endpoint=endpoint, allow_private_addresses=True)
        assets = AudioAssets(settings, None, runner)
        blob = assets._storage._connected().bucket("sounds").blob("office.wav")
        await runner(lambda: blob.upload_from_string(wav(3.0)))
        sound = AmbientSound("gs://sounds/office.wav", False, -6.0)
        loop = await assets.ambient_loop(sound, RATE_HZ)
        await assets.aclose()
    await runner.aclose()
    after_the_seam = loop[RATE_HZ:]
    assert level_dbfs(after_the_seam) == pytest.approx(SINE_DBFS - 6.0, abs=0.1)
    assert len(loop) % 320 == 0
    assert 2.4 < len(loop) / 2 / RATE_HZ < 3.0


async def test_calls_that_begin_together_share_one_loop() -> None:
    made: list[object] = []

    async def counting(fn):  # type: ignore[no-untyped-def]
        made.append(fn)
        await asyncio.sleep(0)
        return fn()

    assets = AudioAssets(AssetSettings(), None, counting)
    sound = AmbientSound("hum", True, 3.0)
    loops = await asyncio.gather(*(assets.ambient_loop(sound, RATE_HZ) for _ in range(20)))
    assert len(made) == 1
    assert len({id(loop) for loop in loops}) == 1
    await assets.aclose()


async def test_a_file_that_cannot_be_had_is_an_asset_error() -> None:
    assets = AudioAssets(AssetSettings(), {}.__getitem__, run_inline)
    with pytest.raises(AssetError) as caught:
        await assets.ambient_loop(AmbientSound("sounds/none.wav", False), RATE_HZ)
    assert caught.value.code == "asset.not_found"
    await assets.aclose()
