"""What a crawl tells whoever watches it: the calls, and the two values that travel in them.

From: the coordinator and api.run, always in the main thread. To: progress.Screen (the terminal), or nobody.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from crawlr.formats import Written
from crawlr.gate_rules import Result
from crawlr.options import Options
from crawlr.records import PageRecord, SkipReason, StopReason

__all__ = ["Reporter", "SilentReporter", "Status", "Summary"]


class Status(Struct, frozen=True, kw_only=True):
    """The crawl at one moment, counted over all its runs. Made by the coordinator, read by the bar."""

    pages: int
    queued: int
    """URLs that wait for their request, delays and retries included."""
    in_flight: int
    """Requests under way and bodies not yet parsed."""
    errors: int
    bytes: int
    """Bytes of bodies, decoded."""
    elapsed: float
    """Seconds of this run."""
    limiter: str | None = None
    """What holds the crawl back, in a word or two ("politeness", "parse"); None when that is not known yet."""


class Summary(Struct, frozen=True, kw_only=True):
    """How a crawl ended. Made by api.run, read by the last lines on the screen and by the exit status."""

    pages: int
    ok: int
    """Pages with status 200-399."""
    errors: int
    skipped: int
    unique_urls: int
    edges: int
    damaged: int
    """Pages with status 200-299 whose outcome is neither ok nor not_html."""
    elapsed: float
    """Seconds of this run."""
    out: tuple[Written, ...]
    """What was written, in order."""
    complete: bool
    stop_reason: StopReason
    signal: int | None = None
    """Number of the signal that ended the crawl; None when none did."""
    limit: str | None = None
    """What the crawl was limited by, without the word "limit": "parse: 8 procs 97% busy, fetchers 34% busy"."""
    first_error: str | None = None
    """URL and reason of the first page or skipped URL that went wrong; None when nothing did."""
    state: str | None = None
    """Path of the state file that was kept, from which --resume goes on; None when the crawl is complete."""
    gates: tuple[Result, ...] = ()
    """What came of each gate of --fail-on, in order."""


class Reporter(Protocol):
    """Who is told. Every call comes from the main thread, none may raise, none may block for long.

    Texts from the web arrive as they are: a reporter that prints scrubs them.
    """

    def started(self, options: Options, *, parse_procs: int) -> None:
        """The crawl begins; called once, before any other call but `notice`."""

    def page(self, record: PageRecord) -> None:
        """A page has its final answer, and it is committed."""

    def skipped(self, url: str, reason: SkipReason, error: str | None) -> None:
        """A rule forbade the request of a URL in scope."""

    def status(self, status: Status) -> None:
        """The crawl as it stands: at most ten times a second, and within a quarter of a second after the last `page`.

        It is the tick at which a reporter may write out what it gathered.
        """

    def notice(self, text: str) -> None:
        """Something a person should know, said once: a Crawl-delay that was cut, a seed that moved."""

    def cancelling(self, fetches: int) -> None:
        """The crawl is being interrupted; so many requests under way are cut off."""

    def finished(self, summary: Summary) -> None:
        """The crawl has ended and its files are written; called once, last."""


class SilentReporter:
    """Tells nobody: for crawlr.crawl(), and as a base for reporters that want only some of the calls."""

    def started(self, options: Options, *, parse_procs: int) -> None:
        """Nothing."""

    def page(self, record: PageRecord) -> None:
        """Nothing."""

    def skipped(self, url: str, reason: SkipReason, error: str | None) -> None:
        """Nothing."""

    def status(self, status: Status) -> None:
        """Nothing."""

    def notice(self, text: str) -> None:
        """Nothing."""

    def cancelling(self, fetches: int) -> None:
        """Nothing."""

    def finished(self, summary: Summary) -> None:
        """Nothing."""
