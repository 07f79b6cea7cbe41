"""Settings of the telephone platforms: one section a dialect under `platforms:`.

A dialect with options of its own has a class of its own here; the others take the common one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, model_validator


def _origin(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("https", "http") or not parts.hostname or parts.query:
        raise ValueError(f"{value!r} is no origin such as https://voice.example.com")
    return value


Origin = Annotated[str, AfterValidator(_origin)]
"""Where platforms reach this server: scheme and name."""


def _onward(value: str) -> str:
    parts = urlsplit(value)
    loopback = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and loopback)):
        raise ValueError("no address such as https://voice.example.com/after-the-agent")
    if parts.fragment or len(value) > 1000:
        raise ValueError("an address without a fragment, of at most 1000 characters")
    return value


Onward = Annotated[str, AfterValidator(_onward)]
"""A page of the operator's; what the agent says of a call stands in its query, so by TLS only."""


def _not_blank(secret: SecretStr) -> SecretStr:
    if not secret.get_secret_value().strip():
        raise ValueError("a secret that is blank, with which anybody could sign: leave it out")
    return secret


Secret = Annotated[SecretStr, AfterValidator(_not_blank)]
"""A secret that proves something: nobody can guess it, as everybody could an empty one."""


class PlatformSettings(BaseModel):
    """What every platform may need; each dialect reads what it knows."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = True
    """False: its addresses are not served."""
    public_origin: Origin | None = None
    """`https://voice.example.com` where this platform sees another one than `server` says."""
    entry_agent: str = ""
    """Agent of the app that takes this platform's calls; default: the app's root agent."""
    variables: Mapping[str, str] = {}
    """Platform's name → session variable, for custom data that is called otherwise there.

    Only variables that the app declares are set; data under their own names need no entry.
    """
    max_calls_per_account: int | None = Field(None, ge=1)
    """Calls at once of one account (or organisation) of the platform; default: no limit."""
    max_call_s: float | None = Field(None, gt=0)
    """Longest call of this platform; default: `call.max_call_s`."""

    # ---- proofs: who may connect
    auth_tokens: list[Secret] = []
    """Secrets that sign what the platform asks, or bearer tokens that it sends; any one fits."""
    username: str = ""
    """HTTP Basic credentials that the platform sends: who."""
    password: Secret | None = None
    """HTTP Basic credentials that the platform sends: the proof."""

    # ---- REST: hang-up, transfer and keys
    account: str = ""
    """Account id of the REST interface."""
    api_key: str = ""
    """Key id, where the account has several keys."""
    api_secret: Secret | None = None
    """Secret, token or private key (PEM) of the REST interface."""
    rest_url: str | None = None
    """Base URL of the REST interface, for regions and tests; default: the platform's own."""


class ContinuingSettings(PlatformSettings):
    """Platforms whose calls can be sent on to another page by REST."""

    continue_url: Onward | None = None
    """Your own instructions for a call that the agent ends with `params`, or hands on without a
    number, or with both once that leg is over: the call goes on there, with `action` and `params`
    in the query. Default: it ends."""


class TwilioSettings(ContinuingSettings):
    """Twilio. `auth_tokens` sign the webhooks; with `account` the first also opens REST."""

    batch_ms: int = Field(20, ge=20, le=200, multiple_of=20)
    """Audio in one media message; longer ones cost less and delay the clear a little."""


class AsteriskSettings(PlatformSettings):
    """Asterisk chan_websocket. `account` and `api_secret` are an ARI user's, `rest_url` its server.

    `username` and `password` are those of `websocket_client.conf`.
    """

    format: str = "ulaw"
    """What is spoken before, or without, a MEDIA_START that names a format."""
    media_url: str = ""
    """`ws://asterisk:8088/media`: where Asterisk waits for us (`Dial(WebSocket/INCOMING/…)`)."""
    caller_channel: str = "CALLER_CHANNEL"
    """Channel variable that holds the caller's channel id, for hang-up, transfer and keys."""
    stasis: bool = False
    """True: the caller's channel is in a Stasis application, so ARI may move it and press keys."""
    transfer_context: str = "default"
    """Dialplan context in which a transfer's target is an extension (Stasis only)."""
    trust_query: bool = False
    """True: custom data is also taken from the address (`v()`), which some versions of Asterisk
    carry over to the next call."""
    output_prefix: str = Field("VG_", pattern=r"^[A-Za-z_]\w{0,31}$")
    """Begins the channel variables that hold the agent's last `params` (Stasis only)."""


