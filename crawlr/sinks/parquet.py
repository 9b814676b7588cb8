"""Parquet, written in row groups so that no more than one is in memory. Needs pyarrow (extra `parquet`).

From: a table. To: a binary file. Main thread.
"""

from __future__ import annotations

from typing import Any, BinaryIO

from crawlr.sinks.sitemap_json import dumps
from crawlr.sinks.tables import Cell, Kind, Table, batches
from crawlr.sinks.texts import storable

__all__ = ["write"]

_GROUP = 20_000


def write(out: BinaryIO, table: Table) -> int:
    """Write every row; the number of rows."""
    import pyarrow as pa
    from pyarrow import parquet

    types: dict[Kind, Any] = {
        Kind.TEXT: pa.string(),
        Kind.WHOLE: pa.int64(),
        Kind.REAL: pa.float64(),
        Kind.FLAG: pa.bool_(),
        Kind.WORDS: pa.list_(pa.string()),
        Kind.JSON: pa.string(),
    }
    kinds = [column.kind for column in table.columns]
    schema = pa.schema([(column.name, types[column.kind]) for column in table.columns])
    count = 0
    with parquet.ParquetWriter(out, schema, compression="zstd") as writer:
        for rows in batches(table.rows(), _GROUP):
            columns = [
                pa.array([_stored(cell, kind) for cell in cells], type=field.type)
                for cells, field, kind in zip(zip(*rows, strict=True), schema, kinds, strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
            count += len(rows)
    return count


def _stored(cell: Cell, kind: Kind) -> Cell:
    """The cell as its column takes it. In one of JSON every value is its JSON text, so that they can be told apart."""
    if kind is Kind.JSON and cell is not None:
        return dumps(cell)
    return storable(cell) if isinstance(cell, str) else cell
