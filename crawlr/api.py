"""A whole crawl as one call: puts the stages together, runs the coordinator, ends every thread and process, writes
the outputs.

From: cli (run) and users (crawl). To: the result. The calling thread becomes the crawl's main thread.
"""

from __future__ import annotations

import logging
import queue
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from types import TracebackType
from typing import Self
from urllib.parse import unquote, urlsplit

from crawlr import __version__, gates, limits, machine, outputs, stopping
from crawlr.coordinator import Coordinator, Ending
from crawlr.errors import CallbackError, CrawlrError, OptionsError
from crawlr.external import ExternalCheck
from crawlr.fetch.pool import Fetcher, FetchPool
from crawlr.formats import Columns, wants_texts
from crawlr.frontier import Frontier
from crawlr.gate_rules import Result
from crawlr.journal import Journal
from crawlr.known import KnownUrls
from crawlr.ledger import Ledger
from crawlr.options import Options
from crawlr.parse import urls
from crawlr.parse.pool import ParsePool
from crawlr.parse.worker import WorkerSettings
from crawlr.records import PageRecord, SkippedRecord, StopReason, UnvisitedRecord
from crawlr.reporting import Reporter, SilentReporter, Summary
from crawlr.scope import Scope, origin_of
from crawlr.sinks import files, junit, stats_json
from crawlr.state import OpenState, open_state
from crawlr.stats import Counts
from crawlr.tuning import Tuner, first_number
from crawlr.view import CrawlView, Totals

__all__ = ["CrawlResult", "crawl", "run"]

logger = logging.getLogger(__name__)


class CrawlResult:
    """What a crawl found, read lazily from its journal. `close` (or leaving a `with` block) gives the journal up.

    `pages`, `skipped`, `unvisited` are iterators of records in the order of the ids; `edges` of (source id, target id).
    Each access begins anew.
    """

    def __init__(self, *, journal: Journal, view: CrawlView, stats: dict[str, object], summary: Summary) -> None:
        self._journal = journal
        self._view = view
        self.stats = stats
        self.summary = summary

    @property
    def complete(self) -> bool:
        """True when nothing was left: neither a bound nor an interruption ended the crawl."""
        return self.summary.complete

    @property
    def stop_reason(self) -> StopReason:
        return self.summary.stop_reason

    @property
    def gates(self) -> tuple[Result, ...]:
        """What came of each gate of `fail_on`, in order; a `total` above 0 means that it was tripped."""
        return self.summary.gates

    @property
    def pages(self) -> Iterator[PageRecord]:
        return self._view.pages()

    @property
    def skipped(self) -> Iterator[SkippedRecord]:
        return self._view.skipped()

    @property
    def unvisited(self) -> Iterator[UnvisitedRecord]:
        return self._view.unvisited()

    @property
    def edges(self) -> Iterator[tuple[int, int]]:
        return ((source, target) for source, targets in self._view.edges() for target in targets)

    def close(self) -> None:
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def crawl(
    seeds: str | Iterable[str] = (),
    *,
    on_page: Callable[[PageRecord], object] | None = None,
    fetcher: Fetcher | str | None = None,
    canonicalise: Callable[[str], str | None] | None = None,
    filters: Sequence[Callable[[str], bool]] = (),
    stop: threading.Event | None = None,
    **options: object,
) -> CrawlResult:
    """Crawl from `seeds` and return what was found, when every thread and process has ended.

    `options` are those of the command line in snake_case, typed (`depth=3, rps=0, robots=False`). `on_page` is
    called in this thread with each PageRecord after it is committed; what it raises ends the crawl and is raised
    when all has ended. `fetcher` (crawlr.fetch.pool.Fetcher) takes the place of the network, robots.txt included,
    unless `fetcher` is a name of an engine. `canonicalise` gives the key under which spellings are one page, or None
    to drop a link; it runs in this thread. `filters` are functions url -> bool; a False puts a URL out of scope.
    `stop` ends the crawl as Ctrl-C does.

    OptionsError and StateError for a mistake, MachineError for a fault of this machine. KeyboardInterrupt cleans up and
    is raised again; no signal handlers are installed.
    """
    engine: dict[str, object] = {"fetcher": fetcher} if isinstance(fetcher, str) else {}
    made = Options.make(seeds, **options, **engine)
    return _run(
        made,
        reporter=SilentReporter(),
        on_page=on_page,
        fetcher=None if isinstance(fetcher, str) else fetcher,
        canonicalise=canonicalise,
        filters=filters,
        stop=stop,
        catch_signals=False,
    )


def run(
    options: Options,
    *,
    reporter: Reporter,
    on_page: Callable[[PageRecord], object] | None = None,
    fetcher: Fetcher | None = None,
    canonicalise: Callable[[str], str | None] | None = None,
    filters: Sequence[Callable[[str], bool]] = (),
    stop: threading.Event | None = None,
    catch_signals: bool = False,
) -> Summary:
    """Crawl for a person: as `crawl`, and the reporter is told; with `catch_signals` SIGINT and SIGTERM end it in
    order.
    """
    result = _run(
        options,
        reporter=reporter,
        on_page=on_page,
        fetcher=fetcher,
        canonicalise=canonicalise,
        filters=filters,
        stop=stop,
        catch_signals=catch_signals,
    )
    result.close()
    return result.summary


