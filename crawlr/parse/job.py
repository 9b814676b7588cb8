"""The functions of a parse process, as the main process names them: worker, which does the work, is loaded where it is
done, and the main process starts without a parser.

From: pool (which sends them along), child (batches). To: worker. Run in a parse process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from crawlr.parse import child
from crawlr.parse.settings import Row, WorkerSettings

if TYPE_CHECKING:
    from crawlr.parse.worker import Worker

__all__ = ["initialise", "parse_batch"]

_worker: Worker | None = None


def initialise(settings: WorkerSettings) -> None:
    """Make this process a worker: the initializer of parse processes."""
    from crawlr.parse.worker import Worker

    global _worker
    _worker = Worker(settings)


def parse_batch(batch: child.Batch) -> child.Answer:
    """Worker.parse_batch of this process."""
    assert _worker is not None, "initialise comes first"
    return _worker.parse_batch(cast("Sequence[Row]", batch))  # as ParseProcess.send makes them
