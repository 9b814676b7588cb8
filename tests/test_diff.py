"""What changed between two crawls: pages, links and what pages say of themselves."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from crawlr import diff_lines, report
from crawlr.diff import Diff, Entry, What, compare
from crawlr.export import open_crawl
from crawlr.journal import Journal
from crawlr.records import StopReason
from crawlr.report.changes import Changes
from crawlr.report.tables import Urls
from crawlr.view import CrawlView
from tests.made_crawl import IN, page
from tests.servers.local import Reply, redirect
from tests.servers.local import page as html

SITE = "https://site.test"


def head(*, complete: bool = True, **options: object) -> dict[str, Any]:
    reason = "finished" if complete else "page_budget"
    return {
        "generator": "crawlr 0.1.0",
        "seeds": [f"{SITE}/"],
        "started_at": "2026-01-31T12:00:00Z",
        "finished_at": "2026-01-31T12:01:00Z",
        "complete": complete,
        "stop_reason": reason,
        "options": options,
        "stats": {},
    }


@contextmanager
def made(
    pages: dict[str, dict[str, Any]],
    *,
    edges: dict[str, list[str]] | None = None,
    skipped: dict[str, str] | None = None,
    unvisited: tuple[str, ...] = (),
    complete: bool = True,
    **options: object,
) -> Iterator[tuple[CrawlView, dict[str, Any]]]:
    """A crawl of these targets of SITE; a page's fields are those of made_crawl.page, and depth."""
    skipped = skipped or {}
    names = [*pages, *skipped, *unvisited]
    ids = {name: number for number, name in enumerate(names)}
    with closing(Journal.create("", {})) as journal:
        from array import array

        rows = []
        for name, fields in pages.items():
            fields = {key: value for key, value in fields.items() if key != "depth"}
            target = fields.get("redirect_to")
            if target is not None:
                fields |= {"redirect_to": ids[target], "redirect_url": f"{SITE}{target}"}
            row = list(page(ids[name], **fields))
            row[15] = array("I", [ids[to] for to in (edges or {}).get(name, [])]).tobytes() or None
            rows.append(tuple(row))
        journal.commit(
            urls=[(ids[n], f"{SITE}{n}", None, pages.get(n, {}).get("depth", 1), None, 0, 0, IN) for n in names],
            pages=rows,  # type: ignore[arg-type]  # made by hand
            skipped=[(ids[name], reason, None) for name, reason in skipped.items()],
        )
        reason = StopReason.FINISHED if complete else StopReason.PAGE_BUDGET
        yield (
            CrawlView(journal, stop_reason=reason, depth_limit=None, all_edges=False),
            head(complete=complete, **options),
        )


OK: dict[str, Any] = {}
GONE: dict[str, Any] = {"status": 404, "outcome": "http_error", "error": "404 Not Found"}


def moved(to: str) -> dict[str, Any]:
    return {"status": 301, "outcome": "redirect", "redirect_to": to}


def paths(entries: Any) -> list[str]:
    return [each.url.removeprefix(SITE) for each in entries]


@contextmanager
def differing(old: Any, new: Any) -> Iterator[Diff]:
    with old as first, new as second, compare(first, second) as diff:
        yield diff


def total(diff: Diff) -> int:
    return sum(count for name, count in diff.counts().items() if name != "same")


# ---------------------------------------------------------------- pages


def test_same_crawl_has_no_change() -> None:
    """Nothing is told of pages that are as before, whatever ids they had."""
    with differing(made({"/": OK, "/a": OK, "/x": GONE}), made({"/x": GONE, "/a": OK, "/": OK})) as diff:
        counts = diff.counts()

        assert (total(diff), counts["same"]) == (0, 3)


def test_new_pages_and_pages_gone() -> None:
    """What is no page any more says what it is now, and what is a page now says what it was."""
    old = made({"/": OK, "/a": OK, "/b": OK}, skipped={"/shut": "robots_disallowed"})
    new = made({"/": OK, "/new": OK, "/shut": OK}, skipped={"/b": "robots_disallowed"})
    with differing(old, new) as diff:
        found = [(was and was.reason, entry.url.removeprefix(SITE)) for was, entry in diff.new_pages()]
        gone = [(entry.url.removeprefix(SITE), now and now.reason) for entry, now in diff.gone()]

    assert found == [(None, "/new"), ("robots_disallowed", "/shut")]
    assert gone == [("/a", None), ("/b", "robots_disallowed")]


