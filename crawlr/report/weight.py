"""Slow pages and large pages, and how the times and sizes of all pages are spread.

From: the pages (second pass). To: the tab Speed and size. Main thread.

A time is from the first byte sent to the last byte read, waiting left out; a size is that of the decoded body. Only
answers count: how long a request without one took says what --timeout is.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Sequence

from msgspec import Struct

from crawlr.records import PageRecord
from crawlr.report.tables import Column, Kind, Largest, Row, Table, Urls, shown

__all__ = ["Bar", "Spread", "Weight", "bars"]

ROWS = 1000
POINTS = 2000
"""Pages of the plot of time against size, chosen at random among all."""
_MILLIS = (50, 100, 200, 500, 1000, 2000, 5000)
_BYTES = tuple(kib << 10 for kib in (1, 10, 50, 100, 500, 1024, 5120))
_FINEST = 1 << 17  # classes of a Spread; what is above the last counts as the last


class Bar(Struct, frozen=True, kw_only=True):
    """One row of a table with bars."""

    label: str
    count: int
    share: float
    """Of all, 0 to 1."""
    width: float
    """Of the longest, 0 to 1."""
    note: str = ""


def bars(counts: Sequence[tuple[str, int]] | Sequence[tuple[str, int, str]]) -> list[Bar]:
    """Rows for (label, count[, note])."""
    total = sum(each[1] for each in counts) or 1
    most = max((each[1] for each in counts), default=0) or 1
    return [
        Bar(
            label=each[0],
            count=each[1],
            share=each[1] / total,
            width=each[1] / most,
            note=each[2] if len(each) > 2 else "",
        )
        for each in counts
    ]


class Spread:
    """How many values there are of each size, in classes of `unit`: exact to that, in half a megabyte."""

    def __init__(self, unit: int, limits: Sequence[int]) -> None:
        self._unit = unit
        self._counts = array("I", bytes(4 * _FINEST))
        self._limits = tuple(limits)
        self._classes = [0] * (len(self._limits) + 1)
        self.total = 0
        self.sum = 0

    def add(self, value: int) -> None:
        self.total += 1
        self.sum += value
        self._counts[min(value // self._unit, _FINEST - 1)] += 1
        place = 0
        for limit in self._limits:
            if value < limit:
                break
            place += 1
        self._classes[place] += 1

    def percentile(self, share: float) -> int:
        """The value below which `share` (0 to 1) of all are, to the unit."""
        left = share * self.total
        for place, count in enumerate(self._counts):
            left -= count
            if left <= 0:
                return place * self._unit
        return 0

    def classes(self) -> list[tuple[int | None, int | None, int]]:
        """(from, to, count) of each class; None: open."""
        bounds = [None, *self._limits, None]
        return list(zip(bounds, bounds[1:], self._classes, strict=False))


class Weight:
    """Collects answers, the slowest and the largest of them as rows."""

    def __init__(self, *, rows: int = ROWS) -> None:
        self._slow: Largest[PageRecord] = Largest(rows)
        self._large: Largest[PageRecord] = Largest(rows)
        self.times = Spread(1, _MILLIS)
        self.sizes = Spread(1 << 10, _BYTES)
        self.points: list[tuple[int, int]] = []
        """(bytes, milliseconds) of some pages."""
        self._random = random.Random(0)  # the same crawl gives the same page

    def see(self, page: PageRecord) -> None:
        """Take a page in, if there was an answer."""
        if page.status is None:
            return
        self.times.add(page.millis)
        self._slow.offer((page.millis, -page.id), page)
        if not page.bytes:
            return
        self.sizes.add(page.bytes)
        self._large.offer((page.bytes, -page.id), page)
        point = (page.bytes, page.millis)
        if len(self.points) < POINTS:
            self.points.append(point)
        elif (place := self._random.randrange(self.sizes.total)) < POINTS:
            self.points[place] = point

    def tables(self, urls: Urls) -> tuple[Table, Table]:
        """(the slowest, the largest)."""
        return _table(self._slow, urls, sorted_by=1), _table(self._large, urls, sorted_by=2)


def _table(kept: Largest[PageRecord], urls: Urls, *, sorted_by: int) -> Table:
    rows: list[Row] = [
        (urls.of(page.id), page.millis, page.bytes, page.status, page.depth, shown(page.title)) for page in kept.best()
    ]
    return Table(
        columns=(
            Column("URL", Kind.URL),
            Column("Time", Kind.MILLIS),
            Column("Size", Kind.SIZE),
            Column("Status", Kind.WHOLE),
            Column("Depth", Kind.WHOLE),
            Column("Title", Kind.TEXT),
        ),
        rows=rows,
        total=kept.total,
        sorted_by=sorted_by,
    )
