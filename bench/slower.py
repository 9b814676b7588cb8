"""Parsing that takes longer and needs no core for it: a machine with more cores than this one has, simulated.

    python -m bench.stages --weight 100000 --parse-procs 1,2,4 --crawlr "--extract bench.slower:read"

To be given to a crawl of the sweep, whose parser processes call it.
"""

from __future__ import annotations

import time

from crawlr import ParsedDocument

__all__ = ["SECONDS", "read"]

SECONDS = 0.005
"""What each page takes more."""


def read(_: ParsedDocument) -> None:
    """Nothing, later."""
    time.sleep(SECONDS)
