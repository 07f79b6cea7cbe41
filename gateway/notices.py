"""Notices: each call's end is told to a server of the operator's, with what the agent left.

One POST of JSON for each call, signed, repeated until it is taken or given up. It goes beside the
media loop: a receiver that is slow, or away, costs memory for `max_waiting` notices and no call
anything.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Protocol

import aiohttp
import orjson
import structlog

from gateway.call.ending import read_wish
from gateway.channels.base import EndReason, Started
from gateway.errors import NoticeError
from gateway.notice_settings import NoticeSettings

TIMEOUT_S: Final = 10.0
"""For one attempt."""
AT_ONCE: Final = 8
"""Attempts at one time."""
LONGEST_PAUSE_S: Final = 30.0
MAX_PARAMS_BYTES: Final = 1 << 16
"""Larger `params` are left out, and the notice says so."""
TIMESTAMP: Final = "X-Voice-Gateway-Timestamp"
SIGNATURE: Final = "X-Voice-Gateway-Signature"
PASSING: Final = frozenset({408, 425, 429})
"""Refusals that may be none later; others below 500 are final."""

log = structlog.get_logger()


@dataclass(slots=True)
class CallNotice:
    """What is to be told of one call, gathered while it runs. Costs nothing for each frame."""

    dialect: str
    started: Started
    session: str
    began_s: float
    """By the wall clock."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    target: str = ""

    def note(self, kind: str, fields: Mapping[str, Any]) -> None:
        """One line of the call's timeline."""
        if kind == "runtime_output" and fields.get("type") == "endSession":
            self.metadata = fields.get("payload", {})
        elif kind == "transfer":
            self.target = str(fields.get("target", ""))


class CallNotices(Protocol):
    """Tells of calls that have ended."""

    def begin(self, dialect: str, started: Started) -> CallNotice:
        """The notice of a call that starts."""
        ...

    def ended(self, notice: CallNotice, reason: EndReason) -> None:
        """The call is over; returns at once."""
        ...


def sign(secret: bytes, timestamp: str, body: bytes) -> str:
    """The signature of a body: HMAC-SHA256 over timestamp, full stop and body, in hex."""
    return hmac.new(secret, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


class Notices:
    """The notices of a process. `aclose` once at the end.

    `name_session`: the session's name from call id and configuration; `lost` is told the code of
    each notice that is given up.
    """

    def __init__(
        self,
        settings: NoticeSettings,
        name_session: Callable[[str, Mapping[str, Any]], str],
        lost: Callable[[str], None],
        *,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        assert settings.url is not None
        assert settings.secret is not None
        self._settings = settings
        self._url = settings.url
        self._secret = settings.secret.get_secret_value().encode()
        self._name_session = name_session
        self._tell_lost = lost
        self._wall_clock = wall_clock
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._running: set[asyncio.Task[None]] = set()
        self._session: aiohttp.ClientSession | None = None

    def begin(self, dialect: str, started: Started) -> CallNotice:
        """The notice of a call that starts."""
        session = started.session or self._name_session(started.call_id, started.config)
        return CallNotice(dialect, started, session, self._wall_clock())

    def ended(self, notice: CallNotice, reason: EndReason) -> None:
        """Tell of a call that is over, in a task of its own."""
        call_id = notice.started.call_id
        if len(self._running) >= self._settings.max_waiting:
            self._lost(call_id, NoticeError("notice.full", "too many notices wait"))
            return
        work = self._deliver(notice, reason)
        task = asyncio.get_running_loop().create_task(work, name=f"notice:{call_id}")
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def aclose(self) -> None:
        """Wait for what is under way, for `shutdown_s`, and close; the rest is lost, and logged."""
        if self._running:
            await asyncio.wait(list(self._running), timeout=self._settings.shutdown_s)
        left = list(self._running)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    # ---- inside

    def _body(self, notice: CallNotice, reason: EndReason) -> bytes:
        started, metadata = notice.started, notice.metadata
        now_s = self._wall_clock()
        told: dict[str, Any] = {
            "id": secrets.token_hex(16),
            "event": "call.ended",
            "call_id": started.call_id,
            "session": notice.session,
            "dialect": notice.dialect,
            "account": started.account,
            "started_at": datetime.fromtimestamp(notice.began_s, UTC).isoformat(),
            "seconds": round(now_s - notice.began_s, 3),
            "reason": reason.value,
            "transfer_target": notice.target,
            "agent_reason": metadata.get("reason"),
            "session_escalated": read_wish(metadata).escalated,
            "params": metadata.get("params") or {},
        }
        if self._settings.numbers:
            told |= {"from": started.from_, "to": started.to}
        if len(orjson.dumps(told["params"], default=str)) > MAX_PARAMS_BYTES:
            told |= {"params": {}, "params_left_out": True}
        return orjson.dumps(told, default=str)

    async def _deliver(self, notice: CallNotice, reason: EndReason) -> None:
        call_id = notice.started.call_id
        pause_s = self._settings.retry_s
        error = NoticeError("notice.shutdown", "this server closes")
        try:
            body = self._body(notice, reason)
            async with asyncio.timeout(self._settings.give_up_s):
                while True:
                    async with self._turns:
                        refusal = await self._attempt(body)
                    if refusal is None:
                        return
                    error = refusal
                    if refusal.code == "notice.refused":
                        break
                    await asyncio.sleep(pause_s)
                    pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        except TimeoutError:
            pass
        except asyncio.CancelledError:
            self._lost(call_id, error)
            raise
        except Exception as fault:
            log.exception("notice.fault")
            error = NoticeError("internal.notice", f"it failed here: {type(fault).__name__}")
        self._lost(call_id, error)

    async def _attempt(self, body: bytes) -> NoticeError | None:
        """None: it is taken."""
        timestamp = str(int(self._wall_clock()))
        headers = {
            "Content-Type": "application/json",
            TIMESTAMP: timestamp,
            SIGNATURE: f"v1={sign(self._secret, timestamp, body)}",
        }
        try:
            async with self._http().post(
                self._url, data=body, headers=headers, allow_redirects=False
            ) as response:
                status = response.status
        except (aiohttp.ClientError, TimeoutError) as error:
            return _failed("notice.unreachable", f"nobody takes it: {type(error).__name__}")
        if 200 <= status < 300:
            return None
        passing = status >= 500 or status in PASSING
        return _failed(
            "notice.busy" if passing else "notice.refused", f"the receiver answered {status}"
        )

    def _http(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_S))
        return self._session

    def _lost(self, call_id: str, error: NoticeError) -> None:
        log.warning("notice.lost", call_id=call_id, **error.fields())
        self._tell_lost(error.code)


def _failed(code: str, message: str) -> NoticeError:
    return NoticeError(code, message, where="notices.url", hint="check what answers there")
