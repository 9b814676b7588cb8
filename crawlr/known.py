"""What is known of every URL: the seen-set and, per URL, its state, depth, parent, root and flags, in flat arrays.

From: the coordinator, which is the only writer. To: frontier (what waits), journal (what is kept). Pure, main thread.
Text is not kept here: it lives in the journal. A URL costs about 160 bytes here (`python -m bench.frontier`).
"""

from __future__ import annotations

from array import array
from enum import IntEnum

__all__ = ["FAR", "Flag", "KnownUrls", "State"]

FAR = 1 << 30
"""The depth of a URL that no way leads to yet."""


class State(IntEnum):
    """Where a known URL stands. Every URL has exactly one.

    OUTSIDE → HELD when its host joins the scope; HELD → WAITING when it may be queued; WAITING → IN_FLIGHT when it
    is taken; IN_FLIGHT → WAITING on a retry; IN_FLIGHT → DONE or SKIPPED; WAITING → DONE or SKIPPED when its origin
    decides for it.
    """

    OUTSIDE = 0
    """Out of scope: known so that links to it are counted once."""
    HELD = 1
    """In scope, but a rule or the depth limit keeps it out of the queue (a shorter way or a followable link may let
    it in).
    """
    WAITING = 2
    IN_FLIGHT = 3
    """From the moment it is taken until its links are known, so that the crawl can't end too early."""
    DONE = 4
    SKIPPED = 5


class Flag:
    """Bits of `KnownUrls.flags`, kept in the journal with the URL."""

    IN_SCOPE = 1
    FOLLOWED = 2
    """A link that may be followed (or a seed, redirect or sitemap) leads here."""
    SEED = 4
    TOO_LONG = 8
    TRAP = 16
    TRAPPED = 32
    """A page that a trap rule stopped leads here; matters only while FOLLOWED is not set."""
    IN_SITEMAP = 64
    """A sitemap of the site names it."""


class KnownUrls:
    """The seen-set with the arrays beside it; a URL's id is its index, given out in the order in which URLs become
    known.

    The seen-set maps the 64-bit hash of an identity to its id and does not compare text. Python's string hash is
    SipHash with a key that is drawn anew in every process, so collisions can't be made on purpose, and by accident
    one among a million URLs has the chance 3e-8 (n²/2⁶⁵), among a hundred million 3e-4: less than the chance that a
    page changes its address while we look at it. The table is built anew from the journal's text at a resume.
    """

    def __init__(self) -> None:
        self._ids: dict[int, int] = {}
        self.depth = array("i")
        self.parent = array("i")  # -1: none
        self.root = array("i")  # the seed's id
        self.shape = array("I")  # traps.shape of its address
        self.origin = array("i")  # the frontier's number of its origin, -1 while out of scope
        self.state = bytearray()
        self.flags = bytearray()
        self.hops: dict[int, int] = {}
        """Redirects since the last link, seed or sitemap, for the few URLs where that is not 0."""

    def __len__(self) -> int:
        return len(self.state)

    def find(self, key: str) -> int | None:
        """The id of the identity `key`, None when it is not known."""
        return self._ids.get(hash(key))

    def add(self, key: str, *, flags: int, origin: int, shape: int = 0) -> int:
        """The id given to an identity that is not known yet; it starts out HELD or OUTSIDE, with no way leading to
        it.
        """
        number = len(self.state)
        self._ids[hash(key)] = number
        self.depth.append(FAR)
        self.parent.append(-1)
        self.root.append(number)
        self.shape.append(shape)
        self.origin.append(origin)
        self.state.append(State.HELD if flags & Flag.IN_SCOPE else State.OUTSIDE)
        self.flags.append(flags)
        return number
