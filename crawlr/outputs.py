"""Every output file of a crawl: the writer of each format, and all of them one after the other.

From: api at the end of a crawl, or export (a view, and what crawlr.formats made of the paths). To: sinks. Main thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from crawlr.formats import Columns, Format, Output, Written
from crawlr.sinks import files
from crawlr.sinks.source import Source
from crawlr.sinks.tables import Table
from crawlr.view import CrawlView

__all__ = ["write_all"]


def write_all(
    view: CrawlView,
    outputs: Sequence[Output],
    *,
    head: Mapping[str, object],
    columns: Columns = Columns.NATIVE,
    stats: Mapping[str, object] | None = None,
) -> list[Written]:
    """Write every output, in order. `head` are the fields of sitemap.json before its lists; `stats` is the accounting
    of the crawl (sinks.stats_json), None when it is not known any more.

    MachineError when one can't be written; it is then not there, and those before it are.
    """
    source = Source(view, head)
    return [_write(each, source, columns, stats) for each in outputs]


# Each format is imported for who asks for it: a crawl does not wait for those it has no use for.


def _write(output: Output, source: Source, columns: Columns, stats: Mapping[str, object] | None) -> Written:
    path = output.path
    match output.format:
        case Format.XML:
            from crawlr.sinks import sitemap_xml

            return Written(path=path, notes=tuple(sitemap_xml.write(path, source)))
        case Format.JSON:
            from crawlr.sinks import sitemap_json

            with files.whole(path) as out:
                sitemap_json.write(out, source.view, head=dict(source.head))
        case Format.HTML:
            from crawlr import report

            with files.whole(path) as out:
                report.write(out, source.view, head=source.head, stats_document=stats, source=source)
        case Format.GRAPHML:
            from crawlr.sinks import graphml

            with files.whole(path) as out:
                graphml.write(out, source)
        case Format.GEXF:
            from crawlr.sinks import gexf

            with files.whole(path) as out:
                gexf.write(out, source)
        case Format.DOT:
            from crawlr.sinks import dot

            with files.whole(path) as out:
                dot.write(out, source)
        case Format.CSV | Format.JSONL | Format.PARQUET:
            from crawlr.sinks import page_columns

            return Written(path=path, pages=_write_table(output, page_columns.TABLES[columns](source)))
        case Format.EDGES_CSV | Format.EDGES_JSONL | Format.EDGES_PARQUET:
            from crawlr.sinks import edge_columns

            return Written(path=path, edges=_write_table(output, edge_columns.TABLES[columns](source)))
        case _:
            assert_never(output.format)
    return Written(path=path, pages=_counted(source, "pages"), edges=_counted(source, "edges"))


def _write_table(output: Output, table: Table) -> int:
    """The number of rows."""
    if output.format in (Format.PARQUET, Format.EDGES_PARQUET):
        from crawlr.sinks import parquet

        with files.whole_binary(output.path) as raw:
            return parquet.write(raw, table)
    if output.format in (Format.CSV, Format.EDGES_CSV):
        from crawlr.sinks import csv_file

        with files.whole(output.path) as out:
            return csv_file.write(out, table)
    from crawlr.sinks import jsonl

    with files.whole(output.path) as out:
        return jsonl.write(out, table)


def _counted(source: Source, name: str) -> int | None:
    """A number of the head's stats; a head that was read from a file may lack it."""
    stats = source.head.get("stats")
    count = stats.get(name) if isinstance(stats, dict) else None
    return count if isinstance(count, int) else None
