"""Credentials that are there by half: told at the start, not at the first transfer."""

from __future__ import annotations

from typing import Any, Final

from gateway.channels.dialect import Dialect
from gateway.errors import ConfigError
from gateway.platform_settings import ContinuingSettings, PlatformSettings, PlatformsSettings
from gateway.server.routes import served

_REST_KEYS: Final = ("account", "api_key", "api_secret", "rest_url")


def check_credentials(platforms: PlatformsSettings) -> None:
    """Whether what the enabled platforms need together is there together. Raises ConfigError."""
    for dialect in served(platforms):
        settings = dialect.settings(platforms)
        section = f"platforms.{dialect.name}"
        if settings.username and settings.password is None:
            raise ConfigError(
                "config.credentials",
                f"{section}.username has no password beside it",
                where=f"{section}.password",
                hint="set both, or neither",
            )
        alone = _alone(dialect, settings)
        if alone:
            raise ConfigError(
                "config.credentials",
                f"{section} has only {' and '.join(alone)} of what its REST interface needs",
                where=section,
                hint=_meaning(settings),
            )
        onward = isinstance(settings, ContinuingSettings) and settings.continue_url is not None
        if onward and (dialect.rest is None or dialect.rest(settings) is None):
            raise ConfigError(
                "config.credentials",
                f"{section}.continue_url is reached by the REST interface, which is not set up",
                where=section,
                hint=_meaning(settings),
            )


def _alone(dialect: Dialect[Any], settings: PlatformSettings) -> list[str]:
    """What is set of REST credentials that are not whole."""
    if dialect.rest is None or dialect.rest(settings) is not None:
        return []
    proven = dialect.proof is not None and dialect.proof(settings).configured
    of_proof = dialect.proof_keys if proven else frozenset()
    return [key for key in _REST_KEYS if getattr(settings, key) and key not in of_proof]


def _meaning(settings: PlatformSettings) -> str:
    """What the section says of itself: there it stands which keys belong together."""
    return " ".join((type(settings).__doc__ or "").replace("`", "").split())
