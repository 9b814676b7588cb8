"""Whether time grows with the size of the input as it should: linear and quadratic are told apart, and nothing else."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

FACTOR = 16  # linear is 16 times as long (31 seen, where tables outgrow the caches), quadratic 256 times
BOUND = 64
ROUNDS = 3
SHORT = 0.02
"""Seconds of CPU in which the large input is beyond suspicion; what is far shorter than this says nothing."""


def assert_linear(prepare: Callable[[int], Callable[[], object]], count: int, *, within: float = math.inf) -> None:
    """Assert that prepare(count)() takes far less than the square of the growth from a sixteenth of count, and less
    than `within` seconds of CPU.

    A machine that is slow for a moment makes a round wrong; code that is quadratic fails in each of them.
    """
    prepare(count // FACTOR)()  # what is done once would make the first small input look like a large one
    seen = []
    for _ in range(ROUNDS):
        small, large = (_seconds(prepare(size)) for size in (count // FACTOR, count))
        if large < within and (large < SHORT or large < BOUND * small):
            return
        seen.append((small, large))
    raise AssertionError(f"{FACTOR} times the input, within {within} s, took of seconds of CPU: {seen}")


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
