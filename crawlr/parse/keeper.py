"""The one small thread that starts parse processes, notices their ends and clears up after them.

From: pool (orders through a queue). To: pool, by `deliver`: StartFailed, Ended (and what processes and executors tell
by themselves). Everything about processes that takes milliseconds is done here, so the main thread never waits for it.
"""

from __future__ import annotations

import collections
import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing import connection

from msgspec import Struct

from crawlr.parse import child
from crawlr.parse.parse_process import END_LIMIT, ParseProcess
from crawlr.parse.start_method import Birthplace

__all__ = ["Ended", "Keeper", "KeeperFailed", "StartFailed"]

logger = logging.getLogger(__name__)
DISMISS_LIMIT = 1.0
"""Seconds in which dismissed processes may finish what they have."""


class StartFailed(Struct, frozen=True):
    """A process that could not be started. Made by Keeper, read by pool."""

    process: ParseProcess
    reason: str


class Ended(Struct, frozen=True):
    """A process has ended, nobody asked it to. Made by Keeper, read by pool."""

    process: ParseProcess


class KeeperFailed(Struct, frozen=True):
    """A bug in the keeper's thread. Made by Keeper, raised by pool."""

    error: BaseException


class Keeper:
    """Owner of every parse process that is started through it; `close` ends them all."""

    def __init__(self, *, place: Birthplace, deliver: Callable[[object], None]) -> None:
        self._place = place
        self._deliver = deliver
        self._orders: collections.deque[tuple[str, ParseProcess | None]] = collections.deque()
        # The thread's own. A process is owned from its start until it is ended, and watched until its end is noticed.
        self._owned: set[ParseProcess] = set()
        self._watched: dict[int, ParseProcess] = {}  # sentinel -> process
        self._wake_reader, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        self._thread = threading.Thread(target=self._run, name="parse processes", daemon=True)
        self._thread.start()

    def start(self, process: ParseProcess) -> None:
        """Have it started; it greets, or StartFailed or Ended comes."""
        self._order("start", process)

    def end(self, process: ParseProcess) -> None:
        """Have it killed and cleared away; nothing is told about it any more."""
        self._order("end", process)

    def close(self, *, kill: bool) -> None:
        """Every process and thread is gone. Without `kill` they may first finish the call they are at, within a
        limit."""
        if self._wake < 0:
            return
        if self._thread.is_alive():  # else it failed, and has said so
            self._order("kill" if kill else "dismiss", None)
            self._thread.join(DISMISS_LIMIT + 2 * END_LIMIT)
        if self._thread.is_alive():  # it waits for a process to come up
            self._place.kill()
            self._thread.join(2 * END_LIMIT)
        os.close(self._wake)
        os.close(self._wake_reader)
        self._wake = self._wake_reader = -1

    def _order(self, what: str, process: ParseProcess | None) -> None:
        self._orders.append((what, process))
        with contextlib.suppress(BlockingIOError):  # full: it wakes anyway
            os.write(self._wake, b"o")

    def _run(self) -> None:
        # for what is started in this thread, multiprocessing's resource tracker too: a process that is still coming up
        # would end by them
        signal.pthread_sigmask(signal.SIG_BLOCK, child.NOT_FOR_PARSERS)
        try:
            self._keep()
        except BaseException as error:  # noqa: BLE001  # raised again in the main thread
            self._deliver(KeeperFailed(error))
            for process in self._owned:
                with contextlib.suppress(Exception):
                    process.end()
            self._place.close()

    def _keep(self) -> None:
        while True:
            ready = connection.wait([self._wake_reader, *self._watched])
            if self._wake_reader in ready:
                os.read(self._wake_reader, 4096)
                while self._orders:
                    what, process = self._orders.popleft()
                    if process is None:
                        self._end_all(is_patient=what == "dismiss")
                        return
                    if what == "start":
                        self._start(process)
                    else:
                        self._end(process)
            for sentinel in ready:
                process = self._watched.pop(sentinel, None) if isinstance(sentinel, int) else None
                if process is not None:
                    self._deliver(Ended(process))

    def _start(self, process: ParseProcess) -> None:
        try:
            sentinel = process.start(self._place.context)
        except Exception as error:  # whatever keeps a machine from starting processes is told, and tried again
            logger.debug("parse.start_failed slot=%s", process.slot, exc_info=True)
            process.end()
            self._deliver(StartFailed(process, f"{type(error).__name__}: {error}"))
        else:
            self._owned.add(process)
            self._watched[sentinel] = process

    def _end(self, process: ParseProcess) -> None:
        for sentinel, watched in self._watched.items():
            if watched is process:
                del self._watched[sentinel]
                break
        process.end()
        self._owned.discard(process)

    def _end_all(self, *, is_patient: bool) -> None:
        if is_patient:
            for process in self._owned:
                process.dismiss()
            until, alive = time.monotonic() + DISMISS_LIMIT, set(self._watched)
            while alive and (left := until - time.monotonic()) > 0:
                alive.difference_update(i for i in connection.wait(list(alive), left) if isinstance(i, int))
        for process in self._owned:
            process.kill()
        for process in self._owned:
            process.end()
        self._owned.clear()
        self._watched.clear()
        self._place.close()
