"""Why a URL is in a crawl as it is: where it was found, what became of it, and by which rule."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from crawlr import why, why_lines
from crawlr.errors import OptionsError
from crawlr.export import open_crawl
from crawlr.formats import outputs_of
from crawlr.known import Flag
from crawlr.outputs import write_all
from tests.made_crawl import HEAD, IN, SITE, made_journal, made_view, page
from tests.servers.local import Reply, redirect
from tests.servers.local import page as html


@pytest.fixture(params=["journal", "sitemap.json", "sitemap.json.gz"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Any, Any]]:
    """The crawl made by hand, as a journal and as either file."""
    if request.param == "journal":
        with made_view() as view:
            yield view, HEAD
        return
    path = tmp_path / request.param
    with made_view() as view:
        write_all(view, outputs_of([str(path)]), head=HEAD)
    with open_crawl(str(path)) as found:
        yield found


def text(answer: why.Answer) -> str:
    return "\n".join(why_lines.lines(answer))


# ---------------------------------------------------------------- where it was found


def test_way_is_the_shortest_from_a_seed(made: Any) -> None:
    """Links and redirects on the way are told apart, and each step has its URL."""
    answer = why.explain(*made, f"{SITE}/deep")

    assert [(step.by, step.url) for step in answer.way] == [
        ("seed", f"{SITE}/"),
        ("link", f"{SITE}/a?x=1&y='2'"),
        ("link", f"{SITE}/deep"),
    ]


def test_every_page_that_leads_there_is_named(made: Any) -> None:
    """Links come first, then redirects."""
    answer = why.explain(*made, f"{SITE}/a?x=1&y='2'")

    assert [(each.by, each.url) for each in answer.referrers] == [
        ("link", f"{SITE}/"),
        ("link", f"{SITE}/copy"),
        ("redirect", f"{SITE}/old"),
    ]


def test_kind_and_text_of_a_link_are_told_when_they_were_kept() -> None:
    """A state has them, sitemap.json does not."""
    with made_view() as view:
        (link,) = why.explain(view, HEAD, f"{SITE}/missing").referrers

    assert (link.kind, link.nofollow, link.text) == ("a", True, "=1+1")


def test_redirects_are_followed_to_their_end(made: Any) -> None:
    """Every hop with its status."""
    answer = why.explain(*made, f"{SITE}/older")

    assert [(step.status, step.url) for step in answer.redirects] == [
        (302, f"{SITE}/older"),
        (301, f"{SITE}/old"),
        (200, f"{SITE}/a?x=1&y='2'"),
    ]


def test_redirect_circle_ends_where_it_closes() -> None:
    """A circle is shown once, not for ever."""
    circle = [
        (f"{SITE}/x", page(15, status=302, outcome="redirect_loop", redirect_to=16, redirect_url=f"{SITE}/y")),
        (f"{SITE}/y", page(16, status=302, outcome="redirect_loop", redirect_to=15, redirect_url=f"{SITE}/x")),
    ]
    with made_view(extra=circle) as view:
        answer = why.explain(view, HEAD, f"{SITE}/x")

    assert [step.url for step in answer.redirects] == [f"{SITE}/x", f"{SITE}/y", f"{SITE}/x"]


def test_redirect_out_of_scope_names_the_address() -> None:
    """Where nothing more is known the address stands alone."""
    away = [(f"{SITE}/x", page(15, status=302, outcome="redirect", redirect_url="https://other.test/y"))]
    with made_view(extra=away) as view:
        answer = why.explain(view, HEAD, f"{SITE}/x")

    assert [step.url for step in answer.redirects] == [f"{SITE}/x", "https://other.test/y"]


# ---------------------------------------------------------------- which rule

KNOWN = {
    "/": ("page", None, "requested: status 200, ok"),
    "/missing": ("page", None, "requested: status 404, http_error"),
    "/down": ("page", None, "requested: no answer, refused"),
    "/private": ("skipped", "robots_disallowed", "robots.txt of site.test does not allow crawlr"),
    "/deep": ("unvisited", "depth_limit", "it is 3 links away, and --depth is 2"),
    "/late": ("unvisited", "page_budget", "--max-pages was reached"),
}


@pytest.mark.parametrize("target", KNOWN)
def test_known_url_has_its_rule(made: Any, target: str) -> None:
    """What was not requested has the rule that kept it back, what was requested its answer."""
    state, rule, said = KNOWN[target]
    answer = why.explain(*made, f"{SITE}{target}")

    assert (answer.state, answer.verdict and answer.verdict.rule) == (state, rule)
    assert said in text(answer)


def test_nofollow_and_trap_are_told_from_the_state() -> None:
    """Rules that look at more than the URL are known from what the state keeps."""
    with closing(made_journal("", meta={})) as journal:
        journal.commit(
            urls=[
                (15, f"{SITE}/mirror", None, 1, 0, 0, 0, Flag.IN_SCOPE | Flag.TRAPPED),
                (16, f"{SITE}/x/x/x/x/x/x", None, 1, 0, 0, 0, IN | Flag.TRAP),
                (17, f"{SITE}/{'y' * 5000}", None, 1, 0, 0, 0, IN | Flag.TOO_LONG),
            ]
        )
        from crawlr.records import StopReason
        from crawlr.view import CrawlView

        view = CrawlView(journal, stop_reason=StopReason.PAGE_BUDGET, depth_limit=2, all_edges=False)
        said = {
            target: text(why.explain(view, HEAD, f"{SITE}{target}"))
            for target in ("/nofollowed", "/mirror", "/x/x/x/x/x/x", f"/{'y' * 5000}")
        }

    assert "only links that may not be followed lead to it (--nofollow page)" in said["/nofollowed"]
    assert "only pages of a trap" in said["/mirror"]
    assert "'x' stands 6 times in its path" in said["/x/x/x/x/x/x"]
    assert "it has 5,018 characters, more than 4,096" in said[f"/{'y' * 5000}"]


def test_target_out_of_scope_is_known_by_its_links() -> None:
    """A state knows what leads out of scope, although no list names it."""
    with made_view() as view:
        answer = why.explain(view, HEAD, "https://other.test/")

    assert (answer.state, answer.verdict and answer.verdict.rule) == ("external", "scope")
    assert [step.url for step in answer.way] == [f"{SITE}/", "https://other.test/"]


def test_external_row_of_a_file_has_its_way(tmp_path: Path) -> None:
    """sitemap.json lists it without a place; the way is the one of the nearest page that links there."""
    path = tmp_path / "sitemap.json"
    with made_view(all_edges=True) as view:
        write_all(view, outputs_of([str(path)]), head=HEAD)
    with open_crawl(str(path)) as found:
        answer = why.explain(*found, "https://other.test/")

    assert [(step.by, step.url) for step in answer.way] == [("seed", f"{SITE}/"), ("link", "https://other.test/")]


def head(**options: object) -> dict[str, object]:
    return {**HEAD, "options": options, "stop_reason": "finished", "complete": True}


LONG = "/" + "z" * 5000
UNSEEN = [
    ("https://elsewhere.test/", {}, "scope", "elsewhere.test is out of scope (--scope host: site.test)"),
    ("https://www.site.test/", {"scope": "domain"}, "not_linked", "no page that was read links"),
    ("https://www.site.test/", {"scope": "host"}, "scope", "www.site.test is out of scope"),
    (f"{SITE}/x", {"scope": "prefix"}, "not_linked", "no page that was read links"),
    (f"{SITE}/x.pdf", {"exclude": [r"\.pdf$", "q"]}, "exclude", r"--exclude '\\.pdf$' matches it"),
    (f"{SITE}/x", {"include": ["/docs/"]}, "include", "no --include matches it: '/docs/'"),
    (f"{SITE}/docs/x", {"include": ["/docs/"], "exclude": ["docs"]}, "exclude", "--exclude 'docs' matches it"),
    (f"{SITE}{LONG}", {}, "url_too_long", "5,018 characters"),
    (f"{SITE}/{'b/' * 6}", {}, "trap", "'b' stands 6 times"),
    (f"{SITE}/{'/'.join(map(str, range(40)))}", {}, "trap", "40 segments, more than 32"),
    (f"{SITE}/new", {"depth": 3}, "not_linked", "nothing farther than 3 links away was read (--depth)"),
    (f"{SITE}/new", {"robots": False}, "not_linked", "sitemaps were not asked (--sitemaps)"),
    (f"{SITE}/new", {"user_agent": "bot/1 (x)"}, "not_linked", "whether robots.txt allows it to bot is not kept"),
]


@pytest.mark.parametrize(("url", "options", "rule", "said"), UNSEEN)
def test_rule_that_would_decide_about_a_url_never_seen(
    url: str, options: dict[str, object], rule: str, said: str
) -> None:
    """The first rule that speaks, in the order in which a crawl asks them."""
    with made_view() as view:
        answer = why.explain(view, head(**options), url)

    assert answer.state == "unknown"
    assert answer.verdict is not None
    assert answer.verdict.rule == rule
    assert said in answer.verdict.says
    assert "never seen" in text(answer)


def test_robots_txt_decides_about_a_url_never_seen() -> None:
    """What it says to the crawl's agent was kept: a rule is quoted, and where none refuses nothing is left open."""
    rules = {"robots_txt": {SITE: "User-agent: *\nDisallow: /shut/\nAllow: /shut/up"}}
    with made_view() as view:
        shut, up = (why.explain(view, {**HEAD, **rules}, f"{SITE}{path}").verdict for path in ("/shut/x", "/shut/up"))

    assert shut is not None
    assert ("robots_disallowed", True) == (shut.rule, "(Disallow: /shut/ for *)" in shut.says)
    assert up is not None
    assert ("not_linked", False) == (up.rule, "robots" in up.says)


