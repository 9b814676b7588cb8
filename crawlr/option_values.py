"""Reads the value of one option, from the command line's text or already typed, and refuses what could not work.

From: options.Options.make. To: options.Options. Each reader returns the value or raises ValueError, whose message,
where there is one, says why; options adds the option, the value and what is accepted. Pure, but for what reads files.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping

__all__ = [
    "GIB",
    "KIB",
    "LINK_KINDS",
    "MIB",
    "Reader",
    "auth",
    "ca_bundle",
    "choice",
    "cookie",
    "duration",
    "flag",
    "headers",
    "kinds",
    "names",
    "number",
    "order",
    "paths",
    "patterns",
    "proxy",
    "seed",
    "seeds_in",
    "size",
    "text",
    "user_agent",
    "whole",
]

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
DAY = 86_400.0
LINK_KINDS = ("a", "area", "iframe", "frame", "refresh", "link", "img", "script", "all")

Reader = Callable[[object], object]

_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ms|s|m|h)?", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, None: 1.0}
_SIZE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(?:([KMG])(?:iB)?)?", re.ASCII | re.IGNORECASE)
_BYTES = {"K": KIB, "M": MIB, "G": GIB, None: 1}
_WHOLE = re.compile(r"\d{1,18}", re.ASCII)
_NUMBER = re.compile(r"\d+(?:\.\d*)?|\.\d+", re.ASCII)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_AUTHORITY = re.compile(r"(\[[^]/?#]*\]|[^:/?#@\[\]\\]+)(?::\d+)?(?=[/?#]|$)", re.ASCII)
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A field name by RFC 9110 §5.6.2."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_OWN_HEADERS = {
    "connection": "connections are crawlr's own matter",
    "content-length": "a request has no body",
    "transfer-encoding": "a request has no body",
    "user-agent": "use --user-agent, so that robots.txt is read for the same name",
}


def flag(given: object) -> bool:
    """A switch: only a bool is one, so that the text "no" does not switch something on."""
    if not isinstance(given, bool):
        raise ValueError
    return given


def text(given: object) -> str:
    """A text that is not empty and holds no NUL, such as a path."""
    given = str(given) if hasattr(given, "__fspath__") else given
    if not isinstance(given, str) or not given or "\0" in given:
        raise ValueError
    return given


def whole(low: int, high: int = 10**15) -> Reader:
    """A reader of whole numbers in that range. The general upper bound keeps every count within 64 bits."""

    def read(given: object) -> int:
        if isinstance(given, str) and _WHOLE.fullmatch(given):
            given = int(given)
        if isinstance(given, bool) or not isinstance(given, int) or not low <= given <= high:
            raise ValueError
        return given

    return read


def number(*, least: float, most: float) -> Reader:
    """A reader of 0, or of a number in that range."""

    def read(given: object) -> float:
        value = _as_float(given, _NUMBER)
        if not (value == 0 or least <= value <= most):
            raise ValueError
        return value

    return read


def duration(*, longest: float, zero: bool = False) -> Reader:
    """A reader of durations, in seconds: `10`, `10s`, `500ms`, `2m`, `1h`, decimals too, or a number of seconds."""

    def read(given: object) -> float:
        if isinstance(given, str):
            found = _DURATION.fullmatch(given)
            if not found:
                raise ValueError
            given = float(found[1]) * _SECONDS[found[2]]
        value = _as_float(given, _NUMBER)
        if value > longest:
            raise ValueError(f"longer than {longest / 3600:,.0f}h")
        if value < 0.001 and not (zero and value == 0):
            raise ValueError
        return value

    return read


def size(given: object) -> int:
    """A number of bytes, 1 or more: `4096`, `512K`, `32MiB`, `1G`, or an int. Letters in either case; K is 1,024."""
    if isinstance(given, str):
        found = _SIZE.fullmatch(given)
        if not found:
            raise ValueError
        value = float(found[1]) * _BYTES[found[2] and found[2].upper()]
        if found[2] is None and not value.is_integer():
            raise ValueError("half a byte")
        given = int(value) if value < 2**60 else -1
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= 2**50:
        raise ValueError
    return given


def choice(*accepted: str) -> Reader:
    """A reader of one of these words."""

    def read(given: object) -> str:
        if not isinstance(given, str) or given not in accepted:
            raise ValueError
        return str(given)

    return read


def order(given: object) -> object:
    """One of the two words, or a function (from Python)."""
    return given if callable(given) else choice("breadth-first", "depth-first")(given)


def patterns(given: object) -> tuple[str, ...]:
    """Regular expressions, each of which compiles."""
    found = names(given)
    for pattern in found:
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"{pattern!r}: {error}") from error
    return found


def names(given: object) -> tuple[str, ...]:
    """Texts that are not empty: one alone, or any number of them."""
    found = (given,) if isinstance(given, str) else tuple(_each(given))
    for item in found:
        if not isinstance(item, str) or not item:
            raise ValueError
    return tuple(str(item) for item in found)


def paths(given: object) -> tuple[str, ...]:
    """Paths: one alone, or any number of them."""
    is_one = isinstance(given, str) or hasattr(given, "__fspath__")
    return tuple(text(each) for each in ([given] if is_one else _each(given)))


def kinds(given: object) -> tuple[str, ...]:
    """Kinds of links, each once and in the order given: text with commas, or a sequence."""
    found = tuple(given.split(",")) if isinstance(given, str) else names(given)
    found = tuple(dict.fromkeys(kind.strip() for kind in found))
    if not found:
        raise ValueError
    for kind in found:
        if kind not in LINK_KINDS:
            raise ValueError(f"{kind!r} is no kind of link")
    return found


def headers(given: object) -> tuple[tuple[str, str], ...]:
    """(name, value) of each header: from `Name: value` texts, from pairs, or from a mapping (RFC 9110 §5.1, §5.5)."""
    items: Iterable[object] = given.items() if isinstance(given, Mapping) else _each(given)
    found = []
    for item in [given] if isinstance(given, str) else items:
        pair = tuple(item.split(":", 1)) if isinstance(item, str) else item
        if not isinstance(pair, tuple) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
            raise ValueError
        name, value = pair[0].strip(" \t") if isinstance(item, str) else pair[0], pair[1].strip(" \t")
        if not _TOKEN.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a header")
        if _CONTROL.search(value.replace("\t", " ")) or not _is_latin1(value):
            raise ValueError(f"the value of {name} holds a character that no header can carry")
        if name.lower() in _OWN_HEADERS:
            raise ValueError(_OWN_HEADERS[name.lower()])
        found.append((name, value))
    return tuple(found)


def cookie(given: object) -> str:
    """The value of a Cookie header: `a=1; b=2` (RFC 6265 §4.2.1), or several of them, joined."""
    joined = "; ".join(part.strip().rstrip(";") for part in names(given))
    if _CONTROL.search(joined) or not _is_latin1(joined):
        raise ValueError("a character that no cookie can carry")
    if not all("=" in part and not part.strip().startswith("=") for part in joined.split(";")):
        raise ValueError
    return joined


def auth(given: object) -> str:
    """USER:PASS for Basic authentication (RFC 7617 §2)."""
    if not isinstance(given, str) or ":" not in given or _CONTROL.search(given):
        raise ValueError
    return given


def proxy(given: object) -> str:
    """The URL of a proxy, or `env`."""
    if given == "env":
        return "env"
    from urllib.parse import urlsplit

    if not isinstance(given, str) or _CONTROL.search(given) or " " in given:
        raise ValueError
    parts = urlsplit(given)  # its own ValueErrors say what is wrong with brackets
    if parts.scheme not in ("http", "https", "socks4", "socks4a", "socks5", "socks5h"):
        raise ValueError("its scheme is none of these" if parts.scheme and "://" in given else "it has no scheme")
    if not parts.hostname:
        raise ValueError("it names no host")
    if parts.port == 0:
        raise ValueError("it has port 0")
    return given


def ca_bundle(given: object) -> str:
    """A file of certificates in PEM form that can be read now, rather than found missing at the first request."""
    import ssl

    path = text(given)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=path)
    except ssl.SSLError as error:
        raise ValueError("no certificate in it") from error
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from error
    return path


def user_agent(given: object) -> str:
    """The value of User-Agent: begins with a product token, by which robots.txt knows us (RFC 9110 §10.1.5)."""
    if not isinstance(given, str) or _CONTROL.search(given) or not _is_latin1(given):
        raise ValueError
    found = given.strip()
    if not found or found[0] in "/ ":
        raise ValueError
    return found


def seed(given: object) -> str:
    """The seed with a scheme: `https://` is put before one without, `http://` before loopback names and addresses."""
    if not isinstance(given, str):
        raise ValueError
    found = given.strip()
    if re.match(r"https?:", found, re.IGNORECASE):
        return found
    if re.match(r"https?//", found, re.IGNORECASE):
        raise ValueError("a colon is missing before //")
    if named := _SCHEME.match(found):
        raise ValueError(f"{named[1]} is not crawled")
    bare = found.removeprefix("//")
    authority = _AUTHORITY.match(bare)
    if not authority or bare[0] == ".":
        raise ValueError
    return ("http://" if _is_loopback(authority[1]) else "https://") + bare


def seeds_in(path: str) -> list[str]:
    """The seeds of a file, `-` being standard input: one a line; empty lines and lines that begin with # are none.

    Raises OSError and UnicodeDecodeError.
    """
    if path == "-":
        content = sys.stdin.buffer.read()
    else:
        with open(path, "rb") as file:
            content = file.read()
    lines = (line.strip() for line in content.decode("utf-8-sig").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def secret_in(path: str) -> str:
    """The first line of a file, without its end. Raises OSError and UnicodeDecodeError."""
    with open(path, encoding="utf-8-sig") as file:
        return file.readline().rstrip("\r\n")


def _is_loopback(host: str) -> bool:
    """Is it localhost (RFC 6761 §6.3) or an address of 127.0.0.0/8 or ::1, in any spelling the URL standard reads?"""
    import socket

    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        if name.startswith("["):
            packed = socket.inet_pton(socket.AF_INET6, name.strip("[]"))
            return packed == bytes(15) + b"\1" or packed[:13] == bytes(10) + b"\xff\xff\x7f"
        return socket.inet_aton(name)[0] == 127
    except (OSError, UnicodeError):
        return False


def _each(given: object) -> Iterable[object]:
    if not isinstance(given, Iterable) or isinstance(given, (bytes, bytearray)):
        raise ValueError  # a reader has one error; options makes the message
    return given


def _as_float(given: object, pattern: re.Pattern[str]) -> float:
    if isinstance(given, str) and pattern.fullmatch(given):
        given = float(given)
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given <= sys.float_info.max:
        raise ValueError
    return float(given)


def _is_latin1(value: str) -> bool:
    return all(ord(character) < 0x100 for character in value)
