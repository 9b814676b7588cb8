"""The addresses that a sitemap lists: sitemaps.org XML, its indexes, text files, RSS and Atom feeds.

From: bodies of sitemaps (worker). To: worker, which sends them on as they are. Runs in parse processes. Pure.

XML is read by a tokenizer of our own, one pass, no tree: it knows no DTD, so nothing is ever loaded or expanded, and
it goes on behind a fault where an XML parser must stop or guess. What it cannot know for sure it leaves out: an
address is right or it is not there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Literal, TypeAlias

from msgspec import Struct

from crawlr.content_coding import decode as undo_coding
from crawlr.parse import tokens
from crawlr.parse.encoding import decode, sniff
from crawlr.parse.patterns import compiled
from crawlr.parse.urls import Resolver

__all__ = ["MAX_BYTES", "Kind", "Sitemap", "read"]

Kind: TypeAlias = Literal["urlset", "index", "text", "feed", "invalid"]

MAX_BYTES = 50 * 1024 * 1024
"""What a sitemap may have unpacked (sitemaps.org: 50 MB); what is over is cut off. This bounds the number of its
addresses too: the protocol's 50,000 are not enforced, as a site that lists more means them."""
_GZIP = b"\x1f\x8b"
_LAYERS = 2


class Sitemap(Struct, frozen=True, kw_only=True):
    """What one file lists. Made by read, read by worker."""

    kind: Kind
    """`invalid`: it is none of these. A text file is one when a line of it is an address."""
    urls: tuple[str, ...]
    """Absolute http(s) addresses by the URL standard, without fragment and userinfo, each once, in order. Of an
    `index`: sitemaps; of a feed: its entries. Addresses of other sites are there too: whoever reads knows the
    scope."""
    damaged: bool
    """Something is missing or unsure: the file breaks off, is not well-formed, uses an entity, or unpacked to too
    much. What is whole is listed all the same; an address is when its own element ends, whatever became of the rest
    of its entry."""


def read(body: bytes, *, url: str) -> Sitemap:
    """What a sitemap at `url` lists; the name and the type of the file do not matter. Never fails; linear in the body.

    `body` is after content decoding; a file that is itself gzip is unpacked. Relative addresses, which the protocol
    forbids, are taken as a browser would.
    """
    is_damaged = False
    for _ in range(_LAYERS):
        if not body.startswith(_GZIP):
            break
        unpacked = undo_coding(body, "gzip", max_bytes=MAX_BYTES)
        body = unpacked.data
        is_damaged |= unpacked.fault is not None
    if len(body) > MAX_BYTES:
        body = body[:MAX_BYTES]
        is_damaged = True
    text = decode(body, sniff(body, None)[0])
    addresses = _Addresses(url)
    if not text.lstrip(_BLANK).startswith("<"):
        # Half an address is another address: of a file that breaks off the last line does not count.
        addresses.add_lines(text[: text.rfind("\n") + 1] if is_damaged else text)
        return Sitemap(kind="text" if addresses.urls else "invalid", urls=tuple(addresses.urls), damaged=is_damaged)
    reader = _Reader(addresses)
    kind = reader.read(text)
    urls = () if kind == "invalid" else tuple(addresses.urls)
    return Sitemap(kind=kind, urls=urls, damaged=is_damaged or reader.is_damaged)


_BLANK = "\t\n\r\f \ufeff"


# ---- addresses


class _Addresses:
    """The addresses of one file, resolved, each once."""

    def __init__(self, url: str) -> None:
        self._resolver = Resolver(url)
        self.urls: dict[str, None] = {}

    def add(self, text: str) -> None:
        """One address as its element holds it; Unicode's white space around it is not part of it."""
        text = text.strip().strip(_BLANK)
        url = self._resolver.resolve(text) if text else None
        if url is not None:
            self.urls[url] = None

    def add_lines(self, text: str) -> None:
        """A text sitemap: one address a line. Other lines are left out, and so are lines of more than one word."""
        for line in text.splitlines():
            words = line.strip(_BLANK).split()
            if len(words) == 1 and _is_absolute(words[0]) and "\ufffd" not in words[0]:
                self.add(words[0])


