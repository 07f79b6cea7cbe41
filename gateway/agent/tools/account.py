"""The Google account that tools act by: its credentials and a fresh token. Blocks its thread."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from gateway import google_credentials
from gateway.agent.tools.requests import seconds_left
from gateway.errors import AppError, ConfigError

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
SETTING = "tools.credentials"
SEARCH_AGAIN_S = 60.0
"""Pause between searches for credentials: a metadata server that is not there takes seconds."""


class Account:
    """The account of all tools of a process. Safe for threads."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._found: Any = None
        self._missing: ConfigError | None = None
        self._search_again = 0.0
        self._lock = threading.Lock()

    def token(self) -> str:
        """An access token. Raises AppError tool.auth."""
        from google.auth.exceptions import GoogleAuthError

        with self._lock:
            credentials = self._credentials()
            if not credentials.valid:
                try:
                    credentials.refresh(transport())
                except (GoogleAuthError, OSError, ValueError) as error:
                    raise refused(error) from None
            return str(credentials.token)

    @property
    def quota_project(self) -> str:
        """The project that the credentials say is to be charged; empty where they do not."""
        return getattr(self._found, "quota_project_id", None) or ""

    def _credentials(self) -> Any:
        if self._found is None and time.monotonic() >= self._search_again:
            try:
                self._found = google_credentials.find(
                    self._file, [SCOPE], setting=SETTING, service="the app's tools"
                )
            except ConfigError as error:
                self._missing = error
                self._search_again = time.monotonic() + SEARCH_AGAIN_S
        if self._found is None:
            missing = self._missing
            assert missing is not None
            raise AppError("tool.auth", missing.message, where=missing.where, hint=missing.hint)
        return self._found


def transport() -> Any:
    """google-auth's own HTTP over requests, held to the call's deadline."""
    from google.auth.transport.requests import Request

    request = Request()

    def send(*args: Any, **options: Any) -> Any:
        options["timeout"] = max(0.1, seconds_left())
        return request(*args, **options)

    return send


def refused(error: Exception) -> AppError:
    """Credentials that give no token. The text of the error may quote them."""
    return AppError(
        "tool.auth",
        f"the Google credentials of tools give no token: {type(error).__name__}",
        where=SETTING,
        hint=f"check the file that --set {SETTING}=PATH names, and the way to its token endpoint",
    )
