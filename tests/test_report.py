"""The HTML report as a file: what it holds, what it says when it does not know, what it costs, what may be in it."""

from __future__ import annotations

import base64
import hashlib
import io
import itertools
import json
import math
import re
import tracemalloc
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlr import report
from crawlr.export import open_crawl
from crawlr.report import broken, link_graph, linking, redirects, weight, words
from crawlr.report.facts import Facts
from crawlr.report.performance import Performance
from crawlr.report.tables import Largest
from crawlr.report.unasked import Unasked
from crawlr.sinks.source import Source
from crawlr.view import CrawlView
from tests.conftest import Command, Crawl
from tests.report_crawl import (
    ERROR,
    HOSTILE_URL,
    OTHER,
    RULE,
    SCRIPT_URL,
    SITE,
    TEXT,
    TITLE,
    MadeCrawl,
    everything,
    head,
    stats,
)
from tests.servers.local import Reply
from tests.servers.local import page as answer

VENDORED = Path(report.__file__).parent / "vendored" / "uplot"


class Page(HTMLParser):
    """A report as a browser without scripts reads it."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.blocks: dict[str, Any] = {}
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.sections: dict[str, str] = {}
        self._open: tuple[str, dict[str, str | None]] | None = None
        self._section = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.elements.append((tag, named))
        self._open = (tag, named)
        if tag == "section":
            self._section = str(named["id"])
            self.sections[self._section] = ""
        if tag in ("script", "style") and named.get("type") != "application/json":
            (self.scripts if tag == "script" else self.styles).append("")

    def handle_endtag(self, tag: str) -> None:
        self._open = None
        if tag == "section":
            self._section = ""

    def handle_data(self, data: str) -> None:
        tag, named = self._open or ("", {})
        if tag == "script" and named.get("type") == "application/json":
            self.blocks[str(named["id"]).removeprefix("data-")] = json.loads(data)
        elif tag == "script":
            self.scripts[-1] += data
        elif tag == "style":
            self.styles[-1] += data
        elif self._section:
            self.sections[self._section] = re.sub(r"\s+", " ", self.sections[self._section] + data)

    def rows(self, name: str) -> list[list[Any]]:
        """The rows of a table, with the addresses in the place of their numbers."""
        table = self.blocks[name]
        return [self._cells(table["columns"], row) for row in table["rows"]]

    def opened(self, name: str, url: str) -> list[list[Any]]:
        """The rows below the row that begins with `url`."""
        details = self.blocks[name]["details"]
        for row, inner in zip(self.rows(name), details["rows"], strict=True):
            if row[0] == url:
                return [self._cells(details["columns"], each) for each in inner]
        raise AssertionError(f"no row of {url}")

    def _cells(self, columns: list[dict[str, str]], row: list[Any]) -> list[Any]:
        urls = self.blocks["urls"]
        pairs = zip(columns, row, strict=True)
        return [urls[cell] if column["kind"] == "url" and cell is not None else cell for column, cell in pairs]


def written(view: CrawlView, **changes: Any) -> str:
    options: dict[str, Any] = {"head": head(), "stats_document": stats()} | changes
    out = io.StringIO()
    report.write(out, view, **options)
    return out.getvalue()


def read(made: MadeCrawl, *, with_texts: bool = True, has_sitemaps: bool = True, **changes: Any) -> Page:
    with made.view(with_texts=with_texts, has_sitemaps=has_sitemaps) as view:
        return Page(written(view, **changes))


@pytest.fixture(scope="module")
def page() -> Page:
    """The report of the crawl with one of everything."""
    return read(everything())


# ---------------------------------------------------------------- what may be in it


def test_nothing_from_the_web_becomes_markup(page: Page) -> None:
    """Titles, link texts, errors, rules and URLs that are written as markup add no element and no attribute to it."""
    tags = {tag for tag, _ in page.elements}
    attributes = {name for _, named in page.elements for name in named}

    assert tags & {"img", "iframe", "object", "embed", "form", "base", "link"} == set()
    assert [name for name in attributes if name.startswith("on") or name in ("style", "srcdoc", "src")] == []
    assert len(page.scripts) == len(page.styles) == 2


def test_hostile_texts_arrive_unchanged(page: Page) -> None:
    """What would like to be markup is shown as it is."""
    rows = {row[0]: row for row in page.rows("broken")}

    assert HOSTILE_URL in rows
    assert rows[f"{SITE}/dead"][3] == ERROR
    assert page.opened("broken", f"{SITE}/gone")[0] == [f"{SITE}/", TEXT, "a"]
    assert TITLE in {row[5] for row in page.rows("slow")}
    assert RULE in page.sections["unasked"]
    assert "{{ 7 * 7 }}" in TEXT


def test_every_link_is_to_the_web_or_inside(page: Page) -> None:
    """No javascript: or data: address is a link, and those to the web tell nobody where they come from."""
    links = [named for tag, named in page.elements if tag == "a"]

    assert [named["href"] for named in links if not re.match(r"https?://|#", str(named["href"]))] == []
    assert {named.get("rel") for named in links if not str(named["href"]).startswith("#")} == {
        "noopener noreferrer nofollow"
    }


def test_an_address_of_another_scheme_is_no_link() -> None:
    """Even a seed, which a damaged file may hold as it likes."""
    page = read(everything(), head=head(seeds=[SCRIPT_URL, f"{SITE}/"]))

    assert SCRIPT_URL in page.sections["overview"]
    assert SCRIPT_URL not in {named.get("href") for _, named in page.elements}


def test_policy_allows_the_own_scripts_and_styles_alone(page: Page) -> None:
    """Each inline script and style has its hash in the policy, and there is nothing else in it."""
    (policy,) = (n["content"] for _, n in page.elements if n.get("http-equiv") == "Content-Security-Policy")
    directives = dict(part.strip().split(" ", 1) for part in str(policy).split(";"))

    def hashes(texts: list[str]) -> str:
        digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
        return " ".join(f"'sha256-{digest}'" for digest in digests)

    assert directives == {
        "default-src": "'none'",
        "script-src": hashes(page.scripts),
        "style-src": hashes(page.styles),
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_plot_library_is_the_one_that_is_noted() -> None:
    """The note beside it has its version and the sums of its files, and its licence goes with every report."""
    note = (VENDORED / "README.md").read_text(encoding="utf-8")
    sums = dict(re.findall(r"`([\w.]+)` \| `([0-9a-f]{64})`", note))
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in VENDORED.iterdir()}

    assert sums == {name: digest for name, digest in found.items() if name != "README.md"}
    assert f"uPlot {report.document._uplot_version()}\n" in note
    assert (VENDORED / "LICENSE").read_text(encoding="utf-8") in read(everything()).scripts[0]


def test_same_crawl_gives_the_same_file() -> None:
    """Nothing in it depends on the time, the order of a set or the process."""
    with everything().view() as view:
        first, second = written(view), written(view)

    assert first == second


# ---------------------------------------------------------------- broken


def test_broken_names_every_page_that_links_there(page: Page) -> None:
    """With the text and the kind of each link, and redirects that lead there."""
    assert page.opened("broken", f"{SITE}/gone") == [
        [f"{SITE}/", TEXT, "a"],
        [f"{SITE}/about", "Gone, too", "area"],
        [f"{SITE}/to-gone", None, "redirect"],
    ]
    assert page.opened("broken", f"{SITE}/oops") == [[f"{SITE}/", "oops", "a, nofollow"]]


def test_broken_lists_the_most_linked_first(page: Page) -> None:
    """Every kind of trouble is there, and says what it is."""
    rows = page.rows("broken")

    assert rows[0] == [f"{SITE}/gone", "client error", 404, "404 Not Found", 3]
    assert {row[0].removeprefix(SITE): row[1] for row in rows[1:]} == {
        "/dead": "no answer",
        "/oops": "server error",
        "/cut": "damaged body",
        "/nowhere": "bad redirect",
        HOSTILE_URL.removeprefix(SITE): "client error",
        "/round": "redirect loop",
        "/round2": "redirect loop",
    }
    assert "8 broken URLs, linked from 2 pages" in page.sections["overview"]


def test_links_without_texts_are_said_to_be_so() -> None:
    """A crawl that did not keep the texts has the linking pages all the same."""
    page = read(everything(), with_texts=False)

    assert page.opened("broken", f"{SITE}/oops") == [[f"{SITE}/", None, "a, nofollow"]]
    assert "the crawl did not keep them" in page.sections["broken"]


def test_one_target_linked_from_everywhere_leaves_room_for_others() -> None:
    """The cap on links is shared evenly, and the true numbers stay."""
    made = MadeCrawl()
    made.page("/", depth=0, parent=None)
    made.page("/footer", status=404, outcome="http_error")
    made.page("/rare", status=404, outcome="http_error")
    for number in range(30):
        made.page(f"/p{number}")
        made.link(f"/p{number}", "/footer", "footer")
    made.link("/p29", "/rare", "rare")
    with made.view() as view:
        source = Source(view, head())
        collected = broken.Broken(source, Facts(source), links=10)
        for each in view.pages():
            collected.see(each)
        table = collected.table(report.tables.Urls(view))

    assert table.details is not None
    assert [len(rows) for rows in table.details.rows] == [9, 1]
    assert table.details.totals == [30, 1]


@given(st.lists(st.integers(0, 50)), st.integers(0, 200))
def test_fair_share_is_the_largest_that_fits(counts: list[int], limit: int) -> None:
    """No more than the limit in all, and one more each would be too many, or change nothing."""
    most = linking.fair_share(counts, limit)
    kept = sum(min(count, most) for count in counts)

    assert kept <= limit
    assert most >= max(counts, default=0) or sum(min(count, most + 1) for count in counts) > limit


# ---------------------------------------------------------------- links out


def test_what_turns_programs_away_is_told_from_what_is_broken(page: Page) -> None:
    """The worst class first and the most linked first in it, with the answer in words; what is there has no row."""
    assert page.rows("external") == [
        [f"{OTHER}/2", "broken", 410, "Gone", 2],
        [f"{OTHER}/3", "broken", None, ERROR, 1],
        [f"{OTHER}/1", "blocked", 999, "status 999", 1],
        [f"{OTHER}/4", "unchecked", None, "robots.txt: Disallow: /4 for *", 1],
    ]
    assert "3 further targets were not asked" in page.sections["external"]
    assert "2 link targets out of the crawl are broken" in page.sections["overview"]
    assert "1 link target out of the crawl is blocked" in page.sections["overview"]


def test_links_out_name_every_page_with_the_link(page: Page) -> None:
    """With its text and kind."""
    assert page.opened("external", f"{OTHER}/2") == [
        [f"{SITE}/about", "outside 2", "a"],
        [f"{SITE}/copy", TEXT, "a, nofollow"],
    ]


def test_links_out_of_a_real_crawl_are_those_of_its_check(
    site: Callable[..., Any], crawl: Crawl, tmp_path: Path
) -> None:
    """Also when the report is made later, from sitemap.json."""
    outside = site({"/shut": Reply(status=403), "/robots.txt": Reply(body="User-agent: *\nDisallow: /no\n")})
    made = site({"/": answer(*(outside.url(path) for path in ("/gone", "/shut", "/no")))})
    out = tmp_path / "map.json"
    crawl(made.url(), out=out, check_external=True, stats=str(tmp_path / "stats.json"))
    accounting = json.loads((tmp_path / "stats.json").read_text())
    with open_crawl(str(out)) as (view, found):
        page = Page(written(view, head=found, stats_document=accounting))
    host = {row[0]: row for row in page.rows("hosts")}[outside.url("").removeprefix("http://")]

    assert (host[1], host[4], host[10]) == (0, 5, "read, 1 rule applies to crawlr")
    assert {row[0].removeprefix(outside.url("")): row[1:4] for row in page.rows("external")} == {
        "/gone": ["broken", 404, "Not Found"],
        "/shut": ["blocked", 403, "Forbidden"],
        "/no": ["unchecked", None, "robots.txt: Disallow: /no for *"],
    }
    assert page.opened("external", outside.url("/shut")) == [[made.url(), None, None]]


def test_report_that_a_crawl_writes_has_texts_rules_and_times(
    site: Callable[..., Any], run_cli: Command, tmp_path: Path
) -> None:
    """What is known only while it crawls is in the report that it writes itself."""
    outside = site({"/shut": Reply(status=403)})
    text = Reply(body=f'<a href="{outside.url("/shut")}">Members only</a><a href="/no">no</a>')
    robots = Reply(body="User-agent: *\nCrawl-delay: 0.01\nDisallow: /no\n")
    made = site({"/": text, "/robots.txt": robots})
    out = tmp_path / "report.html"
    run_cli("--check-external", "--out", str(out), made.url())
    page = Page(out.read_text(encoding="utf-8"))
    hosts = {row[0]: row for row in page.rows("hosts")}

    assert page.opened("external", outside.url("/shut")) == [[made.url(), "Members only", "a"]]
    assert "Disallow: /no for *" in page.sections["unasked"]
    assert [len(values) for values in page.blocks["plots"]["parse"]] == [1, 1]
    assert hosts[made.url("").removeprefix("http://")][8] == 0.01
    assert hosts[outside.url("").removeprefix("http://")][10] == "none (status 404)"


# ---------------------------------------------------------------- redirects


def test_redirects_are_told_apart(page: Page) -> None:
    """Loops, dead ends and chains come first; what only tidies an address is in a table of its own."""
    found = {row[0].removeprefix(SITE): (row[1], row[2], row[3], row[4]) for row in page.rows("redirects")}

    assert found == {
        "/round": ("loop", 2, f"{SITE}/round", 301),
        "/round2": ("loop", 2, f"{SITE}/round2", 301),
        "/to-gone": ("ends at an error", 1, f"{SITE}/gone", 404),
        "/older": ("chain", 2, f"{SITE}/about", 200),
        "/old": ("to another page", 1, f"{SITE}/about", 200),
        "/away": ("out of the crawl", 1, "https://other.test/there", None),
        "/hostile": ("out of the crawl", 1, SCRIPT_URL, None),
    }
    assert list(found)[:3] == ["/round", "/round2", "/to-gone"]
    assert page.rows("redirects-noise") == [[f"{SITE}/folder", "slash", 1, f"{SITE}/folder/", 200, 1]]
    assert page.opened("redirects", f"{SITE}/older") == [
        [f"{SITE}/older", 302],
        [f"{SITE}/old", 301],
        [f"{SITE}/about", 200],
    ]


@pytest.mark.parametrize(
    ("url", "target", "kind"),
    [
        ("http://a.test/x", "https://a.test/x", "to https"),
        ("http://a.test/x", "https://a.test/x/", "to https"),
        ("https://a.test/x", "https://a.test/x/", "slash"),
        ("https://a.test/x/?q=1", "https://a.test/x?q=1", "slash"),
        ("https://a.test/x", "http://a.test/x", None),
        ("http://a.test/x", "https://www.a.test/x", None),
        ("https://a.test/x", "https://a.test/X", None),
        ("https://a.test/x?q=1", "https://a.test/x/?q=2", None),
        ("https://a.test/x?q=1", "https://a.test/x", None),
    ],
)
def test_only_a_slash_or_https_is_noise(url: str, target: str, kind: str | None) -> None:
    """A way back to http, another host or another query is no noise."""
    assert redirects.tidies(url, target) == kind


def test_a_chain_that_links_make_endless_is_followed_for_a_while() -> None:
    """Each page of it is a beginning, so without a bound the work would grow by the square."""
    made = MadeCrawl()
    made.page("/", depth=0, parent=None)
    for number in range(200):
        made.page(f"/r{number}", status=301, outcome="redirect", to=f"/r{number + 1}")
    made.page("/r200")
    page = read(made)

    assert max(row[2] for row in page.rows("redirects")) == redirects.MOST_HOPS
    assert page.rows("redirects")[-1][2] == 1


# ---------------------------------------------------------------- speed, size, duplicates, sitemap, hosts


def test_slow_and_large_pages_come_first(page: Page) -> None:
    """Failures without an answer are no slow pages."""
    assert page.rows("slow")[0][:3] == page.rows("large")[0][:3] == [f"{SITE}/about", 2500, 5_000_000]
    assert f"{SITE}/dead" not in {row[0] for row in page.rows("slow")}
    assert "1 page took longer than a second" in page.sections["overview"]


@settings(deadline=None)
@given(st.lists(st.integers(0, 200_000), min_size=1))
def test_percentiles_are_those_of_the_sorted_list(values: list[int]) -> None:
    """Exact up to the last class, whatever the values are."""
    spread = weight.Spread(1, (100, 1000))
    for value in values:
        spread.add(value)
    ordered = sorted(min(value, (1 << 17) - 1) for value in values)

    assert spread.percentile(0.5) == ordered[(len(values) + 1) // 2 - 1]
    assert [count for _, _, count in spread.classes()] == [
        sum(value < 100 for value in values),
        sum(100 <= value < 1000 for value in values),
        sum(value >= 1000 for value in values),
    ]


def test_duplicates_are_grouped(page: Page) -> None:
    """By body, with those that name another as canonical counted; by title, without them."""
    assert page.rows("bodies") == [["About", 3, 1, f"{SITE}/about"]]
    assert page.rows("titles") == [["About", 2, f"{SITE}/about"]]
    assert page.blocks["titles"]["details"]["totals"] == [2]
    assert [row[0] for row in page.rows("untitled")] == [f"{SITE}/untitled"]


def test_sitemap_and_links_are_compared(page: Page) -> None:
    """Orphans, pages that are missing, and what should not be listed; where the crawl began is no orphan."""
    assert {row[0] for row in page.rows("orphans")} == {f"{SITE}/orphan", f"{SITE}/listed-but-refused"}
    assert {row[0].removeprefix(SITE) for row in page.rows("missing")} == {
        "/about",
        "/copy2",
        "/untitled",
        "/folder/",
        "/cut",
    }
    assert {row[0].removeprefix(SITE): row[1] for row in page.rows("unfit")} == {
        "/hidden": "noindex",
        "/listed-but-refused": "robots disallowed",
    }


def test_sitemaps_are_listed_with_what_was_wrong(page: Page) -> None:
    """Trouble first; one that was only guessed at and is not there is no trouble."""
    assert page.rows("sitemaps") == [
        [f"{SITE}/index-1.xml", "trouble", ERROR],
        [f"{SITE}/index-2.xml", "not asked", None],
        [f"{SITE}/index.xml", "read", None],
        [f"{SITE}/sitemap.xml", "not there", "status 404"],
    ]
    assert "1 XML sitemap could not be read" in page.sections["overview"]


def test_sitemaps_of_a_real_crawl_are_in_its_files(site: Callable[..., Any], crawl: Crawl, tmp_path: Path) -> None:
    """What robots.txt forbids and what is no sitemap are told, in sitemap.json and in a report made of it."""
    names = ("a.xml", "private.xml", "gone.xml")
    robots = "User-agent: *\nDisallow: /private\n" + "".join(f"Sitemap: /{name}\n" for name in names)
    made = site({"/": answer(), "/robots.txt": Reply(body=robots), "/a.xml": Reply(body="<p>no sitemap")})
    out = tmp_path / "map.json"
    crawled = crawl(made.url(), out=out, sitemaps=True)
    with open_crawl(str(out)) as (view, found):
        page = Page(written(view, head=found, stats_document=None))
    wrong = {
        "/a.xml": "not a sitemap",
        "/private.xml": "not asked: robots.txt forbids it (Disallow: /private for *)",
        "/gone.xml": "status 404",
        "/sitemap.xml": "status 404",
    }

    assert {row["url"].removeprefix(made.url("")): row["error"] for row in crawled.map["sitemaps"]} == wrong
    assert {row[0].removeprefix(made.url("")): row[2] for row in page.rows("sitemaps")} == wrong


def test_without_sitemaps_there_is_nothing_to_compare() -> None:
    """And the tab says which option asks for them."""
    page = read(everything(), has_sitemaps=False)

    assert "did not read the XML sitemaps" in page.sections["listed"]
    assert "--sitemaps" in page.sections["listed"]
    assert page.rows("missing") == []


def test_what_was_not_requested_has_its_rule_and_an_example() -> None:
    """Each rule once, the most frequent first, with the page that led there."""
    with everything().view() as view:
        unasked = Unasked(Source(view, head()), report.tables.Urls(view))
    rules, bounds = unasked.reasons(is_rule=True), unasked.reasons(is_rule=False)

    assert [(each.name, each.rule, each.count) for each in rules] == [
        ("robots.txt disallowed", RULE, 3),
        ("trap", "'trap' stands 5 times in its path, more than 4 times", 1),
    ]
    assert (rules[0].example, rules[0].found_on) == (f"{SITE}/private", f"{SITE}/")
    assert {(each.name, each.count, each.example) for each in bounds} == {
        ("page budget", 1, f"{SITE}/late"),
        ("depth limit", 1, f"{SITE}/deep"),
    }


def test_hosts_have_what_an_operator_can_show(page: Page) -> None:
    """Limit and achieved rate, Crawl-delay, Retry-After, what robots.txt refused; hosts that had no page too."""
    columns = [column["name"] for column in page.blocks["hosts"]["columns"]]
    rows = {row[0]: dict(zip(columns, row, strict=True)) for row in page.rows("hosts")}
    site = rows["site.test"]

    assert (site["Requests"], site["Rate limit"], site["Rate achieved"]) == (24, 0.5, 0.46)
    assert site["Active for"] == 50.0
    assert (site["Crawl-delay"], site["Held by Retry-After"], site["429 or 503"]) == (2.0, 1.5, 1)
    assert site["robots.txt"] == "read, 3 rules apply to crawlr; 3 URLs refused"
    assert [rows["robots-only.test"][name] for name in ("Pages", "Crawl-delay", "Rate achieved", "robots.txt")] == [
        0,
        None,
        None,
        "not had: status 503",
    ]


@pytest.mark.parametrize(
    ("host", "options", "shown"),
    [
        ({"robots": "read, 12 rules", "crawl_delay_s": 7.0, "active_s": 12.0}, {}, ("read, 12 rules", 7.0, 1.92)),
        ({}, {"robots": False}, ("not asked (--no-robots)", 2.0, None)),
        ({}, {"rps": 0.5}, ("asked and obeyed", None, None)),
    ],
)
def test_hosts_take_what_the_accounting_names(
    host: Mapping[str, object], options: Mapping[str, object], shown: tuple[object, ...]
) -> None:
    """What it says wins over what can be concluded."""
    made = MadeCrawl()
    made.page("/", depth=0, parent=None)
    asked = {"host": "site.test", "requests": 24, "interval_s": 2.0, "held_s": 0.0} | dict(host)
    page = read(
        made, head=head(options={"rps": 5.0, "robots": True} | dict(options)), stats_document=stats(hosts=[asked])
    )
    row = page.rows("hosts")[0]

    assert (row[10], row[8], row[6]) == shown


# ---------------------------------------------------------------- structure, performance


def test_important_pages_are_drawn_with_their_links(page: Page) -> None:
    """Numbers in the picture are those of the table, and a link both ways is one line."""
    nodes = [named["data-node"] for _, named in page.elements if "data-node" in named]
    lines = [named for tag, named in page.elements if tag == "line"]
    number = {row[1]: str(row[0]) for row in page.rows("top")}
    pairs = {frozenset((named["data-a"], named["data-b"])) for named in lines}

    assert nodes == [str(each) for each in range(1, len(page.rows("top")) + 1)]
    assert frozenset((number[f"{SITE}/"], number[f"{SITE}/about"])) in pairs
    assert frozenset((number[f"{SITE}/about"], number[f"{SITE}/gone"])) in pairs
    assert len(pairs) == len(lines)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 12), st.data())
def test_picture_keeps_its_frame(count: int, data: st.DataObject) -> None:
    """Every node has a place of its own inside the picture, whatever is linked."""
    number = st.integers(0, max(0, count - 1))
    pairs = data.draw(st.lists(st.tuples(number, number).filter(lambda pair: pair[0] != pair[1]))) if count > 1 else []
    spots = link_graph.lay_out(count, pairs)

    assert len(set(spots)) == len(spots) == count
    assert all(0 <= x <= link_graph.WIDTH and 0 <= y <= link_graph.HEIGHT for x, y in spots)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(11, 26), max_size=link_graph.DRAWN), st.data())
def test_circles_of_the_picture_are_set_apart(radii: list[float], data: st.DataObject) -> None:
    """As many as it may have, whatever is linked, all inside."""
    number = st.integers(0, max(0, len(radii) - 1))
    pairs = data.draw(st.lists(st.tuples(number, number).filter(lambda pair: pair[0] != pair[1]))) if radii[1:] else []
    spots = link_graph.set_apart(link_graph.lay_out(len(radii), pairs), radii)
    gaps = [
        math.dist(spots[a], spots[b]) - radii[a] - radii[b] for a, b in itertools.combinations(range(len(radii)), 2)
    ]

    assert all(gap > 0 for gap in gaps)
    assert all(0 <= x <= link_graph.WIDTH and 0 <= y <= link_graph.HEIGHT for x, y in spots)


def test_performance_has_the_limiter_by_period() -> None:
    """Neighbours with the same limiter are one period, and the shares are of the time."""
    performance = Performance(stats())

    assert [(each.limiter, each.begin, each.end, each.width) for each in performance.periods] == [
        ("empty", 0.0, 1.0, 250.0),
        ("host", 1.0, 3.0, 500.0),
        ("parse", 3.0, 4.0, 250.0),
    ]
    assert dict(performance.shares) == {"host": 0.5, "empty": 0.25, "parse": 0.25}


def test_plots_have_their_data(page: Page) -> None:
    """Rates are per second, and a page's point is its size and time."""
    plots = page.blocks["plots"]

    assert plots["timeline"]["pages"] == [5, 10, 15, 20]
    assert plots["timeline"]["parse"] == [25, 25, 25, 25]
    assert [5_000_000, 2500] in [list(pair) for pair in zip(*plots["weight"], strict=True)]
    assert plots["parse"] is None
    assert "No page was parsed." in page.sections["performance"]


