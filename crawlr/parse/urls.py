"""What a link means (`resolve`) and which links mean one page (`identity`).

From: hrefs of pages, Location headers, seeds, sitemaps. To: parse.worker (links), the coordinator (seeds, redirects).
The parse processes and the main thread call them, 18,000 times for a large page. Pure, but that what an href means is
remembered in two bounded tables.

Two different answers, kept apart: a resolved URL is what is requested and shown, by the URL standard and otherwise as
the page gave it. An identity is a key and nothing else: it is never requested, so it may say less than a URL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from ada_url import check_url, join_url, normalize_url

from crawlr.parse.encoding_codecs import encode_query
from crawlr.parse.encoding_labels import name_of
from crawlr.parse.patterns import compiled
from crawlr.parse.remembered import Remembered

__all__ = ["TRACKING_PARAMETERS", "Resolver", "forget", "identity", "make_identity", "resolve", "without_userinfo"]

_HTTP = ("http://", "https://")


# ---- resolve


def resolve(base: str, href: str, *, encoding: str = "utf-8") -> str | None:
    """The absolute URL that `href` means on a page at `base`: as the URL standard serialises it, without its fragment.

    None when it is not http(s) or does not parse. Never raises, whatever the text: white space, tabs, newlines,
    backslashes, lone surrogates. `encoding` is the page's (a WHATWG name or label): the query is percent-encoded in it,
    the path always in UTF-8 (URL standard §4.4, query state). A base that does not parse is no base: an absolute
    `href` still resolves. Userinfo stays, as the standard has it; whoever stores, prints or requests the URL takes it
    off with `without_userinfo`, as `Resolver` does.

    Where RFC 3986 and the URL standard differ the latter is right, since visitors come with browsers: `http:g` is a
    relative reference, backslashes are slashes, `0x7f.1` is an address. Host names are ASCII by UTS #46 of ada's
    Unicode version, code points that it does not know make a link none.
    """
    name = name_of(encoding)
    if name is not None and name not in _SENDS_UTF_8:
        href = _encode_query_of(href, name)
    try:
        url: str | None = join_url(base, href)
    except ValueError:
        url = _join_with_trouble(base, href)
    return url.partition("#")[0] if url is not None and url.startswith(_HTTP) else None


def _join_with_trouble(base: str, href: str) -> str | None:
    """What remains to be tried when ada refuses: text that UTF-8 cannot hold, and a base that is none."""
    try:
        return join_url(_scalar(base), _scalar(href))
    except ValueError:
        pass
    if check_url(_scalar(base)):
        return None  # so it is href that does not parse
    try:
        return normalize_url(_scalar(href))
    except ValueError:
        return None


def _scalar(text: str) -> str:
    """Text as Web IDL's USVString: pairs of surrogates are their character, lone ones U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


# Output encoding UTF-8 (Encoding §4.3 "get an output encoding").
_SENDS_UTF_8 = frozenset(("utf-8", "utf-16le", "utf-16be", "replacement"))
_IGNORED = str.maketrans("", "", "\t\n\r")
_C0_AND_SPACE = "".join(map(chr, range(0x21)))
_JIS_CONTROLS = re.compile("[\x0e\x0f\x1b]")


def _encode_query_of(href: str, name: str) -> str:
    """`href` with its query as ASCII, encoded in the page's encoding; ada encodes what is left in UTF-8."""
    before, mark, query = href.partition("?")
    if not mark or "#" in before:
        return href
    if href.isascii() and not (name == "iso-2022-jp" and _JIS_CONTROLS.search(query)):
        return href
    # White space that the parser would take off must not be encoded before: URL standard §4.4, steps 1 to 3.
    query, hash_mark, _ = _scalar(query).partition("#")
    if not hash_mark:
        query = query.rstrip(_C0_AND_SPACE)
    return f"{before}?{encode_query(query.translate(_IGNORED), name)}"


