"""What sitemaps list: formats, damage, and what is refused."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlr.parse import sitemaps
from crawlr.parse.sitemaps import Sitemap, read
from tests.growth import assert_linear

URL = "http://h.test/d/sitemap.xml"
H = "http://h.test"


def _read(text: str | bytes) -> Sitemap:
    return read(text.encode() if isinstance(text, str) else text, url=URL)


def urlset(*entries: str) -> str:
    return "<urlset>" + "".join(f"<url>{each}</url>" for each in entries) + "</urlset>"


def loc(text: str) -> str:
    return f"<loc>{text}</loc>"


# ---- whole files: (text, kind, paths at h.test or addresses)

WHOLE = {
    "urlset": ('<?xml version="1.0" encoding="UTF-8"?>' + urlset(loc(f"{H}/1"), loc(f"{H}/2")), "urlset", ["/1", "/2"]),
    "index": (
        f"<sitemapindex><sitemap>{loc(f'{H}/1.xml')}<lastmod>2004</lastmod></sitemap></sitemapindex>",
        "index",
        ["/1.xml"],
    ),
    "empty": ("<urlset/>", "urlset", []),
    "blanks before": ("\n\r\t  \n" + urlset(loc(f"{H}/1")), "urlset", ["/1"]),
    "mark and blanks before": ("\ufeff\n" + urlset(loc(f"{H}/1")), "urlset", ["/1"]),
    "a declaration not at the start": ("\n<?xml version='1.0'?>" + urlset(loc(f"{H}/1")), "urlset", ["/1"]),
    "comments and instructions": (
        f"<!-- <loc>no</loc> --><?x <loc>no</loc>?><urlset><!-- > --><url>{loc(f'{H}/1')}</url></urlset><!-- -->",
        "urlset",
        ["/1"],
    ),
    "any namespace": (f"<urlset xmlns='urn:any'><url>{loc(f'{H}/1')}</url></urlset>", "urlset", ["/1"]),
    "prefixes": (f"<s:urlset xmlns:s='x'><s:url><s:loc>{H}/1</s:loc></s:url></s:urlset>", "urlset", ["/1"]),
    "any case": (f"<URLSET><Url><LOC>{H}/1</LOC></Url></URLSET>", "urlset", ["/1"]),
    "extensions": (
        urlset(
            f"{loc(f'{H}/1')}<image:image><image:loc>{H}/no</image:loc></image:image><xhtml:link href='/no'/>"
            "<video:player_loc>/no</video:player_loc>"
        ),
        "urlset",
        ["/1"],
    ),
    "an extension's loc in the entry": (urlset(f"<image:loc>{H}/no</image:loc>{loc(f'{H}/1')}"), "urlset", ["/1"]),
    "loc of no entry": (f"<urlset>{loc(f'{H}/no')}<x>{loc(f'{H}/no')}</x></urlset>", "urlset", []),
    "unknown elements": (urlset(f"<x><y a='>'/></x>{loc(f'{H}/1')}"), "urlset", ["/1"]),
    "two in an entry": (urlset(loc(f"{H}/1") + loc(f"{H}/2")), "urlset", ["/1", "/2"]),
    "an entry without loc": (
        f"<sitemapindex><sitemap>\n{H}/1?a=1&amp;b\n</sitemap><sitemap>no</sitemap></sitemapindex>",
        "index",
        ["/1?a=1&b"],
    ),
    "repeated": (urlset(loc(f"{H}/1"), loc(f"{H}/2"), loc(f"{H}/1#x")), "urlset", ["/1", "/2"]),
    "text": (
        f"{H}/1\r\n\r\n  {H}/2\t\nno address\nHTTP://H.test/3\r{H}/4 words\nftp://h.test/\n",
        "text",
        ["/1", "/2", "/3"],
    ),
    "text with a mark": (f"\ufeff{H}/1", "text", ["/1"]),
    "no text": ("this is a bogus sitemap", "invalid", []),
    "nothing": ("", "invalid", []),
    "blanks": (" \n", "invalid", []),
    "HTML": (f"<!DOCTYPE html><html><body>{loc(f'{H}/no')}", "invalid", []),
    "an entry alone": (f"<url>{loc(f'{H}/no')}</url>", "invalid", []),
    "an end tag": ("</urlset>", "invalid", []),
    "RSS": (
        (
            f"<!DOCTYPE rss PUBLIC '-//x//DTD' 'http://x.test/r.dtd'><rss><channel><link>{H}/no</link>"
            f"<atom:link rel='self' href='/no'/><item><title>x</title><link>{H}/1</link><guid>{H}/no</guid>"
            "<source url='/no'/></item><item><link> /2 </link></item>"
            "<item><guid isPermaLink='false'>/no</guid></item><item><guid>/3</guid></item></channel></rss>"
        ),
        "feed",
        ["/1", "/2", "/3"],
    ),
    "RDF": (f"<rdf:RDF><channel><link>/no</link></channel><item><link>{H}/1</link></item></rdf:RDF>", "feed", ["/1"]),
    "Atom": (
        (
            "<feed><link href='/no'/><entry><link href='/1?a&amp;b'/><link rel='edit' href='/no'/>"
            "<link rel='ALTERNATE' href=\"/2\"/>"
            "<id>/no</id></entry></feed>"
        ),
        "feed",
        ["/1?a&b", "/2"],
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_files(name: str) -> None:
    """Each format gives its addresses in order, each once, and nothing is said to be damaged."""
    text, kind, paths = WHOLE[name]

    assert _read(text) == Sitemap(kind=kind, urls=tuple(H + path for path in paths), damaged=False)


# ---- addresses: what an element holds -> (addresses, damaged)

ADDRESSES = {
    f"{H}/a?b=1&amp;c=&#50;&#x33;": ([f"{H}/a?b=1&c=23"], False),
    f"{H}/&lt;&gt;&quot;&apos;": ([f"{H}/%3C%3E%22'"], False),
    f"<![CDATA[{H}/?a&b]]>": ([f"{H}/?a&b"], False),
    f"{H}/a<![CDATA[?b&c]]>d": ([f"{H}/a?b&cd"], False),
    f"{H}/<!-- no -->a": ([f"{H}/a"], False),
    f"\n  {H}/a\n ": ([f"{H}/a"], False),
    f"\u00a0{H}/a\u2000\ufeff": ([f"{H}/a"], False),
    "/a": ([f"{H}/a"], False),
    "a": ([f"{H}/d/a"], False),
    "//o.test/a": (["http://o.test/a"], False),
    "https://o.test/a": (["https://o.test/a"], False),
    "http://u:p@h.test/a#f": ([f"{H}/a"], False),
    f"{H}/\u00e9?\u00e9": ([f"{H}/%C3%A9?%C3%A9"], False),
    f"{H}/a%2fb": ([f"{H}/a%2fb"], False),
    "": ([], False),
    " \n": ([], False),
    "ftp://h.test/": ([], False),
    "http://[::1/": ([], False),
    "<xi:include href='file:///etc/passwd' parse='text'/>": ([], False),
    f"<url><![CDATA[{H}/a]]></url>": ([f"{H}/a"], False),
    # not well-formed: an address that is sure, or none
    f"{H}/?a=1&b=2&copy=3": ([f"{H}/?a=1&b=2&copy=3"], True),
    f"{H}/?a&": ([f"{H}/?a&"], True),
    f"{H}/?a&amp": ([f"{H}/?a&amp"], True),
    f"{H}/&nbsp;a": ([], True),
    f"{H}/&a;": ([], True),
    f"{H}/&#0;": ([], True),
    f"{H}/&#xD800;": ([], True),
    f"{H}/&#x110000;": ([], True),
    f"{H}/&#99999999999999999999;": ([], True),
    f"{H}/a<b": ([], True),
    f"{H}/a<b/>c": ([], True),
    f"{H}/a</b>c": ([], True),
    f"{H}/a<b>c": ([], True),
}


@pytest.mark.parametrize("text", ADDRESSES)
def test_addresses(text: str) -> None:
    """References, sections, white space; what is not well-formed gives the address that was meant, or none."""
    expected, is_damaged = ADDRESSES[text]

    found = _read(urlset(loc(text), loc(f"{H}/next")))

    assert (list(found.urls), found.damaged) == ([*expected, f"{H}/next"], is_damaged)


# ---- damage

CUT = {
    "in an address": f"<urlset><url>{loc(f'{H}/1')}</url><url><loc>{H}/no",
    "in an end tag": f"<urlset><url>{loc(f'{H}/1')}</url><url><loc>{H}/no</lo",
    "in an entry": f"<urlset><url>{loc(f'{H}/1')}<las",
    "behind an entry": f"<urlset><url>{loc(f'{H}/1')}</url>\n",
    "in a comment": f"<urlset><url>{loc(f'{H}/1')}</url><!-- <url>{loc(f'{H}/no')}</url>",
    "in a section": f"<urlset><url>{loc(f'{H}/1')}</url><url><loc><![CDATA[{H}/no",
    "in an instruction": f"<urlset><url>{loc(f'{H}/1')}</url><?x {loc(f'{H}/no')}",
    "in a tag": f"<urlset><url>{loc(f'{H}/1')}</url><url a='",
}


@pytest.mark.parametrize("name", CUT)
def test_a_file_that_breaks_off_keeps_its_whole_entries(name: str) -> None:
    """And says so; half an address is none."""
    assert _read(CUT[name]) == Sitemap(kind="urlset", urls=(f"{H}/1",), damaged=True)


WRONG = {
    "an end tag missing": (f"<urlset><url><loc>{H}/no</url><url>{loc(f'{H}/1')}</url></urlset>", ["/1"]),
    "two end tags missing": (f"<urlset><url><loc>{H}/no<url>{loc(f'{H}/1')}</url></urlset>", ["/1"]),
    "a stray end tag": (f"<urlset></x><url>{loc(f'{H}/1')}</url></urlset>", ["/1"]),
    "a stray <": (f"<urlset>< <url>{loc(f'{H}/1')}</url></urlset>", ["/1"]),
    "a bad attribute": (f"<urlset><url a='<'>{loc(f'{H}/no')}</url><url>{loc(f'{H}/1')}</url></urlset>", ["/1"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_fault_costs_no_more_than_its_entry(name: str) -> None:
    """What follows is read."""
    text, paths = WRONG[name]

    found = _read(text)

    assert (found.urls, found.damaged) == (tuple(H + path for path in paths), True)


def test_bytes_that_are_no_text_cost_their_entry() -> None:
    """In a file that says UTF-8: which address was meant, nobody knows."""
    body = b"<?xml version='1.0' encoding='utf-8'?>" + urlset(loc(f"{H}/caf~"), loc(f"{H}/1")).encode().replace(
        b"~", b"\xe9"
    )

    assert _read(body) == Sitemap(kind="urlset", urls=(f"{H}/1",), damaged=True)


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "iso-8859-1"])
def test_encodings(codec: str) -> None:
    """By mark, by declaration, by default."""
    mark = "\ufeff" if codec in ("utf-16-le", "utf-16-be") else ""
    text = f"{mark}<?xml version='1.0' encoding='{codec.removesuffix('-sig')}'?>" + urlset(loc(f"{H}/caf\u00e9"))

    assert _read(text.encode(codec)).urls == (f"{H}/caf%C3%A9",)


# ---- entities

LAUGHS = "".join(f"<!ENTITY l{n + 1} '{f'&l{n};' * 10}'>" for n in range(9))


def test_no_entity_is_loaded_or_expanded(tmp_path: Path) -> None:
    """Entries that use one are left out, the others stay, and the file counts as damaged."""
    secret = tmp_path / "secret"
    secret.write_text("SECRET", encoding="utf-8")
    files = f"<!ENTITY f SYSTEM '{secret.as_uri()}'><!ENTITY % p SYSTEM 'x'>%p;"
    dtd = f"<!DOCTYPE urlset [{files}<!ENTITY l0 'ha'>{LAUGHS}]>"

    found = _read(dtd + urlset(loc(f"{H}/&f;"), loc(f"{H}/&l9;"), loc("&l0;"), loc(f"{H}/1")))

    assert found == Sitemap(kind="urlset", urls=(f"{H}/1",), damaged=True)


def test_a_doctype_without_entities_does_no_harm() -> None:
    """It is run over, with its subset."""
    text = "<!DOCTYPE urlset SYSTEM 'x.dtd' [ <!-- ]> --> <!ELEMENT url (loc)> ]>" + urlset(loc(f"{H}/1"))

    assert _read(text) == Sitemap(kind="urlset", urls=(f"{H}/1",), damaged=False)


# ---- compressed

FILE = urlset(*(loc(f"{H}/{n}") for n in range(1000))).encode()


def test_gzip_is_told_by_its_bytes() -> None:
    """Once or twice, with something behind it, in members, as text: the name does not matter."""
    half = len(FILE) // 2
    packed = {
        "once": gzip.compress(FILE),
        "twice": gzip.compress(gzip.compress(FILE)),
        "junk": gzip.compress(FILE) + b"junk",
        "members": gzip.compress(FILE[:half]) + gzip.compress(FILE[half:]),
    }

    assert {name: (len(_read(body).urls), _read(body).damaged) for name, body in packed.items()} == dict.fromkeys(
        packed, (1000, False)
    )
    assert _read(gzip.compress(f"{H}/1\n{H}/2".encode())).urls == (f"{H}/1", f"{H}/2")


def test_a_cut_gzip_gives_what_it_can() -> None:
    """Whole entries before the cut; of a text file whole lines."""
    found = _read(gzip.compress(FILE)[:-400])

    assert 0 < len(found.urls) < 1000
    assert found == Sitemap(kind="urlset", urls=tuple(f"{H}/{n}" for n in range(len(found.urls))), damaged=True)

    deflated = zlib.compressobj(0, wbits=31)
    lines = deflated.compress(f"{H}/1\n{H}/22".encode()) + deflated.flush(zlib.Z_SYNC_FLUSH)
    assert _read(lines) == Sitemap(kind="text", urls=(f"{H}/1",), damaged=True)


def test_a_bomb_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """What unpacks to more than the limit is read up to it; so is what is larger without being packed."""
    monkeypatch.setattr(sitemaps, "MAX_BYTES", 10_000)

    for body in (gzip.compress(FILE), FILE):
        found = _read(body)
        assert found.damaged
        assert 100 < len(found.urls) < 1000


# ---- properties

HARD: dict[str, Callable[[int], str]] = {
    "comments": lambda n: "<urlset>" + "<!--" * n,
    "quotes": lambda n: "<urlset>" + '<a "' * n,
    "doctypes": lambda n: '<!DOCTYPE "' * n + "<urlset>",
    "doctypes inside": lambda n: "<urlset>" + '<!DOCTYPE "' * n,
    "open": lambda n: "<urlset>" + "<a>" * n + "</b>" * n,
    "nested": lambda n: "<urlset>" + "<url><loc>" * n,
    "address and elements": lambda n: "<urlset><url><loc>" + "x" * n + "<a/>" * n,
    "blanks and elements": lambda n: "<urlset><url><loc>" + " " * n + "<a/>" * n,
    "less than": lambda n: "<urlset>" + "<" * n,
    "ampersands": lambda n: "<urlset><url><loc>" + "&" * n + "</loc>",
    "entries": lambda n: "<urlset>" + "".join(f"<url><loc>{i}</loc></url>" for i in range(n)),
    "lines": lambda n: "".join(f"{H}/{i}\n" for i in range(n)),
    "items": lambda n: "<rss>" + "<item><link>/x</link><guid>/y</guid></item>" * n,
}


@pytest.mark.parametrize("name", HARD)
def test_time_is_linear(name: str) -> None:
    """A file made to be slow is read in proportion to its size."""
    assert_linear(lambda count: partial(_read, HARD[name](count).encode()), 40_000)


PIECES = [
    "<urlset>", "</urlset>", "<url>", "</url>", "<loc>", "</loc>", "<sitemapindex>", "<sitemap>", "</sitemap>",
    "<rss>", "<item>", "<link>", "</link>", "<guid>", "</guid>", "<link href='/a'/>", "</item>", "<feed>",
    "<entry>", "<!--", "-->", "<![CDATA[", "]]>", "<?", "?>", "<!DOCTYPE", "[", "]>", "&", "&amp;", "&x;", "&#1;",
    "<", ">", "/", "http://h.test/", "a", " ", "\ufffd",
]  # fmt: skip
PARTS = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)


@given(st.binary(max_size=200) | PARTS.map(str.encode))
@settings(deadline=None)
def test_no_file_is_too_strange(body: bytes) -> None:
    """Any bytes give an answer with absolute addresses, each once; what is invalid lists nothing."""
    found = _read(body)

    assert len(set(found.urls)) == len(found.urls)
    assert all(url.startswith(("http://", "https://")) for url in found.urls)
    assert not (found.kind == "invalid" and found.urls)


@given(st.lists(st.text(alphabet="abc&<>\"'?=/%\u00e9 ", min_size=1, max_size=20), max_size=5), st.integers(0, 400))
@settings(deadline=None)
def test_a_cut_never_makes_an_address(paths: list[str], at: int) -> None:
    """Whatever addresses a file has and wherever it is cut: a beginning of what the whole file lists is listed."""
    escaped = [path.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") for path in paths]
    body = urlset(*(loc(f"{H}/{path}") for path in escaped)).encode()

    whole, cut = _read(body), _read(body[:at])

    assert cut.urls == whole.urls[: len(cut.urls)]
    assert not whole.damaged
    assert cut.damaged or at >= len(body) or cut.kind == "invalid"
