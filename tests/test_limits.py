"""The `limit` line: each limit is named by a crawl in which that stage really is the limit."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from crawlr.limits import Load, limiter, limiter_word, predict
from crawlr.records import FetchedPage, FetchFailure, FetchTask, FetchTiming, Outcome
from crawlr.stats import ParseSample, Period, Stages, Timeline, Wait
from tests.conftest import Crawl
from tests.fakeweb import FakeWeb, Page, star
from tests.servers.local import Reply, Site, page

MakeSite = Callable[..., Site]

HOST = "http://site.test"
HEAVY = b'<body title=">"><table>' + b"<tr><td><p>words <b>more</b> <i>words</i></td></tr>" * 6000 + b"</table>"


def spin(seconds: float) -> None:
    """Keep this thread busy, as work does."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


class BusyFetcher(FakeWeb):
    """A fetcher whose threads are busy with bodies all the time."""

    def fetch(self, task: FetchTask) -> FetchedPage | FetchFailure:
        answer = super().fetch(task)
        spin(0.01)
        if isinstance(answer, FetchFailure):
            return answer
        return FetchedPage(
            status=answer.status, body=answer.body, content_type="text/html", timing=FetchTiming(body=0.01)
        )


class ShortOnce(FakeWeb):
    """Has no descriptor for its third fetch."""

    def fetch(self, task: FetchTask) -> FetchedPage | FetchFailure:
        answer = super().fetch(task)
        if len(self.requests) == 3:
            return FetchFailure(outcome=Outcome.REFUSED, error="Too many open files", is_local=True)
        return answer


@pytest.mark.alone
def test_a_polite_crawl_is_limited_by_its_rate(crawl: Crawl, site: MakeSite) -> None:
    """The host and the option that holds it back are named."""
    ground = site({"/": page(*[f"/{i}" for i in range(30)])}, default=page())

    limit = crawl(ground.url(), rps=20).result.summary.limit

    assert limit.startswith("host rate: --rps 20 on 127.0.0.1:"), limit


@pytest.mark.alone
def test_a_crawl_delay_is_named_as_what_holds_back(crawl: Crawl, site: MakeSite) -> None:
    """Where robots.txt asks for more patience than --rps, its Crawl-delay is named."""
    robots = Reply(headers=[("Content-Type", "text/plain")], body="User-agent: *\nCrawl-delay: 0.1\n")
    ground = site({"/robots.txt": robots, "/": page(*[f"/{i}" for i in range(12)])}, default=page())

    limit = crawl(ground.url(), rps=0).result.summary.limit

    assert limit.startswith("host rate: Crawl-delay 0.1s on 127.0.0.1:"), limit


@pytest.mark.alone
def test_a_slow_server_is_the_limit(crawl: Crawl, site: MakeSite) -> None:
    """Every permit is out and most of the time is spent before the first byte."""
    ground = site({"/": page(*[f"/{i}" for i in range(30)])}, default=Reply(body="<p>x", delay=0.15))

    limit = crawl(ground.url(), concurrency=3).result.summary.limit

    assert limit.startswith("server: "), limit
    assert "ms to first byte" in limit


@pytest.mark.alone
def test_heavy_pages_make_parsing_the_limit(crawl: Crawl) -> None:
    """One process parses, and everybody waits for it."""
    pages = star(HOST, 60, Page(body=HEAVY))

    limit = crawl(f"{HOST}/", fetcher=FakeWeb(pages), parse_procs=1, concurrency=20).result.summary.limit

    assert limit.startswith("parse: 1 procs "), limit


@pytest.mark.alone
def test_a_budget_that_is_used_up_is_no_limit_of_a_host(site: MakeSite, crawl: Crawl) -> None:
    """While the last page is under way no request waits for its host, however many URLs are known."""
    ground = site({"/": page(*[f"/{i}" for i in range(40)])}, default=Reply(body="<p>x", delay=0.5))

    limit = crawl(ground.url(), max_pages=2, robots=False).result.summary.limit

    assert limit.startswith("frontier empty"), limit


@pytest.mark.alone
def test_a_slow_function_of_the_caller_makes_the_coordinator_the_limit(crawl: Crawl) -> None:
    """canonicalise runs in the coordinator's thread."""

    def slow(url: str) -> str:
        spin(0.01)
        return url

    fake = FakeWeb(star(HOST, 300))

    limit = crawl(f"{HOST}/", fetcher=fake, canonicalise=slow).result.summary.limit

    assert limit.startswith("coordinator: "), limit


@pytest.mark.alone
def test_small_pages_of_a_fast_server_make_the_coordinator_the_limit(crawl: Crawl) -> None:
    """Its process is busy, and no thread has the time to use the permits that are out: that is no slow server."""
    pages = star(HOST, 9_000, Page())

    limit = crawl(f"{HOST}/", fetcher=FakeWeb(pages), concurrency=20, parse_procs=2).result.summary.limit

    assert limit.startswith("coordinator: "), limit


