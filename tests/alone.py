"""The whole suite in several processes at once (pytest-xdist), with the tests that need the machine for themselves.

A test that measures, or counts on being scheduled soon, is marked `alone`: nothing else runs while it does. Two locks
do that: whoever wants in passes the door one by one, and then holds the room, together with others or alone. So a test
that waits for an empty room keeps newcomers at the door, and need not wait until all others are through.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_ROOM = pytest.StashKey[tempfile.TemporaryDirectory[str]]()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """For the whole suite one more than there are cores: many tests wait rather than work. For a part of it none."""
    files = [each for each in config.option.file_or_dir if not Path(each).is_dir()]
    if files or config.option.keyword or config.option.markexpr != "not long":
        return 0
    return int(os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS") or len(os.sched_getaffinity(0)) + 1)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """In the process that hands the tests out: every other one is told where the locks are."""
    stash = node.config.stash
    if _ROOM not in stash:
        stash[_ROOM] = tempfile.TemporaryDirectory(prefix="crawlr-tests-")
    node.workerinput["room"] = stash[_ROOM].name


def pytest_unconfigure(config: pytest.Config) -> None:
    if _ROOM in config.stash:
        config.stash[_ROOM].cleanup()


@pytest.hookimpl(wrapper=True, tryfirst=True)  # before the clock of the test's limit starts
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Run a test, alone or beside others."""
    worker = getattr(item.config, "workerinput", None)
    if worker is None:
        return (yield)
    how = fcntl.LOCK_SH if item.get_closest_marker("alone") is None else fcntl.LOCK_EX
    with _held(Path(worker["room"], "room"), how, door=Path(worker["room"], "door")):
        return (yield)


@contextlib.contextmanager
def _held(room: Path, how: int, *, door: Path) -> Iterator[None]:
    # lockf and not flock: a process that a test forks and leaves behind does not hold the lock too
    with room.open("a+") as inside:
        with door.open("a+") as outside:
            fcntl.lockf(outside, fcntl.LOCK_EX)
            fcntl.lockf(inside, how)
        yield
