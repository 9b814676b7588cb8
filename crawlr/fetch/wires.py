"""Connected sockets that keep their time-outs, and the interpreter's lock, in another way than Python's do.

From: connections.py, which makes them of connected sockets. To: guard.Exchange, which sends and receives through them.
Runs in the fetch threads.
"""

from __future__ import annotations

import select
import socket
import struct
import sys
import time

from urllib3.util.wait import wait_for_read

try:
    import ctypes
except ImportError:  # a Python that was built without libffi
    _libc = None
else:
    _libc = ctypes.PyDLL(None) if sys.platform == "linux" and sys.maxsize > 2**32 else None

__all__ = ["Deadlined", "KernelTimed", "is_readable", "kernel_timed"]


if _libc is not None:  # PyDLL: who calls keeps the interpreter's lock
    _poll, _send = _libc.poll, _libc.send
    _poll.argtypes = ctypes.c_char_p, ctypes.c_ulong, ctypes.c_int
    _send.argtypes = ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int
    _send.restype = ctypes.c_ssize_t
    _AT_ONCE = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL


class KernelTimed:
    """A plain socket that blocks, with time-outs that the kernel holds (socket(7), SO_RCVTIMEO and SO_SNDTIMEO).

    A socket with a time-out of Python's is polled before each call, and settimeout is a call of its own: in a busy
    crawl each of them gives the interpreter's lock away and waits for it. So does `send`, which here keeps the lock for
    as much as the kernel has room for: some microseconds.
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
        sent = _send(self.fileno(), data, len(data), _AT_ONCE)
        if sent == len(data):
            return
        rest = memoryview(data)[max(0, sent) :]  # -1: no room, or an error: the next call meets one, too
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
    if _libc is None or type(sock) is not socket.socket:
        return None
    try:
        return KernelTimed(sock)
    except OSError:
        return None


def is_readable(sock: socket.socket) -> bool:
    """Whether something came that nobody has read: bytes, the end, an error. Returns at once."""
    if _libc is None:
        return wait_for_read(sock, timeout=0.0)
    return bool(_poll(ctypes.create_string_buffer(struct.pack("@ihh", sock.fileno(), select.POLLIN, 0)), 1, 0))


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