class ForkSettings(PlatformSettings):
    """FreeSWITCH mod_audio_fork, and the part that jambonz shares with it."""

    streaming: bool = True
    """Audio out as binary messages (bidirectional streaming); false: as `playAudio` clips."""
    in_rate_hz: int = Field(8000, ge=8000, le=48000, multiple_of=8000)
    """Rate of the caller's audio where the first message does not say it."""
    out_rate_hz: int = Field(8000, ge=8000, le=48000, multiple_of=8000)
    """Rate of the audio that is sent; the platform must be told the same."""
    clip_ms: int = Field(400, ge=100, le=2000, multiple_of=20)
    """Length of one `playAudio` clip."""


class JambonzSettings(ForkSettings, ContinuingSettings):
    """jambonz `listen`. `account` and `api_secret` open its REST interface at `rest_url`.

    `username` and `password` are what jambonz sends (`wsAuth` and the webhook's).
    """


class AudioStreamSettings(PlatformSettings):
    """FreeSWITCH mod_audio_stream."""

    playback: Literal["files", "binary"] = "files"
    """`files`: JSON that the module stores and an ESL application plays (community edition);
    `binary`: raw audio that the module plays itself."""
    controlled: bool = False
    """True: the ESL application obeys our `killAudio`, `disconnect` and `transfer` messages."""
    rate_hz: int = Field(8000, ge=8000, le=16000, multiple_of=8000)
    """Rate of both directions where the metadata does not say it."""
    channels: int = Field(1, ge=1, le=2)
    """2: `stereo`, of which the first channel is the caller."""
    clip_ms: int = Field(400, ge=100, le=2000, multiple_of=20)
    """Length of one file."""


class GenesysSettings(PlatformSettings):
    """Genesys Cloud Audio Connector. `auth_tokens` and the common credentials are not used."""

    clients: Mapping[str, SecretStr] = {}
    """API key → client secret (base64) as entered in the integration.

    An empty secret lets unsigned requests with that key in.
    """
    organizations: list[str] = []
    """Organisation ids whose calls are taken; default: any with a known key."""
    languages: list[str] = []
    """Languages told to a platform that asks which are spoken."""
    message_ms: int = Field(240, ge=200, le=1000, multiple_of=20)
    """Audio in one message out: the platform takes about five messages a second."""
    action_output: str = "action"
    """Output variable that says how the call ended: `hangup`, `transfer` or `error`."""
    target_output: str = "target"
    """Output variable that holds whom to hand over to."""


class VonageSettings(ContinuingSettings):
    """Vonage. `auth_tokens` are signature secrets of the account.

    `account` is the application's id: tokens of others are refused. With `api_secret`, its private
    key (PEM), it opens REST.
    """

    rate_hz: Literal[8000, 16000, 24000] = 16000
    """Rate of both directions that the answer asks for."""


class TelnyxSettings(ContinuingSettings):
    """Telnyx. `auth_tokens` are stream tokens (`stream_auth_token`); `api_secret` the API key.

    `continue_url` is for calls of TeXML applications.
    """

    public_keys: list[str] = []
    """Ed25519 public keys (base64) that sign the webhooks."""
    codec: Literal["PCMU", "PCMA", "L16"] = "PCMU"
    """What is sent; what comes is what the telephone leg has agreed on."""
    rate_hz: Literal[8000, 16000, 24000, 48000] = 8000
    """Rate of what is sent; others than 8000 with L16 only."""
    l16_big_endian: bool = False
    """Byte order of L16, both ways."""
    reorder_frames: int = Field(5, ge=0, le=50)
    """How many later messages one that is missing is waited for; 0: taken as they come."""

    @model_validator(mode="after")
    def _telephone_codecs_have_one_rate(self) -> TelnyxSettings:
        if self.codec != "L16" and self.rate_hz != 8000:
            raise ValueError(f"{self.codec} has 8000 Hz only; set codec to L16")
        return self


