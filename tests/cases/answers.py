"""Answers as bytes on the wire, and what a fetcher must make of each. Shared by all fetchers.

An answer is sent, then the connection is closed. `body` is what must be handed over.
"""

from __future__ import annotations

from dataclasses import dataclass

from crawlr.records import Outcome

TEXT = b"<!doctype html><title>t</title><p>ok <a href=/next>n</a></p>"
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
LENGTH = b"Content-Length: %d\r\n\r\n" % len(TEXT)
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
CHUNK = b"%x\r\n%s\r\n" % (len(TEXT), TEXT)
WHOLE = CHUNK + b"0\r\n\r\n"
PROTOCOL = Outcome.PROTOCOL_ERROR


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`status` None: a failure with `outcome`. Otherwise a page with that status, body and fault."""

    id: str
    raw: bytes
    status: int | None = 200
    body: bytes = TEXT
    fault: Outcome | None = None
    outcome: Outcome | None = None
    also: tuple[Outcome, ...] = ()
    """Outcomes (or faults) that are right, too: where the standard leaves it open and the engines differ.

    A case with a status may also be a failure with one of these."""


def fails(name: str, raw: bytes, outcome: Outcome = PROTOCOL, *also: Outcome) -> Case:
    return Case(id=name, raw=raw, status=None, body=b"", outcome=outcome, also=also)


CASES = (
    Case(id="length", raw=OK + LENGTH + TEXT),
    Case(id="chunked", raw=CHUNKED + WHOLE),
    Case(id="until-close", raw=OK + b"\r\n" + TEXT),
    Case(id="http-1.0", raw=b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n" + TEXT),
    Case(id="zero-length", raw=OK + b"Content-Length: 0\r\n\r\n", body=b""),
    Case(id="no-data-in-chunks", raw=CHUNKED + b"0\r\n\r\n", body=b""),
    Case(id="nothing-until-close", raw=OK + b"\r\n", body=b""),
    Case(id="bare-line-feeds", raw=(OK + LENGTH).replace(b"\r\n", b"\n") + TEXT),
    Case(id="mixed-line-ends", raw=OK + LENGTH.replace(b"\r\n\r\n", b"\n\r\n") + TEXT),
    Case(id="no-reason", raw=b"HTTP/1.1 200\r\nContent-Type: text/html\r\n" + LENGTH + TEXT),
    Case(id="blank-reason", raw=b"HTTP/1.1 200 \r\nContent-Type: text/html\r\n" + LENGTH + TEXT),
    Case(id="escapes-in-reason", raw=b"HTTP/1.1 200 \x1b[31mr\xe9d\r\nContent-Type: text/html\r\n" + LENGTH + TEXT),
    Case(id="folded-field", raw=OK + b"X: a\r\n b\r\n\tc\r\n" + LENGTH + TEXT),
    Case(id="folded-content-type", raw=b"HTTP/1.1 200 OK\r\nContent-Type:\r\n text/html\r\n" + LENGTH + TEXT),
    Case(id="fold-without-a-field", raw=b"HTTP/1.1 200 OK\r\n odd\r\n" + (OK + LENGTH)[17:] + TEXT, also=(PROTOCOL,)),
    Case(id="line-without-a-colon", raw=OK + b"Server odd\r\n" + LENGTH + TEXT, also=(PROTOCOL,)),
    Case(id="blank-before-the-colon", raw=OK + LENGTH.replace(b":", b" :") + TEXT),
    Case(id="18k-field", raw=OK + b"X: " + b"a" * 18_000 + b"\r\n" + LENGTH + TEXT),
    Case(id="100-fields", raw=OK + b"X: y\r\n" * 98 + LENGTH + TEXT),
    Case(id="upper-case-names", raw=(OK + LENGTH).upper() + TEXT),
    # interim answers
    Case(id="early-hints", raw=b"HTTP/1.1 103 Early Hints\r\nLink: </s.css>\r\n\r\n" + OK + LENGTH + TEXT),
    Case(id="102-then-100", raw=b"HTTP/1.1 102 P\n\nHTTP/1.1 100 Continue\r\n\r\n" + OK + LENGTH + TEXT),
    Case(id="eight-interim", raw=b"HTTP/1.1 100 Continue\r\n\r\n" * 8 + OK + LENGTH + TEXT),
    fails("endless-interim", b"HTTP/1.1 100 Continue\r\n\r\n" * 500),
    fails("101-unasked", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n" + OK + LENGTH + TEXT),
    # lengths
    Case(id="short", raw=OK + b"Content-Length: 100\r\n\r\n" + TEXT, fault=Outcome.TRUNCATED),
    Case(id="nothing-of-the-body", raw=OK + b"Content-Length: 100\r\n\r\n", body=b"", fault=Outcome.TRUNCATED),
    Case(id="more-than-length", raw=OK + LENGTH + TEXT + b"and more"),
    Case(id="equal-lengths", raw=OK + b"Content-Length: %d\r\n" % len(TEXT) + LENGTH + TEXT),
    fails("different-lengths", OK + b"Content-Length: 2\r\nContent-Length: 5\r\n\r\nhello"),
    fails("negative-length", OK + b"Content-Length: -5\r\n\r\nhello"),
    fails("no-number-length", OK + b"Content-Length: crap\r\n\r\nhello"),
    fails("20-digit-length", OK + b"Content-Length: 36893488147419103232\r\n\r\nhello"),
    Case(id="length-and-chunks", raw=OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + WHOLE),
    Case(id="huge-length", raw=OK + b"Content-Length: 999999999999999\r\n\r\n" + TEXT, fault=Outcome.TOO_LARGE),
    # chunks
    Case(id="chunked-upper-case", raw=OK + b"Transfer-Encoding: CHUNKED\r\n\r\n" + WHOLE),
    Case(id="chunk-extension", raw=CHUNKED + CHUNK.replace(b"\r\n", b';e="v";f\r\n', 1) + b"0;last\r\n\r\n"),
    Case(id="chunk-size-padded", raw=CHUNKED + b"000%x  \r\n%s\r\n0\r\n\r\n" % (len(TEXT), TEXT)),
    Case(id="many-chunks", raw=CHUNKED + b"".join(b"1\r\n%c\r\n" % byte for byte in TEXT) + b"0\r\n\r\n"),
    Case(id="trailers", raw=CHUNKED + CHUNK + b"0\r\nX: y\r\nZ: w\r\n\r\n"),
    Case(id="last-line-end-missing", raw=CHUNKED + CHUNK + b"0\r\n", also=(Outcome.TRUNCATED,)),
    Case(id="no-last-chunk", raw=CHUNKED + CHUNK, fault=Outcome.TRUNCATED),
    Case(id="cut-inside-chunk", raw=CHUNKED + CHUNK[:34], body=TEXT[:30], fault=Outcome.TRUNCATED),
    Case(id="chunk-size-no-number", raw=CHUNKED + CHUNK + b"ILLEGAL\r\nx", fault=PROTOCOL),
    Case(id="chunk-size-negative", raw=CHUNKED + CHUNK + b"-1\r\nx", fault=PROTOCOL),
    Case(id="chunk-size-17-digits", raw=CHUNKED + CHUNK + b"12345678123456789\r\nx", fault=PROTOCOL),
    Case(
        id="chunk-longer-than-size", raw=CHUNKED + CHUNK + b"2\r\nabc\r\n0\r\n\r\n", body=TEXT + b"ab", fault=PROTOCOL
    ),
    fails("unknown-transfer-coding", OK + b"Transfer-Encoding: chunked, another\r\n\r\n" + WHOLE),
    # statuses
    Case(id="204-with-a-body", raw=b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", status=204, body=b""),
    Case(id="204-chunked", raw=b"HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n", status=204, body=b""),
    Case(id="205", raw=b"HTTP/1.1 205 Reset\r\nContent-Length: 0\r\n\r\n", status=205, body=b""),
    Case(id="304-with-a-length", raw=b"HTTP/1.1 304 Not\r\nContent-Length: 677777\r\n\r\n", status=304, body=b""),
    Case(id="405-405", raw=b"HTTP/1.1 405 405\r\nContent-Length: 6\r\n\r\n-foo-\n", status=405, body=b""),
    Case(id="404-short", raw=b"HTTP/1.1 404 No\r\nContent-Length: 60\r\n\r\nno", status=404, body=b""),
    Case(id="999", raw=b"HTTP/1.1 999 Denied\r\nContent-Length: 2\r\n\r\nno", status=999, body=b""),
    Case(id="redirect", raw=b"HTTP/1.1 302 F\r\nLocation: /n\r\nContent-Length: 2\r\n\r\nxx", status=302, body=b""),
    fails("two-locations", b"HTTP/1.1 302 F\r\nLocation: /a\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n"),
    # no HTTP
    fails("status-no-number", b"HTTP/1.1 ttt test\r\n\r\n"),
    fails("status-of-one-digit", b"HTTP/1.1 2 OK\r\nContent-Length: 0\r\n\r\n"),
    fails("status-of-two-digits", b"HTTP/1.1 99 test\r\n\r\n"),
    fails("status-of-100-digits", b"HTTP/1.1 " + b"0123456789" * 10 + b" OK\r\n\r\n"),
    fails("http-0.9", b"<title>no status line</title>hello"),
    fails("http-0.9-with-an-empty-line", b"<title>no status line</title>\r\n\r\nhello"),
    fails("one-byte", b"o"),
    fails("other-protocol", b"220 ftp.example ready\r\n"),
    fails("cut-inside-the-header", OK + b"X: y\r\n"),
    fails("nul-in-the-header", OK + b"X: a\0b\r\n" + LENGTH + TEXT),
    fails("70k-field", OK + b"X: " + b"y" * 70_000 + b"\r\n" + LENGTH + TEXT),
    fails(
        "2-mb-of-fields", OK + b"Repeat: Dorothy lived in the midst of the great Kansas prairies\r\n" * 30_000 + LENGTH
    ),
    fails("nothing", b"", Outcome.EMPTY_REPLY),
)
