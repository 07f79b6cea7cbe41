"""The demo: an energy supplier's voice line in export format, with its scenarios."""

from __future__ import annotations

from pathlib import Path

APP_PATH = Path(__file__).resolve().parent / "app"
SCENARIOS_PATH = Path(__file__).resolve().parent / "scenarios"
TEMPLATE_PATH = Path(__file__).resolve().parent / "template"
"""What `voice-gateway app init` writes."""
