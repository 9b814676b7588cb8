"""What the servers share: keep-alive HTTP/1.1 on raw sockets, one thread a connection, that writes what it is told.

From: a crawl under test. To: a list of requests in memory or a log file opened O_APPEND. Runs in threads of the test's
process (`local`) or as the main program of its own process (`misbehaving`, `graph`).
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import ssl
import struct
import sys
import threading
import time
from dataclasses import dataclass
from http.client import responses

ACCEPT_BACKLOG = 256
MAX_HEAD = 256 * 1024
IDLE_LIMIT = 60.0
"""Seconds a connection may be idle; only against tests that forget to close."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request as it came over the wire."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    connection: int
    """Number of its connection, from 1, over all listeners of the server."""
    nth: int
    """Place of the request on its connection, from 1."""
    at: float
    """time.monotonic(), which all processes of a machine share on Linux."""
    client_port: int = 0

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]

    def header(self, name: str) -> str | None:
        """The first header of that name, None when there is none."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


class Wire:
    """The socket under one request, for answers that write their own bytes."""

    def __init__(self, server: WireServer, sock: socket.socket, origin: str) -> None:
        self.server = server
        self.sock = sock
        self.origin = origin

    def send(self, *parts: bytes | str) -> None:
        self.sock.sendall(b"".join(part.encode("latin-1") if isinstance(part, str) else part for part in parts))

    def pause(self, seconds: float) -> bool:
        """Wait as a slow server would. False when the client has gone or the server is closing: stop then."""
        if self.server.closing.wait(0):
            return False
        self.sock.settimeout(seconds)
        try:
            return self.sock.recv(1, socket.MSG_PEEK) != b"" and not self.server.closing.wait(seconds)
        except TimeoutError:
            return not self.server.closing.is_set()
        except OSError:
            return False
        finally:
            with contextlib.suppress(OSError):
                self.sock.settimeout(IDLE_LIMIT)

    def reset(self) -> None:
        """End the connection with RST instead of FIN."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def answer(
        self,
        body: bytes | str = b"",
        *,
        status: int = 200,
        headers: tuple[tuple[str, str], ...] = (),
        method: str = "GET",
    ) -> None:
        """Send an ordinary answer with a Content-Length; text/html unless a Content-Type is among the headers."""
        content = body.encode() if isinstance(body, str) else body
        lines = [f"HTTP/1.1 {status} {responses.get(status, 'Status')}"]
        lines += [f"{name}: {value}" for name, value in headers]
        if not any(name.lower() == "content-type" for name, _ in headers):
            lines.append("Content-Type: text/html; charset=utf-8")
        if status >= 200 and status not in (204, 304):
            lines.append(f"Content-Length: {len(content)}")
        else:
            content = b""
        self.send("\r\n".join(lines), "\r\n\r\n", b"" if method == "HEAD" else content)


