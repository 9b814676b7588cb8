"""Which format an output file has: by the ending of its name, or as --format says; and what became of each.

From: options (paths, --format, --columns). To: crawlr.outputs, which has a writer for each, and on to the screen.
Pure, standard library only, so that a name that means nothing is refused before a crawl begins.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from crawlr.errors import OptionsError

__all__ = ["Columns", "Format", "Output", "Written", "check_columns", "outputs_of", "wants_texts"]


class Format(StrEnum):
    """What is written, named as `--format` names it."""

    JSON = "json"
    """The whole crawl: sitemap.json."""
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    EDGES_JSONL = "edges.jsonl"
    EDGES_CSV = "edges.csv"
    EDGES_PARQUET = "edges.parquet"
    HTML = "html"
    """A report for people."""
    XML = "xml"
    """sitemaps.org."""
    GRAPHML = "graphml"
    GEXF = "gexf"
    DOT = "dot"


class Columns(StrEnum):
    """Whose names the columns of tables have."""

    NATIVE = "native"
    SF = "sf"
    """Screaming Frog's Internal:All and All Inlinks."""
    ADVERTOOLS = "advertools"


class Output(Struct, frozen=True, kw_only=True):
    """One file to write."""

    path: str
    """"-" is standard output."""
    format: Format


class Written(Struct, frozen=True, kw_only=True):
    """One output that is in its place. Made by crawlr.outputs, read by the screen."""

    path: str
    pages: int | None = None
    """How many it lists; None: it is about something else, or that was not counted."""
    edges: int | None = None
    notes: tuple[str, ...] = ()
    """What a person should know of it, in sentences: what had to be left out."""


_TABLES = {Format.JSONL: Format.EDGES_JSONL, Format.CSV: Format.EDGES_CSV, Format.PARQUET: Format.EDGES_PARQUET}
_ENDINGS = {
    "json": Format.JSON,
    "jsonl": Format.JSONL,
    "ndjson": Format.JSONL,
    "jl": Format.JSONL,  # as advertools calls it
    "csv": Format.CSV,
    "parquet": Format.PARQUET,
    "html": Format.HTML,
    "xml": Format.XML,
    "graphml": Format.GRAPHML,
    "gexf": Format.GEXF,
    "dot": Format.DOT,
    "gv": Format.DOT,
}
_NAME = re.compile(r"(?P<stem>.+?)\.(?P<ending>[^.]+?)(?P<packed>\.gz)?", re.DOTALL)
# edges.csv, site-edges.csv, but not ledges.csv
_EDGES = re.compile(r"(?:.*[\W_])?edges", re.DOTALL)
_UNPACKED = (Format.PARQUET, Format.EDGES_PARQUET)
_WITH_COLUMNS = frozenset(_TABLES) | frozenset(_TABLES.values())


def outputs_of(paths: Sequence[str], *, format: str | None = None) -> tuple[Output, ...]:  # noqa: A002  # the option
    """What to write to each of these paths, in order. OptionsError for a name or a format that means nothing, for two
    outputs in one place, and for a format that can't be had here."""
    forced = None if format is None else _read(format)
    found = tuple(Output(path=path, format=forced or _format_of(path)) for path in paths)
    seen: set[str] = set()
    for output in found:
        place = output.path if output.path == "-" else os.path.abspath(output.path)
        if place in seen:
            raise OptionsError(f"--out: {output.path!r} is given twice; accepted: each file once")
        seen.add(place)
        _check(output)
    return found


def wants_texts(outputs: Sequence[Output], columns: Columns) -> bool:
    """Whether an output has a place for the texts of links."""
    places = {Format.HTML, *_TABLES.values(), *(_TABLES if columns is Columns.ADVERTOOLS else ())}
    return any(each.format in places for each in outputs)


def check_columns(outputs: Sequence[Output], columns: Columns) -> None:
    """OptionsError when names of columns are asked for and no output has columns."""
    if columns is not Columns.NATIVE and not any(each.format in _WITH_COLUMNS for each in outputs):
        raise OptionsError(f"--columns: {columns} is for tables; accepted with --out FILE.csv, .jsonl or .parquet")


def _read(format: str) -> Format:  # noqa: A002
    try:
        return Format(format)
    except ValueError:
        raise OptionsError(f"--format: {format!r} is not accepted; accepted: {', '.join(Format)}") from None


def _format_of(path: str) -> Format:
    name = os.path.basename(path).lower()
    if "." not in name.lstrip("."):  # "-", /dev/stdout, a name without an ending
        return Format.JSON
    parts = _NAME.fullmatch(name)
    format_ = _ENDINGS.get(parts["ending"]) if parts else None
    if parts is None or format_ is None:
        raise OptionsError(
            f"--out: {path!r} has an ending that names no format; accepted: {', '.join(f'.{e}' for e in _ENDINGS)}"
            " (edges.csv: links), with .gz compressed, or --format"
        )
    return _TABLES.get(format_, format_) if _EDGES.fullmatch(parts["stem"]) else format_


def _check(output: Output) -> None:
    if output.format not in _UNPACKED:
        return
    if output.path.lower().endswith(".gz"):
        raise OptionsError(
            f"--out: {output.path!r} is not accepted (parquet is compressed in itself); accepted: .parquet"
        )
    from importlib.util import find_spec

    if find_spec("pyarrow") is None:
        raise OptionsError(f"--out: {output.path!r} needs a package that is missing: pip install 'crawlr[parquet]'")
