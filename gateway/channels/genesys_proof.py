"""Genesys Cloud's proof: an API key and, with a client secret, a signed request.

The signature is an HTTP message signature in an early draft's form: an HMAC over the request
target, the authority and four headers. It is good for some seconds and once only.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from gateway.channels.dialect import Request
from gateway.channels.proofs import Once
from gateway.errors import AuthError, ConfigError
from gateway.platform_settings import GenesysSettings

MAX_AGE_S: Final = 10.0
SKEW_S: Final = 3.0
"""How far the platform's clock may be off."""
MIN_NONCE_CHARS: Final = 22

COMPONENTS: Final = (
    "@request-target",
    "@authority",
    "audiohook-organization-id",
    "audiohook-session-id",
    "audiohook-correlation-id",
    "x-api-key",
)

_INPUT: Final = re.compile(r'([a-z][\w.*-]{0,63})=(\(((?:"[^"]{1,64}" ?){1,16})\)((?:;[^,]*)?))')
_PARAMETER: Final = re.compile(r';([a-z]+)=(?:"([^"]*)"|(\d{1,15}))')
_VALUE: Final = re.compile(r"([a-z][\w.*-]{0,63})=:([A-Za-z0-9+/=]{1,256}):")


@dataclass(frozen=True, slots=True)
class _Signature:
    components: tuple[str, ...]
    parameters: Mapping[str, str]
    inner: str
    """List and parameters exactly as they came: they are signed too."""
    value: bytes


def signature_base(
    components: Iterable[str], inner: str, request: Request, authority: str, target: str
) -> bytes:
    """What is signed: a line for each component, then the parameters."""
    derived = {"@request-target": target, "@authority": authority}
    lines = [f'"{name}": {derived.get(name) or request.header(name)}' for name in components]
    return "\n".join([*lines, f'"@signature-params": {inner}']).encode("utf-8", "replace")


class GenesysProof:
    """Knows the clients of `platforms.genesys`; remembers nonces, so there is one a server."""

    covers_origin = False

    def __init__(self, settings: GenesysSettings) -> None:
        self._secrets: dict[str, bytes] = {}
        for key, secret in settings.clients.items():
            try:
                self._secrets[key] = base64.b64decode(secret.get_secret_value(), validate=True)
            except (binascii.Error, ValueError):
                raise ConfigError(
                    "config.genesys_secret",
                    "a client secret is not base64",
                    where="platforms.genesys.clients",
                    hint="enter it here as it was entered in the integration",
                ) from None
        self._organizations = frozenset(settings.organizations)
        self._once = Once()

    @property
    def configured(self) -> bool:
        """Whether there are clients to check against."""
        return bool(self._secrets)

    def check(self, request: Request, now_s: float) -> None:
        """Whether a known client asks. Raises AuthError (401; 403 for another organisation)."""
        key = request.header("x-api-key")
        if not key:
            raise AuthError("auth.missing", "the request carries no X-API-KEY", status=401)
        known = key in self._secrets
        # An unknown key is checked like a known one, so that both take the same time.
        secret = self._secrets.get(key, b"unknown")
        if secret:
            self._check_signature(request, key, secret, known, now_s)
        organization = request.header("audiohook-organization-id")
        if self._organizations and organization not in self._organizations:
            raise AuthError("auth.organization", "this organisation is not served here", status=403)

    def _check_signature(
        self, request: Request, key: str, secret: bytes, known: bool, now_s: float
    ) -> None:
        if not request.header("signature") or not request.header("signature-input"):
            raise AuthError("auth.unsigned", "the request carries no signature", status=401)
        signature = _read(request)
        if signature is None or signature.parameters.get("keyid") != key:
            raise AuthError("auth.signature", "the signature has another form", status=401)
        sound = False
        for authority, target in _addresses(request):
            base = signature_base(signature.components, signature.inner, request, authority, target)
            made = hmac.digest(secret, base, "sha256")
            sound |= hmac.compare_digest(made, signature.value)
        if not (sound and known):
            raise AuthError(
                "auth.signature",
                "the signature does not fit key, address and headers",
                status=401,
                hint="check platforms.genesys.clients, and that a proxy keeps the Host header",
            )
        self._check_time(signature.parameters, now_s)

    def _check_time(self, parameters: Mapping[str, str], now_s: float) -> None:
        created_s, expires_s = float(parameters["created"]), float(parameters["expires"])
        old = now_s > created_s + MAX_AGE_S + SKEW_S or now_s > expires_s + SKEW_S
        if old or created_s > now_s + SKEW_S:
            raise AuthError(
                "auth.expired",
                "the signature is too old, or from the future",
                status=401,
                hint="check this machine's clock",
            )
        self._once.use(parameters["nonce"], created_s + MAX_AGE_S + SKEW_S, now_s)


def _read(request: Request) -> _Signature | None:
    """The one signature of a request; None where it has another form than the platform's."""
    told = _INPUT.fullmatch(request.header("signature-input").strip())
    value = _VALUE.fullmatch(request.header("signature").strip())
    if told is None or value is None or told[1] != value[1]:
        return None
    components = tuple(re.findall(r'"([^"]*)"', told[3]))
    if set(components) != set(COMPONENTS) or len(components) != len(COMPONENTS):
        return None
    parameters = {name: text or number for name, text, number in _PARAMETER.findall(told[4])}
    numbers = [parameters.get(name, "") for name in ("created", "expires")]
    if (
        parameters.get("alg") != "hmac-sha256"
        or len(parameters.get("nonce", "")) < MIN_NONCE_CHARS
        or not all(number.isdigit() for number in numbers)
    ):
        return None
    try:
        signed = base64.b64decode(value[2], validate=True)
    except (binascii.Error, ValueError):
        return None
    return _Signature(components, parameters, told[2], signed)


def _addresses(request: Request) -> list[tuple[str, str]]:
    """Authority and target that may have been signed: as they came, and by the public origin."""
    found = [(request.header("host"), request.target)]
    if request.origin:
        public = urlsplit(request.origin)
        found.append((public.netloc, public.path + request.target))
    return list(dict.fromkeys(found))
