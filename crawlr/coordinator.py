"""The crawl's loop: takes what may be requested, hands it to the fetchers, hands bodies to the parsers, records what
comes back.

From: one mailbox (answers, parse results, deaths of processes, the wish to stop). To: fetch pool, parse pool,
ledger, reporter. Main thread: the only one that changes the state of the crawl. The only module that sees both fetch
and parse.

The way of a page: frontier.take → _request → fetch pool → _fetched → (_retry | _redirected | parse pool → _parsed) →
ledger.finish → group commit → reporter and on_page. It is finished when nothing waits, nothing is in flight, no
errand is out and all is committed.
"""

from __future__ import annotations

import dataclasses
import logging
import queue
import random
import time
import zlib
from array import array
from collections.abc import Callable, Collection
from dataclasses import dataclass
from http.client import responses

from crawlr import failpoints, limits, machine
from crawlr.errands import Errands
from crawlr.errors import MachineError
from crawlr.fetch import redirects, retry
from crawlr.fetch.pool import FetchDone, FetchPool
from crawlr.frontier import Frontier, Host, Take
from crawlr.known import KnownUrls
from crawlr.ledger import Finished, Ledger
from crawlr.options import Options
from crawlr.parse import facts, urls
from crawlr.parse.pool import PARSE_MESSAGES, LinkTable, ParsedBatch, ParseFailed, ParsePool
from crawlr.parse.worker import PageResult
from crawlr.records import (
    FetchedPage,
    FetchFailure,
    FetchTask,
    Outcome,
    PageRecord,
    RawBody,
    SkipReason,
    StopReason,
    StopRequested,
    TaskKind,
)
from crawlr.reporting import Reporter, Status
from crawlr.scope import host_key, origin_of
from crawlr.stats import Counts, Period, Stages, Timeline, Wait
from crawlr.traps import Traps
from crawlr.tuning import Tuner

__all__ = ["Coordinator", "Ending"]

logger = logging.getLogger(__name__)

COMMIT_PAGES = 64
COMMIT_SECONDS = 0.25
BYTE_BUDGET = 128 * 1024 * 1024
"""Bytes of bodies between the start of a fetch and the commit of what was parsed."""
STATUS_SECONDS = 0.1
LOCAL_FAULT_PAUSE = 1.0
MAX_LOCAL_FAULTS = 20
# interface.md, Outcome: of several faults of one body the first in this order is told
_FAULT_RANK = (
    Outcome.TOTAL_TIMEOUT,
    Outcome.READ_TIMEOUT,
    Outcome.RESET,
    Outcome.PROTOCOL_ERROR,
    Outcome.DECODE_ERROR,
    Outcome.TOO_LARGE,
    Outcome.TRUNCATED,
    Outcome.NOT_HTML,
    Outcome.PARSE_TRUNCATED,
    Outcome.PARSE_MEMORY,
    Outcome.PARSE_TIMEOUT,
    Outcome.PARSER_CRASH,
)
_TRAPS = {
    "mirror": "a trap: one body under many addresses such as {url}; what only such pages lead to is not requested",
    "chain": "a trap: an endless chain of pages such as {url}; what only its end leads to is not requested",
}


