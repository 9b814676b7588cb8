"""sitemaps.org files: what is listed, split at the limits, valid by the rules of the protocol."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from crawlr.errors import MachineError
from crawlr.formats import outputs_of
from crawlr.journal import Journal
from crawlr.outputs import write_all
from crawlr.records import StopReason
from crawlr.sinks import sitemap_xml
from crawlr.view import CrawlView
from tests.made_crawl import HEAD, SITE, made_view, page
from tests.sitemap_rules import read_sitemap

Extra = list[tuple[str, tuple[object, ...]]]


def write(path: Path, **options: Any) -> list[str]:
    """The notes of the sitemap that was written."""
    with made_view(**options) as view:
        (output,) = write_all(view, outputs_of([str(path)]), head=HEAD)
    return list(output.notes)


@pytest.mark.parametrize("name", ["sitemap.xml", "sitemap.xml.gz"])
def test_only_indexable_pages_are_listed(tmp_path: Path, name: str) -> None:
    """200, HTML, no noindex, own canonical; the date is W3C's, and left out when the header is no date."""
    notes = write(tmp_path / name)
    kind, entries = read_sitemap(tmp_path / name)

    assert kind == "urlset"
    assert entries == [(f"{SITE}/", "2026-02-03T10:20:30Z"), (f"{SITE}/a?x=1&y='2'", None)]
    assert notes == []


URL = f"{SITE}/x"
LISTED = [
    ("html", page(15), True),
    ("xhtml", page(15, content_type="application/xhtml+xml"), True),
    ("html found in a body without a type", page(15, content_type=None), True),
    ("own canonical", page(15, canonical=URL), True),
    ("own canonical spelled otherwise", page(15, canonical=f"{SITE}/%78"), True),
    ("cut at the limit", page(15, outcome="too_large"), True),
    ("nofollow alone", page(15, robots="nofollow"), True),
    ("canonical without a parameter", page(15, canonical=f"{SITE}/"), False),
    ("noindex", page(15, robots="noindex"), False),
    ("image", page(15, outcome="not_html", content_type="image/png"), False),
    ("204", page(15, status=204), False),
    ("206", page(15, status=206), False),
    ("304", page(15, status=304), False),
    ("410", page(15, status=410, outcome="http_error"), False),
    ("503", page(15, status=503, outcome="http_error"), False),
    ("not read: undecodable", page(15, outcome="decode_error"), False),
    ("not read: timed out in the body", page(15, outcome="total_timeout"), False),
    ("not read: the parser died", page(15, outcome="parser_crash"), False),
    ("no answer", page(15, status=None, outcome="reset"), False),
]


@pytest.mark.parametrize(("row", "is_listed"), [row[1:] for row in LISTED], ids=[row[0] for row in LISTED])
def test_each_reason_decides(tmp_path: Path, row: tuple[object, ...], is_listed: bool) -> None:
    """One page that differs in one thing from an ordinary one is listed or not."""
    write(tmp_path / "sitemap.xml", extra=[(URL, row)])
    _, entries = read_sitemap(tmp_path / "sitemap.xml")

    assert (URL in [loc for loc, _ in entries]) is is_listed


def test_a_tracking_parameter_is_not_the_canonical_page(tmp_path: Path) -> None:
    """A page with ?utm_source= whose canonical has none is left to the canonical one."""
    write(tmp_path / "sitemap.xml", extra=[(f"{SITE}/?utm_source=x", page(15, canonical=f"{SITE}/"))])
    _, entries = read_sitemap(tmp_path / "sitemap.xml")

    assert len(entries) == 2


DATES = [
    ("Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37Z"),
    ("Sunday, 06-Nov-94 08:49:37 GMT", "1994-11-06T08:49:37Z"),
    ("Sun Nov  6 08:49:37 1994", "1994-11-06T08:49:37Z"),
    ("Tue, 03 Feb 2026 10:20:30 +0200", "2026-02-03T08:20:30Z"),
    ("Thu, 01 Jan 1970 00:00:00 GMT", None),
    ("Mon, 01 Jan 2999 00:00:00 GMT", None),
    ("Tue, 31 Feb 2026 10:20:30 GMT", None),
    ("Fri, 31 Dec 9999 23:59:59 -2359", None),
    ("2026-02-03", None),
    ("-1", None),
    ("", None),
]


@pytest.mark.parametrize(("header", "expected"), DATES, ids=[header or "empty" for header, _ in DATES])
def test_last_modified_becomes_a_w3c_date(tmp_path: Path, header: str, expected: str | None) -> None:
    """The three forms of HTTP dates are read; no date, or one that can't be true, is left out."""
    write(tmp_path / "sitemap.xml", extra=[(URL, page(15, last_modified=header))])
    _, entries = read_sitemap(tmp_path / "sitemap.xml")

    assert dict(entries)[URL] == expected


ESCAPED = [
    ("/q?a=1&b=<\">'", "/q?a=1&b=%3C%22%3E'"),
    ("/a|b^c[d]?{e}`\\", "/a%7Cb%5Ec%5Bd%5D?%7Be%7D%60%5C"),
    ("/%7Euser;v=1/@a:b!$&()*+,=~", "/%7Euser;v=1/@a:b!$&()*+,=~"),
    ("/\x01\x7f", "/%01%7F"),
]


