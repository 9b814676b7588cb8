"""The shape of the crawl against four others, and the engines against each other: the same site, pages and edges.

    python -m bench.engines                                        # a local site of 2,000 pages of 30 kB
    python -m bench.engines http://127.0.0.1:8000/index.html --json engines.json --picture engines.svg

The rows are whole commands, from the start of the interpreter to its end, taking turns; each row is the median of
`--runs`. `threads`, `executor`, `asyncio` and `asyncio+` are in bench.rivals: small crawls that do less (no
robots.txt, no politeness, no retries, no records, no journal, no output, nothing that outlives a killed parser).
The rows of crawlr are the real command with each fetcher and parser that is installed. A row that finds other pages or
edges than the first ends the bench.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from itertools import product

from bench import measured, picture, rivals, tables
from bench.site import Site, add_knobs, recipe_of

__all__ = ["Row", "Run", "compare", "engines", "main"]

_FETCHERS = {"urllib3": "urllib3", "curl": "pycurl"}
_PARSERS = {"lxml": "lxml", "lexbor": "selectolax"}
"""Engine to the package that it needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One command. Made by compare."""

    pages: int
    edges: int
    wall: float
    main_cpu: float
    parser_cpu: float
    main_peak: int
    parser_peak: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The medians of a row's runs. Made by compare, read by the table, the picture and --json."""

    name: str
    pages: int
    edges: int
    wall: float
    spread: float
    main_ms: float
    """CPU a page."""
    parser_ms: float
    main_peak: float
    """Bytes."""
    parser_peak: float


def engines() -> list[tuple[str, str]]:
    """The (fetcher, parser) that can run here, the defaults first."""
    fetchers = [name for name, package in _FETCHERS.items() if find_spec(package)]
    parsers = [name for name, package in _PARSERS.items() if find_spec(package)]
    return list(product(fetchers, parsers))


def compare(url: str, *, procs: int, concurrency: int, runs: int, shapes: Sequence[str]) -> list[Row]:
    """A row for each pair of engines, then one for each shape. RuntimeError when they don't find the same."""
    words = ("--parse-procs", str(procs), "--concurrency", str(concurrency))
    found: dict[str, list[Run]] = {}
    for _ in range(runs):
        for fetcher, parser in engines():
            took = measured.crawl(url, "--rps", "0", *words, "--fetcher", fetcher, "--parser", parser)
            found.setdefault(f"crawlr {fetcher}+{parser}", []).append(
                Run(
                    pages=took.pages,
                    edges=took.edges,
                    wall=took.wall,
                    main_cpu=took.main_cpu,
                    parser_cpu=took.parser_cpu,
                    main_peak=took.main_peak,
                    parser_peak=took.parser_peak,
                )
            )
        for shape in shapes:
            found.setdefault(shape, []).append(_rival(shape, url, words))
    first = next(iter(found.values()))[0]
    for name, each in ((name, each) for name, took in found.items() for each in took):
        if (each.pages, each.edges) != (first.pages, first.edges):
            raise RuntimeError(
                f"{name} found {each.pages} pages and {each.edges} edges, not {first.pages} and {first.edges}"
            )
    return [_row(name, took) for name, took in found.items()]


def _rival(shape: str, url: str, words: Sequence[str]) -> Run:
    began = time.perf_counter()
    said = measured.run("bench.rivals", [shape, measured.on_loopback(url), *words])
    return Run(
        pages=said["pages"],
        edges=said["edges"],
        wall=time.perf_counter() - began,
        main_cpu=said["main_cpu"],
        parser_cpu=said["other_cpu"],
        main_peak=said["main_peak"],
        parser_peak=said["other_peak"],
    )


def _row(name: str, runs: Sequence[Run]) -> Row:
    pages = max(1, runs[0].pages)
    return Row(
        name=name,
        pages=pages,
        edges=runs[0].edges,
        wall=statistics.median(each.wall for each in runs),
        spread=measured.spread([each.wall for each in runs]),
        main_ms=1000 * statistics.median(each.main_cpu for each in runs) / pages,
        parser_ms=1000 * statistics.median(each.parser_cpu for each in runs) / pages,
        main_peak=statistics.median(each.main_peak for each in runs),
        parser_peak=statistics.median(each.parser_peak for each in runs),
    )


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.engines", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("url", nargs="?", help="a site on loopback in the place of a generated one")
    parser.add_argument("--parse-procs", type=int, default=2)
    parser.add_argument("--concurrency", type=int, default=20)
    parser.add_argument("--shapes", type=lambda text: text.split(","), default=list(rivals.SHAPES))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--picture", metavar="FILE.svg")
    add_knobs(parser)
    parser.set_defaults(pages=2000, weight=30_000)
    given = parser.parse_args()
    if unknown := set(given.shapes) - set(rivals.SHAPES):
        parser.error(f"--shapes: {', '.join(unknown)}; accepted are {', '.join(rivals.SHAPES)}")
    print(tables.machine())
    try:
        with contextlib.ExitStack() as stack:
            url = given.url
            if url is None:
                site = stack.enter_context(Site(recipe_of(given), server=given.server))
                url = site.url
                print(f"{site.made.pages} pages, served by {site.served_by}")
            rows = compare(
                url, procs=given.parse_procs, concurrency=given.concurrency, runs=given.runs, shapes=given.shapes
            )
    except (RuntimeError, ValueError) as error:
        sys.exit(f"bench.engines: {error}")
    print(_shown(rows))
    if given.json:
        tables.write_json(given.json, {"machine": tables.machine(), "url": url, "rows": [asdict(row) for row in rows]})
    if given.picture:
        names = [row.name.removeprefix("crawlr ").replace("+", "+ ", 1) for row in rows]
        stacks = [
            ("main process", [row.main_ms for row in rows]),
            ("parser processes", [row.parser_ms for row in rows]),
        ]
        picture.write(given.picture, picture.bars("CPU a page", y_name="milliseconds", names=names, stacks=stacks))


def _shown(rows: Sequence[Row]) -> str:
    head = (
        "",
        "wall s",
        "spread",
        "pages/s",
        "main ms",
        "parsers ms",
        "CPU s",
        "main MB",
        "a parser MB",
        "wall, first = 1",
    )
    return f"{rows[0].pages} pages, {rows[0].edges} edges in every row\n" + tables.table(
        head,
        [
            (
                row.name,
                row.wall,
                f"{100 * row.spread:.0f}%",
                round(row.pages / row.wall),
                row.main_ms,
                row.parser_ms,
                (row.main_ms + row.parser_ms) * row.pages / 1000,
                round(row.main_peak / 1e6),
                round(row.parser_peak / 1e6),
                row.wall / rows[0].wall,
            )
            for row in rows
        ],
    )


if __name__ == "__main__":
    main()
