"""The cache of speech stays within its bytes and forgets what was unused for longest."""

from __future__ import annotations

from dataclasses import replace

from gateway.audio.formats import ALAW_8K, MULAW_8K
from gateway.call.profile import VoiceConfig
from gateway.speech.cache import SpeechCache, SpeechKey


def key(text: str) -> SpeechKey:
    return SpeechKey("engine", VoiceConfig(), "en-US", text, MULAW_8K)


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


def test_whatever_changes_the_sound_is_another_key() -> None:
    one = key("a")
    others = [
        one._replace(engine="other"),
        one._replace(voice=VoiceConfig(voice="b")),
        one._replace(voice=VoiceConfig(speaking_rate=1.5)),
        one._replace(language="en-GB"),
        one._replace(text="b"),
        one._replace(format=ALAW_8K),
        one._replace(format=replace(MULAW_8K, rate_hz=16000)),
    ]
    cache = SpeechCache(100)
    cache.put(one, bytes(2))
    assert all(cache.get(other) is None for other in others)
    digests = {k.digest for k in (one, *others)}
    assert len(digests) == len(others) + 1
    assert key("a").digest == one.digest


def test_a_digest_does_not_give_the_text_away() -> None:
    assert "secret" not in key("secret").digest
