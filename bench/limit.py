"""How far a crawl is from what its stages could do: wall time over the time of the slower stage alone.

    python -m bench.limit                                          # a local site of 2,000 pages of 30 kB
    python -m bench.limit http://127.0.0.1:8000/index.html --parse-procs 2 --concurrency 20

In each round: the whole crawl by the real command; then every request that it made again by the real fetch pool, with
nobody who parses; then every body again by the real parse pool with one process, with nobody who fetches. The limit is
the longer of the fetching time and the parsing time / processes. A crawl that takes no longer than that loses nothing
between the stages; 1.0 cannot be had, since the stages share the cores with each other, with the coordinator and with
the server. What the cores alone would allow stands beside it: the crawl's CPU / cores.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import BinaryIO

from bench import measured, picture, tables
from bench.site import Site, add_knobs, recipe_of
from crawlr import engines
from crawlr.fetch.pool import FetchDone, FetchPool
from crawlr.options import Options
from crawlr.parse.pool import ParsedBatch, ParseFailed, ParsePool
from crawlr.records import FetchedPage, FetchTask, RawBody, TaskKind

__all__ = ["Round", "Spool", "fetch_all", "main", "measure", "parse_all"]

_AHEAD = 256
"""Bodies in the parse pool at once: a backlog as a crawl has it, in bounded memory."""
_PATIENCE = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Seconds of one round. Made by measure, read by main."""

    requests: int
    bodies: int
    wall: float
    """The whole command."""
    elapsed: float
    """The crawl itself, without start and outputs."""
    fetch_alone: float
    fetch_cpu: float
    parse_alone: float
    """With one process."""
    parse_cpu: float
    procs: int
    main_cpu: float
    parser_cpu: float
    limit_said: str

    @property
    def limit(self) -> float:
        """What the slower stage takes alone."""
        return max(self.fetch_alone, self.parse_alone / self.procs)


