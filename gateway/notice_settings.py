"""Settings of the notices that calls have ended."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, model_validator

MIN_SECRET_CHARS = 16


def _receiver(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("https", "http") or not parts.hostname or parts.fragment:
        raise ValueError("no address such as https://crm.example.com/calls")
    return value


Receiver = Annotated[str, AfterValidator(_receiver)]
"""A server of the operator's own, which may be inside the private network."""


class NoticeSettings(BaseModel):
    """Word of each call's end to a server of yours, whatever the platform."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: Receiver | None = None
    """Told of each call's end by one POST of JSON; default: nobody."""
    secret: SecretStr | None = None
    """Signs what is told (HMAC-SHA256): 16 characters or more."""
    numbers: bool = False
    """True: with the numbers of both sides."""
    retry_s: float = Field(1.0, gt=0)
    """First wait after an attempt that failed; doubles with each."""
    give_up_s: float = Field(60.0, gt=0)
    """How long after the call's end a notice is tried; then it is lost, and logged."""
    max_waiting: int = Field(1000, ge=1)
    """Notices that wait or are under way; of more the newest are lost, and logged."""
    shutdown_s: float = Field(5.0, ge=0)
    """Time for what waits once all calls are over."""

    @model_validator(mode="after")
    def _signed(self) -> NoticeSettings:
        secret = self.secret.get_secret_value() if self.secret is not None else ""
        if self.url is not None and len(secret) < MIN_SECRET_CHARS:
            raise ValueError(f"url needs a secret of {MIN_SECRET_CHARS} characters or more")
        return self
