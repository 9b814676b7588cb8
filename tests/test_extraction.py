"""What users take out of pages: by a function of their own in the parse processes, by CSS selectors, by XPath."""

from __future__ import annotations

import csv
import functools
import io
import json
import re
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import crawlr
from crawlr.errors import OptionsError, StateError
from crawlr.extract_rules import ExtractRules
from crawlr.options import Options
from crawlr.parse.extraction import LIMIT, Extractor
from crawlr.records import Outcome, PageRecord
from crawlr.sinks import csv_file
from crawlr.sinks.tables import Column, Kind, Table
from tests import user_functions
from tests.conftest import Command, Crawl
from tests.fakeweb import FakeWeb, Page
from tests.servers.local import Reply, Site, page

MakeSite = Callable[..., Site]
HOST = "http://web.test"
HTML = """\
<!doctype html><html><head><title> A  shop </title><style>p { color: red }</style></head><body>
<h1>Fine <b>pears</b>
  and apples</h1>
<p class="price" data-n="1">12 <i>EUR</i></p><p class=price data-n=2> 7 EUR </p><p>none</p>
<a rel="next" href="/2?a=1&amp;b=2">next</a><!-- a note --></body></html>"""


def document(html: str = HTML, **values: Any) -> crawlr.ParsedDocument:
    return crawlr.ParsedDocument(url=f"{HOST}/shop", html=html, **values)


def run(html: str = HTML, **rules: Any) -> Any:
    """What comes of these rules, read back; with an error, that."""
    value, error = Extractor(ExtractRules(**rules)).run(document(html))
    return error if value is None else json.loads(value)


# ---------------------------------------------------------------- selectors


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("h1", ["Fine pears and apples"]),
        (".price", ["12 EUR", "7 EUR"]),
        (".price::text", ["12 ", " 7 EUR "]),
        (".price::attr(data-n)", ["1", "2"]),
        ("A::attr(HREF)", ["/2?a=1&b=2"]),
        ("a::attr('rel')", ["next"]),
        ("h1, a::attr(rel)", ["Fine pears and apples", "next"]),
        ("p:not(.price)", ["none"]),
        (":root > head > title", ["A shop"]),
        ("video", []),
    ],
)
def test_css_gives_texts(selector: str, expected: list[str]) -> None:
    """An element is its text, ::text its text nodes, ::attr(name) an attribute, in document order."""
    assert {"it": expected} == run(css=(("it", selector),))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("//h1", ["Fine pears and apples"]),
        ("//p/@data-n", ["1", "2"]),
        ("//h1/b/text()", ["pears"]),
        ("count(//p)", ["3"]),
        ("1 div 2", ["0.5"]),
        ("1 div 0", ["Infinity"]),
        ("boolean(//video)", ["false"]),
        ("string(//title)", [" A  shop "]),
        ("//comment()", ["a note"]),
        ("//p[re:test(., '^\\d+ E')]", ["12 EUR"]),
        ("//h1/namespace::*", ["http://www.w3.org/XML/1998/namespace"]),
        ("//video", []),
    ],
)
def test_xpath_gives_texts(expression: str, expected: list[str]) -> None:
    """Nodes as by CSS; numbers and truth values as XPath writes them."""
    assert {"it": expected} == run(xpath=(("it", expression),))


@pytest.mark.parametrize(
    "html",
    ["", "<!-- only this -->", '<?xml version="1.0" encoding="utf-16"?><html><body/></html>', "\ud800\0\x01", "x"],
)
def test_any_document_has_a_tree(html: str) -> None:
    """Nothing at all, a declaration of an encoding that is not ours any more, characters that no text may have."""
    assert "html" == document(html).tree.tag
    assert document(html).tree.xpath("count(//video)") == 0


def test_a_tree_is_made_once() -> None:
    """Who looks ten times does not pay ten times."""
    made = document()

    assert made.tree is made.tree


def test_a_document_is_shown_without_its_text_and_may_be_referred_to() -> None:
    """A log line of one is a line; caches of users refer to it weakly."""
    document = crawlr.ParsedDocument(url="http://a.test/", html="<p>" * 1000, robots=("noindex",))

    assert weakref.ref(document)() is document
    assert "<p>" not in repr(document)
    assert "url='http://a.test/'" in repr(document)
    assert "robots=('noindex',)" in repr(document)


