"""HTML's tokens as regular expressions: tags with their attributes, where comments and raw text end.

From: plain, scanner, foreign, xhtml, engine_lxml. To: the same. Runs in parse processes. Pure.

This is the tokenizer of the HTML standard (§13.2.5) without what needs no answer here: errors, text, DOCTYPE. All
repetitions are possessive, so that a match never goes back and the time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from crawlr.parse import references
from crawlr.parse.patterns import compiled

__all__ = [
    "ANY",
    "ANY_XML",
    "CLOSING",
    "COMMENT",
    "DOCTYPE",
    "NAME",
    "SLASHES",
    "TAG",
    "WRITTEN",
    "attributes",
    "drawing",
    "end_of_comment",
    "end_of_markup",
    "end_of_raw_text",
    "is_blank",
    "lower_case",
    "sources",
    "stops",
    "tag_like",
]

SPACE = r"\t\n\f\r "
"""HTML's white space; the standard turns CR into LF before, so it counts as LF does."""

# One attribute (§13.2.5.32 to .39). `=` begins a value only behind a name. A value whose quote never ends reaches the
# end of the text, where no `>` can follow: the tag is none ("eof-in-tag").
_KEY = rf"[{SPACE}/]*+[^{SPACE}/>][^{SPACE}/>=]*+"
_EQUALS = rf"[{SPACE}]*+=[{SPACE}]*+"
_BARE = rf"""[^{SPACE}>"'][^{SPACE}>]*+"""
_ATTRIBUTES = rf"""(?:{_KEY}(?:{_EQUALS}(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|{_BARE}|(?=>)))?+)*+"""
_CLOSED_ATTRIBUTES = rf"""(?:{_KEY}(?:{_EQUALS}(?:"[^"]*+"|'[^']*+'|{_BARE}|(?=>|\Z))|(?![{SPACE}]*+=)))*+"""
"""The same without a value whose quote never ends."""
_ATTRIBUTE = compiled(rf"""[{SPACE}/]*+([^{SPACE}/>][^{SPACE}/>=]*+)(?:{_EQUALS}("[^"]*+"|'[^']*+'|{_BARE}|))?+""")
WRITTEN = '[a-z0-9-]++="[^"]*+"'
"""One attribute as programs write it, and the grammar reads it no other way."""
_NAME = rf"[a-zA-Z][^{SPACE}/>]*+"
_REST = rf"({_ATTRIBUTES})([{SPACE}/]*+)>"
# What is no tag: "<" that opens nothing, "</>", and "bogus comments", to the first ">"; a DOCTYPE ends there too.
_NO_TAG = r"(?=[^a-zA-Z/!?])|/>|(?:\?|!(?!--)|/(?=[^a-zA-Z>]))[^>]*+>"

_COMMENT = "!--(?:-?>|[^-]*+(?:-(?!-!?>)[^-]*+)*+(?:--!?>)?+)"  # behind its `<`, to its end or that of the text

COMMENT, CLOSING, NAME, SOURCE, SLASHES = 1, 2, 3, 4, 5
"""Groups of the tokens that ANY and `stops` match: what opens a comment or a CDATA section (or None), "/" of an end
tag, the name, the source of the attributes, what stands between them and ">"."""

ANY = compiled(
    rf"[^<]*+(?:<(?!!\[CDATA\[)(?:{_NO_TAG})[^<]*+)*+<(?:(!--|!\[CDATA\[)|(/?+)({_NAME}){_REST})",
)
"""The next tag, comment or CDATA section, whatever its name."""

ANY_XML = compiled(
    rf"[^<]*+(?:<(?![a-zA-Z!?]|/[a-zA-Z])[^<]*+)*+<(?:(!--|!\[CDATA\[|\?|!)|(/?+)({_NAME}){_REST})",
)
"""The same for XML, where a processing instruction and a DOCTYPE have ends of their own: they are openings too."""

TAG = compiled(rf"<()(/?+)({_NAME})({_CLOSED_ATTRIBUTES})([{SPACE}/]*+)")
"""A tag up to before its `>`, or before the attribute whose quote never ends."""

DOCTYPE = compiled(
    r"""<!DOCTYPE(?:[^"'\[>]++|"[^"]*+"|'[^']*+')*+"""
    r"""(?:\[(?:[^"'\]<]++|"[^"]*+"|'[^']*+'|<!--(?:[^-]++|-(?!->))*+-->|<\?(?:[^?]++|\?(?!>))*+\?>|<)*+\]\s*+)?+>""",
    re.IGNORECASE,
)
"""XML's DOCTYPE with its internal subset. A document has one, so it is tried once: it may look at the whole text in
vain."""