def _is_absolute(text: str) -> bool:
    return text[:8].lower().startswith(("http://", "https://"))


# ---- XML

# What is no markup is text; a "<" in a quoted value is a fault of its own, so no match looks beyond the next "<".
_TOKEN = compiled(
    r"([^<]*+)<(?:!--(?:[^-]++|-(?!->))*+-->|!\[CDATA\[((?:[^\]]++|\](?!\]>))*+)\]\]>|\?(?:[^?]++|\?(?!>))*+\?>"
    r"""|(/?+)([^\s<>/!?"'=]++)((?:[^"'<>/]++|"[^"<]*+"|'[^'<]*+'|/(?!>))*+)(/?+)>)"""
)
_TEXT, _SECTION, _CLOSING, _NAME, _ATTRIBUTES, _SLASH = range(1, 7)
_ENDLESS = ("<!--", "<![CDATA[", "<?")
_ROOTS: dict[str, Kind] = {"feed": "feed", "rdf": "feed", "rss": "feed", "sitemapindex": "index", "urlset": "urlset"}
_ENTRIES = {"feed": frozenset({"entry", "item"}), "index": frozenset({"sitemap"}), "urlset": frozenset({"url"})}


class _Reader:
    """Reads one XML file into `addresses`."""

    def __init__(self, addresses: _Addresses) -> None:
        self._addresses = addresses
        self._entries: frozenset[str] = frozenset()
        self._open: list[str] = []
        """Names of open elements, with their prefixes."""
        self._depths: Counter[str] = Counter()
        """How often each name is open, so that a stray end tag costs no look through them all."""
        self._held: list[str] | None = None
        """Text of the open element that holds an address; None: no such element is open."""
        self._holder = 0
        """How many elements are open with that element in it."""
        self._is_blank = True
        """Nothing but white space is held."""
        self._is_sure = True
        """What is held is all there, and nothing else."""
        self._has_link = False
        """The open entry of a feed has had an address."""
        self.is_damaged = False

    def read(self, text: str) -> Kind:
        """The kind of the file, by its first element."""
        kind: Kind = "invalid"
        position, is_prolog = 0, True
        while True:
            token = _TOKEN.match(text, position)
            if token is None:
                start = text.find("<", position)
                if start < 0 or text.startswith(_ENDLESS, start):
                    break
                doctype = tokens.DOCTYPE.match(text, start) if is_prolog and text.startswith("<!", start) else None
                is_prolog = False
                if doctype:
                    position = doctype.end()
                    self.is_damaged |= "<!ENTITY" in doctype[0]
                else:
                    position = start + 1
                    self._doubt()  # a stray "<"
                continue
            position = token.end()
            self._hold(token)
            name = (token[_NAME] or "").lower()
            if not name:
                continue
            if kind == "invalid":
                kind = _ROOTS.get(_local(name), kind)
                if kind == "invalid" or token[_CLOSING]:
                    return "invalid"
                self._entries = _ENTRIES[kind]
            if not token[_CLOSING]:
                self._start(name, token[_ATTRIBUTES], kind)
            if token[_CLOSING] or token[_SLASH]:
                self._end(name)
                if not self._open:
                    return kind
        self.is_damaged = True  # the file breaks off
        return kind

    def _doubt(self) -> None:
        self.is_damaged = True
        self._is_sure = False

    # ---- elements

    def _start(self, name: str, source: str, kind: Kind) -> None:
        parent = self._open[-1] if self._open else ""
        self._open.append(name)
        self._depths[name] += 1
        local, is_in_entry = _local(name), _local(parent) in self._entries
        if not self._is_blank:
            self._is_sure = False  # an address, and then an element: where does it end?
        if local in self._entries and kind != "feed":
            self._begin_to_hold()  # some indexes have the address here, without a loc
        elif kind != "feed":
            if local == "loc" and is_in_entry and _prefix(name) == _prefix(parent):
                self._begin_to_hold()
        elif local in self._entries:
            self._has_link = False
        elif is_in_entry and local in {"guid", "link"}:
            self._start_link(local, dict(_attributes(source)))

    def _start_link(self, local: str, attributes: dict[str, str]) -> None:
        if local == "guid":
            if attributes.get("ispermalink", "true").lower() == "true" and not self._has_link:
                self._begin_to_hold()
        elif "href" not in attributes:
            self._begin_to_hold()
        elif attributes.get("rel", "alternate").lower() == "alternate":
            self._begin_to_hold()
            self._hold_text(attributes["href"])

    def _end(self, name: str) -> None:
        if not self._depths[name]:
            self._doubt()  # a stray end tag
            return
        is_own = len(self._open) == self._holder
        while True:
            closed = self._open.pop()
            self._depths[closed] -= 1
            if closed == name:
                break
            is_own = False
            self.is_damaged = True
        if self._held is not None and len(self._open) < self._holder:
            if is_own and self._is_sure:
                self._finish(_local(name))
            elif is_own:
                self.is_damaged = True
            self._held, self._is_blank = None, True

    # ---- text

    def _begin_to_hold(self) -> None:
        self._held = []
        self._holder = len(self._open)
        self._is_blank = self._is_sure = True

    def _hold(self, token: re.Match[str]) -> None:
        if self._held is None:
            return
        self._hold_text(token[_TEXT])
        if token[_SECTION]:
            self._is_blank = False
            self._held.append(token[_SECTION])

    def _hold_text(self, source: str) -> None:
        """Text with its references replaced. A bare `&` is what it looks like; what an entity stands for nobody
        knows."""
        assert self._held is not None
        self._is_blank = self._is_blank and not source.strip()
        begin = 0
        for reference in _REFERENCE.finditer(source):
            self._held.append(source[begin : reference.start()])
            begin = reference.end()
            name = reference[1]
            if name is None:
                self._held.append("&")
                self.is_damaged = True
            elif name in _PREDEFINED:
                self._held.append(_PREDEFINED[name])
            elif (character := _character(name)) is not None:
                self._held.append(character)
            else:
                self._doubt()
        self._held.append(source[begin:])

    def _finish(self, local: str) -> None:
        """The element that holds an address ends: take it."""
        text = "".join(self._held or ()).strip().strip(_BLANK)
        if "\ufffd" in text:
            self.is_damaged = True  # bytes that are no text: which address was meant?
        elif local not in self._entries or (len(text.split()) == 1 and _is_absolute(text)):
            self._addresses.add(text)
            self._has_link = True


_REFERENCE = compiled(r"&(?:(#[0-9]++|#x[0-9a-fA-F]++|[A-Za-z_:][\w:.-]*+);)?+")
_PREDEFINED = {"amp": "&", "apos": "'", "gt": ">", "lt": "<", "quot": '"'}
_ATTRIBUTE = re.compile(r"""([^\s="'/]++)\s*+=\s*+("[^"]*+"|'[^']*+')""")


def _character(name: str) -> str | None:
    if not name.startswith("#"):
        return None
    is_hex = name[1] == "x"
    digits = name[1 + is_hex :].lstrip("0")[:9]
    number = int(digits or "0", 16 if is_hex else 10)
    return chr(number) if 0 < number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF else None


def _attributes(source: str) -> Iterable[tuple[str, str]]:
    """Attributes by local name in lower case, references as they are written."""
    return ((_local(name.lower()), value[1:-1]) for name, value in _ATTRIBUTE.findall(source))


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _prefix(name: str) -> str:
    return name.rpartition(":")[0]
