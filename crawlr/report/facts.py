"""What has to be known of every URL before a section can say what a single page means: which are broken, what
redirects where, which bodies and titles may be there twice.

From: one pass over the pages of a view. To: the sections, which see the pages a second time. Memory is some 20 bytes a
known URL, whatever the pages are.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from enum import StrEnum

from crawlr.records import Outcome, PageRecord
from crawlr.sinks.indexability import is_html, is_own_canonical
from crawlr.sinks.source import Source

__all__ = ["Facts", "Trouble", "pages_with_hashes", "title_key", "trouble_of"]


class Trouble(StrEnum):
    """What is wrong with a page, as the page names it."""

    CLIENT_ERROR = "client error"
    SERVER_ERROR = "server error"
    NO_ANSWER = "no answer"
    LOOP = "redirect loop"
    BAD_REDIRECT = "bad redirect"
    DAMAGED = "damaged body"


def trouble_of(page: PageRecord) -> Trouble | None:
    """What is wrong with a page; None when it can be read, or redirects to somewhere."""
    match page.outcome:
        case Outcome.REDIRECT_LOOP:
            return Trouble.LOOP
        case Outcome.BAD_REDIRECT:
            return Trouble.BAD_REDIRECT
    status = page.status
    if status is None:
        return Trouble.NO_ANSWER
    if status >= 400:
        return Trouble.SERVER_ERROR if status >= 500 else Trouble.CLIENT_ERROR
    if 200 <= status < 300 and page.outcome not in (Outcome.OK, Outcome.NOT_HTML):
        return Trouble.DAMAGED
    return None


def title_key(page: PageRecord) -> int | None:
    """What pages with the same title have in common; None for a page whose title does not matter: no HTML, not 200,
    without a title, or one that names another address as the one to list."""
    if page.status != 200 or page.title is None or not is_html(page) or not is_own_canonical(page):
        return None
    return hash(page.title)


def pages_with_hashes(source: Source) -> Iterator[tuple[PageRecord, int | None]]:
    """Every page with the hash of its body, None when it is not known."""
    for page, (number, _, body_hash) in zip(source.view.pages(), source.view.versions(), strict=True):
        assert page.id == number, (page.id, number)
        yield page, body_hash if page.status is not None and 200 <= page.status < 300 else None


class Facts:
    """Arrays by id, filled by one pass."""

    def __init__(self, source: Source) -> None:
        limit = len(source.view.in_scope())
        self.is_broken = bytearray(limit)
        """1: a redirect that ends there is a dead end."""
        self.redirect_to = array("i", [-1]) * limit
        """Id of the target; -1: no redirect, -2: it leads out of scope."""
        self.redirects_into = array("I", bytes(4 * limit))
        """How many pages redirect there."""
        self.has_hashes = False
        self.bodies = _Twice(limit)
        self.titles = _Twice(limit)
        for page, body_hash in pages_with_hashes(source):
            self._see(page, body_hash)

    def _see(self, page: PageRecord, body_hash: int | None) -> None:
        trouble = trouble_of(page)
        if trouble is not None and trouble is not Trouble.DAMAGED:
            self.is_broken[page.id] = 1
        if page.redirect_to is not None:
            self.redirect_to[page.id] = page.redirect_to
            self.redirects_into[page.redirect_to] += 1
        elif page.redirect_url is not None:
            self.redirect_to[page.id] = -2
        if body_hash is not None:
            self.has_hashes = True
            self.bodies.add(body_hash)
        title = title_key(page)
        if title is not None:
            self.titles.add(title)


class _Twice:
    """Says of a hash whether it may have been added twice: never wrongly no, so that only few have to be counted."""

    def __init__(self, expected: int) -> None:
        self._mask = (1 << max(10, (8 * expected).bit_length())) - 1
        self._seen = bytearray(self._mask + 1)

    def add(self, key: int) -> None:
        place = key & self._mask
        if self._seen[place] < 2:
            self._seen[place] += 1

    def __contains__(self, key: int) -> bool:
        return self._seen[key & self._mask] > 1
