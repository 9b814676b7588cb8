"""Which stage limits a crawl: pages a second for numbers of parser processes and of requests at once.

    python -m bench.stages                                        # a local site of 1,000 pages of 20 kB
    python -m bench.stages --weight 100000 --links 200 --parse-procs 1,2,4 --concurrency 5,20,50
    python -m bench.stages http://127.0.0.1:8000/index.html       # any site on loopback
    python -m bench.stages --workload all --parse-procs 1,2,3,auto --json stages.json --picture stages.svg

Each row is the median run of `--runs`; the runs of all rows take turns, so that a busy machine is unkind to all alike.

pages/s and MB/s are of the crawl itself, without start and output. `main` and `parsers` are milliseconds of CPU a page:
of the main process with its fetch threads, and of all parser processes together. The shares say how busy the slots of
each stage were. `predicted` is what limits.predict made of the row with the fewest processes and the same concurrency:
how many times its pages a second; `measured` is what came of it, `off` how far the prediction was from that.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from bench import measured, picture, tables
from bench.measured import Measured
from bench.site import Recipe, Site, add_knobs, recipe_of
from crawlr import limits

__all__ = ["WORKLOADS", "Row", "Workload", "main", "rows_of", "sweep"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A site and how it is crawled."""

    recipe: Recipe
    options: tuple[str, ...] = ("--rps", "0")


WORKLOADS = {
    # The main process limits: little to parse on a page.
    "small": Workload(recipe=Recipe(pages=4000, weight=2_000, links=12)),
    # The parsers limit, until there are enough of them.
    "heavy": Workload(recipe=Recipe(pages=500, weight=150_000, links=300)),
    # The server limits: 20 requests at once are at most 400 pages a second.
    "slow": Workload(recipe=Recipe(pages=1200, weight=20_000, links=30, latency=0.05)),
    # The rate limits: what is measured is that nothing is lost on the way.
    "polite": Workload(recipe=Recipe(pages=300, weight=20_000, links=30), options=("--rps", "100")),
}
"""Four crawls that something else limits each time; some seconds long with two cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One setting and its median run. Made by rows_of, read by the table, the picture and --json."""

    workload: str
    procs: str
    """As given: a number or auto."""
    procs_at_end: int
    concurrency: int
    pages: int
    rate: float
    megabytes: float
    wall: float
    main_ms: float
    parser_ms: float
    fetch_share: float
    parse_share: float
    main_share: float
    limit: str
    predicted: float | None
    measured: float | None
    spread: float
    """Of the rates of its runs: (largest - smallest) / median."""
    main_peak: int
    parser_peak: int


def sweep(
    url: str, *, procs: Sequence[str], concurrency: Sequence[int], runs: int, options: Sequence[str]
) -> dict[tuple[str, int], list[Measured]]:
    """The runs of each (procs, concurrency)."""
    found: dict[tuple[str, int], list[Measured]] = {(p, c): [] for c in concurrency for p in procs}
    for number in range(runs):
        settings = list(found) if number % 2 == 0 else list(reversed(found))
        for p, c in settings:
            took = measured.crawl(url, *options, "--parse-procs", p, "--concurrency", str(c))
            found[p, c].append(took)
            _progress(f"run {number + 1} of {runs}: {p} procs, concurrency {c}: {took.rate:.0f} pages/s")
    return found


def rows_of(workload: str, found: dict[tuple[str, int], list[Measured]]) -> list[Row]:
    """A row for each setting, with the prediction that the row of the fewest processes made for it."""
    rows = []
    for (procs, concurrency), runs in found.items():
        took = measured.middle(runs)
        fixed = [int(p) for p, c in found if c == concurrency and p != "auto"]
        predicted = real = None
        if procs != "auto" and int(procs) > min(fixed):
            base = measured.middle(found[str(min(fixed)), concurrency])
            predicted = limits.predict(measured.load_of(base.stats), int(procs))
            real = took.rate / base.rate
        stats = took.stats
        rows.append(
            Row(
                workload=workload,
                procs=procs,
                procs_at_end=stats["parse"]["slots"],
                concurrency=concurrency,
                pages=took.pages,
                rate=took.rate,
                megabytes=took.bytes / took.elapsed / 1e6,
                wall=took.wall,
                main_ms=1000 * measured.median_of(runs, lambda each: each.main_cpu) / took.pages,
                parser_ms=1000 * measured.median_of(runs, lambda each: each.parser_cpu) / took.pages,
                fetch_share=stats["fetch"]["busy_share"],
                parse_share=stats["parse"]["busy_share"],
                main_share=stats["coordinator"]["busy_share"],
                limit=stats["limit"]["word"],
                predicted=predicted,
                measured=real,
                spread=measured.spread([each.rate for each in runs]),
                main_peak=took.main_peak,
                parser_peak=took.parser_peak,
            )
        )
    return rows


def shown(rows: Sequence[Row]) -> str:
    """The table."""
    head = (
        "procs", "conc.", "pages/s", "spread", "MB/s", "main ms", "parsers ms", "fetch", "parse", "main", "limit",
        "predicted", "measured", "off",
    )  # fmt: skip
    return tables.table(
        head,
        [
            (
                row.procs if row.procs != "auto" else f"auto ({row.procs_at_end})",
                row.concurrency,
                round(row.rate),
                _percent(row.spread),
                round(row.megabytes, 1),
                row.main_ms,
                row.parser_ms,
                _percent(row.fetch_share),
                _percent(row.parse_share),
                _percent(row.main_share),
                row.limit,
                row.predicted,
                row.measured,
                _percent(row.predicted / row.measured - 1) if row.predicted and row.measured else None,
            )
            for row in rows
        ],
    )


