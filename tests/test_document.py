"""What a body says as a document, by every engine: the tables of cases/pages.py, and what no page may break."""

from __future__ import annotations

import importlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlr.parse import document, engine_lxml, links, parse_html
from crawlr.parse.document import PARSERS, Document, read
from tests.cases import pages

URL = "http://h.test/d/p"
ALL_PAGES = {
    f"{table}: {name}": case
    for table in ("TAGS", "REFERENCES", "TEXT", "FOREIGN", "KINDS")
    for name, case in getattr(pages, table).items()
}


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


@pytest.fixture(params=PARSERS)
def parser(request: pytest.FixtureRequest) -> str:
    if request.param == "lexbor":
        pytest.importorskip("selectolax", reason="selectolax, an extra, is not installed")
    return request.param


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


def listed(page: document.ParsedPage) -> list[str]:
    """Links as cases/pages.py writes them."""
    paths = [(link, link.url.removeprefix("http://h.test")) for link in page.links]
    return [f"{link.kind} {path}{' nofollow' * link.nofollow}" for link, path in paths]


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


# ---- the tables


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


@pytest.mark.parametrize("name", ALL_PAGES)
def test_links_are_those_of_a_browsers_tree(name: str, parser: str) -> None:
    """Every engine finds the links that the HTML standard's tree has, in order and with their kinds.

    lexbor has that tree, in which an element may stand twice (adoption agency) or elsewhere (foster parenting).
    """
    markup, expected = ALL_PAGES[name]

    found = listed(parse_html(markup.encode(), url=URL, content_type="text/html; charset=utf-8", parser=parser))

    if parser == "lexbor":
        assert sorted(set(found)) == sorted(set(expected))
    else:
        assert found == expected


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


@pytest.mark.parametrize("name", pages.BASES)
def test_the_base_is_the_first_with_an_href(name: str, parser: str) -> None:
    """A base applies to the whole page wherever it stands; one that is no address leaves the page's own."""
    markup, base, expected = pages.BASES[name]

    page = parse_html(markup.encode(), url=URL, parser=parser)

    assert (page.base_url, listed(page)) == (f"http://h.test{base}", expected)


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


@pytest.mark.parametrize("name", pages.TITLES)
def test_the_title_is_the_first_outside_of_svg(name: str, parser: str) -> None:
    """Its text is collapsed, and tags in it are text."""
    markup, expected = pages.TITLES[name]

    page = parse_html(markup.encode(), url=URL, content_type="text/html; charset=utf-8", parser=parser)

    assert page.title == expected


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


def test_canonical_is_the_first_usable_one(parser: str) -> None:
    """Empty and foreign addresses name nothing; the next element may."""
    unusable = b"<link rel=canonical><link rel=canonical href=''><link rel=canonical href=mailto:x>"
    markup = b"<base href=/x/>" + unusable + b"<link rel='a CANONICAL' href=c#f><link rel=canonical href=no>"

    assert parse_html(markup, url=URL, parser=parser).canonical == "http://h.test/x/c"


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


def test_robots_are_those_for_all_and_for_us(parser: str) -> None:
    """meta robots and meta of our name count, in any case; none is both of its parts."""
    ours = b"<meta name=ROBOTS content='NoArchive, none'><meta name=Crawlr content='noindex'>"
    markup = ours + b"<meta name=other content=nosnippet>"

    page = parse_html(markup, url=URL, agent="crawlr", parser=parser)

    assert page.robots == ("noarchive", "nofollow", "noindex")


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


# ---- encodings


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


def test_queries_are_in_the_pages_encoding(parser: str) -> None:
    """The path is UTF-8 always, the query what the page is, and what it cannot say is a reference."""
    markup = '<a href="caf\u00e9?q=caf\u00e9&s=\u266f">'.encode("cp1252", "xmlcharrefreplace")

    page = parse_html(markup, url=URL, content_type="text/html; charset=windows-1252", parser=parser)

    assert page.encoding == "windows-1252"
    assert [link.url for link in page.links] == ["http://h.test/d/caf%C3%A9?q=caf%E9&s=%26%239839%3B"]


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


