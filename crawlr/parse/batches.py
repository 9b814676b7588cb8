"""How many waiting bodies go to a parse process in one call.

From: pool (the queue of waiting bodies, whose turn it is). To: pool. Pure; main thread. A call costs the main process
0.2 ms however many pages it carries, so a backlog is packed; nothing ever waits for a batch to fill. The bounds keep a
batch at some 30 ms of parsing: what is lost and done again when a process dies, and what one process may have to do at
the end of a crawl while others have nothing.
"""

from __future__ import annotations

import collections

from crawlr.records import RawBody

__all__ = ["BATCH_BYTES", "BATCH_PAGES", "take"]

BATCH_BYTES = 512 * 1024
BATCH_PAGES = 32
_CODED = 5
"""A compressed body counts as so many times its size: that is what HTML comes to by gzip."""


def take(waiting: collections.deque[RawBody], *, share: int) -> tuple[RawBody, ...]:
    """Remove from the head of `waiting` what goes in one call: at most `share` pages, at least one if there is one."""
    taken: list[RawBody] = []
    room = BATCH_BYTES
    while waiting and len(taken) < min(share, BATCH_PAGES):
        weight = len(waiting[0].body) * (_CODED if waiting[0].content_encoding else 1)
        if taken and weight > room:
            break
        room -= weight
        taken.append(waiting.popleft())
    return tuple(taken)
