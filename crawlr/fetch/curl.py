"""One HTTP exchange by libcurl: the Fetcher of --fetcher curl, which speaks HTTP/2 where a server does.

From: a FetchTask of the fetch pool. To: a FetchedPage or FetchFailure for the coordinator. Runs in the fetch threads.

The same outcomes as http.py by other means: libcurl reads the bytes and keeps the time; names, addresses, header
fields, framing and the worth of a body are judged by the same functions. A handle has one connection and moves from
thread to thread with it. Each call from libcurl waits for the interpreter's lock, in a busy crawl longer than the call
takes: so there is none but for sockets, lines of a header and pieces of a body, and an interrupt cuts the sockets.
"""

from __future__ import annotations

import errno
import os
import re
import select
import socket
import threading
import time
from collections.abc import Callable

import pycurl
from msgspec import Struct
from requests.utils import DEFAULT_CA_BUNDLE_PATH

from crawlr.fetch.addresses import AddressPolicy, Lookup, Resolver, literal_refusal, resolve_host, system_lookup
from crawlr.fetch.answer import Body, body_limit, page
from crawlr.fetch.connections import tls_context
from crawlr.fetch.guard import Exchange, Guard, Trouble, local_fault
from crawlr.fetch.idle import Idle
from crawlr.fetch.proxies import Proxy, environment_proxy, parse_proxy
from crawlr.fetch.reply import HeaderFields, frame, header_fields
from crawlr.fetch.request import Origin, RequestFields, field_bytes, split
from crawlr.records import FetchedPage, FetchFailure, FetchTask, FetchTiming, Outcome, TaskKind

__all__ = ["CurlFetcher"]

_MAX_ORIGINS = 4096
_MAX_HEAD = 64 * 1024
_MAX_INTERIM = 8
_DRAIN_BYTES = 64 * 1024
_DRAIN_SECONDS = 0.5
_SUPPRESS_CONNECT_HEADERS = 265  # CURLOPT_SUPPRESS_CONNECT_HEADERS, which pycurl does not name

_STATUS_LINE = re.compile(r"HTTP/[0-9](?:\.[0-9])?[ \t]+([1-9][0-9]{2})(?:[ \t].*)?")

# CURLE_*: those that pycurl names otherwise or not at all (curl/curl.h)
_WEIRD_SERVER_REPLY = 8
_HTTP2 = 16
_HTTP2_STREAM = 92
_PROXY = 97
_TOO_LARGE = 100
_OUTCOMES = {
    pycurl.E_GOT_NOTHING: Outcome.EMPTY_REPLY,
    pycurl.E_SEND_ERROR: Outcome.RESET,
    pycurl.E_RECV_ERROR: Outcome.RESET,
    _HTTP2_STREAM: Outcome.RESET,
    pycurl.E_PARTIAL_FILE: Outcome.TRUNCATED,
    pycurl.E_COULDNT_RESOLVE_HOST: Outcome.DNS_ERROR,
    pycurl.E_COULDNT_RESOLVE_PROXY: Outcome.DNS_ERROR,
    pycurl.E_COULDNT_CONNECT: Outcome.REFUSED,
    _PROXY: Outcome.REFUSED,
    _WEIRD_SERVER_REPLY: Outcome.PROTOCOL_ERROR,
    _HTTP2: Outcome.PROTOCOL_ERROR,
    _TOO_LARGE: Outcome.PROTOCOL_ERROR,
}
_TLS_ERRORS = frozenset({pycurl.E_SSL_CONNECT_ERROR, pycurl.E_PEER_FAILED_VERIFICATION, pycurl.E_SSL_CIPHER})
_NOT_TLS = re.compile(r"wrong version number|packet length too long|record layer failure|http request|unknown protocol")
_CUT = re.compile(r"unexpected eof|reset by peer|SSL_ERROR_SYSCALL|SSL_ERROR_ZERO_RETURN|broken pipe", re.IGNORECASE)


class _Asked(Struct, frozen=True, eq=False, kw_only=True):
    """What all requests to one origin share. Compared by identity."""

    origin: Origin
    prefix: str
    proxy: Proxy | None
    page: list[bytes]
    rest: list[bytes]

    @property
    def is_forwarded(self) -> bool:
        return self.proxy is not None and not self.proxy.is_socks and self.origin.scheme == "http"


