"""How the crawl goes: what its stages did so far, the row a second, and the number of parser processes that follows
from it.

From: the coordinator (its stages, the pools). To: reporter (status), --stats (timeline), parse pool (resize). Main
thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from msgspec import structs

from crawlr import limits, machine
from crawlr.frontier import Frontier
from crawlr.options import Options
from crawlr.parse.pool import ParsePool
from crawlr.reporting import Status
from crawlr.stats import Counts, Period, Stages, Timeline
from crawlr.status import CrawlStatus, fill_in
from crawlr.tuning import Tuner

__all__ = ["Monitor"]

logger = logging.getLogger(__name__)
TUNER_SECONDS = 0.1
"""Between two looks of the tuner: many crawls are over in some seconds."""
MEMORY_SECONDS = 1.0
"""Between two looks at what memory is left: each reads a dozen files of the kernel."""


class Monitor:
    """Looks at one crawl; changes nothing but the number of parser processes, and that only with a `tuner`."""

    def __init__(
        self,
        options: Options,
        *,
        frontier: Frontier,
        parse_pool: ParsePool,
        stages: Stages,
        counts: Counts,
        tuner: Tuner | None,
        clock: Callable[[], float],
    ) -> None:
        self._options = options
        self._frontier = frontier
        self._parse = parse_pool
        self._stages = stages
        self._counts = counts
        self._tuner = tuner
        self._clock = clock
        self._cores = machine.cores()
        self._started = clock()
        self._cpu_before = time.process_time()
        self._slots_before = parse_pool.slot_seconds
        self._memory, self._memory_at = 0, -MEMORY_SECONDS
        self.timeline = Timeline()
        self._last_counts = (counts.pages, counts.bytes, counts.errors)
        self._last_row = self._last_look = self.load()

    def fill(self, bare: CrawlStatus) -> CrawlStatus:
        """The crawl at this moment, for whoever asks: a status with the figures of a crawl put in."""
        counts = self._counts
        return structs.replace(
            fill_in(bare, self._frontier, self._clock()),
            pages=counts.pages,
            ok=counts.ok,
            errors=counts.errors,
            bytes=counts.bytes,
            known=self._frontier.known,
            parsing=self._parse.waiting + self._parse.in_flight,
            limiter=limits.limiter_word(self.load()),
        )

    def status(self) -> Status:
        """The crawl at this moment, for the screen."""
        return Status(
            pages=self._counts.pages,
            queued=self._frontier.waiting,
            in_flight=self._frontier.in_flight,
            errors=self._counts.errors,
            bytes=self._counts.bytes,
            elapsed=self._clock() - self._started,
            limiter=limits.limiter_word(self.load()),
        )

    def load(self) -> limits.Load:
        """How busy the stages have been so far."""
        options = self._options
        slowest = max((host.interval for host in self._frontier.hosts.values()), default=0.0)
        rate = f"--rps {options.rps:g}"
        if slowest and (not options.rps or slowest > 1 / options.rps + 1e-9):
            rate = f"Crawl-delay {slowest:g}s"
        elif not options.rps:
            rate = f"--per-host {options.per_host}"
        stages = structs.replace(self._stages, waits=dict(self._stages.waits), rate_hosts=dict(self._stages.rate_hosts))
        return limits.Load(
            stages=stages,
            elapsed=self._clock() - self._started,
            procs=self._parse.procs,
            concurrency=options.concurrency,
            parse_busy=sum(self._parse.busy),
            parse_cpu=self._parse.cpu,
            parse_slots=self._parse.slot_seconds - self._slots_before,
            main_cpu=time.process_time() - self._cpu_before,
            cores=self._cores,
            rate=rate,
        )

    def tick(self, now: float) -> None:
        """Let the tuner look, and add a row to the timeline, each when its time has come."""
        if self._tuner is not None and now - self._started - self._last_look.elapsed >= TUNER_SECONDS:
            self._tune(self._tuner)
        if now - self._started - self._last_row.elapsed < self.timeline.every:
            return
        load, before = self.load(), self._last_row
        period = limits.since(load, before)
        pages, size, errors = self._counts.pages, self._counts.bytes, self._counts.errors
        self.timeline.add(
            Period(
                at=load.elapsed,
                seconds=period.elapsed,
                pages=pages - self._last_counts[0],
                bytes=size - self._last_counts[1],
                errors=errors - self._last_counts[2],
                fetch_share=period.fetch_share,
                parse_share=period.parse_share,
                coordinator_share=period.coordinator_share,
                limiter=limits.limiter_word(period),
                queued=self._frontier.waiting,
                in_flight=self._frontier.in_flight,
                parse_procs=load.procs,
            )
        )
        self._last_row, self._last_counts = load, (pages, size, errors)

    def _tune(self, tuner: Tuner) -> None:
        """Change the number of parser processes when the time since the last look shows that another is better."""
        load = self.load()
        period, self._last_look = limits.since(load, self._last_look), load
        if period.paused:
            return  # it says nothing of what parsing needs
        if load.elapsed - self._memory_at >= MEMORY_SECONDS:
            try:
                self._memory, self._memory_at = machine.memory(), load.elapsed
            except OSError:  # no descriptor is left to look with: not the moment for another process
                return
        parse = self._parse
        change = tuner.decide(period, waiting=parse.waiting, backlog=parse.backlog, memory=self._memory)
        if change is not None:
            logger.info("parse.resized from=%d to=%d reason=%s", period.procs, change.procs, change.reason)
            self._parse.resize(change.procs)
