"""Telnyx' call control: answer, hang-up, transfer and keys. Requests as values.

A call that has ended already is refused with 422 and the code 90018. Calls of a TeXML application
take new instructions as well, by an interface of their own.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import orjson

from gateway.channels.base import first_text
from gateway.channels.dialect import Bearer, CallRef, RestAuth, RestRequest
from gateway.channels.outputs import after_hangup, after_transfer, fitting, json_size, outputs_of
from gateway.channels.sip import USER_TO_USER, headers_of, is_sip, user_to_user
from gateway.platform_settings import TelnyxSettings

BASE_URL: Final = "https://api.telnyx.com"
ENDED: Final = '"90018"'
STATE_BYTES: Final = 4096
"""Most of the agent's `params` in a call's state; Telnyx names no limit of its own."""


class TelnyxRest:
    """The calls of one account."""

    def __init__(self, settings: TelnyxSettings) -> None:
        secret = settings.api_secret
        self._key = secret.get_secret_value() if secret is not None else ""
        self._continue_url = settings.continue_url
        self.base_url = (settings.rest_url or BASE_URL).rstrip("/")

    def auth(self, now_s: float) -> RestAuth:
        """The API key."""
        return Bearer(self._key)

    def hangup(self, call: CallRef, metadata: Mapping[str, Any]) -> Sequence[RestRequest]:
        """The action `hangup`; the agent's `params` become the state that later events bring.

        With TeXML the call goes on at the operator's page where there is something to tell it.
        """
        url = after_hangup(self._continue_url, metadata)
        if url and _by_texml(call):
            return [_go_on(call, url)]
        state = _state(call, metadata)
        return [action(call.call_id, "hangup", {"client_state": state} if state else {})]

    def transfer(
        self, call: CallRef, target: str, metadata: Mapping[str, Any]
    ) -> Sequence[RestRequest]:
        """The action `transfer`; without a target whoever has the call goes on, and is told."""
        if not target:
            return self._leave(call, metadata)
        told: dict[str, Any] = {"to": target.removeprefix("tel:")}
        if headers := headers_of(target, metadata):
            told["custom_headers"] = [
                {"name": f"X-{name}", "value": text} for name, text in headers.items()
            ]
        if is_sip(target) and (uui := user_to_user(metadata)):
            told["sip_headers"] = [{"name": USER_TO_USER, "value": uui}]
        if state := _state(call, metadata):
            told |= {"client_state": state, "target_leg_client_state": state}
        return [action(call.call_id, "transfer", told)]

    def _leave(self, call: CallRef, metadata: Mapping[str, Any]) -> Sequence[RestRequest]:
        url = after_transfer(self._continue_url, "", metadata)
        if url and _by_texml(call):
            return [_go_on(call, url)]
        state = _state(call, metadata)
        if not state:
            return []
        # The caller is handed on by our leaving; this only says more of it.
        return [
            RestRequest(
                "PUT",
                _path(call.call_id, "client_state_update"),
                json={"client_state": state},
                gone_words=(ENDED,),
                repeatable=False,
                needed=False,
            )
        ]

    def send_dtmf(self, call: CallRef, digits: str) -> Sequence[RestRequest]:
        """The action `send_dtmf`."""
        path = _path(call.call_id, "send_dtmf")
        return [
            RestRequest(
                "POST", path, json={"digits": digits}, gone_words=(ENDED,), repeatable=False
            )
        ]


def action(call_id: str, name: str, told: Mapping[str, Any]) -> RestRequest:
    """A command to a call that is carried out once, however often it is sent.

    One that was refused with a state is another one without it.
    """
    told_state = " state" if "client_state" in told else ""
    command_id = hashlib.sha256(f"{call_id} {name}{told_state}".encode()).hexdigest()[:32]
    return RestRequest(
        "POST",
        _path(call_id, name),
        json={**told, "command_id": command_id},
        gone_words=(ENDED,),
    )


def _by_texml(call: CallRef) -> str:
    """The id under which a call was connected by our TeXML; empty where it was not."""
    return first_text(call.custom, "callSid") if call.account else ""


def _go_on(call: CallRef, url: str) -> RestRequest:
    account, sid = quote(call.account, safe=""), quote(_by_texml(call), safe="")
    path = f"/v2/texml/Accounts/{account}/Calls/{sid}"
    return RestRequest("POST", path, form={"Url": url, "Method": "POST"}, gone_words=(ENDED,))


def _state(call: CallRef, metadata: Mapping[str, Any]) -> str:
    """The agent's `params` beside the state that the call came with; empty without any."""
    params = fitting(outputs_of(metadata), json_size, STATE_BYTES)
    if not params:
        return ""
    before = first_text(call.custom, "client_state")
    state = {"params": params, **({"client_state": before} if before else {})}
    return base64.b64encode(orjson.dumps(state)).decode()


def _path(call_id: str, name: str) -> str:
    return f"/v2/calls/{quote(call_id, safe='')}/actions/{name}"


def rest(settings: TelnyxSettings) -> TelnyxRest | None:
    """The interface; None without an API key."""
    return TelnyxRest(settings) if settings.api_secret is not None else None
