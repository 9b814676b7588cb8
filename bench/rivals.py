"""Four other shapes of the same crawl, small and honest: what crawlr would be without its parse pool.

    python -m bench.rivals threads http://127.0.0.1:8000/index.html --parse-procs 2 --concurrency 20

From: bench.engines, which runs each in a process of its own. To: a line of JSON: pages, edges, CPU. All of them use
crawlr's own fetcher (asyncio: a client of 40 lines), its own parser and its identity of URLs, and find the same pages
and edges. They have no robots.txt, no politeness, no retries, no journal, no records and no protection from a page
that hangs or kills its parser: they do less.

threads    fetch threads, and parse threads beside them: all share one interpreter lock
executor   fetch threads, and one ProcessPoolExecutor with all parse processes: one call a page, links as texts
asyncio    one loop that fetches and parses
asyncio+   one loop that fetches, and one ProcessPoolExecutor
"""

from __future__ import annotations

import argparse
import asyncio
import json
import queue
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urlsplit

from bench.measured import on_loopback, usage
from crawlr import engines
from crawlr.fetch import redirects
from crawlr.options import DEFAULT_FOLLOW, Options
from crawlr.parse import document
from crawlr.parse.urls import identity, resolve
from crawlr.records import FetchedPage, FetchFailure, FetchTask, TaskKind

__all__ = ["SHAPES", "Graph", "main"]

_FOLLOW = frozenset(DEFAULT_FOLLOW)
_WAIT_LIMIT = 120.0


@dataclass(slots=True)
class Graph:
    """What a crawl has found. Filled by the loop of each shape."""

    host: str
    ids: dict[str, int] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    edges: list[tuple[int, list[int]]] = field(default_factory=list)
    pages: int = 0
    ok: int = 0

    def learn(self, url: str, key: str) -> int | None:
        """The id of a URL in scope, which waits when it is new."""
        number = self.ids.get(key)
        if number is None and urlsplit(url).netloc == self.host:
            number = self.ids[key] = len(self.ids)
            self.waiting.append(url)
        return number

    def answered(self, status: int | None, location: str | None) -> None:
        """A page has its answer."""
        self.pages += 1
        self.ok += status is not None and 200 <= status < 400
        if location is not None:
            self.learn(location, identity(location))

    def parsed(self, url: str, links: list[tuple[str, str]]) -> None:
        """A page has its links: (url, identity), distinct."""
        source = self.ids[identity(url)]
        targets = [self.learn(link, key) for link, key in links]
        self.edges.append((source, [number for number in targets if number is not None and number != source]))

    def told(self) -> dict[str, object]:
        return {"pages": self.pages, "ok": self.ok, "edges": sum(len(targets) for _, targets in self.edges)}


def parse(url: str, body: bytes, content_type: str | None, parser: str) -> list[tuple[str, str]]:
    """(url, identity) of the distinct links of a page."""
    page = document.read(body, url=url, content_type=content_type, agent="crawlr", parser=parser, follow=_FOLLOW)
    found: dict[str, str] = {}
    for link, _, _ in page.links:
        found.setdefault(identity(link), link)
    return [(link, key) for key, link in found.items()]


def _answer(url: str, page: FetchedPage | FetchFailure) -> tuple[int | None, str | None, bool]:
    """(status, where it leads, whether its body is to be parsed)"""
    if isinstance(page, FetchFailure):
        return None, None, False
    if redirects.is_redirect(page.status):
        text = redirects.location(page)
        return page.status, resolve(url, text) if text is not None else None, False
    return page.status, None, 200 <= page.status < 300 and page.is_wanted


# ---- threads that fetch, and an executor that parses


