"""What the tests of fetchers share: the engines under test, the making of tasks, the reading of results."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from crawlr.fetch.http import HttpFetcher
from crawlr.fetch.pool import Fetcher
from crawlr.records import FetchedPage, FetchFailure, FetchTask, TaskKind
from tests.servers.local import Answer
from tests.servers.wire import Request, Wire

Make = Callable[..., Fetcher]
ENGINES: dict[str, Callable[..., Fetcher]] = {"urllib3": HttpFetcher}
try:
    from crawlr.fetch.curl import CurlFetcher
except ImportError:  # pycurl is an extra
    pass
else:
    ENGINES["curl"] = CurlFetcher


@pytest.fixture(params=sorted(ENGINES))
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    """Makes fetchers of each engine with small limits; they are closed at the end of the test."""
    made: list[Fetcher] = []

    def build(**options: Any) -> Fetcher:
        defaults = {"timeout": 5.0, "connect_timeout": 3.0, "max_body": 1 << 20, "concurrency": 4}
        made.append(ENGINES[request.param](**({"user_agent": "crawlr/0 (+test)"} | defaults | options)))
        return made[-1]

    yield build
    for each in made:
        each.close()


def task(url: str, kind: TaskKind = TaskKind.PAGE) -> FetchTask:
    return FetchTask(id=1, url=url, kind=kind)


def page(result: FetchedPage | FetchFailure) -> FetchedPage:
    assert isinstance(result, FetchedPage), result
    return result


def failure(result: FetchedPage | FetchFailure) -> FetchFailure:
    assert isinstance(result, FetchFailure), result
    return result


def raw(data: bytes) -> Answer:
    """An answer of these very bytes, after which the connection is closed."""

    def answer(request: Request, wire: Wire) -> None:
        wire.send(data)
        with contextlib.suppress(OSError):
            wire.sock.shutdown(socket.SHUT_WR)
            wire.sock.settimeout(5)
            while wire.sock.recv(65536):  # a close with unread bytes would be a reset
                pass

    return answer
