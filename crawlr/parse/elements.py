"""What an engine finds in a document: the start tags that matter, in document order, and the title.

From: the engines (engine_lxml, engine_lexbor, scanner). To: document, links, facts. Runs in parse processes. Pure.

Every engine answers the same question: which elements of the wanted names would stand in the tree that the HTML
standard builds, outside of `template`? `tests/test_engines.py` holds them against one another over any markup.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

__all__ = ["RAW_TEXT", "Element", "Elements", "href_of"]

Element: TypeAlias = tuple[str, Mapping[str, str | None]]
"""Name in lower case and attributes by lower-case name, references replaced; an empty value may be None (lexbor)."""

RAW_TEXT = frozenset({"iframe", "noembed", "noframes", "script", "style", "textarea", "title", "xmp"})
"""Elements whose content is text up to their own end tag (HTML §13.2.6: RCDATA, RAWTEXT, script data). `noscript` is
none of them here: nothing in crawlr runs scripts."""


def href_of(attributes: Mapping[str, str | None]) -> str | None:
    """The address on an `a`, "" when it has no value; None: there is none. As in SVG 2 `href` goes before
    `xlink:href`."""
    key = "href" if "href" in attributes else "xlink:href"
    return attributes[key] or "" if key in attributes else None


class Elements(NamedTuple):
    """One document as an engine saw it. Made by an engine, read by document."""

    found: list[Element]
    title: str | None
    """Text of the first title element outside of SVG, as written; None: there is none."""
    is_truncated: bool = False
    """The engine gave up before the end of the document, and the scanner found the rest."""
