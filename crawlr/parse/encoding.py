"""Which character encoding a page is in: mark, header, declaration, or a guess.

From: bodies after content decoding, and the Content-Type header. To: parse.document and parse.sitemaps, which decode
with the name that comes out. Pure; runs in parse processes.
"""

from __future__ import annotations

import codecs
import re
from functools import lru_cache

from crawlr.parse.encoding_codecs import decode
from crawlr.parse.encoding_guess import guess
from crawlr.parse.encoding_labels import LABELS, name_of
from crawlr.parse.patterns import compiled

__all__ = ["LABELS", "decode", "name_of", "sniff"]

_PRESCAN = 1024
"""Bytes that the standard's prescan looks at."""
_LATE_PRESCAN = 1024 * 1024
"""Bytes in which a later declaration is looked for. Takes up to 50 ms, but only of pages with such an element."""


def sniff(body: bytes, content_type: str | None) -> tuple[str, str]:
    """The encoding of a page: its WHATWG name in lower case, and which evidence won ("bom", "header", "meta", "guess").

    `body` is what content decoding gave, `content_type` the header's value or None. HTML standard §13.2.3.2 "encoding
    sniffing algorithm": a byte order mark beats the header, the header beats a declaration in the page. Never fails.

    Decisions where sources differ:
    - Declarations after the first 1,024 bytes count, as in browsers, which read the page again when they meet one.
      There text of scripts, styles and other raw text is not looked into.
    - An XML declaration counts when there is no meta declaration (in the standard since 2021): evidence "meta".
    - A page that says nothing is UTF-8 when it can be read so. Otherwise the bytes decide; the standard would ask for
      the user's language, which a crawler has not.
    - `replacement` (hz-gb-2312, iso-2022-kr ...) is believed: browsers show nothing of such a page.
    """
    if body.startswith(codecs.BOM_UTF8):
        return "utf-8", "bom"
    if body.startswith(codecs.BOM_UTF16_LE):
        return "utf-16le", "bom"
    if body.startswith(codecs.BOM_UTF16_BE):
        return "utf-16be", "bom"
    declared = _of_header(content_type) if content_type else None
    if declared is not None:
        return declared, "header"
    declared = _prescan(body)
    if declared is not None:
        return declared, "meta"
    return _guess(body), "guess"


# ---- the header

_PARAMETER = re.compile(r';[ \t\r\n]*([^;="]*)(?:=("(?:[^"\\]|\\.)*"?|[^;]*))?')
_COMMA = re.compile(r'((?:"(?:[^"\\]|\\.)*"?|[^,"])*),?')


@lru_cache(maxsize=256)
def _of_header(content_type: str) -> str | None:
    """The encoding that a Content-Type names, None when it names none that exists.

    Fetch §3.5 "legacy extract an encoding", MIME Sniffing §4.4: of several values in one header the last counts, and
    the charset of an earlier one of the same type stays; of several charsets in one value the first counts; a space
    before the equals sign makes it another parameter. Deviation: the type itself may be anything or nothing
    (`foo=bar; charset=utf-8`), since a charset was plainly meant. Cached: a site sends few different values.
    """
    charset: str | None = None
    essence = ""
    for value in _COMMA.findall(content_type):
        if not value.strip():
            continue
        own = value.partition(";")[0].strip().lower()
        found = _charset(value)
        if found is not None or own != essence:
            charset = found
        essence = own
    return name_of(charset) if charset is not None else None


def _charset(value: str) -> str | None:
    for name, text in _PARAMETER.findall(value):
        if name.lower() == "charset":
            if text.startswith('"'):
                return re.sub(r"\\(.)", r"\1", text[1:].removesuffix('"'))
            if text.rstrip(" \t\r\n"):
                return str(text.rstrip(" \t\r\n"))
    return None


# ---- the declaration

# One attribute by the standard's "get an attribute". A quote without its partner, or a value without an end, is no
# attribute: there the standard runs out of bytes and gives up. Possessive throughout, so time is linear.
_ATTRIBUTE = (
    rb"[\t\n\f\r /]*+([^\t\n\f\r />][^\t\n\f\r />=]*+)"
    rb"(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\t\n\f\r >\"'][^\t\n\f\r >]*+)|(?=>))"
    rb"|(?![\t\n\f\r ]*+=))"
)
_NEXT_ATTRIBUTE = re.compile(_ATTRIBUTE)
_REST_OF_TAG = compiled(rb"(?:" + re.sub(rb"(?<!\\)\((?!\?)", rb"(?:", _ATTRIBUTE) + rb")*+[\t\n\f\r /]*+>")
_META = re.compile(rb"<meta(?=[\t\n\f\r /])", re.IGNORECASE)
_TAG = re.compile(rb"</?([a-z][^\t\n\f\r >]*+)", re.IGNORECASE)
_RAW_TEXT = re.compile(rb"(?:script|style|textarea|title|xmp|iframe|noembed|noframes)\Z", re.IGNORECASE)
_IN_CONTENT = re.compile(r"charset[\t\n\f\r ]*=[\t\n\f\r ]*", re.IGNORECASE)
# Without this no later declaration is worth looking for. Classes instead of IGNORECASE: 8 times as fast.
_LATE_META = re.compile(rb"<[mM][eE][tT][aA][\t\n\f\r /][^<]*?[cC][hH][aA][rR][sS][eE][tT]")
_MARKUP = re.compile(rb"<(?=[!/?a-zA-Z])")


