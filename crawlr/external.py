"""--check-external: asks the link targets out of scope whether they are there, once the crawl itself is over.

From: api (the journal of a crawl that ended). To: the journal's table `external`, in groups. Main thread; the exchanges
run in the fetch threads. Nothing is followed, read or parsed: a HEAD a target, and a GET where HEAD is refused, behind
the same clock per host, the same robots.txt and the same retries as a crawl has.

A target is not asked when its host is in scope (a filter of the user's refused it), or when --exclude matches it.
"""

from __future__ import annotations

import logging
import queue
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Collection

from msgspec import Struct, structs

from crawlr import scope as scope_rules
from crawlr.control import Control
from crawlr.errors import MachineError
from crawlr.fetch import redirects, retry, robots
from crawlr.fetch.pool import FetchDone, FetchPool
from crawlr.fetch.robots import RobotsRules
from crawlr.frontier import Frontier, Host, Origin, Take
from crawlr.journal import ExternalRow, Journal
from crawlr.known import FAR, Flag, KnownUrls
from crawlr.options import Options
from crawlr.parse import urls
from crawlr.records import (
    ExternalClass,
    FetchedPage,
    FetchFailure,
    FetchTask,
    Outcome,
    SkipReason,
    StopReason,
    StopRequested,
    TaskKind,
)
from crawlr.reporting import Reporter
from crawlr.scope import Scope
from crawlr.status import CrawlStatus, fill_in

__all__ = ["ExternalCheck", "classify"]

logger = logging.getLogger(__name__)

_COMMIT_ROWS = 64
_COMMIT_SECONDS = 0.25
_LOCAL_PAUSE = 1.0
_MOST_LOCAL_FAULTS = 20
_MOST_REDIRECTS = 5  # RFC 9309 §2.3.1.2
_HEAD_FAILS = frozenset({Outcome.EMPTY_REPLY, Outcome.RESET, Outcome.PROTOCOL_ERROR, Outcome.READ_TIMEOUT})
"""How a server that knows no HEAD may fail instead of refusing it."""
_DEAD = frozenset({Outcome.DNS_ERROR, Outcome.REFUSED, Outcome.CONNECT_TIMEOUT, Outcome.TLS_ERROR})


def classify(status: int | None, outcome: str) -> ExternalClass:
    """What an answer says of a link. 999 is what LinkedIn answers to programs; 401, 403 and 429 likewise say that the
    page may well be there for a person."""
    if outcome in (SkipReason.ROBOTS_DISALLOWED, SkipReason.ROBOTS_UNREACHABLE, SkipReason.BLOCKED_ADDRESS):
        return ExternalClass.UNCHECKED
    if status in (401, 403, 429, 999):
        return ExternalClass.BLOCKED
    return ExternalClass.BROKEN if status is None or status >= 400 else ExternalClass.OK


class _Errand(Struct, kw_only=True):
    """`asker`: the origin whose links wait for it, of a robots.txt."""

    url: str
    origin: Origin
    kind: TaskKind = TaskKind.LINK
    method: str = "HEAD"
    attempt: int = 1
    asker: Origin | None = None
    redirects: int = 0


