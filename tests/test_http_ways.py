"""Ways to an origin: addresses that may be connected to, names, TLS, proxies; and what each failure is called."""

from __future__ import annotations

import contextlib
import datetime
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme

from crawlr.fetch.addresses import AddressPolicy
from crawlr.fetch.http import HttpFetcher
from crawlr.records import Outcome
from tests.cases.answers import TEXT
from tests.fetching import Make, failure, make, page, task
from tests.gates import Gate
from tests.servers.local import Reply, Site
from tests.servers.proxy import Proxy
from tests.servers.wire import Request, Wire

__all__ = ["make"]  # a fixture

Sites = Callable[..., Site]


def closed_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@pytest.fixture
def named() -> Iterator[Callable[..., HttpFetcher]]:
    """Makes fetchers for which names are looked up in a dict."""
    made: list[HttpFetcher] = []

    def build(names: dict[str, list[str]], **options: object) -> HttpFetcher:
        def lookup(host: str) -> list[str]:
            asked.append(host)
            if host not in names:
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            return names[host]

        asked: list[str] = []
        settings = {"user_agent": "x", "timeout": 5.0, "connect_timeout": 2.0, "max_body": 1 << 20, "concurrency": 4}
        made.append(HttpFetcher(**(settings | options), lookup=lookup))  # type: ignore[arg-type]
        made[-1].asked = asked  # type: ignore[attr-defined]
        return made[-1]

    yield build
    for each in made:
        each.close()


# ---------------------------------------------------------------- connecting


def test_closed_port_is_refused(make: Make) -> None:
    """Nobody listens."""
    got = failure(make().fetch(task(f"http://127.0.0.1:{closed_port()}/")))

    assert (got.outcome, got.is_local) == (Outcome.REFUSED, False)


def test_full_queue_is_a_connect_timeout(make: Make) -> None:
    """A connection that is neither taken nor refused has the connect time-out, not the longer one."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        began = time.monotonic()
        got = failure(
            make(timeout=20, connect_timeout=0.5).fetch(task(f"http://127.0.0.1:{listener.getsockname()[1]}/"))
        )

    assert got.outcome is Outcome.CONNECT_TIMEOUT
    assert 0.4 < time.monotonic() - began < 2.0


def test_localhost_is_looked_up_and_reached(make: Make, site: Sites) -> None:
    """A name goes through the system's own look-up."""
    server = site({"/": Reply(body=TEXT)})

    assert page(make().fetch(task(f"http://localhost:{server.ports['']}/"))).body == TEXT


def test_unknown_name_is_a_dns_error_that_is_final(make: Make) -> None:
    """A name that does not exist says so."""
    got = failure(make().fetch(task("http://no-such-name.invalid/")))

    assert got.outcome is Outcome.DNS_ERROR
    assert not got.error.startswith("temporary")


@pytest.mark.parametrize("host", ["a..b.invalid", "l" * 64 + ".test", "-.test", "a_b.invalid", "xn--a.invalid"])
def test_odd_names_are_dns_errors(host: str, make: Make) -> None:
    """A host that no resolver takes is an unknown name, never an exception."""
    assert failure(make().fetch(task(f"http://{host}/"))).outcome is Outcome.DNS_ERROR


def test_temporary_name_failure_says_so(named: Callable[..., HttpFetcher]) -> None:
    """What can pass is told from what cannot."""

    def lookup(host: str) -> list[str]:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    fetcher = HttpFetcher(user_agent="x", timeout=5, connect_timeout=2, max_body=100, concurrency=1, lookup=lookup)
    got = failure(fetcher.fetch(task("http://a.test/")))
    fetcher.close()

    assert got.outcome is Outcome.DNS_ERROR
    assert got.error.startswith("temporary")


