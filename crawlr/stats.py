"""The accounting of a crawl: what was counted, and where the time of each stage went.

From: the coordinator (one call an answer or result). To: progress, --stats and the `limit` line. Main thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from crawlr.journal import Journal
from crawlr.records import Outcome, PageRecord

__all__ = ["Counts", "Stages"]


@dataclass(slots=True)
class Counts:
    """Pages over all runs of a crawl, kept in the journal at each end."""

    pages: int = 0
    ok: int = 0
    errors: int = 0
    damaged: int = 0
    bytes: int = 0
    first_error: str | None = None

    def load(self, journal: Journal) -> None:
        """Take up what earlier runs counted."""
        for pages, ok, damaged, size in journal.query(
            "SELECT count(*), coalesce(sum(status BETWEEN 200 AND 399), 0),"
            " coalesce(sum(status BETWEEN 200 AND 299 AND outcome NOT IN ('ok', 'not_html')), 0),"
            " coalesce(sum(bytes), 0) FROM pages"
        ):
            self.pages, self.ok, self.damaged, self.bytes = pages, ok, damaged, size
            self.errors = pages - ok

    def add(self, record: PageRecord) -> None:
        self.pages += 1
        self.bytes += record.bytes
        if record.status is not None and 200 <= record.status < 400:
            self.ok += 1
            if record.status < 300 and record.outcome not in (Outcome.OK, Outcome.NOT_HTML):
                self.damaged += 1
        else:
            self.errors += 1
            if self.first_error is None:
                reason = record.error or (f"status {record.status}" if record.status is not None else record.outcome)
                self.first_error = f"{record.url}: {reason}"


@dataclass(slots=True)
class Stages:
    """Seconds of work by stage since this run began."""

    fetch_busy: float = 0.0
    fetch_connect: float = 0.0
    fetch_first_byte: float = 0.0
    fetch_body: float = 0.0
    parse_decode: float = 0.0
    parse_parse: float = 0.0
    parse_resolve: float = 0.0
    coordinator_idle: float = 0.0
    journal: float = 0.0
    wire_bytes: int = 0
    requests: int = 0
    retries: int = 0
    hosts_held: set[str] = field(default_factory=set)
