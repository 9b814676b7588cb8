"""The command: words to options, one crawl, an exit status. The only module that configures logging.

From: the command line, CRAWLR_AUTH. To: api.run with a Screen; stderr for what went wrong. Main thread. Loads nothing
heavy before a crawl is certain: `crawlr --help` has to be quick.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from crawlr import __version__
from crawlr.errors import CrawlrError, MachineError, OptionsError

if TYPE_CHECKING:
    from crawlr.progress import Screen
    from crawlr.reporting import Summary

__all__ = ["build_parser", "main"]

_RESERVED = ("export", "why", "diff")
_VERBS = ("demo", *_RESERVED)

_DESCRIPTION = """\
crawlr maps a web site: every page under the URLs, each fetched once, and every
link between them, into sitemap.json. A URL without a scheme gets https://;
localhost and loopback addresses get http://."""

_EXAMPLES = """\
examples:
  crawlr demo                                      see it work: a small site on this machine
  crawlr https://example.com                       the whole host, politely
  crawlr https://example.com --depth 2             links of links, no further
  crawlr https://example.com/docs/ --scope prefix  only what lies under /docs/
  crawlr localhost:8000 --rps 0                    your own site, as fast as it can
  crawlr https://example.com --exclude '\\?'        no URL with a query
  crawlr https://example.com --resume              go on after an interruption

DURATION is 10, 10s, 500ms, 2m or 1h. SIZE is bytes, or K, M or G of them, with or
without iB. RE is a Python regular expression, searched in the whole URL.
Exit status: 0 done, 1 a fault of this machine, 2 wrong usage, 3 no page could be
had, 130 or 143 interrupted."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command with these words (None: those of the process) and returns its exit status. Raises nothing."""
    words = list(sys.argv[1:] if argv is None else argv)
    _prepare_streams()
    try:
        return _run(words)
    except CrawlrError as error:
        print(f"crawlr: {error}", file=sys.stderr)
        return 1 if isinstance(error, MachineError) else 2
    except KeyboardInterrupt:  # before the crawl listens to signals, or after
        return 130
    except SystemExit as ended:  # --help and --version
        return ended.code if isinstance(ended.code, int) else 0
    finally:
        _flush_streams()


def _run(words: list[str]) -> int:
    if words and words[0] in _RESERVED:
        raise OptionsError(
            f"{words[0]!r} is kept for a command of a later version; for a host of that name write https://{words[0]}"
        )
    if words and words[0] == "demo":
        from crawlr import demo

        status: int = demo.main(words[1:])
        return status
    return _crawl(words)


def _crawl(words: list[str]) -> int:
    given = vars(build_parser().parse_intermixed_args(words))
    seeds = given.pop("seeds", [])
    is_quiet = given.pop("quiet", False)
    verbosity = given.pop("verbose", 0)
    has_progress = not given.pop("no_progress", False)
    has_colour = not given.pop("no_color", False)
    for seed in seeds:
        if seed in _VERBS:
            raise OptionsError(f"{seed!r}: a command comes first; for a host of that name write https://{seed}")
    _take_auth_from_environment(given)

    from crawlr.options import Options

    options = Options.make(seeds, **given)

    from crawlr import api
    from crawlr.progress import open_screen

    with open_screen(out=options.out, is_quiet=is_quiet, has_progress=has_progress, has_colour=has_colour) as screen:
        _configure_logging(screen, verbosity)
        summary = api.run(options, reporter=screen, catch_signals=True)
    return _status_of(summary)


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
        print(f"crawlr: no page answered with a status of 200-399{why}", file=sys.stderr)
        return 3
    return 0


def _take_auth_from_environment(given: dict[str, Any]) -> None:
    secret = os.environ.get("CRAWLR_AUTH")
    if not secret or "auth" in given:
        return
    if ":" not in secret and not secret.startswith("@"):
        raise OptionsError("CRAWLR_AUTH: its value (not shown) is not accepted; accepted: USER:PASS or @FILE")
    given["auth"] = secret


