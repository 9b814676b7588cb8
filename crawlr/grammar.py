"""The grammar of the command line: every option with its help, in groups as people look for them.

From: the words of the command. To: cli, as a namespace of texts; options reads the values. Pure.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import NoReturn

from crawlr import __version__
from crawlr.errors import OptionsError

__all__ = ["build_demo_parser", "build_diff_parser", "build_export_parser", "build_parser", "build_why_parser"]

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
  crawlr https://example.com -o map.json -o pages.csv -o edges.csv
                                                   tables, too
  crawlr export sitemap.json -o site.graphml       any output later, without crawling
  crawlr why https://example.com/old-page          where it was found, what became of it
  crawlr diff old.json sitemap.json                what changed since
  crawlr https://example.com --fail-on broken,slow=2s
                                                   status 10 when a link is broken

The ending of FILE says what is written: .json the whole map, .html a report to read,
.csv, .jsonl or .parquet a page a row (edges.csv and the like: a link a row), .xml a
sitemap for search engines, .graphml, .gexf or .dot a graph; .gz after it compresses.

DURATION is 10, 10s, 500ms, 2m or 1h. SIZE is bytes, or K, M or G of them, with or
without iB. RE is a Python regular expression, searched in the whole URL. GATES are
some of broken, errors, damaged, redirect-loop, robots, incomplete, slow=DURATION,
large=SIZE, deep=N.
Exit status: 0 done, 1 a fault of this machine, 2 wrong usage, 3 no page could be
had, 10 --fail-on found something, 130 or 143 interrupted."""

_DEMO = """\
Serves a small site on this machine, crawls it into crawlr-demo.json and
explains what was found."""

_EXPORT = """\
Makes further outputs of a crawl without crawling: from its sitemap.json or
sitemap.json.gz, or from the state (.crawl) that an unfinished crawl left. The
ending of each FILE after -o says what is written; crawlr --help lists them.
Kinds and texts of links are in a state alone."""

_WHY = """\
Explains one URL of a crawl: where it was found (the shortest way from a seed,
and every page that leads there), what it answered, where it redirects, which
rule kept it from being requested, and with which other spelling it is one page.
For a URL that was never seen: which rule would decide about it. URL may be a
path on the first seed's host. Nothing is requested."""

_DIFF = """\
Tells what changed between two crawls: pages new and gone, links broken and
mended, changed statuses, titles, canonicals, redirects and depths. OLD and NEW
are each a sitemap.json[.gz] or the state (.crawl) of a crawl. Nothing is
requested. GATES are those of a crawl (crawlr --help), which stop only at what
is worse in NEW than in OLD, and new, gone, status, title, canonical, redirect,
depth: any such change. Exit status: 0, or 10 when --fail-on found something."""


