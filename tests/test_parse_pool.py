"""The parse pool with real processes that crash, hang, grow and lie: each body has one outcome, and the right one."""

from __future__ import annotations

import collections
import contextlib
import multiprocessing
import multiprocessing.resource_tracker
import os
import queue
import random
import re
import resource
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil
import pytest
from msgspec import structs

from crawlr.errors import MachineError
from crawlr.parse import child
from crawlr.parse.batches import BATCH_BYTES, BATCH_PAGES, take
from crawlr.parse.parse_process import CallDone, Greeted, ParseProcess, Work
from crawlr.parse.pool import PARSE_MESSAGES, SECOND_CALL_PAGES, ParsedBatch, ParseFailed, ParsePool
from crawlr.parse.settings import WorkerSettings
from crawlr.parse.start_method import birthplace
from crawlr.records import Outcome, RawBody, TaskKind
from tests import poison

LIMIT = 20.0
ROOT = Path(__file__).resolve().parents[1]
SETTINGS = WorkerSettings(
    parser="lxml",
    follow=("a",),
    keep_params=False,
    ignore_param=(),
    agent="crawlr",
    max_body=1 << 20,
    parse_timeout=5.0,
    parse_memory=1 << 30,
)
CRASH, TIMEOUT, MEMORY = Outcome.PARSER_CRASH, Outcome.PARSE_TIMEOUT, Outcome.PARSE_MEMORY


class Driver:
    """What the coordinator is to the pool: a mailbox, a loop with a computed timeout, and a book of outcomes."""

    def __init__(self, *, procs: int, work: Work, pace: int = 1, **options: object) -> None:
        """`pace`: how fast the pool's clock runs, so that long limits are over soon."""
        self.mailbox: queue.SimpleQueue[object] = queue.SimpleQueue()
        self.pace = pace
        self.pool = ParsePool(
            procs=procs,
            settings=SETTINGS,
            deliver=self.mailbox.put,
            work=work,
            clock=self.clock,
            **options,  # type: ignore[arg-type]
        )
        self.outcomes: dict[int, list[str]] = collections.defaultdict(list)
        self.errors: dict[int, str | None] = {}
        self.messages: list[object] = []
        self._ids = 0

    def clock(self) -> float:
        return time.monotonic() * self.pace

    def submit(self, *bodies: str) -> list[int]:
        ids = []
        for body in bodies:
            self._ids += 1
            ids.append(self._ids)
            self.pool.submit(raw(self._ids, body.encode()))
        self.pool.flush()
        return ids

    def turn(self, limit: float) -> bool:
        """One round of the loop; False when nothing came within `limit` seconds."""
        due = self.pool.due()
        patience = limit if due is None else min(limit, max(0.0, due - self.clock()) / self.pace)
        try:
            message = self.mailbox.get(timeout=patience)
        except queue.Empty:
            is_due = due is not None and self.clock() >= due
            self._book(self.pool.tick(self.clock()))
            self.pool.flush()
            return is_due
        assert isinstance(message, PARSE_MESSAGES)
        self.messages.append(message)
        self._book(self.pool.receive(message))
        self.pool.flush()
        return True

    def until(self, is_done: Callable[[], bool], limit: float = LIMIT) -> None:
        end = time.monotonic() + limit
        while not is_done():
            left = end - time.monotonic()
            assert left > 0, f"waited {limit} s in vain; outcomes so far: {dict(self.outcomes)}"
            self.turn(left)

    def all_done(self) -> bool:
        return self.pool.waiting + self.pool.in_flight == 0

    def finish(self, limit: float = LIMIT) -> dict[int, str]:
        """Every body's outcome, each exactly one."""
        self.until(self.all_done, limit)
        assert all(len(each) == 1 for each in self.outcomes.values()), dict(self.outcomes)
        assert len(self.outcomes) == self._ids
        return {number: each[0] for number, each in self.outcomes.items()}

    def wait_until_up(self) -> None:
        self.until(lambda: all(slot.current is not None for slot in self.pool._slots if slot.is_open))

    def processes(self) -> list[ParseProcess]:
        return [slot.current for slot in self.pool._slots if slot.current is not None]

    def pids(self) -> list[int]:
        return [process._process.pid for process in self.processes() if process._process is not None]  # type: ignore[misc]

    def _book(self, outcomes: Sequence[ParsedBatch | ParseFailed]) -> None:
        for outcome in outcomes:
            if isinstance(outcome, ParseFailed):
                self.outcomes[outcome.id].append(outcome.outcome)
                self.errors[outcome.id] = outcome.error
            else:
                for result in outcome.results:
                    self.outcomes[result.id].append(getattr(result, "outcome", "ok"))
                    self.errors[result.id] = result.error


@pytest.fixture(scope="module", autouse=True)
def _tracker_runs() -> None:
    """multiprocessing's resource tracker, once started, stays: it must not count as left by the first test."""
    multiprocessing.resource_tracker.ensure_running()


