"""A table of the page as the page's script takes it: columns, rows, and what a row opens.

From: the sections (rows by id). To: document, which writes each as a block of JSON. Pure.

An address stands once in the page, in a list of its own; a cell of kind url is its place there. So a page that links to
a hundred broken ones costs its address once.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Generic, TypeVar

from msgspec import Struct

from crawlr.scrub import scrub
from crawlr.sinks.tables import batches
from crawlr.view import CrawlView

__all__ = ["Cell", "Column", "Details", "Kind", "Largest", "Row", "Table", "Urls", "shown"]

Cell = str | int | float | None
Row = Sequence[Cell]
T = TypeVar("T")
_TEXT = 300  # characters of a title or a link's text: more is no longer read, and hostile ones have a thousand
_BATCH = 1000


class Kind(StrEnum):
    """What the cells of a column are, and so how they are shown and sorted."""

    URL = "url"
    """The place of an address in Urls."""
    TEXT = "text"
    CHOICE = "choice"
    """A text of few values: the first such column gets a list to filter by."""
    WHOLE = "whole"
    REAL = "real"
    RATE = "rate"
    """A number a second."""
    MILLIS = "millis"
    SIZE = "size"
    """Bytes."""
    SECONDS = "seconds"


class Column(Struct, frozen=True):
    name: str
    kind: Kind


class Details(Struct, frozen=True, kw_only=True):
    """What opens below each row: a table of its own. `totals` are the true numbers of rows, kept or not."""

    columns: tuple[Column, ...]
    rows: list[list[Row]]
    totals: list[int]
    opens: int
    """The column whose cell opens it."""


class Table(Struct, frozen=True, kw_only=True):
    """Rows in the order in which they are first shown."""

    columns: tuple[Column, ...]
    rows: list[Row]
    total: int
    """The true number of rows; the table holds the first of them."""
    sorted_by: int
    """The column they are sorted by; the largest is first."""
    details: Details | None = None

    @property
    def is_cut(self) -> bool:
        return self.total > len(self.rows)

    def document(self) -> dict[str, object]:
        """The table as plain values."""
        details = self.details
        return {
            "columns": [{"name": column.name, "kind": column.kind} for column in self.columns],
            "rows": self.rows,
            "total": self.total,
            "sortedBy": self.sorted_by,
            "details": None
            if details is None
            else {
                "columns": [{"name": column.name, "kind": column.kind} for column in details.columns],
                "rows": details.rows,
                "totals": details.totals,
                "opens": details.opens,
            },
        }


class Urls:
    """The addresses that tables name, each once."""

    def __init__(self, view: CrawlView) -> None:
        self._view = view
        self._places: dict[int, int] = {}  # by id
        self._ids = array("i")  # by place; -1: a literal
        self._literals: dict[int, str] = {}  # by place

    def of(self, number: int) -> int:
        """The place of the address of an id."""
        place = self._places.get(number)
        if place is None:
            place = self._places[number] = len(self._ids)
            self._ids.append(number)
        return place

    def literal(self, url: str) -> int:
        """The place of an address that has no id here."""
        place = len(self._ids)
        self._ids.append(-1)
        self._literals[place] = url
        return place

    def texts(self) -> Iterator[str]:
        """Every address in the order of the places, read in batches."""
        place = 0
        for batch in batches(iter(self._ids), _BATCH):
            found = self._view.addresses(number for number in batch if number >= 0)
            for number in batch:
                yield self._literals[place] if number < 0 else found[number].url
                place += 1


class Largest(Generic[T]):
    """The items with the largest keys, at most `limit`; of equal keys the earlier offered."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._heap: list[tuple[tuple[float, ...], int, T]] = []
        self.total = 0

    def would_take(self, key: tuple[float, ...]) -> bool:
        """True when an item with this key would be kept now."""
        return len(self._heap) < self._limit or key > self._heap[0][0]

    def offer(self, key: tuple[float, ...], item: T) -> None:
        """Count the item, and keep it if it is large enough."""
        self.total += 1
        if len(self._heap) < self._limit:
            heapq.heappush(self._heap, (key, -self.total, item))
        elif key > self._heap[0][0]:
            heapq.heapreplace(self._heap, (key, -self.total, item))

    def best(self) -> list[T]:
        """The kept items, the largest first."""
        return [item for _, _, item in sorted(self._heap, key=lambda entry: (entry[0], entry[1]), reverse=True)]


def shown(text: str | None) -> str | None:
    """Text from the web as the page shows it: without control characters and directions, and not endless."""
    return None if text is None else scrub(text, limit=_TEXT)
