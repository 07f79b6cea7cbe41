"""Dialects by name, and call ids that depend on a name alone."""

from __future__ import annotations

import pytest

from gateway.bidi import session_id
from gateway.channels.dialects import DIALECTS
from gateway.errors import ScenarioError
from gateway.simulate.platforms import CHANNELS, call_id, platform
from gateway.simulate.platforms.base import Identity

SPOKEN = (
    *("ces", "twilio", "asterisk", "jambonz", "audio_fork", "audio_stream", "raw", "genesys"),
    *("vonage", "telnyx", "signalwire", "plivo", "exotel", "bandwidth", "sinch", "infobip"),
    "audiocodes",
)


def test_callers_speak_all_of_these() -> None:
    assert set(SPOKEN) <= set(CHANNELS) <= DIALECTS.keys()


@pytest.mark.parametrize("channel", CHANNELS)
def test_every_dialect_has_a_platform(channel: str) -> None:
    made = platform(channel, Identity(call_id(channel, "x")))
    assert made.play().pcm == bytes(made.out_format.pcm_frame_bytes)
    assert not made.finished


def test_call_ids_have_the_dialects_shape_and_are_stable() -> None:
    sid = call_id("twilio", "greeting")
    assert sid.startswith("CA")
    assert len(sid) == 34
    assert sid == call_id("twilio", "greeting") != call_id("twilio", "other")
    number = call_id("ces", "greeting")
    assert session_id(f"projects/p/locations/l/apps/a/sessions/{number}") == number


def test_an_unknown_dialect_is_named() -> None:
    with pytest.raises(ScenarioError, match="carrier-pigeon"):
        platform("carrier-pigeon", Identity("x"))
    with pytest.raises(ScenarioError):
        call_id("carrier-pigeon", "x")
