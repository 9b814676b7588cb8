"""order=: which URL has its turn, that nothing else depends on it, and what a caller's function may do."""

from __future__ import annotations

import contextlib
import itertools
import random
from array import array
from collections.abc import Callable
from pathlib import Path

import pytest

from crawlr.errors import CallbackError, OptionsError
from crawlr.frontier import Frontier
from crawlr.journal import Journal
from crawlr.known import KnownUrls
from crawlr.ledger import Finished, Ledger
from crawlr.options import Options
from crawlr.order import Priority, queue_maker
from crawlr.records import KnownUrl, Outcome
from crawlr.scope import Scope
from crawlr.traps import MAX_CHAIN
from tests.conftest import Crawl
from tests.fakeweb import FakeWeb, Page
from tests.gates import Gate
from tests.killing import differences
from tests.servers.graph import GraphServer, oracle, plan

HOST = "http://web.test"


def at_random(url: KnownUrl) -> float:
    """An order that has nothing to do with depths."""
    return random.Random(url.url).random()


ORDERS = ["breadth-first", "depth-first", at_random]


def order_name(order: object) -> str:
    """As tests are named: the same in every run."""
    return getattr(order, "__name__", str(order))


def web(links: dict[str, str]) -> FakeWeb:
    """A FakeWeb on HOST: path -> the paths that it leads to, with blanks between them."""
    return FakeWeb({f"{HOST}{path}": Page(links=tuple(targets.split())) for path, targets in links.items()})


def paths(fake: FakeWeb) -> list[str]:
    """What was requested, in order."""
    return [url.removeprefix(HOST) for url in fake.urls()]


# ---------------------------------------------------------------- whose turn it is


TREE = {
    "/": "/a /b",
    "/a": "/a/a /a/b",
    "/a/a": "/a/a/a",
    "/a/a/a": "",
    "/a/b": "",
    "/b": "/b/a",
    "/b/a": "",
}


def walk(links: dict[str, str], order: str | Priority) -> list[str]:
    """The paths in the order of their turns, when the links of each page are known before the next turn."""
    known = KnownUrls()
    queue = queue_maker(order, known, lambda number: ledger.url_of(number))  # it is made below
    frontier = Frontier(known, rps=0, per_host=1, gated=False, queue=queue)
    scope = Scope("host")
    scope.join(f"{HOST}/")
    turns = []
    with contextlib.closing(Journal.create("", {"seeds": [HOST]})) as journal:
        ledger = Ledger(
            known=known,
            frontier=frontier,
            journal=journal,
            scope=scope,
            identity=str,
            depth_limit=None,
            max_redirects=0,
        )
        ledger.plant(f"{HOST}/", is_seed=True)
        while (take := frontier.take(0.0)) is not None:
            assert take.number is not None
            url = ledger.text(take.number)
            frontier.release(take.origin.host)
            turns.append(url.removeprefix(HOST))
            targets = [ledger.learn(HOST + path, HOST + path) for path in links[turns[-1]].split()]
            packed = array("I", targets).tobytes()
            ledger.finish(Finished(id=take.number, url=url, status=200, outcome=Outcome.OK, targets=packed))
            ledger.reach_by_links(take.number, targets, b"\1" * len(targets))
    return turns


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("breadth-first", "/ /a /b /a/a /a/b /b/a /a/a/a"),
        ("depth-first", "/ /a /a/a /a/a/a /a/b /b /b/a"),
        (lambda url: -len(url.url), "/ /a /a/a /a/a/a /a/b /b /b/a"),
        (lambda url: "/b" not in url.url, "/ /b /b/a /a /a/b /a/a /a/a/a"),
    ],
    ids=["breadth-first", "depth-first", "longest first", "what has /b first"],
)
def test_pages_have_their_turn_in_that_order(order: str | Priority, expected: str) -> None:
    """Each page is the first by its order among those that are known."""
    assert walk(TREE, order) == expected.split()


def test_order_given_to_a_crawl_is_the_order_of_its_requests(crawl: Crawl) -> None:
    """Of what one page made known, the function says what is requested first."""
    names = [f"/{n:02}" for n in range(20)]
    fake = web({"/": " ".join(names)} | dict.fromkeys(names, ""))
    crawl(f"{HOST}/", fetcher=fake, concurrency=1, order=lambda url: -int(url.url[-2:].replace("t/", "0")))

    assert paths(fake) == ["/", *reversed(names)]


