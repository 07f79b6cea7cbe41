"""Lets media sockets in: route, proof, capacity, in this order and all before the upgrade."""

from __future__ import annotations

from gateway.channels.dialects import open_channel
from gateway.config import ServerSettings
from gateway.errors import AdmissionError, GatewayError
from gateway.server.admission import Admission
from gateway.server.auth import Caller, Gate
from gateway.server.contract import MakeCall
from gateway.server.head import Head, HeadError, check_upgrade
from gateway.server.media import Admitted, MediaSocket, SocketOwner
from gateway.server.metrics import Metrics
from gateway.server.routes import Media, Proof, media_route
from gateway.server.tokens import MediaClaim


def caller_of(head: Head, address: str) -> Caller:
    """What a request head says of the caller."""
    return Caller(
        address=address,
        host=head.get("host"),
        origin=head.get("origin"),
        authorization=head.get("authorization"),
        access_token=head.query_value("access_token"),
        signature=head.get("x-twilio-signature"),
    )


class MediaDoor:
    """Judges upgrades and makes their sockets."""

    def __init__(
        self,
        settings: ServerSettings,
        gate: Gate,
        admission: Admission,
        metrics: Metrics,
        make_call: MakeCall,
        owner: SocketOwner,
    ) -> None:
        self._settings = settings
        self._gate = gate
        self._admission = admission
        self._metrics = metrics
        self._make_call = make_call
        self._owner = owner

    def open(self, head: Head, address: str) -> MediaSocket:
        """A socket for this upgrade. Raises HeadError, AuthError or AdmissionError."""
        try:
            return self._open(head, address)
        except (GatewayError, HeadError) as error:
            self._metrics.refused(error.code)
            raise

    def _open(self, head: Head, address: str) -> MediaSocket:
        found = media_route(head.path)
        media = found.route.target
        assert isinstance(media, Media)
        check_upgrade(head)
        caller = caller_of(head, address)
        claim: MediaClaim | None = None
        if media.proof is Proof.BEARER:
            self._gate.bearer(caller)
        elif media.proof is Proof.TOKEN:
            claim = self._gate.media_token(found.values["token"], media.dialect)
        else:
            self._gate.webhook(caller, head.path, {})
        call_id = claim.call_id if claim else ""
        channel = open_channel(media.dialect, call_id)
        slot = self._admission.enter(address)
        try:
            if claim is not None:
                self._gate.use(claim)
        except AdmissionError:
            slot.release()
            raise
        self._metrics.admitted(media.dialect)
        admitted = Admitted(
            channel=channel,
            slot=slot,
            remote=address,
            # Without its token: the path may be logged.
            path=found.route.pattern,
            call_id=call_id,
        )
        return MediaSocket(admitted, self._make_call, self._settings, self._owner)
