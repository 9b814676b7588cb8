"""What a known URL costs in the main process, and whether a page costs more the more URLs are known.

    python -m bench.frontier                                  # up to 1,000,000 URLs
    python -m bench.frontier --urls 3000000 --json frontier.json --picture frontier.svg

First table, growth: every URL becomes known through the ledger, as in a crawl, and waits; group commits go to a journal
on disk. Memory is the resident set, so it holds what the allocator holds; the first 100,000 URLs pay for what is needed
once.

Second table, cost of a page: everything that the main process does for a page but fetching, parsing and the hand-off to
both: take it, find its address, record its answer, learn its new link, look at the 25 others, commit. Crawls of each
size take turns, page for page the same work, and each figure is the median round.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import psutil

from bench import picture, tables
from crawlr.frontier import Frontier
from crawlr.journal import Journal
from crawlr.known import KnownUrls, State
from crawlr.ledger import Finished, Ledger
from crawlr.records import Outcome
from crawlr.scope import Scope

__all__ = ["Growth", "PageCost", "main", "measure", "page_costs"]

FIRST = 100_000
LINKS = 50
PAGE_LINKS = 26
"""Links of a page in the second table, as on a documentation site; one of them is new."""
COMMIT_PAGES = 64
ROUND_PAGES = 8 * COMMIT_PAGES


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What a known URL costs. Made by measure."""

    urls: int
    bytes_a_url: float
    """Resident, beyond the first 100,000."""
    first_us: float
    """Microseconds for a URL to become known, among the first 100,000."""
    later_us: float
    take_us: float
    state_bytes_a_url: float
    open_s: float
    """To open a state file of this size and check it."""
    resume_s: float
    """The same, and take up all that is in it."""
    peak_mb: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCost:
    """What a page costs when so many URLs are known. Made by page_costs."""

    urls: int
    cpu_us: float
    """Median over the rounds, of this thread's CPU; waiting for the disk is in wall_us only."""
    wall_us: float
    spread: float