class CurlFetcher:
    """A Fetcher on libcurl. Usable by many threads; one exchange is one blocking call."""

    def __init__(
        self,
        *,
        user_agent: str,
        timeout: float,
        connect_timeout: float,
        max_body: int,
        concurrency: int,
        headers: tuple[tuple[str, str], ...] = (),
        cookie: str | None = None,
        auth: str | None = None,
        secret_origins: frozenset[str] = frozenset(),
        proxy: str | None = None,
        insecure: bool = False,
        ca_bundle: str | None = None,
        address_policy: AddressPolicy | None = None,
        lookup: Lookup = system_lookup,
    ) -> None:
        """As HttpFetcher. Raises ValueError for what cannot be used, OSError when `ca_bundle` cannot be read."""
        self._fields = RequestFields(
            user_agent=user_agent, headers=headers, cookie=cookie, auth=auth, secret_origins=secret_origins
        )
        if ca_bundle is not None and not insecure:
            tls_context(insecure=False, ca_bundle=ca_bundle)  # libcurl would say it at the first page only
        self._proxy = parse_proxy(proxy) if proxy is not None and proxy != "env" else None
        self._asks_environment = proxy == "env"
        self._insecure = insecure
        self._ca_bundle = ca_bundle or DEFAULT_CA_BUNDLE_PATH
        self._policy = address_policy or AddressPolicy()
        self._max_body = max_body
        self._guard = Guard(timeout=timeout, connect_timeout=connect_timeout)
        self._resolver = Resolver(lookup)
        self._idle: Idle[_Asked, _Handle] = Idle(limit=max(50, 2 * concurrency))
        self._lock = threading.Lock()
        self._origins: dict[str, _Asked] = {}

    def fetch(self, task: FetchTask) -> FetchedPage | FetchFailure:
        """One exchange within `timeout` seconds: one answer, no redirect followed. A page's trouble is a value, too."""
        handle: _Handle | None = None
        try:
            exchange = self._guard.begin()
        except Trouble as trouble:
            return trouble.failure()
        try:
            prefix, target = split(task.url)
            asked = self._origins.get(prefix) or self._ask_first(prefix, task.url)
            addresses = self._addresses(asked, exchange)
            handle = self._idle.take(asked) or self._idle.take_oldest() or _Handle(self._guard, self._policy, self._tls)
            got = handle.perform(
                asked,
                target,
                kind=task.kind,
                is_head=task.method == "HEAD",
                addresses=addresses,
                exchange=exchange,
                max_body=self._max_body,
            )
        except Trouble as trouble:
            if trouble.is_local:
                self._idle.clear()  # gives descriptors back
            return trouble.failure(FetchTiming(connect=time.monotonic() - exchange.began))
        else:
            return got
        finally:
            self._guard.end(exchange)
            if handle is not None:
                self._idle.keep(asked, handle)

    def interrupt(self) -> None:
        """Cut what is under way; a later fetch returns at once. Both as a fault of this machine."""
        self._guard.interrupt()
        self._resolver.close()

    def close(self) -> None:
        """Close every connection. No fetch may be under way."""
        self._guard.interrupt()
        self._resolver.close()
        self._idle.clear(is_last=True)

    def _ask_first(self, prefix: str, url: str) -> _Asked:
        origin = Origin.parse(prefix)
        asked = _Asked(
            origin=origin,
            prefix=prefix,
            proxy=environment_proxy(url) if self._asks_environment else self._proxy,
            page=[_line(name, value) for name, value in self._fields.of(origin, TaskKind.PAGE)],
            rest=[_line(name, value) for name, value in self._fields.of(origin, TaskKind.ROBOTS)],
        )
        with self._lock:
            if len(self._origins) >= _MAX_ORIGINS:
                del self._origins[next(iter(self._origins))]
            return self._origins.setdefault(prefix, asked)

    def _addresses(self, asked: _Asked, exchange: Exchange) -> tuple[str, ...]:
        """What libcurl is to connect to; empty when that is a proxy's business. Raises Trouble for what is refused."""
        host, proxy = asked.origin.host, asked.proxy
        if proxy is None or proxy.scheme in ("socks4", "socks5"):
            return resolve_host(host, exchange=exchange, policy=self._policy, resolver=self._resolver)
        refusal = literal_refusal(host, self._policy)
        if refusal:
            raise Trouble(Outcome.BLOCKED_ADDRESS, refusal)
        return ()

    def _tls(self, easy: pycurl.Curl) -> None:
        """Tell a handle what is trusted."""
        if self._insecure:
            for option in (
                *(pycurl.SSL_VERIFYPEER, pycurl.SSL_VERIFYHOST),
                *(pycurl.PROXY_SSL_VERIFYPEER, pycurl.PROXY_SSL_VERIFYHOST),
            ):
                easy.setopt(option, 0)
        elif os.path.isdir(self._ca_bundle):
            easy.setopt(pycurl.CAPATH, self._ca_bundle)
            easy.setopt(pycurl.PROXY_CAPATH, self._ca_bundle)
        else:
            easy.setopt(pycurl.CAINFO, self._ca_bundle)
            easy.setopt(pycurl.PROXY_CAINFO, self._ca_bundle)


