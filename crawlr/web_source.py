"""A site as a source of pages for another program: a search index, a data set, a check of one's own.

From: users. To: api.crawl, in the same thread, and from it each page with its content to the consumer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from crawlr.api import crawl
from crawlr.result import CrawlResult
from crawlr.web_page import WebPage

__all__ = ["WebSource"]


class WebSource:
    """The pages of a site. `options` are those of `crawlr.crawl`, on_page and stop included; files are written only
    when `out` is given."""

    def __init__(self, seeds: str | Iterable[str] = (), **options: object) -> None:
        self._seeds = seeds if isinstance(seeds, str) else tuple(seeds)
        self._options = {"out": None} | options

    def read_into(self, consumer: Callable[[WebPage], object]) -> CrawlResult:
        """Crawl, and call `consumer` in this thread with each page whose document was read: status 200-299, HTML,
        whole or cut (outcome ok, truncated, too_large, parse_truncated, or a fault of the transfer). Redirects, errors,
        other types and pages that could not be parsed are in the result alone.

        A page is given before its record is stored, and while the consumer works the crawl waits, so that no more than
        a few pages are ahead of it. What it raises ends the crawl and is raised here when all has ended. With `resume`
        no page is left out then, nor after a kill; up to 64 that it got last are given again.

        Everything else is as by `crawlr.crawl`, and so is the result.
        """
        if not callable(consumer):
            raise TypeError(f"read_into() takes a function that takes a WebPage, not {consumer!r}")
        return crawl(self._seeds, on_content=consumer, **self._options)  # type: ignore[arg-type]  # crawl checks
