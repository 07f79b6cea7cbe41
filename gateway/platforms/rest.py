"""Sends a platform's REST requests: bounded, repeated where that is safe, `gone` is success.

A request runs in a task of its own, so that the end of a call, or of the server, does not cut it
off half-way: who asked may be cancelled, the request goes on to its deadline.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import aiohttp
import orjson
import structlog

from gateway.channels.dialect import (
    Basic,
    Bearer,
    CallRef,
    ClientCredentials,
    RestAuth,
    RestRequest,
    RestWords,
)
from gateway.errors import RestError

TIMEOUT_S: Final = 4.0
"""For one attempt."""
DEADLINE_S: Final = 8.0
"""For a request with all its attempts."""
ATTEMPTS: Final = 3
PAUSE_S: Final = 0.2
"""Before the second attempt; doubles with each."""
MAX_ANSWER_BYTES: Final = 1 << 16
TOKEN_MARGIN_S: Final = 30.0
MAX_PENDING: Final = 1000
"""Requests at once; one more fails at once, since the platform does not keep up."""
UNABLE: Final = "rest.unable"
"""Code where the platform has no words for what is wanted."""
REFUSED: Final = "rest.refused"
"""Code where it has understood, and does not want to."""

REMEDIES: Final = {
    401: "check account and secret",
    403: "these credentials may not do this",
}
"""By status: what helps."""

log = structlog.get_logger()


class CallControl(Protocol):
    """What can be done to a call from beside its media socket. All raise RestError."""

    async def hangup(self, call: CallRef, metadata: Mapping[str, Any]) -> None:
        """End the call, with the agent's last words; one that has ended already is a success."""
        ...

    async def transfer(self, call: CallRef, target: str, metadata: Mapping[str, Any]) -> None:
        """Hand the call on."""
        ...

    async def send_dtmf(self, call: CallRef, digits: str) -> None:
        """Press keys towards the far end."""
        ...


class _NoTokenYet(Exception):
    """The token's server is busy. The request itself was not sent, so it may be repeated."""

    def __init__(self, status: int, retry_after: str) -> None:
        super().__init__(f"the platform gave no token (status {status})")
        self.wait_s = _retry_after(retry_after)


