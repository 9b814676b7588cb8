"""What the fetchers make of answers, byte by byte: framing, header fields, what is read, what is sent."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import responses

from crawlr.fetch.http import HttpFetcher
from crawlr.records import FetchFailure, Outcome, TaskKind
from tests.cases.answers import CASES, LENGTH, OK, TEXT, Case
from tests.fetching import Make, failure, make, page, raw, task
from tests.servers.local import Answer, Reply, Site
from tests.servers.wire import Request, Wire

__all__ = ["make"]  # a fixture

Sites = Callable[..., Site]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_answer_becomes_the_right_value(case: Case, make: Make, site: Sites) -> None:
    """Each odd answer becomes the page, the fault or the failure that the table names."""
    url = site({"/": raw(case.raw)}).url()

    result = make().fetch(task(url))

    if case.status is None or (isinstance(result, FetchFailure) and case.also):
        assert failure(result).outcome in (case.outcome, *case.also)
        assert failure(result).error
        assert not failure(result).is_local
    else:
        got = page(result)
        assert (got.status, got.body) == (case.status, case.body)
        assert got.fault in (case.fault, *case.also)
        assert (got.error is None) == (got.fault is None)


def test_reset_before_and_inside_the_body(make: Make, site: Sites) -> None:
    """A reset before the status is a failure, one inside the body a fault of the page with what came."""

    def at_once(request: Request, wire: Wire) -> None:
        wire.reset()

    def inside(request: Request, wire: Wire) -> None:
        wire.send(OK, b"Content-Length: 5000\r\n\r\n", TEXT)
        wire.pause(0.2)
        wire.reset()

    server, fetcher = site({"/a": at_once, "/b": inside}), make()

    first, second = fetcher.fetch(task(server.url("/a"))), fetcher.fetch(task(server.url("/b")))

    assert failure(first).outcome is Outcome.RESET
    assert (page(second).status, page(second).body, page(second).fault) == (200, TEXT, Outcome.RESET)


# ---------------------------------------------------------------- connections stay in step


def answers(*parts: bytes, keep: bool = True) -> Answer:
    """Bytes as an answer on a connection that stays open."""

    def answer(request: Request, wire: Wire) -> Reply | None:
        wire.send(*parts)
        return None

    return answer


class Talk(Site):
    """A site whose raw answers keep the connection open."""

    def respond(self, request: Request, wire: Wire) -> bool:
        answer = self.routes[request.target]
        if isinstance(answer, Reply):
            return super().respond(request, wire)
        answer(request, wire)
        return True


@pytest.fixture
def talk() -> Iterator[Callable[..., Talk]]:
    made: list[Talk] = []

    def build(routes: dict[str, Answer], **options: Any) -> Talk:
        made.append(Talk(routes, **options))
        return made[-1]

    yield build
    for each in made:
        each.close()


def body(text: bytes) -> Answer:
    return answers(OK, b"Content-Length: %d\r\n\r\n" % len(text), text)


STAYING = {
    "length": (OK + LENGTH + TEXT, True),
    "chunked": (OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", True),
    "early-hints": (b"HTTP/1.1 103 E\r\nLink: x\r\n\r\n" + OK + LENGTH + TEXT, True),
    "small-error": (b"HTTP/1.1 404 No\r\nContent-Length: 2000\r\n\r\n" + b"x" * 2000, True),
    "small-chunked-error": (b"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", True),
    "redirect": (b"HTTP/1.1 301 M\r\nLocation: /x\r\nContent-Length: 3\r\n\r\nabc", True),
    "small-image": (b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 3\r\n\r\nabc", True),
    "304": (b"HTTP/1.1 304 N\r\nContent-Length: 100\r\n\r\n", True),
    "old-with-keep-alive": (b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n" + LENGTH + TEXT, True),
    "big-image": (b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 900000\r\n\r\nabc", False),
    "close": (OK + b"Connection: foo, Close\r\n" + LENGTH + TEXT, False),
    "old": (b"HTTP/1.0 200 OK\r\n" + LENGTH + TEXT, False),
    "length-and-chunks": (
        OK + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        False,
    ),
    "204-with-a-length": (b"HTTP/1.1 204 N\r\nContent-Length: 5\r\n\r\n", False),
    "bytes-after-the-end": (OK + LENGTH + TEXT + OK + LENGTH + TEXT, False),
}


@pytest.mark.parametrize("name", STAYING)
def test_connection_is_used_again_only_in_step(name: str, talk: Callable[..., Talk], make: Make) -> None:
    """After an answer that leaves no doubt the connection carries the next request; after any other a new one does."""
    data, stays = STAYING[name]
    server, fetcher = talk({"/1": answers(data), "/2": body(b"second"), "/3": body(b"third")}), make()

    fetcher.fetch(task(server.url("/1")))
    second, third = page(fetcher.fetch(task(server.url("/2")))), page(fetcher.fetch(task(server.url("/3"))))

    assert (second.body, third.body) == (b"second", b"third")
    connections = [hit.connection for hit in server.hits]
    assert connections == [1, 1, 1] if stays else connections[0] == 1
    if not stays and type(fetcher).__name__ == "HttpFetcher":  # libcurl is sure of itself after some of them
        assert connections == [1, 2, 2]


def test_late_bytes_after_an_answer_are_not_the_next_one(talk: Callable[..., Talk], make: Make) -> None:
    """What a server sends after the end, a moment later, is never taken for the answer to the next request."""

    def late(request: Request, wire: Wire) -> None:
        wire.send(OK, b"Content-Length: 2\r\n\r\nhi")
        wire.pause(0.1)
        wire.send(OK, b"Content-Length: 4\r\n\r\nEVIL")
        sent.append(True)

    sent: list[bool] = []
    server, fetcher = talk({"/1": late, "/2": body(b"second")}), make()
    fetcher.fetch(task(server.url("/1")))
    server.wait_for_requests(1)
    while not sent:
        server.closing.wait(0.01)

    assert page(fetcher.fetch(task(server.url("/2")))).body == b"second"


def test_dead_kept_connection_costs_no_attempt(make: Make, site: Sites) -> None:
    """A kept connection that the server closes on the next request is replaced at once, unseen by the caller."""

    def once(request: Request, wire: Wire) -> Reply | None:
        return None if request.nth > 1 else Reply(body=TEXT)

    server, fetcher = site({"/": once}), make()

    results = [page(fetcher.fetch(task(server.url()))) for _ in range(4)]

    assert [result.status for result in results] == [200] * 4
    assert [(hit.connection, hit.nth) for hit in server.hits] == [
        (1, 1),
        (1, 2),
        (2, 1),
        (2, 2),
        (3, 1),
        (3, 2),
        (4, 1),
    ]


def test_fresh_connection_without_an_answer_is_a_failure(make: Make, site: Sites) -> None:
    """The silent second try is for kept connections only."""
    server = site({"/": lambda request, wire: None})

    assert failure(make().fetch(task(server.url()))).outcome is Outcome.EMPTY_REPLY
    assert len(server.hits) == 1


# ---------------------------------------------------------------- what is read

TYPES = {
    "text/html": True,
    "TEXT/HTML": True,
    "text/html; charset=utf-8": True,
    "text/html;charset=utf-8;charset=latin-1": True,
    "text/html,text/html": True,
    "application/xhtml+xml": True,
    "application/vnd.wap.xhtml+xml": True,
    "unknown/unknown": True,
    "*/*": True,
    "": True,
    "html": True,
    "text/": True,
    "image/png": False,
    "application/pdf": False,
    "text/plain": False,
    "application/octet-stream": False,
    "application/json": False,
    "text/html, image/png": False,
    "image/png, text/html": True,
    'image/png; a=", text/html"': False,
}


@pytest.mark.parametrize("value", TYPES)
def test_only_what_may_be_html_is_read(value: str, make: Make, site: Sites) -> None:
    """Bodies that the Content-Type rules out as HTML are left alone; no or no understandable type is read."""
    url = site({"/": Reply(body=TEXT, headers=(("Content-Type", value),))}).url()

    got = page(make().fetch(task(url)))

    assert (got.is_wanted, got.body) == ((True, TEXT) if TYPES[value] else (False, b""))


def test_two_content_types_the_last_counts(make: Make, site: Sites) -> None:
    """Of two Content-Type fields the last one that is a type counts, as in browsers; an equal one keeps its charset."""
    two = (("Content-Type", "text/html"), ("Content-Type", "changed/my/mind"))
    same = (("Content-Type", "text/html;charset=gbk"), ("Content-Type", "text/html"), ("Content-Type", "odd"))
    other = (("Content-Type", "image/png"), ("Content-Type", "text/html"))
    server = site({"/1": Reply(body=TEXT, headers=two), "/2": Reply(headers=same), "/3": Reply(headers=other)})
    fetcher = make()

    first, second, third = (page(fetcher.fetch(task(server.url(f"/{number}")))) for number in (1, 2, 3))

    assert (first.is_wanted, second.content_type, third.content_type) == (True, "text/html;charset=gbk", "text/html")


@pytest.mark.parametrize("kind", [TaskKind.ROBOTS, TaskKind.SITEMAP])
def test_robots_and_sitemaps_are_read_whatever_their_type(kind: TaskKind, make: Make, site: Sites) -> None:
    """robots.txt and sitemaps come with any type."""
    server = site({"/": Reply(body=TEXT, headers=(("Content-Type", "application/octet-stream"),))})

    assert page(make().fetch(task(server.url(), kind))).body == TEXT


def test_robots_is_cut_and_that_is_no_fault(make: Make, site: Sites) -> None:
    """Of a robots.txt 500 KiB are used whatever --max-body says, and what is behind is nobody's fault."""
    server = site({"/": Reply(body=b"x" * 800_000)})

    got = page(make(max_body=1000).fetch(task(server.url(), TaskKind.ROBOTS)))

    assert (len(got.body), got.fault) == (500 * 1024 + 1, None)


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
@pytest.mark.parametrize(("size", "fault"), [(5000, None), (5001, Outcome.TOO_LARGE), (300_000, Outcome.TOO_LARGE)])
def test_body_is_read_up_to_its_limit(framing: str, size: int, fault: Outcome | None, make: Make, site: Sites) -> None:
    """What is over max_body is cut there, the beginning is kept and the page says so."""
    text = bytes(range(32, 127)) * (size // 95 + 1)
    text = text[:size]
    head = {
        "length": OK + b"Content-Length: %d\r\n\r\n" % size + text,
        "chunked": OK + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (size, text),
        "close": OK + b"\r\n" + text,
    }[framing]

    got = page(make(max_body=5000).fetch(task(site({"/": raw(head)}).url())))

    assert (got.status, got.body, got.fault) == (200, text[:5000], fault)


def test_content_coding_is_left_as_it_is(make: Make, site: Sites) -> None:
    """A coded body is handed over as received, with the codings of all fields in order."""
    fields = (("Content-Encoding", "gzip"), ("Content-Encoding", "DEFLATE"))
    server = site({"/": Reply(body=b"\x1f\x8b not really", headers=fields)})

    got = page(make().fetch(task(server.url())))

    assert (got.body, got.content_encoding) == (b"\x1f\x8b not really", "gzip, DEFLATE")


def test_header_fields_are_handed_over(make: Make, site: Sites) -> None:
    """The fields that the crawl looks at arrive as they were sent, bytes above ASCII included."""
    fields = (
        ("Location", "/caf\xe9?q=\xff"),
        ("Retry-After", "120"),
        ("X-Robots-Tag", "noindex"),
        ("X-Robots-Tag", "crawlr: nofollow"),
        ("Link", '</a>; rel="next"'),
        ("Link", "</b>; rel=canonical"),
        ("Last-Modified", "Wed, 21 Oct 2015 07:28:00 GMT"),
    )
    got = page(make().fetch(task(site({"/": Reply(status=503, headers=fields)}).url())))

    assert got.location == b"/caf\xe9?q=\xff"
    assert (got.retry_after, got.last_modified) == ("120", "Wed, 21 Oct 2015 07:28:00 GMT")
    assert got.x_robots_tag == ("noindex", "crawlr: nofollow")
    assert got.link == ('</a>; rel="next"', "</b>; rel=canonical")


def test_time_and_bytes_are_accounted(make: Make, site: Sites) -> None:
    """The time goes to its phase, and the bytes on the wire include the header."""
    server, fetcher = site({"/": Reply(body=b"x" * 1000, delay=0.2)}), make()

    first, second = page(fetcher.fetch(task(server.url()))), page(fetcher.fetch(task(server.url())))

    assert first.timing.connect > second.timing.connect >= 0
    assert first.timing.first_byte >= 0.2
    assert first.timing.total < 2
    assert 1000 < second.wire_bytes < 1400


# ---------------------------------------------------------------- what is sent

TARGETS = (
    "/",
    "/a|b",
    "/%7e",
    "/%7E",
    "/it's",
    "/[x]",
    "/^",
    "/`",
    "/{a}",
    '/"',
    "/<>",
    "/a%2Fb",
    "/a%252Fb",
    "/%E9",
    "/%e9%",
    "/a//b",
    "/a/./b/../c",
    "/?q=a b".replace(" ", "%20"),
    "/?q=[1]&r={2}&s=|&t=^&u='&v=\\",
    "/?",
    "/a?b?c",
    "/a;b=c,d!e~f*g(h)",
    "/\\x",
)


@pytest.mark.parametrize("target", TARGETS)
def test_target_goes_out_as_it_is(target: str, make: Make, site: Sites) -> None:
    """Not one byte of the request target is written in another way than the URL has it."""
    server = site({}, default=Reply(body=TEXT))

    make().fetch(task(server.url(target)))

    assert [hit.target for hit in server.hits] == [target]


def test_fragment_and_userinfo_are_not_sent(make: Make, site: Sites) -> None:
    """Neither the fragment nor user and password of a URL reach the server."""
    server = site({}, default=Reply(body=TEXT))

    make().fetch(task(f"http://user:secret@127.0.0.1:{server.ports['']}/a?b#c"))

    assert [hit.target for hit in server.hits] == ["/a?b"]
    assert server.hits[0].header("authorization") is None
    assert server.hits[0].header("host") == f"127.0.0.1:{server.ports['']}"


@pytest.mark.parametrize("target", ["/a b", "/a\r\nX: y", "/\u00e9", "/\x00", "/a\x7f"])
def test_url_that_would_break_the_request_is_not_sent(target: str, make: Make, site: Sites) -> None:
    """Blanks, line ends and what is no ASCII in a URL never reach the wire."""
    server = site({}, default=Reply(body=TEXT))

    assert failure(make().fetch(task(server.url(target)))).outcome is Outcome.PROTOCOL_ERROR
    assert server.hits == []


def test_host_of_an_ipv6_address_is_bracketed(make: Make) -> None:
    """The Host field names address and port as the URL does."""
    try:
        listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    received: list[bytes] = []

    def serve() -> None:
        with listener.accept()[0] as sock:
            received.append(sock.recv(65536))
            sock.sendall(OK + LENGTH + TEXT)

    with listener:
        server = threading.Thread(target=serve)
        server.start()
        port = listener.getsockname()[1]
        got = page(make().fetch(task(f"http://[::1]:{port}/x")))
        server.join(5)

    assert got.body == TEXT
    assert f"\r\nHost: [::1]:{port}\r\n".encode() in received[0]


def test_own_fields_are_sent_and_nothing_else(make: Make, site: Sites) -> None:
    """A request has these fields only: no cookie, no credentials, no referrer."""
    server = site({}, default=Reply(body=TEXT, headers=(("Set-Cookie", "a=1; Path=/"),)))
    fetcher = make()

    fetcher.fetch(task(server.url("/1")))
    fetcher.fetch(task(server.url("/2")))

    for hit in server.hits:
        assert sorted(name.lower() for name, _ in hit.headers) == ["accept", "accept-encoding", "host", "user-agent"]
    assert server.hits[0].header("user-agent") == "crawlr/0 (+test)"
    assert server.hits[0].header("accept-encoding") == "gzip, deflate, br, zstd"


def test_secrets_go_to_their_origins_only(make: Make, site: Sites) -> None:
    """Headers, cookie and credentials reach the origin they were given for, not another port of the same host."""
    mine, other = site({}, default=Reply(body=TEXT)), site({}, default=Reply(body=TEXT))
    fetcher = make(
        headers=(("X-Key", "k\xe9y"), ("User-Agent", "mine/1")),
        cookie="a=1; b=2",
        auth="user:pa:ss",
        secret_origins=frozenset({mine.origin()}),
    )

    for server in (mine, other):
        fetcher.fetch(task(server.url()))
        fetcher.fetch(task(server.url("/robots.txt"), TaskKind.ROBOTS))

    for hit in mine.hits:
        assert hit.header("x-key") == "k\xe9y"
        assert [value for name, value in hit.headers if name.lower() == "user-agent"] == ["mine/1"]
        assert hit.header("cookie") == "a=1; b=2"
        assert hit.header("authorization") == "Basic dXNlcjpwYTpzcw=="
    for hit in other.hits:
        assert {name.lower() for name, _ in hit.headers} == {"accept", "accept-encoding", "host", "user-agent"}
    assert len(mine.hits) == len(other.hits) == 2


def test_secret_origin_on_its_default_port_needs_no_port(make: Make) -> None:
    """An origin with and without its default port is one origin."""
    make(cookie="a=1", secret_origins=frozenset({"https://a.test", "https://a.test:443"}))


@pytest.mark.parametrize("field", [("X\r\nY", "v"), ("X", "a\r\nY: b"), ("X Y", "v"), ("", "v"), ("X", "a\0")])
def test_field_that_would_break_the_request_is_refused(field: tuple[str, str], make: Make) -> None:
    """A header that could smuggle another one is an error of the caller."""
    with pytest.raises(ValueError, match="cannot be sent"):
        make(headers=(field,))


def test_environment_is_not_read(make: Make, site: Sites, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Neither a netrc nor the environment's proxies change a request."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login user password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/")
    server = site({}, default=Reply(body=TEXT))

    assert page(make().fetch(task(server.url()))).body == TEXT
    assert server.hits[0].header("authorization") is None


# ---------------------------------------------------------------- requests' transport can be mocked


@pytest.fixture
def mocked() -> Iterator[responses.RequestsMock]:
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        yield mock


@pytest.fixture
def http() -> Iterator[HttpFetcher]:
    fetcher = HttpFetcher(user_agent="crawlr/0", timeout=5, connect_timeout=5, max_body=1000, concurrency=2)
    yield fetcher
    fetcher.close()


def test_mocked_answers_are_read_like_real_ones(http: HttpFetcher, mocked: responses.RequestsMock) -> None:
    """What the responses library answers becomes pages: body, header fields, redirects, types, the size limit."""
    mocked.get("http://m.test/", body="<a href=/x>x</a>", content_type="text/html")
    mocked.get("http://m.test/moved", status=301, headers={"Location": "/new"})
    mocked.get("http://m.test/image", body="x", content_type="image/png")
    mocked.get("http://m.test/big", body="x" * 1001, content_type="text/html")
    mocked.get("http://m.test/robots.txt", body="User-agent: *", content_type="text/plain")

    home, moved, image, big = (
        page(http.fetch(task(f"http://m.test/{name}"))) for name in ("", "moved", "image", "big")
    )
    robots = page(http.fetch(task("http://m.test/robots.txt", TaskKind.ROBOTS)))

    assert (home.status, home.body, home.content_type) == (200, b"<a href=/x>x</a>", "text/html")
    assert (moved.status, moved.location) == (301, b"/new")
    assert (image.is_wanted, image.body) == (False, b"")
    assert (big.fault, len(big.body)) == (Outcome.TOO_LARGE, 1000)
    assert robots.body == b"User-agent: *"
    assert mocked.calls[0].request.headers["User-Agent"] == "crawlr/0"


MOCKED_ERRORS = {
    "connection": (responses.ConnectionError("no"), Outcome.REFUSED),
    "unmatched": (None, Outcome.REFUSED),
    "refused": (ConnectionRefusedError(111, "refused"), Outcome.REFUSED),
    "reset": (ConnectionResetError(104, "reset"), Outcome.RESET),
    "timeout": (TimeoutError("slow"), Outcome.READ_TIMEOUT),
    "name": (socket.gaierror(-2, "unknown"), Outcome.DNS_ERROR),
}


@pytest.mark.parametrize("name", MOCKED_ERRORS)
def test_mocked_errors_become_outcomes(name: str, http: HttpFetcher, mocked: responses.RequestsMock) -> None:
    """What a mock raises becomes the outcome that the real error has."""
    error, outcome = MOCKED_ERRORS[name]
    if error is not None:
        mocked.get("http://m.test/", body=error)

    assert failure(http.fetch(task("http://m.test/"))).outcome is outcome
