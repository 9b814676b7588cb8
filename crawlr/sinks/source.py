"""What every sink reads: the view of one crawl, and what several sinks would otherwise work out each for themselves.

From: crawlr.outputs (one for all outputs of a crawl). To: sinks. Main thread.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterator, Mapping
from functools import cached_property

from msgspec import Struct

from crawlr import ranking
from crawlr.view import Address, CrawlView

__all__ = ["Addresses", "Node", "Source"]

_KEPT = 50_000  # addresses in memory, about 10 MB; what most pages link to stays


class Node(Struct, frozen=True, kw_only=True):
    """One listed URL of any kind. Made by Source, read by graph sinks."""

    id: int
    url: str
    kind: str
    """page, skipped, unvisited or external"""
    outcome: str | None
    """A page's outcome, the reason of a skipped or unvisited URL."""
    depth: int | None
    status: int | None
    millis: int | None


class Source:
    """The view with the head of sitemap.json; degrees and ranks are counted when first asked for."""

    def __init__(self, view: CrawlView, head: Mapping[str, object]) -> None:
        self.view = view
        self.head = head

    @cached_property
    def degrees(self) -> ranking.Degrees:
        return ranking.count_degrees(self.view)

    @cached_property
    def ranks(self) -> array[float]:
        """PageRank by id, over every listed URL."""
        ids = (node.id for node in self.nodes())
        return ranking.pagerank(self.view, nodes=ids, degrees=self.degrees)

    def nodes(self) -> Iterator[Node]:
        """Every listed URL in the order of the ids."""
        view = self.view
        pages = (
            Node(id=r.id, url=r.url, kind="page", outcome=r.outcome, depth=r.depth, status=r.status, millis=r.millis)
            for r in view.pages()
        )
        skipped = (
            Node(id=r.id, url=r.url, kind="skipped", outcome=r.reason, depth=r.depth, status=None, millis=None)
            for r in view.skipped()
        )
        unvisited = (
            Node(id=r.id, url=r.url, kind="unvisited", outcome=r.reason, depth=r.depth, status=None, millis=None)
            for r in view.unvisited()
        )
        external = (
            Node(id=number, url=url, kind="external", outcome=None, depth=None, status=None, millis=None)
            for number, url in view.external()
        )
        return heapq.merge(pages, skipped, unvisited, external, key=lambda node: node.id)


class Addresses:
    """What lies behind ids, asked in batches; the last ones asked for are kept."""

    def __init__(self, view: CrawlView) -> None:
        self._view = view
        self._known: dict[int, Address] = {}  # filled and emptied by of

    def of(self, ids: set[int]) -> Mapping[int, Address]:
        """A map that has every one of `ids`, good until the next call."""
        missing = ids - self._known.keys()
        if len(self._known) + len(missing) > _KEPT:
            self._known = {number: self._known[number] for number in ids - missing}
        self._known.update(self._view.addresses(missing))
        return self._known
