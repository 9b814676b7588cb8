"""sitemaps.org: the pages that search engines may list, with the date of their last change; an index over several files
when one may not hold them all.

From: source. To: files. Main thread. Rules: sitemaps.org/protocol.html and its schema, version 0.9.

Listed is a page that answered 200, is HTML, was read far enough to know what it says of itself, says no noindex, and is
its own canonical. `sitemap.xml` becomes the index when there are more than 50,000 URLs or 50 MiB; the files it names,
`sitemap-1.xml` and so on, then lie beside it, and are to be put beside it on the server: at the root of the first
seed's host, since the index has to give whole addresses.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import BinaryIO
from urllib.parse import quote, urljoin

from crawlr.errors import MachineError
from crawlr.sinks import files
from crawlr.sinks.indexability import is_html, is_read, obstacles
from crawlr.sinks.source import Source
from crawlr.sinks.texts import xml

__all__ = ["write"]

MOST_URLS = 50_000
MOST_BYTES = 50 * 1024 * 1024
"""Of one file, before it is compressed."""
SHORTEST, LONGEST = 12, 2048
"""Characters of a URL that the schema accepts."""

_NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
_BEGIN = f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{_NAMESPACE}">\n'.encode()
_END = b"</urlset>\n"
# "must be URL-escaped" and "conform to RFC 3986": the URL standard leaves these as they are in a path or query
_NOT_IN_RFC_3986 = re.compile(r"[^!#-;=?-Z_a-z~%]")
_ENDING = re.compile(r"(?:\.xml)?(?:\.gz)?\Z", re.IGNORECASE)


def write(path: str, source: Source) -> list[str]:
    """Write `path` and what it needs beside it; what a person should know of it, in sentences."""
    notes = _Notes(path)
    entries = _entries(source, notes)
    entry = next(entries, None)
    if path == "-":
        with files.whole_binary(path) as out:
            if _fill(out, entry, entries) is not None:
                raise MachineError(
                    "standard output can't take the several files that so many URLs need; use --out FILE"
                )
        return notes.sentences()
    with files.together(path) as group:
        parts = [group.begin()]
        while (entry := _fill(parts[-1].out, entry, entries)) is not None:
            parts[-1].finish()
            parts.append(group.begin())
        if len(parts) == 1:
            group.place(parts[0], path)
        else:
            places = [_ENDING.sub(rf"-{number}\g<0>", path, count=1) for number in range(1, len(parts) + 1)]
            for file, place in zip(parts, places, strict=True):
                group.place(file, place)
            index = group.begin()
            index.out.writelines(_index(places, _root(source)))
            group.place(index, path)
            notes.files, notes.root = len(parts), _root(source)
    return notes.sentences()


def _fill(out: BinaryIO, entry: bytes | None, entries: Iterator[bytes]) -> bytes | None:
    """Write one file, `entry` first; the entry that no longer fits, None when there is none."""
    out.write(_BEGIN)
    size, count = len(_BEGIN) + len(_END), 0
    while entry is not None and count < MOST_URLS and size + len(entry) <= MOST_BYTES:
        out.write(entry)
        size += len(entry)
        count += 1
        entry = next(entries, None)
    out.write(_END)
    return entry


class _Notes:
    """What was left out, and what the files ask of the server."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.listed = self.too_long = self.too_short = 0
        self.files = 1
        self.root = ""
        self.origins: set[str] = set()

    def sentences(self) -> list[str]:
        found = []
        if not self.listed:
            found.append(f"{self._path} lists no page: none answered 200 with HTML that may be indexed")
        if self.too_long:
            found.append(
                f"{self._path} leaves out {self.too_long:,} pages with a URL of more than {LONGEST:,} characters"
            )
        if self.too_short:
            found.append(
                f"{self._path} leaves out {self.too_short:,} pages with a URL of less than {SHORTEST} characters"
            )
        if len(self.origins) > 1:
            found.append(
                f"{self._path} lists pages of {len(self.origins):,} hosts: search engines take them only where each"
                " host's robots.txt names it"
            )
        if self.files > 1:
            found.append(f"{self._path} is an index over {self.files:,} files beside it, to be put at {self.root}")
        return found


def _entries(source: Source, notes: _Notes) -> Iterator[bytes]:
    now = datetime.now(UTC)
    view = source.view
    for page, (number, last_modified, _) in zip(view.pages(), view.versions(), strict=True):
        assert page.id == number, (page.id, number)
        if page.status != 200 or not is_html(page) or not is_read(page) or obstacles(page):
            continue
        url = _by_rfc_3986(page.url)
        if len(url) > LONGEST:
            notes.too_long += 1
            continue
        if len(url) < SHORTEST:
            notes.too_short += 1
            continue
        notes.listed += 1
        if len(notes.origins) < 10_000:
            notes.origins.add(url[: url.index("/", 8)])
        date = last_modified and _w3c_date(last_modified, now)
        changed = f"<lastmod>{date}</lastmod>" if date else ""
        yield f"<url><loc>{xml(url)}</loc>{changed}</url>\n".encode()


def _by_rfc_3986(url: str) -> str:
    """The URL with every character escaped that RFC 3986 allows nowhere in a path or query; the host stays."""
    start = url.index("/", url.index("//") + 2)
    return url[:start] + _NOT_IN_RFC_3986.sub(lambda found: quote(found[0], safe=""), url[start:])


def _w3c_date(last_modified: str, now: datetime) -> str | None:
    """An HTTP date (RFC 9110 §5.6.7) as W3C's; None for one that is no date, or in the future, which can't be true."""
    try:
        date = parsedate_to_datetime(last_modified)
        date = date.replace(tzinfo=UTC) if date.tzinfo is None else date.astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        return None
    return date.strftime("%Y-%m-%dT%H:%M:%SZ") if date.year >= 1990 and date <= now else None


def _root(source: Source) -> str:
    seeds = source.head.get("seeds")
    seed = str(seeds[0]) if isinstance(seeds, list) and seeds else "http://localhost/"
    return urljoin(seed, "/")


def _index(places: Sequence[str], root: str) -> Iterator[bytes]:
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n<sitemapindex xmlns="{_NAMESPACE}">\n'.encode()
    for place in places:
        yield f"<sitemap><loc>{xml(root + quote(os.path.basename(place)))}</loc></sitemap>\n".encode()
    yield b"</sitemapindex>\n"
