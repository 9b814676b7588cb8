"""What a test may not leave behind: threads, child processes, descriptors, named semaphores. Without /proc: threads.

multiprocessing's own resource tracker and fork server live as long as the process by design and are not counted; the
processes that the fork server started are.
"""

from __future__ import annotations

import contextlib
import gc
import os
import threading
import time
from dataclasses import dataclass
from multiprocessing import forkserver, resource_tracker
from pathlib import Path

import psutil

SETTLE = 4.0
"""Seconds within which what is ending must have ended."""
RUN = str(os.getpid())
"""In the names of this run's semaphores (see loopback/sitecustomize.py)."""
HAS_PROC = Path("/proc/self/fd").is_dir()


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    threads: frozenset[threading.Thread]
    children: frozenset[int]
    descriptors: frozenset[int]
    semaphores: frozenset[str]


def take() -> Snapshot:
    """What exists now. Cheap: it runs around every test."""
    return Snapshot(
        threads=frozenset(threading.enumerate()),
        children=_children(),
        descriptors=_descriptors(),
        semaphores=semaphores(),
    )


def since(before: Snapshot) -> list[str]:
    """One line for each thing that is there and was not at `before`; what is on its way out is waited for."""
    end = time.monotonic() + SETTLE
    for thread in frozenset(threading.enumerate()) - before.threads:
        thread.join(max(0.0, end - time.monotonic()))
    for pid in _children() - before.children:
        with contextlib.suppress(psutil.Error):
            psutil.Process(pid).wait(max(0.01, end - time.monotonic()))
    while (left := _more(take(), before)) and time.monotonic() < end:
        gc.collect()  # a socket or Popen object in a reference cycle is late, not lost; a leak stays
    return left


def _more(now: Snapshot, before: Snapshot) -> list[str]:
    return [
        *(f"thread {thread.name}" for thread in now.threads - before.threads if thread.is_alive()),
        *(f"process {pid}: {_command(pid)}" for pid in now.children - before.children),
        *(f"descriptor {number}: {_target(number)}" for number in sorted(now.descriptors - before.descriptors)),
        *(f"/dev/shm/{name}" for name in now.semaphores - before.semaphores),
    ]


def semaphores() -> frozenset[str]:
    """Names of multiprocessing's semaphores that this test run has made, in whatever process."""
    try:
        return frozenset(name for name in os.listdir("/dev/shm") if name.startswith(f"sem.crawlr-test-{RUN}-"))
    except OSError:
        return frozenset()


def clear_semaphores() -> None:
    """Remove all of them.

    After a SIGKILL nobody else may be left who could: multiprocessing's resource tracker may have died with the rest,
    or not yet have been told.
    """
    for name in semaphores():
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"/dev/shm/{name}")


def _children() -> frozenset[int]:
    if not HAS_PROC:
        return frozenset()
    direct = _children_of(os.getpid())
    own = {_pid(resource_tracker._resource_tracker, "_pid"), _pid(forkserver._forkserver, "_forkserver_pid")} & direct
    return frozenset((direct - own).union(*(_children_of(pid) for pid in own)))


def _children_of(pid: int) -> set[int]:
    found: set[int] = set()
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                found.update(map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split()))
    return found


def _descriptors() -> frozenset[int]:
    if not HAS_PROC:
        return frozenset()
    directory = os.open("/proc/self/fd", os.O_RDONLY)
    try:
        numbers = {int(name) for name in os.listdir(directory)} - {directory}
    finally:
        os.close(directory)
    kept = {
        _pid(resource_tracker._resource_tracker, "_fd"),
        _pid(forkserver._forkserver, "_forkserver_alive_fd"),
    }
    return frozenset(numbers - kept)


def _pid(owner: object, attribute: str) -> int:
    value = getattr(owner, attribute, None)
    return value if isinstance(value, int) else -1


def _command(pid: int) -> str:
    try:
        return (
            Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")[:200] or "zombie"
        )
    except OSError:
        return "gone"


def _target(descriptor: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return "closed meanwhile"
