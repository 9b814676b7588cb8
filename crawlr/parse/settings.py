"""What a parse process is told of the options, and the shape of what it gets to do.

From: engines (settings), pool (rows). To: job and worker. Values alone, so that the main process can make them without
loading a parser.
"""

from __future__ import annotations

from msgspec import Struct

from crawlr.extract_rules import ExtractRules
from crawlr.parse.results import PAGE

__all__ = ["SAMPLE", "Row", "WorkerSettings"]

Row = tuple[int, str, str, bytes, str | None, str | None]
"""id, url, kind, body as received, content type, content coding"""
SAMPLE = (0, "http://crawlr.invalid/", PAGE, b"<!doctype html><title>crawlr</title><p>", "text/html", None)
"""A page without links, which every process can parse or is of no use."""


class WorkerSettings(Struct, frozen=True, kw_only=True):
    """What parse processes must know of the options. Made by engines, read by worker and pool; picklable."""

    parser: str
    """lxml or lexbor"""
    follow: tuple[str, ...]
    """Kinds of links that count, as in --follow; "all" is every kind."""
    keep_params: bool
    ignore_param: tuple[str, ...]
    agent: str
    """Product token, for robots meta elements."""
    max_body: int
    """Decoded bytes."""
    parse_timeout: float
    """Seconds a page."""
    parse_memory: int
    """Bytes a process."""
    link_table_limit: int = 200_000
    texts: bool = False
    """Whether an output wants the texts of links."""
    extract: ExtractRules | None = None
    content: bool = False
    """Whether a consumer wants the text and the document of each page."""
