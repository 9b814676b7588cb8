"""What is kept open between requests, of all origins together, and bounded together.

From: connections.py (connections) and curl.py (handles), after an answer. To: the same, for the next request to the
same origin. Used by all fetch threads.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

__all__ = ["Idle"]


class _Kept(Protocol):
    def is_dropped(self) -> bool:
        """True when it is of no more use."""

    def close(self) -> None: ...


Origin = TypeVar("Origin", bound=Hashable)
Kept = TypeVar("Kept", bound=_Kept)


class Idle(Generic[Origin, Kept]):
    """Things that are kept by origin; when there are too many the one that waits longest is closed."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._by_origin: dict[Origin, list[Kept]] = {}  # newest last
        self._order: OrderedDict[Kept, Origin] = OrderedDict()  # the same, oldest first
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._order)

    def take(self, origin: Origin) -> Kept | None:
        """What was kept last for that origin and is of use still; None when there is nothing."""
        while True:
            with self._lock:
                kept = self._by_origin.get(origin)
                if not kept:
                    return None
                newest = kept[-1]
                self._remove(newest)
            if not newest.is_dropped():
                return newest
            newest.close()

    def take_oldest(self) -> Kept | None:
        """What waits longest, whatever its origin, when there is no room for more; None while there is."""
        with self._lock:
            if len(self._order) < self.limit:
                return None
            oldest = next(iter(self._order))
            self._remove(oldest)
            return oldest

    def keep(self, origin: Origin, thing: Kept) -> None:
        """Keep it for the next request to that origin."""
        surplus = None
        with self._lock:
            if self._is_closed:
                surplus = thing
            else:
                self._by_origin.setdefault(origin, []).append(thing)
                self._order[thing] = origin
                if len(self._order) > self.limit:
                    surplus = next(iter(self._order))
                    self._remove(surplus)
        if surplus is not None:
            surplus.close()

    def clear(self, *, is_last: bool = False) -> None:
        """Close all; `is_last`: and whatever is brought back later."""
        with self._lock:
            self._is_closed = self._is_closed or is_last
            things = list(self._order)
            self._order.clear()
            self._by_origin.clear()
        for thing in things:
            thing.close()

    def _remove(self, thing: Kept) -> None:
        """Forget it. Holds the lock."""
        origin = self._order.pop(thing)
        kept = self._by_origin[origin]
        kept.remove(thing)
        if not kept:
            del self._by_origin[origin]
