"""A small fast HTTP server for a folder of pages, for machines without nginx: asyncio, a process a core.

From: bench.site, which starts and ends it. To: the crawl. GET only, connections stay open, files are read anew for
each answer (they are in the page cache). Answers some 8,000 requests a second and core; a delay holds up only the
answer it is for.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import os
import signal
import socket
from http.client import responses
from pathlib import Path
from urllib.parse import unquote

from bench.site import GONE

__all__ = ["Exchange", "main"]

_TYPES = {".html": "text/html", ".txt": "text/plain"}


class Exchange(asyncio.Protocol):
    """One connection: a request, an answer, the next."""

    def __init__(self, folder: Path, *, latency: float, error_status: int) -> None:
        self._folder = folder
        self._latency = latency
        self._error_status = error_status
        self._received = b""
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head, self._received = self._received[:end], self._received[end + 4 :]
            answer = self._answer(head)
            assert self._transport is not None
            if self._latency:
                self._loop.call_later(self._latency, self._transport.write, answer)
            else:
                self._transport.write(answer)

    def _answer(self, head: bytes) -> bytes:
        words = head.split(b" ", 2)
        target = unquote(words[1].partition(b"?")[0].decode("latin-1")) if len(words) > 2 else ""
        if words[0] != b"GET" or ".." in target:
            return _message(400, b"", "text/plain")
        if target.startswith(f"/{GONE}/"):
            return _message(self._error_status, b"", "text/html")
        path = self._folder / (target.lstrip("/") or "index.html")
        try:
            return _message(200, path.read_bytes(), _TYPES.get(path.suffix, "application/octet-stream"))
        except OSError:
            return _message(404, b"", "text/html")


def _message(status: int, body: bytes, content_type: str) -> bytes:
    head = (
        f"HTTP/1.1 {status} {responses.get(status, '')}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("ascii") + body


async def _serve(listener: socket.socket, make: functools.partial[Exchange], owner: int) -> None:
    """Serve until SIGTERM, or until the pipe `owner` is at its end: who started us has ended."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    if owner >= 0:
        loop.add_reader(owner, ended.set)
    server = await loop.create_server(make, sock=listener)
    await ended.wait()
    server.close()


def main() -> None:
    """Serve with one process a core until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m bench.own_server")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds")
    parser.add_argument("--error-status", type=int, default=404)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", given.port), backlog=4096)
    make = functools.partial(Exchange, given.folder, latency=given.latency, error_status=given.error_status)
    ours, mine = os.pipe()
    children = []
    for _ in range(given.processes - 1):
        pid = os.fork()
        if pid == 0:
            os.close(mine)
            asyncio.run(_serve(listener, make, ours))
            os._exit(0)
        children.append(pid)
    os.close(ours)
    asyncio.run(_serve(listener, make, -1))
    os.close(mine)  # the children see it
    for pid in children:
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
