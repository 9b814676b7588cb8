"""The frontier's invariants for any sequence of calls, and its rules one by one. Pure: time is a number."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from crawlr.frontier import Frontier, Gate, Take
from crawlr.known import Flag, KnownUrls, State
from crawlr.order import Priority, queue_maker
from crawlr.records import KnownUrl
from crawlr.status import CrawlStatus, fill_in


def by_length_and_depth(url: KnownUrl) -> float:
    """A function as a caller may give it, which has equals and falls with the depth."""
    return len(url.url) % 3 + url.depth / 2


ORDERS: list[str | Priority] = ["breadth-first", "depth-first", by_length_and_depth]


def url_of(number: int) -> str:
    """The address of an id; nothing but a function looks at it."""
    return "x" * (number % 7)


def rank(known: KnownUrls, order: str | Priority, number: int) -> float:
    """What the order says of an id now: the lower, the earlier."""
    depth = known.depth[number]
    if callable(order):
        return order(KnownUrl(url=url_of(number), depth=depth, is_seed=False, in_sitemap=False))
    return depth if order == "breadth-first" else -depth


def build(
    *,
    rps: float = 0,
    per_host: int = 20,
    gated: bool = False,
    budget: int | None = None,
    order: str | Priority = "breadth-first",
) -> Frontier:
    known = KnownUrls()
    queue = queue_maker(order, known, url_of)
    return Frontier(known, rps=rps, per_host=per_host, gated=gated, page_budget=budget, queue=queue)


def put(frontier: Frontier, key: str, depth: int, host: str = "h.test", scheme: str = "http") -> int:
    known = frontier._known
    origin = frontier.origin(f"{scheme}://{host}", host)
    number = known.add(key, flags=Flag.IN_SCOPE | Flag.FOLLOWED, origin=origin.number)
    known.depth[number] = depth
    frontier.add(number)
    return number


def test_lowest_depth_is_taken_first() -> None:
    """Depth decides, whatever the order in which URLs became known."""
    frontier = build()
    deep, shallow = put(frontier, "deep", 3), put(frontier, "shallow", 1)

    taken = [frontier.take(0.0), frontier.take(0.0), frontier.take(0.0)]

    assert [shallow, deep, None] == [take and take.number for take in taken]


def test_depth_first_takes_the_deepest_and_of_equals_the_first() -> None:
    """Deepest first, and among URLs of one depth the one that was found first."""
    frontier = build(order="depth-first")
    shallow, first, second = put(frontier, "a", 1), put(frontier, "b", 3), put(frontier, "c", 3)

    taken = [frontier.take(0.0) for _ in range(4)]

    assert [first, second, shallow, None] == [take and take.number for take in taken]


def test_rank_of_a_function_is_looked_at_again_when_the_depth_falls() -> None:
    """The function decides by what is known now, and an old place does not give the URL out again."""
    frontier = build(order=lambda url: url.depth % 4)
    late, other = put(frontier, "late", 3), put(frontier, "other", 2)
    frontier._known.depth[late] = 1
    frontier.move(late)

    taken = [frontier.take(0.0), frontier.take(0.0), frontier.take(0.0)]

    assert [late, other, None] == [take and take.number for take in taken]


def test_fallen_depth_is_followed_and_the_url_is_taken_once() -> None:
    """A URL whose depth falls while it waits moves up, and its old place does not give it out again."""
    frontier = build()
    late, other = put(frontier, "late", 5), put(frontier, "other", 2)
    frontier._known.depth[late] = 1
    frontier.move(late)

    taken = [frontier.take(0.0), frontier.take(0.0), frontier.take(0.0)]

    assert [late, other, None] == [take and take.number for take in taken]


def test_rate_spaces_the_requests_of_a_host_and_not_of_another() -> None:
    """With 5 requests a second two takes of one host are 0.2 s apart; another host is free."""
    frontier = build(rps=5)
    put(frontier, "a", 0)
    put(frontier, "b", 0)
    put(frontier, "c", 0, host="other.test")

    now = [frontier.take(10.0), frontier.take(10.0), frontier.take(10.0)]
    ready = frontier.ready_at()
    early, late = frontier.take(10.19), frontier.take(10.2)

    assert [take is not None for take in now] == [True, True, False]
    assert ready == 10.2
    assert (early, late is not None) == (None, True)


def test_per_host_limit_holds_until_a_release() -> None:
    """No more requests to one host at once than --per-host."""
    frontier = build(per_host=1)
    put(frontier, "a", 0)
    put(frontier, "b", 0)

    first = frontier.take(0.0)
    blocked = frontier.take(0.0)
    assert first is not None
    frontier.release(first.origin.host)
    second = frontier.take(0.0)

    assert blocked is None
    assert second is not None


def test_robots_comes_first_and_pages_wait_behind_it() -> None:
    """The first take of a gated origin is its robots.txt; nothing else until the gate opens."""
    frontier = build(gated=True)
    number = put(frontier, "a", 0)

    robots, nothing = frontier.take(0.0), frontier.take(0.0)
    assert robots is not None
    frontier.release(robots.origin.host)
    frontier.settle_errand()
    frontier.open(robots.origin, crawl_delay=None)
    page = frontier.take(0.0)

    assert robots.number is None
    assert nothing is None
    assert page is not None
    assert number == page.number


def test_crawl_delay_counts_from_the_request_of_robots_txt() -> None:
    """A Crawl-delay slows the host from the next request on, and never speeds it up."""
    frontier = build(rps=5, gated=True)
    put(frontier, "a", 0)
    robots = frontier.take(0.0)
    assert robots is not None
    frontier.release(robots.origin.host)
    frontier.open(robots.origin, crawl_delay=1.0)

    early, late = frontier.take(0.99), frontier.take(1.0)

    assert early is None
    assert late is not None


def test_retry_waits_for_its_time_and_comes_before_new_pages() -> None:
    """A retry is not taken before its time, and then before what was never asked."""
    frontier = build()
    first = put(frontier, "a", 0)
    take = frontier.take(0.0)
    assert take is not None
    frontier.release(take.origin.host)
    frontier.retry(first, 5.0)
    put(frontier, "b", 0)
    put(frontier, "c", 0)

    early = frontier.take(1.0)
    due = frontier.take(5.0)

    assert early is not None
    assert first != early.number
    assert due is not None
    assert first == due.number


def test_depth_that_falls_during_a_back_off_does_not_give_the_url_out_twice() -> None:
    """A URL that waits for a retry is in no level, so a shorter way to it changes nothing about its turn."""
    frontier = build()
    number = put(frontier, "a", 5)
    take = frontier.take(0.0)
    assert take is not None
    frontier.release(take.origin.host)
    frontier.retry(number, 1.0)
    frontier._known.depth[number] = 2
    frontier.move(number)

    taken = [frontier.take(0.0), frontier.take(1.0), frontier.take(1.0)]

    assert [None, number, None] == [take and take.number for take in taken]


def test_hold_keeps_the_whole_host_back() -> None:
    """Retry-After holds every URL of the host, not only the one that was answered with it."""
    frontier = build()
    put(frontier, "a", 0)
    put(frontier, "b", 0)
    take = frontier.take(0.0)
    assert take is not None
    frontier.hold(take.origin.host, 2.0, 0.0)

    early, late = frontier.take(1.9), frontier.take(2.0)

    assert early is None
    assert late is not None


def test_budget_is_counted_at_the_take_and_given_back() -> None:
    """Never more first takes than the budget; one that robots.txt forbids does not count."""
    frontier = build(budget=1)
    put(frontier, "a", 0)
    put(frontier, "b", 0)
    put(frontier, "c", 0)
    forbidden = frontier.take(0.0)
    assert forbidden is not None
    assert forbidden.number is not None
    frontier.settle(forbidden.number, State.SKIPPED)
    frontier.give_back(forbidden)

    taken, refused = frontier.take(0.0), frontier.take(0.0)

    assert taken is not None
    assert refused is None
    assert not frontier.has_budget


def test_closing_an_origin_hands_over_what_waited() -> None:
    """What waits behind a gate that closes is handed over in the order of its depth and waits no longer."""
    frontier = build(gated=True)
    deep, shallow = put(frontier, "deep", 2), put(frontier, "shallow", 1)
    robots = frontier.take(0.0)
    assert robots is not None

    ended = frontier.close(robots.origin)

    assert [shallow, deep] == ended
    assert frontier.waiting == 0


class Calls(RuleBasedStateMachine):
    """Any sequence of calls, beside a model of what waits and what is out."""

    @initialize(
        rps=st.sampled_from([0, 2, 50]),
        per_host=st.integers(1, 4),
        gated=st.booleans(),
        budget=st.none() | st.integers(0, 8),
        order=st.sampled_from(ORDERS),
    )
    def begin(self, rps: float, per_host: int, gated: bool, budget: int | None, order: str | Priority) -> None:
        self.frontier = build(rps=rps, per_host=per_host, gated=gated, budget=budget, order=order)
        self.order = order
        self.known = self.frontier._known
        self.now = 0.0
        self.out: list[Take] = []
        self.errand = 0
        self.first_takes: set[int] = set()
        self.budget = budget
        self.per_host = per_host
        self.last_start: dict[str, float] = {}

    @rule(
        depth=st.integers(0, 5),
        host=st.sampled_from(["a", "b", "c"]),
        scheme=st.sampled_from(["http", "https"]),
    )
    def add(self, depth: int, host: str, scheme: str) -> None:
        if self.frontier.origin(f"{scheme}://{host}", host).gate != Gate.CLOSED:
            put(self.frontier, f"key{len(self.known)}", depth, host, scheme)

    @rule(data=st.data(), steps=st.integers(1, 3))
    def fall(self, data: st.DataObject, steps: int) -> None:
        if len(self.known):
            number = data.draw(st.integers(0, len(self.known) - 1))
            self.known.depth[number] = max(0, self.known.depth[number] - steps)
            self.frontier.move(number)

    @rule(host=st.sampled_from(["a", "b", "c"]), free=st.booleans(), later=st.booleans())
    def errand(self, host: str, free: bool, later: bool) -> None:
        origin = self.frontier.origin(f"http://{host}", host)
        if origin.gate != Gate.CLOSED:
            self.errand -= 1
            self.frontier.run_errand(self.errand, origin, is_free=free, at=self.now + 1 if later else None)

    @rule(step=st.sampled_from([0.0, 0.1, 0.5, 3.0]))
    def take(self, step: float) -> None:
        self.now += step
        take = self.frontier.take(self.now)
        if take is None:
            ready = self.frontier.ready_at()
            assert ready is None or ready > self.now
            return
        host = take.origin.host
        if host.name in self.last_start:
            assert self.now - self.last_start[host.name] >= host.interval - 1e-9
        self.last_start[host.name] = self.now
        if take.number is not None and take.number >= 0:
            if take.number not in self.first_takes:
                self.first_takes.add(take.number)
                same = [
                    i
                    for i in range(len(self.known))
                    if self.known.state[i] == State.WAITING
                    and i not in self.first_takes
                    and self.frontier.origins[self.known.origin[i]].host is host
                    and self.frontier.origins[self.known.origin[i]].gate == Gate.OPEN
                ]
                mine = rank(self.known, self.order, take.number)
                assert all(mine <= rank(self.known, self.order, i) for i in same)
            assert all(other.number != take.number for other in self.out)
        self.out.append(take)

    @precondition(lambda self: getattr(self, "out", None))
    @rule(data=st.data(), how=st.sampled_from(["done", "retry", "hold"]))
    def answer(self, data: st.DataObject, how: str) -> None:
        take = self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))
        self.frontier.release(take.origin.host)
        if how == "hold":
            self.frontier.hold(take.origin.host, self.now + 2, self.now)
        if take.number is None:
            self.frontier.settle_errand()
            if how == "retry":
                self.frontier.close(take.origin)
            else:
                self.frontier.open(take.origin, crawl_delay=None)
        elif take.number < 0:
            self.frontier.settle_errand()
        elif how == "retry" and take.origin.gate != Gate.CLOSED:
            self.frontier.retry(take.number, self.now + 1)
        else:
            self.frontier.settle(take.number, State.DONE)

    @invariant()
    def counts_are_right(self) -> None:
        if not hasattr(self, "frontier"):
            return
        states = list(self.known.state)
        assert states.count(State.WAITING) == self.frontier.waiting
        assert states.count(State.IN_FLIGHT) == self.frontier.in_flight
        assert sum(1 for take in self.out if take.number is not None and take.number >= 0) == self.frontier.in_flight
        again = self.frontier._again
        for origin in self.frontier.origins:
            waiting = [
                i
                for i in range(len(self.known))
                if self.known.origin[i] == origin.number and states[i] == State.WAITING and i not in again
            ]
            assert len(origin.queue) == len(waiting)
        seen = fill_in(CrawlStatus(), self.frontier, self.now)
        errands = self.frontier.errands_out - sum(1 for take in self.out if take.number is None or take.number < 0)
        assert seen.waiting == sum(host.waiting for host in seen.hosts) == self.frontier.waiting + errands
        assert seen.in_flight == len(self.out)
        for host in self.frontier.hosts.values():
            assert host.in_flight == sum(1 for take in self.out if take.origin.host is host) <= self.per_host
        assert self.budget is None or len(self.first_takes) <= self.budget

    def teardown(self) -> None:
        """Whatever happened, the frontier can be emptied: nothing that waits is forgotten."""
        if not hasattr(self, "frontier"):
            return
        for take in self.out:
            self._settle(take)
        for _ in range(10_000):
            self.now += 5.0
            take = self.frontier.take(self.now)
            if take is None and self.frontier.ready_at() is None:
                break
            if take is not None:
                if take.number is not None and take.number >= 0:
                    self.first_takes.add(take.number)
                self._settle(take)
        assert self.frontier.errands_out == 0
        assert (self.frontier.waiting if self.frontier.has_budget else self.frontier.retrying) == 0

    def _settle(self, take: Take) -> None:
        self.frontier.release(take.origin.host)
        if take.number is None:
            self.frontier.settle_errand()
            self.frontier.open(take.origin, crawl_delay=None)
        elif take.number < 0:
            self.frontier.settle_errand()
        else:
            self.frontier.settle(take.number, State.DONE)


TestCalls = Calls.TestCase
TestCalls.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
