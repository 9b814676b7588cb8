"""Redirects, those that cost or break something apart from those that only tidy an address.

From: the pages (second pass) and where each redirect leads (Facts). To: the tab Redirects. Main thread.

A chain begins at every redirecting page, since links lead into the middle of chains too. What a redirect only adds or
takes away - a slash at the end of the path, http for https - is noise when it is all that happens.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from crawlr.records import Outcome, PageRecord
from crawlr.report.facts import Facts
from crawlr.report.tables import Column, Details, Kind, Largest, Row, Table, Urls
from crawlr.sinks.source import Addresses, Source

__all__ = ["MOST_HOPS", "NOISE", "RedirectKind", "Redirects", "tidies"]

ROWS = 10_000
MOST_HOPS = 50
"""A chain is followed so far: links into its middle make it longer than --max-redirects, and each page of it is looked
at."""


class RedirectKind(StrEnum):
    """What a redirect is, the worst first; one that is several is the first of them."""

    LOOP = "loop"
    DEAD_END = "ends at an error"
    CHAIN = "chain"
    OTHER = "to another page"
    OUTSIDE = "out of the crawl"
    HTTPS = "to https"
    SLASH = "slash"


NOISE = (RedirectKind.HTTPS, RedirectKind.SLASH)
_RANK = {kind: -place for place, kind in enumerate(RedirectKind)}


class _Row(NamedTuple):
    id: int
    kind: RedirectKind
    chain: tuple[int, ...]
    """Ids after this page; the last redirects no further, or out of scope."""
    ends_outside: bool
    inlinks: int
    hops: int


class _Chain(Struct):
    ids: tuple[int, ...]
    ends_outside: bool
    is_loop: bool


class Redirects:
    """Collects redirecting pages, the worst kind first and those with the most links first in it."""

    def __init__(self, source: Source, facts: Facts, *, rows: int = ROWS) -> None:
        self._source = source
        self._facts = facts
        self._worth: Largest[_Row] = Largest(rows)
        self._noise: Largest[_Row] = Largest(rows)
        self.kinds: Counter[str] = Counter()
        self.links = 0
        """Links that lead to a redirect."""
        self._outside: dict[int, str] = {}  # where chains of kept rows leave the scope: wished in see, filled in review

    @property
    def total(self) -> int:
        return self._worth.total + self._noise.total

    def see(self, page: PageRecord) -> None:
        """Take a page in, if it redirects."""
        if page.redirect_url is None:
            return
        inlinks = self._source.degrees.into[page.id]
        self.links += inlinks
        chain = self._chain(page.id)
        kind = self._kind(page, chain)
        self.kinds[kind] += 1
        hops = len(chain.ids) + chain.ends_outside
        row = _Row(page.id, kind, chain.ids, chain.ends_outside, inlinks, hops)
        (self._noise if kind in NOISE else self._worth).offer((_RANK[kind], inlinks, -page.id), row)

    def _chain(self, number: int) -> _Chain:
        redirect_to, seen = self._facts.redirect_to, {number}
        ids: list[int] = []
        while (target := redirect_to[number]) >= 0 and len(ids) < MOST_HOPS:
            ids.append(target)
            if target in seen:
                return _Chain(tuple(ids), ends_outside=False, is_loop=True)
            seen.add(target)
            number = target
        return _Chain(tuple(ids), ends_outside=target == -2, is_loop=False)

    def _kind(self, page: PageRecord, chain: _Chain) -> RedirectKind:
        assert page.redirect_url is not None
        if chain.is_loop or page.outcome is Outcome.REDIRECT_LOOP:
            return RedirectKind.LOOP
        if chain.ids and self._facts.is_broken[chain.ids[-1]]:
            return RedirectKind.DEAD_END
        if len(chain.ids) + chain.ends_outside > 1:
            return RedirectKind.CHAIN
        return tidies(page.url, page.redirect_url) or (RedirectKind.OTHER if chain.ids else RedirectKind.OUTSIDE)

    def choose(self) -> None:
        """The rows that are kept are final: note which addresses out of scope they need."""
        for row in (*self._worth.best(), *self._noise.best()):
            if row.ends_outside:
                self._outside[row.chain[-1] if row.chain else row.id] = ""

    @property
    def needs_review(self) -> bool:
        """True when `review` has to see the pages again."""
        return bool(self._outside)

    def review(self, page: PageRecord) -> None:
        """A pass over the pages after `choose`."""
        if page.id in self._outside and page.redirect_url is not None:
            self._outside[page.id] = page.redirect_url

    def tables(self, urls: Urls) -> tuple[Table, Table]:
        """(what is worth a look, noise)."""
        return self._table(self._worth, urls), self._table(self._noise, urls)

    def _table(self, kept: Largest[_Row], urls: Urls) -> Table:
        addresses = Addresses(self._source.view)
        rows: list[Row] = []
        hops: list[list[Row]] = []
        for row in kept.best():
            known = addresses.of({row.id, *row.chain})
            steps: list[Row] = [(urls.of(number), known[number].status) for number in (row.id, *row.chain)]
            if row.ends_outside:
                last = row.chain[-1] if row.chain else row.id
                steps.append((urls.literal(self._outside[last]), None))
            end, end_status = steps[-1]
            rows.append((urls.of(row.id), row.kind, row.hops, end, end_status, row.inlinks))
            hops.append(steps)
        return Table(
            columns=(
                Column("URL", Kind.URL),
                Column("Kind", Kind.CHOICE),
                Column("Redirects", Kind.WHOLE),
                Column("Ends at", Kind.URL),
                Column("Status there", Kind.WHOLE),
                Column("Linked from", Kind.WHOLE),
            ),
            rows=rows,
            total=kept.total,
            sorted_by=-1,
            details=Details(
                columns=(Column("Step", Kind.URL), Column("Status", Kind.WHOLE)),
                rows=hops,
                totals=[row.hops + 1 for row in kept.best()],
                opens=2,
            ),
        )


def tidies(url: str, target: str) -> RedirectKind | None:
    """The kind of noise when nothing else happens from `url` to `target`, else None."""
    scheme, _, rest = url.partition("://")
    new_scheme, _, new_rest = target.partition("://")
    if (scheme, new_scheme) == ("http", "https"):
        return RedirectKind.HTTPS if rest == new_rest or _without_slash(rest) == _without_slash(new_rest) else None
    if scheme == new_scheme and _without_slash(rest) == _without_slash(new_rest):
        return RedirectKind.SLASH
    return None


def _without_slash(rest: str) -> tuple[str, str]:
    path, _, query = rest.partition("?")
    return path.rstrip("/"), query
