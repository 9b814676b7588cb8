"""A crawl made by hand for the report: one of everything a tab can show, and text that would like to be markup."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from crawlr.journal import ExternalRow, Journal, PageRow
from crawlr.known import FAR, Flag
from crawlr.parse.links import KINDS
from crawlr.records import StopReason
from crawlr.view import CrawlView

SITE = "https://site.test"
HTML = "text/html"

TITLE = '</script><script>window.hacked = "title"</script><img src="x" onerror="window.hacked = 1">'
TEXT = '<!--<script>"\'><svg onload="window.hacked = 2"></svg> {{ 7 * 7 }}'
ERROR = "</td></table><iframe srcdoc='<script>parent.hacked = 3</script>'>"
RULE = "Disallow: /<b onmouseover=alert(1)>"
HOSTILE_URL = f"{SITE}/x'\"><script>window.hacked = 4</script>"
OTHER = "https://elsewhere.test"
OUTSIDE = [
    # class, status, outcome, error of a link target out of scope
    ("ok", 200, "ok", None),
    ("blocked", 999, "http_error", None),
    ("broken", 410, "http_error", None),
    ("broken", None, "dns_error", ERROR),
    ("unchecked", None, "robots_disallowed", "Disallow: /4 for *"),
]
SCRIPT_URL = "javascript:window.hacked = 5//"


class MadeCrawl:
    """Rows of a journal, by a call each. URLs are given as paths of SITE, or whole."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._urls: dict[int, list[Any]] = {}
        self._pages: dict[int, list[Any]] = {}
        self._links: dict[int, list[tuple[int, int, str]]] = {}
        self._skipped: list[tuple[int, str, str | None]] = []
        self._external: list[ExternalRow] = []
        self._sitemaps: list[tuple[str, int, int, str | None]] = []

    def url(self, place: str, *, depth: int = 1, parent: str | None = "/", flags: int | None = None) -> int:
        """The id of a URL; it becomes known, in scope, when it is not."""
        url = place if ":" in place else SITE + place
        number = self._ids.get(url)
        if number is None:
            number = self._ids[url] = len(self._ids)
            is_inside = url.startswith(SITE) if flags is None else bool(flags & Flag.IN_SCOPE)
            flags = (Flag.IN_SCOPE | Flag.FOLLOWED if is_inside else 0) if flags is None else flags
            above = None if parent is None or parent == place else self.url(parent)
            self._urls[number] = [number, url, None, depth, above, 0, 0, flags]
        return number

    def page(
        self,
        place: str,
        *,
        status: int | None = 200,
        outcome: str = "ok",
        error: str | None = None,
        millis: int = 10,
        size: int = 1000,
        title: str | None = None,
        canonical: str | None = None,
        robots: str = "",
        to: str | None = None,
        body: int | None = None,
        depth: int = 1,
        parent: str | None = "/",
        in_sitemap: bool = False,
    ) -> int:
        """A page. `to`: it redirects there; `body`: the hash of its body."""
        number = self.url(place, depth=depth, parent=parent)
        self._urls[number][7] |= Flag.IN_SITEMAP if in_sitemap else 0
        target = None if to is None else self.url(to)
        self._pages[number] = [
            number, status, outcome, error, 0, millis, 0 if status is None else size, HTML, "utf-8", title, canonical,
            robots, target, None if to is None else to if ":" in to else SITE + to, 1, None, None, body, None,
        ]  # fmt: skip
        return number

    def link(self, source: str, target: str, text: str = "", *, kind: str = "a", nofollow: bool = False) -> None:
        """A link of a page."""
        flag = KINDS.index(kind) << 1 | (not nofollow)
        self._links.setdefault(self.url(source), []).append((self.url(target), flag, text))

    def skip(self, place: str, reason: str, rule: str | None = None, **where: Any) -> None:
        """A URL that a rule refused."""
        self._skipped.append((self.url(place, **where), reason, rule))

    def answer(self, url: str, kind: str, status: int | None, outcome: str, error: str | None = None) -> None:
        """What --check-external found at a URL out of scope."""
        self._external.append((self.url(url), status, outcome, kind, error))

    def sitemap(self, place: str, error: str | None = None, *, level: int = 0, is_done: bool = True) -> None:
        """A sitemap that was looked for."""
        self._sitemaps.append((SITE + place, level, int(is_done), error))

    def journal(self, *, with_texts: bool = True) -> Journal:
        """All of it in a temporary file."""
        journal = Journal.create("", {})
        texts = []
        for number, links in self._links.items():
            row = self._pages[number]
            row[4] = len(links)
            row[15] = array("I", [target for target, _, _ in links]).tobytes()
            row[16] = bytes(flag for _, flag, _ in links)
            texts.append((number, zlib.compress("\n".join(text for _, _, text in links).encode())))
        pages: list[PageRow] = [tuple(row) for row in self._pages.values()]  # type: ignore[misc]  # made by hand here
        journal.commit(
            urls=[tuple(row) for row in self._urls.values()],  # type: ignore[misc]
            pages=pages,
            skipped=self._skipped,
            texts=texts if with_texts else (),
            external=self._external,
            sitemaps=self._sitemaps,
        )
        return journal

    @contextmanager
    def view(self, *, with_texts: bool = True, has_sitemaps: bool = True) -> Iterator[CrawlView]:
        """The view of it, with a depth limit of 3."""
        journal = self.journal(with_texts=with_texts)
        try:
            yield CrawlView(
                journal,
                stop_reason=StopReason.PAGE_BUDGET,
                depth_limit=3,
                all_edges=bool(self._external),
                has_sitemaps=has_sitemaps,
            )
        finally:
            journal.close()


