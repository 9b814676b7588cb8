"""In which order the URLs of one origin have their turn: by depth, either way, or by a function of the caller's.

From: frontier (ids that begin to wait, or whose depth fell). To: frontier (the id whose turn is next). Main thread,
pure but for the caller's function.

Every order is a queue by rank, lowest first, and in order of arrival where ranks are equal: breadth-first ranks a URL
by its depth, depth-first by its depth below zero, a function by the number it gives. An id may stand in a queue more
than once after its depth fell; only its last place counts, and the others are passed over.

Invariants (asserted in tests/test_frontier.py for any sequence of calls, in every order):
- `len` is the number of ids that were put and not yet popped or drained, each counted once;
- `pop` gives an id of the lowest rank among them, by what is known of it at that moment.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Any, Protocol

from crawlr.errors import CallbackError
from crawlr.known import Flag, KnownUrls, State
from crawlr.records import KnownUrl

__all__ = ["BREADTH_FIRST", "DEPTH_FIRST", "Levels", "Priority", "Queue", "Ranked", "queue_maker"]

BREADTH_FIRST = "breadth-first"
DEPTH_FIRST = "depth-first"

Priority = Callable[[KnownUrl], float]
"""The caller's function: the lower the number, the earlier."""


class Queue(Protocol):
    """The waiting URLs of one origin. Filled by put and move, emptied by pop and drain."""

    heap: list[Any]
    """Empty: nothing waits. It may hold places that count no more, so it may be filled while nothing waits."""

    def put(self, number: int) -> None:
        """A URL begins to wait."""

    def move(self, number: int) -> None:
        """The depth of a URL that waits here has changed."""

    def rank(self) -> float | None:
        """The rank of the URL whose turn is next, None when none waits."""

    def pop(self) -> int:
        """That URL, which waits no longer. To be called right after a `rank` that was not None."""

    def drain(self) -> list[int]:
        """Every URL that waits here, in the order of its turn; none waits any more."""

    def upcoming(self, most: int) -> list[int]:
        """URLs that are likely to have their turn soon, at most so many."""

    def __len__(self) -> int: ...


class Levels:
    """A queue a depth, lowest first (`sign` 1) or deepest first (-1).

    Deepest first is depth-first search: when a page has been taken from the deepest level, that level holds only its
    sisters, and what it leads to makes a deeper one, where the first link stands first. `waiting_again` are ids that
    stand in no queue although they wait (retries).
    """

    def __init__(self, known: KnownUrls, waiting_again: set[int], *, sign: int = 1) -> None:
        self._state, self._depth = known.state, known.depth
        self._again = waiting_again
        self._sign = sign
        self._levels: dict[int, deque[int]] = {}
        self._outdated = 0  # places that do not count
        self.heap: list[int] = []  # the keys of _levels: a chain has as many as it is deep, so no search for the lowest

    def put(self, number: int) -> None:
        rank = self._sign * self._depth[number]
        level = self._levels.get(rank)
        if level is None:
            level = self._levels[rank] = deque()
            heapq.heappush(self.heap, rank)
        level.append(number)

    def move(self, number: int) -> None:
        self._outdated += 1
        self.put(number)

    def rank(self) -> int | None:
        heap, levels = self.heap, self._levels
        while heap:
            rank = heap[0]
            level = levels[rank]
            while level:
                if self._counts(level[0], rank):
                    return rank
                level.popleft()
                self._outdated -= 1
            del levels[rank]
            heapq.heappop(heap)
        return None

    def pop(self) -> int:
        level = self._levels[self.heap[0]]
        number = level.popleft()
        if not level:
            del self._levels[heapq.heappop(self.heap)]
        return number

    def drain(self) -> list[int]:
        found = dict.fromkeys(
            number for rank in sorted(self.heap) for number in self._levels[rank] if self._counts(number, rank)
        )
        self.heap.clear()
        self._levels.clear()
        self._outdated = 0
        return list(found)

    def upcoming(self, most: int) -> list[int]:
        return list(islice(self._levels[self.heap[0]], most)) if self.heap else []

    def __len__(self) -> int:
        return sum(map(len, self._levels.values())) - self._outdated

    def _counts(self, number: int, rank: int) -> bool:
        return (
            self._state[number] == State.WAITING
            and self._sign * self._depth[number] == rank
            and number not in self._again
        )


class Ranked:
    """A queue by the numbers that `rank_of` gives an id: when it begins to wait, and again when its depth falls."""

    def __init__(self, rank_of: Callable[[int], float]) -> None:
        self._rank_of = rank_of
        self._arrivals = 0
        self._places: dict[int, int] = {}  # id -> the arrival that counts
        self.heap: list[tuple[float, int, int]] = []  # (rank, arrival, id)

    def put(self, number: int) -> None:
        self._arrivals += 1
        self._places[number] = self._arrivals
        heapq.heappush(self.heap, (self._rank_of(number), self._arrivals, number))

    def move(self, number: int) -> None:
        self.put(number)

    def rank(self) -> float | None:
        heap, places = self.heap, self._places
        while heap:
            rank, arrival, number = heap[0]
            if places.get(number) == arrival:
                return rank
            heapq.heappop(heap)
        return None

    def pop(self) -> int:
        number = heapq.heappop(self.heap)[2]
        del self._places[number]
        return number

    def drain(self) -> list[int]:
        found = [number for _, arrival, number in sorted(self.heap) if self._places.get(number) == arrival]
        self.heap.clear()
        self._places.clear()
        return found

    def upcoming(self, most: int) -> list[int]:
        places = self._places
        return [number for _, arrival, number in islice(self.heap, most) if places.get(number) == arrival]

    def __len__(self) -> int:
        return len(self._places)


def queue_maker(
    order: str | Priority, known: KnownUrls, url_of: Callable[[int], str]
) -> Callable[[set[int]], Queue] | None:
    """What makes the queue of an origin in that order, out of the ids that wait for a retry; None: breadth-first.

    `url_of` gives the address of an id; only a function needs it.
    """
    if isinstance(order, str):
        return None if order == BREADTH_FIRST else lambda again: Levels(known, again, sign=-1)

    def rank_of(number: int) -> float:
        flags = known.flags[number]
        return _checked(
            order,
            KnownUrl(
                url=url_of(number),
                depth=known.depth[number],
                is_seed=bool(flags & Flag.SEED),
                in_sitemap=bool(flags & Flag.IN_SITEMAP),
            ),
        )

    return lambda _: Ranked(rank_of)


def _checked(order: Priority, url: KnownUrl) -> float:
    try:
        rank = order(url)
    except Exception as error:
        raise CallbackError(f"order={order!r} failed for {url.url}: {error!r}") from error
    if not isinstance(rank, int | float) or rank != rank:
        raise CallbackError(f"order={order!r} gave {rank!r} for {url.url}; accepted: a number, the lower the earlier")
    return rank
