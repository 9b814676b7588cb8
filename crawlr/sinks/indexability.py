"""Whether search engines may list a page, and why not: by its status, its robots directives and its canonical.

From: page records. To: sitemaps.org files and the columns of tables. Pure.
"""

from __future__ import annotations

from enum import StrEnum

from crawlr.parse.urls import make_identity
from crawlr.records import Outcome, PageRecord

__all__ = ["Obstacle", "is_html", "is_own_canonical", "obstacles"]

HTML_TYPES = ("text/html", "application/xhtml+xml")
_READ = (Outcome.OK, Outcome.TOO_LARGE, Outcome.TRUNCATED, Outcome.PARSE_TRUNCATED)
# Every parameter counts: a canonical without ?utm_source= names another address than the page with it.
_same = make_identity(keep_params=True, ignore=())


class Obstacle(StrEnum):
    """What keeps a page out of an index."""

    NO_RESPONSE = "no response"
    REDIRECTED = "redirected"
    CLIENT_ERROR = "client error"
    SERVER_ERROR = "server error"
    CANONICALISED = "canonicalised"
    NOINDEX = "noindex"


def obstacles(page: PageRecord) -> tuple[Obstacle, ...]:
    """Every obstacle of a page, none for one that may be listed. What is no HTML may be listed too."""
    status = page.status
    if status is None or status < 200:
        return (Obstacle.NO_RESPONSE,)
    if status >= 300:
        kind = Obstacle.REDIRECTED if status < 400 else Obstacle.CLIENT_ERROR
        return (kind if status < 500 else Obstacle.SERVER_ERROR,)
    found = []
    if not is_own_canonical(page):
        found.append(Obstacle.CANONICALISED)
    if "noindex" in page.robots:
        found.append(Obstacle.NOINDEX)
    return tuple(found)


def is_own_canonical(page: PageRecord) -> bool:
    """True when the page names no canonical address, or its own, however that is spelled."""
    return page.canonical is None or page.canonical == page.url or _same(page.canonical) == _same(page.url)


def is_html(page: PageRecord) -> bool:
    """True when the body was read as HTML: its type says so, or it has none and was found to be."""
    essence = (page.content_type or "").partition(";")[0].strip().lower()
    return page.outcome is not Outcome.NOT_HTML and (page.outcome is Outcome.OK or essence in HTML_TYPES)


def is_read(page: PageRecord) -> bool:
    """True when enough of the document was parsed to know its robots directives and canonical."""
    return page.outcome in _READ