def test_an_href_is_remembered_for_its_encoding(parser: str) -> None:
    """The same href on a page of the same folder in another encoding is another address."""
    addresses = [
        parse_html(
            '<a href="?\u00e9"><a href="x?\u00e9">'.encode(codec),
            url=URL,
            content_type=f"text/html; charset={codec}",
            parser=parser,
        )
        .links[1]
        .url
        for codec in ("utf-8", "iso-8859-1", "utf-8")
    ]

    assert addresses == ["http://h.test/d/x?%C3%A9", "http://h.test/d/x?%E9", "http://h.test/d/x?%C3%A9"]


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-8-sig"])
def test_a_byte_order_mark_is_no_text(codec: str, parser: str) -> None:
    """Pages in UTF-16 with a mark are read, whatever the header says."""
    body = ("\ufeff" * (codec != "utf-8-sig") + "<title>\u00e9</title><a href=b>").encode(codec)

    page = parse_html(body, url=URL, content_type="text/html; charset=iso-8859-1", parser=parser)

    assert (page.title, listed(page)) == ("\u00e9", ["a /d/b"])


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


def test_a_meta_charset_does_not_change_text_that_is_decoded(parser: str) -> None:
    """What the header or the mark has decided, an engine does not decide again."""
    body = '<meta charset=windows-1251><title>\u00e9</title><a href="\u00e9">'.encode()

    page = parse_html(body, url=URL, content_type="text/html; charset=utf-8", parser=parser)

    assert (page.title, listed(page)) == ("\u00e9", ["a /d/%C3%A9"])


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


# ---- XHTML

XHTML = "application/xhtml+xml"
XHTML_PAGES = {
    "closed elements": (
        "<script src='s'/><title/><a href='b'/><textarea/><a href='c'/>",
        ["script /d/s", "a /d/b", "a /d/c"],
    ),
    "CDATA": ("<p><![CDATA[ <a href='no'> ]]></p><a href='b'/>", ["a /d/b"]),
    "a script in a section": ("<script><![CDATA[ '</script><a href=\"no\"/>' ]]></script><a href='b'/>", ["a /d/b"]),
    "a script with markup": ("<script>'<a href=\"no\"/>'</script><a href='b'/>", ["a /d/b"]),
    "processing instructions": ("<?x <a href='no'/> > ?><a href='b'/>", ["a /d/b"]),
    "prefixes": (
        (
            "<h:html xmlns:h='http://www.w3.org/1999/xhtml' xmlns:o='urn:o'>"
            "<h:a href='b'/><o:a href='no'/><x:a href='no'/>"
        ),
        ["a /d/b"],
    ),
    "a template": ("<template><a href='no'/></template><template/><a href='b'/>", ["a /d/b"]),
    "svg": ("<svg><title>no</title><base href='/no/'/><a href='b'/></svg>", ["a /d/b"]),
    "not well-formed": ("<p><a href=b><br>&nbsp;</a></div><a href='c'>x", ["a /d/b", "a /d/c"]),
    "references": ("<a href='?a=1&amp;b=&#x32;'/>", ["a /d/p?a=1&b=2"]),
    "a DOCTYPE": (
        "<!DOCTYPE html [ <!-- ' > ]> --> <!ENTITY x '<a href=\"no\"/>'> <?y ]> ?> ]><a href='b?&x;'/>",
        ["a /d/b?&x;"],
    ),
}


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


@pytest.mark.parametrize("name", XHTML_PAGES)
def test_xhtml_is_read_as_xml(name: str) -> None:
    """What is called XHTML closes its elements and hides text as XML does; entities stand for nothing."""
    markup, expected = XHTML_PAGES[name]

    assert listed(parse_html(markup.encode(), url=URL, content_type=XHTML)) == expected


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


def test_no_entity_of_xhtml_is_loaded_or_expanded(tmp_path: Path) -> None:
    """Neither a file nor a laugh comes into a link or a title."""
    secret = tmp_path / "secret"
    secret.write_text("SECRET", encoding="utf-8")
    laughs = "".join(f"<!ENTITY l{n + 1} '{f'&l{n};' * 10}'>" for n in range(9))
    body = (
        f"<!DOCTYPE html [<!ENTITY f SYSTEM '{secret.as_uri()}'><!ENTITY l0 'ha'>{laughs}]>"
        "<html><head><title>&f;&l9;</title></head><body><a href='/x?&f;'/><a href='/y?&l9;'/></body></html>"
    ).encode()

    page = parse_html(body, url=URL, content_type=XHTML)

    assert page.title == "&f;&l9;"
    assert [link.url for link in page.links] == ["http://h.test/x?&f;", "http://h.test/y?&l9;"]


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


