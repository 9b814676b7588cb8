"""What goes wrong with robots.txt and sitemaps: each behaviour has an origin of its own, named like it."""

from __future__ import annotations

import itertools
import time
import zlib
from collections.abc import Callable

from tests.servers.bad_contents import bomb
from tests.servers.bad_exchanges import drip_body, hang, rst
from tests.servers.behaviour import BOMB_SIZE, ORIGINS, Behaviour, document, origin, to_location
from tests.servers.wire import Request, Wire

# ---------------------------------------------------------------- robots.txt


def _robots(answer: Behaviour) -> Behaviour:
    """An origin where only robots.txt is out of the ordinary, and "/" links to /open and /closed."""

    def respond(request: Request, wire: Wire) -> bool:
        if request.path == "/robots.txt":
            return answer(request, wire)
        wire.answer(document(*(["/open", "/closed"] if request.path == "/" else []), title=request.target))
        return True

    return respond


def _rules(content: bytes | str, *, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Behaviour:
    def answer(request: Request, wire: Wire) -> bool:
        wire.answer(content, status=status, headers=(("Content-Type", "text/plain"), *headers))
        return True

    return answer


CLOSED = "User-agent: *\nDisallow: /closed\n"
for _name, _answer in {
    "robots_hang": hang,
    "robots_drip": drip_body,
    "robots_rst": rst,
    "robots_503": _rules("no", status=503),
    "robots_500": _rules("no", status=500),
    "robots_429": _rules("no", status=429),
    "robots_403": _rules("no", status=403),
    "robots_404": _rules("no", status=404),
    "robots_410": _rules("no", status=410),
    "robots_good": _rules(CLOSED),
    "robots_huge": _rules(CLOSED + "# filler filler filler filler\n" * 100_000 + "Disallow: /open\n"),
    "robots_one_line": _rules(CLOSED + "Disallow: /" + "a*" * 300_000 + "$\n"),
    "robots_stars": _rules("User-agent: *\nDisallow: /" + "*a" * 2_000 + "$\nDisallow: /closed\n"),
    "robots_html": _rules("<!doctype html><title>Not found</title><p>User-agent: *<p>Disallow: /"),
    "robots_bom": _rules(b"\xef\xbb\xbf" + CLOSED.encode()),
    "robots_nuls": _rules(b"\0\0\xff\xfe\n" + CLOSED.encode() + b"\0Disallow: /other\0\n"),
    "robots_utf16": _rules(("\ufeff" + CLOSED).encode("utf-16-le")),
    "robots_delay": _rules(CLOSED + "Crawl-delay: 999999\n"),
    "robots_gzip_bomb": bomb,
    "robots_loop": to_location("/robots.txt"),
}.items():
    ORIGINS[_name] = _robots(_answer)


@origin
def robots_elsewhere(request: Request, wire: Wire) -> bool:
    """robots.txt redirects to another origin's; the rules found there count here, not there."""

    def answer(request: Request, wire: Wire) -> bool:
        return to_location(wire.server.origin("robots_good") + "/robots.txt")(request, wire)

    return _robots(answer)(request, wire)


# ---------------------------------------------------------------- sitemaps


def _sitemap(make: Callable[[str], bytes | str], *, gz: bool = False) -> Behaviour:
    """An origin whose robots.txt names /map.xml (or .gz), made by `make` from the origin's address."""

    def respond(request: Request, wire: Wire) -> bool:
        address = wire.server.origin(wire.origin)
        name = "/map.xml.gz" if gz else "/map.xml"
        if request.path == "/robots.txt":
            wire.answer(f"Sitemap: {address}{name}\n", headers=(("Content-Type", "text/plain"),))
        elif request.path == name or request.path.startswith("/map"):
            wire.answer(make(address), headers=(("Content-Type", "application/gzip" if gz else "application/xml"),))
        elif request.path == "/sitemap.xml":
            wire.answer("none", status=404)
        else:
            wire.answer(document(title=request.target))
        return True

    return respond


XML = '<?xml version="1.0" encoding="utf-8"?>'
NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def _urlset(*addresses: str) -> str:
    return f"<urlset {NAMESPACE}>" + "".join(f"<url><loc>{address}</loc></url>" for address in addresses) + "</urlset>"


def _self_reference(address: str) -> str:
    entries = [f"{address}/map.xml", f"{address}/map2.xml"]
    return (
        XML
        + f"<sitemapindex {NAMESPACE}>"
        + "".join(f"<sitemap><loc>{e}</loc></sitemap>" for e in entries)
        + "</sitemapindex>"
    )


def _new_indexes(address: str) -> str:
    """An index that names two indexes nobody has seen before, for ever."""
    stamp = time.monotonic_ns()
    entries = [f"{address}/map-{stamp}-{number}.xml" for number in range(2)]
    return (
        XML
        + f"<sitemapindex {NAMESPACE}>"
        + "".join(f"<sitemap><loc>{e}</loc></sitemap>" for e in entries)
        + "</sitemapindex>"
    )


def _billion_laughs(address: str) -> str:
    letters = "abcdefghij"
    entities = '<!ENTITY a "ha ha ha ha">' + "".join(
        f'<!ENTITY {later} "{f"&{earlier};" * 10}">' for earlier, later in itertools.pairwise(letters)
    )
    return f"{XML}<!DOCTYPE urlset [{entities}]>" + _urlset(f"{address}/&j;", f"{address}/mapped")


def _external_entity(address: str) -> str:
    return f'{XML}<!DOCTYPE urlset [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + _urlset(
        f"{address}/leak-&x;", f"{address}/mapped"
    )


def _bomb(address: str) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    unit = f"<url><loc>{address}/bombed</loc></url>".encode() + b" " * (1 << 20)
    head = packer.compress(f"{XML}<urlset {NAMESPACE}>".encode()) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(unit) + packer.flush(zlib.Z_FULL_FLUSH)
    return (
        b"\x1f\x8b\x08\0\0\0\0\0\0\x03"
        + head
        + block * (BOMB_SIZE // len(unit))
        + packer.flush(zlib.Z_FINISH)
        + bytes(8)
    )


ORIGINS |= {
    "sitemap_good": _sitemap(lambda address: XML + _urlset(f"{address}/mapped")),
    "sitemap_loop": _sitemap(_self_reference),
    "sitemap_endless": _sitemap(_new_indexes),
    "sitemap_laughs": _sitemap(_billion_laughs),
    "sitemap_entity": _sitemap(_external_entity),
    "sitemap_bomb": _sitemap(_bomb, gz=True),
    "sitemap_junk": _sitemap(lambda _: bytes(range(256)) * 100),
    "sitemap_broken": _sitemap(lambda address: XML + _urlset(f"{address}/mapped", f"{address}/later")[:-40]),
}
