"""The crawl's loop: takes what may be requested, hands it to the fetchers, and commits what comes back.

From: one mailbox (answers, parse results, deaths of processes, what control is asked). To: fetch pool, parse pool,
ledger, reporter. Main thread: the only one that changes the state of the crawl.

The way of a page: frontier.take → _request → fetch pool → answers (another try, a redirect, a record) → parse pool →
parsed → ledger → group commit → reporter and on_page. It is finished when nothing waits, nothing is in flight, no
errand is out and all is committed. While it is paused no request is started, of any kind; what is in flight takes the
rest of its way.
"""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Callable

from msgspec import Struct

from crawlr import failpoints
from crawlr.answers import Answers
from crawlr.control import Control
from crawlr.errands import Errands
from crawlr.fetch.pool import FetchDone, FetchPool
from crawlr.frontier import Frontier, Take
from crawlr.in_flight import InFlight
from crawlr.ledger import Ledger
from crawlr.monitor import Monitor
from crawlr.options import Options
from crawlr.parse.pool import PARSE_MESSAGES, ParsePool
from crawlr.parsed import Parsed
from crawlr.records import FetchedPage, FetchTask, PageRecord, SkipReason, StopReason, StopRequested, TaskKind
from crawlr.reporting import Reporter
from crawlr.stats import Counts, ParseSample, Stages, Wait
from crawlr.tuning import Tuner
from crawlr.web_page import WebPage

__all__ = ["Coordinator", "Ending"]

logger = logging.getLogger(__name__)

COMMIT_PAGES = 64
COMMIT_SECONDS = 0.25
CONTENT_SIZE = 16 * 1024 * 1024
"""Characters of pages that may wait for a consumer: what is more is committed and given to it first."""
STATUS_SECONDS = 0.1


class Ending(Struct, frozen=True, kw_only=True):
    """How the loop ended. Made here, read by api."""

    reason: StopReason
    signal: int | None = None


