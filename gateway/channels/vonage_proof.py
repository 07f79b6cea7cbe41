"""Vonage's proof: a token signed with the account's signature secret, or Basic credentials.

The token comes as `Authorization: Bearer` with webhooks, where it also holds the body's digest,
and with sockets whose endpoint says `authorization: {"type": "vonage"}`. Basic credentials are
what an endpoint's own `authorization` value may be.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from gateway.channels.base import first_text
from gateway.channels.dialect import Request
from gateway.channels.jwt import claims_of, unproven_claims
from gateway.channels.proofs import AuthorizationProof, Once
from gateway.errors import AuthError
from gateway.platform_settings import VonageSettings

MAX_AGE_S: Final = 300.0
SKEW_S: Final = 60.0


def account(request: Request) -> str:
    """The application that a token speaks for; without one, the account."""
    token = request.header("authorization").partition(" ")[2].strip()
    return first_text(unproven_claims(token), "application_id", "api_key")


class VonageProof:
    """Checks tokens against every signature secret of `auth_tokens`; each is good once."""

    covers_origin = False

    def __init__(self, settings: VonageSettings) -> None:
        self._secrets = [token.get_secret_value() for token in settings.auth_tokens]
        self._basic = AuthorizationProof(settings.model_copy(update={"auth_tokens": []}))
        self._application = settings.account
        self._once = Once()

    @property
    def configured(self) -> bool:
        """Whether there are credentials to check against."""
        return bool(self._secrets) or self._basic.configured

    def check(self, request: Request, now_s: float) -> None:
        """Whether the platform asks. Raises AuthError (401)."""
        scheme, _, token = request.header("authorization").partition(" ")
        if scheme.lower() != "bearer":
            self._basic.check(request, now_s)
            return
        claims = claims_of(token.strip(), self._secrets)
        if claims is None:
            raise AuthError(
                "auth.signature",
                "the token is not signed with a known secret",
                status=401,
                hint="set platforms.vonage.auth_tokens to the account's signature secret",
            )
        issued_s, expires_s = claims.get("iat"), claims.get("exp")
        if not isinstance(issued_s, int | float) or not (
            issued_s - SKEW_S <= now_s <= issued_s + MAX_AGE_S
        ):
            raise AuthError("auth.expired", "the token is too old, or from the future", status=401)
        if isinstance(expires_s, int | float) and now_s > expires_s + SKEW_S:
            raise AuthError("auth.expired", "the token has expired", status=401)
        application = claims.get("application_id")
        if self._application and application not in (None, self._application):
            raise AuthError("auth.application", "the token is another application's", status=401)
        _check_body(request, claims.get("payload_hash"))
        # What is signed names the token; its signature could be spelled in several ways.
        signed = hashlib.sha256(token.strip().rpartition(".")[0].encode()).hexdigest()
        self._once.use(signed, issued_s + MAX_AGE_S, now_s)


def _check_body(request: Request, digest: object) -> None:
    if not request.body and digest is None:
        return
    made = hashlib.sha256(request.body).hexdigest()
    told = str(digest).lower() if digest is not None else ""
    if not hmac.compare_digest(made.encode(), told.encode("utf-8", "replace")):
        raise AuthError("auth.body", "the token does not cover this body", status=401)
