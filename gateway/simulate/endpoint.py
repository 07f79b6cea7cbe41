"""Where a caller connects: the websocket behind a server's address, dialect by dialect."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit
from xml.etree import ElementTree

import aiohttp

from gateway.errors import AdmissionError, RuntimeFailure, ScenarioError
from gateway.simulate.platforms import CesPlatform, TwilioPlatform, ces, twilio
from gateway.simulate.platforms.base import Identity, Platform

TIMEOUT_S = 10.0
MAX_ANSWER_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Access:
    """A server's address and what proves that one may call. `url`: `http(s)://host:port`."""

    url: str
    token: str = field(default="", repr=False)
    """Bearer token of the native dialect and the timeline."""
    twilio_auth_token: str = field(default="", repr=False)
    """Signs the webhook as Twilio would."""

    def __post_init__(self) -> None:
        if urlsplit(self.url).scheme not in ("http", "https") or not urlsplit(self.url).netloc:
            raise ScenarioError(
                "scenario.url",
                f"not a server's address: {self.url!r}",
                hint="http://127.0.0.1:8080",
            )

    def http(self, path: str) -> str:
        """The address of a page."""
        return self.url.rstrip("/") + path

    def websocket(self, path: str) -> str:
        """The address of a websocket."""
        parts = urlsplit(self.http(path))
        scheme = "wss" if parts.scheme == "https" else "ws"
        return urlunsplit((scheme, parts.netloc, parts.path, parts.query, ""))

    @property
    def headers(self) -> dict[str, str]:
        """The proof, as request headers."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A websocket to open and the platform that will speak on it."""

    url: str
    platform: Platform
    headers: Mapping[str, str] = field(default_factory=dict)


async def find_endpoint(
    access: Access, channel: str, identity: Identity, http: aiohttp.ClientSession
) -> Endpoint:
    """Ask the server, as the platform would, where the media go. Raises AdmissionError."""
    if channel == "ces":
        return Endpoint(access.websocket(ces.PATH), CesPlatform(identity), access.headers)
    if channel != "twilio":
        raise ScenarioError("scenario.channel", f"no caller speaks the dialect {channel!r}")
    answer = await _webhook(access, identity, http)
    url, parameters = _stream(answer)
    parameters.update({key: str(value) for key, value in identity.variables.items()})
    return Endpoint(url, TwilioPlatform(identity, parameters))


async def _webhook(access: Access, identity: Identity, http: aiohttp.ClientSession) -> bytes:
    url = access.http("/twilio/voice")
    form = {
        "AccountSid": twilio.ACCOUNT_SID,
        "CallSid": identity.call_id,
        "CallStatus": "ringing",
        "Direction": "inbound",
        "From": identity.from_,
        "To": identity.to,
    }
    headers = {}
    if access.twilio_auth_token:
        headers["X-Twilio-Signature"] = _signature(url, form, access.twilio_auth_token)
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
    try:
        async with http.post(url, data=form, headers=headers, timeout=timeout) as response:
            body = await response.content.read(MAX_ANSWER_BYTES)
            if response.status == 200:
                return body
            raise AdmissionError(
                "admission.refused",
                f"the webhook answered {response.status}: {_first_line(body)}",
                status=response.status,
                where=url,
            )
    except (TimeoutError, aiohttp.ClientError) as error:
        raise unreachable(url, error) from None


def _signature(url: str, form: Mapping[str, str], auth_token: str) -> str:
    text = url + "".join(key + form[key] for key in sorted(form))
    digest = hmac.new(auth_token.encode(), text.encode(), hashlib.sha1).digest()
    return base64.b64encode(digest).decode()


def _stream(answer: bytes) -> tuple[str, dict[str, str]]:
    try:
        stream = ElementTree.fromstring(answer).find("Connect/Stream")
    except ElementTree.ParseError:
        stream = None
    if stream is None or not stream.get("url"):
        raise RuntimeFailure(
            "protocol.twiml", f"the webhook's answer connects no stream: {_first_line(answer)}"
        )
    parameters = {
        str(one.get("name")): str(one.get("value") or "") for one in stream.findall("Parameter")
    }
    return str(stream.get("url")), parameters


def _first_line(body: bytes) -> str:
    return body[:200].decode("utf-8", "replace").strip().partition("\n")[0]


def unreachable(url: str, error: BaseException) -> RuntimeFailure:
    """The server could not be reached."""
    words = str(error) or type(error).__name__
    return RuntimeFailure(
        "runtime.unreachable",
        f"cannot reach the server: {words}",
        where=url,
        hint="is it running? start one with: voice-gateway serve",
    )
