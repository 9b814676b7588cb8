"""Places where a test may have this process die, as a kill -9 at that very moment would.

From: the environment variable CRAWLR_FAILPOINT=name:n, read once at import. To: SIGKILL for this process at the n-th
call of `hit(name)`. Any thread of the main process; nothing at all happens while the variable is unset.
"""

from __future__ import annotations

import itertools
import os
import signal

__all__ = ["NAMES", "VARIABLE", "hit"]

VARIABLE = "CRAWLR_FAILPOINT"
NAMES = frozenset(
    {
        "after_answer",  # an answer has come, its body is not yet handed to parsing
        "before_commit",  # parse results are there, their transaction has not begun
        "inside_commit",  # rows are written, the transaction is open
        "during_export",  # sitemap.json is written under its temporary name, not yet renamed
        "during_resume",  # the transaction that opens a resumed run is open
        "during_schema",  # the first tables are being made
    }
)


def _armed(spec: str) -> tuple[str, int]:
    """The place and the call at which to die. ValueError for an unknown place, so that no test passes unharmed."""
    name, _, number = spec.partition(":")
    if name not in NAMES or not number.isascii() or not number.isdigit() or int(number) < 1:
        raise ValueError(
            f"{VARIABLE}={spec!r}: expected NAME:N with N from 1 and NAME one of {', '.join(sorted(NAMES))}"
        )
    return name, int(number)


_place, _deadly_call = _armed(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else ("", 0)
_calls = itertools.count(1)  # next() on it is atomic: hit() may be called in fetch threads


def hit(name: str) -> None:
    """Die here, if the environment says so. Unset, the cost is one comparison."""
    if name == _place and next(_calls) == _deadly_call:
        os.kill(os.getpid(), signal.SIGKILL)
