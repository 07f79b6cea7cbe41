"""Lets media sockets in: route, proof, capacity, in this order and all before the upgrade.

Where a platform waits for us instead, its webhook is proven, and the socket is opened from here.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import picows

from gateway.channels.dialect import Dialect, Opening, Outgoing, Proof, Request
from gateway.config import Settings
from gateway.errors import AdmissionError, GatewayError
from gateway.platforms.terms import Accounts, full_account
from gateway.server.admission import Admission
from gateway.server.auth import Caller, Gate, public_origin
from gateway.server.contract import MakeCall
from gateway.server.handover import LOGGER
from gateway.server.head import Head, HeadError, check_upgrade
from gateway.server.media import Admitted, MediaSocket, SocketOwner
from gateway.server.metrics import Metrics
from gateway.server.refusals import Refusals
from gateway.server.routes import Media, Routes
from gateway.server.tokens import MediaClaim

CONNECT_S: Final = 5.0
"""Longest wait for a platform that said it waits for us."""


def caller_of(head: Head, address: str) -> Caller:
    """What a request head says of the caller."""
    return Caller(
        address=address,
        host=head.get("host"),
        origin=head.get("origin"),
        authorization=head.get("authorization"),
        access_token=head.query_value("access_token"),
        headers=head.fields(),
    )


class MediaDoor:
    """Judges upgrades and makes their sockets."""

    def __init__(
        self,
        settings: Settings,
        routes: Routes,
        gate: Gate,
        admission: Admission,
        metrics: Metrics,
        refusals: Refusals,
        make_call: MakeCall,
        owner: SocketOwner,
        accounts: Accounts,
    ) -> None:
        self._settings = settings
        self._routes = routes
        self._gate = gate
        self._admission = admission
        self._metrics = metrics
        self._refusals = refusals
        self._make_call = make_call
        self._owner = owner
        self._accounts = accounts

    def open(self, head: Head, address: str) -> MediaSocket:
        """A socket for this upgrade. Raises HeadError or a GatewayError."""
        try:
            return self._open(head, address)
        except (GatewayError, HeadError) as error:
            remote = self._gate.proxies.source(caller_of(head, address))
            self._refusals.tell(error, remote, *self._routes.named(head.path))
            raise

    def _open(self, head: Head, address: str) -> MediaSocket:
        found, media = self._routes.media(head.path)
        check_upgrade(head)
        dialect = media.dialect
        request = Request(
            path=head.path,
            raw_query=head.query,
            query=head.query_values(),
            headers=head.fields(),
            values=found.values,
            origin=public_origin(self._settings, dialect),
        )
        caller = caller_of(head, address)
        claim = self._prove(media, request, caller)
        call_id = claim.call_id if claim else ""
        account = claim.account if claim else dialect.account(request)
        self.check_account(dialect, account)
        settings = dialect.settings(self._settings.platforms)
        channel = dialect.open(Opening(settings, request, call_id, account))
        slot = self._admission.enter(self._gate.proxies.source(caller))
        try:
            if claim is not None:
                self._gate.use(claim)
        except AdmissionError:
            slot.release()
            raise
        self._metrics.admitted(dialect.name)
        offered = head.listed("sec-websocket-protocol")
        admitted = Admitted(
            channel=channel,
            slot=slot,
            remote=address,
            # Without its token: the path may be logged.
            path=found.route.pattern,
            call_id=call_id,
            subprotocol=next(
                (name for name in channel.capabilities.subprotocols if name in offered), ""
            ),
        )
        return MediaSocket(admitted, self._make_call, self._settings.server, self._owner)

    def check_account(self, dialect: Dialect[Any], account: str) -> None:
        """Whether an account may have one more call now. Raises AdmissionError (503)."""
        limit = dialect.settings(self._settings.platforms).max_calls_per_account
        if self._accounts.full(dialect.name, account, limit):
            raise full_account(self._settings.server.retry_after_s)

    async def connect(
        self, dialect: Dialect[Any], outgoing: Outgoing, request: Request, address: str
    ) -> None:
        """Open the socket of a platform that waits. `address`: who asked for it.

        Raises AdmissionError: no line is free (503), or the platform is not there (502).
        """
        settings = dialect.settings(self._settings.platforms)
        channel = dialect.open(Opening(settings, request))
        slot = self._admission.enter(address)
        admitted = Admitted(channel=channel, slot=slot, remote=outgoing.url, path=request.path)
        socket = MediaSocket(admitted, self._make_call, self._settings.server, self._owner)
        headers = dict(outgoing.headers)
        if outgoing.subprotocols:
            headers["Sec-WebSocket-Protocol"] = ", ".join(outgoing.subprotocols)
        try:
            async with asyncio.timeout(CONNECT_S):
                await picows.ws_connect(
                    lambda: socket,
                    outgoing.url,
                    extra_headers=headers,
                    enable_auto_pong=False,
                    max_redirects=0,
                    max_frame_size=channel.capabilities.max_message_bytes,
                    logger_name=LOGGER,
                )
        except (picows.WSError, OSError) as error:
            raise AdmissionError(
                "admission.platform",
                f"the platform does not take the call: {_why(error)}",
                status=502,
                where=outgoing.url,
            ) from None
        finally:
            if not socket.connected:
                slot.release()
        self._metrics.admitted(dialect.name)

    def _prove(self, media: Media, request: Request, caller: Caller) -> MediaClaim | None:
        """Raises AuthError; the claim is not used up yet."""
        if media.proof is Proof.BEARER:
            self._gate.bearer(caller)
        elif media.proof is Proof.TOKEN:
            return self._gate.media_token(request.values["token"], media.dialect.name)
        else:
            self._gate.platform(media.dialect.name, caller, request)
        return None


def _why(error: Exception) -> str:
    response = getattr(error, "response", None)
    return f"it answers {int(response.status)}" if response is not None else str(error)
