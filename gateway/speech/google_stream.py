"""The recognition of one call by Google's service: one request after the other.

A call's audio goes out in legs: requests of the service that follow each other without a gap. A leg
ends where the caller pauses, because the service gives its last word on a stretch only when the
stretch is over, and before the service's own limit. A leg that breaks off, or grows too old, is
followed by one that begins with all audio whose words were not final, so no word is lost. When
the service takes no audio for so long that the tape runs over, the oldest audio is dropped, and
`words` says so by its error.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, Protocol

import structlog

from gateway.audio.formats import Pcm
from gateway.config import GoogleSpeechSettings
from gateway.errors import SpeechError
from gateway.speech import google_client
from gateway.speech.base import Heard, OnHeard
from gateway.speech.google_leg import Final, Leg, best, closed, join
from gateway.speech.tape import AudioTape

PIECE_S = 0.1
MAX_PIECE_BYTES = 15_000
"""The service takes no more in one message."""
KEEP_S = 15.0
"""Audio kept for a leg that has to be repeated, and for a service that is slow to take it."""
REPEAT_S = 10.0
"""So much of it is repeated at most: what is older would be dropped while it is sent."""
REWIND_S = 2.0
"""How far a new leg goes back where the old one had heard nothing: its last words may be young."""
REMEMBERED_S = 90.0
"""Age up to which words are remembered."""
LEG_LIMIT_S = 300.0
RETRY_S = (0.0, 0.25, 1.0)
"""Waits before a broken leg is followed by the next; after the last one the outage rules."""
CLOSE_WAIT_S = 1.0

_log = structlog.get_logger()


class Service(Protocol):
    """What a stream needs of its recogniser."""

    settings: GoogleSpeechSettings
    word_times: bool
    recognizer: str
    client: Any

    def recognition_config(self, rate_hz: int, languages: tuple[str, ...]) -> dict[str, Any]:
        """`RecognitionConfig` of a request."""
        ...

    def closed(self, stream: GoogleStream) -> None:
        """A stream has ended."""
        ...


class GoogleStream:
    """The recognition of one call; see `gateway.speech.base.RecognitionStream`."""

    def __init__(
        self,
        recogniser: Service,
        rate_hz: int,
        languages: tuple[str, ...],
        on_heard: OnHeard,
    ) -> None:
        self._recogniser = recogniser
        self._languages = languages
        self._on_heard: OnHeard | None = on_heard
        self._tape = AudioTape(rate_hz, KEEP_S)
        self._piece = self._tape.position(PIECE_S)
        self._oldest_leg = self._tape.position(recogniser.settings.stream_s)
        self._leg: Leg | None = None
        """The leg that takes what is fed."""
        self._legs: deque[Leg] = deque()
        """Legs whose stretch may still be asked for, in order."""
        self._next = 0
        """Where the next leg begins."""
        self._finals: deque[Final] = deque()
        self._lost: deque[tuple[float, float]] = deque(maxlen=16)
        """Stretches that were never recognised."""
        self._failures = 0
        self._failure: SpeechError | None = None
        self._not_before = 0.0
        self._loop = asyncio.get_running_loop()

    # ---- audio

    def feed(self, pcm: Pcm) -> None:
        """Take caller audio; opens a leg where none is."""
        if self._on_heard is None:
            return
        tape = self._tape
        tape.append(pcm)
        leg = self._leg
        if leg is None:
            if self._loop.time() >= self._not_before:
                self._open_leg()
        elif leg.cursor < tape.start:
            self._drop(leg)
        elif tape.end - leg.cursor >= self._piece:
            leg.fed.set()
            if tape.end - leg.opened >= self._oldest_leg:
                self._replace(leg)

    @property
    def connected(self) -> bool:
        """Whether a request of the service takes what is fed."""
        return self._leg is not None

    @property
    def behind_s(self) -> float:
        """Seconds of audio that the service has not taken yet."""
        taken = self._next if self._leg is None else self._leg.cursor
        return self._tape.seconds(self._tape.end - taken)

    def _open_leg(self) -> None:
        tape = self._tape
        start = max(self._next, tape.start, tape.end - tape.position(REPEAT_S))
        if start > self._next:
            self._lost.append((tape.seconds(self._next), tape.seconds(start)))
        self._leg = self._begin(Leg(start, start, start, tape.end))

    def _begin(self, leg: Leg) -> Leg:
        self._legs.append(leg)
        horizon = self._tape.end - self._tape.position(REMEMBERED_S)
        while self._legs[0].end is not None and self._legs[0].end < horizon:
            self._legs.popleft()
        leg.task = self._loop.create_task(self._run(leg), name="speech-recognition")
        return leg

    def _drop(self, leg: Leg) -> None:
        """The service takes no audio, and the tape ran over: go on with what is here."""
        _log.warning("speech.behind", seconds=KEEP_S)
        self._abandon(leg, self._tape.end)
        self._lost.append((self._tape.seconds(leg.settled), self._tape.seconds(self._tape.end)))

    def _replace(self, leg: Leg) -> None:
        """The leg nears the service's limit: the next one repeats what is not settled."""
        self._abandon(leg, self._restart(leg))
        self._open_leg()

    def _restart(self, leg: Leg) -> int:
        if leg.interim:
            return leg.settled
        return max(leg.settled, leg.cursor - self._tape.position(REWIND_S))

    def _abandon(self, leg: Leg, follow_at: int) -> None:
        """End a leg now; its words after `follow_at` are the next leg's."""
        self._leg = None
        self._next = leg.end = follow_at
        leg.interim = ""
        leg.cancel()

    # ---- the service

    async def _run(self, leg: Leg) -> None:
        responses: Any = None
        try:
            responses = await self._recogniser.client.streaming_recognize(
                requests=self._requests(leg), retry=None, timeout=LEG_LIMIT_S
            )
            async for response in responses:
                self._take(leg, response)
            self._finish(leg)
        except Exception as error:
            # Besides its own errors the library lets those of its transport through.
            self._broken(leg, google_client.in_our_words(error))
        finally:
            if responses is not None:
                responses.cancel()
            leg.finish()

    async def _requests(self, leg: Leg) -> AsyncIterator[Any]:
        from google.cloud.speech_v2.types import cloud_speech

        recogniser = self._recogniser
        config = recogniser.recognition_config(self._tape.rate_hz, self._languages)
        yield cloud_speech.StreamingRecognizeRequest(
            recognizer=recogniser.recognizer,
            streaming_config={
                "config": config,
                "streaming_features": {"interim_results": True},
            },
        )
        tape = self._tape
        while True:
            end = tape.end if leg.end is None else leg.end
            if end - leg.cursor >= self._piece or (leg.end is not None and end > leg.cursor):
                stop = min(end, leg.cursor + MAX_PIECE_BYTES)
                audio = tape.read(leg.cursor, stop)
                leg.cursor = stop
                yield cloud_speech.StreamingRecognizeRequest(audio=audio)
            elif leg.end is not None or leg.done.is_set():
                return
            else:
                leg.fed.clear()
                await leg.fed.wait()

    def _take(self, leg: Leg, response: Any) -> None:
        interim: list[str] = []
        end_s = self._tape.seconds(leg.cursor)
        for result in response.results:
            leg.answered = True
            if result.is_final:
                self._settle(leg, result)
            elif text := best(result):
                interim.append(text)
                end_s = self._at(leg, result.result_end_offset, end_s)
        self._failures = 0
        self._failure = None
        text = join(interim)
        if text and text != leg.interim:
            self._tell(Heard(text, False, self._tape.seconds(leg.settled), end_s))
        leg.interim = text

    def _settle(self, leg: Leg, result: Any) -> None:
        tape = self._tape
        start_s = tape.seconds(leg.settled)
        end_s = self._at(leg, result.result_end_offset, tape.seconds(leg.cursor))
        leg.settled = max(leg.settled, min(tape.position(end_s), leg.cursor))
        text = best(result)
        if not text:
            return
        whole = Heard(text, True, start_s, end_s, result.language_code)
        words = [
            Heard(
                word.word,
                True,
                self._at(leg, word.start_offset, start_s),
                self._at(leg, word.end_offset, end_s),
            )
            for word in result.alternatives[0].words
            if word.end_offset
        ]
        self._keep(Final(whole, tuple(words)))
        self._tell(whole)

    def _keep(self, final: Final) -> None:
        self._finals.append(final)
        while self._finals[0].whole.end_s < final.whole.end_s - REMEMBERED_S:
            self._finals.popleft()

    def _at(self, leg: Leg, offset: timedelta | None, default_s: float) -> float:
        if not offset:
            return default_s
        return self._tape.seconds(leg.start) + offset.total_seconds()

    def _tell(self, heard: Heard) -> None:
        if self._on_heard is not None:
            self._on_heard(heard)

    def _finish(self, leg: Leg) -> None:
        """The service has said all of a leg; what it did not settle counts as it stands."""
        if leg.interim:
            start_s, end_s = self._tape.seconds(leg.settled), self._tape.seconds(leg.cursor)
            self._keep(Final(Heard(leg.interim, True, start_s, end_s), ()))
            leg.settled, leg.interim = leg.cursor, ""
        if leg is self._leg:
            # It ended by itself, while audio still came.
            self._abandon(leg, leg.cursor)

    def _broken(self, leg: Leg, error: SpeechError) -> None:
        if error.code == "speech.unavailable" and self._failure is not None:
            # A write that fails hides the service's own status: the one before tells more.
            error = self._failure
        leg.error = self._failure = error
        recogniser = self._recogniser
        if error.code == "speech.refused" and recogniser.word_times and not leg.answered:
            # A model without times of words refuses the wish itself.
            recogniser.word_times = False
        else:
            self._failures += 1
        if self._failures:
            tried = min(self._failures, len(RETRY_S))
            wait_s = RETRY_S[tried - 1] if self._failures <= len(RETRY_S) else self._cool_down_s
            self._not_before = self._loop.time() + wait_s
        if leg is self._leg:
            leg.error = None
            self._abandon(leg, self._restart(leg))
        elif not leg.again and leg.end is not None and leg.settled >= self._tape.start:
            # Somebody waits for its last words: they are worth one more try.
            leg.error = None
            start, end, leg.end = leg.settled, leg.end, leg.settled
            if start < end:
                self._begin(Leg(start, start, start, self._tape.end, end, again=True))

    @property
    def _cool_down_s(self) -> float:
        return self._recogniser.settings.cool_down_s

    # ---- words

    async def words(self, start_s: float, end_s: float) -> str:
        """All words between two times. Raises SpeechError (timeout, behind, or the service's)."""
        if self._on_heard is None:
            raise closed()
        tape = self._tape
        start, end = tape.position(start_s), min(tape.position(end_s), tape.end)
        if self._leg is None and self._next < end and self._loop.time() >= self._not_before:
            # The last leg broke off just now: let another try before the caller must wait.
            self._open_leg()
        self._end_leg(end)
        timeout_s = self._recogniser.settings.timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                while waiting := [leg for leg in self._over(start) if not leg.done.is_set()]:
                    await waiting[0].done.wait()
        except TimeoutError:
            for leg in self._over(start):
                if not leg.done.is_set():
                    leg.error = google_client.late(timeout_s)
                    leg.cancel()
        for leg in self._over(start):
            if leg.error is not None:
                raise leg.error
        missing = any(first < end_s and last > start_s for first, last in self._lost)
        if missing or self._next < end:
            raise self._failure or SpeechError(
                "speech.behind", "the service has not taken all of this audio"
            )
        return join(final.between(start_s, end_s) for final in self._finals)

    def _over(self, start: int) -> list[Leg]:
        """The legs whose end is known and lies behind `start`."""
        return [leg for leg in self._legs if leg.end is not None and leg.end > start]

    def _end_leg(self, position: int) -> None:
        """Let the service say its last word on everything before `position`."""
        leg = self._leg
        if leg is None:
            return
        self._leg = None
        self._next = leg.end = max(position, leg.cursor)
        leg.fed.set()

    def speak(self, language: str) -> None:
        """Expect this language; the leg that runs ends here."""
        if language == self._languages[0]:
            return
        others = tuple(other for other in self._languages if other != language)
        self._languages = (language, *others)
        self._end_leg(self._tape.end)

    async def aclose(self) -> None:
        """End all legs at once."""
        if self._on_heard is None:
            return
        self._on_heard = None
        self._leg = None
        tasks = [leg.task for leg in self._legs if leg.task is not None and not leg.task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_WAIT_S)
        for leg in self._legs:
            leg.error = leg.error or closed()
            leg.finish()
        self._recogniser.closed(self)
