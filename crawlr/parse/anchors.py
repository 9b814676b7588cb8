"""What people read on the links of a page: the text of each `a` element, found by its href.

From: document, when an output of the crawl wants it (text of a page). To: document. Runs in parse processes. Pure.

It is a pass of its own over the text, by the scanner's tokens, so that no engine is slower for the crawls that want no
texts. Of several elements with one href the first counts; which elements are links is not decided here, so a text that
belongs to none is never looked up. Of what the scanner does for the rest of the standard nothing is done here: inside
SVG and in XHTML with prefixes a text may be missing.
"""

from __future__ import annotations

import re
from functools import cache

from crawlr.parse import references, tokens
from crawlr.parse.elements import RAW_TEXT, href_of

__all__ = ["LIMIT", "collapsed", "texts"]

LIMIT = 200
"""Characters of a text that are kept."""
_ENOUGH = 20 * LIMIT
"""Characters of text, white space included, that are looked at: an `a` that is never closed holds the rest of its
page."""
# Where these begin or end, words end, too.
_BREAKS = frozenset({
    "address", "article", "aside", "blockquote", "br", "button", "caption", "dd", "div", "dl", "dt", "figcaption",
    "figure", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "img", "li", "main", "nav", "ol", "option",
    "p", "pre", "section", "table", "tbody", "td", "th", "thead", "tr", "ul",
})  # fmt: skip


def texts(text: str, *, is_xml: bool) -> dict[str, str]:
    """href -> text of the first `a` element with that href, white space collapsed, cut to LIMIT characters.

    Where there is no text but an image, its alt. Scripts, styles and comments are no text. Never fails; linear.
    """
    found: dict[str, str] = {}
    seen: set[str] = set()  # attributes of elements that begin as an earlier one did: half of all, on many sites
    href: str | None = None  # of the open element, while its text is wanted
    parts: list[str] = []
    inert = position = 0
    step = _stops().match
    while position >= 0 and (token := step(text, position)):
        if href is not None:
            parts.append(text[position : _begin(token)])
        position = token.end()
        if token[tokens.COMMENT]:
            position = tokens.end_of_comment(text, position)
            continue
        name = token[tokens.NAME].lower()
        if name == "a":
            if href is not None:
                found[href] = _text(parts)
                parts.clear()
                href = None
            source = token[tokens.SOURCE]
            if inert or token[tokens.CLOSING] or source in seen:
                continue
            seen.add(source)
            href = href_of(tokens.attributes(source))
            if href in found:
                href = None
            elif href is not None and is_xml and token[tokens.SLASHES].endswith("/"):
                found[href], href = "", None
        elif name == "template":
            inert = max(0, inert - 1) if token[tokens.CLOSING] else inert + 1
        elif name == "plaintext":
            position = -1
        elif not is_xml or not token[tokens.SLASHES].endswith("/"):
            position = tokens.end_of_raw_text(name, text, position)
    if href is not None:
        found[href] = _text([*parts, text[position:] if position >= 0 else ""])
    return found


@cache
def _stops() -> re.Pattern[str]:
    return tokens.stops(RAW_TEXT | {"a", "plaintext", "template"}, frozenset({"a", "template"}))


def _text(sources: list[str]) -> str:
    """The text of pieces of markup, or the first alt of an image in them."""
    parts: list[str] = []
    size = 0
    alt = ""
    for source in sources:
        position = 0
        while size < _ENOUGH and "<" in source and (token := tokens.ANY.match(source, position)):
            parts.append(_bare(source[position : _begin(token)]))
            size += len(parts[-1])
            position = token.end()
            name = "" if token[tokens.COMMENT] else token[tokens.NAME].lower()
            if name in _BREAKS:
                parts.append(" ")
            if name == "img" and not alt:
                alt = tokens.attributes(token[tokens.SOURCE]).get("alt") or ""
        if size >= _ENOUGH:
            break
        parts.append(_bare(source[position:]))
    return collapsed("".join(parts)) or collapsed(alt)


def _begin(token: re.Match[str]) -> int:
    """Where the tag or comment begins that a token has run up to."""
    return max(token.start(tokens.COMMENT), token.start(tokens.CLOSING)) - 1


_BOGUS = re.compile("<[!?/][^>]*+>")


def _bare(source: str) -> str:
    """Text between tags, without what is neither tag nor text, its references replaced."""
    return references.in_text(_BOGUS.sub("", source) if "<" in source else source)


def collapsed(text: str) -> str:
    """A text on one line, cut to LIMIT characters."""
    return " ".join(text.split())[:LIMIT].rstrip()
