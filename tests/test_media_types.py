"""What is HTML and what is not: by name, and by first bytes (the tables of the MIME Sniffing standard)."""

from __future__ import annotations

import pytest

from crawlr.parse.media_types import markup_of

HTML = b"<!DOCTYPE html><p>x"
TEXT = b"Words, <a href=b>tags</a>."
XHTML = b"<?xml version='1.0'?><!-- x --><!DOCTYPE html [<!ENTITY a 'b'>]>\n<html xmlns='http://www.w3.org/1999/xhtml'>"

# header: what HTML, text and XHTML are read as
NAMES = {
    "text/html": ("html", "html", "html"),
    "TEXT/HTML ; charset=x": ("html", "html", "html"),
    "text/html;": ("html", "html", "html"),
    "application/xhtml+xml": ("xhtml", "xhtml", "xhtml"),
    "application/xml": (None, None, "xhtml"),
    "text/xml; charset=utf-8": (None, None, "xhtml"),
    "image/svg+xml": (None, None, "xhtml"),
    "text/plain": (None, None, None),
    "application/octet-stream": (None, None, None),
    "image/png": (None, None, None),
    "application/json": (None, None, None),
    # several values, the last that is one counts; */* only alone
    "text/plain, text/html": ("html", "html", "html"),
    "text/html, text/plain": (None, None, None),
    'text/html; x=",text/plain"': ("html", "html", "html"),
    "text/html, */*": ("html", "html", "html"),
    "text/html, nonsense": ("html", "html", "html"),
    # these are sniffed
    None: ("html", None, "xhtml"),
    "": ("html", None, "xhtml"),
    "*/*": ("html", None, "xhtml"),
    "nonsense": ("html", None, "xhtml"),
    "text": ("html", None, "xhtml"),
    "text/": ("html", None, "xhtml"),
    "te xt/html": ("html", None, "xhtml"),
    "unknown/unknown": ("html", None, "xhtml"),
    "application/unknown": ("html", None, "xhtml"),
}


@pytest.mark.parametrize("content_type", NAMES)
def test_the_type_decides_what_is_read(content_type: str | None) -> None:
    """Declared HTML is HTML, XML is XHTML by its root, an unknown type is sniffed, all else is none."""
    found = tuple(markup_of(body, content_type) for body in (HTML, TEXT, XHTML))

    assert found == NAMES[content_type]


TAGS = ["!DOCTYPE HTML", "HTML", "HEAD", "SCRIPT", "IFRAME", "H1", "DIV", "FONT", "TABLE", "A", "STYLE", "TITLE", "B"]
TAGS += ["BODY", "BR", "P"]


@pytest.mark.parametrize("tag", TAGS)
def test_unknown_html_is_told_by_its_first_tag(tag: str) -> None:
    """Every tag of the table, in any case, behind white space, before a space or `>`; and no longer name."""
    for text in (f"<{tag}>", f"<{tag.lower()} x>", f"\t\n\x0c\r <{tag}>", f"\ufeff<{tag}>"):
        assert markup_of(text.encode(), None) == "html", text
    for text in (f"<{tag}x>", f"<{tag}/>", f"<{tag}", f"x<{tag}>"):
        assert markup_of(text.encode(), None) is None, text


def test_other_unknown_markup() -> None:
    """A comment is HTML, other tags are plain text, and so is nothing at all; UTF-16 is read by its mark."""
    assert markup_of(b" <!--x", None) == "html"
    assert [markup_of(body, None) for body in (b"<main>", b"", b"  ", b"<", b"{}")] == [None] * 5
    assert markup_of("\ufeff <html>".encode("utf-16-le"), None) == "html"
    assert markup_of("\ufeff<p >".encode("utf-16-be"), None) == "html"
    assert markup_of("\ufeffwords <p>".encode("utf-16-be"), None) is None


def test_xml_of_other_vocabularies_is_no_html() -> None:
    """Feeds, sitemaps, pictures; with and without a prefix; the root has to begin early."""
    assert markup_of(b"<?xml version='1.0'?><rss><html>", None) is None
    assert markup_of(b"<urlset/>", "text/xml") is None
    assert markup_of(b"<h:HTML xmlns:h='x'>", "text/xml") == "xhtml"
    assert markup_of("\ufeff<?xml version='1.0'?><html>".encode("utf-16-le"), "application/xml") == "xhtml"
    assert markup_of(b"<!--" + b"x" * 100_000 + b"--><html>", "text/xml") is None