def test_hanging_lookup_is_bounded(gate: Callable[..., Gate]) -> None:
    """A look-up that does not end costs the connect time-out, and no more threads than there may be."""
    closed = gate()

    def lookup(host: str) -> list[str]:
        closed.enter()
        return []

    fetcher = HttpFetcher(user_agent="x", timeout=9, connect_timeout=0.3, max_body=100, concurrency=9, lookup=lookup)
    before, began = threading.active_count(), time.monotonic()
    results = [failure(fetcher.fetch(task(f"http://n{number}.test/"))) for number in range(4)]
    threads = threading.active_count() - before
    spent = time.monotonic() - began
    closed.open()
    fetcher.close()

    assert {result.outcome for result in results} == {Outcome.DNS_ERROR}
    assert all(result.error.startswith("temporary") for result in results)
    assert (spent < 3, threads) == (True, 4)


def test_second_address_is_tried(named: Callable[..., HttpFetcher], site: Sites) -> None:
    """A name whose first address refuses is reached at its next one."""
    server = site({"/": Reply(body=TEXT)})
    fetcher = named({"two.test": ["127.0.0.9", "::1", "127.0.0.1"]})

    got = page(fetcher.fetch(task(f"http://two.test:{server.ports['']}/")))

    assert (got.body, server.hits[0].header("host")) == (TEXT, f"two.test:{server.ports['']}")


# ---------------------------------------------------------------- the address policy


def test_private_addresses_are_refused_on_wish(named: Callable[..., HttpFetcher], site: Sites) -> None:
    """With block_private no spelling and no name leads to this machine: not one connection is opened."""
    server = site({"/": Reply(body=TEXT)})
    port = server.ports[""]
    fetcher = named({"inside.test": ["127.0.0.1"]}, address_policy=AddressPolicy(block_private=True))

    hosts = ["127.0.0.1", "inside.test", "[::1]", "[::ffff:127.0.0.1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]"]
    results = [failure(fetcher.fetch(task(f"http://{host}:{port}/"))) for host in hosts]
    robots = failure(fetcher.fetch(task(f"http://inside.test:{port}/robots.txt")))

    assert {result.outcome for result in [*results, robots]} == {Outcome.BLOCKED_ADDRESS}
    assert server.hits == []


class OnlySecond(AddressPolicy):
    """127.0.0.2 stands for the internet, 127.0.0.1 for what is inside."""

    def refusal(self, address: str, *, host: str) -> str | None:
        return None if address == "127.0.0.2" else f"{address} is inside"


