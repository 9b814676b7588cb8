"""Tables of pages and edges, as CSV, JSON Lines and Parquet, in each set of columns."""

from __future__ import annotations

import csv
import gzip
import io
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlr.formats import Columns, outputs_of
from crawlr.journal import Journal
from crawlr.outputs import write_all
from crawlr.records import StopReason
from crawlr.sinks import csv_file
from crawlr.sinks.tables import Column, Kind, Table
from crawlr.view import CrawlView
from tests.made_crawl import FORMULA, HEAD, MODIFIED, SITE, made_view, page


def written(folder: Path, name: str, *, columns: str = "native", **options: Any) -> Path:
    path = folder / name
    with made_view(**options) as view:
        (output,) = write_all(view, outputs_of([str(path)]), head=HEAD, columns=Columns(columns))
    assert output.path == str(path)
    assert list(folder.iterdir()) == [path], "something was left beside the output"
    return path


def rows_of(folder: Path, name: str, **options: Any) -> list[dict[str, str]]:
    text = written(folder, name, **options).read_bytes().decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


# ---------------------------------------------------------------- pages


def test_pages_csv_has_every_page_with_the_names_of_sitemap_json(tmp_path: Path) -> None:
    """A row a page in the order of ids; what is not known is empty."""
    rows = rows_of(tmp_path, "pages.csv")

    assert [row["id"] for row in rows] == ["0", "1", "2", "3", "6", "7", "8", "10", "14"]
    expected = {
        "id": "0",
        "url": f"{SITE}/",
        "depth": "0",
        "parent": "",
        "status": "200",
        "outcome": "ok",
        "error": "",
        "links": "10",
        "millis": "5",
        "bytes": "1000",
        "content_type": "text/html; charset=utf-8",
        "encoding": "utf-8",
        "title": "Home – „quoted“, with a comma",
        "canonical": "",
        "robots": "",
        "root": "0",
        "redirect_to": "",
        "redirect_url": "",
        "attempts": "1",
        "parent_url": "",
        "last_modified": MODIFIED,
        "body_hash": "0000000000000000",
        "indexable": "true",
        "inlinks": "2",
        "outlinks": "9",
        "in_sitemap": "",
    }
    assert rows[0] == expected
    redirect, hidden, down = rows[2], rows[4], rows[7]
    assert (redirect["redirect_to"], redirect["redirect_url"]) == ("1", f"{SITE}/a?x=1&y='2'")
    assert redirect["parent_url"] == f"{SITE}/"
    assert (hidden["robots"], hidden["indexable"]) == ("nofollow, noindex", "false")
    assert (down["status"], down["outcome"], down["error"]) == ("", "refused", "connection refused")
    assert rows[1]["body_hash"] == "ffffffffffffffff"


def test_formulas_from_the_web_are_defused(tmp_path: Path) -> None:
    """No cell of a page begins a formula; the text is there, behind an apostrophe."""
    rows = rows_of(tmp_path, "pages.csv")

    titles = [row["title"] for row in rows]
    assert titles[1] == "'" + FORMULA
    assert titles[3] == "'-1+cmd|' /C calc'!A0"
    assert titles[4] == "'\t=tabbed"
    assert titles[5] == "'@SUM(A1)"
    assert not [cell for row in rows for cell in row.values() if cell[:1] in ("=", "+", "-", "@", "\t", "\r")]


CELLS = [
    ("=1+1", "'=1+1"),
    ("+1", "'+1"),
    ("-1", "'-1"),
    ("@x", "'@x"),
    ("\t=1", "'\t=1"),
    ("\r=1", "'\r=1"),
    ("\n=1", "'\n=1"),
    ("＝1+1", "'＝1+1"),
    ("＋1", "'＋1"),
    ("－1", "'－1"),
    ("＠x", "'＠x"),
    ("", ""),
    ("1=1", "1=1"),
    ("'=1", "'=1"),
    (-1, -1),
    (-1.5, -1.5),
    (("-a", "b"), "'-a, b"),
    ("lone \ud800 surrogate", "lone \ufffd surrogate"),
    (True, "yes"),
    (False, "no"),
    (None, ""),
]


