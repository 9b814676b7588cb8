"""sitemap.json as a reader sees it: looked up by path, and checked against every rule that holds for any crawl.

Written from the description of the format alone; nothing of crawlr is imported.
"""

from __future__ import annotations

import heapq
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

OUTCOMES = frozenset(
    [
        "ok",
        "redirect",
        "http_error",
        "dns_error",
        "refused",
        "reset",
        "empty_reply",
        "connect_timeout",
        "read_timeout",
        "total_timeout",
        "tls_error",
        "protocol_error",
        "decode_error",
        "truncated",
        "too_large",
        "not_html",
        "parse_truncated",
        "parse_timeout",
        "parse_memory",
        "parser_crash",
        "bad_redirect",
        "redirect_loop",
        "blocked_address",
    ]
)
SKIP_REASONS = frozenset(
    ["robots_disallowed", "robots_unreachable", "nofollow", "blocked_address", "url_too_long", "trap"]
)
BOUNDS = frozenset(["depth_limit", "page_budget", "time_budget", "interrupted"])
STOP_REASONS = frozenset(["finished", "page_budget", "time_budget", "interrupted", "error"])
PAGE_FIELDS = frozenset(
    [
        "id",
        "url",
        "depth",
        "parent",
        "status",
        "outcome",
        "error",
        "links",
        "millis",
        "bytes",
        "content_type",
        "encoding",
        "title",
        "canonical",
        "robots",
        "root",
        "redirect_to",
        "redirect_url",
        "attempts",
    ]
)
REDIRECTS = frozenset([301, 302, 303, 307, 308])
Row = dict[str, Any]


class SiteMap:
    """One sitemap.json. Look-ups are by path and query on the first seed's origin, or by whole URL."""

    def __init__(self, document: Row) -> None:
        self.document = document
        parts = urlsplit(document["seeds"][0])
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self.urls: dict[int, str] = {
            row["id"]: row["url"] for row in self._rows("pages", "skipped", "unvisited", "external")
        }

    @classmethod
    def read(cls, path: Path) -> SiteMap:
        """Strict: no NaN, no duplicate keys, UTF-8."""
        return cls(
            json.loads(path.read_bytes().decode(), parse_constant=_no_constant, object_pairs_hook=_no_duplicates)
        )

    def __getitem__(self, key: str) -> Any:
        return self.document[key]

    def path(self, url: str) -> str:
        return url.removeprefix(self._origin) if url.startswith(self._origin + "/") else url

    def page(self, target: str) -> Row:
        """The page record of that target; fails when it is no page."""
        found = self._find("pages", target)
        assert found is not None, f"{target} is no page; pages: {sorted(self.pages)[:30]}, {self.why(target)}"
        return found

    def outcome(self, target: str) -> str:
        return str(self.page(target)["outcome"])

    def why(self, target: str) -> str | None:
        """The reason for which a URL is skipped or unvisited; None when it is a page or not known."""
        row = self._find("skipped", target) or self._find("unvisited", target)
        return row["reason"] if row else None

    @property
    def pages(self) -> dict[str, Row]:
        return {self.path(row["url"]): row for row in self.document["pages"]}

    @property
    def edges(self) -> set[tuple[str, str]]:
        return {
            (self.path(self.urls[source]), self.path(self.urls[target])) for source, target in self.document["edges"]
        }

    @property
    def reasons(self) -> dict[str, str]:
        return {self.path(row["url"]): row["reason"] for row in self._rows("skipped", "unvisited")}

    @property
    def summary(self) -> set[tuple[str, int | None, int]]:
        """What two crawls of the same site have in common: (path, status, depth) of each page."""
        return {(self.path(row["url"]), row["status"], row["depth"]) for row in self.document["pages"]}

    def _find(self, where: str, target: str) -> Row | None:
        return next((row for row in self.document[where] if target in (row["url"], self.path(row["url"]))), None)

    def _rows(self, *lists: str) -> Iterator[Row]:
        for name in lists:
            yield from self.document.get(name, [])


def violations(site_map: SiteMap) -> list[str]:
    """Every rule of the format that this file breaks, one line each; empty when it keeps them all."""
    document = site_map.document
    found = [
        *(f"{name} is {document.get(name)!r}" for name in ("seeds", "options", "stats") if not document.get(name)),
        *_head(document),
    ]
    if found:
        return found
    rows: dict[int, tuple[str, Row]] = {}
    urls: set[str] = set()
    for name in ("pages", "skipped", "unvisited", "external"):
        for row in document.get(name, []):
            if row["id"] in rows:
                found.append(f"id {row['id']} twice")
            if row["url"] in urls:
                found.append(f"{row['url']} twice")
            if "#" in row["url"] or "@" in urlsplit(row["url"]).netloc:
                found.append(f"{row['url']} has a fragment or a user")
            rows[row["id"]] = (name, row)
            urls.add(row["url"])
            found += _row(name, row)
    found += [
        f"parent of {row['url']} is no page"
        for name, row in rows.values()
        if name != "external" and row["parent"] is not None and rows.get(row["parent"], ("",))[0] != "pages"
    ]
    found += [
        f"root of {row['url']} is unknown" for name, row in rows.values() if name == "pages" and row["root"] not in rows
    ]
    found += _numbers(document, rows)
    found += _edges(document, rows)
    if not found:
        found += _depths(document, rows)
    return found


