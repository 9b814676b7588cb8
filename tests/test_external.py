"""--check-external: link targets out of scope are asked once whether they are there, politely, and never crawled."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from crawlr.errors import OptionsError
from crawlr.export import export, open_crawl
from crawlr.external import classify
from crawlr.formats import outputs_of
from crawlr.gate_rules import read_gates
from crawlr.gates import check
from crawlr.options import Options
from crawlr.records import ExternalClass, Outcome, SkipReason
from tests.servers.local import Once, Reply, redirect
from tests.servers.local import page as html

FETCHERS = ["urllib3", "curl"]


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        port: int = made.getsockname()[1]
    return port


def asked(served: Any) -> list[tuple[str, str]]:
    return [(hit.method, hit.target) for hit in served.hits if hit.path != "/robots.txt"]


def rows(crawled: Any) -> dict[str, dict[str, Any]]:
    return {row["url"]: row for row in crawled.map.document["external"]}


@pytest.mark.parametrize(
    ("status", "outcome", "expected"),
    [
        (200, Outcome.OK, ExternalClass.OK),
        (301, Outcome.REDIRECT, ExternalClass.OK),
        (401, Outcome.HTTP_ERROR, ExternalClass.BLOCKED),
        (403, Outcome.HTTP_ERROR, ExternalClass.BLOCKED),
        (429, Outcome.HTTP_ERROR, ExternalClass.BLOCKED),
        (999, Outcome.HTTP_ERROR, ExternalClass.BLOCKED),
        (404, Outcome.HTTP_ERROR, ExternalClass.BROKEN),
        (503, Outcome.HTTP_ERROR, ExternalClass.BROKEN),
        (None, Outcome.DNS_ERROR, ExternalClass.BROKEN),
        (None, Outcome.BLOCKED_ADDRESS, ExternalClass.UNCHECKED),
        (None, SkipReason.ROBOTS_DISALLOWED, ExternalClass.UNCHECKED),
    ],
)
def test_class_of_an_answer(status: int | None, outcome: str, expected: ExternalClass) -> None:
    """A page that answers programs with a refusal is not told to be broken."""
    assert classify(status, outcome) is expected


@pytest.mark.parametrize("fetcher", FETCHERS)
def test_each_target_is_asked_once_by_head(fetcher: str, site: Any, crawl: Any) -> None:
    """However many pages link to it; its answer stands in its row, and nothing that it links to is asked."""
    outside = site({"/there": html("/more"), "/moved": redirect("/elsewhere", 301), "/gone": Reply(status=404)})
    links = [outside.url(target) for target in ("/there", "/moved", "/gone")]
    served = site({"/": html("/a", *links), "/a": html(*links)})
    crawled = crawl(served.url(), check_external=True, fetcher=fetcher)
    found = rows(crawled)

    assert sorted(asked(outside)) == [("GET", "/gone"), ("HEAD", "/gone"), ("HEAD", "/moved"), ("HEAD", "/there")]
    assert [found[link]["class"] for link in links] == ["ok", "ok", "broken"]
    assert [found[link]["status"] for link in links] == [200, 301, 404]
    assert [found[link]["outcome"] for link in links] == ["ok", "redirect", "http_error"]
    assert crawled.map.document["stats"]["pages"] == 2
    assert crawled.map.document["complete"] is True


@pytest.mark.parametrize("fetcher", FETCHERS)
@pytest.mark.parametrize("status", [403, 404, 405, 501])
def test_get_decides_where_head_is_refused(fetcher: str, status: int, site: Any, crawl: Any) -> None:
    """Some servers know no HEAD: what a browser would get counts."""
    outside = site({"/x": lambda request, _: Reply(status=status) if request.method == "HEAD" else html()})
    crawled = crawl(site({"/": html(outside.url("/x"))}).url(), check_external=True, fetcher=fetcher)

    assert asked(outside) == [("HEAD", "/x"), ("GET", "/x")]
    assert rows(crawled)[outside.url("/x")]["class"] == "ok"


@pytest.mark.parametrize("fetcher", FETCHERS)
def test_get_decides_where_head_is_cut_off(fetcher: str, site: Any, crawl: Any) -> None:
    """A server may close the connection for a method that it does not know."""
    outside = site({"/x": lambda request, _: None if request.method == "HEAD" else html()})
    crawled = crawl(site({"/": html(outside.url("/x"))}).url(), check_external=True, fetcher=fetcher)

    assert asked(outside)[-1] == ("GET", "/x")
    assert rows(crawled)[outside.url("/x")]["class"] == "ok"


@pytest.mark.parametrize("fetcher", FETCHERS)
def test_connection_is_kept_after_a_head(fetcher: str, site: Any, crawl: Any) -> None:
    """The answer to HEAD announces a length and has no body: the next request is in step."""
    outside = site({}, default=html("/x", text="y" * 5000))
    links = [outside.url(f"/{number}") for number in range(6)]
    crawled = crawl(site({"/": html(*links)}).url(), check_external=True, fetcher=fetcher, concurrency=1)

    assert {row["class"] for row in rows(crawled).values()} == {"ok"}
    assert len({hit.connection for hit in outside.hits}) <= 2


def test_blocked_is_told_apart_from_broken(site: Any, crawl: Any) -> None:
    """What answers programs with a refusal may well be there for a person."""
    outside = site({"/a": Reply(status=401), "/b": Reply(status=403), "/c": Reply(status=999), "/d": Reply(status=410)})
    links = [outside.url(target) for target in ("/a", "/b", "/c", "/d")]
    crawled = crawl(site({"/": html(*links)}).url(), check_external=True)

    assert [rows(crawled)[link]["class"] for link in links] == ["blocked", "blocked", "blocked", "broken"]


def test_429_is_not_asked_again_at_once(site: Any, crawl: Any) -> None:
    """It asks for fewer requests; Retry-After is waited for, and HEAD is what is tried again."""
    outside = site({"/x": Once(Reply(status=429, headers=(("Retry-After", "0"),)), html())})
    crawled = crawl(site({"/": html(outside.url("/x"))}).url(), check_external=True, retries=1)

    assert asked(outside) == [("HEAD", "/x"), ("HEAD", "/x")]
    assert rows(crawled)[outside.url("/x")]["class"] == "ok"


def test_robots_txt_is_obeyed(site: Any, crawl: Any) -> None:
    """It is asked first, once a host; what it forbids is not asked and not called broken."""
    outside = site({"/robots.txt": Reply(body="User-agent: *\nDisallow: /private\n")}, default=html())
    links = [outside.url("/private/x"), outside.url("/open")]
    crawled = crawl(site({"/": html(*links)}).url(), check_external=True)
    found = rows(crawled)

    assert outside.targets(files=True).count("/robots.txt") == 1
    assert asked(outside) == [("HEAD", "/open")]
    assert (found[links[0]]["class"], found[links[0]]["outcome"]) == ("unchecked", "robots_disallowed")
    assert found[links[0]]["error"] == "Disallow: /private for *"
    assert found[links[1]]["class"] == "ok"


def test_robots_txt_is_followed_to_where_it_moved(site: Any, crawl: Any) -> None:
    """The rules belong to the host that asked for them."""
    rules = site({"/r": Reply(body="User-agent: *\nDisallow: /no\n")})
    outside = site({"/robots.txt": redirect(rules.url("/r"), 301)}, default=html())
    crawled = crawl(site({"/": html(outside.url("/no"), outside.url("/yes"))}).url(), check_external=True)

    assert asked(outside) == [("HEAD", "/yes")]
    assert rows(crawled)[outside.url("/no")]["class"] == "unchecked"


def test_host_without_an_answer_is_asked_for_robots_txt_alone(crawl: Any, site: Any) -> None:
    """Nobody listens: every link there is broken, by one request."""
    port = free_port()
    links = [f"http://127.0.0.1:{port}/{number}" for number in range(3)]
    crawled = crawl(site({"/": html(*links)}).url(), check_external=True)
    found = rows(crawled)

    assert {(found[link]["class"], found[link]["outcome"]) for link in links} == {("broken", "refused")}
    assert all("refused" in found[link]["error"].lower() for link in links)


def test_robots_txt_that_cannot_be_had_leaves_links_unchecked(site: Any, crawl: Any) -> None:
    """A server in trouble is left alone, as in a crawl."""
    outside = site({"/robots.txt": Reply(status=503)}, default=html())
    crawled = crawl(site({"/": html(outside.url("/x"))}).url(), check_external=True)
    (row,) = rows(crawled).values()

    assert asked(outside) == []
    assert (row["class"], row["outcome"], row["error"]) == (
        "unchecked",
        "robots_unreachable",
        "robots.txt answered 503",
    )


def test_no_robots_asks_none(site: Any, crawl: Any) -> None:
    """With --no-robots its file is not asked for here either."""
    outside = site({"/robots.txt": Reply(body="User-agent: *\nDisallow: /\n")}, default=html())
    crawled = crawl(site({"/": html(outside.url("/x"))}).url(), check_external=True, no_robots=True)

    assert outside.targets(files=True) == ["/x"]
    assert rows(crawled)[outside.url("/x")]["class"] == "ok"


def test_rate_holds_for_each_host(site: Any, crawl: Any) -> None:
    """--rps is kept to: 5 requests at 20 a second take at least a fifth of a second."""
    outside = site({}, default=html())
    links = [outside.url(f"/{number}") for number in range(5)]
    crawl(site({"/": html(*links)}).url(), check_external=True, rps=20, no_robots=True)
    times = [hit.at for hit in outside.hits]

    assert len(times) == 5
    assert times[-1] - times[0] >= 4 / 20 - 0.02


def test_what_the_user_excluded_is_not_asked(site: Any, crawl: Any) -> None:
    """Neither a page of the site that --exclude keeps out, nor a target outside that it matches."""
    outside = site({}, default=html())
    served = site({"/": html("/logout", outside.url("/tracker"), outside.url("/x"))}, default=html())
    crawled = crawl(served.url(), check_external=True, exclude=["logout|tracker"])

    assert asked(outside) == [("HEAD", "/x")]
    assert "/logout" not in served.targets()
    assert set(rows(crawled)[served.url("/logout")]) == {"id", "url"}


def test_secrets_stay_with_the_site(site: Any, crawl: Any) -> None:
    """Headers and credentials go to the seeds' origins only."""
    outside = site({}, default=html())
    crawl(
        site({"/": html(outside.url("/x"))}).url(),
        check_external=True,
        header=["X-Key: secret"],
        cookie="session=secret",
        auth="user:secret",
    )

    assert outside.hits
    assert not any("secret" in str(hit.headers) or "Authorization" in str(hit.headers) for hit in outside.hits)


