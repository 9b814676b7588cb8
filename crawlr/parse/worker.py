"""What a parse process does with a body: unpack, decode, parse, resolve, key, number the links; out comes one flat row.

From: job (batches). To: the main process, as plain tuples that pool rebuilds. Runs in a parse process; its tests call
`Worker` inline. Importing it loads no network, no database, no progress bar.

Links cross as numbers. A page of a large site has hundreds of links, nearly all of which stood on pages before it: each
distinct identity gets a number in this process's table when it is first seen, its text crosses once, and from then on
the number alone does.
"""

from __future__ import annotations

import traceback
import zlib
from array import array
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING

import xxhash

from crawlr import content_coding
from crawlr.parse import child, document, links, sitemaps
from crawlr.parse.results import FAILED, PAGE, SITEMAP, FailedRow, PageResult, SitemapResult
from crawlr.parse.settings import SAMPLE, Row, WorkerSettings
from crawlr.parse.urls import make_identity
from crawlr.records import Outcome

if TYPE_CHECKING:
    from crawlr.parse.extraction import Extractor

__all__ = ["KINDS", "Worker"]

KINDS = links.KINDS
"""Kinds of links by the number that flags carry."""
assert len(KINDS) <= 32, "bits 1 to 5 of a flag hold the kind"
TITLE_LIMIT = 1_000
CONTENT_LIMIT = 16 * 1024 * 1024
"""Characters of documents and texts in the answer to one batch: a page after so many is parsed again, alone. Only
bodies that unpack to a hundred times their size come to that."""
_ERROR_LIMIT = 500


