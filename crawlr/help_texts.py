"""What the help says beside the table of options: about each command, with examples, about values and exit statuses.

From: nobody. To: grammar (--help), man. Pure.
"""

from __future__ import annotations

__all__ = [
    "CRAWL",
    "DEMO",
    "DIFF",
    "ELSEWHERE",
    "ENVIRONMENT",
    "EXAMPLES",
    "EXIT_STATUS",
    "EXPORT",
    "FILES",
    "FORMATS",
    "VALUES",
    "WHY",
    "epilog",
]

CRAWL = """\
crawlr maps a web site: every page under the URLs, each fetched once, and every
link between them, into sitemap.json. A URL without a scheme gets https://;
localhost and loopback addresses get http://."""

FORMATS = """\
The ending of FILE says what is written: .json the whole map, .html a report to
read, .csv, .jsonl or .parquet a page a row (edges.csv and the like: a link a
row), .xml a sitemap for search engines, .graphml, .gexf or .dot a graph; .gz
after it compresses."""

VALUES = """\
DURATION is 10, 10s, 500ms, 2m or 1h. SIZE is bytes, or K, M or G of them, with
or without iB. RE is a Python regular expression, searched in the whole URL.
KINDS are some of a,area,iframe,frame,refresh,link,img,script, or all. GATES are
some of broken,errors,damaged,redirect-loop,robots,incomplete,slow=DURATION,
large=SIZE,deep=N."""

ELSEWHERE = """\
Every option from --depth to --no-color can stand in crawlr.toml, too, without
its dashes, and URLs as urls = [...]; or in a variable such as CRAWLR_MAX_PAGES.
The command line goes before variables, those before the file; -v tells where
each value is from. --sitemaps=no unsays a switch."""

EXIT_STATUS = (
    ("0", "done; a bound that was reached counts as done"),
    ("1", "a fault of this machine or of crawlr, such as a full disk"),
    ("2", "wrong usage, or a state file of another crawl"),
    ("3", "no page answered with a status of 200-399"),
    ("10", "--fail-on found something"),
    ("130, 143", "interrupted by SIGINT, by SIGTERM; results are written"),
)
"""Status and meaning."""

FILES = (
    ("sitemap.json", "the map, unless --out says otherwise"),
    ("sitemap.json.crawl", "the state of an unfinished crawl, beside its output; --resume goes on from it"),
    ("crawlr.toml", "options for a crawl that is started in its folder, in TOML"),
)
"""Path and what it is."""

ENVIRONMENT = (
    ("CRAWLR_MAX_PAGES, CRAWLR_RPS, ...", "the option of that name; what is repeatable has one value a line"),
    ("CRAWLR_URLS", "URLs, one a line"),
    ("CRAWLR_AUTH", "as --auth, and not in the list of processes"),
    ("CRAWLR_CONFIG, CRAWLR_NO_CONFIG", "as --config, --no-config"),
    ("NO_COLOR", "no colours"),
)
"""Variable and meaning."""

EXAMPLES = (
    ("crawlr demo", "see it work: a small site on this machine"),
    ("crawlr https://example.com", "the whole host, politely"),
    ("crawlr https://example.com --depth 2", "links of links, no further"),
    ("crawlr https://example.com/docs/ --scope prefix", "only what lies under /docs/"),
    ("crawlr localhost:8000 --rps 0", "your own site, as fast as it can"),
    ("crawlr https://example.com --exclude '\\?'", "no URL with a query"),
    ("crawlr https://example.com --resume", "go on after an interruption"),
    ("crawlr https://example.com -o map.json -o pages.csv -o edges.csv", "tables, too"),
    ("crawlr https://example.com --extract-css h1=h1 -o pages.csv", "and the h1 of each page"),
    ("crawlr https://example.com --fail-on broken,slow=2s", "status 10 when a link is broken"),
    ("crawlr export sitemap.json -o site.graphml", "any output later, without crawling"),
    ("crawlr why https://example.com/old-page", "where it was found, what became of it"),
    ("crawlr diff old.json sitemap.json", "what changed since"),
)
"""Command and what it is for."""

DEMO = """\
Serves a small site on this machine, crawls it into crawlr-demo.json and
explains what was found."""

EXPORT = """\
Makes further outputs of a crawl without crawling: from its sitemap.json or
sitemap.json.gz, or from the state (.crawl) that an unfinished crawl left. The
ending of each FILE after -o says what is written; crawlr --help lists them.
Kinds and texts of links are in a state alone."""

WHY = """\
Explains one URL of a crawl: where it was found (the shortest way from a seed,
and every page that leads there), what it answered, where it redirects, which
rule kept it from being requested, and with which other spelling it is one page.
For a URL that was never seen: which rule would decide about it. URL may be a
path on the first seed's host. Nothing is requested."""

DIFF = """\
Tells what changed between two crawls: pages new and gone, links broken and
mended, changed statuses, titles, canonicals, redirects and depths. OLD and NEW
are each a sitemap.json[.gz] or the state (.crawl) of a crawl. Nothing is
requested. GATES are those of a crawl (crawlr --help), which stop only at what
is worse in NEW than in OLD, and new, gone, status, title, canonical, redirect,
depth: any such change. Exit status: 0, or 10 when --fail-on found something."""


def epilog() -> str:
    """What stands below the options of a crawl."""
    statuses = "\n".join(f"  {status:<10}{meaning}" for status, meaning in EXIT_STATUS)
    examples = "\n".join(
        f"  {command:<49}{says}" if len(command) < 49 else f"  {command}\n{'':51}{says}" for command, says in EXAMPLES
    )
    return f"{FORMATS}\n\n{VALUES}\n\n{ELSEWHERE}\n\nexit status:\n{statuses}\n\nexamples:\n{examples}"