def test_without_the_option_nothing_outside_is_asked(site: Any, crawl: Any) -> None:
    """Rows have no answer then."""
    outside = site({}, default=html())
    crawled = crawl(site({"/": html(outside.url("/x"))}).url(), edges="all")

    assert outside.hits == []
    assert set(rows(crawled)[outside.url("/x")]) == {"id", "url"}


def test_broken_gate_looks_outside_too(site: Any, crawl: Any, tmp_path: Path) -> None:
    """A broken link is a broken link, a blocked one is none; from the crawl and from its file."""
    outside = site({"/gone": Reply(status=404), "/shut": Reply(status=403)})
    served = site({"/": html(outside.url("/gone"), outside.url("/shut"))})
    crawled = crawl(served.url(), out=tmp_path / "map.json", check_external=True, fail_on="broken")
    (found,) = crawled.result.gates
    with open_crawl(str(tmp_path / "map.json")) as (view, head):
        (again,) = check(view, head, read_gates("broken"))

    assert [(each.url, each.says) for each in found.violations] == [
        (outside.url("/gone"), f"404, linked from {served.url('/')}")
    ]
    assert again == found


def test_answers_come_back_from_the_file(site: Any, crawl: Any, tmp_path: Path) -> None:
    """What is exported from a map has them too."""
    outside = site({"/gone": Reply(status=404)}, default=html())
    crawl(
        site({"/": html(outside.url("/gone"), outside.url("/x"))}).url(), out=tmp_path / "a.json", check_external=True
    )
    export(str(tmp_path / "a.json"), outputs_of([str(tmp_path / "b.json")]))

    assert (tmp_path / "b.json").read_bytes() == (tmp_path / "a.json").read_bytes()
    assert b'"class": "broken"' in (tmp_path / "b.json").read_bytes()


