"""Connected sockets that keep their time-outs in another way than Python's do.

From: connections.py, which makes them of connected sockets. To: guard.Exchange, which sends and receives through them.
Runs in the fetch threads.
"""

from __future__ import annotations

import socket
import struct
import sys
import time

__all__ = ["Deadlined", "KernelTimed", "kernel_timed"]


class KernelTimed:
    """A plain socket that blocks, with time-outs that the kernel holds (socket(7), SO_RCVTIMEO and SO_SNDTIMEO).

    A socket with a time-out of Python's is polled before each call, and settimeout is a call of its own: in a busy
    crawl each of them gives the interpreter's lock away and waits for it.
    """

    __slots__ = ("_deadline", "_limit", "_socket", "close", "fileno")

    def __init__(self, sock: socket.socket) -> None:
        """Raises OSError where the kernel does not take such time-outs."""
        self._socket = sock
        self._deadline = 0.0
        self._limit = 0.0  # what the kernel has; 0: nothing
        self.close = sock.close
        self.fileno = sock.fileno
        self._bound(1.0)
        sock.settimeout(None)

    def settimeout(self, seconds: float | None) -> None:
        """The next call may take so long."""
        seconds = max(seconds or 0.0, 0.001)
        self._deadline = time.monotonic() + seconds
        # The kernel gets a little less, which serves the next calls, too; a call that comes to that is begun anew.
        if not 0.5 * seconds <= self._limit <= seconds:
            self._bound(0.95 * seconds)

    def recv(self, size: int) -> bytes:
        while True:
            try:
                return self._socket.recv(size)
            except BlockingIOError:
                self._go_on()

    def sendall(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self._socket.send(rest) :]
            except BlockingIOError:
                self._go_on()
            else:
                if rest and time.monotonic() >= self._deadline:  # the kernel's limit is for each piece
                    raise TimeoutError

    def _go_on(self) -> None:
        """After the kernel's limit. Raises TimeoutError when the time is over."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._bound(left)

    def _bound(self, seconds: float) -> None:
        micros = max(1, round(seconds * 1e6))
        limit = struct.pack("@ll", *divmod(micros, 1_000_000))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        self._limit = seconds


def kernel_timed(sock: socket.socket) -> KernelTimed | None:
    """The socket as KernelTimed; None where that cannot be had: Linux on 64 bits has it, others were not tried."""
    if sys.platform != "linux" or sys.maxsize < 2**32 or type(sock) is not socket.socket:
        return None
    try:
        return KernelTimed(sock)
    except OSError:
        return None


class Deadlined:
    """A socket whose time-out holds for all that is done until the next settimeout, not for each call.

    TLS within TLS reads it as often as a record has pieces.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._deadline = 0.0

    def settimeout(self, seconds: float | None) -> None:
        self._deadline = time.monotonic() + (seconds or 0.0)

    def recv(self, size: int) -> bytes:
        self._socket.settimeout(max(self._deadline - time.monotonic(), 0.001))
        return self._socket.recv(size)

    def sendall(self, data: bytes) -> None:
        self._socket.settimeout(max(self._deadline - time.monotonic(), 0.001))
        self._socket.sendall(data)

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()