class ExternalCheck:
    """The check of one crawl. The errand of a URL has the number -1 - id; those of robots.txt lie below all of them."""

    def __init__(
        self,
        options: Options,
        *,
        journal: Journal,
        scope: Scope,
        fetch_pool: FetchPool,
        control: Control,
        reporter: Reporter,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._journal = journal
        self._scope = scope
        self._exclude = [re.compile(pattern) for pattern in options.exclude]
        self._fetch = fetch_pool
        self._control = control
        self._mailbox = control.mailbox
        self._reporter = reporter
        self._clock = clock
        self._frontier = Frontier(
            KnownUrls(), rps=options.rps, per_host=options.per_host or options.concurrency, gated=options.robots
        )
        self._out: dict[int, _Errand] = {}  # by number: filled by _task and _ask_robots, emptied by _end
        self._last = 0
        self._rules: dict[int, RobotsRules] = {}
        self._rows: list[ExternalRow] = []
        self._last_commit = clock()
        self._local_faults = 0
        self.classes: Counter[ExternalClass] = Counter()

    def run(self, *, deadline: float | None) -> StopRequested | None:
        """Ask every target that has no answer yet. What ended it early (a signal, `stop`, the deadline in monotonic
        seconds), None when all were asked; the answers that came are committed in any case."""
        count = self._queue_all()
        if not count:
            return None
        self._reporter.notice(f"checking {count:,} link targets out of scope")
        self._take_messages(0.0)  # a pause that was asked for meanwhile comes before the first request
        cut = 0
        while self._frontier.errands_out:
            now = self._clock()
            if self._control.look_for_stop(now, deadline) is not None:
                cut = self._fetch.busy
                self._fetch.interrupt()
                break
            if not self._control.is_paused:
                self._dispatch(now)
            self._wait(now, deadline)
            if len(self._rows) >= _COMMIT_ROWS or self._clock() - self._last_commit >= _COMMIT_SECONDS:
                self._commit()
        self._commit()
        classes = ", ".join(f"{self.classes[name]:,} {name}" for name in ExternalClass if self.classes[name])
        if classes:
            self._reporter.notice(f"link targets out of scope: {classes}")
        stop = self._control.stop_request
        if stop is not None and stop.reason is StopReason.INTERRUPTED:
            self._reporter.cancelling(cut)  # the last word: that outputs are written goes on in its line
        return stop

    @property
    def hosts(self) -> Collection[Host]:
        """Whom it asked, for the accounting."""
        return self._frontier.hosts.values()

    def fill(self, bare: CrawlStatus) -> CrawlStatus:
        """The check at this moment: a status with its own hosts put into that of the crawl that ended."""
        return structs.replace(fill_in(bare, self._frontier, self._clock()), parsing=0, limiter=None)

    def _queue_all(self) -> int:
        """Let every target wait that is to be asked; how many these are."""
        count = 0
        rows = self._journal.query(
            "SELECT id, url FROM urls WHERE flags & ? = 0 AND depth < ? AND id NOT IN (SELECT id FROM external)"
            " ORDER BY id",
            (Flag.IN_SCOPE, FAR),
        )
        for number, url in rows:
            self._last = min(self._last, -1 - number)
            if self._is_asked(url):
                self._frontier.run_errand(-1 - number, self._origin(url))
                count += 1
        return count

    def _is_asked(self, url: str) -> bool:
        if self._scope.has_place(url) or scope_rules.is_too_long(url):
            return False
        return not any(pattern.search(url) for pattern in self._exclude)

    def _origin(self, url: str) -> Origin:
        name = scope_rules.origin_of(url)
        return self._frontier.origin(name, scope_rules.host_key(name))

    # ------------------------------------------------------------------ asking

    def _dispatch(self, now: float) -> None:
        while self._fetch.acquire():
            take = self._frontier.take(now)
            task = None if take is None else self._task(take)
            if task is None:
                self._fetch.release()
                if take is None:
                    return
            else:
                self._fetch.submit(task)

    def _task(self, take: Take) -> FetchTask | None:
        """The request of what was taken; None when robots.txt forbids it, which settles it."""
        if take.number is None:
            return self._ask_robots(f"{take.origin.name}/robots.txt", take.origin, asker=take.origin)
        number = take.number
        errand = self._out.get(number)
        if errand is None:
            url = self._journal.texts([-1 - number])[-1 - number]
            errand = self._out[number] = _Errand(url=url, origin=take.origin)
            rules = self._rules.get(take.origin.number)
            if rules is not None and not rules.allows(url, self._options.agent):
                self._frontier.give_back(take)
                rule = rules.refusal(url, self._options.agent)
                self._record(number, None, SkipReason.ROBOTS_DISALLOWED, rule)
                self._end(number)
                return None
        return FetchTask(id=number, url=errand.url, kind=errand.kind, method=errand.method, attempt=errand.attempt)

    def _ask_robots(self, url: str, origin: Origin, *, asker: Origin, hops: int = 0) -> FetchTask:
        self._last -= 1
        self._out[self._last] = _Errand(
            url=url, origin=origin, kind=TaskKind.ROBOTS, method="GET", asker=asker, redirects=hops
        )
        return FetchTask(id=self._last, url=url, kind=TaskKind.ROBOTS)

    def _wait(self, now: float, deadline: float | None) -> None:
        """Sleep until an answer or the next due time; then take every message that is there."""
        due = [time for time in (deadline, self._control.poll_at) if time is not None]
        if self._rows:
            due.append(self._last_commit + _COMMIT_SECONDS)
        ready = self._frontier.ready_at()
        if ready is not None and not self._control.is_paused and self._fetch.busy < self._options.concurrency:
            due.append(ready)
        self._take_messages(max(0.0, min(due) - now) if due else None)

    def _take_messages(self, timeout: float | None) -> None:
        """Every message that is there; so many seconds for the first, None: as long as it takes."""
        try:
            message = self._mailbox.get(timeout=timeout)
            while True:
                if isinstance(message, FetchDone):
                    self._fetched(message)
                else:
                    self._control.receive(message)
                message = self._mailbox.get_nowait()  # what a parse process still had to say is of no use any more
        except queue.Empty:
            pass

    # ------------------------------------------------------------------ answers

    def _fetched(self, done: FetchDone) -> None:
        number, result = done.task.id, done.result
        errand = self._out.get(number)
        if errand is None:
            return  # of the crawl that ended before
        self._frontier.release(errand.origin.host)
        now = self._clock()
        if isinstance(result, FetchFailure) and result.is_local:
            self._local_faults += 1
            if self._local_faults > _MOST_LOCAL_FAULTS:
                raise MachineError(f"this machine can't open connections: {result.error}; raise its limits")
            self._repeat(number, errand, now + _LOCAL_PAUSE)
            return
        self._local_faults = 0
        if errand.method == "HEAD" and _is_refused(result):
            errand.method = "GET"
            self._repeat(number, errand, now)
            return
        decision = retry.decide(
            result, attempt=errand.attempt, retries=self._options.retries, now_wall=time.time(), jitter=random.random()
        )
        if decision is not None:
            if decision.holds_host:
                self._frontier.hold(errand.origin.host, now + decision.delay, now)
            errand.attempt += 1
            self._repeat(number, errand, now + decision.delay)
        elif errand.kind is TaskKind.ROBOTS:
            self._robots_answered(number, errand, result, done.rules)
        else:
            self._answered(number, result)

    def _answered(self, number: int, result: FetchedPage | FetchFailure) -> None:
        if isinstance(result, FetchFailure):
            self._record(number, None, result.outcome, result.error)
        elif result.status >= 400:
            self._record(number, result.status, Outcome.HTTP_ERROR, None)
        else:
            outcome = Outcome.REDIRECT if redirects.is_redirect(result.status) else Outcome.OK
            self._record(number, result.status, outcome, None)
        self._end(number)

    def _robots_answered(
        self, number: int, errand: _Errand, result: FetchedPage | FetchFailure, rules: RobotsRules | None
    ) -> None:
        """Open or close the origin that waits for it, as crawlr.errands does for a crawl."""
        asker = errand.asker
        assert asker is not None
        asker.robots = robots.outcome(result, rules, self._options.agent)
        if isinstance(result, FetchFailure):
            if result.outcome in _DEAD and not errand.redirects:
                self._close(asker, result.outcome, result.error)
            elif result.outcome is Outcome.BLOCKED_ADDRESS:
                self._close(asker, SkipReason.BLOCKED_ADDRESS, result.error)
            else:
                self._close(asker, SkipReason.ROBOTS_UNREACHABLE, f"robots.txt: {result.error}")
        elif redirects.is_redirect(result.status) and self._send_on(errand, result, asker):
            pass
        elif result.status >= 500 or result.status == 429:
            self._close(asker, SkipReason.ROBOTS_UNREACHABLE, f"robots.txt answered {result.status}")
        elif 200 <= result.status < 300 and result.fault not in (None, Outcome.TOO_LARGE):
            self._close(asker, SkipReason.ROBOTS_UNREACHABLE, f"robots.txt: {result.error or result.fault}")
        else:
            delay = None
            if rules is not None:
                self._rules[asker.number] = rules
                delay = rules.crawl_delay(self._options.agent)
            if delay is not None:
                asker.host.crawl_delay = max(delay, asker.host.crawl_delay or 0.0)
                delay = min(delay, self._options.max_crawl_delay)
            self._frontier.open(asker, crawl_delay=delay)
        self._end(number)

    def _send_on(self, errand: _Errand, page: FetchedPage, asker: Origin) -> bool:
        """Ask for a robots.txt where it lies instead; False when it may not be followed any further."""
        text = redirects.location(page)
        target = None if text is None else urls.resolve(errand.url, text)
        if target is None or errand.redirects >= _MOST_REDIRECTS:
            return False
        target = urls.without_userinfo(target)
        origin = self._origin(target)
        task = self._ask_robots(target, origin, asker=asker, hops=errand.redirects + 1)
        self._frontier.run_errand(task.id, origin, is_free=True)
        return True

    def _close(self, origin: Origin, outcome: str, error: str) -> None:
        """Record every target that waits at an origin where nothing can be asked."""
        for number in origin.errands:
            self._record(number, None, outcome, error)
        self._frontier.close(origin)

    def _repeat(self, number: int, errand: _Errand, at: float) -> None:
        self._frontier.settle_errand()
        self._frontier.run_errand(number, errand.origin, at=at)

    def _end(self, number: int) -> None:
        del self._out[number]
        self._frontier.settle_errand()

    def _record(self, number: int, status: int | None, outcome: str, error: str | None) -> None:
        found = classify(status, outcome)
        self.classes[found] += 1
        self._rows.append((-1 - number, status, str(outcome), found.value, error))
        logger.debug("external.checked id=%d status=%s outcome=%s class=%s", -1 - number, status, outcome, found)

    def _commit(self) -> None:
        if self._rows:
            self._journal.commit(external=self._rows)
            self._rows.clear()
        self._last_commit = self._clock()


def _is_refused(result: FetchedPage | FetchFailure) -> bool:
    """True when a HEAD says nothing about the page. 429 asks for fewer requests, not for another one."""
    if isinstance(result, FetchFailure):
        return result.outcome in _HEAD_FAILS
    return result.status >= 400 and result.status != 429
