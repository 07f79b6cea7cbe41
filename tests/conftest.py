"""What every test is held to: nothing it started may outlive it."""

from __future__ import annotations

import asyncio
import gc
import inspect
import logging
import multiprocessing
import threading
from collections.abc import AsyncIterator, Iterator

import hypothesis
import psutil
import pytest
import structlog

SETTLE_S = 5.0

# A shared machine may be slow at any moment; a found example must be found again.
hypothesis.settings.register_profile(
    "project",
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("project")


def pytest_collection_finish() -> None:
    """Spare the collection after each test all that was imported: it takes most of its time."""
    gc.collect()
    gc.freeze()


def _children() -> set[int]:
    ours: set[int] = set()
    for child in psutil.Process().children(recursive=True):
        try:
            words = child.cmdline()
        except psutil.Error:
            continue
        # The interpreter's own helper of multiprocessing lives as long as the process.
        if "resource_tracker" not in " ".join(words) and child.status() != psutil.STATUS_ZOMBIE:
            ours.add(child.pid)
    return ours


def _threads() -> set[threading.Thread]:
    # What Python makes up for a native thread that once called it outlives that thread (to 3.12).
    made_up = (threading._MainThread, threading._DummyThread)  # type: ignore[attr-defined]
    return {t for t in threading.enumerate() if t.is_alive() and not isinstance(t, made_up)}


@pytest.fixture(autouse=True, scope="module")
def spare_what_stays() -> Iterator[None]:
    """Likewise what a file's tests have imported and leave in caches."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """Commands that run in a test's process set up logs; their standard error is closed later."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    if structlog.is_configured():
        structlog.reset_defaults()
        root.handlers[:] = handlers
        root.setLevel(level)


@pytest.fixture(autouse=True)
def nothing_leaks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves a thread or a process behind (sockets and files: ResourceWarning)."""
    threads, children = _threads(), _children()
    if inspect.iscoroutinefunction(getattr(request, "function", None)):
        request.getfixturevalue("no_task_leaks")
    yield
    gc.collect()
    waited = threading.Event()
    left_s = SETTLE_S
    while left_s > 0 and ((_threads() - threads) or (_children() - children)):
        multiprocessing.active_children()
        waited.wait(0.05)
        left_s -= 0.05
    new_threads = {t.name for t in _threads() - threads if not t.daemon}
    assert not new_threads, f"threads left behind: {sorted(new_threads)}"
    new_children = _children() - children
    assert not new_children, f"processes left behind: {sorted(new_children)}"


@pytest.fixture
async def no_task_leaks() -> AsyncIterator[None]:
    """Fail a test that leaves a task running on its loop."""
    before = asyncio.all_tasks()
    yield
    current = asyncio.current_task()
    for _ in range(50):
        left = {t for t in asyncio.all_tasks() - before if t is not current and not t.done()}
        if not left:
            return
        await asyncio.sleep(0.02)
    names = sorted(t.get_name() for t in left)
    raise AssertionError(f"tasks left behind: {names}")
