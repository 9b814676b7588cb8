"""The tags that matter in a document, by lexbor (package selectolax, an extra): a whole tree by the HTML standard.

From: document (text). To: document, as Elements. Runs in parse processes. Half the time of lxml.

Building that tree is quadratic in places, by the standard's own rules: each block asks all open elements for a `p`,
each paragraph opens again the `font` elements that were never closed. Pages of very many tags, or that leave many
open, go to the scanner, which keeps no tree. (A page can be written to pass these limits and still take long: the
limits of time and memory of the parse process are for that.)
"""

from __future__ import annotations

import re
from functools import cache

from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawlr.parse import foreign, scanner, tokens
from crawlr.parse.elements import Element, Elements

__all__ = ["scan"]

_MANY_TAGS = 20_000
_OPEN_LIMIT = 1_000
"""Start tags more than end tags; void elements count. With 1,000 open font elements a page of 15 kB takes 0.4 s and
200 MB, with 2,000 it takes 1.9 s and 740 MB."""
_ROOTS = ("math", "svg")
_MANY_ROOTS = 100


def scan(text: str, wanted: frozenset[str]) -> Elements:
    """The elements of the wanted names, in document order, and the title. Fails on no text, but for MemoryError.

    An element that the standard's tree holds twice (adoption agency) is found twice.
    """
    if _is_too_much(text) or _lost_tag(wanted).search(text):
        return scanner.scan(text, wanted)
    tree = LexborHTMLParser(text)
    found: list[Element] = []
    nodes: list[LexborNode] = []
    titles: list[LexborNode] = []
    roots: list[LexborNode] = []
    for node in tree.css(_selector(wanted)):  # templates' content is not in the tree
        name = (node.tag or "").lower()
        if name in wanted:
            found.append((name, node.attributes))
            nodes.append(node)
        else:
            (titles if name == "title" else roots).append(node)
    if roots:
        if len(roots) > _MANY_ROOTS or any(map(_has_silent, roots)) or any(map(_is_misnamed, nodes)):
            return scanner.scan(text, wanted)
        titles = [node for node in titles if not _is_foreign(node)]
    return Elements(found, titles[0].text() if titles else None)


def _is_too_much(text: str) -> bool:
    tags = text.count("<")
    return tags > _OPEN_LIMIT and (tags > _MANY_TAGS or tags - 2 * text.count("</") > _OPEN_LIMIT)


@cache
def _selector(wanted: frozenset[str]) -> str:
    return ",".join(sorted(wanted | {"title", *_ROOTS}))


@cache
def _lost_tag(wanted: frozenset[str]) -> re.Pattern[str]:
    """Tags that are not in the tree, or may not be.

    Outside of a frameset a frame is dropped, but is a link here all the same; lexbor 2 drops an `image` in a table,
    too.
    """
    lost = ({"frame"} & wanted) | ({"image"} if "img" in wanted else set())
    return tokens.tag_like(lost) if lost else re.compile(r"(?!)")


def _has_silent(root: LexborNode) -> bool:
    """Whether elements stand in a script or style of SVG, where links are none."""
    return root.css_first("script *,style *") is not None


def _is_misnamed(node: LexborNode) -> bool:
    """Whether an element of another namespace has a name that means something in HTML alone."""
    return (node.tag or "").lower() not in foreign.MEANINGFUL and _is_foreign(node)


def _is_foreign(node: LexborNode) -> bool:
    """Whether an element stands in SVG or MathML, HTML in them included."""
    parent = node.parent
    while parent is not None:
        if parent.tag in _ROOTS:
            return True
        parent = parent.parent
    return False
