"""The graph: depths, redirects and rights to be queued, whatever the order in which answers come."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlr.frontier import Frontier
from crawlr.journal import Journal
from crawlr.known import FAR, KnownUrls, State
from crawlr.ledger import _MOST_ROBOTS, Finished, Ledger, Verdict
from crawlr.records import Outcome, SkipReason, StopReason
from crawlr.scope import Scope
from crawlr.view import CrawlView

HOST = "http://h.test/"


def build(journal: Journal, *, depth: int | None = None, redirects: int = 10, budget: int | None = None) -> Ledger:
    known = KnownUrls()
    frontier = Frontier(known, rps=0, per_host=1000, gated=False, page_budget=budget)
    scope = Scope("host")
    scope.join(HOST)
    return Ledger(
        known=known,
        frontier=frontier,
        journal=journal,
        scope=scope,
        identity=lambda url: url.replace("%7E", "~"),
        depth_limit=depth,
        max_redirects=redirects,
    )


@pytest.fixture
def journal() -> Iterator[Journal]:
    journal = Journal.create("", {"seeds": [HOST]})
    yield journal
    journal.close()


def take(ledger: Ledger, url: str) -> int:
    """Take URLs until `url` is in flight; the ones before it go on waiting."""
    others = []
    while True:
        found = ledger.frontier.take(0.0)
        assert found is not None, f"{url} does not wait"
        assert found.number is not None
        ledger.frontier.release(found.origin.host)
        if ledger.url_of(found.number) == url:
            break
        others.append(found.number)
    for number in others:
        ledger.frontier.retry(number, 0.0)
    return found.number


def answer(ledger: Ledger, url: str, *links: str, follow: bool = True) -> int:
    """Finish the waiting `url` as a page with these links."""
    number = take(ledger, url)
    targets = [ledger.learn(link, link) for link in links]
    ledger.finish(
        Finished(
            id=number,
            url=url,
            status=200,
            outcome=Outcome.OK,
            targets=array("I", targets).tobytes(),
            kinds=b"\1" * len(links),
        )
    )
    ledger.reach_by_links(number, targets, [follow] * len(targets))
    return number


def redirect(ledger: Ledger, url: str, target: str) -> Outcome:
    number = take(ledger, url)
    to, outcome, error = ledger.reach_by_redirect(number, target)
    ledger.finish(
        Finished(id=number, url=url, status=302, outcome=outcome, error=error, redirect_to=to, redirect_url=target)
    )
    return outcome


def settle(ledger: Ledger) -> None:
    ledger.commit()
    for _ in range(100):
        if ledger.is_settled:
            break
        ledger.commit()
    ledger.commit()
    assert ledger.is_settled


def rows(ledger: Ledger, journal: Journal) -> dict[str, tuple[int, str]]:
    settle(ledger)
    view = CrawlView(journal, stop_reason=StopReason.FINISHED, depth_limit=None, all_edges=False)
    return {page.url.removeprefix(HOST): (page.depth, str(page.outcome)) for page in view.pages()}


@pytest.mark.parametrize("is_resumed", [False, True], ids=["one run", "resumed"])
def test_shorter_way_to_the_end_of_a_chain_lets_its_links_in(journal: Journal, is_resumed: bool) -> None:
    """What only a trapped page led to is requested when the page turns out to be near, in a later run too."""
    ledger = build(journal)
    ledger.plant(HOST, is_seed=True)
    answer(ledger, HOST, HOST + "far", HOST + "near")
    answer(ledger, HOST + "far", HOST + "middle")
    answer(ledger, HOST + "middle", HOST + "end")
    number = answer(ledger, HOST + "end", HOST + "behind", follow=False)
    behind = ledger.known.find(HOST + "behind")
    assert behind is not None
    ledger.trap(number, [behind], b"\1", can_pass=True)
    settle(ledger)
    before = ledger.known.state[behind]
    if is_resumed:
        ledger = build(journal)
        ledger.load()
    answer(ledger, HOST + "near", HOST + "end")
    settle(ledger)

    assert before == State.HELD
    assert ledger.known.state[behind] == State.WAITING


def test_a_url_that_a_sitemap_names_is_marked_however_it_was_found(journal: Journal) -> None:
    """Named before or after a link led there, before or after it was committed; a seed alone is not."""
    ledger = build(journal)
    ledger.plant(HOST, is_seed=True)
    ledger.plant(HOST + "named", is_seed=False)
    answer(ledger, HOST, HOST + "named", HOST + "linked", HOST + "both")
    ledger.commit()
    ledger.plant(HOST + "both", is_seed=False)
    ledger.plant("http://elsewhere.test/", is_seed=False)
    for url in ("named", "linked", "both"):
        answer(ledger, HOST + url)
    settle(ledger)
    options: dict[str, Any] = {"stop_reason": StopReason.FINISHED, "depth_limit": None, "all_edges": True}
    with_sitemaps = CrawlView(journal, has_sitemaps=True, **options)

    assert {page.url.removeprefix(HOST): page.in_sitemap for page in with_sitemaps.pages()} == {
        "": False,
        "named": True,
        "linked": False,
        "both": True,
    }
    assert {page.in_sitemap for page in CrawlView(journal, **options).pages()} == {None}


def test_longer_way_first_then_a_shorter_one(journal: Journal) -> None:
    """The depth falls, and so do the depths behind it, also those of pages that are finished."""
    ledger = build(journal)
    ledger.plant(HOST, is_seed=True)
    answer(ledger, HOST, HOST + "slow", HOST + "f1")
    answer(ledger, HOST + "f1", HOST + "f2")
    answer(ledger, HOST + "f2", HOST + "target")
    answer(ledger, HOST + "target", HOST + "leaf")
    answer(ledger, HOST + "leaf", HOST + "beyond")
    ledger.commit()
    answer(ledger, HOST + "slow", HOST + "target")
    settle(ledger)
    answer(ledger, HOST + "beyond")

    depths = {url: depth for url, (depth, _) in rows(ledger, journal).items()}

    assert {"": 0, "slow": 1, "f1": 1, "f2": 2, "target": 2, "leaf": 3, "beyond": 4} == depths


def test_url_cut_by_the_depth_limit_waits_when_a_shorter_way_appears(journal: Journal) -> None:
    """The set of pages is the same whatever the order of the answers."""
    ledger = build(journal, depth=2)
    ledger.plant(HOST, is_seed=True)
    answer(ledger, HOST, HOST + "slow", HOST + "f1")
    answer(ledger, HOST + "f1", HOST + "f2")
    answer(ledger, HOST + "f2", HOST + "target")
    cut = ledger.known.state[3 + 1]
    answer(ledger, HOST + "slow", HOST + "target")
    answer(ledger, HOST + "target", HOST + "beyond")
    settle(ledger)

    view = CrawlView(journal, stop_reason=StopReason.FINISHED, depth_limit=2, all_edges=False)

    assert State.HELD == cut
    assert [(HOST + "beyond", "depth_limit")] == [(row.url, row.reason) for row in view.unvisited()]


def test_url_that_only_nofollow_links_lead_to_is_skipped_until_another_does(journal: Journal) -> None:
    """nofollow withholds the right to be queued, nothing else: the depth counts every edge."""
    ledger = build(journal)
    ledger.plant(HOST, is_seed=True)
    answer(ledger, HOST, HOST + "ad", HOST + "page", follow=True)
    answer(ledger, HOST + "page", HOST + "hidden", follow=False)
    settle(ledger)
    view = CrawlView(journal, stop_reason=StopReason.FINISHED, depth_limit=None, all_edges=False)
    before = [(row.url, row.reason) for row in view.skipped()]
    answer(ledger, HOST + "ad", HOST + "hidden")
    settle(ledger)
    waits = take(ledger, HOST + "hidden")

    assert [(HOST + "hidden", SkipReason.NOFOLLOW)] == before
    assert 2 == ledger.known.depth[waits]
    assert [] == list(view.skipped())


def test_every_page_on_a_redirect_cycle_is_a_loop(journal: Journal) -> None:
    """Those that were recorded before the cycle closed are corrected; the way into it is an ordinary redirect."""
    ledger = build(journal)
    ledger.plant(HOST, is_seed=True)
    redirect(ledger, HOST, HOST + "a")
    redirect(ledger, HOST + "a", HOST + "b")
    ledger.commit()
    redirect(ledger, HOST + "b", HOST + "c")
    redirect(ledger, HOST + "c", HOST + "a")

    outcomes = {url: outcome for url, (_, outcome) in rows(ledger, journal).items()}

    assert {"": "redirect", "a": "redirect_loop", "b": "redirect_loop", "c": "redirect_loop"} == outcomes


def test_redirect_to_another_spelling_of_itself_is_followed(journal: Journal) -> None:
    """An identity that redirects to another spelling of itself gives two pages, the second of which is requested."""
    ledger = build(journal)
    ledger.plant(HOST + "%7Ejoe", is_seed=True)

    first = redirect(ledger, HOST + "%7Ejoe", HOST + "~joe")
    answer(ledger, HOST + "~joe")

    assert Outcome.REDIRECT == first
    assert {"%7Ejoe": (0, "redirect"), "~joe": (0, "ok")} == rows(ledger, journal)


def test_redirect_to_the_same_address_is_a_loop(journal: Journal) -> None:
    """Nothing is requested again."""
    ledger = build(journal)
    ledger.plant(HOST, is_seed=True)

    outcome = redirect(ledger, HOST, HOST)

    assert Outcome.REDIRECT_LOOP == outcome
    assert ledger.frontier.take(0.0) is None


def test_one_redirect_too_many_is_a_loop_until_a_link_leads_there(journal: Journal) -> None:
    """A page N hops away that redirects again is redirect_loop; a link to it starts the count anew."""
    ledger = build(journal, redirects=2)
    ledger.plant(HOST, is_seed=True)
    answer(ledger, HOST, HOST + "0", HOST + "late")
    redirect(ledger, HOST + "0", HOST + "1")
    redirect(ledger, HOST + "1", HOST + "2")
    too_many = redirect(ledger, HOST + "2", HOST + "3")
    unknown = ledger.known.find(HOST + "3")
    answer(ledger, HOST + "late", HOST + "2")
    settle(ledger)
    answer(ledger, HOST + "3")

    assert Outcome.REDIRECT_LOOP == too_many
    assert unknown is None
    assert {
        "": (0, "ok"),
        "0": (1, "redirect"),
        "1": (1, "redirect"),
        "2": (1, "redirect"),
        "3": (1, "ok"),
        "late": (1, "ok"),
    } == rows(ledger, journal)


def test_closed_origin_ends_what_waits_and_what_becomes_known_later(journal: Journal) -> None:
    """A dead origin's URLs become pages with its outcome, without a request and within the budget."""
    ledger = build(journal, budget=3)
    ledger.plant(HOST, is_seed=True)
    answer(ledger, HOST, HOST + "a")
    origin = ledger.frontier.origins[0]
    ledger.close_origin(origin, Verdict(outcome=Outcome.REFUSED, error="refused"))
    late = [ledger.learn(HOST + name, HOST + name) for name in "bc"]
    ledger.reach_by_links(0, late, [True, True])

    assert {"": (0, "ok"), "a": (1, "refused"), "b": (1, "refused")} == rows(ledger, journal)
    assert 1 == ledger.frontier.waiting


