"""Which model answers for an app, by settings."""

from __future__ import annotations

from pathlib import Path

from gateway.agent.app.models import App
from gateway.agent.models.base import Model
from gateway.agent.models.script_file import parse_script
from gateway.agent.models.scripted import ScriptedModel
from gateway.config import Settings
from gateway.errors import AppError

SCRIPT_FILE = "scripted_model.yaml"


def choose_model(app: App, settings: Settings) -> Model:
    """The model of an app. Raises AppError model.* that says what to set."""
    script = settings.model.script
    if script is not None:
        return _scripted(app, script)
    if SCRIPT_FILE in app.files.paths():
        return _scripted(app, SCRIPT_FILE)
    wanted = app.root_agent.definition.model_settings.model
    wanted = wanted or app.definition.model_settings.model
    raise AppError(
        "model.none",
        f"no model can answer for this app (it asks for {wanted or 'none'!r})",
        where="modelSettings.model",
        hint=f"Put a {SCRIPT_FILE} into the app's root folder, or name a script: "
        "--set model.script=PATH.",
    )


def _scripted(app: App, script: str) -> ScriptedModel:
    """A script from the app itself, else from a file of the operator's."""
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