def _prepare_streams() -> None:
    """Streams that exist and never raise for a character they cannot encode."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:  # closed by who started us: crawlr >&-
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # lives as long as the process
        elif mode == "w" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _flush_streams() -> None:
    """Writes what is buffered. When nobody reads any more, the interpreter must not find that out again at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def _configure_logging(screen: Screen, verbosity: int) -> None:
    """Log records as lines above the bar: errors of crawlr always, with -v what it does, with -vv each URL."""
    import logging

    from crawlr.scrub import scrub

    class OnScreen(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            screen.note(scrub(self.format(record), limit=1_000))

    handler = OnScreen()
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger("crawlr")
    logger.handlers = [handler]  # not added: main may run more than once in a process
    logger.propagate = False
    logger.setLevel({0: logging.ERROR, 1: logging.INFO}.get(verbosity, logging.DEBUG))


class _Parser(argparse.ArgumentParser):
    """argparse with errors of one line that say what is accepted, raised as OptionsError."""

    def error(self, message: str) -> NoReturn:
        raise OptionsError(self._explained(message))

    def _explained(self, message: str) -> str:
        if found := re.match(r"argument (?:\S+/)?(-\S+?): expected .*argument", message):
            from crawlr.options import accepted

            action = self._option_string_actions[found[1]]
            return f"{found[1]}: a value is missing; accepted: {accepted(action.dest)}"
        if found := re.match(r"argument (?:\S+/)?(-\S+?): ignored explicit argument (.*)", message):
            return f"{found[1]}: takes no value, {found[2]} is given"
        if message.startswith("unrecognized arguments: "):
            from difflib import get_close_matches

            words = message.removeprefix("unrecognized arguments: ").split()
            unknown = next((word for word in words if word.startswith("-")), words[0]).partition("=")[0]
            near = get_close_matches(unknown, self._option_string_actions, n=1, cutoff=0.7)
            return f"{unknown}: there is no such option" + (
                f"; did you mean {near[0]}?" if near else "; crawlr --help lists them"
            )
        return message


class _Layout(argparse.RawDescriptionHelpFormatter):
    """`-d, --depth N` on every Python; before 3.13 argparse writes `-d N, --depth N`."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        return f"{', '.join(action.option_strings)} {action.metavar}"


def build_parser() -> argparse.ArgumentParser:
    """The parser of the crawl command. Values stay text, options not given are absent: Options.make reads them."""
    parser = _Parser(
        prog="crawlr",
        usage="crawlr [OPTIONS] URL [URL ...]\n       crawlr demo",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=_Layout,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument("seeds", nargs="*", metavar="URL", help=argparse.SUPPRESS)

    add = parser.add_argument_group("what to crawl").add_argument
    add("-d", "--depth", metavar="N", help="at most N links away from a URL")
    add("--max-pages", metavar="N", help="at most N URLs requested")
    add("--max-time", metavar="DURATION", help="stop after that long")
    add("--scope", metavar="WHERE", help="host (default), domain, prefix or any")
    add("--same-host", dest="scope", action="store_const", const="host", help="the same as --scope host")
    add("--include", action="append", metavar="RE", help="only URLs with RE in them; repeatable")
    add("--exclude", action="append", metavar="RE", help="no URL with RE in it; repeatable, wins")
    add("--sitemaps", action="store_true", help="also the URLs that the site's sitemaps list")
    add("-i", "--input-file", action="append", metavar="FILE", help="URLs from FILE, one a line; - = stdin")

    add = parser.add_argument_group("how fast, how politely").add_argument
    add("-c", "--concurrency", metavar="N", help="requests in flight, all hosts together (20)")
    add("--per-host", metavar="N", help="requests in flight to one host (--concurrency)")
    add("--rps", metavar="X", help="requests a second to one host; 0 = no limit (5)")
    add("--no-robots", action="store_true", help="neither ask for nor obey robots.txt")
    add("--max-crawl-delay", metavar="DURATION", help="a longer Crawl-delay is cut to this (30s)")
    add("-A", "--user-agent", metavar="TEXT", help="our name; robots.txt: what is before the /")

    add = parser.add_argument_group("requests").add_argument
    add("--timeout", metavar="DURATION", help="of one request, from connect to last byte (30s)")
    add("--connect-timeout", metavar="DURATION", help="of its connection (5s)")
    add("--retries", metavar="N", help="further tries after a passing failure (2)")
    add("--max-redirects", metavar="N", help="redirects in a row (10)")
    add("--max-body", metavar="SIZE", help="what is longer is cut, sent or unpacked (32MiB)")
    add("-x", "--proxy", metavar="URL", help="http, https or socks; env = by environment")
    add("-k", "--insecure", action="store_true", help="do not verify certificates")
    add("--ca-bundle", metavar="FILE", help="verify them by those in FILE (PEM)")
    add("--fetcher", metavar="ENGINE", help="urllib3, or curl from the extra 'fast' (urllib3)")

    add = parser.add_argument_group("signing in (sent to the origins of the URLs only)").add_argument
    add("-H", "--header", action="append", metavar="'Name: value'", help="a further header; repeatable")
    add("-b", "--cookie", action="append", metavar="'a=1; b=2'", help="cookies")
    add("--auth", metavar="USER:PASS", help="Basic; @FILE or the variable CRAWLR_AUTH hide it")

    add = parser.add_argument_group("links and pages").add_argument
    add("--follow", metavar="KINDS", help="a,area,iframe,frame,refresh; or link,img,script,all")
    add("--nofollow", metavar="HOW", help="page (default), all: of single links too, ignore")
    add("--keep-params", action="store_true", help="tracking parameters tell pages apart")
    add("--ignore-param", action="append", metavar="NAME", help="this parameter does not; repeatable")
    add("--parser", metavar="ENGINE", help="lxml, or lexbor from the extra 'fast' (lxml)")
    add("--parse-procs", metavar="N", help="parser processes (auto)")
    add("--parse-timeout", metavar="DURATION", help="of one page (10s)")
    add("--parse-memory", metavar="SIZE", help="of one parser process (1GiB)")

    add = parser.add_argument_group("results").add_argument
    add("-o", "--out", metavar="FILE", help="- = stdout, .gz is compressed (sitemap.json)")
    add("--edges", metavar="WHICH", help="in-scope (default), or all: links to outside too")
    add("--resume", action="store_true", help="go on from the state kept beside --out")
    add("--fresh", action="store_true", help="throw that state away and begin anew")
    add("--stats", metavar="FILE", help="what the time went on, as JSON")

    add = parser.add_argument_group("on the screen").add_argument
    add("-q", "--quiet", action="store_true", help="only what went wrong")
    add("-v", "--verbose", action="count", help="log what happens; -vv: each URL")
    add("--no-progress", action="store_true", help="no bar")
    add("--no-color", action="store_true", help="no colours, as with NO_COLOR in the environment")
    add("--version", action="version", version=f"crawlr {__version__}", help="print the version")
    add("-h", "--help", action="help", help="print this")
    return parser
