"""One HTTP exchange by requests' transport: the default Fetcher.

From: a FetchTask of the fetch pool. To: a FetchedPage or FetchFailure for the coordinator. Runs in the fetch threads.

The frame is requests' HTTPAdapter with its own `send`, so that what patches `send` (the `responses` library) works
here. No redirect is followed, nothing is decoded, no cookie is kept, no environment is read unless asked for, and the
target goes on the wire as it stands in the URL. Whatever went wrong is a value with an outcome.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from requests.structures import CaseInsensitiveDict
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    IncompleteRead,
    NameResolutionError,
    ReadTimeoutError,
    SSLError,
)

from crawlr.fetch.addresses import AddressPolicy, Lookup, Resolver, system_lookup
from crawlr.fetch.answer import Body, body_limit, page
from crawlr.fetch.connections import Connection, OpenReply, OriginPool, Route, tls_context
from crawlr.fetch.guard import Exchange, Guard, Trouble, local_fault
from crawlr.fetch.idle import Idle
from crawlr.fetch.proxies import environment_proxy, parse_proxy
from crawlr.fetch.request import Origin, RequestFields, split, wire_fields
from crawlr.records import FetchedPage, FetchFailure, FetchTask, FetchTiming, Outcome, TaskKind

__all__ = ["HttpFetcher"]

_PIECE = 64 * 1024
_MAX_ORIGINS = 4096
"""Origins whose header fields and route are remembered; their connections are bounded elsewhere."""


class HttpFetcher:
    """A Fetcher on requests and sockets. Usable by many threads; one exchange is one blocking call."""

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
        """Seconds and bytes. `auth` is "user:password"; `headers`, `cookie` and `auth` go to `secret_origins`
        ("http://host:port") only. `proxy` is its URL, or "env" for those of the environment.

        Raises ValueError for what cannot be used, OSError when `ca_bundle` cannot be read.
        """
        self._fields = RequestFields(
            user_agent=user_agent, headers=headers, cookie=cookie, auth=auth, secret_origins=secret_origins
        )
        self._proxy = parse_proxy(proxy) if proxy is not None and proxy != "env" else None
        self._asks_environment = proxy == "env"
        self._insecure = insecure
        self._ca_bundle = ca_bundle
        self._tls = tls_context(insecure=insecure, ca_bundle=ca_bundle) if ca_bundle is not None else None
        self._policy = address_policy or AddressPolicy()
        self._max_body = max_body
        self._guard = Guard(timeout=timeout, connect_timeout=connect_timeout)
        self._resolver = Resolver(lookup)
        self._idle: Idle[OriginPool, Connection] = Idle(limit=max(100, 2 * concurrency))
        self._adapter = _Adapter()
        self._lock = threading.Lock()
        self._origins: dict[str, _Asked] = {}

    def fetch(self, task: FetchTask) -> FetchedPage | FetchFailure:
        """One exchange within `timeout` seconds: one answer, no redirect followed. A page's trouble is a value, too."""
        try:
            exchange = self._guard.begin()
        except Trouble as trouble:
            return trouble.failure()
        try:
            return self._perform(task, exchange)
        except Trouble as trouble:
            return trouble.failure(_timing(exchange, time.monotonic()))
        except (requests.RequestException, HTTPError, OSError, MemoryError, RuntimeError) as error:
            return _foreign(error).failure(_timing(exchange, time.monotonic()))
        finally:
            self._guard.end(exchange)

    def interrupt(self) -> None:
        """Cut what is under way; every fetch under way or later returns at once, as a fault of this machine."""
        self._guard.interrupt()
        self._resolver.close()

    def close(self) -> None:
        """Close every connection. No fetch may be under way."""
        self._guard.interrupt()
        self._resolver.close()
        self._idle.clear(is_last=True)
        self._adapter.close()

    def _perform(self, task: FetchTask, exchange: Exchange) -> FetchedPage:
        prefix, target = split(task.url)
        asked = self._origins.get(prefix) or self._ask_first(prefix, task.url)
        headers = asked.page if task.kind is TaskKind.PAGE else asked.rest
        request = _Request(
            method=task.method, url=task.url, target=target, headers=headers, pool=asked.pool, exchange=exchange
        )
        raw: Any = self._adapter.send(request, stream=True).raw  # a Reply, or what a mock made
        answered = time.monotonic()
        try:
            limit = body_limit(raw.status, raw.headers, task.kind, max_body=self._max_body)
            body = None if limit is None else _read(raw, limit)
        finally:
            if isinstance(raw, OpenReply):
                raw.release()
            else:
                raw.close()
        return page(
            status=raw.status,
            fields=raw.headers,
            kind=task.kind,
            body=body,
            wire_bytes=exchange.received or (len(body.data) if body else 0),
            timing=_timing(exchange, answered),
        )

    def _ask_first(self, prefix: str, url: str) -> _Asked:
        """Route and header fields of an origin that is asked for the first time."""
        origin = Origin.parse(prefix)
        proxy = environment_proxy(url) if self._asks_environment else self._proxy
        with self._lock:
            if self._tls is None and (origin.scheme == "https" or (proxy is not None and proxy.scheme == "https")):
                # 15 ms, and crawls without https need none
                self._tls = tls_context(insecure=self._insecure, ca_bundle=self._ca_bundle)
            route = Route(
                origin=origin,
                policy=self._policy,
                resolver=self._resolver,
                user_agent=self._fields.user_agent,
                proxy=proxy,
                tls=self._tls if origin.scheme == "https" else None,
                proxy_tls=self._tls if proxy is not None and proxy.scheme == "https" else None,
            )
            asked = _Asked(OriginPool(route, self._idle), self._fields)
            if len(self._origins) >= _MAX_ORIGINS:
                del self._origins[next(iter(self._origins))]
            return self._origins.setdefault(prefix, asked)