class SignalWireSettings(ContinuingSettings):
    """SignalWire. `auth_tokens` are signing keys or stream tokens (`authBearerToken`).

    `account` (project id), `api_secret` (token) and `rest_url` (`https://SPACE.signalwire.com`)
    open REST; a transfer needs `public_origin` here too.
    """

    codec: Literal["PCMU@8000h", "L16@16000h", "L16@24000h"] = "PCMU@8000h"
    """Codec of both directions that the answer asks for."""
    realtime: bool = False
    """True: the platform drops what bursts beyond real time instead of keeping it."""
    l16_big_endian: bool = False
    """Byte order of L16, both ways."""


class PlivoSettings(ContinuingSettings):
    """Plivo. `auth_tokens` sign the webhooks and sockets; with `account` the first opens REST.

    A transfer needs `public_origin` here too.
    """

    content_type: Literal[
        "audio/x-mulaw;rate=8000", "audio/x-l16;rate=8000", "audio/x-l16;rate=16000"
    ] = "audio/x-mulaw;rate=8000"
    """Audio of both directions that the answer asks for."""
    stop_stream: bool = False
    """True: a `stop` message goes before the end, for platforms that would connect again."""


class ExotelSettings(PlatformSettings):
    """Exotel. `username` and `password` stand in the address that the applet is given."""

    rate_hz: Literal[8000, 16000, 24000] = 8000
    """Rate of both directions that the answer asks for."""
    min_chunk_bytes: int = Field(3200, ge=320, le=32000, multiple_of=320)
    """Least audio in one message but the last of a stretch; smaller ones jitter there."""


class BandwidthSettings(ContinuingSettings):
    """Bandwidth. `username` and `password` are what it sends with webhooks and sockets.

    `account`, `api_key` (client id) and `api_secret` (client secret) open REST.
    """

    codec: Literal["PCMU", "PCM"] = "PCMU"
    """What is sent; what comes is PCMU."""
    rate_hz: Literal[8000, 16000, 24000] = 8000
    """Rate of what is sent; others than 8000 with PCM only."""
    hold_s: int = Field(14400, ge=60, le=86400)
    """How long the answer keeps the call up beside its stream."""
    token_url: str = "https://api.bandwidth.com/api/v1/oauth2/token"
    """Where client id and secret are exchanged for a token."""

    @model_validator(mode="after")
    def _the_telephone_codec_has_one_rate(self) -> BandwidthSettings:
        if self.codec != "PCM" and self.rate_hz != 8000:
            raise ValueError(f"{self.codec} has 8000 Hz only; set codec to PCM")
        return self


class SinchSettings(PlatformSettings):
    """Sinch. `api_key` and `api_secret` are the application's: they sign callbacks and open REST.

    The common `username`, `password` and `auth_tokens` open a socket that brings such a header.
    """

    rate_hz: Literal[8000, 16000, 24000, 48000] = 16000
    """Rate of both directions that the answer asks for."""


class AudioCodesSettings(PlatformSettings):
    """AudioCodes VoiceAI Connect and Live Hub. `auth_tokens` are the bot's bearer tokens."""

    media_format: Literal["raw/mulaw", "raw/lpcm16_8", "raw/lpcm16", "raw/lpcm16_24"] = "raw/lpcm16"
    """What is chosen where the platform offers it; else the first of its own that is spoken."""
    resume_s: float = Field(20.0, ge=0, le=300)
    """How long a call whose socket was lost waits for the platform to come back."""


class PlatformsSettings(BaseModel):
    """All platforms."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ces: PlatformSettings = PlatformSettings()
    twilio: TwilioSettings = TwilioSettings()
    asterisk: AsteriskSettings = AsteriskSettings()
    jambonz: JambonzSettings = JambonzSettings()
    audio_fork: ForkSettings = ForkSettings()
    audio_stream: AudioStreamSettings = AudioStreamSettings()
    raw: PlatformSettings = PlatformSettings()
    genesys: GenesysSettings = GenesysSettings()
    vonage: VonageSettings = VonageSettings()
    telnyx: TelnyxSettings = TelnyxSettings()
    signalwire: SignalWireSettings = SignalWireSettings()
    plivo: PlivoSettings = PlivoSettings()
    exotel: ExotelSettings = ExotelSettings()
    bandwidth: BandwidthSettings = BandwidthSettings()
    sinch: SinchSettings = SinchSettings()
    infobip: PlatformSettings = PlatformSettings()
    audiocodes: AudioCodesSettings = AudioCodesSettings()