def test_a_feed_called_html_is_none() -> None:
    """MIME Sniffing §8.2: the first element decides, behind declarations and comments."""
    for root in (b"<rss version='2.0'>", b"<feed xmlns='x'>", b"<rdf:RDF>", b"<RSS>"):
        assert markup_of(root, "text/html") is None
        assert markup_of(b"\n<?xml version='1.0'?>\n<!-- x -->" + root, "text/html") is None
    assert markup_of(b"<?xml version='1.0'?><html>", "text/html") == "html"
    assert markup_of(b"<rssx>", "text/html") == "html"


MP3_FRAME = b"\xff\xfb\x90\x00"  # MPEG 1 layer III, 128 kbit/s, 44,100 Hz: 417 bytes
SIGNATURES = {
    "pdf": b"%PDF-1.4\n<a href='/x'>",
    "postscript": b"%!PS-Adobe-3.0",
    "icon": b"\0\0\1\0\1\0",
    "cursor": b"\0\0\2\0\1\0",
    "bmp": b"BM\x36\0\0\0",
    "gif87": b"GIF87a",
    "gif89": b"GIF89a",
    "webp": b"RIFF\x24\0\0\0WEBPVP8 ",
    "png": b"\x89PNG\r\n\x1a\n",
    "jpeg": b"\xff\xd8\xff\xe0",
    "aiff": b"FORM\0\0\1\0AIFF",
    "mp3 with ID3": b"ID3\3\0\0",
    "mp3": MP3_FRAME + b"\0" * 413 + MP3_FRAME,
    "ogg": b"OggS\0",
    "midi": b"MThd\0\0\0\6",
    "avi": b"RIFF\1\2\3\4AVI LIST",
    "wave": b"RIFF\1\2\3\4WAVEfmt ",
    "mp4": b"\0\0\0\x18ftypmp42\0\0\0\0",
    "mp4, compatible brand": b"\0\0\0\x18ftypisom\0\0\0\0iso2mp41",
    "webm": b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\1\x42\x82\x84webm",
    "eot": b"x" * 34 + b"LP",
    "ttf": b"\0\1\0\0",
    "otf": b"OTTO\0",
    "ttc": b"ttcf\0",
    "woff": b"wOFF\0",
    "woff2": b"wOF2\0",
    "gzip": b"\x1f\x8b\x08",
    "zip": b"PK\3\4",
    "rar": b"Rar!\x1a\7\0",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_other_formats_are_told_by_their_first_bytes(name: str) -> None:
    """Whatever the server calls them."""
    body = SIGNATURES[name] + b"\0<a href=b>"

    assert [markup_of(body, kind) for kind in ("text/html", "application/xhtml+xml", None)] == [None, None, None]


NO_SIGNATURES = {
    "words that begin like a bitmap": b"BMW builds <a href=b>cars</a>",
    "words that begin like a font": b"OTTO and wOFF",
    "words that begin like ID3": b"ID3 tags, explained",
    "nothing but zeros": b"\0" * 256,
    "zeros and a tag": b"\0\0\0<a href=b>",
    "a PDF named further on": b"See %PDF-1.4",
    "one frame of sound is a coincidence": MP3_FRAME + b"x" * 500,
    "half of a film's head": b"\0\0\0\x18ftypisom\0\0\0\0iso2avc1",
    "EBML that is no webm": b"\x1a\x45\xdf\xa3\x42\x82\x88matroska",
    "a byte order mark": b"\xff\xfe<\0p\0>\0",
    "empty": b"",
}


@pytest.mark.parametrize("name", NO_SIGNATURES)
def test_declared_html_is_believed_where_nothing_speaks_against_it(name: str) -> None:
    """A few letters prove nothing of what is called text, nor do bytes that no text has."""
    assert markup_of(NO_SIGNATURES[name], "text/html") == "html"
