"""What is kept of an app's calls, and where it goes: the app's wishes under the operator's."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from gateway.agent.app.models import App, AudioRecordingConfig, BigQueryExportSettings
from gateway.config import RecordSettings
from gateway.errors import AppError

DEFAULT_PREFIX: Final = "$project/$location/$app/$date/$session/"
VARIABLES: Final = frozenset({"project", "location", "app", "date", "session"})
_BUCKET: Final = re.compile(r"gs://([a-z0-9][a-z0-9._-]{1,220}[a-z0-9])/?")
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_SESSION: Final = re.compile(
    r"projects/(?P<project>[^/]+)/locations/(?P<location>[^/]+)/apps/(?P<app>[^/]+)"
    r"(?:/sessions/(?P<session>[^/]+))?"
)
_ODD: Final = re.compile(r"[^\w.-]", re.ASCII)
_TABLE_PART: Final = re.compile(r"[A-Za-z0-9_:.-]{1,1024}")


class Target(StrEnum):
    """Kinds of places that records go to."""

    FOLDER = "folder"
    BUCKET = "bucket"
    BIGQUERY = "bigquery"
    CLOUD_LOGGING = "cloud_logging"


@dataclass(frozen=True, slots=True)
class Delivery:
    """One place that the records of calls go to; it travels on disk with each call.

    FOLDER: `place` is its path. BUCKET: its name. BIGQUERY: `project.dataset.table`.
    CLOUD_LOGGING: the project, or nothing. `prefix`: of folder and bucket, variables not yet put
    in. `redacted`: gets the masked form.
    """

    target: Target
    place: str
    redacted: bool
    prefix: str = ""

    @property
    def audio(self) -> bool:
        """Whether recordings go there too."""
        return self.target in (Target.FOLDER, Target.BUCKET)

    @property
    def key(self) -> str:
        """The place, whatever goes there: where one delivery fails, the others would as well."""
        return f"{self.target.value}:{self.place}"

    def to_json(self) -> dict[str, Any]:
        """As it is kept on disk."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Delivery:
        """Read back what `to_json` gave."""
        return cls(
            Target(content["target"]), content["place"], content["redacted"], content["prefix"]
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """What is done with every call of an app.

    `words`: a transcript is kept. `redact`: masked forms are made.
    """

    deliveries: tuple[Delivery, ...] = ()
    redact: bool = False
    words: bool = True
    warnings: tuple[str, ...] = ()

    @property
    def audio(self) -> bool:
        """Whether anybody wants the recording."""
        return any(d.audio for d in self.deliveries)

    @property
    def keeps_plain_words(self) -> bool:
        """Whether the words must be spooled as they were said."""
        return not self.redact or any(not d.redacted for d in self.deliveries)


def make_plan(app: App, settings: RecordSettings) -> Plan:
    """The plan for an app. Raises AppError naming the key at fault."""
    if not settings.enabled:
        return Plan()
    wishes = app.definition.logging_settings
    redact = wishes.redaction_config.enable_redaction or settings.redact
    words = not wishes.conversation_logging_settings.disable_conversation_logging
    deliveries: list[Delivery] = []
    if settings.save_to is not None:
        folder = str(settings.save_to.resolve())
        deliveries.append(Delivery(Target.FOLDER, folder, redact, "$date/"))
    for config, key, masked in (
        (wishes.audio_recording_config, "audioRecordingConfig", redact),
        (wishes.unredacted_audio_recording_config, "unredactedAudioRecordingConfig", False),
    ):
        if config.gcs_bucket:
            deliveries.append(_bucket(config, key, masked))
    if words and settings.bigquery:
        for export, key, masked in (
            (wishes.bigquery_export_settings, "bigqueryExportSettings", redact),
            (wishes.unredacted_bigquery_export_settings, "unredactedBigqueryExportSettings", False),
        ):
            if export.enabled:
                deliveries.append(_table(export, key, settings.bigquery_table, masked))
    if words and settings.cloud_logging and wishes.cloud_logging_settings.enable_cloud_logging:
        project = settings.cloud_logging_project or ""
        deliveries.append(Delivery(Target.CLOUD_LOGGING, project, redact))
    return Plan(tuple(deliveries), redact, words, _warnings(app, settings))


def local_only(plan: Plan) -> Plan:
    """The same without anything that leaves this machine."""
    kept = tuple(d for d in plan.deliveries if d.target is Target.FOLDER)
    return replace(plan, deliveries=kept)


def _bucket(config: AudioRecordingConfig, key: str, redacted: bool) -> Delivery:
    where = f"app:loggingSettings.{key}"
    found = _BUCKET.fullmatch(config.gcs_bucket)
    if found is None:
        raise AppError(
            "app.recording_bucket",
            f"{config.gcs_bucket!r} is not a bucket",
            where=f"{where}.gcsBucket",
            hint="Write it like gs://my-recordings; folders go into gcsPathPrefix.",
        )
    prefix = config.gcs_path_prefix or DEFAULT_PREFIX
    for variable in _VARIABLE.finditer(prefix):
        name = variable.group(1) or variable.group(2)
        if name not in VARIABLES:
            raise AppError(
                "app.recording_prefix",
                f"${name} is not a variable of the prefix",
                where=f"{where}.gcsPathPrefix",
                hint="There are $project, $location, $app, $date and $session.",
            )
    return Delivery(Target.BUCKET, found.group(1), redacted, prefix)


def _table(config: BigQueryExportSettings, key: str, table: str, redacted: bool) -> Delivery:
    for name, value in (("project", config.project), ("dataset", config.dataset)):
        if not _TABLE_PART.fullmatch(value):
            raise AppError(
                "app.bigquery",
                f"{value!r} is not a {name}",
                where=f"app:loggingSettings.{key}.{name}",
                hint="An enabled export needs project and dataset.",
            )
    return Delivery(Target.BIGQUERY, f"{config.project}.{config.dataset}.{table}", redacted)


def _warnings(app: App, settings: RecordSettings) -> tuple[str, ...]:
    wishes = app.definition.logging_settings
    redaction = wishes.redaction_config
    warnings: list[str] = []
    if redaction.inspect_template or redaction.deidentify_template:
        warnings.append("redaction templates are not evaluated here: the gateway's own rules mask")
    asked = (
        (wishes.bigquery_export_settings.enabled, settings.bigquery, "bigquery"),
        (wishes.unredacted_bigquery_export_settings.enabled, settings.bigquery, "bigquery"),
        (
            wishes.cloud_logging_settings.enable_cloud_logging,
            settings.cloud_logging,
            "cloud_logging",
        ),
    )
    for wanted, allowed, name in asked:
        warning = f"the app asks for {name}, which records.{name} does not allow"
        if wanted and not allowed and warning not in warnings:
            warnings.append(warning)
    return tuple(warnings)


@dataclass(frozen=True, slots=True)
class Identity:
    """Which call it was, in the words of paths and rows. `started_at`: seconds since 1970, UTC."""

    call_id: str
    session: str
    """Full resource name."""
    started_at: float

    @property
    def parts(self) -> dict[str, str]:
        """The variables of prefixes, each fit for a path."""
        found = _SESSION.match(self.session)
        parts = {k: v or "" for k, v in found.groupdict().items()} if found else {}
        parts = {name: parts.get(name, "") for name in VARIABLES - {"date"}}
        if not parts["session"]:
            parts["session"] = self.call_id
        return {
            **{name: plain(value) for name, value in parts.items()},
            "date": self.started.strftime("%Y-%m-%d"),
        }

    @property
    def started(self) -> datetime.datetime:
        """When the call began, UTC."""
        return datetime.datetime.fromtimestamp(self.started_at, datetime.UTC)

    @property
    def stem(self) -> str:
        """Name of the call's files without ending; another call of the session has another."""
        return f"{self.started.strftime('%H%M%S')}-{plain(self.call_id)[:100]}"

    def path(self, prefix: str) -> str:
        """Where the call's files stand: the prefix with its variables put in, then the stem."""
        parts = self.parts
        filled = _VARIABLE.sub(lambda found: parts[found.group(1) or found.group(2)], prefix)
        # An object's name begins with no slash and holds no empty or relative folders.
        folders = [part for part in filled.split("/") if part not in ("", ".", "..")]
        return "/".join([*folders, self.stem])


def plain(text: str) -> str:
    """`text` as one harmless part of a path."""
    return _ODD.sub("-", text).strip(".-") or "unknown"


def spool_folder(settings: RecordSettings) -> Path:
    """Where calls are kept until they are delivered."""
    if settings.spool is not None:
        return settings.spool
    if settings.save_to is not None:
        return settings.save_to / ".spool"
    return Path(f"/var/tmp/voice-gateway-{os.getuid()}/records")
