"""Pages with the same body and pages with the same title, in groups.

From: the pages (second and third pass) and what Facts says may be there twice. To: the tab Duplicates. Main thread.

Pages with the same title count when each of them wants to be listed: HTML, status 200, and no other address named as
its canonical. Bodies are compared by a 64-bit hash.
"""

from __future__ import annotations

import heapq

from msgspec import Struct, field

from crawlr.records import Outcome, PageRecord
from crawlr.report.facts import Facts, title_key
from crawlr.report.tables import Column, Details, Kind, Row, Table, Urls, shown
from crawlr.sinks.indexability import is_own_canonical

__all__ = ["Duplicates"]

GROUPS = 1000
MEMBERS = 100
"""Pages of a group that are kept."""
_UNTITLED = 1000


class _Group(Struct):
    count: int
    canonicalised: int = 0
    """Pages that name another address as the one to list."""
    title: str | None = None
    members: list[int] = field(default_factory=list)


class Duplicates:
    """Counts first (`see`), then collects the largest groups (`choose`, `review`)."""

    def __init__(self, facts: Facts, *, groups: int = GROUPS, members: int = MEMBERS) -> None:
        self._facts = facts
        self._most_groups = groups
        self._most_members = members
        self._body_counts: dict[int, int] = {}
        self._title_counts: dict[int, int] = {}
        self._bodies: dict[int, _Group] = {}
        self._titles: dict[int, _Group] = {}
        self._untitled: list[tuple[int, int]] = []
        self.untitled = 0
        """HTML pages that came whole and have no title."""
        self.body_groups = self.title_groups = 0

    @property
    def has_hashes(self) -> bool:
        """False: the crawl was read from a file that does not hold the hashes of bodies."""
        return self._facts.has_hashes

    def see(self, page: PageRecord, body_hash: int | None) -> None:
        """Count a page."""
        if body_hash is not None and body_hash in self._facts.bodies:
            self._body_counts[body_hash] = self._body_counts.get(body_hash, 0) + 1
        title = title_key(page)
        if title is not None and title in self._facts.titles:
            self._title_counts[title] = self._title_counts.get(title, 0) + 1
        if page.status == 200 and page.outcome is Outcome.OK and not page.title:
            self.untitled += 1
            if len(self._untitled) < _UNTITLED:
                self._untitled.append((page.id, page.depth))

    def choose(self) -> None:
        """All pages were counted: the largest groups are those to collect."""
        self.body_groups, self._bodies = _largest(self._body_counts, self._most_groups)
        self.title_groups, self._titles = _largest(self._title_counts, self._most_groups)

    @property
    def needs_review(self) -> bool:
        """True when `review` has to see the pages again."""
        return bool(self._bodies or self._titles)

    def review(self, page: PageRecord, body_hash: int | None) -> None:
        """A pass over the pages after `choose`."""
        if body_hash is not None:
            self._add(self._bodies.get(body_hash), page)
        title = title_key(page)
        if title is not None:
            self._add(self._titles.get(title), page)

    def _add(self, group: _Group | None, page: PageRecord) -> None:
        if group is None:
            return
        if group.title is None:
            group.title = shown(page.title)
        group.canonicalised += not is_own_canonical(page)
        if len(group.members) < self._most_members:
            group.members.append(page.id)

    def bodies(self, urls: Urls) -> Table:
        """Groups of pages with the same body."""
        groups = list(self._bodies.values())
        return Table(
            columns=(
                Column("Title of the first", Kind.TEXT),
                Column("Pages", Kind.WHOLE),
                Column("Name another as canonical", Kind.WHOLE),
                Column("First page", Kind.URL),
            ),
            rows=[(group.title, group.count, group.canonicalised, urls.of(group.members[0])) for group in groups],
            total=self.body_groups,
            sorted_by=1,
            details=_members(groups, urls),
        )

    def titles(self, urls: Urls) -> Table:
        """Groups of pages with the same title."""
        groups = list(self._titles.values())
        return Table(
            columns=(Column("Title", Kind.TEXT), Column("Pages", Kind.WHOLE), Column("First page", Kind.URL)),
            rows=[(group.title, group.count, urls.of(group.members[0])) for group in groups],
            total=self.title_groups,
            sorted_by=1,
            details=_members(groups, urls),
        )

    def untitled_table(self, urls: Urls) -> Table:
        """Pages without a title."""
        return Table(
            columns=(Column("URL", Kind.URL), Column("Depth", Kind.WHOLE)),
            rows=[(urls.of(number), depth) for number, depth in self._untitled],
            total=self.untitled,
            sorted_by=-1,
        )


def _largest(counts: dict[int, int], most: int) -> tuple[int, dict[int, _Group]]:
    """(how many groups there are, the largest of them, empty)."""
    number = sum(1 for count in counts.values() if count > 1)
    chosen = heapq.nlargest(min(most, number), counts, key=counts.__getitem__)
    groups = {key: _Group(counts[key]) for key in chosen}
    counts.clear()
    return number, groups


def _members(groups: list[_Group], urls: Urls) -> Details:
    rows: list[list[Row]] = [[(urls.of(number),) for number in group.members] for group in groups]
    return Details(columns=(Column("Page", Kind.URL),), rows=rows, totals=[group.count for group in groups], opens=1)
