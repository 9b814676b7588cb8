"""The limits of one exchange, held under every read and write: a deadline for all of it, and the power to cut it short.

From: http.py, which begins an Exchange for each fetch. To: addresses, proxies and reply, which read and write by it.
Runs in the fetch threads; `Guard.interrupt` is called from the main thread.

No timeout of requests or urllib3 bounds an exchange: theirs count anew for every read, so that a server that sends one
byte now and then is read from for ever. Here each read may take what is left of the whole.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import ssl
import threading
import time
from typing import Protocol

from crawlr.records import FetchFailure, FetchTiming, Outcome

__all__ = ["Exchange", "Guard", "Trouble", "Wire", "local_fault"]

INTERRUPTED = "interrupted"
_LOCAL = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
_CUT = (ConnectionResetError, ConnectionAbortedError, BrokenPipeError)


class Wire(Protocol):
    """What is needed of a connected socket: a plain one, one under TLS, or TLS within TLS."""

    def recv(self, size: int, /) -> bytes: ...
    def sendall(self, data: bytes, /) -> None: ...
    def settimeout(self, seconds: float | None, /) -> None: ...
    def close(self) -> None: ...


class Trouble(Exception):  # noqa: N818  # no error of the program: an outcome on its way up
    """An exchange that cannot go on, and why. Raised and caught within fetch/, never crosses its border."""

    def __init__(self, outcome: Outcome, error: str, *, is_local: bool = False) -> None:
        super().__init__(outcome, error)
        self.outcome = outcome
        self.error = error
        self.is_local = is_local

    def failure(self, timing: FetchTiming | None = None) -> FetchFailure:
        """The value that tells the coordinator of it."""
        return FetchFailure(
            outcome=self.outcome, error=self.error, is_local=self.is_local, timing=timing or FetchTiming()
        )


def local_fault(error: BaseException) -> str | None:
    """What this machine lacks, when that is what went wrong (descriptors, memory, threads); else None."""
    if isinstance(error, OSError) and error.errno in _LOCAL:
        return error.strerror or str(error)
    if isinstance(error, MemoryError):
        return "out of memory"
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return "can't start new thread"
    return None


class Guard:
    """All exchanges under way of one fetcher, so that they can be cut at once."""

    def __init__(self, *, timeout: float, connect_timeout: float) -> None:
        self.timeout = timeout
        self.connect_timeout = connect_timeout
        self.is_interrupted = False
        self.lock = threading.Lock()
        self._under_way: set[Exchange] = set()  # filled by begin, emptied by end

    def begin(self) -> Exchange:
        """A new exchange; its time starts now. Raises Trouble after an interrupt."""
        exchange = Exchange(self)
        with self.lock:
            if self.is_interrupted:
                raise _interrupted()
            self._under_way.add(exchange)
        return exchange

    def end(self, exchange: Exchange) -> None:
        """The exchange is over; its socket belongs to the connection again."""
        with self.lock:
            self._under_way.discard(exchange)

    def interrupt(self) -> None:
        """Cut every exchange under way, and every later one at its beginning. Returns at once."""
        with self.lock:
            self.is_interrupted = True
            for exchange in self._under_way:
                for sock in exchange.sockets:
                    # Not SSLSocket.shutdown: that drops the TLS layer under a thread that reads through it.
                    with contextlib.suppress(OSError):
                        socket.socket.shutdown(sock, socket.SHUT_RDWR)


class Exchange:
    """One request and its answer, of one fetch thread."""

    __slots__ = ("_guard", "began", "connect_deadline", "connected", "deadline", "last_byte", "received", "sockets")

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        now = time.monotonic()
        self.began = now
        self.deadline = now + guard.timeout
        self.connect_deadline = now + min(guard.timeout, guard.connect_timeout)
        self.connected = now
        """When the connection stood; set by the connection."""
        self.last_byte = now
        """When something was last sent or received."""
        self.received = 0
        """Bytes that came, header and framing included."""
        self.sockets: tuple[socket.socket, ...] = ()
        """What to cut on an interrupt; guarded by the guard's lock."""

    def attach(self, *sockets: socket.socket) -> None:
        """From here on an interrupt cuts these sockets. Raises Trouble after an interrupt."""
        with self._guard.lock:
            self.sockets = sockets
        self.check()

    def check(self) -> None:
        """Raise Trouble after an interrupt."""
        if self._guard.is_interrupted:
            raise _interrupted()

    def recv(self, wire: Wire, size: int) -> bytes:
        """What comes next, at most `size` bytes; b"" at the end. Raises Trouble when the time is over or it breaks."""
        try:
            wire.settimeout(self._left())
            data = wire.recv(size)
        except Exception as error:  # translated, or raised again
            raise self._trouble(error) from error
        if data:
            self.received += len(data)
            self.last_byte = time.monotonic()
        else:
            self.check()
            return b""  # TLS within TLS says 0
        return data

    def send(self, wire: Wire, data: bytes) -> None:
        """Send all of it. Raises Trouble when the time is over or the connection breaks."""
        try:
            wire.settimeout(self._left())
            wire.sendall(data)
        except Exception as error:  # translated, or raised again
            raise self._trouble(error) from error
        self.last_byte = time.monotonic()

    def connect_left(self) -> float:
        """Seconds left to connect, zero or less when there are none."""
        return self.connect_deadline - time.monotonic()

    def _left(self) -> float:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def _trouble(self, error: Exception) -> Exception:
        """The error in the crawl's words; itself when it is none of a connection."""
        if self._guard.is_interrupted:
            return _interrupted()
        if isinstance(error, Trouble):
            return error
        if isinstance(error, TimeoutError):
            return self._late()
        fault = local_fault(error)
        if fault:
            return Trouble(Outcome.RESET, fault, is_local=True)
        if isinstance(error, _CUT):
            return Trouble(Outcome.RESET, "connection reset")
        if isinstance(error, ssl.SSLError):
            return Trouble(Outcome.TLS_ERROR, f"broken: {error.reason or error}")
        if isinstance(error, OSError):
            return Trouble(Outcome.RESET, f"connection lost: {error.strerror or error}")
        return error

    def _late(self) -> Trouble:
        """The time is over: read_timeout when nothing came for the later half of it, total_timeout when it dripped."""
        silence = time.monotonic() - self.last_byte
        timeout = self._guard.timeout
        if silence >= timeout / 2:
            return Trouble(Outcome.READ_TIMEOUT, f"nothing received for {silence:.1f} of {timeout:g} s")
        return Trouble(Outcome.TOTAL_TIMEOUT, f"not complete after {timeout:g} s ({self.received} bytes received)")


def _interrupted() -> Trouble:
    return Trouble(Outcome.RESET, INTERRUPTED, is_local=True)
