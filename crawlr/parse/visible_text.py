"""What a person reads on a page: its text, a line for each block.

From: worker (the decoded document), when a consumer wants it. To: the consumer, as WebPage.text. Runs in parse
processes. Pure.

Which elements are blocks, and which show nothing, is as browsers have it by default (HTML standard §15.3). Styles,
scripts and hidden attributes are not looked at: a crawler that runs no scripts can't know what they do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from crawlr.parse.parsed_document import tree_of

__all__ = ["visible_text"]

_SHOW_NOTHING = ("head", "iframe", "noembed", "noframes", "script", "style", "template")
_BLOCKS = (  # noqa: SIM905  # names in a row can be read
    "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure"
    " footer form h1 h2 h3 h4 h5 h6 header hgroup hr legend li listing main menu nav ol optgroup option p plaintext pre"
    " search section summary table tbody tfoot thead tr ul xmp"
).split()
_END = "\ufdd0"
"""Stands between blocks while white space is collapsed: a character that no text has (Unicode §23.7)."""
_STYLE = f"""\
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="text"/>
  <xsl:template match="{"|".join(_SHOW_NOTHING)}"/>
  <xsl:template match="{"|".join(_BLOCKS)}">{_END}<xsl:apply-templates/>{_END}</xsl:template>
  <xsl:template match="br">{_END}</xsl:template>
  <xsl:template match="td|th"><xsl:apply-templates/><xsl:text> </xsl:text></xsl:template>
</xsl:stylesheet>"""
"""All other elements are their content, comments are nothing. A page of 229 kB takes 2.6 ms by this, 4.6 by Python code
that walks through the blocks, beside 4.0 for the tree (2 busy cores, CPython 3.11)."""


def visible_text(html: str, *, url: str) -> str:
    """The text of a document: a line for each block, white space collapsed, no empty lines. Never fails, but for
    MemoryError.

    The title is none of it; cells of a row stand in one line. What is nested deeper than 2,048 elements is missing:
    libxml2 leaves it out of a tree.
    """
    text = str(_transform()(tree_of(html, url=url)))
    return "\n".join([line for line in (" ".join(part.split()) for part in text.split(_END)) if line])


@cache
def _transform() -> Callable[[Any], Any]:
    from lxml import etree

    run: Callable[[Any], Any] = etree.XSLT(etree.XML(_STYLE))
    return run
