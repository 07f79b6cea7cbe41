"""Which model answers: settings first, then the app, then a clear word on what to set."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import google
import pytest

from gateway.agent.app import App, read_app
from gateway.agent.models.choose import PROVIDERS, choose_model, provider_of
from gateway.config import ModelSettings, Settings
from gateway.errors import AppError
from tests.agent.made import make_app

GOLDEN = {"displayName": "g", "golden": {"turns": []}}
URL = "http://127.0.0.1:9/v1"


def _app(folder: Path, model: str = "", script: bool = False, golden: bool = False) -> App:
    files: dict[str, Any] = {"evaluations/g/g.yaml": GOLDEN} if golden else {}
    app = make_app(folder, app={"modelSettings": {"model": model}} if model else {}, files=files)
    if not script:
        (app / "scripted_model.yaml").unlink()
    return read_app(app)


def _settings(**model: Any) -> Settings:
    return Settings.model_validate({"model": model})


@pytest.mark.parametrize(
    ("app", "settings", "provider"),
    [
        ({"script": True, "model": "gemini-3.5-flash"}, {"api_key": "k"}, "scripted"),
        ({"script": True}, {"provider": "gemini", "api_key": "k"}, "gemini"),
        ({"model": "gemini-3.5-flash"}, {"api_key": "k"}, "gemini"),
        ({"model": "gemini-3.5-flash", "golden": True}, {"api_key": "k"}, "gemini"),
        ({"model": "gemini-3.5-flash"}, {"project": "p"}, "gemini"),
        ({"model": "qwen"}, {"url": URL}, "openai"),
        ({"model": "gemini-3.5-flash"}, {"url": URL, "name": "qwen"}, "openai"),
        ({"model": "gemini-3.5-flash"}, {"url": URL, "name": "qwen", "api_key": "k"}, "openai"),
        ({"model": "gemini-3.5-flash"}, {"url": URL, "api_key": "k"}, "gemini"),
        ({"model": "gemini-3.5-flash", "golden": True}, {}, "replay"),
        ({"model": "gemini-3.5-flash", "golden": True}, {"script": "s.yaml"}, "scripted"),
    ],
)
def test_the_provider_by_settings_and_app(
    tmp_path: Path, app: dict[str, Any], settings: dict[str, Any], provider: str
) -> None:
    assert provider_of(_app(tmp_path, **app), _settings(**settings)) == provider


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("gemini-3.5-flash", {"url": URL}),
        ("gemini-3.5-flash", {"name": "qwen"}),
        ("qwen", {"api_key": "k"}),
        ("", {"api_key": "k"}),
    ],
)
def test_half_a_model_is_not_answered_by_goldens(
    tmp_path: Path, model: str, settings: dict[str, Any]
) -> None:
    with pytest.raises(AppError) as caught:
        provider_of(_app(tmp_path, model, golden=True), _settings(**settings))
    assert caught.value.code == "model.none"
    assert model in caught.value.message or "qwen" in caught.value.message


@pytest.mark.parametrize("settings", [{}, {"url": URL}, {"name": "qwen"}])
def test_with_no_model_the_error_says_what_to_set(tmp_path: Path, settings: dict[str, Any]) -> None:
    with pytest.raises(AppError) as caught:
        choose_model(_app(tmp_path, "gemini-3.5-flash"), _settings(**settings))
    assert caught.value.code == "model.none"
    for word in ("model.api_key", "model.url", "model.script", "scripted_model.yaml"):
        assert word in (caught.value.hint or "")


async def test_the_model_is_the_operators_then_the_apps(tmp_path: Path) -> None:
    app = _app(tmp_path, "qwen")
    for settings, name in (
        ({"url": URL, "provider": "openai"}, "qwen"),
        ({"url": URL, "provider": "openai", "name": "llama"}, "llama"),
    ):
        model = choose_model(app, _settings(**settings))
        assert model.name == "openai"
        assert model._default == name  # type: ignore[attr-defined]
        await model.aclose()


def test_a_client_that_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "gateway.agent.models.gemini", raising=False)
    monkeypatch.delattr(google, "genai", raising=False)
    monkeypatch.setitem(sys.modules, "google.genai", None)
    with pytest.raises(AppError) as caught:
        choose_model(_app(tmp_path, "gemini-3.5-flash"), _settings(api_key="k"))
    assert caught.value.code == "model.client"
    assert "voice-gateway[gemini]" in (caught.value.hint or "")


def test_every_provider_can_be_asked_for() -> None:
    wanted = ModelSettings.model_json_schema()["properties"]["provider"]["enum"]
    assert {"auto", *PROVIDERS} == set(wanted)
