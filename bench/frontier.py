"""What a known URL costs in the main process: memory and time of the seen-set, the arrays, the frontier and the
journal.

    python -m bench.frontier                 # 1,000,000 URLs
    python -m bench.frontier --urls 3000000

Every URL becomes known through the ledger, as in a crawl, and waits; group commits go to a journal on disk. Memory
is the resident set, so it holds what the allocator holds; the first 100,000 URLs pay for what is needed once.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time

import psutil

from crawlr.frontier import Frontier
from crawlr.journal import Journal
from crawlr.known import KnownUrls, State
from crawlr.ledger import Ledger
from crawlr.scope import Scope

FIRST = 100_000
LINKS = 50


def main() -> None:
    """Print a table of bytes and microseconds a URL, and the time of a resume."""
    parser = argparse.ArgumentParser(prog="python -m bench.frontier", description=__doc__.partition("\n")[0])
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--json", help="write the figures to this file")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(asked.urls, os.path.join(folder, "bench.crawl"))
    for name, value in figures.items():
        print(f"{name:34} {value:12,.3f}")
    if asked.json:
        with open(asked.json, "w", encoding="utf-8") as out:
            json.dump(figures, out, indent=1)


def measure(total: int, path: str) -> dict[str, float]:
    """Figures for `total` URLs with a state file at `path`."""
    journal = Journal.create(path, {})
    ledger = _ledger(journal)
    seed = ledger.plant("http://site.test/", is_seed=True)
    took = ledger.frontier.take(0.0)
    assert took is not None
    marks: dict[int, tuple[int, float]] = {}
    began = time.perf_counter()
    for start in range(0, total, LINKS):
        links = [
            f"http://site.test/section/{i % 977}/some-article-with-a-name-{i}.html" for i in range(start, start + LINKS)
        ]
        numbers = [ledger.learn(link, link) for link in links]
        ledger.reach_by_links(seed, numbers, b"\1" * LINKS)
        if start % (64 * LINKS) == 0:
            ledger.commit()
        if start + LINKS in (FIRST, total):
            marks[start + LINKS] = (_resident(), time.perf_counter() - began)
    ledger.commit()
    began = time.perf_counter()
    for _ in range(20_000):
        taken = ledger.frontier.take(1.0)
        assert taken is not None
        assert taken.number is not None
        ledger.text(taken.number)
        ledger.frontier.release(taken.origin.host)
        ledger.frontier.settle(taken.number, State.DONE)
    take_us = 1e6 * (time.perf_counter() - began) / 20_000
    journal.close()
    size = os.path.getsize(path)
    del ledger, journal
    began = time.perf_counter()
    again = Journal.open(path)
    assert again is not None
    opened = time.perf_counter() - began
    resumed = _ledger(again)
    resumed.load()
    loaded = time.perf_counter() - began
    again.close()
    first, last = marks[FIRST], marks[total]
    return {
        "urls": float(total),
        "bytes a URL beyond the first 100k": (last[0] - first[0]) / (total - FIRST),
        "us a URL, first 100k": 1e6 * first[1] / FIRST,
        "us a URL, later": 1e6 * (last[1] - first[1]) / (total - FIRST),
        "us to take a URL with its text": take_us,
        "bytes a URL in the state file": size / total,
        "s to open and check the state": opened,
        "s to resume": loaded,
        "MB peak resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


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


if __name__ == "__main__":
    main()
