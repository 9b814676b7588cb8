"""One crawl by the real command, in a process of its own, with what it took.

From: the benches (a URL, options as on the command line). To: a Measured, and with it the crawl's own accounting
(--stats). CPU of the main process is that of all its threads; CPU of the parsers is that of every other process of the
crawl: the parse processes, and the fork server that holds their imports (0.2 s).
"""

from __future__ import annotations

import ipaddress
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from bench.site import ROOT
from crawlr.limits import Load
from crawlr.stats import Stages, Wait

__all__ = ["Measured", "crawl", "load_of", "median_of", "middle", "on_loopback", "run", "spread", "usage"]

TIME_LIMIT = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one crawl took. Made by crawl, read by the benches."""

    wall: float
    """Seconds from the start of the command to its end."""
    elapsed: float
    """Seconds of the crawl itself: without the start of the interpreter and without writing the outputs."""
    pages: int
    bytes: int
    """Decoded."""
    edges: int
    main_cpu: float
    parser_cpu: float
    main_peak: int
    """Bytes of resident memory, the most that the main process ever had."""
    parser_peak: int
    """The same of the largest of the other processes."""
    stats: dict[str, Any]
    """The document of --stats: JSON."""

    @property
    def rate(self) -> float:
        """Pages a second."""
        return self.pages / self.elapsed


def on_loopback(url: str) -> str:
    """The URL, if it leads to this machine; ValueError if not: a benchmark asks as fast as it can, which is no way to
    treat others."""
    host = urlsplit(url).hostname or ""
    try:
        is_here = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_here = host == "localhost"
    if not is_here:
        raise ValueError(f"{url} is not on this machine; accepted: http://127.0.0.1:8000/, http://localhost/")
    return url


def crawl(url: str, *options: str, map_to: str | None = None) -> Measured:
    """Crawl `url` with these options of the command line. RuntimeError when the command fails.

    `map_to`: where its sitemap.json is wanted, if it is.
    """
    with tempfile.TemporaryDirectory(prefix="crawlr-bench-") as folder:
        out, stats = map_to or os.path.join(folder, "out.json"), os.path.join(folder, "stats.json")
        words = [on_loopback(url), *options, "--quiet", "--fresh", "--out", out, "--stats", stats]
        began = time.perf_counter()
        used = run("bench.measured", words)
        wall = time.perf_counter() - began
        with open(stats, encoding="utf-8") as file:
            told = json.load(file)
    return Measured(
        wall=wall,
        elapsed=told["elapsed_s"],
        pages=told["pages"]["pages"],
        bytes=told["pages"]["bytes"],
        edges=told["pages"]["edges"],
        main_cpu=used["main_cpu"],
        parser_cpu=used["other_cpu"],
        main_peak=used["main_peak"],
        parser_peak=used["other_peak"],
        stats=told,
    )


def run(module: str, words: Sequence[str]) -> dict[str, Any]:
    """Run a module of bench in a fresh interpreter; what its last line of JSON says. RuntimeError when it fails."""
    ran = subprocess.run(
        [sys.executable, "-m", module, *words],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=TIME_LIMIT, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if ran.returncode != 0:
        raise RuntimeError(f"{module} {' '.join(words)}: exit status {ran.returncode}: {ran.stderr.strip()[-1000:]}")
    said: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return said


def usage() -> dict[str, float]:
    """What this process and those that it has waited for have used so far: seconds and bytes."""
    main, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "main_cpu": main.ru_utime + main.ru_stime,
        "other_cpu": others.ru_utime + others.ru_stime,
        "main_peak": main.ru_maxrss * unit,
        "other_peak": others.ru_maxrss * unit,
    }


def load_of(stats: dict[str, Any]) -> Load:
    """The load that a --stats document tells of, as far as limits.predict looks at it."""
    fetch, parse, coordinator = stats["fetch"], stats["parse"], stats["coordinator"]
    return Load(
        stages=Stages(
            fetch_busy=fetch["busy_s"],
            waits={wait: coordinator["idle_for"][wait] for wait in Wait},
            parsed=parse["pages"],
            requests=fetch["requests"],
        ),
        elapsed=stats["elapsed_s"],
        procs=parse["slots"],
        concurrency=fetch["slots"],
        parse_busy=parse["busy_s"],
        parse_cpu=parse["cpu_s"],
        parse_slots=parse["slot_s"],
        main_cpu=stats["main"]["cpu_s"],
        cores=stats["machine"]["cores"],
        rate="",
    )


def middle(runs: Sequence[Measured]) -> Measured:
    """The run of the median rate (of an even number the slower of the two)."""
    return sorted(runs, key=lambda each: each.rate)[(len(runs) - 1) // 2]


def median_of(runs: Iterable[Measured], value: Callable[[Measured], float]) -> float:
    return statistics.median(value(each) for each in runs)


def spread(values: Sequence[float]) -> float:
    """How far apart the values are: (largest - smallest) / median."""
    return (max(values) - min(values)) / statistics.median(values)


def main() -> None:
    """Be the command, then say what it used."""
    from crawlr import cli

    status = cli.main(sys.argv[1:])
    if status != 0:
        sys.exit(status)
    print(json.dumps(usage()))


if __name__ == "__main__":
    main()
