"""Settings: a YAML file, the environment (`VOICE_GATEWAY_SERVER__PORT=9000`), then `--set` flags.

Validated once at start; an error names the key. Later sources win over earlier ones.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from gateway.errors import ConfigError
from gateway.notice_settings import NoticeSettings
from gateway.platform_settings import Origin, PlatformsSettings, Secret
from gateway.wrong_settings import wrong_settings


class Section(BaseModel):
    """A group of settings; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ServerSettings(Section):
    """The listening port and its limits."""

    host: str = "127.0.0.1"
    """Address to bind; 0.0.0.0 for all, which needs a proof (`auth`, `platforms`)."""
    port: int = Field(8080, ge=0, le=65535)
    """0: any that is free."""
    tls_cert: Path | None = None
    """Certificate chain (PEM); without it the port speaks plain HTTP."""
    tls_key: Path | None = None
    """Its private key (PEM)."""
    public_origin: Origin | None = None
    """`https://voice.example.com`: what platforms see; signatures and TwiML are built from it."""
    head_timeout_s: float = Field(5.0, gt=0)
    """Time for a client to send its request head."""
    max_head_bytes: int = Field(16384, ge=1024)
    """Longest request head."""
    max_body_bytes: int = Field(1 << 20, ge=1024)
    """Longest body of a webhook."""
    start_message_timeout_s: float = Field(10.0, gt=0)
    """Time from the upgrade to the message that starts the call."""
    send_buffer_bytes: int = Field(1 << 20, ge=4096)
    """Unsent bytes after which a peer counts as not reading, and its call ends; a single message
    above it is left out."""
    max_calls: int = Field(500, ge=1)
    """Calls at once; more are refused with 503."""
    max_calls_per_source: int = Field(500, ge=1)
    """The same for calls of one address."""
    max_messages_per_s: int = Field(500, ge=1)
    """Messages of one socket; a platform that sends more loses its call."""
    retry_after_s: int = Field(5, ge=1)
    """What a refused platform is told to wait."""
    finished_call_s: float = Field(10.0, ge=0)
    """How long after a call's end another socket for the same call is refused: platforms retry
    after a hang-up. What opens one again on purpose within that time needs a smaller number."""
    drain_s: float = Field(0.0, ge=0)
    """How long running calls may go on after SIGTERM before they hear the goodbye."""
    shutdown_s: float = Field(8.0, gt=0)
    """Bound on the goodbye and the teardown of all calls."""
    share_timeline: bool | None = None
    """Serve each call's timeline at /calls/ID/timeline; default: on a loopback bind only."""


class AuthSettings(Section):
    """Who may open calls. Without any proof configured the server binds loopback only."""

    tokens: list[Secret] = []
    """Bearer tokens for the native dialect and the timeline."""
    media_secret: Secret | None = None
    """Key of the one-use media tokens; default: random at each start."""
    media_token_s: float = Field(60.0, gt=0)
    """Time from a webhook's answer to the socket that it opens."""
    none: bool = False
    """True: no proof is asked (loopback only, unless allow_open is set as well)."""
    allow_open: bool = False
    """True, beside `none`: anybody who can reach the port may call."""
    trusted_proxies: list[str] = []
    """Addresses or networks (`10.0.0.0/8`) of proxies whose header fields are believed."""
    client_cert_header: str = ""
    """Header in which a trusted proxy names the client certificate that it has verified."""
    client_cert_names: list[str] = []
    """Names in that header that open every address; set both for mutual TLS at the proxy."""


