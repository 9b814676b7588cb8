"""What changed between two crawls: pages new and gone, links broken and mended, and what pages say of themselves.

From: two views with their heads (crawlr.export.open_crawl). To: cli (lines, JSON), gates and the report. Main thread.

Pages are one by their identity, since ids, order and spelling differ from crawl to crawl. Both crawls are put into one
table of a temporary file of SQLite's, so two crawls of any size need no more memory than one page.

A crawl that was not finished proves nothing about what it did not ask for: a page that NEW only did not come to is gone
from the list of pages, and said to be unvisited; a link that could not be looked at again is not called mended.
"""

# ruff: noqa: S608  # every piece of the SQL here is a constant of this module

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from itertools import islice
from typing import NamedTuple

from crawlr.errors import MachineError
from crawlr.parse import urls
from crawlr.records import Outcome
from crawlr.view import CrawlView

__all__ = ["BrokenLink", "Diff", "Entry", "Pair", "What", "compare", "is_broken"]

_TABLES = """
CREATE TABLE entries (side INTEGER NOT NULL, key TEXT NOT NULL, id INTEGER NOT NULL, url TEXT NOT NULL,
                      state TEXT NOT NULL, reason TEXT, status INTEGER, outcome TEXT, error TEXT, title TEXT,
                      canonical TEXT, redirect_url TEXT, depth INTEGER NOT NULL, millis INTEGER, bytes INTEGER,
                      PRIMARY KEY (side, key)) WITHOUT ROWID;
CREATE TABLE ids (side INTEGER NOT NULL, id INTEGER NOT NULL, key TEXT NOT NULL, PRIMARY KEY (side, id)) WITHOUT ROWID;
CREATE TABLE links (side INTEGER NOT NULL, target TEXT NOT NULL, source TEXT NOT NULL,
                    PRIMARY KEY (side, target, source)) WITHOUT ROWID;
"""
_FIELDS = "url, state, reason, status, outcome, error, title, canonical, redirect_url, depth, millis, bytes"
_OLD, _NEW = 0, 1
_GROUP = 5000


class What(StrEnum):
    """What of a page can change."""

    STATUS = "status"
    """The status, or how it ended where there is none or the body is not whole."""
    TITLE = "title"
    CANONICAL = "canonical"
    REDIRECT = "redirect"
    DEPTH = "depth"

    def of(self, entry: Entry) -> str | int | None:
        """What this is for one URL of one crawl."""
        value: str | int | None = getattr(entry, _ATTRIBUTES[self])
        return value


_ATTRIBUTES = {
    What.STATUS: "answer",
    What.TITLE: "title",
    What.CANONICAL: "canonical",
    What.REDIRECT: "redirect_url",
    What.DEPTH: "depth",
}
_CHANGED = {
    # a page that is none any more has no title: that is told once, as its status
    What.STATUS: "o.status IS NOT n.status OR o.outcome IS NOT n.outcome",
    What.TITLE: "o.title IS NOT n.title AND o.status BETWEEN 200 AND 299 AND n.status BETWEEN 200 AND 299",
    What.CANONICAL: "o.canonical IS NOT n.canonical AND o.status BETWEEN 200 AND 299 AND n.status BETWEEN 200 AND 299",
    What.REDIRECT: "o.redirect_url IS NOT n.redirect_url",
    What.DEPTH: "o.depth <> n.depth",
}


class Entry(NamedTuple):
    """One URL of one crawl. Made by Diff, read by cli, gates and the report."""

    url: str
    state: str
    """page, skipped or unvisited"""
    reason: str | None
    """Of a URL that is no page."""
    status: int | None
    outcome: str | None
    error: str | None
    title: str | None
    canonical: str | None
    redirect_url: str | None
    depth: int
    millis: int | None
    bytes: int | None

    @property
    def answer(self) -> str:
        """How it answered, in a word or two: "200", "404", "refused", "200 truncated"."""
        if self.state != "page":
            return f"{self.state}: {self.reason}"
        if self.status is None:
            return str(self.outcome)
        is_told = self.outcome in (Outcome.OK, Outcome.REDIRECT, Outcome.HTTP_ERROR, Outcome.NOT_HTML)
        return str(self.status) if is_told else f"{self.status} {self.outcome}"


