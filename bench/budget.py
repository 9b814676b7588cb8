"""Where the CPU of a page goes: fetch, hand-off out, decode, parse, resolve, hand-off back, merge, journal, export.

    python -m bench.budget                                         # a local site of 2,000 pages of 30 kB
    python -m bench.budget http://127.0.0.1:8000/index.html --parse-procs 2 --runs 5

A crawl by the real command, in which a few functions of the main thread are timed by that thread's own CPU clock, and
whose threads are read from /proc before they end (so Linux only). What a parse process does with a page is measured by
the same code in this process, over the same bodies, with the CPU clock in the place of the wall's. So all is CPU, and a
busy machine matters less. Each figure is the median of the runs.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from bench import measured, picture, tables
from bench.limit import Spool, fetch_all
from bench.site import Site, add_knobs, recipe_of
from crawlr import engines
from crawlr.options import Options
from crawlr.parse import document, worker
from crawlr.parse.results import PAGE, PageResult

__all__ = ["PARTS", "budget", "main"]

PARTS = {
    "fetch": "the fetch threads: one exchange each",
    "dispatch": "main thread: choosing what to request, robots.txt rules, handing tasks to the threads",
    "hand-off out": "main thread and executor threads: batches, pickled, into the pipes",
    "decode": "parser: content coding, encoding",
    "parse": "parser: from text to elements",
    "resolve": "parser: links, identities, numbers, facts, hash of the body",
    "parser, more": "parser: what the steps cost more there (each process meets every link anew), the page's clock",
    "parser, pipes": "parser: unpickling, pickling, pipes; the start of the processes (0.2 s)",
    "hand-off back": "main thread and executor threads: results from the pipes, rebuilt",
    "merge": "main thread: answers and links into records, frontier and seen-set",
    "journal": "main thread: group commits, and what is told after them",
    "export": "main thread: the outputs",
    "main, other": "the loop itself, waits, imports, start and end",
}
"""What a page's CPU is made of, in the order of its way; the sum is all CPU of the command."""

_MAIN_THREAD = ("dispatch", "flush", "receive", "handed back", "journal", "export")


class _Meter:
    """Seconds of CPU of the main thread by name, callees that have a name of their own left out."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(_MAIN_THREAD, 0.0)
        self._inner = [0.0]

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, metered."""
        clock, inner, seconds = time.thread_time, self._inner, self.seconds

        @functools.wraps(function)
        def metered(*args: Any, **kwargs: Any) -> Any:
            inner.append(0.0)
            began = clock()
            try:
                return function(*args, **kwargs)
            finally:
                whole = clock() - began
                seconds[name] += whole - inner.pop()
                inner[-1] += whole

        return metered


def inside(words: Sequence[str]) -> dict[str, float]:
    """Be the command, metered: seconds of CPU of the whole crawl by part of PARTS, those of parsers left out."""
    from crawlr import cli
    from crawlr.coordinator import Coordinator, Ending
    from crawlr.parse.pool import ParsePool
    from crawlr.run import Run

    meter = _Meter()
    threads: dict[str, float] = {}

    def put(owner: Any, function: str, name: str) -> None:
        setattr(owner, function, meter.timed(name, getattr(owner, function)))

    put(Coordinator, "_dispatch", "dispatch")
    put(Coordinator, "_receive", "receive")
    put(Coordinator, "_commit", "journal")
    put(ParsePool, "flush", "flush")
    put(ParsePool, "receive", "handed back")
    put(Run, "_write", "export")
    run = Coordinator.run

    def run_and_look(self: Coordinator) -> Ending:
        try:
            return run(self)
        finally:
            threads.update(_threads())

    Coordinator.run = run_and_look  # type: ignore[method-assign]
    status = cli.main(words)
    if status != 0:
        sys.exit(status)
    main_cpu = measured.usage()["main_cpu"]
    took = meter.seconds
    parts = {
        "fetch": threads["fetch"],
        "dispatch": took["dispatch"],
        "hand-off out": took["flush"] + threads["feeder"],
        "hand-off back": took["handed back"] + threads["manager"],
        "merge": took["receive"],
        "journal": took["journal"],
        "export": took["export"],
    }
    return {**parts, "main, other": main_cpu - sum(parts.values())}