def test_name_that_changes_its_mind_is_refused(
    named: Callable[..., HttpFetcher], site: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address that is connected to is the one that is checked: a name that turns inside later gets nowhere."""
    monkeypatch.setattr("crawlr.fetch.addresses._KEEP_FOUND", 0.0)
    outside = site({"/": Reply(body=TEXT, keep=False)}, host="127.0.0.2")
    names = {"moving.test": ["127.0.0.2"]}
    fetcher = named(names, address_policy=OnlySecond())
    url = f"http://moving.test:{outside.ports['']}/"

    first = page(fetcher.fetch(task(url)))
    names["moving.test"] = ["127.0.0.1"]
    second = failure(fetcher.fetch(task(url)))

    assert (first.body, second.outcome, len(outside.hits)) == (TEXT, Outcome.BLOCKED_ADDRESS, 1)


def test_only_the_addresses_that_may_be_are_used(named: Callable[..., HttpFetcher], site: Sites) -> None:
    """Of several addresses the refused ones are left out."""
    server = site({"/": Reply(body=TEXT)})
    fetcher = named({"mixed.test": ["169.254.169.254", "127.0.0.1"]})

    assert page(fetcher.fetch(task(f"http://mixed.test:{server.ports['']}/"))).body == TEXT


def test_metadata_addresses_are_always_refused(named: Callable[..., HttpFetcher]) -> None:
    """Where clouds tell their secrets nobody is sent, by number or by name."""
    fetcher = named({"meta.test": ["169.254.169.254"], "six.test": ["::ffff:169.254.169.254"]})

    hosts = ["169.254.169.254", "meta.test", "six.test", "[fd00:ec2::254]", "100.100.100.200"]
    results = [failure(fetcher.fetch(task(f"http://{host}/latest/meta-data/"))) for host in hosts]

    assert {result.outcome for result in results} == {Outcome.BLOCKED_ADDRESS}


# ---------------------------------------------------------------- TLS


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def bundle(authority: trustme.CA, tmp_path: Path) -> str:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return str(tmp_path / "ca.pem")


def serving(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


def test_trusted_certificate_is_taken(make: Make, site: Sites, authority: trustme.CA, bundle: str) -> None:
    """A page over TLS is a page, and the connection is used again."""
    server = site({"/": Reply(body=TEXT)}, tls=serving(authority.issue_cert("127.0.0.1")))
    fetcher = make(ca_bundle=bundle)

    results = [page(fetcher.fetch(task(server.url()))) for _ in range(3)]

    assert [result.body for result in results] == [TEXT] * 3
    assert {hit.connection for hit in server.hits} == {1}


def test_dead_kept_connection_over_tls_costs_no_attempt(
    make: Make, site: Sites, authority: trustme.CA, bundle: str
) -> None:
    """A kept connection that the server closes on the next request is replaced at once under TLS, too."""

    def once(request: Request, wire: Wire) -> Reply | None:
        return None if request.nth > 1 else Reply(body=TEXT)

    server = site({"/": once}, tls=serving(authority.issue_cert("127.0.0.1")))
    fetcher = make(ca_bundle=bundle)

    assert [page(fetcher.fetch(task(server.url()))).body for _ in range(4)] == [TEXT] * 4
    assert len(server.hits) == 7


BAD_CERTIFICATES = ("expired", "hostname", "untrusted")


@pytest.mark.parametrize("reason", BAD_CERTIFICATES)
def test_bad_certificate_is_told_by_its_reason(
    reason: str, make: Make, site: Sites, authority: trustme.CA, bundle: str
) -> None:
    """Each way in which a certificate is bad has its word, and no request is sent; insecure takes it."""
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    certificate = {
        "expired": authority.issue_cert("127.0.0.1", not_before=now - 9 * day, not_after=now - 2 * day),
        "hostname": authority.issue_cert("other.test"),
        "untrusted": trustme.CA().issue_cert("127.0.0.1"),
    }[reason]
    server = site({"/": Reply(body=TEXT)}, tls=serving(certificate))

    got = failure(make(ca_bundle=bundle).fetch(task(server.url())))
    sent = list(server.hits)
    insecure = page(make(insecure=True).fetch(task(server.url())))

    assert (got.outcome, got.error.partition(":")[0]) == (Outcome.TLS_ERROR, reason)
    assert (sent, insecure.body) == ([], TEXT)


def test_certificate_of_nobody_known_is_refused_by_default(make: Make, site: Sites, authority: trustme.CA) -> None:
    """Certificates are verified without being asked for."""
    server = site({"/": Reply(body=TEXT)}, tls=serving(authority.issue_cert("127.0.0.1")))

    assert failure(make().fetch(task(server.url()))).error.startswith("untrusted")


def test_plain_http_where_tls_is_expected(make: Make) -> None:
    """An answer that is no TLS is called so."""

    def serve() -> None:
        with contextlib.suppress(OSError), listener.accept()[0] as sock:
            sock.recv(65536)
            sock.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            sock.recv(65536)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve)
        server.start()
        got = failure(make().fetch(task(f"https://127.0.0.1:{listener.getsockname()[1]}/")))
        server.join(5)

    assert (got.outcome, got.error.partition(":")[0]) == (Outcome.TLS_ERROR, "not_tls")


def test_silent_handshake_is_bounded(make: Make) -> None:
    """A server that takes the connection and never says a word has the connect time-out."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        began = time.monotonic()
        got = failure(
            make(timeout=20, connect_timeout=0.5).fetch(task(f"https://127.0.0.1:{listener.getsockname()[1]}/"))
        )

    assert (got.outcome, got.error.partition(":")[0]) == (Outcome.TLS_ERROR, "handshake_timeout")
    assert time.monotonic() - began < 2.0


def test_dripped_handshake_is_bounded(make: Make) -> None:
    """So has one that drips its first record."""
    stop = threading.Event()

    def serve() -> None:
        with contextlib.suppress(OSError), listener.accept()[0] as sock:
            sock.sendall(b"\x16\x03\x03\x40\x00")
            while not stop.wait(0.05):
                sock.sendall(b"\x00")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve)
        server.start()
        began = time.monotonic()
        got = failure(
            make(timeout=20, connect_timeout=0.5).fetch(task(f"https://127.0.0.1:{listener.getsockname()[1]}/"))
        )
        spent = time.monotonic() - began
        stop.set()
        server.join(5)

    assert got.outcome is Outcome.TLS_ERROR
    assert spent < 2.0


