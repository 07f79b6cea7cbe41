"""The exported app as data: what its files say, unknown keys kept.

Field names are those of the export format; camelCase and snake_case are both read. References
between objects are display names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from gateway.agent.app.files import AppFiles
from gateway.bidi import snake
from gateway.errors import AppError

_DURATION = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*s?\s*")
_DIGITS = re.compile(r"[0-9]{1,12}")

END_SESSION = "end_session"
TRANSFER_TO_AGENT = "transfer_to_agent"
CUSTOMIZE_RESPONSE = "customize_response"
SYSTEM_TOOLS = frozenset({END_SESSION, TRANSFER_TO_AGENT, CUSTOMIZE_RESPONSE})


class Definition(BaseModel):
    """One object of the export; `null` counts as absent, unknown keys are kept."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel, populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        if value is None:
            return {}
        if isinstance(value, Mapping):
            return {key: item for key, item in value.items() if item is not None}
        return value


class SynthesizeSpeechConfig(Definition):
    """A voice for one language."""

    voice: str = ""
    voice_sample_gcs_uri: str = ""
    speaking_rate: float = Field(0.0, ge=0.0, le=2.0)
    """[0.25, 2.0]; 0 stands for the default, 1.0."""
    model: str = ""
    instruction: str = ""


class BargeInConfig(Definition):
    """May the caller interrupt, and is the agent told?"""

    disable_barge_in: bool = False
    barge_in_awareness: bool = False


class AmbientSoundConfig(Definition):
    """Background noise under the whole call."""

    volume_gain_db: float = Field(0.0, ge=-96.0, le=16.0)
    prebuilt_ambient_sound: str = ""
    prebuilt_ambient_noise: str = ""
    gcs_uri: str = ""


class AudioProcessingConfig(Definition):
    """Voices by language, silence timer, barge-in and background of the app."""

    synthesize_speech_configs: dict[str, SynthesizeSpeechConfig] = {}
    barge_in_config: BargeInConfig = BargeInConfig()
    inactivity_timeout: str | float | dict[str, Any] = ""
    """Duration such as `8s` (see `duration_s`); empty: no re-prompt."""
    ambient_sound_config: AmbientSoundConfig | None = None


class ModelConfig(Definition):
    """`modelSettings`: which model answers."""

    model: str = ""
    temperature: float | None = None


class RedactionConfig(Definition):
    """Whether personal data is masked; the templates name rules of a service of Google's."""

    enable_redaction: bool = False
    inspect_template: str = ""
    deidentify_template: str = ""


class AudioRecordingConfig(Definition):
    """Where recordings go: `gs://bucket` and a prefix with variables."""

    gcs_bucket: str = ""
    gcs_path_prefix: str = ""


class BigQueryExportSettings(Definition):
    """The dataset that conversations are exported to."""

    enabled: bool = False
    project: str = ""
    dataset: str = ""


class CloudLoggingSettings(Definition):
    """Whether conversations go to the cloud's log."""

    enable_cloud_logging: bool = False


class ConversationLoggingSettings(Definition):
    """Whether what was said may be kept."""

    disable_conversation_logging: bool = False
    retention_window: str = ""


class LoggingSettings(Definition):
    """What is kept of conversations, and where."""

    redaction_config: RedactionConfig = RedactionConfig()
    audio_recording_config: AudioRecordingConfig = AudioRecordingConfig()
    unredacted_audio_recording_config: AudioRecordingConfig = AudioRecordingConfig()
    bigquery_export_settings: BigQueryExportSettings = BigQueryExportSettings()
    unredacted_bigquery_export_settings: BigQueryExportSettings = BigQueryExportSettings()
    cloud_logging_settings: CloudLoggingSettings = CloudLoggingSettings()
    conversation_logging_settings: ConversationLoggingSettings = ConversationLoggingSettings()


class VariableDeclaration(Definition):
    """A variable of the app. The default stands in `schema.default` or beside `schema`."""

    name: str
    description: str = ""
    schema_: dict[str, Any] = Field(default_factory=dict, alias="schema")
    default: Any = None

    @property
    def default_value(self) -> Any:
        """The value at the start of a session; None where none is declared."""
        return self.schema_.get("default", self.default)


class LanguageSettings(Definition):
    """Languages of the app."""

    default_language_code: str = "en-US"
    supported_language_codes: list[str] = []
    enable_multilingual_support: bool = False
    fallback_action: str = ""
    """A tool, `escalate` or `exit`: what follows where the language is not one of the app's."""


