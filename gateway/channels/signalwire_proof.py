"""SignalWire's proof: signed webhooks, and a bearer token or Basic credentials on sockets.

Webhooks are signed like those of the platform that it is compatible with, under a header of its
own name; projects that have moved from there may still send the other one.
"""

from __future__ import annotations

from gateway.channels.dialect import Request
from gateway.channels.proofs import AuthorizationProof
from gateway.channels.twilio_signature import genuine
from gateway.errors import AuthError
from gateway.platform_settings import SignalWireSettings

HEADERS = ("x-signalwire-signature", "x-twilio-signature")


class SignalWireProof:
    """Checks with every secret of `platforms.signalwire.auth_tokens`."""

    covers_origin = True

    def __init__(self, settings: SignalWireSettings) -> None:
        self._keys = [token.get_secret_value() for token in settings.auth_tokens]
        self._authorization = AuthorizationProof(settings)

    @property
    def configured(self) -> bool:
        """Whether there are secrets to check against."""
        return self._authorization.configured

    def check(self, request: Request, now_s: float) -> None:
        """Whether the platform asks. Raises AuthError (401; 403 for a wrong signature)."""
        given = next((value for name in HEADERS if (value := request.header(name))), "")
        if not given:
            self._authorization.check(request, now_s)
            return
        if not genuine(self._keys, request.origin + request.target, request.form, given):
            raise AuthError(
                "auth.signature",
                "the signature does not fit the public address and these fields",
                status=403,
                hint="check platforms.signalwire.auth_tokens and the public origin",
            )
