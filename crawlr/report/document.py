"""The HTML page itself: the template, with what the sections found, the data of the long tables, and what guards it.

From: a view, the head of sitemap.json, the accounting. To: a text file. Main thread.

Text from the web goes two ways, and neither makes markup of it: through Jinja2, which escapes, and as JSON in a block
that no browser runs, from which the script makes text nodes. The Content-Security-Policy allows the page's own scripts
and styles by their hashes, and nothing else: no network, no frame, no form.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from msgspec import Struct

from crawlr.diff import Diff
from crawlr.records import ExternalClass
from crawlr.report.changes import Changes
from crawlr.report.findings import findings
from crawlr.report.link_graph import HEIGHT, WIDTH
from crawlr.report.performance import LIMITERS
from crawlr.report.redirects import MOST_HOPS
from crawlr.report.sections import Sections
from crawlr.report.words import FILTERS, plural
from crawlr.sinks.sitemap_json import dumps
from crawlr.sinks.source import Source
from crawlr.view import CrawlView

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["write"]

_HERE = Path(__file__).parent
_UPLOT = _HERE / "vendored" / "uplot"


class _Tab(Struct, frozen=True, kw_only=True):
    """One tab of the page. `count`: what stands beside its name."""

    key: str
    name: str
    count: int | None = None


def write(
    out: TextIO,
    view: CrawlView,
    *,
    head: Mapping[str, object],
    stats_document: Mapping[str, Any] | None = None,
    source: Source | None = None,
    diff: Diff | None = None,
) -> None:
    """Write the page. `head`: the fields of sitemap.json before its lists; `stats_document`: what --stats writes, None
    when the accounting is not known; `source`: what other outputs of this crawl have counted already; `diff`: what
    changed since an earlier crawl, which is then a tab of its own.
    """
    from markupsafe import Markup  # comes with jinja2, which takes some 40 ms to import: only for who wants the page

    sections = Sections(source or Source(view, head), stats_document)
    sections.gather()
    changes = None if diff is None else Changes(diff, sections.urls)
    if changes is not None:
        sections.tables["changes"] = changes.table()
    styles = [_read(_UPLOT / "uPlot.min.css"), _read(_HERE / "report.css")]
    scripts = [_licensed(), _read(_HERE / "report.js")]
    template = _environment().get_template("report.html")
    pieces = template.generate(
        policy=_policy(scripts, styles),
        styles=[Markup(text) for text in styles],  # noqa: S704  # our own files
        scripts=[Markup(text) for text in scripts],  # noqa: S704
        blocks=((name, map(Markup, pieces)) for name, pieces in _blocks(sections)),  # _json leaves no "<" in them
        tabs=_tabs(sections, changes),
        changes=changes,
        findings=findings(sections),
        head=sections.source.head,
        sections=sections,
        tables=sections.tables,
        limiters=LIMITERS,
        most_hops=MOST_HOPS,
        picture=(WIDTH, HEIGHT),
        uplot_version=_uplot_version(),
    )
    out.writelines(pieces)


def _tabs(sections: Sections, changes: Changes | None) -> list[_Tab]:
    duplicates, listed = sections.duplicates, sections.listed
    broken_outside = sections.external.kinds[ExternalClass.BROKEN]
    compared = listed.orphans + listed.missing + listed.unfit
    return [
        _Tab(key="overview", name="Overview"),
        *([] if changes is None else [_Tab(key="changes", name="Changes", count=changes.total)]),
        _Tab(key="broken", name="Broken", count=sections.broken.total),
        *([_Tab(key="external", name="Links out", count=broken_outside)] if sections.external.is_asked else []),
        _Tab(key="redirects", name="Redirects", count=sections.tables["redirects"].total),
        _Tab(key="weight", name="Speed and size"),
        _Tab(key="unasked", name="Not requested", count=sections.tables["unasked"].total),
        _Tab(key="duplicates", name="Duplicates", count=duplicates.body_groups + duplicates.title_groups),
        _Tab(key="listed", name="XML sitemap", count=compared if listed.is_asked else None),
        _Tab(key="structure", name="Structure"),
        _Tab(key="hosts", name="Hosts"),
        _Tab(key="performance", name="Performance"),
    ]


# ---------------------------------------------------------------- the data


def _blocks(sections: Sections) -> Iterator[tuple[str, Iterator[str]]]:
    """(name, JSON in pieces) of what the script reads; each is made when its turn comes."""
    for name, table in sections.tables.items():
        yield name, iter((_json(table.document()),))
    points, parse = sorted(sections.weight.points), sections.performance.parse_points
    plots = {
        "timeline": sections.performance.columns,
        "weight": [[size for size, _ in points], [time for _, time in points]],
        "parse": None if parse is None else [[size for size, _ in parse], [time for _, time in parse]],
    }
    yield "plots", iter((_json(plots),))
    yield "urls", _addresses(sections)


def _addresses(sections: Sections) -> Iterator[str]:
    before = "["
    for url in sections.urls.texts():
        yield before + _json(url)
        before = ","
    yield "]" if before == "," else "[]"


def _json(value: object) -> str:
    """JSON that may stand in a script element: HTML ends one at "</script", and knows "<!--" in it."""
    return dumps(value).replace("<", "\\u003c")


# ---------------------------------------------------------------- what stands around it


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _licensed() -> str:
    """The plot library with its licence, which has to go with every copy."""
    licence = _read(_UPLOT / "LICENSE").replace("*/", "* /")
    return f"/*! uPlot {_uplot_version()}\n{licence}*/\n{_read(_UPLOT / 'uPlot.iife.min.js')}"


def _uplot_version() -> str:
    """As the library's first line names it."""
    found = re.match(r"/\*! \S+ \(v([0-9.]+)\) \*/", _read(_UPLOT / "uPlot.iife.min.js"))
    assert found is not None
    return found[1]


def _policy(scripts: list[str], styles: list[str]) -> str:
    """The Content-Security-Policy of the page: CSP 3 §6.7.3.3 allows an inline element by the hash of its text."""

    def sources(texts: list[str]) -> str:
        hashes = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
        return " ".join(f"'sha256-{each}'" for each in hashes)

    return (
        f"default-src 'none'; script-src {sources(scripts)}; style-src {sources(styles)};"
        " base-uri 'none'; form-action 'none'"
    )


def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(FILTERS)
    environment.globals["plural"] = plural
    return environment