class TimeZoneSettings(Definition):
    """Time zone of the app."""

    time_zone: str = ""


class PersonaProperty(Definition):
    """How long answers are: `CONCISE` or `CHATTY`."""

    persona: str = ""


class ChannelProfile(Definition):
    """What the channel forbids."""

    channel_type: str = ""
    disable_dtmf: bool = False
    disable_barge_in_control: bool = False
    noise_suppression_level: str = ""
    """`low`, `moderate`, `high`, `very_high`; for a runtime that listens itself."""
    persona_property: PersonaProperty = PersonaProperty()


class AppDefinition(Definition):
    """`app.yaml` or `app.json`."""

    name: str = ""
    display_name: str = ""
    description: str = ""
    root_agent: str = ""
    global_instruction: str = ""
    guardrails: list[str] = []
    model_settings: ModelConfig = ModelConfig()
    language_settings: LanguageSettings = LanguageSettings()
    time_zone_settings: TimeZoneSettings = TimeZoneSettings()
    audio_processing_config: AudioProcessingConfig = AudioProcessingConfig()
    logging_settings: LoggingSettings = LoggingSettings()
    default_channel_profile: ChannelProfile = ChannelProfile()
    tool_execution_mode: str = "PARALLEL"
    variable_declarations: list[VariableDeclaration] = []


class CallbackDefinition(Definition):
    """One entry of a `…Callbacks` list."""

    python_code: str = ""
    description: str = ""
    disabled: bool = False
    proactive_execution_enabled: bool = False
    """After-model callbacks only: it sees what the model says while the model still speaks."""


class AgentToolset(Definition):
    """A toolset of an agent; empty `tool_ids`: all of its tools."""

    toolset: str = ""
    tool_ids: list[str] = []


class AgentDefinition(Definition):
    """`agents/<dir>/<dir>.yaml`."""

    name: str = ""
    display_name: str = ""
    description: str = ""
    model_settings: ModelConfig = ModelConfig()
    instruction: str = ""
    tools: list[str] = []
    toolsets: list[AgentToolset] = []
    child_agents: list[str] = []
    guardrails: list[str] = []
    remote_dialogflow_agent: dict[str, Any] | None = None
    before_agent_callbacks: list[CallbackDefinition] = []
    after_agent_callbacks: list[CallbackDefinition] = []
    before_model_callbacks: list[CallbackDefinition] = []
    after_model_callbacks: list[CallbackDefinition] = []
    before_tool_callbacks: list[CallbackDefinition] = []
    after_tool_callbacks: list[CallbackDefinition] = []


class PythonFunction(Definition):
    """Code of a Python tool; empty `name`: the first function of the file."""

    name: str = ""
    python_code: str = ""
    description: str = ""


class ClientFunction(Definition):
    """A function that the channel's client runs."""

    name: str = ""
    description: str = ""
    parameters: dict[str, Any] = {}


class ToolDefinition(Definition):
    """`tools/<dir>/<dir>.yaml`. Kinds that this runtime does not run stay in the unknown keys."""

    name: str = ""
    display_name: str = ""
    execution_type: str = "SYNCHRONOUS"
    timeout: str = ""
    python_function: PythonFunction | None = None
    client_function: ClientFunction | None = None


class CallbackKind(StrEnum):
    """The six kinds of callback; the value is the name of the function in the code."""

    BEFORE_AGENT = "before_agent_callback"
    AFTER_AGENT = "after_agent_callback"
    BEFORE_MODEL = "before_model_callback"
    AFTER_MODEL = "after_model_callback"
    BEFORE_TOOL = "before_tool_callback"
    AFTER_TOOL = "after_tool_callback"


@dataclass(frozen=True, slots=True)
class SourceCode:
    """Python source with the place it came from, for messages."""

    where: str
    text: str


