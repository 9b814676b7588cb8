"""What is broken, and every page that leads there with the text of the link.

From: the pages (second pass), then the links of the view. To: the tab Broken. Main thread.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from crawlr.records import PageRecord
from crawlr.report.facts import Facts, trouble_of
from crawlr.report.linking import LINKS, linking_pages
from crawlr.report.tables import Column, Kind, Largest, Table, Urls, shown
from crawlr.sinks.source import Source

__all__ = ["Broken"]

ROWS = 10_000


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
        """The crawl kept the texts of links. Set by `table`, as the next one."""
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
        inlinks = {row.id: row.inlinks for row in rows}
        linking = linking_pages(self._source, self._facts, urls, inlinks, opens=4, limit=self._links)
        self.has_links, self.has_texts = linking.has_links, linking.has_texts
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
            details=linking.details,
        )
