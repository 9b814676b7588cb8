"""CSV for spreadsheets and data frames alike.

From: a table. To: a text file. Main thread.

UTF-8, comma, quotes where they are needed, lines that end in LF: pandas, Excel, Sheets, Gephi, awk and sort all take
that. A byte order mark comes first only with the columns of Screaming Frog, whose own exports have one: Excel needs it
to see UTF-8 at a double click, but a program that does not know it would find a first column of another name. (Without
it Excel asks for the encoding under Data, From Text/CSV.)

A cell that a spreadsheet would take for a formula gets an apostrophe before it. That is done to every text, since
titles, types, errors and addresses come from the web, and to no number.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import TextIO

from crawlr.sinks.sitemap_json import dumps
from crawlr.sinks.tables import Cell, Table
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
    writer.writerow([column.name for column in table.columns])
    count = 0

    def cells() -> Iterator[list[Cell]]:
        nonlocal count
        for row in table.rows():
            count += 1
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


def defused(text: str) -> str:
    """The text, with an apostrophe before it when it would be a formula, and in a form that UTF-8 can hold."""
    return storable(f"'{text}" if text[:1] in _FORMULA else text)