class CallSettings(Section):
    """Defaults of every call; see `gateway.call.profile`."""

    lead_ms: int = Field(100, ge=20, le=2000)
    """Audio sent ahead of the clock, against hiccups of the network; dialects bound it."""
    barge_in: Literal["vad", "words", "both", "dtmf", "off"] = "both"
    """What interrupts the agent: voice, recognised words, either of them, only keys, nothing.
    Keys do in all but the last."""
    barge_in_words: int = Field(1, ge=1)
    """Words that it takes where words interrupt."""
    echo_guard: float = Field(0.1, ge=0, lt=1)
    """Added to `vad_start` while the agent speaks, against its echo in the caller's line."""
    echo_guard_windows: int = Field(0, ge=0)
    """Windows of 32 ms that voice must last longer while the agent speaks."""
    back_channel: dict[str, list[str]] = {}
    """Words that show attention and do not interrupt, by language (`en: [right, I see]`), in
    place of the built-in list; they count where words interrupt or speech is resumed."""
    resume_after_noise: bool = False
    """Go on where a sound that interrupted turns out to hold no words."""
    resume_wait_s: float = Field(3.0, gt=0)
    """Longest wait for those words."""
    fade_ms: float = Field(10.0, ge=5, le=20)
    """Fade of what is cut off."""
    ambience: Literal["call", "speech", "off"] = "call"
    """Whether the app's ambient sound runs the whole call, only under the agent's words, or not."""
    keys_under_protection: Literal["auto", "keep", "ignore"] = "auto"
    """Keys pressed under protected audio; auto: kept where the response asks for keys."""
    inactivity_s: float | None = None
    """Overrides the app's inactivityTimeout."""
    language_variable: str = "language"
    """Session variable whose value, a code such as `de-DE`, is the language of the conversation:
    from the next utterance on, voice and recogniser follow it."""
    dtmf_finish_digit: str = "#"
    """Key that ends an entry."""
    dtmf_timeout_s: float = Field(3.0, gt=0)
    """Wait for a further key; then the entry is complete."""
    dtmf_max_digits: int = Field(32, ge=1)
    """Length at which an entry is complete."""
    drain_s: float = Field(30.0, gt=0)
    """Longest wait at the end of a call for what must still be heard."""
    max_call_s: float = Field(3600.0, gt=0)
    """Longest call; then it hears a goodbye."""
    vad_start: float = Field(0.5, gt=0, lt=1)
    """Probability from which on sound counts as speech."""
    vad_stop: float = Field(0.35, gt=0, lt=1)
    """Probability below which speech counts as over."""
    pause_s: float = Field(0.2, gt=0)
    """Silence after which the turn detector is asked."""
    end_silence_s: float = Field(0.7, gt=0)
    """Silence that ends the caller's turn, whatever the turn detector says."""
    number_silence_s: float = Field(1.5, gt=0)
    """The same in the middle of a number."""
    faint_words: bool = True
    """Ask the recogniser also about short sounds that voice activity does not take for speech."""
    fallback_message: str = "Sorry, something went wrong. Please call again later."
    """What the caller hears where the agent fails."""
    shutdown_message: str = "This service is closing now. Please call again later. Goodbye."
    """What running calls hear where the server stops."""


class GoogleSpeechSettings(Section):
    """Google's speech services: cloud voices (`speech.tts`) and recognition (`speech.stt`)."""

    project: str = ""
    """Project of the recogniser, and the one that quota is counted for; default: that of the
    credentials."""
    location: str = "global"
    """Region of the recogniser and of the recognition endpoint, such as `eu` or `us-central1`."""
    recognizer: str = "_"
    """Id of a recogniser of the project; `_` is the one that needs no set-up."""
    model: str = "telephony"
    """Recognition model, such as `telephony` or `chirp_2`."""
    tts_endpoint: str = ""
    """`host` or `host:port` of the synthesis service, such as `eu-texttospeech.googleapis.com`."""
    stt_endpoint: str = ""
    """The same for recognition; default: the endpoint of the location."""
    plaintext: bool = False
    """Neither TLS nor credentials: for a service on this machine only."""
    timeout_s: float = Field(4.0, gt=0)
    """Wait for the whole of a sentence, or for the next piece of it where it is streamed."""
    attempts: int = Field(2, ge=1, le=5)
    """Tries for a sentence before the offline voice speaks it."""
    cool_down_s: float = Field(15.0, ge=0)
    """How long the offline engine serves after a failure before the service is tried again."""
    stream_s: float = Field(240.0, ge=1, le=290)
    """Age at which a recognition stream is replaced; the service ends it at five minutes."""


