"""The tags that matter in a document whose markup is plain, found without a parser; None where it is not.

From: document (text), before it asks an engine. To: document, as Elements. Runs in parse processes. Pure.

Most pages are written by programs: most tags say nothing that is wanted, and of the others most stood on pages before
and have no `>` in a value. So one regular expression passes by what is plainly a tag that is not wanted, and cuts the
rest into sources, what reaches from a `<` to the first `>`. What a source says is looked up, or read and remembered.
That it is one tag is proven and not assumed. The proof, along the page:

- Before a `<` that opens something the tokenizer of the standard (HTML §13.2.5) reads text.
- What is passed by is a tag by the standard's grammar, all of it, to its `>`: text follows.
- A source that is a tag by the standard's grammar, all of it, ends where that tag does, at the `>`. One
  that is not, since a quote is still open at its end, makes the page not plain.
- Comments are taken whole. `<!x`, `<?x`, `</1` are comments that end at the first `>`, wherever it stands.
- Behind a start tag of raw text its text is passed by up to the end tag; a script in a script makes the page not plain.
- What changes the meaning of tags behind it (`template`, `svg` and the like) makes the page not plain.

What is not plain is no worse off: an engine reads it, as it would have read all.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from crawlr.parse import references, tokens
from crawlr.parse.elements import RAW_TEXT, Element, Elements
from crawlr.parse.patterns import compiled
from crawlr.parse.remembered import Remembered

__all__ = ["forget", "scan"]

_MOST_OPEN = 20_000
"""A page that leaves more elements open than this (void ones count) is broken or means ill; an engine says how."""


def scan(text: str, wanted: frozenset[str], *, once: bool = False) -> Elements | None:
    """The elements of the wanted names, in document order, and the title; None: the page is not plain.

    With `once` elements that say the same may be given once, and links without the fragment of their address.
    """
    if text.rfind("<") > text.rfind(">"):
        return None  # cut off within a tag
    if _is_broken(text):
        return None
    once = once and "form" not in wanted  # of which there may be one
    sources = _sources(wanted, without_fragments=once and "a" in wanted).findall(text)
    try:
        found = list(filter(None, map(_tags(wanted).__getitem__, dict.fromkeys(sources) if once else sources)))
    except _NotPlainError:
        return None
    if "form" in wanted and sum(name == "form" for name, _ in found) > 1:
        return None  # a form in a form is none
    titles = [each for each in found if each[0] == "title"]
    if not titles:
        return Elements(found, None)
    return Elements([each for each in found if each[0] != "title"], titles[0][1]["text"])


def _is_broken(text: str) -> bool:
    """Whether it leaves more than _MOST_OPEN elements open. To count is slow: only where a stretch as long has no end
    tag, as it is when none of them is closed."""
    stretches = range(0, len(text) - _MOST_OPEN, _MOST_OPEN)
    has_stretch = any(text.find("</", at, at + _MOST_OPEN) < 0 for at in stretches)
    return has_stretch and text.count("<") - 2 * text.count("</") > _MOST_OPEN


_SHAPES = frozenset({
    "animate", "animatetransform", "circle", "clippath", "defs", "ellipse", "g", "line", "lineargradient", "mask",
    "path", "polygon", "polyline", "radialgradient", "rect", "stop", "symbol", "text", "tspan", "use",
})  # fmt: skip
_LABELS = ("desc", "title")  # HTML stands in these


@cache
def _sources(wanted: frozenset[str], *, without_fragments: bool) -> re.Pattern[str]:
    return tokens.sources(
        RAW_TEXT,
        root="svg",
        inner=_SHAPES - wanted,
        labels=_LABELS,
        special=wanted | _NEVER_PLAIN | {"image"},
        shortened=_LINK_TO_PART if without_fragments else None,
    )


@cache
def _drawing(wanted: frozenset[str]) -> re.Pattern[str]:
    """Of SVG only this is passed by, if it also ends its own: nothing in it is wanted, and its own end tag ends it."""
    return tokens.drawing("svg", inner=_SHAPES - wanted, labels=_LABELS)


def _ends_its_own(drawing: str) -> bool:
    """Whether every end tag in it ends an element in it: others may end one around it, and it with that (HTML
    §13.2.6.5)."""
    still_open: list[str] = []
    count: Counter[str] = Counter()
    for tag in tokens.TAG.finditer(drawing):
        name = tokens.lower_case(tag[tokens.NAME])
        if not tag[tokens.CLOSING]:
            if not tag[tokens.SLASHES].endswith("/"):
                still_open.append(name)
                count[name] += 1
            continue
        if not count[name]:
            return False
        while (ended := still_open.pop()) != name:
            count[ended] -= 1
        count[name] -= 1
    return True


# ---- one tag

_NEVER_PLAIN = frozenset({"frameset", "math", "plaintext", "svg", "template"})
"""Elements in or behind which a start tag may mean something else, or nothing; but for an svg that only draws."""
_MOST_CHARACTERS = 2_000_000
"""Characters of sources that a table remembers, some 15,000 tags in 6 MB: most stand on thousands of a site's pages."""
_OF_ITSELF = 60
"""So many more does each count: what it takes beside its text."""
_LONGEST_TAG, _MOST_ATTRIBUTES = 500, 8
# What nearly every link looks like. Of its attributes nobody but links.py asks for others than these three.
_ATTRIBUTE = rf"(?!(?:href|rel|xlink:href)=){tokens.WRITTEN}"
_BEFORE = rf'a (?:class="[^"]*+" )?+(?:{_ATTRIBUTE} )*+href="'
_AFTER = rf'"(?: {_ATTRIBUTE})*+>'
_LINK = compiled(rf'<{_BEFORE}([^"&>\0]*+)(?:{_AFTER})?+')
# Up to where its fragment begins, and the rest. White space there is no end of the address, as it would be without it.
_LINK_TO_PART = rf'{_BEFORE}[^"&>#\0]*+(?<![\0-\x20])', rf'#[^"]*+{_AFTER}'
# A start tag as programs write it, and what it says.
_WRITTEN = compiled(rf"<([a-z][a-z0-9]*+)(?: {tokens.WRITTEN})*+>")
_WRITTEN_ATTRIBUTE = re.compile(' ([a-z0-9-]+)="([^"]*)"')
_NOT_AS_WRITTEN = RAW_TEXT | _NEVER_PLAIN | {"image"}


