"""jambonz: the `listen` verb, streaming and non-streaming, and its webhook.

The first message names the call and its audio. The webhook `/jambonz/voice` answers with verbs:
`listen` at a media address with a one-use token, then `hangup`. `disconnect` only ends `listen`,
so that an application of your own may go on with the next verb.

In streaming mode audio is binary and marks come back as `playout` or `cleared`. In the other one
audio is `playAudio` clips, and `playDone` tells when each was played. See `audio_fork` for what
the module below does to marks and to the ends of utterances.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from gateway.channels import jambonz_rest
from gateway.channels.audio_fork import CAPABILITIES as FORK
from gateway.channels.audio_fork import MAX_MARKS, ForkChannel, said
from gateway.channels.base import (
    ChannelCommand,
    ChannelEvent,
    Clear,
    Close,
    Hangup,
    MarkReached,
    Transfer,
    Wire,
    first_text,
    flat,
)
from gateway.channels.capabilities import DtmfOut, EndOut, Marks, MarksOnClear, TransferBy
from gateway.channels.dialect import (
    Dialect,
    Hook,
    MediaRoute,
    Opening,
    Proof,
    Request,
    WebAnswer,
    Webhook,
)
from gateway.channels.proofs import AuthorizationProof
from gateway.channels.sip import is_sip, page_after, page_headers
from gateway.errors import ProtocolError
from gateway.platform_settings import JambonzSettings

CAPABILITIES: Final = replace(
    FORK,
    dialect="jambonz",
    subprotocols=("audio.jambonz.org",),
    starts_within_s=None,
    dtmf_out=DtmfOut.REST,
    end_out=EndOut.MESSAGE,
    transfer=TransferBy.REST,
)


class JambonzChannel(ForkChannel):
    """The codec of one `listen`."""

    def __init__(self, opening: Opening[JambonzSettings]) -> None:
        super().__init__(opening, CAPABILITIES, metadata_needed=True)
        rest = jambonz_rest.rest(opening.settings)
        if rest is None or not rest.can_transfer:
            # The verbs behind `listen` then say where the call goes.
            self._capabilities = replace(self._capabilities, transfer=TransferBy.MESSAGE)
        elif opening.settings.continue_url is not None:
            # REST is asked first, and does nothing where the agent has left nothing.
            self._capabilities = replace(self._capabilities, end_out=EndOut.REST)
        if not self._streaming:
            # `playDone` is as good as a mark, but never comes for what was killed.
            self._capabilities = replace(
                self._capabilities, marks=Marks.NATIVE, marks_on_clear=MarksOnClear.LOST
            )
        self._behind: dict[str, list[str]] = {}
        """Marks by the clip that they wait for."""

    def _told(self, body: Mapping[str, Any]) -> list[ChannelEvent]:
        if body.get("type") != "playDone":
            return super()._told(body)
        data = body.get("data")
        done = str(data.get("id", "")) if isinstance(data, dict) else ""
        return [MarkReached(name) for name in self._behind.pop(done, ())]

    def command(self, command: ChannelCommand) -> list[Wire | Close]:
        """As of the module, but `disconnect` leaves the closing to jambonz."""
        if isinstance(command, Hangup):
            return [said("disconnect")]
        if isinstance(command, Transfer):
            by_rest = self.capabilities.transfer is TransferBy.REST
            return [Close(1000, "transferred")] if by_rest else [said("disconnect")]
        if isinstance(command, Clear):
            self._behind.clear()
        return super().command(command)

    def _mark(self, name: str) -> list[Wire | Close]:
        if self._streaming:
            return super()._mark(name)
        if self._clips and sum(map(len, self._behind.values())) < MAX_MARKS:
            self._behind.setdefault(str(self._clips), []).append(name)
        return []


_CALL_SID: Final = re.compile(r"[\w-]{1,64}", re.ASCII)


def answer(hook: Hook[JambonzSettings]) -> WebAnswer:
    """The verbs of an incoming call: `listen`, then `hangup`."""
    body = _body(hook.request)
    call_sid = body.get("call_sid")
    if not isinstance(call_sid, str) or not _CALL_SID.fullmatch(call_sid):
        raise ProtocolError("protocol.form", "the request names no call", where="call_sid")
    settings = hook.settings
    listen: dict[str, Any] = {
        "verb": "listen",
        "url": hook.media_url(call_sid),
        "mixType": "mono",
        "sampleRate": settings.in_rate_hz,
        "passDtmf": True,
        "bidirectionalAudio": {
            "enabled": True,
            "streaming": settings.streaming,
            "sampleRate": settings.out_rate_hz,
        },
    }
    # Fields that the operator has named come back in the first message.
    if told := {name: text for name, text in flat(body).items() if name in settings.variables}:
        listen["metadata"] = told
    return _verbs(listen, {"verb": "hangup"})


def transfer(hook: Hook[JambonzSettings]) -> WebAnswer:
    """The verbs of a call that is handed on; the query holds the target and its SIP headers."""
    target = hook.request.query_value("target")
    if not target:
        raise ProtocolError("protocol.form", "no target is named", where="target")
    if is_sip(target):
        to = {"type": "sip", "sipUri": target}
    elif target.startswith("user:"):
        to = {"type": "user", "name": target.removeprefix("user:")}
    else:
        to = {"type": "phone", "number": target.removeprefix("tel:")}
    dial: dict[str, Any] = {"verb": "dial", "target": [to]}
    if headers := page_headers(hook.request.query):
        dial["headers"] = headers
    if after := page_after(hook.request.query, hook.settings.continue_url):
        dial["actionHook"] = after
    return _verbs(dial, {"verb": "hangup"})


def account(request: Request) -> str:
    """The account that a webhook names."""
    try:
        return first_text(_body(request), "account_sid")
    except ProtocolError:
        return ""


def _body(request: Request) -> dict[str, Any]:
    if request.form:
        return {name: values[0] for name, values in request.form.items() if values}
    try:
        body = orjson.loads(request.body)
    except orjson.JSONDecodeError as error:
        raise ProtocolError("protocol.json", f"the body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise ProtocolError("protocol.shape", "the body is not a JSON object")
    return body


def _verbs(*verbs: Mapping[str, Any]) -> WebAnswer:
    return WebAnswer(orjson.dumps(verbs), "application/json")


DIALECT: Final = Dialect(
    capabilities=CAPABILITIES,
    open=JambonzChannel,
    settings=lambda platforms: platforms.jambonz,
    routes=(
        MediaRoute("/jambonz/media/{token}", Proof.TOKEN),
        # For verbs that are not ours: `wsAuth` is the proof.
        MediaRoute("/jambonz/media", Proof.PLATFORM),
    ),
    webhooks=(
        Webhook("/jambonz/voice", answer),
        Webhook(jambonz_rest.TRANSFER_PATH, transfer),
    ),
    proof=AuthorizationProof,
    rest=jambonz_rest.rest,
    account=account,
)
