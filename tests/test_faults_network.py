"""What goes wrong below the exchange: connections, names, TLS, descriptors; and where secrets may go, row by row.

Black box, as test_faults.py; tests/README.md lists the rows.
"""

from __future__ import annotations

import contextlib
import datetime
import re
import resource
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme

from tests.conftest import Command, Crawl
from tests.servers.local import Reply, Site, page, redirect
from tests.servers.process import ServerProcess

MakeSite = Callable[..., Site]


# ---------------------------------------------------------------- connections, names, TLS


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def tls(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that accepts connections and never says a word, not even in a TLS handshake."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
def black_hole() -> Iterator[int]:
    """A port where a connection is neither accepted nor refused: its queue is full."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


def closed_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def test_origins_that_cannot_be_reached_are_recorded_as_why(
    run_cli: Command, site: MakeSite, authority: trustme.CA, silent_port: int, black_hole: int, tmp_path: Path
) -> None:
    """Refused, swallowed, unknown, and every way in which TLS fails: each has its outcome, and the good ones go on."""
    bundle = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(bundle))
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    expired = authority.issue_cert("127.0.0.1", not_before=now - 9 * day, not_after=now - 2 * day)
    routes = {"/": page("/a")}
    good = site(routes, default=page())
    trusted = site(routes, default=page(), tls=tls(authority.issue_cert("127.0.0.1")))
    late = site(routes, tls=tls(expired))
    other_name = site(routes, tls=tls(authority.issue_cert("other.test")))
    unknown_issuer = site(routes, tls=tls(trustme.CA().issue_cert("127.0.0.1")))
    expected = {
        good.url(): "ok",
        good.url("/a"): "ok",
        trusted.url(): "ok",
        trusted.url("/a"): "ok",
        late.url(): "tls_error",
        other_name.url(): "tls_error",
        unknown_issuer.url(): "tls_error",
        good.url().replace("http:", "https:"): "tls_error",
        f"http://127.0.0.1:{closed_port()}/": "refused",
        f"http://127.0.0.1:{black_hole}/": "connect_timeout",
        "http://no-such.invalid/": "dns_error",
    }
    hanging = f"https://127.0.0.1:{silent_port}/"
    seeds = [url for url in expected if not url.endswith("/a")] + [hanging]
    options = ["--retries", "0", "--connect-timeout", "800ms", "--timeout", "2s", "--ca-bundle", str(bundle)]
    ran = run_cli(*options, *seeds)
    outcomes = {row["url"]: row["outcome"] for row in ran.site_map["pages"]}

    assert outcomes.pop(hanging) in ("tls_error", "connect_timeout")
    assert outcomes == expected
    errors = {row["url"]: row["error"] for row in ran.site_map["pages"]}
    assert "expired" in errors[late.url()]
    assert all(hit.path in ("/robots.txt", "/", "/a") for hit in good.hits)
    assert not late.hits + other_name.hits + unknown_issuer.hits


def test_insecure_takes_any_certificate(run_cli: Command, site: MakeSite) -> None:
    """-k crawls what cannot be verified."""
    ground = site({"/": page("/a")}, default=page(), tls=tls(trustme.CA().issue_cert("other.test")))
    ran = run_cli("--insecure", ground.url())

    assert set(ran.site_map.pages) == {"/", "/a"}


def test_a_host_that_cannot_be_connected_to_is_asked_once(run_cli: Command, site: MakeSite) -> None:
    """Nobody is there for robots.txt: its URLs become pages with that outcome, without a request for each."""
    dead = closed_port()
    ground = site({"/": page(*(f"http://127.0.0.1:{dead}/{n}" for n in range(20)), "/a")}, default=page())
    ran = run_cli("--scope", "any", "--retries", "0", ground.url(), limit=20)
    rows = [row for row in ran.site_map["pages"] if f":{dead}/" in row["url"]]

    assert [(row["outcome"], row["status"]) for row in rows] == [("refused", None)] * 20
    assert ran.site_map.outcome("/a") == "ok"


@pytest.mark.parametrize(
    ("seed", "says"),
    [
        ("http://no-such.invalid/", "no-such.invalid"),
        ("http://127.0.0.1:{closed}/", "refused"),
        ("{bad}/status_999", "999"),
        ("{bad}/empty", "without an answer"),
    ],
)
def test_a_crawl_without_a_single_page_exits_3_and_says_why(
    run_cli: Command, misbehaving: ServerProcess, seed: str, says: str
) -> None:
    """The first error is on stderr, in one line, without a traceback."""
    seed = seed.replace("{closed}", str(closed_port())).replace("{bad}", misbehaving.url(""))
    ran = run_cli("--retries", "0", seed, rc=3)

    assert says in ran.err
    assert len(ran.err.strip().splitlines()) <= 8


def test_few_descriptors_are_no_fault_of_the_site(run_cli: Command, site: MakeSite) -> None:
    """50 requests at once with room for far fewer sockets: every page is there, none is blamed."""
    ground = site({"/": page(*(f"/{n}" for n in range(120)))}, default=Reply(body="x", delay=0.03))
    limits = {resource.RLIMIT_NOFILE: 48}
    ran = run_cli("--concurrency", "50", "--parse-procs", "1", "--retries", "0", ground.url(), limits=limits, limit=90)

    assert {row["outcome"] for row in ran.site_map["pages"]} == {"ok"}
    assert len(ran.site_map["pages"]) == 121


def test_many_hosts_leave_no_descriptor_open(crawl: Crawl, site: MakeSite) -> None:
    """Sixty origins, ten at once: the count of descriptors is what it was (the check around each test)."""
    grounds = [site({"/": page("/a")}, default=page(), host=f"127.0.0.{2 + n % 200}") for n in range(60)]
    crawled = crawl(*(ground.url() for ground in grounds), concurrency=10)

    assert len(crawled.map["pages"]) == 120


# ---------------------------------------------------------------- secrets


def test_secrets_go_to_the_origins_of_the_seeds_only(run_cli: Command, site: MakeSite) -> None:
    """User, cookie and header reach the seed's pages, and no redirect's target and no link elsewhere; none is kept."""
    elsewhere = site({}, default=page(), host="127.0.0.2")
    ground = site({"/": page("/moved", elsewhere.url("/linked")), "/moved": redirect(elsewhere.url("/redirected"))})
    secrets = ["--auth", "user:pass-word", "--cookie", "sid=cookie-value", "--header", "X-Token: header-value"]
    ran = run_cli("--scope", "any", *secrets, ground.url())
    names = {hit.target: {name.lower() for name, _ in hit.headers} for hit in elsewhere.hits}

    assert {"/redirected", "/linked"} <= set(names)
    assert not set().union(*names.values()) & {"authorization", "cookie", "x-token", "proxy-authorization"}
    assert ground.hits[-1].header("Authorization") == "Basic dXNlcjpwYXNzLXdvcmQ="
    assert (ground.hits[-1].header("Cookie"), ground.hits[-1].header("X-Token")) == ("sid=cookie-value", "header-value")
    written = str(ran.site_map.document) + ran.out + ran.err
    assert not re.search("pass-word|cookie-value|header-value|dXNlcjpwYXNzLXdvcmQ", written)


def test_the_environment_gives_neither_a_password_nor_a_proxy(run_cli: Command, site: MakeSite, tmp_path: Path) -> None:
    """netrc and http_proxy are not used unless asked for."""
    netrc = tmp_path / ".netrc"
    netrc.write_text("machine 127.0.0.1 login me password netrc-word\n")
    netrc.chmod(0o600)
    ground = site({"/": page()})
    dead = f"http://127.0.0.1:{closed_port()}"
    ran = run_cli(
        ground.url(), env={"NETRC": str(netrc), "HOME": str(tmp_path), "http_proxy": dead, "HTTP_PROXY": dead}
    )

    assert ran.site_map.outcome("/") == "ok"
    assert {hit.header("Authorization") for hit in ground.hits} == {None}


def test_a_link_to_a_metadata_address_is_never_connected_to(run_cli: Command, site: MakeSite) -> None:
    """As a link and as a redirect's target, in scope: blocked, and nothing is sent, which is checked in every run."""
    metadata = "http://169.254.169.254"
    ground = site({"/": page(f"{metadata}/link", "/moved"), "/moved": redirect(f"{metadata}/redirected")})
    ran = run_cli("--scope", "any", "--retries", "0", ground.url(), limit=20)
    verdicts = {
        row["url"]: row.get("reason") or row["outcome"] for row in [*ran.site_map["pages"], *ran.site_map["skipped"]]
    }

    assert {verdicts[f"{metadata}/link"], verdicts[f"{metadata}/redirected"]} == {"blocked_address"}


def test_private_addresses_are_not_connected_to_when_that_is_asked_for(run_cli: Command, site: MakeSite) -> None:
    """--block-private refuses loopback too, in every spelling, as a seed and for robots.txt: not one connection."""
    ground = site({"/": page("/a")}, default=page())
    port = ground.ports[""]
    seeds = [f"http://{host}:{port}/" for host in ("127.0.0.1", "2130706433", "0x7f.1", "127.1", "localhost", "[::1]")]
    ran = run_cli("--block-private", "--retries", "0", *seeds, rc=3)
    verdicts = [row.get("reason") or row["outcome"] for row in [*ran.site_map["pages"], *ran.site_map["skipped"]]]

    assert ground.hits == []
    assert set(verdicts) == {"blocked_address"}


def test_a_robots_file_that_redirects_to_a_metadata_address_is_not_followed(run_cli: Command, site: MakeSite) -> None:
    """robots.txt takes the same way through the same checks."""
    ground = site({"/robots.txt": redirect("http://169.254.169.254/robots.txt"), "/": page("/a")}, default=page())
    ran = run_cli("--retries", "0", ground.url(), rc=None, limit=20)

    assert ran.rc in (0, 3)  # that nothing beyond loopback was tried is checked in every run
