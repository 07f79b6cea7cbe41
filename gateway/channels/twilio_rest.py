"""Twilio's REST interface: hang-up, transfer and keys. Requests as values.

A transfer and keys replace the call's TwiML, which ends the media stream: after keys the call
would have to connect again, so `send_dtmf` is not used while the agent talks (tones are played in
the audio instead). 404 (code 20404) means that the call is over already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from gateway.channels.dialect import Basic, CallRef, RestAuth, RestRequest
from gateway.channels.outputs import after_dialled, after_hangup, after_transfer
from gateway.channels.sip import with_headers
from gateway.channels.twiml import dial
from gateway.platform_settings import TwilioSettings

BASE_URL = "https://api.twilio.com"


class TwilioRest:
    """The calls resource of one account."""

    def __init__(self, settings: TwilioSettings) -> None:
        self._settings = settings
        self.base_url = (settings.rest_url or BASE_URL).rstrip("/")

    def auth(self, now_s: float) -> RestAuth:
        """API key and secret where given, else account and auth token."""
        settings = self._settings
        if settings.api_key and settings.api_secret is not None:
            return Basic(settings.api_key, settings.api_secret.get_secret_value())
        token = settings.api_secret or settings.auth_tokens[0]
        return Basic(settings.account, token.get_secret_value())

    def hangup(self, call: CallRef, metadata: Mapping[str, Any]) -> Sequence[RestRequest]:
        """On at the operator's page where there is something to tell it, else `completed`."""
        url = after_hangup(self._settings.continue_url, metadata)
        return [self._go_on(call, url) if url else self._update(call, {"Status": "completed"})]

    def transfer(
        self, call: CallRef, target: str, metadata: Mapping[str, Any]
    ) -> Sequence[RestRequest]:
        """`<Dial>` in place of the stream; without a target the operator's page, if any."""
        if not target:
            url = after_transfer(self._settings.continue_url, target, metadata)
            return [self._go_on(call, url)] if url else []
        after = after_dialled(self._settings.continue_url, target, metadata)
        return [self._update(call, {"Twiml": dial(with_headers(target, metadata), after)})]

    def send_dtmf(self, call: CallRef, digits: str) -> Sequence[RestRequest]:
        """`<Play digits>` in place of the stream."""
        response = ElementTree.Element("Response")
        ElementTree.SubElement(response, "Play", {"digits": digits})
        return [self._update(call, {"Twiml": ElementTree.tostring(response, encoding="unicode")})]

    def _go_on(self, call: CallRef, url: str) -> RestRequest:
        return self._update(call, {"Url": url, "Method": "POST"})

    def _update(self, call: CallRef, form: Mapping[str, str]) -> RestRequest:
        account = quote(self._settings.account or call.account, safe="")
        path = f"/2010-04-01/Accounts/{account}/Calls/{quote(call.call_id, safe='')}.json"
        return RestRequest("POST", path, form=form)


def rest(settings: TwilioSettings) -> TwilioRest | None:
    """The interface; None without an account and a secret."""
    able = settings.account and (settings.api_secret is not None or settings.auth_tokens)
    return TwilioRest(settings) if able else None
