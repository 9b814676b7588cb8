"""The pages that lead to some URLs, with the text and the kind of each link.

From: the links of the view, and where pages redirect to (Facts). To: the tabs Broken and Links out. Main thread.

They are kept up to a cap over all these URLs; when there are more, each URL keeps the same number of them at most, so
that none that is linked from everywhere pushes out the links to the others.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from crawlr.report.facts import Facts
from crawlr.report.tables import Column, Details, Kind, Row, Urls, shown
from crawlr.sinks.edge_columns import kinds_of_links
from crawlr.sinks.source import Source

__all__ = ["LINKS", "Linking", "fair_share", "linking_pages"]

LINKS = 50_000
"""Linking pages that are kept, over all URLs of a table."""


class Linking(Struct, frozen=True, kw_only=True):
    """What `linking_pages` found."""

    details: Details
    has_links: bool
    has_texts: bool
    """The crawl kept the texts of links."""


def linking_pages(
    source: Source, facts: Facts, urls: Urls, inlinks: Mapping[int, int], *, opens: int, limit: int = LINKS
) -> Linking:
    """What the rows of a table open: the first pages that lead to each of these ids, in the order of their own ids,
    redirects last. `inlinks`: how many there are, by id, in the order of the rows; `opens`: the column.
    """
    found: dict[int, list[Row]] = {number: [] for number in inlinks}
    most = fair_share(list(inlinks.values()), limit)
    wanted = {number for number, count in inlinks.items() if count}
    names = [f"{name}, nofollow" if nofollow else name for name, nofollow in kinds_of_links()]
    has_links = has_texts = False
    for links in source.view.links():
        has_links = True
        has_texts = has_texts or links.texts is not None
        if wanted.isdisjoint(links.targets):
            continue
        for place, target in enumerate(links.targets):
            if target in wanted:
                text = None if links.texts is None else shown(links.texts[place])
                kind = None if links.kinds is None else names[links.kinds[place]]
                found[target].append((urls.of(links.source), text, kind))
                if len(found[target]) >= most:
                    wanted.discard(target)
    for number, target in enumerate(facts.redirect_to):
        if target in wanted and len(found[target]) < most:
            found[target].append((urls.of(number), None, "redirect"))
    details = Details(
        columns=(Column("Page with the link", Kind.URL), Column("Link text", Kind.TEXT), Column("Kind", Kind.TEXT)),
        rows=list(found.values()),
        totals=list(inlinks.values()),
        opens=opens,
    )
    return Linking(details=details, has_links=has_links, has_texts=has_texts)


def fair_share(counts: list[int], limit: int) -> int:
    """The largest number such that, when each keeps at most so many, all together keep no more than `limit`."""
    left, waiting = limit, len(counts)
    for count in sorted(counts):
        if count * waiting > left:
            return left // waiting
        left -= count
        waiting -= 1
    return max(counts, default=0)
