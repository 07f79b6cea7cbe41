"""Infobip's side of a media stream, as far as it is known: Vonage's without its notifications."""

from __future__ import annotations

import aiohttp
import orjson

from gateway.simulate.platforms.access import Access, Endpoint, Side
from gateway.simulate.platforms.base import Identity, Wire, complain
from gateway.simulate.platforms.vonage import VonagePlatform, call_uuid

PATH = "/infobip/media"


class InfobipPlatform(VonagePlatform):
    """One endpoint."""

    def __init__(self, identity: Identity) -> None:
        named = {"callId": identity.call_id, "from": identity.from_, "to": identity.to}
        super().__init__(identity, named)

    def receive(self, message: Wire) -> list[Wire]:
        """A frame or `clear`."""
        if isinstance(message, str):
            try:
                told = orjson.loads(message)
            except orjson.JSONDecodeError:
                told = None
            if told != {"action": "clear"}:
                raise complain("infobip", "a text other than clear")
        return super().receive(message)


async def find(access: Access, identity: Identity, http: aiohttp.ClientSession) -> Endpoint:
    """The address as configured there, with Basic credentials."""
    return Endpoint(access.websocket(PATH), InfobipPlatform(identity), access.credentials)


SIDE = Side(InfobipPlatform, call_uuid, find)
