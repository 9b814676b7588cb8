"""Contents that go wrong: content codings, URL spaces without end, documents that hurt a parser."""

from __future__ import annotations

import functools
import gzip
import struct
import time
import zlib

from tests.servers.behaviour import (
    BEHAVIOURS,
    BOMB_SIZE,
    LINK_AFTER,
    LINK_BEFORE,
    OK,
    Behaviour,
    argument,
    behaviour,
    document,
    no_such_behaviour,
)
from tests.servers.wire import Request, Wire

# ---------------------------------------------------------------- content codings


@behaviour
def bad_gzip(request: Request, wire: Wire) -> bool:
    wire.answer("hello, this is no gzip", headers=(("Content-Encoding", "gzip"),))
    return True


@behaviour
def trunc_gzip(request: Request, wire: Wire) -> bool:
    text = LINK_BEFORE + "".join(f"<p>{number * 7919} {number**3}" for number in range(20_000))
    wire.answer(gzip.compress(text.encode())[:-20], headers=(("Content-Encoding", "gzip"),))
    return True


@behaviour
def bomb(request: Request, wire: Wire) -> bool:
    wire.answer(gzip_bomb(), headers=(("Content-Encoding", "gzip"),))
    return True


@behaviour
def redirect_bomb(request: Request, wire: Wire) -> bool:
    wire.answer(gzip_bomb(), status=302, headers=(("Content-Encoding", "gzip"), ("Location", "/page/behind")))
    return True


@behaviour
def deflate_tail(request: Request, wire: Wire) -> bool:
    """A complete deflate stream in chunks, and bytes after its end."""
    body = zlib.compress(document("/page/deflate", title=request.target).encode()) + b"and a tail" * 50
    wire.send(OK, "Content-Encoding: deflate\r\nTransfer-Encoding: chunked\r\n\r\n")
    for start in range(0, len(body), 16):
        piece = body[start : start + 16]
        wire.send(f"{len(piece):x}\r\n", piece, "\r\n")
    wire.send("0\r\n\r\n")
    return True


@behaviour
def enc6(request: Request, wire: Wire) -> bool:
    body = document("/page/never").encode()
    for _ in range(6):
        body = gzip.compress(body)
    wire.answer(body, headers=(("Content-Encoding", ", ".join(["gzip"] * 6)),))
    return True


@behaviour
def enc_unknown(request: Request, wire: Wire) -> bool:
    wire.answer(b"\x5d\0\0\x80" + document("/page/never").encode(), headers=(("Content-Encoding", "lzma2000"),))
    return True


@functools.cache
def gzip_bomb() -> bytes:
    """About 200 KB that expand to BOMB_SIZE: a link, then zeros. One compressed block, repeated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    unit = bytes(1 << 20)
    prefix = LINK_BEFORE.encode()
    head = packer.compress(prefix) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(unit) + packer.flush(zlib.Z_FULL_FLUSH)
    times = BOMB_SIZE // len(unit)
    check = functools.reduce(lambda crc, _: zlib.crc32(unit, crc), range(times), zlib.crc32(prefix))
    tail = packer.flush(zlib.Z_FINISH) + struct.pack("<II", check, len(prefix) + times * len(unit))
    return b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + head + block * times + tail


# ---------------------------------------------------------------- traps


@behaviour
def trap(request: Request, wire: Wire) -> bool:
    kind = request.path.split("/")[2] if request.path.count("/") > 1 else ""
    if kind == "calendar":
        month = int(request.query.partition("=")[2] or 0)
        wire.answer(document(f"?month={month + 1}", f"?month={month - 1}", "/page/calendar", title=request.target))
    elif kind == "relative":
        wire.answer(document("x/", "/page/relative", title=request.target))
    elif kind == "session":
        wire.answer(
            document(f"/trap/session?sid={request.connection}-{request.nth}-{time.monotonic_ns()}", "/page/session")
        )
    else:
        return no_such_behaviour(request, wire)
    return True


@behaviour
def mirror(request: Request, wire: Wire) -> bool:
    """The same body under every URL, with links that lead to ever new ones."""
    wire.answer(document("a/", "b/", "/page/mirror", title="the same again"))
    return True


# ---------------------------------------------------------------- documents


@behaviour
def deep(request: Request, wire: Wire) -> bool:
    wire.answer("<div>" * argument(request) + '<a href="/page/deep">deep</a>')
    return True


@behaviour
def links(request: Request, wire: Wire) -> bool:
    wire.answer(document(*(f"/page/{number}" for number in range(argument(request)))))
    return True


@behaviour
def names(request: Request, wire: Wire) -> bool:
    wire.answer("".join(f"<n{number}x{request.nth} a{number}=1>" for number in range(argument(request))) + LINK_AFTER)
    return True


def _body(content: bytes | str, content_type: str = "text/html; charset=utf-8") -> Behaviour:
    def answer(request: Request, wire: Wire) -> bool:
        wire.answer(content, headers=(("Content-Type", content_type),))
        return True

    return answer


CONTENTS: dict[str, bytes | str] = {
    "no_body": "",
    "whitespace": " \r\n\t" * 100,
    "comment_only": "<!-- nothing else -->",
    "pdf": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n" + bytes(range(256)) * 40,
    "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 40,
    "gzip_magic": gzip.compress(b"%PDF-1.7" + bytes(range(256)) * 40 + document("/page/never").encode()),
    "gzip_unsaid": gzip.compress(document("/page/unsaid").encode()),
    "nuls": b"<title>n\0u\0l</title>" + b"\0" * 5000 + LINK_AFTER.encode(),
    "binary": bytes(range(256)) * 400,
    "long_href": f'{LINK_BEFORE}<a href="/{"h" * (10 << 20)}">long</a>{LINK_AFTER}',
    "base_javascript": f'<base href="javascript:alert(1)">{LINK_AFTER}',
    "base_bad": f'<base href="http://[::1/">{LINK_AFTER}',
    "base_elsewhere": '<base href="http://127.0.0.1:9/"><a href="page/never">x</a><a href="/page/never">x</a>',
    "escapes": "<title>\x1b[31mred \x1b]8;;http://evil/\x07 \u202egnp.exe \x9b1m"
    " two\nlines &#27;[1m&#x9b;2J&#8238;</title>",
    "hrefs": document(
        *(
            "http://a\\@127.0.0.1:9/x",
            "http://127.0.0.1:9\\@a.test/",
            "http://[::1/",
            "http://a..b/",
            "http://" + "l" * 64 + ".test/",
        ),
        *(
            "http://2130706433:9/",
            "http://0x7f.1:9/",
            "javascript:void(0)",
            "mailto:a@b",
            "tel:1",
            "data:text/html,x",
            "//",
            "http://",
        ),
        "/page/after",
    ),
}
BEHAVIOURS |= {name: _body(content) for name, content in CONTENTS.items()}


@behaviour
def userinfo(request: Request, wire: Wire) -> bool:
    host = f"127.0.0.1:{wire.server.ports['']}"
    wire.answer(document(f"http://user:secret@{host}/echo_headers", title=request.target))
    return True