Pair = tuple[Entry, Entry]
"""A URL in OLD and in NEW."""


class BrokenLink(NamedTuple):
    """A link or redirect from a page to something that is broken (or was). Made by Diff, read likewise."""

    source: str
    target: Entry
    """In NEW when it broke, in OLD when it was mended."""
    now: str = ""
    """Of a mended link: what became of it."""


def is_broken(status: int | None, outcome: str | None) -> bool:
    """True for an answer that a link should not lead to: an error, none at all, a redirect that leads nowhere."""
    return status is None or status >= 400 or outcome in (Outcome.REDIRECT_LOOP, Outcome.BAD_REDIRECT)


class Diff:
    """Two crawls side by side. Everything is made anew at each call, in the order of the identities."""

    def __init__(self, db: sqlite3.Connection, old_head: Mapping[str, object], new_head: Mapping[str, object]) -> None:
        self._db = db
        self.old_head = old_head
        self.new_head = new_head

    def new_pages(self) -> Iterator[tuple[Entry | None, Entry]]:
        """Pages of NEW that are no pages of OLD, each behind what it was there (None: not known)."""
        for row in self._db.execute(
            f"SELECT {_columns('n')}, {_columns('o')} FROM entries n"
            " LEFT JOIN entries o ON o.side = 0 AND o.key = n.key"
            " WHERE n.side = 1 AND n.state = 'page' AND o.state IS NOT 'page' ORDER BY n.key"
        ):
            new, old = _two(row)
            assert new is not None
            yield old, new

    def gone(self) -> Iterator[tuple[Entry, Entry | None]]:
        """Pages of OLD that are no pages of NEW, each before what it is there (None: not known)."""
        for row in self._db.execute(
            f"SELECT {_columns('o')}, {_columns('n')} FROM entries o"
            " LEFT JOIN entries n ON n.side = 1 AND n.key = o.key"
            " WHERE o.side = 0 AND o.state = 'page' AND n.state IS NOT 'page' ORDER BY o.key"
        ):
            old, new = _two(row)
            assert old is not None
            yield old, new

    def changed(self, what: What) -> Iterator[Pair]:
        """Pages of both in which `what` differs."""
        for row in self._db.execute(
            f"SELECT {_columns('o')}, {_columns('n')} FROM entries o JOIN entries n ON n.key = o.key"
            " WHERE o.side = 0 AND n.side = 1 AND o.state = 'page' AND n.state = 'page'"
            f" AND ({_CHANGED[what]}) ORDER BY o.key"
        ):
            yield Entry(*row[: len(Entry._fields)]), Entry(*row[len(Entry._fields) :])

    def pairs(self) -> Iterator[tuple[Entry | None, Entry]]:
        """Every URL of NEW, page or not, behind what it was in OLD."""
        for row in self._db.execute(
            f"SELECT {_columns('n')}, {_columns('o')} FROM entries n"
            " LEFT JOIN entries o ON o.side = 0 AND o.key = n.key WHERE n.side = 1 ORDER BY n.key"
        ):
            new, old = _two(row)
            assert new is not None
            yield old, new

    def broken(self) -> Iterator[BrokenLink]:
        """Links of NEW that lead to something broken, and did not in OLD."""
        for row in self._db.execute(
            f"SELECT s.url, {_columns('t')} FROM links l"
            " JOIN entries s ON s.side = 1 AND s.key = l.source JOIN entries t ON t.side = 1 AND t.key = l.target"
            " WHERE l.side = 1 AND NOT EXISTS"
            " (SELECT 1 FROM links b WHERE b.side = 0 AND b.target = l.target AND b.source = l.source)"
            " ORDER BY l.target, l.source"
        ):
            yield BrokenLink(source=row[0], target=Entry(*row[1:]))

    def mended(self) -> Iterator[BrokenLink]:
        """Links of OLD that led to something broken, and do not in NEW, as far as NEW looked."""
        is_complete = self.new_head.get("complete") is True
        for row in self._db.execute(
            f"SELECT s.url, {_columns('t')}, {_columns('n')}, m.state, m.outcome FROM links l"
            " JOIN entries s ON s.side = 0 AND s.key = l.source JOIN entries t ON t.side = 0 AND t.key = l.target"
            " LEFT JOIN entries n ON n.side = 1 AND n.key = l.target"
            " LEFT JOIN entries m ON m.side = 1 AND m.key = l.source"
            " WHERE l.side = 0 AND NOT EXISTS"
            " (SELECT 1 FROM links b WHERE b.side = 1 AND b.target = l.target AND b.source = l.source)"
            " ORDER BY l.target, l.source"
        ):
            old, now = _two(row[1:-2])
            assert old is not None
            source_state, source_outcome = row[-2:]
            is_gone = source_state is None and is_complete
            said = _mended_how(now, is_gone=is_gone, is_read=source_outcome in _READ)
            if said is not None:
                yield BrokenLink(source=row[0], target=old, now=said)

    def counts(self) -> dict[str, int]:
        """How many there are of each, by the names that `lines` and `document` use, and `same`: pages of both in which
        nothing differs."""
        found = {name: sum(1 for _ in rows) for name, rows in self.lists()}
        differs = " OR ".join(f"({condition})" for condition in _CHANGED.values())
        ((found["same"],),) = self._db.execute(
            "SELECT count(*) FROM entries o JOIN entries n ON n.key = o.key WHERE o.side = 0 AND n.side = 1"
            f" AND o.state = 'page' AND n.state = 'page' AND ({differs}) IS NOT 1"
        )
        return found

    def lists(self) -> Iterator[tuple[str, Iterator[object]]]:
        """(name, rows) of every list."""
        yield "new", self.new_pages()
        yield "gone", self.gone()
        yield "broken", self.broken()
        yield "mended", self.mended()
        for what in What:
            yield what, self.changed(what)

    def differing_options(self) -> Iterator[tuple[str, object, object]]:
        """(name, in OLD, in NEW) of each option of the crawls that decides what is crawled and differs."""
        old, new = (_options(head) for head in (self.old_head, self.new_head))
        for name in _DECIDING:
            if name in old and name in new and old[name] != new[name]:
                yield name, old[name], new[name]


