"""The fetch threads: permits, delivery of whatever a fetcher does, robots.txt, interruption, the end."""

from __future__ import annotations

import gzip
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from crawlr.errors import MachineError
from crawlr.fetch.pool import FetchDone, FetchPool
from crawlr.records import FetchedPage, FetchFailure, FetchTask, Outcome, TaskKind
from tests.gates import LIMIT, Gate

Result = FetchedPage | FetchFailure


class Fake:
    """A Fetcher that does what the task's URL stands for in a table."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.most_at_once = 0
        self.at_once = 0
        self.gates: list[Gate] = []
        self.is_interrupted = False
        self._lock = threading.Lock()

    def fetch(self, task: FetchTask) -> Result:
        with self._lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            answer = self.answers.get(task.url, FetchedPage(status=200, body=task.url.encode()))
            if isinstance(answer, Gate):
                self.gates.append(answer)
                answer.enter()
                answer = FetchedPage(status=200)
            if isinstance(answer, BaseException):
                raise answer
            return answer
        finally:
            with self._lock:
                self.at_once -= 1

    def interrupt(self) -> None:
        self.is_interrupted = True
        for answer in self.answers.values():
            if isinstance(answer, Gate):
                answer.open()

    def close(self) -> None:
        raise AssertionError("the pool does not own its fetcher")


class Running:
    """A pool with its mailbox."""

    def __init__(self, fetcher: Fake, concurrency: int) -> None:
        self.mailbox: queue.SimpleQueue[FetchDone] = queue.SimpleQueue()
        self.pool = FetchPool(fetcher=fetcher, concurrency=concurrency, deliver=self.mailbox.put)

    def submit(self, *urls: str, kind: TaskKind = TaskKind.PAGE) -> None:
        for number, url in enumerate(urls):
            assert self.pool.acquire()
            self.pool.submit(FetchTask(id=number, url=url, kind=kind))

    def next(self) -> FetchDone:
        return self.mailbox.get(timeout=LIMIT)


@pytest.fixture
def run() -> Iterator[Callable[..., Running]]:
    made: list[Running] = []

    def build(answers: dict[str, Any] | None = None, *, concurrency: int = 3) -> Running:
        made.append(Running(Fake(answers or {}), concurrency))
        return made[-1]

    yield build
    for each in made:
        each.pool.close()


def test_every_task_is_delivered_once(run: Callable[..., Running]) -> None:
    """What is submitted comes back with its task, its result and its times."""
    running = run()
    urls = [f"u{number}" for number in range(50)]
    got = []
    for url in urls:
        while not running.pool.acquire():
            got.append(running.next())
        running.pool.submit(FetchTask(id=0, url=url, kind=TaskKind.PAGE))
    while len(got) < len(urls):
        got.append(running.next())

    assert sorted(done.task.url for done in got) == sorted(urls)
    assert all(done.result.body == done.task.url.encode() for done in got if isinstance(done.result, FetchedPage))
    assert all(done.waited >= 0 and done.busy >= 0 and done.rules is None for done in got)


def test_permits_bound_what_is_in_flight(run: Callable[..., Running], gate: Callable[..., Gate]) -> None:
    """There are as many permits as requests at once, each back after the last byte and not before."""
    closed = gate()
    running = run({"slow": closed}, concurrency=3)
    running.submit("slow", "slow", "slow")
    closed.wait_for_arrivals(3)

    assert not running.pool.acquire()
    assert running.pool.busy == 3
    closed.let_one_in()
    running.next()
    assert running.pool.busy == 2
    assert running.pool.acquire()
    closed.open()


def test_threads_are_started_as_they_are_needed(run: Callable[..., Running]) -> None:
    """One request at a time needs one thread, whatever the concurrency is."""
    running, before = run(concurrency=50), threading.active_count()
    for _ in range(20):
        running.submit("u")
        running.next()

    assert threading.active_count() - before == 1


RAISED = (
    (ValueError("a bug"), False),
    (KeyError("a bug"), False),
    (MemoryError(), True),
    (OSError(24, "Too many open files"), True),
    (RuntimeError("can't start new thread"), True),
)


@pytest.mark.parametrize(("error", "is_local"), RAISED, ids=lambda value: type(value).__name__)
def test_what_a_fetcher_raises_becomes_a_failure(
    error: Exception, run: Callable[..., Running], *, is_local: bool
) -> None:
    """An exception costs its page only, and gives its permit back; what the machine lacks is no page's fault."""
    running = run({"bad": error}, concurrency=1)
    running.submit("bad")
    bad = running.next().result
    running.submit("good")
    good = running.next().result

    assert isinstance(bad, FetchFailure)
    assert (bad.outcome, bad.is_local) == (Outcome.PROTOCOL_ERROR, is_local)
    assert isinstance(good, FetchedPage)