def of_auto(rows: Sequence[Row]) -> list[str]:
    """A line for each `auto` row: how it stands beside the best fixed number."""
    said = []
    for auto in (row for row in rows if row.procs == "auto"):
        fixed = [row for row in rows if row.procs != "auto" and row.concurrency == auto.concurrency]
        if fixed:
            best = max(fixed, key=lambda row: row.rate)
            said.append(
                f"auto, concurrency {auto.concurrency}: {auto.rate:.0f} pages/s with {auto.procs_at_end} procs at the"
                f" end; best fixed: {best.rate:.0f} with {best.procs} ({_percent(auto.rate / best.rate - 1)})"
            )
    return said


def drawn(rows: Sequence[Row], title: str) -> str:
    """Pages a second over parser processes: a line a concurrency, dashed what was predicted."""
    found = []
    for concurrency in dict.fromkeys(row.concurrency for row in rows):
        fixed = [row for row in rows if row.concurrency == concurrency and row.procs != "auto"]
        base = min(fixed, key=lambda row: int(row.procs), default=None)
        if base is None:
            continue
        points = tuple((float(row.procs), row.rate) for row in fixed)
        guessed = tuple((float(row.procs), base.rate * (row.predicted or 1.0)) for row in fixed)
        found.append(picture.Line(name=f"concurrency {concurrency}", points=points))
        found.append(picture.Line(name=f"{concurrency}, predicted", points=guessed, is_dashed=True))
        found += [
            picture.Line(name=f"{concurrency}, auto", points=((float(row.procs_at_end), row.rate),))
            for row in rows
            if row.concurrency == concurrency and row.procs == "auto"
        ]
    return picture.lines(title, x_name="parser processes", y_name="pages a second", drawn=found)


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def _served(given: argparse.Namespace, workload: Workload | None) -> Iterator[tuple[str, Site | None]]:
    """(what to crawl, the site if it is ours)"""
    if given.url is not None:
        yield given.url, None
        return
    with Site(workload.recipe if workload else recipe_of(given), server=given.server) as site:
        yield site.url, site


def _list_of_procs(text: str) -> list[str]:
    found = [each.strip() for each in text.split(",")]
    if all(each == "auto" or (each.isdigit() and int(each) > 0) for each in found):
        return list(dict.fromkeys(found))
    raise argparse.ArgumentTypeError(f"{text!r}: accepted are numbers and auto, such as 1,2,4,auto")


def numbers(text: str) -> list[int]:
    """A list of positive numbers: 5,20,50."""
    found = [each.strip() for each in text.split(",")]
    if all(each.isdigit() and int(each) > 0 for each in found):
        return list(dict.fromkeys(map(int, found)))
    raise argparse.ArgumentTypeError(f"{text!r}: accepted are numbers, such as 5,20,50")


def _workloads(text: str) -> list[str]:
    found = list(WORKLOADS) if text == "all" else text.split(",")
    if unknown := set(found) - set(WORKLOADS):
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: accepted are {', '.join(WORKLOADS)} and all")
    return found


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.stages", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("url", nargs="?", help="a site on loopback in the place of a generated one")
    parser.add_argument("--parse-procs", type=_list_of_procs, default=["1", "2", "4", "auto"])
    parser.add_argument("--concurrency", type=numbers, default=[20])
    parser.add_argument("--workload", type=_workloads, help=f"{', '.join(WORKLOADS)} or all: sites of that kind")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--crawlr", default="", metavar="OPTIONS", help="more options of the crawl, in one word")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--picture", metavar="FILE.svg", help="with several workloads one each: FILE-small.svg ...")
    add_knobs(parser)
    given = parser.parse_args()
    if given.url is not None and given.workload:
        parser.error("a URL and --workload exclude each other")
    print(tables.machine())
    try:
        documents = [_one(given, name) for name in given.workload or [None]]
    except (RuntimeError, ValueError) as error:
        sys.exit(f"bench.stages: {error}")
    if given.json:
        tables.write_json(given.json, {"machine": tables.machine(), "workloads": documents})


def _one(given: argparse.Namespace, name: str | None) -> dict[str, object]:
    workload = WORKLOADS[name] if name else None
    options = [*(workload.options if workload else ("--rps", "0")), *shlex.split(given.crawlr)]
    with _served(given, workload) as (url, site):
        before = site.cpu() if site else 0.0
        found = sweep(
            url, procs=given.parse_procs, concurrency=given.concurrency, runs=given.runs, options=options
        )  # fmt: skip
        seconds = sum(run.elapsed for runs in found.values() for run in runs)
        server_share = (site.cpu() - before) / seconds if site else None
    rows = rows_of(name or "", found)
    where = url if site is None else f"{site.made.pages} pages, {site.made.bytes / site.made.pages:,.0f} bytes each"
    _progress("")
    print(f"\n{f'{name}: ' if name else ''}{where}  ({' '.join(options)}; median of {given.runs})")
    if site is not None:
        print(f"served by {site.served_by}, which used {_percent(server_share or 0.0)} of a core")
    print(shown(rows))
    print("\n".join(of_auto(rows)))
    if given.picture:
        stem, extension = os.path.splitext(given.picture)
        path = f"{stem}-{name}{extension}" if name and len(given.workload) > 1 else given.picture
        picture.write(path, drawn(rows, f"{name or where}: what more parser processes give"))
    return {
        "workload": name,
        "url": None if site else url,
        "recipe": asdict(site.recipe) if site else None,
        "served_by": site.served_by if site else None,
        "server_share": server_share,
        "options": options,
        "rows": [asdict(row) for row in rows],
    }


if __name__ == "__main__":
    main()