def _prescan(body: bytes) -> str | None:
    """HTML standard §13.2.3.2 "prescan a byte stream", then the same further on, then "get an XML encoding"."""
    if body.startswith(b"<\0?\0x\0"):
        return "utf-16le"
    if body.startswith(b"\0<\0?\0x"):
        return "utf-16be"
    declared = _of_meta(body[:_PRESCAN], skip_raw_text=False)
    if declared is None and len(body) > _PRESCAN and _LATE_META.search(body, 0, _LATE_PRESCAN):
        declared = _of_meta(body[:_LATE_PRESCAN], skip_raw_text=True)
    return declared or _of_xml(body[:_PRESCAN])


def _of_meta(page: bytes, *, skip_raw_text: bool) -> str | None:
    """The encoding of the first meta element that names one. None also when the bytes end inside of a tag."""
    at = 0
    while markup := _MARKUP.search(page, at):
        at = markup.start()
        if page.startswith(b"<!--", at):
            end = page.find(b"-->", at + 2)  # `<!-->` is a whole comment
            if end < 0:
                return None
            at = end + 3
        elif meta := _META.match(page, at):
            attributes, end = _attributes(page, meta.end())
            if end < 0:
                return None
            declared = _of_attributes(attributes)
            if declared is not None:
                return declared
            at = end
        elif tag := _TAG.match(page, at):
            rest = _REST_OF_TAG.match(page, tag.end())
            if rest is None:
                return None
            at = rest.end()
            if skip_raw_text and _RAW_TEXT.match(tag[1]) and page[tag.start() + 1] != 0x2F:
                end_tag = re.compile(rb"</" + tag[1] + rb"[\t\n\f\r />]", re.IGNORECASE).search(page, at)
                if end_tag is None:
                    return None
                at = end_tag.start()
        else:
            end = page.find(b">", at)
            if end < 0:
                return None
            at = end + 1
    return None


def _attributes(page: bytes, at: int) -> tuple[dict[bytes, bytes], int]:
    """The attributes of a tag, the first of each name, in lower case; and where the tag ends (-1: it does not)."""
    attributes: dict[bytes, bytes] = {}
    while attribute := _NEXT_ATTRIBUTE.match(page, at):
        name, double, single, bare = attribute.groups()
        attributes.setdefault(name.lower(), (double or single or bare or b"").lower())
        at = attribute.end()
    end = _REST_OF_TAG.match(page, at)
    return attributes, end.end() if end else -1


def _of_attributes(attributes: dict[bytes, bytes]) -> str | None:
    """What a meta element declares: its `charset`, else the charset in `content` when http-equiv is content-type.

    The prescan gives up on an element whose `charset` is none, tree construction then looks at `content`; so do we.
    """
    declared = name_of(attributes.get(b"charset", b"").decode("latin-1"))
    if declared is None and attributes.get(b"http-equiv") == b"content-type":
        declared = _of_content(attributes.get(b"content", b"").decode("latin-1"))
    return _declarable(declared)


def _of_content(content: str) -> str | None:
    """HTML standard §2.5.4 "extracting a character encoding from a meta element"."""
    found = _IN_CONTENT.search(content)
    if found is None:
        return None
    value = content[found.end() :]
    if value[:1] in ('"', "'"):
        quoted, quote, _ = value[1:].partition(value[0])
        return name_of(quoted) if quote else None
    return name_of(re.split(r"[\t\n\f\r ;]", value, maxsplit=1)[0])


def _of_xml(head: bytes) -> str | None:
    """HTML standard §13.2.3.2 "get an XML encoding"."""
    if not head.startswith(b"<?xml"):
        return None
    declaration, mark, _ = head.partition(b">")
    found = re.search(rb"encoding[\x00-\x20]*=[\x00-\x20]*(?:\"([^\"\x00-\x20]*)\"|'([^'\x00-\x20]*)')", declaration)
    if not mark or found is None:
        return None
    return _declarable(name_of((found[1] or found[2] or b"").decode("latin-1")))


def _declarable(name: str | None) -> str | None:
    """What a declaration in the page means: who can read `utf-16` in single bytes does not read UTF-16."""
    if name in ("utf-16le", "utf-16be"):
        return "utf-8"
    return "windows-1252" if name == "x-user-defined" else name


# ---- nothing is said

_UTF_16_MARKUP = ((re.compile(rb"<\0[!?a-zA-Z]\0"), "utf-16le"), (re.compile(rb"\0<\0[!?a-zA-Z]"), "utf-16be"))


def _guess(body: bytes) -> str:
    for markup, name in _UTF_16_MARKUP:
        if markup.match(body):
            return name
    try:
        codecs.utf_8_decode(body, "strict", False)  # the last character may be cut
    except UnicodeDecodeError:
        return _meant(body) or guess(body)
    return "iso-2022-jp" if b"\x1b$B" in body or b"\x1b$@" in body else "utf-8"


_ANY_CHARSET = re.compile(rb"(?:charset|encoding)[\t\n\f\r ]*=[\t\n\f\r ]*[\"']?([a-z0-9_.:-]{2,40})", re.IGNORECASE)


def _meant(body: bytes) -> str | None:
    """The encoding that a label in the head means which no standard knows (`latin-1`, `cp1252 `), None when there is
    none.

    Browsers ignore such a label; where they would fall back to a default it is the better guess.
    """
    found = _ANY_CHARSET.search(body, 0, _PRESCAN)
    if found is None:
        return None
    try:
        return name_of(codecs.lookup(found[1].decode("ascii")).name.replace("iso8859", "iso-8859"))
    except LookupError:
        return None
