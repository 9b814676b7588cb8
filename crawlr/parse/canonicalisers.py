"""Ready-made rules about which addresses of one particular site mean one page. None of them is on by default.

From: a user who knows the site and puts them together. To: `crawlr.crawl(canonicalise=...)`. Pure; run in the process
that called crawl.

    canonicalise = compose(index_is_folder(), drop_params("session", "sort"))

A rule takes a resolved URL and gives a key, or None for a link that is to be dropped. The key only tells pages apart:
what is requested is the address as it was found. On a site that it does not fit a rule merges pages that differ, so
each one says what it merges.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from crawlr.parse.urls import make_identity

__all__ = [
    "Rule",
    "add_trailing_slash",
    "compose",
    "drop_matching",
    "drop_params",
    "drop_query",
    "drop_session_path",
    "drop_www",
    "index_is_folder",
    "keep_params",
    "lower_case_path",
    "merge_slashes",
    "one_scheme",
    "sort_params",
    "strip_trailing_slash",
]

Rule = Callable[[str], str | None]

_PARTS = re.compile(r"([^:/?#]+://[^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)


def compose(*rules: Rule) -> Rule:
    """The rules one after the other, each on what the one before gave. None ends it: the link is dropped."""

    def composed(url: str) -> str | None:
        key: str | None = url
        for rule in rules:
            if key is None:
                return None
            key = rule(key)
        return key

    return composed


# ---- the query


def drop_params(*names: str) -> Rule:
    """Addresses that differ only in these query parameters are one page: `/list?sort=up` is `/list`.

    Names as they stand in a URL, letter case included. Without names nothing is dropped. What comes out has its
    escapes as `identity` has them.
    """
    return make_identity(keep_params=True, ignore=names)


def keep_params(*names: str) -> Rule:
    """Addresses that differ only in other query parameters than these are one page: the opposite of `drop_params`."""
    kept = frozenset(names)

    def rule(url: str) -> str:
        before, path, query = _split(url)
        parts = [part for part in query[1:].split("&") if part.partition("=")[0] in kept]
        return before + path + (f"?{'&'.join(parts)}" if parts else "")

    return rule


def drop_query(url: str) -> str:
    """Every query is of no account: `/page?x=1` is `/page`."""
    before, path, _ = _split(url)
    return before + path


def sort_params(url: str) -> str:
    """The order of parameters is of no account: `/s?b=2&a=1` is `/s?a=1&b=2`. Equal names keep their order."""
    before, path, query = _split(url)
    parts = query[1:].split("&")
    return before + path + query[:1] + "&".join(sorted(parts, key=lambda part: part.partition("=")[0]))


# ---- the path


def index_is_folder(names: tuple[str, ...] = ("index.html", "index.htm", "index.php"), *, slash: bool = True) -> Rule:
    """The index page of a folder is the folder: `/about/index.html` is `/about/`, and without `slash` it is `/about`.

    `names` are last path segments as they stand in a URL. Where a site writes `/about/index` for `/about`, say
    `index_is_folder(names=("index",), slash=False)`; with `compose(index_is_folder(), strip_trailing_slash)` the
    folder is one page however it is written.
    """
    known = frozenset(names)

    def rule(url: str) -> str:
        before, path, query = _split(url)
        folder, mark, name = path.rpartition("/")
        if not mark or name not in known:
            return url
        if slash or not folder:
            return f"{before}{folder}/{query}"
        return rule(f"{before}{folder}{query}")  # which may be called index itself

    return rule


def strip_trailing_slash(url: str) -> str:
    """Slashes at the end are of no account: `/about/` is `/about`. The root keeps one."""
    before, path, query = _split(url)
    return before + (path.rstrip("/") or path[:1]) + query


def add_trailing_slash(url: str) -> str:
    """A slash at the end is of no account: `/about` is `/about/`. A last segment with a dot is a file and stays."""
    before, path, query = _split(url)
    return before + path + "/" + query if "." not in path.rpartition("/")[2] and not path.endswith("/") else url


def merge_slashes(url: str) -> str:
    """Several slashes are one: `/a//b` is `/a/b`. Not in the query."""
    before, path, query = _split(url)
    return before + re.sub("/{2,}", "/", path) + query


def lower_case_path(url: str) -> str:
    """Letter case in paths is of no account, as on servers with Windows' file names: `/A/B.HTM` is `/a/b.htm`."""
    before, path, query = _split(url)
    return before + re.sub("%..|[A-Z]+", lambda m: m[0] if m[0][0] == "%" else m[0].lower(), path) + query


def drop_session_path(url: str) -> str:
    """A session id in the path is of no account: `/cart;jsessionid=1A2B` is `/cart`."""
    before, path, query = _split(url)
    return before + re.sub(r";jsessionid=[^/;]*", "", path, flags=re.IGNORECASE) + query


# ---- the origin, and whole addresses


def one_scheme(url: str) -> str:
    """http and https on their default ports show the same: `http://h/` is `https://h/`."""
    scheme, rest = url[:7].lower(), url[7:]
    if scheme != "http://":
        return url
    host = re.match(r"[^/?#]*", rest)
    return url if host is None or re.search(r":\d+\Z", host[0]) else f"https://{rest}"


def drop_www(url: str) -> str:
    """`www.` in front of the host is of no account: `https://www.h.com/` is `https://h.com/`."""
    return re.sub(r"\A([^:/?#]+://)(?:www\.)+(?=[^/?#]*\.)", r"\1", url)


def drop_matching(pattern: str) -> Rule:
    """Links whose address has the regular expression in it are dropped. Raises re.error for a pattern that is none."""
    search = re.compile(pattern).search
    return lambda url: None if search(url) else url


def _split(url: str) -> tuple[str, str, str]:
    """Scheme and authority; path; query with its question mark, or empty. A fragment is left out."""
    parts = _PARTS.fullmatch(url)
    if parts is None:
        return url, "", ""
    return parts[1], parts[2], parts[3] or ""
