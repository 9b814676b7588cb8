"""JSON Lines: an object a row, a row a line.

From: a table. To: a text file. Main thread.
"""

from __future__ import annotations

from typing import TextIO

from crawlr.sinks.sitemap_json import dumps
from crawlr.sinks.tables import Table

__all__ = ["write"]


def write(out: TextIO, table: Table) -> int:
    """Write every row; the number of rows."""
    names = [column.name for column in table.columns]
    count = 0
    for row in table.rows():
        cells = dict(zip(names, row, strict=True))
        if table.leaves_out_none:
            cells = {name: cell for name, cell in cells.items() if cell is not None}
        out.write(dumps(cells) + "\n")
        count += 1
    return count
