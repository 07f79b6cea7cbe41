"""Google's own agent service as the runtime: sessions over its public socket."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import Any

from gateway.agent.app.files import AppFiles
from gateway.agent.app.models import App, AppDefinition, LanguageSettings
from gateway.config import GoogleRuntimeSettings, Settings
from gateway.errors import AppError, ConfigError, RuntimeFailure
from gateway.runtime import google_names as names
from gateway.runtime.client import RuntimeClient
from gateway.runtime.google_link import TRANSIENT, GoogleLink, open_link
from gateway.runtime.google_tokens import Tokens
from gateway.runtime.watch import SILENT, LinkRules

RECONNECT_ATTEMPTS = 3


class GoogleRuntime:
    """What all sessions of a process with the service share."""

    def __init__(self, settings: Settings) -> None:
        names.check(settings)
        runtime = settings.runtime
        self._google = runtime.google
        self._url = names.service_url(self._google)
        self._timeout_s = runtime.start_timeout_s
        self._tokens = Tokens(self._google.credentials)
        self._tls: ssl.SSLContext | None = None
        self._rules = LinkRules(
            renew_s=self._google.renew_s,
            # In text modality callers may think as long as they like.
            silence_s=self._google.silence_s if runtime.hears else 0.0,
            resumed=TRANSIENT | {SILENT},
            attempts=RECONNECT_ATTEMPTS,
            empty_fragments=False,
        )

    async def start(self) -> None:
        """Find credentials and authorities. Raises ConfigError."""
        if self._url.startswith("wss:"):
            # No call is up yet that this could delay.
            self._tls = _authorities(self._google)
        await self._tokens.start()

    async def aclose(self) -> None:
        """Let go of what `start` found."""
        await self._tokens.aclose()

    def session_name(self, call_id: str, config: Mapping[str, Any]) -> str:
        """Resource name of a call's session."""
        return names.session_name(self._google, call_id, config)

    async def open(self, call_id: str, config: Mapping[str, Any]) -> RuntimeClient:
        """A session for a call. `config`: the client's own wishes, and the call's audio formats.

        Raises RuntimeFailure.
        """
        client = RuntimeClient(
            self.session_name(call_id, config),
            names.session_config(self._google, config),
            self._connect,
            self._rules,
        )
        try:
            await client.open()
        except BaseException:
            await client.aclose()
            raise
        return client

    async def _connect(self) -> GoogleLink:
        try:
            async with asyncio.timeout(self._timeout_s):
                token = await self._tokens.token()
                try:
                    return await self._link(token)
                except RuntimeFailure as error:
                    if error.code != "runtime.unauthenticated":
                        raise
                return await self._link(await self._tokens.token(refused=token))
        except TimeoutError:
            raise RuntimeFailure(
                "runtime.unreachable",
                f"the agent service cannot be reached in {self._timeout_s:g} s",
                where=self._url,
            ) from None

    async def _link(self, token: str) -> GoogleLink:
        headers = {"Authorization": f"Bearer {token}"}
        project = self._google.quota_project or self._tokens.quota_project
        if project:
            headers["X-Goog-User-Project"] = project
        if self._google.routing_header:
            headers["x-goog-request-params"] = f"location=locations/{names.location(self._google)}"
        return await open_link(self._url, headers, self._tls, self._timeout_s)


def _authorities(google: GoogleRuntimeSettings) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if google.ca_file is not None:
        try:
            context.load_verify_locations(google.ca_file)
        except OSError as error:
            raise ConfigError(
                "config.value",
                f"runtime.google.ca_file: {error.strerror or type(error).__name__}",
                where=str(google.ca_file),
                hint="a PEM file of certificate authorities",
            ) from None
    return context


class _NoFiles(AppFiles):
    origin = "Google"

    def paths(self) -> list[str]:
        return []

    def read(self, rel: str) -> bytes:
        raise AppError(
            "app.missing_file",
            "the app is at Google; its files are not here",
            where=rel,
            hint="give its export with --app",
        )


def remote_app(google: GoogleRuntimeSettings) -> App:
    """What is known here of an app of which there is no export."""
    definition = AppDefinition(
        name=google.app,
        display_name=google.app.rpartition("/")[2],
        language_settings=LanguageSettings(default_language_code=google.language),
    )
    return App(definition, "", {}, {}, {}, _NoFiles())
