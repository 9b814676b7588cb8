"""How long a person waits: from the command to its first request, to the end of a crawl of one page, and for --help.

    python -m bench.startup --runs 15

The clock starts before the process does, and stops when the first byte of a request is at a listener on loopback. Each
figure is the median of the runs, with the fastest beside it: on a busy machine that is the nearest to the truth.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from types import TracebackType
from typing import Self

from bench import tables
from bench.site import ROOT

__all__ = ["TARGETS", "FirstRequest", "main", "measure"]

TARGETS = {"first request": 0.35, "--help": 0.15}
"""Seconds."""
_LIMIT = 60.0
_PAGE = b"<!doctype html><title>a page</title><p>a page"
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (len(_PAGE), _PAGE)
_NO_ROBOTS = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


class FirstRequest:
    """A listener that answers a one-page site and notes when the first request came, in perf_counter's seconds."""

    def __enter__(self) -> Self:
        self.at: float | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._listen, name="bench site")
        self._connections: list[socket.socket] = []
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept
        self._listener.close()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._thread.join()

    @property
    def url(self) -> str:
        port: int = self._listener.getsockname()[1]
        return f"http://127.0.0.1:{port}/"

    def _listen(self) -> None:
        with contextlib.ExitStack() as stack:
            while True:
                try:
                    connection, _ = self._listener.accept()
                except OSError:
                    break
                self._connections.append(connection)
                answering = threading.Thread(target=self._answer, args=(connection,), name="bench connection")
                answering.start()
                stack.callback(answering.join)

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while request := connection.recv(65536):  # one request fits in it
                if self.at is None:
                    self.at = time.perf_counter()
                connection.sendall(_NO_ROBOTS if b"/robots.txt " in request else _ANSWER)


def measure(runs: int) -> dict[str, list[float]]:
    """Seconds of each run, by what was waited for."""
    found: dict[str, list[float]] = {"--help": [], "first request": [], "crawl of one page": []}
    with tempfile.TemporaryDirectory(prefix="crawlr-bench-") as folder:
        for _ in range(runs):
            found["--help"].append(_command("--help"))
            with FirstRequest() as site:
                began = time.perf_counter()
                whole = _command(site.url, "--quiet", "--fresh", "--out", os.path.join(folder, "out.json"))
                assert site.at is not None, "the crawl asked for nothing"
                found["first request"].append(site.at - began)
                found["crawl of one page"].append(whole)
    return found


def _command(*words: str) -> float:
    began = time.perf_counter()
    ran = subprocess.run(
        [sys.executable, "-m", "crawlr", *words],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=_LIMIT, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if ran.returncode != 0:
        raise RuntimeError(f"crawlr {' '.join(words)}: exit status {ran.returncode}: {ran.stderr[-500:]}")
    return time.perf_counter() - began


def _shown(found: dict[str, list[float]]) -> str:
    rows = []
    for name, each in found.items():
        figures = [f"{value:.3f}" for value in (statistics.median(each), min(each), max(each))]
        rows.append((name, *figures, f"under {TARGETS[name]}" if name in TARGETS else ""))
    return tables.table(("seconds to", "median", "fastest", "slowest", "target"), rows)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.startup", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--json", metavar="FILE")
    given = parser.parse_args()
    print(tables.machine())
    try:
        found = measure(given.runs)
    except RuntimeError as error:
        sys.exit(f"bench.startup: {error}")
    print(_shown(found))
    if given.json:
        tables.write_json(given.json, {"machine": tables.machine(), "seconds": found, "targets": TARGETS})


if __name__ == "__main__":
    main()
