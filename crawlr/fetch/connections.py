"""Connections to origins: opening one (through a proxy, under TLS), keeping it, using it once more.

From: http.py, one OriginPool for each origin. To: http.py, a Reply for each request. Runs in the fetch threads.

urllib3's own pools bound neither the idle connections of all origins together nor an exchange, and write a URL anew
before they send it. Of urllib3 TLS within TLS is used.
"""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import time

from msgspec import Struct
from requests.utils import DEFAULT_CA_BUNDLE_PATH
from urllib3.util.ssltransport import SSLTransport

from crawlr.fetch.addresses import AddressPolicy, Resolver, connect, literal_refusal, resolve_host
from crawlr.fetch.guard import Exchange, Trouble, Wire, local_fault
from crawlr.fetch.idle import Idle
from crawlr.fetch.proxies import Proxy, open_tunnel
from crawlr.fetch.reply import Reply
from crawlr.fetch.request import Origin
from crawlr.fetch.wires import Deadlined, is_readable, kernel_timed
from crawlr.records import Outcome

__all__ = ["Connection", "OpenReply", "OriginPool", "Route", "tls_context"]

_DRAIN_BYTES = 64 * 1024
_DRAIN_SECONDS = 0.5

_RACES = frozenset({Outcome.RESET, Outcome.EMPTY_REPLY, Outcome.TLS_ERROR})
"""How a kept connection fails that the server has closed meanwhile."""

# X509_V_ERR_*: openssl/x509_vfy.h
_EXPIRED = frozenset({9, 10})
_OTHER_HOST = frozenset({62, 63, 64})
_NOT_TLS = frozenset(
    {
        "WRONG_VERSION_NUMBER",
        "UNKNOWN_PROTOCOL",
        "HTTP_REQUEST",
        "HTTPS_PROXY_REQUEST",
        "RECORD_LAYER_FAILURE",
        "PACKET_LENGTH_TOO_LONG",
        "RECORD_TOO_SMALL",
    }
)


