"""The tags that matter in a document whose markup is plain, found without a look at every tag; None where it is not.

From: document (text), before it asks an engine. To: document, as Elements. Runs in parse processes. Pure.

Most pages are written by programs: a quote that opens in a tag closes there, and no bracket stands between them. Where
that holds, a tag is what lies between `<` and the next `>`, and only those of the wanted names need a closer look.
That it holds is proven and not assumed, by a few scans of the whole page at the speed of memory. The proof:

- Comments, declarations and the contents of scripts and other raw text are cut out. Of the rest all but brackets and
  quotes is dropped, and `="` and `='` are one mark each: the only way in which a value begins with a quote.
- Marks go together with the quote that ends their value. Now every `<` has its `>` beside it, or the page is not plain.
- So in each tag every mark is followed by a quote of its kind. Whatever the rest of the tag looks like, at the first
  `>` the tokenizer of the standard (HTML §13.2.5) is not in a quoted value: it would have left it at that quote. There
  the tag ends. (White space between `=` and a quote has no mark: a tag with it is not plain.)
- What was cut for a comment or a script may have stood in the value of an attribute. Then that value reaches over the
  cut, where a bracket is left, and the page is not plain.

What is not plain is no worse off: an engine reads it, as it would have read all.
"""

from __future__ import annotations

import re
from functools import cache

from crawlr.parse import scanner, tokens
from crawlr.parse.elements import RAW_TEXT, Element, Elements
from crawlr.parse.patterns import compiled

__all__ = ["forget", "scan"]

_DROPPED = bytes(set(range(256)) - set(b"<>\"'\x01\x02"))
_OTHER_QUOTES_WITHIN = re.compile(b"\x01\"'*+\"|\x02'\"*+'")
_LATE_QUOTE = re.compile(rf"""=[{tokens.SPACE}]++["']""".encode())
_NEVER_PLAIN = frozenset({"frameset", "math", "plaintext", "svg", "template"})
"""Elements in or behind which a start tag may mean something else, or nothing; but for an svg that only draws."""
_MOST_OPEN = 20_000
"""A page that leaves more elements open than this (void ones count) is broken or means ill; an engine says how."""
_CUT = tokens.cuts(RAW_TEXT | _NEVER_PLAIN)


def scan(text: str, wanted: frozenset[str]) -> Elements | None:
    """The elements of the wanted names, in document order, and the title; None: the page is not plain."""
    markup = _without_contents(text, wanted)
    if markup is None:
        return None
    tags = _count_plain(markup)
    if tags is None or (tags > _MOST_OPEN and tags - 2 * markup.count(b"</") > _MOST_OPEN):
        return None
    found: list[Element] = []
    has_title = False
    for source in _tags(wanted).findall(markup):
        element = _elements.get(source) or _read(source)
        if element[0] == "title":
            has_title = True
        else:
            found.append(element)
    if "form" in wanted and sum(name == "form" for name, _ in found) > 1:
        return None  # a form in a form is none
    return Elements(found, scanner.find_title(text) if has_title else None)


def _without_contents(text: str, wanted: frozenset[str]) -> bytes | None:
    """The page in UTF-8 with brackets where a comment, a declaration, raw text or a drawing was; None: it cannot be
    plain."""
    pieces: list[str] = []
    begin = 0
    while cut := _CUT.search(text, begin):
        start = cut.start()
        if text[start + 1] in "!?":
            pieces += text[begin:start], "<>"
            is_comment = text.startswith("!--", start + 1)
            begin = tokens.end_of_comment(text, start + 4) if is_comment else text.find(">", start) + 1
        else:
            name = cut[0][1:].lower()
            end = text.find(">", start) + 1
            if name == "svg" and (icon := _icon(wanted).match(text, start)):
                pieces += text[begin:start], "<>"
                begin = icon.end()
                continue
            if name in _NEVER_PLAIN or not end:
                return None
            pieces.append(text[begin:end])
            begin = tokens.end_of_raw_text(name, text, end)
        if begin <= 0:  # it never ends
            break
    else:
        pieces.append(text[begin:])
    return "".join(pieces).encode("utf-8", "replace")


