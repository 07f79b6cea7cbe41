"""Secrets of tools: from the settings, else from Secret Manager. Blocks its thread."""

from __future__ import annotations

import os
import re
import threading
import time
from collections import OrderedDict
from pathlib import Path
from typing import Final

from gateway.agent.tools.account import Account
from gateway.agent.tools.requests import seconds_left
from gateway.config import ToolSettings
from gateway.errors import AppError

KEPT_S = 300.0
"""A secret is asked for again after so long: `latest` moves on, and versions are disabled."""
KEPT = 256
"""Secrets kept at most; the one longest unused goes first."""
ASK_S = 5.0
"""Longest wait for Secret Manager."""
INSTALL = "pip install 'voice-gateway[google]'"

_VERSION: Final = re.compile(
    r"projects/[^/\s]+/(locations/(?P<location>[a-z0-9-]+)/)?secrets/(?P<secret>[^/\s]+)"
    r"/versions/[^/\s]+"
)
_HINTS: Final = {
    "NOT_FOUND": "check project, secret and version in the app or its environment.json",
    "PERMISSION_DENIED": "grant roles/secretmanager.secretAccessor to the gateway's account",
    "UNAUTHENTICATED": "check the credentials: tools.credentials",
    "FAILED_PRECONDITION": "enable this version, or name another one",
    "RESOURCE_EXHAUSTED": "raise the quota of Secret Manager",
}
_AWAY: Final = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "INTERNAL", "UNKNOWN", "ABORTED"})
"""Says nothing about the secret: one that is known serves on."""


class Secrets:
    """The secrets of all tools of a process. Safe for threads."""

    def __init__(self, settings: ToolSettings, account: Account) -> None:
        self._settings = settings
        self._account = account
        self._kept: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._lock = threading.Lock()

    def value(self, name: str) -> str:
        """The secret that an app calls `name`; the settings' own wins.

        Raises AppError: tool.auth where nobody could have it, tool.secret where Secret Manager
        does not give it.
        """
        own = self._settings.secrets
        parts = name.split("/")
        short = parts[parts.index("secrets") + 1] if "secrets" in parts[:-1] else name
        value = own.get(name) or own.get(short)
        if value is not None:
            return value.get_secret_value()
        hint = f"--set tools.secrets.{short}=…"
        version = _VERSION.fullmatch(name)
        if version is None:
            raise AppError(
                "tool.auth",
                f"the secret {short!r} is not set",
                where="apiAuthentication",
                hint=hint,
            )
        known, asked = self._known(name)
        if known is not None and time.monotonic() < asked + KEPT_S:
            return known
        location = version["location"]
        regional = f"secretmanager.{location}.rep.googleapis.com" if location else ""
        host = self._settings.secret_manager or regional or "secretmanager.googleapis.com"
        try:
            found = _ask(name, host, self._account)
        except ImportError:
            raise AppError(
                "tool.auth",
                f"the secret {short!r} is not set, and Secret Manager's client is not installed",
                where=name,
                hint=f"{hint}, or {INSTALL}",
            ) from None
        except AppError as error:
            raise AppError(
                error.code,
                f"the secret {short!r} is not set, and {error.message}",
                where=name,
                hint=f"{hint}, or {error.hint}",
            ) from None
        except _Unanswered as error:
            if known is not None and error.status in _AWAY:
                return known
            raise AppError(
                "tool.secret",
                f"Secret Manager does not give {short!r}: {error.status}",
                where=name,
                hint=_HINTS.get(error.status, hint),
            ) from None
        with self._lock:
            self._kept[name] = (found, time.monotonic())
            self._kept.move_to_end(name)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return found

    def _known(self, name: str) -> tuple[str | None, float]:
        with self._lock:
            if name not in self._kept:
                return None, 0.0
            self._kept.move_to_end(name)
            return self._kept[name]


class _Unanswered(Exception):
    """A question that Secret Manager did not answer; `status` as gRPC names it."""

    def __init__(self, status: str) -> None:
        super().__init__(status)
        self.status = status


def _ask(name: str, host: str, account: Account) -> str:
    """Ask by the service's own client, over a connection for each question: they are rare.

    Raises _Unanswered, AppError without a token, ImportError without the client.
    """
    import grpc
    from google.api_core.exceptions import GoogleAPICallError
    from google.auth.credentials import AnonymousCredentials
    from google.cloud.secretmanager_v1 import SecretManagerServiceClient
    from google.cloud.secretmanager_v1.services.secret_manager_service.transports import (
        SecretManagerServiceGrpcTransport,
    )

    # Fetched here and not by gRPC: in this thread it is held to the call's deadline.
    proof = [("authorization", f"Bearer {account.token()}")]
    if account.quota_project:
        proof.append(("x-goog-user-project", account.quota_project))
    try:
        transport = SecretManagerServiceGrpcTransport(
            host=host,
            credentials=AnonymousCredentials(),  # type: ignore[no-untyped-call]
            ssl_channel_credentials=grpc.ssl_channel_credentials(_authorities()),
        )
        with SecretManagerServiceClient(transport=transport) as client:
            answer = client.access_secret_version(
                name=name,
                timeout=max(0.1, min(ASK_S, seconds_left())),
                retry=None,
                metadata=proof,
            )
            # Made by a shell it ends with a line's end, which no header may hold.
            return str(answer.payload.data.decode().rstrip("\r\n"))
    except GoogleAPICallError as error:
        # Its text is not passed on: it may name what the model has no business with.
        status = getattr(error.grpc_status_code, "name", "UNKNOWN")
    except UnicodeDecodeError:
        status = "no text"
    except OSError:
        status = "the file of SSL_CERT_FILE cannot be read"
    raise _Unanswered(status)


def _authorities() -> bytes | None:
    """What SSL_CERT_FILE trusts, as everything else here; None: gRPC's own."""
    file = os.environ.get("SSL_CERT_FILE")
    return Path(file).read_bytes() if file else None
