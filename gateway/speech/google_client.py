"""What Google's speech clients have in common: credentials, endpoints, and errors in our words."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Callable
from typing import Any

from gateway.config import GoogleSpeechSettings
from gateway.errors import ConfigError, SpeechError
from gateway.speech.aside import Aside
from gateway.speech.models import has_module

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
CREDENTIALS_WAIT_S = 20.0
"""Longest search for credentials: the library may ask a metadata server that is not there."""
INSTALL = "pip install 'voice-gateway[google]'"

TRANSIENT = frozenset(
    {"speech.quota", "speech.unavailable", "speech.timeout", "speech.empty", "speech.bad_audio"}
)
"""Failures that another try may not meet."""

_CODES = {
    "RESOURCE_EXHAUSTED": ("speech.quota", "raise the quota, or lower server.max_calls"),
    "UNAVAILABLE": ("speech.unavailable", "check the network and the endpoint"),
    "ABORTED": ("speech.unavailable", None),
    "CANCELLED": ("speech.unavailable", None),
    "INTERNAL": ("speech.unavailable", None),
    "UNKNOWN": ("speech.unavailable", None),
    "DATA_LOSS": ("speech.unavailable", None),
    "DEADLINE_EXCEEDED": ("speech.timeout", "a larger speech.google.timeout_s"),
    "UNAUTHENTICATED": ("speech.denied", "check the credentials of the process"),
    "PERMISSION_DENIED": ("speech.denied", "enable the API and grant its role to the credentials"),
    "UNIMPLEMENTED": ("speech.not_supported", None),
}
_REFUSED = ("speech.refused", "check voice, model and language in the app's audioProcessingConfig")


def available(module: str) -> bool:
    """Whether a client library (`texttospeech_v1`, `speech_v2`) and its transport are there."""
    if not has_module("grpc"):
        return False
    try:
        return has_module(f"google.cloud.{module}")
    except ModuleNotFoundError:
        return False


def in_our_words(error: Any) -> SpeechError:
    """A failure of the service by its status. Its message is not passed on: it may quote text."""
    status = getattr(getattr(error, "grpc_status_code", None), "name", "") or "UNKNOWN"
    code, hint = _CODES.get(status, _REFUSED)
    return SpeechError(code, f"the speech service answers {status}", where="google", hint=hint)


def late(timeout_s: float) -> SpeechError:
    """Nothing came in time."""
    return SpeechError(
        "speech.timeout",
        f"nothing came from the speech service for {timeout_s:g} s",
        where="google",
        hint=_CODES["DEADLINE_EXCEEDED"][1],
    )


def check_endpoint(settings: GoogleSpeechSettings) -> None:
    """Raise ConfigError where calls would travel in the clear to another machine."""
    if not settings.plaintext:
        return
    for name in ("tts_endpoint", "stt_endpoint"):
        host = getattr(settings, name).rpartition(":")[0].strip("[]")
        if host and not is_loopback(host):
            raise ConfigError(
                "config.plaintext",
                f"{host} is not this machine",
                where=f"speech.google.{name}",
                hint="leave speech.google.plaintext out: TLS is the default",
            )


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def open_client(
    library: Callable[[], tuple[Any, Any]], endpoint: str, settings: GoogleSpeechSettings
) -> tuple[Any, str]:
    """A client of a service and the project of its credentials. Raises SpeechError (credentials).

    `library` imports the classes of client and transport, which takes seconds; `endpoint`: empty
    for the library's own.
    """
    aside = Aside("google-start")
    try:
        client, transport = await aside.run(library)
        return await _connect(client, transport, endpoint, settings, aside)
    finally:
        aside.close()


async def _connect(
    client: Any, transport: Any, endpoint: str, settings: GoogleSpeechSettings, aside: Aside
) -> tuple[Any, str]:
    if settings.plaintext:
        import grpc.aio

        return client(transport=transport(channel=grpc.aio.insecure_channel(endpoint))), ""
    credentials, project = await _credentials(settings, aside)
    options = {"api_endpoint": endpoint} if endpoint else {}
    return client(credentials=credentials, client_options=options), project


async def _credentials(settings: GoogleSpeechSettings, aside: Aside) -> tuple[Any, str]:
    import google.auth
    from google.auth.exceptions import GoogleAuthError

    def search() -> tuple[Any, str | None]:
        found, project = google.auth.default(
            scopes=[SCOPE], quota_project_id=settings.project or None
        )
        return found, project

    try:
        async with asyncio.timeout(CREDENTIALS_WAIT_S):
            credentials, project = await aside.run(search)
    except (GoogleAuthError, TimeoutError) as error:
        raise SpeechError(
            "speech.credentials",
            f"no credentials for the speech service: {type(error).__name__}",
            where="speech.google",
            hint="set GOOGLE_APPLICATION_CREDENTIALS, run `gcloud auth application-default login`,"
            " or choose an offline engine",
        ) from None
    return credentials, project or ""