class _Handle:
    """One easy handle of libcurl with its connection, used by one thread at a time."""

    def __init__(self, guard: Guard, policy: AddressPolicy, trust: Callable[[pycurl.Curl], None]) -> None:
        self._guard = guard
        self._policy = policy
        self._lines: list[bytes] = []  # of all headers that came, filled by libcurl
        # Of the connection, and while there is none yet of those that may become it. libcurl has copies of them. Filled
        # by _on_socket, emptied by _forget_sockets.
        self._sockets: list[socket.socket] = []
        self._is_new = False  # whether those are of this exchange
        self._exchange: Exchange | None = None
        self._asked: _Asked | None = None
        self._addresses: tuple[str, ...] = ()
        self._easy = easy = pycurl.Curl()
        for option, value in {
            pycurl.NOSIGNAL: 1,
            pycurl.MAXCONNECTS: 1,
            pycurl.BUFFERSIZE: 64 * 1024,
            pycurl.HTTP_VERSION: pycurl.CURL_HTTP_VERSION_2TLS,
            pycurl.HTTP09_ALLOWED: 0,
            pycurl.PATH_AS_IS: 1,
            pycurl.HTTP_CONTENT_DECODING: 0,
            pycurl.PROTOCOLS: pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS,
            pycurl.NOPROXY: "",  # and not that of the environment
            _SUPPRESS_CONNECT_HEADERS: 1,
            pycurl.HEADERFUNCTION: self._on_header,
            pycurl.WRITEFUNCTION: self._on_body,
            pycurl.OPENSOCKETFUNCTION: self._on_socket,
        }.items():
            easy.setopt(option, value)
        trust(easy)
        self._clear(max_body=0, kind=TaskKind.PAGE)

    def is_dropped(self) -> bool:
        """Never: libcurl replaces a dead connection itself."""
        return False

    def close(self) -> None:
        self._easy.close()
        self._forget_sockets()

    def perform(
        self,
        asked: _Asked,
        target: str,
        *,
        kind: TaskKind,
        is_head: bool,
        addresses: tuple[str, ...],
        exchange: Exchange,
        max_body: int,
    ) -> FetchedPage:
        """One exchange. Raises Trouble."""
        self._clear(max_body=max_body, kind=kind)
        self._exchange = exchange
        easy = self._easy
        if asked is not self._asked:
            self._turn_to(asked)
        if addresses != self._addresses:
            self._know(asked.origin, addresses)
        easy.setopt(pycurl.NOBODY if is_head else pycurl.HTTPGET, 1)  # each undoes the other
        easy.setopt(pycurl.FRESH_CONNECT, int(self._is_out_of_step()))
        easy.setopt(pycurl.REQUEST_TARGET, asked.prefix + target if asked.is_forwarded else target)
        easy.setopt(pycurl.HTTPHEADER, asked.page if kind is TaskKind.PAGE else asked.rest)
        exchange.attach(*self._sockets)
        began = time.monotonic()
        easy.setopt(pycurl.TIMEOUT_MS, max(1, round(1000 * (exchange.deadline - began))))
        easy.setopt(pycurl.CONNECTTIMEOUT_MS, max(1, round(1000 * (exchange.connect_deadline - began))))
        code, message = 0, ""
        try:
            easy.perform()
        except pycurl.error as error:
            code, message = error.args[0], error.args[1]
        finally:
            self._keep_live_socket()
        if code:
            exchange.check()
        if self._fields is None and self._trouble is None:
            self._begin()
        if self._trouble is not None:
            raise self._trouble
        if self._fields is None:
            raise self._failure(code, message or "closed inside the header", asked)
        before, connected, answered, total = (
            easy.getinfo(info)
            for info in (pycurl.NUM_CONNECTS, pycurl.PRETRANSFER_TIME, pycurl.STARTTRANSFER_TIME, pycurl.TOTAL_TIME)
        )
        return page(
            status=self._status,
            fields=self._fields,
            kind=kind,
            body=None if self._limit is None else self._body(code, message, asked),
            wire_bytes=easy.getinfo(pycurl.HEADER_SIZE) + easy.getinfo(pycurl.SIZE_DOWNLOAD_T),
            timing=FetchTiming(
                connect=began - exchange.began + (connected if before else 0.0),
                first_byte=max(0.0, answered - connected),
                body=max(0.0, total - answered),
            ),
        )

    def _clear(self, *, max_body: int, kind: TaskKind) -> None:
        """Forget the answer before."""
        self._lines.clear()
        self._max_body = max_body
        self._kind = kind
        self._status = 0
        self._fields: HeaderFields | None = None
        self._announced: int | None = None
        self._limit: int | None = None
        self._trouble: Trouble | None = None
        self._pieces: list[bytes] = []
        self._size = 0
        self._is_new = False
        self._last = time.monotonic()  # when something came

    def _is_out_of_step(self) -> bool:
        """True when something came on the kept connection since its last answer.

        libcurl takes that for the beginning of the next answer, when it comes soon (measured with 8.23). HTTP/2 names
        the stream that bytes belong to.
        """
        descriptor = self._easy.getinfo(pycurl.ACTIVESOCKET)
        if descriptor < 0 or self._easy.getinfo(pycurl.INFO_HTTP_VERSION) >= pycurl.CURL_HTTP_VERSION_2_0:
            return False
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(0))

    def _turn_to(self, asked: _Asked) -> None:
        """Make this the handle of an origin."""
        easy, proxy = self._easy, asked.proxy
        if self._addresses and self._asked is not None:
            self._know(self._asked.origin, ())
        self._asked = asked
        easy.setopt(pycurl.URL, asked.prefix + "/")
        if proxy is None:
            easy.setopt(pycurl.PROXY, "")  # and not that of the environment
            return
        host = f"[{proxy.host}]" if ":" in proxy.host else proxy.host
        easy.setopt(pycurl.PROXY, f"{proxy.scheme}://{host}:{proxy.port}")
        if proxy.user is not None:
            easy.setopt(pycurl.PROXYUSERNAME, proxy.user)
            easy.setopt(pycurl.PROXYPASSWORD, proxy.password)

    def _know(self, origin: Origin, addresses: tuple[str, ...]) -> None:
        """Put what a name was looked up as into libcurl's cache in the place of what is there."""
        self._addresses = addresses
        key = f"{origin.host}:{origin.port}"
        known = [f"-{key}"]
        if addresses and addresses != (origin.host,):
            listed = ",".join(f"[{address}]" if ":" in address else address for address in addresses)
            known.append(f"{key}:{listed}")
        self._easy.setopt(pycurl.RESOLVE, known)

    def _keep_live_socket(self) -> None:
        """Of the sockets of this exchange keep the connection's alone, if it is kept: a copy would hold it open."""
        if self._easy.getinfo(pycurl.ACTIVESOCKET) < 0:
            self._forget_sockets()
        elif len(self._sockets) > 1:
            port = self._easy.getinfo(pycurl.LOCAL_PORT)
            for sock in self._sockets[:]:
                if sock.getsockname()[1] != port:
                    self._sockets.remove(sock)
                    sock.close()

    def _forget_sockets(self) -> None:
        while self._sockets:
            self._sockets.pop().close()

    # ------------------------------------------------------------------ called by libcurl

    def _on_socket(self, _purpose: int, address: tuple[int, int, int, tuple[str, int]]) -> socket.socket | int:
        """A socket for an address that is about to be connected to; none when it is refused."""
        family, kind, protocol, where_to = address
        asked = self._asked
        if asked is not None and asked.proxy is None:
            refusal = self._policy.refusal(where_to[0], host=asked.origin.host)
            if refusal:
                self._trouble = Trouble(Outcome.BLOCKED_ADDRESS, refusal)
                return int(pycurl.SOCKET_BAD)
        try:
            made = socket.socket(family, kind, protocol)
        except OSError as error:
            fault = local_fault(error)
            self._trouble = Trouble(Outcome.REFUSED, fault or str(error), is_local=fault is not None)
            return int(pycurl.SOCKET_BAD)
        if not self._is_new:  # what was kept is of a connection that libcurl has given up
            self._forget_sockets()
            self._is_new = True
        self._sockets.append(made)
        if self._exchange is not None:
            try:
                self._exchange.attach(*self._sockets)
            except Trouble as trouble:
                self._trouble = trouble
                return int(pycurl.SOCKET_BAD)
        return made

    def _on_body(self, data: bytes) -> int:
        """Take a piece of the body; anything but its length ends the exchange."""
        if self._fields is None:
            self._begin()
        if self._trouble is not None:
            return -1
        self._last = time.monotonic()
        self._size += len(data)
        if self._limit is None:
            is_small = self._size <= _DRAIN_BYTES and self._last - self._answered <= _DRAIN_SECONDS
            return len(data) if is_small else -1
        self._pieces.append(data)
        return len(data) if self._size <= self._limit else -1

    def _on_header(self, line: bytes) -> int:
        """Take a line of a header; anything but its length ends the exchange."""
        self._lines.append(line)
        if line.rstrip(b"\r\n"):
            return len(line)
        if self._fields is None:  # else it ends trailers
            self._begin()
        if self._trouble is not None:
            return -1
        is_much = self._fields is not None and self._limit is None and (self._announced or 0) > _DRAIN_BYTES
        return -1 if is_much else len(line)

    def _begin(self) -> None:
        """Read the header, when it is complete; trouble with it is kept for later."""
        try:
            self._read_header()
        except Trouble as trouble:
            self._trouble = trouble

    def _read_header(self) -> None:
        lines = [line.decode("latin-1") for line in self._lines]
        if sum(map(len, lines)) > _MAX_HEAD:
            raise Trouble(Outcome.PROTOCOL_ERROR, f"header limit: over {_MAX_HEAD} bytes")
        ends = [number for number, line in enumerate(lines) if not line.rstrip("\r\n")]
        start = 0
        for end in ends[: _MAX_INTERIM + 1]:
            match = _STATUS_LINE.fullmatch(lines[start].rstrip("\r\n"))
            if match is None:
                raise Trouble(Outcome.PROTOCOL_ERROR, f"bad status line: {lines[start][:80]!a}")
            status = int(match[1])
            if status == 101:
                raise Trouble(Outcome.PROTOCOL_ERROR, "switched to another protocol unasked")
            if status >= 200:
                fields, _ = header_fields(lines[start + 1 : end])
                self._announced = frame(status, fields).length
                self._limit = body_limit(status, fields, self._kind, max_body=self._max_body)
                self._answered = time.monotonic()
                self._status, self._fields = status, fields
                return
            start = end + 1
        if len(ends) > _MAX_INTERIM:
            raise Trouble(Outcome.PROTOCOL_ERROR, f"more than {_MAX_INTERIM} interim responses")

    # ------------------------------------------------------------------ how it ended

    def _body(self, code: int, message: str, asked: _Asked) -> Body:
        limit = self._limit or 0
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        if self._size > limit:
            return Body(data[:limit], Outcome.TOO_LARGE, f"over {limit} bytes")
        if not code:
            return Body(data)
        trouble = self._failure(code, message, asked)
        if trouble.is_local:
            raise trouble
        if trouble.outcome is Outcome.TRUNCATED and (self._announced or 0) > limit:
            return Body(data, Outcome.TOO_LARGE, f"announced as {self._announced} bytes, over {limit}")
        is_known = trouble.outcome in (
            *(Outcome.TRUNCATED, Outcome.RESET, Outcome.PROTOCOL_ERROR),
            *(Outcome.READ_TIMEOUT, Outcome.TOTAL_TIMEOUT),
        )
        return Body(data, trouble.outcome if is_known else Outcome.RESET, trouble.error)

    def _failure(self, code: int, message: str, asked: _Asked) -> Trouble:
        """libcurl's error in the crawl's words."""
        easy, proxy = self._easy, asked.proxy
        if code == pycurl.E_OUT_OF_MEMORY:
            return Trouble(Outcome.RESET, "out of memory", is_local=True)
        if code == pycurl.E_OPERATION_TIMEDOUT:
            return self._late(message, asked)
        if code in _TLS_ERRORS:
            return self._tls_failure(code, message)
        if proxy is not None and easy.getinfo(pycurl.HTTP_CONNECTCODE) >= 300:
            return Trouble(Outcome.REFUSED, f"{proxy} answered {easy.getinfo(pycurl.HTTP_CONNECTCODE)} to CONNECT")
        number = easy.getinfo(pycurl.OS_ERRNO) if code == pycurl.E_COULDNT_CONNECT else 0
        fault = local_fault(OSError(number, os.strerror(number))) if number else None
        if fault or number == errno.EADDRNOTAVAIL:
            return Trouble(Outcome.REFUSED, fault or "no local port is free", is_local=True)
        if number == errno.ETIMEDOUT:
            return Trouble(Outcome.CONNECT_TIMEOUT, message)
        outcome = _OUTCOMES.get(code, Outcome.PROTOCOL_ERROR)
        if outcome is Outcome.RESET and re.search("chunk|header", message, re.IGNORECASE):
            outcome = Outcome.PROTOCOL_ERROR
        return Trouble(outcome, f"{proxy}: {message}" if proxy is not None and outcome is Outcome.REFUSED else message)

    def _late(self, message: str, asked: _Asked) -> Trouble:
        if not message.startswith("Operation"):  # libcurl's word for what comes after the connection stands
            is_connected = self._easy.getinfo(pycurl.CONNECT_TIME_T) > 0
            if asked.proxy is None and asked.origin.scheme == "https" and is_connected:
                return Trouble(Outcome.TLS_ERROR, "handshake_timeout: the TLS handshake did not end in time")
            where_to = asked.proxy or asked.origin.authority
            return Trouble(Outcome.CONNECT_TIMEOUT, f"no connection to {where_to} in time")
        silence, timeout = time.monotonic() - self._last, self._guard.timeout
        if silence >= timeout / 2:
            return Trouble(Outcome.READ_TIMEOUT, f"nothing received for {silence:.1f} of {timeout:g} s")
        return Trouble(Outcome.TOTAL_TIMEOUT, f"not complete after {timeout:g} s ({self._size} bytes received)")

    def _tls_failure(self, code: int, message: str) -> Trouble:
        verdict = self._easy.getinfo(pycurl.SSL_VERIFYRESULT) or self._easy.getinfo(pycurl.PROXY_SSL_VERIFYRESULT)
        if code == pycurl.E_PEER_FAILED_VERIFICATION:
            kind = "expired" if verdict in (9, 10) else "hostname" if "subject name" in message else "untrusted"
        elif _NOT_TLS.search(message):
            kind = "not_tls"
        else:
            kind = "handshake_cut" if _CUT.search(message) else "handshake"
        return Trouble(Outcome.TLS_ERROR, f"{kind}: {message}")


def _line(name: str, value: str) -> bytes:
    """A field as libcurl wants it: without a value "Name;", since "Name:" would take one away."""
    return name.encode("ascii") + (b": " + field_bytes(value) if value else b";")