@pytest.mark.parametrize(("path", "expected"), ESCAPED, ids=["markup", "url-standard", "reserved", "control"])
def test_urls_are_escaped_for_xml_and_rfc_3986(tmp_path: Path, path: str, expected: str) -> None:
    """What RFC 3986 allows nowhere is percent-encoded, what it allows stays, and markup can't be made."""
    write(tmp_path / "sitemap.xml", extra=[(SITE + path, page(15))])
    _, entries = read_sitemap(tmp_path / "sitemap.xml")

    assert SITE + expected in [loc for loc, _ in entries]


def test_an_ipv6_host_keeps_its_brackets(tmp_path: Path) -> None:
    """Brackets are escaped in a path and are part of such a host; more than one host is told."""
    notes = write(tmp_path / "sitemap.xml", extra=[("http://[2001:db8::1]:8080/x[1]", page(15))])
    _, entries = read_sitemap(tmp_path / "sitemap.xml")

    assert entries[-1][0] == "http://[2001:db8::1]:8080/x%5B1%5D"
    assert "pages of 2 hosts" in notes[0]


def test_urls_of_forbidden_length_are_left_out_and_said(tmp_path: Path) -> None:
    """2,048 characters are allowed, 2,049 not; under 12 the schema refuses too."""
    extra: Extra = [
        (f"{SITE}/".ljust(2048, "x"), page(15)),
        (f"{SITE}/".ljust(2049, "y"), page(16)),
        (f"{SITE}/".ljust(2100, "z"), page(17)),
        ("http://ab/", page(18)),
    ]
    notes = write(tmp_path / "sitemap.xml", extra=extra)
    _, entries = read_sitemap(tmp_path / "sitemap.xml")

    assert [loc[-1] for loc, _ in entries] == ["/", "'", "x"]
    path = tmp_path / "sitemap.xml"
    assert notes == [
        f"{path} leaves out 2 pages with a URL of more than 2,048 characters",
        f"{path} leaves out 1 pages with a URL of less than 12 characters",
    ]


@pytest.mark.parametrize("ending", ["xml", "xml.gz"])
def test_too_many_urls_are_split_under_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    """The named file becomes an index of whole addresses; the parts hold every page once."""
    monkeypatch.setattr(sitemap_xml, "MOST_URLS", 3)
    extra: Extra = [(f"{SITE}/{number}", page(15 + number)) for number in range(6)]
    notes = write(tmp_path / f"a map.{ending}", extra=extra)
    kind, entries = read_sitemap(tmp_path / f"a map.{ending}")
    parts = [read_sitemap(tmp_path / f"a map-{number}.{ending}") for number in (1, 2, 3)]

    assert kind == "sitemapindex"
    assert entries == [(f"{SITE}/a%20map-{number}.{ending}", None) for number in (1, 2, 3)]
    assert [(kind, len(found)) for kind, found in parts] == [("urlset", 3), ("urlset", 3), ("urlset", 2)]
    listed = [loc for _, found in parts for loc, _ in found]
    assert listed == [f"{SITE}/", f"{SITE}/a?x=1&y='2'", *(url for url, _ in extra)]
    assert notes == [f"{tmp_path / 'a map'}.{ending} is an index over 3 files beside it, to be put at {SITE}/"]
    assert len(list(tmp_path.iterdir())) == 4


def test_a_file_is_split_before_it_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No part is longer than the limit, counted before compression and to the last byte."""
    monkeypatch.setattr(sitemap_xml, "MOST_BYTES", 400)
    extra: Extra = [(f"{SITE}/".ljust(60 + number, "p"), page(15 + number)) for number in range(12)]
    write(tmp_path / "sitemap.xml", extra=extra)
    parts = sorted(tmp_path.glob("sitemap-*.xml"))
    sizes = [part.stat().st_size for part in parts]

    assert len(parts) > 3
    assert max(sizes) <= 400 < max(sizes) + 110
    assert sum(len(read_sitemap(part)[1]) for part in parts) == 14


def test_exactly_the_limit_needs_no_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many URLs as one file may hold are one file."""
    monkeypatch.setattr(sitemap_xml, "MOST_URLS", 2)
    write(tmp_path / "sitemap.xml")

    assert read_sitemap(tmp_path / "sitemap.xml")[0] == "urlset"
    assert len(list(tmp_path.iterdir())) == 1


def test_the_limits_are_those_of_the_protocol() -> None:
    """50,000 URLs and 50 MiB, 12 to 2,048 characters."""
    assert (sitemap_xml.MOST_URLS, sitemap_xml.MOST_BYTES) == (50_000, 52_428_800)
    assert (sitemap_xml.SHORTEST, sitemap_xml.LONGEST) == (12, 2048)


def test_standard_output_takes_one_sitemap(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`-` gets the file; when it would take several, that is an error and not a part."""
    with made_view() as view:
        write_all(view, outputs_of(["-"], format="xml"), head=HEAD)
        root = etree.fromstring(capfdbinary.readouterr().out)
        monkeypatch.setattr(sitemap_xml, "MOST_URLS", 1)
        with pytest.raises(MachineError, match="use --out FILE"):
            write_all(view, outputs_of(["-"], format="xml"), head=HEAD)

    assert len(root) == 2


def test_a_crawl_without_such_pages_says_so(tmp_path: Path) -> None:
    """An empty sitemap is well-formed, and a note says why."""
    with closing(Journal.create("", {})) as journal:
        view = CrawlView(journal, stop_reason=StopReason.FINISHED, depth_limit=None, all_edges=False)
        (output,) = write_all(view, outputs_of([str(tmp_path / "sitemap.xml")]), head=HEAD)

    assert len(etree.parse(tmp_path / "sitemap.xml").getroot()) == 0
    assert "lists no page" in output.notes[0]