def test_joining_host_lets_in_what_was_outside(journal: Journal) -> None:
    """Links to a host that joins the scope later are edges and are requested."""
    ledger = build(journal)
    ledger.plant(HOST, is_seed=True)
    answer(ledger, HOST, "http://new.test/x")
    before = rows(ledger, journal)
    ledger.join("http://new.test/")
    answer(ledger, "http://new.test/x")
    after = rows(ledger, journal)

    assert [1, 2] == [len(before), len(after)]
    assert 1 == after["http://new.test/x"][0]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), limit=st.none() | st.integers(1, 4), loads=st.booleans())
def test_any_order_of_answers_gives_the_same_graph(seed: int, limit: int | None, loads: bool) -> None:
    """Depths equal a breadth-first search of the whole graph, whatever the order, also over a resume in the middle."""
    rng = random.Random(seed)
    size = rng.randint(2, 14)
    graph: dict[int, list[int]] = {}
    moved: dict[int, int] = {}
    for node in range(size):
        if node and rng.random() < 0.25:
            moved[node] = rng.randrange(size)
        else:
            graph[node] = rng.sample(range(size), rng.randint(0, min(4, size)))
    wanted = _distances(graph, moved, limit)
    journal = Journal.create("", {"seeds": [HOST]})
    ledger = build(journal, depth=limit, redirects=100)
    ledger.plant(HOST + "0", is_seed=True)
    stop_at = rng.randint(0, size)
    for turn in range(200):
        waiting = [i for i in range(len(ledger.known)) if ledger.known.state[i] == State.WAITING]
        if not waiting:
            settle(ledger)
            if not any(state == State.WAITING for state in ledger.known.state):
                break
            continue
        url = ledger.url_of(rng.choice(waiting))
        node = int(url.removeprefix(HOST))
        if node in moved:
            redirect(ledger, url, f"{HOST}{moved[node]}")
        else:
            answer(ledger, url, *[f"{HOST}{target}" for target in graph[node]])
        if rng.random() < 0.4:
            ledger.commit()
        if loads and turn == stop_at:
            ledger.commit()
            ledger = build(journal, depth=limit, redirects=100)
            ledger.load()
    settle(ledger)
    view = CrawlView(journal, stop_reason=StopReason.FINISHED, depth_limit=limit, all_edges=False)

    got = {int(page.url.removeprefix(HOST)): page.depth for page in view.pages()}
    assert {node: depth for node, depth in wanted.items() if limit is None or depth <= limit} == got
    cut = {int(row.url.removeprefix(HOST)): row.depth for row in view.unvisited()}
    assert {node: depth for node, depth in wanted.items() if limit is not None and depth > limit} == cut
    loops = {int(page.url.removeprefix(HOST)) for page in view.pages() if page.outcome == Outcome.REDIRECT_LOOP}
    assert {node for node in got if _is_on_cycle(node, moved)} == loops
    journal.close()


