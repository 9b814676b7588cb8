"""The test ground itself: servers answer as they say, the oracle agrees with the bytes, gates and checks do theirs."""

from __future__ import annotations

import http.client
import re
import socket
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest

from tests import leaks
from tests.contract import SiteMap, violations
from tests.gates import Gate
from tests.loopback import sitecustomize as guard
from tests.servers import graph
from tests.servers.bad_contents import gzip_bomb
from tests.servers.behaviour import BEHAVIOURS, BOMB_SIZE, LINK_BEFORE, ORIGINS
from tests.servers.local import Once, Reply, Site, page, redirect
from tests.servers.misbehaving import SOURCES
from tests.servers.process import ServerProcess

NAMED = """drip_body drip_headers hang inf_1xx early_hints inf_trailers huge_chunk_line bad_chunk headers_101 header_70k
    truncated truncated_chunked cl_te two_cl neg_cl huge_cl http09 empty rst status_999 status_abc esc_reason lf_only
    nul_header bad_gzip trunc_gzip bomb redirect_bomb enc6 enc_unknown loc_file loc_bad loc_empty loc_badport loop
    body_204 extra_after_end close_on_second setcookie echo_headers trap mirror deep links names""".split()  # noqa: SIM905


def get(server: ServerProcess | Site, target: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body by the standard library's client, on a connection of its own."""
    parts = urlsplit(server.url(target))
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    try:
        connection.request("GET", target)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def raw(server: ServerProcess, target: str, *, at_most: int = 1 << 16, limit: float = 3.0) -> bytes:
    """What comes over the wire until the server closes, resets or pauses for `limit` seconds, or `at_most` bytes."""
    received = b""
    with socket.create_connection(("127.0.0.1", server.ports[""]), timeout=limit) as sock:
        sock.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        try:
            while len(received) < at_most:
                some = sock.recv(65536)
                if not some:
                    break
                received += some
        except ConnectionResetError:
            return received + b"<RESET>"
        except TimeoutError:
            return received + b"<OPEN>"
    return received


def test_a_site_serves_its_routes_and_notes_each_request(site: Callable[..., Site]) -> None:
    """Routes match the whole target before the path; what is not there is 404; hits hold targets in order."""
    ground = site({"/": page("/a"), "/a": redirect("/b"), "/q?x=1": Reply(body="exact"), "/q": Reply(status=410)})

    answers = [get(ground, target)[0] for target in ("/", "/a", "/q?x=1", "/q?x=2", "/none", "/robots.txt")]

    assert answers == [200, 302, 200, 410, 404, 404]
    assert ground.targets() == ["/", "/a", "/q?x=1", "/q?x=2", "/none"]


def test_a_gated_reply_waits_until_the_gate_opens(site: Callable[..., Site], gate: Callable[..., Gate]) -> None:
    """The request arrives, the answer does not, until the test lets it."""
    door = gate()
    ground = site({"/": Reply(body="through", gate=door)})
    answers: list[bytes] = []
    client = threading.Thread(target=lambda: answers.append(get(ground, "/")[2]))
    client.start()
    door.wait_for_arrivals(1)
    held = list(answers)
    door.open()
    client.join(10)

    assert (held, answers) == ([], [b"through"])


def test_a_gate_gives_up_after_its_limit() -> None:
    """A caller nobody lets in goes on and is counted, so that a forgotten gate fails a test instead of hanging it."""
    door = Gate(limit=0.01)
    door.enter()

    assert door.overdue == 1


def test_replies_in_order_end_with_the_last_one_for_ever(site: Callable[..., Site]) -> None:
    """Once(a, b) answers a, then b, b, b."""
    ground = site({"/": Once(Reply(status=500), Reply(status=200))})

    assert [get(ground, "/")[0] for _ in range(3)] == [500, 200, 200]


@pytest.fixture
def graph_server(tmp_path: Path) -> Iterator[ServerProcess]:
    server = ServerProcess("graph", "--seed", "7", "--size", "120", log=tmp_path / "hits.jsonl")
    yield server
    server.close()


def test_the_oracle_agrees_with_what_the_graph_server_serves(graph_server: ServerProcess) -> None:
    """A plain breadth-first walk over the served bytes finds the oracle's pages, statuses, depths and edges."""
    expected = graph.oracle(7, 120)
    statuses, depths, edges, locations = walk(graph_server)

    assert {path: (status, depth) for path, (status, _, depth, _) in expected.pages.items()} == {
        path: (status, depths[path]) for path, status in statuses.items()
    }
    assert {path: depth for path, (_, depth) in expected.skipped.items()} == {
        path: depth for path, depth in depths.items() if path.startswith("/private/")
    }
    assert edges == expected.edges
    loops = {path for path, (_, outcome, _, _) in expected.pages.items() if outcome == "redirect_loop"}
    assert loops == {path for path in locations if is_on_cycle(path, locations)}


def walk(
    server: ServerProcess,
) -> tuple[dict[str, int], dict[str, int], set[tuple[str, str]], dict[str, str]]:
    """Statuses, depths, edges and locations by path: a redirect goes to the front of the line, a link to its end."""
    statuses: dict[str, int] = {}
    depths = {"/": 0}
    edges: set[tuple[str, str]] = set()
    locations: dict[str, str] = {}
    line = deque([("/", 0)])
    while line:
        path, depth = line.popleft()
        if depths.get(path) != depth or path in statuses or path.startswith("/private/"):
            continue
        status, headers, body = get(server, path)
        if status == 500:
            status, headers, body = get(server, path)  # a flaky page is good the second time
        statuses[path] = status
        if "location" in headers:
            found, step = [headers["location"]], 0
        elif status == 200:
            found, step = re.findall(r'<a href="([^"]*)"', body.decode().partition("<!-- ")[0]), 1
        else:
            continue
        for address in found:
            target = urljoin(server.url(path), address.replace("%2e", ".")).partition("#")[0]
            if not target.startswith(server.url("/")):
                continue
            to = target.removeprefix(server.url(""))
            if step:
                edges |= {(path, to)} if to != path else set()
            else:
                locations[path] = to
            if depths.get(to, 1 << 30) > depth + step:
                depths[to] = depth + step
                (line.append if step else line.appendleft)((to, depth + step))
    return statuses, depths, edges, locations


def is_on_cycle(path: str, locations: dict[str, str]) -> bool:
    hop, seen = locations[path], set()
    while hop in locations and hop != path and hop not in seen:
        seen.add(hop)
        hop = locations[hop]
    return hop == path


@pytest.mark.parametrize("seed", range(5))
def test_each_graph_has_something_of_everything(seed: int) -> None:
    """Deep, with every kind of page, a chain of redirects under the default limit, cycles, and URLs out of depth."""
    nodes = graph.plan(seed, 400)
    expected = graph.oracle(seed, 400)
    outcomes = {outcome for _, outcome, _, _ in expected.pages.values()}

    assert outcomes == {"ok", "redirect", "redirect_loop", "http_error"}
    assert {node.kind for node in nodes} == set(graph.Kind)
    assert max(depth for _, _, depth, _ in expected.pages.values()) >= 8
    assert graph.CHAIN <= graph.longest_chain(nodes) <= 9
    assert expected.skipped
    assert graph.oracle(seed, 400, depth=5).unvisited


def test_a_graph_is_the_same_for_the_same_seed() -> None:
    """Equal seeds give equal graphs, other seeds others."""
    assert graph.plan(3, 200) == graph.plan(3, 200)
    assert graph.plan(3, 200) != graph.plan(4, 200)


def test_the_misbehaving_server_knows_every_behaviour_that_was_asked_for() -> None:
    """None of the named behaviours is missing, and robots.txt and sitemaps have theirs."""
    assert len(SOURCES) == 3  # imported, which fills the register
    assert set(NAMED) <= set(BEHAVIOURS)
    assert {name.partition("_")[0] for name in ORIGINS} == {"robots", "sitemap"}


RAW = [
    ("drip_headers", rb"^HTTP/1\.1 20?0?<OPEN>?$|^H", 2),
    ("hang", rb"^<OPEN>$", 1),
    ("stall", rb"5000\r\n\r\n<a [^<]*</a><OPEN>$", 300),
    ("inf_1xx", rb"^(HTTP/1\.1 100 Continue\r\n\r\n){20}", 600),
    ("inf_trailers", rb"\r\n0\r\n(X-Trailer: [a-z ]+\r\n){20}", 900),
    ("early_hints", rb"^HTTP/1\.1 103 .*\r\n\r\nHTTP/1\.1 200 OK", 200),
    ("huge_chunk_line", rb"1;ext=a{1000}", 2000),
    ("bad_chunk", rb"\r\n\r\nzz\r\n", 999),
    ("truncated", rb"Content-Length: 1000\r\n\r\n<a [^<]*</a>$", 999),
    ("truncated_chunked", rb"40\r\nand$", 999),
    ("cl_te", rb"Content-Length: 5\r\nTransfer-Encoding: chunked", 200),
    ("two_cl", rb"Content-Length: 2\r\nContent-Length: 5", 200),
    ("http09", rb"^<title>no status line", 200),
    ("empty", rb"^$", 9),
    ("rst", rb"^<RESET>$", 9),
    ("status_999", rb"^HTTP/1\.1 999 ", 40),
    ("status_abc", rb"^HTTP/1\.1 abc ", 40),
    ("esc_reason", rb"^HTTP/1\.1 404 \x1b\[31m", 40),
    ("lf_only", rb"^HTTP/1\.1 200 OK\nContent", 40),
    ("nul_header", rb"X-Nul: a\0b", 90),
    ("body_204", rb"204 No Content\r\n\r\n<!doctype", 90),
    ("extra_after_end", rb"\r\n\r\nhiHTTP/1\.1 200 OK", 120),
    ("loc_empty", rb"\r\nLocation: \r\n", 120),
    ("loop/3/2", rb"\r\nLocation: /loop/3/0\r\n", 120),
    ("loop/3/0", rb"\r\nLocation: /loop/3/1\r\n", 120),
    ("chain/1/end", rb"\r\nLocation: /page/end\r\n", 120),
]


@pytest.mark.parametrize(("target", "pattern", "at_most"), RAW, ids=[row[0] for row in RAW])
def test_a_behaviour_puts_on_the_wire_what_its_name_says(
    misbehaving: ServerProcess, target: str, pattern: bytes, at_most: int
) -> None:
    """The raw bytes of each behaviour, as far as a client sees them."""
    received = raw(misbehaving, f"/{target}", at_most=at_most, limit=0.3)

    assert re.search(pattern, received, re.DOTALL), received[:500]


def test_hits_of_a_server_process_are_in_its_log(misbehaving: ServerProcess) -> None:
    """Each request is one line with target, headers and connection, and `since` hides the earlier ones."""
    start = misbehaving.position()
    get(misbehaving, "/page/x?y=1")

    (hit,) = misbehaving.hits(start)
    assert (hit.target, hit.header("host"), hit.nth) == ("/page/x?y=1", f"127.0.0.1:{misbehaving.ports['']}", 1)


def test_the_bomb_is_small_and_unpacks_to_its_size() -> None:
    """A few hundred kilobytes on the wire, valid gzip, 200 MiB unpacked."""
    packed = gzip_bomb()
    unpacker = zlib.decompressobj(31)
    size = 0
    piece = packed
    while piece and not unpacker.eof:
        size += len(unpacker.decompress(piece, 1 << 20))
        piece = unpacker.unconsumed_tail

    assert len(packed) < 400_000
    assert (size, unpacker.eof) == (BOMB_SIZE + len(LINK_BEFORE), True)


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1"])
def test_the_guard_refuses_connections_beyond_loopback(host: str) -> None:
    """No test can reach another machine; the attempt is remembered and would fail the test."""
    with pytest.raises(guard.BeyondLoopbackError):
        socket.create_connection((host, 80), timeout=1)

    assert guard.refused.pop()


def test_the_guard_refuses_lookups_of_real_names() -> None:
    """No name leaves this machine; names reserved for tests fail as unknown ones do."""
    with pytest.raises(guard.BeyondLoopbackError):
        socket.getaddrinfo("crawlr.org", 80)
    with pytest.raises(socket.gaierror):
        socket.getaddrinfo("no-such.invalid", 80)

    assert guard.refused.pop()


def test_leaks_are_seen() -> None:
    """A thread, a child and a descriptor that stay are each named."""
    before = leaks.take()
    door = Gate()
    thread = threading.Thread(target=door.enter, name="the one that stays", daemon=True)
    left, right = socket.socketpair()
    thread.start()
    settle, leaks.SETTLE = leaks.SETTLE, 0.05
    try:
        found = leaks.since(before)
    finally:
        leaks.SETTLE = settle
        door.open()
        left.close()
        right.close()
        thread.join(5)

    assert len(found) == 3
    assert "the one that stays" in found[0]
    assert leaks.since(before) == []


def good_map() -> dict[str, object]:
    """A small sitemap.json that keeps every rule."""
    root = {
        "id": 0, "url": "http://h/", "depth": 0, "parent": None, "status": 200, "outcome": "ok", "error": None,
        "links": 2, "millis": 1, "bytes": 10, "content_type": "text/html", "encoding": "utf-8", "title": None,
        "canonical": None, "robots": [], "root": 0, "redirect_to": None, "redirect_url": None, "attempts": 1,
    }  # fmt: skip
    moved = root | {
        "id": 1,
        "url": "http://h/a",
        "depth": 1,
        "parent": 0,
        "status": 301,
        "outcome": "redirect",
        "links": 0,
    }
    moved |= {"redirect_to": 2, "redirect_url": "http://h/b"}
    end = root | {
        "id": 2,
        "url": "http://h/b",
        "depth": 1,
        "parent": 1,
        "status": 404,
        "outcome": "http_error",
        "links": 0,
    }
    return {
        "format": "crawlr-sitemap/1", "generator": "crawlr 0.1.0", "seeds": ["http://h/"],
        "started_at": "2026-01-31T12:00:00Z", "finished_at": "2026-01-31T12:00:01Z", "complete": True,
        "stop_reason": "finished", "options": {"depth": None},
        "stats": {"pages": 3, "ok": 2, "errors": 1, "skipped": 1, "unique_urls": 4, "edges": 2, "elapsed_s": 1.0},
        "pages": [root, moved, end],
        "skipped": [{"id": 3, "url": "http://h/c", "depth": 1, "parent": 0, "reason": "nofollow", "error": None}],
        "unvisited": [], "edges": [[0, 1], [0, 3]],
    }  # fmt: skip


def test_a_good_map_keeps_every_rule() -> None:
    """The checker finds nothing where there is nothing."""
    assert violations(SiteMap(good_map())) == []


BREAKS: list[tuple[str, Callable[[dict], object]]] = [  # type: ignore[type-arg]
    ("two rows of one url", lambda m: m["pages"][2].update(url="http://h/a")),
    ("two rows of one id", lambda m: m["skipped"][0].update(id=2)),
    ("a wrong count", lambda m: m["stats"].update(ok=3)),
    ("complete without finished", lambda m: m.update(stop_reason="interrupted")),
    ("a depth that is not the shortest", lambda m: m["pages"][2].update(depth=2)),
    ("a parent that does not lead there", lambda m: m["pages"][2].update(parent=0)),
    ("an edge twice", lambda m: m["edges"].append([0, 1])),
    ("an edge from a redirect", lambda m: m["edges"].append([1, 2])),
    ("an edge to nowhere", lambda m: m["edges"].append([0, 9])),
    ("an unknown outcome", lambda m: m["pages"][0].update(outcome="fine")),
    ("ok with status 404", lambda m: m["pages"][2].update(outcome="ok")),
    ("a missing field", lambda m: m["pages"][0].pop("canonical")),
    ("a fragment", lambda m: m["pages"][2].update(url="http://h/b#x")),
    ("a user", lambda m: m["pages"][2].update(url="http://u:p@h/b")),
]


@pytest.mark.parametrize(("name", "spoil"), BREAKS, ids=[name for name, _ in BREAKS])
def test_a_bad_map_is_found_out(name: str, spoil: Callable[[dict[str, object]], object]) -> None:
    """Each broken rule is seen."""
    spoilt = good_map()
    spoil(spoilt)

    assert violations(SiteMap(spoilt)), name
