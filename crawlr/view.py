"""A crawl as it can be read once it is over: records, lists and counts, streamed from the journal.

From: the journal. To: sinks and CrawlResult. Reads only; any thread, one at a time.

Which list a URL belongs to follows from the journal alone: it is a page when it has a record; skipped when a rule
refused it (a row says so, or its flags do); else unvisited, with the bound that ended the crawl or the depth limit;
out of scope it is external.
"""

from __future__ import annotations

import json
import zlib
from array import array
from collections.abc import Iterable, Iterator
from itertools import compress
from typing import Any, NamedTuple

from msgspec import Struct

from crawlr.journal import Journal
from crawlr.known import FAR, Flag
from crawlr.records import (
    Outcome,
    PageRecord,
    SkippedRecord,
    SkipReason,
    StopReason,
    UnvisitedReason,
    UnvisitedRecord,
)

__all__ = ["PAGE_FIELDS", "Address", "CrawlView", "PageLinks", "Totals"]

PAGE_FIELDS = PageRecord.__struct_fields__
_PAGES = (  # in that order
    "SELECT u.id, u.url, u.depth, u.parent, p.status, p.outcome, p.error, p.links, p.millis, p.bytes, p.content_type,"
    " p.encoding, p.title, p.canonical, p.robots, u.root, p.redirect_to, p.redirect_url, p.attempts,"
    " p.last_modified, u.flags & ?, e.value, e.error"
    " FROM pages p JOIN urls u ON u.id = p.id LEFT JOIN extracts e ON e.id = p.id ORDER BY p.id"
)
_LINKS = (
    "SELECT p.id, p.targets, p.kinds, t.texts FROM pages p LEFT JOIN texts t ON t.id = p.id"
    " WHERE p.targets IS NOT NULL ORDER BY p.id"
)
_BOUNDS = {
    StopReason.PAGE_BUDGET: UnvisitedReason.PAGE_BUDGET,
    StopReason.TIME_BUDGET: UnvisitedReason.TIME_BUDGET,
}


_ADDRESSES = (
    "SELECT u.id, u.url, u.flags & 1, p.status, p.outcome, p.bytes, s.reason FROM urls u"
    " LEFT JOIN pages p ON p.id = u.id LEFT JOIN skipped s ON s.id = u.id WHERE u.id IN "
)
_ASKED_AT_ONCE = 1000


MOST_NAMES = 200
"""Columns that a table may get by what was taken out of pages: more are no columns any more."""


class Address(NamedTuple):
    """What lies behind an id, in short. Made by CrawlView, read by sinks for the ends of edges."""

    url: str
    in_scope: bool
    status: int | None
    """None: no answer, or not a page."""
    outcome: str | None
    """None: not a page."""
    bytes: int
    reason: str | None
    """Why it was skipped, when its turn came and a rule forbade it."""


class PageLinks(Struct, frozen=True, kw_only=True):
    """The edges of one page, with what is known of each. Made by CrawlView, read by sinks."""

    source: int
    targets: array[int]
    kinds: bytes | None
    """A byte a target: bit 0 says that a link without nofollow leads there, bits 1-5 are the index in KINDS of its
    first link's kind. None: not kept."""
    texts: list[str] | None
    """The text of the first link to each target. None: not kept."""


class Totals(Struct, frozen=True, kw_only=True):
    """What the lists of a view hold, counted."""

    pages: int
    ok: int
    errors: int
    damaged: int
    skipped: int
    unvisited: int
    edges: int

    @property
    def unique_urls(self) -> int:
        return self.pages + self.skipped + self.unvisited


