"""The gates of --fail-on: what makes a crawl or a diff fail, and how that is told."""

from __future__ import annotations

import io
import json
from typing import Any
from xml.etree import ElementTree

import pytest

from crawlr import gate_lines, gates
from crawlr.diff import compare
from crawlr.gate_rules import Gate, Name, Result, Violation, read_gates
from crawlr.sinks import junit
from tests.made_crawl import SITE as MADE
from tests.made_crawl import made_view
from tests.servers.local import Reply
from tests.servers.local import page as html
from tests.test_diff import GONE, OK, SITE, made, moved


def ask(crawl: Any, text: str) -> list[tuple[str, str]]:
    """(path, what is wrong) of every violation of one gate."""
    with crawl as (view, head):
        (result,) = gates.check(view, head, read_gates(text))
    assert result.total == len(result.violations)
    return [(each.url.removeprefix(SITE), each.says.replace(SITE, "")) for each in result.violations]


def ask_diff(old: Any, new: Any, text: str) -> list[tuple[str, str]]:
    with old as first, new as second, compare(first, second) as diff:
        (result,) = gates.check_diff(diff, read_gates(text, is_diff=True))
    assert result.total == len(result.violations)
    return [(each.url.removeprefix(SITE), each.says.replace(SITE, "")) for each in result.violations]


# ---------------------------------------------------------------- the words

LOOP: dict[str, Any] = {"status": 302, "outcome": "redirect_loop", "error": "redirects in a circle"}
DOWN: dict[str, Any] = {"status": None, "outcome": "refused", "error": "connection refused"}


def test_words_are_read_with_commas_and_repeated() -> None:
    """Each gate once, in the order given; limits in seconds, bytes and links."""
    found = read_gates(["broken, slow=500ms", "large=1K", "deep=4,broken"])

    assert [(gate.name, gate.limit) for gate in found] == [
        (Name.BROKEN, None),
        (Name.SLOW, 0.5),
        (Name.LARGE, 1024),
        (Name.DEEP, 4),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("brokn", "'brokn' is no gate"),
        ("", "'' is no gate"),
        ("broken,", "'' is no gate"),
        ("slow", "'slow' needs a duration"),
        ("slow=fast", "'slow=fast' needs a duration"),
        ("large=", "'large=' needs a size"),
        ("broken=1", "broken takes no value"),
        ("title", "'title' is a gate of crawlr diff"),
    ],
)
def test_what_is_no_gate_is_refused(text: str, said: str) -> None:
    """The message names the word."""
    with pytest.raises(ValueError, match=said):
        read_gates(text)


# ---------------------------------------------------------------- of a crawl

CRAWLS: dict[str, tuple[Any, list[tuple[str, str]]]] = {
    "broken": (
        lambda: made(
            {"/": OK, "/a": OK, "/x": GONE, "/alone": GONE, "/r": moved("/y"), "/y": DOWN, "/l": LOOP},
            edges={"/": ["/x", "/l"], "/a": ["/x"]},
        ),
        [
            ("/x", "404 Not Found, linked from /, /a"),
            ("/y", "refused: connection refused, linked from /r"),
            ("/l", "redirect_loop: redirects in a circle, linked from /"),
        ],
    ),
    "errors": (
        lambda: made({"/": OK, "/x": GONE, "/y": DOWN, "/l": LOOP, "/r": moved("/")}),
        [("/x", "404 Not Found"), ("/y", "refused: connection refused")],
    ),
    "damaged": (
        lambda: made({"/": OK, "/pdf": {"outcome": "not_html"}, "/x": GONE, "/cut": {"outcome": "truncated"}}),
        [("/cut", "truncated")],
    ),
    "redirect-loop": (
        lambda: made({"/": OK, "/r": moved("/"), "/l": LOOP}),
        [("/l", "redirect_loop: redirects in a circle")],
    ),
    "robots": (
        lambda: made({"/": OK}, skipped={"/a": "robots_disallowed", "/b": "robots_unreachable", "/c": "nofollow"}),
        [("/a", "blocked by robots.txt"), ("/b", "robots.txt unreachable")],
    ),
    "incomplete": (lambda: made({"/": OK}, complete=False), [("", "the crawl is not complete: page budget")]),
    "slow=10ms": (lambda: made({"/": OK, "/a": OK}), [("/a", "took 15 ms")]),
    "large=1000": (lambda: made({"/": OK, "/a": OK}), [("/a", "has 1,001 bytes")]),
    "deep=2": (lambda: made({"/": {"depth": 0}, "/a": {"depth": 2}, "/b": {"depth": 3}}), [("/b", "is 3 links away")]),
}


