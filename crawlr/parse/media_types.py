"""Whether a body is HTML: by what the server calls it, and by its first bytes where that says nothing or lies.

From: bodies after content decoding, and the Content-Type header. To: document. Runs in parse processes. Pure.

The tables are those of the MIME Sniffing standard (§6 and §7). A browser believes a declared text/html whatever
follows; here a PDF, a picture or an archive of that name is no page (`not_html`), as faults of that kind are common.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, TypeAlias

from crawlr.parse.patterns import compiled

__all__ = ["Markup", "markup_of"]

Markup: TypeAlias = Literal["html", "xhtml"]

_HEADER = 1445
"""Bytes of a resource header (§5.2)."""
_BLANK = b"\t\n\f\r "
_UNKNOWN = frozenset({"", "*/*", "application/unknown", "unknown/unknown"})


def markup_of(body: bytes, content_type: str | None) -> Markup | None:
    """What a body is to be read as; None: no HTML.

    `content_type` is the header's value or None. An XML type is XHTML when its root element is `html`. Unknown types
    are sniffed (§7.1); text that begins like nothing known is plain text there, whatever tags it holds further on.
    """
    essence = _essence_of(content_type) if content_type else ""
    if essence == "text/html":
        return "html" if _may_be_html(body) else None
    if essence in _UNKNOWN:
        return _sniff(body[:_HEADER], body)
    if essence == "application/xhtml+xml":
        return None if _signature_of(body[:_HEADER], is_text_meant=True) else "xhtml"
    if essence in {"application/xml", "text/xml"} or essence.endswith("+xml"):
        return _markup_of_xml(body)
    return None


# ---- the name

_VALUE = re.compile(r'((?:"(?:[^"\\]|\\.)*"?|[^,"])*),?')
_ESSENCE = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+/[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")


@lru_cache(maxsize=256)
def _essence_of(content_type: str) -> str:
    """Type and subtype, "" when the value is none (Fetch §3.5 "extract a MIME type": of several the last one
    counts)."""
    essence = ""
    for value in _VALUE.findall(content_type):
        own = value.partition(";")[0].strip("\t\n\r ").lower()
        if _ESSENCE.match(own) and (own != "*/*" or not essence):
            essence = own
    return essence


# ---- HTML and XML

# §7.1: in any case, behind white space, and followed by a space or ">"; `<!--` needs nothing behind it.
_HTML_TAGS = re.compile(
    rb"[\t\n\f\r ]*(?:<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p)[ >]|<!--)",
    re.IGNORECASE,
)
_XML = re.compile(rb"[\t\n\f\r ]*<\?xml", re.IGNORECASE)
_UTF_8_MARK = b"\xef\xbb\xbf"
_UTF_16 = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"<\0", "utf-16-le"), (b"\0<", "utf-16-be"))
_PROLOG = compiled(
    r"(?:[\t\n\f\r \ufeff]++|<\?.*?\?>|<!--.*?-->|<![^>\[]*+(?:\[.*?\]\s*+)?>)*+<([A-Za-z_][^\t\n\f\r />]*+)", re.DOTALL
)
_FEEDS = frozenset({"feed", "rdf:rdf", "rss"})
_ROOT_LIMIT = 64 * 1024
"""Bytes in which the root element of an XML document must begin."""


_MAY_BE_FEED = re.compile(rb"<(?:\?|!--|rss|feed|rdf:)", re.IGNORECASE)


def _may_be_html(body: bytes) -> bool:
    """Whether a body that is called HTML can be: no other format's first bytes, and no feed (§8.2)."""
    begin = body[:_HEADER].lstrip(_BLANK)
    if begin.startswith(b"<"):
        return _MAY_BE_FEED.match(begin) is None or _root_of(body) not in _FEEDS
    return not _signature_of(body[:_HEADER], is_text_meant=True)


def _sniff(header: bytes, body: bytes) -> Markup | None:
    """§7.1, identifying a resource with an unknown type. Deviation: a byte order mark does not make HTML plain text."""
    if _HTML_TAGS.match(header.removeprefix(_UTF_8_MARK)):
        return "html"
    if _XML.match(header.removeprefix(_UTF_8_MARK)):
        return _markup_of_xml(body)
    for mark, codec in _UTF_16[:2]:
        if header.startswith(mark):
            text = header[2:].decode(codec, "replace").encode("utf-8")
            return "html" if _HTML_TAGS.match(text) else "xhtml" if _root_of(body) == "html" else None
    return None


