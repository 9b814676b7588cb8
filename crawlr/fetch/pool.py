"""The fetch threads: each takes a task, performs one exchange, gives its permit back and delivers what came of it.

From: the coordinator (acquire, submit). To: the coordinator's mailbox, one FetchDone for each task, whatever happens.
`acquire`, `submit`, `interrupt` and `close` are called in the main thread only.

A thread holds nothing and decides nothing: it never sleeps, retries, follows a redirect or asks for robots.txt. The one
thing that it does besides fetching is to parse a robots.txt, which a hostile site can make long.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct, structs

from crawlr import content_coding
from crawlr.errors import MachineError
from crawlr.fetch import robots
from crawlr.fetch.guard import local_fault
from crawlr.records import FetchedPage, FetchFailure, FetchTask, Outcome, TaskKind

__all__ = ["FetchDone", "FetchPool", "Fetcher"]

_CLOSE_SECONDS = 2.0


class Fetcher(Protocol):
    """Performs exchanges: fetch.http, fetch.curl, or what a caller of crawlr.crawl gives."""

    def fetch(self, task: FetchTask) -> FetchedPage | FetchFailure:
        """One exchange, blocking. Called by many threads at once. Trouble is a value; what is raised becomes one."""

    def interrupt(self) -> None:
        """Cut what is in flight: every fetch under way returns soon, a later one at once."""

    def close(self) -> None:
        """Give up what is held. No fetch is under way."""


class FetchDone(Struct, frozen=True, kw_only=True):
    """A task that is over. Made by a fetch thread, read by the coordinator. Times in seconds."""

    task: FetchTask
    result: FetchedPage | FetchFailure
    rules: robots.RobotsRules | None = None
    """Of a robots.txt with a status of 200-299, else None. When it cannot be decoded its answer has the fault."""
    waited: float = 0.0
    """From submit to the begin of the fetch."""
    busy: float = 0.0
    """From then to its end."""


class FetchPool:
    """At most `concurrency` exchanges at once. Threads are started as they are needed, and owned until `close`."""

    def __init__(self, *, fetcher: Fetcher, concurrency: int, deliver: Callable[[FetchDone], None]) -> None:
        self._fetcher = fetcher
        self._concurrency = concurrency
        self._deliver = deliver
        self._permits = threading.BoundedSemaphore(concurrency)  # taken by acquire, given back by the threads
        self._tasks: queue.SimpleQueue[tuple[FetchTask, float] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    @property
    def busy(self) -> int:
        """Permits that are taken: for exchanges under way or about to begin, or withheld from all."""
        return self._concurrency - self._permits._value

    def acquire(self) -> bool:
        """Take a permit without waiting; False when there is none. The thread gives it back before it delivers."""
        return self._permits.acquire(blocking=False)

    def release(self) -> None:
        """Give back a permit for which nothing was submitted."""
        self._permits.release()

    def submit(self, task: FetchTask) -> None:
        """Hand a task to a thread. The caller has acquired a permit for it.

        Raises MachineError when not one thread can be started.
        """
        if len(self._threads) < self.busy:
            self._start_thread()
        self._tasks.put((task, time.monotonic()))

    def interrupt(self) -> None:
        """Cut what is in flight. Each task is still delivered, as a failure that is local where it was cut."""
        self._fetcher.interrupt()

    def close(self) -> None:
        """End the threads: interrupts the fetcher, and waits two seconds for them together. The fetcher is not closed.

        A thread whose fetch does not end in that time is left behind, as a daemon; nothing is delivered any more.
        """
        self._deliver = _drop
        self._fetcher.interrupt()
        for _ in self._threads:
            self._tasks.put(None)
        end = time.monotonic() + _CLOSE_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._work, name=f"crawlr-fetch-{len(self._threads)}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            if not self._threads:
                raise MachineError(f"no fetch thread can be started: {error}") from error
            return  # the others will come to it
        self._threads.append(thread)

    def _work(self) -> None:
        fetcher, tasks = self._fetcher, self._tasks
        while True:
            item = tasks.get()
            if item is None:
                return
            task, submitted = item
            began = time.monotonic()
            result: FetchedPage | FetchFailure
            rules = None
            try:
                result = fetcher.fetch(task)
                if task.kind is TaskKind.ROBOTS and isinstance(result, FetchedPage) and 200 <= result.status < 300:
                    result, rules = _read_robots(result)
            except BaseException as error:  # noqa: BLE001  # a worker never raises across its border, nor does it end
                result = _failure(error)
            done = FetchDone(
                task=task, result=result, rules=rules, waited=began - submitted, busy=time.monotonic() - began
            )
            self._permits.release()
            self._deliver(done)


def _read_robots(result: FetchedPage) -> tuple[FetchedPage, robots.RobotsRules]:
    """The rules of a robots.txt; its answer gets a fault when its content coding is broken, as if it had broken off."""
    decoded = content_coding.decode(result.body, result.content_encoding, max_bytes=robots.MAX_BYTES + 1)
    fault = None if decoded.fault is None else Outcome(decoded.fault)
    is_cut = fault is Outcome.TRUNCATED and len(result.body) <= robots.MAX_BYTES  # and not by that limit
    if result.fault is None and (is_cut or fault is Outcome.DECODE_ERROR):
        result = structs.replace(result, fault=fault, error=decoded.error)
    return result, robots.parse(decoded.data)


def _failure(error: BaseException) -> FetchFailure:
    fault = local_fault(error)
    return FetchFailure(
        outcome=Outcome.PROTOCOL_ERROR,
        error=fault or f"{type(error).__name__}: {error}"[:200],
        is_local=fault is not None,
    )


def _drop(_: FetchDone) -> None:
    """Nobody reads the mailbox any more."""