def test_connection_closed_in_the_handshake(make: Make, site: Sites) -> None:
    """A server that hangs up in the handshake is a TLS error that can pass."""

    def serve() -> None:
        for _ in range(2):
            with contextlib.suppress(OSError), listener.accept()[0] as sock:
                sock.recv(10_000)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve, daemon=True)
        server.start()
        got = failure(make().fetch(task(f"https://127.0.0.1:{listener.getsockname()[1]}/")))
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        server.join(5)

    assert (got.outcome, got.error.partition(":")[0]) == (Outcome.TLS_ERROR, "handshake_cut")


def test_unreadable_bundle_is_an_error_of_the_caller(make: Make, tmp_path: Path) -> None:
    """A CA file that is none is told at once."""
    bad = tmp_path / "ca.pem"
    bad.write_text("no certificate")

    with pytest.raises(OSError):
        make(ca_bundle=str(bad))


# ---------------------------------------------------------------- proxies


@pytest.fixture
def proxy() -> Iterator[Callable[..., Proxy]]:
    made: list[Proxy] = []

    def build(**options: object) -> Proxy:
        made.append(Proxy(**options))  # type: ignore[arg-type]
        return made[-1]

    yield build
    for each in made:
        each.close()


def test_http_through_an_http_proxy(make: Make, site: Sites, proxy: Callable[..., Proxy]) -> None:
    """A plain request goes to the proxy whole, its target untouched, with the proxy's own credentials only there."""
    server, way = site({}, default=Reply(body=TEXT)), proxy()
    fetcher = make(proxy=f"http://user:p%40ss@127.0.0.1:{way.port}")

    got = page(fetcher.fetch(task(server.url("/a|b?c='%7e"))))

    port = server.ports[""]
    assert got.body == TEXT
    assert way.asked == [
        f"GET http://127.0.0.1:{port}/a|b?c='%7e HTTP/1.1 | Proxy-Authorization: Basic dXNlcjpwQHNz",
    ]
    assert server.hits[0].target == "/a|b?c='%7e"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_https_through_a_proxy_is_tunnelled(
    scheme: str, make: Make, site: Sites, proxy: Callable[..., Proxy], authority: trustme.CA, bundle: str
) -> None:
    """A tunnel is opened for https, through a plain proxy and through one that speaks TLS itself."""
    context = serving(authority.issue_cert("127.0.0.1"))
    server = site({}, default=Reply(body=TEXT), tls=context)
    way = proxy(tls=context if scheme == "https" else None)
    fetcher = make(proxy=f"{scheme}://user:pass@127.0.0.1:{way.port}", ca_bundle=bundle)

    results = [page(fetcher.fetch(task(server.url(f"/{number}")))) for number in range(3)]

    assert [result.body for result in results] == [TEXT] * 3
    assert way.asked == [f"CONNECT 127.0.0.1:{server.ports['']} HTTP/1.1 | Proxy-Authorization: Basic dXNlcjpwYXNz"]
    assert [hit.target for hit in server.hits] == ["/0", "/1", "/2"]
    assert server.hits[0].header("proxy-authorization") is None


