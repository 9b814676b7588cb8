"""--parse-procs auto: what it decides over periods that are made up, and in a crawl."""

from __future__ import annotations

import errno
import itertools
import logging
from dataclasses import dataclass

import pytest
from msgspec import structs

from crawlr import machine, monitor
from crawlr.limits import Load
from crawlr.stats import Stages, Wait
from crawlr.tuning import (
    CALM_SECONDS,
    FIRST_MOST,
    PARSER_BYTES,
    SCARCE_BYTES,
    SCARCE_SECONDS,
    SETTLING_SECONDS,
    Tuner,
    first_number,
)
from tests.conftest import Crawl
from tests.fakeweb import FakeWeb, Page, star

HOST = "http://site.test"
PERIOD = 0.25
ROOMY = 100 * PARSER_BYTES
HEAVY = b'<body title=">"><table>' + b"<tr><td><p>words <b>more</b> <i>words</i></td></tr>" * 2000 + b"</table>"


@dataclass(frozen=True, kw_only=True)
class Site:
    """A crawl in steady state, by the seconds of CPU that a page takes in each stage."""

    main: float
    parse: float
    fetch: float = 0.001
    rate: float = 1e9
    """Pages a second that the host may be asked for."""
    cores: int = 64
    known: float = 1e9
    """URLs that are known at once."""

    def pages(self, procs: int) -> float:
        """Pages a second with so many parser processes."""
        by_cores = self.cores / (self.main + self.parse)
        by_known = self.known / (self.parse + self.fetch)
        return min(1 / self.main, procs / self.parse, 20 / self.fetch, self.rate, by_cores, by_known)

    def period(self, procs: int, seconds: float = PERIOD, *, delayed: float = 1.0) -> tuple[Load, int]:
        """(load of a period, bodies that wait at its end); work takes `delayed` times its seconds of CPU"""
        pages = self.pages(procs) * seconds
        stages = Stages(parsed=round(pages), requests=round(pages), fetch_busy=pages * self.fetch)
        stages.fetch_first_byte = stages.fetch_busy
        is_parse = self.pages(procs) == procs / self.parse < self.pages(procs + 1)
        idle = max(0.0, seconds - pages * self.main)
        if is_parse:
            wait = Wait.PARSE
        elif self.pages(procs) == self.rate:
            wait = Wait.HOST
        else:
            wait = Wait.FETCH if self.pages(procs) == 20 / self.fetch else Wait.EMPTY
        stages.waits[wait] = idle
        load = Load(
            stages=stages,
            elapsed=seconds,
            procs=procs,
            concurrency=20,
            parse_busy=pages * self.parse * delayed,
            parse_cpu=pages * self.parse,
            parse_slots=procs * seconds,
            main_cpu=pages * self.main,
            cores=self.cores,
            rate="--rps 0",
        )
        return load, 64 * procs if is_parse else 0


def follow(tuner: Tuner, site: Site, procs: int, seconds: float, *, memory: int = ROOMY) -> list[int]:
    """The numbers of processes, a period each, from the first one on, while the site stays as it is."""
    numbers = [procs]
    for _ in range(round(seconds / PERIOD)):
        load, waiting = site.period(numbers[-1])
        change = tuner.decide(load, waiting=waiting, backlog=waiting * site.parse, memory=memory)
        numbers.append(change.procs if change else numbers[-1])
    return numbers


HEAVY_SITE = Site(main=0.001, parse=0.020)
LIGHT_SITE = Site(main=0.001, parse=0.0005)


@pytest.mark.parametrize(
    ("cores", "memory", "procs"),
    [
        (1, ROOMY, 1),
        (2, ROOMY, 1),
        (4, ROOMY, 3),
        (64, ROOMY, FIRST_MOST),
        (8, 3 * PARSER_BYTES + 1, 3),
        (8, PARSER_BYTES - 1, 1),
        (8, 0, 1),
    ],
)
def test_first_number(cores: int, memory: int, procs: int) -> None:
    """As many as the cores beside the main process's and the memory bears, at least one, not dozens at once."""
    assert procs == first_number(cores=cores, memory=lambda: memory)


@pytest.mark.parametrize(
    ("site", "cores", "first", "last"),
    [
        pytest.param(HEAVY_SITE, 64, 2, 19, id="up to the pace of the coordinator"),
        pytest.param(HEAVY_SITE, 8, 2, 8, id="up to the cores"),
        pytest.param(HEAVY_SITE, 1, 1, 1, id="one core"),
        pytest.param(LIGHT_SITE, 8, 8, 1, id="down to what is needed"),
        pytest.param(Site(main=0.0001, parse=0.002, fetch=0.05), 8, 8, 2, id="a slow server"),
        pytest.param(Site(main=0.0001, parse=0.002, rate=5), 8, 8, 1, id="a polite crawl"),
        pytest.param(Site(main=0.001, parse=0.0018), 2, 2, 2, id="just enough"),
        pytest.param(Site(main=0.0001, parse=0.002, known=1), 8, 8, 8, id="a chain of pages"),
    ],
)
def test_number_settles(site: Site, cores: int, first: int, last: int) -> None:
    """A steady crawl comes to one number within five seconds, and stays there."""
    numbers = follow(Tuner(cores=cores), site, first, 25)

    assert {last} == set(numbers[20:]), numbers
    assert sorted(numbers, reverse=first > last) == numbers


