"""A web without sockets: answers a crawl's fetches from a dict, in the crawl's own fetch threads.

From: FetchTask values. To: FetchedPage and FetchFailure values, and `requests`, the tasks in order of arrival. The
third implementation of Fetcher, for tests that need to hold a fetch at an exact place.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from crawlr.records import FetchedPage, FetchFailure, FetchTask, FetchTiming, Outcome, TaskKind
from tests.gates import LIMIT, Gate


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What one URL answers. `body` None: an HTML page with `links`. Gate, then barrier, are passed first."""

    links: tuple[str, ...] = ()
    body: bytes | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    gate: Gate | None = None
    barrier: threading.Barrier | None = None
    error: BaseException | None = None
    """Raised by the fetch instead of an answer."""
    failure: FetchFailure | None = None
    """Returned instead of an answer."""


def star(host: str, count: int, leaf: Page | None = None) -> dict[str, Page]:
    """A root that links to `count` pages, "/0" and so on, each of them `leaf`; None: they are not found."""
    paths = tuple(f"/{number}" for number in range(count))
    return {f"{host}/": Page(links=paths)} | ({f"{host}{path}": leaf for path in paths} if leaf is not None else {})


class FakeWeb:
    """Implements Fetcher (fetch, interrupt, close). An unknown URL, robots.txt included, is 404."""

    def __init__(self, pages: Mapping[str, Page]) -> None:
        self.pages = dict(pages)
        self.requests: list[FetchTask] = []
        self.is_closed = False
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()
        self._interrupted = threading.Event()

    def urls(self, kind: TaskKind = TaskKind.PAGE) -> list[str]:
        """Requested URLs of one kind, in order of arrival."""
        with self._lock:
            return [task.url for task in self.requests if task.kind is kind]

    def fetch(self, task: FetchTask) -> FetchedPage | FetchFailure:
        with self._lock:
            assert not self.is_closed, "a fetch after close"
            self.requests.append(task)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            return self._answer(self.pages.get(task.url))
        finally:
            with self._lock:
                self._at_once -= 1

    def interrupt(self) -> None:
        self._interrupted.set()
        for page in self.pages.values():
            if page.gate is not None:
                page.gate.open()
            if page.barrier is not None:
                page.barrier.abort()

    def close(self) -> None:
        self.is_closed = True

    def _answer(self, page: Page | None) -> FetchedPage | FetchFailure:
        if page is None:
            return FetchedPage(status=404, content_type="text/html")
        if page.gate is not None and not self._interrupted.is_set():
            page.gate.enter()
        if page.barrier is not None and not self._interrupted.is_set():
            try:
                page.barrier.wait(LIMIT)
            except threading.BrokenBarrierError:
                return FetchFailure(outcome=Outcome.RESET, error="the barrier was not reached by all in time")
        if self._interrupted.is_set():
            return FetchFailure(outcome=Outcome.RESET, error="interrupted", is_local=True)
        if page.error is not None:
            raise page.error
        if page.failure is not None:
            return page.failure
        return _fetched(page)


def _fetched(page: Page) -> FetchedPage:
    headers = {name.lower(): value for name, value in page.headers.items()}
    body = page.body if page.body is not None else "".join(f'<a href="{link}">x</a>' for link in page.links).encode()
    location = headers.get("location")
    is_wanted = 200 <= page.status < 300
    return FetchedPage(
        status=page.status,
        body=body if is_wanted else b"",
        content_type=headers.get("content-type", "text/html; charset=utf-8"),
        content_encoding=headers.get("content-encoding"),
        location=location.encode("latin-1") if location is not None else None,
        retry_after=headers.get("retry-after"),
        x_robots_tag=tuple(value for name, value in headers.items() if name == "x-robots-tag"),
        link=tuple(value for name, value in headers.items() if name == "link"),
        is_wanted=is_wanted,
        wire_bytes=len(body),
        timing=FetchTiming(first_byte=0.001),
    )