_DECIDING = (
    *("depth", "max_pages", "max_time", "scope", "include", "exclude", "robots", "no_robots", "sitemaps"),
    *("follow", "nofollow", "keep_params", "ignore_param", "edges", "max_redirects", "max_body", "user_agent"),
)


@contextlib.contextmanager
def compare(old: tuple[CrawlView, Mapping[str, object]], new: tuple[CrawlView, Mapping[str, object]]) -> Iterator[Diff]:
    """The two crawls side by side; each is (view, head). MachineError when there is no room for temporary files."""
    db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    try:
        db.execute("PRAGMA temp_store = FILE")
        db.executescript(_TABLES)
        options = _options(new[1])
        ignored = options.get("ignore_param")
        identity = urls.make_identity(
            keep_params=options.get("keep_params") is True,
            ignore=[each for each in ignored if isinstance(each, str)] if isinstance(ignored, list) else [],
        )
        for side, (view, _) in ((_OLD, old), (_NEW, new)):
            _fill(db, side, view, identity)
        yield Diff(db, old[1], new[1])
    except sqlite3.OperationalError as error:
        raise MachineError(f"diff: cannot write the folder for temporary files: {error}") from error
    finally:
        db.close()


def _fill(db: sqlite3.Connection, side: int, view: CrawlView, identity: Callable[[str], str]) -> None:
    broken = bytearray(len(view.in_scope()))
    rows = _rows(view, broken)
    while group := list(islice(rows, _GROUP)):
        db.execute("BEGIN")
        for number, *fields in group:
            key = identity(str(fields[0]))
            values = (side, key, number, *fields)
            marks = ", ".join("?" * len(values))
            insert = f"INSERT OR IGNORE INTO entries (side, key, id, {_FIELDS}) VALUES ({marks})"
            if not db.execute(insert, values).rowcount:
                # a redirect to another spelling of itself made two pages of one identity
                key = f"{key} {fields[0]}"
                db.execute(insert, (side, key, number, *fields))
            db.execute("INSERT INTO ids VALUES (?, ?, ?)", (side, number, key))
        db.execute("COMMIT")
    pairs = _broken_pairs(view, broken)
    while some := list(islice(pairs, _GROUP)):
        db.execute("BEGIN")
        db.executemany(
            "INSERT OR IGNORE INTO links SELECT s.side, t.key, s.key FROM ids s JOIN ids t ON t.side = s.side"
            " WHERE s.side = ? AND s.id = ? AND t.id = ?",
            [(side, source, target) for source, target in some],
        )
        db.execute("COMMIT")