class Resolver:
    """Resolves the hrefs of one page: its base URL and encoding are looked at once.

    Made by document for each page (and again when the page has a base element), by sitemaps for a file, by facts for a
    header; used by one thread. What an href means is remembered for all pages of a process, in bounded tables: a known
    one costs a third of a new one that is plain, and a sixth of one that only ada can read (bench/links.py).
    """

    __slots__ = ("_base", "_folder", "_folders", "_name", "address")

    def __init__(self, base: str, encoding: str = "utf-8") -> None:
        name = name_of(encoding)
        self._name = None if name in _SENDS_UTF_8 else name
        found = base if _STANDARD_FORM(base) else resolve(base, "")
        self.address = None if found is None else without_userinfo(found)
        """The base, serialised, without fragment and userinfo; None when it is not http(s)."""
        self._base = self.address or base
        # up to the last slash of the path: hrefs with a path resolve alike on all pages of one folder
        self._folder = self.address.partition("?")[0].rpartition("/")[0] + "/" if self.address else base
        self._folders = _folders(self._folder) if self.address and len(self.address) <= _LONGEST_PLAIN_BASE else ()

    def resolve(self, href: str) -> str | None:
        """As `urls.resolve` with this base and encoding, but without userinfo: to be stored, shown and requested."""
        cut = href.find("#")
        if cut == 0 or not href:
            return self.address
        if cut > 0 and href[cut - 1] > " ":  # white space before it is a part of the address, and at the end it is none
            href = href[:cut]
        folders = self._folders
        if folders:
            levels = _levels.get(href)
            if levels is None:
                levels = _levels_of(href)
            if levels >= 0:
                return (folders[levels] if levels < len(folders) else folders[-1]) + href[3 * levels :]
            if levels == _FROM_ROOT:
                return folders[-1] + href[1:]
            if levels == _WHOLE:
                return href
        if _OTHER_SCHEME.match(href):
            return None
        key = self._folder, self._name or "", href
        url = _resolved.get(key, _UNSEEN)
        if url is _UNSEEN:
            url = self._join(href)
            if len(href) <= _HREF_LIMIT and _OF_FOLDER.match(href) and not _BREAKS.search(href):
                _resolved.keep(key, url, sum(map(len, key)) + len(url or "") + _OF_ITSELF)
        return url

    def _join(self, href: str) -> str | None:
        if self._name is not None:
            href = _encode_query_of(href, self._name)
        url = resolve(self._base, href)
        return without_userinfo(url) if url is not None and "@" in url else url


# ---- what a process remembers of hrefs

_UNSEEN = "?"  # no URL
_MOST_CHARACTERS = 4_000_000
"""Of hrefs, folders and URLs that a process remembers, up to 20 MB; when there are more it begins anew."""
_OF_ITSELF = 200
"""So many more does each count: what it takes beside its text."""
_HREF_LIMIT = 1_000
"""Characters of an href that is remembered."""
# Hrefs that mean the same on all pages of a folder: not those that take the query or the file name of their own page
# (`?a=b`, `http:?a=b`), and none with white space that the parser would take off first.
_OF_FOLDER = re.compile(r"(?!https?:(?![/\\]{2}))[^\x00-\x20?]", re.IGNORECASE | re.ASCII)
_BREAKS = re.compile("[\t\n\r]")
_OTHER_SCHEME = re.compile(r"(?:data|javascript|mailto|tel):", re.IGNORECASE | re.ASCII)  # \u017f is no s
_resolved: Remembered[tuple[str, str, str], str | None] = Remembered(_MOST_CHARACTERS)
"""(folder, encoding if it matters, href without its fragment) -> URL or None, of hrefs that are not plain."""

_LONGEST_PLAIN_BASE = 4096
"""Characters of a base whose folders are written out, which takes time with the square of their number."""


def _folders(folder: str) -> tuple[str, ...]:
    """The folder of a serialised URL, then the one above it, up to the root of the origin."""
    root = folder.index("/", 8) + 1
    folders = [folder]
    while len(folder) > root:
        folder = folder[: folder.rindex("/", 0, -1) + 1]
        folders.append(folder)
    return tuple(folders)