@pytest.mark.parametrize("text", CRAWLS)
def test_gate_of_a_crawl(text: str) -> None:
    """Each stops at what it is for, and at nothing else in the same crawl."""
    crawl, expected = CRAWLS[text]

    assert ask(crawl(), text) == expected


@pytest.mark.parametrize("text", [text for text in CRAWLS if "=" not in text])
def test_good_crawl_passes_every_gate(text: str) -> None:
    """A site without a fault trips nothing."""
    assert ask(made({"/": OK, "/a": OK, "/r": moved("/a")}, edges={"/": ["/a", "/r"]}), text) == []


def test_many_referrers_are_counted_and_a_few_named() -> None:
    """A link in every footer is one line, not one a page."""
    pages = {f"/{number}": OK for number in range(10)} | {"/x": GONE}
    found = ask(made(pages, edges={name: ["/x"] for name in pages if name != "/x"}), "broken")

    assert found == [("/x", "404 Not Found, linked from /0, /1, /2 and 7 more")]


def test_more_violations_than_are_kept_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number is true, whatever the memory."""
    monkeypatch.setattr(gates, "MOST_KEPT", 3)
    with made({f"/{number}": GONE for number in range(10)}) as (view, head):
        (result,) = gates.check(view, head, read_gates("errors"))

    assert (result.total, len(result.violations)) == (10, 3)


# ---------------------------------------------------------------- of a diff

DIFFS: dict[str, tuple[Any, Any, list[tuple[str, str]]]] = {
    "broken": (
        lambda: made({"/": OK, "/x": GONE, "/y": OK}, edges={"/": ["/x", "/y"]}),
        lambda: made({"/": OK, "/x": GONE, "/y": GONE}, edges={"/": ["/x", "/y"]}),
        [("/y", "404 Not Found, linked from /")],
    ),
    "errors": (
        lambda: made({"/": OK, "/x": GONE, "/y": OK}),
        lambda: made({"/": OK, "/x": DOWN, "/y": GONE, "/z": GONE}),
        [("/y", "404 Not Found"), ("/z", "404 Not Found")],
    ),
    "redirect-loop": (
        lambda: made({"/": OK, "/l": LOOP, "/m": OK}),
        lambda: made({"/": OK, "/l": LOOP, "/m": LOOP}),
        [("/m", "redirect_loop: redirects in a circle")],
    ),
    "robots": (
        lambda: made({"/": OK, "/b": OK}, skipped={"/a": "robots_disallowed"}),
        lambda: made({"/": OK}, skipped={"/a": "robots_disallowed", "/b": "robots_disallowed"}),
        [("/b", "blocked by robots.txt")],
    ),
    "slow=20ms": (
        lambda: made({"/": OK, "/a": OK, "/b": OK, "/slow": OK}),
        lambda: made({"/": OK, "/b": OK, "/a": OK, "/slow": OK}),
        [("/a", "took 25 ms")],
    ),
    "incomplete": (
        lambda: made({"/": OK}),
        lambda: made({"/": OK}, complete=False),
        [("", "the crawl is not complete: page budget")],
    ),
    "new": (lambda: made({"/": OK}), lambda: made({"/": OK, "/n": OK}), [("/n", "new page: 200")]),
    "gone": (
        lambda: made({"/": OK, "/a": OK, "/b": OK}),
        lambda: made({"/": OK}, skipped={"/b": "nofollow"}),
        [("/a", "gone"), ("/b", "no page any more: skipped: nofollow")],
    ),
    "status": (lambda: made({"/": OK}), lambda: made({"/": GONE}), [("/", "status was 200, is 404")]),
    "title": (lambda: made({"/": {"title": "A"}}), lambda: made({"/": OK}), [("/", "title was A, is None")]),
    "canonical": (
        lambda: made({"/": {"canonical": f"{SITE}/c"}}),
        lambda: made({"/": {"canonical": f"{SITE}/d"}}),
        [("/", "canonical was /c, is /d")],
    ),
    "redirect": (
        lambda: made({"/": moved("/a"), "/a": OK, "/b": OK}),
        lambda: made({"/": moved("/b"), "/a": OK, "/b": OK}),
        [("/", "redirect was /a, is /b")],
    ),
    "depth": (
        lambda: made({"/": {"depth": 0}, "/a": OK}),
        lambda: made({"/": {"depth": 0}, "/a": {"depth": 4}}),
        [("/a", "depth was 1, is 4")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", DIFFS)
def test_gate_of_a_diff(text: str) -> None:
    """It stops at what is worse than before; the same fault in both crawls lets it pass."""
    old, new, expected = DIFFS[text]

    assert ask_diff(old(), new(), text) == expected


@pytest.mark.parametrize("text", DIFFS)
def test_crawl_that_is_the_same_passes_every_gate_of_a_diff(text: str) -> None:
    """Old faults make nothing worse."""
    pages = {"/": OK, "/x": GONE, "/l": LOOP, "/d": {"depth": 9}, "/e": DOWN}
    crawl = {"edges": {"/": ["/x"]}, "skipped": {"/r": "robots_disallowed"}}

    assert ask_diff(made(pages, **crawl), made(pages, **crawl), text) == []  # type: ignore[arg-type]


# ---------------------------------------------------------------- JUnit


def written(results: list[Result]) -> ElementTree.Element:
    out = io.StringIO()
    junit.write(out, results, name="crawlr")
    return ElementTree.fromstring(out.getvalue())


def test_junit_has_a_suite_a_gate_and_a_case_a_violation() -> None:
    """Numbers and lists agree; a gate without a violation is a passed case."""
    with made_view() as view:
        results = gates.check(
            view, {"complete": False, "stop_reason": "page_budget"}, read_gates("broken,robots,damaged")
        )
    root = written(list(results))
    suites = {suite.get("name"): suite for suite in root}

    assert (root.get("tests"), root.get("failures")) == ("4", "3")
    assert [case.get("name") for case in suites["broken"]] == [f"{MADE}/missing", f"{MADE}/down"]
    assert [len(case) for case in suites["damaged"]] == [0]
    for suite in root:
        assert int(suite.get("tests", "")) == len(suite)
        assert int(suite.get("failures", "")) == len(suite.findall("testcase/failure"))


def test_junit_survives_text_from_the_web() -> None:
    """No control character and no markup of a page breaks the file, whatever its address."""
    gate = Gate(name=Name.ERRORS, text="errors")
    nasty = Violation(url="https://x.test/?\"<a>&'\x00\ufffe\ud800", says="500 ]]> \x1b[31m\r\n<b>")
    root = written([Result(gate=gate, total=7, violations=(nasty,))])
    cases = root.findall("testsuite/testcase")

    assert [case.get("name") for case in cases] == ["https://x.test/?\"<a>&'\\x00\ufffd\\ud800", "6 more"]
    assert cases[0][0].get("message") == "500 ]]> \\x1b[31m\\x0d\\x0a<b>"


# ---------------------------------------------------------------- on the screen


def result(name: Name, total: int, *, says: str = "404 Not Found") -> Result:
    kept = tuple(Violation(url=f"{SITE}/{name}/{number}", says=says) for number in range(total))
    return Result(gate=Gate(name=name, text=name.value), total=total, violations=kept)


def test_lines_name_what_was_found_up_to_a_length() -> None:
    """A hundred lines a gate are read by nobody's eyes, the number is."""
    shown = list(gate_lines.lines([result(Name.BROKEN, 1), result(Name.ERRORS, 250), result(Name.ROBOTS, 0)]))

    assert shown[:3] == ["gate broken: 1 violation", f"  {SITE}/broken/0  404 Not Found", "gate errors: 250 violations"]
    assert shown[-2:] == ["  and 150 more (--junit FILE)", "gate robots: passed"]
    assert len(shown) == 2 + 1 + 100 + 2


