"""Bytes of a page to links and facts: pure functions, and the processes that run them.

`parse_html` reads one document for anybody who has its bytes; nothing here fetches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crawlr.records import Link as Link
from crawlr.records import ParsedPage as ParsedPage

if TYPE_CHECKING:
    from crawlr.parse.document import parse_html as parse_html

__all__ = ["Link", "ParsedPage", "parse_html"]


def __getattr__(name: str) -> Any:
    if name == "parse_html":  # late, so that the main process can import parse.pool without a parser
        from crawlr.parse.document import parse_html

        return parse_html
    raise AttributeError(f"module 'crawlr.parse' has no attribute {name!r}")