class SpeechSettings(Section):
    """Engines by name; `auto` takes the best that is installed and warns when it falls back."""

    tts: Literal["auto", "hibari", "nanotts", "google"] = "auto"
    """`google` has the best offline voice behind it, for when the service fails."""
    stt: Literal["auto", "moonshine", "none", "google"] = "auto"
    """`google` has the best offline recogniser behind it, for when the service fails."""
    vad: Literal["auto", "silero", "energy"] = "auto"
    """What tells speech from noise."""
    turn: Literal["auto", "smart-turn", "silence"] = "auto"
    """What tells that the caller has finished."""
    processes: int = Field(1, ge=1)
    """Worker processes for synthesis and recognition."""
    timeout_s: float = Field(20.0, gt=0)
    """Longest wait for a sentence or for the words of a stretch."""
    queue_size: int = Field(256, ge=1)
    """Jobs waiting for a worker; more are refused (speech.busy)."""
    cache_bytes: int = Field(16 << 20, ge=0)
    """Synthesised sentences kept for the next call that needs them."""
    cache_folder: Path | None = None
    """Folder in which sentences of a cloud voice outlive the process; default: none. What agents
    say to callers lies there as sound."""
    cache_folder_bytes: int = Field(256 << 20, ge=0)
    """The sentences unused for longest leave the folder beyond this size."""
    google: GoogleSpeechSettings = GoogleSpeechSettings()
    seed: int = 0
    """For voices that vary: the same seed speaks the same."""


class AssetSettings(Section):
    """Where audio files may come from, and how large they may be."""

    max_bytes: int = Field(20 << 20, ge=1024)
    """Largest audio file."""
    max_seconds: float = Field(600.0, gt=0)
    """Longest audio file."""
    timeout_s: float = Field(10.0, gt=0)
    """For the whole of a fetch."""
    cache_bytes: int = Field(256 << 20, ge=0)
    """Decoded files kept for the next call that plays them."""
    cache_s: float = Field(3600.0, ge=0)
    """Age after which a cached remote file is fetched again."""
    allow_private_addresses: bool = False
    """True: files may come from this network too, not only from the open internet."""
    allow_http: bool = False
    """True: also without TLS."""
    allowed_hosts: list[str] = []
    """If set, only these hosts (exact, or `*.example.com`) and buckets (`gs://bucket`)."""
    gcs_endpoint: str | None = None
    """Storage emulator or private endpoint; also STORAGE_EMULATOR_HOST."""
    ca_file: Path | None = None
    """Certificate authorities (PEM) trusted for https:// besides the system's."""
    workers: int = Field(4, ge=1)
    """Threads that fetch and decode."""


class RecordSettings(Section):
    """Recordings and transcripts of calls, as the app's `loggingSettings` ask for them."""

    enabled: bool = True
    """False: nothing is kept, whatever the app says."""
    save_to: Path | None = None
    """Folder on this machine for recording and transcript of every call."""
    spool: Path | None = None
    """Where calls are kept until they are delivered; default `.spool` in `save_to`, else a folder
    of this user in /var/tmp. A disk that outlives the container keeps what could not be delivered.
    """
    max_spool_bytes: int = Field(10 << 30, ge=1 << 20)
    """Beyond this, new calls are not recorded; what is there is kept until it is delivered."""
    max_waiting_frames: int = Field(6000, ge=100)
    """Frames of one call in memory that the disk has not taken; further ones are lost (counted)."""
    redact: bool = False
    """Mask personal data also where the app's `redactionConfig` does not ask for it."""
    retry_s: float = Field(5.0, gt=0)
    """First wait after a failed delivery; doubled each time up to `retry_max_s`."""
    retry_max_s: float = Field(300.0, gt=0)
    """Longest wait between deliveries."""
    upload_timeout_s: float = Field(60.0, gt=0)
    """Bound on one attempt to deliver one file."""
    shutdown_s: float = Field(5.0, ge=0)
    """Time for deliveries once all calls are over; the rest is delivered after the next start."""
    bigquery: bool = False
    """Allow the app's `bigqueryExportSettings` (extra `google`)."""
    bigquery_table: str = "voice_gateway_turns"
    """Table in the app's dataset."""
    bigquery_endpoint: str | None = None
    """Another address of the service, for tests and private networks."""
    cloud_logging: bool = False
    """Allow the app's `cloudLoggingSettings` (extra `google`): the words of calls go to the log."""
    cloud_logging_project: str | None = None
    """Default: the project of the credentials."""
    cloud_logging_name: str = "voice-gateway-conversations"
    """Name of the log."""
    cloud_logging_endpoint: str | None = None
    """Another address of the service, for tests and private networks."""


