"""Which addresses may be connected to, and the one function that connects: every socket of a crawl is opened here.

From: http.py, with a host of a URL (or of a proxy). To: http.py, a connected socket, or Trouble.
Names are looked up in threads of their own, because nothing else can end a look-up that hangs; the rest runs in the
fetch threads. The policy is asked about the very address that is connected to, so that no name and no spelling of a
number gets round it.
"""

from __future__ import annotations

import errno
import ipaddress
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

from crawlr.fetch.guard import Exchange, Trouble, local_fault
from crawlr.records import Outcome

__all__ = [
    "AddressPolicy",
    "Lookup",
    "Resolver",
    "connect",
    "is_metadata",
    "is_public",
    "resolve_host",
    "system_lookup",
]

MAX_ADDRESSES = 4
"""Of one name; the connect timeout is shared out among them."""
_MAX_LOOKUP_THREADS = 16
_KEEP_FOUND = 60.0
_KEEP_UNKNOWN = 5.0
_MAX_KEPT = 10_000

Lookup = Callable[[str], Iterable[str]]
"""Addresses of a name, as text, best first; raises socket.gaierror when there are none."""
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_V4 = ipaddress.IPv4Network
_V6 = ipaddress.IPv6Network
# IANA special-purpose registries (RFC 6890 and what came after): not globally reachable, or not a host.
_SPECIAL_V4 = tuple(
    _V4(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
_GLOBAL_V6 = _V6("2000::/3")  # RFC 4291 §2.4: all global unicast that was ever given out
_SPECIAL_V6 = tuple(
    _V6(network)
    for network in (
        "2001::/23",  # Teredo, benchmarking, ORCHID ...
        "2001:db8::/32",
        "2002::/16",  # 6to4: what it embeds is looked at first
        "3fff::/20",
    )
)
_METADATA = frozenset(
    ipaddress.ip_address(address)
    for address in (
        "169.254.169.254",  # most clouds
        "169.254.170.2",  # container credentials
        "100.100.100.200",
        "192.0.0.192",
        "168.63.129.16",
        "fd00:ec2::254",
        "fd20:ce::254",
    )
)


def _embedded(address: _Address) -> _Address:
    """The IPv4 address that an IPv6 address carries, for its translator or tunnel; the address itself when none."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    number = int(address)
    low = number & 0xFFFF_FFFF
    high = number >> 32
    # ::ffff:0:0/96 mapped, ::ffff:0:0:0/96 translated, 64:ff9b::/96 NAT64 (RFC 4291, RFC 2765, RFC 6052)
    if high in (0xFFFF, 0xFFFF_0000, 0x64_FF9B << 64):
        return ipaddress.IPv4Address(low)
    if high == 0 and low > 1:  # ::/96 compatible; :: and ::1 are addresses of their own
        return ipaddress.IPv4Address(low)
    if number >> 112 == 0x2002:  # 6to4
        return ipaddress.IPv4Address((number >> 80) & 0xFFFF_FFFF)
    if number >> 96 == 0x2001_0000:  # Teredo, RFC 4380: inverted
        return ipaddress.IPv4Address(low ^ 0xFFFF_FFFF)
    if (number >> 32) & 0xFDFF_FFFF == 0x5EFE:  # ISATAP, RFC 5214
        return ipaddress.IPv4Address(low)
    return address


def is_public(address: _Address) -> bool:
    """True when the address, or the IPv4 address within it, is one of the open internet."""
    inner = _embedded(address)
    if isinstance(inner, ipaddress.IPv4Address):
        return not any(inner in network for network in _SPECIAL_V4)
    return inner in _GLOBAL_V6 and not any(inner in network for network in _SPECIAL_V6)


def is_metadata(address: _Address) -> bool:
    """True for the addresses where clouds tell a machine its secrets."""
    return _embedded(address) in _METADATA


class AddressPolicy(Struct, frozen=True, kw_only=True):
    """Which addresses are refused: metadata addresses, unless they are a seed; on wish all that are not public."""

    block_private: bool = False
    seed_hosts: frozenset[str] = frozenset()
    """Hosts of the seeds, as in their URLs (IPv6 without brackets)."""

    def refusal(self, address: str, *, host: str) -> str | None:
        """Why that address of that host is not connected to; None when it may be. What is no address is refused."""
        standing = _standing(address)
        if standing is None:
            return f"{address} is no address"
        if standing.is_metadata and host not in self.seed_hosts:
            return f"{address} is a metadata address"
        if self.block_private and not standing.is_public:
            return f"{address} is not public"
        return None


class _Standing(NamedTuple):
    is_metadata: bool
    is_public: bool


@lru_cache(maxsize=1024)
def _standing(address: str) -> _Standing | None:
    """What an address is; None: none. Asked for every request of the curl engine, and 10 us to find out."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    return _Standing(is_metadata(parsed), is_public(parsed))


def system_lookup(host: str) -> list[str]:
    """The addresses that the system knows for a name."""
    # Bytes, so that no codec for international names is asked: hosts of URLs are ASCII already.
    found = socket.getaddrinfo(host.encode("ascii"), None, type=socket.SOCK_STREAM)
    return [str(sockaddr[0]) for *_, sockaddr in found]


class Resolver:
    """Looks names up in a bounded number of threads, so that one that hangs costs no fetch thread.

    Answers are kept for a minute, unknown names for five seconds. What several threads ask for is looked up once.
    """

    def __init__(self, lookup: Lookup = system_lookup, *, threads: int = _MAX_LOOKUP_THREADS) -> None:
        self._lookup = lookup
        self._limit = threads
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[float, tuple[str, ...] | Trouble]] = {}
        self._pending: dict[str, Future[tuple[str, ...]]] = {}  # filled by resolve, emptied by the threads
        self._names: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._threads = 0
        self._idle = 0
        self._is_closed = False

    def resolve(self, host: str, *, seconds: float) -> tuple[str, ...]:
        """The addresses of a name, at least one. Raises Trouble: dns_error, or a fault of this machine."""
        with self._lock:
            if self._is_closed:
                raise Trouble(Outcome.DNS_ERROR, "interrupted", is_local=True)
            kept = self._kept.get(host)
            if kept is not None and kept[0] > time.monotonic():
                if isinstance(kept[1], Trouble):
                    raise Trouble(kept[1].outcome, kept[1].error)
                return kept[1]
            answer = self._pending.get(host)
            if answer is None:
                self._start_thread()
                answer = self._pending[host] = Future()
                self._names.put(host)
        try:
            return answer.result(max(0.0, seconds))
        except TimeoutError:
            raise Trouble(Outcome.DNS_ERROR, f"temporary: no answer for {host} within {seconds:.1f} s") from None
        except Trouble as trouble:
            # A new one: an exception that several threads raise gathers all their tracebacks.
            raise Trouble(trouble.outcome, trouble.error, is_local=trouble.is_local) from None

    def close(self) -> None:
        """End what waits for an answer, and every idle thread; one that hangs ends with its look-up."""
        with self._lock:
            self._is_closed = True
            for answer in self._pending.values():
                answer.set_exception(Trouble(Outcome.DNS_ERROR, "interrupted", is_local=True))
            self._pending.clear()
            for _ in range(self._threads):
                self._names.put(None)

    def _start_thread(self) -> None:
        """One more thread when all are busy and there may be more. Holds the lock."""
        if self._idle > self._names.qsize() or self._threads >= self._limit:
            return
        try:
            # A daemon: a look-up that hangs must not hold the program at its end.
            threading.Thread(target=self._work, name="crawlr-lookup", daemon=True).start()
        except RuntimeError as error:
            if self._threads == 0:
                raise Trouble(Outcome.DNS_ERROR, str(error), is_local=True) from error
        else:
            self._threads += 1

    def _work(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
            host = self._names.get()
            with self._lock:
                self._idle -= 1
            if host is None:
                return
            answer = self._ask(host)
            with self._lock:
                pending = self._pending.pop(host, None)
                if isinstance(answer, tuple) or not (answer.is_local or answer.error.startswith("temporary")):
                    if len(self._kept) >= _MAX_KEPT:
                        self._kept.clear()
                    kept_for = _KEEP_FOUND if isinstance(answer, tuple) else _KEEP_UNKNOWN
                    self._kept[host] = (time.monotonic() + kept_for, answer)
            if pending is not None:
                if isinstance(answer, tuple):
                    pending.set_result(answer)
                else:
                    pending.set_exception(answer)

    def _ask(self, host: str) -> tuple[str, ...] | Trouble:
        try:
            found = tuple(dict.fromkeys(self._lookup(host)))
        except socket.gaierror as error:
            fault = _missing_descriptors()
            if fault or error.errno == socket.EAI_MEMORY:
                return Trouble(Outcome.DNS_ERROR, fault or "out of memory", is_local=True)
            if error.errno in (socket.EAI_AGAIN, getattr(socket, "EAI_SYSTEM", None)):
                return Trouble(Outcome.DNS_ERROR, f"temporary: {host}: {error.strerror}")
            return Trouble(Outcome.DNS_ERROR, f"unknown name {host}: {error.strerror}")
        except Exception as error:  # noqa: BLE001  # a look-up that a caller gave may raise anything; its thread must live
            fault = local_fault(error)
            if fault:
                return Trouble(Outcome.DNS_ERROR, fault, is_local=True)
            # UnicodeError: a name that is no host name
            return Trouble(Outcome.DNS_ERROR, f"unknown name {host}: {error}")
        return found or Trouble(Outcome.DNS_ERROR, f"unknown name {host}: no address")


def connect(host: str, port: int, *, exchange: Exchange, policy: AddressPolicy, resolver: Resolver) -> socket.socket:
    """A socket connected to that host, which the exchange can cut. Raises Trouble.

    At most four addresses are tried, within the exchange's connect deadline all together; each gets its share of it.
    `host` is a name or an address (IPv6 without brackets).
    """
    allowed = _alternating(resolve_host(host, exchange=exchange, policy=policy, resolver=resolver))[:MAX_ADDRESSES]
    trouble: Trouble | None = None
    for position, address in enumerate(allowed):
        left = exchange.connect_left()
        if left <= 0:
            break
        try:
            return _connect_one(address, port, exchange, left / (len(allowed) - position))
        except Trouble as error:
            if error.is_local:
                raise
            trouble = error
    raise trouble or Trouble(Outcome.CONNECT_TIMEOUT, f"no time left to connect to {host}")


def resolve_host(host: str, *, exchange: Exchange, policy: AddressPolicy, resolver: Resolver) -> tuple[str, ...]:
    """The addresses of a host that may be connected to, at least one. Raises Trouble: dns_error, blocked_address."""
    addresses = (host,) if _is_literal(host) else resolver.resolve(host, seconds=exchange.connect_left())
    refusals = [policy.refusal(address, host=host) for address in addresses]
    allowed = tuple(address for address, refusal in zip(addresses, refusals, strict=True) if refusal is None)
    if not allowed:
        raise Trouble(Outcome.BLOCKED_ADDRESS, next(refusal for refusal in refusals if refusal))
    return allowed


def literal_refusal(host: str, policy: AddressPolicy) -> str | None:
    """Why a host that is written as an address is refused; None for names and for what may be."""
    return policy.refusal(host, host=host) if _is_literal(host) else None


@lru_cache(maxsize=1024)
def _is_literal(host: str) -> bool:
    """Whether a host is written as an address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _alternating(addresses: tuple[str, ...]) -> list[str]:
    """The same in the same order, but one of each family in turn (RFC 8305 §4): one family may lead nowhere."""
    first_is_v6 = ":" in addresses[0]
    same = [address for address in addresses if (":" in address) is first_is_v6]
    other = [address for address in addresses if (":" in address) is not first_is_v6]
    mixed: list[str] = []
    for position in range(max(len(same), len(other))):
        mixed += same[position : position + 1] + other[position : position + 1]
    return mixed


def _connect_one(address: str, port: int, exchange: Exchange, seconds: float) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = None
    try:
        sock = socket.socket(family, socket.SOCK_STREAM)
        exchange.attach(sock)
        sock.settimeout(seconds)
        sock.connect((address, port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        exchange.attach(sock)  # an interrupt may have come while it connected
    except BaseException as error:
        if sock is not None:
            sock.close()
        if isinstance(error, OSError):
            raise _connect_trouble(error, address, port, exchange, seconds) from error
        raise
    return sock


def _connect_trouble(error: OSError, address: str, port: int, exchange: Exchange, seconds: float) -> Trouble:
    where = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
    exchange.check()
    if isinstance(error, TimeoutError):
        return Trouble(Outcome.CONNECT_TIMEOUT, f"no connection to {where} within {seconds:.1f} s")
    fault = local_fault(error)
    if fault is None and error.errno == errno.EADDRNOTAVAIL and _has_route(address):
        fault = "no local port is free"
    if fault:
        return Trouble(Outcome.REFUSED, fault, is_local=True)
    return Trouble(Outcome.REFUSED, f"{where}: {error.strerror or error}")


def _has_route(address: str) -> bool:
    """True when a datagram socket finds a way to that address: it needs a source address, but no port of its own."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))  # sends nothing
    except OSError:
        return False
    return True


def _missing_descriptors() -> str | None:
    """What local_fault says of a new socket: a look-up without descriptors fails as if the name were unknown."""
    try:
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()
    except OSError as error:
        return local_fault(error)
    return None