def _head(document: Row) -> Iterator[str]:
    if document.get("format") != "crawlr-sitemap/1":
        yield f"format is {document.get('format')!r}"
    if not re.fullmatch(r"crawlr \S+", str(document.get("generator"))):
        yield f"generator is {document.get('generator')!r}"
    for name in ("started_at", "finished_at"):
        if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", str(document.get(name))):
            yield f"{name} is {document.get(name)!r}"
    if document.get("stop_reason") not in STOP_REASONS:
        yield f"stop_reason is {document.get('stop_reason')!r}"
    if document.get("complete") is not (document.get("stop_reason") == "finished"):
        yield f"complete is {document.get('complete')!r} with {document.get('stop_reason')!r}"
    for name in ("pages", "skipped", "unvisited", "edges"):
        if not isinstance(document.get(name), list):
            yield f"{name} is no list"


def _row(name: str, row: Row) -> Iterator[str]:
    url = row["url"]
    if name == "external":
        return
    if not isinstance(row["depth"], int) or row["depth"] < 0:
        yield f"depth of {url} is {row['depth']!r}"
    if name == "skipped" and (row["reason"] not in SKIP_REASONS or "error" not in row):
        yield f"{url} is skipped as {row!r}"
    if name == "unvisited" and row["reason"] not in BOUNDS:
        yield f"{url} is unvisited as {row['reason']!r}"
    if name != "pages":
        return
    if not set(row) >= PAGE_FIELDS:
        yield f"{url} lacks {sorted(PAGE_FIELDS - set(row))}"
    status, outcome = row["status"], row["outcome"]
    if outcome not in OUTCOMES:
        yield f"outcome of {url} is {outcome!r}"
    is_redirect = outcome in ("redirect", "redirect_loop", "bad_redirect")
    if is_redirect != (status in REDIRECTS):
        yield f"{url} is {outcome} with status {status}"
    if (outcome == "http_error") != (status is not None and status >= 400):
        yield f"{url} is {outcome} with status {status}"
    if status is None and (outcome == "ok" or row["error"] is None):
        yield f"{url} is {outcome} without a status, error {row['error']!r}"
    if outcome in ("redirect_loop", "redirect") and row["redirect_url"] is None:
        yield f"{url} is {outcome} and leads nowhere"
    if is_redirect and row["links"]:
        yield f"{url} is {outcome} with {row['links']} links"
    for field in ("links", "millis", "bytes", "attempts"):
        if not isinstance(row[field], int) or row[field] < 0:
            yield f"{field} of {url} is {row[field]!r}"
    if row["robots"] != sorted({word.lower() for word in row["robots"]}):
        yield f"robots of {url} is {row['robots']!r}"


def _numbers(document: Row, rows: dict[int, tuple[str, Row]]) -> Iterator[str]:
    pages = document["pages"]
    good = sum(1 for row in pages if row["status"] is not None and 200 <= row["status"] < 400)
    expected = {
        "pages": len(pages),
        "ok": good,
        "errors": len(pages) - good,
        "skipped": len(document["skipped"]),
        "unique_urls": sum(1 for name, _ in rows.values() if name != "external"),
        "edges": len(document["edges"]),
    }
    for name, number in expected.items():
        if document["stats"].get(name) != number:
            yield f"stats.{name} is {document['stats'].get(name)!r}, the lists say {number}"
    if not isinstance(document["stats"].get("elapsed_s"), int | float):
        yield "stats.elapsed_s is missing"


def _edges(document: Row, rows: dict[int, tuple[str, Row]]) -> Iterator[str]:
    seen: set[tuple[int, int]] = set()
    for source, target in document["edges"]:
        if source not in rows or target not in rows or (source, target) in seen or source == target:
            yield f"edge {source} -> {target} is unknown, double or a loop"
            continue
        seen.add((source, target))
        name, row = rows[source]
        if name != "pages" or row["outcome"] == "http_error" or row["status"] is None or row["status"] in REDIRECTS:
            yield f"edge from {row['url']}, which is {name} {row.get('outcome')}"
    for row in document["pages"]:
        if row["redirect_to"] is not None and row["redirect_to"] not in rows:
            yield f"redirect_to of {row['url']} is unknown"


def _depths(document: Row, rows: dict[int, tuple[str, Row]]) -> Iterator[str]:
    """Depth is the shortest distance over edges (1) and redirects (0) from what has no parent."""
    ways: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for source, target in document["edges"]:
        ways[source].append((target, 1))
    for row in document["pages"]:
        if row["redirect_to"] is not None:
            ways[row["id"]].append((row["redirect_to"], 0))
    steps = {(source, target, step) for source, found in ways.items() for target, step in found}
    listed = {key: row for key, (name, row) in rows.items() if name != "external"}
    depths: dict[int, int] = {}
    heap = [(0, key) for key, row in listed.items() if row["parent"] is None]
    while heap:
        depth, key = heapq.heappop(heap)
        if key in depths:
            continue
        depths[key] = depth
        for target, step in ways[key]:
            heapq.heappush(heap, (depth + step, target))
    for key, row in listed.items():
        if row["depth"] != depths.get(key):
            yield f"depth of {row['url']} is {row['depth']}, the edges say {depths.get(key)}"
        parent = row["parent"]
        if parent is not None and (parent, key, row["depth"] - listed[parent]["depth"]) not in steps:
            yield f"parent of {row['url']} is {listed[parent]['url']}, which does not lead there at that depth"


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> Row:
    keys = [key for key, _ in pairs]
    assert len(set(keys)) == len(keys), f"a key twice in {keys}"
    return dict(pairs)
