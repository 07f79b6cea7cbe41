"""A process in which app code leaves too much behind is told from a busy one."""

from __future__ import annotations

import mmap
import os
import resource
import sys
from collections.abc import Iterator

import pytest

from gateway.agent.wear import SHARE, TIMES, Wear

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.fixture
def few_descriptors() -> Iterator[int]:
    """A limit that a test can reach."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = len(os.listdir("/proc/self/fd")) + 64
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield limit
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_process_that_gives_back_what_it_takes_is_not_worn() -> None:
    wear = Wear(64)
    with mmap.mmap(-1, 256 << 20):
        assert [wear.worn() for _ in range(TIMES - 1)] == [""] * (TIMES - 1)
    assert [wear.worn() for _ in range(TIMES)] == [""] * TIMES


def test_memory_that_is_kept_wears_it_out() -> None:
    wear = Wear(64)
    with mmap.mmap(-1, 256 << 20):
        assert [wear.worn() for _ in range(TIMES)] == [""] * (TIMES - 1) + ["memory"]


def test_descriptors_that_are_kept_wear_it_out(few_descriptors: int) -> None:
    wear = Wear(1 << 20)
    missing = int(few_descriptors * SHARE) + 1 - len(os.listdir("/proc/self/fd"))
    kept = [os.open(os.devnull, os.O_RDONLY) for _ in range(missing)]
    try:
        assert [wear.worn() for _ in range(TIMES)][-1] == "descriptors"
    finally:
        for descriptor in kept:
            os.close(descriptor)