@pytest.mark.parametrize(
    ("fetch_busy", "main_cpu", "word"), [(75.0, 8.0, "coordinator"), (100.0, 8.0, "server"), (75.0, 0.1, "server")]
)
def test_permits_without_exchanges_are_not_the_servers(fetch_busy: float, main_cpu: float, word: str) -> None:
    """For 9 of 10 s all 20 permits were out: 180 s of exchanges, had threads been there to use them. Where nobody was
    busy they are under way still."""
    stages = Stages(fetch_busy=fetch_busy, fetch_first_byte=fetch_busy)
    stages.waits[Wait.FETCH] = 9.0

    assert limiter_word(structs.replace(busy(stages), parse_busy=2.0, main_cpu=main_cpu)) == word


@pytest.mark.alone
def test_pages_that_take_their_time_are_not_the_coordinators_fault(crawl: Crawl, site: MakeSite) -> None:
    """Nobody is busy, and the exchanges that all wait for have not ended."""
    ground = site({"/": page(*[f"/{i}" for i in range(30)])}, default=Reply(body="<p>x", delay=30.0))

    limit = crawl(ground.url(), concurrency=5, robots=False, max_time=1.5).result.summary.limit

    assert not limit.startswith("coordinator"), limit


@pytest.mark.alone
def test_a_moment_without_descriptors_does_not_hide_the_rate(crawl: Crawl) -> None:
    """Permits are withheld after it, so the crawl has fewer than --concurrency for the rest of its time."""
    pages = star(HOST, 40, Page())

    limit = crawl(f"{HOST}/", fetcher=ShortOnce(pages), rps=20, concurrency=20).result.summary.limit

    assert limit.startswith("host rate: --rps 20"), limit


@pytest.mark.alone
def test_busy_fetch_threads_are_the_limit(crawl: Crawl) -> None:
    """The threads are busy and it is not the server that they wait for."""
    pages = star(HOST, 150, Page())

    limit = crawl(f"{HOST}/", fetcher=BusyFetcher(pages), concurrency=2).result.summary.limit

    assert limit.startswith("fetch threads: 2 "), limit


@pytest.mark.alone
def test_a_chain_of_pages_is_limited_by_what_is_known(crawl: Crawl, site: MakeSite) -> None:
    """With one URL known at a time more threads or processes would not help."""
    replies = {f"/{i}": Reply(body=f'<a href="/{i + 1}">x</a>', delay=0.05) for i in range(30)}
    ground = site({"/": page("/0"), **replies}, default=page())

    limit = crawl(ground.url(), concurrency=20).result.summary.limit

    assert limit.startswith("frontier empty: "), limit


@pytest.mark.alone
def test_stats_add_up(crawl: Crawl, site: MakeSite, tmp_path: Path) -> None:
    """The parts of each stage and what is not accounted for are its whole."""
    path = tmp_path / "stats.json"
    ground = site({"/": page(*[f"/{i}" for i in range(40)])}, default=Reply(body="<p>x", delay=0.05))

    crawled = crawl(ground.url(), stats=str(path))
    stats = json.loads(path.read_text())

    fetch, parse, coordinator = stats["fetch"], stats["parse"], stats["coordinator"]
    parts = ("connect_s", "first_byte_s", "body_s", "unaccounted_s")
    assert pytest.approx(fetch["busy_s"]) == sum(fetch[part] for part in parts)
    assert fetch["first_byte_s"] > 1.5, "40 answers after 50 ms each"
    parts = ("decode_s", "parse_s", "resolve_s", "hand_off_s")
    assert pytest.approx(parse["busy_s"]) == sum(parse[part] for part in parts)
    parts = ("dispatch_s", "merge_s", "journal_s", "idle_s", "unaccounted_s")
    assert pytest.approx(stats["elapsed_s"]) == sum(coordinator[part] for part in parts)
    assert pytest.approx(coordinator["idle_s"]) == sum(coordinator["idle_for"].values())
    assert abs(coordinator["unaccounted_s"]) < 0.2 * stats["elapsed_s"]
    assert crawled.map["stats"]["pages"] == stats["pages"]["pages"] == parse["pages"] == 41
    assert 42 == fetch["requests"] == stats["hosts"][0]["requests"]
    assert 41 == stats["parse_sample_of"] == len(stats["parse_sample"])
    assert sum(micros for _, micros in stats["parse_sample"]) < 1e6 * parse["busy_s"]
    assert 0 < stats["hosts"][0]["active_s"] < stats["elapsed_s"]


