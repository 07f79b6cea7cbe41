"""The figures of `GET /metrics`. Labels are codes of this project, never a caller's data."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector

LATE_S: Final = 0.010
"""A frame that leaves later than this after its due time counts as late."""
FRAME_BOUNDS_S: Final = (0.001, 0.002, 0.005, LATE_S, 0.02, 0.05, 0.1, 0.5, 1.0)
MAX_LABEL_VALUES: Final = 200

_CODE = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)*\Z")


class FrameLateness:
    """How late the media loop serves the frames of all calls: a histogram made for the hot path."""

    def __init__(self) -> None:
        self.counts = [0] * (len(FRAME_BOUNDS_S) + 1)
        self.seconds = 0.0

    def observe(self, late_s: float) -> None:
        """One tick of one call ran this late."""
        self.counts[bisect_left(FRAME_BOUNDS_S, late_s)] += 1
        self.seconds += late_s

    def collect(self) -> Iterator[Metric]:
        """For the registry."""
        names = [*(str(bound) for bound in FRAME_BOUNDS_S), "+Inf"]
        buckets = list(zip(names, accumulate(self.counts), strict=True))
        yield HistogramMetricFamily(
            "voice_gateway_frame_late_seconds",
            "How late the tick of a call ran after its due time",
            buckets=[(name, float(count)) for name, count in buckets],
            sum_value=self.seconds,
        )


class RecordFigures:
    """What has become of recordings: one family, read when it is asked for."""

    def __init__(self, figures: Callable[[], Mapping[str, int]]) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        """For the registry."""
        family = GaugeMetricFamily(
            "voice_gateway_records",
            "Records of calls since the start, frames they lost; waiting and full: now",
            labels=["state"],
        )
        for state, count in self._figures().items():
            family.add_metric([state], count)
        yield family


class Metrics:
    """All counters of one gateway, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._seen: dict[str, set[str]] = {}
        self._active = Gauge(
            "voice_gateway_calls_active", "Calls that hold a line", registry=self.registry
        )
        self._draining = Gauge(
            "voice_gateway_draining", "1 while no more calls are taken", registry=self.registry
        )
        self._admitted = Counter(
            "voice_gateway_calls_admitted", "Calls let in", ["dialect"], registry=self.registry
        )
        self._refused = Counter(
            "voice_gateway_calls_refused",
            "Webhooks and media sockets refused before a call",
            ["reason"],
            registry=self.registry,
        )
        self._ended = Counter(
            "voice_gateway_calls_ended", "Calls that are over", ["reason"], registry=self.registry
        )
        self._late = Counter(
            "voice_gateway_frames_late",
            "Ticks that ran more than 10 ms after their due time",
            registry=self.registry,
        )
        self._frames = FrameLateness()
        self.registry.register(self._frames)
        self._lag = Histogram(
            "voice_gateway_loop_lag_seconds",
            "How late the media loop runs a timer",
            buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0),
            registry=self.registry,
        )
        self._barge_ins = Counter(
            "voice_gateway_barge_ins", "Interruptions", ["by"], registry=self.registry
        )
        self._errors = Counter(
            "voice_gateway_errors", "Errors of calls", ["code"], registry=self.registry
        )

    def watch(self, active: Callable[[], int], draining: Callable[[], bool]) -> None:
        """Read these two figures at each scrape."""
        self._active.set_function(active)
        self._draining.set_function(draining)

    def watch_records(self, figures: Callable[[], Mapping[str, int]]) -> None:
        """Read these figures of the records at each scrape."""
        self.registry.register(RecordFigures(figures))

    def admitted(self, dialect: str) -> None:
        """A call was let in."""
        self._admitted.labels(dialect).inc()

    def refused(self, reason: str) -> None:
        """A webhook or a media socket was refused; `reason` is the error's code."""
        self._refused.labels(self._label("reason", reason)).inc()

    def ended(self, reason: str) -> None:
        """A call is over."""
        self._ended.labels(self._label("ended", reason)).inc()

    def frame_late(self, late_s: float) -> None:
        """A tick ran this late; called for every tick."""
        self._frames.observe(late_s)
        if late_s > LATE_S:
            self._late.inc()

    def loop_lag(self, lag_s: float) -> None:
        """A timer of the loop ran this late."""
        self._lag.observe(max(0.0, lag_s))

    def barge_in(self, by: str) -> None:
        """A caller interrupted by speech or by keys, or the runtime did."""
        self._barge_ins.labels(self._label("by", by)).inc()

    def error(self, code: str) -> None:
        """An error of a call."""
        self._errors.labels(self._label("code", code)).inc()

    def text(self) -> bytes:
        """Everything in the Prometheus text format."""
        return generate_latest(self.registry)

    def _label(self, name: str, value: str) -> str:
        """The value, or `other` where it is no code or there are too many already."""
        seen = self._seen.setdefault(name, set())
        if value in seen:
            return value
        if len(seen) >= MAX_LABEL_VALUES or len(value) > 64 or not _CODE.match(value):
            return "other"
        seen.add(value)
        return value
