"""Makes parser processes die or hang on pages whose path begins with /poison/, as a bug in a native parser would.

Loaded by sitecustomize where CRAWLR_TEST_POISON is set. Wraps crawlr.parse.document.read, where a parser process reads
a page under its deadline, when that module is imported; everything else of the program is as it is.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.abc
import importlib.util
import multiprocessing.connection
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

TARGET = "crawlr.parse.document"


def install() -> None:
    sys.meta_path.insert(0, _Finder())


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def segfault() -> None:
    ctypes.string_at(0)


def leave() -> None:
    os._exit(0)


def hang() -> None:
    while True:
        time.sleep(60)


def spin() -> None:
    """Holds the interpreter's lock for ever: no other thread of the process runs again."""
    re.match(r"(a|aa)+$", "a" * 120 + "b")


def half() -> None:
    """Lives until its answer is half written, the worst moment for whoever reads it."""

    def send_half(self: multiprocessing.connection.Connection, buffer: bytes, write: object = os.write) -> None:
        os.write(self.fileno(), bytes(buffer)[: max(1, len(buffer) // 2)])
        kill()

    multiprocessing.connection.Connection._send = send_half  # type: ignore[attr-defined]


POISONS: dict[str, Callable[[], None]] = {
    function.__name__: function for function in (kill, segfault, leave, hang, spin, half)
}


def swallow(url: str) -> None:
    """Act as the page's path says: /poison/NAME always, /poison/NAME/once only the first time (in any process)."""
    _, first, name, *rest = [*urlsplit(url).path.split("/"), "", ""]
    if first != "poison" or name not in POISONS:
        return
    if rest[:1] == ["once"]:
        try:
            os.close(os.open(os.path.join(os.environ["CRAWLR_TEST_POISON"], name), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
    POISONS[name]()


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != TARGET:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.loader is not None
        load = spec.loader.exec_module

        def load_and_wrap(module: ModuleType) -> None:
            load(module)
            read = module.read

            @functools.wraps(read)
            def poisoned(body: bytes, *, url: str, **options: Any) -> Any:
                swallow(url)
                return read(body, url=url, **options)

            module.read = poisoned  # type: ignore[attr-defined]

        spec.loader.exec_module = load_and_wrap  # type: ignore[method-assign]
        return spec
