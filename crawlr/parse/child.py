"""What a parse process owes to the pool and to the machine, whatever work it does: to be seen, to be bounded, to end.

From: the executor of parse_process (`enter` once, then `greet`, then `run` for every batch). To: plain tuples through
the executor, and the mark in a page of memory shared with the main process, which outlives a crash. Runs in a parse
process. Page limits: `begin_page` starts the clock of one page; a page over its time ends the process, even while it
holds the GIL.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import mmap
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from typing import NamedTuple

__all__ = [
    "BETWEEN",
    "MARK_BYTES",
    "NICENESS",
    "NOT_FOR_PARSERS",
    "PAGE",
    "TIME_IS_UP",
    "Answer",
    "Batch",
    "Mark",
    "Work",
    "begin_page",
    "enter",
    "greet",
    "ignore_signals",
    "read_mark",
    "rss",
    "run",
]

MARK_BYTES = mmap.PAGESIZE
"""The mark has the first page of the shared file; what the process says last (its stderr) stands behind it."""
NOT_FOR_PARSERS = frozenset({signal.SIGINT, signal.SIGUSR1})
"""What a terminal's Ctrl-C or `kill -USR1 -- -GROUP` sends to every process of a crawl; only the main one is meant."""
BETWEEN, PAGE = 0, 1
TIME_IS_UP = signal.SIGALRM
"""What ends a process whose page takes too long. The timer is the kernel's: it needs no thread, costs under a
microsecond to wind, and ends a process that never gives the GIL back."""

NICENESS = 5
"""Where cores are short the process that feeds the parsers goes first. Were all alike, the parsers would have nothing
to do while it waits for a core: 5% of a crawl of heavy pages on two."""

Answer = tuple[bool, list[tuple[str, str]], list[tuple[object, ...]], int]
"""What the work returns: table_was_reset, new_links, results, rss_bytes."""
Batch = Sequence[tuple[object, ...]]
"""What the work gets: rows (id, url, kind "page" or "sitemap", body, content_type, content_encoding)."""
Work = Callable[[Batch], Answer]


class Mark(NamedTuple):
    """Where a process is: `call` is the number of the batch it took last (0: none), `page` its index there, if state is
    PAGE."""

    call: int
    state: int
    page: int


_mark: mmap.mmap | None = None
_call = 0
_work: Work | None = None
_page_seconds = 0.0
_broken: str | None = "the process was not prepared"


def enter(shared: Connection, payload: bytes, *, page_seconds: float, memory: int) -> None:
    """Prepare this process. Never raises: what went wrong is told by `greet`.

    `shared` carries the descriptor of the shared file. `payload` is pickled: (initializer, its arguments, work); it is
    opened here so that a failing import is heard. `memory`: bytes beyond what the process has when it is ready.
    """
    global _broken, _mark, _page_seconds, _work
    try:
        _mark = mmap.mmap(shared.fileno(), MARK_BYTES)
        _keep_off_terminal(shared.fileno())
        shared.close()
        threading.Thread(target=_end_with_parent, name="parent watch", daemon=True).start()
        faulthandler.enable()
        signal.signal(TIME_IS_UP, signal.SIG_DFL)
        faulthandler.register(TIME_IS_UP, chain=True)  # its last words say where the page was
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {TIME_IS_UP})
        os.nice(NICENESS)
        initializer, arguments, _work = pickle.loads(payload)  # noqa: S301  # from our own parent
        initializer(*arguments)
        gc.collect()
        gc.freeze()
        _limit_memory(memory)
        _page_seconds = page_seconds
        _broken = None
    except BaseException as error:  # noqa: BLE001  # greet tells it
        _broken = f"{type(error).__name__}: {error}"[:500]


def greet(sample: Batch) -> tuple[str | None, int]:
    """(why this process is of no use or None, resident bytes); it has proved its use on `sample`, a batch without
    links."""
    if _broken is None:
        try:
            _, (_, new_links, results, _), _ = run(0, sample)
        except BaseException as error:  # noqa: BLE001  # whatever it is, this process is of no use
            return f"{type(error).__name__}: {error}"[:500], rss()
        if new_links or len(results) != len(sample):
            return f"the sample page gave {results!r}"[:500], rss()
    return _broken, rss()


def run(call: int, batch: Batch) -> tuple[float, Answer, float]:
    """(seconds it took, what the work gives for the batch, seconds of CPU it took)."""
    global _call
    assert _work is not None
    started, cpu = time.perf_counter(), time.thread_time()
    _call = call
    _set_mark(BETWEEN, 0)
    try:
        answer = _work(batch)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        _set_mark(BETWEEN, 0)
    return time.perf_counter() - started, answer, time.thread_time() - cpu


def begin_page(index: int) -> None:
    """From here on a hang or a death is the fault of page `index` of the batch."""
    _set_mark(PAGE, index)
    signal.setitimer(signal.ITIMER_REAL, _page_seconds)


def rss() -> int:
    """Resident bytes of this process; on systems without /proc the most it ever had."""
    if sys.platform != "linux":
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return _statm()[1]


def read_mark(shared: mmap.mmap) -> Mark:
    """Where the process with this shared page is, or was when it died. Main process."""
    word = int.from_bytes(shared[:8], "little")
    return Mark(word >> 24, word >> 20 & 0xF, word & 0xFFFFF)


def _set_mark(state: int, index: int) -> None:
    if _mark is not None:
        # One word, so that a death finds it whole.
        _mark[:8] = (_call << 24 | state << 20 | index).to_bytes(8, "little")


def ignore_signals() -> None:
    """What the terminal or a group is sent for the main process passes this one by."""
    for number in NOT_FOR_PARSERS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, NOT_FOR_PARSERS)


def _keep_off_terminal(words: int) -> None:
    """Ctrl-C, core files and the terminal are the main process's; what this one says last goes to the shared file."""
    ignore_signals()
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    os.dup2(words, 2)
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(9)


def _limit_memory(allowance: int) -> None:
    """Let the address space grow by `allowance` from what it is now. Only Linux enforces such a limit."""
    if sys.platform != "linux":
        return
    import resource

    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = _statm()[0] + allowance
    resource.setrlimit(resource.RLIMIT_AS, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def _statm() -> tuple[int, int]:
    """Bytes of address space and of resident memory that this process has. Linux."""
    with open("/proc/self/statm", "rb", buffering=0) as statm:
        space, resident = statm.read(128).split()[:2]
    return int(space) * mmap.PAGESIZE, int(resident) * mmap.PAGESIZE
