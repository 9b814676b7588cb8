"""The tags that matter in a document, by a tokenizer of our own that keeps no tree: linear, whatever the markup.

From: document (text), and the other engines where they cannot go on. To: document, as Elements. Runs in parse
processes. Pure.

It runs over everything without interest in one regular expression (`tokens`) and stops at comments, at raw text and
at the tags asked for. Of the standard's tree construction (§13.2.6) it keeps what decides whether a tag becomes an
element, and of which kind: template, framesets, forms in forms, and foreign content (`foreign`). It takes no
longer than lxml does.
"""

from __future__ import annotations

import re
from functools import cache

from crawlr.parse import foreign, references, tokens
from crawlr.parse.elements import RAW_TEXT, Element, Elements

__all__ = ["find_title", "scan"]

_HALTS = frozenset({"frameset", "math", "plaintext", "svg", "template"}) | RAW_TEXT
"""Tags that change how the tokens after them are read, so the scanner stops there whatever is asked for."""
_ENDS = frozenset({"template"})


def scan(text: str, wanted: frozenset[str]) -> Elements:
    """The elements of the wanted names, in document order, and the title. Never fails; linear in the text."""
    return _scan(text, wanted, is_for_title=False)


def find_title(text: str) -> str | None:
    """Text of the first title element, as in Elements, without a look at what follows it."""
    return _scan(text, frozenset(), is_for_title=True).title


def _scan(text: str, wanted: frozenset[str], *, is_for_title: bool) -> Elements:
    step = _stops(wanted).match
    found: list[Element] = []
    title: str | None = None
    inert = 0  # how many template elements are open
    has_body = False  # one that no frameset can replace, known where it was tried
    has_form = False  # the standard's form element pointer: a form in a form is none
    around: foreign.Around | None = None
    position = 0
    while position >= 0 and (token := step(text, position)):
        position = token.end()
        if token[tokens.COMMENT]:
            position = tokens.end_of_comment(text, position)
            continue
        name = token[tokens.NAME].lower()
        if token[tokens.CLOSING]:
            if name == "template":
                inert = max(0, inert - 1)
            elif not inert:
                has_form = False
            continue
        if name == "image":
            name = "img"  # "Don't ask." (§13.2.6.4.7)
        if name in wanted and not inert:
            if name != "form":
                found.append((name, tokens.attributes(token[tokens.SOURCE])))
            elif not has_form:
                has_form = True
                found.append((name, tokens.attributes(token[tokens.SOURCE])))
        if name not in _HALTS:
            continue
        if name in RAW_TEXT:
            begin, position = position, tokens.end_of_raw_text(name, text, position)
            if name == "title" and title is None and not inert:
                source = text[begin : position if position >= 0 else None]
                title = references.in_text(source.replace("\0", "\ufffd"))
                if is_for_title:
                    break
        elif name == "template":
            inert += 1
        elif name == "plaintext":
            break
        elif name == "frameset":
            if not inert and not has_body:
                end_of_head = _end_of_head(text[: token.start(tokens.NAME) - 1])
                if end_of_head is not None:
                    head = _scan(text[:end_of_head], wanted, is_for_title=is_for_title)
                    return Elements(head.found + _scan_frames(text, position, wanted), head.title)
                has_body = True
        elif not token[tokens.SLASHES].endswith("/"):
            around = around or foreign.Around(text)
            inside = frozenset() if inert else wanted
            position = foreign.scan(text, position, root=name, wanted=inside, found=found, around=around)
    return Elements(found, title)


@cache
def _stops(wanted: frozenset[str]) -> re.Pattern[str]:
    names = _HALTS | wanted | ({"image"} if "img" in wanted else frozenset())
    return tokens.stops(names, _ENDS | (wanted & {"form"}))


# ---- framesets

_IN_HEAD = frozenset({
    "base", "basefont", "bgsound", "head", "html", "link", "meta", "noframes", "noscript", "script", "style",
    "template", "title",
})  # fmt: skip
_NO_FRAMESET = frozenset({
    "applet", "area", "body", "br", "button", "dd", "dt", "embed", "frameset", "hr", "iframe", "image", "img",
    "keygen", "li", "listing", "marquee", "object", "pre", "select", "table", "textarea", "wbr", "xmp",
})  # fmt: skip
"""Elements that set the frameset-ok flag to "not ok" (§13.2.6.4.7), and `input` unless it is hidden."""


def _end_of_head(before: str) -> int | None:
    """Where the head ends in the text before a frameset tag; None: the tag means nothing, the document has a body.

    A body that holds no text, and no element that shows anything, is thrown away for the frameset (§13.2.6.4.7). What
    stands in templates and in SVG is looked at as if it stood in the body itself.
    """
    position = 0
    end: int | None = None
    while position >= 0 and (token := tokens.ANY.match(before, position)):
        begin = max(token.start(tokens.COMMENT), token.start(tokens.CLOSING)) - 1
        if not tokens.is_blank(before[position:begin]):
            return None
        position = token.end()
        if token[tokens.COMMENT]:
            position = tokens.end_of_markup(token[tokens.COMMENT], before, position)
            continue
        name = token[tokens.NAME].lower()
        if token[tokens.CLOSING]:
            if name == "br":
                return None
            if name in {"body", "html"} and end is None:
                end = begin
            continue
        is_hidden = (tokens.attributes(token[tokens.SOURCE]).get("type") or "").lower() == "hidden"
        if name in _NO_FRAMESET or (name == "input" and not is_hidden):
            return None
        if name not in _IN_HEAD and end is None:
            end = begin
        if name in RAW_TEXT:
            position = tokens.end_of_raw_text(name, before, position)
    if position < 0 or not tokens.is_blank(before[position:]):
        return None
    return len(before) if end is None else end


def _scan_frames(text: str, position: int, wanted: frozenset[str]) -> list[Element]:
    """The frames of a frameset whose first tag ends at `position`: nothing else in it or behind it is an element."""
    found: list[Element] = []
    depth = 1
    while depth and position >= 0 and (token := tokens.ANY.match(text, position)):
        position = token.end()
        if token[tokens.COMMENT]:
            position = tokens.end_of_markup(token[tokens.COMMENT], text, position)
            continue
        name = token[tokens.NAME].lower()
        if name == "frameset":
            depth += -1 if token[tokens.CLOSING] else 1
        elif token[tokens.CLOSING]:
            continue
        elif name == "frame" and name in wanted:
            found.append((name, tokens.attributes(token[tokens.SOURCE])))
        elif name == "noframes":
            position = tokens.end_of_raw_text(name, text, position)
    return found