def test_a_page_that_a_selector_matches_too_often_has_an_error() -> None:
    """100,000 elements are more than a page's result may hold, and nothing of them is kept."""
    error = run("<p>word</p>" * 100_000, css=(("all", "p"),))

    assert error.startswith("ValueError: all: the texts that were found are more than 262,144 bytes")


# ---------------------------------------------------------------- the function


def test_function_and_selectors_share_a_dict() -> None:
    """What the function returns joins what the selectors found, and wins where both have a name."""
    found = run(function=user_functions.facts, css=(("h1", "h1"), ("title", "title")))

    assert ["Fine pears and apples"] == found["h1"]
    assert found["title"] is None, "the document was given no title"
    assert {"h1": []} == run("", function=user_functions.nothing, css=(("h1", "h1"),))
    assert "TypeError: the function returned list; " in run(function=user_functions.a_list, css=(("h1", "h1"),))


BAD = [
    ("raises", "ValueError: no price here: \x1b[31m? (user_functions.py, line "),
    ("mute", "_MuteError (user_functions.py, line "),
    ("exits", "SystemExit: 3 (user_functions.py, line "),
    ("recurses", "RecursionError: maximum recursion depth exceeded"),
    ("octets", "TypeError: Object of type bytes is not JSON serializable"),
    ("nan", "ValueError: Out of range float values are not JSON compliant"),
    ("huge", "ValueError: 300,002 bytes as JSON, more than 262,144"),
    ("cyclic", "ValueError: nested in itself, or more than 64 deep"),
    ("deep", "ValueError: nested in itself, or more than 64 deep"),
]


@pytest.mark.parametrize(("name", "expected"), BAD, ids=[name for name, _ in BAD])
def test_what_a_function_does_wrong_is_told_in_words(name: str, expected: str) -> None:
    """What it raises and what is no JSON is the page's error, with the line of the function where there is one."""
    value, error = Extractor(ExtractRules(function=f"tests.user_functions:{name}")).run(document())

    assert value is None
    assert error is not None
    assert error.startswith(expected)
    assert len(error) <= 500


def test_memory_that_runs_out_is_not_told_in_words() -> None:
    """The worker has its own way for that: another process tries the page again."""

    def eats(_: object) -> None:
        raise MemoryError

    with pytest.raises(MemoryError):
        Extractor(ExtractRules(function=eats)).run(document())


def test_any_text_can_be_stored() -> None:
    """Half of a surrogate pair and NUL come back as they were."""
    assert user_functions.half(document()) == run(function=user_functions.half)


