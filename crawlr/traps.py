"""Traps that only a look at bodies and counts can tell: mirrors of one body, and endless chains such as calendars.

From: the coordinator (each parsed page). To: the ledger (a trapped page's links are edges, but do not queue anything).
Pure, main thread. The rules about a URL alone (length, segments) are in crawlr.scope.

Both rules stop queuing only; they never take a page away. Both are slow to speak, because a page that is missed is
worse than one too many: real sites have long paginations and many equal pages, but a long pagination leads to things
that are not pages of itself, and equal pages lead to the same links.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from crawlr.known import FAR, KnownUrls

__all__ = ["MAX_CHAIN", "MAX_MIRRORS", "Traps", "shape"]

MAX_MIRRORS = 8
"""Pages of one origin with the very same body that may make new URLs known."""
MAX_CHAIN = 100
"""Pages in a row that lead to nothing new but the next ones of their own shape."""
_COUNTER = re.compile(r"(?=[0-9a-fA-F])(?:[0-9a-fA-F]{8,}|[0-9]+)")
_VALUE = re.compile(r"=[^&]*")


def shape(url: str) -> int:
    """A 32-bit number that URLs share which differ only in numbers, long hexadecimal tokens and values of the query."""
    path, mark, query = url.partition("?")
    text = f"{path}?{_VALUE.sub('=', query)}" if mark else path
    return hash(_COUNTER.sub("#", text)) & 0xFFFFFFFF


class Traps:
    """What the rules remember: bodies that made URLs known, and the pages of which chains are made."""

    def __init__(self, known: KnownUrls) -> None:
        self._known = known
        self._mirrors: dict[tuple[int, int], int] = {}
        self._links: set[int] = set()  # pages that lead to nothing new but their own shape

    def judge(self, number: int, targets: Iterable[int], body_hash: int) -> str | None:
        """What kind of trap the page `number` belongs to ("mirror", "chain"), None for none.

        To be asked before its links are merged, so that what is new by them can be seen.
        """
        known = self._known
        fresh = [target for target in targets if known.depth[target] == FAR and known.origin[target] >= 0]
        if not fresh:
            return None
        key = (known.origin[number], body_hash)
        count = self._mirrors[key] = self._mirrors.get(key, 0) + 1
        if count > MAX_MIRRORS:
            return "mirror"
        own = known.shape[number]
        if any(known.shape[target] != own for target in fresh):
            return None
        self._links.add(number)
        return "chain" if self.is_at_the_end(number) else None

    def is_at_the_end(self, number: int) -> bool:
        """Whether the shortest way to a page that leads to its own shape alone comes along a whole chain of such.

        In any order but breadth-first the way that is known first is often longer than the shortest, so it is asked
        again when the depth of a trapped page falls.
        """
        known = self._known
        own = known.shape[number]
        for _ in range(MAX_CHAIN - 1):
            number = known.parent[number]
            if number not in self._links or known.shape[number] != own:
                return False
        return True
