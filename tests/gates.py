"""A door in front of a call, so that a test decides when the call goes on; every wait has a limit, none is a sleep."""

from __future__ import annotations

import threading

LIMIT = 15.0
"""Seconds after which a wait gives up: long for a busy machine, short for a person."""


class Gate:
    """A closed door that callers (a server's answer, a fake's fetch) stop at until a test opens it.

    A caller that waits longer than `limit` goes on and is counted in `overdue`, which the fixture turns into a failure.
    """

    def __init__(self, *, limit: float = LIMIT) -> None:
        self.limit = limit
        self.arrivals = 0
        self.overdue = 0
        self._open = False
        self._tickets = 0
        self._changed = threading.Condition()

    def enter(self) -> None:
        """Stop here until the door opens or a ticket is left. Called by what is to be held up."""
        with self._changed:
            self.arrivals += 1
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: self._open or self._tickets > 0, self.limit):
                self.overdue += 1
            elif not self._open:
                self._tickets -= 1

    def wait_for_arrivals(self, count: int = 1) -> None:
        """Return once `count` callers have come, since the beginning; fails after the limit."""
        with self._changed:
            has_come = self._changed.wait_for(lambda: self.arrivals >= count, self.limit)
            assert has_come, f"{self.arrivals} of {count} callers came to the gate within {self.limit} s"

    def let_one_in(self) -> None:
        """Let one caller pass, one that waits or the next to come."""
        with self._changed:
            self._tickets += 1
            self._changed.notify_all()

    def open(self) -> None:
        """Let everyone pass from now on."""
        with self._changed:
            self._open = True
            self._changed.notify_all()