def tls_context(*, insecure: bool, ca_bundle: str | None) -> ssl.SSLContext:
    """What is trusted: the certificates of `ca_bundle` (file or folder), or those that come with requests.

    Raises OSError (ssl.SSLError is one) when the bundle cannot be read.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    bundle = ca_bundle or DEFAULT_CA_BUNDLE_PATH
    if os.path.isdir(bundle):
        context.load_verify_locations(capath=bundle)
    else:
        context.load_verify_locations(cafile=bundle)
    return context


class Route(Struct, frozen=True, kw_only=True):
    """How an origin is reached. The same for all its connections."""

    origin: Origin
    policy: AddressPolicy
    resolver: Resolver
    user_agent: str
    proxy: Proxy | None = None
    tls: ssl.SSLContext | None = None
    """For an https origin."""
    proxy_tls: ssl.SSLContext | None = None
    """For an https proxy."""

    @property
    def is_forwarded(self) -> bool:
        """True when the proxy gets the request itself and the whole URL in it, not a tunnel."""
        return self.proxy is not None and not self.proxy.is_socks and self.origin.scheme == "http"


class Connection:
    """One connection, used by one thread at a time."""

    __slots__ = ("socket", "was_used", "wire")

    def __init__(self, route: Route, exchange: Exchange) -> None:
        """Open it. Raises Trouble."""
        self.was_used = False
        total, exchange.deadline = exchange.deadline, exchange.connect_deadline
        self.socket = self._connect(route, exchange)
        self.wire: Wire = self.socket
        try:
            if route.proxy is not None:
                self._pass_proxy(route, route.proxy, exchange)
            if route.tls is not None:
                self._begin_tls(route.tls, route.origin.host, exchange)
            if self.wire is self.socket:
                self.wire = kernel_timed(self.socket) or self.wire
        except BaseException:
            self.close()
            raise
        finally:
            exchange.deadline = total
            exchange.connected = exchange.last_byte = time.monotonic()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.wire.close()

    def is_dropped(self) -> bool:
        """True when the other side closed it, or sent something unasked."""
        return is_readable(self.socket)

    @staticmethod
    def _connect(route: Route, exchange: Exchange) -> socket.socket:
        policy, resolver = route.policy, route.resolver
        if route.proxy is None:
            return connect(route.origin.host, route.origin.port, exchange=exchange, policy=policy, resolver=resolver)
        # What the origin's name leads to is the proxy's business; an address is refused here as without a proxy.
        refusal = literal_refusal(route.origin.host, policy)
        if refusal:
            raise Trouble(Outcome.BLOCKED_ADDRESS, refusal)
        try:
            return connect(
                route.proxy.host, route.proxy.port, exchange=exchange, policy=AddressPolicy(), resolver=resolver
            )
        except Trouble as trouble:
            raise Trouble(trouble.outcome, f"{route.proxy}: {trouble.error}", is_local=trouble.is_local) from trouble

    def _pass_proxy(self, route: Route, proxy: Proxy, exchange: Exchange) -> None:
        origin = route.origin
        if route.proxy_tls is not None:
            self._begin_tls(route.proxy_tls, proxy.host, exchange)
        if route.is_forwarded:
            return
        addresses: tuple[str, ...] = ()
        if proxy.scheme in ("socks4", "socks5"):
            addresses = resolve_host(origin.host, exchange=exchange, policy=route.policy, resolver=route.resolver)
        try:
            open_tunnel(
                self.wire,
                proxy,
                host=origin.host,
                port=origin.port,
                addresses=addresses,
                exchange=exchange,
                user_agent=route.user_agent,
            )
        except Trouble as trouble:
            if trouble.outcome in (Outcome.READ_TIMEOUT, Outcome.TOTAL_TIMEOUT):
                raise Trouble(Outcome.CONNECT_TIMEOUT, f"{proxy} opened no tunnel in time") from trouble
            raise

    def _begin_tls(self, context: ssl.SSLContext, host: str, exchange: Exchange) -> None:
        name = host.rstrip(".")
        try:
            if self.wire is self.socket and not isinstance(self.socket, ssl.SSLSocket):
                wrapped = context.wrap_socket(self.socket, server_hostname=name, do_handshake_on_connect=False)
                self.socket = self.wire = wrapped
                exchange.attach(wrapped)
                wrapped.settimeout(max(exchange.connect_left(), 0.001))  # bounds the whole handshake
                wrapped.do_handshake()
            else:
                outer = Deadlined(self.socket)
                outer.settimeout(max(exchange.connect_left(), 0.001))
                self.wire = SSLTransport(outer, context, server_hostname=name)  # type: ignore[arg-type,assignment]  # as much of a socket as it uses
        except (OSError, ValueError) as error:
            exchange.check()
            raise _tls_trouble(error) from error
        exchange.check()


def _tls_trouble(error: OSError | ValueError) -> Trouble:
    """A handshake that failed: the error begins with expired, hostname, untrusted, not_tls, handshake_timeout,
    handshake_cut or handshake."""
    fault = local_fault(error)
    if fault:
        return Trouble(Outcome.TLS_ERROR, fault, is_local=True)
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _EXPIRED:
            kind = "expired"
        else:
            kind = "hostname" if error.verify_code in _OTHER_HOST else "untrusted"
        return Trouble(Outcome.TLS_ERROR, f"{kind}: {error.verify_message}")
    if isinstance(error, TimeoutError):
        return Trouble(Outcome.TLS_ERROR, "handshake_timeout: the TLS handshake did not end in time")
    if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)) or not isinstance(
        error, (ssl.SSLError, ValueError)
    ):
        return Trouble(Outcome.TLS_ERROR, "handshake_cut: closed during the TLS handshake")
    reason = getattr(error, "reason", None) or str(error)
    if reason in _NOT_TLS:
        return Trouble(Outcome.TLS_ERROR, "not_tls: the answer is no TLS")
    return Trouble(Outcome.TLS_ERROR, f"handshake: {reason.lower().replace('_', ' ')}")


class OpenReply(Reply):
    """A reply that knows the connection it came by."""

    def __init__(self, connection: Connection, exchange: Exchange, pool: OriginPool, *, is_head: bool = False) -> None:
        super().__init__(connection.wire, exchange, is_head=is_head)
        self._connection = connection
        self._pool = pool

    def release(self) -> None:
        """Nothing more is read: the connection is kept for the next request, or closed."""
        if self.finish(most=_DRAIN_BYTES, seconds=_DRAIN_SECONDS):
            self._pool.keep(self._connection)
        else:
            self._connection.close()


class OriginPool:
    """The connections to one origin."""

    def __init__(self, route: Route, idle: Idle[OriginPool, Connection]) -> None:
        self.route = route
        self._idle = idle

    def ask(self, target: str, fields: bytes, exchange: Exchange, *, method: str = "GET") -> OpenReply:
        """Send one request and read the header of its answer. Raises Trouble.

        `target` goes on the wire as it is, and `fields` (with the empty line) behind it. A kept connection that ends
        before a byte of the answer was closed by the server while the request was under way: that is no answer, and the
        request goes to a new connection at once (RFC 9112 §9.3.1 allows it for GET and HEAD).
        """
        request = f"{method} {target} HTTP/1.1\r\n".encode("ascii") + fields
        is_head = method == "HEAD"
        connection = self._idle.take(self)
        if connection is not None:
            try:
                return self._exchange(connection, request, exchange, is_head=is_head)
            except Trouble as trouble:
                if trouble.outcome not in _RACES or trouble.is_local or exchange.received:
                    raise
        try:
            connection = Connection(self.route, exchange)
        except Trouble as trouble:
            if trouble.is_local:
                self._idle.clear()  # gives descriptors back
            raise
        return self._exchange(connection, request, exchange, is_head=is_head)

    def keep(self, connection: Connection) -> None:
        """Take a connection back that is in step."""
        self._idle.keep(self, connection)

    def _exchange(self, connection: Connection, request: bytes, exchange: Exchange, *, is_head: bool) -> OpenReply:
        try:
            exchange.attach(connection.socket)
            exchange.send(connection.wire, request)
            return OpenReply(connection, exchange, self, is_head=is_head)
        except BaseException:
            connection.close()
            raise