def _rows(view: CrawlView, broken: bytearray) -> Iterator[tuple[object, ...]]:
    """Every listed URL, id first; marks the ids of what is broken."""
    for page in view.pages():
        if is_broken(page.status, page.outcome):
            broken[page.id] = 1
        yield (
            *(page.id, page.url, "page", None, page.status, page.outcome.value, page.error, page.title),
            *(page.canonical, page.redirect_url, page.depth, page.millis, page.bytes),
        )
    nothing = (None,) * 3
    for skipped in view.skipped():
        yield (
            *(skipped.id, skipped.url, "skipped", skipped.reason.value, None, None, skipped.error, *nothing),
            *(skipped.depth, None, None),
        )
    for left in view.unvisited():
        yield left.id, left.url, "unvisited", left.reason.value, None, None, None, *nothing, left.depth, None, None


def _broken_pairs(view: CrawlView, broken: bytearray) -> Iterator[tuple[int, int]]:
    """(source, target) of every link and redirect to something broken."""
    for source, targets in view.edges():
        for target in targets:
            if broken[target]:
                yield source, target
    for page in view.pages():
        if page.redirect_to is not None and page.redirect_to != page.id and broken[page.redirect_to]:
            yield page.id, page.redirect_to


_READ = (Outcome.OK, Outcome.NOT_HTML, Outcome.REDIRECT)
"""Outcomes of a page all of whose links are known."""


def _mended_how(target: Entry | None, *, is_gone: bool, is_read: bool) -> str | None:
    """What became of a link that was broken and is not listed as such any more; None when NEW could not tell.

    `is_gone`, `is_read`: whether the page that had the link is there no more, or was read to its end.
    """
    if target is not None and target.state == "page" and not is_broken(target.status, target.outcome):
        return f"it answers {target.answer}"
    if target is not None and target.state != "page":
        return None
    if is_gone:
        return "the page with the link is gone"
    return "the link is gone" if is_read else None


def _columns(table: str) -> str:
    return ", ".join(f"{table}.{name}" for name in Entry._fields)


def _two(row: tuple[object, ...]) -> tuple[Entry | None, Entry | None]:
    width = len(Entry._fields)
    parts = row[:width], row[width:]
    first, second = (None if part[0] is None else Entry(*part) for part in parts)  # type: ignore[arg-type]  # SQLite's
    return first, second


def _options(head: Mapping[str, object]) -> Mapping[str, object]:
    found = head.get("options")
    return found if isinstance(found, dict) else {}