def test_a_result_of_the_greatest_size_is_kept() -> None:
    """The bound is in bytes of JSON, quotes included."""
    value, error = Extractor(ExtractRules(function=lambda _: "é" * (LIMIT // 2 - 1))).run(document())

    assert error is None
    assert value is not None
    assert LIMIT == len(value.encode())


# ---------------------------------------------------------------- options


def refused(**options: Any) -> str:
    with pytest.raises(OptionsError) as caught:
        Options.make("example.com", **options)
    return str(caught.value)


MISTAKES = [
    ({"extract": "shop"}, "--extract: 'shop' is not accepted; accepted: module:function"),
    ({"extract": "no_such_module_x:f"}, "importing no_such_module_x failed: ModuleNotFoundError"),
    ({"extract": "tests.user_functions:fact"}, "has no attribute 'fact'"),
    ({"extract": "tests.user_functions:NEVER"}, "NEVER is no function"),
    ({"extract": "tests.user_functions:later"}, "it is async"),
    ({"extract": "tests.user_functions:of_two"}, "does not take a ParsedDocument alone"),
    ({"extract": "__main__:f"}, "put it into a module"),
    ({"extract": "os:system('x')"}, "accepted: module:function"),
    ({"extract": lambda document: None}, "can't be sent to parser processes"),
    ({"extract": 7}, "--extract: 7 is not accepted"),
    ({"extract_css": "h1"}, "'h1' has no NAME= before it"),
    ({"extract_css": "h=h1["}, "--extract-css: 'h=h1[' is not accepted ('h1[': "),
    ({"extract_css": {"h": "h1::before"}}, "there is no ::before here, only ::text and ::attr(name)"),
    ({"extract_css": {"h": "h1::attr(a, b)"}}, "'h1::attr(a, b)': "),
    ({"extract_css": {"h": "h1:nix(2)"}}, "'h1:nix(2)': "),
    ({"extract_css": {"h": ""}}, "'': "),
    ({"extract_css": ["a=p", "a=b"]}, "'a' is named twice"),
    ({"extract_css": {"a\nb": "p"}}, "is no name"),
    ({"extract_css": {"a": 3}}, "accepted: NAME=SELECTOR"),
    ({"extract_xpath": {"h": "//h1["}}, "'//h1[': Invalid expression"),
    ({"extract_xpath": {"h": "//svg:g"}}, "'//svg:g': Undefined namespace prefix"),
    ({"extract_xpath": {"h": "nix(//p)"}}, "'nix(//p)': Unregistered function"),
    ({"extract_xpath": {"h": "//p\0"}}, "'//p\\x00': "),
    ({"extract_css": {"h": "p"}, "extract_xpath": {"h": "//p"}}, "'h' is a name of --extract-css too"),
]


@pytest.mark.parametrize(("options", "expected"), MISTAKES, ids=range(len(MISTAKES)))
def test_what_cannot_work_is_refused_before_the_crawl(options: dict[str, Any], expected: str) -> None:
    """The message names the option, what is wrong, and what is accepted."""
    assert expected in refused(**options)


def test_functions_inside_functions_are_refused() -> None:
    """A closure can't be sent to another process, and that is said at once."""

    def inner(_: object) -> None:
        """Nothing."""

    assert "lambdas and functions inside functions can't" in refused(extract=inner)
    assert "lambdas and functions inside functions can't" in refused(extract=functools.partial(inner))


def test_a_function_of_the_script_itself_is_refused(run_cli: Command, tmp_path: Path) -> None:
    """Parser processes do not run the script again, so they can't have its functions."""
    (tmp_path / "script.py").write_text(
        "import crawlr\ndef mine(document):\n    return 1\n"
        "try:\n    crawlr.crawl('http://127.0.0.1:9/', extract=mine, out=None)\n"
        "except crawlr.OptionsError as error:\n    print(error)\n"
    )
    running = run_cli.start(out=None, folder=tmp_path, module=("script.py",))
    ran = running.wait()

    assert "it is of the script itself" in ran.out


def test_options_of_the_map_name_what_was_asked_for() -> None:
    """A function by module and name, selectors by their names."""
    made = Options.make(
        "example.com", extract=user_functions.facts, extract_css=["a=p"], extract_xpath={"b": "//p", "c": "//i"}
    )

    shown = made.effective()
    assert "tests.user_functions:facts" == shown["extract"] == made.extract
    assert ({"a": "p"}, {"b": "//p", "c": "//i"}) == (shown["extract_css"], shown["extract_xpath"])
    assert (
        "tests.user_functions:Prefix"
        == Options.make("example.com", extract=user_functions.Prefix("x")).effective()["extract"]
    )


# ---------------------------------------------------------------- crawls


def shop(*names: str) -> FakeWeb:
    """A site with a page for each function that is named; a redirect and an error are beside them."""
    pages = {f"{HOST}/{name}": Page(body=b"<title>a page</title><a href=/last>x</a>") for name in (*names, "last")}
    gone = {f"{HOST}/gone": Page(status=404), f"{HOST}/data": Page(body=b"\0\1\2", headers={"Content-Type": "x/y"})}
    return FakeWeb({f"{HOST}/": Page(links=tuple(f"/{name}" for name in (*names, "gone"))), **pages, **gone})


def test_result_is_in_the_record_the_file_and_what_on_page_gets(crawl: Crawl) -> None:
    """One value, the same everywhere; pages that are no document have none."""
    records: dict[str, PageRecord] = {}

    def keep(record: PageRecord) -> None:
        records[record.url.removeprefix(HOST)] = record

    crawled = crawl(f"{HOST}/", fetcher=shop(), extract=user_functions.facts, extract_css={"h": "title"}, on_page=keep)
    listed = {row["url"].removeprefix(HOST): row for row in crawled.map["pages"]}

    assert [f"{HOST}/gone"] == records["/"].extract["links"]
    assert {path: record.extract for path, record in records.items()} == {
        path: row.get("extract") for path, row in listed.items()
    }
    assert {record.url: record for record in crawled.result.pages} == {each.url: each for each in records.values()}
    assert records["/gone"].extract is None
    assert "extract" not in listed["/gone"]
    assert "extract_error" not in listed["/"]


def test_every_bad_page_is_an_error_of_its_own(crawl: Crawl) -> None:
    """What a function does wrong costs that page's result; outcome, links and all other pages stay."""
    names = [name for name, _ in BAD]
    crawled = crawl(f"{HOST}/", fetcher=shop(*names), extract="tests.user_functions:any_of_them")
    pages = {row["url"].removeprefix(f"{HOST}/"): row for row in crawled.map["pages"]}

    for name, expected in BAD:
        assert pages[name]["extract_error"].startswith(expected)
        assert "extract" not in pages[name]
        assert ("ok", 1, "a page") == (pages[name]["outcome"], pages[name]["links"], pages[name]["title"])
    assert "/last" == pages["last"]["extract"]["path"]


def test_what_a_function_prints_goes_nowhere(crawl: Crawl, capfd: pytest.CaptureFixture[str]) -> None:
    """Neither on the terminal, nor where the last words of a process are looked for."""
    crawled = crawl(f"{HOST}/", fetcher=shop("prints", "dies"), extract=user_functions.any_of_them)
    pages = {row["url"].removeprefix(f"{HOST}/"): row for row in crawled.map["pages"]}

    assert "a page" == pages["prints"]["extract"]
    assert "parser_crash" == pages["dies"]["outcome"]
    assert "ended with status 7" in pages["dies"]["error"]
    assert ("", "") == capfd.readouterr()


@pytest.mark.parametrize("name", ["forks", "forks_and_exits"])
def test_a_child_that_a_function_forks_is_no_parser(crawl: Crawl, name: str) -> None:
    """It comes back into our code as a second parser, and ends there: one result, no process left."""
    crawled = crawl(f"{HOST}/", fetcher=shop(name), extract=user_functions.any_of_them)
    pages = {row["url"].removeprefix(f"{HOST}/"): row for row in crawled.map["pages"]}

    assert "parent" == pages[name]["extract"]
    assert "/last" == pages["last"]["extract"]["path"]


@pytest.mark.parametrize(
    ("name", "outcome"),
    [("hangs", Outcome.PARSE_TIMEOUT), ("eats", Outcome.PARSE_MEMORY), ("crashes", Outcome.PARSER_CRASH)],
)
def test_what_ends_a_process_is_that_page_s_outcome(crawl: Crawl, name: str, outcome: Outcome) -> None:
    """The limits of parsing hold for the function too, and the crawl goes on."""
    crawled = crawl(f"{HOST}/", fetcher=shop(name, "spoils"), extract=user_functions.any_of_them, parse_timeout=0.5)
    pages = {row["url"].removeprefix(f"{HOST}/"): row for row in crawled.map["pages"]}

    assert outcome == pages[name]["outcome"]
    assert "extract" not in pages[name]
    assert "spoilt" == pages["spoils"]["extract"]
    assert (1, "ok") == (pages["spoils"]["links"], pages["spoils"]["outcome"])


def test_a_callable_object_goes_along(crawl: Crawl) -> None:
    """Whatever pickles and can be called; what it was set to goes with it."""
    crawled = crawl(f"{HOST}/", fetcher=shop(), extract=user_functions.Prefix("at "))

    assert f"at {HOST}/" == crawled.map["pages"][0]["extract"]


def test_nothing_changes_for_crawls_without_it(crawl: Crawl) -> None:
    """No field, no column, no time."""
    out = Path(crawl._folder) / "plain.json"
    crawled = crawl(f"{HOST}/", fetcher=shop(), out=out, stats=str(out.with_name("stats.json")))

    assert not {"extract", "extract_error"} & {name for row in crawled.map["pages"] for name in row}
    assert 0.0 == json.loads(out.with_name("stats.json").read_text())["parse"]["extract_s"]


def test_time_of_the_function_is_in_the_accounting(crawl: Crawl, tmp_path: Path) -> None:
    """It has a part of its own in what parsing took, and the parts add up."""
    path = tmp_path / "stats.json"
    crawl(f"{HOST}/", fetcher=shop(*map(str, range(30))), extract=user_functions.facts, stats=str(path))
    parse = json.loads(path.read_text())["parse"]

    assert parse["extract_s"] > 0
    parts = ("decode_s", "parse_s", "resolve_s", "extract_s", "hand_off_s")
    assert pytest.approx(parse["busy_s"]) == sum(parse[part] for part in parts)


def test_a_cut_document_is_extracted_as_far_as_it_goes(crawl: Crawl) -> None:
    """The page says too_large; what stands before the cut is found."""
    fake = FakeWeb({f"{HOST}/": Page(body=b"<h1>first</h1>" + b"<p>x" * 1000 + b"<h1>last</h1>")})
    [row] = crawl(f"{HOST}/", fetcher=fake, max_body=1000, extract_css={"h": "h1"}).map["pages"]

    assert ("too_large", {"h": ["first"]}) == (row["outcome"], row["extract"])


# ---------------------------------------------------------------- the command, outputs, resume


SHOP = "def price(document):\n    return {'price': document.tree.findtext('.//h1'), 'n': -1, 'formula': '=1+1'}\n"


def test_command_finds_a_module_in_the_working_folder(run_cli: Command, site: MakeSite, tmp_path: Path) -> None:
    """As a user writes it: shop.py beside the outputs; every format has the result in its own form."""
    (tmp_path / "shop.py").write_text(SHOP)
    ground = site({"/": Reply(body="<h1>12</h1><a href=/a>x</a>")}, default=Reply(status=404))
    outs = ("-o", "pages.csv", "-o", "pages.jsonl", "-o", "pages.parquet", "-o", "report.html")
    run_cli(ground.url(), "--extract", "shop:price", "--extract-css", "h=h1", *outs, folder=tmp_path)
    run_cli("export", "sitemap.json", "-o", "again.csv", out=None, folder=tmp_path)

    expected = {"h": ["12"], "price": "12", "n": -1, "formula": "=1+1"}
    [row, missing] = csv.DictReader((tmp_path / "pages.csv").read_text().splitlines())
    in_cells = {"extract.h": "12", "extract.price": "12", "extract.n": "-1", "extract.formula": "'=1+1"}
    assert in_cells == {name: cell for name, cell in row.items() if name in in_cells}
    assert {""} == {missing[name] for name in (*in_cells, "extract_error")}
    assert [*in_cells, "extract_error"] == list(row)[-5:]
    [line, _] = [json.loads(line) for line in (tmp_path / "pages.jsonl").read_text().splitlines()]
    assert expected == line["extract"]
    [row, _] = csv.DictReader((tmp_path / "again.csv").read_text().splitlines())
    assert in_cells == {name: cell for name, cell in row.items() if name in in_cells}
    from pyarrow import parquet

    assert [json.dumps(expected), None] == parquet.read_table(tmp_path / "pages.parquet")["extract"].to_pylist()


TABLES = [
    (["a.b, c", "d"], "a.b, c | d"),
    ([], ""),
    ([1, "a"], '[1, "a"]'),
    ({"b": None}, '{"b": null}'),
    (True, "true"),
    (1.5, "1.5"),
    ("-1", "'-1"),
    (None, ""),
]


@pytest.mark.parametrize(("value", "expected"), TABLES, ids=range(len(TABLES)))
def test_a_cell_of_a_table_can_be_read(value: Any, expected: str) -> None:
    """Texts are joined, other values are what JSON has, and nothing is a formula."""
    columns = (Column("id", Kind.WHOLE), Column("extract", Kind.JSON), Column("end"))
    rows = [(1, {"x": value}, "e"), (2, None, "e")]
    out = io.StringIO()
    csv_file.write(out, Table(columns=columns, rows=lambda: iter(rows), json_keys=lambda: ("x",)))

    header, first, second = csv.reader(out.getvalue().splitlines())
    assert ["id", "extract.x", "end"] == header
    assert (["1", expected, "e"], ["2", "", "e"]) == (first, second)


def test_results_that_are_no_objects_have_one_column(crawl: Crawl, tmp_path: Path) -> None:
    """Nor have those with names without number, as when a function makes names of what it finds."""
    for name in ("a_list", "many_names"):
        out = tmp_path / f"{name}.csv"
        crawlr.crawl(
            f"{HOST}/", fetcher=shop(), rps=0, parse_procs=1, out=str(out), extract=f"tests.user_functions:{name}"
        ).close()
        row = next(csv.DictReader(out.read_text().splitlines()))

        assert ["extract", "extract_error"] == list(row)[-2:]
        assert json.loads(row["extract"])


PRICES = b"<title>t</title>" + b"".join(b"<p>%d</p>" % number for number in range(1, 13))


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("advertools", {"price": "@@".join(map(str, range(1, 13))), "extract.title": "t"}),
        (
            "sf",
            {f"price {number}": str(number) for number in range(1, 10)}
            | {"price 10": "10 | 11 | 12", "title 1": "t", "title 2": ""},
        ),
    ],
)
def test_columns_of_other_programs_have_what_was_taken_out(
    tmp_path: Path, columns: str, expected: dict[str, str]
) -> None:
    """As each of them names its own: nothing that was asked for is missing from a table."""
    web = FakeWeb(
        {
            f"{HOST}/": Page(body=PRICES + b"<a href=/a>a</a>"),
            f"{HOST}/a": Page(body=b"<title>u</title><svg><title>v</title></svg><a href=/c>c</a>"),
            f"{HOST}/c": Page(status=404),
        }
    )
    out = tmp_path / "pages.csv"
    rules: dict[str, Any] = {"extract_css": {"price": "p", "title": "title"}, "columns": columns}
    crawlr.crawl(f"{HOST}/", fetcher=web, rps=0, parse_procs=1, out=str(out), **rules).close()
    rows = list(csv.DictReader(out.read_text("utf-8-sig").splitlines()))

    assert expected == {name: cell for name, cell in rows[0].items() if name in expected}
    assert {""} == {rows[-1][name] for name in expected}


@pytest.mark.parametrize(("columns", "name"), [("advertools", "extract"), ("sf", "extract 1")])
def test_columns_of_other_programs_have_results_that_are_no_objects(tmp_path: Path, columns: str, name: str) -> None:
    """They have no names; the word for all of them is that of the field."""
    out = tmp_path / "pages.csv"
    rules = {"columns": columns, "extract": "tests.user_functions:a_list"}
    crawlr.crawl(f"{HOST}/", fetcher=shop(), rps=0, parse_procs=1, out=str(out), **rules).close()
    row = next(csv.DictReader(out.read_text("utf-8-sig").splitlines()))

    assert f"{HOST}/" == row[name]


def test_an_error_is_shown_and_said_once(run_cli: Command, site: MakeSite, tmp_path: Path) -> None:
    """On the page's line, scrubbed, and in one note; the exit status does not change."""
    (tmp_path / "shop.py").write_text("def price(document):\n    raise ValueError('no \\x1b[31m price')\n")
    ground = site({"/": page("/a", "/b")}, default=page())
    ran = run_cli(ground.url(), "--extract", "shop:price", folder=tmp_path)

    assert 3 == ran.out.count("extract: ValueError: no")
    assert "\x1b[31m" not in ran.out + ran.err
    assert 1 == ran.err.count("note: extract failed for ")


def test_wrong_function_is_a_usage_error(run_cli: Command, tmp_path: Path) -> None:
    """Exit status 2, one line, nothing is written."""
    (tmp_path / "broken.py").write_text("import sys\nsys.exit('no')\n")
    for name in ("broken:f", "nowhere:f"):
        ran = run_cli("http://127.0.0.1:9/", "--extract", name, folder=tmp_path, rc=2)

        assert f"crawlr: --extract: '{name}' is not accepted (importing " in ran.err
        assert 1 == ran.err.count("\n")
        assert not (tmp_path / "sitemap.json").exists()


def test_a_module_of_the_working_folder_hides_no_other(run_cli: Command, site: MakeSite, tmp_path: Path) -> None:
    """A json.py that lies there by chance is not the one that is imported."""
    (tmp_path / "shop.py").write_text("import queue\ndef price(document):\n    return queue.__file__\n")
    (tmp_path / "queue.py").write_text("raise RuntimeError('the wrong one')\n")
    ground = site({"/": page()})
    ran = run_cli(ground.url(), "--extract", "shop:price", folder=tmp_path, module=("-P", "-m", "crawlr"))

    assert str(tmp_path) not in ran.site_map["pages"][0]["extract"]


def test_resume_goes_on_with_the_same_rules_only(crawl: Crawl, tmp_path: Path) -> None:
    """Pages of both runs have their results; other rules are refused and the option is named."""
    out = tmp_path / "map.json"
    rules = {"extract": user_functions.facts, "extract_css": {"t": "title"}}
    names = [str(number) for number in range(20)]
    crawl(f"{HOST}/", fetcher=shop(*names), out=out, max_pages=5, **rules).result.close()
    with pytest.raises(StateError, match=r"--extract: None now, 'tests\.user_functions:facts' when"):
        crawlr.crawl(f"{HOST}/", fetcher=shop(*names), out=str(out), resume=True, extract_css={"t": "title"})
    with pytest.raises(StateError, match=re.escape("--extract-css: {'t': 'h1'} now")):
        crawlr.crawl(
            f"{HOST}/", fetcher=shop(*names), out=str(out), resume=True, extract=user_functions.facts,
            extract_css={"t": "h1"},
        )  # fmt: skip
    crawled = crawl(f"{HOST}/", fetcher=shop(*names), out=out, resume=True, **rules)

    found = [row["extract"]["path"] for row in crawled.map["pages"] if row["status"] == 200]
    assert sorted(["/", "/last", *[f"/{name}" for name in names]]) == sorted(found)


@pytest.mark.parametrize("place", ["before_commit:2", "inside_commit:3"])
def test_a_killed_crawl_goes_on_with_every_result(run_cli: Command, site: MakeSite, tmp_path: Path, place: str) -> None:
    """Results are in the same commit as their pages: after a death each page has its own, from whichever run."""
    (tmp_path / "shop.py").write_text("def path(document):\n    return document.url.rsplit('/', 1)[1]\n")
    ground = site({"/": page(*[f"/{number}" for number in range(200)])}, default=page())
    words = (ground.url(), "--extract", "shop:path")
    run_cli(*words, folder=tmp_path, env={"CRAWLR_FAILPOINT": place}, rc=-9)
    ran = run_cli(*words, "--extract-css", "t=title", "--resume", folder=tmp_path, rc=2)
    assert "crawlr: --extract-css: {'t': 'title'} now, {} when the crawl in " in ran.err
    ran = run_cli(*words, "--resume", folder=tmp_path)

    found = {row["url"]: row["extract"] for row in ran.site_map["pages"]}
    assert {url: url.rsplit("/", 1)[1] for url in found} == found
    assert 201 == len(found)


def test_what_a_module_logs_is_no_last_word(run_cli: Command, site: MakeSite, tmp_path: Path) -> None:
    """A handler of logging that its import makes does not write where the last words of a process are looked for."""
    (tmp_path / "shop.py").write_text(
        "import logging, os\nlogging.basicConfig()\ndef price(document):\n"
        "    logging.error('x\\nTimeout (\\nMemoryError')\n    os._exit(7)\n"
    )
    ran = run_cli(site({"/": page()}).url(), "--extract", "shop:price", folder=tmp_path, rc=0)
    [row] = ran.site_map["pages"]

    assert ("parser_crash", "the parser process ended with status 7") == (row["outcome"], row["error"])


def test_selectors_can_stand_in_a_table_of_a_file(run_cli: Command, site: MakeSite, tmp_path: Path) -> None:
    """By their names, at the top or below [crawlr]; the function is code, so a file that was merely found has none."""
    (tmp_path / "crawlr.toml").write_text('[extract-css]\nh = "h1"\n[crawlr.extract-xpath]\nn = "count(//p)"\n')
    ground = site({"/": Reply(body="<h1>12</h1><p>")})
    ran = run_cli(ground.url(), folder=tmp_path)
    assert {"h": ["12"], "n": ["1"]} == ran.site_map["pages"][0]["extract"]

    (tmp_path / "crawlr.toml").write_text('extract = "shop:price"\n')
    ran = run_cli(ground.url(), folder=tmp_path, rc=2)
    assert "'extract' is not accepted from a file that was merely found here" in ran.err
    (tmp_path / "crawlr.toml").write_text("[extract-css]\nh = 3\n")
    ran = run_cli(ground.url(), folder=tmp_path, rc=2)
    assert "accepted: NAME=SELECTOR" in ran.err
    assert "extract-css in crawlr.toml" in ran.err
