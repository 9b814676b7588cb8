"""What an answer is worth: which bodies are read, and the FetchedPage that is made of it.

From: http.py and curl.py, with a status, header fields and (where wanted) a body. To: the coordinator. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Protocol

from crawlr.fetch import robots
from crawlr.fetch.guard import Trouble
from crawlr.fetch.redirects import is_redirect
from crawlr.fetch.request import field_bytes
from crawlr.records import FetchedPage, FetchTiming, Outcome, TaskKind

__all__ = ["Body", "Fields", "body_limit", "mime_type", "page"]

_HTML = frozenset({"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"})
_UNKNOWN = frozenset({"unknown/unknown", "application/unknown", "*/*"})
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105  # a token of HTTP
_ESSENCE = re.compile(rf"({_TOKEN}/{_TOKEN})[ \t]*(?:;.*)?", re.DOTALL)
_MEMBER = re.compile(r'(?:"(?:[^"\\]|\\.)*"?|[^",])+', re.DOTALL)
_CHARSET = re.compile(r";[ \t]*charset[ \t]*=", re.IGNORECASE)


class Fields(Protocol):
    """Header fields: HeaderFields of reply.py, or urllib3's."""

    def getlist(self, name: str, /) -> list[str]: ...
    def __iter__(self) -> Iterator[str]: ...


class Body:
    """A body as it came, with what ended it."""

    __slots__ = ("data", "error", "fault")

    def __init__(self, data: bytes = b"", fault: Outcome | None = None, error: str | None = None) -> None:
        self.data = data
        self.fault = fault
        self.error = error


def body_limit(status: int, fields: Fields, kind: TaskKind, *, max_body: int) -> int | None:
    """How many bytes of the body are read; None: none are wanted.

    Wanted is what a 2xx says of a robots.txt or a sitemap, and of a page that is HTML or may be: no Content-Type, or
    one that says nothing (WHATWG MIME Sniffing §7: those alone are sniffed for HTML).
    """
    if not 200 <= status < 300 or kind is TaskKind.LINK:
        return None
    if kind is TaskKind.ROBOTS:
        return robots.MAX_BYTES + 1  # one more tells the parser that something is missing
    if kind is TaskKind.PAGE and not may_be_html(tuple(fields.getlist("content-type"))):
        return None
    return max_body


@lru_cache(maxsize=256)
def may_be_html(values: tuple[str, ...]) -> bool:
    """True when these Content-Type values say HTML or nothing that can be understood."""
    essence, _ = mime_type(values)
    return essence is None or essence in _HTML or essence in _UNKNOWN


@lru_cache(maxsize=256)
def mime_type(values: tuple[str, ...]) -> tuple[str | None, str | None]:
    """Type in lower case and whole text of the Content-Type that counts; None, None when none can be understood.

    Of several the last that is a type counts; a charset of an equal type before it stays (Fetch standard, "extract a
    MIME type").
    """
    essence: str | None = None
    text: str | None = None
    for value in values:
        for member in _MEMBER.findall(value):
            match = _ESSENCE.fullmatch(member.strip(" \t\r\n"))
            if match is None or match[1] == "*/*":
                continue
            now = match[1].lower()
            if not (now == essence and text and _CHARSET.search(text) and not _CHARSET.search(match[0])):
                text = match[0]
            essence = now
    return essence, text


def page(
    *, status: int, fields: Fields, kind: TaskKind, body: Body | None, wire_bytes: int, timing: FetchTiming
) -> FetchedPage:
    """The answer as a value. `body` is None when it was not read. Raises Trouble for an answer that browsers refuse."""
    essence_values = fields.getlist("content-type")
    locations = fields.getlist("location")
    if len(set(locations)) > 1 and is_redirect(status):
        raise Trouble(Outcome.PROTOCOL_ERROR, "several different Location fields")
    codings = fields.getlist("content-encoding")
    retry_after = fields.getlist("retry-after")
    last_modified = fields.getlist("last-modified")
    fault = None if body is None else body.fault
    error = None if body is None else body.error
    if fault is Outcome.TOO_LARGE and kind is TaskKind.ROBOTS:
        fault, error = None, None  # RFC 9309 §2.5: the first 500 KiB are what counts
    return FetchedPage(
        status=status,
        body=b"" if body is None else body.data,
        content_type=mime_type(tuple(essence_values))[1] if essence_values else None,
        content_encoding=", ".join(codings) if codings else None,
        location=field_bytes(locations[0]) if locations else None,
        retry_after=retry_after[0] if retry_after else None,
        x_robots_tag=tuple(fields.getlist("x-robots-tag")),
        link=tuple(fields.getlist("link")),
        last_modified=last_modified[0] if last_modified else None,
        headers=_by_name(fields) if body is not None and kind is TaskKind.PAGE else None,
        is_wanted=body is not None or not 200 <= status < 300,
        fault=fault,
        error=error,
        wire_bytes=wire_bytes,
        timing=timing,
    )


def _by_name(fields: Fields) -> Mapping[str, Sequence[str]]:
    if isinstance(fields, dict):  # of reply.py: it is that already
        return fields
    return {name.lower(): fields.getlist(name) for name in fields}
