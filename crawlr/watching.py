"""Shows how a crawl stands to those who look from outside: a text when SIGUSR1 asks, a file with --status.

From: control (status, from any thread), the operating system (SIGUSR1). To: stderr through `tell`, <out>.status.json. A
thread of its own, so that it works in every phase: while a state is loaded, and while outputs are written.

The file is whole or not there, and is written anew every second. At the end it stays, with state "finished"; after a
kill it stays as it was, and `written_at` is then more than some seconds ago. It is nothing that a crawl depends on:
what keeps it from being written is told once, and it is tried again.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from types import FrameType, TracebackType
from typing import Self

from crawlr.status import CrawlStatus, document, lines

__all__ = ["REFRESH_SECONDS", "Watch", "asked_by_signal"]

logger = logging.getLogger(__name__)

REFRESH_SECONDS = 1.0
_END_LIMIT = 5.0
"""Seconds for the last write: a network disk may have gone."""
_SIGNAL = getattr(signal, "SIGUSR1", None)
"""None on Windows, which has no such signal."""


class Watch:
    """Watches one crawl while its `with` block runs. `tell` prints a text; None: it is logged."""

    def __init__(self, look: Callable[[], CrawlStatus], *, tell: Callable[[str], None] | None = None) -> None:
        self._look = look
        self._tell = tell or (lambda text: logger.warning("status.told text=%s", text))
        self._path: str | None = None
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()  # filled by ask, write_to and __exit__
        self._is_asked = False
        self._is_over = False
        self._is_told = False
        self._thread = threading.Thread(target=self._watch, name="crawlr-watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over = True
        self._wake.put(None)
        self._thread.join(_END_LIMIT)

    def ask(self) -> None:
        """Have the status printed soon. A signal handler may call it; who asks faster than it is printed gets one."""
        if not self._is_asked:
            self._is_asked = True
            self._wake.put(None)

    def write_to(self, path: str) -> None:
        """Keep this file from now on."""
        self._path = path
        self._wake.put(None)

    def _watch(self) -> None:
        due = time.monotonic()
        while not self._is_over:
            if self._path is not None and time.monotonic() >= due:
                self._write(self._path)
                due = time.monotonic() + REFRESH_SECONDS
            with contextlib.suppress(queue.Empty):
                self._wake.get(timeout=None if self._path is None else max(0.0, due - time.monotonic()))
            if self._is_asked:
                self._is_asked = False
                self._tell("\n".join(lines(self._look())))
        if self._path is not None:
            self._write(self._path)

    def _write(self, path: str) -> None:
        written = {**document(self._look()), "written_at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
        folder, name = os.path.split(path)
        passing = os.path.join(folder, f".{name[:100]}.part")
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(passing)
            with open(os.open(passing, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "w", encoding="utf-8") as file:
                json.dump(written | {"pid": os.getpid()}, file)
                file.write("\n")
            os.replace(passing, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(passing)
            if not self._is_told:
                self._is_told = True
                self._tell(f"note: cannot write {path}: {error.strerror or error}; the crawl goes on")


@contextlib.contextmanager
def asked_by_signal(ask: Callable[[], None]) -> Iterator[None]:
    """While the block runs, SIGUSR1 calls `ask`, in the main thread and between any two of its steps.

    Main thread only. Afterwards the handler from before is back.
    """
    if _SIGNAL is None:
        yield
        return

    def receive(_number: int, _frame: FrameType | None) -> None:
        ask()

    before = signal.signal(_SIGNAL, receive)
    try:
        yield
    finally:
        signal.signal(_SIGNAL, signal.SIG_DFL if before is None else before)
