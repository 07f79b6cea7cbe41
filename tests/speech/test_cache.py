"""The cache of speech stays within its bytes and forgets what was unused for longest."""

from __future__ import annotations

from gateway.speech.cache import SpeechCache, SpeechKey


def key(text: str) -> SpeechKey:
    return SpeechKey(text, 1.0, "en-US", 8000)


def test_the_longest_unused_goes_first() -> None:
    cache = SpeechCache(30)
    for text in "abc":
        cache.put(key(text), bytes(10))
    assert cache.get(key("a")) == bytes(10)
    cache.put(key("d"), bytes(10))
    assert [text for text in "abcd" if cache.get(key(text)) is not None] == ["a", "c", "d"]


def test_replacing_counts_the_bytes_once_and_the_too_large_is_not_kept() -> None:
    cache = SpeechCache(30)
    cache.put(key("a"), bytes(20))
    cache.put(key("a"), bytes(25))
    assert cache.get(key("a")) == bytes(25)
    cache.put(key("b"), bytes(31))
    assert cache.get(key("b")) is None
    assert cache.get(key("a")) is not None


def test_a_cache_of_no_bytes_keeps_nothing() -> None:
    cache = SpeechCache(0)
    cache.put(key("a"), bytes(2))
    assert cache.get(key("a")) is None


def test_another_rate_is_another_sound() -> None:
    cache = SpeechCache(100)
    cache.put(SpeechKey("a", 1.0, "en-US", 8000), bytes(2))
    assert cache.get(SpeechKey("a", 1.5, "en-US", 8000)) is None
    assert cache.get(SpeechKey("a", 1.0, "en-US", 16000)) is None
