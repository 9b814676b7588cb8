"""SVG and MathML in an HTML document: which tags in them are elements, and where they end (HTML §13.2.6.5).

From: scanner, at an svg or math tag. To: scanner, at the place where HTML goes on. Runs in parse processes. Pure.

It matters because names mean other things there: `<title/>`, `<style/>` and `<script/>` close themselves and their
content is no raw text, `<base>` is no base, `<image>` is no img, CDATA sections are text. Links in SVG's own script
and style elements, which the standard would read as elements, are none here either.

Open elements are kept while foreign content lasts, and then forgotten. So two things are not told: what a stray end tag
closes in the HTML around (guessed, see Around), and a frameset in HTML in SVG, which would replace the whole body.
"""

from __future__ import annotations

import re
from collections import Counter

from crawlr.parse import tokens
from crawlr.parse.elements import RAW_TEXT, Element

__all__ = ["MEANINGFUL", "Around", "scan"]

# "A start tag whose tag name is one of": these end foreign content wherever they stand.
_BREAKOUT = frozenset({
    "b", "big", "blockquote", "body", "br", "center", "code", "dd", "div", "dl", "dt", "em", "embed", "h1",
    "h2", "h3", "h4", "h5", "h6", "head", "hr", "i", "img", "li", "listing", "menu", "meta", "nobr", "ol", "p",
    "pre", "ruby", "s", "small", "span", "strong", "strike", "sub", "sup", "table", "tt", "u", "ul", "var",
})  # fmt: skip
_FONT = frozenset({"color", "face", "size"})
# HTML stands in these (§13.2.6.1: HTML integration points, MathML text integration points).
_SVG_POINTS = frozenset({"desc", "foreignobject", "title"})
_MATH_POINTS = frozenset({"mi", "mn", "mo", "ms", "mtext"})
_ALWAYS_MATH = frozenset({"malignmark", "mglyph"})
_HTML_ENCODINGS = frozenset({"application/xhtml+xml", "text/html"})
_VOID = frozenset({
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "keygen",
    "link", "meta", "param", "source", "track", "wbr",
})  # fmt: skip
# Open elements that an end tag of another name does not cross, unless it has a scope rule of its own (§13.2.4.2
# "special").
_SPECIAL = frozenset({
    "address", "applet", "area", "article", "aside", "base", "basefont", "bgsound", "blockquote", "body", "br",
    "button", "caption", "center", "col", "colgroup", "dd", "details", "dir", "div", "dl", "dt", "embed",
    "fieldset", "figcaption", "figure", "footer", "form", "frame", "frameset", "h1", "h2", "h3", "h4", "h5",
    "h6", "head", "header", "hgroup", "hr", "html", "iframe", "img", "input", "keygen", "li", "link", "listing",
    "main", "marquee", "menu", "meta", "nav", "noembed", "noframes", "noscript", "object", "ol", "p", "param",
    "plaintext", "pre", "script", "search", "section", "select", "source", "style", "summary", "table", "tbody",
    "td", "template", "textarea", "tfoot", "th", "thead", "title", "tr", "track", "ul", "wbr", "xmp",
})  # fmt: skip
_SCOPES = frozenset({
    "applet", "caption", "html", "marquee", "object", "table", "td", "template", "th",
})  # fmt: skip
_CLOSES_P = frozenset({
    "address", "article", "aside", "blockquote", "center", "details", "dialog", "dir", "div", "dl", "fieldset",
    "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "hr",
    "li", "listing", "main", "menu", "nav", "ol", "p", "plaintext", "pre", "search", "section", "summary",
    "table", "ul", "xmp", "dd", "dt",
})  # fmt: skip
_NEVER_NESTED = frozenset({"a", "button", "nobr", "option", "p"})  # a start tag closes the open one
MEANINGFUL = frozenset({"a", "feimage", "image", "script", "use"})
"""Names that mean in SVG what links.py takes them for; a `base` or a `form` in there is none. (MathML has `a`.)"""
_FARTHEST = 512
"""How many open elements an end tag looks at: browsers nest no deeper, and the time stays linear."""


class _Open:
    """An open element: its name, its namespace, and whether HTML stands in it."""

    __slots__ = ("holds_html", "name", "space")

    def __init__(self, name: str, space: str, *, holds_html: bool) -> None:
        self.name = name
        self.space = space
        self.holds_html = holds_html


def scan(text: str, position: int, *, root: str, wanted: frozenset[str], found: list[Element], around: Around) -> int:
    """Where HTML goes on after the svg or math element `root`, whose tag ends at `position`; -1: the text ends in it.

    Elements of the wanted names are added to `found`. `around` is one for all calls of a document.
    """
    return _Foreign(text, position, root, wanted, found, around).run()