class Worker:
    """The state of one parse process: its settings and its link table."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings
        self._follow = None if "all" in settings.follow else frozenset(settings.follow)
        self._identity = make_identity(keep_params=settings.keep_params, ignore=settings.ignore_param)
        self._first_flag = {kind: index << 1 for index, kind in enumerate(KINDS)}
        # URL or identity -> number. An identity is its own identity, so one table holds both.
        self._numbers: dict[str, int] = {}
        self._given_out = 0
        self._new_links: list[tuple[str, str]] = []  # filled by _number, taken by parse_batch
        self._content = 0  # characters in the batch at hand
        self._extractor: Extractor | None = None
        if settings.extract is not None:
            from crawlr.parse.extraction import Extractor

            self._extractor = Extractor(settings.extract)

    def parse_batch(self, batch: Sequence[Row]) -> child.Answer:
        """(table_was_reset, new_links, a row for each body in order, resident bytes). Never raises.

        `new_links`: (url, identity, "" when it is the url) for the numbers given out in this batch, in order.
        """
        must_reset = len(self._numbers) > self._settings.link_table_limit
        if must_reset:
            self._numbers.clear()
            self._given_out = 0
        self._content = 0
        rows = [self._row(index, body) for index, body in enumerate(batch)]
        new_links, self._new_links = self._new_links, []
        return must_reset, new_links, rows, child.rss()

    def _row(self, index: int, row: Row) -> tuple[object, ...]:
        known, given_out, new = len(self._numbers), self._given_out, len(self._new_links)
        try:
            child.begin_page(index)
            return self._sitemap(row) if row[2] == SITEMAP else self._page(row)
        except MemoryError:
            outcome, error, trace = Outcome.PARSE_MEMORY, "", ""
        except BaseException as trouble:  # noqa: BLE001  # the outermost frame of a worker: a page's trouble is a value
            outcome, error = Outcome.PARSER_CRASH, f"{type(trouble).__name__}: {trouble}"[:_ERROR_LIMIT]
            trace = traceback.format_exc(limit=20)
        # Numbers that this page gave out are taken back, so that the table and what the main process knows of it agree.
        while len(self._numbers) > known:
            self._numbers.popitem()
        self._given_out = given_out
        del self._new_links[new:]
        number, kind = row[0], row[2]
        if outcome is Outcome.PARSE_MEMORY:
            error = f"parsing needed more than {self._settings.parse_memory // (1024 * 1024)} MiB"
            if kind == PAGE:
                return (PAGE, *_without_links(number, outcome=outcome, error=error))
        return (FAILED, *FailedRow(number, kind, outcome.value, error, trace))

    def _sitemap(self, row: Row) -> tuple[object, ...]:
        number, url, _, body, _, coding = row
        unpacked = content_coding.decode(body, coding, max_bytes=sitemaps.MAX_BYTES)
        found = sitemaps.read(unpacked.data, url=url)
        if found.kind == "text" and unpacked.fault is not None:
            # Only here is it known that the last line is cut: half an address is another address.
            found = sitemaps.read(unpacked.data[: unpacked.data.rfind(b"\n") + 1], url=url)
        is_damaged = found.damaged or unpacked.fault is not None
        return (SITEMAP, *SitemapResult(number, str(found.kind), found.urls, is_damaged, unpacked.error))

    def _page(self, row: Row) -> tuple[object, ...]:
        number, url, _, body, content_type, coding = row
        settings = self._settings
        started = perf_counter()
        unpacked = content_coding.decode(body, coding, max_bytes=settings.max_body)
        body, fault = unpacked.data, unpacked.fault
        decode_seconds = perf_counter() - started
        if fault == "decode_error":
            # What came out before the fault may be wrong already: nothing is taken from it.
            return (
                PAGE,
                *_without_links(
                    number,
                    outcome=Outcome.DECODE_ERROR,
                    error=unpacked.error,
                    size=len(body),
                    decode_us=_micros(decode_seconds),
                ),
            )
        page = document.read(
            body,
            url=url,
            content_type=content_type,
            agent=settings.agent,
            parser=settings.parser,
            follow=self._follow,
            texts=settings.texts,
            keep_html=self._extractor is not None or settings.content,
        )
        read = perf_counter()
        targets, flags = self._targets(page.links)
        texts = b"" if page.texts is None or not targets else self._texts(page.links, page.texts)
        body_hash = xxhash.xxh3_64_intdigest(body)
        outcome, error = Outcome.OK, unpacked.error
        if fault is not None:
            outcome = Outcome.TOO_LARGE if fault == "too_large" else Outcome.TRUNCATED
        elif not page.is_html:
            outcome = Outcome.NOT_HTML
        elif page.is_truncated:
            outcome, error = (
                Outcome.PARSE_TRUNCATED,
                "the parser gave up before the end; a scanner found the other links",
            )
        result = PageResult(
            number,
            outcome.value,
            error,
            page.title[:TITLE_LIMIT] if page.title is not None else None,
            page.canonical,
            page.robots,
            page.encoding,
            len(body),
            targets,
            flags,
            body_hash,
            _micros(decode_seconds + page.decode_seconds),
            _micros(page.parse_seconds),
            _micros(page.resolve_seconds + perf_counter() - read),
            texts,
        )
        if page.html is not None and url != SAMPLE[1]:
            if self._extractor is not None:
                result = self._with_extract(result, page, url=url, content_type=content_type)
            if settings.content:
                result = self._with_content(result, page.html, url=url)
        return (PAGE, *result)

    def _with_extract(
        self, result: PageResult, page: document.Document, *, url: str, content_type: str | None
    ) -> PageResult:
        """The result with what the user's function and selectors make of the page, and the time that this took."""
        from crawlr.parse.parsed_document import ParsedDocument

        assert self._extractor is not None
        assert page.html is not None
        started = perf_counter()
        found = page.links if self._extractor.has_function else ()  # nobody else looks at them
        value, error = self._extractor.run(
            ParsedDocument(
                url=url,
                html=page.html,
                content_type=content_type,
                encoding=page.encoding or "utf-8",
                title=page.title,
                links=links.as_links(found),
                canonical=page.canonical,
                robots=page.robots,
            )
        )
        return result._replace(extract=value, extract_error=error, extract_us=_micros(perf_counter() - started))

    def _with_content(self, result: PageResult, html: str, *, url: str) -> PageResult:
        """The result with the document and what a person reads on it."""
        from crawlr.parse.visible_text import visible_text

        started = perf_counter()
        if self._content > CONTENT_LIMIT:
            raise MemoryError
        text = visible_text(html, url=url)
        self._content += len(html) + len(text)
        spent = result.extract_us + _micros(perf_counter() - started)
        return result._replace(text=text, html=html, extract_us=spent)

    def _targets(self, found: list[links.FoundLink]) -> tuple[bytes, bytes]:
        """PageResult's targets and flags."""
        numbers, first_flag = self._numbers, self._first_flag
        places: dict[int, int] = {}  # number -> place among the targets
        flags = bytearray()
        for url, kind, nofollow in found:
            number = numbers.get(url)
            if number is None:
                number = self._number(url)
            place = places.get(number)
            if place is None:
                places[number] = len(flags)
                flags.append(first_flag[kind] | (not nofollow))
            elif not nofollow:
                flags[place] |= 1
        return array("I", places).tobytes(), bytes(flags)

    def _texts(self, found: list[links.FoundLink], texts: list[str]) -> bytes:
        """PageResult's texts. `_targets` has given every link its number."""
        first: dict[int, str] = {}
        for (url, _, _), text in zip(found, texts, strict=True):
            first.setdefault(self._numbers[url], text)
        return zlib.compress("\n".join(first.values()).encode("utf-8", "replace"), 1)

    def _number(self, url: str) -> int:
        """The number of a URL that is not in the table yet; another spelling of it may be."""
        identity = self._identity(url)
        number = self._numbers.get(identity)
        if number is None:
            number = self._given_out
            self._numbers[identity] = number
            self._given_out = number + 1
            self._new_links.append((url, "" if identity == url else identity))
        self._numbers[url] = number
        return number


def _without_links(
    number: int, *, outcome: Outcome, error: str | None, size: int = 0, decode_us: int = 0
) -> PageResult:
    return PageResult(number, outcome.value, error, None, None, (), None, size, b"", b"", 0, decode_us, 0, 0)


def _micros(seconds: float) -> int:
    return round(seconds * 1e6)
