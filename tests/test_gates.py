"""The gates of --fail-on: what makes a crawl or a diff fail, and how that is told."""

from __future__ import annotations

import io
from typing import Any
from xml.etree import ElementTree

import pytest

from crawlr import gates
from crawlr.diff import compare
from crawlr.gate_rules import Gate, Name, Result, Violation, read_gates
from crawlr.sinks import junit
from tests.made_crawl import SITE as MADE
from tests.made_crawl import made_view
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
