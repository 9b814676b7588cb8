"""The truth of a crawl: one SQLite file that takes finished pages, their edges and the URLs they made known, in
group commits.

From: the coordinator (rows). To: the coordinator at a resume, and crawlr.view for everything that is written from it.
One connection, one thread at a time. A page in flight is not written as such: after a kill it is simply still waiting.

A group commit is one transaction, so a page's record, its edges (a blob of ids in document order) and the URLs that
it made known are there together or not at all.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from crawlr import failpoints
from crawlr.errors import MachineError, StateError

__all__ = ["DamagedStateError", "ExternalRow", "Journal", "PageRow", "UrlRow"]

APPLICATION_ID = 0x63726C72  # "crlr"
VERSION = 5
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
-- key: the identity, NULL when it is the url itself; flags: crawlr.known.Flag; parent NULL: a seed or sitemap URL
CREATE TABLE urls (id INTEGER PRIMARY KEY, url TEXT NOT NULL, key TEXT, depth INTEGER NOT NULL, parent INTEGER,
                   root INTEGER NOT NULL, hops INTEGER NOT NULL, flags INTEGER NOT NULL);
-- targets: uint32 ids of the distinct link targets in document order, in scope or not; kinds: a byte for each
CREATE TABLE pages (id INTEGER PRIMARY KEY, status INTEGER, outcome TEXT NOT NULL, error TEXT, links INTEGER NOT NULL,
                    millis INTEGER NOT NULL, bytes INTEGER NOT NULL, content_type TEXT, encoding TEXT, title TEXT,
                    canonical TEXT, robots TEXT NOT NULL, redirect_to INTEGER, redirect_url TEXT,
                    attempts INTEGER NOT NULL, targets BLOB, kinds BLOB, body_hash INTEGER, last_modified TEXT);
-- texts: that of the first link to each target, a line each, by zlib; rows are there when an output wants them
CREATE TABLE texts (id INTEGER PRIMARY KEY, texts BLOB NOT NULL);
-- what was taken out of a page as the user asked: value is JSON; a row is there when there is one of them
CREATE TABLE extracts (id INTEGER PRIMARY KEY, value TEXT, error TEXT);
CREATE TABLE skipped (id INTEGER PRIMARY KEY, reason TEXT NOT NULL, error TEXT);
-- how often a URL that waits for a retry has been asked already
CREATE TABLE tries (id INTEGER PRIMARY KEY, attempts INTEGER NOT NULL);
-- what --check-external found; class: crawlr.records.ExternalClass
CREATE TABLE external (id INTEGER PRIMARY KEY, status INTEGER, outcome TEXT NOT NULL, class TEXT NOT NULL, error TEXT);
CREATE TABLE sitemaps (url TEXT PRIMARY KEY, level INTEGER NOT NULL, is_done INTEGER NOT NULL, error TEXT)
    WITHOUT ROWID;
"""

UrlRow = tuple[int, str, str | None, int, int | None, int, int, int]
"""id, url, key, depth, parent, root, hops, flags"""
PageRow = tuple[
    int,
    int | None,
    str,
    str | None,
    int,
    int,
    int,
    str | None,
    str | None,
    str | None,
    str | None,
    str,
    int | None,
    str | None,
    int,
    bytes | None,
    bytes | None,
    int | None,
    str | None,
]
"""The columns of `pages` in order."""
ExternalRow = tuple[int, int | None, str, str, str | None]
"""id, status, outcome, class, error"""


class LinksOf(Struct, frozen=True, kw_only=True):
    """What a finished page leads to. Made by the journal, read by the coordinator when a depth falls."""

    targets: bytes
    redirect_to: int | None
    redirect_url: str | None
    outcome: str


class DamagedStateError(StateError):
    """A state file of crawlr that can't be read any more: --fresh may throw it away."""


