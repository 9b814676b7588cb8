"""What an option is: how it is typed, explained, read and completed.

From: option_table, which has all of them. To: whoever reads that table. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from crawlr.option_values import Reader

__all__ = ["Group", "Kind", "Row", "rows"]


class Kind(NamedTuple):
    """A kind of value."""

    accepted: str
    """What is accepted, in a few words, for error messages."""
    read: Reader
    words: tuple[str, ...] = ()
    """What a shell offers: some or all of the words that are accepted."""
    is_path: bool = False
    """A shell offers names of files."""
    is_list: bool = False
    """Several words with commas between them are one value."""
    is_table: bool = False
    """In a file it may be a table, too: it gives things by their names."""


class Row(NamedTuple):
    """One option."""

    flags: tuple[str, ...]
    """As typed, the short one first."""
    metavar: str | None
    """The placeholder of its value; None: a switch."""
    help: str
    """In at most 48 characters, so that it fits a line, with the default in brackets."""
    kind: Kind
    is_repeatable: bool = False
    is_secret: bool = False
    """Its value is not shown in errors about files and variables."""
    needs_trust: bool = False
    """A crawlr.toml that was merely found may not set it: it runs code, or lets others read what is sent."""
    stands_for: tuple[str, object] | None = None
    """A switch that is another spelling: the option of Options that it sets, and the value."""

    @property
    def flag(self) -> str:
        """The long spelling, such as --max-pages."""
        return self.flags[-1]

    @property
    def key(self) -> str:
        """The long spelling without dashes before it: the key in a file."""
        return self.flag.removeprefix("--")

    @property
    def name(self) -> str:
        """The same in snake_case: the name in Python."""
        return self.key.replace("-", "_")

    @property
    def sets(self) -> str:
        """The name of what it sets."""
        return self.stands_for[0] if self.stands_for else self.name

    @property
    def is_switch(self) -> bool:
        """It has no value on the command line."""
        return self.metavar is None


class Group(NamedTuple):
    """Options that people look for in one place."""

    title: str
    rows: tuple[Row, ...]


def rows(*groups: Group) -> Iterator[Row]:
    """The rows of these groups, in order."""
    return (row for group in groups for row in group.rows)
