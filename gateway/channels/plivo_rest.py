"""Plivo's REST interface: hang-up, transfer by an address of ours, and keys. Requests as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from gateway.channels.dialect import Basic, CallRef, RestAuth, RestRequest
from gateway.channels.outputs import (
    MAX_INNER_URL_CHARS,
    after_dialled,
    after_hangup,
    after_transfer,
)
from gateway.channels.sip import page_query
from gateway.platform_settings import PlivoSettings

BASE_URL: Final = "https://api.plivo.com"
TRANSFER: Final = "/plivo/transfer"


class PlivoRest:
    """The calls of one account."""

    def __init__(self, settings: PlivoSettings) -> None:
        token = settings.api_secret or settings.auth_tokens[0]
        self._account = settings.account
        self._token = token.get_secret_value()
        self._origin = (settings.public_origin or "").rstrip("/")
        self._continue_url = settings.continue_url
        self.base_url = (settings.rest_url or BASE_URL).rstrip("/")

    def auth(self, now_s: float) -> RestAuth:
        """Auth id and auth token."""
        return Basic(self._account, self._token)

    def hangup(self, call: CallRef, metadata: Mapping[str, Any]) -> Sequence[RestRequest]:
        """On at the operator's page where there is something to tell it; else it is deleted."""
        url = after_hangup(self._continue_url, metadata)
        return [self._go_on(call, url) if url else RestRequest("DELETE", self._path(call))]

    def transfer(
        self, call: CallRef, target: str, metadata: Mapping[str, Any]
    ) -> Sequence[RestRequest]:
        """On at our own page that dials; without a target or an origin the operator's, if any."""
        if target and self._origin:
            after = after_dialled(self._continue_url, target, metadata, MAX_INNER_URL_CHARS)
            url = f"{self._origin}{TRANSFER}?{page_query(target, metadata, after)}"
        else:
            url = after_transfer(self._continue_url, target, metadata)
        return [self._go_on(call, url)] if url else []

    def send_dtmf(self, call: CallRef, digits: str) -> Sequence[RestRequest]:
        """Keys on the caller's leg."""
        told = {"digits": digits, "leg": "aleg"}
        return [RestRequest("POST", f"{self._path(call)}DTMF/", json=told, repeatable=False)]

    def _go_on(self, call: CallRef, url: str) -> RestRequest:
        told = {"legs": "aleg", "aleg_url": url, "aleg_method": "POST"}
        return RestRequest("POST", self._path(call), json=told)

    def _path(self, call: CallRef) -> str:
        account, call_id = quote(self._account, safe=""), quote(call.call_id, safe="")
        return f"/v1/Account/{account}/Call/{call_id}/"


def rest(settings: PlivoSettings) -> PlivoRest | None:
    """The interface; None without an account and a token."""
    able = settings.account and (settings.api_secret is not None or settings.auth_tokens)
    return PlivoRest(settings) if able else None
