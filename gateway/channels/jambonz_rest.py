"""jambonz's REST interface: transfer, keys, and the agent's last words. Requests as values.

A call is updated in one way a request, so each key is one of its own. A transfer gives the call
new verbs: jambonz asks for them at our own address, with the credentials that it has for us. The
end of a call is not asked for here: `listen` ends, and the verbs behind it decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from gateway.channels.dialect import Bearer, CallRef, RestAuth, RestRequest
from gateway.channels.outputs import (
    MAX_INNER_URL_CHARS,
    after_dialled,
    after_hangup,
    after_transfer,
)
from gateway.channels.sip import page_query
from gateway.platform_settings import JambonzSettings

BASE_URL: Final = "https://jambonz.cloud/api"
TRANSFER_PATH: Final = "/jambonz/transfer"
KEY_MS: Final = 200


class JambonzRest:
    """The calls of one account."""

    def __init__(self, settings: JambonzSettings) -> None:
        self._settings = settings
        self.base_url = (settings.rest_url or BASE_URL).rstrip("/")

    @property
    def can_transfer(self) -> bool:
        """Whether jambonz can be told where the next verbs are: ours, or the operator's."""
        return bool(self._settings.public_origin or self._settings.continue_url)

    def auth(self, now_s: float) -> RestAuth:
        """The account's API token."""
        secret = self._settings.api_secret
        return Bearer(secret.get_secret_value() if secret else "")

    def hangup(self, call: CallRef, metadata: Mapping[str, Any]) -> Sequence[RestRequest]:
        """On with the operator's verbs where there is something to tell them."""
        url = after_hangup(self._settings.continue_url, metadata)
        return [self._go_on(call, url)] if url else []

    def transfer(
        self, call: CallRef, target: str, metadata: Mapping[str, Any]
    ) -> Sequence[RestRequest]:
        """New verbs: from our own webhook; without a target or an origin the operator's, if any."""
        settings = self._settings
        if not target or not settings.public_origin:
            url = after_transfer(settings.continue_url, target, metadata)
            return [self._go_on(call, url)] if url else []
        after = after_dialled(settings.continue_url, target, metadata, MAX_INNER_URL_CHARS)
        query = page_query(target, metadata, after)
        url = f"{settings.public_origin.rstrip('/')}{TRANSFER_PATH}?{query}"
        if settings.password is None:
            return [self._go_on(call, url)]
        password = settings.password.get_secret_value()
        return [self._go_on(call, url, username=settings.username, password=password)]

    def send_dtmf(self, call: CallRef, digits: str) -> Sequence[RestRequest]:
        """One request a key."""
        return [
            self._update(call, {"dtmf": {"digit": digit, "duration": KEY_MS}}) for digit in digits
        ]

    def _go_on(self, call: CallRef, url: str, **credentials: str) -> RestRequest:
        return self._update(call, {"call_hook": {"url": url, "method": "POST", **credentials}})

    def _update(self, call: CallRef, change: Mapping[str, Any]) -> RestRequest:
        account = quote(self._settings.account or call.account, safe="")
        path = f"/v1/Accounts/{account}/Calls/{quote(call.call_id, safe='')}"
        return RestRequest("PUT", path, json=change)


def rest(settings: JambonzSettings) -> JambonzRest | None:
    """The interface; None without a token."""
    return JambonzRest(settings) if settings.api_secret is not None else None
