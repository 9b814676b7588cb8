"""Ways through a proxy: which one a URL takes, and the opening of a tunnel through it (HTTP CONNECT, SOCKS 4 and 5).

From: http.py, with a socket that is connected to the proxy. To: http.py, the same socket, now leading to the origin.
Runs in the fetch threads, every read under the exchange's deadline (that is why it is done here).
"""

from __future__ import annotations

import base64
import ipaddress
from urllib.parse import unquote, urlsplit

from msgspec import Struct
from requests.utils import get_environ_proxies, select_proxy

from crawlr.fetch.guard import Exchange, Trouble, Wire
from crawlr.fetch.reply import Reply
from crawlr.records import Outcome, repr_without

__all__ = ["Proxy", "environment_proxy", "open_tunnel", "parse_proxy"]

_PORTS = {"http": 80, "https": 443, "socks4": 1080, "socks4a": 1080, "socks5": 1080, "socks5h": 1080}
# RFC 1928 §6
_SOCKS5_ERRORS = {
    1: "general failure",
    2: "not allowed by its rules",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "time to live expired",
    7: "command not supported",
    8: "address type not supported",
}


class Proxy(Struct, frozen=True, kw_only=True):
    """One proxy. Its user and password are never part of a message."""

    scheme: str
    host: str
    port: int
    user: str | None = None
    password: str = ""

    def __repr__(self) -> str:
        return repr_without(self, {"user", "password"})

    def __str__(self) -> str:
        return f"proxy {self.host}:{self.port}"

    @property
    def is_socks(self) -> bool:
        return self.scheme.startswith("socks")

    @property
    def authorization(self) -> str | None:
        """Value of Proxy-Authorization (Basic), None without a user."""
        if self.user is None or self.is_socks:
            return None
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode("ascii")


def parse_proxy(text: str) -> Proxy:
    """The proxy that a URL names; without a scheme it is an http one. Raises ValueError that says what is accepted."""
    accepted = "http://, https://, socks4://, socks4a://, socks5:// or socks5h://, then [user:password@]host[:port]"
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        port = parts.port
    except ValueError:
        raise ValueError(f"no proxy address; accepted is {accepted}") from None
    scheme = parts.scheme.lower()
    if scheme not in _PORTS or not parts.hostname or parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError(f"no proxy address; accepted is {accepted}")
    return Proxy(
        scheme=scheme,
        host=parts.hostname,
        port=_PORTS[scheme] if port is None else port,
        user=None if parts.username is None else unquote(parts.username),
        password=unquote(parts.password or ""),
    )


def environment_proxy(url: str) -> Proxy | None:
    """The proxy that the environment names for a URL (http_proxy, https_proxy, all_proxy, no_proxy); None for none."""
    found = select_proxy(url, get_environ_proxies(url, no_proxy=None))
    return parse_proxy(found) if found else None


def open_tunnel(
    wire: Wire, proxy: Proxy, *, host: str, port: int, addresses: tuple[str, ...], exchange: Exchange, user_agent: str
) -> None:
    """Make a connection to the proxy lead to an origin; Trouble when the proxy does not.

    `addresses`: what the host was looked up as, for the two SOCKS kinds that want addresses; empty for the others.
    """
    if proxy.scheme in ("http", "https"):
        _http_connect(wire, proxy, host=host, port=port, exchange=exchange, user_agent=user_agent)
    elif proxy.scheme in ("socks5", "socks5h"):
        _socks5(wire, proxy, host=addresses[0] if addresses else host, port=port, exchange=exchange)
    else:
        _socks4(wire, proxy, host=addresses[0] if addresses else host, port=port, exchange=exchange)


def _http_connect(wire: Wire, proxy: Proxy, *, host: str, port: int, exchange: Exchange, user_agent: str) -> None:
    authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}", f"User-Agent: {user_agent}"]
    if proxy.authorization:
        lines.append(f"Proxy-Authorization: {proxy.authorization}")
    exchange.send(wire, ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace"))
    reply = Reply(wire, exchange, is_connect=True)
    if not 200 <= reply.status < 300:
        raise _refused(proxy, f"answered {reply.status} to CONNECT")


def _socks5(wire: Wire, proxy: Proxy, *, host: str, port: int, exchange: Exchange) -> None:
    """RFC 1928, with user and password by RFC 1929."""
    methods = b"\x00" if proxy.user is None else b"\x00\x02"
    exchange.send(wire, b"\x05" + bytes([len(methods)]) + methods)
    version, method = _exactly(wire, 2, proxy, exchange)
    if version != 5:
        raise _refused(proxy, "is no SOCKS 5 proxy")
    if method == 2 and proxy.user is not None:
        user, password = proxy.user.encode()[:255], proxy.password.encode()[:255]
        exchange.send(wire, b"\x01" + bytes([len(user)]) + user + bytes([len(password)]) + password)
        if _exactly(wire, 2, proxy, exchange)[1] != 0:
            raise _refused(proxy, "refused the user or password")
    elif method != 0:
        raise _refused(proxy, "wants a user and password")
    exchange.send(wire, b"\x05\x01\x00" + _socks5_address(host) + port.to_bytes(2, "big"))
    _, code, _, kind = _exactly(wire, 4, proxy, exchange)
    if code != 0:
        raise _refused(proxy, _SOCKS5_ERRORS.get(code, f"failed with code {code}"))
    length = {1: 4, 4: 16}.get(kind)
    _exactly(wire, (_exactly(wire, 1, proxy, exchange)[0] if length is None else length) + 2, proxy, exchange)


def _socks5_address(host: str) -> bytes:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = host.encode("ascii")
        if len(name) > 255:
            raise Trouble(Outcome.DNS_ERROR, f"unknown name {host[:80]}: too long") from None
        return b"\x03" + bytes([len(name)]) + name
    return (b"\x01" if address.version == 4 else b"\x04") + address.packed


def _socks4(wire: Wire, proxy: Proxy, *, host: str, port: int, exchange: Exchange) -> None:
    """SOCKS 4, and 4a for names."""
    user = (proxy.user or "").encode().replace(b"\0", b"") + b"\0"
    try:
        address = ipaddress.IPv4Address(host).packed
        name = b""
    except ValueError:
        if ":" in host:
            raise _refused(proxy, "cannot reach IPv6 addresses (SOCKS 4)") from None
        address, name = b"\0\0\0\1", host.encode("ascii") + b"\0"
    exchange.send(wire, b"\x04\x01" + port.to_bytes(2, "big") + address + user + name)
    code = _exactly(wire, 8, proxy, exchange)[1]
    if code != 0x5A:
        raise _refused(proxy, f"refused with code {code:#x}")


def _exactly(wire: Wire, size: int, proxy: Proxy, exchange: Exchange) -> bytes:
    data = b""
    while len(data) < size:
        more = exchange.recv(wire, size - len(data))
        if not more:
            raise _refused(proxy, "closed the connection")
        data += more
    return data


def _refused(proxy: Proxy, what: str) -> Trouble:
    return Trouble(Outcome.REFUSED, f"{proxy} {what}")