@pytest.fixture
def driver() -> Iterator[Callable[..., Driver]]:
    """Makes started pools of tests.poison processes; they are killed at the end of the test."""
    made: list[Driver] = []

    def make(*, procs: int = 1, work: Work | None = None, **options: object) -> Driver:
        made.append(Driver(procs=procs, work=work or poison.work(), **options))  # type: ignore[arg-type]
        made[-1].pool.start()
        return made[-1]

    yield make
    for each in made:
        each.pool.close(kill=True)


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Callable[[], tuple[str, Callable[[], None]]]]:
    """Makes pairs (a body that stands still, what lets it go on): the body reads a named pipe that nobody writes to."""
    opened: list[int] = []

    def make() -> tuple[str, Callable[[], None]]:
        path = tmp_path / f"door-{len(os.listdir(tmp_path))}"
        os.mkfifo(path)
        holder = os.open(path, os.O_RDWR)  # so that the reader neither fails nor ends
        opened.append(holder)

        def let_go() -> None:
            os.close(holder)
            opened.remove(holder)
            with contextlib.suppress(OSError):  # a second process may come to the same door: it finds it open
                path.unlink()
                path.touch()

        return f"wait {path}", let_go

    yield make
    for each in opened:
        os.close(each)


def raw(number: int, body: bytes = b"ok", *, coding: str | None = None) -> RawBody:
    return RawBody(
        id=number,
        url=f"http://a.test/{number}",
        kind=TaskKind.PAGE,
        body=body,
        content_type=None,
        content_encoding=coding,
    )


# what becomes of pages


def test_every_body_has_one_result(driver: Callable[..., Driver]) -> None:
    """A hundred good bodies over two processes give a hundred results."""
    crew = driver(procs=2)
    crew.submit(*["ok"] * 100)

    assert set(crew.finish().values()) == {"ok"}


@pytest.mark.parametrize("body", ["die SIGKILL", "die SIGTERM", "segfault", "die SIGABRT"])
def test_page_that_kills_its_process_is_blamed_and_no_other(driver: Callable[..., Driver], body: str) -> None:
    """The page that kills two processes, the second one alone, is parser_crash; the pages around it are ok."""
    crew = driver(procs=2)
    ids = crew.submit("ok", "ok", body, "ok", "ok", "ok")

    expected = dict.fromkeys(ids, "ok") | {ids[2]: CRASH}
    assert crew.finish() == expected
    assert "was killed by SIG" in str(crew.errors[ids[2]])


def test_page_that_kills_once_is_parsed_at_the_second_try(driver: Callable[..., Driver], tmp_path: Path) -> None:
    """A process killed from outside costs its page a second try and nothing else."""
    crew = driver()
    crew.submit("ok", f"die-once {tmp_path / 'mark'}", "ok")

    assert set(crew.finish().values()) == {"ok"}


def test_suspect_is_tried_alone_in_a_fresh_process(driver: Callable[..., Driver], tmp_path: Path) -> None:
    """The second try runs in a process that has parsed nothing, and the process does nothing else meanwhile."""
    crew = driver()
    ids = crew.submit("ok", f"die-once {tmp_path / 'mark'}", *["ok"] * 40)
    crew.finish()

    calls = [m for m in crew.messages if isinstance(m, CallDone) and m.future.exception() is None]
    retry = calls[0]
    assert [row[1] for row in retry.future.result()[1][2]] == [ids[1]]
    assert retry.call == 1


@pytest.mark.parametrize("after", [0, 3, 1000, 60_000, 90_000])
def test_death_while_the_result_is_written(driver: Callable[..., Driver], after: int) -> None:
    """A result that breaks off in the middle hangs nobody; its page is found among its batch and blamed."""
    crew = driver(procs=2)
    ids = crew.submit("ok", "ok", f"die-sending {after}", "ok", "ok")

    assert crew.finish() == dict.fromkeys(ids, "ok") | {ids[2]: CRASH}


@pytest.mark.parametrize("body", ["lie", "raise"])
def test_answer_that_is_no_value(driver: Callable[..., Driver], body: str) -> None:
    """An answer that cannot be pickled, or an exception out of the work, is the fault of its page alone."""
    crew = driver()
    ids = crew.submit("ok", body, "ok")

    assert crew.finish() == {ids[0]: "ok", ids[1]: CRASH, ids[2]: "ok"}


def test_page_that_holds_the_gil_for_ever(driver: Callable[..., Driver]) -> None:
    """A call of C code that never returns is ended by the process's own clock and is parse_timeout."""
    crew = driver(procs=2, work=poison.work(page_seconds=0.3))
    ids = crew.submit("ok", "spin", "ok", "ok")

    assert crew.finish() == dict.fromkeys(ids, "ok") | {ids[1]: TIMEOUT}
    assert crew.errors[ids[1]] == "parsing took longer than 0.3 s"