class Coordinator:
    """One crawl. `run` returns when it is over; the pools belong to the caller, who ends them."""

    def __init__(
        self,
        options: Options,
        *,
        frontier: Frontier,
        ledger: Ledger,
        fetch_pool: FetchPool,
        parse_pool: ParsePool,
        control: Control,
        reporter: Reporter,
        counts: Counts,
        tuner: Tuner | None = None,
        on_page: Callable[[PageRecord], object] | None = None,
        on_content: Callable[[WebPage], object] | None = None,
        canonicalise: Callable[[str], str | None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._frontier = frontier
        self._ledger = ledger
        self._fetch = fetch_pool
        self._parse = parse_pool
        self._control = control
        self._mailbox = control.mailbox
        self._reporter = reporter
        self._on_page = on_page
        self._on_content = on_content
        self._clock = clock
        self.counts = counts
        self.stages = Stages()
        self.sample = ParseSample()
        self.monitor = Monitor(
            options,
            frontier=frontier,
            parse_pool=parse_pool,
            stages=self.stages,
            counts=counts,
            tuner=tuner,
            clock=clock,
        )
        self._in_flight = InFlight(frontier=frontier, ledger=ledger)
        self._errands = Errands(
            options, frontier=frontier, ledger=ledger, parse_pool=parse_pool, say_once=self._say_once, clock=clock
        )
        self._answers = Answers(
            options,
            frontier=frontier,
            ledger=ledger,
            in_flight=self._in_flight,
            errands=self._errands,
            fetch_pool=fetch_pool,
            parse_pool=parse_pool,
            stages=self.stages,
            say_once=self._say_once,
            clock=clock,
        )
        self._parsed = Parsed(
            options,
            ledger=ledger,
            in_flight=self._in_flight,
            errands=self._errands,
            stages=self.stages,
            sample=self.sample,
            say_once=self._say_once,
            canonicalise=canonicalise,
        )
        self._said: set[str] = set()
        self._last_commit = self._last_status = clock()
        self._deadline = None if options.max_time is None else self._last_commit + options.max_time

    # ------------------------------------------------------------------ the loop

    def run(self) -> Ending:
        """Crawl until it is finished, a bound is reached or a stop is asked for; all that was parsed is committed."""
        if self._options.sitemaps:
            self._errands.begin_sitemaps()
        while True:
            self._receive_all()  # before anything is requested: a pause may be among them
            now = self._clock()
            stop = self._control.look_for_stop(now, self._deadline)
            if stop is not None:
                return self._interrupt(stop)
            if not self._control.is_paused:
                self._dispatch(now)
            self._parse.flush()
            self.stages.dispatch += self._clock() - now
            if self._is_finished():
                if not self._ledger.is_committed:
                    self._commit()
                    continue
                return Ending(reason=self._reason())
            self._sleep(now)
            now = self._clock()
            due = self._parse.due()
            if due is not None and due <= now:
                self._parsed.take_in(self._parse.tick(now))
            if (
                self._ledger.uncommitted >= COMMIT_PAGES
                or self._is_full()
                or (now - self._last_commit >= COMMIT_SECONDS and not self._ledger.is_committed)
            ):
                self._commit()
            if now - self._last_status >= STATUS_SECONDS:
                self._last_status = now
                self._reporter.status(self.monitor.status())
                self.monitor.tick(now)

    def _sleep(self, now: float) -> None:
        """Sleep until a message comes, which is taken, or until the next due time."""
        if not self._mailbox.empty():
            return
        why = self._why_wait()
        before = self._clock()
        try:
            message = self._mailbox.get(timeout=self._timeout(now))
        except queue.Empty:
            return
        finally:
            slept = self._clock() - before
            self.stages.waits[why] += slept
            if why is Wait.HOST:
                self._blame_host(slept)
        before += slept
        self._receive(message)
        self.stages.merge += self._clock() - before

    def _receive_all(self) -> None:
        """Take the messages that are there, at most so many that the rest of the loop has its turn."""
        began = self._clock()
        try:
            for _ in range(256):
                if self._is_full():
                    return
                self._receive(self._mailbox.get_nowait())
        except queue.Empty:
            pass
        finally:
            self.stages.merge += self._clock() - began

    def _why_wait(self) -> Wait:
        if self._control.is_paused:
            return Wait.PAUSED
        if not self._can_take():
            return Wait.PARSE
        if not self._frontier.waiting or not self._frontier.has_budget:
            return Wait.EMPTY
        return Wait.FETCH if self._fetch.busy >= self._options.concurrency else Wait.HOST

    def _blame_host(self, slept: float) -> None:
        host = self._frontier.next_host()
        if host is not None:
            hosts = self.stages.rate_hosts
            hosts[host.name] = hosts.get(host.name, 0.0) + slept

    def _timeout(self, now: float) -> float:
        """How long to sleep at most."""
        is_paused = self._control.is_paused
        # The screen's clock moves on. In a pause a signal that came just before the sleep is not left lying.
        due = [now + (1.0 if is_paused else 0.25)]
        if (poll := self._control.poll_at) is not None:
            due.append(poll)
        if not self._ledger.is_committed:
            due.append(self._last_commit + COMMIT_SECONDS)
        if self._deadline is not None:
            due.append(self._deadline)
        parse = self._parse.due()
        if parse is not None:
            due.append(parse)
        if not is_paused and self._can_take():
            ready = self._frontier.ready_at()
            if ready is not None:
                due.append(ready)
        return max(0.0, min(due) - now)

    def _receive(self, message: object) -> None:
        match message:
            case FetchDone():
                self._account(message)
                self._answers.fetched(message)
            case _ if isinstance(message, PARSE_MESSAGES):
                self._parsed.take_in(self._parse.receive(message))
            case _ if not self._control.receive(message):
                raise AssertionError(f"unknown message {message!r}")

    def _is_finished(self) -> bool:
        frontier = self._frontier
        if frontier.in_flight or frontier.errands_out:
            return False
        return not (frontier.waiting if frontier.has_budget else frontier.retrying)

    def _reason(self) -> StopReason:
        return StopReason.PAGE_BUDGET if self._frontier.waiting else StopReason.FINISHED

    def _interrupt(self, stop: StopRequested) -> Ending:
        if stop.reason == StopReason.INTERRUPTED:
            self._reporter.cancelling(self._fetch.busy)
        self._fetch.interrupt()
        self._commit()
        return Ending(reason=stop.reason, signal=stop.signal)

    def _commit(self) -> None:
        ledger = self._ledger
        before = self._clock()
        if self._on_content is not None:
            self._give_contents(self._on_content)
        failpoints.hit("before_commit")
        ledger.commit()
        self._last_commit = self._clock()
        self._deliver()
        self.stages.journal += self._clock() - before

    def _give_contents(self, give: Callable[[WebPage], object]) -> None:
        """Before the commit: a page that its consumer has not got is not finished, and is asked for again."""
        for record, content in self._ledger.contents():
            give(WebPage(record=record, headers=content.headers, text=content.text, html=content.html))

    def _is_full(self) -> bool:
        return self._ledger.content_size >= CONTENT_SIZE

    def _deliver(self) -> None:
        """Tell what has been committed: page lines and on_page come after the commit."""
        committed = self._ledger.take_committed()
        for record in committed.pages:
            self.counts.add(record)
            logger.debug(
                "page.finished url=%s status=%s outcome=%s links=%d millis=%d",
                record.url, record.status, record.outcome, record.links, record.millis,
            )  # fmt: skip
            self._reporter.page(record)
            if self._on_page is not None:
                self._on_page(record)
        for url, reason, error in committed.skipped:
            if self.counts.first_error is None:
                self.counts.first_error = f"{url}: {reason.replace('_', ' ')}" + (f" ({error})" if error else "")
            logger.debug("page.skipped url=%s reason=%s", url, reason)
            self._reporter.skipped(url, reason, error)

    def _say_once(self, key: str, text: str) -> None:
        if key not in self._said:
            self._said.add(key)
            logger.info("crawl.notice text=%s", text)
            self._reporter.notice(text)

    # ------------------------------------------------------------------ requesting

    def _can_take(self) -> bool:
        """True while there is room between frontier and ledger for one URL more."""
        most = 2 * self._options.concurrency + 64 * self._parse.procs
        return self._frontier.in_flight < most and self._in_flight.has_room

    def _dispatch(self, now: float) -> None:
        """Start every request that may start now."""
        frontier, pool = self._frontier, self._fetch
        while self._can_take() and pool.acquire():
            take = frontier.take(now)
            if take is None:
                pool.release()
                return
            if take.number is None:
                pool.submit(self._errands.robots_of(take.origin))
            elif take.number < 0:
                pool.submit(self._errands.start(take.number))
            elif not self._request(take.number, take):
                pool.release()
                continue
            self.stages.requests += 1

    def _request(self, number: int, take: Take) -> bool:
        """Hand a URL to the fetchers; False when robots.txt forbids it, which settles it."""
        url = self._ledger.text(number)
        if take.is_first:
            rules = self._errands.rules.get(take.origin.number)
            if rules is not None and not rules.allows(url, self._options.agent):
                rule = rules.refusal(url, self._options.agent)
                self._ledger.skip(number, url, SkipReason.ROBOTS_DISALLOWED, rule)
                self._frontier.give_back(take)
                return False
        asked = self._in_flight.ask(number, url, take.origin.host)
        self._fetch.submit(FetchTask(id=number, url=url, kind=TaskKind.PAGE, attempt=asked.attempt))
        return True

    def _account(self, done: FetchDone) -> None:
        stages, timing = self.stages, done.result.timing
        stages.fetch_busy += done.busy
        stages.fetch_queued += done.waited
        stages.fetch_connect += timing.connect
        stages.fetch_first_byte += timing.first_byte
        stages.fetch_body += timing.body
        if isinstance(done.result, FetchedPage):
            stages.wire_bytes += done.result.wire_bytes
            stages.pages += 1
