"""Every option of a crawl with its default, checked once: nothing behind this module meets a bad value.

From: cli or crawlr.crawl(). To: everything. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT_FOLLOW", "KIB", "MIB", "Options"]

KIB = 1024
MIB = 1024 * KIB
DEFAULT_FOLLOW = ("a", "area", "iframe", "frame", "refresh")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The effective values of one crawl. Durations in seconds, sizes in bytes, None = no limit."""

    seeds: tuple[str, ...] = ()
    """As the user gave them; resolved by the coordinator."""
    depth: int | None = None
    max_pages: int | None = None
    max_time: float | None = None
    scope: str = "host"
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    concurrency: int = 20
    per_host: int | None = None
    rps: float = 5.0
    robots: bool = True
    max_crawl_delay: float = 30.0
    user_agent: str = ""
    """Empty: crawlr/VERSION with its address."""
    timeout: float = 30.0
    connect_timeout: float = 5.0
    retries: int = 2
    max_redirects: int = 10
    max_body: int = 32 * MIB
    header: tuple[tuple[str, str], ...] = ()
    cookie: str | None = None
    auth: str | None = None
    proxy: str | None = None
    """A proxy's URL, or "env"."""
    insecure: bool = False
    ca_bundle: str | None = None
    sitemaps: bool = False
    keep_params: bool = False
    ignore_param: tuple[str, ...] = ()
    parse_procs: int | None = None
    """None: auto."""
    parse_timeout: float = 10.0
    parse_memory: int = 1024 * MIB
    fetcher: str = "urllib3"
    parser: str = "lxml"
    follow: tuple[str, ...] = DEFAULT_FOLLOW
    nofollow: str | None = None
    """page, all or ignore; None: page, or ignore without robots."""
    edges: str = "in-scope"
    out: str | None = "sitemap.json"
    """A path, "-" for stdout, None for no file (crawlr.crawl)."""
    resume: bool = False
    fresh: bool = False
    stats: str | None = None
