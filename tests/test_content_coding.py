"""Undoing Content-Encoding: what is whole, what is cut, what is a lie, and how much of it."""

from __future__ import annotations

import gzip
import random
import subprocess
import sys
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlr.content_coding import ACCEPT_ENCODING, Decoded, decode

LIMIT = 1 << 20
PAGE = b"<!doctype html><title>t</title>" + b"".join(
    b"<p>%d <a href=/%d>next</a></p>" % (n, n * n) for n in range(2000)
)
MANY = settings(max_examples=300, deadline=None)


def raw_deflate(data: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-15)
    return stream.compress(data) + stream.flush()


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": lambda data: brotli.compress(data, quality=5),
    "zstd": zstandard.compress,
}


def undo(body: bytes, coding: str | None, limit: int = LIMIT) -> Decoded:
    return decode(body, coding, max_bytes=limit)


def test_everything_offered_is_undone() -> None:
    """Accept-Encoding promises nothing that cannot be read."""
    for coding in ACCEPT_ENCODING.split(", "):
        assert undo(PACK[coding](PAGE), coding) == Decoded(data=PAGE)


HEADERS = {
    None: PAGE,
    "": PAGE,
    " , ": PAGE,
    "identity": PAGE,
    "Identity, IDENTITY": PAGE,
    "GZIP": gzip.compress(PAGE),
    " gzip ,": gzip.compress(PAGE),
    "gzip, identity": gzip.compress(PAGE),
    "deflate, identity, gzip": gzip.compress(zlib.compress(PAGE)),
    "gzip, gzip": gzip.compress(gzip.compress(PAGE)),
    "br,zstd,deflate": zlib.compress(zstandard.compress(brotli.compress(PAGE))),
    "gzip, gzip, gzip, gzip, gzip": gzip.compress(gzip.compress(gzip.compress(gzip.compress(gzip.compress(PAGE))))),
}


@pytest.mark.parametrize("header", HEADERS)
def test_codings_are_undone_from_the_last_to_the_first(header: str | None) -> None:
    """In any case, with empty elements, and identity counts for nothing."""
    assert undo(HEADERS[header], header) == Decoded(data=PAGE)


def test_a_chain_of_six_is_refused() -> None:
    """Without unpacking any of them."""
    found = undo(b"x", "gzip, deflate, br, zstd, gzip, deflate, identity")

    assert (found.fault, found.data) == ("decode_error", b"")
    assert found.error == "6 content codings, at most 5"


@pytest.mark.parametrize("coding", PACK)
def test_an_empty_body_is_empty_in_every_coding(coding: str) -> None:
    """Answers without a body carry the header all the same."""
    assert undo(b"", coding) == Decoded(data=b"")
    assert undo(PACK[coding](b""), coding) == Decoded(data=b"")


