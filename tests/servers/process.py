"""A server in a process of its own: what it saw survives a crawl that is killed, and it costs that crawl no time."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from pathlib import Path

from tests.servers.wire import Request

ROOT = Path(__file__).resolve().parents[2]
START_LIMIT = 20.0


class ServerProcess:
    """`python -m tests.servers.NAME ARGS`, ended by closing its stdin, which also happens when the tests die."""

    def __init__(self, name: str, *args: str, log: Path) -> None:
        self.log = log
        log.touch()
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"tests.servers.{name}", "--log", os.fspath(log), *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            start_new_session=True,  # a signal for the crawl's group never reaches the server
        )
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as ready:
            ready.register(self._process.stdout, selectors.EVENT_READ)
            has_line = bool(ready.select(START_LIMIT))
        line = self._process.stdout.readline() if has_line else b""
        assert line, f"tests.servers.{name} did not start"
        self.ports: dict[str, int] = json.loads(line)

    @property
    def pid(self) -> int:
        return self._process.pid

    def url(self, target: str = "/", *, origin: str = "") -> str:
        return f"http://127.0.0.1:{self.ports[origin]}{target}"

    def position(self) -> int:
        """Where the log ends now: give it to `hits` to see only what came later."""
        return self.log.stat().st_size

    def hits(self, since: int = 0, *, origin: str | None = None) -> list[Request]:
        """Requests in order of arrival, of one origin or of all."""
        with self.log.open("rb") as log:
            log.seek(since)
            rows = [json.loads(line) for line in log]
        return [
            Request(headers=tuple(map(tuple, row.pop("headers"))), **{k: v for k, v in row.items() if k != "origin"})
            for row in rows
            if origin is None or row["origin"] == origin
        ]

    def targets(self, since: int = 0, *, origin: str | None = None) -> list[str]:
        return [hit.target for hit in self.hits(since, origin=origin) if hit.path != "/robots.txt"]

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        self._process.stdout.close()
