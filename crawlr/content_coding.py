"""Undoes Content-Encoding, bounded: a small body may unpack to no more than a page may have.

From: bodies as received, with the header as it came. To: parse.worker (pages, sitemaps), fetch.robots (robots.txt).
Pure; runs in parse processes and fetch threads. brotli and zstandard are imported at their first use.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Generator, Iterator
from typing import Literal

from msgspec import Struct

__all__ = ["ACCEPT_ENCODING", "Decoded", "decode"]

ACCEPT_ENCODING = "gzip, deflate, br, zstd"
"""What a request may offer: all that `decode` undoes."""

Fault = Literal["truncated", "decode_error", "too_large"]

_MAX_CODINGS = 5
"""As curl has it; a longer chain is an attack or a mistake (urllib3 GHSA-gm62-xv2j-4w53)."""
_PIECE = 64 * 1024
"""Bytes unpacked at a time, so that what came before a fault is kept."""
_BROTLI_PIECE = 1024
_ZSTD_PIECE = 64
"""The library cannot bound what it unpacks; 4 bytes can hold a block of 128 KiB, so these hold 2 MiB at most."""
_MARKUP = re.compile(rb"(?:\xef\xbb\xbf)?[\t\n\f\r ]*<[!?/a-zA-Z]")
_GZIP_MAGIC = b"\x1f\x8b\x08"
_ZSTD_FRAME = re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18")  # the second: a frame to be skipped


class Decoded(Struct, frozen=True, kw_only=True):
    """A body without its content codings. Made by `decode`, read by whoever parses it.

    With a fault `data` is what could be unpacked before it. `error` says more, for people; None without a fault.
    """

    data: bytes
    fault: Fault | None = None
    error: str | None = None


class _BadCodingError(Exception):
    """The bytes are not in the coding that was named."""


def decode(body: bytes, content_encoding: str | None, *, max_bytes: int) -> Decoded:
    """The body without the codings that the header names, at most `max_bytes` of it. Never raises. RFC 9110 §8.4.

    `content_encoding` is the header's value, several headers joined by commas, None when there is none. Known: gzip,
    x-gzip, deflate, br, zstd, identity; at most five. Memory: no more than `max_bytes` a layer, whatever the body is.

    Decisions where servers are wrong or readers differ:
    - Bytes that begin as markup are taken as they are when the coding named is unknown (`utf-8`, `binary`, `none`) or
      they are not in it: servers do name codings that they do not apply. Browsers do the first, other crawlers both.
      Any other body of an unknown coding, or not in the one named, is a `decode_error`.
    - Markup that was packed with gzip and says nothing of it is unpacked, also below the codings that are named.
    - gzip: all members are read and what follows the last is left alone, as are checksums and a missing trailer: what
      is there is whole (browsers do not look either). deflate: with or without the zlib header.
    - A stream that ends too soon is `truncated`; an empty body is empty in every coding.
    """
    names = [name for name in (part.strip().lower() for part in (content_encoding or "").split(",")) if name]
    codings = [name for name in names if name != "identity"]
    if len(codings) > _MAX_CODINGS:
        return Decoded(data=b"", fault="decode_error", error=f"{len(codings)} content codings, at most {_MAX_CODINGS}")
    unpacked = Decoded(data=body)
    for coding in reversed(codings):
        unpacked = _below(unpacked, _undo(unpacked.data, coding, max_bytes))
    if unpacked.data.startswith(_GZIP_MAGIC) and _MARKUP.match(_undo(unpacked.data[:_PIECE], "gzip", 1024).data):
        unpacked = _below(unpacked, _undo(unpacked.data, "gzip", max_bytes))
    if len(unpacked.data) > max_bytes:
        unpacked = _below(unpacked, _cut(unpacked.data, max_bytes))
    return unpacked


def _below(outer: Decoded, inner: Decoded) -> Decoded:
    """What came out of the inner layer, with the fault of the outer one if it had one: that is where it began."""
    return inner if outer.fault is None else Decoded(data=inner.data, fault=outer.fault, error=outer.error)


def _cut(data: bytes | bytearray, max_bytes: int) -> Decoded:
    error = f"more than {max_bytes:,} bytes decoded"
    return Decoded(data=bytes(memoryview(data)[:max_bytes]), fault="too_large", error=error)


def _undo(body: bytes, coding: str, max_bytes: int) -> Decoded:
    """One layer. `data` has at most `max_bytes`."""
    if not body:
        return Decoded(data=b"")
    unpack = _UNPACKERS.get(coding)
    if unpack is None:
        if _MARKUP.match(body):
            return Decoded(data=body)
        return Decoded(data=b"", fault="decode_error", error=f"unknown content coding {coding[:40]!r}")
    data = bytearray()
    try:
        for piece in unpack(body):
            data += piece
            if len(data) > max_bytes:
                return _cut(data, max_bytes)
    except EOFError:
        # Nothing marks these two: bytes out of which nothing comes are not in them.
        if data or coding not in ("br", "deflate"):
            return Decoded(data=bytes(data), fault="truncated", error=f"{coding} stream ends too soon")
        trouble = "nothing in it"
    except _BadCodingError as error:
        trouble = str(error)
    else:
        return Decoded(data=bytes(data))
    if not data and _MARKUP.match(body):
        return Decoded(data=body)
    return Decoded(data=bytes(data), fault="decode_error", error=f"{coding}: {trouble}")


# ---- the codings: each yields pieces, raises EOFError when the stream ends too soon, _BadCodingError when it is none


def _inflate(body: bytes, start: int) -> Generator[bytes, None, int]:
    """A raw deflate stream from `start` on; the generator returns where it ends."""
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    at, pending, size = start, b"", 512  # small at first: a body may be nothing but tiny members
    while not inflater.eof:
        if not pending:
            if at >= len(body):
                raise EOFError
            pending = body[at : at + size]
            at += len(pending)
            size = min(2 * size, _PIECE)
        try:
            piece = inflater.decompress(pending, _PIECE)
        except zlib.error as trouble:
            raise _BadCodingError(str(trouble)) from trouble
        pending = inflater.unconsumed_tail
        if piece:
            yield piece
    return at - len(inflater.unused_data)


def _gunzip(body: bytes) -> Iterator[bytes]:
    """RFC 1952, member after member; what follows the last one is not looked at."""
    end = 0
    while end == 0 or body.startswith(_GZIP_MAGIC, end):
        end = yield from _inflate(body, _gzip_header_end(body, end))
        end = _trailer_end(body, end, 8)


def _trailer_end(body: bytes, start: int, size: int) -> int:
    """Where the checksum ends that nobody checks. Some servers leave it out; a part of it means a cut."""
    if 0 < len(body) - start < size:
        raise EOFError
    return start + size


def _gzip_header_end(body: bytes, start: int) -> int:
    """Where the deflate stream of the member at `start` begins. RFC 1952 §2.3."""
    if not _GZIP_MAGIC.startswith(body[start : start + 3]):
        raise _BadCodingError("no gzip header")
    if len(body) < start + 10:
        raise EOFError
    flags, at = body[start + 3], start + 10
    if flags & 0xE0:
        raise _BadCodingError("reserved flags in the gzip header")
    if flags & 4:  # extra field
        at += 2 + int.from_bytes(body[at : at + 2], "little")
    for flag in (8, 16):  # file name, comment
        if flags & flag:
            at = body.find(b"\0", at) + 1
            if at == 0:
                raise EOFError
    return at + 2 if flags & 2 else at


def _undeflate(body: bytes) -> Iterator[bytes]:
    """RFC 9110 §8.4.1.2 says the zlib format; some servers send the bare stream, and browsers read both."""
    try:
        zlib.decompressobj().decompress(body[:_PIECE], 1)
    except zlib.error:
        yield from _inflate(body, 0)
    else:
        _trailer_end(body, (yield from _inflate(body, 2)), 4)


def _unbrotli(body: bytes) -> Iterator[bytes]:
    """RFC 7932. The library says neither where a stream ends nor what it had before a fault, so the piece with the
    fault is read again byte by byte: what was good in it is kept, and bytes after the end do no harm.
    """
    import brotli

    yielded = fault_at = 0
    for is_second in (False, True):
        stream, produced, at = brotli.Decompressor(), 0, 0
        try:
            while not stream.is_finished():
                if at >= len(body) and stream.can_accept_more_data():
                    raise EOFError
                step = 1 if is_second and at >= fault_at else _BROTLI_PIECE
                if not is_second:
                    fault_at = at
                # While output waits, nothing more may be fed.
                pending = body[at : at + step] if stream.can_accept_more_data() else b""
                at += len(pending)
                piece = stream.process(pending, output_buffer_limit=_PIECE)
                produced += len(piece)
                if produced > yielded:
                    yield piece[yielded - produced :]
                    yielded = produced
            return
        except brotli.error as trouble:
            if is_second:
                raise _BadCodingError("not a brotli stream") from trouble


def _unzstd(body: bytes) -> Iterator[bytes]:
    """RFC 8878, frame after frame; what follows the last one is not looked at. Windows up to 8 MiB, RFC 9659."""
    import zstandard

    decompressor = zstandard.ZstdDecompressor(max_window_size=8 * 1024 * 1024)
    at = 0
    while at == 0 or _ZSTD_FRAME.match(body, at):
        frame = decompressor.decompressobj()
        while not frame.eof:
            if at >= len(body):
                raise EOFError
            pending = body[at : at + _ZSTD_PIECE]
            at += len(pending)
            try:
                piece = frame.decompress(pending)
            except zstandard.ZstdError as trouble:
                raise _BadCodingError(str(trouble)) from trouble
            if piece:
                yield piece
        at -= len(frame.unused_data)


_UNPACKERS: dict[str, Callable[[bytes], Iterator[bytes]]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _undeflate,
    "br": _unbrotli,
    "zstd": _unzstd,
}
