"""The numbers of the whole crawl: pages by status, outcome and depth.

From: the pages (second pass) and the head of sitemap.json. To: the tab Overview. Main thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from crawlr.records import PageRecord
from crawlr.report.weight import Bar, bars
from crawlr.report.words import phrase

__all__ = ["Overview"]

_MOST_DEPTHS = 25


class Overview:
    """Counts statuses, outcomes and depths."""

    def __init__(self, head: Mapping[str, Any]) -> None:
        self.head = head
        stats = head.get("stats")
        self.stats: Mapping[str, Any] = stats if isinstance(stats, Mapping) else {}
        self._statuses: Counter[int] = Counter()
        self._outcomes: Counter[str] = Counter()
        self._depths: Counter[int] = Counter()
        self.pages = 0
        self.bytes = 0

    def see(self, page: PageRecord) -> None:
        """Take a page in."""
        self.pages += 1
        self.bytes += page.bytes
        self._statuses[page.status or 0] += 1
        self._outcomes[page.outcome] += 1
        self._depths[page.depth] += 1

    @property
    def site(self) -> str:
        """What was crawled, for the title: the host of the first seed."""
        seeds = self.head.get("seeds") or ()
        hosts = list(dict.fromkeys(urlsplit(str(seed)).netloc for seed in seeds))
        return (hosts[0] if hosts else "a site") + (f" and {len(hosts) - 1} more" if len(hosts) > 1 else "")

    @property
    def origin(self) -> str:
        """Scheme and host of the first seed: addresses there are shown without it."""
        seeds = self.head.get("seeds") or ("",)
        parts = urlsplit(str(next(iter(seeds))))
        return f"{parts.scheme}://{parts.netloc}"

    def short(self, url: str) -> str:
        """An address as it is shown, as the page's script does it."""
        return url.removeprefix(self.origin) if url.startswith(f"{self.origin}/") else url

    @property
    def errors(self) -> int:
        return self.pages - sum(count for status, count in self._statuses.items() if 200 <= status < 400)

    def statuses(self) -> list[Bar]:
        """Pages by status."""
        return bars(
            [
                (str(status) if status else "none", count, phrase(status) if status else "no answer")
                for status, count in sorted(self._statuses.items())
            ]
        )

    def outcomes(self) -> list[Bar]:
        """Pages by outcome, the most frequent first."""
        return bars([(name.replace("_", " "), count) for name, count in self._outcomes.most_common()])

    def depths(self) -> list[Bar]:
        """Pages by depth; the deepest together when there are many."""
        found = sorted(self._depths.items())
        rows = [(str(depth), count) for depth, count in found[:_MOST_DEPTHS]]
        rest = sum(count for _, count in found[_MOST_DEPTHS:])
        if rest:
            rows.append((f"over {found[_MOST_DEPTHS - 1][0]}", rest))
        return bars(rows)
