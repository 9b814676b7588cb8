"""The tags that matter in a document, by lxml: libxml2 reports start tags and builds no tree.

From: document (text). To: document, as Elements. Runs in parse processes.

libxml2 2.14 reads tags as the HTML standard does, but knows neither foreign content nor framesets nor what template
is, and takes `<script/>` for closed. A page with one of those goes to the scanner, which knows them and is no slower.

libxml2 alone takes 0.28 ms for a page of 27 kB when it reports to a target, 0.33 when it builds a tree that is then
walked through (bench.documents, 2 idle cores, CPython 3.11). Without a tree its limits for trees are gone too: no
nesting is too deep, no text too long. What remains is that an end tag which closes nothing makes it look through all
open elements; a page on which that takes long is left to the scanner. When libxml2 gives up it says nothing (out of
memory, it just ends): so a tag of our own is put behind the document, and when it was not seen the scanner reads the
page too.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from lxml import etree

from crawlr.parse import scanner, tokens
from crawlr.parse.elements import RAW_TEXT, Element, Elements

__all__ = ["DEPTH_LIMIT", "scan"]

DEPTH_LIMIT = 2_048
"""Elements nested in one another on a page of many tags."""
_MANY_TAGS = 20_000
"""Tags of a page below which no nesting takes long: 0.2 s at the worst. To count the depth costs 15% of a page's
time."""
_SHORTEST_TAG = 3
_PIECE = 64 * 1024
"""Bytes of a long page given to libxml2 at a time: it cannot be stopped within a piece."""
_END = "crawlr-end"
_END_TAG = f"<{_END}>".encode()

_NOT_HERE = tokens.tag_like({"frameset", "math", "svg", "template"}, closed=RAW_TEXT)


def scan(text: str, wanted: frozenset[str]) -> Elements:
    """The elements of the wanted names, in document order, and the title. Fails on no text, but for MemoryError."""
    if _NOT_HERE.search(text):
        return scanner.scan(text, wanted)
    names = _names(wanted)
    is_long = len(text) > _MANY_TAGS * _SHORTEST_TAG and text.count("<") > _MANY_TAGS
    source = text.encode("utf-8", "replace") + _END_TAG
    target = _CountingTarget(names) if is_long else _Target(names)
    parser = _parser(target)
    try:
        if is_long:
            for start in range(0, len(source), _PIECE):
                parser.feed(source[start : start + _PIECE])
            parser.close()
        else:
            etree.fromstring(source, parser)
    except _TooDeepError:
        return scanner.scan(text, wanted)._replace(is_truncated=True)
    except etree.LxmlError:
        pass  # it gave up: the end was not seen
    found = target.found
    has_title = any(each[0] == "title" for each in found)
    if "img" in wanted:
        found = [("img", each[1]) if each[0] == "image" else each for each in found]
    if found and found[-1][0] == _END:
        found.pop()
        if "form" in wanted and sum(each[0] == "form" for each in found) > 1:
            return scanner.scan(text, wanted)  # a form in a form is none; libxml2 does not say which is
        return Elements(found, scanner.find_title(text) if has_title else None)
    whole = scanner.scan(text, wanted)  # it gave up; or the document ends in a tag, a comment or raw text
    return whole._replace(is_truncated=_count(found, wanted) < _count(whole.found, wanted))


def _parser(target: Any) -> Any:  # lxml takes any object that has some of the methods; its stubs want all of them
    return etree.HTMLParser(target=target, encoding="utf-8", no_network=True, huge_tree=True)


def _count(found: list[Element], wanted: frozenset[str]) -> int:
    return sum(each[0] in wanted and each[0] != "body" for each in found)  # libxml2 reports one body


@cache
def _names(wanted: frozenset[str]) -> frozenset[str]:
    """What the target keeps; an `image` is an img (HTML §13.2.6.4.7)."""
    return wanted | {"title", _END} | ({"image"} if "img" in wanted else frozenset())


class _TooDeepError(Exception):
    """The page is nested deeper than a page of so many tags may be here."""


class _Target:
    """Gets every start tag from libxml2 and keeps those of the names asked for."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self.found: list[Element] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name in self._names:
            self.found.append((name, attributes))

    def close(self) -> None:
        """lxml wants one."""


class _CountingTarget(_Target):
    """Gets end tags too, to see how deep a page is nested."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__(names)
        self._depth = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._depth += 1
        if self._depth > DEPTH_LIMIT:
            raise _TooDeepError
        super().start(name, attributes)

    def end(self, name: str) -> None:  # noqa: ARG002  # lxml's signature
        self._depth -= 1
