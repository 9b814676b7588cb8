"""One parse process, from its start to its end, and the executor in front of it.

From: keeper (`start`, `end`: its thread) and pool (all else: main thread). To: the process, through a
ProcessPoolExecutor with one worker; its answers go to `deliver` as messages. An executor is never used again after
trouble: a new process is a new ParseProcess, so a late answer of an old one is told by its owner.

Everything private of the standard library that the main process needs for this is in `_internals`.
"""

from __future__ import annotations

import collections
import contextlib
import fcntl
import mmap
import os
import pickle
import signal
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from functools import partial
from multiprocessing import connection, context
from multiprocessing.process import BaseProcess

from msgspec import Struct, field

from crawlr.parse import child
from crawlr.records import RawBody

__all__ = ["Call", "CallDone", "Greeted", "LinkTable", "ParseProcess", "Work"]

END_LIMIT = 1.0
"""Seconds in which a killed process, and after it the executor's thread, must have ended."""
PIPE_BYTES = 1024 * 1024
DYING_LIMIT = 0.2
"""Seconds to wait for the status of a process whose pipe is at its end."""


class Work(Struct, frozen=True, kw_only=True):
    """What a parse process does: `initializer(*arguments)` once, then `function(batch)` for each batch."""

    initializer: Callable[..., None]
    arguments: tuple[object, ...]
    function: child.Work
    sample: tuple[object, ...]
    """A batch item without links: a process must do this before it gets anything to do, so that a machine on which
    parsing cannot work is told from a page that kills its parser."""
    page_seconds: float
    memory: int
    modules: tuple[str, ...] = ()
    """What a fork server should have imported."""


class LinkTable(Struct):
    """Number in one parse process's link table -> URL id. Filled by the coordinator, in the order of new_links."""

    ids: list[int] = field(default_factory=list)


class Call(Struct, frozen=True):
    """A batch on its way: what was sent, so that it can be sent again."""

    number: int
    pages: tuple[RawBody, ...]
    is_alone: bool
    """A page under suspicion: nothing else may be given to the process before it is done."""
    is_last_try: bool
    """It has ended a process before: what ends another one is guilty."""


class Greeted(Struct, frozen=True):
    """The first word of a process, or the failure to get one. Made by ParseProcess, read by pool."""

    process: ParseProcess
    future: Future[tuple[str | None, int]]


class CallDone(Struct, frozen=True):
    """The end of a call, good or bad. Made by ParseProcess (in the executor's thread), read by pool."""

    process: ParseProcess
    call: int
    future: Future[tuple[float, child.Answer, float]]