RULES = b"User-agent: *\nDisallow: /x\n"


@pytest.mark.parametrize("coding", [None, "gzip"])
def test_robots_is_parsed_in_its_thread(coding: str | None, run: Callable[..., Running]) -> None:
    """A robots.txt arrives as rules, its content coding undone."""
    body = RULES if coding is None else gzip.compress(RULES)
    running = run({"r": FetchedPage(status=200, body=body, content_encoding=coding)})
    running.submit("r", kind=TaskKind.ROBOTS)

    rules = running.next().rules

    assert rules is not None
    assert not rules.allows("http://a.test/x", "crawlr")
    assert rules.allows("http://a.test/y", "crawlr")


BROKEN = {
    "no gzip": (b"\x00\x01\x02 no gzip", "gzip", Outcome.DECODE_ERROR),
    "cut gzip": (gzip.compress(RULES)[:-14], "gzip", Outcome.TRUNCATED),
}


@pytest.mark.parametrize("name", BROKEN)
def test_robots_that_cannot_be_decoded_has_a_fault(name: str, run: Callable[..., Running]) -> None:
    """Rules that cannot be read are not taken for no rules."""
    body, coding, fault = BROKEN[name]
    running = run({"r": FetchedPage(status=200, body=body, content_encoding=coding)})
    running.submit("r", kind=TaskKind.ROBOTS)

    result = running.next().result

    assert isinstance(result, FetchedPage)
    assert result.fault is fault


@pytest.mark.parametrize(
    "result", [FetchedPage(status=404, body=RULES), FetchFailure(outcome=Outcome.REFUSED, error="x")], ids=str
)
def test_only_a_good_robots_has_rules(result: Result, run: Callable[..., Running]) -> None:
    """What is no 2xx is for the coordinator to judge."""
    running = run({"r": result})
    running.submit("r", kind=TaskKind.ROBOTS)

    done = running.next()

    assert (done.result, done.rules) == (result, None)


def test_interrupt_delivers_what_was_cut(run: Callable[..., Running], gate: Callable[..., Gate]) -> None:
    """After an interrupt every task in flight is delivered soon."""
    closed = gate()
    running = run({"slow": closed})
    running.submit("slow", "slow", "slow")
    closed.wait_for_arrivals(3)
    running.pool.interrupt()

    assert {running.next().task.id for _ in range(3)} == {0, 1, 2}
    assert running.pool.busy == 0


def test_close_is_bounded_and_delivers_nothing_more(gate: Callable[..., Gate]) -> None:
    """A fetch that does not end holds the end of the pool for two seconds, and its thread is a daemon."""
    stuck = gate()

    class Stubborn(Fake):
        def interrupt(self) -> None:
            """Does not listen."""

    running = Running(Stubborn({"slow": stuck}), 2)
    running.submit("slow")
    stuck.wait_for_arrivals(1)
    began = time.monotonic()
    running.pool.close()
    spent = time.monotonic() - began
    stuck.open()

    assert 1.5 < spent < 4.0
    assert all(thread.daemon for thread in threading.enumerate() if thread.name.startswith("crawlr-fetch"))
    with pytest.raises(queue.Empty):
        running.mailbox.get(timeout=0.3)


def test_no_thread_at_all_is_a_fault_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one thread there is no crawl; with fewer than wanted there is a slower one."""

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    running = Running(Fake({}), 2)
    start = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(MachineError, match="can't start new thread"):
        running.submit("u")
    running.pool.close()

    fewer = Running(Fake({}), 2)
    monkeypatch.setattr(threading.Thread, "start", start)
    fewer.submit("u1")
    monkeypatch.setattr(threading.Thread, "start", refuse)
    fewer.submit("u2")
    got = {fewer.next().task.url for _ in range(2)}
    monkeypatch.undo()
    fewer.pool.close()

    assert got == {"u1", "u2"}