@pytest.mark.parametrize(("cell", "expected"), CELLS, ids=[repr(cell) for cell, _ in CELLS])
def test_what_begins_a_formula_is_text(cell: Any, expected: object) -> None:
    """The characters of OWASP's list and their full-width forms, in texts alone: our numbers stay numbers."""
    out = io.StringIO(newline="")
    table = Table(
        columns=(Column("a", Kind.TEXT), Column("b")), rows=lambda: iter([(cell, "end")]), flags=("yes", "no")
    )
    csv_file.write(out, table)

    assert list(csv.reader(io.StringIO(out.getvalue(), newline=""), strict=True))[1] == [str(expected), "end"]


@given(st.lists(st.tuples(st.text(), st.text()), max_size=5))
def test_any_text_survives_csv(rows: list[tuple[str, str]]) -> None:
    """Quotes, separators, line ends and NUL in cells come back as they went in, behind at most an apostrophe."""
    out = io.StringIO(newline="")
    csv_file.write(out, Table(columns=(Column("a"), Column("b")), rows=lambda: iter(rows)))

    read = list(csv.reader(io.StringIO(out.getvalue(), newline=""), strict=True))[1:]
    assert read == [[csv_file.defused(cell) for cell in row] for row in rows]


def test_native_csv_has_no_byte_order_mark_and_ends_lines_in_lf(tmp_path: Path) -> None:
    """Programs that know no byte order mark find the first column by its name."""
    content = written(tmp_path, "pages.csv").read_bytes()

    assert content.startswith(b"id,url,depth,")
    assert b"\r\n" not in content


SF_HEADERS = [
    "Address",
    "Content Type",
    "Status Code",
    "Status",
    "Indexability",
    "Indexability Status",
    "Title 1",
    "Title 1 Length",
    "Meta Robots 1",
    "Canonical Link Element 1",
    "Size (bytes)",
    "Crawl Depth",
    "Folder Depth",
    "Link Score",
    "Inlinks",
    "Unique Inlinks",
    "% of Total",
    "Outlinks",
    "Unique Outlinks",
    "External Outlinks",
    "Unique External Outlinks",
    "Hash",
    "Response Time",
    "Last Modified",
    "Redirect URL",
    "Redirect Type",
    "URL Encoded Address",
]


def test_sf_columns_are_those_of_internal_all(tmp_path: Path) -> None:
    """The headers of Screaming Frog's export in its order, with its words, after a byte order mark."""
    rows = rows_of(tmp_path, "internal_all.csv", columns="sf")
    by_path = {row["Address"].removeprefix(SITE): row for row in rows}

    assert (tmp_path / "internal_all.csv").read_bytes().startswith(b"\xef\xbb\xbfAddress,")
    assert list(rows[0]) == SF_HEADERS
    whys = {
        path: (row["Status Code"], row["Status"], row["Indexability"], row["Indexability Status"])
        for path, row in by_path.items()
    }
    assert whys == {
        "/": ("200", "OK", "Indexable", ""),
        "/a?x=1&y='2'": ("200", "OK", "Indexable", ""),
        "/old": ("301", "Moved Permanently", "Non-Indexable", "Redirected"),
        "/missing": ("404", "Not Found", "Non-Indexable", "Client Error"),
        "/hidden": ("200", "OK", "Non-Indexable", "noindex"),
        "/copy": ("200", "OK", "Non-Indexable", "Canonicalised"),
        "/folder/sub/file.pdf": ("200", "OK", "Indexable", ""),
        "/down": ("0", "Connection Refused", "Non-Indexable", "No Response"),
        "/older": ("302", "Found", "Non-Indexable", "Redirected"),
    }
    home, redirect = by_path["/"], by_path["/old"]
    assert (home["Unique Outlinks"], home["External Outlinks"], home["Unique Inlinks"]) == ("9", "1", "2")
    assert home["% of Total"] == "50.0"  # 2 of the 4 HTML pages that answered 200
    assert home["Title 1 Length"] == str(len("Home – „quoted“, with a comma"))
    assert home["Response Time"] == "0.005"
    assert (redirect["Redirect URL"], redirect["Redirect Type"]) == (f"{SITE}/a?x=1&y='2'", "HTTP Redirect")
    assert by_path["/folder/sub/file.pdf"]["Folder Depth"] == "2"
    scores = [int(row["Link Score"]) for row in rows]
    assert max(scores) == 100
    assert home["Link Score"] == "100" or int(home["Link Score"]) > int(by_path["/older"]["Link Score"])
    assert min(scores) >= 0


