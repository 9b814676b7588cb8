"""A table of what a parse process remembers begins anew when it is full, and counts what it is told."""

from __future__ import annotations

from crawlr.parse.remembered import Remembered


def test_a_full_table_begins_anew() -> None:
    """What fits in is kept, what does not takes the place of all the others, and emptying makes room."""
    table: Remembered[str, int] = Remembered(10)
    table.keep("a", 1, 6)
    table.keep("b", 2, 4)
    assert table == {"a": 1, "b": 2}

    table.keep("c", 3, 5)
    assert table == {"c": 3}

    table.keep("d", 4, 5)
    table.clear()
    table.keep("e", 5, 10)
    assert table == {"e": 5}