class _Asked:
    """What all requests to one origin share: the way to it, and the header fields of pages and of other things."""

    __slots__ = ("page", "pool", "rest")

    def __init__(self, pool: OriginPool, fields: RequestFields) -> None:
        self.pool = pool
        route = pool.route
        extra = []
        if route.is_forwarded and route.proxy is not None and route.proxy.authorization:
            extra.append(("Proxy-Authorization", route.proxy.authorization))
        self.page = _Headers([*fields.of(route.origin, TaskKind.PAGE), *extra])
        self.rest = _Headers([*fields.of(route.origin, TaskKind.ROBOTS), *extra])


class _Headers(CaseInsensitiveDict[str]):
    """Header fields of a request, for whoever looks at a PreparedRequest, and as the bytes that are sent."""

    def __init__(self, fields: list[tuple[str, str]]) -> None:
        super().__init__(fields)
        self.wire = wire_fields(fields)


class _Request(requests.PreparedRequest):
    """A request that is ready as it is: preparing one costs more than sending it, and writes the URL anew."""

    def __init__(
        self, *, method: str, url: str, target: str, headers: _Headers, pool: OriginPool, exchange: Exchange
    ) -> None:
        self.method = method
        self.url = url
        self.headers = headers
        self.body = None
        self.hooks = {}
        self._cookies = None
        self._body_position = None
        self._target = target
        self._wire_fields = headers.wire
        self._pool = pool
        self._exchange = exchange

    @property
    def path_url(self) -> str:
        """What stands behind the host in the URL."""
        return self._target

    def urlopen(self, **_ignored: object) -> OpenReply:
        """Send it: what `send` wants of a connection pool."""
        route = self._pool.route
        target = f"http://{route.origin.authority}{self._target}" if route.is_forwarded else self._target
        return self._pool.ask(target, self._wire_fields, self._exchange, method=self.method or "GET")


class _Response(requests.Response):
    """A response without what nobody here looks at: a jar, a history, a guess at the charset."""

    def __init__(self, request: requests.PreparedRequest, raw: Any) -> None:
        self._content = False  # type: ignore[assignment]  # requests' mark of a body that was not read
        self._content_consumed = False
        self._next = None
        self.status_code = raw.status
        self.headers = raw.headers
        self.raw = raw
        self.url = request.url or ""
        self.encoding = None
        self.history = []
        self.reason = ""
        self.request = request