def test_sf_counts_links_out_of_scope_apart_with_all_edges(tmp_path: Path) -> None:
    """With --edges all an external link is an edge and still no internal outlink."""
    rows = rows_of(tmp_path, "pages.csv", columns="sf", all_edges=True)

    assert (rows[0]["Outlinks"], rows[0]["External Outlinks"]) == ("9", "1")


def test_sf_names_several_reasons(tmp_path: Path) -> None:
    """A page that is canonicalised and noindex says both, as Screaming Frog does."""
    extra = [(f"{SITE}/both", page(15, canonical=f"{SITE}/", robots="noindex"))]
    rows = rows_of(tmp_path, "pages.csv", columns="sf", extra=extra)

    assert rows[-1]["Indexability Status"] == "Canonicalised,noindex"


def test_sf_knows_no_phrase_for_a_status_of_no_standard(tmp_path: Path) -> None:
    """A server's own status is shown as a number alone."""
    rows = rows_of(tmp_path, "pages.csv", columns="sf", extra=[(f"{SITE}/odd", page(15, status=999))])

    assert (rows[-1]["Status Code"], rows[-1]["Status"], rows[-1]["Indexability Status"]) == ("999", "", "Server Error")


def test_a_lone_page_has_a_link_score(tmp_path: Path) -> None:
    """When all ranks are alike the scale has no width, and the score is 0."""
    journal = Journal.create("", {})
    journal.commit(urls=[(0, f"{SITE}/", None, 0, None, 0, 0, 3)], pages=[(0, *page(10)[1:])])  # type: ignore[list-item]
    with closing(journal):
        view = CrawlView(journal, stop_reason=StopReason.FINISHED, depth_limit=None, all_edges=False)
        write_all(view, outputs_of([str(tmp_path / "x.csv")]), head=HEAD, columns=Columns.SF)

    (row,) = csv.DictReader((tmp_path / "x.csv").read_text(encoding="utf-8-sig").splitlines())
    assert row["Link Score"] == "0"


def test_advertools_lines_are_those_of_its_crawl_files(tmp_path: Path) -> None:
    """JSON Lines with advertools' keys, lists joined by @@, and no key without a value."""
    path = written(tmp_path, "crawl.jl", columns="advertools")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    by_path = {row["url"].removeprefix(SITE): row for row in rows}

    assert by_path["/copy"] == {
        "url": f"{SITE}/copy",
        "title": "@SUM(A1)",
        "canonical": f"{SITE}/a?x=1&y='2'",
        "size": 1007,
        "download_latency": 0.075,
        "depth": 1,
        "status": 200,
        "links_url": f"{SITE}/@@{SITE}/a?x=1&y='2'",
        "links_text": "home@@original",
        "links_nofollow": "False@@False",
        "resp_headers_Content-Type": "text/html; charset=utf-8",
    }
    assert by_path["/"]["links_nofollow"].split("@@")[:4] == ["False", "False", "True", "False"]
    assert by_path["/"]["resp_headers_Last-Modified"] == MODIFIED
    assert by_path["/old"]["resp_headers_Location"] == f"{SITE}/a?x=1&y='2'"
    chain = [by_path["/a?x=1&y='2'"][key] for key in ("redirect_urls", "redirect_reasons", "redirect_times")]
    assert chain == [f"{SITE}/older@@{SITE}/old", "302@@301", 2]
    assert "redirect_urls" not in by_path["/old"]
    assert by_path["/down"] == {"url": f"{SITE}/down", "depth": 1, "errors": "connection refused"}


def test_pages_jsonl_is_a_page_a_line(tmp_path: Path) -> None:
    """Values keep their types; lists are lists and what is not known is null."""
    path = written(tmp_path, "pages.jsonl.gz")
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]

    assert len(rows) == 9
    assert rows[4]["robots"] == ["nofollow", "noindex"]
    assert rows[4]["title"] == "\t=tabbed"
    assert (rows[7]["status"], rows[7]["indexable"], rows[7]["inlinks"]) == (None, False, 1)


# ---------------------------------------------------------------- edges