# Hrefs that mean their folder's address and themselves, letter for letter: no scheme, no host, no dot segment but
# `../` in front, and only characters that the URL standard leaves alone in a path and a query. `%2e` is a dot.
_SEGMENT = r"(?!\.)(?:[A-Za-z0-9_.~!$&'()*+,:;=@-]++|%(?!2[eE]))++"
_PLAIN_HREF = compiled(
    r"(?:((?:\.\./)++)|(/)(?!/)|(?=[^:/?][^:/?]*+(?:[/?]|\Z)))"
    rf"(?:{_SEGMENT}/)*+(?:{_SEGMENT})?+(?:\?[!$%&()*+,./0-9:;=?@A-Z\[\\\]^_`a-z{{|}}~-]*+)?+"
).fullmatch

_FROM_ROOT, _WHOLE, _NOT_PLAIN = -1, -2, -3
_MOST_HREFS, _LONGEST_HREF = 100_000, 200
_levels: Remembered[str, int] = Remembered(_MOST_HREFS)
"""Href without fragment -> how many folders up it begins, or one of the three above. Filled by _levels_of, up to
30 MB."""


def _levels_of(href: str) -> int:
    plain = _PLAIN_HREF(href)
    if plain is not None:
        levels = _FROM_ROOT if plain[2] else len(plain[1] or "") // 3
    else:
        levels = _WHOLE if _STANDARD_FORM(href) else _NOT_PLAIN
    if len(href) <= _LONGEST_HREF and href.isascii():
        _levels.keep(href, levels, 1)
    return levels


def forget() -> None:
    """Know no href, as in a new process."""
    _levels.clear()
    _resolved.clear()


def without_userinfo(url: str) -> str:
    """The URL without `user:password@`: what may be stored, printed and requested because a page said so."""
    scheme, slashes, rest = url.partition("://")
    if not slashes or "@" not in rest:
        return url
    authority = _AUTHORITY.match(rest)
    if authority is None:
        return url
    return f"{scheme}://{rest[authority.end() :]}"


_AUTHORITY = re.compile(r"[^/\\?#]*@")


# ---- identity

TRACKING_PARAMETERS = (
    # "utm_" is a prefix, see _TRACKING_PREFIX
    "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "gad_source", "gad_campaignid", "srsltid", "_ga", "_gl",  # Google
    "fbclid", "igshid", "igsh",  # Meta
    "msclkid", "yclid", "ysclid", "twclid", "ttclid", "li_fat_id", "epik", "rdt_cid", "sccid",  # click ids of others
    "mc_cid", "mc_eid", "_hsenc", "_hsmi", "__hssc", "__hstc", "__hsfp", "hsctatracking", "mkt_tok",  # mailings
    "vero_id", "vero_conv", "oly_enc_id", "oly_anon_id", "_kx", "ml_subscriber", "ml_subscriber_hash", "_openstat",
)  # fmt: skip
"""Query parameters that say where a visitor came from and nothing about the page; besides all that begin with utm_.

Only names that nobody gives another meaning: `ref`, `source`, `cid` and the like are ordinary words and stay.
"""
_TRACKING_PREFIX = r"utm_[^=&]*+"


def make_identity(*, keep_params: bool, ignore: Iterable[str]) -> Callable[[str], str]:
    """An `identity` with other parameters left out: the known tracking parameters unless `keep_params`, and `ignore`.

    `ignore` holds names as they stand in a URL, letter case included (`%5F` and `_` are the same, letters outside
    ASCII may be written plainly).
    """
    names = [re.escape(_normalise_percent(_ascii(name))) for name in ignore if name]
    if not keep_params:
        names = [_TRACKING_PREFIX, *map(re.escape, TRACKING_PARAMETERS), *names]
    if not names:
        return _standard_key
    ignored = re.compile(rf"[?&](?:{'|'.join(names)})(?=[=&]|\Z)")

    def key(url: str) -> str:
        url = _standard_key(url)
        query_start = url.find("?")
        if query_start < 0 or ignored.search(url, query_start) is None:
            return url
        address, query = url[:query_start], url[query_start + 1 :]
        kept = "&".join(part for part in query.split("&") if ignored.match(f"?{part}") is None)
        return f"{address}?{kept}" if kept else address

    return key


