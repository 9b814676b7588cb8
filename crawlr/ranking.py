"""How important each URL of a crawl is by the links alone: in- and out-degree and PageRank.

From: the edges of crawlr.view, streamed again for each round. To: graph files and link scores. Pure but for reading
the view; memory is 8 bytes a known URL for the degrees, 24 more while ranks are computed, nothing an edge.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from msgspec import Struct

from crawlr.view import CrawlView

__all__ = ["Degrees", "count_degrees", "pagerank"]

DAMPING = 0.85
"""The chance that a reader follows a link, as in Brin and Page (1998), networkx, Gephi and Link Score."""
_ENOUGH = 1e-6
"""Rounds end when the ranks, which add up to 1, change by no more than this in all."""
_MOST_ROUNDS = 100


class Degrees(Struct, frozen=True, kw_only=True):
    """Edges by id of the URL, as listed in the view: each pair of pages once."""

    into: array[int]
    out: array[int]
    out_in_scope: array[int]
    """Without edges that lead out of scope."""


def count_degrees(view: CrawlView) -> Degrees:
    """The in- and out-degree of every id."""
    in_scope = view.in_scope()
    limit = len(in_scope)
    into = array("I", bytes(4 * limit))
    out = array("I", bytes(4 * limit))
    out_in_scope = array("I", bytes(4 * limit)) if view.has_external else out
    for source, targets in view.edges():
        out[source] = len(targets)
        for target in targets:
            into[target] += 1
        if view.has_external:
            out_in_scope[source] = sum(map(in_scope.__getitem__, targets))
    return Degrees(into=into, out=out, out_in_scope=out_in_scope)


def pagerank(view: CrawlView, *, nodes: Iterable[int], degrees: Degrees) -> array[float]:
    """The PageRank of every id in `nodes`, adding up to 1; 0 for other ids.

    A node without edges gives its rank to all nodes alike. Redirects are no edges, so they pass nothing on.
    """
    limit = len(view.in_scope())
    rank = array("d", bytes(8 * limit))
    listed = bytearray(limit)
    for number in nodes:
        listed[number] = 1
    count = sum(listed)
    if not count:
        return rank
    out = degrees.out
    for number in range(limit):
        if listed[number]:
            rank[number] = 1 / count
    for _ in range(_MOST_ROUNDS):
        dangling = sum(r for r, degree in zip(rank, out, strict=True) if not degree)
        base = (1 - DAMPING + DAMPING * dangling) / count
        coming = array("d", bytes(8 * limit))
        for source, targets in view.edges():
            share = rank[source] * DAMPING / out[source]
            for target in targets:
                coming[target] += share
        change = 0.0
        for number, is_listed in enumerate(listed):
            if is_listed:
                new = base + coming[number]
                change += abs(new - rank[number])
                rank[number] = new
        if change <= _ENOUGH:
            break
    return rank