def test_annotations_are_shared_among_the_gates() -> None:
    """GitHub shows ten errors of a step: each gate has some, and the last tells how many are left."""
    shown = list(gate_lines.workflow_commands([result(Name.BROKEN, 3), result(Name.ERRORS, 50)]))

    assert len(shown) == 10
    assert sum("title=crawlr broken::" in line for line in shown) == 3
    assert shown[0] == f"::error title=crawlr broken::{SITE}/broken/0  404 Not Found"
    assert shown[-1] == "::error title=crawlr::44 more violations; the log and --junit FILE list them"
    assert len(list(gate_lines.workflow_commands([result(Name.BROKEN, 10)]))) == 10


def test_annotation_cannot_be_broken_out_of() -> None:
    """A page's text is escaped as the workflow's grammar wants it, line ends and percent signs first of all."""
    gate = Gate(name=Name.SLOW, text="slow=1s,2:3%")
    nasty = Violation(url="https://x.test/%0A?a::b", says="x\n::stop-commands::y\r\x1b")
    (line,) = gate_lines.workflow_commands([Result(gate=gate, total=1, violations=(nasty,))])

    assert line == (
        "::error title=crawlr slow=1s%2C2%3A3%25::https://x.test/%250A?a::b  x\\x0a::stop-commands::y\\x0d\\x1b"
    )


