"""A crawl as a loop: records as they come, with back-pressure, and a clean end when the loop is left.

From: users. To: api.Crawl, which runs in a thread of its own. The loop's thread only takes records out of a bounded
queue: when it is slow the crawl waits for it.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator

from crawlr.api import Crawl
from crawlr.records import PageRecord

__all__ = ["stream"]

_BUFFERED = 64


class _End:
    """The crawl is over; `error` is what it raised."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def stream(seeds: str | Iterable[str], **options: object) -> Iterator[PageRecord]:
    """The records of a crawl, each after it is committed. `options` are those of `crawlr.crawl`, without on_page and
    stop.

    At most 64 records are ahead of the loop. Leaving it (break, an exception, closing the generator) ends the crawl;
    its threads and processes have ended when the generator is closed. What the crawl raises is raised in the loop.
    """
    for taken in ("on_page", "stop"):
        if taken in options:
            raise TypeError(f"stream() has no {taken}=: the loop takes its place")
    records: queue.Queue[PageRecord | _End] = queue.Queue(_BUFFERED)  # filled by the crawl, emptied by the loop
    crawl = Crawl(seeds, on_page=records.put, **options)  # type: ignore[arg-type]  # Crawl checks

    def run() -> None:
        error: BaseException | None = None
        try:
            crawl.run().close()
        except BaseException as raised:  # noqa: BLE001  # raised again in the loop
            error = raised
        records.put(_End(error))

    thread = threading.Thread(target=run, name="crawlr-stream", daemon=True)
    thread.start()
    item: PageRecord | _End | None = None
    try:
        while not isinstance(item := records.get(), _End):
            yield item
    finally:
        crawl.stop()
        while not isinstance(item, _End):  # makes room, so that a waiting crawl comes to its end
            item = records.get()
        thread.join()
    if item.error is not None:
        raise item.error