class _Crawl:
    """A crawl that knows `urls` URLs, all waiting, with a journal at `path`."""

    def __init__(self, path: str, urls: int) -> None:
        self.urls = urls
        self.journal = Journal.create(path, {})
        self.ledger = _ledger(self.journal)
        self._last = 0
        self._next_new = urls
        self._draw = random.Random(urls)
        seed = self.ledger.plant("http://site.test/", is_seed=True)
        assert self.ledger.frontier.take(0.0) is not None
        for start in range(0, urls, LINKS):
            numbers = [self._learn(i) for i in range(start, min(start + LINKS, urls))]
            self.ledger.reach_by_links(seed, numbers, b"\1" * len(numbers))
            if start % (64 * LINKS) == 0:
                self.ledger.commit()
        self.ledger.commit()
        self.ledger.take_committed()

    def _learn(self, i: int) -> int:
        url = address(i)
        return self.ledger.learn(url, url)

    def pages(self, count: int) -> None:
        """Crawl so many pages."""
        ledger, frontier, draw = self.ledger, self.ledger.frontier, self._draw
        for done in range(1, count + 1):
            taken = frontier.take(1.0)
            assert taken is not None
            assert taken.number is not None
            number = taken.number
            url = ledger.text(number)
            frontier.release(taken.origin.host)
            # every page leads to some that all lead to, to its neighbours, and to a new one
            near = [max(1, number - draw.randrange(500)) for _ in range(PAGE_LINKS // 2)]
            targets = list(dict.fromkeys([*range(1, PAGE_LINKS // 2), *near, self._learn(self._next_new)]))
            self._next_new += 1
            ledger.finish(
                Finished(
                    id=number, url=url, status=200, outcome=Outcome.OK, links=len(targets), millis=3, size=20_000,
                    content_type="text/html", encoding="utf-8", title=f"Page {number}",
                    targets=bytes(4 * len(targets)), kinds=b"\1" * len(targets), body_hash=number,
                )
            )  # fmt: skip
            ledger.reach_by_links(number, targets, b"\1" * len(targets))
            if done % COMMIT_PAGES == 0:
                ledger.commit()
                ledger.take_committed()


def address(i: int) -> str:
    return f"http://site.test/section/{i % 977}/some-article-with-a-name-{i}.html"


def measure(total: int, path: str) -> Growth:
    """Figures for `total` URLs with a state file at `path`."""
    journal = Journal.create(path, {})
    ledger = _ledger(journal)
    seed = ledger.plant("http://site.test/", is_seed=True)
    assert ledger.frontier.take(0.0) is not None
    first = min(FIRST, total // 2) // LINKS * LINKS
    marks: dict[int, tuple[int, float]] = {}
    began = time.perf_counter()
    for start in range(0, total, LINKS):
        links = [address(i) for i in range(start, start + LINKS)]
        numbers = [ledger.learn(link, link) for link in links]
        ledger.reach_by_links(seed, numbers, b"\1" * LINKS)
        if start % (64 * LINKS) == 0:
            ledger.commit()
        if start + LINKS in (first, total):
            marks[start + LINKS] = (_resident(), time.perf_counter() - began)
    ledger.commit()
    takes = min(20_000, total)
    began = time.perf_counter()
    for _ in range(takes):
        taken = ledger.frontier.take(1.0)
        assert taken is not None
        assert taken.number is not None
        ledger.text(taken.number)
        ledger.frontier.release(taken.origin.host)
        ledger.frontier.settle(taken.number, State.DONE)
    take_us = 1e6 * (time.perf_counter() - began) / takes
    journal.close()
    size = os.path.getsize(path)
    del ledger, journal
    began = time.perf_counter()
    again = Journal.open(path)
    assert again is not None
    opened = time.perf_counter() - began
    _ledger(again).load()
    loaded = time.perf_counter() - began
    again.close()
    early, late = marks[first], marks[total]
    return Growth(
        urls=total,
        bytes_a_url=(late[0] - early[0]) / (total - first),
        first_us=1e6 * early[1] / first,
        later_us=1e6 * (late[1] - early[1]) / (total - first),
        take_us=take_us,
        state_bytes_a_url=size / total,
        open_s=opened,
        resume_s=loaded,
        peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def page_costs(sizes: Sequence[int], folder: str, *, rounds: int) -> list[PageCost]:
    """What a page costs at each size; crawls of all sizes exist at once and take turns."""
    crawls = [_Crawl(os.path.join(folder, f"{size}.crawl"), size) for size in sizes]
    cpu: dict[int, list[float]] = {size: [] for size in sizes}
    wall: dict[int, list[float]] = {size: [] for size in sizes}
    for number in range(rounds + 1):
        for crawl in crawls if number % 2 else reversed(crawls):
            began, used = time.perf_counter(), time.thread_time()
            crawl.pages(ROUND_PAGES)
            if number:  # the first only warms up
                cpu[crawl.urls].append(1e6 * (time.thread_time() - used) / ROUND_PAGES)
                wall[crawl.urls].append(1e6 * (time.perf_counter() - began) / ROUND_PAGES)
    for crawl in crawls:
        crawl.journal.close()
    return [
        PageCost(
            urls=size,
            cpu_us=statistics.median(cpu[size]),
            wall_us=statistics.median(wall[size]),
            spread=(max(cpu[size]) - min(cpu[size])) / statistics.median(cpu[size]),
        )
        for size in sizes
    ]


def _shown_growth(growth: Growth) -> str:
    head = ("URLs", "bytes", "us, first", "us, later", "us a take", "state bytes", "open s", "resume s", "peak MB")
    row: tuple[tables.Cell, ...] = (
        growth.urls,
        round(growth.bytes_a_url),
        growth.first_us,
        growth.later_us,
        growth.take_us,
        round(growth.state_bytes_a_url),
        growth.open_s,
        growth.resume_s,
        round(growth.peak_mb),
    )
    return tables.table(head, [row])


def _shown_costs(costs: Sequence[PageCost]) -> str:
    least = costs[0]
    return tables.table(
        ("known URLs", "us of CPU a page", "spread", "us of wall", "against the first"),
        [
            (
                each.urls,
                each.cpu_us,
                f"{100 * each.spread:.0f}%",
                each.wall_us,
                f"{100 * (each.cpu_us / least.cpu_us - 1):.0f}%",
            )
            for each in costs
        ],
    )


def _ledger(journal: Journal) -> Ledger:
    known = KnownUrls()
    scope = Scope("host")
    scope.join("http://site.test/")
    frontier = Frontier(known, rps=0, per_host=1000, gated=False)
    return Ledger(
        known=known,
        frontier=frontier,
        journal=journal,
        scope=scope,
        identity=lambda url: url,
        depth_limit=None,
        max_redirects=10,
    )


def _resident() -> int:
    size: int = psutil.Process().memory_info().rss
    return size


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.frontier", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--urls", type=int, default=1_000_000, help="the most; a multiple of 100")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--skip-growth", action="store_true", help="the second table only")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--picture", metavar="FILE.svg")
    asked = parser.parse_args()
    if asked.urls < 100 or asked.urls % 100:
        parser.error("--urls: accepted is a multiple of 100")
    print(tables.machine())
    sizes = sorted({max(100, asked.urls // part) for part in (100, 30, 10, 3, 1)})
    growth = None
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="crawlr-bench-"))
        if not asked.skip_growth:
            growth = measure(asked.urls, os.path.join(folder, "growth.crawl"))
        costs = page_costs(sizes, folder, rounds=asked.rounds)
    if growth is not None:
        print(_shown_growth(growth))
    print(_shown_costs(costs))
    if asked.json:
        document = {
            "machine": tables.machine(),
            "growth": None if growth is None else asdict(growth),
            "pages": [asdict(each) for each in costs],
        }
        tables.write_json(asked.json, document)
    if asked.picture:
        points = tuple((float(each.urls), each.cpu_us) for each in costs)
        walls = tuple((float(each.urls), each.wall_us) for each in costs)
        chart = picture.lines(
            "What a page costs the main process",
            x_name="known URLs",
            y_name="microseconds a page, without fetching and hand-off",
            drawn=[picture.Line(name="CPU", points=points), picture.Line(name="wall", points=walls, is_dashed=True)],
            is_log=True,
        )
        picture.write(asked.picture, chart)


if __name__ == "__main__":
    main()