@dataclass(slots=True, kw_only=True)
class _Asked:
    """A URL in flight: what is known of its request until its record is written."""

    url: str
    host: Host
    attempt: int = 1
    millis: int = 0
    page: FetchedPage | None = None
    reserved: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How the loop ended. Made here, read by api."""

    reason: StopReason
    signal: int | None = None


class Coordinator:
    """One crawl. `run` returns when it is over; the pools belong to the caller, who ends them."""

    def __init__(
        self,
        options: Options,
        *,
        known: KnownUrls,
        frontier: Frontier,
        ledger: Ledger,
        fetch_pool: FetchPool,
        parse_pool: ParsePool,
        mailbox: queue.SimpleQueue[object],
        reporter: Reporter,
        counts: Counts,
        tuner: Tuner | None = None,
        on_page: Callable[[PageRecord], object] | None = None,
        canonicalise: Callable[[str], str | None] | None = None,
        is_stopped: Callable[[], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._known = known
        self._frontier = frontier
        self._ledger = ledger
        self._fetch = fetch_pool
        self._parse = parse_pool
        self._mailbox = mailbox
        self._reporter = reporter
        self._tuner = tuner
        self._on_page = on_page
        self._canonicalise = canonicalise
        self._is_stopped = is_stopped
        self._clock = clock
        self.counts = counts
        self.stages = Stages()
        self.timeline = Timeline()
        self._asked: dict[int, _Asked] = {}
        self._traps = Traps(known)
        # of URLs that wait for a retry: filled from the journal at a resume and by _put_back, emptied by _request
        self._attempts = ledger.journal.tries()
        self._errands = Errands(
            options, frontier=frontier, ledger=ledger, parse_pool=parse_pool, say_once=self._say_once, clock=clock
        )
        self._reserved = 0
        self._typical = 2 * 1024 * 1024
        self._most_in_flight = self._most_at_once()
        self._slots_before = parse_pool.slot_seconds
        self._local_faults = 0
        self._withheld = 0
        self._said: set[str] = set()
        self._stop: StopRequested | None = None
        self._started = clock()
        self._last_commit = self._started
        self._last_status = self._started
        self._last_counts = (counts.pages, counts.bytes, counts.errors)
        self._last_row = self.load()
        self._deadline = None if options.max_time is None else self._started + options.max_time
        self._nofollow = options.nofollow or ("page" if options.robots else "ignore")

    # ------------------------------------------------------------------ the loop

    def run(self) -> Ending:
        """Crawl until it is finished, a bound is reached or a stop is asked for; all that was parsed is committed."""
        if self._options.sitemaps:
            self._errands.begin_sitemaps()
        while True:
            now = self._clock()
            if self._deadline is not None and now >= self._deadline and self._stop is None:
                self._stop = StopRequested(reason=StopReason.TIME_BUDGET)
            if self._stop is None and self._is_stopped is not None and self._is_stopped():
                self._stop = StopRequested(reason=StopReason.INTERRUPTED)
            if self._stop is not None:
                return self._interrupt(self._stop)
            self._dispatch(now)
            self._parse.flush()
            self.stages.dispatch += self._clock() - now
            if self._is_finished():
                if self._ledger.uncommitted or not self._ledger.is_settled:
                    self._commit()
                    continue
                return Ending(reason=self._reason())
            self._wait(now)
            now = self._clock()
            due = self._parse.due()
            if due is not None and due <= now:
                self._take_parsed(self._parse.tick(now))
            if self._ledger.uncommitted >= COMMIT_PAGES or (
                now - self._last_commit >= COMMIT_SECONDS and (self._ledger.uncommitted or not self._ledger.is_settled)
            ):
                self._commit()
            if now - self._last_status >= STATUS_SECONDS:
                self._last_status = now
                self._reporter.status(self.status())
                if now - self._last_row.elapsed - self._started >= self.timeline.every:
                    self._add_row()

    def _wait(self, now: float) -> None:
        """Sleep until a message or the next due time; then take every message that is there."""
        mailbox = self._mailbox
        try:
            message = mailbox.get_nowait()
        except queue.Empty:
            why = self._why_wait()
            before = self._clock()
            try:
                message = mailbox.get(timeout=self._timeout(now))
            except queue.Empty:
                return
            finally:
                slept = self._clock() - before
                self.stages.waits[why] += slept
                if why is Wait.HOST:
                    self._blame_host(slept)
        began = self._clock()
        try:
            for _ in range(256):
                self._receive(message)
                message = mailbox.get_nowait()
            self._receive(message)
        except queue.Empty:
            pass
        finally:
            self.stages.merge += self._clock() - began

    def _why_wait(self) -> Wait:
        if not self._can_take():
            return Wait.PARSE
        if not self._frontier.waiting:
            return Wait.EMPTY
        return Wait.FETCH if self._fetch.busy >= self._options.concurrency - self._withheld else Wait.HOST

    def _blame_host(self, slept: float) -> None:
        host = self._frontier.next_host()
        if host is not None:
            hosts = self.stages.rate_hosts
            hosts[host.name] = hosts.get(host.name, 0.0) + slept

    def _timeout(self, now: float) -> float:
        due = [now + 0.25]  # the screen's clock moves on, and `stop=` is looked at
        if self._ledger.uncommitted or not self._ledger.is_settled:
            due.append(self._last_commit + COMMIT_SECONDS)
        if self._deadline is not None:
            due.append(self._deadline)
        parse = self._parse.due()
        if parse is not None:
            due.append(parse)
        if self._can_take():
            ready = self._frontier.ready_at()
            if ready is not None:
                due.append(ready)
        return max(0.0, min(due) - now)

    def _receive(self, message: object) -> None:
        match message:
            case FetchDone():
                self._fetched(message)
            case StopRequested():
                self._stop = self._stop or message
            case _ if isinstance(message, PARSE_MESSAGES):
                self._take_parsed(self._parse.receive(message))
            case _:
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
        failpoints.hit("before_commit")
        ledger.commit()
        self._last_commit = self._clock()
        self._deliver()
        self.stages.journal += self._clock() - before

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

    def status(self) -> Status:
        frontier = self._frontier
        return Status(
            pages=self.counts.pages,
            queued=frontier.waiting,
            in_flight=frontier.in_flight,
            errors=self.counts.errors,
            bytes=self.counts.bytes,
            elapsed=self._clock() - self._started,
            limiter=limits.limiter_word(self.load()),
        )

    def _add_row(self) -> None:
        """One more row of the timeline."""
        now, before = self.load(), self._last_row
        period = limits.since(now, before)
        pages, size, errors = self.counts.pages, self.counts.bytes, self.counts.errors
        self.timeline.add(
            Period(
                at=now.elapsed,
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
                parse_procs=now.procs,
            )
        )
        self._last_row, self._last_counts = now, (pages, size, errors)
        if self._tuner is not None:
            self._tune(self._tuner, period)

    def _tune(self, tuner: Tuner, period: limits.Load) -> None:
        """Change the number of parser processes when the period shows that another is better."""
        change = tuner.decide(period, waiting=self._parse.waiting, memory=machine.memory())
        if change is not None:
            logger.info("parse.resized from=%d to=%d reason=%s", period.procs, change.procs, change.reason)
            self._parse.resize(change.procs)
            self._most_in_flight = self._most_at_once()

    def load(self) -> limits.Load:
        """How busy the stages have been so far."""
        options = self._options
        slowest = max((host.interval for host in self._frontier.hosts.values()), default=0.0)
        rate = f"--rps {options.rps:g}"
        if slowest and (not options.rps or slowest > 1 / options.rps + 1e-9):
            rate = f"Crawl-delay {slowest:g}s"
        elif not options.rps:
            rate = f"--per-host {options.per_host}"
        stages = dataclasses.replace(
            self.stages, waits=dict(self.stages.waits), rate_hosts=dict(self.stages.rate_hosts)
        )
        return limits.Load(
            stages=stages,
            elapsed=self._clock() - self._started,
            procs=self._parse.procs,
            concurrency=options.concurrency,
            parse_busy=sum(self._parse.busy),
            parse_slots=self._parse.slot_seconds - self._slots_before,
            rate=rate,
        )

    def _say_once(self, key: str, text: str) -> None:
        if key not in self._said:
            self._said.add(key)
            logger.info("crawl.notice text=%s", text)
            self._reporter.notice(text)

    # ------------------------------------------------------------------ requesting

    def _most_at_once(self) -> int:
        """So many URLs may be between frontier and ledger."""
        return 2 * self._options.concurrency + 64 * self._parse.procs

    def _can_take(self) -> bool:
        if self._frontier.in_flight >= self._most_in_flight:
            return False
        return not self._asked or self._reserved + self._typical <= BYTE_BUDGET

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
        attempt = self._attempts.pop(number, 0) + 1
        url = self._ledger.text(number)
        if take.is_first:
            rules = self._errands.rules.get(take.origin.number)
            if rules is not None and not rules.allows(url, self._options.agent):
                self._ledger.skip(number, url, SkipReason.ROBOTS_DISALLOWED, None)
                self._frontier.give_back(take)
                return False
        self._reserved += self._typical
        self._asked[number] = _Asked(url=url, host=take.origin.host, attempt=attempt, reserved=self._typical)
        self._fetch.submit(FetchTask(id=number, url=url, kind=TaskKind.PAGE, attempt=attempt))
        return True

    def _fetched(self, done: FetchDone) -> None:
        self._account(done)
        is_local = isinstance(done.result, FetchFailure) and done.result.is_local
        if done.task.kind is not TaskKind.PAGE:
            if isinstance(done.result, FetchFailure) and is_local:
                self._local_fault(done.result)
            self._errands.fetched(done, local_pause=LOCAL_FAULT_PAUSE if is_local else None)
            return
        number = done.task.id
        asked = self._asked[number]
        self._frontier.release(asked.host)
        result = done.result
        asked.millis = round(1000 * result.timing.total)
        if isinstance(result, FetchFailure):
            if result.is_local:
                self._local_fault(result)
                self._put_back(number, asked, self._clock() + LOCAL_FAULT_PAUSE, attempts=asked.attempt - 1)
                return
        else:
            self._local_faults = 0
            asked.page = result
            self._reserve(asked, len(result.body))
        if not self._retry(number, asked, result):
            self._settle(number, asked, result)

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

    def _reserve(self, asked: _Asked, size: int) -> None:
        """Put the real size of a body in the place of what was reserved for it."""
        self._reserved += size - asked.reserved
        asked.reserved = size
        self._typical += (max(16384, 2 * size) - self._typical) // 16

    def _put_back(self, number: int, asked: _Asked, at: float, *, attempts: int) -> None:
        self._reserved -= asked.reserved
        del self._asked[number]
        self._attempts[number] = attempts
        self._ledger.note_try(number, attempts)
        self._frontier.retry(number, at)

    def _retry(self, number: int, asked: _Asked, result: FetchedPage | FetchFailure) -> bool:
        """Let the URL wait for another try when its failure can pass; True when it does."""
        decision = retry.decide(
            result,
            attempt=asked.attempt,
            retries=self._options.retries,
            now_wall=time.time(),
            jitter=random.random(),
        )
        if decision is None:
            return False
        now = self._clock()
        if decision.holds_host:
            self._frontier.hold(asked.host, now + decision.delay, now)
        self.stages.retries += 1
        self._put_back(number, asked, now + decision.delay, attempts=asked.attempt)
        return True

    def _local_fault(self, failure: FetchFailure) -> None:
        """No descriptors or no memory is never a page's fault: fewer requests at once, and the URL waits again."""
        self._local_faults += 1
        if self._local_faults > MAX_LOCAL_FAULTS:
            raise MachineError(f"this machine can't open connections: {failure.error}; raise its limits, then --resume")
        for _ in range((self._options.concurrency - self._withheld) // 2):
            if not self._fetch.acquire():
                break
            self._withheld += 1  # a permit that is kept is a request less at once
        self._say_once("local", f"this machine is short of resources ({failure.error}): fewer requests at once")

    # ------------------------------------------------------------------ answers

    def _settle(self, number: int, asked: _Asked, result: FetchedPage | FetchFailure) -> None:
        """Decide what the last answer to a URL means."""
        if isinstance(result, FetchFailure):
            if result.outcome is Outcome.BLOCKED_ADDRESS:
                self._drop(number, asked)
                self._ledger.skip(number, asked.url, SkipReason.BLOCKED_ADDRESS, result.error)
                return
            self._finish(number, asked, outcome=result.outcome, error=result.error)
            return
        self._join_where_seeds_end(number, asked.url, result)
        if redirects.is_redirect(result.status):
            self._redirected(number, asked, result)
        elif result.status >= 400:
            self._finish(number, asked, outcome=Outcome.HTTP_ERROR, error=_status_in_words(result.status))
        elif 200 <= result.status < 300 and result.is_wanted and (result.body or result.fault is None):
            failpoints.hit("after_answer")
            self._parse.submit(
                RawBody(
                    id=number,
                    url=asked.url,
                    kind=TaskKind.PAGE,
                    body=result.body,
                    content_type=result.content_type,
                    content_encoding=result.content_encoding,
                )
            )
        else:
            is_page = result.is_wanted or result.status >= 300 or result.status in (204, 205)
            outcome = result.fault or (Outcome.OK if is_page else Outcome.NOT_HTML)
            self._finish(number, asked, outcome=outcome, error=result.error)

    def _join_where_seeds_end(self, number: int, url: str, page: FetchedPage) -> None:
        ledger = self._ledger
        if number not in ledger.moving or redirects.is_redirect(page.status):
            return
        if not ledger.scope.has_place(url):
            ledger.join(url)
            self._reporter.notice(f"a seed moved to {url}: {host_key(origin_of(url))} is in scope now")
            self._errands.add_sitemap_origin(self._frontier.origins[self._known.origin[number]])

    def _redirected(self, number: int, asked: _Asked, page: FetchedPage) -> None:
        text = redirects.location(page)
        target = None if text is None else urls.resolve(asked.url, text)
        if target is None:
            raw = (page.location or b"").decode("latin-1")
            error = f"unusable Location {raw[:200]!r}" if page.location is not None else "no Location"
            self._finish(number, asked, outcome=Outcome.BAD_REDIRECT, error=error)
            return
        target = urls.without_userinfo(target)
        redirect_to, outcome, why = self._ledger.reach_by_redirect(number, target)
        self._finish(number, asked, outcome=outcome, error=why, redirect_to=redirect_to, redirect_url=target)

    def _drop(self, number: int, asked: _Asked) -> None:
        self._reserved -= asked.reserved
        del self._asked[number]

    def _finish(
        self,
        number: int,
        asked: _Asked,
        *,
        outcome: Outcome,
        error: str | None,
        redirect_to: int | None = None,
        redirect_url: str | None = None,
    ) -> None:
        """Record a URL whose body was not parsed."""
        self._drop(number, asked)
        page = asked.page
        self._ledger.finish(
            Finished(
                id=number,
                url=asked.url,
                status=None if page is None else page.status,
                outcome=outcome,
                error=error,
                millis=asked.millis,
                size=0 if page is None else len(page.body),
                content_type=None if page is None else page.content_type,
                robots=() if page is None else self._robots_of(page, ()),
                redirect_to=redirect_to,
                redirect_url=redirect_url,
                attempts=asked.attempt,
                last_modified=None if page is None else page.last_modified,
            )
        )

    # ------------------------------------------------------------------ parse results

    def _take_parsed(self, outcomes: list[ParsedBatch | ParseFailed]) -> None:
        for outcome in outcomes:
            match outcome:
                case ParsedBatch():
                    self._learn_links(outcome.table, outcome.new_links)
                    for result in outcome.results:
                        if isinstance(result, PageResult):
                            self._parsed(outcome.table, result)
                        else:
                            self._errands.sitemap_parsed(result)
                case ParseFailed():
                    self._parse_failed(outcome)

    def _learn_links(self, table: LinkTable, links: list[tuple[str, str]]) -> None:
        """Give the links that a parse process names for the first time their ids; -1 drops one."""
        ids, learn = table.ids, self._ledger.learn
        if self._canonicalise is None:
            for url, key in links:
                ids.append(learn(url, key or url))
            return
        for url, _ in links:
            key_or_none = self._canonicalise(url)
            ids.append(-1 if key_or_none is None else learn(url, key_or_none))

    def _parsed(self, table: LinkTable, result: PageResult) -> None:
        number = result.id
        asked = self._asked[number]
        page = asked.page
        assert page is not None
        stages = self.stages
        stages.parse_decode += result.decode_us / 1e6
        stages.parse_parse += result.parse_us / 1e6
        stages.parse_resolve += result.resolve_us / 1e6
        stages.parsed += 1
        outcome, error = self._worst(page, result)
        ids = table.ids
        kinds, texts = result.flags, result.texts
        targets = [ids[i] for i in memoryview(result.targets).cast("I")]
        if self._canonicalise is not None or number in targets:
            # two spellings may be one page now, and a link to itself is none
            kept: dict[int, int] = {}
            for target, kind in zip(targets, kinds, strict=True):
                if target not in (-1, number):
                    kept[target] = kept.get(target, kind) | (kind & 1)
            if texts:
                texts = _texts_of(kept, targets, texts)
            targets, kinds = list(kept), bytes(kept.values())
        robots = self._robots_of(page, result.robots)
        canonical = result.canonical
        if canonical is None and page.link:
            canonical = facts.canonical_from_link(page.link, asked.url)
        self._drop(number, asked)
        self._ledger.finish(
            Finished(
                id=number,
                url=asked.url,
                status=page.status,
                outcome=outcome,
                error=error,
                links=len(targets),
                millis=asked.millis,
                size=result.bytes,
                content_type=page.content_type,
                encoding=result.encoding,
                title=result.title,
                canonical=canonical,
                robots=robots,
                attempts=asked.attempt,
                targets=array("I", targets).tobytes(),
                kinds=kinds,
                texts=texts,
                body_hash=result.body_hash,
                last_modified=page.last_modified,
            )
        )
        trap = self._traps.judge(number, targets, result.body_hash)
        if trap is not None:
            self._ledger.trap(targets)
            self._say_once(f"trap {trap}", _TRAPS[trap].format(url=asked.url))
        self._ledger.reach_by_links(number, targets, bytes(len(kinds)) if trap else self._follows(kinds, robots))

    def _worst(self, page: FetchedPage, result: PageResult) -> tuple[Outcome, str | None]:
        parsed = Outcome(result.outcome)
        if page.fault is None:
            return parsed, result.error
        if parsed is Outcome.OK or _FAULT_RANK.index(page.fault) <= _FAULT_RANK.index(parsed):
            return page.fault, page.error
        return parsed, result.error

    def _robots_of(self, page: FetchedPage, meta: tuple[str, ...]) -> tuple[str, ...]:
        if not page.x_robots_tag:
            return meta
        return tuple(sorted({*meta, *facts.robots_from_headers(page.x_robots_tag, self._options.agent)}))

    def _follows(self, kinds: bytes, robots: tuple[str, ...]) -> bytes:
        """For each target, whether this page gives it the right to be queued."""
        if self._nofollow == "ignore":
            return b"\1" * len(kinds)
        if "nofollow" in robots:
            return bytes(len(kinds))
        return bytes(kind & 1 for kind in kinds) if self._nofollow == "all" else b"\1" * len(kinds)

    def _parse_failed(self, failed: ParseFailed) -> None:
        if failed.id < 0:
            self._errands.sitemap_failed(failed.id, failed.error)
            return
        asked = self._asked[failed.id]
        page = asked.page
        assert page is not None
        fault = page.fault if page.fault is not None else failed.outcome
        self._finish(failed.id, asked, outcome=fault, error=page.error if page.fault is not None else failed.error)


def _texts_of(kept: Collection[int], targets: list[int], packed: bytes) -> bytes:
    """The texts of the targets that are kept, each that of its first place."""
    lines = zlib.decompress(packed).decode().split("\n")
    first = dict(zip(reversed(targets), reversed(lines), strict=True))
    return zlib.compress("\n".join([first[target] for target in kept]).encode(), 1) if kept else b""


def _status_in_words(status: int) -> str:
    phrase = responses.get(status)
    return f"{status} {phrase}" if phrase else f"status {status}"