# ---------------------------------------------------------------- the command


def test_tripped_gate_is_status_10_and_listed(site: Any, run_cli: Any) -> None:
    """The map is written, the list is on stderr, JUnit's file has it too; a gate that passed says so."""
    served = site({"/": html("/gone"), "/gone": Reply(status=404)})
    running = run_cli.start("--fail-on", "broken,robots", "--junit", "junit.xml", served.url())
    ran = running.wait()
    root = ElementTree.fromstring((ran.folder / "junit.xml").read_text())

    assert ran.rc == 10
    assert ran.site_map.document["complete"] is True
    assert ran.err.splitlines() == [
        "gate broken: 1 violation",
        f"  {served.url('/gone')}  404 Not Found, linked from {served.url('/')}",
        "gate robots: passed",
    ]
    assert [suite.get("failures") for suite in root] == ["1", "0"]


def test_crawl_that_passes_is_status_0(site: Any, run_cli: Any) -> None:
    """And quiet when it is asked to be."""
    ran = run_cli("-q", "--fail-on", "broken,errors,incomplete", site({"/": html()}).url(), rc=0)

    assert (ran.out, ran.err) == ("", "")


def test_no_page_at_all_stays_status_3(site: Any, run_cli: Any) -> None:
    """A crawl that got nothing is told as such; the gates are told too."""
    ran = run_cli("--retries", "0", "--fail-on", "errors", site({}).url(), rc=3)

    assert "gate errors: 1 violation" in ran.err