class _NotPlainError(Exception):
    """A source is not what it seems."""


class _Tags(Remembered[str, Element | None]):
    """Source -> what it says if it is wanted, else None. A link whose address does not end is one that was
    shortened."""

    def __init__(self, wanted: frozenset[str]) -> None:
        super().__init__(_MOST_CHARACTERS)
        self._wanted = wanted

    def __missing__(self, source: str) -> Element | None:
        if "a" in self._wanted and (link := _LINK.fullmatch(source)):
            element: Element | None = ("a", {"href": link[1]})
        elif (written := _WRITTEN.fullmatch(source)) and written[1] not in _NOT_AS_WRITTEN:
            element = self._written(written[1], source) if written[1] in self._wanted else None
        else:
            element = self._read(source)
        is_small = element is None or (len(element[1]) <= _MOST_ATTRIBUTES and element[0] != "title")
        if is_small and len(source) <= _LONGEST_TAG:
            self.keep(source, element, len(source) + _OF_ITSELF)
        return element

    def _written(self, name: str, source: str) -> Element | None:
        """What _read gives for a wanted tag of this form, three times as fast."""
        if "&" in source or "\0" in source:
            return self._read(source)
        pairs: list[tuple[str, str | None]] = _WRITTEN_ATTRIBUTE.findall(source)
        attributes = dict(pairs)
        return (name, attributes) if len(attributes) == len(pairs) else self._read(source)

    def _read(self, source: str) -> Element | None:
        tag = tokens.TAG.match(source)
        if tag is None:
            return None  # a comment of some kind
        name, end = tokens.lower_case(tag[tokens.NAME]), source.find(">")
        if name == "svg" and _drawing(self._wanted).fullmatch(source):
            if not _ends_its_own(source):
                raise _NotPlainError
            return None
        if tag.end() != end:
            raise _NotPlainError
        if name in RAW_TEXT and tokens.end_of_raw_text(name, f"{source}</{name}>", end + 1) != len(source):
            raise _NotPlainError  # a script in a script
        if name in _NEVER_PLAIN and not tag[tokens.CLOSING]:
            raise _NotPlainError
        if tag[tokens.CLOSING]:
            return None
        if name == "title":
            return name, {"text": references.in_text(source[end + 1 :].replace("\0", "\ufffd"))}
        if name == "image":
            name = "img"  # (HTML §13.2.6.4.7)
        return (name, tokens.attributes(tag[tokens.SOURCE])) if name in self._wanted else None


_tags = cache(_Tags)


def forget() -> None:
    """Know no source, as in a new process."""
    _tags.cache_clear()
