"""The gates of --fail-on: their names, what each looks for, and what came of asking one.

From: options (the words of --fail-on). To: crawlr.gates, which asks them; junit and the screen, which tell what came of
it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from crawlr import option_values

__all__ = ["ACCEPTED", "ACCEPTED_BY_DIFF", "Gate", "Name", "Result", "Violation", "is_of_a_diff", "read_gates"]


class Name(StrEnum):
    """What may make a crawl or a diff fail."""

    BROKEN = "broken"
    """Links and redirects that lead to an error, to no answer, or to a redirect that leads nowhere."""
    ERRORS = "errors"
    """Pages that the summary counts as errors: status 400 or more, or none."""
    DAMAGED = "damaged"
    """Pages that answered well with a body that was cut, could not be decoded or not be parsed."""
    REDIRECT_LOOP = "redirect-loop"
    ROBOTS = "robots"
    """URLs that robots.txt, or the want of it, kept from being requested."""
    INCOMPLETE = "incomplete"
    """A bound or an interruption ended the crawl."""
    SLOW = "slow"
    LARGE = "large"
    DEEP = "deep"
    NEW = "new"
    GONE = "gone"
    STATUS = "status"
    TITLE = "title"
    CANONICAL = "canonical"
    REDIRECT = "redirect"
    DEPTH = "depth"


_LIMITS = {
    Name.SLOW: ("a duration, such as slow=2s", option_values.duration(longest=86_400.0)),
    Name.LARGE: ("a size, such as large=1MiB", option_values.size),
    Name.DEEP: ("a number of links, such as deep=4", option_values.whole(0)),
}
_OF_A_DIFF = (Name.NEW, Name.GONE, Name.STATUS, Name.TITLE, Name.CANONICAL, Name.REDIRECT, Name.DEPTH)
_FORMS = {Name.SLOW: "slow=2s", Name.LARGE: "large=1MiB", Name.DEEP: "deep=4"}
ACCEPTED = "some of " + ",".join(_FORMS.get(name, name) for name in Name if name not in _OF_A_DIFF)
ACCEPTED_BY_DIFF = "some of " + ",".join(_FORMS.get(name, name) for name in Name)


class Gate(Struct, frozen=True, kw_only=True):
    """One thing to look for. `limit`: seconds, bytes or links; None where the name says all."""

    name: Name
    limit: float | None = None
    text: str
    """As it was given, such as "slow=2s"."""


class Violation(Struct, frozen=True, kw_only=True):
    """One URL that a gate stops at. Made by crawlr.gates, read by junit and the screen."""

    url: str
    """Empty when it is about the crawl as a whole."""
    says: str
    """What is wrong, without the URL."""


class Result(Struct, frozen=True, kw_only=True):
    """What came of asking one gate. Made by crawlr.gates."""

    gate: Gate
    total: int
    """0: it let everything pass."""
    violations: tuple[Violation, ...]
    """The first of them, at most crawlr.gates.MOST_KEPT."""


def is_of_a_diff(name: Name) -> bool:
    """Whether only a diff has this gate."""
    return name in _OF_A_DIFF


def read_gates(given: object, *, is_diff: bool = False) -> tuple[Gate, ...]:
    """The gates of `broken,slow=2s` or of several such texts, each once. ValueError for a word that is none."""
    words = [given] if isinstance(given, str) else given
    if not isinstance(words, Iterable):
        raise ValueError
    found: dict[str, Gate] = {}
    for text in words:
        if not isinstance(text, str):
            raise ValueError
        for word in text.split(","):
            gate = _read(word.strip(), is_diff=is_diff)
            found[gate.text] = gate
    return tuple(found.values())


def _read(word: str, *, is_diff: bool) -> Gate:
    name, mark, limit = word.partition("=")
    try:
        kind = Name(name)
    except ValueError:
        raise ValueError(f"{word!r} is no gate") from None
    if kind in _OF_A_DIFF and not is_diff:
        raise ValueError(f"{word!r} is a gate of crawlr diff")
    if kind not in _LIMITS:
        if mark:
            raise ValueError(f"{name} takes no value")
        return Gate(name=kind, text=word)
    wanted, read = _LIMITS[kind]
    try:
        value = read(limit)
    except ValueError:
        raise ValueError(f"{word!r} needs {wanted}") from None
    assert isinstance(value, (int, float))
    return Gate(name=kind, limit=value, text=word)
