"""How parse processes come into the world on this system: forked by a server of our own on Linux, spawned elsewhere.

From: pool, or the command, which prepares one before it loads what a crawl needs (once a crawl). To: keeper, whose
thread starts processes in the context. Whatever the program around crawlr chose with multiprocessing.set_start_method
stays as it is, and its `__main__` is not run again in a parse process.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import sys
import threading
import types
from multiprocessing import context
from typing import Any, ClassVar, Protocol

from crawlr.parse.forkserver import ForkServer, ForkServerContext, signals_held_off

__all__ = ["Birthplace", "birthplace", "modules_of"]


class Birthplace(Protocol):
    """What starts processes: a context for executors, and what must be ended after them."""

    context: context.BaseContext

    def prepare(self) -> None:
        """Begin with what the first process would wait for; returns at once. What goes wrong is told with that
        process."""

    def kill(self) -> None:
        """Make a start that is under way in another thread fail."""

    def close(self) -> None:
        """End what outlives the processes."""


class _Forkserver:
    def __init__(self, modules: tuple[str, ...]) -> None:
        self._server = ForkServer(modules)
        self.context: context.BaseContext = ForkServerContext(self._server)

    def prepare(self) -> None:
        with contextlib.suppress(OSError):  # the first process tries again
            self._server.start()

    def kill(self) -> None:
        self._server.kill()

    def close(self) -> None:
        self._server.close()


class _Spawn:
    def __init__(self) -> None:
        self.context: context.BaseContext = _SpawnContext()

    def prepare(self) -> None:
        """Nothing: a spawned process shares nothing with the next."""

    def kill(self) -> None:
        """Nothing: a spawned process is started without waiting for it."""

    def close(self) -> None:
        """Nothing outlives the processes."""


_main_is_hidden = threading.Lock()


class _SpawnProcess(context.SpawnProcess):
    def start(self) -> None:
        """Start, with an empty module in the place of `__main__`, so that the child finds no script to run again.

        multiprocessing looks for it in sys.modules and nowhere else. For these milliseconds another thread that looks
        there too (to pickle an object of `__main__`) misses it: the lesser evil, and on Linux not needed.
        """
        with _main_is_hidden, signals_held_off():
            main, method = sys.modules["__main__"], multiprocessing.get_start_method(allow_none=True)
            sys.modules["__main__"] = types.ModuleType("__main__")
            try:
                super().start()
            finally:
                sys.modules["__main__"] = main
                if method is None:  # to start a process fixes the program's default; it is the program's to choose
                    multiprocessing.set_start_method(None, force=True)


class _SpawnContext(context.SpawnContext):
    Process: ClassVar[Any] = _SpawnProcess


def birthplace(method: str | None = None, *, modules: tuple[str, ...] = ()) -> Birthplace:
    """The birthplace for "forkserver" or "spawn"; None: the one for this system. `modules`: what is worth preparing."""
    if method is None:
        method = "forkserver" if sys.platform == "linux" else "spawn"
    return _Forkserver(modules) if method == "forkserver" else _Spawn()


def modules_of(parser: str) -> tuple[str, ...]:
    """What is worth preparing for parse processes with this engine."""
    return ("crawlr.parse.worker", f"crawlr.parse.engine_{parser}")
