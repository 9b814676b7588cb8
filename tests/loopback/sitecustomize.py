"""Refuses every connection and look-up that would leave this machine, in each Python process of a test run.

Imported by conftest, and by Python itself at the start of each process that has this folder in PYTHONPATH: the crawls
that tests start, and their parser processes. What was refused is kept in `refused`, and in the file that
CRAWLR_TEST_REFUSED names. Names under .invalid, .test and .example fail as unknown without a look-up (RFC 6761).
"""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
from multiprocessing import process

refused: list[str] = []

_UNKNOWN_NAMES = (".invalid", ".test", ".example")


class BeyondLoopbackError(ConnectionRefusedError):
    """A test tried to reach something that is not this machine. An OSError, so that sockets are closed as usual."""


def _is_loopback(host: object) -> bool:
    text = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    if text in ("", "localhost", "None"):
        return True
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return text.endswith(".localhost")
    embedded = getattr(address, "ipv4_mapped", None)
    return address.is_loopback or address.is_unspecified or bool(embedded and embedded.is_loopback)


def _is_address(host: object) -> bool:
    try:
        ipaddress.ip_address(str(host).partition("%")[0])
    except ValueError:
        return False
    return True


def _refuse(event: str, target: object) -> None:
    line = f"{event} {target!r}"
    refused.append(line)
    note = os.environ.get("CRAWLR_TEST_REFUSED")
    if note:
        descriptor = os.open(note, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(descriptor, line.encode() + b"\n")
        os.close(descriptor)
    raise BeyondLoopbackError(f"refused by the tests' guard: {line}")


def _watch(event: str, args: tuple[object, ...]) -> None:
    if event in ("socket.connect", "socket.sendto"):
        address = args[1]
        if isinstance(address, tuple) and not _is_loopback(address[0]):
            _refuse(event, address)
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = args[0]
        if _is_loopback(host) or _is_address(host):
            return  # an address is looked up without any traffic
        name = (host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)).rstrip(".").lower()
        if name.endswith(_UNKNOWN_NAMES):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        _refuse(event, host)


sys.addaudithook(_watch)
# So that a test run knows its own semaphores in /dev/shm from those of other programs.
_run = os.environ.get("CRAWLR_TEST_RUN", os.getpid())
process.current_process()._config["semprefix"] = f"/crawlr-test-{_run}"  # type: ignore[attr-defined]

if os.environ.get("CRAWLR_TEST_POISON"):
    import crawlr_test_poison

    crawlr_test_poison.install()
