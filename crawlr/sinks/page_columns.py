"""A page a row, in the columns of sitemap.json, of Screaming Frog's Internal:All, or of an advertools crawl file.

From: source. To: csv_file, jsonl, parquet. Main thread.

native: the fields of a page in sitemap.json under their names, then `parent_url`, `last_modified` (as the server sent
it), `body_hash` (pages with the same are the same), `indexable`, `inlinks` and `outlinks` (pages, each once), and
`in_sitemap` (empty without --sitemaps); of a crawl that took something out of its pages also `extract` and
`extract_error`; the other two have the columns of extract_columns.

sf: the headers of Internal:All, in its order, for what is known. What differs is said here: every page is listed, a URL
that robots.txt forbids is no page; a link counts once a page, so Inlinks equals Unique Inlinks; Meta Robots 1 holds
the X-Robots-Tag's directives too; Status is the standard's phrase, not the server's; Hash is of 64 bit; Link Score is
PageRank on a logarithmic scale from 0 (the lowest) to 100, over all URLs.

advertools: its headers, for what is known; what a page has several of is joined by @@. Each redirect is a row of its
own, with `resp_headers_Location`; the row that redirects end at has their chain in `redirect_urls`, `redirect_times`
and `redirect_reasons`. `errors` is there for a URL without an answer, as advertools' own rows have it.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator
from http import HTTPStatus
from urllib.parse import urlsplit

from crawlr.formats import Columns
from crawlr.records import Outcome, PageRecord
from crawlr.sinks import extract_columns
from crawlr.sinks.indexability import Obstacle, is_html, obstacles
from crawlr.sinks.source import Addresses, Source
from crawlr.sinks.tables import Column, Kind, Row, Table, batches

__all__ = ["TABLES", "advertools", "native", "sf", "sf_status"]

_BATCH = 500
_FLAG, _REAL, _WHOLE, _WORDS = Kind.FLAG, Kind.REAL, Kind.WHOLE, Kind.WORDS

# ---------------------------------------------------------------- native

_NATIVE = (
    Column("id", _WHOLE),
    Column("url"),
    Column("depth", _WHOLE),
    Column("parent", _WHOLE),
    Column("status", _WHOLE),
    Column("outcome"),
    Column("error"),
    Column("links", _WHOLE),
    Column("millis", _WHOLE),
    Column("bytes", _WHOLE),
    Column("content_type"),
    Column("encoding"),
    Column("title"),
    Column("canonical"),
    Column("robots", _WORDS),
    Column("root", _WHOLE),
    Column("redirect_to", _WHOLE),
    Column("redirect_url"),
    Column("attempts", _WHOLE),
    Column("parent_url"),
    Column("last_modified"),
    Column("body_hash"),
    Column("indexable", _FLAG),
    Column("inlinks", _WHOLE),
    Column("outlinks", _WHOLE),
    Column("in_sitemap", _FLAG),
)
_EXTRACT = (Column("extract", Kind.JSON), Column("extract_error"))


def native(source: Source) -> Table:
    """The table in our own words."""
    has_extracts = source.view.has_extracts

    def rows() -> Iterator[Row]:
        degrees = source.degrees
        addresses = Addresses(source.view)
        for batch in batches(_versioned(source), _BATCH):
            known = addresses.of({page.parent for page, _, _ in batch if page.parent is not None})
            for page, last_modified, body_hash in batch:
                yield (
                    page.id,
                    page.url,
                    page.depth,
                    page.parent,
                    page.status,
                    page.outcome.value,
                    page.error,
                    page.links,
                    page.millis,
                    page.bytes,
                    page.content_type,
                    page.encoding,
                    page.title,
                    page.canonical,
                    page.robots,
                    page.root,
                    page.redirect_to,
                    page.redirect_url,
                    page.attempts,
                    None if page.parent is None else known[page.parent].url,
                    last_modified,
                    _hex(body_hash),
                    not obstacles(page),
                    degrees.into[page.id],
                    degrees.out[page.id],
                    page.in_sitemap,
                    *((page.extract, page.extract_error) if has_extracts else ()),
                )

    columns = (*_NATIVE, *_EXTRACT) if has_extracts else _NATIVE
    return Table(columns=columns, rows=rows, json_keys=source.view.extract_names)


# ---------------------------------------------------------------- Screaming Frog

_SF = (
    Column("Address"),
    Column("Content Type"),
    Column("Status Code", _WHOLE),
    Column("Status"),
    Column("Indexability"),
    Column("Indexability Status"),
    Column("Title 1"),
    Column("Title 1 Length", _WHOLE),
    Column("Meta Robots 1"),
    Column("Canonical Link Element 1"),
    Column("Size (bytes)", _WHOLE),
    Column("Crawl Depth", _WHOLE),
    Column("Folder Depth", _WHOLE),
    Column("Link Score", _WHOLE),
    Column("Inlinks", _WHOLE),
    Column("Unique Inlinks", _WHOLE),
    Column("% of Total", _REAL),
    Column("Outlinks", _WHOLE),
    Column("Unique Outlinks", _WHOLE),
    Column("External Outlinks", _WHOLE),
    Column("Unique External Outlinks", _WHOLE),
    Column("Hash"),
    Column("Response Time", _REAL),
    Column("Last Modified"),
    Column("Redirect URL"),
    Column("Redirect Type"),
    Column("URL Encoded Address"),
)
_SF_OBSTACLES = {
    Obstacle.NO_RESPONSE: "No Response",
    Obstacle.REDIRECTED: "Redirected",
    Obstacle.CLIENT_ERROR: "Client Error",
    Obstacle.SERVER_ERROR: "Server Error",
    Obstacle.CANONICALISED: "Canonicalised",
    Obstacle.NOINDEX: "noindex",
}
_SF_FAILURES = {
    Outcome.DNS_ERROR: "DNS Lookup Failed",
    Outcome.REFUSED: "Connection Refused",
    Outcome.CONNECT_TIMEOUT: "Connection Timeout",
    Outcome.READ_TIMEOUT: "Connection Timeout",
    Outcome.TOTAL_TIMEOUT: "Connection Timeout",
}


def sf(source: Source) -> Table:
    """The table as Screaming Frog exports Internal:All."""
    taken, cells = extract_columns.numbered(source, beside=[column.name for column in _SF])

    def rows() -> Iterator[Row]:
        degrees = source.degrees
        score = _link_score(source)
        html_pages = sum(1 for page in source.view.pages() if page.status == 200 and is_html(page))
        for page, last_modified, body_hash in _versioned(source):
            why = obstacles(page)
            into, internal = degrees.into[page.id], degrees.out_in_scope[page.id]
            external = page.links - internal
            yield (
                page.url,
                page.content_type,
                page.status or 0,
                sf_status(page.status, page.outcome),
                "Non-Indexable" if why else "Indexable",
                ",".join(_SF_OBSTACLES[each] for each in why) or None,
                page.title,
                len(page.title or ""),
                ", ".join(page.robots) or None,
                page.canonical,
                page.bytes,
                page.depth,
                max(0, urlsplit(page.url).path.count("/") - 1),
                score[page.id],
                into,
                into,
                round(100 * into / html_pages, 3) if html_pages else 0.0,
                internal,
                internal,
                external,
                external,
                _hex(body_hash),
                page.millis / 1000,
                last_modified,
                page.redirect_url,
                "HTTP Redirect" if page.redirect_url is not None else None,
                page.url,
                *cells(page.extract),
            )

    return Table(columns=(*_SF, *taken), rows=rows, has_mark=True)


def sf_status(status: int | None, outcome: str | None) -> str | None:
    """The Status beside a Status Code: the standard's phrase, or what became of a request without an answer."""
    if status is None:
        return None if outcome is None else _SF_FAILURES.get(Outcome(outcome), "Connection Error")
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return None