class CrawlView:
    """The lists of one crawl. Each is made anew at every call and streamed, in the order of the ids."""

    def __init__(
        self,
        journal: Journal,
        *,
        stop_reason: StopReason,
        depth_limit: int | None,
        all_edges: bool,
        has_sitemaps: bool = False,
    ) -> None:
        self._journal = journal
        self._bound = _BOUNDS.get(stop_reason, UnvisitedReason.INTERRUPTED)
        self._depth_limit = FAR if depth_limit is None else depth_limit
        self.has_external = all_edges
        self.has_sitemaps = has_sitemaps
        self._in_scope: bytes | None = None

    @property
    def journal(self) -> Journal:
        """What lies beneath, for crawlr.lookup, which asks about single URLs."""
        return self._journal

    def pages(self) -> Iterator[PageRecord]:
        """Every URL that has its final answer."""
        for row in self.page_rows():
            values = dict(zip(PAGE_FIELDS, row, strict=True))
            values["outcome"] = Outcome(values["outcome"])
            yield PageRecord(**values)

    def page_rows(self) -> Iterator[tuple[Any, ...]]:
        """The same as plain values in the order of PAGE_FIELDS: a record of one costs more than to write it."""
        in_scope = self._scope_map()
        has_sitemaps = self.has_sitemaps
        for row in self._journal.query(_PAGES, (Flag.IN_SITEMAP,)):
            *as_it_is, robots, root, redirect_to, redirect_url, attempts, last_modified, in_sitemap, extract, error = (
                row
            )
            yield (
                *as_it_is,
                tuple(robots.split()) if robots else (),
                root,
                redirect_to if redirect_to is not None and in_scope[redirect_to] else None,
                redirect_url,
                attempts,
                last_modified,
                bool(in_sitemap) if has_sitemaps else None,
                None if extract is None else json.loads(extract),
                error,
            )

    def skipped(self) -> Iterator[SkippedRecord]:
        """Every URL in scope that a rule forbade to request."""
        for number, url, depth, parent, flags, reason, error in self._without_page():
            why = self._skip_reason(flags, reason)
            if why is not None:
                yield SkippedRecord(id=number, url=url, depth=depth, parent=parent, reason=why, error=error)

    def unvisited(self) -> Iterator[UnvisitedRecord]:
        """Every URL in scope that a bound kept from being requested."""
        for number, url, depth, parent, flags, reason, _ in self._without_page():
            if self._skip_reason(flags, reason) is None:
                bound = UnvisitedReason.DEPTH_LIMIT if depth > self._depth_limit else self._bound
                yield UnvisitedRecord(id=number, url=url, depth=depth, parent=parent, reason=bound)

    def external(self) -> Iterator[tuple[int, str]]:
        """(id, url) of every link target out of scope."""
        if self.has_external:
            yield from self._journal.query(
                "SELECT id, url FROM urls WHERE flags & ? = 0 AND depth < ? ORDER BY id", (Flag.IN_SCOPE, FAR)
            )

    def external_answers(self) -> Iterator[tuple[int, str, int | None, str | None, str | None, str | None]]:
        """(id, url, status, outcome, class, error) of every link target out of scope; None from `status` on where
        --check-external did not ask."""
        if self.has_external:
            yield from self._journal.query(
                "SELECT u.id, u.url, e.status, e.outcome, e.class, e.error FROM urls u"
                " LEFT JOIN external e ON e.id = u.id WHERE u.flags & ? = 0 AND u.depth < ? ORDER BY u.id",
                (Flag.IN_SCOPE, FAR),
            )

    def sitemaps(self) -> Iterator[tuple[str, int, bool, str | None]]:
        """(url, level, whether its turn came, what was wrong with it) of every sitemap that was looked for; the level
        is 0, or one more than that of the index which names it."""
        for url, level, is_done, error in self._journal.query(
            "SELECT url, level, is_done, error FROM sitemaps ORDER BY level, url"
        ):
            yield url, level, bool(is_done), error

    def edges(self) -> Iterator[tuple[int, list[int]]]:
        """(source, targets) of every page with edges; the targets are those in scope, or all with --edges all."""
        in_scope = self._scope_map()
        for source, blob in self._journal.query("SELECT id, targets FROM pages WHERE targets IS NOT NULL ORDER BY id"):
            kept = array("I", blob).tolist()
            if not self.has_external and sum(map(in_scope.__getitem__, kept)) < len(kept):
                kept = [target for target in kept if in_scope[target]]
            if kept:
                yield source, kept

    def links(self) -> Iterator[PageLinks]:
        """As `edges`, with the kind of each link and, when the crawl kept them, the texts."""
        in_scope = self._scope_map()
        for source, blob, kinds, packed in self._journal.query(_LINKS):
            targets = array("I", blob)
            texts = None if packed is None else zlib.decompress(packed).decode().split("\n")
            kept = bytes(map(in_scope.__getitem__, targets))
            if self.has_external or 0 not in kept:
                yield PageLinks(source=source, targets=targets, kinds=kinds, texts=texts)
            elif 1 in kept:
                yield PageLinks(
                    source=source,
                    targets=array("I", compress(targets, kept)),
                    kinds=None if kinds is None else bytes(compress(kinds, kept)),
                    texts=None if texts is None else list(compress(texts, kept)),
                )

    def versions(self) -> Iterator[tuple[int, str | None, int | None]]:
        """(id, Last-Modified as the server sent it, 64-bit hash of the decoded body) of every page, in the order of
        `pages`."""
        yield from self._journal.query(
            "SELECT p.id, p.last_modified, p.body_hash FROM pages p JOIN urls u ON u.id = p.id ORDER BY p.id"
        )

    @property
    def has_extracts(self) -> bool:
        """Whether something was taken out of a page, or went wrong with that."""
        ((found,),) = self._journal.query("SELECT EXISTS (SELECT 1 FROM extracts)")
        return bool(found)

    def extract_names(self) -> tuple[str, ...]:
        """The names in what was taken out of pages, in order of appearance; none when one is no object, or when there
        are more than MOST_NAMES."""
        names: dict[str, None] = {}
        for (text,) in self._journal.query("SELECT value FROM extracts WHERE value IS NOT NULL ORDER BY id"):
            value = json.loads(text)
            if not isinstance(value, dict):
                return ()
            names.update(dict.fromkeys(value))
            if len(names) > MOST_NAMES:
                return ()
        return tuple(names)

    def addresses(self, ids: Iterable[int]) -> dict[int, Address]:
        """What lies behind each of these ids, in scope or not."""
        wanted = list(ids)
        found: dict[int, Address] = {}
        for start in range(0, len(wanted), _ASKED_AT_ONCE):
            some = wanted[start : start + _ASKED_AT_ONCE]
            marks = ",".join("?" * len(some))
            for number, url, in_scope, status, outcome, size, reason in self._journal.query(
                f"{_ADDRESSES}({marks})", some
            ):
                found[number] = Address(url, bool(in_scope), status, outcome, size or 0, reason)
        return found

    def in_scope(self) -> bytes:
        """A byte for each id that was given out, listed or not: 1 when it is in scope."""
        return self._scope_map()

    def totals(self) -> Totals:
        """The numbers of every list, by one pass over each."""
        query = self._journal.query
        ((pages, ok, damaged),) = query(
            "SELECT count(*), coalesce(sum(status BETWEEN 200 AND 399), 0),"
            " coalesce(sum(status BETWEEN 200 AND 299 AND outcome NOT IN ('ok', 'not_html')), 0) FROM pages"
        )
        skipped = sum(1 for _ in self.skipped())
        unvisited = sum(1 for _ in self.unvisited())
        edges = self._count_edges()
        return Totals(
            pages=pages,
            ok=ok,
            errors=pages - ok,
            damaged=damaged,
            skipped=skipped,
            unvisited=unvisited,
            edges=edges,
        )

    def _count_edges(self) -> int:
        blobs = (array("I", blob) for (blob,) in self._journal.query("SELECT targets FROM pages WHERE targets NOTNULL"))
        if self.has_external:
            return sum(map(len, blobs))
        counts = self._scope_map().__getitem__
        return sum(sum(map(counts, targets)) for targets in blobs)

    def _scope_map(self) -> bytes:
        """A byte for each id: 1 when it is in scope."""
        if self._in_scope is None:
            flags = self._journal.query("SELECT flags & ? FROM urls ORDER BY id", (Flag.IN_SCOPE,))
            self._in_scope = bytes(row[0] for row in flags)
        return self._in_scope

    def _without_page(self) -> Iterator[tuple[int, str, int, int | None, int, str | None, str | None]]:
        yield from self._journal.query(
            "SELECT u.id, u.url, u.depth, u.parent, u.flags, s.reason, s.error FROM urls u"
            " LEFT JOIN pages p ON p.id = u.id LEFT JOIN skipped s ON s.id = u.id"
            " WHERE p.id IS NULL AND u.flags & ? AND u.depth < ? ORDER BY u.id",
            (Flag.IN_SCOPE, FAR),
        )

    def _skip_reason(self, flags: int, reason: str | None) -> SkipReason | None:
        if reason is not None:
            return SkipReason(reason)
        if flags & Flag.TOO_LONG:
            return SkipReason.URL_TOO_LONG
        if flags & Flag.TRAP:
            return SkipReason.TRAP
        if not flags & Flag.FOLLOWED:
            return SkipReason.TRAP if flags & Flag.TRAPPED else SkipReason.NOFOLLOW
        return None