SOCKS = {
    "socks5": ("127.0.0.1", "socks5 127.0.0.1 -"),
    "socks5h": ("name.test", "socks5 name.test -"),
    "socks5h://user:pass": ("name.test", "socks5 name.test user:pass"),
    "socks4": ("127.0.0.1", "socks4 127.0.0.1 -"),
    "socks4a": ("name.test", "socks4 name.test -"),
}


@pytest.mark.parametrize("kind", SOCKS)
@pytest.mark.parametrize("has_tls", [False, True])
def test_socks_proxies(
    kind: str,
    *,
    has_tls: bool,
    make: Make,
    site: Sites,
    proxy: Callable[..., Proxy],
    authority: trustme.CA,
    bundle: str,
) -> None:
    """SOCKS 4, 4a and 5 lead to the origin; the kinds for names leave the look-up to the proxy."""
    host, asked = SOCKS[kind]
    tls = serving(authority.issue_cert(host)) if has_tls else None
    server, way = site({}, default=Reply(body=TEXT), tls=tls), proxy()
    scheme, _, secret = kind.partition("://")
    fetcher = make(proxy=f"{scheme}://{secret}{'@' if secret else ''}127.0.0.1:{way.port}", ca_bundle=bundle)

    got = page(fetcher.fetch(task(f"http{'s' if has_tls else ''}://{host}:{server.ports['']}/a|b")))

    assert (got.body, way.asked, server.hits[0].target) == (TEXT, [asked], "/a|b")


@pytest.mark.parametrize("url", ["http://refused.test/", "https://refused.test/"])
def test_proxy_that_refuses(url: str, make: Make, proxy: Callable[..., Proxy]) -> None:
    """What a proxy says no to is refused, and the message holds no password."""
    socks = make(proxy=f"socks5h://127.0.0.1:{proxy().port}")
    no = proxy(answer=b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
    http = make(proxy=f"http://user:secret@127.0.0.1:{no.port}")
    dead = make(proxy=f"http://user:secret@127.0.0.1:{closed_port()}")

    assert failure(socks.fetch(task(url))).outcome is Outcome.REFUSED
    assert failure(dead.fetch(task(url))).outcome is Outcome.REFUSED
    assert "secret" not in failure(dead.fetch(task(url))).error
    if url.startswith("https"):
        assert failure(http.fetch(task(url))).outcome is Outcome.REFUSED
    else:
        assert page(http.fetch(task(url))).status == 407


def test_silent_proxy_is_bounded(make: Make) -> None:
    """A proxy that opens no tunnel has the connect time-out."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        began = time.monotonic()
        port = listener.getsockname()[1]
        for scheme in ("http", "socks5h", "socks4a"):
            fetcher = make(proxy=f"{scheme}://127.0.0.1:{port}", timeout=20, connect_timeout=0.4)
            assert failure(fetcher.fetch(task("https://name.test/"))).outcome is Outcome.CONNECT_TIMEOUT

    assert time.monotonic() - began < 4.0


def test_proxies_of_the_environment_are_used_when_asked_for(
    make: Make, site: Sites, proxy: Callable[..., Proxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    """proxy="env" takes http_proxy, and obeys no_proxy."""
    server, way = site({}, default=Reply(body=TEXT)), proxy()
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{way.port}")
    monkeypatch.setenv("no_proxy", "nowhere.test")

    assert page(make(proxy="env").fetch(task(server.url("/1")))).body == TEXT
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert page(make(proxy="env").fetch(task(server.url("/2")))).body == TEXT
    assert [line.split("/")[3] for line in way.asked] == ["1 HTTP"]


@pytest.mark.parametrize("text", ["ftp://a:1", "http://", "http://a:99999", "http://a:x", "http://a/path", ""])
def test_text_that_is_no_proxy_is_refused(text: str, make: Make) -> None:
    """A proxy that cannot be used is an error of the caller."""
    with pytest.raises(ValueError, match="accepted is"):
        make(proxy=text)
