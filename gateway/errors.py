"""Every error the gateway raises on purpose.

    GatewayError
    ├── ConfigError        settings that cannot be used           config.*
    ├── AppError           an agent app that cannot be read        app.*
    ├── ScenarioError      a scenario file that cannot be run      scenario.*
    ├── ProtocolError      a peer broke its own protocol           protocol.*
    ├── AdmissionError     a call that is not let in               admission.*
    │   └── AuthError      … because its proof is missing or bad   auth.*
    ├── AssetError         audio that cannot be fetched or decoded asset.*
    ├── SpeechError        synthesis or recognition failed         speech.*
    ├── RestError          a platform's REST interface failed      rest.*
    ├── RuntimeFailure     the agent runtime failed or went away   runtime.*
    │   └── ModelFailure   … its model gave no answer              model.*
    ├── RecordError        a record that cannot be kept or sent    records.*
    └── NoticeError        word of a call's end that is not taken  notice.*

Each carries a stable `code` (met again in logs and metrics), the `where` (file and key path, or
message and field) and a `hint` that says the way out.
"""

from __future__ import annotations


class GatewayError(Exception):
    """An expected failure: code, place and way out. `code` is stable, lower case, dotted."""

    def __init__(
        self, code: str, message: str, *, where: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        place = f" ({self.where})" if self.where else ""
        return f"{self.code}: {self.message}{place}"

    def in_one_line(self) -> str:
        """The same for a log."""
        return f"{self}; {self.hint}" if self.hint else str(self)

    def fields(self) -> dict[str, str]:
        """What a record or a log line says of it: code, message and what is known beyond."""
        more = {"where": self.where, "hint": self.hint}
        known = {name: value for name, value in more.items() if value}
        return {"code": self.code, "message": self.message, **known}

    def lines(self) -> str:
        """The error for a person: what and where, then how to mend it."""
        return f"{self}\n  {self.hint}" if self.hint else str(self)


class ConfigError(GatewayError):
    """Settings that cannot be used."""


class AppError(GatewayError):
    """An agent app that cannot be read or run."""


class ScenarioError(GatewayError):
    """A scenario file that cannot be run."""


class ProtocolError(GatewayError):
    """A peer broke its protocol. `close_code` is the websocket close code to answer with."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        where: str | None = None,
        hint: str | None = None,
        close_code: int = 1007,
    ) -> None:
        super().__init__(code, message, where=where, hint=hint)
        self.close_code = close_code


class AdmissionError(GatewayError):
    """A call that is not let in. `status` is the HTTP status before the upgrade."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int = 503,
        retry_after_s: int | None = None,
        where: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(code, message, where=where, hint=hint)
        self.status = status
        self.retry_after_s = retry_after_s


class AuthError(AdmissionError):
    """A call whose proof is missing, wrong, old or used (HTTP 401 or 403)."""


class AssetError(GatewayError):
    """Audio that cannot be fetched or decoded."""


class SpeechError(GatewayError):
    """Synthesis or recognition failed."""


class RestError(GatewayError):
    """A platform's REST interface refused, failed or cannot be reached."""


class RuntimeFailure(GatewayError):
    """The agent runtime failed, refused or went away."""


class RecordError(GatewayError):
    """A record of a call that cannot be kept or delivered."""


class NoticeError(GatewayError):
    """Word of a call's end that nobody has taken."""
