"""What the accounting costs: the same crawl with it and without it, in turns.

    python -m bench.accounting                                     # a local site of 3,000 pages of 10 kB
    python -m bench.accounting http://127.0.0.1:8000/index.html --runs 9

Without it the main process counts nothing that only --stats, the bar and the limit line want, and keeps no timeline.
(What stays in both: `millis` of each page is a result, and parse processes look at a clock seven times a page, which
takes them half a microsecond.) Ratios of CPU and of wall time of each pair; who goes first turns.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench import measured, tables
from bench.site import Site, add_knobs, recipe_of

__all__ = ["Pair", "main", "measure"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Seconds of two crawls. Made by measure, read by main."""

    cpu_on: float
    cpu_off: float
    wall_on: float
    wall_off: float


def inside(words: Sequence[str], *, is_on: bool) -> int:
    """Be the command, with or without the accounting; its exit status."""
    from crawlr import cli

    if not is_on:
        _silence()
    return cli.main(words)


def _silence() -> None:
    from crawlr.coordinator import Coordinator
    from crawlr.monitor import Monitor
    from crawlr.parsed import Parsed

    Coordinator._account = lambda *_: None  # type: ignore[method-assign]
    Coordinator._blame_host = lambda *_: None  # type: ignore[method-assign]
    Parsed._account = lambda *_: None  # type: ignore[method-assign]
    Monitor.tick = lambda *_: None  # type: ignore[method-assign]


def measure(url: str, options: Sequence[str], *, runs: int) -> list[Pair]:
    """So many pairs. RuntimeError when a crawl fails."""
    found = []
    with tempfile.TemporaryDirectory(prefix="crawlr-bench-") as folder:
        words = [measured.on_loopback(url), *options, "--quiet", "--fresh", "--out", str(Path(folder, "out.json"))]
        for number in range(runs + 1):
            took: dict[str, tuple[float, float]] = {}
            for state in ("on", "off") if number % 2 else ("off", "on"):
                began = time.perf_counter()
                used = measured.run("bench.accounting", [f"--inside={state}", *words])
                took[state] = used["main_cpu"] + used["other_cpu"], time.perf_counter() - began
            if number:  # the first pair warms up what the system keeps in memory
                found.append(
                    Pair(cpu_on=took["on"][0], cpu_off=took["off"][0], wall_on=took["on"][1], wall_off=took["off"][1])
                )
    return found


def main() -> None:
    """Measure, print, write."""
    if sys.argv[1:2] and sys.argv[1].startswith("--inside="):
        status = inside(sys.argv[2:], is_on=sys.argv[1] == "--inside=on")
        print(json.dumps(measured.usage()))
        sys.exit(status)
    parser = argparse.ArgumentParser(
        prog="python -m bench.accounting", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("url", nargs="?", help="a site on loopback in the place of a generated one")
    parser.add_argument("--parse-procs", type=int, default=2)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", metavar="FILE")
    add_knobs(parser)
    parser.set_defaults(pages=3000, weight=10_000)
    given = parser.parse_args()
    print(tables.machine())
    try:
        with contextlib.ExitStack() as stack:
            url = given.url or stack.enter_context(Site(recipe_of(given), server=given.server)).url
            pairs = measure(url, ["--rps", "0", "--parse-procs", str(given.parse_procs)], runs=given.runs)
    except (RuntimeError, ValueError) as error:
        sys.exit(f"bench.accounting: {error}")
    ratios = {
        "CPU": [pair.cpu_on / pair.cpu_off for pair in pairs],
        "wall": [pair.wall_on / pair.wall_off for pair in pairs],
    }
    rows = [
        (name, f"{statistics.median(each):.3f}", f"{min(each):.3f}", f"{max(each):.3f}")
        for name, each in ratios.items()
    ]
    print(tables.table(("on / off", "median", "least", "most"), rows))
    if given.json:
        tables.write_json(given.json, {"machine": tables.machine(), "pairs": [asdict(pair) for pair in pairs]})


if __name__ == "__main__":
    main()
