"""Turns SIGINT and SIGTERM into one message for the coordinator; a second signal ends the program at once.

From: the operating system, in the main thread. To: the coordinator's mailbox, by the function that api.run hands over.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from crawlr.records import StopReason, StopRequested

__all__ = ["catch"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def catch(deliver: Callable[[StopRequested], None]) -> Iterator[None]:
    """While the block runs, the first SIGINT or SIGTERM delivers one StopRequested; the second forces the end.

    `deliver` runs between any two steps of the main thread, so it may only put the message into a queue that allows it
    (`queue.SimpleQueue.put` does). Main thread only. The handlers from before are back when the block ends, unless a
    signal came: then the program is about to end, and a second one still forces that instead of breaking into it.
    """
    received = 0

    def receive(number: int, _frame: FrameType | None) -> None:
        nonlocal received
        received += 1
        if received > 1:
            _force(number)
        deliver(StopRequested(reason=StopReason.INTERRUPTED, signal=number))

    before = {number: signal.signal(number, receive) for number in _SIGNALS}
    try:
        yield
    finally:
        if not received:
            for number, handler in before.items():
                signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _force(number: int) -> None:
    """Ends the program here and now. What was committed is on disk; parser processes end when their parent is gone.

    Nothing but system calls: the main thread may hold any lock at this moment, that of stderr too.
    """
    try:
        os.write(2, b"\nforced\n")  # a bar or "cancelling: ..." has left the cursor in the middle of a line
    finally:
        os._exit(128 + number)
