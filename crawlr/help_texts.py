"""What the help says beside the table of options: about each command, with examples, about values and exit statuses.

From: nobody. To: grammar (--help), man. Pure.
"""

from __future__ import annotations

__all__ = ["CRAWL", "DEMO", "DIFF", "EXAMPLES", "EXPORT", "WHY"]

CRAWL = """\
crawlr maps a web site: every page under the URLs, each fetched once, and every
link between them, into sitemap.json. A URL without a scheme gets https://;
localhost and loopback addresses get http://."""

EXAMPLES = """\
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
