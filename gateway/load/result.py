"""What a load run found: quality for the callers, limits met, and whether the run itself counts."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

MAX_CPU_SHARE = 0.7
"""Above this share of its core the generator measures itself."""
MAX_OWN_LATE_S = 0.01
PERCENTILES = (50.0, 95.0, 99.0, 99.9, 100.0)


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The nearest-rank percentile of ascending values; 0 where there are none."""
    if not ordered:
        return 0.0
    rank = max(1, -(-len(ordered) * percent // 100))
    return ordered[min(len(ordered), int(rank)) - 1]


@dataclass(frozen=True, slots=True)
class Spread:
    """Percentiles of a measure, in milliseconds, and how many values there were."""

    count: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Spread:
        """From values in seconds."""
        ordered = sorted(seconds)
        return cls(len(ordered), *(round(percentile(ordered, p) * 1000, 3) for p in PERCENTILES))

    def to_json(self) -> dict[str, float]:
        """By name."""
        return {
            "count": self.count,
            "p50": self.p50_ms,
            "p95": self.p95_ms,
            "p99": self.p99_ms,
            "p99.9": self.p999_ms,
            "max": self.max_ms,
        }


@dataclass(slots=True)
class Tally:
    """Everything counted while a load runs."""

    started: int = 0
    completed: int = 0
    active: int = 0
    most_active: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    connect_s: array[float] = field(default_factory=lambda: array("d"))
    first_audio_s: array[float] = field(default_factory=lambda: array("d"))
    late_s: array[float] = field(default_factory=lambda: array("d"))
    stalls_s: array[float] = field(default_factory=lambda: array("d"))
    own_late_s: array[float] = field(default_factory=lambda: array("d"))
    sent_frames: int = 0


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The outcome. `void`: reasons why the generator, not the server, was measured."""

    channel: str
    calls: int
    seconds: float
    started: int
    completed: int
    most_active: int
    refused: dict[str, int]
    failed: dict[str, int]
    connect: Spread
    first_audio: Spread
    frame_late: Spread
    frames_within_10_ms: float
    stalls: Spread
    own_late: Spread
    sent_frames: int
    cpu_share: float
    void: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Every call was let in and came to its end, and the run counts."""
        return not (self.void or self.refused or self.failed) and self.completed > 0

    @classmethod
    def of(
        cls, tally: Tally, channel: str, calls: int, seconds: float, cpu_share: float
    ) -> LoadResult:
        """Sum up."""
        own_late = Spread.of(tally.own_late_s)
        on_time = sum(1 for late in tally.late_s if late <= 0.01)
        void: list[str] = []
        if cpu_share > MAX_CPU_SHARE:
            void.append(f"the generator used {cpu_share:.0%} of its core")
        if own_late.p99_ms > MAX_OWN_LATE_S * 1000:
            void.append(f"the generator itself was {own_late.p99_ms:.1f} ms late (p99)")
        return cls(
            channel=channel,
            calls=calls,
            seconds=round(seconds, 3),
            started=tally.started,
            completed=tally.completed,
            most_active=tally.most_active,
            refused=dict(sorted(tally.refused.items())),
            failed=dict(sorted(tally.failed.items())),
            connect=Spread.of(tally.connect_s),
            first_audio=Spread.of(tally.first_audio_s),
            frame_late=Spread.of(tally.late_s),
            frames_within_10_ms=round(on_time / len(tally.late_s), 5) if tally.late_s else 0.0,
            stalls=Spread.of(tally.stalls_s),
            own_late=own_late,
            sent_frames=tally.sent_frames,
            cpu_share=round(cpu_share, 3),
            void=tuple(void),
        )

    def to_json(self) -> dict[str, Any]:
        """`result.json`; spreads in milliseconds."""
        return {
            "ok": self.ok,
            "void": list(self.void),
            "channel": self.channel,
            "calls": self.calls,
            "seconds": self.seconds,
            "started": self.started,
            "completed": self.completed,
            "most_active": self.most_active,
            "refused": self.refused,
            "failed": self.failed,
            "connect_ms": self.connect.to_json(),
            "first_audio_ms": self.first_audio.to_json(),
            "frame_late_ms": self.frame_late.to_json(),
            "frames_within_10_ms": self.frames_within_10_ms,
            "stalls_ms": self.stalls.to_json(),
            "generator_late_ms": self.own_late.to_json(),
            "generator_cpu_share": self.cpu_share,
            "sent_frames": self.sent_frames,
        }