class Journal:
    """The state file of one crawl. Every method raises MachineError when the disk is full or fails."""

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._db = connection
        self.path = path
        """Empty for a temporary file that has no name."""

    # ------------------------------------------------------------------ opening

    @classmethod
    def create(cls, path: str, meta: dict[str, object], *, is_durable: bool = False) -> Journal:
        """A new, empty journal at `path` ("" for a temporary one), with `meta` as JSON values."""
        with _translated(path):
            journal = cls(_connect(path, is_durable=is_durable, is_new=True), path)
            db = journal._db
            db.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA.split(";\n"):
                if statement.strip():
                    db.execute(statement)
            failpoints.hit("during_schema")
            db.execute(f"PRAGMA user_version = {VERSION}")
            db.executemany("INSERT INTO meta VALUES (?, ?)", [(k, json.dumps(v)) for k, v in meta.items()])
            db.execute("COMMIT")
            return journal

    @classmethod
    def open(cls, path: str, *, is_durable: bool = False) -> Journal | None:
        """The journal that lies at `path`; None when there is none or nothing was ever committed to it.

        StateError when it is no journal of this version, is damaged, or is in use. The file is then left as it is.
        """
        if not os.path.exists(path) or (os.path.getsize(path) == 0 and not _has_wal(path)):
            return None
        _check_header(path)
        with _translated(path, damage_is_state=True):
            db = _connect(path, is_durable=is_durable)
            try:
                tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
                if tables == 0:
                    db.close()
                    return None
                found = db.execute("PRAGMA quick_check(1)").fetchone()[0]
                if found != "ok":
                    raise DamagedStateError(f"the state file {path} is damaged ({found}); move it away or use --fresh")
            except BaseException:
                db.close()
                raise
            return cls(db, path)

    @staticmethod
    def remove(path: str) -> None:
        """Delete the state file at `path` with what SQLite keeps beside it."""
        for suffix in ("", "-wal", "-shm", "-journal"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path + suffix)

    def close(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._db.close()

    def __del__(self) -> None:
        self.close()  # a result that nobody holds any more; Python 3.13 warns of a connection that is left open

    def unlink(self) -> None:
        """Delete the file of a complete crawl; what is open stays readable until `close`.

        Nothing is written for it: what stands in the log alone is read from there, which nobody else has open.
        """
        if self.path:
            self.remove(self.path)

    # ------------------------------------------------------------------ writing

    def commit(
        self,
        *,
        urls: Sequence[UrlRow] = (),
        moved: Sequence[tuple[int, int | None, int, int, int, int]] = (),
        pages: Sequence[PageRow] = (),
        texts: Sequence[tuple[int, bytes]] = (),
        extracts: Sequence[tuple[int, str | None, str | None]] = (),
        corrected: Sequence[tuple[str, str | None, int | None, int]] = (),
        skipped: Sequence[tuple[int, str, str | None]] = (),
        sitemaps: Sequence[tuple[str, int, int, str | None]] = (),
        tries: Sequence[tuple[int, int]] = (),
        external: Sequence[ExternalRow] = (),
        meta: dict[str, object] | None = None,
    ) -> None:
        """One group commit. `moved`: (depth, parent, root, hops, flags, id) of URLs whose place changed; `corrected`:
        (outcome, error, redirect_to, id) of pages that turned out to be part of a redirect loop, or no longer are."""
        with _translated(self.path), self._transaction() as db:
            if urls:
                db.executemany("INSERT INTO urls VALUES (?,?,?,?,?,?,?,?)", urls)
            if moved:
                db.executemany("UPDATE urls SET depth=?, parent=?, root=?, hops=?, flags=? WHERE id=?", moved)
            if pages:
                db.executemany("INSERT INTO pages VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", pages)
            if texts:
                db.executemany("INSERT INTO texts VALUES (?,?)", texts)
            if extracts:
                db.executemany("INSERT INTO extracts VALUES (?,?,?)", extracts)
            if corrected:
                db.executemany("UPDATE pages SET outcome=?, error=?, redirect_to=? WHERE id=?", corrected)
            if skipped:
                db.executemany("INSERT OR REPLACE INTO skipped VALUES (?,?,?)", skipped)
            if tries:
                db.executemany("INSERT OR REPLACE INTO tries VALUES (?,?)", tries)
            if external:
                db.executemany("INSERT OR REPLACE INTO external VALUES (?,?,?,?,?)", external)
            if sitemaps:
                db.executemany("INSERT OR REPLACE INTO sitemaps VALUES (?,?,?,?)", sitemaps)
            if meta:
                rows = [(k, json.dumps(v)) for k, v in meta.items()]
                db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)
            failpoints.hit("inside_commit")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        db = self._db
        db.execute("BEGIN")
        try:
            yield db
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise

    def forget_unreachable(self) -> list[int]:
        """Take back the rows that a resume asks again (robots.txt could not be had); the ids."""
        with _translated(self.path), self._transaction() as db:
            ids = [row[0] for row in db.execute("SELECT id FROM skipped WHERE reason='robots_unreachable'")]
            db.execute("DELETE FROM skipped WHERE reason='robots_unreachable'")
            failpoints.hit("during_resume")
            return ids

    # ------------------------------------------------------------------ reading back

    def meta(self) -> dict[str, object]:
        return {key: json.loads(value) for key, value in self._db.execute("SELECT key, value FROM meta")}

    def urls(self) -> Iterator[UrlRow]:
        """Every known URL in the order of the ids."""
        return iter(self._db.execute("SELECT id, url, key, depth, parent, root, hops, flags FROM urls ORDER BY id"))

    def settled(self) -> Iterator[tuple[int, bool]]:
        """(id, is a page) of every URL with a final answer."""
        yield from self._db.execute("SELECT id, 1 FROM pages UNION ALL SELECT id, 0 FROM skipped")

    def count_pages(self) -> int:
        count: int = self._db.execute("SELECT count(*) FROM pages").fetchone()[0]
        return count

    def redirects(self) -> Iterator[tuple[int, int]]:
        return iter(self._db.execute("SELECT id, redirect_to FROM pages WHERE redirect_to IS NOT NULL"))

    def tries(self) -> dict[int, int]:
        """Attempts so far of the URLs that have no final answer yet."""
        return dict(self._db.execute("SELECT id, attempts FROM tries WHERE id NOT IN (SELECT id FROM pages)"))

    def sitemaps(self) -> list[tuple[str, int, int]]:
        return list(self._db.execute("SELECT url, level, is_done FROM sitemaps"))

    def texts(self, ids: Iterable[int]) -> dict[int, str]:
        """The addresses of committed URLs."""
        wanted = list(ids)
        marks = ",".join("?" * len(wanted))
        query = f"SELECT id, url FROM urls WHERE id IN ({marks})"  # noqa: S608  # nothing but question marks
        return dict(self._db.execute(query, wanted))

    def links_of(self, number: int) -> LinksOf | None:
        """What the finished page leads to, None when it is no committed page."""
        row = self._db.execute(
            "SELECT targets, redirect_to, redirect_url, outcome FROM pages WHERE id=?", (number,)
        ).fetchone()
        if row is None:
            return None
        return LinksOf(targets=row[0] or b"", redirect_to=row[1], redirect_url=row[2], outcome=row[3])

    def outside(self, flag: int) -> Iterator[tuple[int, str, int]]:
        """(id, url, flags) of the URLs without `flag` (in scope)."""
        return iter(self._db.execute("SELECT id, url, flags FROM urls WHERE flags & ? = 0", (flag,)).fetchall())

    def query(self, sql: str, values: Sequence[object] = ()) -> Iterator[Any]:
        """Rows for crawlr.view, which knows the schema."""
        return iter(self._db.execute(sql, values))