def _markup_of_xml(body: bytes) -> Markup | None:
    root = _root_of(body)
    return "xhtml" if root is not None and root.rpartition(":")[2] == "html" else None


def _root_of(body: bytes) -> str | None:
    """Name of the first element behind declarations, comments and a DOCTYPE, in lower case."""
    head = body[:_ROOT_LIMIT]
    codec = next((codec for mark, codec in _UTF_16 if head.startswith(mark)), "latin-1")
    text = head.removeprefix(_UTF_8_MARK).decode(codec, "replace")
    match = _PROLOG.match(text)
    return match[1].lower() if match else None


# ---- everything else

_SIGNATURES = re.compile(
    rb"%PDF-|%!PS-Adobe-"
    rb"|\x00\x00[\x01\x02]\x00|GIF8[79]a|RIFF.{4}WEBPVP|\x89PNG\r\n\x1a\n|\xff\xd8\xff"
    rb"|FORM.{4}AIFF|OggS\x00|MThd\x00\x00\x00\x06|RIFF.{4}(?:AVI |WAVE)"
    rb"|.{34}LP|\x00\x01\x00\x00"
    rb"|\x1f\x8b\x08|PK\x03\x04|Rar[ !]\x1a\x07\x00",
    re.DOTALL,
)
_WORDS = re.compile(rb"BM|ID3|OTTO|ttcf|wOFF|wOF2")
"""Signatures with which a text may well begin."""
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")


def _signature_of(header: bytes, *, is_text_meant: bool) -> bool:
    """Whether a header is that of an image, a sound, a film, a font, an archive or a document for print.

    `is_text_meant`: the server says it is text, so a few letters alone prove nothing.
    """
    if _SIGNATURES.match(header) or _is_mp4(header) or _is_webm(header) or _is_mp3(header):
        return True
    return bool(_WORDS.match(header)) and (not is_text_meant or _BINARY.search(header) is not None)


def _is_mp4(header: bytes) -> bool:
    """§6.2.1: a box `ftyp` with a brand that begins with mp4."""
    size = int.from_bytes(header[:4], "big")
    if len(header) < max(12, size) or size % 4 or header[4:8] != b"ftyp":
        return False
    return any(header[at : at + 3] == b"mp4" for at in (8, *range(16, size, 4)))


def _is_webm(header: bytes) -> bool:
    """§6.2.2: an EBML header whose document type, behind a size of one byte to eight, is webm."""
    if not header.startswith(b"\x1a\x45\xdf\xa3"):
        return False
    at = header.find(b"\x42\x82", 4, 38)
    while at >= 0:
        if at + 2 < len(header):
            width = min(8, 9 - header[at + 2].bit_length())
            value = header[at + 2 + width :].lstrip(b"\0")
            if value.startswith(b"webm"):
                return True
        at = header.find(b"\x42\x82", at + 1, 38)
    return False


# §6.2.3, kbit/s by bit rate index, and Hz by sample rate index.
_MP3_RATES = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_MP25_RATES = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_SAMPLE_RATES = (44100, 48000, 32000)


def _is_mp3(header: bytes) -> bool:
    """§6.2.3, an MP3 without ID3: two frames, one behind the other."""
    if not _is_mp3_frame(header, 0):
        return False
    version, rates = (header[1] >> 3) & 3, header[2]
    is_first = version & 1
    rate = (_MP3_RATES if is_first else _MP25_RATES)[rates >> 4] * 1000
    size = rate * (144 if is_first else 72) // _SAMPLE_RATES[(rates >> 2) & 3] + ((rates >> 1) & 1)
    return size >= 4 and _is_mp3_frame(header, size)


def _is_mp3_frame(header: bytes, at: int) -> bool:
    frame = header[at : at + 4]
    if len(frame) < 4 or frame[0] != 0xFF or frame[1] & 0xE0 != 0xE0:
        return False
    layer = (frame[1] >> 1) & 3
    return layer == 1 and frame[2] >> 4 != 15 and (frame[2] >> 2) & 3 != 3
