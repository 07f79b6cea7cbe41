"""Settings: three sources, ranked; each error names its key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway import config
from gateway.errors import ConfigError
from gateway.platform_settings import PlatformsSettings

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("file", sorted((ROOT / "config").glob("*.yaml")), ids=lambda f: f.name)
def test_every_sample_loads(file: Path) -> None:
    config.load(file)


def test_a_sample_has_a_section_for_every_platform() -> None:
    sections = yaml.safe_load((ROOT / "config" / "platforms.yaml").read_text())["platforms"]
    assert sections.keys() == PlatformsSettings.model_fields.keys()
    assert all(sections.values()), "each says something"


def test_later_sources_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("server: {port: 1, host: a.example, max_calls: 7}")
    monkeypatch.setenv("VOICE_GATEWAY_SERVER__PORT", "2")
    monkeypatch.setenv("VOICE_GATEWAY_SERVER__HOST", "b.example")
    settings = config.load(file, ["server.port=3"])
    assert (settings.server.port, settings.server.host) == (3, "b.example")
    assert settings.server.max_calls == 7


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["server.prt=1"], "server.prt"),
        (["server.port=99999"], "server.port"),
        (["call.lead_ms=fast"], "call.lead_ms"),
        (["speech.tts=festival"], "speech.tts"),
    ],
)
def test_an_error_names_the_key(flags: list[str], named: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config.load(flags=flags)
    assert named in caught.value.message
    assert caught.value.code == "config.value"


def test_a_flag_without_a_value_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        config.load(flags=["server.port"])
    assert caught.value.code == "config.flag"


@pytest.mark.parametrize(
    ("content", "code"), [("a: [", "config.yaml"), ("- 1", "config.shape"), (None, "config.file")]
)
def test_a_bad_file_is_named(tmp_path: Path, content: str | None, code: str) -> None:
    file = tmp_path / "settings.yaml"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigError) as caught:
        config.load(file)
    assert caught.value.code == code
    assert str(file) in str(caught.value)


def test_secrets_do_not_show() -> None:
    settings = config.load(flags=["auth.tokens=[hunter2]"])
    assert "hunter2" not in repr(settings)


def test_a_list_in_the_environment_that_is_not_json_is_an_error_without_the_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("VOICE_GATEWAY_AUTH__TOKENS", "a-secret-one")
    with pytest.raises(ConfigError) as caught:
        config.load()
    assert caught.value.code == "config.environment"
    assert "JSON" in caught.value.lines()
    assert "a-secret-one" not in caught.value.lines()


@pytest.mark.parametrize("key", ["server.public_origin", "platforms.twilio.public_origin"])
@pytest.mark.parametrize("value", ["YOUR_NAME", "wss://voice.example.com", "https://", ""])
def test_an_origin_that_no_platform_could_call_is_refused(key: str, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config.load(flags=[f"{key}={value}"])
    assert key in str(caught.value)
    assert "https://voice.example.com" in str(caught.value)


@pytest.mark.parametrize("blank", ["", "  ", "\n"])
@pytest.mark.parametrize(
    ("key", "listed"),
    [
        ("auth.tokens", True),
        ("auth.media_secret", False),
        ("platforms.twilio.auth_tokens", True),
        ("platforms.vonage.auth_tokens", True),
        ("platforms.asterisk.password", False),
        ("platforms.sinch.api_secret", False),
    ],
)
def test_a_blank_secret_would_let_everybody_in_and_is_refused(
    key: str, listed: bool, blank: str
) -> None:
    section, _, name = key.rpartition(".")
    value = ["a sound one", blank] if listed else blank
    overrides: dict[str, Any] = {name: value}
    for part in reversed(section.split(".")):
        overrides = {part: overrides}
    with pytest.raises(ConfigError) as caught:
        config.load(overrides=overrides)
    assert key in str(caught.value)
    assert "blank" in str(caught.value)
    assert "a sound one" not in caught.value.lines()
