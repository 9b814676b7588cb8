"""Every value that crosses a thread, process or disk border: who makes it and who reads it stands beside each.

From: the stage named at each class. To: the stage named at each class. Standard library and msgspec only, no I/O; read
by all. Values are Structs as dataclasses would be, frozen and by keyword: 70 of them take two milliseconds of the start
where dataclasses take 50, and one is made in a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct, field, structs

__all__ = [
    "ExternalClass",
    "FetchFailure",
    "FetchTask",
    "FetchTiming",
    "FetchedPage",
    "Json",
    "KnownUrl",
    "Link",
    "Outcome",
    "PageRecord",
    "ParseTiming",
    "ParsedPage",
    "PauseRequested",
    "RawBody",
    "ResumeRequested",
    "SkipReason",
    "SkippedRecord",
    "StopReason",
    "StopRequested",
    "TaskKind",
    "UnvisitedReason",
    "UnvisitedRecord",
    "repr_without",
]

Json = str | int | float | bool | list["Json"] | dict[str, "Json"] | None
"""A value as JSON has them."""


class Outcome(StrEnum):
    """How a requested URL ended; exactly one a page."""

    OK = "ok"
    REDIRECT = "redirect"
    HTTP_ERROR = "http_error"
    DNS_ERROR = "dns_error"
    REFUSED = "refused"
    RESET = "reset"
    EMPTY_REPLY = "empty_reply"
    CONNECT_TIMEOUT = "connect_timeout"
    READ_TIMEOUT = "read_timeout"
    TOTAL_TIMEOUT = "total_timeout"
    TLS_ERROR = "tls_error"
    PROTOCOL_ERROR = "protocol_error"
    DECODE_ERROR = "decode_error"
    TRUNCATED = "truncated"
    TOO_LARGE = "too_large"
    NOT_HTML = "not_html"
    PARSE_TRUNCATED = "parse_truncated"
    PARSE_TIMEOUT = "parse_timeout"
    PARSE_MEMORY = "parse_memory"
    PARSER_CRASH = "parser_crash"
    BAD_REDIRECT = "bad_redirect"
    REDIRECT_LOOP = "redirect_loop"
    BLOCKED_ADDRESS = "blocked_address"


class SkipReason(StrEnum):
    """Which rule forbade the request of a URL in scope."""

    ROBOTS_DISALLOWED = "robots_disallowed"
    ROBOTS_UNREACHABLE = "robots_unreachable"
    NOFOLLOW = "nofollow"
    BLOCKED_ADDRESS = "blocked_address"
    URL_TOO_LONG = "url_too_long"
    TRAP = "trap"


class UnvisitedReason(StrEnum):
    """Which bound came before the request of a URL in scope."""

    DEPTH_LIMIT = "depth_limit"
    PAGE_BUDGET = "page_budget"
    TIME_BUDGET = "time_budget"
    INTERRUPTED = "interrupted"


class StopReason(StrEnum):
    """Why the crawl ended."""

    FINISHED = "finished"
    PAGE_BUDGET = "page_budget"
    TIME_BUDGET = "time_budget"
    INTERRUPTED = "interrupted"
    ERROR = "error"


class TaskKind(StrEnum):
    """What a request is for."""

    PAGE = "page"
    ROBOTS = "robots"
    SITEMAP = "sitemap"
    LINK = "link"
    """Is a link target out of scope there? Its body is never wanted."""


class ExternalClass(StrEnum):
    """What --check-external found of a link target out of scope."""

    OK = "ok"
    BLOCKED = "blocked"
    """It answers programs with 401, 403, 429 or 999: it may well be there."""
    BROKEN = "broken"
    UNCHECKED = "unchecked"
    """It was not asked: robots.txt or its address forbids it."""


def repr_without(value: Struct, hidden: Collection[str]) -> str:
    """What a Struct shows of itself without the fields `hidden`: secrets, or whole documents."""
    shown = (f"{name}={each!r}" for name, each in structs.asdict(value).items() if name not in hidden)
    return f"{type(value).__name__}({', '.join(shown)})"


class KnownUrl(Struct, frozen=True, kw_only=True):
    """What is known of a URL before its request. Made by order, read by the caller's function `order=`."""

    url: str
    depth: int
    """The shortest way to it found so far: links away from a seed."""
    is_seed: bool
    in_sitemap: bool
    """A sitemap that has been read so far names it; always False without --sitemaps."""


class FetchTask(Struct, frozen=True, kw_only=True):
    """One HTTP exchange to perform. Made by the coordinator, read by a fetch thread.

    `id` is the URL's id for a page, and a number of the coordinator's own for robots.txt and sitemaps.
    """

    id: int
    url: str
    kind: TaskKind
    attempt: int = 1
    method: str = "GET"
    """GET, or HEAD of a LINK."""


class FetchTiming(Struct, frozen=True, kw_only=True):
    """Where the time of one exchange went, in seconds. Made by the fetcher, read by stats."""

    connect: float = 0.0
    first_byte: float = 0.0
    body: float = 0.0

    @property
    def total(self) -> float:
        return self.connect + self.first_byte + self.body


