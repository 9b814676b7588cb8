"""The table of options: how each is typed, explained, read and completed. A new one is a row, and a field.

From: nobody. To: grammar (parsers and help), option_reading (values), config (files, variables), completion, man. Pure,
standard library only: --help is made of it.
"""

from __future__ import annotations

from crawlr import extract_rules, option_values
from crawlr.formats import Columns, Format
from crawlr.gate_rules import ACCEPTED, ACCEPTED_BY_DIFF, Name, is_of_a_diff, read_gates
from crawlr.option_row import Group, Kind, Row
from crawlr.option_values import DAY, LINK_KINDS

__all__ = ["ABOUT", "CONFIG", "CRAWL", "DIFF", "EXPORT", "HELP", "SCREEN", "WHY"]


def _row(
    flags: str,
    metavar: str | None,
    kind: Kind,
    help: str,  # noqa: A002  # as argparse calls it
    *,
    is_repeatable: bool = False,
    is_secret: bool = False,
    needs_trust: bool = False,
    stands_for: tuple[str, object] | None = None,
) -> Row:
    return Row(tuple(flags.split()), metavar, help, kind, is_repeatable, is_secret, needs_trust, stands_for)


def _one_of(*words: str) -> Kind:
    return Kind(f"{', '.join(words[:-1])} or {words[-1]}", option_values.choice(*words), tuple(map(str, words)))


def _parse_procs(given: object) -> int | None:
    return None if given == "auto" else option_values.whole(1, 256)(given)  # type: ignore[return-value]  # whole reads int


def _gates(given: object) -> tuple[str, ...]:
    return tuple(gate.text for gate in read_gates(given))


def _gates_of_a_diff(given: object) -> tuple[str, ...]:
    return tuple(gate.text for gate in read_gates(given, is_diff=True))


_DURATION_FORMS = "a duration such as 10, 10s, 500ms, 2m or 1h"
_COUNT = Kind("a whole number, 0 or more", option_values.whole(0))
_AT_LEAST_1 = Kind("a whole number, 1 or more", option_values.whole(1))
_TIME = Kind(_DURATION_FORMS, option_values.duration(longest=10_000 * DAY))
_WAIT = Kind(f"{_DURATION_FORMS}, up to 24h", option_values.duration(longest=DAY))
_DELAY = Kind(f"{_DURATION_FORMS}, up to 24h", option_values.duration(longest=DAY, zero=True))
_SIZE = Kind("a size in bytes, such as 65536, 512K, 32MiB or 1G", option_values.size)
_SWITCH = Kind("True or False", option_values.flag)
_PATTERNS = Kind("a Python regular expression", option_values.patterns)
_FILE = Kind("a file in a folder that exists", option_values.text, is_path=True)
_CRAWL_FILE = Kind("a sitemap.json[.gz], or the state of a crawl (.crawl)", option_values.text, is_path=True)
_GATES = Kind(ACCEPTED, _gates, tuple(name for name in Name if not is_of_a_diff(name)), is_list=True)
_GATES_OF_A_DIFF = Kind(ACCEPTED_BY_DIFF, _gates_of_a_diff, tuple(Name), is_list=True)

_ORDERS = ("breadth-first", "depth-first")
_ORDER = Kind(f"{' or '.join(_ORDERS)}; from Python also a function", option_values.order, _ORDERS)

