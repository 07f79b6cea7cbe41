"""The cache of decoded audio: bounded, aged, and short of memory for failures."""

import pytest

from gateway.assets.cache import FAILURE_S, MAX_FAILURES, AudioCache
from gateway.errors import AssetError

A, B, C = ("a.wav", 8000), ("b.wav", 8000), ("c.wav", 8000)


def test_audio_is_kept_by_uri_and_rate():
    cache = AudioCache(1000, 60)
    cache.put(A, b"1" * 10, 0, ages=True)
    assert cache.get(A, 1) == b"1" * 10
    assert cache.get(("a.wav", 16000), 1) is None


def test_the_least_recently_used_goes_first():
    cache = AudioCache(100, 60)
    cache.put(A, b"1" * 40, 0, ages=True)
    cache.put(B, b"2" * 40, 0, ages=True)
    cache.get(A, 1)
    cache.put(C, b"3" * 40, 2, ages=True)
    assert cache.get(B, 3) is None
    assert cache.get(A, 3) is not None
    assert cache.get(C, 3) is not None
    assert cache.bytes == 80


def test_what_is_larger_than_the_cache_is_not_kept_and_pushes_nothing_out():
    cache = AudioCache(100, 60)
    cache.put(A, b"1" * 40, 0, ages=True)
    cache.put(B, b"2" * 101, 0, ages=True)
    assert cache.get(B, 0) is None
    assert cache.get(A, 0) is not None


def test_putting_again_counts_the_bytes_once():
    cache = AudioCache(100, 60)
    for _ in range(5):
        cache.put(A, b"1" * 60, 0, ages=True)
    assert cache.bytes == 60
    assert len(cache) == 1


def test_a_remote_file_ages_and_an_app_file_does_not():
    cache = AudioCache(100, 60)
    cache.put(A, b"1", 0, ages=True)
    cache.put(B, b"2", 0, ages=False)
    assert cache.get(A, 59.9) == b"1"
    assert cache.get(A, 60) is None
    assert cache.get(B, 1e9) == b"2"
    assert cache.bytes == 1


def test_a_failure_is_remembered_for_a_moment_only():
    cache = AudioCache(100, 60)
    cache.fail(A, AssetError("asset.not_found", "gone", where="a.wav", hint="look"), 0)
    with pytest.raises(AssetError) as caught:
        cache.get(A, FAILURE_S - 0.1)
    assert (caught.value.code, caught.value.hint) == ("asset.not_found", "look")
    assert cache.get(A, FAILURE_S) is None
    assert FAILURE_S <= 5


def test_a_success_ends_the_memory_of_a_failure():
    cache = AudioCache(100, 60)
    cache.fail(A, AssetError("asset.timeout", "late"), 0)
    cache.put(A, b"1", 0, ages=True)
    assert cache.get(A, 0) == b"1"


def test_failures_are_bounded_too():
    cache = AudioCache(100, 60)
    for number in range(MAX_FAILURES + 1):
        cache.fail((f"{number}.wav", 8000), AssetError("asset.timeout", "late"), 0)
    assert cache.get(("0.wav", 8000), 0) is None
    with pytest.raises(AssetError):
        cache.get(("1.wav", 8000), 0)