@pytest.mark.parametrize("cores", [1, 2, 3, 4, 8, 16, 48])
@pytest.mark.parametrize("main", [0.0002, 0.001, 0.004])
@pytest.mark.parametrize("parse", [0.0003, 0.002, 0.008, 0.100])
@pytest.mark.parametrize("fetch", [0.002, 0.050, 1.0])
def test_what_it_settles_at_is_as_good_as_any_number(cores: int, main: float, parse: float, fetch: float) -> None:
    """Whatever takes how long: at most 10 % less than the best fixed number, from the number it begins with."""
    site = Site(main=main, parse=parse, fetch=fetch, cores=cores)
    numbers = follow(Tuner(cores=cores), site, first_number(cores=cores, memory=lambda: ROOMY), 20)

    assert site.pages(numbers[-1]) >= 0.9 * max(site.pages(procs) for procs in range(1, 64)), numbers
    assert len({*numbers[30:]}) == 1, numbers
    assert max(numbers) <= cores


def test_growing_is_by_twice_at_most() -> None:
    """The seconds a page of one period are not trusted further."""
    assert follow(Tuner(cores=64), HEAVY_SITE, 1, 5 * PERIOD) == [1, 2, 4, 8, 16, 19]


def test_growing_needs_bodies_that_wait() -> None:
    """Busy processes without a backlog are enough."""
    load, _ = HEAVY_SITE.period(2)

    assert Tuner(cores=8).decide(load, waiting=2, backlog=0.04, memory=ROOMY) is None


def test_reason_of_growing_names_what_was_measured() -> None:
    """The log says how busy they were, what waits and what is hoped for."""
    load, waiting = HEAVY_SITE.period(2)
    change = Tuner(cores=8).decide(load, waiting=waiting, backlog=0.0, memory=ROOMY)

    assert change is not None
    assert change.procs == 4
    assert change.reason == "2 processes 100% busy and 128 bodies wait: 2.0 times the pages are expected"


def test_main_process_without_a_core_to_spare_gets_no_competitor() -> None:
    """Small pages: the processes are busy and have a backlog, but most of it is waiting for a core; more of them would
    take the main process's."""
    load, _ = Site(main=0.001, parse=0.0007).period(1, delayed=1.4)
    load.stages.waits[Wait.PARSE] = 0.1

    assert load.parse_share > 0.9
    assert Tuner(cores=2).decide(load, waiting=100, backlog=0.07, memory=ROOMY) is None


def test_work_for_longer_than_a_start_gets_another_process() -> None:
    """A crawl begins: the period tells of few pages and a busy main process, but heavy bodies pile up already."""
    load, _ = Site(main=0.001, parse=0.001, cores=2).period(1)
    load = structs.replace(load, main_cpu=0.7 * PERIOD, parse_cpu=0.7 * PERIOD)
    [light, heavy] = [Tuner(cores=2).decide(load, waiting=90, backlog=work, memory=ROOMY) for work in (0.04, 0.2)]

    assert light is None
    assert heavy is not None
    assert heavy.procs == 2
    assert heavy.reason == "90 bodies wait, 0.20 s of work for 1 process"


def test_main_process_on_several_cores_does_not_keep_others_from_coming() -> None:
    """Decryption and libcurl run on many cores at once; while the parse processes have theirs, they are the limit."""
    load, waiting = HEAVY_SITE.period(2)
    busy_main = structs.replace(load, main_cpu=3 * PERIOD)
    change = Tuner(cores=8).decide(busy_main, waiting=waiting, backlog=0.0, memory=ROOMY)

    assert change is not None
    assert change.procs == 4


def test_shrinking_waits_until_it_has_been_calm() -> None:
    """A short time with little to parse means nothing, nor do several with a busy one between them."""
    tuner = Tuner(cores=8)
    calm = [LIGHT_SITE.period(4)] * (round(CALM_SECONDS / PERIOD) - 1)
    busy = Site(main=0.001, parse=0.0035).period(4)
    decisions = [tuner.decide(load, waiting=waiting, backlog=0.0, memory=ROOMY) for load, waiting in [*calm, busy] * 3]

    assert decisions == [None] * 12


def test_reason_of_shrinking_names_what_was_measured() -> None:
    """The log says how little they had to do, and how busy fewer would be."""
    tuner = Tuner(cores=8)
    load, waiting = LIGHT_SITE.period(4)
    decisions = [
        tuner.decide(load, waiting=waiting, backlog=0.0, memory=ROOMY) for _ in range(round(CALM_SECONDS / PERIOD))
    ]

    assert decisions[-1] is not None
    assert decisions[-1].procs == 1
    assert decisions[-1].reason == "4 processes 12% busy: 1 process would be 50% busy"


