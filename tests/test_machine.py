"""What a crawl may use of a machine, in trees of /proc and /sys as containers and service managers make them."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from crawlr import machine

MIB = 1024 * 1024
HERE = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

V2 = "0::/\n"
NESTED = "0::/system.slice/crawl.service\n"
HYBRID = "5:cpuset:/\n4:cpu,cpuacct:/docker/1f\n3:memory:/docker/1f\n0::/docker/1f\n"


def tree(root: Path, groups: str, files: dict[str, str]) -> Path:
    """A root folder in which this process belongs to `groups`; `files` are below /sys/fs/cgroup."""
    for name, text in {
        "proc/self/cgroup": groups,
        **{f"sys/fs/cgroup/{name}": text for name, text in files.items()},
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("groups", "files", "cores"),
    [
        pytest.param(V2, {}, HERE, id="no file"),
        pytest.param(V2, {"cpu.max": "max 100000\n"}, HERE, id="no limit"),
        pytest.param(V2, {"cpu.max": "100000 100000\n"}, 1, id="one core"),
        pytest.param(V2, {"cpu.max": "20000 100000\n"}, 1, id="part of a core"),
        pytest.param(V2, {"cpu.max": "9900000 100000\n"}, HERE, id="more than there are"),
        pytest.param(V2, {"cpu.max": "110000 100000\n"}, min(2, HERE), id="a core and a bit"),
        pytest.param(V2, {"cpu.max": "nonsense\n"}, HERE, id="unreadable"),
        pytest.param(
            NESTED,
            {"system.slice/crawl.service/cpu.max": "max 100000", "system.slice/cpu.max": "50000 100000"},
            1,
            id="the group around it",
        ),
        pytest.param(NESTED, {"cpu.max": "100000 100000"}, 1, id="a container in a container"),
        pytest.param(
            HYBRID,
            {"cpu/docker/1f/cpu.cfs_quota_us": "50000", "cpu/docker/1f/cpu.cfs_period_us": "100000"},
            1,
            id="version 1",
        ),
        pytest.param(
            HYBRID,
            {"cpu/cpu.cfs_quota_us": "50000", "cpu/cpu.cfs_period_us": "100000"},
            1,
            id="version 1, in the container",
        ),
        pytest.param(
            HYBRID, {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, HERE, id="version 1, no limit"
        ),
    ],
)
def test_cores_of_the_quota(tmp_path: Path, groups: str, files: dict[str, str], cores: int) -> None:
    """The smallest quota of this process's groups and of those around them counts, rounded up to whole cores."""
    assert cores == machine.cores(tree(tmp_path, groups, files))


def test_no_control_groups(tmp_path: Path) -> None:
    """Where the system has none the affinity mask and the free memory count alone."""
    assert machine.cores(tmp_path) == HERE
    assert machine.memory(tmp_path) > MIB


@pytest.mark.parametrize(
    ("groups", "files", "room"),
    [
        pytest.param(V2, {"memory.max": str(50 * MIB), "memory.current": str(20 * MIB)}, 30 * MIB, id="version 2"),
        pytest.param(
            V2,
            {
                "memory.max": str(50 * MIB),
                "memory.current": str(20 * MIB),
                "memory.stat": f"anon 7\ninactive_file {5 * MIB}\n",
            },
            35 * MIB,
            id="cached files",
        ),
        pytest.param(V2, {"memory.max": str(50 * MIB), "memory.current": str(60 * MIB)}, 0, id="over the limit"),
        pytest.param(
            NESTED,
            {"system.slice/memory.max": str(9 * MIB), "system.slice/memory.current": "0\n"},
            9 * MIB,
            id="the group around it",
        ),
        pytest.param(
            HYBRID,
            {
                "memory/docker/1f/memory.limit_in_bytes": str(8 * MIB),
                "memory/docker/1f/memory.usage_in_bytes": "0",
                "memory/docker/1f/memory.stat": "inactive_file 5\ntotal_inactive_file 0\n",
            },
            8 * MIB,
            id="version 1",
        ),
    ],
)
def test_memory_of_the_group(tmp_path: Path, groups: str, files: dict[str, str], room: int) -> None:
    """What the group may still have counts, where that is less than the machine has."""
    assert room == machine.memory(tree(tmp_path, groups, files))


@pytest.mark.parametrize(
    "files",
    [
        {"memory.max": "max\n", "memory.current": "5"},
        {"memory.max": str(1 << 62), "memory.current": "5"},
        {"memory.max": "what?", "memory.current": "5"},
    ],
)
def test_memory_without_a_limit_is_that_of_the_machine(
    tmp_path: Path, files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group that sets no limit takes nothing away."""
    there = psutil.virtual_memory()
    monkeypatch.setattr(psutil, "virtual_memory", lambda: there)

    assert machine.memory(tree(tmp_path, V2, files)) == there.available