@pytest.mark.parametrize("words", [[], ["--out", "-"]], ids=["map in a file", "map on stdout"])
def test_annotations_are_written_in_a_workflow(words: list[str], site: Any, run_cli: Any) -> None:
    """Only there, and not into a map that goes to standard output."""
    served = site({"/": html("/gone"), "/gone": Reply(status=404)})
    ran = run_cli(
        *("--fail-on", "errors", *words, served.url()),
        rc=10,
        out=None if words else "sitemap.json",
        env={"GITHUB_ACTIONS": "true"},
    )
    expected = f"::error title=crawlr errors::{served.url('/gone')}  404 Not Found"

    assert (expected in ran.out.splitlines(), expected in ran.err.splitlines()) == (not words, bool(words))


def test_gates_from_python(site: Any, crawl: Any) -> None:
    """crawlr.crawl() raises nothing for them: the result says what they found."""
    served = site({"/": html("/gone"), "/gone": Reply(status=404)})
    found = crawl(served.url(), fail_on=["broken", "slow=60s"]).result.gates

    assert [(each.gate.text, each.total) for each in found] == [("broken", 1), ("slow=60s", 0)]


def test_diff_command(site: Any, run_cli: Any) -> None:
    """Two crawls from files: 0 when nothing is worse, 10 when a gate says so; text, JSON and JUnit."""
    served = site({"/": html("/a", title="One"), "/a": html()})
    run_cli("-q", served.url(), out=None, folder=run_cli.folder)
    (run_cli.folder / "sitemap.json").rename(run_cli.folder / "old.json")
    served.routes = {"/": html("/a", title="Two"), "/a": Reply(status=404)}
    run_cli("-q", served.url(), out=None, folder=run_cli.folder)

    def diff(*words: str, rc: int) -> Any:
        return run_cli("diff", *words, rc=rc, out=None, folder=run_cli.folder)

    same = diff("old.json", "old.json", "--fail-on", "broken,status,title", rc=0)
    changed = diff("old.json", "sitemap.json", rc=0)
    failed = diff(
        "old.json", "sitemap.json", "-q", "--fail-on", "broken", "--junit", "j.xml", "--report", "r.html", rc=10
    )
    document = json.loads(diff("old.json", "sitemap.json", "--json", "--fail-on", "title", rc=10).out)
    back = diff("sitemap.json", "old.json", "--fail-on", "broken,errors", rc=0)

    assert same.out.splitlines()[2:] == ["= 2 pages without a change"]
    assert f"    404  {served.url('/a')}  linked from {served.url('/')}" in changed.out.splitlines()
    assert (failed.out, failed.err.splitlines()[0]) == ("", "gate broken: 1 violation")
    assert "<failure" in (run_cli.folder / "j.xml").read_text()
    assert 'id="tab-changes"' in (run_cli.folder / "r.html").read_text()
    assert document["changed_title"] == [{"url": served.url("/"), "old": "One", "new": "Two"}]
    assert "* 1 mended link" in back.out.splitlines()


def test_why_command(site: Any, run_cli: Any) -> None:
    """The file that a crawl left here is the one that is asked, whichever it is; --in names another."""
    served = site({"/": html("/a", "/b"), "/a": html()}, default=html())
    run_cli("-q", "--max-pages", "2", served.url(), out=None, folder=run_cli.folder)

    def why(*words: str, rc: int = 0) -> Any:
        return run_cli("why", *words, rc=rc, out=None, folder=run_cli.folder)

    by_default = why("/b").out
    (run_cli.folder / "sitemap.json").rename(run_cli.folder / "other.json")
    by_state = why("/b").out
    document = json.loads(why(served.url("/a"), "--in", "other.json", "--json").out)
    (run_cli.folder / "sitemap.json.crawl").unlink()
    missing = why("/b", rc=2).err

    assert "unvisited (page_budget): --max-pages 2 was reached before its turn came" in by_default
    assert "unvisited (page_budget)" in by_state
    assert document["way"][0] | {"status": 200} == document["way"][0]
    assert [step["by"] for step in document["way"]] == ["seed", "link"]
    assert "why: there is no sitemap.json here" in missing