class GoogleRuntimeSettings(Section):
    """Google's own agent service as the runtime. `app` alone is enough."""

    app: str = Field("", pattern=r"^(projects/[^/\s]+/locations/[^/\s]+/apps/[^/\s]+)?$")
    """`projects/P/locations/L/apps/A`: the app that answers calls."""
    deployment: str = Field("", pattern=r"^[^\s]*$")
    """A deployment of it, by id or whole name: its version, with its channel's terms; default: the
    app as it is being edited."""
    entry_agent: str = Field("", pattern=r"^[^\s]*$")
    """Agent that begins, by id or whole name; default: the app's root agent."""
    location: str = Field("", pattern=r"^[a-z0-9-]*$")
    """Region in the service's address; default: that of `app`."""
    endpoint: str = ""
    """Scheme and host, such as `wss://ces.googleapis.com`; default: CES_API_ENDPOINT, then that.
    Without TLS only on this machine."""
    api_version: Literal["v1", "v1beta"] = "v1"
    """Version of the service's interface."""
    quota_project: str = Field("", pattern=r"^[a-z0-9.:-]*$")
    """Project that quota is counted for; default: that of the credentials, where they name one."""
    routing_header: bool = False
    """Send `x-goog-request-params`, which some addresses need to find the region."""
    credentials: Path | None = None
    """Key of a service account, or credentials of a user (JSON); default: those of the process."""
    ca_file: Path | None = None
    """Certificate authorities (PEM) trusted besides the system's."""
    kickoff: str = "session_start"
    """Event that begins a call. Apps whose callbacks wait for `<event>session start</event>` may
    need `session start`. Empty: none, the caller speaks first."""
    initial_text: str = ""
    """Words that begin a call in place of the event."""
    variables: list[str] | None = None
    """Custom parameters of a call that go to the app as variables; default: those that the local
    app declares, without one all; the service leaves out what its app does not declare."""
    language: str = "en-US"
    """Where there is no local app: language of the fallback message, and of speech in text
    modality."""
    time_zone: str = ""
    """Such as `Europe/Berlin`; default: the app's."""
    use_tool_fakes: bool = False
    """Tools answer with their fakes."""
    noise_suppression: Literal["", "low", "moderate", "high", "very_high"] = ""
    """Of the service, in audio modality; default: what the local app says, or none."""
    renew_s: float = Field(3300.0, ge=0, le=3500)
    """Age at which a connection is replaced at a quiet moment: the service ends it at an hour;
    0: never."""
    silence_s: float = Field(60.0, ge=0)
    """Audio modality: when the caller has said something and no message comes for so long, the
    connection counts as dead; 0: never."""


class RuntimeSettings(Section):
    """The agent runtime behind the gateway."""

    url: str | None = None
    """`wss://…` or `unix:///path`: a runtime elsewhere; default: the embedded one."""
    google: GoogleRuntimeSettings = GoogleRuntimeSettings()
    modality: Literal["auto", "text", "audio"] = "auto"
    """`audio`: the runtime at `url` or at Google listens and speaks itself; `text`: the gateway
    does. `auto`: audio at Google, else text."""
    audio: str = Field("line", pattern=r"^(line|(LINEAR16|MULAW|ALAW)/(8000|16000|24000|48000))$")
    """Format of an audio runtime, such as `LINEAR16/16000`; `line`: that of each caller's line,
    so that nothing is converted."""
    audio_chunk_ms: int = Field(60, ge=40, le=120)
    """Length of the pieces in which it is given the caller's audio."""
    processes: int = Field(1, ge=1)
    """Processes that run the agent; calls spread over them."""
    start_timeout_s: float = Field(10.0, gt=0)
    """Wait for the agent's first answer; then the caller hears the fallback."""
    turn_timeout_s: float = Field(60.0, gt=0)
    """Longest silence of the agent in a turn."""
    tool_timeout_s: float = Field(30.0, gt=0)
    """For a tool that the turn waits for."""
    async_tool_timeout_s: float = Field(60.0, gt=0)
    """For a tool beside the conversation."""
    callback_timeout_s: float = Field(10.0, gt=0)
    """For one callback."""
    hang_timeout_s: float = Field(4.0, ge=1)
    """For a sign of life of a process; the calls of one that hangs hear the fallback, and it is
    replaced."""
    max_steps: int = Field(10, ge=1)
    """Answers of the model within one turn, tool calls among them."""
    diagnostics: bool = False
    """True: the last output of each turn tells what the agent did in it (`diagnosticInfo`)."""
    memory_mb: int = Field(2048, ge=128)
    """Address-space limit of a runtime process beyond what it needs to start."""

    @property
    def hears(self) -> bool:
        """Whether the runtime listens and speaks itself."""
        return self.modality == "audio" or (self.modality == "auto" and bool(self.google.app))


