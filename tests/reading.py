"""Reading one page by one engine, for the tests that hold engines against one another."""

from __future__ import annotations

from importlib.util import find_spec

from crawlr.parse.document import PARSERS, Document, read

__all__ = ["INSTALLED", "URL", "XHTML", "read_page"]

URL = "http://h.test/d/p"
XHTML = "application/xhtml+xml"
INSTALLED = [name for name in PARSERS if name != "lexbor" or find_spec("selectolax")]
"""The engines that can run here; selectolax is an extra."""


def read_page(
    body: bytes, *, content_type: str | None = "text/html", parser: str = "lxml", follow: frozenset[str] | None = None
) -> Document:
    return read(body, url=URL, content_type=content_type, agent="crawlr", parser=parser, follow=follow)
