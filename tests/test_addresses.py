"""Which addresses are public, what the policy refuses, and how names are looked up."""

from __future__ import annotations

import errno
import ipaddress
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from crawlr.fetch.addresses import (
    AddressPolicy,
    Resolver,
    _alternating,
    _connect_trouble,
    _has_route,
    is_metadata,
    is_public,
)
from crawlr.fetch.guard import Guard, Trouble
from crawlr.records import Outcome
from tests.gates import Gate

PUBLIC = (
    *("1.1.1.1", "8.8.8.8", "93.184.216.34", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0"),
    *("126.255.255.255", "128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0"),
    *("192.0.1.0", "192.0.3.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0"),
    *("203.0.112.255", "203.0.114.0", "223.255.255.255"),
    *("2606:4700::1111", "2a00:1450::1", "2003::1", "2400::", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::"),
    "::8.8.8.8",
)
NOT_PUBLIC = (
    *("0.0.0.0", "0.1.2.3", "10.0.0.0", "10.255.255.255", "100.64.0.1", "100.127.255.255", "127.0.0.1"),
    *("127.255.255.255", "169.254.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1"),
    *("192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9"),
    *("224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "::2", "fc00::1", "fdff::1", "fe80::1", "febf::1", "fec0::1", "ff02::1", "2001:db8::1"),
    *("100::1", "2001::1", "2001:2::1", "2001:10::1", "3fff::1", "4000::1", "5f00::1", "64:ff9b:1::1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b::7f00:1"),
    *("2002:7f00:1::", "2002:a9fe:a9fe::", "2001:0:1:2:3:4:80ff:fffe", "::ffff:0:127.0.0.1"),
    *("2001:db8::5efe:7f00:1", "2a00:1450::5efe:a00:1", "2a00:1450::200:5efe:a00:1"),
)


@pytest.mark.parametrize("text", PUBLIC)
def test_addresses_of_the_internet_are_public(text: str) -> None:
    """Neighbours of the special ranges are public, and what embeds a public IPv4 address is."""
    assert is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", NOT_PUBLIC)
def test_special_addresses_are_not_public(text: str) -> None:
    """Every special range is known, and every way to write such an IPv4 address inside IPv6."""
    assert not is_public(ipaddress.ip_address(text))


METADATA = (
    *("169.254.169.254", "100.100.100.200", "169.254.170.2", "192.0.0.192", "168.63.129.16", "fd00:ec2::254"),
    *("::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "::169.254.169.254"),
)


@pytest.mark.parametrize("text", METADATA)
def test_metadata_addresses_are_refused_unless_a_seed(text: str) -> None:
    """Whatever is allowed otherwise, where a cloud tells its secrets only a seed leads."""
    assert is_metadata(ipaddress.ip_address(text))
    assert AddressPolicy().refusal(text, host="any.test")
    assert AddressPolicy().refusal(text, host=text)
    assert AddressPolicy(seed_hosts=frozenset({text})).refusal(text, host="other.test")
    assert AddressPolicy(seed_hosts=frozenset({text})).refusal(text, host=text) is None
    assert AddressPolicy(seed_hosts=frozenset({"a.test"})).refusal(text, host="a.test") is None


@pytest.mark.parametrize("text", ["127.0.0.1", "10.0.0.1", "::1", "fe80::1%eth0", "192.168.1.1"])
def test_private_addresses_are_refused_on_wish_only(text: str) -> None:
    """Without block_private a crawl may go to its own network."""
    assert AddressPolicy().refusal(text, host="a.test") is None
    assert AddressPolicy(block_private=True).refusal(text, host="a.test")
    assert AddressPolicy(block_private=True).refusal("8.8.8.8", host="a.test") is None


@pytest.mark.parametrize("text", ["", "a.test", "1.2.3", "0x7f.1", "1.2.3.4:80", "::1::", "127.1", "2130706433"])
def test_what_is_no_address_is_refused(text: str) -> None:
    """The policy is asked about addresses only."""
    assert AddressPolicy().refusal(text, host=text)


def test_families_take_turns() -> None:
    """One family that leads nowhere does not use all tries up; the order within each stays."""
    addresses = ("::1", "::2", "::3", "::4", "::5", "10.0.0.1", "10.0.0.2")

    assert _alternating(addresses)[:4] == ["::1", "10.0.0.1", "::2", "10.0.0.2"]
    assert _alternating(("10.0.0.1", "10.0.0.2")) == ["10.0.0.1", "10.0.0.2"]


@pytest.mark.parametrize("has_route", [True, False])
def test_no_free_port_is_told_from_no_route(monkeypatch: pytest.MonkeyPatch, *, has_route: bool) -> None:
    """ "Cannot assign requested address" means two things; only the want of a local port is this machine's fault."""
    monkeypatch.setattr("crawlr.fetch.addresses._has_route", lambda address: has_route)
    exchange = Guard(timeout=1, connect_timeout=1).begin()

    trouble = _connect_trouble(OSError(errno.EADDRNOTAVAIL, "x"), "127.0.0.1", 80, exchange, 1.0)

    assert (trouble.outcome, trouble.is_local) == (Outcome.REFUSED, has_route)


def test_loopback_has_a_route() -> None:
    """What can be reached can be asked for without sending anything."""
    assert _has_route("127.0.0.1")


# ---------------------------------------------------------------- names


@pytest.fixture
def resolver() -> Iterator[Callable[..., Resolver]]:
    made: list[Resolver] = []

    def build(lookup: Callable[[str], list[str]], **options: int) -> Resolver:
        made.append(Resolver(lookup, **options))
        return made[-1]

    yield build
    for each in made:
        each.close()


def test_name_is_looked_up_once_for_all_who_ask(resolver: Callable[..., Resolver], gate: Callable[..., Gate]) -> None:
    """Many threads that want one name cost one look-up, and so does who asks soon after."""
    closed, asked = gate(), []

    def lookup(host: str) -> list[str]:
        asked.append(host)
        closed.enter()
        return ["127.0.0.1", "127.0.0.1", "::1"]

    made = resolver(lookup)
    with ThreadPoolExecutor(8) as threads:
        futures = [threads.submit(made.resolve, "a.test", seconds=10) for _ in range(8)]
        closed.wait_for_arrivals()
        closed.open()
        answers = {future.result(10) for future in futures}
    again = made.resolve("a.test", seconds=1)

    assert answers == {("127.0.0.1", "::1")}
    assert again == ("127.0.0.1", "::1")
    assert asked == ["a.test"]


@pytest.mark.parametrize(
    ("code", "is_final"), [(socket.EAI_NONAME, True), (socket.EAI_FAIL, True), (socket.EAI_AGAIN, False)]
)
def test_unknown_names_are_kept_and_busy_resolvers_are_not(
    code: int, resolver: Callable[..., Resolver], *, is_final: bool
) -> None:
    """A name that does not exist is not asked for again at once; a failure that can pass is."""
    asked = []

    def lookup(host: str) -> list[str]:
        asked.append(host)
        raise socket.gaierror(code, "no")

    made = resolver(lookup)
    troubles = []
    for _ in range(2):
        with pytest.raises(Trouble) as caught:
            made.resolve("a.test", seconds=5)
        troubles.append(caught.value)

    assert {trouble.outcome for trouble in troubles} == {Outcome.DNS_ERROR}
    assert {trouble.error.startswith("temporary") for trouble in troubles} == {not is_final}
    assert len(asked) == (1 if is_final else 2)


@pytest.mark.parametrize("error", [UnicodeError("label too long"), ValueError("x"), OSError(5, "no")])
def test_whatever_a_lookup_raises_is_an_answer(error: Exception, resolver: Callable[..., Resolver]) -> None:
    """A look-up that raises something else leaves its thread alive."""

    def lookup(host: str) -> list[str]:
        if host == "bad.test":
            raise error
        return ["127.0.0.1"]

    made = resolver(lookup, threads=1)
    with pytest.raises(Trouble):
        made.resolve("bad.test", seconds=5)

    assert made.resolve("good.test", seconds=5) == ("127.0.0.1",)


def test_hanging_lookups_are_bounded_in_number(resolver: Callable[..., Resolver], gate: Callable[..., Gate]) -> None:
    """However many names hang, there are no more threads than allowed, and none waits for ever."""
    closed = gate()

    def lookup(host: str) -> list[str]:
        closed.enter()
        return ["127.0.0.1"]

    made, before = resolver(lookup, threads=3), threading.active_count()
    for number in range(10):
        with pytest.raises(Trouble, match="temporary"):
            made.resolve(f"n{number}.test", seconds=0.05)
    threads = threading.active_count() - before
    closed.open()

    assert threads == 3
    assert made.resolve("n9.test", seconds=5) == ("127.0.0.1",)


def test_close_ends_every_wait(resolver: Callable[..., Resolver], gate: Callable[..., Gate]) -> None:
    """Who waits for a name gets a local failure at once, and so does who comes later."""
    closed = gate()

    def lookup(host: str) -> list[str]:
        closed.enter()
        return ["127.0.0.1"]

    made = resolver(lookup)
    with ThreadPoolExecutor(1) as threads:
        future = threads.submit(made.resolve, "a.test", seconds=30)
        closed.wait_for_arrivals()
        made.close()
        with pytest.raises(Trouble) as first:
            future.result(2)
    with pytest.raises(Trouble) as second:
        made.resolve("b.test", seconds=30)
    closed.open()

    assert first.value.is_local
    assert second.value.is_local
