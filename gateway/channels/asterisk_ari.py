"""Asterisk's REST interface (ARI): hang-up, transfer and keys. Requests as values.

All of them concern the caller's channel, not our own: its id comes in a channel variable. A
channel that is in no Stasis application can only be hung up; the others, and variables, ask ARI
for a control that it then does not have (409).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

from gateway.channels.dialect import Basic, CallRef, RestAuth, RestRequest
from gateway.channels.outputs import outputs_of
from gateway.platform_settings import AsteriskSettings

MAX_VARIABLES: Final = 16
"""Most variables that are set; each is a request of its own, before the caller can go."""
MAX_VALUE_CHARS: Final = 512


class AsteriskAri:
    """The channels of one Asterisk."""

    def __init__(self, settings: AsteriskSettings) -> None:
        self._settings = settings
        self.base_url = (settings.rest_url or "").rstrip("/")

    def auth(self, now_s: float) -> RestAuth:
        """The ARI user."""
        secret = self._settings.api_secret
        return Basic(self._settings.account, secret.get_secret_value() if secret else "")

    def hangup(self, call: CallRef, metadata: Mapping[str, Any]) -> Sequence[RestRequest]:
        """The caller's channel; where its id is not known, our own."""
        channel = self._caller(call) or call.channel_id or call.call_id
        end = RestRequest("DELETE", _path(channel), gone=(404,))
        return [*self._variables(call, metadata), end]

    def transfer(
        self, call: CallRef, target: str, metadata: Mapping[str, Any]
    ) -> Sequence[RestRequest]:
        """`redirect` to an endpoint (`PJSIP/200`), or on in the dialplan with an extension."""
        channel = self._caller(call)
        if not channel:
            return []
        if target.lower().startswith(("sip:", "sips:")):
            target = f"PJSIP/{target}"
        if "/" in target:
            query = urlencode({"endpoint": target})
            move = RestRequest("POST", f"{_path(channel)}/redirect?{query}")
            return [*self._variables(call, metadata), move]
        where = {"context": self._settings.transfer_context}
        if target:
            where["extension"] = target.removeprefix("tel:")
        # Without a target the dialplan goes on where the call left it.
        query = f"?{urlencode(where)}" if target else ""
        move = RestRequest("POST", f"{_path(channel)}/continue{query}")
        return [*self._variables(call, metadata), move]

    def send_dtmf(self, call: CallRef, digits: str) -> Sequence[RestRequest]:
        """Keys on the caller's leg."""
        channel = self._caller(call)
        if not channel:
            return []
        return [RestRequest("POST", f"{_path(channel)}/dtmf?{urlencode({'dtmf': digits})}")]

    def _variables(self, call: CallRef, metadata: Mapping[str, Any]) -> list[RestRequest]:
        """The agent's `params` as variables of the caller's channel, for the dialplan to read."""
        channel = self._caller(call)
        if not channel or not self._settings.stasis:
            return []
        path = f"{_path(channel)}/variable"
        found: dict[str, str] = {}
        for name, value in outputs_of(metadata).items():
            # A name with brackets would be a function that is carried out.
            own = self._settings.output_prefix + re.sub("[^A-Za-z0-9]+", "_", name).strip("_")
            found.setdefault(own, _harmless(value))
        return [
            RestRequest(
                "POST",
                path,
                json={"variable": name, "value": value},
                repeatable=False,
                needed=False,
            )
            for name, value in list(found.items())[:MAX_VARIABLES]
        ]

    def _caller(self, call: CallRef) -> str:
        value = call.custom.get(self._settings.caller_channel)
        return value if isinstance(value, str) else ""


def _harmless(value: str) -> str:
    """A value that stays one argument wherever a dialplan puts it; `URIDECODE` gives it back."""
    text = quote(value, safe=" +:/@", errors="replace")
    # Not in the middle of a quoted byte.
    return re.sub("%[0-9A-F]?$", "", text[:MAX_VALUE_CHARS])


def _path(channel: str) -> str:
    return f"/ari/channels/{quote(channel, safe='')}"


def rest(settings: AsteriskSettings) -> AsteriskAri | None:
    """The interface; None without an address, a user and a secret."""
    able = settings.rest_url and settings.account and settings.api_secret is not None
    return AsteriskAri(settings) if able else None