class FetchedPage(Struct, frozen=True, kw_only=True):
    """An answer with a status. Made by a Fetcher in a fetch thread, read by the coordinator.

    `body` is as received, after transfer coding and before content coding; empty when it was not wanted (redirects,
    errors, types that are not HTML). `fault` is what went wrong after the status, None when nothing did: total_timeout,
    read_timeout, reset, too_large, truncated or protocol_error. `location` is the raw value, None when there is no
    such header. Header values are text by Latin-1, so that `.encode("latin-1")` gives the bytes back.
    """

    status: int
    body: bytes = b""
    content_type: str | None = None
    content_encoding: str | None = None
    location: bytes | None = None
    retry_after: str | None = None
    x_robots_tag: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    last_modified: str | None = None
    headers: Mapping[str, Sequence[str]] | None = None
    """Every field by its name in lower case, of a page whose body was read; else None."""
    is_wanted: bool = True
    """False: the type says that the body is not HTML, so it was not read."""
    fault: Outcome | None = None
    error: str | None = None
    wire_bytes: int = 0
    timing: FetchTiming = field(default_factory=FetchTiming)


class FetchFailure(Struct, frozen=True, kw_only=True):
    """An exchange without a status. Made by a Fetcher in a fetch thread, read by the coordinator.

    `is_local`: a fault of this machine (no descriptors, no memory): never the page's, the URL goes back to the queue.
    """

    outcome: Outcome
    error: str
    is_local: bool = False
    timing: FetchTiming = field(default_factory=FetchTiming)


class RawBody(Struct, frozen=True, kw_only=True):
    """A body to be parsed, as received. Made by the coordinator, read by a parse process."""

    id: int
    url: str
    kind: TaskKind
    body: bytes
    content_type: str | None
    content_encoding: str | None


class Link(Struct, frozen=True, kw_only=True):
    """One link of a document, in document order. Made by parse.document, read by parse.worker and users."""

    url: str
    """Absolute http(s) address as the page gave it, by the URL standard, without fragment and userinfo."""
    kind: str
    """`a area iframe frame refresh link img script` and others; the element, or `refresh`."""
    nofollow: bool = False
    text: str | None = None


class ParsedPage(Struct, frozen=True, kw_only=True):
    """What a document alone says. Made by parse.parse_html, read by users (parse.worker sends the same facts flat)."""

    links: tuple[Link, ...]
    base_url: str
    title: str | None
    encoding: str
    canonical: str | None
    robots: tuple[str, ...]
    """Directives of robots meta elements that apply to the agent: lower case, sorted, `none` as both of its parts."""
    truncated: bool = False
    """The parser gave up before the end; the links after that point were found by a scanner."""


class ParseTiming(Struct, frozen=True, kw_only=True):
    """Where the time of one page in a parse process went, in seconds. Made by parse.worker, read by stats."""

    decode: float = 0.0
    parse: float = 0.0
    resolve: float = 0.0


class PageRecord(Struct, frozen=True, kw_only=True):
    """The final answer of one requested URL, as sitemap.json lists it.

    Made by the coordinator, read by sinks and on_page.
    """

    id: int
    url: str
    depth: int
    parent: int | None
    status: int | None
    outcome: Outcome
    error: str | None = None
    links: int = 0
    millis: int = 0
    bytes: int = 0
    content_type: str | None = None
    encoding: str | None = None
    title: str | None = None
    canonical: str | None = None
    robots: tuple[str, ...] = ()
    root: int = 0
    redirect_to: int | None = None
    redirect_url: str | None = None
    attempts: int = 1
    last_modified: str | None = None
    """The header, as the server sent it."""
    in_sitemap: bool | None = None
    """Whether a sitemap of the site names it; None: nobody looked, or as for on_page, not all of them are read yet."""
    extract: Json = None
    """What --extract, --extract-css and --extract-xpath gave; None: nothing, or they were not asked for."""
    extract_error: str | None = None
    """Why they gave nothing; None: nothing went wrong. The outcome of the page does not depend on it."""


class SkippedRecord(Struct, frozen=True, kw_only=True):
    """A URL in scope that a rule forbade to request. Made by crawlr.view, read by sinks."""

    id: int
    url: str
    depth: int
    parent: int | None
    reason: SkipReason
    error: str | None = None


class UnvisitedRecord(Struct, frozen=True, kw_only=True):
    """A URL in scope that a bound kept from being requested. Made by crawlr.view, read by sinks."""

    id: int
    url: str
    depth: int
    parent: int | None
    reason: UnvisitedReason


class StopRequested(Struct, frozen=True, kw_only=True):
    """The wish to end the crawl early.

    Made by a signal handler or by `Crawl.stop`, read by control from the crawl's mailbox.
    """

    reason: StopReason
    signal: int | None = None


class PauseRequested(Struct, frozen=True):
    """The wish that no request is started any more. Made by `Crawl.pause`, read by control likewise."""


class ResumeRequested(Struct, frozen=True):
    """The wish that requests are started again. Made by `Crawl.resume`, read by control likewise."""
