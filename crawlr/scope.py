"""Which URLs belong to the crawl, and which of those no request may go to because the URL alone is a trap.

From: the coordinator, once for each URL that becomes known. To: the coordinator (Flag bits). Pure, main thread.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

__all__ = [
    "MAX_SEGMENTS",
    "MAX_SEGMENT_REPEATS",
    "MAX_URL_LENGTH",
    "Scope",
    "host_key",
    "is_too_long",
    "is_trap",
    "origin_of",
    "rule_against",
]

MAX_URL_LENGTH = 4096
MAX_SEGMENTS = 32
MAX_SEGMENT_REPEATS = 4


def origin_of(url: str) -> str:
    """`scheme://host[:port]` of an absolute http(s) URL in the URL standard's serialisation (default ports are not
    written).
    """
    return url[: _path_start(url)]


def host_key(origin: str) -> str:
    """`host[:port]`: the name under which http and https on their default ports are one host."""
    return origin.partition("://")[2]


def _path_start(url: str) -> int:
    return url.index("/", url.index("://") + 3)


def is_too_long(url: str) -> bool:
    """True for a URL of more than 4,096 characters."""
    return len(url) > MAX_URL_LENGTH


def is_trap(url: str) -> bool:
    """True for a path of more than 32 segments, or with one segment more than 4 times. Empty segments don't count.

    A function of the URL alone, so that every run drops the same. Real sites have a segment twice or three times.
    """
    start = _path_start(url)
    if url.count("/", start) <= MAX_SEGMENT_REPEATS:
        return False
    path = url[start:].partition("?")[0]
    segments = [segment for segment in path.split("/") if segment]
    if len(segments) > MAX_SEGMENTS:
        return True
    if len(segments) - len(set(segments)) < MAX_SEGMENT_REPEATS:
        return False
    return any(segments.count(segment) > MAX_SEGMENT_REPEATS for segment in set(segments))


def rule_against(url: str) -> str | None:
    """Which rule about a URL alone speaks against it, for a person; None: none does."""
    if is_too_long(url):
        return f"it has {len(url):,} characters, more than {MAX_URL_LENGTH:,}"
    if not is_trap(url):
        return None
    segments = [segment for segment in url[_path_start(url) :].partition("?")[0].split("/") if segment]
    if len(segments) > MAX_SEGMENTS:
        return f"its path has {len(segments)} segments, more than {MAX_SEGMENTS}"
    often = max(segments, key=segments.count)
    return f"{often!r} stands {segments.count(often)} times in its path, more than {MAX_SEGMENT_REPEATS} times"


class Scope:
    """The scope of a crawl: `kind` host, domain, prefix or any, around seeds; then the filters.

    A seed itself is not filtered. A host may join later, when a seed's redirects lead to it. `filters` are a
    caller's own functions url -> bool; what they raise goes to the caller.
    """

    def __init__(
        self,
        kind: str,
        *,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        filters: Sequence[Callable[[str], bool]] = (),
    ) -> None:
        self.kind = kind
        self._include = [re.compile(pattern) for pattern in include]
        self._exclude = [re.compile(pattern) for pattern in exclude]
        self._filters = tuple(filters)
        self._hosts: set[str] = set()
        self._domains: set[str] = set()
        self._prefixes: set[str] = set()
        self._verdicts: dict[str, bool] = {}

    def join(self, url: str) -> None:
        """Take the place of `url` (a seed, or where a seed moved to) into the scope."""
        start = _path_start(url)
        host = host_key(url[:start])
        folder = url[start:].partition("?")[0].rpartition("/")[0] + "/"
        self._hosts.add(host)
        self._prefixes.add(host + folder)
        if self.kind == "domain":
            self._domains.add(registrable_domain(host))
        self._verdicts.clear()

    def has_host(self, url: str) -> bool:
        """True when the host of `url` is in scope, whatever its path and the filters: what a sitemap file has to be."""
        origin = origin_of(url)
        verdict = self._verdicts.get(origin)
        if verdict is None:
            verdict = self._verdicts[origin] = self._accepts(host_key(origin))
        return verdict

    def has_place(self, url: str) -> bool:
        """True when the host (and folder) of `url` is in scope, whatever the filters say."""
        verdict = self.has_host(url)
        if verdict and self.kind == "prefix":
            place = host_key(url)
            return any(place.startswith(prefix) for prefix in self._prefixes)
        return verdict

    def _accepts(self, host: str) -> bool:
        match self.kind:
            case "any":
                return True
            case "domain":
                return registrable_domain(host) in self._domains
            case _:
                return host in self._hosts

    def has(self, url: str) -> bool:
        """True when `url` is in scope and no filter refuses it."""
        if not self.has_place(url):
            return False
        if self._exclude and any(pattern.search(url) for pattern in self._exclude):
            return False
        if self._include and not any(pattern.search(url) for pattern in self._include):
            return False
        return all(accepts(url) for accepts in self._filters)


_extract: Callable[[str], Any] | None = None


def registrable_domain(host: str) -> str:
    """The registrable domain of `host[:port]` by the public suffix list; what has none stands for itself.

    The list is the one that tldextract carries (no network), private suffixes included: pages of two users of one
    hosting service are two domains. A name under no listed suffix is taken by the list's rule `*`: its last two labels.
    """
    global _extract
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if _extract is None:
        import tldextract

        _extract = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)
    name = name.rstrip(".")
    found = _extract(name)
    if found.suffix or found.ipv4 or found.ipv6:
        return found.top_domain_under_public_suffix or name
    return ".".join(name.split(".")[-2:])