def everything() -> MadeCrawl:
    """The crawl of the module's docstring."""
    made = MadeCrawl()
    made.page("/", depth=0, parent=None, title=TITLE, body=1, in_sitemap=True)
    made.page("/about", title="About", millis=2500, size=5_000_000, body=2)
    made.page("/copy", title="About", body=2, canonical=f"{SITE}/about")
    made.page("/copy2", title="About", body=2)
    made.page("/untitled", title=None, body=3)
    # broken
    made.page("/gone", status=404, outcome="http_error", error="404 Not Found")
    made.page("/dead", status=None, outcome="refused", error=ERROR)
    made.page("/oops", status=503, outcome="http_error", error="503 Service Unavailable")
    made.page("/cut", outcome="truncated", error="12 of 400 bytes")
    made.page("/nowhere", status=302, outcome="bad_redirect", error="no Location")
    made.page(HOSTILE_URL, status=404, outcome="http_error", error="404 Not Found")
    # redirects
    made.page("/old", status=301, outcome="redirect", to="/about")
    made.page("/older", status=302, outcome="redirect", to="/old")
    made.page("/to-gone", status=301, outcome="redirect", to="/gone")
    made.page("/round", status=301, outcome="redirect_loop", error="redirects in a circle", to="/round2")
    made.page("/round2", status=301, outcome="redirect_loop", error="redirects in a circle", to="/round")
    made.page("/folder", status=301, outcome="redirect", to="/folder/")
    made.page("/folder/", title="Folder", body=4)
    made.page("/away", status=302, outcome="redirect", to="https://other.test/there")
    made.page("/hostile", status=302, outcome="redirect", to=SCRIPT_URL)
    # links
    made.link("/", "/about", "About us")
    made.link("/", "/gone", TEXT)
    made.link("/", "/oops", "oops", nofollow=True)
    made.link("/", HOSTILE_URL, "hostile")
    made.link("/", "/old", "old")
    made.link("/", "/folder", "folder")
    made.link("/about", "/gone", "Gone, too", kind="area")
    made.link("/about", "/", "home")
    made.link("/about", "/copy", "copy")
    # not requested
    made.skip("/private", "robots_disallowed", RULE)
    made.skip("/private/2", "robots_disallowed", RULE)
    made.skip("/trap/trap/trap/trap/trap", "trap")
    made.url("/late", depth=2, parent="/about")
    made.url("/deep", depth=4, parent="/about")
    # sitemaps
    made.page("/orphan", depth=0, parent=None, title="Orphan", body=5, in_sitemap=True)
    made.page("/hidden", depth=0, parent=None, robots="noindex", title="Hidden", body=6, in_sitemap=True)
    made.link("/about", "/hidden", "hidden")
    made.skip("/listed-but-refused", "robots_disallowed", RULE, depth=0, parent=None)
    made.sitemap("/sitemap.xml", "status 404")
    made.sitemap("/index.xml")
    made.sitemap("/index-1.xml", ERROR, level=1)
    made.sitemap("/index-2.xml", level=1, is_done=False)
    # links out
    for number, (kind, status, outcome, error) in enumerate(OUTSIDE):
        made.answer(f"{OTHER}/{number}", kind, status, outcome, error)
        made.link("/about", f"{OTHER}/{number}", f"outside {number}")
    made.link("/copy", f"{OTHER}/2", TEXT, nofollow=True)
    made.link("/copy", f"{OTHER}/not-asked", "not asked")
    # another host, and one that was never reached by any way
    made.url("https://other.test/unseen", depth=FAR, parent=None)
    return made