def build_parser() -> argparse.ArgumentParser:
    """The parser of the crawl command. Values stay text, options not given are absent: Options.make reads them."""
    parser = _Parser(
        prog="crawlr",
        usage="crawlr [OPTIONS] URL [URL ...]\n       crawlr export FILE -o FILE [-o FILE ...]\n"
        "       crawlr why URL [--in FILE]\n       crawlr diff OLD NEW [--fail-on GATES]\n       crawlr demo",
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
    add("--block-private", action="store_true", help="refuse addresses that are not public, on every hop")
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
    _add_outputs(add, default=" (sitemap.json)")
    add("--edges", metavar="WHICH", help="in-scope (default), or all: links to outside too")
    add("--check-external", action="store_true", help="ask once if links to outside lead somewhere")
    add("--resume", action="store_true", help="go on from the state kept beside --out")
    add("--fresh", action="store_true", help="throw that state away and begin anew")
    add("--durable", action="store_true", help="survive a power cut too, not only a killed process")
    add("--stats", metavar="FILE", help="what the time went on, as JSON")
    _add_gates(add, help="exit status 10 for any of these; repeatable")

    _add_look(parser)
    return parser


def build_demo_parser() -> argparse.ArgumentParser:
    """The parser of `crawlr demo`, which only asks how things are to look."""
    parser = _Parser(
        prog="crawlr demo",
        usage="crawlr demo [OPTIONS]",
        description=_DEMO,
        formatter_class=_Layout,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
        add_help=False,
    )
    _add_look(parser)
    return parser


def build_export_parser() -> argparse.ArgumentParser:
    """The parser of `crawlr export`; as for a crawl values stay text, and options not given are absent."""
    parser = _Parser(
        prog="crawlr export",
        usage="crawlr export FILE -o FILE [-o FILE ...] [OPTIONS]",
        description=_EXPORT,
        formatter_class=_Layout,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument("file", nargs="*", metavar="FILE", help=argparse.SUPPRESS)
    add = parser.add_argument_group("results").add_argument
    _add_outputs(add, default="")
    add = parser.add_argument_group("on the screen").add_argument
    add("-q", "--quiet", action="store_true", help="only what went wrong")
    _add_meta(add)
    return parser


def build_why_parser() -> argparse.ArgumentParser:
    """The parser of `crawlr why`."""
    parser = _Parser(
        prog="crawlr why",
        usage="crawlr why URL [--in FILE] [--json]",
        description=_WHY,
        formatter_class=_Layout,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument("url", nargs="*", metavar="URL", help=argparse.SUPPRESS)
    add = parser.add_argument_group("options").add_argument
    add("--in", dest="crawl_file", metavar="FILE", help="sitemap.json[.gz] or .crawl (sitemap.json)")
    add("--json", action="store_true", help="for programs")
    _add_meta(add)
    return parser


def build_diff_parser() -> argparse.ArgumentParser:
    """The parser of `crawlr diff`."""
    parser = _Parser(
        prog="crawlr diff",
        usage="crawlr diff OLD NEW [OPTIONS]",
        description=_DIFF,
        formatter_class=_Layout,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument("file", nargs="*", metavar="FILE", help=argparse.SUPPRESS)
    add = parser.add_argument_group("options").add_argument
    _add_gates(add, help="exit status 10 for any of these; repeatable")
    add("--report", metavar="FILE", help="the report of NEW (HTML) with what changed")
    add("--json", action="store_true", help="for programs")
    add("-q", "--quiet", action="store_true", help="only what --fail-on found, and what went wrong")
    _add_meta(add)
    return parser


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
            if not unknown.startswith("-"):
                return f"{unknown}: is not expected here; see {self.prog} --help"
            return f"{unknown}: there is no such option" + (
                f"; did you mean {near[0]}?" if near else f"; {self.prog} --help lists them"
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


_Add = Callable[..., object]
"""add_argument of a group."""


def _add_outputs(add: _Add, *, default: str) -> None:
    add("-o", "--out", action="append", metavar="FILE", help=f"- = stdout; repeatable{default}")
    add("--format", metavar="FORMAT", help="of every FILE, whatever its ending")
    add("--columns", metavar="NAMES", help="of tables: native (default), sf, advertools")


def _add_gates(add: _Add, *, help: str) -> None:  # noqa: A002  # argparse's word
    add("--fail-on", action="append", metavar="GATES", help=help)
    add("--junit", metavar="FILE", help="what --fail-on found, as JUnit's XML")


def _add_look(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("on the screen").add_argument
    add("-q", "--quiet", action="store_true", help="only what went wrong")
    add("-v", "--verbose", action="count", help="log what happens; -vv: each URL")
    add("--no-progress", action="store_true", help="no bar")
    add("--no-color", action="store_true", help="no colours, as with NO_COLOR in the environment")
    _add_meta(add)


def _add_meta(add: _Add) -> None:
    add("--version", action="version", version=f"crawlr {__version__}", help="print the version")
    add("-h", "--help", action="help", help="print this")
