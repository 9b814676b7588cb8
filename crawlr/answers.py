"""What an answer to a page's request means: another try, a redirect, a record, or a body to parse.

From: the coordinator (FetchDone of pages). To: frontier (retries, holds), parse pool (bodies), ledger (records,
redirects). Main thread.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from http.client import responses

from crawlr import failpoints
from crawlr.errands import Errands
from crawlr.errors import MachineError
from crawlr.fetch import redirects, retry
from crawlr.fetch.pool import FetchDone, FetchPool
from crawlr.frontier import Frontier
from crawlr.in_flight import Asked, InFlight, unparsed
from crawlr.ledger import Ledger
from crawlr.options import Options
from crawlr.parse import urls
from crawlr.parse.pool import ParsePool
from crawlr.records import FetchedPage, FetchFailure, Outcome, RawBody, SkipReason, TaskKind
from crawlr.scope import host_key, origin_of
from crawlr.stats import Stages

__all__ = ["Answers"]

LOCAL_FAULT_PAUSE = 1.0
"""Seconds before a URL is asked again for which this machine had no means."""
MAX_LOCAL_FAULTS = 20
"""So many moments of shortage, with nothing that works between them, end the crawl."""


class Answers:
    """Decides about answers, one at a time."""

    def __init__(
        self,
        options: Options,
        *,
        frontier: Frontier,
        ledger: Ledger,
        in_flight: InFlight,
        errands: Errands,
        fetch_pool: FetchPool,
        parse_pool: ParsePool,
        stages: Stages,
        say_once: Callable[[str, str], None],
        clock: Callable[[], float],
    ) -> None:
        self._options = options
        self._frontier = frontier
        self._ledger = ledger
        self._in_flight = in_flight
        self._errands = errands
        self._fetch = fetch_pool
        self._parse = parse_pool
        self._stages = stages
        self._say_once = say_once
        self._clock = clock
        self._local_faults = 0  # moments of shortage since the last exchange that worked
        self._next_local_fault = 0.0
        self._withheld = 0  # permits that faults of this machine have taken out of use

    def fetched(self, done: FetchDone) -> None:
        """Take in one answer, of a page or of an errand."""
        result = done.result
        if isinstance(result, FetchFailure) and result.is_local:
            self._local_fault(result)
            if done.task.kind is TaskKind.PAGE:
                asked = self._in_flight[done.task.id]
                self._frontier.release(asked.host)
                at = self._clock() + LOCAL_FAULT_PAUSE
                self._in_flight.put_back(done.task.id, at, attempts=asked.attempt - 1)
            else:
                self._errands.fetched(done, local_pause=LOCAL_FAULT_PAUSE)
            return
        self._local_faults = 0
        if done.task.kind is not TaskKind.PAGE:
            self._errands.fetched(done, local_pause=None)
            return
        number = done.task.id
        asked = self._in_flight[number]
        self._frontier.release(asked.host)
        asked.millis = round(1000 * result.timing.total)
        if isinstance(result, FetchedPage):
            self._in_flight.answered(asked, result)
        if not self._retry(number, asked, result):
            self._settle(number, asked, result)

    def _local_fault(self, failure: FetchFailure) -> None:
        """No descriptors or no memory is never a page's fault: fewer requests at once, and the URL waits again."""
        now = self._clock()
        if now < self._next_local_fault:
            return  # of the same moment, and counted
        self._next_local_fault = now + LOCAL_FAULT_PAUSE
        self._local_faults += 1
        if self._local_faults > MAX_LOCAL_FAULTS:
            raise MachineError(f"this machine can't open connections: {failure.error}; raise its limits, then --resume")
        for _ in range((self._options.concurrency - self._withheld) // 2):
            if not self._fetch.acquire():
                break
            self._withheld += 1  # a permit that is kept is a request less at once
        self._say_once("local", f"this machine is short of resources ({failure.error}): fewer requests at once")

    def _retry(self, number: int, asked: Asked, result: FetchedPage | FetchFailure) -> bool:
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
        self._stages.retries += 1
        self._in_flight.put_back(number, now + decision.delay, attempts=asked.attempt)
        return True

    def _settle(self, number: int, asked: Asked, result: FetchedPage | FetchFailure) -> None:
        """Decide what the last answer to a URL means."""
        if isinstance(result, FetchFailure):
            if result.outcome is Outcome.BLOCKED_ADDRESS:
                self._in_flight.drop(number)
                self._ledger.skip(number, asked.url, SkipReason.BLOCKED_ADDRESS, result.error)
                return
            self._finish(number, outcome=result.outcome, error=result.error)
            return
        self._join_where_seeds_end(number, asked.url, result)
        if redirects.is_redirect(result.status):
            self._redirected(number, asked.url, result)
        elif result.status >= 400:
            self._finish(number, outcome=Outcome.HTTP_ERROR, error=_status_in_words(result.status))
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
            self._finish(
                number, outcome=result.fault or (Outcome.OK if is_page else Outcome.NOT_HTML), error=result.error
            )

    def _join_where_seeds_end(self, number: int, url: str, page: FetchedPage) -> None:
        ledger = self._ledger
        if number not in ledger.moving or redirects.is_redirect(page.status) or ledger.scope.has_place(url):
            return
        ledger.join(url)
        host = host_key(origin_of(url))
        self._say_once(f"moved {host}", f"a seed moved to {url}: {host} is in scope now")
        self._errands.add_sitemap_origin(self._frontier.origins[ledger.known.origin[number]])

    def _redirected(self, number: int, url: str, page: FetchedPage) -> None:
        text = redirects.location(page)
        target = None if text is None else urls.resolve(url, text)
        if target is None:
            raw = (page.location or b"").decode("latin-1")
            error = f"unusable Location {raw[:200]!r}" if page.location is not None else "no Location"
            self._finish(number, outcome=Outcome.BAD_REDIRECT, error=error)
            return
        target = urls.without_userinfo(target)
        redirect_to, outcome, why = self._ledger.reach_by_redirect(number, target)
        self._finish(number, outcome=outcome, error=why, redirect_to=redirect_to, redirect_url=target)

    def _finish(
        self,
        number: int,
        *,
        outcome: Outcome,
        error: str | None,
        redirect_to: int | None = None,
        redirect_url: str | None = None,
    ) -> None:
        """Record a URL whose body is not parsed."""
        self._ledger.finish(
            unparsed(
                number,
                self._in_flight.drop(number),
                outcome=outcome,
                error=error,
                agent=self._options.agent,
                redirect_to=redirect_to,
                redirect_url=redirect_url,
            )
        )


def _status_in_words(status: int) -> str:
    phrase = responses.get(status)
    return f"{status} {phrase}" if phrase else f"status {status}"
