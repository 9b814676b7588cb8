"""Which elements are links, what kind each is, and where it leads.

From: document (elements of a page, its base). To: document, as (URL, kind, nofollow). Runs in parse processes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from crawlr.parse.elements import Element, href_of
from crawlr.parse.patterns import compiled
from crawlr.parse.urls import Resolver
from crawlr.records import Link

__all__ = [
    "FACTS",
    "KINDS",
    "FoundLink",
    "as_links",
    "collect",
    "refresh_target",
    "srcset_candidates",
    "wanted_names",
]

FoundLink = tuple[str, str, bool]
"""URL as records.Link has it, kind, and whether rel says nofollow."""

# name -> (attribute, kind). `link`, `meta`, `form` and `input` have rules of their own below.
_ATTRIBUTES: dict[str, tuple[tuple[str, str], ...]] = {
    "a": (("href", "a"), ("xlink:href", "a")),
    "area": (("href", "area"),),
    "audio": (("src", "audio"),),
    "blockquote": (("cite", "cite"),),
    "body": (("background", "background"),),
    "del": (("cite", "cite"),),
    "embed": (("src", "embed"),),
    "feimage": (("href", "image"), ("xlink:href", "image")),
    "form": (("action", "form"),),
    "frame": (("src", "frame"),),
    "iframe": (("src", "iframe"),),
    "image": (("href", "image"), ("xlink:href", "image")),
    "img": (("src", "img"), ("srcset", "img"), ("lowsrc", "img"), ("dynsrc", "img")),
    "input": (("src", "input"),),
    "ins": (("cite", "cite"),),
    "link": (("href", "link"), ("href", "resource"), ("href", "stylesheet"), ("imagesrcset", "img")),
    "meta": (("content", "refresh"),),
    "object": (("data", "object"),),
    "q": (("cite", "cite"),),
    "script": (("src", "script"), ("href", "script"), ("xlink:href", "script")),
    "source": (("src", "source"), ("srcset", "img")),
    "table": (("background", "background"),),
    "tbody": (("background", "background"),),
    "td": (("background", "background"),),
    "tfoot": (("background", "background"),),
    "th": (("background", "background"),),
    "thead": (("background", "background"),),
    "tr": (("background", "background"),),
    "track": (("src", "track"),),
    "use": (("href", "use"), ("xlink:href", "use")),
    "video": (("src", "video"), ("poster", "img")),
}
KINDS = tuple(dict.fromkeys([*("a", "area", "iframe", "frame", "refresh", "link", "img", "script"),
                             *sorted(kind for rules in _ATTRIBUTES.values() for _, kind in rules)]))  # fmt: skip
"""Every kind of link. Kinds are named by the element, but: `refresh` is `meta http-equiv=refresh`; `link` is a link
element that names a page (canonical, next, prev, alternate), `stylesheet` and `resource` are the others; `img` is
every picture of HTML (img, srcset, picture, poster), `image` SVG's; `cite` is the attribute of quotations and edits,
`background` that of tables and bodies."""
FACTS = frozenset({"base", "link", "meta"})
"""Elements that say something about the page whatever kinds of link are wanted."""


@cache
def wanted_names(follow: frozenset[str] | None) -> frozenset[str]:
    """The names of the elements that an engine must find for these kinds of link (None: all kinds) and for the
    facts."""
    return FACTS | {
        name for name, rules in _ATTRIBUTES.items() if follow is None or any(kind in follow for _, kind in rules)
    }


# ---- one page

_URL_LISTS = frozenset({"imagesrcset", "srcset"})
_PAGE_RELATIONS = frozenset({"alternate", "canonical", "next", "prev", "previous"})
_NO_RESOURCE = frozenset({"dns-prefetch", "preconnect"})


def collect(
    found: Iterable[Element], resolver: Resolver, follow: frozenset[str] | None, into: list[FoundLink] | None = None
) -> list[FoundLink]:
    """The http(s) links of these elements, of the followed kinds (None: of all), in document order, with repetitions.
    They are added to the list `into` when it is given, those of one element before the next is asked for.

    What each kind is, where sources differ:
    - `a` and `area`: an empty href is a link (to the base); a missing one is none. SVG's `a` counts, by `href` or
      `xlink:href`.
    - `rel=nofollow` marks a link; `ugc` and `sponsored` do not, as they only say what a link is for.
    - `refresh`: the first element that the standard obeys, in noscript too, since nothing here runs scripts. One
      without a URL reloads the page and is no link.
    - `form`: only those that are sent by GET, without their fields. `formaction` is none: it inherits the form's
      method.
    - `img`: every candidate of a srcset, whatever its descriptors say of it.
    - No links: `codebase`, `classid`, `param`, `longdesc`, `manifest`, `srcdoc`, `ping`, addresses in text, in
      scripts, in styles, in `content` of other meta elements, and in the DOCTYPE.
    """
    links: list[FoundLink] = [] if into is None else into
    append = links.append
    resolve = resolver.resolve
    is_refreshed = False
    for name, attributes in found:
        if name == "a" or name == "area":
            href = attributes.get("href")
            if href is None:  # it has no value, or there is none
                href = href_of(attributes) if name == "a" or "href" in attributes else None
                if href is None:
                    continue
            url = resolve(href)
            if url is not None:
                append((url, name, "rel" in attributes and _is_nofollow(attributes)))
            continue
        for written, kind in _links_of(name, attributes):
            if follow is not None and kind not in follow:
                continue
            if kind == "refresh":
                target = None if is_refreshed else refresh_target(written)
                is_refreshed = is_refreshed or target == ""
                url = resolve(target) if target else None
                is_refreshed = is_refreshed or url is not None
            else:
                url = resolve(written) if not written.isspace() else None
            if url is not None:
                append((url, kind, "rel" in attributes and _is_nofollow(attributes)))
    return links


def _is_nofollow(attributes: Mapping[str, str | None]) -> bool:
    return "nofollow" in (attributes["rel"] or "").lower().split()


def _links_of(name: str, attributes: Mapping[str, str | None]) -> Iterator[tuple[str, str]]:
    """Addresses as written, and kinds, of one element that is neither a nor area; of a link element it has one kind."""
    if name == "link":
        href, kind = attributes.get("href"), _kind_of_link(attributes)
        if href and kind is not None:
            yield href, kind
        for candidate in srcset_candidates(attributes.get("imagesrcset") or ""):
            yield candidate, "img"
        return
    if name == "meta":
        if (attributes.get("http-equiv") or "").lower() == "refresh":
            yield attributes.get("content") or "", "refresh"
        return
    if name == "form" and (attributes.get("method") or "").lower() in {"dialog", "post"}:
        return
    if name == "input" and (attributes.get("type") or "").lower() != "image":
        return
    for attribute, kind in _ATTRIBUTES.get(name, ()):
        value = attributes.get(attribute)
        if not value or (attribute == "xlink:href" and attributes.get("href")):
            continue
        if attribute in _URL_LISTS:
            for candidate in srcset_candidates(value):
                yield candidate, kind
        else:
            yield value, kind


def _kind_of_link(attributes: Mapping[str, str | None]) -> str | None:
    """The kind of a link element; None: it makes no link (HTML §4.2.4: it has no rel, or only names a host)."""
    relations = set((attributes.get("rel") or "").lower().split())
    if not relations or relations <= _NO_RESOURCE:
        return None
    if "stylesheet" in relations:
        return "stylesheet"  # `alternate stylesheet` too
    return "link" if relations & _PAGE_RELATIONS else "resource"


_REFRESH = re.compile(
    r"[\t\n\f\r ]*+(?:[0-9]++[0-9.]*+|\.[0-9.]*+)(?=[;,\t\n\f\r ]|\Z)[\t\n\f\r ]*+[;,]?+[\t\n\f\r ]*+"
)


def refresh_target(content: str) -> str | None:
    """The URL in the content of a meta refresh, "" when it reloads its page, None when it does nothing.

    HTML §4.2.5.3, shared declarative refresh steps. A fraction of a second is allowed without digits before its dot.
    """
    time = _REFRESH.match(content)
    if time is None:
        return None
    url = content[time.end() :]
    if url[:1] in ("u", "U"):
        label = _REFRESH_LABEL.match(url)
        if label is None:
            return url
        url = url[label.end() :]
    if url[:1] in ("'", '"'):
        url = url[1:].partition(url[0])[0]
    return url.strip("\t\n\f\r ")


_REFRESH_LABEL = re.compile(r"[uU][rR][lL][\t\n\f\r ]*+=[\t\n\f\r ]*+")
_CANDIDATE = re.compile(r"[\t\n\f\r ,]*+([^\t\n\f\r ]++)")
_DESCRIPTORS = compiled(r"(?:[^(,]++|\([^)]*+\)?)*+,?")


def srcset_candidates(srcset: str) -> Iterator[str]:
    """The URLs of a srcset attribute, as written (HTML §4.8.4.2.3, "parse a srcset attribute").

    A candidate whose descriptors make no sense is one all the same: a browser must choose, a crawler need not.
    """
    position = 0
    while candidate := _CANDIDATE.match(srcset, position):
        position = candidate.end()
        url = candidate[1].rstrip(",")
        if url == candidate[1]:
            descriptors = _DESCRIPTORS.match(srcset, position)
            position = descriptors.end() if descriptors else position
        yield url


def as_links(found: Iterable[FoundLink]) -> tuple[Link, ...]:
    """The same for users."""
    return tuple(Link(url=url, kind=kind, nofollow=nofollow) for url, kind, nofollow in found)
