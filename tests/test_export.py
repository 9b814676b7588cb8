"""Outputs made later, from sitemap.json or from the state of a crawl that did not finish."""

from __future__ import annotations

import csv
import gzip
import json
import os
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import crawlr
from crawlr import sitemap_file
from crawlr.errors import CrawlrError, OptionsError, StateError
from crawlr.export import export, open_crawl
from crawlr.formats import Columns, outputs_of
from crawlr.outputs import write_all
from tests.conftest import Crawl
from tests.contract import SiteMap, violations
from tests.made_crawl import HEAD, MODIFIED, SITE, made_journal, made_view
from tests.servers.local import Reply, Site, page
from tests.sitemap_rules import read_sitemap


def sitemap_in(folder: Path, name: str = "sitemap.json", **options: Any) -> Path:
    path = folder / name
    with made_view(**options) as view:
        write_all(view, outputs_of([str(path)]), head=HEAD)
    return path


# ---------------------------------------------------------------- sitemap.json


@pytest.mark.parametrize("all_edges", [False, True], ids=["in-scope", "all"])
@pytest.mark.parametrize("has_sitemaps", [False, True], ids=["links", "sitemaps"])
@pytest.mark.parametrize("name", ["sitemap.json", "sitemap.json.gz"])
def test_sitemap_json_comes_back_byte_by_byte(tmp_path: Path, name: str, all_edges: bool, has_sitemaps: bool) -> None:
    """Reading what was written and writing it again changes nothing, so nothing was lost or made up."""
    path = sitemap_in(tmp_path, name, all_edges=all_edges, has_sitemaps=has_sitemaps)
    export(str(path), outputs_of([str(tmp_path / "again.json")]))
    before = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()

    assert (tmp_path / "again.json").read_bytes() == before
    assert b'"reason": "depth_limit"' in before
    assert b'"reason": "page_budget"' in before
    assert (b"other.test" in before) is all_edges
    assert (b'"in_sitemap": true}' in before, b'"in_sitemap": false}' in before) == (has_sitemaps, has_sitemaps)


@pytest.mark.parametrize("chunk", [1, 7, 100])
def test_values_may_be_cut_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    """However the file is cut into pieces, it is read the same."""
    path = sitemap_in(tmp_path)
    monkeypatch.setattr(sitemap_file, "_CHUNK", chunk)
    monkeypatch.setattr(sitemap_file, "_GROUP", 1)
    export(str(path), outputs_of([str(tmp_path / "again.json")]))

    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


REWRITTEN: dict[str, Callable[[dict[str, Any]], str]] = {
    "indented": lambda document: json.dumps(document, indent=4),
    "on one line": lambda document: json.dumps(document, separators=(",", ":")),
    "names sorted, so that edges come first": lambda document: json.dumps(document, sort_keys=True),
    "edges in any order": lambda document: json.dumps(
        document | {"edges": sorted(document["edges"], key=lambda edge: (edge[1] * 7 % 5, edge))}
    ),
    "with a byte order mark": lambda document: "\ufeff" + json.dumps(document),
    "with fields of a later version": lambda document: json.dumps(document | {"later": [1, {"a": []}]}),
}