def test_limit_is_of_a_page_not_of_a_batch(driver: Callable[..., Driver]) -> None:
    """Six pages of 0.2 s in one call pass a limit of 0.5 s a page."""
    crew = driver(work=poison.work(page_seconds=0.5))
    crew.wait_until_up()
    crew.submit(*["sleep 0.2"] * 6)

    assert set(crew.finish().values()) == {"ok"}
    assert sum(isinstance(message, CallDone) for message in crew.messages) == 1


def test_process_that_stands_still_as_a_whole(driver: Callable[..., Driver]) -> None:
    """A stopped process, which cannot end itself, is ended by the pool."""
    crew = driver(pace=10, work=poison.work(page_seconds=0.3))
    ids = crew.submit("ok", "stop", "ok")

    assert crew.finish() == {ids[0]: "ok", ids[1]: TIMEOUT, ids[2]: "ok"}


def test_page_over_the_memory_limit(driver: Callable[..., Driver]) -> None:
    """A page that wants more than the process may have is parse_memory, and says how much that is."""
    crew = driver(work=poison.work(memory=200 * poison.MIB))
    ids = crew.submit("ok", "grow 300", "ok", "grow 50")

    assert crew.finish() == {ids[0]: "ok", ids[1]: MEMORY, ids[2]: "ok", ids[3]: "ok"}
    assert crew.errors[ids[1]] == "parsing needed more than 200 MiB"


def test_body_too_large_to_be_read(driver: Callable[..., Driver]) -> None:
    """A body that does not even fit into the process is parse_memory too, though no work ever saw it."""
    crew = driver(work=poison.work(memory=24 * poison.MIB))
    ids = crew.submit("ok", "ok " + "x" * (20 * poison.MIB), "ok")

    assert crew.finish() == {ids[0]: "ok", ids[1]: MEMORY, ids[2]: "ok"}


def test_second_call_of_a_dead_process_is_sent_again(
    driver: Callable[..., Driver], door: Callable[[], tuple[str, Callable[[], None]]]
) -> None:
    """What waits behind the page that was killed is innocent: it is done without being tried alone."""
    crew = driver()
    crew.wait_until_up()
    body, let_go = door()
    crew.submit(body)
    crew.submit(*["ok"] * SECOND_CALL_PAGES)
    assert len(crew.processes()[0].calls) == 2
    os.kill(crew.pids()[0], signal.SIGKILL)
    let_go()

    assert set(crew.finish().values()) == {"ok"}
    done = [m.future.result()[1][2] for m in crew.messages if isinstance(m, CallDone) and not m.future.exception()]
    assert [len(rows) for rows in done] == [1, SECOND_CALL_PAGES]


def test_idle_process_killed_costs_nothing(driver: Callable[..., Driver]) -> None:
    """A process that dies while it has nothing to do is replaced; no page is blamed or tried twice."""
    crew = driver(procs=2)
    crew.wait_until_up()
    before = crew.pids()
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    crew.until(lambda: len(crew.pids()) == 2 and not set(crew.pids()) & set(before))
    crew.submit(*["ok"] * 10)

    assert set(crew.finish().values()) == {"ok"}


@pytest.mark.parametrize("seed", range(6))
def test_any_mix_of_trouble(driver: Callable[..., Driver], tmp_path: Path, seed: int) -> None:
    """Whatever stands beside whatever: every body has its own outcome, once."""
    kinds = {
        "ok": "ok",
        "die SIGKILL": CRASH,
        "segfault": CRASH,
        "die-sending 500": CRASH,
        "lie": CRASH,
        "spin": TIMEOUT,
        "grow 900": MEMORY,
        f"die-once {tmp_path / 'mark'}": "ok",
    }
    chance = random.Random(seed)
    bodies = chance.choices(list(kinds), weights=[20, 1, 1, 1, 1, 1, 1, 1], k=40)
    crew = driver(procs=chance.randint(1, 3), work=poison.work(page_seconds=0.2))
    ids = crew.submit(*bodies)

    assert crew.finish(60.0) == {number: kinds[body] for number, body in zip(ids, bodies, strict=True)}


def test_answer_of_a_process_given_up_is_dropped(driver: Callable[..., Driver]) -> None:
    """A message that comes twice, or after its process was replaced, brings nothing."""
    crew = driver()
    crew.submit("ok", "ok")
    crew.finish()

    [done] = [message for message in crew.messages if isinstance(message, CallDone)]
    assert crew.pool.receive(done) == []


def test_failed_row_is_logged_and_is_a_failure(driver: Callable[..., Driver], caplog: pytest.LogCaptureFixture) -> None:
    """A bug of ours on a page comes back as a value: parser_crash with its text, the traceback in the log."""
    crew = driver(work=structs.replace(poison.work(), function=poison.obey_with_a_bug))
    [number] = crew.submit("ok")

    assert crew.finish() == {number: CRASH}
    assert crew.errors[number] == "KeyError: 'x'"
    assert "Traceback of the bug" in caplog.text


