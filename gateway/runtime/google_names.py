"""Google's agent service: its address, and the names in it that settings and calls make. Pure."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from gateway import bidi
from gateway.agent.app.models import App
from gateway.config import GoogleRuntimeSettings, Settings
from gateway.errors import ConfigError, ProtocolError
from gateway.speech.google_client import is_loopback

ENDPOINT = "wss://ces.googleapis.com"
ENDPOINT_VARIABLE = "CES_API_ENDPOINT"
_SCHEMES = {"": "wss", "https": "wss", "wss": "wss", "http": "ws", "ws": "ws"}
_CLIENTS_OWN = ("historicalContexts", "remoteDialogflowQueryParameters")
"""What a native client may say of its own session. The rest is the operator's: it decides which
app, version and agent is talked to with the operator's credentials."""


def check(settings: Settings) -> None:
    """Raise ConfigError where settings contradict each other, naming the key."""
    google = settings.runtime.google
    if not google.app:
        if google != GoogleRuntimeSettings():
            raise _wrong("app", "the other settings of runtime.google need it")
        return
    if settings.runtime.url is not None:
        raise _wrong("app", "runtime.url names another runtime", "leave one of them out")
    _own(google, "deployment")
    _own(google, "entry_agent")
    service_url(google)


def check_app(google: GoogleRuntimeSettings, app: App) -> None:
    """Raise ConfigError where the local app says of itself that it is another one."""
    name = app.definition.name
    if name.startswith("projects/") and name != google.app:
        raise _wrong(
            "app",
            f"the local app is {name}",
            "give the export of the app that answers, or leave --app out",
        )


def _wrong(key: str, message: str, hint: str | None = None) -> ConfigError:
    return ConfigError(
        "config.value", f"runtime.google.{key}: {message}", where="settings", hint=hint
    )


def _own(google: GoogleRuntimeSettings, key: str) -> str:
    """Whole name of a deployment or an agent of the app; empty where none is set."""
    value: str = getattr(google, key)
    collection = {"deployment": "deployments", "entry_agent": "agents"}[key]
    if not value or "/" not in value:
        return f"{google.app}/{collection}/{value}" if value else ""
    if not value.startswith(f"{google.app}/{collection}/"):
        raise _wrong(key, f"{value} is not of {google.app}", "its id alone is enough")
    return value


def service_url(google: GoogleRuntimeSettings) -> str:
    """Address of the session socket. Raises ConfigError for one that cannot be used."""
    given = google.endpoint or os.environ.get(ENDPOINT_VARIABLE, "") or ENDPOINT
    parts = urlsplit(given if "://" in given else f"//{given}")
    try:
        scheme, host, _ = _SCHEMES[parts.scheme], parts.hostname, parts.port
    except (KeyError, ValueError):
        scheme, host = "", None
    if not scheme or not host or parts.path.strip("/") or parts.query or "@" in parts.netloc:
        raise _wrong("endpoint", f"{given!r} is not scheme and host", f"such as {ENDPOINT}")
    if scheme == "ws" and not is_loopback(host):
        raise _wrong("endpoint", f"{host} is not this machine", "TLS is needed: wss://")
    service = f"google.cloud.ces.{google.api_version}.SessionService/BidiRunSession"
    return f"{scheme}://{parts.netloc}/ws/{service}/locations/{location(google)}"


def location(google: GoogleRuntimeSettings) -> str:
    """The region in the service's address."""
    return google.location or google.app.split("/")[3]


def session_name(google: GoogleRuntimeSettings, call_id: str, config: Mapping[str, Any]) -> str:
    """Resource name of a call's session. A native client chooses its last part only."""
    own = f"{google.app}/sessions/{call_id}"
    for name in (config.get("session"), own):
        if isinstance(name, str):
            with contextlib.suppress(ProtocolError):
                return f"{google.app}/sessions/{bidi.session_id(name)}"
    # The service keeps what was said under this name: no two calls may come to share it.
    digest = hashlib.sha256(call_id.encode()).hexdigest()[:12]
    return f"{google.app}/sessions/{bidi.session_part(call_id)[:50]}-{digest}"


def session_config(google: GoogleRuntimeSettings, config: Mapping[str, Any]) -> dict[str, Any]:
    """What the first message says beside the session's name.

    `config`: the client's own, and the audio formats of the call.
    """
    audio = ("inputAudioConfig", "outputAudioConfig")
    made = {key: config[key] for key in (*_CLIENTS_OWN, *audio) if key in config}
    made |= {
        "deployment": _own(google, "deployment"),
        "entryAgent": _own(google, "entry_agent"),
        "timeZone": google.time_zone or config.get("timeZone"),
        "useToolFakes": google.use_tool_fakes,
    }
    return {key: value for key, value in made.items() if value}
