"""What a crawl knows of a single URL: its row, every page that leads there, the way from a seed, and its redirects.

From: the journal beneath a view. To: why. Main thread; reads only.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Callable, Iterator
from typing import NamedTuple

from crawlr.known import FAR, Flag
from crawlr.records import Outcome, SkipReason
from crawlr.view import CrawlView

__all__ = ["Lookup", "Referrer", "Row"]

_ROW = (
    "SELECT u.id, u.url, u.depth, u.parent, u.flags, p.status, p.outcome, p.error, p.links, p.millis, p.title,"
    " p.canonical, p.robots, p.redirect_to, p.redirect_url, p.attempts, s.reason, s.error, t.attempts FROM urls u"
    " LEFT JOIN pages p ON p.id = u.id LEFT JOIN skipped s ON s.id = u.id LEFT JOIN tries t ON t.id = u.id"
    " WHERE u.id = ?"
)


class Row(NamedTuple):
    """One known URL. Made by Lookup, read by why. From `status` on: of its record, None when it has none."""

    id: int
    url: str
    depth: int
    parent: int | None
    flags: int
    status: int | None
    outcome: str | None
    error: str | None
    links: int | None
    millis: int | None
    title: str | None
    canonical: str | None
    robots: str | None
    redirect_to: int | None
    redirect_url: str | None
    attempts: int | None
    skip_reason: str | None
    skip_error: str | None
    tries: int | None
    """How often a URL without a record was asked so far."""

    @property
    def is_page(self) -> bool:
        return self.outcome is not None

    @property
    def in_scope(self) -> bool:
        return bool(self.flags & Flag.IN_SCOPE)


class Referrer(NamedTuple):
    """A page that leads to a URL. Made by Lookup, read by why."""

    id: int
    is_redirect: bool
    kind: int | None
    """The byte of the link as in PageLinks.kinds; None: a redirect, or not kept."""
    text: str | None
    """None: a redirect, or not kept."""


class Lookup:
    """Asks one crawl. `identity` is the rule under which two spellings were one page in it."""

    def __init__(self, view: CrawlView, identity: Callable[[str], str]) -> None:
        self._query = view.journal.query
        self.identity = identity

    def row(self, number: int) -> Row:
        """The row of an id that the crawl gave out."""
        (values,) = self._query(_ROW, (number,))
        return Row(*values)

    def find(self, url: str) -> Row | None:
        """The row of `url`: by its very spelling, else by its identity; None when no way leads there."""
        rows = self._query("SELECT id FROM urls WHERE url = ? AND depth < ? ORDER BY id LIMIT 1", (url, FAR))
        for (number,) in rows:
            return self.row(number)
        wanted, identity = self.identity(url), self.identity
        found = self._query("SELECT id, url, key FROM urls WHERE depth < ? ORDER BY id", (FAR,))
        # a key of the journal that is another may come from a rule of the caller's own, which is not known here
        number = next((n for n, listed, key in found if key == wanted or identity(listed) == wanted), None)
        return None if number is None else self.row(number)

    def external(self, number: int) -> tuple[int | None, str, str, str | None] | None:
        """(status, outcome, class, error) by which a URL out of scope answered --check-external; None: not asked."""
        for found in self._query("SELECT status, outcome, class, error FROM external WHERE id = ?", (number,)):
            status, outcome, kind, error = found
            return status, outcome, kind, error
        return None

    def referrers(self, number: int) -> Iterator[Referrer]:
        """Every page with a link or a redirect to the id, links first, in the order of the ids."""
        wanted = array("I", (number,)).tobytes()
        # instr looks at bytes, so it may find the number across two others, but it passes over nearly every page
        rows = self._query(
            "SELECT p.id, p.targets, p.kinds, t.texts FROM pages p LEFT JOIN texts t ON t.id = p.id"
            " WHERE instr(p.targets, ?) ORDER BY p.id",
            (wanted,),
        )
        for source, blob, kinds, packed in rows:
            targets = array("I", blob)
            if number in targets:
                place = targets.index(number)
                text = None if packed is None else zlib.decompress(packed).decode().split("\n")[place]
                yield Referrer(source, False, None if kinds is None else kinds[place], text)
        for (source,) in self._query("SELECT id FROM pages WHERE redirect_to = ? ORDER BY id", (number,)):
            yield Referrer(source, True, None, None)

    def way_to(self, row: Row) -> list[Row]:
        """The shortest way from what has no parent (a seed, or a URL of a sitemap) to `row`, both included."""
        way = [row]
        seen = {row.id}
        while way[0].parent is not None and way[0].parent not in seen:
            seen.add(way[0].parent)
            way.insert(0, self.row(way[0].parent))
        return way

    def redirects_of(self, row: Row) -> tuple[list[Row], str | None]:
        """What a request of `row` was sent on to, one after the other, and the address where that leaves what is known
        (None: it does not). A way in a circle ends where it closes."""
        path: list[Row] = []
        seen = {row.id}
        while row.redirect_to is not None:
            row = self.row(row.redirect_to)
            path.append(row)
            if row.id in seen:
                return path, None
            seen.add(row.id)
        return path, row.redirect_url if row.redirect_to is None else None

    def origin_trouble(self, origin: str) -> tuple[str, str | None] | None:
        """(reason or outcome, error) by which every URL of `origin` ended without a request; None for none."""
        begin = f"{origin}/"
        rows = self._query(
            "SELECT coalesce(p.outcome, s.reason), coalesce(p.error, s.error), p.status FROM urls u"
            " LEFT JOIN pages p ON p.id = u.id LEFT JOIN skipped s ON s.id = u.id WHERE substr(u.url, 1, ?) = ?",
            (len(begin), begin),
        )
        found = None
        for reason, error, status in rows:
            if status is not None:
                return None  # it did answer
            if reason in _CLOSED:
                found = reason, error
        return found


_CLOSED = frozenset(
    (
        *(Outcome.DNS_ERROR, Outcome.REFUSED, Outcome.CONNECT_TIMEOUT, Outcome.TLS_ERROR),
        *(SkipReason.ROBOTS_UNREACHABLE, SkipReason.BLOCKED_ADDRESS),
    )
)
