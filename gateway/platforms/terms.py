"""On what terms a platform's calls are taken: the operator's settings, and its REST control."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gateway.call.profile import CallProfile
from gateway.channels.base import Started
from gateway.channels.capabilities import Capabilities
from gateway.channels.dialects import DIALECTS
from gateway.errors import AdmissionError
from gateway.platform_settings import PlatformsSettings
from gateway.platforms.rest import CallControl, RestControl


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of one platform's calls."""

    variables: Mapping[str, str] = field(default_factory=dict)
    """Platform's name → session variable."""
    entry_agent: str = ""
    max_call_s: float | None = None
    max_calls_per_account: int | None = None
    control: CallControl | None = None

    def capabilities(self, record: Capabilities) -> Capabilities:
        """What the platform can do on these terms."""
        return record if self.control is not None else record.without_rest()

    def profile(self, profile: CallProfile) -> CallProfile:
        """How its calls behave."""
        return profile if self.max_call_s is None else replace(profile, max_call_s=self.max_call_s)

    def named(self, custom: Mapping[str, Any]) -> dict[str, Any]:
        """Custom data under the names of the session's variables as well as their own."""
        renamed = {
            variable: custom[name] for name, variable in self.variables.items() if name in custom
        }
        return {**custom, **renamed}

    def started(self, event: Started) -> Started:
        """The start of a call with the operator's names and entry agent."""
        config = event.config
        if self.entry_agent and "entryAgent" not in config:
            config = {**config, "entryAgent": self.entry_agent}
        return replace(event, custom=self.named(event.custom), config=config)


def full_account(retry_after_s: int | None = None) -> AdmissionError:
    """The refusal of a call whose account has no line left."""
    return AdmissionError(
        "admission.account",
        "this account has all the calls that it may have",
        retry_after_s=retry_after_s,
        hint="platforms.NAME.max_calls_per_account is the limit",
    )


class Accounts:
    """Calls at once of each account of a platform."""

    def __init__(self) -> None:
        self._calls: Counter[tuple[str, str]] = Counter()

    def enter(self, dialect: str, account: str, limit: int | None) -> bool:
        """Count a call in, unless its account has `limit` calls already."""
        if self.full(dialect, account, limit):
            return False
        self._calls[dialect, account] += 1
        return True

    def full(self, dialect: str, account: str, limit: int | None) -> bool:
        """Whether an account has `limit` calls already; never where it is not known."""
        return limit is not None and bool(account) and self._calls[dialect, account] >= limit

    def leave(self, dialect: str, account: str) -> None:
        """Count a call out."""
        self._calls[dialect, account] -= 1
        if not self._calls[dialect, account]:
            del self._calls[dialect, account]


def rest_controls(platforms: PlatformsSettings) -> dict[str, RestControl]:
    """The REST controls of every enabled dialect that has credentials for one, by name."""
    controls: dict[str, RestControl] = {}
    for name, entry in DIALECTS.items():
        settings = entry.settings(platforms)
        words = entry.rest(settings) if entry.rest is not None and settings.enabled else None
        if words is not None:
            controls[name] = RestControl(words, f"platforms.{name}")
    return controls


def terms_of(
    platforms: PlatformsSettings, controls: Mapping[str, CallControl] | None = None
) -> dict[str, Terms]:
    """The terms of every dialect by name."""
    terms: dict[str, Terms] = {}
    for name, entry in DIALECTS.items():
        settings = entry.settings(platforms)
        terms[name] = Terms(
            variables=settings.variables,
            entry_agent=settings.entry_agent,
            max_call_s=settings.max_call_s,
            max_calls_per_account=settings.max_calls_per_account,
            control=(controls or {}).get(name),
        )
    return terms
