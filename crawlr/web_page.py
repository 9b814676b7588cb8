"""A page with its content, as a program that makes something of pages wants it.

From: parsed (Content) and the coordinator (WebPage). To: the consumer of a WebSource, in the crawl's main thread.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from crawlr.records import PageRecord, repr_without

__all__ = ["Content", "WebPage"]


class Content(Struct, frozen=True, kw_only=True):
    """What a page held, on its way to the consumer: it is never stored. Made by parsed, read by the coordinator."""

    headers: Mapping[str, str]
    text: str
    html: str

    @property
    def size(self) -> int:
        """Characters."""
        return len(self.text) + len(self.html)


class WebPage(Struct, frozen=True, kw_only=True):
    """One page whose document was read. Made by the coordinator, given to the consumer of a WebSource.

    crawlr keeps none of it but the record: what the consumer does not keep is gone when it returns.
    """

    record: PageRecord
    """What is known of the page, as sitemap.json will list it (depth and parent may still change)."""
    headers: Mapping[str, str]
    """The header fields of the answer by their names in lower case; several of one name are joined by ", "."""
    text: str
    """What a person reads: a line for each block, white space collapsed; without scripts, styles, templates and the
    title."""
    html: str
    """The document, decoded; cut where the body was cut."""

    def __repr__(self) -> str:
        return repr_without(self, {"headers", "text", "html"})

    @property
    def url(self) -> str:
        return self.record.url

    @property
    def status(self) -> int:
        """200 to 299."""
        assert self.record.status is not None
        return self.record.status

    @property
    def encoding(self) -> str:
        """WHATWG name of the encoding, in lower case."""
        return self.record.encoding or "utf-8"

    @property
    def title(self) -> str | None:
        """White space collapsed, cut to 1,000 characters; None: it has none."""
        return self.record.title