def _ascii(name: str) -> str:
    return "".join(chr(byte) if 0x21 <= byte < 0x7F else f"%{byte:02X}" for byte in _scalar(name).encode())


def _standard_key(url: str) -> str:
    """The standard form without fragment and userinfo, percent-normalised. What is no http(s) URL stays as it is."""
    if _STANDARD_FORM(url) is None:
        standard = resolve(url, "")
        if standard is None:
            return url
        url = without_userinfo(standard) if "@" in standard else standard
    return _normalise_percent(url) if "%" in url else url


# URLs that the parser would give back letter for letter (and that have no userinfo and no fragment). What is not here
# for sure - IPv6, ports that may be default ones, dot segments - is parsed.
_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_STANDARD_FORM = compiled(
    r"https?://"
    r"(?:(?:[a-z0-9_-]++\.)*+[a-z][a-z0-9_-]*+"
    rf"|{_OCTET}\.{_OCTET}\.{_OCTET}\.{_OCTET})"
    r"(?::(?!80/|443/)(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}))?+"
    r"(?:/(?!\.\.?(?:[/?]|\Z))(?:[A-Za-z0-9_.~!$&'()*+,:;=@-]++|%(?!2[eE]))*+)++"
    r"(?:\?[!$%&()*+,./0-9:;=?@A-Z\[\\\]^_`a-z{|}~-]*+)?+"
).fullmatch

_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_HEX = "0123456789ABCDEFabcdef"
# Every spelling of an escape -> what stands for it. RFC 3986 §6.2.2.1: upper case. §6.2.2.2: "URIs should be
# normalized by decoding any percent-encoded octet that corresponds to an unreserved character".
_ESCAPES = {
    f"%{high}{low}": chr(int(high + low, 16)) if chr(int(high + low, 16)) in _UNRESERVED else f"%{high}{low}".upper()
    for high in _HEX
    for low in _HEX
}
# The spellings in which the two differ: a lower-case digit, or an unreserved character.
_ODD_ESCAPE = re.compile("%(?:[0-9A-F][a-f]|[a-f][0-9A-Fa-f]|2[DE]|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])")


def _normalise_percent(text: str) -> str:
    """Escapes as RFC 3986 §6.2.2 wants them, in one pass: what decoding brings forth is not decoded again.

    A stray percent sign may take what is decoded behind it for its own (`%%36%31` would be `%61`): text in which that
    happens stays as it is, else a second look would find another key, that of another page (`a`).
    """
    if _ODD_ESCAPE.search(text) is None:
        return text
    normal = _ODD_ESCAPE.sub(lambda escape: _ESCAPES[escape[0]], text)
    return text if _ODD_ESCAPE.search(normal) else normal


identity: Callable[[str], str] = make_identity(keep_params=False, ignore=())
"""The key under which two spellings are one page; `identity(identity(url)) == identity(url)`. Never raises.

It is the standard form without fragment and userinfo (which is never sent, so it cannot matter), with escapes as RFC
3986 §6.2.2 has them, without TRACKING_PARAMETERS. Wrongly merging two pages is worse than fetching one twice, so all of
these stay apart: http and https, `www.`, a dot behind the host, a slash at the end, several slashes, an empty query and
none, `a=` and `a`, any other order of parameters, session ids in the path, `%2F` and `/`, `%25` and a stray `%`,
`%2561` and `%61`. A site that knows better has parse.canonicalisers. Where nothing is to be done it takes 0.6 to 0.8 us
(bench/links.py).
"""
