"""Vonage's REST interface: hang-up, transfer and keys on the caller's leg. Requests as values."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from gateway.channels.base import first_text
from gateway.channels.dialect import Bearer, CallRef, RestAuth, RestRequest
from gateway.channels.jwt import rsa_key, sign_rs256
from gateway.channels.outputs import after_hangup, after_transfer
from gateway.channels.sip import USER_TO_USER, headers_of, is_sip, user_to_user
from gateway.platform_settings import VonageSettings

BASE_URL: Final = "https://api.nexmo.com"
TOKEN_S: Final = 600
"""Life of a token; a new one is made when half of it is over."""


class VonageRest:
    """The calls of one application. Raises ConfigError where its key is none."""

    def __init__(self, settings: VonageSettings) -> None:
        secret = settings.api_secret
        pem = secret.get_secret_value() if secret is not None else ""
        self._application = settings.account
        self._key = rsa_key(pem, "platforms.vonage.api_secret")
        self._continue_url = settings.continue_url
        self._token = ""
        self._renew_s = 0.0
        self.base_url = (settings.rest_url or BASE_URL).rstrip("/")

    def auth(self, now_s: float) -> RestAuth:
        """A token of the application, signed with its key."""
        if now_s >= self._renew_s:
            issued_s = int(now_s)
            claims = {
                "application_id": self._application,
                "iat": issued_s,
                "exp": issued_s + TOKEN_S,
                "jti": secrets.token_hex(16),
            }
            self._token = sign_rs256(self._key, claims)
            self._renew_s = now_s + TOKEN_S / 2
        return Bearer(self._token)

    def hangup(self, call: CallRef, metadata: Mapping[str, Any]) -> Sequence[RestRequest]:
        """On with the operator's NCCO where there is something to tell it, else `hangup`."""
        if url := after_hangup(self._continue_url, metadata):
            return [_go_on(call, {"url": [url]})]
        return [RestRequest("PUT", _path(call), json={"action": "hangup"})]

    def transfer(
        self, call: CallRef, target: str, metadata: Mapping[str, Any]
    ) -> Sequence[RestRequest]:
        """A new NCCO that connects the caller; without a target the operator's, if any."""
        if not target:
            url = after_transfer(self._continue_url, target, metadata)
            return [_go_on(call, {"url": [url]})] if url else []
        endpoint = endpoint_of(target)
        if headers := headers_of(target, metadata):
            endpoint["headers"] = headers
        if is_sip(target) and (uui := user_to_user(metadata)):
            endpoint["standardHeaders"] = {USER_TO_USER: uui}
        connect: dict[str, Any] = {"action": "connect", "endpoint": [endpoint]}
        own_number = first_text(call.custom, "to").removeprefix("+")
        if own_number:
            connect["from"] = own_number
        return [_go_on(call, {"ncco": [connect]})]

    def send_dtmf(self, call: CallRef, digits: str) -> Sequence[RestRequest]:
        """Tones to the caller's leg."""
        return [
            RestRequest("PUT", f"{_path(call)}/dtmf", json={"digits": digits}, repeatable=False)
        ]


def endpoint_of(target: str) -> dict[str, Any]:
    """Whom an NCCO connects to: a SIP address or a number in digits only."""
    if is_sip(target):
        return {"type": "sip", "uri": target}
    return {"type": "phone", "number": target.removeprefix("tel:").removeprefix("+")}


def _go_on(call: CallRef, ncco: Mapping[str, Any]) -> RestRequest:
    told = {"action": "transfer", "destination": {"type": "ncco", **ncco}}
    return RestRequest("PUT", _path(call), json=told)


def _path(call: CallRef) -> str:
    return f"/v1/calls/{quote(call.call_id, safe='')}"


def rest(settings: VonageSettings) -> VonageRest | None:
    """The interface; None without an application and its key."""
    able = settings.account and settings.api_secret is not None
    return VonageRest(settings) if able else None
