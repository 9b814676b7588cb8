"""What comes out of a parse process for each body, and how it crosses: as plain tuples, rebuilt in the main process.

From: worker (rows). To: pool, which rebuilds them, and the coordinator. Standard library only.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["FAILED", "PAGE", "SITEMAP", "FailedRow", "PageResult", "SitemapResult"]

Octets = bytes  # PageResult has a field named bytes
PAGE, SITEMAP, FAILED = "page", "sitemap", "failed"
"""First element of a row; the rest are the fields of PageResult, SitemapResult or FailedRow, in order."""


class PageResult(NamedTuple):
    """One page. Made by parse.worker, read by the coordinator."""

    id: int
    outcome: str
    """ok, decode_error, too_large, truncated, not_html, parse_truncated or parse_memory"""
    error: str | None
    title: str | None
    """Whitespace collapsed, cut to 1,000 characters."""
    canonical: str | None
    robots: tuple[str, ...]
    encoding: str | None
    bytes: int
    """Size of the decoded body."""
    targets: Octets
    """array("I"): numbers in the process's link table; distinct by identity, in document order; followed kinds only."""
    flags: Octets
    """One byte a target. Bit 0: some followable (not rel=nofollow) link leads there; bits 1-5: index of its first
    link's kind in worker.KINDS."""
    body_hash: int
    """XXH3 of the decoded body, 64 bits without a sign. Who wants to can make two bodies with one hash."""
    decode_us: int
    parse_us: int
    resolve_us: int
    texts: Octets = b""
    """The text of the first link to each target, a line each, by zlib; empty when there are no targets or no output
    wants them."""
    extract: str | None = None
    """What was taken out of the page as the user asked, as JSON."""
    extract_error: str | None = None
    extract_us: int = 0
    text: str | None = None
    """What a person reads on it; None: nobody asked, or it was not read as HTML."""
    html: str | None = None
    """The decoded document; likewise."""


class SitemapResult(NamedTuple):
    """One sitemap. Made by parse.worker, read by the coordinator."""

    id: int
    kind: str
    urls: tuple[str, ...]
    damaged: bool
    error: str | None


class FailedRow(NamedTuple):
    """A body on which our own code failed (or that our code did not foresee). Made by parse.worker, read by pool."""

    id: int
    kind: str
    outcome: str
    error: str
    trace: str
