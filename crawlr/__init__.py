"""crawlr maps web sites: fetcher threads, parser processes, one coordinator, nothing lost.

`crawlr.crawl(seeds, **options)` runs a crawl. Everything is imported on first use, so that parser processes start fast.
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = (
    False  # as typing's; to import that takes 8 ms in which a Ctrl-C ends in a traceback: __main__ comes later
)
if TYPE_CHECKING:
    from typing import Any

    from crawlr.api import Crawl as Crawl
    from crawlr.api import crawl as crawl
    from crawlr.errors import CrawlrError as CrawlrError
    from crawlr.errors import MachineError as MachineError
    from crawlr.errors import OptionsError as OptionsError
    from crawlr.errors import StateError as StateError
    from crawlr.parse.parsed_document import ParsedDocument as ParsedDocument
    from crawlr.records import KnownUrl as KnownUrl
    from crawlr.records import PageRecord as PageRecord
    from crawlr.result import CrawlResult as CrawlResult
    from crawlr.status import CrawlStatus as CrawlStatus
    from crawlr.status import HostStatus as HostStatus
    from crawlr.streaming import stream as stream
    from crawlr.web_page import WebPage as WebPage
    from crawlr.web_source import WebSource as WebSource

_HOMES = {
    "crawl": "crawlr.api",
    "Crawl": "crawlr.api",
    "CrawlResult": "crawlr.result",
    "CrawlrError": "crawlr.errors",
    "MachineError": "crawlr.errors",
    "OptionsError": "crawlr.errors",
    "StateError": "crawlr.errors",
    "KnownUrl": "crawlr.records",
    "PageRecord": "crawlr.records",
    "ParsedDocument": "crawlr.parse.parsed_document",
    "CrawlStatus": "crawlr.status",
    "HostStatus": "crawlr.status",
    "WebPage": "crawlr.web_page",
    "WebSource": "crawlr.web_source",
    "stream": "crawlr.streaming",
}
__all__ = [*_HOMES, "__version__"]  # noqa: PLE0604  # names are strings


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'crawlr' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(home), name)
