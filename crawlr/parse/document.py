"""A body as a document: its links and what it says about itself.

From: bodies after content decoding (worker, or a caller of parse_html). To: worker (Document), callers (ParsedPage).
Runs in parse processes; without state but for what plain.py and urls.py remember.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from crawlr.parse import anchors, facts, media_types, plain, xhtml
from crawlr.parse.elements import Element, Elements, href_of
from crawlr.parse.encoding import decode, sniff
from crawlr.parse.links import FACTS, FoundLink, as_links, collect, wanted_names
from crawlr.parse.urls import Resolver
from crawlr.records import ParsedPage

__all__ = ["PARSERS", "Document", "parse_html", "read"]

PARSERS = ("lxml", "lexbor", "scanner")
"""Engines: `lexbor` needs selectolax; `scanner` is what the others fall back to, and is there without any of them."""


class Document(NamedTuple):
    """What one body says. Made by read, read by worker, which sends it on flat."""

    is_html: bool
    """False: nothing below says anything."""
    links: list[FoundLink]
    """(URL, kind, nofollow) of the followed kinds, in document order, links to the page itself too; with `texts` with
    all repetitions. URLs are absolute, http(s), by the URL standard, without fragment and userinfo; equal ones are
    often one object."""
    base_url: str
    title: str | None
    encoding: str | None
    canonical: str | None
    robots: tuple[str, ...]
    is_truncated: bool
    decode_seconds: float
    parse_seconds: float
    resolve_seconds: float
    texts: list[str] | None = None
    """What people read on each of the links, "" where they read nothing; None: nobody asked."""
    html: str | None = None
    """The decoded document; None: nobody asked."""


def read(
    body: bytes,
    *,
    url: str,
    content_type: str | None,
    agent: str,
    parser: str = "lxml",
    follow: frozenset[str] | None = None,
    texts: bool = False,
    keep_html: bool = False,
) -> Document:
    """A body's links of the kinds in `follow` (links.KINDS; None: of all) and its facts; with `texts` those of links,
    with `keep_html` the document as text.

    `body` is after content decoding, `url` where it came from, `content_type` the header's value or None, `agent` our
    product token. Never fails on any body, but for MemoryError. ImportError: the engine's package is missing.
    """
    clock = time.perf_counter
    started = clock()
    markup = media_types.markup_of(body, content_type)
    if markup is None:
        return Document(False, [], url, None, None, None, (), False, clock() - started, 0.0, 0.0)
    return _read(
        body,
        markup,
        url,
        content_type,
        agent,
        _engine(parser),
        follow,
        started,
        once=not texts,
        texts=texts,
        keep_html=keep_html,
    )


def parse_html(
    body: bytes, *, url: str, content_type: str | None = None, agent: str = "crawlr", parser: str = "lxml"
) -> ParsedPage:
    """The document alone: links of every kind, in document order, and its facts. Never fails on any body.

    `body` is after content decoding. Without a `content_type` it is taken for HTML. What is plainly something else (a
    PDF, a picture, an archive) is an empty page.
    """
    started = time.perf_counter()
    markup = media_types.markup_of(body, content_type or "text/html")
    engine = _engine(parser)
    page = _read(body if markup else b"", markup or "html", url, content_type, agent, engine, None, started)
    return ParsedPage(
        links=as_links(page.links),
        base_url=page.base_url,
        title=page.title,
        encoding=page.encoding or "utf-8",
        canonical=page.canonical,
        robots=page.robots,
        truncated=page.is_truncated,
    )


def _read(
    body: bytes,
    markup: media_types.Markup,
    url: str,
    content_type: str | None,
    agent: str,
    engine: Callable[[str, frozenset[str]], Elements],
    follow: frozenset[str] | None,
    started: float,
    *,
    once: bool = False,
    texts: bool = False,
    keep_html: bool = False,
) -> Document:
    clock = time.perf_counter
    encoding = sniff(body, content_type)[0]
    text = decode(body, encoding)
    decoded = clock()
    wanted = wanted_names(follow)
    if markup == "html":
        found, title, is_truncated = plain.scan(text, wanted, once=once) or engine(text, wanted)
    else:
        found, title, is_truncated = xhtml.scan(text, wanted)
    parsed = clock()
    resolver = Resolver(url, encoding)
    about = [each for each in found if each[0] in FACTS]
    base = facts.base_of(about)
    if base is not None:
        resolved = resolver.resolve(base)
        if resolved is not None:
            resolver = Resolver(resolved, encoding)
    labels: list[str] | None = None
    if texts:
        links, labels = _collect_with_texts(found, resolver, follow, anchors.texts(text, is_xml=markup != "html"))
    else:
        links = collect(found, resolver, follow)
    return Document(
        is_html=True,
        links=links,
        base_url=resolver.address or url,
        title=facts.collapse(title),
        encoding=encoding,
        canonical=facts.canonical_of(about, resolver.resolve),
        robots=facts.robots_of(about, agent),
        is_truncated=is_truncated,
        decode_seconds=decoded - started,
        parse_seconds=parsed - decoded,
        resolve_seconds=clock() - parsed,
        texts=labels,
        html=text if keep_html else None,
    )


def _collect_with_texts(
    found: list[Element], resolver: Resolver, follow: frozenset[str] | None, of_anchors: dict[str, str]
) -> tuple[list[FoundLink], list[str]]:
    """`collect`, and beside each link its text: of an `a` what is in it, of an image or area its alt."""
    links: list[FoundLink] = []
    texts: list[str] = []

    def elements() -> Iterator[Element]:
        for name, attributes in found:
            yield name, attributes
            count = len(links) - len(texts)  # of what `collect` has made of it
            if count:
                if name == "a":
                    label = of_anchors.get(href_of(attributes) or "", "")
                else:
                    label = anchors.collapsed(attributes.get("alt") or "")
                texts.extend([label] * count)

    collect(elements(), resolver, follow, links)
    return links, texts


@cache
def _engine(parser: str) -> Callable[[str, frozenset[str]], Elements]:
    if parser == "lxml":
        from crawlr.parse import engine_lxml

        return engine_lxml.scan
    if parser == "lexbor":
        try:
            from crawlr.parse import engine_lexbor
        except ImportError as error:
            raise ImportError("the parser lexbor needs the package selectolax: pip install 'crawlr[fast]'") from error
        return engine_lexbor.scan
    if parser == "scanner":
        from crawlr.parse import scanner

        return scanner.scan
    raise ValueError(f"no parser {parser!r}: one of {', '.join(PARSERS)}")
