"""Bandwidth's REST interface: hang-up, transfer and keys. Requests as values.

The last two are new BXML for the call. Its stream runs beside that, until the call ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote
from xml.etree import ElementTree

from gateway.channels.dialect import CallRef, ClientCredentials, RestAuth, RestRequest
from gateway.channels.outputs import after_hangup, after_transfer, as_json, outputs_of
from gateway.channels.sip import is_sip
from gateway.platform_settings import BandwidthSettings

BASE_URL: Final = "https://voice.bandwidth.com"
TAG_BYTES: Final = 256
"""Longest tag of a call."""
MAX_KEYS: Final = 50
"""Most keys of one verb."""
GONE: Final = (404, 409, 410)
"""A call that is over cannot be changed any more."""


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

    def hangup(self, call: CallRef, metadata: Mapping[str, Any]) -> Sequence[RestRequest]:
        """On at the operator's page where there is something to tell it, else `completed`."""
        if url := after_hangup(self._settings.continue_url, metadata):
            return [self._go_on(call, url, metadata)]
        return [self._update(call, {"state": "completed"}, metadata)]

    def transfer(
        self, call: CallRef, target: str, metadata: Mapping[str, Any]
    ) -> Sequence[RestRequest]:
        """BXML that calls the target; without one the operator's, if any."""
        if not target:
            url = after_transfer(self._settings.continue_url, target, metadata)
            return [self._go_on(call, url, metadata)] if url else []
        document = ElementTree.Element("Bxml")
        if tag := _tag(metadata):
            # XML cannot spell all characters.
            ElementTree.SubElement(document, "Tag").text = "".join(filter(str.isprintable, tag))
        moved = ElementTree.SubElement(document, "Transfer")
        by_sip = is_sip(target)
        called = ElementTree.SubElement(moved, "SipUri" if by_sip else "PhoneNumber")
        called.text = target if by_sip else target.removeprefix("tel:")
        return [self._replace(call, document)]

    def send_dtmf(self, call: CallRef, digits: str) -> Sequence[RestRequest]:
        """BXML that presses the keys and keeps the call up as before."""
        document = ElementTree.Element("Bxml")
        for begin in range(0, len(digits), MAX_KEYS):
            keys = ElementTree.SubElement(document, "SendDtmf")
            keys.text = digits[begin : begin + MAX_KEYS]
        hold(document, self._settings)
        return [self._replace(call, document, repeatable=False)]

    def _go_on(self, call: CallRef, url: str, metadata: Mapping[str, Any]) -> RestRequest:
        told = {"state": "active", "redirectUrl": url, "redirectMethod": "POST"}
        return self._update(call, told, metadata)

    def _update(
        self, call: CallRef, told: Mapping[str, str], metadata: Mapping[str, Any]
    ) -> RestRequest:
        tag = _tag(metadata)
        change = {**told, **({"tag": tag} if tag else {})}
        return RestRequest("POST", self._path(call), json=change, gone=GONE)

    def _replace(
        self, call: CallRef, document: ElementTree.Element, *, repeatable: bool = True
    ) -> RestRequest:
        path = f"{self._path(call)}/bxml"
        return RestRequest("PUT", path, xml=bxml(document), gone=GONE, repeatable=repeatable)

    def _path(self, call: CallRef) -> str:
        account = quote(self._settings.account or call.account, safe="")
        return f"/api/v2/accounts/{account}/calls/{quote(call.call_id, safe='')}"


def _tag(metadata: Mapping[str, Any]) -> str:
    """The agent's `params` as the tag that later events bring; empty without any."""
    return as_json(outputs_of(metadata), TAG_BYTES)


def hold(document: ElementTree.Element, settings: BandwidthSettings) -> None:
    """Keep the call up: the stream blocks nothing, and behind the last verb the call is over."""
    ElementTree.SubElement(document, "Pause", {"duration": str(settings.hold_s)})


def bxml(document: ElementTree.Element) -> bytes:
    """A document as it is sent."""
    written: bytes = ElementTree.tostring(document, encoding="utf-8", xml_declaration=True)
    return written


def rest(settings: BandwidthSettings) -> BandwidthRest | None:
    """The interface; None without an account, a client id and its secret."""
    able = settings.account and settings.api_key and settings.api_secret is not None
    return BandwidthRest(settings) if able else None
