"""Access tokens for Google's agent service: found once, renewed off the media loop."""

from __future__ import annotations

import asyncio
import calendar
import time
from pathlib import Path
from typing import Any

import structlog

from gateway import google_credentials
from gateway.errors import ConfigError, RuntimeFailure
from gateway.speech.aside import Aside

SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
SETTING = "runtime.google.credentials"
SERVICE = "the agent service"
SEARCH_S = 20.0
"""Longest search for credentials: the library may ask a metadata server that is not there."""
FETCH_S = 8.0
"""Longest wait for a token."""
FRESH_S = 300.0
"""A token that lasts shorter than this is renewed before it is used."""

log = structlog.get_logger()


class Tokens:
    """The credentials of the process for the service, and a token that is fresh enough."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._aside = Aside("google-tokens")
        self._credentials: Any = None
        self._lock = asyncio.Lock()
        self._token = ""
        self._expires_at = 0.0
        """By the wall clock, as tokens say it."""
        self._first: asyncio.Task[None] | None = None

    @property
    def quota_project(self) -> str:
        """The project that the credentials say is to be charged; empty where they do not."""
        return getattr(self._credentials, "quota_project_id", None) or ""

    async def start(self) -> None:
        """Find the credentials; a first token is fetched meanwhile. Raises ConfigError."""
        try:
            async with asyncio.timeout(SEARCH_S):
                self._credentials = await self._aside.run(self._find)
        except TimeoutError:
            raise ConfigError(
                "config.credentials",
                f"no credentials for {SERVICE}: the search takes too long",
                where=SETTING,
                hint=f"set {SETTING}, so that nothing has to be searched",
            ) from None
        self._first = asyncio.create_task(self._warm(), name="google-token")

    async def _warm(self) -> None:
        try:
            await self.token()
        except RuntimeFailure as error:
            log.warning(error.code, message=error.message, hint=error.hint)

    def _find(self) -> Any:
        return google_credentials.find(self._file, SCOPES, setting=SETTING, service=SERVICE)

    async def token(self, refused: str = "") -> str:
        """A token that is fresh enough. Raises RuntimeFailure (runtime.credentials).

        `refused`: one that the service did not take; it is not given again.
        """
        async with self._lock:
            if self._token == refused:
                self._token = ""
            left_s = self._expires_at - time.time()
            if not self._token or left_s < FRESH_S:
                try:
                    await self._fetch()
                except RuntimeFailure:
                    # What is still valid serves while the token endpoint is away.
                    if not self._token or left_s <= 0:
                        raise
            return self._token

    async def _fetch(self) -> None:
        from google.auth.exceptions import GoogleAuthError

        try:
            async with asyncio.timeout(FETCH_S):
                token, expires_at = await self._aside.run(self._refresh)
        except (GoogleAuthError, OSError, ValueError, TimeoutError) as error:
            raise RuntimeFailure(
                "runtime.credentials",
                f"no access token for the agent service: {type(error).__name__}",
                where="runtime.google",
                hint="check the credentials, and the way to the token endpoint",
            ) from None
        self._token, self._expires_at = token, expires_at

    def _refresh(self) -> tuple[str, float]:
        from google.auth.transport.requests import Request

        request = Request()

        def send(*args: Any, **options: Any) -> Any:
            options["timeout"] = FETCH_S
            return request(*args, **options)

        credentials = self._credentials
        try:
            credentials.refresh(send)
        finally:
            request.session.close()
        expiry = credentials.expiry
        if expiry is None:
            return str(credentials.token), time.time() + FRESH_S
        return str(credentials.token), float(calendar.timegm(expiry.timetuple()))

    async def aclose(self) -> None:
        """Give up what is under way."""
        if self._first is not None:
            self._first.cancel()
            await asyncio.gather(self._first, return_exceptions=True)
        self._aside.close()