def _connect(path: str, *, is_durable: bool, is_new: bool = False) -> sqlite3.Connection:
    # "" is SQLite's own temporary file: in memory while small, on disk when it grows, gone at close.
    db = sqlite3.connect(path, isolation_level=None, timeout=0.0, check_same_thread=False, cached_statements=64)
    try:
        if path:
            # before WAL, so that there is no shared-memory file and no second connection
            db.execute("PRAGMA locking_mode = EXCLUSIVE").fetchone()
            if is_new:  # into the file itself, before WAL: from its first byte on it can be told whose it is
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute("PRAGMA journal_mode = WAL").fetchone()  # where it can't be had, DELETE serves as well
        db.execute(f"PRAGMA synchronous = {'FULL' if is_durable else 'NORMAL'}")
        db.execute("PRAGMA temp_store = MEMORY")
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("PRAGMA journal_size_limit = 67108864")
        # 16 MB between checkpoints: a checkpoint is the only thing that waits for the disk
        db.execute("PRAGMA wal_autocheckpoint = 4000")
        db.execute("BEGIN IMMEDIATE")  # takes the lock now, so that a second crawlr is told at once
        db.execute("COMMIT")
    except BaseException:
        db.close()
        raise
    return db


def _has_wal(path: str) -> bool:
    return os.path.exists(path + "-wal") and os.path.getsize(path + "-wal") > 0


def _check_header(path: str) -> None:
    """Look at the file before SQLite opens it, so that a file that is none of ours stays as it is."""
    with Path(path).open("rb") as file:
        head = file.read(100)
    if not head:
        return
    if not head.startswith(b"SQLite format 3\0") or len(head) < 100:
        raise StateError(f"{path} is not a state file of crawlr; move it away or choose another --out")
    application, version = int.from_bytes(head[68:72], "big"), int.from_bytes(head[60:64], "big")
    if application != APPLICATION_ID:
        raise StateError(f"{path} is a database of another program; move it away or choose another --out")
    if version not in (0, VERSION):  # 0: killed before its first commit
        raise DamagedStateError(
            f"{path} was written by another version of crawlr (format {version}, this one reads {VERSION}); use --fresh"
        )
    page_size = int.from_bytes(head[16:18], "big")
    page_size = 65536 if page_size == 1 else page_size
    pages = int.from_bytes(head[28:32], "big")
    if not _has_wal(path) and os.path.getsize(path) < pages * page_size:
        raise DamagedStateError(f"the state file {path} is cut short; move it away or use --fresh")


@contextlib.contextmanager
def _translated(path: str, *, damage_is_state: bool = False) -> Iterator[None]:
    """SQLite's errors as crawlr's: in use and damaged are StateError, a full or failing disk is MachineError."""
    try:
        yield
    except sqlite3.OperationalError as error:
        text = str(error)
        if "locked" in text or "busy" in text:
            raise StateError(f"the state file {path} is in use by another crawlr") from error
        where = path or "the folder for temporary files"
        if "full" in text or "disk I/O" in text or "unable to open" in text or "readonly" in text:
            raise MachineError(
                f"cannot write {where}: {text}; free space there, then run the same command with --resume"
            ) from error
        raise
    except sqlite3.DatabaseError as error:
        if damage_is_state or "malformed" in str(error) or "not a database" in str(error):
            text = f"the state file {path} is damaged ({error}); move it away or use --fresh"
            raise DamagedStateError(text) from error
        raise