def test_crawl_keeps_what_robots_txt_said(run_cli: Any, site: Any) -> None:
    """In sitemap.json and in the state of a crawl that is not complete, also after a resume."""
    robots = Reply(body="User-agent: *\nDisallow: /shut/\n\nUser-agent: other\nDisallow: /")
    ground = site({"/": html("/a"), "/a": html("/b"), "/robots.txt": robots}, default=html())
    kept = {ground.url()[:-1]: "User-agent: *\nDisallow: /shut/"}

    def said(path: str) -> str:
        words = ("why", ground.url("/shut/x"), "--in", path)
        return str(run_cli(*words, out=None, folder=run_cli.folder).out)

    ran = run_cli(ground.url(), "--max-pages", "1", folder=run_cli.folder)
    assert kept == ran.site_map.document["robots_txt"]
    assert "Disallow: /shut/ for *" in said("sitemap.json.crawl")
    ran = run_cli(ground.url(), "--max-pages", "9", "--resume", folder=run_cli.folder)
    assert kept == ran.site_map.document["robots_txt"]
    assert "Disallow: /shut/ for *" in said("sitemap.json")


def test_crawl_that_did_not_finish_is_no_proof() -> None:
    """A URL may be missing because the page that links there was not read."""
    with made_view() as view:
        answer = why.explain(view, HEAD, f"{SITE}/new")

    assert answer.verdict is not None
    assert "the crawl did not finish (page budget)" in answer.verdict.says