# what becomes of processes


def test_growing_process_is_replaced_without_loss(driver: Callable[..., Driver]) -> None:
    """Memory that a process keeps is given back by replacing it; nothing is tried twice for it."""
    crew = driver(work=poison.work(memory=160 * poison.MIB))
    pids = set()
    for _ in range(30):
        crew.submit("keep 10")
        crew.finish()
        crew.until(lambda: all(slot.coming is None for slot in crew.pool._slots))
        pids.update(crew.pids())

    assert len(pids) >= 3
    assert all(psutil.Process(pid).memory_info().rss < 160 * poison.MIB for pid in crew.pids())
    assert all(m.future.exception() is None for m in crew.messages if isinstance(m, CallDone))


def test_replacement_comes_before_the_old_one_goes(driver: Callable[..., Driver]) -> None:
    """While a worn process waits for its replacement it goes on working."""
    crew = driver(work=poison.work(memory=100 * poison.MIB))
    crew.wait_until_up()
    [old] = crew.pids()
    crew.submit("keep 60")
    crew.until(crew.all_done)
    crew.submit("ok")
    assert crew.pids() == [old]
    crew.finish()

    crew.until(lambda: crew.pids() != [old])


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("raise", "ImportError: libxml2 is missing"), ("die", "was killed by SIGKILL"), ("hang", "no sign of life")],
)
def test_processes_that_cannot_start_stop_the_crawl(driver: Callable[..., Driver], fault: str, reason: str) -> None:
    """When no process comes up the pool says so with the last reason, and blames no page."""
    pace = 200 if fault == "hang" else 10
    crew = driver(procs=2, pace=pace, work=poison.work(fault=fault))
    crew.submit("ok")

    with pytest.raises(MachineError, match=f"parser processes cannot run: .*{reason}"):
        crew.finish()
    assert not crew.outcomes


def test_parser_that_crashes_on_anything_stops_the_crawl(driver: Callable[..., Driver]) -> None:
    """A process must parse the sample page first: where even that crashes, pages are not guilty."""
    work = structs.replace(poison.work(), function=poison.obey_badly)
    crew = driver(pace=10, work=work)
    crew.submit("ok", "ok")

    with pytest.raises(MachineError, match=r"was killed by SIGSEGV"):
        crew.finish()
    assert not crew.outcomes


@pytest.mark.parametrize("free", [0, 1, 2, 3, 5, 8, 11, 14, 17, 20, 25])
def test_machine_without_descriptors(free: int) -> None:
    """With any number of free descriptors it either works or says what is missing; nothing hangs, nothing leaks."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = {int(name) for name in os.listdir("/proc/self/fd")}
    limit = sorted(set(range(max(used) + 100)) - used)[free]
    crew = Driver(procs=1, work=poison.work(), pace=30)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        crew.pool.start()
        crew.submit("ok")
        outcome = crew.finish()
        said = None
    except MachineError as error:
        outcome, said = {}, str(error)
    finally:
        crew.pool.close(kill=True)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    if free >= 17:
        assert outcome == {1: "ok"}
    else:
        assert re.fullmatch(r"parser processes cannot run: .*Too many open files", str(said))


def test_many_guilty_pages_do_not_stop_the_crawl(driver: Callable[..., Driver]) -> None:
    """A site full of pages that kill parsers is the site's fault, not the machine's."""
    crew = driver()
    ids = crew.submit(*["segfault"] * 8, "ok")

    assert crew.finish() == dict.fromkeys(ids[:-1], CRASH) | {ids[-1]: "ok"}


def test_parse_processes_let_the_main_process_go_first(driver: Callable[..., Driver]) -> None:
    """Where cores are short: the fork server, and so its later children, have the main process's priority."""
    crew = driver(procs=2)
    crew.wait_until_up()
    processes = [psutil.Process(pid) for pid in crew.pids()]
    most = min(19, psutil.Process().nice() + child.NICENESS)

    assert [process.nice() for process in processes] == [most, most]
    assert {process.parent().nice() for process in processes} == {psutil.Process().nice()}


def test_death_of_the_fork_server_is_survived(driver: Callable[..., Driver]) -> None:
    """Parse processes outlive the server that forked them, and a new server forks their replacements."""
    crew = driver()
    crew.wait_until_up()
    [pid] = crew.pids()
    server = psutil.Process(pid).parent()
    assert server is not None
    server.kill()
    server.wait(LIMIT)
    crew.submit("ok")
    crew.finish()
    assert crew.pids() == [pid]
    os.kill(pid, signal.SIGKILL)
    crew.submit("ok", "ok")

    assert set(crew.finish().values()) == {"ok"}
    assert crew.pids() != [pid]