def test_spellings_of_one_page_are_no_change() -> None:
    """The identity decides, by the options of the crawls."""
    with differing(made({"/a?utm_source=1": OK, "/%62": OK}), made({"/a": OK, "/b": OK})) as diff:
        assert total(diff) == 0
    with differing(made({"/a?sid=1": OK}), made({"/a?sid=2": OK}, ignore_param=["sid"])) as diff:
        assert total(diff) == 0
    with differing(made({"/a?utm_source=1": OK}), made({"/a": OK}, keep_params=True)) as diff:
        assert total(diff) == 2


def test_two_pages_of_one_identity_do_not_hide_each_other() -> None:
    """A redirect to another spelling of itself made two pages; both are compared."""
    pages = {"/a?utm_source=1": moved("/a"), "/a": OK}
    with differing(made(pages), made(pages)) as diff:
        assert (total(diff), diff.counts()["same"]) == (0, 2)


CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[What, tuple[object, object]]]] = {
    "status": (OK, GONE, {What.STATUS: ("200", "404")}),
    "no answer": (OK, {"status": None, "outcome": "refused"}, {What.STATUS: ("200", "refused")}),
    "another failure": (
        {"status": None, "outcome": "refused"},
        {"status": None, "outcome": "dns_error"},
        {What.STATUS: ("refused", "dns_error")},
    ),
    "body cut": (OK, {"outcome": "truncated"}, {What.STATUS: ("200", "200 truncated")}),
    "title": ({"title": "Old"}, {"title": "New"}, {What.TITLE: ("Old", "New")}),
    "title lost": ({"title": "Old"}, OK, {What.TITLE: ("Old", None)}),
    "canonical": (OK, {"canonical": f"{SITE}/c"}, {What.CANONICAL: (None, f"{SITE}/c")}),
    "depth": ({"depth": 1}, {"depth": 3}, {What.DEPTH: (1, 3)}),
    "redirect": (moved("/old"), moved("/new"), {What.REDIRECT: (f"{SITE}/old", f"{SITE}/new")}),
    "title of what moved is told by its status": (
        {"title": "Old", "canonical": f"{SITE}/c"},
        moved("/new"),
        {What.STATUS: ("200", "301"), What.REDIRECT: (None, f"{SITE}/new")},
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_change_of_a_page(case: str) -> None:
    """Each field that differs is told once, with both values."""
    before, after, expected = CHANGES[case]
    others = {"/old": OK, "/new": OK}
    with differing(made({"/x": before, **others}), made({"/x": after, **others})) as diff:
        found = {
            what: (what.of(old), what.of(new)) for what in What for old, new in diff.changed(what) if "/x" in new.url
        }

        assert found == expected
        assert diff.counts()["same"] == 2


# ---------------------------------------------------------------- links


def broken(diff: Diff) -> list[tuple[str, str]]:
    return [(link.source.removeprefix(SITE), link.target.url.removeprefix(SITE)) for link in diff.broken()]


def mended(diff: Diff) -> list[tuple[str, str, str]]:
    return [(link.source.removeprefix(SITE), link.target.url.removeprefix(SITE), link.now) for link in diff.mended()]


def test_link_breaks_when_its_target_does_and_when_it_is_new() -> None:
    """A link that was broken before is no news, another one to the same page is."""
    old = made({"/": OK, "/a": OK, "/x": GONE, "/y": OK}, edges={"/": ["/x", "/y"]})
    new = made({"/": OK, "/a": OK, "/x": GONE, "/y": GONE}, edges={"/": ["/x", "/y"], "/a": ["/x"]})
    with differing(old, new) as diff:
        assert broken(diff) == [("/a", "/x"), ("/", "/y")]
        assert mended(diff) == []


def test_redirect_to_an_error_is_a_broken_link() -> None:
    """A reader who follows it meets the error."""
    with differing(
        made({"/r": moved("/x"), "/x": OK}),
        made({"/r": moved("/x"), "/x": GONE}),
    ) as diff:
        assert broken(diff) == [("/r", "/x")]


def test_link_is_mended_by_its_target_or_its_page() -> None:
    """The target answers, the link is gone, or the page with it."""
    old = made(
        {"/": OK, "/a": OK, "/b": OK, "/x": GONE, "/y": GONE},
        edges={"/": ["/x"], "/a": ["/y"], "/b": ["/y"]},
    )
    new = made({"/": OK, "/a": OK, "/x": OK, "/y": GONE}, edges={"/": ["/x"]})
    with differing(old, new) as diff:
        assert mended(diff) == [
            ("/", "/x", "it answers 200"),
            ("/a", "/y", "the link is gone"),
            ("/b", "/y", "the page with the link is gone"),
        ]


UNKNOWN = {
    "the target was not asked": lambda: made({"/": OK}, edges={"/": ["/x"]}, unvisited=("/x",), complete=False),
    "robots.txt forbids to ask the target": lambda: made(
        {"/": OK}, edges={"/": ["/x"]}, skipped={"/x": "robots_disallowed"}
    ),
    "the page was not asked": lambda: made({"/x": GONE}, unvisited=("/",), complete=False),
    "the page answers with an error": lambda: made({"/": {"status": 503, "outcome": "http_error"}}),
    "the page was not found in a crawl that did not finish": lambda: made({"/other": OK}, complete=False),
    "the page could not be parsed": lambda: made({"/": {"outcome": "parse_timeout"}}),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_what_was_not_looked_at_again_is_not_called_mended(case: str) -> None:
    """A crawl that did not see the link again proves nothing."""
    with differing(made({"/": OK, "/x": GONE}, edges={"/": ["/x"]}), UNKNOWN[case]()) as diff:
        assert mended(diff) == []


# ---------------------------------------------------------------- as text and as JSON


def shown(diff: Diff) -> list[str]:
    return list(diff_lines.lines(diff, old="old.json", new="new.json"))


def test_lines_name_every_change() -> None:
    """Each list has its heading with the number, each row its line; lists without rows are left out."""
    old = made({"/": OK, "/a": {"title": "A"}, "/x": OK, "/gone": OK}, edges={"/": ["/x"]}, depth=2)
    new = made({"/": OK, "/a": {"title": "B"}, "/x": GONE, "/n": OK}, edges={"/": ["/x"]}, depth=3, complete=False)
    with differing(old, new) as diff:
        found = shown(diff)

    assert found[1].endswith("not complete: page_budget")
    assert found[2:] == [
        "note: --depth differs: 2 in old, 3 in new",
        "+ 1 new page",
        f"    200  {SITE}/n",
        "- 1 page gone",
        f"    200  {SITE}/gone",
        "! 1 new broken link",
        f"    404  {SITE}/x  linked from {SITE}/",
        "~ 1 changed status",
        f"    {SITE}/x  200 -> 404",
        "~ 1 changed title",
        f"    {SITE}/a  A -> B",
        "= 1 page without a change",
    ]


def test_lines_are_safe_to_print() -> None:
    """Titles come from the web; a workflow command cannot be smuggled into a log by one."""
    with differing(made({"/": {"title": "a\n::error::x"}}), made({"/": {"title": "b\x1b[2J\u202e"}})) as diff:
        found = shown(diff)

    assert all(line.isprintable() for line in found)
    assert not any(line.lstrip().startswith("::") for line in found)


def test_json_has_every_list_and_its_count() -> None:
    """The counts are those of the lists, whose names do not depend on what they hold."""
    old = made({"/": OK, "/a": {"title": "A"}, "/x": OK, "/y": GONE, "/gone": OK}, edges={"/": ["/x", "/y"]})
    new = made({"/": OK, "/a": {"title": "B"}, "/x": GONE, "/y": OK, "/n": OK}, edges={"/": ["/x", "/y"]})
    with differing(old, new) as diff:
        document = json.loads("".join(diff_lines.document(diff)))

    assert document["new_pages"] == [{"url": f"{SITE}/n", "status": 200, "outcome": "ok", "depth": 1, "was": None}]
    assert [row["url"] for row in document["gone_pages"]] == [f"{SITE}/gone"]
    assert [(row["source"], row["target"], row["status"]) for row in document["broken_links"]] == [
        (f"{SITE}/", f"{SITE}/x", 404)
    ]
    assert document["mended_links"][0]["now"] == "it answers 200"
    assert document["changed_status"][0] == {
        "url": f"{SITE}/x",
        "old": {"status": 200, "outcome": "ok"},
        "new": {"status": 404, "outcome": "http_error"},
    }
    assert document["changed_title"] == [{"url": f"{SITE}/a", "old": "A", "new": "B"}]
    assert document["counts"] == {
        "new": 1,
        "gone": 1,
        "broken": 1,
        "mended": 1,
        "status": 2,
        "title": 1,
        "same": 1,
        "canonical": 0,
        "redirect": 0,
        "depth": 0,
    }


# ---------------------------------------------------------------- real crawls


def test_two_crawls_of_a_site_that_changed(site: Any, crawl: Any, tmp_path: Path) -> None:
    """From the files of two real crawls: what was changed on the server is what is told."""
    served = site(
        {
            "/": html("/a", "/b", "/c", title="One"),
            "/a": html(),
            "/b": html("/old"),
            "/c": Reply(status=500),
            "/old": html(),
        }
    )
    crawl(served.url("/"), out=tmp_path / "old.json")
    served.routes = {
        "/": html("/a", "/b", "/c", "/d", title="Two"),
        "/a": Reply(status=404),
        "/b": redirect("/d", 301),
        "/c": html(),
        "/d": html(),
    }
    crawl(served.url("/"), out=tmp_path / "new.json")
    with (
        open_crawl(str(tmp_path / "old.json")) as old,
        open_crawl(str(tmp_path / "new.json")) as new,
        compare(old, new) as diff,
    ):
        assert [each.url for _, each in diff.new_pages()] == [served.url("/d")]
        assert [each.url for each, _ in diff.gone()] == [served.url("/old")]
        assert [(each.source, each.target.url) for each in diff.broken()] == [(served.url("/"), served.url("/a"))]
        assert [(each.target.url, each.now) for each in diff.mended()] == [(served.url("/c"), "it answers 200")]
        assert [new.url for _, new in diff.changed(What.TITLE)] == [served.url("/")]
        assert [new.url for _, new in diff.changed(What.REDIRECT)] == [served.url("/b")]
        assert list(diff.differing_options()) == []


def test_entry_says_how_it_answered() -> None:
    """A word or two for every kind of row."""
    page_of = Entry("u", "page", None, 200, "ok", *(None,) * 5, 0, None)  # type: ignore[arg-type]  # not looked at

    assert page_of.answer == "200"
    assert page_of._replace(outcome="too_large").answer == "200 too_large"
    assert page_of._replace(status=None, outcome="reset").answer == "reset"
    assert page_of._replace(state="skipped", reason="trap").answer == "skipped: trap"


# ---------------------------------------------------------------- in the report


def changes_in(page_text: str) -> tuple[list[list[Any]], list[str]]:
    """(rows of the table of changes with their addresses, keys of the tabs)."""
    blocks = dict(
        re.findall(r'<script type="application/json" id="data-([\w-]+)">(.*?)</script>', page_text, re.DOTALL)
    )
    addresses = json.loads(blocks["urls"])
    rows = json.loads(blocks["changes"])["rows"] if "changes" in blocks else []
    shown = [
        [kind, addresses[url], old, new, None if by is None else addresses[by]] for kind, url, old, new, by in rows
    ]
    return shown, re.findall(r'id="tab-(\w+)"', page_text)


def test_report_of_a_diff_has_a_tab_with_every_change() -> None:
    """Numbers, rows with both values, and a hint when the crawls were not made alike or NEW is not complete."""
    old = made({"/": {"title": "A"}, "/x": OK, "/y": GONE, "/gone": OK}, edges={"/": ["/x", "/y"]}, depth=2)
    new = made(
        {"/": {"title": "</script><b>"}, "/x": GONE, "/y": OK, "/n": OK},
        edges={"/": ["/x", "/y"]},
        depth=3,
        complete=False,
    )
    out = io.StringIO()
    with old as first, new as second, compare(first, second) as diff:
        view, found = second
        report.write(out, view, head=found, diff=diff)
    rows, tabs = changes_in(out.getvalue())

    assert tabs[:2] == ["overview", "changes"]
    assert rows == [
        ["new broken link", f"{SITE}/x", None, "404", f"{SITE}/"],
        ["mended link", f"{SITE}/y", "404", "it answers 200", f"{SITE}/"],
        ["page gone", f"{SITE}/gone", "200", None, None],
        ["new page", f"{SITE}/n", None, "200", None],
        ["status", f"{SITE}/x", "200", "404", None],
        ["status", f"{SITE}/y", "404", "200", None],
        ["title", f"{SITE}/", "A", "</script><b>", None],
    ]
    assert "<code>--depth</code> was <bdi>2</bdi>, is <bdi>3</bdi>." in out.getvalue()
    assert "The new crawl is not complete" in out.getvalue()


def test_report_without_a_diff_has_no_such_tab() -> None:
    """The report of one crawl is as it was."""
    out = io.StringIO()
    with made({"/": OK}) as (view, found):
        report.write(out, view, head=found)

    assert "changes" not in changes_in(out.getvalue())[1]


def test_report_keeps_some_rows_of_every_list() -> None:
    """A thousand changed titles do not push out the one broken link; the number says how many there are."""
    names = [f"/{number}" for number in range(50)]
    old = made({"/": OK, "/x": OK} | {name: {"title": "A"} for name in names}, edges={"/": ["/x"]})
    new = made({"/": OK, "/x": GONE} | {name: {"title": "B"} for name in names}, edges={"/": ["/x"]})
    with old as first, new as second, compare(first, second) as diff:
        table = Changes(diff, Urls(second[0]), rows=12).table()

    assert [row[0] for row in table.rows] == ["new broken link", "status", *["title"] * 4]
    assert (table.total, table.is_cut) == (52, True)
