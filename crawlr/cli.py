"""The command: words to options, one crawl, an exit status. The only module that configures logging.

From: the command line, with what config adds to it. To: api.run with a Screen; stderr for what went wrong. Main thread.
Loads nothing heavy before a crawl is certain: `crawlr --help` has to be quick.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from crawlr import grammar, verbs
from crawlr.errors import CrawlrError, MachineError, OptionsError, StateError
from crawlr.streams import flush_streams, prepare_streams, print_lines, say

if TYPE_CHECKING:
    from crawlr.config import Asked
    from crawlr.options import Options
    from crawlr.parse.start_method import Birthplace
    from crawlr.progress import Screen
    from crawlr.reporting import Summary

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command with these words (None: those of the process) and returns its exit status. Raises nothing."""
    words = list(sys.argv[1:] if argv is None else argv)
    frozen = gc.get_freeze_count()
    _ignore_questions()
    prepare_streams()
    try:
        return _run(words)
    except CrawlrError as error:
        say(f"crawlr: {error}", sys.stderr)
        return 1 if isinstance(error, MachineError) else 2
    except BrokenPipeError:  # only --out - lets one through: page lines are left out quietly
        say("crawlr: standard output was closed before the map was written", sys.stderr)
        return 1
    except KeyboardInterrupt:  # before the crawl listens to signals, or after
        return 130
    except SystemExit as ended:  # --help and --version
        return ended.code if isinstance(ended.code, int) else 0
    finally:
        flush_streams()
        if not frozen:
            gc.unfreeze()  # what _loading froze: in another program there may be garbage among it


def _run(words: list[str]) -> int:
    if words and words[0] in _VERBS:
        return _VERBS[words[0]](words[1:])
    given = grammar.parse("", words)
    if (printed := _printed(given)) is not None:
        print_lines(printed)
        return 0
    for seed in given.get("seeds", ()):
        if seed in _VERBS:
            raise OptionsError(f"{seed!r}: a command comes first; for a host of that name write https://{seed}")

    with _loading():
        from crawlr import config
        from crawlr.options import Options

    asked = config.gather(given, os.environ)
    look = _look(asked)
    if not look.is_quiet:
        _note_odd_seeds(given.get("seeds", ()))
    values = {name: value for name, value in asked.values.items() if name not in config.NOT_OF_A_CRAWL}
    urls: Any = asked.values.get(config.URLS, ())
    if "extract" in values:
        with suppress(FileNotFoundError):  # the working folder is gone
            sys.path.append(os.getcwd())  # last: nothing that lies here takes the place of an installed module
    try:
        options = Options.make(urls, **values)
        return _crawl(options, look, told=config.told(asked, options))
    except (OptionsError, StateError) as error:
        if not words and not asked.origins:
            raise OptionsError(f"{error}; see crawlr --help, or crawlr demo") from error
        raise config.placed(error, asked) from error


def _note_odd_seeds(seeds: Iterable[str]) -> None:
    """Says so when a host may be meant for something else. It is no error: there are hosts of all names."""
    for seed in seeds:
        if os.path.isfile(seed):
            say(f"note: {seed!r} is taken for a host, though it is a file here; --input-file reads URLs", sys.stderr)
        elif seed.isalpha():
            from difflib import get_close_matches

            meant = {"help": "crawlr --help", "man": "crawlr --man", "completion": "crawlr --completion SHELL"}.get(
                seed
            )
            near = get_close_matches(seed.lower(), _VERBS, n=1, cutoff=0.8)
            if meant or near:
                say(f"note: {seed!r} is taken for a host; did you mean {meant or f'crawlr {near[0]}'}?", sys.stderr)


def _printed(given: dict[str, Any]) -> Iterable[str] | None:
    """The lines that are to be printed instead of a crawl; None: it is a crawl."""
    if "completion" in given:
        from crawlr import completion

        return completion.lines(given["completion"])
    if given.get("man"):
        from crawlr import man

        return man.lines()
    return None