@cache
def stops(names: frozenset[str], end_names: frozenset[str]) -> re.Pattern[str]:
    """A pattern that matches everything up to the next comment, start tag of `names` or end tag of `end_names`.

    What it runs over is one repetition without groups: that is what makes the scanner as fast as a parser in C.
    """
    name, end_name = _any_of(names), _any_of(end_names)
    return compiled(
        rf"[^<]*+(?:<(?:/(?!{end_name}){_NAME}{_ATTRIBUTES}[{SPACE}/]*+>|(?!{name}){_NAME}{_ATTRIBUTES}[{SPACE}/]*+>"
        rf"|{_NO_TAG})[^<]*+)*+<(?:(!--)|(/?+)({_NAME}){_REST})"
    )


def tag_like(names: Iterable[str], *, closed: Iterable[str] = ()) -> re.Pattern[str]:
    """A pattern for the start tags of `names`, and for those of `closed` that end in a slash. For `search`: what it
    finds may stand in a comment or an attribute."""
    either = [_any_of(names)]
    if closed:
        either.append(rf"{_any_of(closed)}{_ATTRIBUTES}[{SPACE}/]*+(?<=/)>")
    return compiled(rf"<(?={_two_letters((*names, *closed))})(?:{'|'.join(either)})")


def sources(
    raw: Iterable[str],
    *,
    root: str,
    inner: Iterable[str],
    labels: Iterable[str],
    special: Iterable[str],
    shortened: tuple[str, str] | None = None,
) -> re.Pattern[str]:
    """A pattern for what reaches from each `<` that opens something to the first `>` behind it, wherever that stands.

    For `findall` on a text with a `>` behind its last `<`; the last find is "". End tags without attributes are left
    out, and start tags as programs write them (`_passed_by`), but for those of the names `special`: four of five.
    Further reach: comments; start tags of `raw`, if they are titles or have a `<` in their text, with their text; and
    elements `root`: to their end those that only draw, to the end of the text the others, so that none is tried twice.
    Less far reaches, behind a `<`, what `shortened` has for a beginning where its rest follows, up to a `>`.
    """
    drawing = _drawing(root, inner, labels)
    texts = [*map(_with_text, sorted(raw)), rf"(?:{drawing}|{_any_of([root])}(?s:.*+))"]
    ways = [_COMMENT, rf"(?={_two_letters((*raw, root))})(?:{'|'.join(texts)})", "[a-zA-Z/!?][^>]*+>"]
    behind = ""
    if shortened is not None:
        beginning, rest = shortened
        ways.insert(0, rf"{beginning}(?={rest})")
        behind = rf"(?:(?<!>){rest})?+"
    passed_by = rf"/[a-zA-Z0-9]++>|{_passed_by({*special, *raw, root})}|(?=[^a-zA-Z/!?])"
    # It matches wherever it is tried, so that no part of the text is looked at again from its middle. The number is for
    # Pythons on which a repetition takes memory (patterns.py).
    return compiled(rf"[^<]*+(?:<(?:{passed_by})[^<]*+){{0,9999}}+((?:<(?:{'|'.join(ways)}))?+){behind}")


_COMMON = ("p", "li", "td", "tr", "th", "strong", "section", "b", "br", "i", "img", "input", "label", "main", "nav",
           "pre", "small", "sub", "sup", "table", "tbody", "thead")  # fmt: skip


def _passed_by(special: set[str]) -> str:
    """An expression behind a `<` for a start tag as programs write it: its quotes are double, and its name is common or
    has a first letter that no name of `special` has, so that one look tells it from them."""
    letters = "".join(sorted(set("abcdefghijklmnopqrstuvwxyz") - {name[0] for name in special}))
    names = [name for name in ("span", f"[{letters}][a-z0-9]*+", *_COMMON) if name not in special]
    return rf'(?:{"|".join(names)})(?: class="[^"]*+")?+(?: {WRITTEN})*+(?: ?/)?+>'


def _with_text(name: str) -> str:
    """An expression for a start tag of raw text behind its `<`."""
    tag, end = _any_of([name]), f"</{_any_of([name])}"
    alone = rf"(?=[^<]*+{end})|" if name != "title" else ""
    return rf"{tag}[^>]*+>(?:{alone}[^<]*+(?:(?!{end})<[^<]*+)*+)"


def drawing(root: str, *, inner: Iterable[str], labels: Iterable[str]) -> re.Pattern[str]:
    """A pattern for an element that only draws, whole: it holds text, elements of the names `inner` however they close,
    and elements of the names `labels` that hold text alone, or it closes itself."""
    return compiled(f"<{_drawing(root, inner, labels)}")


