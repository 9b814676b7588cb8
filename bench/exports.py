"""How long each output format takes and what memory it needs, for a made crawl of 100,000 pages and 1,000,000 edges.

    python -m bench.exports [--pages N] [--edges-per-page N] [--formats csv,graphml,...]

Each format is written by a process of its own from the same state file; the peak is that of the process, less that of
one that only opens the state (ru_maxrss).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from array import array
from pathlib import Path

from crawlr.journal import Journal
from crawlr.known import Flag

_COMMIT = 2000


def make_state(path: str, *, pages: int, edges_per_page: int, seed: int = 1) -> None:
    """A state file as a finished crawl of `pages` pages leaves it before it is removed."""
    draw = random.Random(seed)
    journal = Journal.create(
        path, {"seeds": ["https://bench.example/"], "options": {"scope": "host"}, "ended": "finished"}
    )
    flags = Flag.IN_SCOPE | Flag.FOLLOWED
    for start in range(0, pages, _COMMIT):
        some = range(start, min(start + _COMMIT, pages))
        urls = []
        rows = []
        for number in some:
            url = f"https://bench.example/section-{number % 97}/{number}/a-page-with-an-ordinary-name.html"
            parent = None if number == 0 else number // 10
            urls.append((number, url, None, len(str(number)), parent, 0, 0, flags))
            # half of the links go to the pages that every page links to
            near = {draw.randrange(min(pages, 50)) for _ in range(edges_per_page // 2)}
            while len(near) < edges_per_page:
                near.add(draw.randrange(pages))
            near.discard(number)
            targets = array("I", sorted(near))
            rows.append(
                (
                    number,
                    200,
                    "ok",
                    None,
                    len(targets),
                    draw.randrange(20, 900),
                    draw.randrange(2_000, 90_000),
                    "text/html; charset=utf-8",
                    "utf-8",
                    f"Page number {number} – an ordinary title",
                    url,
                    "",
                    None,
                    None,
                    1,
                    targets.tobytes(),
                    b"\1" * len(targets),
                    draw.getrandbits(63) - 2**62,
                    "Tue, 03 Feb 2026 10:00:00 GMT",
                )
            )
        journal.commit(urls=urls, pages=rows)
    journal.close()


def measure(state: str, name: str, folder: str) -> dict[str, float]:
    """Seconds, seconds of CPU, peak in MiB and size in bytes of one export, in this process."""
    from crawlr import export, formats

    out = os.path.join(folder, f"out.{name}")
    began, cpu = time.perf_counter(), time.process_time()
    if name == "nothing":
        with export.open_crawl(state):
            pass
    else:
        export.export(state, formats.outputs_of([out]))
    seconds = time.perf_counter() - began
    size = sum(each.stat().st_size for each in Path(folder).glob("out*"))
    return {
        "seconds": seconds,
        "cpu": time.process_time() - cpu,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "size": size,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--edges-per-page", type=int, default=10)
    parser.add_argument("--formats", default="json,jsonl,csv,edges.csv,xml,graphml,gexf,dot,parquet,edges.parquet")
    parser.add_argument("--source", help="a state or sitemap.json to export from instead of a made one")
    parser.add_argument("--one", nargs=3, metavar=("STATE", "FORMAT", "FOLDER"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(*given.one)))
        return
    with tempfile.TemporaryDirectory() as work:
        state = given.source or os.path.join(work, "bench.crawl")
        if not given.source:
            began = time.perf_counter()
            make_state(state, pages=given.pages, edges_per_page=given.edges_per_page)
            made_in = time.perf_counter() - began
            print(f"made {given.pages:,} pages with {given.edges_per_page} edges each in {made_in:.1f} s")
        empty = 0.0
        for name in ("nothing", *given.formats.split(",")):
            with tempfile.TemporaryDirectory(dir=work) as folder:
                ran = subprocess.run(
                    [sys.executable, "-m", "bench.exports", "--one", state, name, folder],
                    capture_output=True, check=True, text=True, timeout=1800,
                )  # fmt: skip
            got = json.loads(ran.stdout.splitlines()[-1])
            empty = empty or got["peak"]
            print(
                f"{name:14} {got['seconds']:7.2f} s  {got['cpu']:7.2f} s CPU"
                f"   {got['peak'] - empty:7.1f} MiB over {empty:.0f}   {got['size'] / 1e6:8.1f} MB"
            )


if __name__ == "__main__":
    main()
