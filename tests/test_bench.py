"""The benches measure what they say they measure: tiny runs of each, the figures they compute, no speed of anything."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from bench import budget, limit, measured, picture, rivals, slower, stages, tables
from bench.measured import Measured, load_of
from bench.own_server import Exchange
from bench.site import Made, Recipe, Site, make, version_of_nginx
from crawlr import limits
from crawlr.options import Options
from tests.running import ROOT

LIMIT = 60.0
SERVERS = [
    pytest.param("own"),
    pytest.param("nginx", marks=pytest.mark.skipif(version_of_nginx() is None, reason="there is no nginx here")),
]
SMALL = ("--pages", "12", "--weight", "1000", "--links", "4", "--runs", "1")


def bench(module: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A bench run as a user runs it."""
    return subprocess.run(
        [sys.executable, "-m", f"bench.{module}", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
        stdin=subprocess.DEVNULL,
    )


def texts_of(path: Path) -> list[str]:
    """The words in an SVG file."""
    return [element.text or "" for element in ET.parse(path).iter("{http://www.w3.org/2000/svg}text")]


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# ---- the site


def test_a_recipe_gives_the_same_bytes_again(tmp_path: Path) -> None:
    """Figures of two machines are of one site; another seed is another site of the same kind."""
    recipe = Recipe(pages=30, weight=2_000, links=6, errors=0.1)

    one, two = make(recipe, tmp_path / "one"), make(recipe, tmp_path / "two")
    make(Recipe(pages=30, weight=2_000, links=6, errors=0.1, seed=2), tmp_path / "other")

    assert one == two == Made(pages=30, errors=3, edges=27 * 6, bytes=27 * 2_000)
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two") != files_of(tmp_path / "other")


def test_a_page_that_only_its_links_fill_is_as_heavy_as_they_are(tmp_path: Path) -> None:
    """More links than fit into the weight are not left out."""
    made = make(Recipe(pages=40, weight=10, links=20), tmp_path)

    assert made.edges == 40 * 20
    assert made.bytes > 40 * 20 * len('<a href="">')


def test_only_leaves_can_be_broken(tmp_path: Path) -> None:
    """A broken page has no links, so what is below it in the tree could not be reached."""
    with pytest.raises(ValueError, match="of 10 pages at most 8 can be broken"):
        make(Recipe(pages=10, links=10, errors=1.0), tmp_path)


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("latency", [0.0, 0.02], ids=["at once", "late"])
def test_a_crawl_finds_what_was_made(server: str, latency: float, crawl: Any) -> None:
    """Pages, errors, edges and bytes, exactly, by either server; an answer comes no sooner than it is meant to."""
    recipe = Recipe(pages=40, weight=3_000, links=8, errors=0.2, error_status=410, latency=latency)
    with Site(recipe, server=server) as site:
        result = crawl(site.url).result
        made, used = site.made, site.cpu()

    stats, pages = result.stats, list(result.pages)
    broken = [page for page in pages if page.status == 410]
    assert made == Made(pages=stats["pages"], errors=stats["errors"], edges=stats["edges"], bytes=stats["bytes"])
    assert len(broken) == made.errors == 8
    assert all("/gone/" in page.url for page in broken)
    assert all(page.millis >= 900 * latency for page in pages)  # nginx's clock stands still while it works
    assert used >= 0


@pytest.mark.parametrize("server", SERVERS)
def test_a_site_is_gone_when_its_context_ends(server: str) -> None:
    """Its server no longer listens, its files are removed; the fixture around every test looks for processes."""
    with Site(Recipe(pages=2), server=server) as site:
        port, folder = site.port, site._folder
        assert folder.is_dir()

    assert not folder.exists()
    with socket.socket() as asking:
        assert asking.connect_ex(("127.0.0.1", port)) != 0


def test_the_own_server_leaves_its_folder_to_nobody(tmp_path: Path) -> None:
    """A path with dots, a file that is not there, another method: errors, not files."""
    (tmp_path / "files").mkdir()
    (tmp_path / "secret.txt").write_text("secret")

    def status(request: bytes) -> bytes:
        exchange = Exchange.__new__(Exchange)
        exchange._folder, exchange._error_status = tmp_path / "files", 404
        return exchange._answer(request).split(b" ", 2)[1]

    assert status(b"GET /../secret.txt HTTP/1.1") == b"400"
    assert status(b"GET /%2e%2e/secret.txt HTTP/1.1") == b"400"
    assert status(b"POST / HTTP/1.1") == b"400"
    assert status(b"GET /nothing.html HTTP/1.1") == b"404"


# ---- the benches


def test_stages_sweeps_a_site(tmp_path: Path) -> None:
    """A row a setting with the whole site in it, a prediction held to what came, JSON and picture of the same rows."""
    out, chart = tmp_path / "stages.json", tmp_path / "stages.svg"

    ran = bench("stages", *SMALL, "--parse-procs", "1,2,auto", "--json", str(out), "--picture", str(chart))

    assert ran.returncode == 0, ran.stderr
    [told] = json.loads(out.read_text())["workloads"]
    assert [row["procs"] for row in told["rows"]] == ["1", "2", "auto"]
    assert all(row["pages"] == 12 and row["rate"] > 0 and row["main_ms"] > 0 < row["parser_ms"] for row in told["rows"])
    base, other, auto = told["rows"]
    assert base["predicted"] is None
    assert other["measured"] == pytest.approx(other["rate"] / base["rate"])
    assert auto["procs_at_end"] >= 1
    assert "served by" in ran.stdout
    assert "best fixed" in ran.stdout
    assert "concurrency 20" in texts_of(chart)


def test_documents_have_a_row_for_each_engine() -> None:
    """And one for pages as a crawl reads them, which is the plain ones without an engine."""
    ran = bench("documents", str(ROOT / "crawlr" / "demo_site"), "--min", "1", "--files", "3", "--rounds", "1")

    assert ran.returncode == 0, ran.stderr
    rows = [line.split("  ")[0] for line in ran.stdout.splitlines()]
    assert {"as in a crawl", "lxml", "scanner"} <= set(rows)


def test_parsing_can_be_made_slower(tmp_path: Path) -> None:
    """One process that waits with each page has no more pages a second than that allows."""
    out = tmp_path / "stages.json"

    ran = bench("stages", *SMALL, "--parse-procs", "1", "--crawlr", "--extract bench.slower:read", "--json", str(out))

    assert ran.returncode == 0, ran.stderr
    [told] = json.loads(out.read_text())["workloads"]
    assert told["rows"][0]["pages"] == 12
    assert told["rows"][0]["rate"] < 1 / slower.SECONDS


def test_stages_knows_its_workloads(tmp_path: Path) -> None:
    """A named workload is its site and its options, whatever the knobs say; the rate of the polite one is kept."""
    out = tmp_path / "stages.json"

    ran = bench("stages", "--workload", "polite", "--parse-procs", "1", "--runs", "1", "--json", str(out),
                "--crawlr", "--max-pages 20")  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    [told] = json.loads(out.read_text())["workloads"]
    [row] = told["rows"]
    assert told["recipe"]["pages"] == stages.WORKLOADS["polite"].recipe.pages
    assert row["pages"] == 20
    assert row["rate"] < 110


@pytest.mark.parametrize("module", ["accounting", "stages", "limit", "engines", "budget"])
def test_benches_stay_on_this_machine(module: str) -> None:
    """They ask as fast as they can, so another host is refused before anything is sent."""
    ran = bench(module, "http://crawlr.invalid/")

    assert ran.returncode == 1
    assert "is not on this machine" in ran.stderr


def test_limit_measures_each_stage_alone(tmp_path: Path) -> None:
    """Every request and every body of the crawl again, and the ratio of these times."""
    out, chart = tmp_path / "limit.json", tmp_path / "limit.svg"

    ran = bench("limit", *SMALL, "--errors", "0.25", "--json", str(out), "--picture", str(chart))

    assert ran.returncode == 0, ran.stderr
    [told] = json.loads(out.read_text())["rounds"]
    slower = max(told["fetch_alone"], told["parse_alone"] / 2)
    assert (told["requests"], told["bodies"]) == (12, 9)
    assert 0 < told["fetch_cpu"] <= told["main_cpu"]
    assert f"distance from the limit: {told['wall'] / slower:.2f}" in ran.stdout
    assert "fetching" in texts_of(chart)


@pytest.mark.skipif(sys.platform != "linux", reason="the CPU of threads is read from /proc")
def test_budget_divides_all_cpu_of_a_crawl(tmp_path: Path) -> None:
    """Every part of a page's way has its microseconds; those that a crawl cannot do without are more than nothing."""
    out, chart = tmp_path / "budget.json", tmp_path / "budget.svg"

    ran = bench("budget", *SMALL, "--json", str(out), "--picture", str(chart))

    assert ran.returncode == 0, ran.stderr
    parts = json.loads(out.read_text())["us_a_page"]
    assert list(parts) == list(budget.PARTS)
    needed = ("fetch", "dispatch", "hand-off out", "parse", "resolve", "hand-off back", "merge", "journal", "export")
    assert all(parts[name] > 0 for name in needed)
    assert "journal" in texts_of(chart)


def test_engines_and_shapes_find_the_same(tmp_path: Path) -> None:
    """Every pair of engines, and the shapes that have processes of their own: the same pages and edges in all rows."""
    out, chart = tmp_path / "engines.json", tmp_path / "engines.svg"
    files = ("--json", str(out), "--picture", str(chart))

    ran = bench("engines", *SMALL, "--errors", "0.25", "--shapes", "executor,asyncio+", *files)

    assert ran.returncode == 0, ran.stderr
    rows = json.loads(out.read_text())["rows"]
    assert {row["name"] for row in rows} >= {"crawlr urllib3+lxml", "executor", "asyncio+"}
    assert {(row["pages"], row["edges"]) for row in rows} == {(12, 9 * 4)}
    assert "parser processes" in texts_of(chart)


@pytest.mark.parametrize("shape", ["threads", "asyncio"])
def test_shapes_of_one_process_find_the_whole_site(shape: str) -> None:
    """Pages, broken ones and edges, as the site was made."""
    with Site(Recipe(pages=30, weight=1_000, links=5, errors=0.2), server="own") as site:
        graph = rivals.Graph(host=urlsplit(site.url).netloc)
        graph.learn(site.url, site.url)
        rivals.SHAPES[shape](graph, Options.make(site.url, concurrency=4, out=None), 2)

    assert graph.told() == {"pages": 30, "ok": 30 - site.made.errors, "edges": site.made.edges}


def test_engines_end_when_one_finds_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """A figure of a crawl that did less is no figure."""
    from bench import engines

    took = measured_run(pages=12, edges=36)
    monkeypatch.setattr(engines.measured, "crawl", lambda *_: took)
    monkeypatch.setattr(
        engines.measured,
        "run",
        lambda *_: {"pages": 12, "edges": 35, "main_cpu": 1.0, "other_cpu": 0.0, "main_peak": 1, "other_peak": 1},
    )

    with pytest.raises(RuntimeError, match="threads found 12 pages and 35 edges, not 12 and 36"):
        engines.compare("http://127.0.0.1:1/", procs=1, concurrency=1, runs=1, shapes=["threads"])


def test_frontier_prices_urls_and_pages(tmp_path: Path) -> None:
    """What a known URL takes, and what a page costs at each size."""
    out, chart = tmp_path / "frontier.json", tmp_path / "frontier.svg"

    ran = bench("frontier", "--urls", "2000", "--rounds", "1", "--json", str(out), "--picture", str(chart))

    assert ran.returncode == 0, ran.stderr
    told = json.loads(out.read_text())
    assert told["growth"]["urls"] == 2000
    assert told["growth"]["state_bytes_a_url"] > 40
    assert [each["urls"] for each in told["pages"]] == [100, 200, 666, 2000]
    assert all(each["cpu_us"] > 0 for each in told["pages"])
    assert "known URLs" in texts_of(chart)


def test_startup_times_the_first_request(tmp_path: Path) -> None:
    """The first request comes before the end of its crawl."""
    out = tmp_path / "startup.json"

    ran = bench("startup", "--runs", "1", "--json", str(out))

    assert ran.returncode == 0, ran.stderr
    seconds = json.loads(out.read_text())["seconds"]
    assert 0 < seconds["first request"][0] < seconds["crawl of one page"][0]
    assert seconds["--help"][0] > 0


def test_accounting_compares_crawls_with_and_without(tmp_path: Path) -> None:
    """A pair of two crawls that took time; and without it nothing is counted."""
    out = tmp_path / "accounting.json"
    stats = tmp_path / "stats.json"

    with Site(Recipe(pages=12, weight=1_000, links=4), server="own") as site:
        ran = bench("accounting", site.url, "--runs", "1", "--json", str(out))
        words = ("--rps", "0", "-q", "--out", str(tmp_path / "map.json"), "--stats", str(stats))
        silent = bench("accounting", "--inside=off", site.url, *words)

    assert (ran.returncode, silent.returncode) == (0, 0), ran.stderr + silent.stderr
    pairs = json.loads(out.read_text())["pairs"]
    assert len(pairs) == 1
    assert all(value > 0 for pair in pairs for value in pair.values())
    told = json.loads(stats.read_text())
    assert (told["pages"]["pages"], told["parse"]["pages"], told["timeline"]) == (12, 0, [])


# ---- their figures


def measured_run(*, pages: int = 100, edges: int = 0, elapsed: float = 1.0) -> Measured:
    return Measured(
        wall=elapsed + 0.5, elapsed=elapsed, pages=pages, bytes=1, edges=edges, main_cpu=0.1, parser_cpu=0.2,
        main_peak=1, parser_peak=1, stats={},
    )  # fmt: skip


def test_the_accounting_is_read_back_as_it_was(crawl: Any, tmp_path: Path) -> None:
    """The load that is made of --stats predicts what the crawl itself predicted."""
    path = tmp_path / "stats.json"
    with Site(Recipe(pages=60, weight=20_000), server="own") as site:
        crawl(site.url, stats=str(path), parse_procs=1)
    told = json.loads(path.read_text())

    load = load_of(told)

    assert told["limit"]["with_parse_procs"] == {
        str(procs): round(limits.predict(load, procs), 2) for procs in (1, 2, 4, 8, 16)
    }
    assert (load.parse_share, load.fetch_share) == (told["parse"]["busy_share"], told["fetch"]["busy_share"])


def test_the_middle_run_is_the_one_of_the_median_rate() -> None:
    """Of an odd number the one in the middle, of an even number the slower of the two."""
    runs = [measured_run(elapsed=seconds) for seconds in (4.0, 1.0, 2.0)]

    assert measured.middle(runs).elapsed == 2.0
    assert measured.middle(runs[:2]).elapsed == 4.0
    assert measured.spread([4.0, 1.0, 2.0]) == 1.5


@pytest.mark.parametrize(
    ("url", "is_here"),
    [
        ("http://127.0.0.1:80/", True),
        ("http://[::1]/", True),
        ("http://localhost:8000/x", True),
        ("http://192.0.2.1/", False),
        ("http://localhost.example/", False),
        ("http://127.0.0.1.example/", False),
    ],
)
def test_only_loopback_is_loopback(url: str, *, is_here: bool) -> None:
    """Names and addresses that only look like this machine are others."""
    if is_here:
        assert measured.on_loopback(url) == url
    else:
        with pytest.raises(ValueError, match="not on this machine"):
            measured.on_loopback(url)


def test_a_rivals_graph_counts_as_the_crawl_does() -> None:
    """Links to itself and out of scope are no edges, and a page waits once."""
    graph = rivals.Graph(host="site.test")
    graph.learn("http://site.test/", "http://site.test/")

    graph.answered(200, None)
    graph.parsed(
        "http://site.test/",
        [(url, url) for url in ("http://site.test/", "http://site.test/a", "http://other.test/")],
    )
    graph.learn("http://site.test/A", "http://site.test/a")

    assert graph.told() == {"pages": 1, "ok": 1, "edges": 1}
    assert graph.waiting == ["http://site.test/", "http://site.test/a"]


def test_the_limit_is_the_slower_stage() -> None:
    """Parsing is shared by the processes, fetching is not."""
    each = limit.Round(
        requests=1, bodies=1, wall=3.0, elapsed=2.5, fetch_alone=1.0, fetch_cpu=0.5, parse_alone=4.0, parse_cpu=4.0,
        procs=2, main_cpu=1.0, parser_cpu=4.0, limit_said="",
    )  # fmt: skip

    assert each.limit == 2.0


def test_tables_align_words_left_and_numbers_right() -> None:
    """Numbers have their separators, a share counts as a number, nothing is nothing."""
    assert tables.table(("name", "pages", "share"), [("a", 12345, "7%"), ("longer", 1.5, None)]).split("\n") == [
        "name     pages  share",
        "a       12,345     7%",
        "longer    1.50",
    ]


def test_pictures_are_svg_with_their_words(tmp_path: Path) -> None:
    """Names are escaped, a chart of one point is a chart, a bar says how high it is."""
    picture.write(
        str(tmp_path / "lines.svg"),
        picture.lines(
            "a < b", x_name="x & y", y_name="z", drawn=[picture.Line(name="one point", points=((1.0, 5.0),))]
        ),
    )
    picture.write(
        str(tmp_path / "bars.svg"),
        picture.bars("bars", y_name="ms", names=["first row", "b"], stacks=[("low", [1.0, 2.0]), ("high", [0.5, 2.0])]),
    )

    assert {"a < b", "x & y", "one point"} <= set(texts_of(tmp_path / "lines.svg"))
    assert {"first", "row", "b", "low", "high", "1.5", "4"} <= set(texts_of(tmp_path / "bars.svg"))


def test_a_sites_address_is_of_this_machine() -> None:
    """It is on the loopback address, on a port of its own."""
    with Site(Recipe(pages=1), server="own") as one, Site(Recipe(pages=1), server="own") as two:
        assert {urlsplit(each.url).hostname for each in (one, two)} == {"127.0.0.1"}
        assert one.port != two.port
