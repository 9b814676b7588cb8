"""Work for parse processes that does what a body says, to itself: crash, hang, grow, lie. Used by test_parse_pool.

A body is `command argument`; every body that does not end its process gives a PageResult with the body as its title.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from crawlr.parse import child
from crawlr.parse.parse_process import Work
from crawlr.parse.results import FAILED, PAGE, PageResult

MIB = 1024 * 1024
_hoard: list[bytes] = []


def prepare(fault: str | None = None) -> None:
    """The initializer. `fault`: how it fails."""
    if fault == "raise":
        raise ImportError("libxml2 is missing")
    if fault == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "hang":
        time.sleep(1000)


def obey(batch: child.Batch) -> child.Answer:
    rows = []
    for index, (number, _url, _kind, body, _type, _coding) in enumerate(batch):
        child.begin_page(index)
        assert isinstance(number, int)
        assert isinstance(body, bytes)
        command, _, argument = body.decode().partition(" ")
        rows.append(_row(number, body.decode()[:50], error=str(_COMMANDS[command](argument))))
    return False, [], rows, child.rss()


def obey_badly(batch: child.Batch) -> child.Answer:
    """The sample page kills the process: parsing can't work on this machine."""
    os.kill(os.getpid(), signal.SIGSEGV)
    return obey(batch)


def obey_with_a_bug(batch: child.Batch) -> child.Answer:
    """As worker.parse_batch tells of an exception that is a page's or our own."""
    rows: list[tuple[object, ...]] = []
    for number, url, *_ in batch:
        if url == "http://a.test/":  # the sample
            assert isinstance(number, int)
            rows.append(_row(number, "", error=None))
        else:
            rows.append((FAILED, number, PAGE, "parser_crash", "KeyError: 'x'", "Traceback of the bug"))
    return False, [], rows, child.rss()


def work(*, fault: str | None = None, page_seconds: float = 5.0, memory: int = 512 * MIB) -> Work:
    return Work(
        initializer=prepare,
        arguments=(fault,),
        function=obey,
        sample=(0, "http://a.test/", PAGE, b"ok", None, None),
        page_seconds=page_seconds,
        memory=memory,
    )


def _row(number: int, title: str, *, error: str | None) -> tuple[object, ...]:
    result = PageResult(
        id=number,
        outcome="ok",
        error=error,
        title=title,
        canonical=None,
        robots=(),
        encoding=None,
        bytes=len(title),
        targets=b"",
        flags=b"",
        body_hash=0,
        decode_us=0,
        parse_us=0,
        resolve_us=0,
    )
    return (PAGE, *result)


def _ok(_: str) -> object:
    return os.getpid()


def _die(name: str) -> object:
    os.kill(os.getpid(), getattr(signal, name))
    return None


def _die_once(path: str) -> object:
    """The first process to see it dies; later ones live."""
    if not Path(path).exists():
        Path(path).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def _segfault(_: str) -> object:
    return ctypes.string_at(0)


def _spin(_: str) -> object:
    """Busy for hours inside one call of C code, without ever giving the GIL away."""
    return re.match(r"(a+)+$", "a" * 64 + "b")


def _sleep(seconds: str) -> object:
    time.sleep(float(seconds))
    return os.getpid()


def _stop(_: str) -> object:
    """Stand still as a whole, so that nothing in this process can notice."""
    os.kill(os.getpid(), signal.SIGSTOP)
    return None


def _wait(path: str) -> object:
    """Stand still until the test opens this named pipe for writing."""
    with open(path, "rb") as pipe:
        pipe.read()
    return os.getpid()


def _grow(mib: str) -> object:
    return len(bytearray(int(mib) * MIB))


def _keep(mib: str) -> object:
    _hoard.append(os.urandom(1) * (int(mib) * MIB))
    return os.getpid()


def _die_sending(after: str) -> object:
    """The next result is cut off after so many bytes, as by the kernel's memory killer."""

    def send(self: Connection, buffer: bytes, write: Callable[[int, bytes], int] = os.write) -> None:
        os.write(self.fileno(), bytes(buffer)[: int(after)])
        os.kill(os.getpid(), signal.SIGKILL)

    Connection._send = send  # type: ignore[attr-defined]
    return "x" * 100_000


def _lie(_: str) -> object:
    """An answer that cannot be pickled."""

    class Unheard:
        def __str__(self) -> str:
            return self  # type: ignore[return-value]

    return Unheard()


def _raise(_: str) -> object:
    raise SystemExit("not a value")


_COMMANDS: dict[str, Callable[[str], object]] = {
    "ok": _ok,
    "die": _die,
    "die-once": _die_once,
    "segfault": _segfault,
    "spin": _spin,
    "sleep": _sleep,
    "stop": _stop,
    "wait": _wait,
    "grow": _grow,
    "keep": _keep,
    "die-sending": _die_sending,
    "lie": _lie,
    "raise": _raise,
}
