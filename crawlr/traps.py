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
_COUNTER = re.compile(r"[0-9a-f]{8,}|[0-9]+|(?<==)[^&]*", re.IGNORECASE)


def shape(url: str) -> int:
    """A 32-bit number that URLs share which differ only in numbers, long hexadecimal tokens and values of the query."""
    return hash(_COUNTER.sub("#", url)) & 0xFFFFFFFF


class Traps:
    """What the rules remember: bodies that made URLs known, and the length of the chain that a page stands in."""

    def __init__(self, known: KnownUrls) -> None:
        self._known = known
        self._mirrors: dict[tuple[int, int], int] = {}
        self._chains: dict[int, int] = {}

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
        parent = known.parent[number]
        chain = self._chains.get(parent, 0) + 1 if parent >= 0 and known.shape[parent] == own else 1
        self._chains[number] = chain
        return "chain" if chain >= MAX_CHAIN else None
