"""What was taken out of pages, as columns beside those of Screaming Frog or advertools.

From: source (`extract` of each page). To: page_columns. Main thread. Native tables need none of it: their column is
JSON.

advertools writes each selector as a column of its name, several texts joined by @@. Screaming Frog's custom extraction
has a column for each text, `price 1`, `price 2`; of more than 10 the last column has the rest, with a bar between them.
A name that the table has already gets `extract.` before it. Results that are no objects stand in one column `extract`.
Where nothing was taken out there is no column.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from crawlr.records import Json
from crawlr.sinks.sitemap_json import dumps
from crawlr.sinks.source import Source
from crawlr.sinks.tables import Column
from crawlr.sinks.texts import storable

__all__ = ["joined", "numbered"]

MOST_NUMBERED = 10
Cells = Callable[[Json], tuple[str | None, ...]]


def joined(source: Source, *, beside: Collection[str]) -> tuple[tuple[Column, ...], Cells]:
    """A column a name, and what makes a page's cells of its `extract`. `beside`: the names that the table has."""
    names = _names(source)

    def cells(value: Json) -> tuple[str | None, ...]:
        return tuple("@@".join(_texts(value, name)) or None for name in names)

    return _columns(["extract" if name is None else name for name in names], beside), cells


def numbered(source: Source, *, beside: Collection[str]) -> tuple[tuple[Column, ...], Cells]:
    """As `joined`, with a column for each text, as many as the page with the most of them needs."""
    names = _names(source)
    most = dict.fromkeys(names, 1)
    if names:
        for page in source.view.pages():
            for name in names:
                most[name] = max(most[name], min(MOST_NUMBERED, len(_texts(page.extract, name))))

    def cells(value: Json) -> tuple[str | None, ...]:
        found: list[str | None] = []
        for name, count in most.items():
            texts = _texts(value, name)
            if len(texts) > count:
                texts = [*texts[: count - 1], " | ".join(texts[count - 1 :])]
            found += texts
            found += [None] * (count - len(texts))
        return tuple(found)

    titles = [
        f"{'extract' if name is None else name} {number}"
        for name, count in most.items()
        for number in range(1, count + 1)
    ]
    return _columns(titles, beside), cells


def _names(source: Source) -> tuple[str | None, ...]:
    """The names in the objects; None alone: the results have none."""
    if not source.view.has_extracts:
        return ()
    return source.view.extract_names() or (None,)


def _columns(titles: list[str], beside: Collection[str]) -> tuple[Column, ...]:
    return tuple(Column(storable(f"extract.{title}" if title in beside else title)) for title in titles)


def _texts(value: Json, name: str | None) -> list[str]:
    if name is not None:
        value = value.get(name) if isinstance(value, dict) else None
    if value is None:
        return []
    return [each if isinstance(each, str) else dumps(each) for each in (value if isinstance(value, list) else [value])]