def test_function_gets_what_is_known_of_a_url() -> None:
    """Address, depth, and whether it is a seed: once when it begins to wait, and again when its depth falls."""
    seen: list[KnownUrl] = []

    def look(url: KnownUrl) -> float:
        seen.append(url)
        return 10.0 if url.url.endswith("/late") else -url.depth

    links = {"/": "/long /short", "/long": "/longer", "/longer": "/late", "/short": "/late", "/late": ""}
    walk(links, look)

    assert seen[0] == KnownUrl(url=f"{HOST}/", depth=0, is_seed=True, in_sitemap=False)
    assert [each.depth for each in seen if each.url.endswith("/late")] == [3, 2]
    assert not any(each.is_seed for each in seen[1:])


# ---------------------------------------------------------------- what does not depend on it


@pytest.mark.parametrize("order", ORDERS, ids=order_name)
@pytest.mark.parametrize("depth", [None, 3])
def test_finished_crawl_is_the_same_in_every_order(crawl: Crawl, order: object, depth: int | None) -> None:
    """Pages, depths, edges and what is out of depth are those of the oracle, whatever was requested first."""
    server = GraphServer(plan(21, 300))
    try:
        crawled = crawl(server.origin() + "/", order=order, depth=depth, concurrency=8, parse_procs=2, retries=1)
    finally:
        server.close()

    assert differences(crawled.map, oracle(21, 300, depth=depth)) == []


@pytest.mark.parametrize("order", ORDERS, ids=order_name)
def test_parents_are_on_a_shortest_way_in_every_order(crawl: Crawl, order: object) -> None:
    """The parent of a page is one step nearer to the seed and leads to it."""
    dice = random.Random(4)
    links = {f"/{n}": " ".join(f"/{min(299, n + step)}" for step in (1, *dice.sample(range(9), 3))) for n in range(300)}
    crawled = crawl(f"{HOST}/0", fetcher=web(links), order=order)
    rows = {row["id"]: row for row in crawled.map["pages"]}

    assert len(rows) == 300
    for row in rows.values():
        if row["depth"]:
            assert rows[row["parent"]]["depth"] == row["depth"] - 1
            assert [row["parent"], row["id"]] in crawled.map["edges"]


def test_url_cut_by_the_depth_limit_is_requested_when_a_shorter_way_comes(crawl: Crawl) -> None:
    """It is met below the limit first; the way that a later page shows lets it in, and what lies behind."""
    links = {"/": "/a /z", "/a": "/b", "/b": "/c", "/c": "/late", "/late": "/after", "/after": "/over", "/over": ""}
    fake = web(links)
    door = Gate()
    fake.pages[f"{HOST}/z"] = Page(links=("/late",), gate=door)
    started = crawl.start(
        f"{HOST}/",
        fetcher=fake,
        depth=3,
        order="depth-first",
        on_page=lambda page: door.open() if page.url.endswith("/c") else None,
    )
    crawled = started.wait()

    assert paths(fake)[-2:] == ["/late", "/after"]
    assert {path: row["depth"] for path, row in crawled.map.pages.items()} == {
        "/": 0, "/a": 1, "/z": 1, "/b": 2, "/late": 2, "/c": 3, "/after": 3,
    }  # fmt: skip
    assert crawled.map.reasons == {"/over": "depth_limit"}


def test_long_way_through_pages_of_one_shape_is_no_trap_when_a_short_one_exists(crawl: Crawl) -> None:
    """Depth-first walks a numbered site as one long chain; that a list leads to every page shows that it is none."""
    size = 3 * MAX_CHAIN
    door = Gate()
    fake = web({"/": "/n/0 /list", f"/n/{size}": ""} | {f"/n/{n}": f"/n/{n + 1}" for n in range(size)})
    fake.pages[f"{HOST}/list"] = Page(links=tuple(f"/n/{n}" for n in range(5, size, 10)), gate=door)
    trapped = f"{HOST}/n/{MAX_CHAIN - 1}"
    started = crawl.start(
        f"{HOST}/",
        fetcher=fake,
        order="depth-first",
        on_page=lambda page: door.open() if page.url == trapped else None,
    )
    crawled = started.wait()

    assert len(crawled.map.pages) == size + 3
    assert crawled.map.page(f"/n/{size}")["depth"] == 7


