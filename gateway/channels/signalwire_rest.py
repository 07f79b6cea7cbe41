"""SignalWire's REST interface: hang-up, and transfer by an address of ours. Requests as values.

A running call takes no instructions in the request itself, only an address that gives them: the
webhook that `signalwire` answers at `TRANSFER`.
"""

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
from gateway.channels.sip import page_query, with_headers
from gateway.platform_settings import SignalWireSettings

TRANSFER: Final = "/signalwire/transfer"


class SignalWireRest:
    """The calls of one project."""

    def __init__(self, settings: SignalWireSettings) -> None:
        self._project = settings.account
        secret = settings.api_secret
        self._token = secret.get_secret_value() if secret is not None else ""
        self._origin = (settings.public_origin or "").rstrip("/")
        self._continue_url = settings.continue_url
        self.base_url = (settings.rest_url or "").rstrip("/")

    def auth(self, now_s: float) -> RestAuth:
        """Project id and token."""
        return Basic(self._project, self._token)

    def hangup(self, call: CallRef, metadata: Mapping[str, Any]) -> Sequence[RestRequest]:
        """On at the operator's page where there is something to tell it, else `completed`."""
        url = after_hangup(self._continue_url, metadata)
        return [self._go_on(call, url) if url else self._update(call, {"Status": "completed"})]

    def transfer(
        self, call: CallRef, target: str, metadata: Mapping[str, Any]
    ) -> Sequence[RestRequest]:
        """On at our own page that dials; without a target or an origin the operator's, if any."""
        if target and self._origin:
            after = after_dialled(self._continue_url, target, metadata, MAX_INNER_URL_CHARS)
            # Its headers stand in the address that is dialled.
            query = page_query(with_headers(target, metadata), {}, after)
            url = f"{self._origin}{TRANSFER}?{query}"
        else:
            url = after_transfer(self._continue_url, target, metadata)
        return [self._go_on(call, url)] if url else []

    def send_dtmf(self, call: CallRef, digits: str) -> Sequence[RestRequest]:
        """Not by REST: the stream itself has words for it."""
        return []

    def _go_on(self, call: CallRef, url: str) -> RestRequest:
        return self._update(call, {"Url": url, "Method": "POST"})

    def _update(self, call: CallRef, form: Mapping[str, str]) -> RestRequest:
        project, sid = quote(self._project, safe=""), quote(call.call_id, safe="")
        path = f"/api/laml/2010-04-01/Accounts/{project}/Calls/{sid}.json"
        return RestRequest("POST", path, form=form)


def rest(settings: SignalWireSettings) -> SignalWireRest | None:
    """The interface; None without a space, a project and a token."""
    able = settings.rest_url and settings.account and settings.api_secret is not None
    return SignalWireRest(settings) if able else None
