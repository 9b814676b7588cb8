"""Degrees and PageRank over the edges of a journal."""

from __future__ import annotations

import random
from array import array
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlr.journal import Journal
from crawlr.known import Flag
from crawlr.ranking import count_degrees, pagerank
from crawlr.records import StopReason
from crawlr.view import CrawlView
from tests.made_crawl import made_view


def view_of(edges: dict[int, list[int]], *, count: int) -> tuple[Journal, CrawlView]:
    journal = Journal.create("", {})
    flags = Flag.IN_SCOPE | Flag.FOLLOWED
    journal.commit(
        urls=[(n, f"http://h.test/{n}", None, 0, None, n, 0, flags) for n in range(count)],
        pages=[
            (n, 200, "ok", None, 0, 0, 0, None, None, None, None, "", None, None, 1,
             array("I", edges.get(n, [])).tobytes() or None, None, None, None)
            for n in range(count)
        ],
    )  # fmt: skip
    return journal, CrawlView(journal, stop_reason=StopReason.FINISHED, depth_limit=None, all_edges=False)


GRAPHS = st.integers(1, 12).flatmap(
    lambda count: st.tuples(
        st.just(count), st.sets(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=40)
    )
)


@settings(max_examples=60, deadline=None)
@given(GRAPHS)
def test_ranks_are_the_fixed_point_of_their_definition(graph: tuple[int, set[tuple[int, int]]]) -> None:
    """For any graph the ranks add up to 1 and each is (1-d)/N + d·(what links and dead ends give)."""
    count, pairs = graph
    edges: dict[int, list[int]] = {}
    for source, target in sorted(pairs):
        edges.setdefault(source, []).append(target)
    journal, view = view_of(edges, count=count)
    with closing(journal):
        degrees = count_degrees(view)
        ranks = pagerank(view, nodes=range(count), degrees=degrees)

    given_away = sum(ranks[n] for n in range(count) if n not in edges) / count
    for number in range(count):
        linked = sum(ranks[s] / len(edges[s]) for s, t in pairs if t == number)
        assert ranks[number] == pytest.approx(0.15 / count + 0.85 * (linked + given_away), abs=2e-6)
    assert sum(ranks) == pytest.approx(1)
    assert degrees.out.tolist() == [len(edges.get(n, [])) for n in range(count)]
    assert degrees.into.tolist() == [sum(t == n for _, t in pairs) for n in range(count)]


def test_a_page_that_all_link_to_ranks_first() -> None:
    """The hub of a star has the highest rank, and the others share one."""
    journal, view = view_of({n: [0] for n in range(1, 50)} | {0: [1]}, count=50)
    with closing(journal):
        ranks = pagerank(view, nodes=range(50), degrees=count_degrees(view))

    assert max(range(50), key=ranks.__getitem__) == 0
    assert len(set(ranks[2:])) == 1


def test_ids_that_are_not_listed_have_no_rank() -> None:
    """A link target out of scope takes no part, unless the crawl lists it."""
    ranks = {}
    for all_edges in (False, True):
        with made_view(all_edges=all_edges) as view:
            degrees = count_degrees(view)
            nodes = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 13, 14] + [9] * all_edges
            ranks[all_edges] = pagerank(view, nodes=nodes, degrees=degrees)
            assert degrees.into[9] == int(all_edges)
            assert degrees.out[0] == 9 + all_edges
            assert degrees.out_in_scope[0] == 9

    assert ranks[False][9] == 0 < ranks[True][9]
    assert ranks[False][11] == ranks[True][11] == 0
    assert sum(ranks[False]) == pytest.approx(1)


def test_no_pages_have_no_ranks() -> None:
    """An empty journal gives empty arrays."""
    journal, view = view_of({}, count=0)
    with closing(journal):
        assert not pagerank(view, nodes=[], degrees=count_degrees(view))


def test_ranks_of_a_large_random_graph_add_up() -> None:
    """Some thousands of pages: no rank is lost over the rounds."""
    draw = random.Random(5)
    edges = {n: sorted({draw.randrange(3000) for _ in range(draw.randrange(0, 9))}) for n in range(0, 3000, 2)}
    journal, view = view_of({n: targets for n, targets in edges.items() if targets}, count=3000)
    with closing(journal):
        ranks = pagerank(view, nodes=range(3000), degrees=count_degrees(view))

    assert sum(ranks) == pytest.approx(1)
