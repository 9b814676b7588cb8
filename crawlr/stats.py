"""The accounting of a crawl: what was counted, and where the time of each stage went.

From: the coordinator (one call an answer, result or wait). To: progress, --stats and crawlr.limits. Main thread.
"""

from __future__ import annotations

import random
from enum import StrEnum

from msgspec import Struct, field

from crawlr.journal import Journal
from crawlr.records import Outcome, PageRecord

__all__ = ["Counts", "ParseSample", "Period", "Stages", "Timeline", "Wait"]


class Counts(Struct):
    """Pages over all runs of a crawl, taken up from the journal at a resume."""

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
        """Count one page that has been committed."""
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


class Wait(StrEnum):
    """What the coordinator waits for while it sleeps."""

    FETCH = "fetch"
    """Every permit is out: answers have to come first."""
    PARSE = "parse"
    """So much has been fetched that parsing has to catch up first."""
    HOST = "host"
    """URLs wait, but no host may be asked yet: its rate, Crawl-delay, Retry-After or --per-host."""
    EMPTY = "empty"
    """No URL waits: answers or parse results have to name new ones."""
    PAUSED = "paused"
    """Somebody asked that no request be started."""


class Stages(Struct):
    """Seconds by stage since this run began; fetch and parse are summed over their slots."""

    fetch_busy: float = 0.0
    fetch_connect: float = 0.0
    fetch_first_byte: float = 0.0
    fetch_body: float = 0.0
    fetch_queued: float = 0.0
    """Between the coordinator's hand-off and the start of the exchange."""
    parse_decode: float = 0.0
    parse_parse: float = 0.0
    parse_resolve: float = 0.0
    parse_extract: float = 0.0
    """What the user's function and selectors took, and the texts for a WebSource."""
    waits: dict[Wait, float] = field(default_factory=lambda: dict.fromkeys(Wait, 0.0))
    dispatch: float = 0.0
    """Coordinator: choosing what to request, handing tasks and bodies over."""
    merge: float = 0.0
    """Coordinator: taking in answers and parse results."""
    journal: float = 0.0
    """Coordinator: group commits, and what is told after them."""
    wire_bytes: int = 0
    pages: int = 0
    """Answers of pages with a status."""
    parsed: int = 0
    requests: int = 0
    retries: int = 0
    rate_hosts: dict[str, float] = field(default_factory=dict)
    """Seconds that the coordinator slept because of one host's rate, by host."""

    @property
    def idle(self) -> float:
        """Seconds that the coordinator slept."""
        return sum(self.waits.values())

    @property
    def parse_busy(self) -> float:
        return self.parse_decode + self.parse_parse + self.parse_resolve + self.parse_extract


class Period(Struct, frozen=True, kw_only=True):
    """One row of the timeline: what happened in `seconds` up to `at` (seconds since the run began).

    Shares are 0 to 1.
    """

    at: float
    seconds: float
    pages: int
    bytes: int
    errors: int
    fetch_share: float
    parse_share: float
    coordinator_share: float
    limiter: str
    queued: int
    in_flight: int
    parse_procs: int


class ParseSample:
    """Size and time of some parsed pages, at most `MOST`, each page with the same chance to be among them."""

    MOST = 2000

    def __init__(self) -> None:
        self.rows: list[tuple[int, int]] = []
        """(bytes, microseconds): the decoded body, and the time to unpack and parse it and to resolve its links."""
        self.seen = 0
        self._random = random.Random(0).random  # the same pages in the same order give the same sample

    def add(self, size: int, micros: int) -> None:
        self.seen += 1
        if len(self.rows) < self.MOST:
            self.rows.append((size, micros))
        elif (place := int(self._random() * self.seen)) < self.MOST:
            self.rows[place] = (size, micros)


class Timeline:
    """A row a second. After `MOST` rows neighbours are joined and rows come half as often, so that it stays small."""

    MOST = 3600

    def __init__(self) -> None:
        self.rows: list[Period] = []
        self.every = 1.0

    def add(self, row: Period) -> None:
        self.rows.append(row)
        if len(self.rows) >= self.MOST:
            self.rows = [_joined(a, b) for a, b in zip(self.rows[::2], self.rows[1::2], strict=True)]
            self.every *= 2


def _joined(first: Period, second: Period) -> Period:
    seconds = first.seconds + second.seconds
    one, two = first.seconds / seconds, second.seconds / seconds
    return Period(
        at=second.at,
        seconds=seconds,
        pages=first.pages + second.pages,
        bytes=first.bytes + second.bytes,
        errors=first.errors + second.errors,
        fetch_share=one * first.fetch_share + two * second.fetch_share,
        parse_share=one * first.parse_share + two * second.parse_share,
        coordinator_share=one * first.coordinator_share + two * second.coordinator_share,
        limiter=first.limiter if one > two else second.limiter,
        queued=second.queued,
        in_flight=second.in_flight,
        parse_procs=second.parse_procs,
    )
