"""The time and the size of an exchange are bounded in every phase, and it can be cut short in every phase."""

from __future__ import annotations

import contextlib
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from crawlr.fetch.http import HttpFetcher
from crawlr.records import FetchedPage, Outcome
from tests.cases.answers import OK, TEXT
from tests.fetching import Make, failure, make, page, task
from tests.gates import Gate
from tests.servers.local import Answer, Reply, Site
from tests.servers.process import ServerProcess
from tests.servers.wire import Request, Wire

__all__ = ["make"]  # a fixture

Sites = Callable[..., Site]
TIMEOUT = 0.6
SLACK = 0.8
"""For a busy machine."""


def drip(*parts: bytes, then: bytes) -> Answer:
    """Some bytes at once, then others one by one, each a moment after the other."""

    def answer(request: Request, wire: Wire) -> None:
        with contextlib.suppress(OSError):
            wire.send(*parts)
            for number in range(len(then)):
                wire.send(then[number : number + 1])
                if not wire.pause(0.05):
                    return

    return answer


def then_nothing(*parts: bytes) -> Answer:
    def answer(request: Request, wire: Wire) -> None:
        wire.send(*parts)
        wire.pause(30)

    return answer


CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
LONG = b"x" * 10_000
DRIPPING = {
    "status": ((), b"HTTP/1.1 200 " + LONG, None),
    "header": ((OK,), b"X: " + LONG, None),
    "interim": ((), b"HTTP/1.1 100 Continue\r\n\r\n" * 8, None),
    "body": ((OK, b"Content-Length: 5000\r\n\r\n"), LONG, b"xxx"),
    "body-until-close": ((OK, b"\r\n"), LONG, b"xxx"),
    "chunk-size": ((CHUNKED, b"3\r\nabc\r\n"), b"0" * 9_000, b"abc"),
    "chunk": ((CHUNKED, b"ffff\r\n"), LONG, b"xxx"),
    "trailers": ((CHUNKED, b"3\r\nabc\r\n0\r\n"), b"X: y\r\n" * 1_000, b"abc"),
}


@pytest.mark.parametrize("phase", DRIPPING)
def test_dripping_ends_at_the_deadline(phase: str, make: Make, site: Sites) -> None:
    """A server that sends a byte now and then, wherever it is, has the whole time-out and not a moment more."""
    parts, then, beginning = DRIPPING[phase]
    url = site({"/": drip(*parts, then=then)}).url()
    fetcher, began = make(timeout=TIMEOUT), time.monotonic()

    result = fetcher.fetch(task(url))

    assert TIMEOUT * 0.9 <= time.monotonic() - began < TIMEOUT + SLACK
    # libcurl hands over whole lines of a header and bytes of a body: what drips between them it does not see
    sees_all = isinstance(fetcher, HttpFetcher) or phase in ("body", "body-until-close", "chunk")
    right = {Outcome.TOTAL_TIMEOUT} if sees_all else {Outcome.TOTAL_TIMEOUT, Outcome.READ_TIMEOUT}
    if beginning is None:
        assert failure(result).outcome in right
    else:
        assert page(result).status == 200
        assert page(result).fault in right
        assert page(result).body.startswith(beginning)


SILENT = {
    "status": ((), None),
    "header": ((OK,), None),
    "interim": ((b"HTTP/1.1 100 Continue\r\n\r\n",), None),
    "body": ((OK, b"Content-Length: 5000\r\n\r\n", b"abc"), b"abc"),
    "body-until-close": ((OK, b"\r\nabc"), b"abc"),
    "chunk": ((CHUNKED, b"ffff\r\nabc"), b"abc"),
    "trailers": ((CHUNKED, b"3\r\nabc\r\n0\r\n"), b"abc"),
}


@pytest.mark.parametrize("phase", SILENT)
def test_silence_is_a_read_timeout(phase: str, make: Make, site: Sites) -> None:
    """A server that falls silent is told from one that drips."""
    parts, beginning = SILENT[phase]
    url = site({"/": then_nothing(*parts)}).url()
    fetcher, began = make(timeout=TIMEOUT), time.monotonic()

    result = fetcher.fetch(task(url))

    assert time.monotonic() - began < TIMEOUT + SLACK
    if beginning is None:
        assert failure(result).outcome is Outcome.READ_TIMEOUT
    else:
        assert (page(result).body, page(result).fault) == (beginning, Outcome.READ_TIMEOUT)


FLOODS = {
    "interim": ((), b"HTTP/1.1 100 Continue\r\n\r\n"),
    "header": ((OK,), b"X-More: of the same\r\n"),
    "chunk-line": ((CHUNKED, b"1;ext="), b"a" * 1000),
    "trailers": ((CHUNKED, b"3\r\nabc\r\n0\r\n"), b"X-More: of the same\r\n"),
}


@pytest.mark.parametrize("phase", FLOODS)
def test_flood_is_refused_long_before_the_deadline(phase: str, make: Make, site: Sites) -> None:
    """What is repeated without end as fast as it can be is given up after a fixed amount."""
    parts, again = FLOODS[phase]

    def flood(request: Request, wire: Wire) -> None:
        with contextlib.suppress(OSError):
            wire.send(*parts)
            for _ in range(12_000):
                wire.send(again)

    url = site({"/": flood}).url()
    result = make(timeout=20.0).fetch(task(url))

    if phase == "trailers":
        assert (page(result).body, page(result).fault) == (b"abc", Outcome.PROTOCOL_ERROR)
    elif phase == "chunk-line":  # libcurl reads on without keeping it
        assert page(result).fault in (Outcome.PROTOCOL_ERROR, Outcome.TRUNCATED)
    else:
        assert failure(result).outcome is Outcome.PROTOCOL_ERROR