class Around:
    """Which elements seem to be open in the HTML around: those with more start tags than end tags before.

    The scanner keeps no stack. What this takes for open by mistake (an element that another one's end has closed)
    matters to a stray end tag in foreign content alone.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._open: Counter[str] = Counter()
        """Counted up to `_position`: so all calls together cost one pass over the text."""

    def has(self, name: str, *, before: int) -> bool:
        while self._position >= 0 and (token := tokens.ANY.match(self._text, self._position, before)):
            self._position = token.end()
            opening = token[tokens.COMMENT]
            if opening:
                self._position = tokens.end_of_markup(opening, self._text, self._position)
                continue
            found = token[tokens.NAME].lower()
            if token[tokens.CLOSING]:
                self._open[found] = max(0, self._open[found] - 1)
            elif found in RAW_TEXT:
                self._position = tokens.end_of_raw_text(found, self._text, self._position)
            elif not token[tokens.SLASHES].endswith("/"):
                self._open[found] = 1 if found in _NEVER_NESTED else self._open[found] + 1
        return self._open[name] > 0


class _Foreign:
    """One svg or math element and all that is open in it."""

    def __init__(
        self, text: str, begin: int, root: str, wanted: frozenset[str], found: list[Element], around: Around
    ) -> None:
        self._text = text
        self._begin = begin
        self._wanted = wanted
        self._found = found
        self._around = around
        self._open = [_Open(root, root, holds_html=False)]
        self._mute = 0
        """How many templates, and SVG scripts and styles, are open: what stands in them does not count."""

    def run(self) -> int:
        position = self._begin
        while position >= 0 and self._open and (token := tokens.ANY.match(self._text, position)):
            position = token.end()
            opening = token[tokens.COMMENT]
            if opening and opening != "!--" and self._open[-1].space != "html":
                position = self._text.find("]]>", position) + 3  # a CDATA section (§13.2.5.42)
                if position < 3:
                    break
            elif opening:
                position = tokens.end_of_markup(opening, self._text, position)
            elif token[tokens.CLOSING]:
                if not self._close(token[tokens.NAME].lower()):
                    return token.start(tokens.CLOSING) - 1
            elif (after := self._start(token, position)) is None:
                return token.start(tokens.CLOSING) - 1
            else:
                position = after
        return position if not self._open else -1

    # ---- start tags

    def _start(self, token: re.Match[str], position: int) -> int | None:
        """Where to go on after a start tag; None: it belongs to the HTML around."""
        name = token[tokens.NAME].lower()
        attributes = tokens.attributes(token[tokens.SOURCE])
        is_closed = token[tokens.SLASHES].endswith("/")
        top = self._open[-1]
        if not self._reads_html(top, name):
            if name not in _BREAKOUT and not (name == "font" and _FONT & attributes.keys()):
                if name in MEANINGFUL:
                    self._add(name, attributes)
                if not is_closed:
                    self._push(name, top.space, attributes)
                return position
            if not self._leave_foreign():
                return None
        return self._start_html(name, attributes, position, is_closed=is_closed)

    def _reads_html(self, top: _Open, name: str) -> bool:
        """Whether a start tag goes by the rules of HTML (§13.2.6, tree construction dispatcher)."""
        if top.space == "html":
            return True
        if top.space == "math" and top.name in _MATH_POINTS:
            return name not in _ALWAYS_MATH
        return top.holds_html or (top.name == "annotation-xml" and top.space == "math" and name == "svg")

    def _start_html(self, name: str, attributes: dict[str, str | None], position: int, *, is_closed: bool) -> int:
        if name == "image":
            name = "img"
        self._add(name, attributes)
        if name in {"svg", "math"}:
            if not is_closed:
                self._push(name, name, attributes)
        elif name in RAW_TEXT:
            return tokens.end_of_raw_text(name, self._text, position)
        elif name == "plaintext":
            return -1
        elif name not in _VOID:
            if name in _CLOSES_P:
                self._close_p()
            self._push(name, "html", attributes)
        return position

    def _add(self, name: str, attributes: dict[str, str | None]) -> None:
        if name in self._wanted and not self._mute:
            self._found.append((name, attributes))

    # ---- the open elements

    def _push(self, name: str, space: str, attributes: dict[str, str | None]) -> None:
        holds_html = False
        if space == "svg":
            holds_html = name in _SVG_POINTS
        elif space == "math":
            encoding = attributes.get("encoding") or ""
            holds_html = name in _MATH_POINTS or (name == "annotation-xml" and encoding.lower() in _HTML_ENCODINGS)
        self._open.append(_Open(name, space, holds_html=holds_html))
        self._mute += _is_mute(self._open[-1])

    def _close(self, name: str) -> bool:
        """Close what an end tag closes, if anything; False: it belongs to the HTML around."""
        at = len(self._open) - 1
        last = max(0, at - _FARTHEST)
        if self._open[at].space != "html":
            if name in {"br", "p"}:
                return self._leave_foreign()
            is_bounded = False
            while at >= last and self._open[at].space != "html":
                if self._open[at].name == name:
                    self._pop_to(at)
                    return True
                is_bounded = is_bounded or self._open[at].holds_html
                at -= 1
            if is_bounded:
                return True  # no end tag of HTML reaches out of where HTML may stand
            if at < 0:
                return name in {"body", "html"} or not self._around.has(name, before=self._begin)
        while at >= last and not self._open[at].holds_html:
            element = self._open[at]
            if element.name == name and element.space == "html":
                self._pop_to(at)
                break
            if element.name in (_SCOPES if name in _SPECIAL else _SPECIAL):
                break
            at -= 1
        return True

    def _close_p(self) -> None:
        """Close the open p that a block begins in (§13.2.6.4.7: "has a p element in button scope")."""
        for at in range(len(self._open) - 1, max(-1, len(self._open) - 1 - _FARTHEST), -1):
            element = self._open[at]
            if element.holds_html or element.space != "html" or element.name in _SCOPES or element.name == "button":
                return
            if element.name == "p":
                self._pop_to(at)
                return

    def _leave_foreign(self) -> bool:
        """Close elements up to one in which HTML stands; False: there is none, HTML goes on around."""
        while self._open and not self._open[-1].holds_html and self._open[-1].space != "html":
            self._pop_to(len(self._open) - 1)
        return bool(self._open)

    def _pop_to(self, at: int) -> None:
        while len(self._open) > at:
            self._mute -= _is_mute(self._open.pop())


def _is_mute(element: _Open) -> bool:
    if element.space == "html":
        return element.name == "template"
    return element.name in {"script", "style"}
