"""voice-gateway: a voice for agent applications on telephone platforms."""

__version__ = "0.1.0"
