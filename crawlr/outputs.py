"""Every output file of a crawl: the writer of each format, and all of them one after the other.

From: api at the end of a crawl, or export (a view, and what crawlr.formats made of the paths). To: sinks. Main thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from crawlr.formats import Columns, Format, Output
from crawlr.sinks import (
    csv_file,
    dot,
    edge_columns,
    files,
    gexf,
    graphml,
    jsonl,
    page_columns,
    parquet,
    sitemap_json,
    sitemap_xml,
)
from crawlr.sinks.source import Source
from crawlr.sinks.tables import Table
from crawlr.view import CrawlView

__all__ = ["Written", "write_all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One output that is in its place."""

    path: str
    notes: tuple[str, ...] = ()
    """What a person should know of it, in sentences: what had to be left out."""


_PAGES: dict[Columns, Callable[[Source], Table]] = {
    Columns.NATIVE: page_columns.native,
    Columns.SF: page_columns.sf,
    Columns.ADVERTOOLS: page_columns.advertools,
}
_EDGES: dict[Columns, Callable[[Source], Table]] = {
    Columns.NATIVE: edge_columns.native,
    Columns.SF: edge_columns.sf,
    Columns.ADVERTOOLS: edge_columns.advertools,
}


def write_all(
    view: CrawlView,
    outputs: Sequence[Output],
    *,
    head: Mapping[str, object],
    columns: Columns = Columns.NATIVE,
) -> list[Written]:
    """Write every output, in order. `head` are the fields of sitemap.json before its lists.

    MachineError when one can't be written; it is then not there, and those before it are.
    """
    source = Source(view, head)
    return [Written(path=each.path, notes=tuple(_write(each, source, columns))) for each in outputs]


def _write(output: Output, source: Source, columns: Columns) -> Sequence[str]:
    path = output.path
    match output.format:
        case Format.XML:
            return sitemap_xml.write(path, source)
        case Format.JSON:
            with files.whole(path) as out:
                sitemap_json.write(out, source.view, head=dict(source.head))
        case Format.GRAPHML:
            with files.whole(path) as out:
                graphml.write(out, source)
        case Format.GEXF:
            with files.whole(path) as out:
                gexf.write(out, source)
        case Format.DOT:
            with files.whole(path) as out:
                dot.write(out, source)
        case Format.CSV | Format.EDGES_CSV:
            table = (_PAGES if output.format is Format.CSV else _EDGES)[columns](source)
            with files.whole(path) as out:
                csv_file.write(out, table)
        case Format.JSONL | Format.EDGES_JSONL:
            table = (_PAGES if output.format is Format.JSONL else _EDGES)[columns](source)
            with files.whole(path) as out:
                jsonl.write(out, table)
        case Format.PARQUET | Format.EDGES_PARQUET:
            table = (_PAGES if output.format is Format.PARQUET else _EDGES)[columns](source)
            with files.whole_binary(path) as raw:
                parquet.write(raw, table)
        case _:
            assert_never(output.format)
    return ()