def _demo(words: list[str]) -> int:
    given = grammar.parse("demo", words)

    from crawlr import config, demo
    from crawlr.options import Options

    look = _look(config.gather(given, os.environ))
    out = "crawlr-demo.json"
    with demo.DemoSite() as site:
        options = Options.make(site.url, rps=0, fresh=True, out=out)
        if not look.is_quiet:
            say(f"A small site is served at {site.url} on this machine; nothing leaves it. The command is", sys.stdout)
            say(f"  crawlr {site.url} --rps 0 --fresh --out {out}\n", sys.stdout)
        status = _crawl(options, look)
    if status == 0 and not look.is_quiet:
        say(demo.explained(out), sys.stdout)
    return status


_VERBS = {"demo": _demo, "export": verbs.export_crawl, "why": verbs.explain_url, "diff": verbs.diff_crawls}


@contextmanager
def _loading() -> Iterator[None]:
    """For imports: what they make stays, and to look for garbage in it over and over takes a tenth of their time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.freeze()
            gc.enable()


_NO_LEAK_WARNING = "ignore:resource_tracker:UserWarning"
"""For multiprocessing's tracker, which gets our warning options: after a forced end it removes our semaphores, as it is
meant to, and nobody needs to read of that."""


def _crawl(options: Options, look: _Look, *, told: Iterable[str] = ()) -> int:
    """Crawls; `told` are lines for -v."""
    from crawlr.parse.start_method import birthplace, modules_of

    if _NO_LEAK_WARNING not in sys.warnoptions:
        sys.warnoptions.append(_NO_LEAK_WARNING)
    with closing(birthplace(modules=modules_of(options.parser))) as place:
        place.prepare()  # it loads the parser while what follows loads the crawler
        return _crawl_at(place, options, look, told=told)


def _crawl_at(place: Birthplace, options: Options, look: _Look, *, told: Iterable[str]) -> int:
    with _loading():
        import logging

        from crawlr import api, engines
        from crawlr.progress import open_screen

        engines.load_fetcher(options.fetcher)
    with (
        open_screen(
            is_stdout_taken="-" in options.out,
            is_quiet=look.is_quiet,
            has_progress=look.has_progress,
            has_colour=look.has_colour,
        ) as screen,
        _logging_to(screen, look.verbosity),
    ):
        logger = logging.getLogger(__name__)
        if logger.isEnabledFor(logging.INFO):
            for line in told:
                logger.info("%s", line)
        summary = api.run(options, reporter=screen, tell=screen.note, catch_signals=True, place=place)
    failed = verbs.tell_gates(summary.gates, is_quiet=look.is_quiet, is_stdout_taken="-" in options.out)
    return _status_of(summary) or failed


def _status_of(summary: Summary) -> int:
    """The exit status; says why on stderr when no page could be had."""
    from crawlr.records import StopReason
    from crawlr.scrub import scrub

    if summary.signal is not None:
        return 128 + summary.signal
    if summary.stop_reason is StopReason.ERROR:
        return 1
    if summary.ok == 0:
        why = f": {scrub(summary.first_error, limit=500)}" if summary.first_error else ""
        say(f"crawlr: no page answered with a status of 200-399{why}", sys.stderr)
        return 3
    return 0


class _Look(NamedTuple):
    is_quiet: bool
    verbosity: int
    has_progress: bool
    has_colour: bool


def _look(asked: Asked) -> _Look:
    """What concerns the screen alone; says on stderr which variables look misspelt."""
    given: dict[str, Any] = asked.values
    look = _Look(
        is_quiet=given.get("quiet", False),
        verbosity=given.get("verbose", 0),
        has_progress=not given.get("no_progress", False),
        has_colour=not given.get("no_color", False),
    )
    for note in asked.notes:
        if not look.is_quiet:
            say(f"note: {note}", sys.stderr)
    return look


def _ignore_questions() -> None:
    """SIGUSR1, which asks a crawl how it stands, ends no command of crawlr before or after it listens to it."""
    number = getattr(signal, "SIGUSR1", None)  # Windows has none
    if number is not None and signal.getsignal(number) is signal.SIG_DFL:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def _logging_to(screen: Screen, verbosity: int) -> Iterator[None]:
    """Log records as lines above the bar: errors of crawlr always, with -v what it does, with -vv each URL."""
    import logging

    from crawlr.scrub import scrub

    class OnScreen(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            screen.note(scrub(self.format(record), limit=1_000))

    handler = OnScreen()
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger("crawlr")
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    logger.setLevel({0: logging.ERROR, 1: logging.INFO}.get(verbosity, logging.DEBUG))
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]