def _distances(graph: dict[int, list[int]], moved: dict[int, int], limit: int | None) -> dict[int, int]:
    depth = {0: 0}
    changed = True
    while changed:
        changed = False
        for node, at in list(depth.items()):
            if limit is not None and at > limit:
                continue
            steps = [(moved[node], 0)] if node in moved else [(target, 1) for target in graph[node]]
            for target, step in steps:
                if depth.get(target, FAR) > at + step:
                    depth[target] = at + step
                    changed = True
    return depth


def _is_on_cycle(node: int, moved: dict[int, int]) -> bool:
    at = node
    for _ in range(len(moved) + 1):
        if at not in moved:
            return False
        at = moved[at]
        if at == node:
            return True
    return False


def test_robots_of_an_origin_that_changed_are_kept_anew(journal: Journal) -> None:
    """However many origins are kept already; of one more than fits nothing is."""
    ledger = build(journal)
    for number in range(_MOST_ROBOTS):
        ledger.note_robots(f"http://h{number}", "Disallow: /old")
    ledger.commit()
    ledger.note_robots("http://h0", "Disallow: /new")
    ledger.note_robots("http://too.many", "Disallow: /")
    ledger.commit()
    kept = journal.meta()["robots"]

    assert isinstance(kept, dict)
    assert kept["http://h0"] == "Disallow: /new"
    assert len(kept) == _MOST_ROBOTS
