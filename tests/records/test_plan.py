"""What an app's loggingSettings ask for, what settings allow, and where it all goes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.agent.app import App, read_app
from gateway.agent.app.models import AppDefinition
from gateway.config import RecordSettings
from gateway.demo import APP_PATH
from gateway.errors import AppError
from gateway.records.plan import (
    DEFAULT_PREFIX,
    Delivery,
    Identity,
    Plan,
    Target,
    local_only,
    make_plan,
    spool_folder,
)

START = 1_767_225_600.0 + 3661
"""2026-01-01 01:01:01 UTC."""
SESSION = "projects/p1/locations/eu/apps/a1/sessions/s-0001"
RECORDING = {"gcsBucket": "gs://calls"}
EXPORT = {"enabled": True, "project": "p", "dataset": "d"}


@pytest.fixture(scope="module")
def demo_app() -> App:
    return read_app(APP_PATH)


def plan(app: App, wishes: dict[str, Any], **allowed: Any) -> Plan:
    definition = AppDefinition.model_validate({"displayName": "x", "loggingSettings": wishes})
    return make_plan(replace(app, definition=definition), RecordSettings(**allowed))


def test_an_app_that_asks_for_nothing_gets_nothing(demo_app: App) -> None:
    assert plan(demo_app, {}) == Plan()
    assert make_plan(demo_app, RecordSettings()).deliveries == ()


def test_a_bucket_with_the_default_prefix(demo_app: App) -> None:
    made = plan(demo_app, {"audioRecordingConfig": RECORDING})
    assert made.deliveries == (Delivery(Target.BUCKET, "calls", False, DEFAULT_PREFIX),)
    assert made.audio
    assert not made.redact


def test_redacted_and_unredacted_go_to_their_own_buckets(demo_app: App) -> None:
    made = plan(
        demo_app,
        {
            "redactionConfig": {"enableRedaction": True},
            "audioRecordingConfig": RECORDING,
            "unredactedAudioRecordingConfig": {"gcsBucket": "gs://vault", "gcsPathPrefix": "x/"},
        },
    )
    assert made.deliveries == (
        Delivery(Target.BUCKET, "calls", True, DEFAULT_PREFIX),
        Delivery(Target.BUCKET, "vault", False, "x/"),
    )
    assert made.redact
    assert made.keeps_plain_words


def test_plain_words_are_not_even_spooled_where_nobody_gets_them(demo_app: App) -> None:
    wishes = {"redactionConfig": {"enableRedaction": True}, "audioRecordingConfig": RECORDING}
    assert not plan(demo_app, wishes).keeps_plain_words


def test_the_operator_may_ask_for_redaction_and_forbid_records(demo_app: App) -> None:
    wishes = {"audioRecordingConfig": RECORDING}
    assert plan(demo_app, wishes, redact=True).deliveries[0].redacted
    assert plan(demo_app, wishes, enabled=False) == Plan()


def test_a_folder_for_people_without_a_bucket(demo_app: App, tmp_path: Path) -> None:
    made = plan(demo_app, {}, save_to=tmp_path)
    assert [(d.target, d.place) for d in made.deliveries] == [(Target.FOLDER, str(tmp_path))]


def test_exports_need_the_app_s_wish_and_the_operator_s_leave(demo_app: App) -> None:
    wishes = {
        "bigqueryExportSettings": EXPORT,
        "cloudLoggingSettings": {"enableCloudLogging": True},
    }
    refused = plan(demo_app, wishes)
    assert refused.deliveries == ()
    assert len(refused.warnings) == 2
    allowed = plan(demo_app, wishes, bigquery=True, cloud_logging=True)
    assert [(d.target, d.place) for d in allowed.deliveries] == [
        (Target.BIGQUERY, "p.d.voice_gateway_turns"),
        (Target.CLOUD_LOGGING, ""),
    ]
    assert not allowed.audio
    assert plan(demo_app, {}, bigquery=True, cloud_logging=True).deliveries == ()


def test_the_unredacted_export_gets_plain_words(demo_app: App) -> None:
    made = plan(
        demo_app,
        {
            "redactionConfig": {"enableRedaction": True},
            "bigqueryExportSettings": EXPORT,
            "unredactedBigqueryExportSettings": {**EXPORT, "dataset": "vault"},
        },
        bigquery=True,
    )
    assert [(d.place, d.redacted) for d in made.deliveries] == [
        ("p.d.voice_gateway_turns", True),
        ("p.vault.voice_gateway_turns", False),
    ]


def test_where_conversations_must_not_be_logged_only_sound_is_kept(demo_app: App) -> None:
    made = plan(
        demo_app,
        {
            "audioRecordingConfig": RECORDING,
            "bigqueryExportSettings": EXPORT,
            "conversationLoggingSettings": {"disableConversationLogging": True},
        },
        bigquery=True,
    )
    assert [d.target for d in made.deliveries] == [Target.BUCKET]
    assert not made.words


def test_templates_of_another_service_are_pointed_out(demo_app: App) -> None:
    (warning,) = plan(demo_app, {"redactionConfig": {"inspectTemplate": "projects/x"}}).warnings
    assert "own rules" in warning


@pytest.mark.parametrize(
    ("wishes", "code", "where"),
    [
        ({"gcsBucket": "calls"}, "app.recording_bucket", "gcsBucket"),
        ({"gcsBucket": "gs://calls/folder"}, "app.recording_bucket", "gcsBucket"),
        (
            {"gcsBucket": "gs://calls", "gcsPathPrefix": "$user/"},
            "app.recording_prefix",
            "gcsPathPrefix",
        ),
    ],
)
def test_what_cannot_be_meant_is_an_error_with_its_key(
    demo_app: App, wishes: dict[str, str], code: str, where: str
) -> None:
    with pytest.raises(AppError) as caught:
        plan(demo_app, {"audioRecordingConfig": wishes})
    assert caught.value.code == code
    assert caught.value.where == f"app:loggingSettings.audioRecordingConfig.{where}"


def test_an_export_without_a_dataset_is_an_error(demo_app: App) -> None:
    with pytest.raises(AppError) as caught:
        plan(demo_app, {"bigqueryExportSettings": {"enabled": True, "project": "p"}}, bigquery=True)
    assert caught.value.where == "app:loggingSettings.bigqueryExportSettings.dataset"


@pytest.mark.parametrize(
    ("prefix", "path"),
    [
        (DEFAULT_PREFIX, "p1/eu/a1/2026-01-01/s-0001/010101-CA1"),
        ("calls/${app}/$date", "calls/a1/2026-01-01/010101-CA1"),
        ("", "010101-CA1"),
        ("/a//../b/", "a/b/010101-CA1"),
    ],
)
def test_variables_of_the_prefix(prefix: str, path: str) -> None:
    assert Identity("CA1", SESSION, START).path(prefix) == path


@pytest.mark.parametrize(
    ("call_id", "session", "path"),
    [
        ("../../etc", SESSION, "s-0001/010101-etc"),
        ("a b/c", "no resource name", "a-b-c/010101-a-b-c"),
        ("", "", "unknown/010101-unknown"),
    ],
)
def test_no_name_leaves_its_folder(call_id: str, session: str, path: str) -> None:
    assert Identity(call_id, session, START).path("$session/") == path


def test_a_delivery_travels_on_disk() -> None:
    delivery = Delivery(Target.BIGQUERY, "p.d.t", True)
    assert Delivery.from_json(delivery.to_json()) == delivery


def test_nothing_of_a_simulated_call_leaves_the_machine(demo_app: App, tmp_path: Path) -> None:
    made = plan(demo_app, {"audioRecordingConfig": RECORDING}, save_to=tmp_path)
    assert [d.target for d in local_only(made).deliveries] == [Target.FOLDER]


def test_the_spool_stands_beside_the_records_or_in_a_folder_of_the_user(tmp_path: Path) -> None:
    assert spool_folder(RecordSettings(spool=tmp_path)) == tmp_path
    assert spool_folder(RecordSettings(save_to=tmp_path)) == tmp_path / ".spool"
    assert str(spool_folder(RecordSettings())).startswith("/var/tmp/voice-gateway-")
