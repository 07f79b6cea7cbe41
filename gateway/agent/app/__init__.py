"""The exported agent app: read from a folder or zip, kept as data."""

from gateway.agent.app.models import App
from gateway.agent.app.read import read_app

__all__ = ["App", "read_app"]
