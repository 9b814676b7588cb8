"""What a parse process remembers from page to page, bounded: tables that begin anew when they are full.

From: plain and urls, which fill them. To: the same, on later pages. Runs in parse processes, and what resolves the
addresses of a header in the main one.
"""

from __future__ import annotations

from typing import TypeVar

__all__ = ["Remembered"]

Key = TypeVar("Key")
Value = TypeVar("Value")


class Remembered(dict[Key, Value]):
    """A table whose entries together have at most `most` of a size that `keep` is told, in characters or otherwise."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0

    def keep(self, key: Key, value: Value, size: int) -> None:
        """Remember it, and nothing else where it does not fit in."""
        if self._size + size > self._most:
            self.clear()
        self[key] = value
        self._size += size

    def clear(self) -> None:
        super().clear()
        self._size = 0