def test_parse_times_are_plotted_when_they_are_known() -> None:
    """The accounting may hold some pages' size and time."""
    page = read(everything(), stats_document=stats(parse_sample=[[2000, 1500], [1000, 500]], parse_sample_of=7000))

    assert page.blocks["plots"]["parse"] == [[1000, 2000], [0.5, 1.5]]
    assert "parse" in [named.get("data-plot") for _, named in page.elements]
    assert "2 pages, chosen at random among 7,000" in page.sections["performance"]


def test_without_the_accounting_the_page_says_so() -> None:
    """What is not known is said, and the rest is there."""
    page = read(everything(), stats_document=None)

    assert "accounting of the crawl was not at hand" in page.sections["performance"]
    assert "Rates and waits are not shown" in page.sections["hosts"]
    assert page.rows("hosts")[0][0] == "site.test"
    assert page.blocks["plots"]["timeline"] is None


# ---------------------------------------------------------------- the whole


def test_crawl_without_a_page_has_a_report() -> None:
    """Every tab is there and says that there is nothing."""
    page = read(MadeCrawl(), head=head(complete=True, stop_reason="finished"), stats_document=None)

    assert len(page.sections) == 10
    assert "No page answered." in page.sections["weight"]
    assert page.blocks["urls"] == []


def test_long_lists_are_cut_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table keeps its first rows and the true number."""
    monkeypatch.setattr(broken.Broken.__init__, "__kwdefaults__", {"rows": 3, "links": 50})
    page = read(everything())

    assert (len(page.rows("broken")), page.blocks["broken"]["total"]) == (3, 8)
    assert "first 3 of 8 rows" in page.sections["broken"]


@given(st.lists(st.integers(0, 9)), st.integers(1, 5))
def test_largest_keeps_the_largest(keys: list[int], limit: int) -> None:
    """In order, and of equal ones the first."""
    kept: Largest[int] = Largest(limit)
    for place, key in enumerate(keys):
        kept.offer((key,), place)

    assert kept.best() == sorted(range(len(keys)), key=lambda place: (-keys[place], place))[:limit]
    assert kept.total == len(keys)


def test_memory_is_bounded_by_the_caps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times the pages cost a few bytes each, once the tables are full."""

    def peak(pages: int) -> int:
        made = MadeCrawl()
        made.page("/", depth=0, parent=None, title="Home")
        for number in range(1, pages):
            made.page(f"/page-{number}", title=f"Title {number}", millis=number % 700, size=number * 7, body=number)
            made.link("/" if number < 50 else f"/page-{number // 2}", f"/page-{number}", "text")
        with made.view(has_sitemaps=False) as view:
            del made
            tracemalloc.start()
            try:
                report.write(Nowhere(), view, head=head(options={}), stats_document=stats())
                return tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

    monkeypatch.setattr(link_graph, "_ROUNDS", 1)  # of floats, each of which is traced
    small, large = peak(2000), peak(8000)

    assert (large - small) / 6000 < 200  # 118 and 130 on two machines; what is not capped costs thousands