_WHAT = Group(
    "what to crawl",
    (
        _row("-d --depth", "N", _COUNT, "at most N links away from a URL"),
        _row("--max-pages", "N", _AT_LEAST_1, "at most N URLs requested"),
        _row("--max-time", "DURATION", _TIME, "stop after that long"),
        _row("--scope", "WHERE", _one_of("host", "domain", "prefix", "any"), "host (default), domain, prefix or any"),
        _row("--same-host", None, _SWITCH, "the same as --scope host", stands_for=("scope", "host")),
        _row("--include", "RE", _PATTERNS, "only URLs with RE in them; repeatable", is_repeatable=True),
        _row("--exclude", "RE", _PATTERNS, "no URL with RE in it; repeatable, wins", is_repeatable=True),
        _row("--order", "ORDER", _ORDER, "breadth-first (default) or depth-first"),
        _row("--sitemaps", None, _SWITCH, "also the URLs that the site's sitemaps list"),
        _row(
            "-i --input-file",
            "FILE",
            Kind("a file of URLs, one a line, or - for standard input", option_values.names, is_path=True),
            "URLs from FILE, one a line; - = stdin",
            is_repeatable=True,
        ),
    ),
)
_POLITENESS = Group(
    "how fast, how politely",
    (
        _row(
            "-c --concurrency",
            "N",
            Kind("a whole number from 1 to 10,000", option_values.whole(1, 10_000)),
            "requests in flight, all hosts together (20)",
        ),
        _row("--per-host", "N", _AT_LEAST_1, "requests in flight to one host (--concurrency)"),
        _row(
            "--rps",
            "X",
            Kind("requests per second, such as 5 or 0.5; 0 = no limit", option_values.number(least=1e-4, most=1e6)),
            "requests a second to one host; 0 = no limit (5)",
        ),
        _row("--no-robots", None, _SWITCH, "neither ask for nor obey robots.txt", stands_for=("robots", False)),
        _row("--max-crawl-delay", "DURATION", _DELAY, "a longer Crawl-delay is cut to this (30s)"),
        _row(
            "-A --user-agent",
            "TEXT",
            Kind("a text that begins with the name for robots.txt, such as mybot/1.0", option_values.user_agent),
            "our name; robots.txt: what is before the /",
        ),
    ),
)
_NETWORK = Group(
    "network",
    (
        _row("--timeout", "DURATION", _WAIT, "of one request, from connect to last byte (30s)"),
        _row("--connect-timeout", "DURATION", _WAIT, "of its connection (5s)"),
        _row("--retries", "N", _COUNT, "further tries after a passing failure (2)"),
        _row("--max-redirects", "N", _COUNT, "redirects in a row (10)"),
        _row("--max-body", "SIZE", _SIZE, "what is longer is cut, sent or unpacked (32MiB)"),
        _row("--block-private", None, _SWITCH, "refuse addresses that are not public, on any hop"),
        _row(
            "-x --proxy",
            "URL",
            Kind("the URL of an http, https, socks4 or socks5 proxy, or env", option_values.proxy, ("env",)),
            "http, https or socks; env = by environment",
            needs_trust=True,
        ),
        _row("-k --insecure", None, _SWITCH, "do not verify certificates", needs_trust=True),
        _row(
            "--ca-bundle",
            "FILE",
            Kind("a file of certificates in PEM form", option_values.ca_bundle, is_path=True),
            "verify them by those in FILE (PEM)",
            needs_trust=True,
        ),
        _row("--fetcher", "ENGINE", _one_of("urllib3", "curl"), "urllib3, or curl from the extra 'fast' (urllib3)"),
    ),
)
_SIGNING_IN = Group(
    "signing in (sent to the origins of the URLs only)",
    (
        _row(
            "-H --header",
            "'Name: value'",
            Kind("'Name: value'", option_values.headers),
            "a further header; repeatable",
            is_repeatable=True,
            is_secret=True,
        ),
        _row(
            "-b --cookie",
            "'a=1; b=2'",
            Kind("'name=value; name2=value2'", option_values.cookie),
            "cookies",
            is_repeatable=True,
            is_secret=True,
        ),
        _row(
            "--auth",
            "USER:PASS",
            Kind("USER:PASS, or @FILE with that on its first line", option_values.auth),
            "Basic; @FILE or the variable CRAWLR_AUTH hide it",
            is_secret=True,
        ),
    ),
)
_PARSING = Group(
    "links and pages",
    (
        _row(
            "--follow",
            "KINDS",
            Kind(f"some of {','.join(LINK_KINDS)}", option_values.kinds, LINK_KINDS, is_list=True),
            "kinds of links (a,area,iframe,frame,refresh)",
        ),
        _row("--nofollow", "HOW", _one_of("page", "all", "ignore"), "page (default), all (of links too) or ignore"),
        _row("--keep-params", None, _SWITCH, "tracking parameters tell pages apart"),
        _row(
            "--ignore-param",
            "NAME",
            Kind("the name of a query parameter", option_values.names),
            "this parameter does not; repeatable",
            is_repeatable=True,
        ),
        _row("--parser", "ENGINE", _one_of("lxml", "lexbor"), "lxml, or lexbor from the extra 'fast' (lxml)"),
        _row(
            "--parse-procs",
            "N",
            Kind("auto, or a whole number from 1 to 256", _parse_procs, ("auto",)),
            "parser processes (auto)",
        ),
        _row("--parse-timeout", "DURATION", _WAIT, "of one page (10s)"),
        _row("--parse-memory", "SIZE", _SIZE, "of one parser process (1GiB)"),
    ),
)
_EXTRACTING = Group(
    "taking something out of each page",
    (
        _row(
            "--extract",
            "MODULE:FUNCTION",
            Kind(
                "module:function, or in Python a function of a module; it takes a ParsedDocument",
                extract_rules.function,
            ),
            "what your function returns for it",
            needs_trust=True,
        ),
        _row(
            "--extract-css",
            "NAME=SELECTOR",
            Kind(
                "NAME=SELECTOR, such as price=.price or next='a[rel=next]::attr(href)'",
                extract_rules.css,
                is_table=True,
            ),
            "texts by a CSS selector; repeatable",
            is_repeatable=True,
        ),
        _row(
            "--extract-xpath",
            "NAME=EXPR",
            Kind("NAME=EXPR, an XPath expression such as price=//span/@data-price", extract_rules.xpath, is_table=True),
            "texts by an XPath expression; repeatable",
            is_repeatable=True,
        ),
    ),
)
_OUTPUTS = Group(
    "outputs",
    (
        _row(
            "-o --out",
            "FILE",
            Kind("a file in a folder that exists, or - for standard output", option_values.paths, is_path=True),
            "- = stdout; repeatable; a crawl: sitemap.json",
            is_repeatable=True,
        ),
        _row("--format", "FORMAT", _one_of(*Format), "of every FILE, whatever its ending"),
        _row("--columns", "NAMES", _one_of(*Columns), "of tables: native (default), sf, advertools"),
        _row("--edges", "WHICH", _one_of("in-scope", "all"), "in-scope (default); all: links to outside too"),
        _row("--stats", "FILE", _FILE, "what the time went on, as JSON"),
        _row("--status", None, _SWITCH, "how it stands, each second: FILE.status.json"),
    ),
)
_QUESTIONS = Group(
    "checks",
    (
        _row("--check-external", None, _SWITCH, "ask once if links to outside lead somewhere"),
        _row("--fail-on", "GATES", _GATES, "exit status 10 for any of these; repeatable", is_repeatable=True),
        _row("--junit", "FILE", _FILE, "what --fail-on found, as JUnit's XML"),
    ),
)
_STATE = Group(
    "going on after an end",
    (
        _row("--resume", None, _SWITCH, "go on from the state kept beside --out"),
        _row("--fresh", None, _SWITCH, "throw that state away and begin anew"),
        _row("--durable", None, _SWITCH, "survive a power cut too, not only being killed"),
    ),
)
CRAWL = (_WHAT, _POLITENESS, _NETWORK, _SIGNING_IN, _PARSING, _EXTRACTING, _OUTPUTS, _QUESTIONS, _STATE)
"""What a crawl is asked to do: each row is an option of Options.make too."""
SCREEN = Group(
    "on the screen",
    (
        _row("-q --quiet", None, _SWITCH, "only what went wrong"),
        _row(
            "-v --verbose",
            None,
            Kind("0, 1 or 2", option_values.whole(0, 2)),
            "log what happens; -vv: each URL",
            is_repeatable=True,
        ),
        _row("--no-progress", None, _SWITCH, "no bar"),
        _row("--no-color", None, _SWITCH, "no colours, as with NO_COLOR in the environment"),
    ),
)
CONFIG = Group(
    "options from elsewhere",
    (
        _row(
            "--config",
            "FILE",
            Kind("a file of options in TOML", option_values.text, is_path=True),
            "options from FILE, in TOML (crawlr.toml)",
        ),
        _row("--no-config", None, _SWITCH, "none from a crawlr.toml in this folder"),
    ),
)
HELP = Group(
    "about crawlr",
    (
        _row("--version", None, _SWITCH, "print the version"),
        _row("-h --help", None, _SWITCH, "print this"),
    ),
)
ABOUT = Group(
    HELP.title,
    (
        _row(
            "--completion",
            "SHELL",
            _one_of("bash", "zsh", "fish"),
            "print completion for bash, zsh or fish",
        ),
        _row("--man", None, _SWITCH, "print the manual page, for man -l -"),
        *HELP.rows,
    ),
)
WHY = Group(
    "options",
    (
        _row("--in", "FILE", _CRAWL_FILE, "sitemap.json[.gz] or .crawl (sitemap.json)"),
        _row("--json", None, _SWITCH, "for programs"),
    ),
)
DIFF = Group(
    "options",
    (
        _row("--fail-on", "GATES", _GATES_OF_A_DIFF, "exit status 10 for any of these; repeatable", is_repeatable=True),
        _row("--junit", "FILE", _FILE, "what --fail-on found, as JUnit's XML"),
        _row("--report", "FILE", _FILE, "the report of NEW (HTML) with what changed"),
        _row("--json", None, _SWITCH, "for programs"),
        _row("-q --quiet", None, _SWITCH, "only what --fail-on found, and what went wrong"),
    ),
)
EXPORT = (
    Group("outputs", tuple(row for row in _OUTPUTS.rows if row.name in ("out", "format", "columns"))),
    Group("on the screen", tuple(row for row in SCREEN.rows if row.name == "quiet")),
)