@pytest.mark.parametrize(
    ("robots", "said", "delay"),
    [
        (Reply(body="User-agent: *\nCrawl-delay: 0.01\nDisallow: /x\n"), "read, 1 rule applies to crawlr", 0.01),
        (Reply(body="User-agent: *\nCrawl-delay: 9\n"), "read, no rule applies to crawlr", 9.0),
        (Reply(status=404), "none (status 404)", None),
        (Reply(status=503), "not had: status 503", None),
    ],
)
def test_stats_say_what_came_of_robots_txt(
    site: MakeSite, crawl: Crawl, tmp_path: Path, robots: Reply, said: str, delay: float | None
) -> None:
    """With the Crawl-delay that it asks for, which may be more than what is kept."""
    path = tmp_path / "stats.json"
    ground = site({"/robots.txt": robots, "/": page()})

    crawl(ground.url(), stats=str(path), max_crawl_delay=0.02, retries=0)
    (host,) = json.loads(path.read_text())["hosts"]

    assert said == host["robots"]
    assert delay == host["crawl_delay_s"]
    assert host["interval_s"] <= 0.02


def test_sample_of_parse_times_is_bounded_and_fair() -> None:
    """Each part of a long crawl is in it by its share, and it is the same for the same pages."""
    samples = [ParseSample(), ParseSample()]
    for sample in samples:
        for number in range(20 * ParseSample.MOST):
            sample.add(number, 1)
    quarters = [0] * 4
    for number, _ in samples[0].rows:
        quarters[number * 4 // (20 * ParseSample.MOST)] += 1

    assert samples[0].rows == samples[1].rows
    assert ParseSample.MOST == sum(quarters)
    assert all(400 < quarter < 600 for quarter in quarters)


def busy(stages: Stages, *, cores: int = 16) -> Load:
    """10 s in which two processes parsed all the time and the main process worked for 4."""
    return Load(
        stages=stages,
        elapsed=10.0,
        procs=2,
        concurrency=20,
        parse_busy=20.0,
        parse_cpu=20.0,
        parse_slots=20.0,
        main_cpu=4.0,
        cores=cores,
        rate="",
    )


@pytest.mark.parametrize(("procs", "gain"), [(1, 0.5), (2, 1.0), (4, 2.0), (8, 2.5)])
def test_prediction_ends_where_another_stage_is_the_limit(procs: int, gain: float) -> None:
    """The main process can do 2.5 times as much."""
    stages = Stages(parsed=100, fetch_busy=10.0)
    stages.waits[Wait.PARSE] = 6.0

    assert pytest.approx(gain) == predict(busy(stages), procs)


@pytest.mark.parametrize(("cores", "gain"), [(2, 1.0), (3, 1.25), (16, 2.5)])
def test_prediction_ends_where_the_cores_do(cores: int, gain: float) -> None:
    """24 s of CPU take 8 s on three cores."""
    load = busy(Stages(parsed=100), cores=cores)

    assert pytest.approx(gain) == predict(load, 8)


def test_timeline_of_a_long_crawl_stays_small() -> None:
    """After an hour rows are joined two by two, and nothing of their sums is lost."""
    timeline = Timeline()
    for second in range(Timeline.MOST * 2):
        timeline.add(
            Period(
                at=second + 1.0,
                seconds=1.0,
                pages=3,
                bytes=5,
                errors=1,
                fetch_share=0.5,
                parse_share=0.25,
                coordinator_share=0.1,
                limiter="parse",
                queued=1,
                in_flight=1,
                parse_procs=2,
            )
        )

    assert len(timeline.rows) <= Timeline.MOST
    assert timeline.every > 1.0
    assert Timeline.MOST * 2 * 3 == sum(row.pages for row in timeline.rows)
    assert {0.5} == {row.fetch_share for row in timeline.rows}


@pytest.mark.parametrize("pause", [0.0, 4.0, 300.0])
def test_pause_does_not_change_the_limit(pause: float) -> None:
    """Shares, the limit and predictions are those of the time in which the crawl was not paused."""
    stages = Stages(fetch_busy=40.0, parsed=1000, waits=dict.fromkeys(Wait, 0.0) | {Wait.PARSE: 8.0})
    stages.waits[Wait.PAUSED] = pause
    load = Load(
        stages=stages,
        elapsed=10.0 + pause,
        procs=2,
        concurrency=20,
        parse_busy=19.0,
        parse_cpu=19.0,
        parse_slots=2 * (10.0 + pause),
        main_cpu=1.0,
        cores=16,
        rate="",
    )

    assert limiter(load) == "parse: 2 procs 95% busy, fetchers 20% busy"
    assert limiter_word(load) == ("paused" if pause > 10 else "parse")
    assert predict(load, 4) == pytest.approx(2.0)
