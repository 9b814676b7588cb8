"""An edge a row, in our own columns, in those of Screaming Frog's All Inlinks, or of advertools' table of links.

From: source. To: csv_file, jsonl, parquet. Main thread.

native: `Source` and `Target` (URLs; Gephi's importer knows these names), then the kind of the first link, whether each
link there says nofollow, the text of the first, and the target's status. What the crawl did not keep is empty: kinds
and texts when the source is a sitemap.json, texts unless an output of the crawl asked for them.

sf: the headers of All Inlinks, in its order, for what is known. A link counts once a page. Redirects are no links here.

advertools: the columns of `crawlytics.links`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from crawlr.formats import Columns
from crawlr.records import SkipReason
from crawlr.sinks.page_columns import sf_status
from crawlr.sinks.source import Addresses, Source
from crawlr.sinks.tables import Column, Kind, Row, Table
from crawlr.view import Address, PageLinks

__all__ = ["TABLES", "advertools", "kinds_of_links", "native", "sf"]

_BATCH = 5000  # edges whose ends are asked for at once


def kinds_of_links() -> list[tuple[str, bool]]:
    """(name of the kind, nofollow) for every byte by which the journal keeps the kind of a link."""
    from crawlr.parse.links import KINDS

    return [(KINDS[byte >> 1] if byte >> 1 < len(KINDS) else "", not byte & 1) for byte in range(64)]


def native(source: Source) -> Table:
    """The table in our own words."""
    columns = (
        Column("Source"),
        Column("Target"),
        Column("kind"),
        Column("nofollow", Kind.FLAG),
        Column("anchor_text"),
        Column("target_status", Kind.WHOLE),
    )

    def row(page: Address, target: Address, kind: str | None, nofollow: bool | None, text: str | None) -> Row:
        return (page.url, target.url, kind, nofollow, text, target.status)

    return Table(columns=columns, rows=lambda: _rows(source, row))


_SF_TYPES = {
    "a": "Hyperlink",
    "area": "Hyperlink",
    "iframe": "Iframe",
    "frame": "Frame",
    "refresh": "Meta Refresh",
    "img": "Image",
    "script": "JavaScript",
}


def sf(source: Source) -> Table:
    """The table as Screaming Frog exports All Inlinks."""
    columns = (
        Column("Type"),
        Column("Source"),
        Column("Destination"),
        Column("Size (Bytes)", Kind.WHOLE),
        Column("Anchor"),
        Column("Status Code", Kind.WHOLE),
        Column("Status"),
        Column("Follow", Kind.FLAG),
        Column("Link Origin"),
    )

    def row(page: Address, target: Address, kind: str | None, nofollow: bool | None, text: str | None) -> Row:
        is_blocked = target.reason == SkipReason.ROBOTS_DISALLOWED
        return (
            None if kind is None else _SF_TYPES.get(kind, kind.capitalize()),
            page.url,
            target.url,
            target.bytes,
            text,
            target.status or 0,
            "Blocked by robots.txt" if is_blocked else sf_status(target.status, target.outcome),
            None if nofollow is None else not nofollow,
            "HTML",
        )

    return Table(columns=columns, rows=lambda: _rows(source, row), has_mark=True)


def advertools(source: Source) -> Table:
    """The table as `crawlytics.links` gives it."""
    columns = (
        Column("url"),
        Column("link"),
        Column("text"),
        Column("nofollow", Kind.FLAG),
        Column("internal", Kind.FLAG),
    )

    def row(page: Address, target: Address, kind: str | None, nofollow: bool | None, text: str | None) -> Row:  # noqa: ARG001  # the others need the kind
        return (page.url, target.url, text, nofollow, target.in_scope)

    return Table(columns=columns, rows=lambda: _rows(source, row), flags=("True", "False"))


_Maker = Callable[[Address, Address, str | None, bool | None, str | None], Row]


def _rows(source: Source, row: _Maker) -> Iterator[Row]:
    addresses = Addresses(source.view)
    waiting: list[PageLinks] = []
    count = 0
    for links in source.view.links():
        waiting.append(links)
        count += len(links.targets)
        if count >= _BATCH:
            yield from _resolved(waiting, addresses, row)
            waiting.clear()
            count = 0
    yield from _resolved(waiting, addresses, row)


def _resolved(waiting: list[PageLinks], addresses: Addresses, row: _Maker) -> Iterator[Row]:
    ids = {links.source for links in waiting}.union(*(links.targets for links in waiting))
    known = addresses.of(ids)
    names = kinds_of_links()
    for links in waiting:
        page, kinds, texts = known[links.source], links.kinds, links.texts
        for place, number in enumerate(links.targets):
            kind = nofollow = None
            if kinds is not None:
                kind, nofollow = names[kinds[place]]
            yield row(page, known[number], kind, nofollow, None if texts is None else texts[place])


TABLES: dict[Columns, Callable[[Source], Table]] = {
    Columns.NATIVE: native,
    Columns.SF: sf,
    Columns.ADVERTOOLS: advertools,
}
"""What makes the table of edges, by whose columns it has."""
