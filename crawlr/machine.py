"""How much of this machine a crawl may use: cores and memory.

From: the system (affinity mask, psutil, and the control groups that containers and service managers set limits with).
To: api and coordinator, for the number of parser processes. Main thread; a call reads a few small files of the kernel,
0.4 ms.

A control group that cannot be read sets no limit: the numbers are advice, and the crawl works with wrong ones too.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["cores", "memory"]

_ROOT = Path("/")


def cores(root: Path = _ROOT) -> int:
    """Cores that this process may keep busy, at least 1. A quota of 1.5 cores counts as 2.

    `root` is where /proc and /sys are.
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for group in _groups("cpu", root):
        quota, period = _quota(group)
        if quota > 0 and period > 0:
            usable = min(usable, math.ceil(quota / period))
    return max(1, usable)


def memory(root: Path = _ROOT) -> int:
    """Bytes that this process and its children can still have without anything being swapped or killed."""
    import psutil

    room = int(psutil.virtual_memory().available)
    for group in _groups("memory", root):
        # the first two names are of version 2, the others of version 1
        most = _number(group / "memory.max", group / "memory.limit_in_bytes")
        used = _number(group / "memory.current", group / "memory.usage_in_bytes")
        if most is not None and used is not None:
            # cached files count as used, but go before anything is killed
            room = min(room, max(0, most - used + _cached(group / "memory.stat")))
    return room


def _groups(controller: str, root: Path) -> Iterator[Path]:
    """The folders of this process's control groups with that controller, each with those around it: all limits hold."""
    mounts = root / "sys/fs/cgroup"
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, controllers, place = line.split(":", 2)
        if controllers == "":
            mount = mounts  # version 2
        elif controller in controllers.split(","):
            mount = mounts / controller
        else:
            continue
        # In a container `place` may be the host's name for what is the top of the mount here: what isn't there is
        # passed over.
        inner = Path(place.lstrip("/"))
        for folder in (inner, *inner.parents):
            if (mount / folder).is_dir():
                yield mount / folder


def _quota(group: Path) -> tuple[float, float]:
    """(microseconds of CPU, in so many microseconds); (0, 0) without a limit."""
    words = _read(group / "cpu.max").split()  # "max 100000" or "150000 100000"
    if len(words) != 2:
        words = [_read(group / "cpu.cfs_quota_us"), _read(group / "cpu.cfs_period_us")]  # -1 without a limit
    try:
        return float(words[0]), float(words[1])
    except ValueError:
        return 0.0, 0.0


def _number(*paths: Path) -> int | None:
    """What stands in the first of these files that there is; None without one, or for "max"."""
    for path in paths:
        text = _read(path)
        if text:
            return int(text) if text.isdigit() else None
    return None


def _cached(path: Path) -> int:
    """Bytes of files of which nobody has read anything for long; in version 1 "total" has those of inner groups."""
    found = dict(line.split(" ", 1) for line in _read(path).splitlines() if " " in line)
    text = found.get("total_inactive_file", found.get("inactive_file", ""))
    return int(text) if text.isdigit() else 0


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