VARIANTS = {
    "two members": ("gzip", gzip.compress(PAGE[:999]) + gzip.compress(PAGE[999:])),
    "an empty member between": ("gzip", gzip.compress(PAGE[:9]) + gzip.compress(b"") + gzip.compress(PAGE[9:])),
    "a wrong checksum": ("gzip", gzip.compress(PAGE)[:-8] + b"12345678"),
    "no trailer": ("gzip", gzip.compress(PAGE)[:-8]),
    "all fields in the header": (
        "gzip",
        b"\x1f\x8b\x08\x1e" + b"\0" * 6 + b"\x03\0abcname\0comment\0hc" + gzip.compress(PAGE)[10:],
    ),
    "raw deflate": ("deflate", raw_deflate(PAGE)),
    "zlib without its checksum": ("deflate", zlib.compress(PAGE)[:-4]),
    "zlib with a wrong checksum": ("deflate", zlib.compress(PAGE)[:-4] + b"1234"),
    "two frames": ("zstd", zstandard.compress(PAGE[:999]) + zstandard.compress(PAGE[999:])),
    "a frame to be skipped": ("zstd", b"\x50\x2a\x4d\x18\x03\0\0\0abc" + zstandard.compress(PAGE)),
    "zstd in a stream": ("zstd", zstandard.ZstdCompressor(write_checksum=True).compress(PAGE)),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_is_whole_is_whole(variant: str) -> None:
    """Whatever browsers read without complaint."""
    coding, body = VARIANTS[variant]

    assert undo(body, coding) == Decoded(data=PAGE)


@pytest.mark.parametrize("junk", [b"\0", b"12345678 and more", b"<!-- cached -->", b"\x1f\x8b"])
@pytest.mark.parametrize("coding", PACK)
def test_bytes_after_the_end_do_no_harm(coding: str, junk: bytes) -> None:
    """Servers append comments, padding and line ends."""
    assert undo(PACK[coding](PAGE) + junk, coding) == Decoded(data=PAGE)


@pytest.mark.parametrize("coding", PACK)
def test_a_cut_stream_gives_what_was_there(coding: str) -> None:
    """At any byte: a beginning of the page and the word truncated; nothing at all may also be no stream."""
    body = PACK[coding](PAGE)
    trailer = {"gzip": 8, "x-gzip": 8, "deflate": 4}.get(coding, 0)

    for cut in (*range(1, 40), *range(40, len(body), 97), *range(len(body) - 20, len(body))):
        found = undo(body[:cut], coding)
        assert PAGE.startswith(found.data)
        if cut == len(body) - trailer:
            assert found == Decoded(data=PAGE)
        elif found.data or (cut > 4 and coding not in ("br", "deflate")):
            assert found.fault == "truncated"
            assert found.error == f"{coding} stream ends too soon"
        else:
            assert found.fault in ("truncated", "decode_error")


def flushed(data: bytes, wbits: int) -> bytes:
    """A deflate stream that goes on, at a byte's border."""
    stream = zlib.compressobj(wbits=wbits)
    return stream.compress(data) + stream.flush(zlib.Z_FULL_FLUSH)


def half(data: bytes, coding: str) -> bytes:
    body = PACK[coding](data)
    return body[: len(body) // 2]


LINKS = b"".join(b"<a href=/%x>" % zlib.crc32(b"%d" % n) for n in range(50_000))
BROKEN = {
    "gzip": flushed(LINKS, 31) + b"\x07" * 99,  # no block begins like this
    "deflate": flushed(LINKS, 15) + b"\x07" * 99,
    "br": half(LINKS + LINKS, "br") + random.Random(1).randbytes(9999),
    "zstd": half(LINKS + LINKS, "zstd") + random.Random(1).randbytes(999_999),
}


@pytest.mark.parametrize("coding", BROKEN)
def test_a_stream_with_a_fault_in_it_keeps_what_came_before(coding: str) -> None:
    """The links before it are still links."""
    found = undo(BROKEN[coding], coding, 1 << 24)

    assert found.fault == "decode_error"
    assert len(found.data) > len(LINKS) // 3
    assert found.data[: len(LINKS) // 3] == LINKS[: len(LINKS) // 3]


LIES = [
    (b"hello", "gzip"),
    (b"hi", "br"),
    (b"hello", "br"),
    (b"hello", "deflate"),
    (b"hello", "zstd"),
    (b"User-agent: *\nDisallow: /\n", "gzip"),
    (b"\0" * 10, "deflate"),
    (b"\x08y\x9e\xabA\0\x03lalala\0", "gzip"),
    (b"\x1f\x8b\x08\xff" + b"\0" * 20, "gzip"),
    (b"plain", "compress"),
    (b"plain", "uuencode"),
    (b"plain", "gzip;q=1"),
    (gzip.compress(b"plain", mtime=0), "rot13, gzip"),
    (b"\x1b[2J" * 30, "\x1b[2J" * 30),
]


@pytest.mark.parametrize(("body", "coding"), LIES)
def test_a_body_that_is_not_in_its_coding_is_an_error(body: bytes, coding: str) -> None:
    """It is not handed on as if it were text; the message names the coding, short and without control characters."""
    found = undo(body, coding)

    assert (found.data, found.fault) == (b"", "decode_error")
    assert found.error is not None
    assert found.error.isprintable()
    assert len(found.error) < 200


@pytest.mark.parametrize(
    "page", [PAGE, b"\xef\xbb\xbf \n<html>", b"<p>x", b"<?xml version='1.0'?><urlset/>", b"</p>", b"<!-- x"]
)
@pytest.mark.parametrize("coding", [*PACK, "utf-8", "binary", "none", "uuencode", "gzip, gzip", "compress, br"])
def test_markup_that_claims_a_coding_is_markup(coding: str, page: bytes) -> None:
    """Servers name codings that they do not apply; nothing compressed begins like this."""
    assert undo(page, coding) == Decoded(data=page)


def test_packed_markup_that_claims_no_coding_is_unpacked() -> None:
    """With no header, and below the codings of the header; what is no markup stays packed, it is a file."""
    archive = gzip.compress(b"\0archive" * 1000)

    assert undo(gzip.compress(PAGE), None) == Decoded(data=PAGE)
    assert undo(gzip.compress(gzip.compress(PAGE)), "gzip") == Decoded(data=PAGE)
    assert undo(archive, None) == Decoded(data=archive)
    assert undo(gzip.compress(PAGE)[:-20], None).fault == "truncated"


# ---- bounds


def test_the_limit_is_exact() -> None:
    """As many bytes as allowed are no fault, one more is; without a coding too."""
    for coding in (None, *PACK):
        body = PACK[coding](PAGE) if coding else PAGE
        assert undo(body, coding, len(PAGE)) == Decoded(data=PAGE)
        found = undo(body, coding, len(PAGE) - 1)
        assert (found.data, found.fault) == (PAGE[:-1], "too_large")
        assert found.error == f"more than {len(PAGE) - 1:,} bytes decoded"


BOMB = r"""
import resource, sys
from crawlr.content_coding import decode
body = open(sys.argv[1], "rb").read()
decode(b"<p>", sys.argv[2], max_bytes=9)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = decode(body, sys.argv[2], max_bytes=1 << 20)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(found.fault, len(found.data), after - before)
"""


@pytest.mark.parametrize("chain", ["gzip", "deflate", "br", "zstd", "gzip, gzip", "br, br", "zstd, zstd, zstd"])
def test_a_bomb_is_cut_in_flat_memory(chain: str, tmp_path: object) -> None:
    """100 MB of zeros, packed once or more often, cost some megabytes beyond the limit of one."""
    body = bytes(100_000_000)
    for coding in chain.split(", "):
        body = PACK[coding](body)
    path = f"{tmp_path}/bomb"
    with open(path, "wb") as file:
        file.write(body)

    ran = subprocess.run(
        [sys.executable, "-c", BOMB, path, chain], capture_output=True, text=True, timeout=60, check=True
    )

    fault, size, kilobytes = ran.stdout.split()
    assert (fault, size) == ("too_large", str(1 << 20))
    assert int(kilobytes) < 24_000


def test_layers_between_are_bounded_too() -> None:
    """A layer that unpacks to more than a page may have is not unpacked further."""
    empty_members = gzip.compress(gzip.compress(b"") * 100_000)

    assert undo(empty_members, "gzip, gzip").fault == "too_large"


def test_the_libraries_are_loaded_when_needed() -> None:
    """A parser process that meets neither coding loads neither library."""
    code = "import sys, crawlr.content_coding; print({'brotli', 'zstandard'} & set(sys.modules))"

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)

    assert ran.stdout.strip() == "set()"


# ---- any bytes

CHAINS = st.lists(st.sampled_from([*PACK, "identity", "utf-8", "nonsense"]), max_size=6)
PIECES = st.sampled_from(
    [b"<p>", b"x" * 50, *(pack(b"<p>hello") for pack in PACK.values()), b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"]
)
BODIES = st.binary(max_size=60) | st.lists(PIECES | st.binary(max_size=4), max_size=6).map(b"".join)


@MANY
@given(BODIES, st.none() | st.text(max_size=12) | CHAINS.map(", ".join), st.integers(0, 80))
def test_decoding_never_fails_and_never_exceeds(body: bytes, header: str | None, limit: int) -> None:
    """Any bytes under any header: bounded data, and a message exactly when there is a fault."""
    found = undo(body, header, limit)

    assert len(found.data) <= limit
    assert found.fault in (None, "truncated", "decode_error", "too_large")
    assert (found.error is None) == (found.fault is None)


@MANY
@given(st.binary(max_size=300), st.lists(st.sampled_from([*PACK]), min_size=1, max_size=5))
def test_what_was_packed_comes_out_again(data: bytes, chain: list[str]) -> None:
    """Any bytes through any chain of up to five codings."""
    body = data
    for coding in chain:
        body = PACK[coding](body)

    assert undo(body, ",".join(chain)) == Decoded(data=data)
