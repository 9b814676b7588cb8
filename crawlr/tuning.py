"""How many parser processes a crawl should have (--parse-procs auto).

From: coordinator, once a row of its timeline: the load of that period, how many bodies wait, how much memory is left.
To: coordinator, which changes the pool and logs the reason. Main thread. Pure: no clock, no system; what a Tuner
remembers is only how long to leave a number alone.

The theory. More processes help only while parsing is what everything waits for, and only up to the pace of the next
stage; how many that takes follows from the seconds a page of both. Fewer help when the processes have little to do:
each of them is told every link once more, and pages go over one by one to idle ones, 32 at once to a busy one. Growing
is urgent, a period is enough for it. Shrinking is not: it waits for calm periods, for twice as many whenever a
shrinking turns out to have been a mistake.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from crawlr.limits import Load, limiter_word, predict

__all__ = ["PARSER_BYTES", "Change", "Tuner", "first_number"]

PARSER_BYTES = 200 * 1024 * 1024
"""What a parser process is reckoned to need."""
FIRST_MOST = 8
"""More than so many are not started before it has been measured that they are needed."""
BODIES_A_PROCESS = 4
"""So many bodies waiting for each process are a backlog; fewer come and go between two looks."""
WORTH = 1.05
"""A prediction of so many times the pages a second is worth another process."""
AT_EASE = 0.6
"""A number of processes is enough when they would be busy for this share of the time."""
CALM_PERIODS = 2
MOST_CALM_PERIODS = 64
RECENT_PERIODS = 10
"""Growing so soon after shrinking shows that the shrinking was a mistake."""
SCARCE_BYTES = PARSER_BYTES // 2
"""With less memory than this left a process is given up."""
SCARCE_PERIODS = 30
"""So long no process is added after that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Another number of parser processes. Made by Tuner, carried out by the coordinator."""

    procs: int
    reason: str


def first_number(*, cores: int, memory: int) -> int:
    """The number to begin with: what the cores suggest, within the memory (bytes) that is left."""
    return max(1, min(cores, FIRST_MOST, memory // PARSER_BYTES))


class Tuner:
    """Decides for one crawl; `decide` is to be called once a period, a second or longer."""

    def __init__(self, *, cores: int) -> None:
        self._most = cores
        self._periods = 0
        self._calm = 0
        self._patience = CALM_PERIODS
        self._shrunk_at: int | None = None
        self._may_grow_at = 0

    def decide(self, load: Load, *, waiting: int, memory: int) -> Change | None:
        """What should change after a period with `load`, at whose end so many bodies wait and so many bytes are
        left."""
        self._periods += 1
        if load.procs > 1 and memory < SCARCE_BYTES:
            self._calm = 0
            self._may_grow_at = self._periods + SCARCE_PERIODS
            return Change(procs=load.procs - 1, reason=f"{memory >> 20} MiB of memory are left")
        has_backlog = waiting >= BODIES_A_PROCESS * load.procs
        if has_backlog and limiter_word(load) == "parse":
            self._calm = 0
            return self._more(load, waiting=waiting, memory=memory)
        return None if has_backlog else self._fewer(load)

    def _more(self, load: Load, *, waiting: int, memory: int) -> Change | None:
        if self._periods < self._may_grow_at:
            return None
        # a jump of more than twice would trust the seconds a page of one period too much
        room = max(0, memory - SCARCE_BYTES) // PARSER_BYTES
        most = min(self._most, 2 * load.procs, load.procs + room)
        best = predict(load, most)
        if most <= load.procs or best < WORTH:
            return None
        procs = next(n for n in range(load.procs + 1, most + 1) if predict(load, n) * WORTH >= best)
        if self._shrunk_at is not None and self._periods - self._shrunk_at <= RECENT_PERIODS:
            self._patience = min(2 * self._patience, MOST_CALM_PERIODS)
        return Change(
            procs=procs,
            reason=f"{_busy(load, load.procs)} and {waiting} bodies wait:"
            f" {predict(load, procs):.1f} times the pages are expected",
        )

    def _fewer(self, load: Load) -> Change | None:
        procs = max(1, math.ceil(load.parse_busy / (AT_EASE * load.elapsed))) if load.elapsed > 0 else load.procs
        # where too few URLs are known every page is waited for, and one behind another would be waited for longer
        if procs >= load.procs or limiter_word(load) in ("parse", "empty"):
            self._calm = 0
            return None
        self._calm += 1
        if self._calm < self._patience:
            return None
        self._calm = 0
        self._shrunk_at = self._periods
        return Change(
            procs=procs, reason=f"{_busy(load, load.procs)}: {_number(procs)} would be {_percent(load, procs)} busy"
        )


def _busy(load: Load, procs: int) -> str:
    return f"{_number(procs)} {_percent(load, procs)} busy"


def _number(procs: int) -> str:
    return f"{procs} process" if procs == 1 else f"{procs} processes"


def _percent(load: Load, procs: int) -> str:
    return f"{100 * min(1.0, load.parse_busy / (procs * load.elapsed)):.0f}%"
