"""Which model answers for an app, by settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from gateway.agent.app.evaluations import has_goldens
from gateway.agent.app.models import App
from gateway.agent.models.base import Model
from gateway.agent.models.replay import ReplayModel
from gateway.agent.models.script_file import parse_script
from gateway.agent.models.scripted import ScriptedModel
from gateway.config import Settings
from gateway.errors import AppError

SCRIPT_FILE = "scripted_model.yaml"
GEMINI = "gemini-"
"""How the names of Google's models begin."""


def provider_of(app: App, settings: Settings) -> str:
    """The name of the provider that answers. Raises AppError model.none that says what to set.

    Goldens are replayed only where the operator names no model at all: who does, and leaves half
    of it out, is told so.
    """
    model = settings.model
    if model.provider != "auto":
        return model.provider
    if model.script is not None or SCRIPT_FILE in app.files.paths():
        return "scripted"
    wanted = model.name or wanted_model(app)
    if model.project or (wanted.startswith(GEMINI) and model.api_key is not None):
        return "gemini"
    if model.url is not None and wanted and not wanted.startswith(GEMINI):
        return "openai"
    if not (model.name or model.url or model.api_key) and has_goldens(app):
        return "replay"
    raise AppError(
        "model.none",
        "no model can answer for this app "
        + (f"(the model is {wanted!r})" if wanted else "(neither it nor model.name names one)"),
        where="modelSettings.model",
        hint=f"Put a {SCRIPT_FILE} into the app's root folder or name a script "
        "(--set model.script=PATH); or set a remote model: model.api_key or model.project for "
        "gemini-*, model.url and model.name for an OpenAI-compatible server.",
    )


def choose_model(app: App, settings: Settings) -> Model:
    """The model of an app. Raises AppError model.* that says what to set."""
    return PROVIDERS[provider_of(app, settings)](app, settings)


def wanted_model(app: App) -> str:
    """The model that the app asks for, its root agent's first; '' where it names none."""
    root = app.root_agent.definition.model_settings.model
    return root or app.definition.model_settings.model


def _scripted(app: App, settings: Settings) -> Model:
    """A script from the app itself, else from a file of the operator's."""
    script = settings.model.script or SCRIPT_FILE
    if not Path(script).is_absolute() and script in app.files.paths():
        data = app.read_file(script)
    else:
        try:
            data = Path(script).read_bytes()
        except OSError as error:
            raise AppError(
                "model.script", f"cannot read the script: {error.strerror}", where=script
            ) from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise AppError("model.script", "the script is not UTF-8", where=script) from None
    return ScriptedModel(parse_script(text, script, app))


def _gemini(app: App, settings: Settings) -> Model:
    # Clients are loaded where they are wanted: they cost a second and tens of megabytes.
    try:
        from gateway.agent.models.gemini import GeminiModel
    except ImportError as error:
        if not (error.name or "").startswith("google"):
            raise
        raise AppError(
            "model.client",
            "the client of Gemini is not installed (google-genai)",
            where="model.provider",
            hint="pip install 'voice-gateway[gemini]'",
        ) from None
    return GeminiModel(settings.model, wanted_model(app))


def _openai(app: App, settings: Settings) -> Model:
    # Likewise: most apps need no HTTP client.
    from gateway.agent.models.openai import OpenAiModel

    return OpenAiModel(settings.model, wanted_model(app))


def _replay(app: App, _settings: Settings) -> Model:
    return ReplayModel(app)


PROVIDERS: Mapping[str, Callable[[App, Settings], Model]] = {
    "scripted": _scripted,
    "gemini": _gemini,
    "openai": _openai,
    "replay": _replay,
}
"""Provider → what builds its model. Each raises AppError model.*."""
