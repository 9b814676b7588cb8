"""What is to be requested next, and when: a queue per origin, behind a clock per host.

From: the coordinator (known URLs, answers, robots verdicts). To: the coordinator (the next take). Pure: `now` comes in
(monotonic seconds), no I/O, main thread. All waiting of a crawl is here: rates, Crawl-delay, Retry-After and
back-off are ready-at times in two heaps.

Invariants (asserted in tests/test_frontier.py for any sequence of calls):
- a URL is WAITING exactly while `take` will return it one day, and IN_FLIGHT from `take` to `settle` or `retry`;
- `waiting` counts the WAITING, `in_flight` the IN_FLIGHT; one URL is never in flight twice;
- a host has at most `limit` takes out, and two takes of it are at least `interval` apart;
- of one host, a take has the lowest rank (crawlr.order) among those that wait at its open origins, but that retries
  come first; of two hosts it is the one whose clock was due first, whatever the order.

So the order of requests within a host is `order`'s alone, and nothing else depends on it: what may be taken, how often
and when at the earliest is decided here.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator

from msgspec import Struct, field

from crawlr.known import KnownUrls, State
from crawlr.order import Levels, Queue

__all__ = ["Frontier", "Gate", "Host", "Origin", "Take"]


class Host(Struct):
    """The clock of one host (host and port; http and https on their default ports are one).

    `next_at` is when its next request may start; a take moves it on by `interval` seconds.
    """

    name: str
    interval: float
    limit: int
    next_at: float = 0.0
    in_flight: int = 0
    origins: list[Origin] = field(default_factory=list)
    is_queued: bool = False
    """Stands in the heap of hosts."""
    requests: int = 0
    held_for: float = 0.0
    """Seconds that Retry-After held this host."""
    first_at: float = 0.0
    last_at: float = 0.0
    """When the first and the last of its requests started."""
    crawl_delay: float | None = None
    """What its robots.txt asks for, before --max-crawl-delay cuts it; the longest of its origins."""


class Gate:
    """What an origin's robots.txt lets through."""

    UNKNOWN = 0
    """Not asked yet: the first thing to take of this origin is its robots.txt."""
    ASKED = 1
    """Its pages wait until the answer is there."""
    OPEN = 2
    CLOSED = 3
    """The coordinator decides for all of its URLs without a request (dead, or robots.txt unreachable)."""


class Origin(Struct):
    """What waits at one origin (scheme, host, port).

    `queue` holds ids: filled by `add`, emptied by `take`. `again` are retries whose time has come. `errands` are
    negative numbers of the coordinator (robots.txt, sitemaps); `free` errands pass a closed gate (robots.txt itself).
    """

    number: int
    name: str
    host: Host
    gate: int
    queue: Queue
    again: deque[int] = field(default_factory=deque)
    errands: deque[int] = field(default_factory=deque)
    free: deque[int] = field(default_factory=deque)
    robots: str | None = None
    """What came of asking for its robots.txt, for a person; None: it was not asked."""

    @property
    def waiting(self) -> int:
        """Requests that wait here, those of `delayed` and of a robots.txt that was not asked yet left out."""
        return len(self.queue) + len(self.again) + len(self.errands) + len(self.free)

    def has_work(self, *, new_pages: bool) -> bool:
        if self.free:
            return True
        work = bool(self.again or self.errands or (new_pages and self.queue.heap))
        return work and self.gate in (Gate.UNKNOWN, Gate.OPEN)


class Take(Struct, frozen=True):
    """One thing to request: a URL's id, an errand (negative), or None for the robots.txt of `origin`, whose gate is
    ASKED now.
    """

    number: int | None
    origin: Origin
    slot_before: float = 0.0
    """When the host's slot had been, for `give_back`."""
    last_before: float = 0.0
    """When its last request had started, likewise."""
    is_first: bool = False
    """It is a URL that was not taken before in this run: it counted against the budget."""