def _link_score(source: Source) -> array[int]:
    """PageRank as a whole number from 0 (the lowest of all) to 100 (the highest), on a logarithmic scale."""
    ranks = source.ranks
    lowest = min((rank for rank in ranks if rank), default=0.0)
    width = math.log(max(ranks, default=0.0) / lowest) if lowest else 0.0
    if not width:
        return array("B", bytes(len(ranks)))
    return array("B", (round(100 * math.log(rank / lowest) / width) if rank else 0 for rank in ranks))


# ---------------------------------------------------------------- advertools

_ADVERTOOLS = (
    Column("url"),
    Column("title"),
    Column("canonical"),
    Column("size", _WHOLE),
    Column("download_latency", _REAL),
    Column("redirect_times", _WHOLE),
    Column("redirect_urls"),
    Column("redirect_reasons"),
    Column("depth", _WHOLE),
    Column("status", _WHOLE),
    Column("links_url"),
    Column("links_text"),
    Column("links_nofollow"),
    Column("errors"),
    Column("resp_headers_Content-Type"),
    Column("resp_headers_Last-Modified"),
    Column("resp_headers_Location"),
)


def advertools(source: Source) -> Table:
    """The table as advertools writes a crawl file."""
    taken, cells = extract_columns.joined(source, beside=[column.name for column in _ADVERTOOLS])

    def rows() -> Iterator[Row]:
        addresses = Addresses(source.view)
        came_from = _redirect_sources(source)
        all_links = source.view.links()
        links = next(all_links, None)
        for page, last_modified, _ in _versioned(source):
            while links is not None and links.source < page.id:
                links = next(all_links, None)
            urls = texts = nofollow = None
            if links is not None and links.source == page.id:
                known = addresses.of(set(links.targets))
                urls = "@@".join([known[target].url for target in links.targets])
                if links.texts is not None:
                    texts = "@@".join(links.texts)
                if links.kinds is not None:
                    nofollow = "@@".join(["False" if kind & 1 else "True" for kind in links.kinds])
            chain = [] if page.redirect_url is not None else _chain(page.id, came_from, addresses)
            yield (
                page.url,
                page.title,
                page.canonical,
                None if page.status is None else page.bytes,
                None if page.status is None else page.millis / 1000,
                len(chain) or None,
                "@@".join(url for url, _ in chain) or None,
                "@@".join(str(status) for _, status in chain) or None,
                page.depth,
                page.status,
                urls,
                texts,
                nofollow,
                None if page.status is not None else page.error or page.outcome.value,
                page.content_type,
                last_modified,
                page.redirect_url,
                *cells(page.extract),
            )

    return Table(columns=(*_ADVERTOOLS, *taken), rows=rows, flags=("True", "False"), leaves_out_none=True)