class WireServer:
    """Listens on one loopback port per origin name and answers each request by `respond`, which a subclass gives."""

    def __init__(
        self,
        *,
        origins: tuple[str, ...] = ("",),
        host: str = "127.0.0.1",
        log: str | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.host = host
        self._tls = tls
        self.requests: list[Request] = []
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)
        self._connections = 0
        self._sockets: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600) if log else None
        self._listeners = {name: socket.create_server((host, 0), backlog=ACCEPT_BACKLOG) for name in origins}
        self.ports = {name: listener.getsockname()[1] for name, listener in self._listeners.items()}
        for name, listener in self._listeners.items():
            self._run(self._accept, name, listener)

    def respond(self, request: Request, wire: Wire) -> bool:
        """Answer one request; True keeps the connection open."""
        raise NotImplementedError

    def origin(self, name: str = "") -> str:
        return f"http{'s' if self._tls else ''}://{self.host}:{self.ports[name]}"

    def wait_for_requests(self, count: int, *, path: str | None = None, limit: float = 20.0) -> None:
        """Return once `count` requests have come since the beginning, for `path` or for any; fails after the limit."""

        def number() -> int:
            return sum(1 for request in self.requests if path is None or request.path == path)

        with self._arrived:
            has_come = self._arrived.wait_for(lambda: number() >= count, limit)
            assert has_come, f"{number()} of {count} requests came within {limit} s"

    def close(self) -> None:
        """End every thread and connection; returns when they have ended."""
        self.closing.set()
        with self._lock:
            open_sockets = [*self._listeners.values(), *self._sockets]
        for sock in open_sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            if sock in self._listeners.values():
                sock.close()
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join(5)
        left = [thread.name for thread in threads if thread.is_alive()]
        assert not left, f"server threads did not end: {left}"
        if self._log is not None:
            os.close(self._log)

    def _run(self, target: object, *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)  # type: ignore[arg-type]  # bound methods
        with self._lock:
            self._threads = [known for known in self._threads if known.is_alive() or known.ident is None]
            self._threads.append(thread)
        thread.start()

    def _accept(self, origin: str, listener: socket.socket) -> None:
        while not self.closing.is_set():
            try:
                sock, peer = listener.accept()
            except OSError:
                return
            with self._lock:
                self._connections += 1
                number = self._connections
                self._sockets.add(sock)
            if self.closing.is_set():
                sock.close()
                return
            self._run(self._converse, origin, sock, number, peer[1])

    def _converse(self, origin: str, sock: socket.socket, number: int, client_port: int) -> None:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(IDLE_LIMIT)
            if self._tls is not None:
                with self._lock:
                    self._sockets.discard(sock)
                    sock = self._tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
                    self._sockets.add(sock)
                sock.do_handshake()
            wire, buffered = Wire(self, sock, origin), b""
            for nth in range(1, 1_000_000):
                head, buffered = _read_head(sock, buffered)
                if head is None:
                    return
                request = _request(head, connection=number, nth=nth, client_port=client_port)
                self._note(request, origin)
                if not self.respond(request, wire):
                    return
        except (OSError, ValueError):
            return  # the client has gone, or sent what is no request
        finally:
            with self._lock:
                self._sockets.discard(sock)
            sock.close()

    def _note(self, request: Request, origin: str) -> None:
        with self._arrived:
            self.requests.append(request)
            self._arrived.notify_all()
        if self._log is not None:
            row = {
                "origin": origin,
                "method": request.method,
                "target": request.target,
                "headers": request.headers,
                "connection": request.connection,
                "nth": request.nth,
                "at": request.at,
                "client_port": request.client_port,
            }
            os.write(self._log, json.dumps(row).encode() + b"\n")  # one write: lines of two threads never mix


def run_until_stdin_closes(server: WireServer) -> None:
    """The main program of a server process: says its ports on stdout, lives as long as its parent holds stdin."""
    sys.stdout.write(json.dumps(server.ports) + "\n")
    sys.stdout.flush()
    sys.stdin.buffer.read()
    os._exit(0)  # connections that hang by design are not waited for


def _read_head(sock: socket.socket, buffered: bytes) -> tuple[bytes | None, bytes]:
    while b"\r\n\r\n" not in buffered:
        received = sock.recv(65536)
        if not received or len(buffered) > MAX_HEAD:
            return None, b""
        buffered += received
    head, _, rest = buffered.partition(b"\r\n\r\n")
    return head, rest


def _request(head: bytes, *, connection: int, nth: int, client_port: int) -> Request:
    first, *rest = head.decode("latin-1").split("\r\n")
    method, _, remainder = first.partition(" ")
    pairs = (line.partition(":") for line in rest)
    return Request(
        method=method,
        target=remainder.rpartition(" ")[0],
        headers=tuple((name.strip(), value.strip()) for name, _, value in pairs),
        connection=connection,
        nth=nth,
        at=time.monotonic(),
        client_port=client_port,
    )