def _threads() -> dict[str, float]:
    """Seconds of CPU of the threads that are not the main one, by what they are."""
    found = {"fetch": 0.0, "manager": 0.0, "feeder": 0.0, "other": 0.0}
    for thread in threading.enumerate():
        if thread is threading.main_thread():
            continue
        if thread.name.startswith("crawlr-fetch"):
            kind = "fetch"
        elif thread.name == "QueueFeederThread":
            kind = "feeder"
        elif type(thread).__name__ == "_ExecutorManagerThread":
            kind = "manager"
        else:
            kind = "other"
        with contextlib.suppress(OSError):
            text = Path(f"/proc/self/task/{thread.native_id}/schedstat").read_text()
            found[kind] += int(text.split()[0]) / 1e9
    return found


def _parsing(spool: Spool, options: Options) -> dict[str, float]:
    """Seconds of CPU that the worker's code needs for these bodies, by what it calls its steps."""
    found = dict.fromkeys(("decode", "parse", "resolve"), 0.0)
    with (
        mock.patch.object(worker, "perf_counter", time.thread_time),
        mock.patch.object(document, "time", SimpleNamespace(perf_counter=time.thread_time)),
    ):
        inline = worker.Worker(engines.worker_settings(options))
        for body in spool.bodies():
            item = (body.id, body.url, PAGE, body.body, body.content_type, body.content_encoding)
            for row in inline.parse_batch([item])[2]:
                if row[0] == PAGE:
                    result = PageResult._make(row[1:])
                    found["decode"] += result.decode_us / 1e6
                    found["parse"] += result.parse_us / 1e6
                    found["resolve"] += result.resolve_us / 1e6
    return found


def budget(url: str, asked: Options, options: Sequence[str], *, runs: int) -> tuple[int, dict[str, float]]:
    """(pages, microseconds of CPU a page by part of PARTS: the medians of the runs)"""
    found: list[dict[str, float]] = []
    pages = 0
    with tempfile.TemporaryDirectory(prefix="crawlr-bench-") as folder, tempfile.TemporaryFile() as file:
        spool = Spool(file)
        for _ in range(runs):
            stats = Path(folder, "stats.json")
            words = [measured.on_loopback(url), *options, "--quiet", "--fresh", "--out", str(Path(folder, "out.json"))]
            used = measured.run("bench.budget", ["--inside", *words, "--stats", str(stats)])
            told = json.loads(stats.read_text())
            pages = told["pages"]["pages"]
            if not spool:
                urls = [page["url"] for page in json.loads(Path(folder, "out.json").read_text())["pages"]]
                fetch_all(urls, asked, spool)
            inner = _parsing(spool, asked)
            working = told["parse"]["cpu_s"]
            parts = {
                **used["parts"],
                **inner,
                "parser, more": working - sum(inner.values()),
                "parser, pipes": used["other_cpu"] - working,
            }
            found.append({name: 1e6 * parts[name] / pages for name in PARTS})
    return pages, {name: statistics.median(each[name] for each in found) for name in PARTS}


def main() -> None:
    """Measure, print, write."""
    if sys.argv[1:2] == ["--inside"]:
        parts = inside(sys.argv[2:])
        print(json.dumps({"parts": parts, **measured.usage()}))
        return
    parser = argparse.ArgumentParser(
        prog="python -m bench.budget", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
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
    options = [
        "--rps", "0", "--parse-procs", str(given.parse_procs), "--concurrency", str(given.concurrency),
        "--fetcher", given.fetcher, "--parser", given.parser,
    ]  # fmt: skip
    print(tables.machine())
    try:
        with contextlib.ExitStack() as stack:
            url = given.url
            if url is None:
                site = stack.enter_context(Site(recipe_of(given), server=given.server))
                url = site.url
            asked = Options.make(
                url, concurrency=given.concurrency, fetcher=given.fetcher, parser=given.parser, out=None
            )
            pages, parts = budget(url, asked, options, runs=given.runs)
    except (RuntimeError, ValueError) as error:
        sys.exit(f"bench.budget: {error}")
    whole = sum(parts.values())
    rows = [(name, round(value), f"{100 * value / whole:.0f}%", PARTS[name]) for name, value in parts.items()]
    rows.append(("together", round(whole), "100%", f"{pages} pages"))
    print(tables.table(("", "us a page", "share", ""), rows))
    if given.json:
        document = {"machine": tables.machine(), "url": url, "options": options, "pages": pages, "us_a_page": parts}
        tables.write_json(given.json, document)
    if given.picture:
        names, values = list(parts), list(parts.values())
        chart = picture.bars("CPU a page", y_name="microseconds", names=names, stacks=[("microseconds", values)])
        picture.write(given.picture, chart)


if __name__ == "__main__":
    main()
