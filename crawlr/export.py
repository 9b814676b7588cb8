"""Any output of a crawl later, without crawling: from sitemap.json[.gz], or from the state of a crawl that did not
finish.

From: cli (`crawlr export FILE -o ...`). To: crawlr.outputs. Main thread. What is read is kept.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from crawlr import map_head
from crawlr.errors import OptionsError, StateError
from crawlr.formats import Columns, Output, Written
from crawlr.journal import Journal
from crawlr.outputs import write_all
from crawlr.records import StopReason
from crawlr.sitemap_file import open_sitemap
from crawlr.view import CrawlView

__all__ = ["export", "open_crawl"]


def export(path: str, outputs: Sequence[Output], *, columns: Columns = Columns.NATIVE) -> list[Written]:
    """Write every output of the crawl in `path`.

    OptionsError for a file that is none of a crawl, StateError for a state that is damaged or in use, MachineError
    when an output can't be written.
    """
    with open_crawl(path) as (view, head):
        return write_all(view, outputs, head=head, columns=columns)


@contextlib.contextmanager
def open_crawl(path: str) -> Iterator[tuple[CrawlView, dict[str, object]]]:
    """The view of the crawl in a sitemap.json[.gz] or in a state file, and the fields of its head."""
    try:
        with open(path, "rb") as file:
            begin = file.read(16)
            changed_at = os.fstat(file.fileno()).st_mtime
    except OSError as error:
        raise OptionsError(f"cannot read {path}: {error.strerror or error}") from error
    if begin != b"SQLite format 3\0":
        with open_sitemap(path) as found:
            yield found
        return
    journal = Journal.open(path)
    if journal is None:
        raise StateError(f"nothing was kept in {path}")
    try:
        yield _state(journal, changed_at)
    finally:
        journal.close()


def _state(journal: Journal, changed_at: float) -> tuple[CrawlView, dict[str, object]]:
    meta = journal.meta()
    ended = meta.get("ended")
    # killed: the same as interrupted to whoever reads the lists
    stop_reason = StopReason(str(ended)) if ended else StopReason.INTERRUPTED
    options = meta.get("options")
    options = dict(options) if isinstance(options, dict) else {}
    depth = meta.get("depth")
    view = CrawlView(
        journal,
        stop_reason=stop_reason,
        depth_limit=depth if isinstance(depth, int) else None,
        all_edges=options.get("edges") == "all",
        has_sitemaps=options.get("sitemaps") is True,
    )
    totals = view.totals()
    ((size,),) = journal.query("SELECT coalesce(sum(bytes), 0) FROM pages")
    when = datetime.fromtimestamp(changed_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return view, map_head.head(
        seeds=meta.get("seeds"),
        started_at=str(meta.get("started_at") or when),
        finished_at=when,  # the last commit
        stop_reason=stop_reason,
        options={name.replace("-", "_"): value for name, value in options.items()} | {"depth": depth},
        robots_txt=meta.get("robots"),
        stats=map_head.stats(totals, size=size, elapsed=float(str(meta.get("elapsed_s") or 0.0))),
    )