def test_shrinking_spares_what_waits() -> None:
    """While bodies wait nothing is given up, be the processes as idle as they like: a huge page may be in one."""
    load, _ = LIGHT_SITE.period(4)
    tuner = Tuner(cores=4)

    assert [tuner.decide(load, waiting=30, backlog=0.015, memory=ROOMY) for _ in range(20)] == [None] * 20


def test_site_that_changes_all_the_time_does_not_make_it_flap() -> None:
    """Four seconds of light pages, four of heavy ones, and so on: it soon gives up shrinking."""
    tuner, procs, changes = Tuner(cores=4), 4, []
    for turn in range(60):
        numbers = follow(tuner, HEAVY_SITE if turn % 2 else LIGHT_SITE, procs, 4)
        changes.append(sum(a != b for a, b in itertools.pairwise(numbers)))
        procs = numbers[-1]

    assert sum(changes[:10]) > 0
    assert sum(changes[30:]) == 0, changes


def test_memory_that_runs_out_gives_processes_up() -> None:
    """One after the other, down to one; and none comes back until some time after there is memory again."""
    tuner = Tuner(cores=8)
    numbers = follow(tuner, HEAVY_SITE, 4, 4 * SETTLING_SECONDS, memory=SCARCE_BYTES - 1)
    assert [numbers.count(each) for each in (4, 3, 2)] == [1, SETTLING_SECONDS / PERIOD, SETTLING_SECONDS / PERIOD]
    assert numbers[-1] == 1

    assert {1} == set(follow(tuner, HEAVY_SITE, 1, SCARCE_SECONDS - 4 * SETTLING_SECONDS))
    assert follow(tuner, HEAVY_SITE, 1, 10)[-1] == 8


def test_memory_bounds_growing() -> None:
    """No process is added that the memory left can't bear, whatever it would be good for."""
    assert follow(Tuner(cores=8), HEAVY_SITE, 4, 3 * PERIOD, memory=PARSER_BYTES) == [4] * 4
    assert follow(Tuner(cores=8), HEAVY_SITE, 4, PERIOD, memory=3 * PARSER_BYTES)[-1] == 6


# in a crawl


@pytest.fixture
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tuner looks whenever it can: small crawls, fast tests."""
    monkeypatch.setattr(monitor, "TUNER_SECONDS", 0.05)


def resized(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.getMessage().startswith("parse.resized ")]


@pytest.mark.alone
@pytest.mark.usefixtures("_often")
def test_polite_crawl_gives_idle_processes_up(
    crawl: Crawl, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four cores suggest three processes; at 25 pages a second one is enough, and the log says why."""
    monkeypatch.setattr(machine, "cores", lambda: 4)
    caplog.set_level(logging.INFO)
    fake = FakeWeb(star(HOST, 60))

    crawled = crawl(f"{HOST}/", fetcher=fake, parse_procs=None, rps=25)

    assert len(crawled.map["pages"]) == 61
    [line] = resized(caplog)
    assert line.startswith("parse.resized from=3 to=1 reason=3 processes "), line
    assert line.endswith("% busy"), line


@pytest.mark.alone
@pytest.mark.usefixtures("_often")
def test_heavy_crawl_gets_more_processes(
    crawl: Crawl, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins with one, everybody waits for it, and others come; nothing is lost on the way."""
    monkeypatch.setattr(machine, "cores", lambda: 2)
    caplog.set_level(logging.INFO)
    pages = star(HOST, 150, Page(body=HEAVY))

    crawled = crawl(f"{HOST}/", fetcher=FakeWeb(pages), parse_procs=None, concurrency=20)

    assert {page["outcome"] for page in crawled.map["pages"]} == {"ok"}
    assert len(crawled.map["pages"]) == 151
    assert resized(caplog)[0].startswith("parse.resized from=1 to=2 reason="), resized(caplog)


@pytest.mark.usefixtures("_often")
def test_memory_that_cannot_be_looked_at_changes_nothing(
    crawl: Crawl, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel's files need descriptors, and a crawl may have them all."""
    looks: list[int] = []

    def memory() -> int:
        looks.append(1)
        if len(looks) > 1:
            raise OSError(errno.EMFILE, "Too many open files", "/proc/meminfo")
        return ROOMY

    monkeypatch.setattr(machine, "memory", memory)
    monkeypatch.setattr(machine, "cores", lambda: 4)
    caplog.set_level(logging.INFO)
    fake = FakeWeb(star(HOST, 20))

    crawled = crawl(f"{HOST}/", fetcher=fake, parse_procs=None, rps=25)

    assert len(crawled.map["pages"]) == 21
    assert len(looks) > 1
    assert resized(caplog) == []


@pytest.mark.usefixtures("_often")
def test_number_that_was_given_stays(crawl: Crawl, caplog: pytest.LogCaptureFixture) -> None:
    """--parse-procs 2 means two, whatever is measured."""
    caplog.set_level(logging.INFO)
    fake = FakeWeb(star(HOST, 20))

    crawl(f"{HOST}/", fetcher=fake, parse_procs=2, rps=25)

    assert resized(caplog) == []
