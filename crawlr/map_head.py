"""What stands before the lists in sitemap.json: whose map it is, how the crawl ended, and its numbers.

From: run (a crawl that has ended), export (the state of one that has not). To: outputs, which write it, and
CrawlResult.stats. Pure.
"""

from __future__ import annotations

from crawlr import __version__
from crawlr.records import StopReason
from crawlr.view import Totals

__all__ = ["FORMAT", "head", "stats"]

FORMAT = "crawlr-sitemap/1"


def head(
    *,
    seeds: object,
    started_at: str,
    finished_at: str,
    stop_reason: StopReason,
    options: dict[str, object],
    robots_txt: object,
    stats: dict[str, object],
) -> dict[str, object]:
    """The fields in order. `robots_txt`: what those files say to the crawl's agent, by origin; left out when it is
    empty or None. Times are in UTC, as "2026-01-31T12:00:00Z"."""
    return {
        "format": FORMAT,
        "generator": f"crawlr {__version__}",
        "seeds": seeds,
        "started_at": started_at,
        "finished_at": finished_at,
        "complete": stop_reason is StopReason.FINISHED,
        "stop_reason": stop_reason,
        "options": options,
        **({"robots_txt": robots_txt} if robots_txt else {}),
        "stats": stats,
    }


def stats(totals: Totals, *, size: int, elapsed: float) -> dict[str, object]:
    """The numbers of a crawl: `size` in decoded bytes of all pages, `elapsed` in seconds over all of its runs."""
    return {
        "pages": totals.pages,
        "ok": totals.ok,
        "errors": totals.errors,
        "damaged": totals.damaged,
        "skipped": totals.skipped,
        "unvisited": totals.unvisited,
        "unique_urls": totals.unique_urls,
        "edges": totals.edges,
        "bytes": size,
        "elapsed_s": elapsed,
    }