# ---- what read gives besides


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


def test_read_gives_the_followed_kinds_only(parser: str) -> None:
    """Kinds are a filter, also between kinds that one element can have; facts are there whatever they are."""
    head = b"<title>t</title><link rel=canonical href=c><link rel=stylesheet href=s>"
    body = head + b"<a href=1><img src=2><video src=3 poster=4>"

    by_kind = {
        kinds: _read(body, parser=parser, follow=frozenset(kinds.split())) for kinds in ("a", "img", "link a", "")
    }

    found = {kinds: [(kind, url[-1]) for url, kind, _ in page.links] for kinds, page in by_kind.items()}
    assert found == {
        "a": [("a", "1")],
        "img": [("img", "2"), ("img", "4")],
        "link a": [("link", "c"), ("a", "1")],
        "": [],
    }
    assert {(page.title, page.canonical) for page in by_kind.values()} == {("t", "http://h.test/d/c")}


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


def test_read_says_where_the_time_went() -> None:
    """Three stages, none negative, no more than the call took."""
    begin = time.perf_counter()
    page = _read(b"<a href=b>" * 1000)
    total = time.perf_counter() - begin

    parts = (page.decode_seconds, page.parse_seconds, page.resolve_seconds)
    assert min(parts) > 0
    assert sum(parts) <= total


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


def test_read_refuses_what_is_not_html() -> None:
    """A body of another type is not parsed, and says so."""
    page = _read(b"%PDF-1.7 <a href=b>")

    assert (page.is_html, page.links, page.encoding) == (False, [], None)
    assert parse_html(b"%PDF-1.7 <a href=b>", url=URL).links == ()


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


def test_parse_html_without_a_type_takes_it_for_html() -> None:
    """A caller who asks for HTML gets HTML; a crawl sniffs (media_types)."""
    body = b"some words, and then <a href=b>"

    assert listed(parse_html(body, url=URL)) == ["a /d/b"]
    assert not _read(body, content_type=None).is_html


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


def test_an_unknown_parser_is_refused() -> None:
    """The message names what there is."""
    with pytest.raises(ValueError, match="no parser 'x': one of lxml, lexbor, scanner"):
        parse_html(b"", url=URL, parser="x")


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without selectolax the parser lexbor says how to get it."""
    monkeypatch.setitem(sys.modules, "selectolax.lexbor", None)
    monkeypatch.delitem(sys.modules, "crawlr.parse.engine_lexbor", raising=False)
    monkeypatch.delattr(importlib.import_module("crawlr.parse"), "engine_lexbor", raising=False)

    with pytest.raises(ImportError, match=r"lexbor needs the package selectolax: pip install 'crawlr\[fast\]'"):
        document._engine.__wrapped__("lexbor")


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


def test_the_fast_path_loads_no_network_and_no_database() -> None:
    """A parse process starts fast: what it imports is the parser and nothing of fetching."""
    code = (
        "import sys; from crawlr.parse import document, sitemaps; document.read(b'<a href=b>', url='http://h.test/',"
        " content_type='text/html', agent='x'); print([m for m in ('requests', 'urllib3', 'sqlite3', 'tqdm',"
        " 'tldextract', 'asyncio', 'selectolax') if m in sys.modules])"
    )

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)

    assert loaded.stdout.strip() == "[]"


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


# ---- nothing breaks it

MANY = 3_000


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


@pytest.mark.parametrize("levels", [300, 3_000, 100_000])
@pytest.mark.parametrize("tag", ["div", "b", "svg", "table", "template"])
def test_no_nesting_is_too_deep(tag: str, levels: int, parser: str) -> None:
    """Links below any nesting are found; an engine that gave up says so, and none of few levels does."""
    page = _read(f"<{tag}>".encode() * levels + f"</{tag}>".encode() * levels + b"<a href=b>", parser=parser)

    assert [url for url, _, _ in page.links] == ["http://h.test/d/b"]
    assert not (page.is_truncated and levels <= 3_000)


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


def test_a_page_too_deep_for_libxml2_says_so() -> None:
    """Where counting was worth it, the scanner reads the page, and the page says that the engine did not."""
    deep = b"<div>" * 30_000 + b"</b>" * 30_000 + b"<a href=b>"

    assert _read(deep, parser="lxml").is_truncated
    assert not _read(b"<div></div>" * 30_000 + b"<a href=b>", parser="lxml").is_truncated


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


@pytest.mark.parametrize(
    "construct", ["<p>{}", "<p title='{}'>", "<!--{}-->", "<script>{}</script>", "<title>{}</title>"]
)
def test_no_text_is_too_long(construct: str, parser: str) -> None:
    """Eleven million characters in one piece, beyond libxml2's usual limit, hide nothing that follows."""
    page = _read(construct.format("x" * 11_000_000).encode() + b"<a href=b>", parser=parser)

    assert ([url for url, _, _ in page.links], page.is_truncated) == (["http://h.test/d/b"], False)


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