@pytest.mark.parametrize(
    ("path", "expected"), [("https://dead.test/x", "refused"), ("https://shut.test/x", "robots_unreachable")]
)
def test_origin_that_nobody_could_ask_decides(path: str, expected: str) -> None:
    """Every URL of an origin that was closed ends as the others there did."""
    dead = [("https://dead.test/", page(15, status=None, outcome="refused", error="connection refused"))]
    with closing(made_journal("", meta={}, extra=dead)) as journal:
        journal.commit(
            urls=[(16, "https://shut.test/", None, 1, 0, 0, 0, IN)],
            skipped=[(16, "robots_unreachable", "robots.txt answered 503")],
        )
        from crawlr.records import StopReason
        from crawlr.view import CrawlView

        view = CrawlView(journal, stop_reason=StopReason.FINISHED, depth_limit=None, all_edges=False)
        answer = why.explain(view, head(scope="any"), path)

    assert answer.verdict is not None
    assert answer.verdict.rule == expected


# ---------------------------------------------------------------- one page under several spellings

SPELLINGS = [
    (
        f"{SITE}/old?utm_source=x&utm_medium=y",
        {},
        ["tracking parameters do not tell pages apart: utm_source, utm_medium"],
    ),
    (f"{SITE}/old?sid=1", {"ignore_param": ["sid"]}, ["--ignore-param: sid"]),
    (f"{SITE}/%6Fld", {}, ["percent-encoding is spelled in several ways (RFC 3986 §6.2.2)"]),
    (
        f"{SITE}/%6fld?gclid=1&sid=2",
        {"ignore_param": ["sid"]},
        [
            "tracking parameters do not tell pages apart: gclid",
            "--ignore-param: sid",
            "percent-encoding is spelled in several ways (RFC 3986 §6.2.2)",
        ],
    ),
    ("HTTPS://SITE.test:443/x/../old#part", {}, []),
]


@pytest.mark.parametrize(("url", "options", "because"), SPELLINGS)
def test_merged_spelling_says_into_what_and_why(url: str, options: dict[str, object], because: list[str]) -> None:
    """The listed spelling is named, with each rule that makes both one page."""
    with made_view() as view:
        answer = why.explain(view, head(**options), url)

    assert (answer.listed_as, list(answer.merged_because)) == (f"{SITE}/old", because)


