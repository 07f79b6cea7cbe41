"""Infobip Calls, media streaming to a websocket endpoint. EXPERIMENTAL: a profile of Vonage's.

What is known of it says that the first message and the frames are as Vonage's; nobody has checked
it against the platform yet. So nothing is relied on beyond that: positions follow the clock, and
the close of the socket is the only end. Closes are Vonage's too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from gateway.channels import vonage
from gateway.channels.capabilities import DtmfOut, EndOut, Marks, TransferBy
from gateway.channels.dialect import Dialect, MediaRoute, Opening, Proof
from gateway.channels.proofs import AuthorizationProof
from gateway.platform_settings import PlatformSettings

CAPABILITIES: Final = replace(
    vonage.CAPABILITIES,
    dialect="infobip",
    marks=Marks.EMULATED,
    dtmf_out=DtmfOut.INBAND,
    end_out=EndOut.CLOSE,
    transfer=TransferBy.NONE,
)


class InfobipChannel(vonage.VonageChannel):
    """The codec of one endpoint."""

    call_id_fields = ("callId", "call_id", "uuid")

    def __init__(self, opening: Opening[PlatformSettings]) -> None:
        super().__init__(opening, CAPABILITIES)


DIALECT: Final = Dialect(
    capabilities=CAPABILITIES,
    open=InfobipChannel,
    settings=lambda platforms: platforms.infobip,
    routes=(MediaRoute("/infobip/media", Proof.PLATFORM),),
    proof=AuthorizationProof,
)
