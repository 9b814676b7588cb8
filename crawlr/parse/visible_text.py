"""What a person reads on a page: its text, a line for each block.

From: worker (the decoded document), when a consumer wants it. To: the consumer, as WebPage.text. Runs in parse
processes. Pure.

Which elements are blocks, and which show nothing, is as browsers have it by default (HTML standard §15.3). Styles,
scripts and hidden attributes are not looked at: a crawler that runs no scripts can't know what they do.
"""

from __future__ import annotations

from crawlr.parse.parsed_document import tree_of

__all__ = ["visible_text"]

_SHOW_NOTHING = ("head", "iframe", "noembed", "noframes", "script", "style", "template")
_BLOCKS = (  # noqa: SIM905  # names in a row can be read
    "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure"
    " footer form h1 h2 h3 h4 h5 h6 header hgroup hr legend li listing main menu nav ol optgroup option p plaintext pre"
    " search section summary table tbody tfoot thead tr ul xmp"
).split()
_CELLS = ("td", "th")
_END = "\ufdd0"
"""Stands between blocks while white space is collapsed: a character that no text has (Unicode §23.7)."""


def visible_text(html: str, *, url: str) -> str:
    """The text of a document: a line for each block, white space collapsed, no empty lines. Never fails, but for
    MemoryError.

    The title is none of it; cells of a row stand in one line. What is nested deeper than 2,048 elements is missing:
    libxml2 leaves it out of a tree.
    """
    from lxml import etree

    root = tree_of(html, url=url)
    etree.strip_elements(root, *_SHOW_NOTHING, with_tail=False)
    for element in root.iter(*_BLOCKS):
        element.text = _END + (element.text or "")
        element.tail = _END + (element.tail or "")
    for element in root.iter("br"):
        element.tail = _END + (element.tail or "")
    for element in root.iter(*_CELLS):
        element.tail = " " + (element.tail or "")
    text: str = etree.tostring(root, method="text", encoding="unicode", with_tail=False)
    return "\n".join([line for line in (" ".join(part.split()) for part in text.split(_END)) if line])
