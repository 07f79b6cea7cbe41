"""Speech engines: `build` makes the services of a live process, `inline` those of a simulation."""

from gateway.speech.live import build
from gateway.speech.local import inline

__all__ = ["build", "inline"]
