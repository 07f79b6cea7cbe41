"""Platform sides of the dialects by channel name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gateway.errors import ScenarioError
from gateway.simulate.platforms import (
    asterisk,
    audio_fork,
    audio_stream,
    audiocodes,
    bandwidth,
    ces,
    exotel,
    genesys,
    infobip,
    jambonz,
    plivo,
    raw,
    signalwire,
    sinch,
    telnyx,
    twilio,
    vonage,
)
from gateway.simulate.platforms.access import Side
from gateway.simulate.platforms.base import Identity, Platform

_SIDES: Final[Mapping[str, Side]] = {
    "ces": ces.SIDE,
    "twilio": twilio.SIDE,
    "asterisk": asterisk.SIDE,
    "jambonz": jambonz.SIDE,
    "audio_fork": audio_fork.SIDE,
    "audio_stream": audio_stream.SIDE,
    "raw": raw.SIDE,
    "genesys": genesys.SIDE,
    "vonage": vonage.SIDE,
    "telnyx": telnyx.SIDE,
    "signalwire": signalwire.SIDE,
    "plivo": plivo.SIDE,
    "exotel": exotel.SIDE,
    "bandwidth": bandwidth.SIDE,
    "sinch": sinch.SIDE,
    "infobip": infobip.SIDE,
    "audiocodes": audiocodes.SIDE,
}
CHANNELS = tuple(_SIDES)


def side(channel: str) -> Side:
    """A dialect's platform side. Raises ScenarioError for a dialect that is not known."""
    if channel not in _SIDES:
        raise ScenarioError(
            "scenario.channel",
            f"no caller speaks the dialect {channel!r}",
            hint=f"one of: {', '.join(CHANNELS)}",
        )
    return _SIDES[channel]


def platform(channel: str, identity: Identity) -> Platform:
    """A caller's platform of the dialect. Raises ScenarioError for a dialect that is not known."""
    return side(channel).make(identity)


def call_id(channel: str, name: str) -> str:
    """A call id in the dialect's shape that depends on `name` only."""
    return side(channel).call_id(name)
