"""robots.txt and sitemaps: requests that are no pages, and what their answers decide.

From: the coordinator (answers, parse results). To: the frontier (gates, further errands) and the ledger (origins
that end without a request, URLs that sitemaps name). Main thread.

robots.txt is the first request of an origin and its pages wait behind it; redirects of it are errands too, through
the clock of the host that they lead to, but the rules belong to the origin that asked. Errands are numbered -1, -2,
... so that one mailbox and one frontier serve them beside the pages.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from msgspec import Struct

from crawlr.fetch import redirects, retry, robots
from crawlr.fetch.pool import FetchDone
from crawlr.fetch.robots import RobotsRules
from crawlr.frontier import Frontier, Gate, Origin
from crawlr.ledger import Ledger, Verdict
from crawlr.options import Options
from crawlr.parse import urls
from crawlr.parse.pool import ParsePool
from crawlr.parse.results import SitemapResult
from crawlr.records import FetchedPage, FetchFailure, FetchTask, Outcome, RawBody, SkipReason, TaskKind
from crawlr.scope import host_key, origin_of

__all__ = ["Errands"]

MAX_REDIRECTS = 5  # RFC 9309 §2.3.1.2 for robots.txt; the same for sitemaps
MAX_SITEMAP_LEVEL = 3
MAX_SITEMAP_FILES = 500
_DEAD = frozenset({Outcome.DNS_ERROR, Outcome.REFUSED, Outcome.CONNECT_TIMEOUT, Outcome.TLS_ERROR})


class _Errand(Struct, kw_only=True):
    """`asker`: the origin whose rules or URLs it is about. `level`: of a sitemap below index files."""

    kind: TaskKind
    url: str
    asker: Origin
    origin: Origin
    level: int = 0
    redirects: int = 0
    attempt: int = 1


class Errands:
    """The errands that are out, and the rules that they brought home (`rules`, by the number of the origin)."""

    def __init__(
        self,
        options: Options,
        *,
        frontier: Frontier,
        ledger: Ledger,
        parse_pool: ParsePool,
        say_once: Callable[[str, str], None],
        clock: Callable[[], float],
    ) -> None:
        self._options = options
        self._frontier = frontier
        self._ledger = ledger
        self._parse = parse_pool
        self._say_once = say_once
        self._clock = clock
        self._out: dict[int, _Errand] = {}
        self._last = 0
        self.rules: dict[int, RobotsRules] = {}
        self._sitemap_origins: set[int] = set()
        self._sitemaps: set[str] = set()  # every sitemap that was ever asked for
        self._done_before: set[str] = set()  # those that an earlier run finished
        self.retries = 0

    # ------------------------------------------------------------------ asking

    def robots_of(self, origin: Origin) -> FetchTask:
        """The request for the robots.txt of `origin`, whose gate the frontier has just set to ASKED."""
        url = f"{origin.name}/robots.txt"
        return self.start(self._new(_Errand(kind=TaskKind.ROBOTS, url=url, asker=origin, origin=origin)))

    def start(self, number: int) -> FetchTask:
        """The request of an errand whose turn has come."""
        errand = self._out[number]
        return FetchTask(id=number, url=errand.url, kind=errand.kind, attempt=errand.attempt)

    def _new(self, errand: _Errand) -> int:
        self._last -= 1
        self._out[self._last] = errand
        return self._last

    # ------------------------------------------------------------------ answers

    def fetched(self, done: FetchDone, *, local_pause: float | None) -> None:
        """Decide what an answer means.

        `local_pause`: it failed by a fault of this machine, try again after so many seconds.
        """
        number, result = done.task.id, done.result
        errand = self._out[number]
        self._frontier.release(errand.origin.host)
        now = self._clock()
        if local_pause is not None:
            self._repeat(number, errand, now + local_pause)
            return
        decision = retry.decide(
            result, attempt=errand.attempt, retries=self._options.retries, now_wall=time.time(), jitter=random.random()
        )
        if decision is not None:
            if decision.holds_host:
                self._frontier.hold(errand.origin.host, now + decision.delay, now)
            errand.attempt += 1
            self.retries += 1
            self._repeat(number, errand, now + decision.delay)
            return
        if isinstance(result, FetchedPage) and redirects.is_redirect(result.status):
            target = self._redirect_target(errand, result)
            if target is not None:
                self._send_on(number, errand, target)
                return
        if errand.kind is TaskKind.ROBOTS:
            self._end(number)
            self._robots_answered(errand, result, done.rules)
        else:
            self._sitemap_fetched(number, errand, result)

    def _repeat(self, number: int, errand: _Errand, at: float) -> None:
        self._frontier.settle_errand()
        self._frontier.run_errand(number, errand.origin, at=at)

    def _end(self, number: int) -> None:
        del self._out[number]
        self._frontier.settle_errand()

    def _redirect_target(self, errand: _Errand, page: FetchedPage) -> str | None:
        """Where it lies instead; None when it may not be followed any further."""
        text = redirects.location(page)
        target = None if text is None else urls.resolve(errand.url, text)
        if target is None or errand.redirects >= MAX_REDIRECTS:
            return None
        target = urls.without_userinfo(target)
        if errand.kind is TaskKind.SITEMAP and not self._ledger.scope.has_host(target):
            return None
        return target

    def _send_on(self, number: int, errand: _Errand, target: str) -> None:
        name = origin_of(target)
        origin = self._frontier.origin(name, host_key(name))
        moved = _Errand(
            kind=errand.kind,
            url=target,
            asker=errand.asker,
            origin=origin,
            level=errand.level,
            redirects=errand.redirects + 1,
        )
        self._frontier.run_errand(self._new(moved), origin, is_free=True)
        if errand.kind is TaskKind.SITEMAP:
            self._ledger.note_sitemap(errand.url, level=errand.level, is_done=True)
            self._sitemaps.add(target)
        self._end(number)

    # ------------------------------------------------------------------ robots.txt

    def _robots_answered(self, errand: _Errand, result: FetchedPage | FetchFailure, rules: RobotsRules | None) -> None:
        """Open or close the origin that asked.

        RFC 9309 §2.3.1: 2xx are rules; 4xx, and a redirect that can't be followed, allow all; 5xx and network failures
        disallow all, and so does 429 (interface.md). When nobody can be connected to, the origin is dead.
        """
        origin = errand.asker
        origin.robots = robots.outcome(result, rules, self._options.agent)
        if isinstance(result, FetchFailure):
            if result.outcome is Outcome.BLOCKED_ADDRESS:
                self._close(origin, Verdict(reason=SkipReason.BLOCKED_ADDRESS, error=result.error))
            elif result.outcome in _DEAD and not errand.redirects:
                self._close(origin, Verdict(outcome=result.outcome, error=result.error))
            else:
                self._close(origin, Verdict(reason=SkipReason.ROBOTS_UNREACHABLE, error=f"robots.txt: {result.error}"))
            return
        if result.status >= 500 or result.status == 429:
            error = f"robots.txt answered {result.status}"
            self._close(origin, Verdict(reason=SkipReason.ROBOTS_UNREACHABLE, error=error))
            return
        if 200 <= result.status < 300 and result.fault not in (None, Outcome.TOO_LARGE):
            error = f"robots.txt: {result.error or result.fault}"
            self._close(origin, Verdict(reason=SkipReason.ROBOTS_UNREACHABLE, error=error))
            return
        delay = None
        if rules is not None:
            self.rules[origin.number] = rules
            delay = self._crawl_delay(origin, rules)
        self._ledger.note_robots(origin.name, rules.group(self._options.agent) if rules is not None else "")
        self._frontier.open(origin, crawl_delay=delay)
        self._ask_for_sitemaps(origin)

    def _crawl_delay(self, origin: Origin, rules: RobotsRules) -> float | None:
        delay = rules.crawl_delay(self._options.agent)
        most = self._options.max_crawl_delay
        if delay is not None:
            origin.host.crawl_delay = max(delay, origin.host.crawl_delay or 0.0)
        if delay is None or delay <= most:
            return delay
        name = host_key(origin.name)
        self._say_once(f"delay {name}", f"Crawl-delay of {name} cut from {delay:g}s to {most:g}s (--max-crawl-delay)")
        return most

    def _close(self, origin: Origin, verdict: Verdict) -> None:
        name = host_key(origin.name)
        if verdict.outcome is not None:
            text = f"{name} cannot be reached: {verdict.error}"
        else:
            text = f"{name}: nothing is requested there: {verdict.error}"
        self._say_once(f"closed {origin.name}", text)
        self._ledger.close_origin(origin, verdict)

    # ------------------------------------------------------------------ sitemaps

    def begin_sitemaps(self) -> None:
        """Ask for the sitemaps of the seeds' origins, as soon as their robots.txt is known."""
        for url, level, is_done in self._ledger.journal.sitemaps():
            if is_done:
                self._done_before.add(url)
            elif self._ledger.scope.has_host(url):
                name = origin_of(url)
                self._ask(url, self._frontier.origin(name, host_key(name)), level=level)
        for number in sorted(self._ledger.moving):
            self.add_sitemap_origin(self._frontier.origins[self._ledger.known.origin[number]])

    def add_sitemap_origin(self, origin: Origin) -> None:
        """Take URLs from the sitemaps of `origin` too: it has a seed, or a seed moved to it."""
        if self._options.sitemaps and origin.number not in self._sitemap_origins:
            self._sitemap_origins.add(origin.number)
            if origin.gate == Gate.OPEN:
                self._ask_for_sitemaps(origin)

    def _ask_for_sitemaps(self, origin: Origin) -> None:
        if origin.number not in self._sitemap_origins:
            return
        rules = self.rules.get(origin.number)
        named = [urls.resolve(f"{origin.name}/robots.txt", text) for text in (rules.sitemaps if rules else ())]
        for url in (*named, f"{origin.name}/sitemap.xml"):
            if url is not None:
                self._ask(urls.without_userinfo(url), origin, level=0)

    def _ask(self, url: str, asker: Origin, *, level: int) -> None:
        """Queue one sitemap when it is in scope, allowed and new."""
        if url in self._sitemaps or url in self._done_before or not self._ledger.scope.has_host(url):
            return
        if level > MAX_SITEMAP_LEVEL or len(self._sitemaps) >= MAX_SITEMAP_FILES:
            self._say_once(
                "sitemap limit", f"sitemaps: not all are read ({MAX_SITEMAP_FILES} files, {MAX_SITEMAP_LEVEL} levels)"
            )
            return
        self._sitemaps.add(url)
        name = origin_of(url)
        origin = self._frontier.origin(name, host_key(name))
        rules = self.rules.get(origin.number)
        refused = None if rules is None else rules.refusal(url, self._options.agent)
        if refused is not None:
            error = f"not asked: robots.txt forbids it ({refused})"
            self._ledger.note_sitemap(url, level=level, is_done=True, error=error)
            return
        self._ledger.note_sitemap(url, level=level, is_done=False)
        errand = _Errand(kind=TaskKind.SITEMAP, url=url, asker=asker, origin=origin, level=level)
        if not self._ledger.has_verdict(origin):
            self._frontier.run_errand(self._new(errand), origin)

    def _sitemap_fetched(self, number: int, errand: _Errand, result: FetchedPage | FetchFailure) -> None:
        if isinstance(result, FetchFailure) or not 200 <= result.status < 300:
            is_named = not errand.url.endswith("/sitemap.xml") or isinstance(result, FetchFailure)
            reason = result.error if isinstance(result, FetchFailure) else f"status {result.status}"
            if is_named:
                self._say_once(f"sitemap {errand.url}", f"sitemap {errand.url}: {reason}")
            self._ledger.note_sitemap(errand.url, level=errand.level, is_done=True, error=reason)
            self._end(number)
            return
        self._parse.submit(
            RawBody(
                id=number,
                url=errand.url,
                kind=TaskKind.SITEMAP,
                body=result.body,
                content_type=result.content_type,
                content_encoding=result.content_encoding,
            )
        )

    def sitemap_parsed(self, result: SitemapResult) -> None:
        """Take the URLs of a sitemap as depth 0, and the files of an index as further errands."""
        errand = self._out[result.id]
        if result.kind == "index":
            for url in result.urls:
                self._ask(urls.without_userinfo(url), errand.asker, level=errand.level + 1)
        else:
            for url in result.urls:
                self._ledger.plant(urls.without_userinfo(url), is_seed=False)
        error = result.error
        if error is None and (result.damaged or result.kind == "invalid"):
            error = "damaged: its whole entries are used" if result.damaged and result.urls else "not a sitemap"
        self._end_sitemap(result.id, error)

    def sitemap_failed(self, number: int, error: str) -> None:
        """Its parser process died, and died again."""
        self._end_sitemap(number, error)

    def _end_sitemap(self, number: int, error: str | None) -> None:
        errand = self._out[number]
        if error is not None:
            self._say_once(f"sitemap {errand.url}", f"sitemap {errand.url}: {error}")
        self._ledger.note_sitemap(errand.url, level=errand.level, is_done=True, error=error)
        self._end(number)
