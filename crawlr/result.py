"""What a crawl found, as the caller of the library gets it: read from the journal when it is asked for.

From: run (the journal of a crawl that has ended). To: users. The thread that reads it, which may be any one.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Self

from crawlr.gate_rules import Result
from crawlr.journal import Journal
from crawlr.records import PageRecord, SkippedRecord, StopReason, UnvisitedRecord
from crawlr.reporting import Summary
from crawlr.view import CrawlView

__all__ = ["CrawlResult"]


class CrawlResult:
    """What a crawl found, read lazily from its journal. `close` (or leaving a `with` block) gives the journal up.

    `pages`, `skipped`, `unvisited` are iterators of records in the order of the ids; `edges` of (source id, target id).
    Each access begins anew; after `close` it is a ValueError, as with a file.
    """

    def __init__(self, *, journal: Journal, view: CrawlView, stats: dict[str, object], summary: Summary) -> None:
        self._journal = journal
        self._view: CrawlView | None = view
        self.stats = stats
        self.summary = summary

    @property
    def complete(self) -> bool:
        """True when nothing was left: neither a bound nor an interruption ended the crawl."""
        return self.summary.complete

    @property
    def stop_reason(self) -> StopReason:
        return self.summary.stop_reason

    @property
    def gates(self) -> tuple[Result, ...]:
        """What came of each gate of `fail_on`, in order; a `total` above 0 means that it was tripped."""
        return self.summary.gates

    @property
    def pages(self) -> Iterator[PageRecord]:
        return self._opened.pages()

    @property
    def skipped(self) -> Iterator[SkippedRecord]:
        return self._opened.skipped()

    @property
    def unvisited(self) -> Iterator[UnvisitedRecord]:
        return self._opened.unvisited()

    @property
    def edges(self) -> Iterator[tuple[int, int]]:
        return ((source, target) for source, targets in self._opened.edges() for target in targets)

    @property
    def _opened(self) -> CrawlView:
        if self._view is None:
            raise ValueError("this CrawlResult is closed; read it before close(), or within its `with` block")
        return self._view

    def close(self) -> None:
        self._view = None
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