def test_edges_csv_has_every_edge_with_what_is_known_of_it(tmp_path: Path) -> None:
    """Source, Target, kind, nofollow, text and the target's status; formulas in texts are defused."""
    rows = rows_of(tmp_path, "edges.csv")

    assert list(rows[0]) == ["Source", "Target", "kind", "nofollow", "anchor_text", "target_status"]
    found = [tuple(row.values()) for row in rows]
    assert found[:6] == [
        (f"{SITE}/", f"{SITE}/a?x=1&y='2'", "a", "false", "A & <b>", "200"),
        (f"{SITE}/", f"{SITE}/old", "a", "false", "", "301"),
        (f"{SITE}/", f"{SITE}/missing", "a", "true", "'=1+1", "404"),
        (f"{SITE}/", f"{SITE}/private", "area", "false", "private", ""),
        (f"{SITE}/", f"{SITE}/hidden", "iframe", "false", "", "200"),
        (f"{SITE}/", f"{SITE}/copy", "a", "false", "Kopie – „neu“", "200"),
    ]
    assert len(rows) == 15
    assert not [row for row in found if "other.test" in row[1]]


def test_edges_out_of_scope_are_there_with_all_edges(tmp_path: Path) -> None:
    """--edges all lists links to other hosts, in their place."""
    rows = rows_of(tmp_path, "edges.csv", all_edges=True)

    assert tuple(rows[7].values()) == (f"{SITE}/", "https://other.test/", "a", "true", "other", "")


def test_edges_without_kept_texts_leave_them_empty(tmp_path: Path) -> None:
    """A crawl that did not keep the texts of links says nothing of them."""
    rows = rows_of(tmp_path, "edges.csv", with_texts=False)

    assert {row["anchor_text"] for row in rows} == {""}
    assert len(rows) == 15


def test_sf_edges_are_those_of_all_inlinks(tmp_path: Path) -> None:
    """The headers and words of Screaming Frog's All Inlinks."""
    rows = rows_of(tmp_path, "all_edges.csv", columns="sf")

    assert list(rows[0]) == [
        "Type",
        "Source",
        "Destination",
        "Size (Bytes)",
        "Anchor",
        "Status Code",
        "Status",
        "Follow",
        "Link Origin",
    ]
    assert [tuple(row.values())[2:] for row in rows[2:4]] == [
        (f"{SITE}/missing", "1003", "'=1+1", "404", "Not Found", "false", "HTML"),
        (f"{SITE}/private", "0", "private", "0", "Blocked by robots.txt", "true", "HTML"),
    ]
    assert [row["Type"] for row in rows[3:8]] == ["Hyperlink", "Iframe", "Hyperlink", "Hyperlink", "Meta Refresh"]


def test_advertools_edges_are_those_of_its_links(tmp_path: Path) -> None:
    """url, link, text, nofollow, internal, with Python's words for flags."""
    rows = rows_of(tmp_path, "edges.csv", columns="advertools", all_edges=True)

    assert tuple(rows[7].items()) == (
        ("url", f"{SITE}/"),
        ("link", "https://other.test/"),
        ("text", "other"),
        ("nofollow", "True"),
        ("internal", "False"),
    )


def test_many_edges_are_resolved_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ends of edges are right however the look-ups are cut."""
    whole = rows_of(tmp_path, "edges.csv")
    (tmp_path / "edges.csv").unlink()
    for name, size in (("edge_columns._BATCH", 1), ("source._KEPT", 2)):
        monkeypatch.setattr(f"crawlr.sinks.{name}", size)
    monkeypatch.setattr("crawlr.view._ASKED_AT_ONCE", 2)

    assert rows_of(tmp_path, "edges.csv") == whole


# ---------------------------------------------------------------- parquet


@pytest.mark.parametrize("columns", list(Columns))
@pytest.mark.parametrize("table", ["pages", "edges"])
def test_parquet_holds_the_same_as_json_lines(tmp_path: Path, table: str, columns: str) -> None:
    """Every cell of every set of columns, in row groups of any size."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    with made_view() as view:
        paths = [str(tmp_path / f"{table}.{ending}") for ending in ("parquet", "jsonl")]
        write_all(view, outputs_of(paths), head=HEAD, columns=Columns(columns))
    found = parquet.read_table(paths[0]).to_pylist()
    lines = [json.loads(line) for line in Path(paths[1]).read_text(encoding="utf-8").splitlines()]

    assert [{name: cell for name, cell in row.items() if cell is not None} for row in found] == [
        {name: cell for name, cell in row.items() if cell is not None} for row in lines
    ]