def test_spawned_processes_do_the_same(driver: Callable[..., Driver]) -> None:
    """Where there is no fork server, processes are spawned, and a crash is told apart just as well."""
    crew = driver(place=birthplace("spawn"))
    ids = crew.submit("ok", "segfault", "ok")

    assert crew.finish() == {ids[0]: "ok", ids[1]: CRASH, ids[2]: "ok"}


# handing out


def test_waiting_bodies_are_spread_evenly(driver: Callable[..., Driver]) -> None:
    """Few bodies and several free processes: each gets its part."""
    crew = driver(procs=3)
    crew.wait_until_up()
    crew.submit(*["ok"] * 7)

    assert sorted(len(process.calls[0].pages) for process in crew.processes()) == [2, 2, 3]
    crew.finish()


def test_single_body_goes_at_once(
    driver: Callable[..., Driver], door: Callable[[], tuple[str, Callable[[], None]]]
) -> None:
    """An idle process gets a single body; a busy one is given a second call when some are waiting."""
    crew = driver()
    crew.wait_until_up()
    body, let_go = door()
    crew.submit(body)
    crew.submit(*["ok"] * (SECOND_CALL_PAGES - 1))
    assert (crew.pool.in_flight, crew.pool.waiting) == (1, SECOND_CALL_PAGES - 1)
    crew.submit("ok")
    assert (crew.pool.in_flight, crew.pool.waiting) == (1 + SECOND_CALL_PAGES, 0)
    crew.submit(*["ok"] * 20)
    assert (crew.pool.in_flight, crew.pool.waiting) == (1 + SECOND_CALL_PAGES, 20)
    let_go()

    assert set(crew.finish().values()) == {"ok"}


def test_pool_at_rest_wants_no_tick(driver: Callable[..., Driver]) -> None:
    """Without work and with its processes up there is nothing to wait for."""
    crew = driver(procs=2)
    crew.wait_until_up()
    crew.submit("ok")
    crew.finish()

    assert crew.pool.due() is None


def test_busy_seconds_are_counted(driver: Callable[..., Driver]) -> None:
    """The time in the work is counted for the slot that did it."""
    crew = driver()
    crew.submit("sleep 0.1", "sleep 0.1")
    crew.finish()

    assert 0.2 <= crew.pool.busy[0] < 2.0


def test_backlog_is_what_waits_by_what_a_byte_took(
    driver: Callable[..., Driver], door: Callable[[], tuple[str, Callable[[], None]]]
) -> None:
    """Bodies that a process has got are no backlog, of those that wait the size counts, and what a process lost its
    life over tells nothing of others."""
    crew = driver()
    crew.wait_until_up()
    crew.submit("ok")
    assert crew.pool.backlog == 0.0  # nothing has been measured yet
    crew.until(lambda: crew.pool.in_flight == 0)
    took = crew.pool.cpu
    body, let_go = door()
    crew.submit(body)
    crew.turn(0.1)
    os.kill(crew.pids()[0], signal.SIGKILL)
    crew.until(lambda: crew.pool.in_flight == 0)
    assert crew.pool.cpu >= 0.1
    crew.until(lambda: crew.pool.in_flight == 1)  # the suspect, in another process
    crew.submit("sleep 0.000")

    assert crew.pool.waiting == 1
    assert crew.pool.backlog == pytest.approx(took * len("sleep 0.000") / len("ok"))
    let_go()
    crew.finish()
    assert crew.pool.backlog == 0.0


