"""What is broken, and every page that leads there with the text of the link.

From: the pages (second pass), then the links of the view. To: the tab Broken. Main thread.

Links are kept up to a cap over all broken URLs; when there are more, each keeps the same number of them at most, so
that no URL that is linked from everywhere pushes out the links to the others.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from crawlr.records import PageRecord
from crawlr.report.facts import Facts, trouble_of
from crawlr.report.tables import Column, Details, Kind, Largest, Row, Table, Urls, shown
from crawlr.sinks.edge_columns import kinds_of_links
from crawlr.sinks.source import Source

__all__ = ["LINKS", "Broken"]

ROWS = 10_000
LINKS = 50_000
"""Linking pages that are kept, over all broken URLs."""


class _Row(NamedTuple):
    id: int
    trouble: str
    status: int | None
    reason: str | None
    inlinks: int


class Broken:
    """Collects broken pages, those with the most links first."""

    def __init__(self, source: Source, facts: Facts, *, rows: int = ROWS, links: int = LINKS) -> None:
        self._source = source
        self._facts = facts
        self._links = links
        self._largest: Largest[_Row] = Largest(rows)
        self.kinds: Counter[str] = Counter()
        self.has_texts = False
        """The crawl kept the texts of links."""
        self.has_links = False

    @property
    def total(self) -> int:
        return self._largest.total

    def see(self, page: PageRecord) -> None:
        """Take a page in, if anything is wrong with it."""
        trouble = trouble_of(page)
        if trouble is None:
            return
        self.kinds[trouble] += 1
        inlinks = self._source.degrees.into[page.id] + self._facts.redirects_into[page.id]
        reason = page.error or page.outcome.replace("_", " ")
        row = _Row(page.id, trouble, page.status, reason, inlinks)
        self._largest.offer((inlinks, -page.id), row)

    def linking_pages(self) -> int:
        """How many pages link to something broken."""
        is_broken = self._facts.is_broken.__getitem__
        return sum(1 for _, targets in self._source.view.edges() if any(map(is_broken, targets)))

    def table(self, urls: Urls) -> Table:
        """The table of what is kept, each row with the pages that lead there."""
        rows = self._largest.best()
        linking = self._linking(rows, urls)
        return Table(
            columns=(
                Column("URL", Kind.URL),
                Column("Problem", Kind.CHOICE),
                Column("Status", Kind.WHOLE),
                Column("What happened", Kind.TEXT),
                Column("Linked from", Kind.WHOLE),
            ),
            rows=[(urls.of(row.id), row.trouble, row.status, shown(row.reason), row.inlinks) for row in rows],
            total=self.total,
            sorted_by=4,
            details=Details(
                columns=(
                    Column("Page with the link", Kind.URL),
                    Column("Link text", Kind.TEXT),
                    Column("Kind", Kind.TEXT),
                ),
                rows=[linking[row.id] for row in rows],
                totals=[row.inlinks for row in rows],
                opens=4,
            ),
        )

    def _linking(self, rows: list[_Row], urls: Urls) -> dict[int, list[Row]]:
        """The first pages that lead to each of these, in the order of their ids, redirects last."""
        found: dict[int, list[Row]] = {row.id: [] for row in rows}
        most = fair_share([row.inlinks for row in rows], self._links)
        wanted = {row.id for row in rows if row.inlinks}
        names = _kind_names()
        for links in self._source.view.links():
            self.has_links = True
            self.has_texts = self.has_texts or links.texts is not None
            if wanted.isdisjoint(links.targets):
                continue
            for place, target in enumerate(links.targets):
                if target in wanted:
                    text = None if links.texts is None else shown(links.texts[place])
                    kind = None if links.kinds is None else names[links.kinds[place]]
                    found[target].append((urls.of(links.source), text, kind))
                    if len(found[target]) >= most:
                        wanted.discard(target)
        for number, target in enumerate(self._facts.redirect_to):
            if target in wanted and len(found[target]) < most:
                found[target].append((urls.of(number), None, "redirect"))
        return found


def fair_share(counts: list[int], limit: int) -> int:
    """The largest number such that, when each keeps at most so many, all together keep no more than `limit`."""
    left, waiting = limit, len(counts)
    for count in sorted(counts):
        if count * waiting > left:
            return left // waiting
        left -= count
        waiting -= 1
    return max(counts, default=0)


def _kind_names() -> list[str]:
    """How a link is shown, by the byte that the journal keeps of it."""
    return [f"{name}, nofollow" if nofollow else name for name, nofollow in kinds_of_links()]