def test_check_that_was_interrupted_goes_on(site: Any, run_cli: Any, gate: Any) -> None:
    """Ctrl-C during the check keeps the state; --resume asks what has no answer yet, and nothing twice."""
    held = gate()
    outside = site({"/slow": Reply(gate=held, body="x")}, default=html())
    served = site({"/": html(outside.url("/fast"), outside.url("/slow"))})
    words = ("--check-external", "--no-robots", "--per-host", "1", served.url())
    running = run_cli.start(*words, folder=run_cli.folder)
    held.wait_for_arrivals()
    running.signal_group(signal.SIGINT)
    ran = running.wait(20)
    held.open()
    resumed = run_cli("--resume", *words, folder=run_cli.folder)

    assert ran.rc == 130
    assert ran.site_map.document["stop_reason"] == "interrupted"
    assert "\ncancelling: interrupting 1 fetches... flushed partial results to " in ran.err
    assert resumed.site_map.document["complete"] is True
    assert {row["class"] for row in resumed.site_map.document["external"]} == {"ok"}
    assert [target for _, target in asked(outside)].count("/fast") == 1
    assert served.targets() == ["/"]
    assert "\nlimit " not in resumed.out, "no page was crawled that anything could have held back"


def test_time_budget_ends_the_check(site: Any, crawl: Any, gate: Any) -> None:
    """--max-time is a bound of the whole run."""
    held = gate()
    outside = site({"/slow": Reply(gate=held)})
    crawled = crawl(site({"/": html(outside.url("/slow"))}).url(), check_external=True, max_time=1.5)
    held.open()

    assert crawled.map.document["stop_reason"] == "time_budget"
    assert set(rows(crawled)[outside.url("/slow")]) == {"id", "url"}


def test_screen_says_what_was_found(site: Any, run_cli: Any) -> None:
    """How many of each class, on stderr."""
    outside = site({"/gone": Reply(status=404), "/shut": Reply(status=403)}, default=html())
    links = [outside.url(target) for target in ("/gone", "/shut", "/x", "/y")]
    ran = run_cli("--check-external", site({"/": html(*links)}).url())

    assert "note: checking 4 link targets out of scope" in ran.err.splitlines()
    assert "note: link targets out of scope: 2 ok, 1 blocked, 1 broken" in ran.err.splitlines()
    assert json.dumps(ran.site_map.document["external"]).count('"class"') == 4


def test_it_needs_the_links_to_outside() -> None:
    """They are listed with it, and cannot be switched off beside it."""
    assert Options.make("x.example", check_external=True).edges == "all"
    with pytest.raises(OptionsError, match="--edges all"):
        Options.make("x.example", check_external=True, edges="in-scope")