CREDENTIALS_VARIABLE = "GOOGLE_APPLICATION_CREDENTIALS"


class ModelSettings(Section):
    """The language model of the embedded runtime."""

    provider: Literal["auto", "scripted", "gemini", "openai", "replay"] = "auto"
    """`auto`: the script if there is one, else what the app asks for and these settings reach.
    `gemini`: Google's models; `openai`: any server that speaks `/chat/completions`."""
    script: str | None = None
    """Script of the scripted model; default `scripted_model.yaml` in the app."""
    name: str = ""
    """Model to ask in place of those that the app and its agents name."""
    url: str | None = None
    """Base URL of the service: `http://127.0.0.1:11434/v1`; for `gemini` only where it is not
    Google's own."""
    api_key: SecretStr | None = None
    """Key of the service."""
    project: str = ""
    """Google Cloud project: Gemini on Vertex AI with the machine's credentials, not with a key."""
    location: str = "global"
    """Region of Vertex AI."""
    credentials: Path | None = None
    """File of Google credentials (JSON) for Vertex AI; default: GOOGLE_APPLICATION_CREDENTIALS,
    else the machine's own."""
    temperature: float | None = Field(None, ge=0, le=2)
    """In place of those that the app and its agents name."""
    max_tokens: int | None = Field(None, ge=1)
    """Bound on one answer; default: the service's own. What is longer counts as a failure."""
    timeout_s: float = Field(15.0, gt=0)
    """Longest wait for the first piece of an answer, further attempts included; afterwards for
    each next one."""
    attempts: int = Field(2, ge=1, le=5)
    """Tries before the first piece of an answer has come."""
    extra: Mapping[str, Any] = {}
    """Further fields of the request as the service has them, such as
    `{reasoning_effort: low}` or `{generationConfig: {thinkingConfig: {thinkingBudget: 0}}}`."""

    def for_runtime(self) -> dict[str, Any]:
        """JSON with the key in it; only for the runtime's own process."""
        plain = self.model_dump(mode="json")
        plain["api_key"] = self.api_key.get_secret_value() if self.api_key is not None else None
        if self.project:
            # The runtime's environment is clean: app code must not find the file there.
            plain["credentials"] = plain["credentials"] or os.environ.get(CREDENTIALS_VARIABLE)
        return plain


Level = Literal["self", "system", "trusted"]
"""Who calls: our own people, systems of the house, anybody who may call at all."""


class ToolSettings(Section):
    """Which tools of an app may run, for whom, and what they need to run."""

    allowed: list[str] = []
    """If set, only these tools may be called; names as the model has them, `name*` for many."""
    unlisted: bool = False
    """True: agents may also call tools that they do not list; the platform refuses them."""
    levels: Mapping[str, Level] = {}
    """Tool (or `name*`) → the farthest caller that it serves; default `trusted`: every caller."""
    channels: Mapping[str, Level] = {}
    """Dialect → what its callers are; default `trusted`. `self` may have every tool called."""
    consent: list[str] = []
    """Tools (or `name*`) that run only after the caller has said yes, by voice or key 1."""
    consent_questions: Mapping[str, str] = {}
    """Language → how consent is asked; `{tool}` is the tool's name in words. Tools by name
    come first: `cancel_order` or `cancel_order:de`."""
    consent_attempts: int = Field(2, ge=1, le=10)
    """How often the question is asked before an unclear answer counts as no."""
    secrets: Mapping[str, SecretStr] = {}
    """Name in the app (`projects/…/secrets/KEY/versions/1`, or just `KEY`) → secret. A version
    that is not here is asked of Secret Manager."""
    secret_manager: str = Field("", pattern=r"^[A-Za-z0-9.:\[\]-]*$")
    """Host of Secret Manager (always TLS), for private endpoints; default: its own, by region."""
    credentials: Path | None = None
    """File of Google credentials (JSON) for tools that authenticate as a Google account, and for
    Secret Manager; default: GOOGLE_APPLICATION_CREDENTIALS, else the machine's own."""
    iam_url: str = "https://iamcredentials.googleapis.com"
    """Where tokens of other service accounts come from; for private endpoints."""
    fakes: bool = False
    """True: every session uses the fakes of `toolFakeConfig`, as `useToolFakes` asks for one."""
    mocks: Path | None = None
    """A MockConfig (YAML or JSON): answers for tools, by name and arguments."""

    def for_runtime(self) -> dict[str, Any]:
        """JSON with the secrets in it; only for the runtime's own process."""
        plain = self.model_dump(mode="json")
        plain["secrets"] = {name: value.get_secret_value() for name, value in self.secrets.items()}
        plain["credentials"] = plain["credentials"] or os.environ.get(CREDENTIALS_VARIABLE)
        return plain