def _count_plain(markup: bytes) -> int | None:
    """The number of tags, end tags too; None: the page is not plain."""
    if b"\x01" in markup or b"\x02" in markup:
        return None
    marked = markup.replace(b'="', b'\x01"')
    left = marked.translate(None, _DROPPED).replace(b'\x01""', b"")
    tags = _count_paired(left)
    if tags is None:  # there are single quotes in tags
        marked = marked.replace(b"='", b"\x02'")
        left = marked.translate(None, _DROPPED).replace(b'\x01""', b"").replace(b"\x02''", b"")
        tags = _count_paired(_OTHER_QUOTES_WITHIN.sub(b"", left))
    if tags is None or any(_is_in_tag(marked, late.start()) for late in _LATE_QUOTE.finditer(marked)):
        return None
    return tags


def _count_paired(left: bytes) -> int | None:
    """The number of `<` that have their `>` beside them now; None: some have none."""
    rest = left.replace(b"<>", b"")
    return None if b"<" in rest else (len(left) - len(rest)) // 2


def _is_in_tag(marked: bytes, position: int) -> bool:
    return marked.rfind(b"<", 0, position) > marked.rfind(b">", 0, position)


_SHAPES = frozenset({
    "animate", "animatetransform", "circle", "clippath", "defs", "ellipse", "g", "line", "lineargradient", "mask",
    "path", "polygon", "polyline", "radialgradient", "rect", "stop", "symbol", "text", "tspan", "use",
})  # fmt: skip
_LABELS = ("desc", "title")  # HTML stands in these


@cache
def _icon(wanted: frozenset[str]) -> re.Pattern[str]:
    """A drawing in which nothing is wanted and nothing ends it but its own end tag (HTML §13.2.6.5)."""
    return tokens.drawing("svg", inner=_SHAPES - wanted, labels=_LABELS)


@cache
def _tags(wanted: frozenset[str]) -> re.Pattern[bytes]:
    names = wanted | {"title"} | ({"image"} if "img" in wanted else frozenset())
    return tokens.sources(names)


# ---- one tag

_MOST_TAGS = 15_000
"""Tags that a process remembers, some 8 MB: most links of a site stand on thousands of its pages."""
_LONGEST_TAG = 500
_elements: dict[bytes, Element] = {}
"""Source of a tag -> what it says. Filled by _read, emptied by it and by forget."""
_NAME_END = re.compile(rf"[{tokens.SPACE}/]|\Z")
# What nearly every link looks like. Of its attributes nobody but links.py asks for others than these three.
_ATTRIBUTE = r'(?!(?:href|rel|xlink:href)=)[a-z-]++="[^"]*+"'
_LINK = compiled(rf'<a (?:{_ATTRIBUTE} )*+href="([^"&\0]*+)"(?: {_ATTRIBUTE})*+'.encode())


def forget() -> None:
    """Empty the table, as it is in a new process."""
    _elements.clear()


def _read(source: bytes) -> Element:
    """The element of a tag. That of a link to a part of a page is not remembered: it stands on few pages."""
    link = _LINK.fullmatch(source)
    if link is not None:
        element: Element = ("a", {"href": link[1].decode()})
    else:
        tag = source.decode()
        end = _NAME_END.search(tag)
        assert end is not None
        name = tag[1 : end.start()].lower()
        element = "img" if name == "image" else name, tokens.attributes(tag[end.start() :])  # (HTML §13.2.6.4.7)
    if b"#" not in source and len(source) <= _LONGEST_TAG:
        if len(_elements) >= _MOST_TAGS:
            _elements.clear()
        _elements[source] = element
    return element