def _redirect_sources(source: Source) -> array[int]:
    """By id, the first page that redirects there, or -1."""
    found = array("i", [-1]) * len(source.view.in_scope())
    for page in source.view.pages():
        if page.redirect_to is not None and found[page.redirect_to] < 0:
            found[page.redirect_to] = page.id
    return found


def _chain(number: int, came_from: array[int], addresses: Addresses) -> list[tuple[str, int | None]]:
    """(url, status) of the redirects that lead to a page, the first asked for first."""
    ids: list[int] = []
    while (number := came_from[number]) >= 0 and number not in ids:
        ids.append(number)
    if not ids:
        return []
    known = addresses.of(set(ids))
    return [(known[each].url, known[each].status) for each in reversed(ids)]


# ---------------------------------------------------------------- common to them


def _versioned(source: Source) -> Iterator[tuple[PageRecord, str | None, int | None]]:
    for page, (number, last_modified, body_hash) in zip(source.view.pages(), source.view.versions(), strict=True):
        assert page.id == number, (page.id, number)
        yield page, last_modified, body_hash


def _hex(body_hash: int | None) -> str | None:
    return None if body_hash is None else f"{body_hash & 0xFFFF_FFFF_FFFF_FFFF:016x}"


TABLES: dict[Columns, Callable[[Source], Table]] = {
    Columns.NATIVE: native,
    Columns.SF: sf,
    Columns.ADVERTOOLS: advertools,
}
"""What makes the table of pages, by whose columns it has."""