def _drawing(root: str, inner: Iterable[str], labels: Iterable[str]) -> str:
    """An expression for the same behind its `<`."""
    rest = rf"[{SPACE}/]*+>"
    tag = rf"/?+{_any_of(inner)}{_ATTRIBUTES}{rest}"
    label = "|".join(rf"{_any_of([name])}{_ATTRIBUTES}{rest}[^<]*+{_end(name)}" for name in labels)
    closes_itself = rf"[{SPACE}]*+/[{SPACE}/]*+(?<=/)>"  # a slash of its own, not the end of a bare value
    holds = rf"{rest}(?:[^<]*+<(?:{tag}|{label}))*+[^<]*+{_end(root)}"
    return rf"{_any_of([root])}{_ATTRIBUTES}(?:{closes_itself}|{holds})"


def _two_letters(names: Iterable[str]) -> str:
    """The first two letters of any of `names`. Most tags are passed by after a look at them, twice as fast."""
    names = tuple(names)
    return f"[{_any_letter(each[0] for each in names)}][{_any_letter(each[1] for each in names)}]"


def _any_letter(letters: Iterable[str]) -> str:
    return "".join(sorted({letter + letter.upper() for letter in letters}))


def _any_of(names: Iterable[str]) -> str:
    """An expression for one of the names, whole, in any case."""
    return rf"(?:{_any_case(names)})(?=[{SPACE}/>])"


def _end(name: str) -> str:
    """An expression for an end tag without attributes."""
    return rf"</{_any_case([name])}[{SPACE}]*+>"


def _any_case(names: Iterable[str]) -> str:
    """An expression for the names in any case, common beginnings once: a failing match looks at one letter."""
    tails: dict[str, list[str]] = {}
    for name in sorted(names):
        tails.setdefault(name[:1], []).append(name[1:])
    branches = [f"[{first}{first.upper()}]{_any_case(rest)}" for first, rest in tails.items() if first]
    whole = branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})" if branches else ""
    return f"(?:{whole})?+" if whole and "" in tails else whole


_BOGUS = re.compile("<[!?/][^>]*+>")


def is_blank(skipped: str) -> bool:
    """Whether what a token of ANY has run over holds no text: it is white space, NUL, and what is no tag."""
    return not _BOGUS.sub("", skipped).strip("\0\t\n\f\r ")


def lower_case(name: str) -> str:
    """A name as the tokenizer gives it: only ASCII has cases there, the Kelvin sign is no k."""
    return name.lower() if name.isascii() else name


def attributes(source: str) -> dict[str, str | None]:
    """Attributes by lower-case name, references replaced; of two with one name the first counts (§13.2.5.33)."""
    found: dict[str, str | None] = {}
    if "\0" in source:
        source = source.replace("\0", "\ufffd")
    for name, value in _ATTRIBUTE.findall(source):
        key = lower_case(name)
        if key not in found:
            found[key] = references.in_attribute(value[1:-1] if value[:1] in ('"', "'") else value)
    return found


# ---- where text ends that holds no tags

_COMMENT_START = re.compile("-?>")
_COMMENT_END = re.compile("--!?>")
_SCRIPT = re.compile(rf"<(?:!--|(/?)[sS][cC][rR][iI][pP][tT](?=[{SPACE}/>]))|-->")


def end_of_markup(opening: str, text: str, start: int) -> int:
    """Where ends what a token of ANY has opened with its group COMMENT. In HTML a CDATA section is a bogus comment."""
    return end_of_comment(text, start) if opening == "!--" else text.find(">", start) + 1 or -1


def end_of_comment(text: str, start: int) -> int:
    """Where the comment ends whose `<!--` ends at `start`; -1: it never does (§13.2.5.43 to .52)."""
    match = _COMMENT_START.match(text, start) or _COMMENT_END.search(text, start)
    return match.end() if match else -1


def end_of_raw_text(name: str, text: str, start: int) -> int:
    """Where the end tag stands that ends the raw text of element `name`, which begins at `start`; -1: there is none."""
    if name == "script":
        return _end_of_script(text, start)
    match = _end_tag(name).search(text, start)
    return match.start() if match else -1


@cache
def _end_tag(name: str) -> re.Pattern[str]:
    return compiled(rf"</{_any_of([name])}")


def _end_of_script(text: str, start: int) -> int:
    """Where `</script` stands that ends the script (§13.2.5.17 to .31).

    `<!--` escapes the text; a `<script` in escaped text needs an end tag of its own; `-->` ends both.
    """
    is_escaped = is_doubled = False
    while match := _SCRIPT.search(text, start):
        start = match.end()
        found = match[0]
        if found == "<!--":
            is_escaped = True
            start -= 2  # its dashes may belong to the end: "<!-->" escapes nothing
        elif found == "-->":
            is_escaped = is_doubled = False
        elif not match[1]:
            is_doubled = is_escaped
        elif is_doubled:
            is_doubled = False
        else:
            return match.start()
    return -1
