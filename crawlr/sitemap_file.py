"""A crawl as an earlier run wrote it: sitemap.json[.gz], read piece by piece into a temporary journal.

From: a file that crawlr wrote (or that another program wrote anew from it: order and white space do not matter). To:
crawlr.view, by which every sink reads it as it reads a crawl that just ended. Main thread.

The journal lies in a temporary file of SQLite's, so a file of any size needs no more memory than its longest row. What
sitemap.json does not hold is not known here: kinds and texts of links, hashes of bodies.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
import sqlite3
import zlib
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

from crawlr import json_text
from crawlr.errors import OptionsError
from crawlr.journal import ExternalRow, Journal, PageRow, UrlRow
from crawlr.known import FAR, Flag
from crawlr.map_head import FORMAT
from crawlr.records import ExternalClass, Outcome, SkipReason, StopReason, UnvisitedReason
from crawlr.view import CrawlView

__all__ = ["open_sitemap"]

_CHUNK = 1 << 20
_LONGEST = 64 << 20  # characters of one value; a page's record has some hundreds, the options some thousands
_GROUP = 5000  # rows a transaction
_LISTS = ("pages", "skipped", "unvisited", "external", "sitemaps", "edges")
_SPACE = re.compile(r"[ \t\n\r]*")
_decode = json.JSONDecoder().raw_decode


@contextlib.contextmanager
def open_sitemap(path: str) -> Iterator[tuple[CrawlView, dict[str, object]]]:
    """The view of the crawl in `path`, and the fields before its lists. OptionsError when it is no such file, or
    damaged."""
    journal = _TemporaryJournal.create("", {})
    assert isinstance(journal, _TemporaryJournal)
    try:
        yield _load(journal, path)
    finally:
        journal.close()


class _TemporaryJournal(Journal):
    """A journal whose edges come after its pages."""

    def put_edges(self, rows: Sequence[tuple[int, bytes]]) -> None:
        with self._transaction() as db:
            if db.executemany("UPDATE pages SET targets=?2 WHERE id=?1", rows).rowcount != len(rows):
                raise ValueError("an edge begins at an id that is no page's")

    def check_ids(self) -> None:
        """ValueError when an edge, a parent or a redirect leads to an id that the file does not list."""
        known = bytearray()
        for (number,) in self.query("SELECT id FROM urls ORDER BY id"):
            known.extend(bytes(number - len(known)))
            known.append(1)
        for (blob,) in self.query("SELECT targets FROM pages WHERE targets IS NOT NULL"):
            for target in array("I", blob):
                if target >= len(known) or not known[target]:
                    raise ValueError(f"an edge leads to {target}, which is not listed")
        for (number,) in self.query(
            "SELECT parent FROM urls WHERE parent NOT IN (SELECT id FROM urls)"
            " UNION ALL SELECT redirect_to FROM pages WHERE redirect_to NOT IN (SELECT id FROM urls)"
        ):
            raise ValueError(f"a parent or redirect is {number}, which is not listed")

    def fill_gaps(self) -> None:
        """Ids that the file does not list (targets out of scope) get a row too, as in the journal of a crawl."""
        with self._transaction() as db:
            db.execute(
                "WITH RECURSIVE ids(id) AS (SELECT 0 UNION ALL SELECT id + 1 FROM ids"
                " WHERE id < (SELECT max(id) FROM urls)) INSERT OR IGNORE INTO urls"
                " SELECT id, '', NULL, ?, NULL, id, 0, 0 FROM ids WHERE EXISTS (SELECT 1 FROM urls)",
                (FAR,),
            )


def _load(journal: _TemporaryJournal, path: str) -> tuple[CrawlView, dict[str, object]]:
    head: dict[str, object] = {}
    has_external = has_sitemaps = False
    edges_wait = False
    try:
        with _open(path) as text:
            for name, values in _Reader(text).fields():
                if name not in _LISTS:
                    head[name] = values
                elif not isinstance(values, Iterator):
                    raise ValueError(f"{name} is no list")
                elif name == "sitemaps":
                    has_sitemaps = True
                    _put_sitemaps(journal, values)
                elif name != "edges":
                    has_external = has_external or name == "external"
                    has_sitemaps = _put_rows(journal, name, values) or has_sitemaps
                elif journal.count_pages():
                    _put_edges(journal, values)
                else:
                    edges_wait = True  # another order of fields: once more, when the pages are there
        if head.get("format") != FORMAT:
            raise ValueError(f"its format is {head.get('format')!r}")
        if edges_wait:
            with _open(path) as text:
                for name, values in _Reader(text).fields():
                    if name == "edges" and isinstance(values, Iterator):
                        _put_edges(journal, values)
        journal.check_ids()
        journal.fill_gaps()
        view = CrawlView(
            journal,
            stop_reason=StopReason(str(head["stop_reason"])),
            depth_limit=_depth_limit(head),
            all_edges=has_external,
            has_sitemaps=has_sitemaps,
        )
    except OSError as error:
        raise OptionsError(f"cannot read {path}: {error.strerror or error}") from error
    except (
        ValueError,
        KeyError,
        TypeError,
        OverflowError,
        RecursionError,
        EOFError,
        zlib.error,
        sqlite3.Error,
    ) as error:
        what = f"a field is missing: {error}" if isinstance(error, KeyError) else str(error)
        raise OptionsError(f"{path} is not a sitemap.json of crawlr, or is damaged ({what[:300]})") from error
    return view, head


def _open(path: str) -> TextIO:
    raw = open(path, "rb")  # noqa: SIM115  # closed with what is put on top of it
    try:
        is_packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        if is_packed:
            return io.TextIOWrapper(_ClosingGzip(fileobj=raw), encoding="utf-8-sig")
    except BaseException:
        raw.close()
        raise
    return io.TextIOWrapper(raw, encoding="utf-8-sig")


class _ClosingGzip(gzip.GzipFile):
    """A GzipFile that closes the file it reads from."""

    def __init__(self, *, fileobj: io.BufferedReader) -> None:
        super().__init__(fileobj=fileobj, mode="rb")
        self._beneath = fileobj

    def close(self) -> None:
        super().close()
        self._beneath.close()


def _depth_limit(head: dict[str, object]) -> int | None:
    options = head.get("options")
    limit = options.get("depth") if isinstance(options, dict) else None
    return limit if isinstance(limit, int) else None


def _put_rows(journal: _TemporaryJournal, name: str, values: Iterator[Any]) -> bool:
    """True when the rows say whether a sitemap names them."""
    has_sitemaps = False
    urls: list[UrlRow] = []
    pages: list[PageRow] = []
    skipped: list[tuple[int, str, str | None]] = []
    external: list[ExternalRow] = []
    extracts: list[tuple[int, str | None, str | None]] = []

    def commit() -> None:
        journal.commit(urls=urls, pages=pages, skipped=skipped, external=external, extracts=extracts)
        for rows in (urls, pages, skipped, external, extracts):
            rows.clear()

    for row in values:
        number = _id(row["id"])
        if name == "external":
            urls.append((number, row["url"], None, 0, None, number, 0, 0))
            if "class" in row:
                kind = ExternalClass(row["class"]).value
                external.append((number, row["status"], row["outcome"], kind, row["error"]))
        else:
            flags = Flag.IN_SCOPE | Flag.FOLLOWED
            if "in_sitemap" in row:
                has_sitemaps = True
                flags |= Flag.IN_SITEMAP if row["in_sitemap"] else 0
            urls.append((number, row["url"], None, row["depth"], row["parent"], row.get("root", number), 0, flags))
        if name == "pages":
            pages.append(_page(number, row))
            value, error = row.get("extract"), row.get("extract_error")
            if value is not None or error is not None:
                extracts.append((number, None if value is None else json_text.dumps(value), error))
        elif name == "skipped":
            skipped.append((number, SkipReason(row["reason"]).value, row["error"]))
        elif name == "unvisited":
            UnvisitedReason(row["reason"])
        if len(urls) >= _GROUP:
            commit()
    commit()
    return has_sitemaps


def _page(number: int, row: dict[str, Any]) -> PageRow:
    return (
        number,
        row["status"],
        Outcome(row["outcome"]).value,
        row["error"],
        row["links"],
        row["millis"],
        row["bytes"],
        row["content_type"],
        row["encoding"],
        row["title"],
        row["canonical"],
        " ".join(row["robots"]),
        row["redirect_to"],
        row["redirect_url"],
        row["attempts"],
        None,
        None,
        None,
        row.get("last_modified"),
    )


def _put_sitemaps(journal: _TemporaryJournal, values: Iterator[Any]) -> None:
    rows = [(str(row["url"]), int(row["level"]), int(row["read"] is True), row["error"]) for row in values]
    journal.commit(sitemaps=rows)


def _put_edges(journal: _TemporaryJournal, values: Iterator[Any]) -> None:
    """Edges of one source that stand together are one row; where they don't, they are added to it."""
    waiting: dict[int, array[int]] = {}
    has_row = bytearray()  # by id: its row was written before
    for edge in values:
        source, target = edge
        targets = waiting.get(source)
        if targets is None:
            if len(waiting) >= _GROUP:
                journal.put_edges([(number, each.tobytes()) for number, each in waiting.items()])
                waiting.clear()
            before = b""
            if len(has_row) > _id(source) and has_row[source]:
                found = journal.links_of(source)
                before = found.targets if found else b""
            targets = waiting[source] = array("I", before)
            has_row.extend(bytes(max(0, source + 1 - len(has_row))))
            has_row[source] = 1
        targets.append(target)
    journal.put_edges([(number, each.tobytes()) for number, each in waiting.items()])


