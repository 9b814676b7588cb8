"""A table as every writer of rows takes it: named, typed columns and a stream of rows.

From: page_columns and edge_columns (whose names and which values). To: csv_file, jsonl and parquet (how they are
written). Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from itertools import islice
from typing import TypeVar

from msgspec import Struct

from crawlr.records import Json

__all__ = ["Cell", "Column", "Kind", "Row", "Table", "batches"]

Cell = str | int | float | bool | tuple[str, ...] | list[Json] | dict[str, Json] | None
Row = Sequence[Cell]
T = TypeVar("T")


class Kind(StrEnum):
    """What the cells of a column hold, besides None."""

    TEXT = "text"
    WHOLE = "whole"
    REAL = "real"
    FLAG = "flag"
    WORDS = "words"
    """A tuple of texts."""
    JSON = "json"
    """Any value of JSON."""


class Column(Struct, frozen=True):
    name: str
    kind: Kind = Kind.TEXT


class Table(Struct, frozen=True, kw_only=True):
    """Rows are made anew by each call of `rows`; each has a cell for every column."""

    columns: tuple[Column, ...]
    rows: Callable[[], Iterator[Row]]
    has_mark: bool = False
    """CSV begins with a byte order mark, by which Excel knows UTF-8."""
    flags: tuple[str, str] = ("true", "false")
    """How CSV spells True and False."""
    json_keys: Callable[[], tuple[str, ...]] = tuple
    """The names in the objects of the column of JSON (one at most), by which CSV parts it; none when not every cell is
    an object."""
    leaves_out_none: bool = False
    """A JSON line has no keys without a value."""


def batches(rows: Iterator[T], size: int) -> Iterator[list[T]]:
    """Lists of up to `size` rows, in order."""
    while batch := list(islice(rows, size)):
        yield batch
