"""What is asked of a crawl from outside while it runs: pause, resume, stop, and how it stands.

From: any thread (api.Crawl, signal handlers), as messages in the crawl's mailbox. To: the loops of coordinator and
external, which hand over every message that is none of theirs, and look here before they start a request.

Only the crawl's main thread changes what is here. What other threads get is CrawlStatus, a frozen value that the main
thread makes when it reads the question; while it reads no messages (it loads a state, or writes outputs), the last one
that it made.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from msgspec import Struct, structs

from crawlr.records import PauseRequested, ResumeRequested, StopReason, StopRequested
from crawlr.status import CrawlState, CrawlStatus, Phase

__all__ = ["POLL_SECONDS", "STATUS_LIMIT", "Control", "StatusRequested"]

logger = logging.getLogger(__name__)

STATUS_LIMIT = 1.0
"""Seconds that a question waits for the main thread, which may be in a function of the caller's."""
POLL_SECONDS = 0.25
"""Between two looks at the caller's `stop=`: an Event has no way to wake somebody who waits for something else, too."""


class StatusRequested(Struct, frozen=True, kw_only=True):
    """The question how the crawl stands. Made by `Control.status`, read by `Control.receive`, which answers it."""

    answer: queue.SimpleQueue[CrawlStatus]


class Control:
    """The reins of one crawl: `pause`, `resume`, `stop` and `status` are for any thread, all else is the main thread's.

    What is asked is done in the order in which it is asked, so a status that was asked for after a pause shows it.
    """

    def __init__(
        self, *, is_stopped: Callable[[], bool] | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.mailbox: queue.SimpleQueue[object] = queue.SimpleQueue()
        """Of the whole crawl: answers, parse results and the messages of this module."""
        self.stop_request: StopRequested | None = None
        self._is_stopped = is_stopped
        self._clock = clock
        self._began: float | None = None
        self._ended: float | None = None
        self._paused_at: float | None = None
        self._paused_before = 0.0
        self._main: int | None = None
        self._will_listen = False
        self._phase = Phase.STARTING
        self._fill: Callable[[CrawlStatus], CrawlStatus] = _as_it_was
        self._latest = CrawlStatus()

    # ------------------------------------------------------------------ for any thread

    def pause(self) -> None:
        """Start no request from now on, until `resume`."""
        self.mailbox.put(PauseRequested())

    def resume(self) -> None:
        self.mailbox.put(ResumeRequested())

    def stop(self) -> None:
        """End the crawl as Ctrl-C does."""
        self.mailbox.put(StopRequested(reason=StopReason.INTERRUPTED))

    def status(self, limit: float = STATUS_LIMIT) -> CrawlStatus:
        """The crawl as it stands. When the main thread does not come to it within `limit` seconds, as it stood when it
        was asked before."""
        if threading.get_ident() == self._main:  # a function of the caller's asks, that the main thread is in
            return self._look()
        if self._will_listen:
            answer: queue.SimpleQueue[CrawlStatus] = queue.SimpleQueue()
            self.mailbox.put(StatusRequested(answer=answer))
            try:
                return answer.get(timeout=max(0.0, limit))
            except queue.Empty:
                pass
        latest = self._latest
        return structs.replace(latest, elapsed=self._elapsed(), paused=self.paused)

    # ------------------------------------------------------------------ for the main thread

    @contextmanager
    def running(self) -> Iterator[None]:
        """The crawl runs while the block does, which happens once. What it raises is its end, too."""
        self._began, self._main = self._clock(), threading.get_ident()
        self._look()
        self._will_listen = True
        try:
            yield
        finally:
            self._will_listen = False
            self._ended = self._clock()
            self.enter(Phase.ENDED, _ended)
            self._main = None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """While the block runs somebody reads the mailbox. Questions that it leaves there are answered at its end."""
        try:
            yield
        finally:
            self._will_listen = False
            with suppress(queue.Empty):
                while True:
                    message = self.mailbox.get_nowait()
                    if isinstance(message, StatusRequested):
                        self.receive(message)

    def enter(self, phase: Phase, fill: Callable[[CrawlStatus], CrawlStatus] | None = None) -> None:
        """Begin a phase. `fill` puts its figures into a status that has all that is known here; None: they stay."""
        self._look()  # the last figures of the phase before
        self._phase, self._fill = phase, fill or _as_it_was
        self._look()

    def finish(self, reason: StopReason) -> None:
        """Note why the crawl ended."""
        self._latest = structs.replace(self._latest, stop_reason=reason)

    def receive(self, message: object) -> bool:
        """Do what a message asks; False when it is none of these."""
        match message:
            case PauseRequested():
                if self._paused_at is None:
                    self._paused_at = self._clock()
                    logger.info("crawl.paused")
            case ResumeRequested():
                if self._paused_at is not None:
                    logger.info("crawl.resumed after_s=%.3f", self._clock() - self._paused_at)
                    self._paused_before, self._paused_at = self.paused, None
            case StopRequested():
                self.stop_request = self.stop_request or message
            case StatusRequested():
                message.answer.put(self._look())
            case _:
                return False
        return True

    def look_for_stop(self, now: float, deadline: float | None) -> StopRequested | None:
        """Why the crawl has to end now: a stop was asked for, or the deadline is over, pauses or not."""
        if self.stop_request is None:
            if deadline is not None and now >= deadline:
                self.stop_request = StopRequested(reason=StopReason.TIME_BUDGET)
            elif self._is_stopped is not None and self._is_stopped():
                self.stop_request = StopRequested(reason=StopReason.INTERRUPTED)
        return self.stop_request

    @property
    def is_paused(self) -> bool:
        return self._paused_at is not None

    @property
    def poll_at(self) -> float | None:
        """When `look_for_stop` has to be called at the latest, None when a message wakes whoever waits."""
        return None if self._is_stopped is None else self._clock() + POLL_SECONDS

    @property
    def paused(self) -> float:
        """Seconds that the crawl has been paused, up to its end."""
        since = self._paused_at
        if since is None:
            return self._paused_before
        return self._paused_before + (self._ended or self._clock()) - since

    def _elapsed(self) -> float:
        return 0.0 if self._began is None else (self._ended or self._clock()) - self._began

    def _state(self) -> CrawlState:
        if self._phase is Phase.ENDED:
            return CrawlState.FINISHED
        if self._began is None:
            return CrawlState.READY
        if self.stop_request is not None:
            return CrawlState.STOPPING
        return CrawlState.PAUSED if self.is_paused and self._phase is not Phase.WRITING else CrawlState.RUNNING

    def _look(self) -> CrawlStatus:
        bare = structs.replace(
            self._latest, state=self._state(), phase=self._phase, elapsed=self._elapsed(), paused=self.paused
        )
        self._latest = self._fill(bare)
        return self._latest


def _as_it_was(status: CrawlStatus) -> CrawlStatus:
    return status


def _ended(status: CrawlStatus) -> CrawlStatus:
    """Nothing is under way any more; what waited still does, for a resume."""
    reason = status.stop_reason or StopReason.ERROR
    return structs.replace(status, stop_reason=reason, in_flight=0, parsing=0, hosts=(), hosts_active=0)
