"""A socket with the kernel's time-outs keeps them as one with Python's does, for all calls together."""

from __future__ import annotations

import select
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from crawlr.fetch import wires
from crawlr.fetch.wires import KernelTimed, is_readable, kernel_timed

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's time-outs are used on Linux alone")
LONG = 20.0


@pytest.fixture
def pair() -> Iterator[tuple[KernelTimed, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = socket.create_connection(server.getsockname())
        there, _ = server.accept()
    wire = kernel_timed(here)
    assert wire is not None
    there.settimeout(LONG)
    with here, there:
        yield wire, there


def test_bytes_go_both_ways(pair: tuple[KernelTimed, socket.socket]) -> None:
    """What is sent arrives whole, what comes is read, the end is b""."""
    wire, there = pair
    wire.settimeout(LONG)
    sent = bytes(range(256)) * 20_000
    received = bytearray()

    def read() -> None:
        while len(received) < len(sent):
            received.extend(there.recv(65536))

    reader = threading.Thread(target=read)
    reader.start()
    wire.sendall(sent)
    reader.join(LONG)
    there.sendall(b"answer")
    there.shutdown(socket.SHUT_WR)

    assert received == sent
    assert wire.recv(64) + wire.recv(64) == b"answer"


@pytest.mark.parametrize("before", [LONG, 0.01])
def test_silence_ends_when_the_time_is_over(pair: tuple[KernelTimed, socket.socket], before: float) -> None:
    """Not before, and not with the time-out of an earlier call."""
    wire, _ = pair
    wire.settimeout(before)
    wire.settimeout(0.2)
    began = time.monotonic()

    with pytest.raises(TimeoutError):
        wire.recv(64)

    assert 0.2 <= time.monotonic() - began < LONG / 2


def test_a_reader_that_does_not_read_ends_it_too(pair: tuple[KernelTimed, socket.socket]) -> None:
    """More than the buffers between hold."""
    wire, _ = pair
    wire.settimeout(0.2)

    with pytest.raises(TimeoutError):
        wire.sendall(bytes(64 * 1024 * 1024))


def test_a_reader_that_drips_ends_it_too(pair: tuple[KernelTimed, socket.socket]) -> None:
    """The kernel's limit is for one piece, the time-out for all of them."""
    wire, there = pair
    wire._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    wire.settimeout(0.5)
    is_over = threading.Event()

    def drip() -> None:
        while not is_over.wait(0.05) and there.recv(100_000):
            pass

    reader = threading.Thread(target=drip)
    reader.start()
    began = time.monotonic()
    try:
        with pytest.raises(TimeoutError):
            wire.sendall(bytes(64 * 1024 * 1024))
    finally:
        is_over.set()
        reader.join(LONG)

    assert time.monotonic() - began < LONG / 2


def test_time_that_is_over_is_not_waited_for(pair: tuple[KernelTimed, socket.socket]) -> None:
    """Zero and less are a moment, not for ever."""
    wire, _ = pair
    for seconds in (0.0, -1.0):
        wire.settimeout(seconds)
        with pytest.raises(TimeoutError):
            wire.recv(64)


def test_a_cut_wakes_who_reads(pair: tuple[KernelTimed, socket.socket]) -> None:
    """As an interrupt cuts a socket under a fetch thread."""
    wire, _ = pair
    wire.settimeout(LONG)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(wire.recv(64)))
    reader.start()
    wire._socket.shutdown(socket.SHUT_RDWR)
    reader.join(LONG)

    assert found == [b""]


def test_the_kernel_is_told_once_for_many_calls(
    pair: tuple[KernelTimed, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time that passes between calls costs no call of its own."""
    wire, _ = pair
    told: list[float] = []
    bound = KernelTimed._bound
    monkeypatch.setattr(KernelTimed, "_bound", lambda self, seconds: (told.append(seconds), bound(self, seconds)))
    for seconds in (30.0, 29.9, 29.0, 30.0, 29.5):
        wire.settimeout(seconds)

    assert len(told) == 1


def test_other_sockets_keep_their_own() -> None:
    """A socket with a class of its own (TLS) is none that may be bound like this."""

    class Other(socket.socket):
        pass

    with Other() as other:
        assert kernel_timed(other) is None


@pytest.mark.parametrize("has_libc", [True, False])
def test_what_came_unread_is_seen(monkeypatch: pytest.MonkeyPatch, *, has_libc: bool) -> None:
    """Bytes, the end and a reset; on a Python without ctypes too, which has no KernelTimed."""
    if not has_libc:
        monkeypatch.setattr(wires, "_libc", None)
    for end in ("bytes", "end", "reset"):
        with socket.create_server(("127.0.0.1", 0)) as server:
            here = socket.create_connection(server.getsockname())
            there, _ = server.accept()
        with here, there:
            assert (kernel_timed(here) is not None) is has_libc
            here.settimeout(LONG)
            assert not is_readable(here)
            if end == "bytes":
                there.sendall(b"x")
            else:
                if end == "reset":
                    there.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                there.close()
            assert select.select([here], [], [], LONG)[0]
            assert is_readable(here)


def test_a_request_to_a_peer_that_is_gone_is_an_error(pair: tuple[KernelTimed, socket.socket]) -> None:
    """As by a socket of Python's, whichever of the two ways the bytes take."""
    wire, there = pair
    there.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    there.close()
    wire.settimeout(LONG)
    assert select.select([wire], [], [], LONG)[0]

    with pytest.raises((ConnectionResetError, BrokenPipeError)):
        wire.sendall(b"GET / HTTP/1.1\r\n\r\n")