def _id(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 31:
        raise ValueError(f"{value!r} is no id")
    return value


class _Reader:
    """One JSON object, field by field; the items of a list come one by one."""

    def __init__(self, text: TextIO) -> None:
        self._text = text
        self._buffer = ""
        self._place = 0
        self._is_all = False

    def fields(self) -> Iterator[tuple[str, Any]]:
        """(name, value) of each field; for a list of the lists of sitemap.json the value is an iterator over it, used
        up or not before the next field is asked for."""
        self._expect("{")
        if self._peek() == "}":
            self._expect("}")
        else:
            while True:
                name = self._value()
                if not isinstance(name, str):
                    raise ValueError("a name is no text")
                self._expect(":")
                if name in _LISTS and self._peek() == "[":
                    items = self._items()
                    yield name, items
                    for _ in items:
                        pass
                else:
                    yield name, self._value()
                if self._expect(",}") == "}":
                    break
        if self._peek():
            raise ValueError("there is more after the end of the object")

    def _items(self) -> Iterator[Any]:
        self._expect("[")
        if self._peek() == "]":
            self._expect("]")
            return
        while True:
            yield self._value()
            if self._expect(",]") == "]":
                return

    def _value(self) -> Any:
        self._peek()
        size = _CHUNK
        while True:
            try:
                value, end = _decode(self._buffer, self._place)
                if end < len(self._buffer) or self._is_all:  # a number could go on
                    self._place = end
                    return value
            except json.JSONDecodeError:
                if self._is_all or len(self._buffer) - self._place > _LONGEST:
                    raise
            self._fill(size)
            size *= 2

    def _expect(self, accepted: str) -> str:
        found = self._peek()
        if not found or found not in accepted:
            raise ValueError(f"{' or '.join(accepted)} expected, {found or 'the end'} found")
        self._place += 1
        return found

    def _peek(self) -> str:
        """The next character that is no white space, empty at the end."""
        while True:
            space = _SPACE.match(self._buffer, self._place)
            assert space is not None
            self._place = space.end()
            if self._place < len(self._buffer):
                return self._buffer[self._place]
            if self._is_all:
                return ""
            self._fill(_CHUNK)

    def _fill(self, size: int) -> None:
        more = self._text.read(size)
        self._is_all = not more
        self._buffer = self._buffer[self._place :] + more
        self._place = 0