class RestControl:
    """One platform's calls, by its REST interface. `aclose` once at the end.

    `section`: the settings that hold its credentials, for whoever reads an error.
    """

    def __init__(
        self,
        words: RestWords,
        section: str = "platforms",
        *,
        timeout_s: float = TIMEOUT_S,
        deadline_s: float = DEADLINE_S,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._words = words
        self._section = section
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._deadline_s = deadline_s
        self._wall_clock = wall_clock
        self._session: aiohttp.ClientSession | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._token = ""
        self._token_until_s = 0.0

    async def hangup(self, call: CallRef, metadata: Mapping[str, Any]) -> None:
        """End the call. Raises RestError."""
        await self._perform(self._words.hangup(call, metadata), "hang up")

    async def transfer(self, call: CallRef, target: str, metadata: Mapping[str, Any]) -> None:
        """Hand the call on. Raises RestError."""
        await self._perform(self._words.transfer(call, target, metadata), "transfer")

    async def send_dtmf(self, call: CallRef, digits: str) -> None:
        """Press keys. Raises RestError."""
        await self._perform(self._words.send_dtmf(call, digits), "press keys")

    async def ask(self, requests: Sequence[RestRequest]) -> None:
        """Send what a webhook's answer needs. Raises RestError."""
        await self._perform(requests, "answer")

    async def aclose(self) -> None:
        """Wait for what is under way, within its deadlines, and close."""
        if self._running:
            await asyncio.wait(list(self._running), timeout=self._deadline_s)
        for task in list(self._running):
            task.cancel()
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    # ---- inside

    async def _perform(self, requests: Sequence[RestRequest], what: str) -> None:
        if not requests:
            message = f"this platform has no way to {what} such a call"
            raise self._error(UNABLE, message, "its page says what that needs")
        if len(self._running) >= MAX_PENDING:
            raise self._error("rest.busy", "too many requests wait for the platform")
        task = asyncio.get_running_loop().create_task(self._all(requests), name=f"rest:{what}")
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            # Who asked is gone and cannot tell how it went.
            task.add_done_callback(_tell)
            raise

    def _error(self, code: str, message: str, hint: str = "") -> RestError:
        return RestError(code, message, where=self._section, hint=hint or None)

    async def _all(self, requests: Sequence[RestRequest]) -> None:
        try:
            async with asyncio.timeout(self._deadline_s):
                hopeless = False
                for request in requests:
                    if hopeless and not request.needed:
                        continue
                    try:
                        await self._one(request)
                    except RestError as error:
                        if request.needed:
                            raise
                        log.warning("rest.left_out", **error.fields())
                        hopeless = error.code != REFUSED
        except TimeoutError:
            raise self._error("rest.timeout", "the platform does not answer in time") from None
        except RestError:
            raise
        except Exception as error:
            # Whatever it is, a call must come to its end.
            log.exception("rest.fault")
            message = f"the request failed here: {type(error).__name__}"
            raise self._error("internal.rest", message) from None

    async def _one(self, request: RestRequest) -> None:
        pause_s = PAUSE_S
        for attempt in range(1, ATTEMPTS + 1):
            try:
                again = await self._attempt(request, last=attempt == ATTEMPTS)
            except _NoTokenYet as error:
                if attempt == ATTEMPTS:
                    raise self._error("rest.token", str(error)) from None
                again = error.wait_s
            except aiohttp.ClientConnectorError as error:
                # Nothing was sent, so it may always be repeated.
                if attempt == ATTEMPTS:
                    raise self._unreachable(str(error)) from None
                again = pause_s
            except (aiohttp.ClientError, TimeoutError) as error:
                if attempt == ATTEMPTS or not request.repeatable:
                    raise self._unreachable(type(error).__name__) from None
                again = pause_s
            if again is None:
                return
            await asyncio.sleep(max(again, pause_s))
            pause_s *= 2

    async def _attempt(self, request: RestRequest, *, last: bool) -> float | None:
        """None: done; else how long to wait before the next attempt. Raises RestError."""
        headers = dict(request.headers)
        headers["Authorization"] = await self._authorization()
        if not headers["Authorization"]:
            del headers["Authorization"]
        if request.xml:
            headers["Content-Type"] = "application/xml"
        async with self._http().request(
            request.method,
            self._words.base_url + request.path,
            data=request.xml or (None if request.form is None else dict(request.form)),
            json=request.json,
            headers=headers,
            timeout=self._timeout,
            allow_redirects=False,
        ) as response:
            status = response.status
            if 200 <= status < 300 or status in request.gone:
                return None
            body = await beginning(response.content, MAX_ANSWER_BYTES)
            if any(word.encode() in body for word in request.gone_words):
                return None
            # A fetched token may be withdrawn before its time; the next attempt fetches another.
            stale = status == 401 and self._token != ""
            if stale:
                self._token = ""
            busy = status == 429 or (status >= 500 and request.repeatable)
            if (busy or stale) and not last:
                return _retry_after(response.headers.get("Retry-After", ""))
            hint = REMEDIES.get(status, "")
            raise self._error(REFUSED, f"the platform answered {status}", hint)

    def _unreachable(self, why: str) -> RestError:
        return self._error("rest.unreachable", f"the platform cannot be reached: {why}")

    def _http(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                json_serialize=lambda value: orjson.dumps(value).decode()
            )
        return self._session

    async def _authorization(self) -> str:
        now_s = self._wall_clock()
        auth: RestAuth = self._words.auth(now_s)
        if isinstance(auth, Basic):
            return _basic(auth.user, auth.password)
        if isinstance(auth, Bearer):
            return f"Bearer {auth.token}"
        if isinstance(auth, ClientCredentials):
            if not self._token or now_s >= self._token_until_s:
                await self._fetch_token(auth, now_s)
            return f"Bearer {self._token}"
        return ""

    async def _fetch_token(self, auth: ClientCredentials, now_s: float) -> None:
        async with self._http().post(
            auth.token_url,
            data={"grant_type": "client_credentials"},
            headers={"Authorization": _basic(auth.client_id, auth.client_secret)},
            timeout=self._timeout,
            allow_redirects=False,
        ) as response:
            if response.status == 429 or response.status >= 500:
                raise _NoTokenYet(response.status, response.headers.get("Retry-After", ""))
            body = await beginning(response.content, MAX_ANSWER_BYTES)
            try:
                answer = orjson.loads(body)
                self._token = str(answer["access_token"])
                lifetime_s = float(answer.get("expires_in", 300))
            except (ValueError, KeyError, TypeError):
                raise self._error(
                    "rest.token",
                    f"the platform gave no token (status {response.status})",
                    REMEDIES.get(response.status, ""),
                ) from None
        self._token_until_s = now_s + max(0.0, lifetime_s - TOKEN_MARGIN_S)


async def beginning(content: aiohttp.StreamReader, most_bytes: int) -> bytes:
    """The body of an answer, in however many pieces it comes, `most_bytes` of it at most."""
    body = bytearray()
    while len(body) < most_bytes:
        piece = await content.read(most_bytes - len(body))
        if not piece:
            break
        body += piece
    return bytes(body)


def _tell(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and isinstance(error := task.exception(), RestError):
        log.warning("rest.failed", **error.fields())


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _retry_after(value: str) -> float:
    return min(float(value), DEADLINE_S) if value.isascii() and value.isdigit() else 0.0