class Frontier:
    """Queues, clocks and gates of every host.

    `rps` 0 means no limit of the rate; `gated`: robots.txt is asked first; `page_budget`: how many URLs may be taken
    for the first time (a retry is none), None for no limit; `queue` makes the queue of an origin (order.queue_maker),
    None: lowest depth first.
    """

    def __init__(
        self,
        known: KnownUrls,
        *,
        rps: float,
        per_host: int,
        gated: bool,
        page_budget: int | None = None,
        queue: Callable[[set[int]], Queue] | None = None,
    ) -> None:
        self._known = known
        self._interval = 1.0 / rps if rps > 0 else 0.0
        self._per_host = per_host
        self._first_gate = Gate.UNKNOWN if gated else Gate.OPEN
        self.hosts: dict[str, Host] = {}
        self.origins: list[Origin] = []
        self._numbers: dict[str, int] = {}
        self._ready: list[tuple[float, int, Host]] = []  # filled by _queue, emptied by take
        self._later: list[
            tuple[float, int, int, int]
        ] = []  # (at, order, number, origin): filled by retry, emptied by _wake
        self._order = 0
        self._budget = page_budget
        self.waiting = 0
        self._again: set[int] = set()  # ids that wait for a retry, in _later or in an origin's again: no queue has them
        self._queue_of = queue or (lambda again: Levels(known, again))
        self.in_flight = 0
        self.errands_out = 0
        """Errands that are queued, delayed or taken and not settled."""

    # ------------------------------------------------------------------ origins

    def origin(self, name: str, host: str) -> Origin:
        """The origin `name` ("https://example.com"), made with the clock of `host` when it is new."""
        number = self._numbers.get(name)
        if number is not None:
            return self.origins[number]
        clock = self.hosts.get(host)
        if clock is None:
            clock = self.hosts[host] = Host(name=host, interval=self._interval, limit=self._per_host)
        origin = Origin(
            number=len(self.origins), name=name, host=clock, gate=self._first_gate, queue=self._queue_of(self._again)
        )
        self._numbers[name] = origin.number
        self.origins.append(origin)
        clock.origins.append(origin)
        return origin

    def open(self, origin: Origin, *, crawl_delay: float | None = None) -> None:
        """robots.txt has been answered: its pages may be taken, at least `crawl_delay` seconds apart."""
        origin.gate = Gate.OPEN
        if crawl_delay is not None and crawl_delay > origin.host.interval:
            host = origin.host
            # the slot reserved by the take of robots.txt itself was computed with the shorter interval
            host.next_at += crawl_delay - host.interval
            host.interval = crawl_delay
        self._queue(origin.host)

    def close(self, origin: Origin) -> list[int]:
        """Shut the gate for good and hand over the ids that waited behind it: they are no longer counted as waiting."""
        origin.gate = Gate.CLOSED
        out = origin.queue.drain()
        for number in out:
            self._known.state[number] = State.HELD
        self.waiting -= len(out)
        for number in origin.again:
            self._known.state[number] = State.HELD
            self.waiting -= 1
            self._again.remove(number)
            out.append(number)
        origin.again.clear()
        self.errands_out -= len(origin.errands)
        origin.errands.clear()
        return out

    # ------------------------------------------------------------------ filling

    def add(self, number: int) -> None:
        """Let a HELD URL wait at its depth."""
        known = self._known
        assert known.state[number] == State.HELD, known.state[number]
        known.state[number] = State.WAITING
        self.waiting += 1
        origin = self.origins[known.origin[number]]
        origin.queue.put(number)
        if not origin.host.is_queued:
            self._queue(origin.host)

    def move(self, number: int) -> None:
        """Follow the fallen depth of a WAITING URL."""
        known = self._known
        if known.state[number] == State.WAITING and number not in self._again:
            self.origins[known.origin[number]].queue.move(number)

    def run_errand(self, number: int, origin: Origin, *, is_free: bool = False, at: float | None = None) -> None:
        """Queue an errand (negative number) of `origin`, now or from `at` on."""
        assert number < 0
        self.errands_out += 1
        if at is not None:
            self._delay(number, origin, at)
        elif is_free:
            origin.free.append(number)
        else:
            origin.errands.append(number)
        self._queue(origin.host)

    def retry(self, number: int, at: float) -> None:
        """Let an IN_FLIGHT URL wait again, not before `at`."""
        known = self._known
        assert known.state[number] == State.IN_FLIGHT, known.state[number]
        known.state[number] = State.WAITING
        self.in_flight -= 1
        self.waiting += 1
        self._again.add(number)
        self._delay(number, self.origins[known.origin[number]], at)

    def _delay(self, number: int, origin: Origin, at: float) -> None:
        self._order += 1
        heapq.heappush(self._later, (at, self._order, number, origin.number))

    # ------------------------------------------------------------------ answers

    def release(self, host: Host) -> None:
        """The exchange of one take of `host` has ended, so that another may start."""
        host.in_flight -= 1
        assert host.in_flight >= 0
        self._queue(host)

    def give_back(self, take: Take) -> None:
        """No request comes of the last take (robots.txt forbids it): the slot of its host is free as before."""
        host = take.origin.host
        host.requests -= 1
        host.next_at = take.slot_before
        host.last_at = take.last_before
        if self._budget is not None:
            self._budget += 1
        self.release(host)

    def settle(self, number: int, state: State) -> None:
        """A URL that was IN_FLIGHT is DONE or SKIPPED."""
        assert self._known.state[number] == State.IN_FLIGHT, self._known.state[number]
        self._known.state[number] = state
        self.in_flight -= 1

    def settle_errand(self) -> None:
        """An errand has ended for good."""
        self.errands_out -= 1
        assert self.errands_out >= 0

    def hold(self, host: Host, until: float, now: float) -> None:
        """Start no request to `host` before `until` (Retry-After)."""
        if until > host.next_at:
            host.held_for += until - max(now, host.next_at)
            host.next_at = until

    # ------------------------------------------------------------------ taking

    def upcoming(self, number: int, most: int) -> list[int]:
        """Ids that are likely to be taken soon after `number`."""
        return self.origins[self._known.origin[number]].queue.upcoming(most)

    @property
    def known(self) -> int:
        """URLs known so far, in scope or not."""
        return len(self._known)

    @property
    def retrying(self) -> int:
        """Those of the WAITING that were taken before."""
        return len(self._again)

    @property
    def has_budget(self) -> bool:
        """False when as many pages as --max-pages were taken: only retries and errands are taken then."""
        return self._budget is None or self._budget > 0

    def spend(self) -> bool:
        """Count one page against the budget; False when there is no place for it. `take` does it for what it takes."""
        if self._budget is None:
            return True
        if self._budget <= 0:
            return False
        self._budget -= 1
        return True

    def take(self, now: float) -> Take | None:
        """The next thing that may start now, None when nothing may."""
        self._wake(now)
        ready = self._ready
        while ready and ready[0][0] <= now:
            _, _, host = heapq.heappop(ready)
            host.is_queued = False
            if host.next_at > now:
                self._queue(host)
                continue
            taken = self._take_of(host) if host.in_flight < host.limit else None
            if taken is None:
                continue  # release() or the next filling queues it again
            slot, last = host.next_at, host.last_at
            if not host.requests:
                host.first_at = now
            host.last_at = now
            host.in_flight += 1
            host.requests += 1
            host.next_at = now + host.interval
            self._queue(host)
            number, origin, is_first = taken
            return Take(number, origin, slot, last, is_first)
        return None

    def _take_of(self, host: Host) -> tuple[int | None, Origin, bool] | None:
        known = self._known
        best: Origin | None = None
        best_rank: float = 0
        for origin in host.origins:
            if origin.free:
                return (origin.free.popleft(), origin, False)
            if origin.gate == Gate.UNKNOWN:
                if origin.has_work(new_pages=self.has_budget):
                    origin.gate = Gate.ASKED
                    self.errands_out += 1
                    return (None, origin, False)
                continue
            if origin.gate != Gate.OPEN:
                continue
            if origin.again:
                number = origin.again.popleft()
                known.state[number] = State.IN_FLIGHT
                self.waiting -= 1
                self._again.remove(number)
                self.in_flight += 1
                return (number, origin, False)
            if origin.errands:
                return (origin.errands.popleft(), origin, False)
            if self.has_budget:
                rank = origin.queue.rank()
                if rank is not None and (best is None or rank < best_rank):
                    best, best_rank = origin, rank
        if best is None:
            return None
        number = best.queue.pop()
        known.state[number] = State.IN_FLIGHT
        self.spend()
        self.waiting -= 1
        self.in_flight += 1
        return (number, best, True)

    def _wake(self, now: float) -> None:
        later = self._later
        while later and later[0][0] <= now:
            _, _, number, origin_number = heapq.heappop(later)
            origin = self.origins[origin_number]
            if number < 0:
                origin.free.append(number)
            else:
                origin.again.append(number)
            self._queue(origin.host)

    def _queue(self, host: Host) -> None:
        if (
            not host.is_queued
            and host.in_flight < host.limit
            and any(o.has_work(new_pages=self.has_budget) for o in host.origins)
        ):
            host.is_queued = True
            self._order += 1
            heapq.heappush(self._ready, (host.next_at, self._order, host))

    def next_host(self) -> Host | None:
        """The host whose turn comes next, None when none has anything to be requested."""
        return self._ready[0][2] if self._ready else None

    def delayed(self) -> Iterator[tuple[Host, float]]:
        """The retries and errands whose time has not come: of which host, and when it comes."""
        return ((self.origins[origin].host, at) for at, _, _, origin in self._later)

    def ready_at(self) -> float | None:
        """When `take` may return something (it need not), None when only an answer can change that."""
        times = [heap[0][0] for heap in (self._ready, self._later) if heap]
        return min(times, default=None)
