"""One run of one crawl, from its state file to its outputs: puts the stages together, runs the coordinator, ends every
thread and process.

From: api (options, the open state, what the caller put in). To: the result. The thread that calls it becomes the
crawl's main thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime

from msgspec import Struct

from crawlr import engines, limits, machine, map_head, outputs
from crawlr.control import Control
from crawlr.coordinator import Coordinator, Ending
from crawlr.errors import CrawlrError
from crawlr.fetch.pool import Fetcher, FetchPool
from crawlr.formats import Columns
from crawlr.frontier import Frontier, Host
from crawlr.gate_rules import Result
from crawlr.known import KnownUrls
from crawlr.ledger import Ledger
from crawlr.options import Options
from crawlr.order import queue_maker
from crawlr.parse import urls
from crawlr.parse.pool import ParsePool
from crawlr.parse.start_method import Birthplace
from crawlr.records import PageRecord, StopReason
from crawlr.reporting import Reporter, Summary
from crawlr.result import CrawlResult
from crawlr.scope import Scope
from crawlr.sinks import files, stats_json
from crawlr.state import OpenState
from crawlr.stats import Counts
from crawlr.status import Phase
from crawlr.tuning import Tuner
from crawlr.view import CrawlView
from crawlr.web_page import WebPage

__all__ = ["Hooks", "Run"]

logger = logging.getLogger(__name__)


class Hooks(Struct, frozen=True, kw_only=True):
    """What a caller of the library puts into a crawl. Made by api, read here and by the coordinator."""

    on_page: Callable[[PageRecord], object] | None = None
    on_content: Callable[[WebPage], object] | None = None
    fetcher: Fetcher | None = None
    canonicalise: Callable[[str], str | None] | None = None
    filters: Sequence[Callable[[str], bool]] = ()


class Run:
    """One run of one crawl, from its state file to its outputs."""

    def __init__(
        self,
        options: Options,
        state: OpenState,
        *,
        auth: str | None,
        reporter: Reporter,
        control: Control,
        hooks: Hooks,
    ) -> None:
        self._options = options
        self._state = state
        self._auth = auth
        self._reporter = reporter
        self._control = control
        self._hooks = hooks
        self._journal = state.journal
        self._counts = Counts()
        meta = self._journal.meta()
        self._started_at = str(meta.get("started_at") or _now())
        self._elapsed_before = float(str(meta.get("elapsed_s") or 0.0))
        self._began = time.monotonic()
        self._asked_outside: Collection[Host] = ()

    def run(self, *, place: Birthplace | None) -> CrawlResult:
        """Blocks until every thread and process has ended."""
        options, control, hooks = self._options, self._control, self._hooks
        mailbox = control.mailbox
        failure: BaseException | None = None
        with ExitStack() as stack:
            # processes first: they come up while the frontier is loaded and robots.txt is asked
            parse_pool = ParsePool(
                procs=engines.parse_procs(options),
                settings=engines.worker_settings(options, content=hooks.on_content is not None),
                deliver=mailbox.put,
                place=place,
            )
            stack.callback(parse_pool.close, kill=True)
            parse_pool.start()
            self._reporter.started(options, parse_procs=parse_pool.procs)
            used = hooks.fetcher
            if used is None:
                used = engines.network(options, self._state.seeds, self._auth)
                stack.callback(used.close)
            fetch_pool = FetchPool(fetcher=used, concurrency=options.concurrency, deliver=mailbox.put)
            stack.callback(fetch_pool.close)
            ledger, frontier = self._ledger()
            coordinator = Coordinator(
                options,
                frontier=frontier,
                ledger=ledger,
                fetch_pool=fetch_pool,
                parse_pool=parse_pool,
                control=control,
                reporter=self._reporter,
                counts=self._counts,
                tuner=Tuner(cores=machine.cores()) if options.parse_procs is None else None,
                on_page=hooks.on_page,
                on_content=hooks.on_content,
                canonicalise=hooks.canonicalise,
            )
            logger.info("crawl.started seeds=%s is_resumed=%s", self._state.seeds, self._state.is_resumed)
            try:
                with control.listening():
                    ending = self._crawl(coordinator, ledger, fetch_pool)
            except BaseException as error:  # noqa: BLE001  # raised again, when all has ended
                failure = error
                is_interrupt = isinstance(error, KeyboardInterrupt)
                ending = Ending(reason=StopReason.INTERRUPTED if is_interrupt else StopReason.ERROR)
                fetch_pool.interrupt()
        control.finish(ending.reason)
        control.enter(Phase.WRITING)
        try:
            # what was committed is written even when something went wrong, unless it is the disk that failed
            result = self._write(ending, coordinator, frontier)
        except (CrawlrError, OSError):
            if failure is None:
                raise
        if failure is not None:
            raise failure
        self._reporter.finished(result.summary)
        return result

    def _crawl(self, coordinator: Coordinator, ledger: Ledger, fetch_pool: FetchPool) -> Ending:
        """The crawl itself, and after it the check of links to outside, when it is wanted."""
        options, control = self._options, self._control
        control.enter(Phase.CRAWLING, coordinator.monitor.fill)
        ending = coordinator.run()
        if not options.check_external or ending.reason not in (StopReason.FINISHED, StopReason.PAGE_BUDGET):
            return ending
        from crawlr.external import ExternalCheck

        check = ExternalCheck(
            options,
            journal=self._journal,
            scope=ledger.scope,
            fetch_pool=fetch_pool,
            control=control,
            reporter=self._reporter,
        )
        self._asked_outside = check.hosts
        control.enter(Phase.CHECKING, check.fill)
        stopped = check.run(deadline=None if options.max_time is None else self._began + options.max_time)
        return ending if stopped is None else Ending(reason=stopped.reason, signal=stopped.signal)

    def _ledger(self) -> tuple[Ledger, Frontier]:
        """The graph as it was left, or with the seeds alone."""
        options, state = self._options, self._state
        filters, canonicalise = self._hooks.filters, self._hooks.canonicalise
        scope = Scope(options.scope, include=options.include, exclude=options.exclude, filters=filters)
        for seed in state.seeds:
            scope.join(seed)
        identity = urls.make_identity(keep_params=options.keep_params, ignore=options.ignore_param)
        known = KnownUrls()

        def url_of(number: int) -> str:
            return ledger.url_of(number)  # which is made below; nothing waits before

        pages_before = self._journal.count_pages() if state.is_resumed else 0
        frontier = Frontier(
            known,
            rps=options.rps,
            per_host=options.per_host or options.concurrency,
            gated=options.robots,
            page_budget=None if options.max_pages is None else max(0, options.max_pages - pages_before),
            queue=queue_maker(options.order, known, url_of),
        )
        ledger = Ledger(
            known=known,
            frontier=frontier,
            journal=self._journal,
            scope=scope,
            identity=identity if canonicalise is None else _keyed(canonicalise),
            depth_limit=options.depth,
            max_redirects=options.max_redirects,
        )
        if state.is_resumed:
            ledger.load()
            self._counts.load(self._journal)
        for seed in state.seeds:
            ledger.plant(seed, is_seed=True)
        ledger.commit({"ended": None, "started_at": self._started_at, "depth": options.depth})
        return ledger, frontier

    def _write(self, ending: Ending, coordinator: Coordinator, frontier: Frontier) -> CrawlResult:
        """Note the ending in the journal, then write the outputs from it; a complete crawl needs its state no more."""
        options, journal = self._options, self._journal
        load = coordinator.monitor.load()
        elapsed = time.monotonic() - self._began
        complete = ending.reason is StopReason.FINISHED
        whole_elapsed = round(self._elapsed_before + elapsed, 3)
        journal.commit(meta={"ended": ending.reason, "elapsed_s": whole_elapsed})
        view = CrawlView(
            journal,
            stop_reason=ending.reason,
            depth_limit=options.depth,
            all_edges=options.edges == "all",
            has_sitemaps=options.sitemaps,
        )
        totals = view.totals()
        stats = map_head.stats(totals, size=self._counts.bytes, elapsed=whole_elapsed)
        accounting = stats_json.document(
            load=load,
            timeline=coordinator.monitor.timeline,
            sample=coordinator.sample,
            hosts=[*frontier.hosts.values(), *self._asked_outside],
            pages=stats,
            paused=self._control.paused,
        )
        written = outputs.write_all(
            view,
            options.outputs,
            head=self._head(ending, stats),
            columns=Columns(options.columns),
            stats=accounting,
        )
        for note in (note for each in written for note in each.notes):
            self._reporter.notice(note)
        if options.stats is not None:
            with files.whole(options.stats) as out:
                stats_json.write(out, accounting)
        found = self._check(view, ending)
        if complete:
            journal.unlink()
        logger.info("crawl.finished reason=%s pages=%d elapsed_s=%.3f", ending.reason, totals.pages, elapsed)
        summary = Summary(
            pages=totals.pages,
            ok=totals.ok,
            errors=totals.errors,
            skipped=totals.skipped,
            unique_urls=totals.unique_urls,
            edges=totals.edges,
            damaged=totals.damaged,
            elapsed=elapsed,
            out=tuple(written),
            complete=complete,
            stop_reason=ending.reason,
            signal=ending.signal,
            limit=limits.limiter(load) if load.stages.requests else None,  # a run that only asked links, or nothing
            first_error=self._counts.first_error,
            state=journal.path if journal.path and not complete else None,
            gates=found,
        )
        return CrawlResult(journal=journal, view=view, stats=stats, summary=summary)

    def _check(self, view: CrawlView, ending: Ending) -> tuple[Result, ...]:
        """What came of the gates, told to --junit too."""
        options = self._options
        if not options.gates and options.junit is None:
            return ()
        from crawlr import gates  # with all they need: only for who asks
        from crawlr.sinks import junit

        complete = ending.reason is StopReason.FINISHED
        found = gates.check(view, {"complete": complete, "stop_reason": ending.reason}, options.gates)
        if options.junit is not None:
            with files.whole(options.junit) as out:
                junit.write(out, found, name="crawlr")
        return found

    def _head(self, ending: Ending, stats: dict[str, object]) -> dict[str, object]:
        return map_head.head(
            seeds=list(self._state.seeds),
            started_at=self._started_at,
            finished_at=_now(),
            stop_reason=ending.reason,
            options=self._options.effective(),
            robots_txt=self._journal.meta().get("robots"),
            stats=stats,
        )


def _keyed(canonicalise: Callable[[str], str | None]) -> Callable[[str], str]:
    """The identity of seeds, redirects and sitemap URLs, which can't be dropped as a link can."""
    return lambda url: canonicalise(url) or url


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