class LogSettings(Section):
    """Structured logs."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """What is less is not written."""
    format: Literal["auto", "json", "console"] = "auto"
    """`auto`: for people on a terminal, else JSON."""
    app_output: bool = False
    """True: what app code prints and logs is written out; it may hold the caller's words.
    False: only how many lines it wrote."""


class Settings(BaseSettings):
    """All settings."""

    model_config = SettingsConfigDict(
        env_prefix="VOICE_GATEWAY_", env_nested_delimiter="__", extra="forbid", frozen=True
    )

    app: Path | None = None
    """Folder or zip of an exported agent app; default: the demo."""
    server: ServerSettings = ServerSettings()
    auth: AuthSettings = AuthSettings()
    platforms: PlatformsSettings = PlatformsSettings()
    """Telephone platforms, one section a dialect; see `gateway.platform_settings`."""
    call: CallSettings = CallSettings()
    speech: SpeechSettings = SpeechSettings()
    assets: AssetSettings = AssetSettings()
    records: RecordSettings = RecordSettings()
    notices: NoticeSettings = NoticeSettings()
    runtime: RuntimeSettings = RuntimeSettings()
    model: ModelSettings = ModelSettings()
    judge: ModelSettings | None = None
    """The language model that judges evaluations and plays their users; default: the app's, where
    that is gemini or openai."""
    tools: ToolSettings = ToolSettings()
    log: LogSettings = LogSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what `load` merges counts; it reads the environment itself to rank the sources."""
        return (init_settings,)


def _merge(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        if isinstance(old, dict) and isinstance(value, Mapping):
            merged[key] = _merge(old, value)
        else:
            merged[key] = value
    return merged


def _from_flags(flags: Sequence[str]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for flag in flags:
        key, equals, raw = flag.partition("=")
        if not equals or not key:
            raise ConfigError(
                "config.flag", f"--set wants key=value, not {flag!r}", hint="--set server.port=9000"
            )
        value: Any = yaml.safe_load(raw) if raw else ""
        for part in reversed(key.strip().split(".")):
            value = {part: value}
        merged = _merge(merged, value)
    return merged


def _from_environment() -> dict[str, Any]:
    try:
        return EnvSettingsSource(Settings)()
    except SettingsError:
        # The cause carries the value, which may be a secret; the source names only the section.
        raise ConfigError(
            "config.environment",
            "a VOICE_GATEWAY_… variable holds a list or a mapping that is not JSON",
            where="environment",
            hint="write lists and mappings as JSON: VOICE_GATEWAY_AUTH__TOKENS='[\"A_LONG_ONE\"]'",
        ) from None


def load(
    file: Path | None = None,
    flags: Sequence[str] = (),
    overrides: Mapping[str, Any] | None = None,
) -> Settings:
    """Read all sources. Raises ConfigError with the file or key at fault."""
    merged: dict[str, Any] = {}
    if file is not None:
        try:
            content = yaml.safe_load(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(
                "config.file",
                f"cannot read settings: {error.strerror or error}",
                where=str(file),
                hint="give the path of a YAML file; config/ has samples",
            ) from None
        except yaml.YAMLError as error:
            raise _not_yaml(file, error) from None
        if content is not None and not isinstance(content, dict):
            raise ConfigError("config.shape", "settings are not a mapping", where=str(file))
        merged = content or {}
    merged = _merge(merged, _from_environment())
    merged = _merge(merged, _from_flags(flags))
    merged = _merge(merged, overrides or {})
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        raise ConfigError(
            "config.value",
            "; ".join(wrong_settings(Settings, error)),
            where=str(file) if file else "settings",
            hint="every setting stands with its meaning in docs/settings.md",
        ) from None


def _not_yaml(file: Path, error: yaml.YAMLError) -> ConfigError:
    # The parser's own text shows the lines around, which may hold a secret.
    mark = getattr(error, "problem_mark", None)
    place = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark is not None else str(file)
    problem = getattr(error, "problem", None) or type(error).__name__
    return ConfigError("config.yaml", f"not YAML: {problem}", where=place)