def _run(
    options: Options,
    *,
    reporter: Reporter,
    on_page: Callable[[PageRecord], object] | None,
    fetcher: Fetcher | None,
    canonicalise: Callable[[str], str | None] | None,
    filters: Sequence[Callable[[str], bool]],
    stop: threading.Event | None,
    catch_signals: bool,
) -> CrawlResult:
    seeds, auth = _seeds(options)
    state = open_state(options, seeds)
    try:
        return _Crawl(options, state, auth=auth, reporter=reporter).run(
            on_page=on_page,
            fetcher=fetcher,
            canonicalise=None if canonicalise is None else _named(canonicalise),
            filters=filters,
            stop=stop,
            catch_signals=catch_signals,
        )
    except BaseException:
        state.journal.close()
        raise


def _seeds(options: Options) -> tuple[tuple[str, ...], str | None]:
    """The addresses of the seeds, each once, and user and password when one was written into a seed."""
    auth = options.auth
    written: str | None = None
    found: dict[str, None] = {}
    for seed in options.seeds:
        url = urls.resolve(seed, seed)
        if url is None:
            shown = re.sub(r"(?<=://)[^/?#]*@", "***@", seed)
            raise OptionsError(f"URL: {shown!r} is not an address of an http or https page")
        parts = urlsplit(url)
        if parts.username is not None and auth is None:
            auth = written = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        found[urls.without_userinfo(url)] = None
    if written is not None and len({origin_of(url) for url in found}) > 1:
        # --auth goes to every seed's origin, which is what its user asked for; this one was meant for one of them
        raise OptionsError(
            "URL: user and password in one of several sites would go to all of them; crawl that one alone"
        )
    return tuple(found), auth


