"""Faults in settings: all of them, with what may have been meant, and no value."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway import config
from gateway.errors import ConfigError
from gateway.wrong_settings import MAX_TOLD


def refusal(*flags: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        config.load(flags=flags)
    return caught.value


@pytest.mark.parametrize(
    ("flag", "told"),
    [
        ("platforms.twillio.enabled=true", "platforms.twillio: no such setting, did you mean twil"),
        ("server.prt=1", "server.prt: no such setting, did you mean port?"),
        ("judge.modell=1", "judge.modell: no such setting"),
        ("share_timeline=true", "share_timeline: no such setting, did you mean server.share_time"),
        ("server.xyzzy=1", "server.xyzzy: no such setting"),
        ("auth.tokens=SECRET", "auth.tokens: write a list: [one, another]"),
        ("platforms.genesys.clients=SECRET", "platforms.genesys.clients: write a mapping"),
        ("server=9000", "server: write its keys below it, indented"),
        ("speech.tts=SECRET", "'hibari'"),
    ],
)
def test_a_fault_shows_the_way_out_and_no_value(flag: str, told: str) -> None:
    error = refusal(flag)
    assert told in error.message
    assert "SECRET" not in error.lines()
    assert "docs/settings.md" in error.lines()


def test_a_key_that_is_like_none_has_no_suggestion() -> None:
    assert "mean" not in refusal("server.xyzzy=1").message
    assert "mean" not in refusal("enabled=true").message, "it stands in many sections"


def test_all_faults_are_named_up_to_a_bound() -> None:
    error = refusal("server.prt=1", "call.lead_ms=fast", "speech.tts=festival")
    assert all(key in error.message for key in ("server.prt", "call.lead_ms", "speech.tts"))
    many = refusal(*(f"server.wrong_{n}=1" for n in range(MAX_TOLD + 3)))
    assert many.message.count("no such setting") == MAX_TOLD
    assert many.message.endswith("and 3 more")


def test_a_file_that_is_no_yaml_is_named_with_its_place_and_not_repeated(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("auth:\n  tokens: [hunter2\n  none: : x\n")
    with pytest.raises(ConfigError) as caught:
        config.load(file)
    assert f"{file}:3:" in str(caught.value)
    assert "hunter2" not in caught.value.lines()
