"""The XML sitemaps against the links: what only a sitemap names, what no sitemap names, and what it should not name.

From: the lists of the view (second pass). To: the tab Sitemap. Main thread.

A page's record says whether a sitemap names it. Of a URL that was not requested its place tells it: one that only a
sitemap leads to has depth 0 and no parent, as a seed has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from crawlr.records import PageRecord, SkippedRecord, UnvisitedRecord
from crawlr.report.facts import Facts
from crawlr.report.tables import Column, Kind, Row, Table, Urls, shown
from crawlr.sinks.indexability import is_html, obstacles
from crawlr.sinks.source import Source

__all__ = ["Listed"]

ROWS = 10_000


class Listed:
    """Compares the two, URL by URL. The first rows of each kind are kept."""

    def __init__(self, source: Source, facts: Facts, urls: Urls, *, rows: int = ROWS) -> None:
        self.is_asked = False
        """The crawl took URLs from sitemaps; else there is nothing to compare. Set by the first page."""
        self._source = source
        self._facts = facts
        self._urls = urls
        self._most = rows
        seeds = source.head.get("seeds")
        self._seeds = frozenset(str(seed) for seed in seeds) if isinstance(seeds, Collection) else frozenset()
        self._orphans: list[Row] = []
        self._missing: list[Row] = []
        self._unfit: list[Row] = []
        self.listed = self.orphans = self.missing = self.unfit = 0
        self.unfit_kinds: Counter[str] = Counter()
        self.failed = 0
        """Sitemaps with which something was wrong. Set by `files`."""

    def see(self, page: PageRecord) -> None:
        """Take a page in."""
        if page.in_sitemap is None:
            return
        self.is_asked = True
        if page.in_sitemap:
            self._see_listed(page, ", ".join(obstacles(page)), shown(page.title))
        elif is_html(page) and not obstacles(page):
            self.missing += 1
            if len(self._missing) < self._most:
                links = self._source.degrees.into[page.id]
                self._missing.append((self._urls.of(page.id), page.depth, links, shown(page.title)))

    def see_unasked(self) -> None:
        """Take in what was not requested."""
        if not self.is_asked:
            return
        for skipped in self._source.view.skipped():
            if self._is_listed(skipped):
                self._see_listed(skipped, skipped.reason.replace("_", " "), None)
        for unvisited in self._source.view.unvisited():
            if self._is_listed(unvisited):
                self._see_listed(unvisited, None, None)

    def _is_listed(self, record: SkippedRecord | UnvisitedRecord) -> bool:
        return record.depth == 0 and record.parent is None and record.url not in self._seeds

    def _see_listed(
        self, record: PageRecord | SkippedRecord | UnvisitedRecord, why: str | None, title: str | None
    ) -> None:
        self.listed += 1
        status = record.status if isinstance(record, PageRecord) else None
        if why:
            self.unfit += 1
            self.unfit_kinds[why] += 1
            if len(self._unfit) < self._most:
                self._unfit.append((self._urls.of(record.id), why, status, title))
        ways = self._source.degrees.into[record.id] + self._facts.redirects_into[record.id]
        if not ways and record.url not in self._seeds:
            self.orphans += 1
            if len(self._orphans) < self._most:
                self._orphans.append((self._urls.of(record.id), status, title))

    def tables(self) -> tuple[Table, Table, Table]:
        """(orphans, pages that are missing, what should not be listed)."""
        url, status, title = Column("URL", Kind.URL), Column("Status", Kind.WHOLE), Column("Title", Kind.TEXT)
        return (
            Table(columns=(url, status, title), rows=self._orphans, total=self.orphans, sorted_by=-1),
            Table(
                columns=(url, Column("Depth", Kind.WHOLE), Column("Linked from", Kind.WHOLE), title),
                rows=self._missing,
                total=self.missing,
                sorted_by=-1,
            ),
            Table(
                columns=(url, Column("Why not", Kind.CHOICE), status, title),
                rows=self._unfit,
                total=self.unfit,
                sorted_by=-1,
            ),
        )

    def files(self) -> Table:
        """Every sitemap that was looked for, those with which something was wrong first."""
        rows: list[tuple[str, str, str | None]] = []
        for url, _, is_done, error in self._source.view.sitemaps():
            is_guessed = url.endswith("/sitemap.xml") and error == "status 404"  # where one may lie
            state = "read" if error is None else "not there" if is_guessed else "trouble"
            self.failed += state == "trouble"
            rows.append((url, state if is_done else "not asked", error))
        rows.sort(key=lambda row: (row[1] != "trouble", row[1] != "not asked"))
        return Table(
            columns=(Column("Sitemap", Kind.URL), Column("State", Kind.CHOICE), Column("What was wrong", Kind.TEXT)),
            rows=[(self._urls.literal(url), state, shown(error)) for url, state, error in rows[: self._most]],
            total=len(rows),
            sorted_by=-1,
        )
