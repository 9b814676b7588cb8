"""What is asked: the parts of a URL, and the header fields that go to its origin.

From: http.py and curl.py, with a task's URL. To: the wire. Pure.
Secrets (headers, cookie and credentials that the user gave) go to the origins named for them and to no other.
"""

from __future__ import annotations

import base64
import re

from msgspec import Struct

from crawlr.content_coding import ACCEPT_ENCODING
from crawlr.fetch.guard import Trouble
from crawlr.records import Outcome, TaskKind

__all__ = ["Origin", "RequestFields", "field_bytes", "split", "wire_fields"]

_ACCEPT_PAGE = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.5"

# Printable ASCII only: anything else could end the request line early. The fragment is not sent.
_URL = re.compile(r"(https?://)(?:[^/?#@\s]*@)?([!-\"$-.0->@-~]+)([!-\"$-~]*)(?:#.*)?", re.IGNORECASE | re.DOTALL)
_AUTHORITY = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^:@\[\]\\<>\"{}|^`]+))(?::([0-9]{0,5}))?")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PORTS = {"http": 80, "https": 443}


class Origin(Struct, frozen=True):
    """Scheme, host and port of a URL. `host`: a name or address (IPv6 without brackets), `authority`: as written."""

    scheme: str
    host: str
    port: int
    authority: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @classmethod
    def parse(cls, prefix: str) -> Origin:
        """The origin of "http://host:port" with nothing behind it. Raises Trouble when it is none."""
        scheme, _, authority = prefix.partition("://")
        scheme = scheme.lower()
        match = _AUTHORITY.fullmatch(authority.rpartition("@")[2])
        if match is None or scheme not in _PORTS:
            raise Trouble(Outcome.PROTOCOL_ERROR, f"no usable address: {prefix[:80]!a}")
        port = int(match[3]) if match[3] else _PORTS[scheme]
        if not 0 < port < 65536:
            raise Trouble(Outcome.PROTOCOL_ERROR, f"no usable port: {port}")
        host = (match[1] or match[2]).lower()
        return cls(scheme=scheme, host=host, port=port, authority=match[0])


def split(url: str) -> tuple[str, str]:
    """Origin part ("http://host:8080", as written) and target ("/path?query", byte for byte) of an absolute URL.

    Userinfo and fragment are left out. Raises Trouble when the URL cannot be sent as it is.
    """
    match = _URL.fullmatch(url)
    if match is None:
        raise Trouble(Outcome.PROTOCOL_ERROR, f"the address cannot be sent: {url[:80]!a}")
    target = match[3]
    return match[1] + match[2], target if target.startswith("/") else f"/{target}"


class RequestFields:
    """The header fields of every request of a crawl, by origin."""

    def __init__(
        self,
        *,
        user_agent: str,
        headers: tuple[tuple[str, str], ...] = (),
        cookie: str | None = None,
        auth: str | None = None,
        secret_origins: frozenset[str] = frozenset(),
    ) -> None:
        """Raises ValueError for a field that cannot be sent. `auth` is "user:password"."""
        secrets = list(headers)
        if cookie is not None:
            secrets.append(("Cookie", cookie))
        if auth is not None:
            secrets.append(("Authorization", "Basic " + base64.b64encode(auth.encode()).decode("ascii")))
        for name, value in [("User-Agent", user_agent), *secrets]:
            if not _TOKEN.fullmatch(name) or any(mark in value for mark in "\r\n\0"):
                raise ValueError(f"header field {name!r} cannot be sent")
        self.user_agent = user_agent
        self._secrets = tuple(secrets)
        self._secret_origins = frozenset(str(Origin.parse(origin)) for origin in secret_origins)

    def of(self, origin: Origin, kind: TaskKind) -> list[tuple[str, str]]:
        """Names and values in the order to send. A field that the user gave takes the place of crawlr's own."""
        secrets = self._secrets if str(origin) in self._secret_origins else ()
        own = {
            "Host": origin.authority,
            "User-Agent": self.user_agent,
            "Accept": _ACCEPT_PAGE if kind is TaskKind.PAGE else "*/*",
            "Accept-Encoding": ACCEPT_ENCODING,
        }
        given = {name.lower() for name, _ in secrets}
        return [*((name, value) for name, value in own.items() if name.lower() not in given), *secrets]


def wire_fields(fields: list[tuple[str, str]]) -> bytes:
    """The header fields as they are sent, with the empty line behind them."""
    return b"".join(name.encode("ascii") + b": " + field_bytes(value) + b"\r\n" for name, value in fields) + b"\r\n"


def field_bytes(value: str) -> bytes:
    """A field value as it is sent: Latin-1, or UTF-8 where that cannot be."""
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        return value.encode("utf-8")