def test_slow_answer_within_the_time_is_whole(make: Make, site: Sites) -> None:
    """Slowness alone is no fault."""
    url = site({"/": drip(OK, b"Content-Length: 4\r\n\r\n", then=b"slow")}).url()

    assert page(make().fetch(task(url))).body == b"slow"


def test_error_body_that_drips_holds_nothing_up(make: Make, site: Sites) -> None:
    """The rest of a body that is not wanted is waited for only a moment."""
    head = b"HTTP/1.1 404 Not Found\r\nContent-Length: 500\r\n\r\n"
    fetcher, began = make(timeout=20.0), time.monotonic()

    got = page(fetcher.fetch(task(site({"/": drip(head, then=b"x" * 500)}).url())))

    assert (got.status, got.fault) == (404, None)
    assert time.monotonic() - began < 2.0


# ---------------------------------------------------------------- interrupt


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
def black_hole() -> Iterator[int]:
    """A port whose queue is full: a connection is neither taken nor refused."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


WAITING = {
    "connect": "http://127.0.0.1:{black_hole}/",
    "tls": "https://127.0.0.1:{silent}/",
    "header": "http://127.0.0.1:{silent}/",
    "body": "{site}/",
}


@pytest.mark.parametrize("phase", WAITING)
def test_interrupt_cuts_what_is_in_flight(phase: str, make: Make, site: Sites, silent: int, black_hole: int) -> None:
    """Every fetch under way returns soon, as a fault of this machine; later ones return at once."""
    server = site({"/": then_nothing(OK, b"Content-Length: 500\r\n\r\nabc")})
    url = WAITING[phase].format(silent=silent, black_hole=black_hole, site=server.origin())
    fetcher = make(timeout=30.0, connect_timeout=30.0)

    with ThreadPoolExecutor(4) as threads:
        futures = [threads.submit(fetcher.fetch, task(url)) for _ in range(4)]
        if phase == "body":
            server.wait_for_requests(4)
        threading.Event().wait(0.2)  # into the phase; too early would only be an easier case
        began = time.monotonic()
        fetcher.interrupt()
        results = [future.result(5) for future in futures]
        results.append(fetcher.fetch(task(url)))

    assert time.monotonic() - began < 1.5
    assert [failure(result).is_local for result in results] == [True] * 5


def test_interrupt_between_two_steps_leaves_no_socket_open(make: Make, site: Sites) -> None:
    """An interrupt that comes when a kept connection has been taken, and nothing is sent yet, closes it, too."""
    server, fetcher = site({"/": Reply(body=TEXT)}), make()
    fetcher.fetch(task(server.url()))
    take = fetcher._idle.take  # type: ignore[attr-defined]

    def take_and_interrupt(origin: object) -> object:
        taken = take(origin)
        assert taken is not None
        fetcher.interrupt()
        return taken

    fetcher._idle.take = take_and_interrupt  # type: ignore[attr-defined]

    assert failure(fetcher.fetch(task(server.url()))).is_local
    assert len(server.hits) == 1


def test_interrupt_cuts_a_name_lookup(gate: Callable[..., Gate]) -> None:
    """A look-up that hangs holds no fetch after an interrupt."""
    closed = gate()

    def lookup(host: str) -> list[str]:
        closed.enter()
        return ["127.0.0.1"]

    fetcher = HttpFetcher(user_agent="x", timeout=30, connect_timeout=30, max_body=1000, concurrency=2, lookup=lookup)
    with ThreadPoolExecutor(2) as threads:
        futures = [threads.submit(fetcher.fetch, task("http://slow.test/")) for _ in range(2)]
        closed.wait_for_arrivals()
        fetcher.interrupt()
        results = [future.result(5) for future in futures]
    closed.open()
    fetcher.close()

    assert [failure(result).is_local for result in results] == [True, True]


# ---------------------------------------------------------------- this machine's own limits


def test_missing_descriptors_are_no_fault_of_the_site(make: Make, misbehaving: ServerProcess) -> None:
    """Without a descriptor for a socket the failure is local, and the next fetch works again."""
    url, fetcher = misbehaving.url("/page/x"), make()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.socket() as probe:
        lowest_free = probe.fileno()

    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
    try:
        without = [fetcher.fetch(task(url)), fetcher.fetch(task("http://name.invalid/"))]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    again = fetcher.fetch(task(url))

    assert [failure(result).is_local for result in without] == [True, True]
    assert page(again).status == 200


def test_idle_connections_are_bounded(site: Sites) -> None:
    """A crawl of many origins keeps no more idle connections than its limit."""
    servers = [site({"/": Reply(body=TEXT)}) for _ in range(12)]
    fetcher = HttpFetcher(user_agent="x", timeout=5, connect_timeout=5, max_body=1000, concurrency=2)
    fetcher._idle.limit = 5

    for server in servers * 2:
        assert isinstance(fetcher.fetch(task(server.url())), FetchedPage)
    kept = len(fetcher._idle)
    fetcher.close()

    assert kept == 5
