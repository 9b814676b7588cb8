"""A whole crawl as one call, or as an object that can be held while it runs.

From: cli (run) and users (crawl, Crawl). To: run.Run, and back its result. The thread that runs it becomes the crawl's
main thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from urllib.parse import unquote, urlsplit

from crawlr import stopping
from crawlr.control import STATUS_LIMIT, Control
from crawlr.errors import CallbackError, OptionsError
from crawlr.fetch.pool import Fetcher
from crawlr.option_reading import mask_userinfo
from crawlr.options import Options
from crawlr.parse import urls
from crawlr.parse.start_method import Birthplace
from crawlr.records import PageRecord
from crawlr.reporting import Reporter, SilentReporter, Summary
from crawlr.result import CrawlResult
from crawlr.run import Hooks, Run
from crawlr.scope import origin_of
from crawlr.state import open_state
from crawlr.status import CrawlStatus
from crawlr.watching import Watch, asked_by_signal
from crawlr.web_page import WebPage

__all__ = ["Crawl", "CrawlResult", "crawl", "run"]


class Crawl:
    """One crawl that can be looked at and held while it runs.

    `run` is called once, in any thread, which becomes the crawl's main thread; all else may be called from any thread
    and at any time: before `run`, while it runs, and after it.
    """

    def __init__(
        self,
        seeds: str | Iterable[str] = (),
        *,
        on_page: Callable[[PageRecord], object] | None = None,
        on_content: Callable[[WebPage], object] | None = None,
        fetcher: Fetcher | str | None = None,
        canonicalise: Callable[[str], str | None] | None = None,
        filters: Sequence[Callable[[str], bool]] = (),
        stop: threading.Event | None = None,
        **options: object,
    ) -> None:
        """As `crawl`. OptionsError for a mistake; nothing is started, opened or asked yet."""
        engine: dict[str, object] = {"fetcher": fetcher} if isinstance(fetcher, str) else {}
        self._options = Options.make(seeds, **options, **engine)
        self._hooks = _hooks(on_page, None if isinstance(fetcher, str) else fetcher, canonicalise, filters, on_content)
        self._control = _control(stop)
        self._is_used = threading.Lock()

    def run(self) -> CrawlResult:
        """What was found, when every thread and process has ended. Raises what `crawl` does, OptionsError excepted;
        RuntimeError when it was called before."""
        if not self._is_used.acquire(blocking=False):
            raise RuntimeError("Crawl.run() was called before: a Crawl runs once; go on with resume=True in a new one")
        return _run(self._options, self._hooks, self._control, reporter=SilentReporter())

    def status(self, timeout: float = STATUS_LIMIT) -> CrawlStatus:
        """The crawl as it stands. Waits at most `timeout` seconds for its main thread, which may be in `on_page` or
        another function of yours; when it does not come to it, the crawl as it last stood."""
        return self._control.status(timeout)

    def pause(self) -> None:
        """Start no request from now on, retries and robots.txt included; what is in flight ends and is committed.

        Returns at once; a `status()` after it waits until it is so. `max_time` runs on, and a crawl that has nothing
        left to request ends.
        """
        self._control.pause()

    def resume(self) -> None:
        """Start requests again. Nothing happens when the crawl is not paused."""
        self._control.resume()

    def stop(self) -> None:
        """End the crawl as Ctrl-C does, paused or not: what is in flight is cut, outputs are written, `run` returns.

        Returns at once. Before `run` it makes that one end before its first request.
        """
        self._control.stop()


def crawl(
    seeds: str | Iterable[str] = (),
    *,
    on_page: Callable[[PageRecord], object] | None = None,
    on_content: Callable[[WebPage], object] | None = None,
    fetcher: Fetcher | str | None = None,
    canonicalise: Callable[[str], str | None] | None = None,
    filters: Sequence[Callable[[str], bool]] = (),
    stop: threading.Event | None = None,
    **options: object,
) -> CrawlResult:
    """Crawl from `seeds` and return what was found, when every thread and process has ended.

    `options` are those of the command line in snake_case, typed (`depth=3, rps=0, robots=False`). `on_page` is
    called in this thread with each PageRecord after it is committed; what it raises ends the crawl and is raised
    when all has ended. `on_content` likewise, with the WebPage of each page whose document was read: crawlr.WebSource
    says more. `fetcher` (crawlr.fetch.pool.Fetcher) takes the place of the network, robots.txt included,
    unless `fetcher` is a name of an engine. `canonicalise` gives the key under which spellings are one page, or None
    to drop a link; it runs in this thread. `filters` are functions url -> bool; a False puts a URL out of scope.
    `order` (an option) may be a function too: it gets a crawlr.KnownUrl when a URL begins to wait, and again when its
    depth falls, and gives a number; of one host the URL with the lowest is requested first. It runs in this thread.
    `stop` ends the crawl as Ctrl-C does, within a quarter of a second.

    OptionsError and StateError for a mistake, MachineError for a fault of this machine. KeyboardInterrupt cleans up and
    is raised again; no signal handlers are installed. To look at a crawl or hold it while it runs, make a `Crawl`.
    """
    return Crawl(
        seeds,
        on_page=on_page,
        on_content=on_content,
        fetcher=fetcher,
        canonicalise=canonicalise,
        filters=filters,
        stop=stop,
        **options,
    ).run()


def run(
    options: Options,
    *,
    reporter: Reporter,
    tell: Callable[[str], None] | None = None,
    on_page: Callable[[PageRecord], object] | None = None,
    fetcher: Fetcher | None = None,
    canonicalise: Callable[[str], str | None] | None = None,
    filters: Sequence[Callable[[str], bool]] = (),
    stop: threading.Event | None = None,
    catch_signals: bool = False,
    place: Birthplace | None = None,
) -> Summary:
    """Crawl for a person: as `crawl`, and the reporter is told; with `catch_signals` SIGINT and SIGTERM end it in
    order, and SIGUSR1 has its status printed by `tell`, which any thread may call. `place`: where parse processes are
    started, prepared by the caller; the crawl ends it.
    """
    result = _run(
        options,
        _hooks(on_page, fetcher, canonicalise, filters),
        _control(stop),
        reporter=reporter,
        tell=tell,
        catch_signals=catch_signals,
        place=place,
    )
    result.close()
    return result.summary


def _hooks(
    on_page: Callable[[PageRecord], object] | None,
    fetcher: Fetcher | None,
    canonicalise: Callable[[str], str | None] | None,
    filters: Sequence[Callable[[str], bool]],
    on_content: Callable[[WebPage], object] | None = None,
) -> Hooks:
    named = None if canonicalise is None else _named(canonicalise)
    return Hooks(on_page=on_page, on_content=on_content, fetcher=fetcher, canonicalise=named, filters=filters)


def _control(stop: threading.Event | None) -> Control:
    return Control(is_stopped=None if stop is None else stop.is_set)


def _run(
    options: Options,
    hooks: Hooks,
    control: Control,
    *,
    reporter: Reporter,
    tell: Callable[[str], None] | None = None,
    catch_signals: bool = False,
    place: Birthplace | None = None,
) -> CrawlResult:
    with ExitStack() as stack:
        watch = Watch(control.status, tell=tell)
        if options.status or catch_signals:
            stack.enter_context(watch)
        if catch_signals:
            stack.enter_context(asked_by_signal(watch.ask))
            # before the state is made: whoever leaves one says how to go on from it
            stack.enter_context(stopping.catch(control.mailbox.put))
        stack.enter_context(control.running())
        seeds, auth = _seeds(options)
        state = open_state(options, seeds)
        try:
            if options.status:
                watch.write_to(options.status_file)  # not before: it may be that of another crawl, which has the state
            run = Run(options, state, auth=auth, reporter=reporter, control=control, hooks=hooks)
            return run.run(place=place)
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
            raise OptionsError(f"URL: {mask_userinfo(seed)!r} is not an address of an http or https page")
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


def _named(canonicalise: Callable[[str], str | None]) -> Callable[[str], str | None]:
    """The caller's function, with its errors naming it and the URL."""

    def key(url: str) -> str | None:
        try:
            return canonicalise(url)
        except Exception as error:
            raise CallbackError(f"canonicalise={canonicalise!r} failed for {url}: {error!r}") from error

    return key
