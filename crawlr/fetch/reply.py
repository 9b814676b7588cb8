"""The bytes of one HTTP/1 answer: status, header fields, and where the body ends.

From: a connected socket, read through the guard. To: http.py, which decides how much of the body is read.
Runs in the fetch threads.

Strict where bytes could be taken for another answer's (RFC 9112 §6.3: lengths and chunks), lenient as browsers are
where only the look is bad (line ends, lines without a colon, folded lines). http.client's own reader skips no interim
answer but 100, takes "0x3c" and "-5" for lengths, ends the header at a bad line, and costs more CPU.
"""

from __future__ import annotations

import re
import time
from functools import lru_cache
from typing import NamedTuple

from crawlr.fetch.guard import Exchange, Trouble, Wire
from crawlr.records import Outcome

__all__ = ["Framing", "HeaderFields", "Reply", "frame", "header_fields"]

_MAX_HEAD = 64 * 1024
_MAX_FIELDS = 100
_MAX_INTERIM = 8
_MAX_CHUNK_LINE = 16 * 1024
_MAX_TRAILERS = 64 * 1024
_MAX_LENGTH = 2**63 - 1
_PIECE = 64 * 1024

_HEAD_END = re.compile(rb"\n\r?\n")
_STATUS_LINE = re.compile(r"HTTP/1\.[0-9][ \t]+([1-9][0-9]{2})(?:[ \t].*)?")
_CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,16}")
_DIGITS = re.compile(r"[0-9]+")
_BLANK = " \t"
_SHORT_LINE = 200
"""Characters of a header line that may be remembered."""


class HeaderFields(dict[str, list[str]]):
    """Header fields by lower-case name, values in order. Text by Latin-1: `.encode("latin-1")` gives the bytes back."""

    def getlist(self, name: str) -> list[str]:
        """The values of a field, by its lower-case name; none when there is no such field."""
        return self.get(name, [])


class Framing(NamedTuple):
    """Where a body ends: with the last chunk, after `length` bytes, or (None) with the connection."""

    is_chunked: bool
    length: int | None
    is_clean: bool
    """The next answer begins where this one ends, beyond doubt."""


def header_fields(lines: list[str]) -> tuple[HeaderFields, bool]:
    """The fields of a header, and whether all lines were fields. Raises Trouble when there are more than a hundred."""
    if len(lines) > _MAX_FIELDS:
        raise Trouble(Outcome.PROTOCOL_ERROR, f"header limit: over {_MAX_FIELDS} fields")
    fields = HeaderFields()
    is_clean = True
    last: list[str] | None = None
    for raw in lines:
        line = raw.rstrip("\r\n")
        if line[:1] in (" ", "\t"):  # obsolete folding, RFC 9112 §5.2: a space
            if last is not None:
                last[-1] = f"{last[-1]} {line.strip(_BLANK)}".strip(_BLANK)
            continue
        field = _field(line) if len(line) <= _SHORT_LINE else _field.__wrapped__(line)
        if field is None:  # browsers leave it out
            is_clean = False
            last = None
            continue
        last = fields.setdefault(field[0], [])
        last.append(field[1])
    return fields, is_clean


@lru_cache(maxsize=512)  # most lines of a server are the same in all its answers
def _field(line: str) -> tuple[str, str] | None:
    """Name in lower case and value; None: the line is no field."""
    name, colon, value = line.partition(":")
    return (name.strip(_BLANK).lower(), value.strip(_BLANK)) if colon else None


def frame(status: int, fields: HeaderFields) -> Framing:
    """Where the body ends: RFC 9112 §6.3. Raises Trouble when that cannot be told."""
    codings = [part.strip().lower() for value in fields.getlist("transfer-encoding") for part in value.split(",")]
    codings = [coding for coding in codings if coding not in ("", "identity")]
    lengths = fields.getlist("content-length")
    if status in (204, 304):
        # A body here is against the standard, and nobody can tell it from the next answer.
        has_body = bool(codings) or any(length != "0" for length in lengths)
        return Framing(is_chunked=False, length=0, is_clean=status == 304 or not has_body)
    if codings:
        if set(codings) != {"chunked"}:
            raise Trouble(Outcome.PROTOCOL_ERROR, f"transfer coding {', '.join(codings)[:80]!a}")
        # With a length "ought to be handled as an error": the chunks win, and the connection ends here.
        return Framing(is_chunked=True, length=None, is_clean=not lengths)
    if not lengths:
        return Framing(is_chunked=False, length=None, is_clean=False)
    values = {value.strip(_BLANK) for length in lengths for value in length.split(",")}
    length = values.pop()
    if values or not _DIGITS.fullmatch(length) or len(length) > 19 or int(length) > _MAX_LENGTH:
        raise Trouble(Outcome.PROTOCOL_ERROR, f"Content-Length {', '.join(lengths)[:80]!a}")
    return Framing(is_chunked=False, length=int(length), is_clean=True)