class Nowhere(io.StringIO):
    """Takes a file and keeps nothing of it."""

    def write(self, text: str) -> int:
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)


def test_report_of_a_real_crawl(site: Callable[..., Any], crawl: Crawl, tmp_path: Path) -> None:
    """A crawl's own sitemap.json and accounting make one, hashes and texts being said to be missing."""
    made = site({"/": answer("/a", "/none", title="Start"), "/a": answer("/", title="A")})
    out, accounting = tmp_path / "map.json", tmp_path / "stats.json"
    crawl(made.url(), out=out, stats=str(accounting))
    with open_crawl(str(out)) as (view, found):
        page = Page(written(view, head=found, stats_document=json.loads(accounting.read_text())))

    assert [row[1:3] for row in page.rows("broken")] == [["client error", 404]]
    assert page.opened("broken", made.url("/none")) == [[made.url(), None, None]]
    assert "does not hold it" in page.sections["duplicates"]
    assert page.rows("hosts")[0][4] >= 3


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "0.977 KiB"), (1536, "1.5 KiB"), (300 << 20, "300 MiB"), (5 << 40, "5 TiB")],
)
def test_sizes_in_words(value: int, text: str) -> None:
    """Three digits, by powers of 1,024."""
    assert words.size(value) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0%"), (0.0004, "<0.1%"), (0.051, "5.1%"), (0.25, "25%"), (0.9951, "99.5%"), (0.9999, "99.9%"), (1, "100%")],
)
def test_shares_in_words(share: float, text: str) -> None:
    """Only nothing is 0% and only all is 100%."""
    assert words.percent(share) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.04, "0.0 s"), (9.94, "9.9 s"), (61, "61 s"), (125.6, "2 min 6 s"), (7325, "2 h 2 min")]
)
def test_durations_in_words(seconds: float, text: str) -> None:
    """As long as it is short, to the tenth of a second."""
    assert words.duration(seconds) == text
