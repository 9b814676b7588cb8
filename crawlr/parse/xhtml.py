"""The tags that matter in XHTML that is called so (application/xhtml+xml, or XML whose root is html).

From: document (text). To: document, as Elements. Runs in parse processes. Pure.

Read as XML where that differs from HTML - `<script/>` is closed, CDATA sections are text, a name may have a prefix -
and leniently everywhere else: what a browser would refuse as not well-formed gives its links all the same. DTDs are
run over: nothing in them is loaded, and no entity that they declare is known or expanded.
"""

from __future__ import annotations

import re
from functools import cache

from crawlr.parse import foreign, references, tokens
from crawlr.parse.elements import Element, Elements
from crawlr.parse.patterns import compiled

__all__ = ["scan"]

_RAW_TEXT = frozenset({"script", "style", "textarea", "title"})
"""Elements in which nothing counts as markup but CDATA sections: in good XHTML they hold text."""
_SECTION = re.compile(r"<!\[CDATA\[(.*?)(?:\]\]>|\Z)", re.DOTALL)
_NAMESPACE = re.compile(
    r"""xmlns:([^\s=/>"']++)\s*+=\s*+["'](?:http://www\.w3\.org/1999/xhtml|http://www\.w3\.org/2000/svg)["']"""
)
_ENDS = {"!--": "-->", "![CDATA[": "]]>", "?": "?>"}
_WORLDS = frozenset({"foreignobject", "math", "svg"})


def scan(text: str, wanted: frozenset[str]) -> Elements:
    """The elements of the wanted names, in document order, and the title. Fails on no text; linear in it."""
    found: list[Element] = []
    title: str | None = None
    prefixes: frozenset[str] | None = None
    inert = 0  # open templates
    has_doctype = False
    worlds: list[str] = []  # open svg, math and foreignObject elements: in which of them names mean what
    position = 0
    while position >= 0 and (token := tokens.ANY_XML.match(text, position)):
        position = token.end()
        opening = token[tokens.COMMENT]
        if opening:
            doctype = None if has_doctype else tokens.DOCTYPE.match(text, position - 2)
            has_doctype = has_doctype or opening == "!"
            position = doctype.end() if doctype else _end_of(opening, text, position)
            continue
        name = token[tokens.NAME].lower()
        prefix, colon, local = name.partition(":")
        if colon:
            if prefixes is None:
                prefixes = frozenset(each.lower() for each in _NAMESPACE.findall(text))
            if prefix not in prefixes:
                continue
            name = local
        if token[tokens.CLOSING]:
            if name == "template":
                inert = max(0, inert - 1)
            elif worlds and worlds[-1] == name:
                worlds.pop()
            continue
        is_foreign = bool(worlds) and worlds[-1] != "foreignobject"
        if name in wanted and not inert and (not is_foreign or name in foreign.MEANINGFUL):
            found.append((name, tokens.attributes(token[tokens.SOURCE])))
        if token[tokens.SLASHES].endswith("/"):
            continue
        if name == "template":
            inert += 1
        elif name in _WORLDS:
            worlds.append(name)
        elif name in _RAW_TEXT:
            begin, position = position, _end_of_raw_text(name, text, position)
            if name == "title" and title is None and not inert and not worlds:
                title = _text(text[begin : position if position >= 0 else None])
    return Elements(found, title)


def _end_of(opening: str, text: str, position: int) -> int:
    """Where a comment, a CDATA section or a processing instruction ends; -1: it does not."""
    end = _ENDS.get(opening, ">")
    at = text.find(end, position)
    return at + len(end) if at >= 0 else -1


def _end_of_raw_text(name: str, text: str, position: int) -> int:
    while match := _section_or_end_tag(name).search(text, position):
        if match[0] != "<![CDATA[":
            return match.start()
        position = text.find("]]>", match.end())
        if position < 0:
            break
    return -1


@cache
def _section_or_end_tag(name: str) -> re.Pattern[str]:
    return compiled(rf"<(?:!\[CDATA\[|/(?:[^\s:/><]++:)?+{name}(?=[\s/>]))", re.IGNORECASE)


def _text(source: str) -> str:
    """The text of an element without child elements: sections as they are, references replaced elsewhere."""
    parts = _SECTION.split(source)
    parts[::2] = map(references.in_text, parts[::2])
    return "".join(parts)
