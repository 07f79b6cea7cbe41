"""Sinch's REST interface: hang-up and keys. Requests as values.

A call in progress is given new instructions and an action. Actions that connect to somebody else
are taken in answers to callbacks only, so a call cannot be handed on from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from gateway.channels.dialect import Basic, CallRef, RestAuth, RestRequest
from gateway.platform_settings import SinchSettings

BASE_URL: Final = "https://calling.api.sinch.com"


class SinchRest:
    """The calls of one application."""

    def __init__(self, settings: SinchSettings) -> None:
        secret = settings.api_secret
        self._auth = Basic(settings.api_key, secret.get_secret_value() if secret else "")
        self.base_url = (settings.rest_url or BASE_URL).rstrip("/")

    def auth(self, now_s: float) -> RestAuth:
        """Key and secret of the application."""
        return self._auth

    def hangup(self, call: CallRef, metadata: Mapping[str, Any]) -> Sequence[RestRequest]:
        """The action `hangup`."""
        return [_update(call, "hangup")]

    def transfer(
        self, call: CallRef, target: str, metadata: Mapping[str, Any]
    ) -> Sequence[RestRequest]:
        """There is none."""
        return []

    def send_dtmf(self, call: CallRef, digits: str) -> Sequence[RestRequest]:
        """The instruction `sendDtmf`, behind which the call goes on."""
        pressed = {"name": "sendDtmf", "value": digits}
        return [_update(call, "continue", pressed, repeatable=False)]


def _update(
    call: CallRef, action: str, *instructions: dict[str, str], repeatable: bool = True
) -> RestRequest:
    told = {"instructions": list(instructions), "action": {"name": action}}
    path = f"/calling/v1/calls/id/{quote(call.call_id, safe='')}"
    return RestRequest("PATCH", path, json=told, repeatable=repeatable)


def rest(settings: SinchSettings) -> SinchRest | None:
    """The interface; None without the application's key and secret."""
    able = settings.api_key and settings.api_secret is not None
    return SinchRest(settings) if able else None
