"""What changed since an earlier crawl: the tab that only the report of a diff has.

From: crawlr.diff. To: the tab Changes. Main thread.
"""

from __future__ import annotations

from collections.abc import Iterator

from crawlr.diff import BrokenLink, Diff, Entry, What
from crawlr.report.tables import Column, Kind, Row, Table, Urls, shown

__all__ = ["NAMES", "Changes"]

ROWS = 10_000
NAMES = {
    "broken": "new broken link",
    "mended": "mended link",
    "gone": "page gone",
    "new": "new page",
    What.STATUS: "status",
    What.REDIRECT: "redirect",
    What.TITLE: "title",
    What.CANONICAL: "canonical",
    What.DEPTH: "depth",
}
"""What each list of a diff is called, in the order in which a reader wants them."""


class Changes:
    """Reads the lists of a diff; of the rows the first are kept, an equal share of each list where there are many."""

    def __init__(self, diff: Diff, urls: Urls, *, rows: int = ROWS) -> None:
        counts = diff.counts()
        self.same = counts["same"]
        self.counts = [(name, counts[key]) for key, name in NAMES.items()]
        """(name, number) of each list."""
        self.since = str(diff.old_head.get("finished_at"))
        self.options = [(name, _text(old), _text(new)) for name, old, new in diff.differing_options()]
        """(name, before, now) of options of the crawls that differ."""
        self.is_partial = diff.new_head.get("complete") is not True
        lists = dict(diff.lists())
        share = max(1, rows // max(1, sum(1 for _, count in self.counts if count)))
        self._rows: list[Row] = []
        for key, name in NAMES.items():
            for place, row in enumerate(lists[key]):
                if place >= share:
                    break
                self._rows.append((name, *_cells(key, row, urls)))

    @property
    def total(self) -> int:
        return sum(count for _, count in self.counts)

    def table(self) -> Table:
        """Every change that is kept."""
        return Table(
            columns=(
                Column("Change", Kind.CHOICE),
                Column("URL", Kind.URL),
                Column("Before", Kind.TEXT),
                Column("Now", Kind.TEXT),
                Column("Page with the link", Kind.URL),
            ),
            rows=self._rows,
            total=self.total,
            sorted_by=-1,
        )


def _cells(key: str, row: object, urls: Urls) -> Iterator[str | int | None]:
    """URL, before, now, the page with the link."""
    match key, row:
        case "broken", BrokenLink(source, target, _):
            yield from (urls.literal(target.url), None, target.answer, urls.literal(source))
        case "mended", BrokenLink(source, target, now):
            yield from (urls.literal(target.url), target.answer, now, urls.literal(source))
        case "gone", (Entry() as old, Entry() | None as new):
            yield from (urls.literal(old.url), old.answer, None if new is None else new.answer, None)
        case "new", (Entry() | None as old, Entry() as new):
            yield from (urls.literal(new.url), None if old is None else old.answer, new.answer, None)
        case _, (Entry() as old, Entry() as new):
            what = What(key)
            yield from (urls.literal(new.url), _text(what.of(old)), _text(what.of(new)), None)


def _text(value: object) -> str | None:
    return None if value is None else shown(str(value))