@pytest.mark.parametrize("rewrite", REWRITTEN.values(), ids=REWRITTEN)
def test_another_program_may_have_written_it_anew(
    tmp_path: Path, rewrite: Callable[[dict[str, Any]], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """White space and order do not matter, as with any JSON."""
    path = sitemap_in(tmp_path)
    document = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(rewrite(document), encoding="utf-8")
    monkeypatch.setattr(sitemap_file, "_GROUP", 2)
    export(str(path), outputs_of([str(tmp_path / "again.json")]))
    again = json.loads((tmp_path / "again.json").read_text(encoding="utf-8"))

    assert sorted(again.pop("edges")) == sorted(document.pop("edges"))
    again.pop("later", None)
    assert again == document


def test_any_output_is_made_of_it(tmp_path: Path) -> None:
    """Several outputs of several formats in one call, each as at the end of the crawl but for what the file lacks."""
    path = sitemap_in(tmp_path)
    names = ["pages.csv", "edges.csv", "sitemap.xml", "site.graphml", "site.gexf", "site.dot", "pages.jsonl"]
    written = export(str(path), outputs_of([str(tmp_path / name) for name in names]))
    with (tmp_path / "pages.csv").open(newline="", encoding="utf-8") as file:
        pages = list(csv.DictReader(file))
    with (tmp_path / "edges.csv").open(newline="", encoding="utf-8") as file:
        edges = list(csv.DictReader(file))

    assert [Path(each.path).name for each in written] == names
    assert all((tmp_path / name).stat().st_size for name in names)
    assert [page["status"] for page in pages] == ["200", "200", "301", "404", "200", "200", "200", "", "302"]
    assert [page["last_modified"] for page in pages[:3]] == [MODIFIED, "yesterday", ""]
    assert {page["body_hash"] for page in pages} == {""}
    assert (edges[0]["Source"], edges[0]["Target"]) == (f"{SITE}/", f"{SITE}/a?x=1&y='2'")
    assert {edge["kind"] + edge["nofollow"] + edge["anchor_text"] for edge in edges} == {""}
    assert len(edges) == 15


def test_the_file_that_is_read_may_be_replaced(tmp_path: Path) -> None:
    """`crawlr export x.json -o x.json` ends with the same file."""
    path = sitemap_in(tmp_path)
    before = path.read_bytes()
    export(str(path), outputs_of([str(path)]))

    assert path.read_bytes() == before


def test_columns_are_chosen_as_in_a_crawl(tmp_path: Path) -> None:
    """--columns has the same effect."""
    export(str(sitemap_in(tmp_path)), outputs_of([str(tmp_path / "x.csv")]), columns=Columns.SF)

    assert (tmp_path / "x.csv").read_text(encoding="utf-8-sig").startswith("Address,Content Type,Status Code,")


DAMAGED: list[tuple[str, Callable[[str], str], str]] = [
    ("cut short", lambda text: text[:-40], "or is damaged"),
    ("cut in a string", lambda text: text[: text.index('"pages"') + 30], "or is damaged"),
    ("cut at once", lambda text: "", "{ expected, the end found"),
    ("more after the end", lambda text: text + "{}", "more after the end"),
    ("another format", lambda text: text.replace("sitemap/1", "sitemap/9"), "its format is 'crawlr-sitemap/9'"),
    ("no format", lambda text: "{}", "its format is None"),
    ("a list", lambda text: "[1, 2]", "{ expected, [ found"),
    ("not JSON", lambda text: "<html>", "{ expected, < found"),
    ("pages are no list", lambda text: '{"pages": {}}', "pages is no list"),
    ("a page lacks a field", lambda text: text.replace('"attempts"', '"tries"', 1), "a field is missing: 'attempts'"),
    ("an unknown outcome", lambda text: text.replace('"outcome": "ok"', '"outcome": "fine"', 1), "'fine' is not"),
    ("an id is text", lambda text: text.replace('"id": 0', '"id": "zero"', 1), "'zero' is no id"),
    ("a huge id", lambda text: text.replace('"id": 0', '"id": 99999999999', 1), "99999999999 is no id"),
    ("an edge of three", lambda text: text.replace("[0,1]", "[0,1,2]"), "too many values"),
    ("an edge to nowhere", lambda text: text.replace("[0,1]", "[0,-1]"), "is damaged"),
    ("an edge to an unknown id", lambda text: text.replace("[0,1]", "[0,7777]"), "an edge leads to 7777"),
    ("an edge from an unknown id", lambda text: text.replace("[0,1]", "[7777,1]"), "an edge begins at an id"),
    ("an unknown parent", lambda text: text.replace('"parent": 0', '"parent": 7777'), "parent or redirect is 7777"),
    ("a redirect to nowhere", lambda text: text.replace('"redirect_to": 1', '"redirect_to": 7777'), "redirect is 7777"),
    ("an id twice", lambda text: text.replace('"id": 1,', '"id": 0,', 1), "is damaged"),
    ("a title that is an object", lambda text: text.replace('"title": null', '"title": {}', 1), "is damaged"),
    ("very deep", lambda text: '{"a": ' + "[" * 100_000, "is damaged"),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "message"), [row[1:] for row in DAMAGED], ids=[row[0] for row in DAMAGED])
def test_what_is_no_sitemap_json_is_refused(tmp_path: Path, damage: Callable[[str], str], message: str) -> None:
    """A damaged or foreign file is a usage error that names it, and no output is begun."""
    path = sitemap_in(tmp_path)
    path.write_text(damage(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(OptionsError) as raised:
        export(str(path), outputs_of([str(tmp_path / "pages.csv")]))

    assert str(path) in str(raised.value)
    assert message in str(raised.value)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("cut", [3, 200, -4])
def test_a_cut_gzip_file_is_refused(tmp_path: Path, cut: int) -> None:
    """The compression is checked to its last byte."""
    path = sitemap_in(tmp_path, "sitemap.json.gz")
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(OptionsError, match="is damaged"):
        export(str(path), outputs_of([str(tmp_path / "pages.csv")]))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The message says what can't be read and why."""
    with pytest.raises(OptionsError, match=r"cannot read .*none\.json: No such file"):
        export(str(tmp_path / "none.json"), outputs_of(["-"]))


def test_reading_needs_no_memory_by_page_or_edge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten times the pages and edges need hardly more memory: a byte an id, and one piece and one group of rows."""
    monkeypatch.setattr(sitemap_file, "_CHUNK", 1 << 14)
    monkeypatch.setattr(sitemap_file, "_GROUP", 100)
    peaks = []
    for count in (500, 5_000):
        path = tmp_path / f"{count}.json"
        _write_large(path, count)
        tracemalloc.start()
        with open_crawl(str(path)) as (view, _):
            assert sum(1 for _ in view.pages()) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()

    assert peaks[1] < 1.5 * peaks[0] < 1_000_000


def _write_large(path: Path, count: int) -> None:
    page = {
        "depth": 0, "parent": None, "status": 200, "outcome": "ok", "error": None, "links": 9, "millis": 1, "bytes": 1,
        "content_type": "text/html", "encoding": "utf-8", "title": "t" * 50, "canonical": None, "robots": [], "root": 0,
        "redirect_to": None, "redirect_url": None, "attempts": 1,
    }  # fmt: skip
    document = HEAD | {
        "pages": [{"id": number, "url": f"{SITE}/{number}"} | page for number in range(count)],
        "skipped": [],
        "unvisited": [],
        "edges": [[number, (number + step) % count] for number in range(count) for step in range(1, 10)],
    }
    path.write_text(json.dumps(document), encoding="utf-8")


# ---------------------------------------------------------------- states


META: dict[str, object] = {
    "seeds": [f"{SITE}/"],
    "options": {"scope": "host", "edges": "in-scope", "user-agent": "crawlr"},
    "started_at": "2026-01-31T12:00:00Z",
    "elapsed_s": 12.5,
    "depth": 2,
}


def state_in(folder: Path, **meta: object) -> Path:
    path = folder / "sitemap.json.crawl"
    made_journal(str(path), meta=META | meta).close()
    return path


@pytest.mark.parametrize(
    ("ended", "stop_reason"), [(None, "interrupted"), ("interrupted", "interrupted"), ("page_budget", "page_budget")]
)
def test_a_state_gives_a_sound_sitemap_json(tmp_path: Path, ended: str | None, stop_reason: str) -> None:
    """What a killed or bounded crawl kept becomes a file that keeps the rules of the format."""
    path = state_in(tmp_path, ended=ended)
    out = tmp_path / "sitemap.json"
    export(str(path), outputs_of([str(out)]))
    site_map = SiteMap.read(out)

    assert violations_of_lists(site_map) == []
    assert site_map["stop_reason"] == stop_reason
    assert site_map["complete"] is False
    assert site_map["stats"]["elapsed_s"] == 12.5
    assert site_map["options"]["user_agent"] == "crawlr"
    assert site_map.reasons == {"/private": "robots_disallowed", "/deep": "depth_limit", "/late": stop_reason,
                                "/nofollowed": "nofollow"}  # fmt: skip


def violations_of_lists(site_map: SiteMap) -> list[str]:
    """Violations, but for the depths that the made crawl does not work out."""
    return [line for line in violations(site_map) if not line.startswith(("depth of", "parent of"))]


def test_a_state_stays_as_it_is_and_can_be_gone_on_from(tmp_path: Path) -> None:
    """After an export the state opens and holds the same."""
    path = state_in(tmp_path)
    export(str(path), outputs_of([str(tmp_path / "pages.csv")]))
    with open_crawl(str(path)) as (view, head):
        assert sum(1 for _ in view.pages()) == 9
        assert head["seeds"] == [f"{SITE}/"]

    assert sorted(each.name for each in tmp_path.iterdir()) == ["pages.csv", "sitemap.json.crawl"]


def test_a_state_keeps_what_sitemap_json_lacks(tmp_path: Path) -> None:
    """Kinds and texts of links are there when they were kept."""
    export(str(state_in(tmp_path)), outputs_of([str(tmp_path / "edges.csv")]))
    with (tmp_path / "edges.csv").open(newline="", encoding="utf-8") as file:
        edges = list(csv.DictReader(file))

    assert (edges[0]["kind"], edges[0]["anchor_text"]) == ("a", "A & <b>")


def test_a_state_in_use_is_refused(tmp_path: Path) -> None:
    """The crawl that writes it is not disturbed."""
    path = tmp_path / "sitemap.json.crawl"
    with closing(made_journal(str(path), meta=META)), pytest.raises(StateError, match="in use by another crawlr"):
        export(str(path), outputs_of([str(tmp_path / "pages.csv")]))


def test_the_state_of_a_killed_crawl_is_read_with_its_log(tmp_path: Path) -> None:
    """A crawl that was killed before a checkpoint leaves most of what it kept in the log beside the state."""
    source, copy = tmp_path / "a.crawl", tmp_path / "b.crawl"
    with closing(made_journal(str(source), meta=META)):
        for ending in ("", "-wal"):
            Path(f"{copy}{ending}").write_bytes(Path(f"{source}{ending}").read_bytes())
    assert copy.stat().st_size < source.stat().st_size
    with open_crawl(str(copy)) as (view, _):
        assert sum(1 for _ in view.pages()) == 9


@pytest.mark.parametrize("content", [b"SQLite format 3\0" + bytes(84), b"SQLite format 3\0", os.urandom(200)])
def test_a_file_that_is_no_state_is_refused(tmp_path: Path, content: bytes) -> None:
    """Neither another database nor rubbish is read, and it stays as it is."""
    path = tmp_path / "sitemap.json.crawl"
    path.write_bytes(content)
    with pytest.raises(CrawlrError):
        export(str(path), outputs_of([str(tmp_path / "pages.csv")]))

    assert path.read_bytes() == content


def test_a_real_crawl_that_was_bounded_is_exported_from_its_state(
    tmp_path: Path, site: Callable[..., Site], crawl: Crawl
) -> None:
    """What the stages put into the journal comes out: kinds and nofollow of links, Last-Modified, hashes."""
    body = '<title>Start</title><a href="/a">a</a><a href="/b" rel="nofollow">b</a><iframe src="/c"></iframe>'
    headers = (("Content-Type", "text/html"), ("Last-Modified", MODIFIED))
    server = site({"/": Reply(body=body, headers=headers), "/a": page("/"), "/b": page(), "/c": page()})
    state = tmp_path / "sitemap.json.crawl"
    crawl(server.url(), out=str(tmp_path / "sitemap.json"), max_pages=2).result.close()
    outs = [str(tmp_path / name) for name in ("pages.csv", "edges.csv", "sitemap.xml")]
    export(str(state), outputs_of(outs))
    pages, edges = (list(csv.DictReader(Path(out).read_text(encoding="utf-8").splitlines())) for out in outs[:2])

    assert (pages[0]["title"], pages[0]["last_modified"], len(pages[0]["body_hash"])) == ("Start", MODIFIED, 16)
    found = {(edge["Target"].removeprefix(server.url("")), edge["kind"], edge["nofollow"]) for edge in edges}
    assert found >= {("/a", "a", "false"), ("/b", "a", "true"), ("/c", "iframe", "false")}
    assert read_sitemap(Path(outs[2]))[1][0] == (server.url(), "2026-02-03T10:20:30Z")


LINKING = (
    '<a href="/">self</a><a href="/a">First</a><a href="/b"><img src="i" alt="Picture of b"></a><a href="/a">second</a>'
    '<a href="http://other.test/">out</a><a href="/dropped">dropped</a><a href="/A">upper</a><iframe src="/c"></iframe>'
)
TEXTS = {"/a": "First", "/b": "Picture of b", "/dropped": "dropped", "/A": "upper", "/c": ""}


@pytest.mark.parametrize("is_keyed", [False, True], ids=["by the URL", "canonicalise="])
@pytest.mark.parametrize("name", ["edges.csv", "edges.jsonl", "pages.jl"])
def test_texts_of_links_reach_every_output_that_has_a_place_for_them(
    tmp_path: Path, site: Callable[..., Site], name: str, is_keyed: bool
) -> None:
    """Each text stands beside its link, whatever links are left out: to the page itself, dropped, merged, outside."""
    server = site({"/": Reply(body=LINKING), "/robots.txt": Reply(status=404)}, default=page())
    out, state = str(tmp_path / name), tmp_path / "state.json.crawl"
    crawlr.crawl(
        server.url(),
        out=[str(tmp_path / "state.json"), out],
        columns="advertools",
        rps=0,
        parse_procs=1,
        max_pages=1,  # so that the state stays
        canonicalise=(lambda url: None if "dropped" in url else url.lower()) if is_keyed else None,
    ).close()
    later = tmp_path / f"later-{name}"
    export(str(state), outputs_of([str(later)]), columns=Columns.ADVERTOOLS)
    expected = {
        server.url(path): text for path, text in TEXTS.items() if not is_keyed or path not in ("/dropped", "/A")
    }

    assert texts_in(Path(out)) == texts_in(later) == expected


def texts_in(path: Path) -> dict[str, str]:
    """Link -> text, in any of the tables of advertools."""
    text = path.read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines())) if path.suffix == ".csv" else [*map(json.loads, text.splitlines())]
    if "link" in rows[0]:
        return {row["link"]: row["text"] for row in rows}
    return dict(zip(rows[0]["links_url"].split("@@"), rows[0]["links_text"].split("@@"), strict=True))


def test_texts_are_not_gathered_for_outputs_without_a_place_for_them(
    tmp_path: Path, site: Callable[..., Site], crawl: Crawl
) -> None:
    """sitemap.json has no texts, so its crawl keeps none, and an export of its state has none."""
    server = site({"/": Reply(body=LINKING)}, default=page())
    crawl(server.url(), out=str(tmp_path / "x.json"), max_pages=1).result.close()
    export(str(tmp_path / "x.json.crawl"), outputs_of([str(tmp_path / "edges.csv")]))
    with (tmp_path / "edges.csv").open(newline="", encoding="utf-8") as file:
        edges = list(csv.DictReader(file))

    assert {(edge["kind"] != "", edge["anchor_text"]) for edge in edges} == {(True, "")}


def test_the_report_of_a_crawl_has_its_accounting_and_its_texts(tmp_path: Path, site: Callable[..., Site]) -> None:
    """At the end of the crawl the report knows where the time went; made later, of the map, it does not."""
    server = site({"/": Reply(body=LINKING), "/b": Reply(status=404)}, default=page())
    outs = [str(tmp_path / name) for name in ("x.json", "report.html")]
    crawlr.crawl(server.url(), out=outs, rps=0, parse_procs=1).close()
    written = export(outs[0], outputs_of([str(tmp_path / "later.html")]))
    report, later = ((tmp_path / name).read_text(encoding="utf-8") for name in ("report.html", "later.html"))

    assert (written[0].pages, written[0].edges) == (6, 5)
    assert "Picture of b" in report
    assert "Picture of b" not in later
    assert all("/dropped" in text and text.rstrip().endswith("</html>") for text in (report, later))
    assert [text.count("<b>Limited by</b>") > 0 for text in (report, later)] == [True, False]
    assert ["accounting of the crawl was not at hand" in text for text in (report, later)] == [False, True]


def test_texts_of_both_runs_of_a_resumed_crawl_are_there(tmp_path: Path, site: Callable[..., Site]) -> None:
    """What the first run kept is still known when the second one writes the table."""
    server = site({"/": page("/a"), "/a": page("/b"), "/b": page("/")})
    out = tmp_path / "edges.csv"
    for options in ({"max_pages": 1}, {"resume": True}):
        crawlr.crawl(server.url(), out=out, columns="advertools", rps=0, parse_procs=1, **options).close()
    texts = texts_in(out)

    assert set(texts) == {server.url(path) for path in ("/a", "/b", "/")}
    assert all(texts.values())
