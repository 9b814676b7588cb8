"""CSV for spreadsheets and data frames alike.

From: a table. To: a text file. Main thread.

UTF-8, comma, quotes where they are needed, lines that end in LF: pandas, Excel, Sheets, Gephi, awk and sort all take
that. A byte order mark comes first only with the columns of Screaming Frog, whose own exports have one: Excel needs it
to see UTF-8 at a double click, but a program that does not know it would find a first column of another name. (Without
it Excel asks for the encoding under Data, From Text/CSV.)

A cell that a spreadsheet would take for a formula gets an apostrophe before it. That is done to every text, since
titles, types, errors and addresses come from the web, and to no number.

A column of JSON objects (`extract`) becomes one for each name in them (`extract.price`), several texts under one name
being joined by " | ". Where not all are objects it stays one, with lists and objects as JSON.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import TextIO

from crawlr.records import Json
from crawlr.sinks.sitemap_json import dumps
from crawlr.sinks.tables import Cell, Kind, Table
from crawlr.sinks.texts import storable

__all__ = ["defused", "write"]

# OWASP, "CSV Injection": these begin a formula, the last four as a spreadsheet with an East Asian input reads them.
# LF and CR: a program that drops them would bring the next character to the front.
_FORMULA = frozenset("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")


def write(out: TextIO, table: Table) -> int:
    """Write the header and every row; the number of rows."""
    if table.has_mark:
        out.write("\ufeff")
    writer = csv.writer(_EndingInLf(out), lineterminator="\r\n")
    names = [column.name for column in table.columns]
    place = next((place for place, column in enumerate(table.columns) if column.kind is Kind.JSON), None)
    keys = () if place is None else table.json_keys()
    if keys and place is not None:
        names[place : place + 1] = [storable(f"{names[place]}.{key}") for key in keys]
    writer.writerow(names)
    count = 0

    def cells() -> Iterator[list[Cell]]:
        nonlocal count
        for row in table.rows():
            count += 1
            if keys and place is not None:
                row = (*row[:place], *_parts(row[place], keys), *row[place + 1 :])  # noqa: PLW2901  # the same row
            yield [cell if cell is None or type(cell) is int else _shown(cell, table.flags) for cell in row]

    writer.writerows(cells())
    return count


class _EndingInLf:
    """Takes the lines of a csv.writer. With "\\n" as its terminator it would leave a CR in a cell unquoted (3.11)."""

    def __init__(self, out: TextIO) -> None:
        self._write = out.write

    def write(self, line: str) -> int:
        return self._write(f"{line[:-2]}\n")


def _shown(cell: Cell, flags: tuple[str, str]) -> Cell:
    if type(cell) is str and cell.isascii() and cell[:1] not in _FORMULA:  # nearly every cell
        return cell
    if isinstance(cell, bool):
        return flags[0] if cell else flags[1]
    if isinstance(cell, tuple):
        cell = ", ".join(cell)
    elif isinstance(cell, (list, dict)):
        cell = dumps(cell)
    return defused(cell) if isinstance(cell, str) else cell


def _parts(cell: Cell, keys: tuple[str, ...]) -> list[Json]:
    found = [cell.get(key) for key in keys] if isinstance(cell, dict) else [None] * len(keys)
    return [_joined(each) for each in found]


def _joined(value: Json) -> Json:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return " | ".join(str(each) for each in value)
    return value


def defused(text: str) -> str:
    """The text, with an apostrophe before it when it would be a formula, and in a form that UTF-8 can hold."""
    return storable(f"'{text}" if text[:1] in _FORMULA else text)