class _Adapter(HTTPAdapter):
    """requests' transport: `send` is inherited, the steps that it takes are the cheap ones."""

    def get_connection_with_tls_context(  # type: ignore[override]  # of a pool `send` uses urlopen only
        self, request: requests.PreparedRequest, *_: object, **__: object
    ) -> _Request:
        """The request itself: it knows its origin's connections and its exchange."""
        assert isinstance(request, _Request)
        return request

    def cert_verify(self, *_: object) -> None:
        """Nothing: certificates are verified where a connection is opened."""

    def request_url(self, request: requests.PreparedRequest, *_: object) -> str:
        return request.path_url

    def build_response(self, req: requests.PreparedRequest, resp: Any) -> requests.Response:
        return _Response(req, resp)


def _read(raw: Any, limit: int) -> Body:
    """The body, at most `limit` bytes of it, with what ended it early. Raises Trouble for a fault of this machine."""
    announced = raw.length if isinstance(raw, OpenReply) else None
    pieces: list[bytes] = []
    size = 0
    fault: Outcome | None = None
    error: str | None = None
    try:
        while piece := raw.read(_PIECE, decode_content=False):
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                fault, error = Outcome.TOO_LARGE, f"over {limit} bytes"
                break
    except (Trouble, HTTPError, OSError) as caught:
        trouble = caught if isinstance(caught, Trouble) else _foreign(caught)
        if trouble.is_local:
            raise trouble from caught
        fault = Outcome.RESET if trouble.outcome is Outcome.TLS_ERROR else trouble.outcome
        error = trouble.error
    if announced is not None and announced > limit and fault is Outcome.TRUNCATED:
        fault, error = Outcome.TOO_LARGE, f"announced as {announced} bytes, over {limit}"  # another try brings no more
    data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    return Body(data[:limit] if size > limit else data, fault, error)


def _timing(exchange: Exchange, answered: float) -> FetchTiming:
    return FetchTiming(
        connect=exchange.connected - exchange.began,
        first_byte=answered - exchange.connected,
        body=time.monotonic() - answered,
    )


def _foreign(error: BaseException) -> Trouble:
    """An error of requests or urllib3 in the crawl's words; they come from what patches `send`, seldom from ours."""
    for cause in _causes(error):
        fault = local_fault(cause)
        if fault:
            return Trouble(Outcome.REFUSED, fault, is_local=True)
    text = " ".join(str(error).split())[:200] or type(error).__name__
    for cause in _causes(error):
        match cause:
            case requests.exceptions.ConnectTimeout() | ConnectTimeoutError():
                return Trouble(Outcome.CONNECT_TIMEOUT, text)
            case requests.exceptions.Timeout() | ReadTimeoutError() | TimeoutError():
                return Trouble(Outcome.READ_TIMEOUT, text)
            case NameResolutionError() | socket.gaierror():
                return Trouble(Outcome.DNS_ERROR, text)
            case requests.exceptions.SSLError() | SSLError() | ssl.SSLError():
                return Trouble(Outcome.TLS_ERROR, text)
            case ConnectionRefusedError():
                return Trouble(Outcome.REFUSED, text)
            case ConnectionResetError() | ConnectionAbortedError() | BrokenPipeError():
                return Trouble(Outcome.RESET, text)
            case IncompleteRead():
                return Trouble(Outcome.TRUNCATED, text)
    if isinstance(error, (requests.ConnectionError, OSError)) and not isinstance(error, HTTPError):
        is_plain = type(error) in (requests.ConnectionError, requests.exceptions.ProxyError)
        return Trouble(Outcome.REFUSED if is_plain else Outcome.PROTOCOL_ERROR, text)
    return Trouble(Outcome.PROTOCOL_ERROR, text)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and those inside it: chained, or in its arguments as requests puts them."""
    seen: set[int] = set()
    waiting: list[BaseException] = [error]
    while waiting and len(seen) < 20:
        now = waiting.pop(0)
        if id(now) in seen:
            continue
        seen.add(id(now))
        yield now
        inner = [now.__cause__, now.__context__, getattr(now, "reason", None), *now.args]
        waiting += [each for each in inner if isinstance(each, BaseException)]
