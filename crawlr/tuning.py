"""How many parser processes a crawl should have (--parse-procs auto).

From: monitor, some times a second: the load since the last time, how many bodies wait, how much memory is left. To:
monitor, which changes the pool and logs the reason. Main thread. Pure: no clock, no system; what a Tuner remembers is
only how long to leave a number alone.

The theory. More processes help only while parsing is what everything waits for, and only up to the pace of the next
stage; how many that takes follows from the seconds a page of both. Fewer help when the processes have little to do:
each is told every link once more, pages go over one by one to idle ones and 32 at once to a busy one, and each wants a
core that the main process could have. Growing is urgent: one look is enough for it, and where more work waits than can
be done until another process is up, nothing needs to be reckoned. Shrinking is not: it waits until it has been calm for
a while, and twice as long whenever a shrinking turns out to have been a mistake.

Seconds of CPU are what counts: where cores are short a process is busy with waiting for one, and others would be too.
Then the main process lacks cores as well, and how many seconds of them it needs sets the pace that can be reached.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from msgspec import Struct

from crawlr.limits import Load, limiter_word
from crawlr.stats import Wait

__all__ = ["PARSER_BYTES", "Change", "Tuner", "first_number"]

PARSER_BYTES = 200 * 1024 * 1024
"""What a parser process is reckoned to need."""
FIRST_MOST = 8
"""More than so many are not started before it has been measured that they are needed."""
BODIES_A_PROCESS = 4
"""So many bodies waiting for each process are a backlog; fewer come and go between two looks."""
BACKLOG_SECONDS = 0.05
"""So much work waiting for each process is more than it does until another one is up. Bodies of half a millisecond do
not come to that: no more of them are fetched ahead."""
OWN_CORE = 0.85
"""A process that is on a core for this share of its time does not wait for one."""
WORTH = 1.1
"""So many times the pages a second must be expected of more processes."""
ENOUGH = 0.95
"""As many of those pages a second as this are as good as all of them."""
AT_EASE = 0.6
"""A number of processes is enough when their work would be this share of their cores' time."""
CALM_SECONDS = 1.0
MOST_CALM_SECONDS = 64.0
RECENT_SECONDS = 5.0
"""Growing so soon after shrinking shows that the shrinking was a mistake."""
SCARCE_BYTES = PARSER_BYTES // 2
"""With less memory than this left a process is given up."""
SETTLING_SECONDS = 1.0
"""Until the next one is: the memory of the first must have come back."""
SCARCE_SECONDS = 30.0
"""So long no process is added after that."""


class Change(Struct, frozen=True, kw_only=True):
    """Another number of parser processes. Made by Tuner, carried out by the monitor."""

    procs: int
    reason: str


def first_number(*, cores: int, memory: Callable[[], int]) -> int:
    """The number to begin with: a core for the main process, the others for parsers, within the bytes of `memory` that
    are left, which is asked for more than one only.

    One too few is soon made good: a further process comes up in 10 ms. One too many costs a crawl of small pages a
    sixth of its pages a second (bench.stages, 2 cores).
    """
    wanted = min(cores - 1, FIRST_MOST)
    return max(1, min(wanted, memory() // PARSER_BYTES)) if wanted > 1 else 1


class Tuner:
    """Decides for one crawl; `decide` is to be called over and over, with what came since the call before."""

    def __init__(self, *, cores: int) -> None:
        self._most = cores
        self._now = 0.0  # seconds of all periods so far
        self._calm = 0.0  # of the last ones, in which fewer processes would have been enough
        self._patience = CALM_SECONDS
        self._shrunk_at = -math.inf
        self._scarce_at = -math.inf

    def decide(self, load: Load, *, waiting: int, backlog: float, memory: int) -> Change | None:
        """What should change after a period with `load`, at whose end so many bodies wait, which are so many seconds of
        work, and so many bytes of memory are left."""
        self._now += load.elapsed
        if load.procs > 1 and memory < SCARCE_BYTES:
            return self._save_memory(load.procs, memory)
        # where too few URLs are known every page is waited for, and one behind another would be waited for longer
        word, has_backlog = limiter_word(load), waiting >= BODIES_A_PROCESS * load.procs
        # where the main process has no time to spare it may be what keeps parsers from the cores
        is_behind = backlog > BACKLOG_SECONDS * load.procs and load.main_cpu < OWN_CORE * load.elapsed
        if not (is_behind or has_backlog or word in ("parse", "empty")):
            return self._fewer(load)
        self._calm = 0.0
        if is_behind or (has_backlog and word == "parse"):
            return self._more(load, waiting=waiting, backlog=backlog, is_behind=is_behind, memory=memory)
        return None

    def _save_memory(self, procs: int, memory: int) -> Change | None:
        if self._now - self._scarce_at < SETTLING_SECONDS:
            return None
        self._calm, self._scarce_at = 0.0, self._now
        return Change(procs=procs - 1, reason=f"{memory >> 20} MiB of memory are left")

    def _more(self, load: Load, *, waiting: int, backlog: float, is_behind: bool, memory: int) -> Change | None:
        if self._now - self._scarce_at < SCARCE_SECONDS:
            return None
        # more than twice as many would be to trust the seconds a page of a short time too far
        room = max(0, memory - SCARCE_BYTES) // PARSER_BYTES
        most = min(self._most, 2 * load.procs, load.procs + room)
        best = _gain(load, most)
        if most <= load.procs or (best < WORTH and not is_behind):
            return None
        procs = next(n for n in range(load.procs + 1, most + 1) if _gain(load, n) >= ENOUGH * best)
        if self._now - self._shrunk_at <= RECENT_SECONDS:
            self._patience = min(2 * self._patience, MOST_CALM_SECONDS)
        if best < WORTH:
            return Change(
                procs=procs, reason=f"{waiting} bodies wait, {backlog:.2f} s of work for {_number(load.procs)}"
            )
        expected = f"{_gain(load, procs):.1f} times the pages are expected"
        return Change(procs=procs, reason=f"{_busy(load)} and {waiting} bodies wait: {expected}")

    def _fewer(self, load: Load) -> Change | None:
        procs = max(1, math.ceil(load.parse_cpu / (AT_EASE * load.elapsed))) if load.elapsed > 0 else load.procs
        if procs >= load.procs:
            self._calm = 0.0
            return None
        self._calm += load.elapsed
        if self._calm < self._patience:
            return None
        self._calm, self._shrunk_at = 0.0, self._now
        share = load.parse_cpu / (procs * load.elapsed)
        return Change(procs=procs, reason=f"{_busy(load)}: {_number(procs)} would be {_percent(share)} busy")


def _gain(load: Load, procs: int) -> float:
    """How many times the pages a second so many processes would give, each with a core."""
    work, others = load.parse_cpu, _without_parsing(load)
    if work <= 0:
        return 1.0  # nothing measured yet
    if work < OWN_CORE * load.parse_slots:
        others = max(others, load.main_cpu)
    return max(work / load.procs, others) / max(work / procs, others)


def _without_parsing(load: Load) -> float:
    """The seconds that this period would have taken if parsing took no time: those of the slowest other stage."""
    return max(1e-9, load.stages.fetch_busy / load.concurrency, load.awake, load.stages.waits[Wait.HOST])


def _busy(load: Load) -> str:
    return f"{_number(load.procs)} {_percent(load.parse_share)} busy"


def _number(procs: int) -> str:
    return f"{procs} process" if procs == 1 else f"{procs} processes"


def _percent(share: float) -> str:
    return f"{100 * min(1.0, max(0.0, share)):.0f}%"
