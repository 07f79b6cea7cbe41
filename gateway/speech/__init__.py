"""Speech engines: `build` makes the services of a live process, `inline` those of a simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.config import Settings
    from gateway.speech.base import SpeechServices

# Imported where they are called: a worker process needs neither settings nor an event loop, and is
# ready in half the time without them.


def build(settings: Settings) -> SpeechServices:
    """Workers and a voice activity thread, not yet started. Raises ConfigError."""
    from gateway.speech import live

    return live.build(settings)


def inline(settings: Settings) -> SpeechServices:
    """The same engines, run at once in the caller's thread. Raises ConfigError."""
    from gateway.speech import local

    return local.inline(settings)