class _Crawl:
    """One run of one crawl, from its state file to its outputs."""

    def __init__(self, options: Options, state: OpenState, *, auth: str | None, reporter: Reporter) -> None:
        self._options = options
        self._state = state
        self._auth = auth
        self._reporter = reporter
        self._journal = state.journal
        self._counts = Counts()
        meta = self._journal.meta()
        self._started_at = str(meta.get("started_at") or _now())
        self._elapsed_before = float(str(meta.get("elapsed_s") or 0.0))
        self._began = time.monotonic()

    def run(
        self,
        *,
        on_page: Callable[[PageRecord], object] | None,
        fetcher: Fetcher | None,
        canonicalise: Callable[[str], str | None] | None,
        filters: Sequence[Callable[[str], bool]],
        stop: threading.Event | None,
        catch_signals: bool,
    ) -> CrawlResult:
        options = self._options
        mailbox: queue.SimpleQueue[object] = queue.SimpleQueue()
        failure: BaseException | None = None
        with ExitStack() as outer:
            if catch_signals:
                outer.enter_context(stopping.catch(mailbox.put))
            with ExitStack() as stack:
                # processes first: they come up while the frontier is loaded and robots.txt is asked
                parse_pool = ParsePool(
                    procs=_parse_procs(options), settings=_worker_settings(options), deliver=mailbox.put
                )
                stack.callback(parse_pool.close, kill=True)
                parse_pool.start()
                self._reporter.started(options, parse_procs=parse_pool.procs)
                used = fetcher
                if used is None:
                    used = _network(options, self._state.seeds, self._auth)
                    stack.callback(used.close)
                fetch_pool = FetchPool(fetcher=used, concurrency=options.concurrency, deliver=mailbox.put)
                stack.callback(fetch_pool.close)
                ledger, frontier = self._ledger(filters, canonicalise)
                coordinator = Coordinator(
                    options,
                    known=ledger.known,
                    frontier=frontier,
                    ledger=ledger,
                    fetch_pool=fetch_pool,
                    parse_pool=parse_pool,
                    mailbox=mailbox,
                    reporter=self._reporter,
                    counts=self._counts,
                    tuner=Tuner(cores=machine.cores()) if options.parse_procs is None else None,
                    on_page=on_page,
                    canonicalise=canonicalise,
                    is_stopped=None if stop is None else stop.is_set,
                )
                logger.info("crawl.started seeds=%s is_resumed=%s", self._state.seeds, self._state.is_resumed)
                try:
                    ending = coordinator.run()
                    if options.check_external and ending.reason in (StopReason.FINISHED, StopReason.PAGE_BUDGET):
                        check = ExternalCheck(
                            options,
                            journal=self._journal,
                            scope=ledger.scope,
                            fetch_pool=fetch_pool,
                            mailbox=mailbox,
                            is_stopped=(lambda: False) if stop is None else stop.is_set,
                            say=self._reporter.notice,
                        )
                        limit = options.max_time
                        stopped = check.run(deadline=None if limit is None else self._began + limit)
                        if stopped is not None:
                            ending = Ending(reason=stopped.reason, signal=stopped.signal)
                except BaseException as error:  # noqa: BLE001  # raised again, when all has ended
                    failure = error
                    is_interrupt = isinstance(error, KeyboardInterrupt)
                    ending = Ending(reason=StopReason.INTERRUPTED if is_interrupt else StopReason.ERROR)
                    fetch_pool.interrupt()
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

    def _ledger(
        self, filters: Sequence[Callable[[str], bool]], canonicalise: Callable[[str], str | None] | None
    ) -> tuple[Ledger, Frontier]:
        """The graph as it was left, or with the seeds alone."""
        options, state = self._options, self._state
        scope = Scope(options.scope, include=options.include, exclude=options.exclude, filters=filters)
        for seed in state.seeds:
            scope.join(seed)
        identity = urls.make_identity(keep_params=options.keep_params, ignore=options.ignore_param)
        known = KnownUrls()
        pages_before = self._journal.count_pages() if state.is_resumed else 0
        frontier = Frontier(
            known,
            rps=options.rps,
            per_host=options.per_host or options.concurrency,
            gated=options.robots,
            page_budget=None if options.max_pages is None else max(0, options.max_pages - pages_before),
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
        stats = _stats(totals, self._counts, whole_elapsed)
        accounting = stats_json.document(
            load=load, timeline=coordinator.monitor.timeline, frontier=frontier, pages=stats
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
        found = gates.check(view, {"complete": complete, "stop_reason": ending.reason}, options.gates)
        if options.junit is not None:
            with files.whole(options.junit) as out:
                junit.write(out, found, name="crawlr")
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
            limit=limits.limiter(load),
            first_error=self._counts.first_error,
            state=journal.path if journal.path and not complete else None,
            gates=found,
        )
        return CrawlResult(journal=journal, view=view, stats=stats, summary=summary)

    def _head(self, ending: Ending, stats: dict[str, object]) -> dict[str, object]:
        return {
            "format": "crawlr-sitemap/1",
            "generator": f"crawlr {__version__}",
            "seeds": list(self._state.seeds),
            "started_at": self._started_at,
            "finished_at": _now(),
            "complete": ending.reason is StopReason.FINISHED,
            "stop_reason": ending.reason,
            "options": self._options.effective(),
            "stats": stats,
        }


def _stats(totals: Totals, counts: Counts, elapsed: float) -> dict[str, object]:
    return {
        "pages": totals.pages,
        "ok": totals.ok,
        "errors": totals.errors,
        "damaged": totals.damaged,
        "skipped": totals.skipped,
        "unvisited": totals.unvisited,
        "unique_urls": totals.unique_urls,
        "edges": totals.edges,
        "bytes": counts.bytes,
        "elapsed_s": elapsed,
    }


def _named(canonicalise: Callable[[str], str | None]) -> Callable[[str], str | None]:
    """The caller's function, with its errors naming it and the URL."""

    def key(url: str) -> str | None:
        try:
            return canonicalise(url)
        except Exception as error:
            raise CallbackError(f"canonicalise={canonicalise!r} failed for {url}: {error!r}") from error

    return key


def _keyed(canonicalise: Callable[[str], str | None]) -> Callable[[str], str]:
    """The identity of seeds, redirects and sitemap URLs, which can't be dropped as a link can."""
    return lambda url: canonicalise(url) or url


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _parse_procs(options: Options) -> int:
    """--parse-procs, or what to begin with."""
    if options.parse_procs is not None:
        return options.parse_procs
    return first_number(cores=machine.cores(), memory=machine.memory())


def _worker_settings(options: Options) -> WorkerSettings:
    return WorkerSettings(
        parser=options.parser,
        follow=options.follow,
        keep_params=options.keep_params,
        ignore_param=options.ignore_param,
        agent=options.agent,
        max_body=options.max_body,
        parse_timeout=options.parse_timeout,
        parse_memory=options.parse_memory,
        texts=wants_texts(options.outputs, Columns(options.columns)),
    )


def _engine(name: str) -> Callable[..., Fetcher]:
    if name == "curl":
        from crawlr.fetch.curl import CurlFetcher

        return CurlFetcher
    from crawlr.fetch.http import HttpFetcher

    return HttpFetcher


def _network(options: Options, seeds: tuple[str, ...], auth: str | None) -> Fetcher:
    """The fetcher of --fetcher; secrets go to the seeds' origins only."""
    from crawlr.fetch.addresses import AddressPolicy

    try:
        return _engine(options.fetcher)(
            user_agent=options.user_agent,
            timeout=options.timeout,
            connect_timeout=options.connect_timeout,
            max_body=options.max_body,
            concurrency=options.concurrency,
            headers=options.header,
            cookie=options.cookie,
            auth=auth,
            secret_origins=frozenset(origin_of(seed) for seed in seeds),
            proxy=options.proxy,
            insecure=options.insecure,
            ca_bundle=options.ca_bundle,
            address_policy=AddressPolicy(
                block_private=options.block_private,
                seed_hosts=frozenset(urlsplit(seed).hostname or "" for seed in seeds),
            ),
        )
    except (ValueError, OSError) as error:
        raise OptionsError(str(error)) from error
