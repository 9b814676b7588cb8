"""Which format a path has."""

from __future__ import annotations

import pytest

from crawlr.errors import OptionsError
from crawlr.formats import Columns, Format, outputs_of, wants_texts

NAMES = [
    ("sitemap.json", Format.JSON),
    ("sitemap.json.gz", Format.JSON),
    ("-", Format.JSON),
    ("/dev/stdout", Format.JSON),
    ("folder.d/plain", Format.JSON),
    ("pages.jsonl", Format.JSONL),
    ("pages.JSONL.GZ", Format.JSONL),
    ("pages.jl", Format.JSONL),
    ("pages.csv", Format.CSV),
    (".pages.csv", Format.CSV),
    ("ledges.csv", Format.CSV),
    ("edges.csv", Format.EDGES_CSV),
    ("a/edges.csv.gz", Format.EDGES_CSV),
    ("site-edges.csv", Format.EDGES_CSV),
    ("site_edges.jsonl", Format.EDGES_JSONL),
    ("edges.parquet", Format.EDGES_PARQUET),
    ("pages.parquet", Format.PARQUET),
    ("sitemap.xml.gz", Format.XML),
    ("report.html", Format.HTML),
    ("edges.html.gz", Format.HTML),
    ("edges.xml", Format.XML),
    ("site.graphml", Format.GRAPHML),
    ("site.gexf.gz", Format.GEXF),
    ("site.dot", Format.DOT),
    ("site.gv", Format.DOT),
]


@pytest.mark.parametrize(("path", "expected"), NAMES, ids=[name for name, _ in NAMES])
def test_the_ending_names_the_format(path: str, expected: Format) -> None:
    """Each ending has its format, whatever folder and case; edges.csv is more than an ending."""
    (output,) = outputs_of([path])

    assert output.format is expected
    assert output.path == path


def test_a_forced_format_holds_for_every_path() -> None:
    """--format wins over endings, known or not."""
    outputs = outputs_of(["-", "x.json", "y.unknown"], format="edges.csv")

    assert [each.format for each in outputs] == [Format.EDGES_CSV] * 3


REFUSED = [
    (["a.cvs"], None, "'a.cvs' has an ending that names no format"),
    (["a.gz"], None, "'a.gz' has an ending that names no format"),
    (["a.csv", "./a.csv"], None, "'./a.csv' is given twice"),
    (["-", "-"], None, "'-' is given twice"),
    (["a.csv"], "xlsx", "--format: 'xlsx' is not accepted; accepted: json, jsonl, csv"),
    (["a.parquet.gz"], None, "parquet is compressed in itself"),
]


@pytest.mark.parametrize(("paths", "forced", "message"), REFUSED, ids=[message for _, _, message in REFUSED])
def test_what_means_nothing_is_refused(paths: list[str], forced: str | None, message: str) -> None:
    """A name or format that means nothing is an OptionsError that says what is accepted."""
    with pytest.raises(OptionsError) as raised:
        outputs_of(paths, format=forced)

    assert message in str(raised.value)
    assert "accepted" in str(raised.value)


WANT_TEXTS = [
    (["x.json", "pages.csv", "site.gexf"], Columns.NATIVE, False),
    (["x.json", "edges.csv"], Columns.NATIVE, True),
    (["edges.jsonl"], Columns.SF, True),
    (["pages.csv"], Columns.SF, False),
    (["pages.jl"], Columns.ADVERTOOLS, True),
    (["edges.parquet"], Columns.ADVERTOOLS, True),
    (["x.json"], Columns.ADVERTOOLS, False),
    (["report.html"], Columns.NATIVE, True),
    ([], Columns.NATIVE, False),
]


@pytest.mark.parametrize(("paths", "columns", "expected"), WANT_TEXTS)
def test_texts_are_wanted_by_what_has_a_column_for_them(paths: list[str], columns: Columns, expected: bool) -> None:
    """Tables of links have one, and advertools' table of pages."""
    assert wants_texts(outputs_of(paths), columns) is expected


def test_parquet_without_its_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where pyarrow is missing the message says what to install."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(OptionsError, match=r"pip install 'crawlr\[parquet\]'"):
        outputs_of(["pages.parquet"])