class ParseProcess:
    """A process that parses. Public attributes belong to the main thread, which alone reads and writes them."""

    def __init__(self, *, slot: int, work: Work, deliver: Callable[[object], None]) -> None:
        self.slot = slot
        self.table = LinkTable()
        self.calls: collections.deque[Call] = (
            collections.deque()
        )  # filled by send, emptied by pool; the first is under way
        self.deadline: float | None = (
            None  # when the pool looks whether it still moves; None: nothing is expected of it
        )
        self.began = 0.0  # when the first of `calls` did, if there is one
        self.seen: child.Mark | None = None  # where it was when the pool looked last
        self.pages_sent = 0
        self.pages_done = 0
        self.first_rss = 0
        self.is_worn = False  # its replacement is on the way
        self._work = work
        self._deliver = deliver
        self._calls_sent = 0
        self._executor: ProcessPoolExecutor | None = None
        self._process: BaseProcess | None = None
        self._manager: threading.Thread | None = None
        self._shared: mmap.mmap | None = None
        self._words = -1

    # keeper's thread

    def start(self, place: context.BaseContext) -> int:
        """Start the process; Greeted follows. Returns the descriptor that is ready when the process has ended.

        Blocks for the milliseconds until the process exists. OSError, EOFError, ... when the machine cannot start one.
        """
        work = self._work
        self._words = _shared_file()
        self._shared = mmap.mmap(self._words, child.MARK_BYTES)
        payload = pickle.dumps((work.initializer, work.arguments, work.function))
        # A Connection is the public way to take a descriptor along.
        ferry = connection.Connection(os.dup(self._words), readable=False)
        with ferry:
            self._executor = ProcessPoolExecutor(
                max_workers=1,
                mp_context=place,
                initializer=partial(child.enter, page_seconds=work.page_seconds, memory=work.memory),
                initargs=(ferry, payload),
            )
            greeting = self._executor.submit(child.greet, [work.sample])
        self._process, self._manager = _internals(self._executor)
        greeting.add_done_callback(lambda future: self._deliver(Greeted(self, future)))
        return self._process.sentinel

    def end(self) -> None:
        """The process, its executor's thread and descriptors are gone. Blocks for milliseconds, at most 2 *
        END_LIMIT."""
        self.kill()
        if self._process is not None:
            self._process.join(END_LIMIT)
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = None
        if self._manager is not None:
            self._manager.join(END_LIMIT)
            self._manager = None
        if self._process is not None:
            with contextlib.suppress(ValueError):  # it would not die: its descriptors stay, it ends when we do
                self._process.close()
        if self._shared is not None:
            self._shared.close()
            self._shared = None
        if self._words >= 0:
            os.close(self._words)
            self._words = -1

    def dismiss(self) -> None:
        """Let it finish what it has and end by itself."""
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)

    def kill(self) -> None:
        """End the process at once. From any thread."""
        if self._process is not None:
            with contextlib.suppress(ValueError, OSError):  # closed already
                self._process.kill()

    # main thread

    def send(self, pages: tuple[RawBody, ...], *, is_alone: bool = False, is_last_try: bool = False) -> bool:
        """Hand pages over; CallDone follows. False: the executor is broken, its process's end will be told."""
        assert self._executor is not None
        number = self._calls_sent = self._calls_sent + 1
        items = [
            (page.id, page.url, str(page.kind.value), page.body, page.content_type, page.content_encoding)
            for page in pages
        ]
        try:
            future = self._executor.submit(child.run, number, items)
        except RuntimeError:  # BrokenProcessPool is one
            return False
        self.calls.append(Call(number, pages, is_alone, is_last_try))
        self.pages_sent += len(pages)
        future.add_done_callback(lambda done: self._deliver(CallDone(self, number, done)))
        return True

    def mark(self) -> child.Mark:
        """Where it is, or was when it died."""
        assert self._shared is not None
        return child.read_mark(self._shared)

    def last_words(self) -> str:
        """What it wrote to its stderr, cut to 64 KiB: a traceback of faulthandler, of the interpreter, a C library's
        abort."""
        if self._words < 0:
            return ""
        return os.pread(self._words, 65536, child.MARK_BYTES).decode("utf-8", "replace")

    def is_out_of_time(self) -> bool:
        """Whether the clock of its page has ended it."""
        return self._status() == -child.TIME_IS_UP

    def how_it_ended(self) -> str | None:
        """How the process ended, as in "was killed by SIGSEGV" or "ended with status 1"; None while it lives."""
        code = self._status()
        if code is None:
            return None
        if code < 0:
            try:
                return f"was killed by {signal.Signals(-code).name}"
            except ValueError:
                return f"was killed by signal {-code}"
        return f"ended with status {code}"

    def _status(self) -> int | None:
        """Its exit status, below zero for a signal; None while it lives.

        Its pipe may be at its end some microseconds before its status is there: a dying process is waited for.
        """
        if self._process is None:
            return None
        if self._executor is not None and self._executor._broken:
            self._process.join(DYING_LIMIT)
        return self._process.exitcode


def _shared_file() -> int:
    """A descriptor of a file without a name: the mark's page, filled so that no disk can lack the room, then the last
    words."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("crawlr-parse-process")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.write(descriptor, bytes(child.MARK_BYTES))
    return descriptor


def _internals(executor: ProcessPoolExecutor) -> tuple[BaseProcess, threading.Thread | None]:
    """(its one process, its thread); and this process's end of its result pipe is shut for writing.

    The executor keeps that end open without using it. Shut, a process that dies while it writes a result is the end of
    the pipe, and the executor fails its futures; open, its thread would wait for the rest for ever (3.11 to 3.13).
    """
    [process] = executor._processes.values()
    with contextlib.suppress(AttributeError, OSError):  # not Linux; more than this user may have
        # A batch fits in, so it is written in one go; by 64 KiB at a time its thread wants the GIL again and again, and
        # the process waits for it (a tenth more pages a second, measured with the JDK's documentation).
        fcntl.fcntl(executor._call_queue._writer.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)  # type: ignore[attr-defined]
    executor._result_queue._writer.close()  # type: ignore[attr-defined]
    return process, executor._executor_manager_thread  # type: ignore[return-value]  # typeshed has another type