def test_two_hundred_thousand_links(parser: str) -> None:
    """All are there, in order."""
    body = "".join(f"<a href={n}>x</a>" for n in range(200_000)).encode()

    page = _read(body, parser=parser)

    assert [url for url, _, _ in page.links] == [f"http://h.test/d/{n}" for n in range(200_000)]


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


def test_an_engine_that_ends_without_a_word_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """libxml2 may just stop (out of memory): then the scanner reads the page, and the page says so."""
    real = engine_lxml.etree.fromstring

    def stops_early(source: bytes, parser: object) -> object:
        return real(source[: len(source) // 2], parser)

    monkeypatch.setattr(engine_lxml.etree, "fromstring", stops_early)
    page = _read(b"".join(b"<a href=%d>" % n for n in range(100)), parser="lxml")

    assert (len(page.links), page.is_truncated) == (100, True)


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


def test_no_memory_is_a_memory_error_or_the_whole_page() -> None:
    """With little memory a page is whole, or flagged, or a MemoryError: links are never lost without a word."""
    code = """
import resource, sys, json
from crawlr.parse.document import read
body = b'<a class="x" href=b>' * 400_000
read(b'<a href=b>', url='http://h.test/', content_type='text/html', agent='x')
used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (int(sys.argv[1]) << 20),) * 2)
try:
    page = read(body, url='http://h.test/', content_type='text/html', agent='x')
    answer = [len(page.links), page.is_truncated]
except MemoryError:
    answer = 'MemoryError'
print(json.dumps(answer))
"""
    if not Path("/proc/self/statm").exists():
        pytest.skip("needs /proc to see the size of the process")

    answers = []
    for room in (40, 80, 160):
        ran = subprocess.run([sys.executable, "-c", code, str(room)], capture_output=True, text=True, timeout=60)
        answers.append(json.loads(ran.stdout.splitlines()[-1]) if ran.stdout else "MemoryError")

    assert all(answer == "MemoryError" or answer[0] == 400_000 for answer in answers), answers
    assert "MemoryError" in answers or any(answer[1] for answer in answers), (
        "there was memory enough; the test shows nothing"
    )


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


HARD: dict[str, Callable[[int], str]] = {
    "open and close": lambda n: "<div>" * n + "</b>" * n,
    "paragraphs": lambda n: "<span>" * n + "</p>" * n,
    "fonts": lambda n: "".join(f"<p><font x={i}>" for i in range(n)),
    "comments": lambda n: "<!--" * n,
    "quotes": lambda n: "<a href='" * n,
    "attributes": lambda n: "<a " + "".join(f"x{i}=1 " for i in range(n)) + "href=b>",
    "ampersands": lambda n: "<a href='" + "&amp" * n + "'>",
    "scripts": lambda n: "<script>" + "<!--<script>" * n,
    "svg": lambda n: "<svg>" + "<g>" * n + "</x>" * n,
    "html in svg": lambda n: "<svg><desc>" + "<p><span>" * n + "</b>" * n,
    "svgs": lambda n: "<svg></div></svg>" * n,
    "framesets": lambda n: "x<frameset>" * n,
    "srcset": lambda n: "<img srcset='" + "a (" * n + "'>",
    "refresh": lambda n: "<meta http-equiv=refresh content=x>" * n,
    "directives": lambda n: "<meta name=robots content='" + "unavailable_after," * n + "'>",
    "doctypes": lambda n: '<!DOCTYPE "' * n,
}


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


@pytest.mark.parametrize("content_type", ["text/html", XHTML])
@pytest.mark.parametrize("name", HARD)
def test_time_is_linear(name: str, content_type: str) -> None:
    """Eight times the page takes no more than some twenty times the time, on markup that others read in squares."""
    small, large = (HARD[name](n).encode() for n in (5_000, 40_000))

    times = [min(_seconds(body, content_type) for _ in range(3)) for body in (small, large)]

    assert times[1] < 0.1 or times[1] < 20 * times[0], times


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


def _seconds(body: bytes, content_type: str) -> float:
    begin = time.process_time()
    _read(body, content_type=content_type)
    return time.process_time() - begin


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


# ---- properties

PIECES = [
    "<a href=1>", '<a href="2" rel=nofollow>', "</a>", "<p>", "</p>", "<b>", "</b>", "<table>", "<td>",
    "</table>", "<svg>", "</svg>", "<math>", "<mi>", "</math>", "<desc>", "</desc>", "<title>", "</title>",
    "<title/>", "<style>", "</style>", "<style/>", "<script>", "</script>", "<script/>", "<!--", "-->", "<!-->",
    "<![CDATA[", "]]>", "<template>", "</template>", '<img srcset="3, 4 2x">', "<base href=/x/>", "<iframe>",
    "</iframe>", "<textarea>", "</textarea>", "<form action=5>", "</form>", "<link rel=next href=6>",
    '<meta http-equiv=refresh content="0;7">', "<frame src=8>", "<plaintext>", "<", ">", '"', "'", "=", "/", "&",
    "&amp;", "x", " ", "\n", "\x0c", "\x00", "<font color=1>", "</div>", "<div>", "<g>", "</g>", "<noscript>",
    "</noscript>", "<select>", "<option>", "<?x?>", "<!x>", "</",
]  # fmt: skip
MARKUP = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)
FRAMESETS = [
    "<frameset>", "</frameset>", "<frame src=1>", "<noframes>", "</noframes>", "<a href=2>", "<p>", "<li>",
    "<link rel=next href=3>", "<html>", "<head>", "</head>", "<title>x</title>", "<script>", "</script>",
    "<!--x-->", "<?x>", "<input type=hidden>", "<br>", "<form action=4>", "x", " ", "</html>",
]  # fmt: skip
DOCUMENTS = MARKUP | st.lists(st.sampled_from(FRAMESETS), max_size=12).map("".join)


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


@given(st.binary(max_size=300) | DOCUMENTS.map(str.encode))
@settings(deadline=None)
def test_no_body_is_too_strange(body: bytes) -> None:
    """Any bytes give a page, by every engine and as XHTML too, with absolute addresses only."""
    for name, content_type in [*((parser, "text/html") for parser in _installed()), ("lxml", XHTML), ("lxml", "")]:
        page = parse_html(body, url=URL, content_type=content_type or None, parser=name)

        assert all(link.url.startswith(("http://", "https://")) and "#" not in link.url for link in page.links)
        assert {link.kind for link in page.links} <= set(links.KINDS)


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


@given(DOCUMENTS)
@settings(deadline=None, max_examples=300)
def test_engines_agree_on_any_markup(markup: str) -> None:
    """The same distinct links and facts by every engine."""
    found = {name: _read(markup.encode(), parser=name) for name in _installed()}

    answers = {name: (set(page.links), page.base_url, page.title, page.robots) for name, page in found.items()}
    assert all(answer == answers["scanner"] for answer in answers.values()), answers
    assert not any(page.is_truncated for page in found.values())


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


@given(
    st.lists(
        st.sampled_from(["<a href=1>", "<p>", "</p>", "<b>", "</b>", "<svg>", "</svg>", "<img src=2>", "text", "<td>"])
    ),
    st.data(),
)
@settings(deadline=None)
def test_comments_and_white_space_change_no_link(parts: list[str], data: st.DataObject) -> None:
    """The same document with comments and spaces between its tags has the same links."""
    between = st.sampled_from(["", " ", "\n\t", "<!-- x -->", "<!-- <a href=no> -->", "<!---->", " <!-- --> "])
    filled = "".join(part + data.draw(between) for part in parts)

    for name in _installed():
        assert _read(filled.encode(), parser=name).links == _read("".join(parts).encode(), parser=name).links


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


def _installed() -> list[str]:
    return [name for name in PARSERS if name != "lexbor" or importlib.util.find_spec("selectolax")]


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


def _read(
    body: bytes, *, content_type: str | None = "text/html", parser: str = "lxml", follow: frozenset[str] | None = None
) -> Document:
    return read(body, url=URL, content_type=content_type, agent="crawlr", parser=parser, follow=follow)


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


# ---- the memory of addresses


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


def test_the_memory_of_addresses_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """When it is full it begins anew, long hrefs and those of one page only are never kept, and answers stay right."""
    monkeypatch.setattr(links, "_tables", {})
    monkeypatch.setattr(links, "_remembered", 0)
    monkeypatch.setattr(links, "_TABLE_LIMIT", 100)

    kept = []
    for number in range(50):
        body = "".join(f"<a href={number}-{n}><a href=?{n}><a href={'x' * 2000}>" for n in range(10)).encode()
        page = read(body, url=f"http://h.test/{number}/p", content_type="text/html", agent="x")
        assert [url for url, _, _ in page.links][1] == f"http://h.test/{number}/p?0"
        kept.append(sum(map(len, links._tables.values())))

    assert max(kept) <= 110
    assert kept[-1] == links._remembered


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


@pytest.mark.parametrize("href", ["", "?x", "#x", "http:", "http:?x", "HTTP:?x", "\t?x", "h\nttp:?x", " ", "\x01?x"])
def test_an_href_that_takes_from_its_own_page_is_not_remembered(href: str) -> None:
    """Two pages of one folder resolve it apart."""
    quoted = href.replace('"', "&quot;")
    body = f'<a href="{quoted}">'.encode()

    found = [
        [url for url, _, _ in read(body, url=url, content_type="text/html", agent="x").links]
        for url in ("http://h.test/d/p?a", "http://h.test/d/q?b", "https://h.test/d/r")
    ]

    assert found == [
        [resolved for resolved in [links.Resolver(url).resolve(href)] if resolved]
        for url in ("http://h.test/d/p?a", "http://h.test/d/q?b", "https://h.test/d/r")
    ]
    assert len({str(each) for each in found}) == 3


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


# ---- public cases and whole documentation trees, where they are


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


SHARED = Path(os.environ.get("CRAWLR_SHARED", Path(__file__).resolve().parents[2] / "shared"))


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


@pytest.mark.parametrize("topic", ["links", "href_attribute", "meta_refresh", "srcset", "base_url"])
def test_public_cases_by_every_engine(topic: str, parser: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The strict public cases pass by each engine, not only by the default one."""
    runner = SHARED / "conformance" / "run.py"
    if not runner.exists():
        pytest.skip(f"no public cases at {SHARED}")
    spec = importlib.util.spec_from_file_location("public_cases", runner)
    assert spec
    assert spec.loader
    cases = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cases)
    monkeypatch.setattr(cases, "parse_html", lambda body, **keywords: parse_html(body, parser=parser, **keywords))

    score = cases.Score(topic)
    for case in cases.load(runner.parent)[topic]:
        score.one(case, cases.TESTS[topic])

    assert [failure["id"] for failure in score.failures if failure["strict"]] == []


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


TREES = ("/usr/share/doc/python3/html", "/usr/share/doc/openjdk-17-jre-headless/api")


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


@pytest.mark.long
@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("mutations", [0, 3])
@pytest.mark.timeout(1800)
def test_engines_agree_on_real_pages(tree: str, mutations: int) -> None:
    """Every page of the installed documentation, and damaged copies, give the same links by every engine."""
    files = sorted(Path(tree).glob("**/*.html"))
    if not files:
        pytest.skip(f"no documentation in {tree}")
    source = random.Random(7)

    for path in files:
        body = path.read_bytes()
        for copy in [body] if not mutations else [_damaged(body, source) for _ in range(mutations)]:
            found = {name: _read(copy, parser=name) for name in _installed()}
            answers = {n: (set(p.links), p.base_url, p.title, p.canonical, p.robots) for n, p in found.items()}
            assert all(answer == answers["scanner"] for answer in answers.values()), path


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


PIECES = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
PIECES += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


DAMAGE = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
DAMAGE += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


def _damaged(body: bytes, source: random.Random) -> bytes:
    """A copy with bytes changed, cut out, put in and doubled."""
    copy = bytearray(body)
    for _ in range(source.choice((1, 3, 10, 100))):
        at = source.randrange(len(copy) + 1)
        match source.randrange(4):
            case 0:
                copy[at : at + 1] = source.choice(DAMAGE)
            case 1:
                del copy[at : at + source.randrange(1, 20)]
            case 2:
                copy[at:at] = source.choice(DAMAGE)
            case _:
                copy[at:at] = copy[(begin := source.randrange(len(copy))) : begin + source.randrange(200)]
    return bytes(copy)