class Spool:
    """The bodies of a site in an unnamed file: filled by fetch_all, read by parse_all."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._rows: list[tuple[str, int, str | None, str | None]] = []

    def add(self, url: str, page: FetchedPage) -> None:
        self._rows.append((url, len(page.body), page.content_type, page.content_encoding))
        self._file.write(page.body)

    def __len__(self) -> int:
        return len(self._rows)

    def bodies(self) -> Iterator[RawBody]:
        """Every body, from the first on."""
        self._file.seek(0)
        for number, (url, size, content_type, coding) in enumerate(self._rows):
            yield RawBody(
                id=number,
                url=url,
                kind=TaskKind.PAGE,
                body=self._file.read(size),
                content_type=content_type,
                content_encoding=coding,
            )


def fetch_all(urls: list[str], options: Options, spool: Spool | None = None) -> tuple[float, float]:
    """Every URL once by the real fetch pool: seconds, and seconds of CPU of this process."""
    mailbox: queue.SimpleQueue[FetchDone] = queue.SimpleQueue()
    fetcher = engines.network(options, options.seeds, None)
    pool = FetchPool(fetcher=fetcher, concurrency=options.concurrency, deliver=mailbox.put)
    began, cpu = time.perf_counter(), time.process_time()
    try:
        waiting, out = enumerate(urls), 0
        task = next(waiting, None)
        while task is not None or out:
            while task is not None and pool.acquire():
                pool.submit(FetchTask(id=task[0], url=task[1], kind=TaskKind.PAGE))
                out += 1
                task = next(waiting, None)
            done = mailbox.get(timeout=_PATIENCE)
            out -= 1
            page = done.result
            if spool is not None and isinstance(page, FetchedPage) and 200 <= page.status < 300 and page.is_wanted:
                spool.add(done.task.url, page)
        return time.perf_counter() - began, time.process_time() - cpu
    finally:
        pool.close()
        fetcher.close()


def parse_all(spool: Spool, options: Options, *, procs: int) -> tuple[float, float]:
    """Every body once by the real parse pool, which is up already: seconds, and what its processes were busy."""
    mailbox: queue.SimpleQueue[object] = queue.SimpleQueue()
    pool = ParsePool(procs=procs, settings=engines.worker_settings(options), deliver=mailbox.put)
    try:
        pool.start()
        _parse(pool, mailbox, iter([next(spool.bodies())] * procs))  # they are up when these come back
        before = sum(pool.busy)
        began = time.perf_counter()
        _parse(pool, mailbox, spool.bodies())
        return time.perf_counter() - began, sum(pool.busy) - before
    finally:
        pool.close(kill=True)


def _parse(pool: ParsePool, mailbox: queue.SimpleQueue[object], bodies: Iterator[RawBody]) -> None:
    body = next(bodies, None)
    while body is not None or pool.waiting or pool.in_flight:
        while body is not None and pool.waiting + pool.in_flight < _AHEAD:
            pool.submit(body)
            body = next(bodies, None)
        pool.flush()
        outcomes: list[ParsedBatch | ParseFailed] = pool.receive(mailbox.get(timeout=_PATIENCE))
        with contextlib.suppress(queue.Empty):
            while True:
                outcomes += pool.receive(mailbox.get_nowait())
        if failed := [each for each in outcomes if isinstance(each, ParseFailed)]:
            raise RuntimeError(f"body {failed[0].id} was not parsed: {failed[0].error}")


def measure(url: str, *, procs: int, concurrency: int, fetcher: str, parser: str, rounds: int) -> list[Round]:
    """The rounds."""
    options = Options.make(url, rps=0, concurrency=concurrency, fetcher=fetcher, parser=parser, out=None)
    words = (
        "--rps", "0", "--concurrency", str(concurrency), "--parse-procs", str(procs),
        "--fetcher", fetcher, "--parser", parser,
    )  # fmt: skip
    found = []
    with tempfile.TemporaryDirectory(prefix="crawlr-bench-") as folder, tempfile.TemporaryFile() as file:
        map_path = os.path.join(folder, "map.json")
        measured.crawl(url, *words, map_to=map_path)
        with open(map_path, encoding="utf-8") as map_file:
            urls = [page["url"] for page in json.load(map_file)["pages"]]
        spool = Spool(file)
        fetch_all(urls, options, spool)
        if not spool:
            raise ValueError(f"{url}: the crawl found no page that can be parsed")
        for _ in range(rounds):
            whole = measured.crawl(url, *words)
            fetch_alone, fetch_cpu = fetch_all(urls, options)
            parse_alone, parse_cpu = parse_all(spool, options, procs=1)
            found.append(
                Round(
                    requests=len(urls),
                    bodies=len(spool),
                    wall=whole.wall,
                    elapsed=whole.elapsed,
                    fetch_alone=fetch_alone,
                    fetch_cpu=fetch_cpu,
                    parse_alone=parse_alone,
                    parse_cpu=parse_cpu,
                    procs=procs,
                    main_cpu=whole.main_cpu,
                    parser_cpu=whole.parser_cpu,
                    limit_said=whole.stats["limit"]["text"],
                )
            )
    return found


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.limit", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("url", nargs="?", help="a site on loopback in the place of a generated one")
    parser.add_argument("--parse-procs", type=int, default=2)
    parser.add_argument("--concurrency", type=int, default=20)
    parser.add_argument("--fetcher", default="urllib3")
    parser.add_argument("--parser", default="lxml")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--picture", metavar="FILE.svg")
    add_knobs(parser)
    parser.set_defaults(pages=2000, weight=30_000)
    given = parser.parse_args()
    print(tables.machine())
    try:
        with contextlib.ExitStack() as stack:
            url = given.url
            if url is None:
                site = stack.enter_context(Site(recipe_of(given), server=given.server))
                url = site.url
                print(f"{site.made.pages} pages, served by {site.served_by}")
            rounds = measure(
                measured.on_loopback(url),
                procs=given.parse_procs,
                concurrency=given.concurrency,
                fetcher=given.fetcher,
                parser=given.parser,
                rounds=given.runs,
            )
    except (RuntimeError, ValueError) as error:
        sys.exit(f"bench.limit: {error}")
    print(_shown(rounds))
    if given.json:
        tables.write_json(given.json, {"machine": tables.machine(), "url": url, "rounds": [asdict(r) for r in rounds]})
    if given.picture:
        picture.write(given.picture, _drawn(rounds))


def _shown(rounds: list[Round]) -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    head = (
        "round",
        "wall s",
        "crawl s",
        "fetch alone",
        "parse alone / procs",
        "wall / limit",
        "crawl / limit",
        "CPU / cores",
    )
    rows: list[tuple[tables.Cell, ...]] = [
        (
            str(number),
            each.wall,
            each.elapsed,
            each.fetch_alone,
            each.parse_alone / each.procs,
            each.wall / each.limit,
            each.elapsed / each.limit,
            (each.main_cpu + each.parser_cpu) / cores,
        )
        for number, each in enumerate(rounds, 1)
    ]
    columns = list(zip(*[row[1:] for row in rows], strict=True))
    rows.append(("median", *(statistics.median(float(value or 0) for value in column) for column in columns)))
    one = rounds[0]
    main_cpu = statistics.median(each.main_cpu for each in rounds)
    fetch_cpu = statistics.median(each.fetch_cpu for each in rounds)
    cpu = 1000 / one.requests
    said = [
        f"{one.requests} requests, {one.bodies} bodies, {one.procs} parser processes; limit {one.limit_said}",
        tables.table(head, rows),
        f"main process: {cpu * main_cpu:.2f} ms of CPU a request, of which fetching alone takes {cpu * fetch_cpu:.2f}",
        f"distance from the limit: {statistics.median(each.wall / each.limit for each in rounds):.2f}",
    ]
    return "\n".join(said)


def _drawn(rounds: list[Round]) -> str:
    def middle(values: Iterator[float]) -> float:
        return statistics.median(values)

    procs = rounds[0].procs
    values = [
        middle(each.fetch_alone for each in rounds),
        middle(each.parse_alone / procs for each in rounds),
        middle(each.elapsed for each in rounds),
        middle(each.wall for each in rounds),
    ]
    names = ["fetching alone", f"parsing alone/{procs}", "crawl ", "command "]
    return picture.bars("How far from the limit", y_name="seconds", names=names, stacks=[("seconds", values)])


if __name__ == "__main__":
    main()
