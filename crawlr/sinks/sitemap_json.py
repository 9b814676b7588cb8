"""sitemap.json: the whole crawl as one JSON object, streamed, whole or not there.

From: crawlr.view. To: a file that is written beside its place and renamed (crawlr.sinks.files). Main thread.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import TextIO

from crawlr.view import PAGE_FIELDS, CrawlView

__all__ = ["write"]

# JSON may hold these, a terminal that shows the file should not meet them: DEL, C1, line separators, directions,
# surrogates
_ESCAPED = re.compile("[\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_IF_KNOWN = ("in_sitemap", "extract", "extract_error")
"""Fields of a page that are left out where they are None."""
_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(", ", ": ")).encode


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def dumps(value: object) -> str:
    """`value` as JSON on one line, with the characters that could disturb a terminal escaped."""
    text = _encode(value)
    return text if text.isascii() and "\x7f" not in text else _ESCAPED.sub(_escape, text)


def write(out: TextIO, view: CrawlView, *, head: dict[str, object]) -> None:
    """Write the document: `head` are the fields before the lists, in order."""
    out.write("{\n")
    out.writelines(f"{dumps(name)}: {dumps(value)},\n" for name, value in head.items())
    _write_list(out, "pages", _pages(view))
    out.write(",\n")
    _write_list(
        out,
        "skipped",
        (
            {"id": r.id, "url": r.url, "depth": r.depth, "parent": r.parent, "reason": r.reason, "error": r.error}
            for r in view.skipped()
        ),
    )
    out.write(",\n")
    _write_list(
        out,
        "unvisited",
        (
            {"id": r.id, "url": r.url, "depth": r.depth, "parent": r.parent, "reason": r.reason}
            for r in view.unvisited()
        ),
    )
    out.write(",\n")
    if view.has_external:
        _write_list(out, "external", _external(view))
        out.write(",\n")
    if view.has_sitemaps:
        _write_list(
            out,
            "sitemaps",
            (
                {"url": url, "level": level, "read": is_read, "error": error}
                for url, level, is_read, error in view.sitemaps()
            ),
        )
        out.write(",\n")
    out.write('"edges": [')
    before = "\n"
    for source, targets in view.edges():
        listed = repr(targets)  # "[1, 2]": to put each source before its target is then one call
        out.write(f"{before}[{source},{listed[1:-1].replace(', ', f'],[{source},')}]")
        before = ",\n"
    out.write("\n]\n}\n")


def _pages(view: CrawlView) -> Iterator[dict[str, object]]:
    for row in view.page_rows():
        page = dict(zip(PAGE_FIELDS, row, strict=True))
        for name in _IF_KNOWN:
            if page[name] is None:
                del page[name]
        yield page


def _external(view: CrawlView) -> Iterator[dict[str, object]]:
    """What --check-external found stands in the row, where it asked."""
    for number, url, status, outcome, kind, error in view.external_answers():
        found = {} if kind is None else {"status": status, "outcome": outcome, "class": kind, "error": error}
        yield {"id": number, "url": url, **found}


def _write_list(out: TextIO, name: str, rows: Iterable[dict[str, object]]) -> None:
    out.write(f'"{name}": [')
    before = "\n"
    for row in rows:
        out.write(before + dumps(row))
        before = ",\n"
    out.write("\n]")
