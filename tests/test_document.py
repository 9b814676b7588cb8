"""What a body says as a document, by every engine: the tables of cases/pages.py, encodings, XHTML, the public cases."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crawlr.parse import document, parse_html
from tests.cases import pages
from tests.reading import INSTALLED, URL, XHTML, read_page

ALL_PAGES = {
    f"{table}: {name}": case
    for table in ("TAGS", "REFERENCES", "TEXT", "FOREIGN", "KINDS")
    for name, case in getattr(pages, table).items()
}


@pytest.fixture(params=INSTALLED)
def parser(request: pytest.FixtureRequest) -> str:
    return request.param


def listed(page: document.ParsedPage) -> list[str]:
    """Links as cases/pages.py writes them."""
    paths = [(link, link.url.removeprefix("http://h.test")) for link in page.links]
    return [f"{link.kind} {path}{' nofollow' * link.nofollow}" for link, path in paths]


# ---- the tables


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


@pytest.mark.parametrize("name", pages.BASES)
def test_the_base_is_the_first_with_an_href(name: str, parser: str) -> None:
    """A base applies to the whole page wherever it stands; one that is no address leaves the page's own."""
    markup, base, expected = pages.BASES[name]

    page = parse_html(markup.encode(), url=URL, parser=parser)

    assert (page.base_url, listed(page)) == (f"http://h.test{base}", expected)


@pytest.mark.parametrize("name", pages.TITLES)
def test_the_title_is_the_first_outside_of_svg(name: str, parser: str) -> None:
    """Its text is collapsed, and tags in it are text."""
    markup, expected = pages.TITLES[name]

    page = parse_html(markup.encode(), url=URL, content_type="text/html; charset=utf-8", parser=parser)

    assert page.title == expected


def test_canonical_is_the_first_usable_one(parser: str) -> None:
    """Empty and foreign addresses name nothing; the next element may."""
    unusable = b"<link rel=canonical><link rel=canonical href=''><link rel=canonical href=mailto:x>"
    markup = b"<base href=/x/>" + unusable + b"<link rel='a CANONICAL' href=c#f><link rel=canonical href=no>"

    assert parse_html(markup, url=URL, parser=parser).canonical == "http://h.test/x/c"


def test_robots_are_those_for_all_and_for_us(parser: str) -> None:
    """meta robots and meta of our name count, in any case; none is both of its parts."""
    ours = b"<meta name=ROBOTS content='NoArchive, none'><meta name=Crawlr content='noindex'>"
    markup = ours + b"<meta name=other content=nosnippet>"

    page = parse_html(markup, url=URL, agent="crawlr", parser=parser)

    assert page.robots == ("noarchive", "nofollow", "noindex")


# ---- encodings


def test_queries_are_in_the_pages_encoding(parser: str) -> None:
    """The path is UTF-8 always, the query what the page is, and what it cannot say is a reference."""
    markup = '<a href="caf\u00e9?q=caf\u00e9&s=\u266f">'.encode("cp1252", "xmlcharrefreplace")

    page = parse_html(markup, url=URL, content_type="text/html; charset=windows-1252", parser=parser)

    assert page.encoding == "windows-1252"
    assert [link.url for link in page.links] == ["http://h.test/d/caf%C3%A9?q=caf%E9&s=%26%239839%3B"]


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


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-8-sig"])
def test_a_byte_order_mark_is_no_text(codec: str, parser: str) -> None:
    """Pages in UTF-16 with a mark are read, whatever the header says."""
    body = ("\ufeff" * (codec != "utf-8-sig") + "<title>\u00e9</title><a href=b>").encode(codec)

    page = parse_html(body, url=URL, content_type="text/html; charset=iso-8859-1", parser=parser)

    assert (page.title, listed(page)) == ("\u00e9", ["a /d/b"])


def test_a_meta_charset_does_not_change_text_that_is_decoded(parser: str) -> None:
    """What the header or the mark has decided, an engine does not decide again."""
    body = '<meta charset=windows-1251><title>\u00e9</title><a href="\u00e9">'.encode()

    page = parse_html(body, url=URL, content_type="text/html; charset=utf-8", parser=parser)

    assert (page.title, listed(page)) == ("\u00e9", ["a /d/%C3%A9"])


