"""Settings of the telephone platforms: one section a dialect under `platforms:`.

A dialect with options of its own has a class of its own here; the others take the common one.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field, SecretStr


class PlatformSettings(BaseModel):
    """What every platform may need; each dialect reads what it knows."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = True
    """False: its addresses are not served."""
    public_origin: str | None = None
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
    auth_tokens: list[SecretStr] = []
    """Secrets that sign what the platform asks, or bearer tokens that it sends; any one fits."""
    username: str = ""
    password: SecretStr | None = None
    """HTTP Basic credentials that the platform sends."""

    # ---- REST: hang-up, transfer and keys
    account: str = ""
    """Account id of the REST interface."""
    api_key: str = ""
    """Key id, where the account has several keys."""
    api_secret: SecretStr | None = None
    """Secret, token or private key (PEM) of the REST interface."""
    rest_url: str | None = None
    """Base URL of the REST interface, for regions and tests; default: the platform's own."""


class TwilioSettings(PlatformSettings):
    """Twilio. `auth_tokens` sign the webhooks; with `account` the first also opens REST."""

    batch_ms: int = Field(20, ge=20, le=200, multiple_of=20)
    """Audio in one media message; longer ones cost less and delay the clear a little."""


class PlatformsSettings(BaseModel):
    """All platforms."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ces: PlatformSettings = PlatformSettings()
    twilio: TwilioSettings = TwilioSettings()