def _with_threads(graph: Graph, options: Options, parsers: Executor) -> None:
    mailbox: queue.SimpleQueue[tuple[str, Future[FetchedPage | FetchFailure] | Future[list[tuple[str, str]]], bool]]
    mailbox = queue.SimpleQueue()
    fetcher = engines.network(options, options.seeds, None)
    with ThreadPoolExecutor(options.concurrency) as fetchers:
        out = 0
        while graph.waiting or out:
            while graph.waiting:
                url = graph.waiting.pop()
                task = FetchTask(id=0, url=url, kind=TaskKind.PAGE)
                fetching = fetchers.submit(fetcher.fetch, task)
                fetching.add_done_callback(lambda done, url=url: mailbox.put((url, done, False)))  # type: ignore[misc]  # a default binds the loop's
                out += 1
            url, done, is_parsed = mailbox.get(timeout=_WAIT_LIMIT)
            result = done.result()
            if isinstance(result, list):
                assert is_parsed
                graph.parsed(url, result)
                out -= 1
                continue
            status, location, is_wanted = _answer(url, result)
            graph.answered(status, location)
            if not is_wanted:
                out -= 1
                continue
            assert isinstance(result, FetchedPage)
            parsing = parsers.submit(parse, url, result.body, result.content_type, options.parser)
            parsing.add_done_callback(lambda done, url=url: mailbox.put((url, done, True)))  # type: ignore[misc]  # the same
    fetcher.close()


def threads(graph: Graph, options: Options, procs: int) -> None:
    with ThreadPoolExecutor(procs) as parsers:
        _with_threads(graph, options, parsers)


def executor(graph: Graph, options: Options, procs: int) -> None:
    with ProcessPoolExecutor(procs) as parsers:
        list(parsers.map(abs, range(procs)))  # forks before there are threads
        _with_threads(graph, options, parsers)


# ---- asyncio


async def _get(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, url: str) -> FetchedPage:
    """One exchange on an open connection. Bodies have a length here."""
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    writer.write(f"GET {target} HTTP/1.1\r\nHost: {parts.netloc}\r\nUser-Agent: crawlr\r\n\r\n".encode("ascii"))
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    body = await reader.readexactly(int(fields["content-length"]))
    status = int(head[0].split(" ", 2)[1])
    content_type, location = fields.get("content-type"), fields.get("location")
    return FetchedPage(
        status=status,
        body=body,
        content_type=content_type,
        location=None if location is None else location.encode("latin-1"),
        is_wanted=content_type is None or content_type.startswith(("text/html", "application/xhtml")),
    )


async def _with_loop(graph: Graph, options: Options, parsers: Executor | None) -> None:
    loop = asyncio.get_running_loop()
    news = asyncio.Condition()
    out = 0

    def has_news() -> bool:
        return bool(graph.waiting) or not out

    async def work() -> None:
        nonlocal out
        host, port = graph.host.rsplit(":", 1)
        reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 20)
        while True:
            async with news:
                await news.wait_for(has_news)
                if not graph.waiting:
                    break
                url = graph.waiting.pop()
                out += 1
            page = await _get(reader, writer, url)
            status, location, is_wanted = _answer(url, page)
            graph.answered(status, location)
            if is_wanted:
                what = partial(parse, url, page.body, page.content_type, options.parser)
                graph.parsed(url, what() if parsers is None else await loop.run_in_executor(parsers, what))
            async with news:
                out -= 1
                news.notify_all()
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(work() for _ in range(options.concurrency)))


def in_loop(graph: Graph, options: Options, procs: int) -> None:  # noqa: ARG001  # as the others
    asyncio.run(_with_loop(graph, options, None))


def in_loop_with_executor(graph: Graph, options: Options, procs: int) -> None:
    with ProcessPoolExecutor(procs) as parsers:
        list(parsers.map(abs, range(procs)))
        asyncio.run(_with_loop(graph, options, parsers))


SHAPES: dict[str, Callable[[Graph, Options, int], None]] = {
    "threads": threads,
    "executor": executor,
    "asyncio": in_loop,
    "asyncio+": in_loop_with_executor,
}


def main() -> None:
    """Crawl in one shape and say what came of it."""
    given = argparse.ArgumentParser(prog="python -m bench.rivals")
    given.add_argument("shape", choices=SHAPES)
    given.add_argument("url")
    given.add_argument("--parse-procs", type=int, default=2)
    given.add_argument("--concurrency", type=int, default=20)
    given.add_argument("--fetcher", default="urllib3")
    given.add_argument("--parser", default="lxml")
    asked = given.parse_args()
    options = Options.make(
        on_loopback(asked.url), concurrency=asked.concurrency, fetcher=asked.fetcher, parser=asked.parser, out=None
    )
    url = resolve(asked.url, asked.url) or asked.url
    graph = Graph(host=urlsplit(url).netloc)
    graph.learn(url, identity(url))
    SHAPES[asked.shape](graph, options, asked.parse_procs)
    print(json.dumps({**graph.told(), **usage()}))


if __name__ == "__main__":
    main()
