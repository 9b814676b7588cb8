"""What a document and its headers say about themselves: base, title, canonical address, robots directives.

From: document (elements of a page), the coordinator (values of X-Robots-Tag and Link). To: the same. Pure; runs in
parse processes, and in the main thread for headers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from crawlr.parse.elements import Element
from crawlr.parse.patterns import compiled

__all__ = [
    "base_of",
    "canonical_from_link",
    "canonical_of",
    "collapse",
    "merge",
    "robots_from_headers",
    "robots_of",
]

_SPACE = re.compile(r"[\t\n\f\r ]+")
_TITLE_LIMIT = 100_000
"""Characters of a title that are looked at: an element that is never closed holds the rest of its page."""


def collapse(title: str | None) -> str | None:
    """A title with its white space stripped and collapsed, as `document.title` gives it (HTML §3.1.5)."""
    return None if title is None else _SPACE.sub(" ", title[:_TITLE_LIMIT]).strip(" ")


def base_of(found: Iterable[Element]) -> str | None:
    """The href of the first base element that has one (HTML §4.2.3); None: no base element has.

    It counts wherever it stands, for all links of the page. When it is no http(s) address, the page's own address is
    the base; a second base element never is.
    """
    for name, attributes in found:
        if name == "base" and "href" in attributes:
            return attributes["href"] or ""
    return None


def canonical_of(found: Iterable[Element], resolve: Callable[[str], str | None]) -> str | None:
    """Address of the first `link rel=canonical` that has one (RFC 6596): an empty or unusable href names nothing."""
    for name, attributes in found:
        if name == "link" and "canonical" in (attributes.get("rel") or "").lower().split():
            href = attributes.get("href") or ""
            url = resolve(href) if href.strip() else None
            if url is not None:
                return url
    return None


# ---- robots

# Directives of one word. A list that misses its commas (`noindex nofollow`) is read as what it was meant to be, when it
# holds nothing else: a site's wish not to be indexed is obeyed rather than dropped for a comma.
_WORDS = frozenset({
    "all", "follow", "index", "indexifembedded", "noai", "noarchive", "nocache", "nofollow", "noimageai",
    "noimageindex", "noindex", "none", "nositelinkssearchbox", "nosnippet", "notranslate",
})  # fmt: skip
_VALUED = frozenset({"unavailable_after"})  # and all that begin with max-
_AGENT = re.compile(r"[A-Za-z0-9_*-]+(?:/[^\s:]*)?")


def robots_of(found: Iterable[Element], agent: str) -> tuple[str, ...]:
    """The directives of all `meta name=robots` and `meta name=AGENT`: lower case, sorted, `none` as both of its
    parts."""
    names = {"robots", _product(agent)}
    directives: set[str] = set()
    for name, attributes in found:
        if name == "meta" and (attributes.get("name") or "").strip().lower() in names:
            for item in _items(attributes.get("content") or ""):
                directives.update(_expand(item))
    return tuple(sorted(directives))


def robots_from_headers(values: tuple[str, ...], agent: str) -> frozenset[str]:
    """The directives of X-Robots-Tag fields that apply to every agent or to ours, as `robots_of` gives them.

    `values`: one a header field. `AGENT: directives` (`*` is every agent) holds to the end of its field, or to the next
    agent's name, since fields that a proxy has joined look like that. The value of `unavailable_after` may hold commas
    and colons.
    """
    directives: set[str] = set()
    for value in values:
        is_ours = True
        for item in _items(value):
            before, colon, after = item.partition(":")
            before = before.strip().lower()
            if colon and before not in _VALUED and not before.startswith("max-") and _AGENT.fullmatch(before):
                is_ours = _product(before) in {"*", _product(agent)}
                directives.update(_expand(after) if is_ours else ())
            elif is_ours:
                directives.update(_expand(item))
    return frozenset(directives)


def merge(*directives: Iterable[str]) -> tuple[str, ...]:
    """The directives of a document and of its headers together, sorted: what either of them forbids is forbidden."""
    return tuple(sorted({each for some in directives for each in some}))


def _product(agent: str) -> str:
    return agent.partition("/")[0].strip().lower()


_WEEKDAY = re.compile(r"\s*unavailable_after\s*:\s*[a-z]+\s*", re.IGNORECASE)


def _items(content: str) -> list[str]:
    """Parts between commas; the comma behind a weekday belongs to the date of `unavailable_after`."""
    items: list[str] = []
    for part in content.split(","):
        if items and _WEEKDAY.fullmatch(items[-1]):
            items[-1] += "," + part
        else:
            items.append(part)
    return items


def _expand(item: str) -> Iterable[str]:
    """One part as directives: `none` is two, and so are words without a comma between them."""
    words = item.lower().split()
    if not words:
        return ()
    if set(words) <= _WORDS:
        return {each for word in words for each in (("nofollow", "noindex") if word == "none" else (word,))}
    name, colon, value = " ".join(words).partition(":")
    return (f"{name.strip()}:{value.strip()}" if colon else name,)


# ---- the Link header

_LINK = re.compile(r"[\s,]*+<([^>]*+)>")
_PARAMETER = compiled(r"""\s*+;\s*+([^\s=;,"<>]*+)\s*+(?:=\s*+(?:"((?:[^"\\]++|\\.)*+)"?|([^\s;,]*+)))?+""", re.DOTALL)
_TO_NEXT = compiled(r"""(?:"(?:[^"\\]++|\\.)*+"?|[^,"]++)*+""", re.DOTALL)


def canonical_from_link(values: tuple[str, ...], base: str) -> str | None:
    """Address of the first usable `rel=canonical` of Link header fields (RFC 8288 §3, RFC 6596); None: there is none.

    `values`: one a field, text by Latin-1 as it came. `base`: the address the answer came from. A link with an `anchor`
    speaks of another document and is left out (§3.2 allows it); the first `rel` of a link counts (§3.3).
    """
    from crawlr.parse.urls import Resolver

    resolver = Resolver(base)
    for value in values:
        for target, parameters in _links_of(value):
            if "anchor" in parameters or "canonical" not in parameters.get("rel", "").lower().split():
                continue
            url = resolver.resolve(_as_utf_8(target)) if target.strip() else None
            if url is not None:
                return url
    return None


def _links_of(value: str) -> Iterable[tuple[str, dict[str, str]]]:
    """Targets and parameters of one field (RFC 8288 appendix B.2 and B.3); of a repeated parameter the first counts."""
    position = 0
    while link := _LINK.match(value, position):
        position = link.end()
        parameters: dict[str, str] = {}
        while parameter := _PARAMETER.match(value, position):
            position = parameter.end()
            name, quoted, bare = parameter.groups()
            text = re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL) if quoted is not None else bare or ""
            parameters.setdefault(name.lower(), text)
        rest = _TO_NEXT.match(value, position)
        position = rest.end() if rest else position
        yield link[1], parameters


def _as_utf_8(text: str) -> str:
    """Header text as what its bytes are in UTF-8, if they are."""
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text
