"""Bandwidth's REST interface: hang-up, and transfer by an address of ours. Requests as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

from gateway.channels.dialect import CallRef, ClientCredentials, RestAuth, RestRequest
from gateway.platform_settings import BandwidthSettings

BASE_URL: Final = "https://voice.bandwidth.com"
TRANSFER: Final = "/bandwidth/transfer"


class BandwidthRest:
    """The calls of one account."""

    def __init__(self, settings: BandwidthSettings) -> None:
        secret = settings.api_secret
        self._settings = settings
        self._secret = secret.get_secret_value() if secret is not None else ""
        self.base_url = (settings.rest_url or BASE_URL).rstrip("/")

    def auth(self, now_s: float) -> RestAuth:
        """A token that client id and secret are exchanged for."""
        settings = self._settings
        return ClientCredentials(settings.token_url, settings.api_key, self._secret)

    def hangup(self, call: CallRef) -> Sequence[RestRequest]:
        """State `completed`."""
        return [self._update(call, {"state": "completed"})]

    def transfer(
        self, call: CallRef, target: str, metadata: Mapping[str, Any]
    ) -> Sequence[RestRequest]:
        """On at our own page that calls; without a target or an origin there is none."""
        settings = self._settings
        if not target or not settings.public_origin:
            return []
        url = f"{settings.public_origin.rstrip('/')}{TRANSFER}?{urlencode({'target': target})}"
        told = {"state": "active", "redirectUrl": url, "redirectMethod": "POST"}
        if settings.password is not None:
            told |= {
                "username": settings.username,
                "password": settings.password.get_secret_value(),
            }
        return [self._update(call, told)]

    def send_dtmf(self, call: CallRef, digits: str) -> Sequence[RestRequest]:
        """Not by REST: new BXML would cut short what keeps the call up."""
        return []

    def _update(self, call: CallRef, told: Mapping[str, str]) -> RestRequest:
        account = quote(self._settings.account or call.account, safe="")
        path = f"/api/v2/accounts/{account}/calls/{quote(call.call_id, safe='')}"
        # A call that is over cannot be changed any more.
        return RestRequest("POST", path, json=told, gone=(404, 409, 410))


def rest(settings: BandwidthSettings) -> BandwidthRest | None:
    """The interface; None without an account, a client id and its secret."""
    able = settings.account and settings.api_key and settings.api_secret is not None
    return BandwidthRest(settings) if able else None