def other_agent_kind(content: Mapping[str, Any]) -> str:
    """The key that makes an agent one of a kind that this runtime does not know; empty: none."""
    for key, value in content.items():
        if (
            isinstance(value, Mapping)
            and snake(key).endswith("_agent")
            and snake(key)
            not in (
                "llm_agent",
                "remote_dialogflow_agent",
            )
        ):
            return key
    return ""


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent with its texts and code at hand."""

    display_name: str
    definition: AgentDefinition
    instruction: str
    callbacks: Mapping[CallbackKind, tuple[SourceCode, ...]]
    """Enabled callbacks in list order."""
    where: str
    proactive: tuple[SourceCode, ...] = ()
    """Those after the model that also run on what it says in between."""

    @property
    def tools(self) -> list[str]:
        """Display names of the tools that the model may call."""
        return self.definition.tools

    @property
    def problem(self) -> str:
        """Why this runtime cannot run the agent; empty where it can."""
        if self.definition.remote_dialogflow_agent is not None:
            return f"the agent {self.display_name!r} lives in Dialogflow and is not available here"
        kind = other_agent_kind(self.definition.model_extra or {})
        if kind:
            return f"the agent {self.display_name!r} is a {kind}, which is not available here"
        return ""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool with its code at hand. `timeout_s`: None where the export gives none."""

    display_name: str
    definition: ToolDefinition
    code: SourceCode | None
    timeout_s: float | None
    where: str

    @property
    def asynchronous(self) -> bool:
        """True where the agent does not wait for the result."""
        return self.definition.execution_type.upper() == "ASYNCHRONOUS"

    @property
    def kind(self) -> str:
        """Which member of the tool's one-of is set: `pythonFunction`, `dataStoreTool`, …"""
        if self.definition.python_function is not None:
            return "pythonFunction"
        if self.definition.client_function is not None:
            return "clientFunction"
        extra = self.definition.model_extra or {}
        return next(
            (to_camel(key) for key in extra if key.lower().endswith(("tool", "function"))), ""
        )


@dataclass(frozen=True, slots=True)
class AppWarning:
    """Something in the app that it can run without."""

    code: str
    where: str
    message: str


@dataclass(frozen=True, slots=True)
class App:
    """An exported agent app, read and linked. Agents and tools are keyed by display name."""

    definition: AppDefinition
    global_instruction: str
    agents: Mapping[str, Agent]
    tools: Mapping[str, Tool]
    resources: Mapping[str, Mapping[str, Mapping[str, Any]]]
    """Other objects as read: folder name (`toolsets`, `guardrails`, …) → display name → content."""
    files: AppFiles
    warnings: tuple[AppWarning, ...] = field(default=())

    @property
    def display_name(self) -> str:
        """The app's name for people."""
        return self.definition.display_name or self.definition.name

    @property
    def language(self) -> str:
        """Default language code, such as `en-US`."""
        return self.definition.language_settings.default_language_code

    @property
    def root_agent(self) -> Agent:
        """The agent that starts the conversation."""
        return self.agents[self.definition.root_agent]

    @property
    def audio_processing_config(self) -> AudioProcessingConfig:
        """Voices, silence timer, barge-in, background."""
        return self.definition.audio_processing_config

    @property
    def channel_profile(self) -> ChannelProfile:
        """`defaultChannelProfile`: what the channel forbids."""
        return self.definition.default_channel_profile

    @property
    def variable_declarations(self) -> dict[str, Any]:
        """Declared variables: name → default (None where none is declared)."""
        return {v.name: v.default_value for v in self.definition.variable_declarations}

    @property
    def inactivity_s(self) -> float | None:
        """`inactivityTimeout` in seconds; None: no re-prompt."""
        text = self.audio_processing_config.inactivity_timeout
        return duration_s(text, "app:audioProcessingConfig.inactivityTimeout") if text else None

    def read_file(self, rel: str) -> bytes:
        """A file of the app by its path from the app root. Raises AppError where it has none."""
        return self.files.read(rel)

    def code(self) -> Iterator[SourceCode]:
        """All Python sources that may run."""
        for agent in self.agents.values():
            for sources in agent.callbacks.values():
                yield from sources
        for tool in self.tools.values():
            if tool.code is not None:
                yield tool.code


def duration_s(value: object, where: str) -> float:
    """Seconds of a duration. Raises AppError app.duration.

    Read are `8s`, `0.5s`, `8`, a number, and an object of `seconds` and `nanos`.
    """
    seconds = -1.0
    if isinstance(value, Mapping):
        parts = [value.get("seconds", 0), value.get("nanos", 0)]
        known = value.keys() <= {"seconds", "nanos"}
        if value and known and all(_DIGITS.fullmatch(str(part)) for part in parts):
            seconds = int(parts[0]) + int(parts[1]) / 1e9
    elif (
        isinstance(value, str | int | float)
        and not isinstance(value, bool)
        and (found := _DURATION.fullmatch(str(value)))
    ):
        seconds = float(found[1])
    if not 0 <= seconds < 1e9:
        raise AppError(
            "app.duration", f"{value!r} is not a duration", where=where, hint="Write it like '8s'."
        )
    return seconds