@pytest.mark.parametrize("url", [f"{SITE}/old?utm_source=x", f"{SITE}/old?sid=1"])
def test_spelling_that_the_crawl_kept_apart_is_another_page(url: str) -> None:
    """The options of the crawl decide, not the defaults."""
    with made_view() as view:
        answer = why.explain(view, head(keep_params=True), url)

    assert answer.state == "unknown"


def test_very_spelling_wins_over_the_identity() -> None:
    """A redirect to another spelling of itself made two pages; each is found by its own address."""
    with closing(made_journal("", meta={})) as journal:
        url = f"{SITE}/old?utm_source=x"
        journal.commit(urls=[(15, url, f"redirect:{url}", 1, 2, 0, 1, IN)])
        from crawlr.records import StopReason
        from crawlr.view import CrawlView

        view = CrawlView(journal, stop_reason=StopReason.FINISHED, depth_limit=None, all_edges=False)
        answer = why.explain(view, HEAD, url)

    assert (answer.listed_as, answer.way[-1].by) == (url, "redirect")


# ---------------------------------------------------------------- how a URL may be written


@pytest.mark.parametrize(
    "given", ["/missing", "site.test/missing", " https://site.test/missing ", "//site.test/missing"]
)
def test_url_may_be_written_as_the_page_lines_show_it(given: str) -> None:
    """A path is one of the first seed's host, a name without a scheme is looked for under both."""
    with made_view() as view:
        answer = why.explain(view, HEAD, given)

    assert answer.listed_as == f"{SITE}/missing"


@pytest.mark.parametrize("given", ["ftp://site.test/", "", "https://[bad/", "mailto:x@site.test"])
def test_what_is_no_address_is_refused(given: str) -> None:
    """The message names it."""
    with made_view() as view, pytest.raises(OptionsError, match=r"why: .*http or https page"):
        why.explain(view, HEAD, given)


# ---------------------------------------------------------------- the texts


def test_nothing_from_the_web_reaches_the_terminal() -> None:
    """Titles, errors and addresses are printed without control characters."""
    hostile = [
        (
            f"{SITE}/x",
            page(15, status=404, outcome="http_error", error="bad \x1b[31m\r\n::error::x", title="t\x1b]0;x\x07\u202e"),
        )
    ]
    with made_view(extra=hostile) as view:
        answer = why.explain(view, HEAD, f"{SITE}/x")
    shown = list(why_lines.lines(answer))

    assert all(line.isprintable() for line in shown)
    assert any("\\x1b" in line for line in shown)
    assert json.loads(json.dumps(why.document(answer)))["title"] == "t\x1b]0;x\x07\u202e"


def test_real_crawl_is_explained(site: Any, crawl: Any) -> None:
    """A crawl of a real server, from its file: way, tries, redirects, and the host that a seed moved to."""
    moved = site(
        {"/": html("/a?utm_source=x", "/b"), "/a": html("/c"), "/b": redirect("/a", 301), "/c": Reply(status=404)}
    )
    first = site({"/": redirect(moved.url("/"), 301)})
    made = crawl(first.url("/"))
    with open_crawl(made.result.summary.out[0].path) as (view, found):
        seen = why.explain(view, found, moved.url("/c"))
        redirecting = why.explain(view, found, moved.url("/b"))
        unseen = why.explain(view, found, moved.url("/never"))

    assert [(step.by, step.url) for step in seen.way] == [
        ("seed", first.url("/")),
        ("redirect", moved.url("/")),
        ("link", moved.url("/a?utm_source=x")),
        ("link", moved.url("/c")),
    ]
    assert (seen.tries, seen.status, seen.outcome) == (1, 404, "http_error")
    assert [step.url for step in redirecting.redirects][:2] == [moved.url("/b"), moved.url("/a?utm_source=x")]
    assert unseen.verdict is not None
    assert unseen.verdict.rule == "not_linked"


def test_answer_of_a_target_out_of_scope_is_told(site: Any, crawl: Any, tmp_path: Path) -> None:
    """When --check-external asked it."""
    outside = site({"/gone": Reply(status=404), "/shut": Reply(status=403)})
    links = [outside.url("/gone"), outside.url("/shut")]
    crawl(site({"/": html(*links)}).url(), out=tmp_path / "map.json", check_external=True)
    with open_crawl(str(tmp_path / "map.json")) as found:
        answers = [why.explain(*found, link) for link in links]

    assert [(each.external_class, each.status, each.state) for each in answers] == [
        ("broken", 404, "external"),
        ("blocked", 403, "external"),
    ]
    assert "--check-external: broken, status 404" in text(answers[0])