# ---- XHTML

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


@pytest.mark.parametrize("name", XHTML_PAGES)
def test_xhtml_is_read_as_xml(name: str) -> None:
    """What is called XHTML closes its elements and hides text as XML does; entities stand for nothing."""
    markup, expected = XHTML_PAGES[name]

    assert listed(parse_html(markup.encode(), url=URL, content_type=XHTML)) == expected


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


# ---- what read gives besides


def test_read_gives_the_followed_kinds_only(parser: str) -> None:
    """Kinds are a filter, also between kinds that one element can have; facts are there whatever they are."""
    head = b"<title>t</title><link rel=canonical href=c><link rel=stylesheet href=s>"
    body = head + b"<a href=1><img src=2><video src=3 poster=4>"

    by_kind = {
        kinds: read_page(body, parser=parser, follow=frozenset(kinds.split())) for kinds in ("a", "img", "link a", "")
    }

    found = {kinds: [(kind, url[-1]) for url, kind, _ in page.links] for kinds, page in by_kind.items()}
    assert found == {
        "a": [("a", "1")],
        "img": [("img", "2"), ("img", "4")],
        "link a": [("link", "c"), ("a", "1")],
        "": [],
    }
    assert {(page.title, page.canonical) for page in by_kind.values()} == {("t", "http://h.test/d/c")}


def test_read_says_where_the_time_went() -> None:
    """Three stages, none negative, no more than the call took."""
    begin = time.perf_counter()
    page = read_page(b"<a href=b>" * 1000)
    total = time.perf_counter() - begin

    parts = (page.decode_seconds, page.parse_seconds, page.resolve_seconds)
    assert min(parts) > 0
    assert sum(parts) <= total


def test_read_refuses_what_is_not_html() -> None:
    """A body of another type is not parsed, and says so."""
    page = read_page(b"%PDF-1.7 <a href=b>")

    assert (page.is_html, page.links, page.encoding) == (False, [], None)
    assert parse_html(b"%PDF-1.7 <a href=b>", url=URL).links == ()


def test_parse_html_without_a_type_takes_it_for_html() -> None:
    """A caller who asks for HTML gets HTML; a crawl sniffs (media_types)."""
    body = b"some words, and then <a href=b>"

    assert listed(parse_html(body, url=URL)) == ["a /d/b"]
    assert not read_page(body, content_type=None).is_html


def test_an_unknown_parser_is_refused() -> None:
    """The message names what there is."""
    with pytest.raises(ValueError, match="no parser 'x': one of lxml, lexbor, scanner"):
        parse_html(b"", url=URL, parser="x")


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without selectolax the parser lexbor says how to get it."""
    monkeypatch.setitem(sys.modules, "selectolax.lexbor", None)
    monkeypatch.delitem(sys.modules, "crawlr.parse.engine_lexbor", raising=False)
    monkeypatch.delattr(importlib.import_module("crawlr.parse"), "engine_lexbor", raising=False)

    with pytest.raises(ImportError, match=r"lexbor needs the package selectolax: pip install 'crawlr\[fast\]'"):
        document._engine.__wrapped__("lexbor")


def test_the_fast_path_loads_no_network_and_no_database() -> None:
    """A parse process starts fast: what it imports is the parser and nothing of fetching."""
    code = (
        "import sys; from crawlr.parse import document, sitemaps; document.read(b'<a href=b>', url='http://h.test/',"
        " content_type='text/html', agent='x'); print([m for m in ('requests', 'urllib3', 'sqlite3', 'tqdm',"
        " 'tldextract', 'asyncio', 'selectolax') if m in sys.modules])"
    )

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)

    assert loaded.stdout.strip() == "[]"


# ---- public cases, where they are


SHARED = Path(os.environ.get("CRAWLR_SHARED", Path(__file__).resolve().parents[2] / "shared"))


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