@pytest.mark.parametrize(
    ("sizes", "coding", "share", "taken"),
    [
        ([1] * 100, None, 100, BATCH_PAGES),
        ([1] * 100, None, 5, 5),
        ([BATCH_BYTES * 3, 1], None, 9, 1),
        ([BATCH_BYTES // 2] * 4, None, 9, 2),
        ([BATCH_BYTES // 10] * 9, "gzip", 9, 2),
        ([1, BATCH_BYTES], None, 9, 1),
        ([], None, 9, 0),
    ],
)
def test_batch_is_bounded(sizes: list[int], coding: str | None, share: int, taken: int) -> None:
    """A batch has a share, a number of pages and a number of bytes, and at least one page."""
    waiting = collections.deque(raw(i, bytes(size), coding=coding) for i, size in enumerate(sizes))

    assert len(take(waiting, share=share)) == taken
    assert [body.id for body in waiting] == list(range(taken, len(sizes)))


# another number of processes


def test_grown_pool_has_all_its_processes_at_work(
    driver: Callable[..., Driver], door: Callable[[], tuple[str, Callable[[], None]]]
) -> None:
    """Slots that are opened get bodies as soon as their processes are up, while the old one is at its own."""
    crew = driver()
    crew.wait_until_up()
    body, let_go = door()
    [standing] = crew.submit(body)
    crew.pool.resize(3)
    crew.wait_until_up()
    ids = crew.submit(*["ok"] * 40)
    crew.until(lambda: len(crew.outcomes) == 40)
    let_go()

    assert crew.finish() == dict.fromkeys([standing, *ids], "ok")
    assert (crew.pool.procs, len(set(crew.pids()))) == (3, 3)
    assert all(seconds > 0 for seconds in crew.pool.busy)


def test_shrunk_pool_finishes_what_its_processes_have(
    driver: Callable[..., Driver], door: Callable[[], tuple[str, Callable[[], None]]]
) -> None:
    """A closed slot does both of its calls to the end, gets no third one, and then its process is gone."""
    crew = driver(procs=3)
    crew.wait_until_up()
    doors = [door() for _ in range(3)]
    crew.submit(*[body for body, _ in doors])
    crew.submit(*["ok"] * 90)
    assert [len(process.calls) for process in crew.processes()] == [2, 2, 2]
    gone = psutil.Process(crew.pids()[0]), psutil.Process(crew.pids()[1])
    crew.pool.resize(1)
    left = crew.pids()
    crew.submit(*["ok"] * 90)
    for _, let_go in doors:
        let_go()

    assert set(crew.finish().values()) == {"ok"}
    assert (crew.pool.procs, crew.pids()) == (1, left)
    assert not psutil.wait_procs(gone, timeout=LIMIT)[1]
    assert max(m.call for m in crew.messages if isinstance(m, CallDone) and m.process not in crew.processes()) == 2


def test_page_that_kills_a_process_which_goes_is_blamed_alone(
    driver: Callable[..., Driver], door: Callable[[], tuple[str, Callable[[], None]]]
) -> None:
    """A crash in a closed slot is told like any other: the guilty page, and nobody else; the slot stays closed."""
    crew = driver(procs=2)
    crew.wait_until_up()
    doors = [door(), door()]
    first = crew.submit(*[body for body, _ in doors])
    second = crew.submit(*["ok", "ok", "segfault", "ok"] * 2)
    crew.pool.resize(1)
    for _, let_go in doors:
        let_go()

    outcomes = crew.finish()
    assert [number for number, outcome in outcomes.items() if outcome != "ok"] == [second[2], second[6]]
    assert set(outcomes) == {*first, *second}
    assert (crew.pool.procs, len(crew.pids())) == (1, 1)


def test_slot_without_a_process_closes_first(driver: Callable[..., Driver]) -> None:
    """Who works stays: of a process that is up and one that is on its way, the latter is given up."""
    crew = driver()
    crew.wait_until_up()
    before = crew.pids()
    crew.pool.resize(4)
    crew.pool.resize(1)
    crew.submit(*["ok"] * 4)

    assert set(crew.finish().values()) == {"ok"}
    assert crew.pids() == before


def test_slot_that_can_start_no_process_is_closed(driver: Callable[..., Driver]) -> None:
    """Closing ends the tries: nothing is due any more, and the failures of that slot are forgotten."""
    crew = driver()
    crew.wait_until_up()
    crew.pool._work = poison.work(fault="raise")
    crew.pool.resize(2)
    crew.until(lambda: crew.pool._slots[1].retry_at is not None)
    crew.pool.resize(1)
    crew.submit("ok")

    assert crew.finish() == {1: "ok"}
    assert crew.pool.due() is None
    assert crew.pool._slots[1].failed_starts == 0


@pytest.mark.parametrize("seed", range(4))
def test_any_mix_of_trouble_while_the_number_changes(driver: Callable[..., Driver], tmp_path: Path, seed: int) -> None:
    """Whatever dies while slots open and close: every body has its own outcome, once, and no process is left over."""
    kinds = {"ok": "ok", "die SIGKILL": CRASH, "die-sending 500": CRASH, "lie": CRASH, "spin": TIMEOUT}
    kinds[f"die-once {tmp_path / 'mark'}"] = "ok"
    chance = random.Random(seed)
    crew = driver(procs=2, work=poison.work(page_seconds=0.2))
    expected = {}
    for _ in range(12):
        bodies = chance.choices(list(kinds), weights=[20, 1, 1, 1, 1, 1], k=8)
        expected |= {number: kinds[body] for number, body in zip(crew.submit(*bodies), bodies, strict=True)}
        crew.pool.resize(chance.randint(1, 4))
        for _ in range(chance.randint(0, 6)):
            crew.turn(0.2)

    assert crew.finish(60.0) == expected
    crew.wait_until_up()
    assert crew.pool.procs == len(crew.pids())
    crew.until(lambda: sum(len(list(slot.processes())) for slot in crew.pool._slots) == crew.pool.procs)


def test_slot_seconds_follow_the_number() -> None:
    """A second of three slots is three; a slot that is closed is counted no more, one that opens is from then on."""
    now = [100.0]
    pool = ParsePool(procs=3, settings=SETTINGS, deliver=lambda _: None, work=poison.work(), clock=lambda: now[0])
    assert pool.slot_seconds == 0
    pool.start()
    try:
        for procs, seconds in ((1, 2.0), (1, 10.0), (4, 0.5), (2, 1.0)):
            now[0] += seconds
            pool.resize(procs)
    finally:
        pool.close(kill=True)
    now[0] += 1.0

    assert pytest.approx(3 * 2.0 + 1 * 10.0 + 1 * 0.5 + 4 * 1.0 + 2 * 1.0) == pool.slot_seconds


def test_call_that_is_under_way_counts_as_work(
    driver: Callable[..., Driver], door: Callable[[], tuple[str, Callable[[], None]]]
) -> None:
    """A page that takes long keeps its slot busy before it is done, and also when it ends its process."""
    crew = driver()
    crew.wait_until_up()
    body, let_go = door()
    crew.submit(body)
    crew.turn(0.1)

    assert crew.pool.busy[0] >= 0.1
    os.kill(crew.pids()[0], signal.SIGKILL)
    crew.until(lambda: crew.pool.in_flight == 0)
    assert crew.pool.busy[0] >= 0.1
    let_go()
    crew.finish()


# the end


@pytest.mark.parametrize("kill", [True, False])
@pytest.mark.parametrize("moment", ["at once", "up", "busy", "spinning", "failing"])
def test_close_leaves_nothing(driver: Callable[..., Driver], *, kill: bool, moment: str) -> None:
    """Whenever it is called, close ends every process and thread within two seconds (conftest looks what is left)."""
    crew = driver(procs=2, work=poison.work(fault="raise" if moment == "failing" else None))
    if moment in ("up", "busy", "spinning"):
        crew.wait_until_up()
    if moment == "failing":
        crew.until(lambda: bool(crew.messages))
    crew.submit(*{"busy": ["sleep 0.1"] * 40, "spinning": ["spin"] * 4}.get(moment, []))
    pids = crew.pids()
    began = time.monotonic()
    crew.pool.close(kill=kill)

    assert time.monotonic() - began < 2.5
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_close_twice_and_without_start() -> None:
    """To close what is closed, or was never started, is no error."""
    pool = ParsePool(procs=1, settings=SETTINGS, deliver=lambda _: None, work=poison.work())
    pool.close(kill=True)
    pool.start()
    pool.close(kill=False)
    pool.close(kill=True)


def test_start_method_of_the_program_is_left_alone(driver: Callable[..., Driver]) -> None:
    """Neither birthplace chooses the program's default start method."""
    multiprocessing.set_start_method(None, force=True)
    for method in ("forkserver", "spawn"):
        crew = driver(place=birthplace(method))
        crew.submit("ok")
        crew.finish()

    assert multiprocessing.get_start_method(allow_none=True) is None


PROGRAM = """
import multiprocessing, os, queue, signal, sys, threading, time
print("main module runs", flush=True)
{prelude}
from crawlr.parse.pool import ParsePool
from crawlr.parse.start_method import birthplace
from tests.test_parse_pool import SETTINGS, Driver
from tests import poison

crew = Driver(procs=2, work=poison.work(page_seconds={seconds}))
crew.pool.start()
try:
    {body}
finally:
    crew.pool.close(kill=True)
print("end", flush=True)
"""


def program(body: str, *, prelude: str = "", seconds: float = 5.0) -> str:
    return PROGRAM.format(body=textwrap.indent(textwrap.dedent(body), "    ").strip(), prelude=prelude, seconds=seconds)


WORK = "crew.wait_until_up(); print(*crew.pids(), flush=True); crew.submit(*['ok'] * 9); print(len(crew.finish()))"


@contextlib.contextmanager
def running(code: str, *, how: str = "script", folder: Path, **options: object) -> Iterator[subprocess.Popen[bytes]]:
    """A program without a main guard, in a session of its own; the whole session is killed at the end."""
    script = folder / "script.py"
    script.write_text(code)
    argv = {"script": [str(script)], "-c": ["-c", code], "stdin": ["-"]}[how]
    with (
        script.open("rb") as stdin,
        subprocess.Popen(
            [sys.executable, *argv],
            stdin=stdin if how == "stdin" else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            start_new_session=True,
            **options,  # type: ignore[call-overload]
        ) as process,
    ):
        try:
            yield process
        finally:
            for each in session(process.pid):
                with contextlib.suppress(psutil.Error):
                    each.kill()


def session(leader: int) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if os.getsid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


@pytest.mark.parametrize("how", ["script", "-c", "stdin"])
@pytest.mark.parametrize("method", [None, "spawn", "forkserver", "fork"])
def test_program_without_main_guard_runs_once(tmp_path: Path, how: str, method: str | None) -> None:
    """A parse process never runs the program's main module, however the program was started and what it chose."""
    prelude = f"multiprocessing.set_start_method({method!r})" if method else ""
    with running(program(WORK, prelude=prelude), how=how, folder=tmp_path) as process:
        out, err = process.communicate(timeout=LIMIT)

    assert err == b""
    assert out.split() == [*b"main module runs".split(), *out.split()[3:5], b"9", b"end"]


def test_spawned_process_does_not_run_the_main_module(tmp_path: Path) -> None:
    """Where processes are spawned, an unguarded script runs once too."""
    code = program(WORK).replace("Driver(", "Driver(place=birthplace('spawn'), ")
    with running(code, folder=tmp_path) as process:
        out, err = process.communicate(timeout=LIMIT)

    assert err == b""
    assert out.count(b"main module runs") == 1
    assert out.endswith(b"9\nend\n")


def test_modules_of_the_working_folder_are_not_taken(tmp_path: Path) -> None:
    """A file beside the user's data that has the name of a module does not end in the parser processes."""
    for name in ("concurrent", "crawlr", "lxml", "mmap"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('taken')")
    folder = tmp_path / "script"
    folder.mkdir()
    code = program(WORK, prelude=f"os.chdir({str(tmp_path)!r})")
    with running(code, folder=folder) as process:
        out, err = process.communicate(timeout=LIMIT)

    assert err == b""
    assert out.endswith(b"9\nend\n")


def test_broken_stdout_keeps_no_process_away(tmp_path: Path) -> None:
    """`crawlr | head -1`: text that can no longer be written does not stop processes from starting."""
    code = program(WORK + "; os.write(2, b'fine'); os._exit(0)", prelude="print('unwritable', end='')")
    with running(code, folder=tmp_path) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        err = process.stderr.read()

    assert b"fine" in err or b"BrokenPipeError" in err.splitlines()[-1]


@pytest.mark.parametrize("body", ["ok", "spin", "sleep 1000"])
def test_orphans_end_by_themselves(tmp_path: Path, body: str) -> None:
    """After kill -9 of the program nothing of it is left, be its parsers idle, asleep or holding the GIL."""
    code = program(
        f"crew.wait_until_up(); crew.submit({body!r}, {body!r}); print('here', flush=True); signal.pause()",
        seconds=60.0,
    )
    with running(code, folder=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"main module runs\n"
        assert process.stdout.readline() == b"here\n"
        members = [each for each in session(process.pid) if each.pid != process.pid]
        assert len(members) >= 4  # two parsers, their server, the resource tracker
        process.kill()
        _, alive = psutil.wait_procs(members, timeout=4)

    assert not alive


@pytest.mark.parametrize("moment", ["starting", "up", "working"])
def test_ctrl_c_prints_nothing(tmp_path: Path, moment: str) -> None:
    """SIGINT to the whole group, as a terminal sends it, is heard by the program alone, whenever it comes."""
    body = {
        "starting": "print('here', flush=True); wait()",
        "up": "crew.wait_until_up(); print('here', flush=True); wait()",
        "working": "crew.submit(*['sleep 0.05'] * 400); print('here', flush=True); crew.until(heard.qsize)",
    }[moment]
    # An Event is not safe to set in a signal handler; a SimpleQueue is made for it.
    # And it is asked again and again, as the coordinator does: a signal that comes just before the main thread goes to
    # sleep is heard when it wakes.
    prelude = """
heard = queue.SimpleQueue()
signal.signal(signal.SIGINT, lambda *_: heard.put(1))
def wait():
    end = time.monotonic() + 20
    while not heard.qsize() and time.monotonic() < end:
        try: heard.put(heard.get(timeout=0.25))
        except queue.Empty: pass
"""
    with running(program(body, prelude=prelude), folder=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"main module runs\n"
        assert process.stdout.readline() == b"here\n"
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)

    assert (out, err, process.returncode) == (b"end\n", b"", 0)


def test_first_result_comes_soon(driver: Callable[..., Driver]) -> None:
    """A pool is cheap enough to be started for a single page."""
    began = time.monotonic()
    crew = driver()
    started = time.monotonic() - began
    crew.submit("ok")
    crew.finish()

    assert started < 0.1
    assert isinstance(crew.messages[0], Greeted)
    assert time.monotonic() - began < 5.0  # 0.1 s on an idle machine


def test_no_message_is_unknown(driver: Callable[..., Driver]) -> None:
    """What is no message of the pool is a bug of the caller."""
    with pytest.raises(TypeError):
        driver().pool.receive("what?")


def test_bug_in_the_keeper_reaches_the_main_thread(
    driver: Callable[..., Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of our own in the keeper's thread stops the crawl instead of hanging it."""

    def fail() -> None:
        monkeypatch.undo()
        raise ZeroDivisionError

    crew = driver()
    crew.wait_until_up()
    monkeypatch.setattr(crew.processes()[0], "end", fail)
    crew.pool._discard(crew.processes()[0])

    with pytest.raises(ZeroDivisionError):
        crew.until(lambda: False)

    keeper = crew.pool._keeper
    assert keeper is not None
    keeper._thread.join(LIMIT)  # so that closing meets a thread that has ended, which the descriptors outlive