def test_endless_chain_is_a_trap_in_any_order(crawl: Crawl) -> None:
    """A calendar without an end does not swallow a depth-first crawl."""
    endless = {f"/day/{n}": f"/day/{n + 1}" for n in range(5 * MAX_CHAIN)}
    fake = web({"/": "/day/0 /other", "/other": ""} | endless)
    crawled = crawl(f"{HOST}/", fetcher=fake, order="depth-first")

    assert "/other" in crawled.map.pages
    assert len(fake.urls()) == MAX_CHAIN + 2
    assert set(crawled.map.reasons.values()) == {"trap"}


@pytest.mark.parametrize("order", ORDERS, ids=order_name)
def test_page_budget_is_exact_in_every_order(crawl: Crawl, order: object) -> None:
    """As many URLs are requested as --max-pages says, on a deep and wide site."""
    names = [f"{chr(97 + n % 26)}{'x' * (n // 26)}" for n in range(400)]
    deep = {f"/{a}": f"/{b} /w/{a}" for a, b in itertools.pairwise(names)}
    fake = web({"/": f"/{names[0]} " + " ".join(f"/wide/{name}" for name in names)} | deep)
    crawled = crawl(f"{HOST}/", fetcher=fake, order=order, max_pages=150, concurrency=8)

    assert len(fake.urls()) == len(crawled.map["pages"]) == 150
    assert crawled.map["stop_reason"] == "page_budget"


def test_order_may_change_between_runs(crawl: Crawl, tmp_path: Path) -> None:
    """A resume goes on in the order that it is given, and the result is that of any other."""
    out = str(tmp_path / "map.json")
    first, second = web(TREE), web(TREE)
    crawl(f"{HOST}/", fetcher=first, order="breadth-first", max_pages=3, out=out).result.close()
    crawled = crawl(f"{HOST}/", fetcher=second, order="depth-first", out=out, resume=True)

    assert sorted(paths(first)) == ["/", "/a", "/b"]
    assert sorted(paths(second)) == ["/a/a", "/a/a/a", "/a/b", "/b/a"]
    assert {path: row["depth"] for path, row in crawled.map.pages.items()} == {
        path: path.count("/") if path != "/" else 0 for path in TREE
    }


# ---------------------------------------------------------------- mistakes


def raises(url: KnownUrl) -> float:
    raise LookupError("mine")


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (raises, r"order=.*raises.* failed for http://web.test/: LookupError\('mine'\)"),
        (lambda url: float("nan"), "gave nan for http://web.test/; accepted: a number"),
        (lambda url: "1", "gave '1' for"),
        (lambda url: None, "gave None for"),
        (lambda url: (1, 2), r"gave \(1, 2\) for"),
    ],
    ids=["raises", "nan", "text", "nothing", "tuple"],
)
def test_what_a_function_does_wrong_ends_the_crawl_and_names_it(
    crawl: Crawl, order: Callable[[KnownUrl], float], said: str
) -> None:
    """The error says which function, which URL, and what is accepted; nothing is left running."""
    with pytest.raises(CallbackError, match=said):
        crawl(f"{HOST}/", fetcher=web(TREE), order=order)


def test_function_that_fails_later_keeps_what_was_crawled(crawl: Crawl, tmp_path: Path) -> None:
    """An error in the middle leaves the state from which a resume goes on."""

    def picky(url: KnownUrl) -> float:
        if url.url.endswith("/b/a"):
            raise LookupError("mine")
        return 0

    out = str(tmp_path / "map.json")
    with pytest.raises(CallbackError, match="/b/a"):
        crawl(f"{HOST}/", fetcher=web(TREE), order=picky, out=out, concurrency=1)
    crawled = crawl(f"{HOST}/", fetcher=web(TREE), out=out, resume=True)

    assert set(crawled.map.pages) == set(TREE)


@pytest.mark.parametrize("order", [float("inf"), 3, "deepest", b"depth-first"])
def test_other_words_are_refused(order: object) -> None:
    """One of the two words, or a function."""
    with pytest.raises(OptionsError, match=r"--order: .*breadth-first or depth-first; from Python also a function"):
        Options.make(HOST, order=order)


def test_effective_options_name_the_function() -> None:
    """sitemap.json says by which function the crawl went."""
    named = [Options.make(HOST, order=order).effective()["order"] for order in ORDERS]

    assert named == ["breadth-first", "depth-first", "at_random"]