def head(**changes: object) -> dict[str, object]:
    """The fields before the lists of sitemap.json."""
    return {
        "format": "crawlr-sitemap/1",
        "generator": "crawlr 0.1.0",
        "seeds": [f"{SITE}/"],
        "started_at": "2026-01-31T12:00:00Z",
        "finished_at": "2026-01-31T12:01:00Z",
        "complete": False,
        "stop_reason": "page_budget",
        "options": {"depth": 3, "edges": "in-scope", "rps": 5.0, "robots": True, "sitemaps": True, "header": ["***"]},
        "stats": {"pages": 21, "ok": 17, "errors": 4, "skipped": 4, "edges": 10, "elapsed_s": 60.0},
    } | changes


def stats(**changes: object) -> dict[str, Any]:
    """The accounting of a run of four seconds."""
    return {
        "format": "crawlr-stats/1",
        "elapsed_s": 4.0,
        "limit": {"word": "host", "text": "host rate: --rps 5 on site.test", "with_parse_procs": {"1": 0.5, "2": 1.0}},
        "fetch": {
            "slots": 20, "busy_s": 8.0, "busy_share": 0.1, "connect_s": 1.0, "first_byte_s": 6.0, "body_s": 1.0,
        },
        "parse": {
            "slots": 2, "busy_s": 2.0, "busy_share": 0.25, "decode_s": 0.25, "parse_s": 1.25, "resolve_s": 0.25,
            "hand_off_s": 0.25,
        },
        "coordinator": {
            "busy_share": 0.05, "dispatch_s": 0.1, "merge_s": 0.05, "journal_s": 0.05, "idle_s": 3.8,
        },
        "hosts": [
            {
                "host": "site.test", "requests": 24, "interval_s": 2.0, "held_s": 1.5, "active_s": 50.0,
                "crawl_delay_s": 2.0, "robots": "read, 3 rules apply to crawlr",
            },
            {
                "host": "robots-only.test", "requests": 1, "interval_s": 0.2, "held_s": 0.0, "active_s": 0.0,
                "crawl_delay_s": None, "robots": "not had: status 503",
            },
        ],
        "timeline": [_period(1.0, "empty"), _period(2.0, "host"), _period(3.0, "host"), _period(4.0, "parse")],
    } | changes  # fmt: skip


def _period(at: float, limiter: str) -> Mapping[str, object]:
    return {
        "at": at, "seconds": 1.0, "pages": int(5 * at), "bytes": int(4096 * at), "errors": 1, "fetch_share": 0.1,
        "parse_share": 0.25, "coordinator_share": 0.05, "limiter": limiter, "queued": 9, "in_flight": 3,
        "parse_procs": 2,
    }  # fmt: skip
