"""A page as a user's own function sees it: what was read of it, its text, and a tree to look things up in.

From: parse.extraction, for each page of a crawl with `extract=`; or users, to try their function. To: that function.
Runs in parse processes.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from msgspec import Struct

from crawlr.records import Link, repr_without

__all__ = ["ParsedDocument", "tree_of"]


class ParsedDocument(Struct, frozen=True, kw_only=True, dict=True, weakref=True):
    """One HTML document. Made by crawlr for each page it reads, and given to `extract=`; nobody keeps it after that.

    To try a function make one: `ParsedDocument(url="https://example.com/", html="<p>...")`.
    """

    url: str
    """Where it came from, as requested."""
    html: str
    """The whole document as text, decoded by `encoding`; cut where the body was cut (--max-body, a broken transfer)."""
    content_type: str | None = None
    """The header, as the server sent it; None when there was none."""
    encoding: str = "utf-8"
    """WHATWG name of the encoding, in lower case."""
    title: str | None = None
    """White space collapsed."""
    links: tuple[Link, ...] = ()
    """Every link of the kinds in --follow, in document order, with repetitions. Link.text is None."""
    canonical: str | None = None
    """Resolved address of `link rel=canonical`; that of a header is not known here."""
    robots: tuple[str, ...] = ()
    """Directives of robots meta elements for us: lower case, sorted. Those of headers are not known here."""

    def __repr__(self) -> str:
        return repr_without(self, {"html", "links"})

    @cached_property  # kept in the `dict` of the instance
    def tree(self) -> Any:
        """The root element (`html`) of the document as lxml.html reads it, made at the first use and then kept.

        It has `xpath()`, `cssselect()`, `text_content()`, `iter()`. Names are lower case, also in XHTML. Links are as
        the page has them; `tree.make_links_absolute()` resolves them. It is yours: changing it changes nothing else.
        What is nested deeper than 2,048 elements is not in it; `links` has what is there.
        """
        return tree_of(self.html, url=self.url)


def tree_of(html: str, *, url: str) -> Any:
    """The root element of a document by lxml.html. Never fails, but for MemoryError; an empty text gives an empty
    `html`."""
    from lxml import etree
    from lxml import html as lxml_html

    # as bytes: lxml refuses a str that begins with an XML declaration
    source = html.encode("utf-8", "replace")
    parser = lxml_html.HTMLParser(encoding="utf-8", no_network=True, huge_tree=True)
    try:
        return lxml_html.document_fromstring(source, parser=parser, base_url=url)
    except etree.LxmlError:  # nothing but comments, or nothing at all
        return lxml_html.document_fromstring("<html></html>", base_url=url)