class Reply:
    """One answer. Made when the request has been sent: reads the header at once, the body piece by piece.

    Raises Trouble. When that happens before a byte came, `exchange.received` has not changed.
    """

    def __init__(self, wire: Wire, exchange: Exchange, *, is_connect: bool = False, is_head: bool = False) -> None:
        self._wire = wire
        self._exchange = exchange
        self._buffer = b""  # received and not yet used; filled by _fill
        self._left: int | None = 0  # bytes to the end of the body or of this chunk; None: it ends with the connection
        self._is_chunked = False
        self._is_in_chunk = False
        self._is_done = False
        self._can_stay = True  # the connection is in step after this answer
        self.status = 0
        self.headers = HeaderFields()
        for _ in range(_MAX_INTERIM + 1):
            self._read_head()
            if self.status >= 200:
                break
            if self.status == 101:
                raise Trouble(Outcome.PROTOCOL_ERROR, "switched to another protocol unasked")
        else:
            raise Trouble(Outcome.PROTOCOL_ERROR, f"more than {_MAX_INTERIM} interim responses")
        if is_connect and self.status < 300:  # RFC 9112 §6.3: no body, the tunnel begins
            self._is_done = True
            return
        # RFC 9112 §6.3: the answer to HEAD ends with its header, whatever length that announces
        framing = Framing(is_chunked=False, length=0, is_clean=True) if is_head else frame(self.status, self.headers)
        options = {part.strip().lower() for value in self.headers.getlist("connection") for part in value.split(",")}
        if not framing.is_clean or "close" in options or (self._is_old and "keep-alive" not in options):
            self._can_stay = False
        self._is_chunked = framing.is_chunked
        self._left = 0 if framing.is_chunked else framing.length
        self._is_done = self._left == 0 and not framing.is_chunked

    @property
    def length(self) -> int | None:
        """The body's length as announced; None when it is not."""
        return None if self._is_chunked else self._left

    def read(self, size: int = _PIECE, *, decode_content: bool = False) -> bytes:  # noqa: ARG002  # see below
        """The next piece of the body, at most `size` bytes, content coding kept; b"" at its end.

        The keyword is urllib3's, so that an answer of a mocked adapter can be read in the same way.
        """
        if self._is_done:
            return b""
        if self._is_chunked:
            return self._read_chunked(size)
        if self._left is None:
            piece = self._take(size)
            self._is_done = not piece
            return piece
        piece = self._take(min(size, self._left))
        if not piece:
            raise Trouble(Outcome.TRUNCATED, f"{self._left} bytes of the body are missing")
        self._left -= len(piece)
        self._is_done = self._left == 0
        return piece

    def finish(self, *, most: int, seconds: float) -> bool:
        """True when the connection can carry the next request; reads a small rest of the body for that, never much.

        At most `most` bytes and `seconds`: a new connection is cheaper than more.
        """
        if not self._can_stay:
            return False
        if not self._is_done:
            if self._left is None or (not self._is_chunked and self._left > most):
                return False
            self._exchange.deadline = min(self._exchange.deadline, time.monotonic() + seconds)
            try:
                while most > 0 and (piece := self.read(_PIECE)):
                    most -= len(piece)
            except Trouble:
                return False
        # Bytes after the end are no part of any answer: that connection is not in step.
        return self._is_done and not self._buffer

    def _fill(self) -> bool:
        """Add what comes next to the buffer; False at the end of the connection."""
        data = self._exchange.recv(self._wire, _PIECE)
        self._buffer = self._buffer + data if self._buffer else data
        return bool(data)

    def _take(self, size: int) -> bytes:
        """Up to `size` bytes, from the buffer or else from the socket; b"" at the end of the connection."""
        if self._buffer:
            piece, self._buffer = self._buffer[:size], self._buffer[size:]
            return piece
        return self._exchange.recv(self._wire, min(size, _PIECE))

    def _read_head(self) -> None:
        """Read one header: status and fields."""
        start = 0
        while True:
            self._buffer = self._buffer.lstrip(b"\r\n")  # left over from the answer before, by some servers
            end = _HEAD_END.search(self._buffer, start)
            if len(self._buffer if end is None else self._buffer[: end.end()]) > _MAX_HEAD:
                raise Trouble(Outcome.PROTOCOL_ERROR, f"header limit: over {_MAX_HEAD} bytes")
            if end is not None:
                break
            self._check_start(is_all=False)
            start = max(0, len(self._buffer) - 2)
            if not self._fill():
                if not self._buffer:
                    raise Trouble(Outcome.EMPTY_REPLY, "closed without an answer")
                self._check_start(is_all=True)
                raise Trouble(Outcome.PROTOCOL_ERROR, "closed inside the header")
        self._check_start(is_all=True)
        head, self._buffer = self._buffer[: end.start()], self._buffer[end.end() :]
        if b"\0" in head:
            raise Trouble(Outcome.PROTOCOL_ERROR, "NUL in the header")
        lines = head.decode("latin-1").split("\n")
        status_line = lines[0].rstrip("\r")
        match = _STATUS_LINE.fullmatch(status_line)
        if match is None:
            raise Trouble(Outcome.PROTOCOL_ERROR, f"bad status line: {status_line[:80]!a}")
        self.status = int(match[1])
        self._is_old = status_line.startswith("HTTP/1.0")
        self.headers, is_clean = header_fields(lines[1:])
        self._can_stay = self._can_stay and is_clean

    def _check_start(self, *, is_all: bool) -> None:
        """Raise at once when this is no HTTP/1 (HTTP/0.9, TLS, rubbish): it may never send an end of header."""
        expected = b"HTTP/1."
        if not self._buffer.startswith(expected) and (is_all or not expected.startswith(self._buffer)):
            raise Trouble(Outcome.PROTOCOL_ERROR, f"not HTTP: {self._buffer[:40]!a}")

    def _read_chunked(self, size: int) -> bytes:
        """The next piece of a chunk: RFC 9112 §7.1. Line ends may be bare LF."""
        if not self._left:
            if self._is_in_chunk and self._line():
                raise Trouble(Outcome.PROTOCOL_ERROR, "chunk longer than its size")
            line = self._line()
            match = _CHUNK_SIZE.match(line)
            if match is None or line[match.end() :].lstrip(b" \t")[:1] not in (b"", b";"):
                raise Trouble(Outcome.PROTOCOL_ERROR, f"bad chunk size: {line[:40]!a}")
            self._left = int(match[0], 16)
            self._is_in_chunk = True
            if self._left == 0:
                self._is_done = True
                self._skip_trailers()
                return b""
        if not self._buffer and not self._fill():
            raise Trouble(Outcome.TRUNCATED, "closed inside a chunk")
        piece = self._take(min(size, self._left))
        self._left -= len(piece)
        return piece

    def _skip_trailers(self) -> None:
        """Read on to the empty line. The body is whole: a connection that closes here only cannot be used again."""
        size = 0
        while True:
            try:
                line = self._line()
            except Trouble as trouble:
                if trouble.outcome is not Outcome.TRUNCATED:
                    raise
                self._can_stay = False
                return
            if not line:
                return
            size += len(line)
            if size > _MAX_TRAILERS:
                raise Trouble(Outcome.PROTOCOL_ERROR, f"trailers over {_MAX_TRAILERS} bytes")

    def _line(self) -> bytes:
        """The next line without its end."""
        while True:
            end = self._buffer.find(b"\n")
            if end >= 0:
                line, self._buffer = self._buffer[:end], self._buffer[end + 1 :]
                return line.removesuffix(b"\r")
            if len(self._buffer) > _MAX_CHUNK_LINE:
                raise Trouble(Outcome.PROTOCOL_ERROR, f"chunk line over {_MAX_CHUNK_LINE} bytes")
            if not self._fill():
                raise Trouble(Outcome.TRUNCATED, "closed between chunks")
