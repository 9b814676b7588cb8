"""A whole crawl as one call.

From: cli (run) and users (crawl). To: run.Run, and back its result. The calling thread becomes the crawl's main thread.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Sequence
from urllib.parse import unquote, urlsplit

from crawlr.errors import CallbackError, OptionsError
from crawlr.fetch.pool import Fetcher
from crawlr.options import Options
from crawlr.parse import urls
from crawlr.parse.start_method import Birthplace
from crawlr.records import PageRecord
from crawlr.reporting import Reporter, SilentReporter, Summary
from crawlr.result import CrawlResult
from crawlr.run import Run
from crawlr.scope import origin_of
from crawlr.state import open_state

__all__ = ["CrawlResult", "crawl", "run"]


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
    `order` (an option) may be a function too: it gets a crawlr.KnownUrl when a URL begins to wait, and again when its
    depth falls, and gives a number; of one host the URL with the lowest is requested first. It runs in this thread.
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
    place: Birthplace | None = None,
) -> Summary:
    """Crawl for a person: as `crawl`, and the reporter is told; with `catch_signals` SIGINT and SIGTERM end it in
    order. `place`: where parse processes are started, prepared by the caller; the crawl ends it.
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
        place=place,
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
    place: Birthplace | None = None,
) -> CrawlResult:
    seeds, auth = _seeds(options)
    state = open_state(options, seeds)
    try:
        return Run(options, state, auth=auth, reporter=reporter).run(
            on_page=on_page,
            fetcher=fetcher,
            canonicalise=None if canonicalise is None else _named(canonicalise),
            filters=filters,
            stop=stop,
            catch_signals=catch_signals,
            place=place,
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


def _named(canonicalise: Callable[[str], str | None]) -> Callable[[str], str | None]:
    """The caller's function, with its errors naming it and the URL."""

    def key(url: str) -> str | None:
        try:
            return canonicalise(url)
        except Exception as error:
            raise CallbackError(f"canonicalise={canonicalise!r} failed for {url}: {error!r}") from error

    return key
