"""crawlr.Crawl: a crawl that is looked at, paused, resumed and stopped by other threads while it runs."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import crawlr
from crawlr.control import Control, StatusRequested
from crawlr.errors import OptionsError
from crawlr.records import PageRecord, StopReason
from crawlr.status import CrawlState, CrawlStatus, Phase
from tests.fakeweb import FakeWeb, Page
from tests.gates import LIMIT, Gate
from tests.running import ROOT

HOST = "http://web.test"
MakeGate = Callable[..., Gate]


def web(count: int, *, gate: Gate | None = None) -> FakeWeb:
    """A page that leads to `count` others, each behind the gate."""
    pages = {f"{HOST}/{n}": Page(gate=gate) for n in range(count)}
    return FakeWeb({f"{HOST}/": Page(links=tuple(f"/{n}" for n in range(count))), **pages})


class Held:
    """A crawl in a thread of its own."""

    def __init__(self, fake: FakeWeb, **options: Any) -> None:
        defaults: dict[str, Any] = {"rps": 0, "parse_procs": 1, "concurrency": 4, "retries": 0, "out": None}
        self.crawl = crawlr.Crawl(f"{HOST}/", fetcher=fake, **(defaults | options))
        self.result: crawlr.CrawlResult | None = None
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, name="crawl under test", daemon=True)

    def start(self) -> Held:
        self.thread.start()
        return self

    def _run(self) -> None:
        try:
            self.result = self.crawl.run()
        except BaseException as error:  # looked at by the test
            self.error = error

    def wait(self) -> crawlr.CrawlResult:
        self.thread.join(60)
        assert not self.thread.is_alive(), "the crawl did not end"
        assert self.error is None, self.error
        assert self.result is not None
        return self.result

    def until(self, is_so: Callable[[CrawlStatus], bool]) -> CrawlStatus:
        """The first status for which that is so; each asks the crawl, which has to come round to it."""
        for _ in range(4_000):
            status = self.crawl.status()
            if is_so(status):
                return status
            self.thread.join(0.005)
        raise AssertionError(f"it never came to that: {status}")


@pytest.fixture
def hold() -> Iterator[Callable[..., Held]]:
    """hold(fake, **options) makes a crawl; what still runs at the end of the test is stopped."""
    made: list[Held] = []

    def make(fake: FakeWeb, **options: Any) -> Held:
        made.append(Held(fake, **options))
        return made[-1]

    yield make
    for each in made:
        each.crawl.stop()
        if each.thread.ident is not None:
            each.thread.join(60)
        if each.result is not None:
            each.result.close()


Hold = Callable[..., Held]


# ---------------------------------------------------------------- status


def test_status_before_the_run_and_after_its_end(hold: Hold) -> None:
    """Ready with nothing known; finished with the figures of the whole, and why it ended."""
    held = hold(web(3))
    before = held.crawl.status()
    held.start().wait()
    after = held.crawl.status()

    assert before == CrawlStatus()
    assert (after.state, after.phase, after.stop_reason) == (CrawlState.FINISHED, Phase.ENDED, StopReason.FINISHED)
    assert (after.pages, after.ok, after.known) == (4, 4, 4)
    assert (after.waiting, after.in_flight, after.hosts) == (0, 0, ())
    assert after == held.crawl.status()


def test_status_counts_what_waits_and_what_is_in_flight(hold: Hold, gate: MakeGate) -> None:
    """Four requests are held at the gate, the others wait, and all belong to one host."""
    door = gate()
    held = hold(web(20, gate=door)).start()
    door.wait_for_arrivals(4)
    status = held.until(lambda status: status.pages == 1)
    door.open()
    held.wait()

    assert (status.state, status.phase) == (CrawlState.RUNNING, Phase.CRAWLING)
    assert (status.known, status.waiting, status.in_flight, status.parsing) == (21, 16, 4, 0)
    assert [(host.host, host.waiting, host.in_flight) for host in status.hosts] == [("web.test", 16, 4)]
    assert status.hosts_active == 1


def test_status_says_when_a_host_may_be_asked_next(hold: Hold) -> None:
    """At one request in 50 seconds the next is up to 50 seconds away."""
    held = hold(web(5), rps=0.02, robots=False).start()
    status = held.until(lambda status: status.waiting == 5)
    next_in = status.hosts[0].next_in
    held.crawl.stop()
    held.wait()

    assert next_in is not None
    assert 30 < next_in <= 50
    assert status.hosts[0].interval == 50


def test_status_of_many_threads_at_once(hold: Hold) -> None:
    """Fifty questions of each of ten threads are all answered, and the crawl is none the worse."""
    held = hold(web(300))
    seen: list[list[CrawlStatus]] = [[] for _ in range(10)]
    askers = [
        threading.Thread(target=lambda mine=mine: mine.extend(held.crawl.status() for _ in range(50))) for mine in seen
    ]
    held.start()
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join(60)
    pages = list(held.wait().pages)

    assert [len(mine) for mine in seen] == [50] * 10
    for mine in seen:
        assert [status.pages for status in mine] == sorted(status.pages for status in mine)
    assert len(pages) == 301


def test_status_from_a_function_of_the_crawl_itself(hold: Hold) -> None:
    """on_page runs in the main thread, which answers itself and waits for nobody."""
    seen: list[CrawlStatus] = []
    held = hold(web(3), on_page=lambda page: seen.append(held.crawl.status(timeout=60)))
    held.start().wait()

    assert [status.pages for status in seen] == [1, 2, 3, 4]


def test_status_while_the_crawl_is_in_a_function_of_the_caller(hold: Hold, gate: MakeGate) -> None:
    """The question is not answered in time, so the last status is given."""
    door = gate()
    held = hold(web(3), on_page=lambda page: door.enter()).start()
    door.wait_for_arrivals(1)
    status = held.crawl.status(timeout=0.01)
    door.open()
    held.wait()

    assert (status.state, status.phase) == (CrawlState.RUNNING, Phase.CRAWLING)
    assert status.elapsed > 0


def test_question_that_the_loop_left_behind_is_answered_at_its_end() -> None:
    """Who asked in the last moment does not wait in vain."""
    control = Control()
    question = StatusRequested(answer=queue.SimpleQueue())
    with control.running(), control.listening():
        control.mailbox.put(question)

    assert question.answer.get(timeout=1).state is CrawlState.RUNNING


def test_crawl_that_failed_is_finished_with_an_error(hold: Hold) -> None:
    """What run raises is its end, too."""

    def fail(page: PageRecord) -> None:
        raise LookupError("mine")

    held = hold(web(3), on_page=fail).start()
    held.thread.join(60)
    status = held.crawl.status()

    assert isinstance(held.error, LookupError)
    assert (status.state, status.stop_reason) == (CrawlState.FINISHED, StopReason.ERROR)


def test_second_run_and_a_wrong_option_are_refused(hold: Hold) -> None:
    """A Crawl runs once, and a mistake is told when it is made."""
    held = hold(web(1))
    held.start().wait()

    with pytest.raises(RuntimeError, match="runs once"):
        held.crawl.run()
    with pytest.raises(OptionsError, match="--depth"):
        crawlr.Crawl(HOST, depth=-1)


# ---------------------------------------------------------------- pause and resume


def test_pause_before_the_run_holds_the_first_request(hold: Hold) -> None:
    """Not even robots.txt is asked for until it is resumed."""
    fake = web(3)
    held = hold(fake)
    held.crawl.pause()
    held.start()
    status = held.until(lambda status: status.phase is Phase.CRAWLING)
    held.thread.join(0.4)  # longer than any interval in which a crawl looks around
    asked = list(fake.requests)
    held.crawl.resume()
    pages = list(held.wait().pages)

    assert status.state is CrawlState.PAUSED
    assert asked == []
    assert len(pages) == 4


def test_pause_lets_what_is_in_flight_end_and_starts_nothing(hold: Hold, gate: MakeGate) -> None:
    """Four requests were out: these are committed, and no fifth is made until it is resumed."""
    door, committed = gate(), threading.Semaphore(0)
    fake = web(20, gate=door)
    held = hold(fake, on_page=lambda page: committed.release()).start()
    door.wait_for_arrivals(4)
    held.crawl.pause()
    paused = held.crawl.status(timeout=LIMIT)
    door.open()
    for _ in range(5):
        assert committed.acquire(timeout=LIMIT)
    status = held.crawl.status(timeout=LIMIT)
    asked = len(fake.urls())
    held.crawl.resume()
    pages = list(held.wait().pages)

    assert (paused.state, paused.in_flight) == (CrawlState.PAUSED, 4)
    assert (status.state, status.in_flight, status.pages, status.waiting) == (CrawlState.PAUSED, 0, 5, 16)
    assert asked == 5
    assert len(pages) == 21


def test_paused_crawl_sleeps(hold: Hold, gate: MakeGate) -> None:
    """In a pause the main thread waits for a message, and looks for nothing else but once a second for a signal."""
    held = hold(web(50))
    held.crawl.pause()
    held.start()
    held.until(lambda status: status.phase is Phase.CRAWLING)
    held.thread.join(1.0)  # parser processes come up meanwhile
    before = switches(held.thread)
    held.thread.join(0.6)
    after = switches(held.thread)
    held.crawl.resume()
    held.wait()

    assert after - before <= 1


def switches(thread: threading.Thread) -> int:
    """How often a thread has gone to sleep so far."""
    lines = Path(f"/proc/self/task/{thread.native_id}/status").read_text(encoding="ascii").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("voluntary_ctxt_switches")))


def test_pause_during_a_retry_after_keeps_the_retry_back(hold: Hold) -> None:
    """The wait of the host is over while it is paused; the retry is made when it is resumed."""
    fake = web(0)
    fake.pages[f"{HOST}/"] = Page(status=503, headers={"Retry-After": "1"})
    held = hold(fake, retries=1, robots=False).start()
    held.until(lambda status: status.waiting == 1 and status.in_flight == 0 and bool(status.hosts[0].next_in))
    held.crawl.pause()
    status = held.until(lambda status: status.hosts[0].next_in == 0)
    held.thread.join(0.4)
    asked = len(fake.urls())
    held.crawl.resume()
    held.wait()

    assert status.state is CrawlState.PAUSED
    assert (asked, len(fake.urls())) == (1, 2)


def test_pause_from_on_page_holds_the_very_next_request(hold: Hold) -> None:
    """The function runs between two requests: after it none is made, though the next may have been due long since."""
    started: list[int] = []

    def pause(page: PageRecord) -> None:
        held.crawl.pause()
        started.append(held.crawl.status().hosts[0].requests)

    held = hold(web(20), on_page=pause, rps=2, robots=False).start()
    held.until(lambda status: status.state is CrawlState.PAUSED)
    held.until(lambda status: status.hosts[0].next_in == 0)
    held.thread.join(0.4)
    status = held.crawl.status()
    held.crawl.stop()
    held.wait()

    assert [status.hosts[0].requests] == started


def test_pause_and_resume_twice_are_as_once(hold: Hold) -> None:
    """Neither counts, and a resume of a crawl that is not paused does nothing."""
    held = hold(web(30))
    held.crawl.resume()
    held.crawl.pause()
    held.crawl.pause()
    held.start()
    held.until(lambda status: status.state is CrawlState.PAUSED)
    held.crawl.resume()
    held.crawl.resume()

    assert len(list(held.wait().pages)) == 31


def test_paused_crawl_with_nothing_left_to_request_ends(hold: Hold, gate: MakeGate) -> None:
    """What was in flight was the last of it."""
    door = gate()
    held = hold(web(2, gate=door)).start()
    door.wait_for_arrivals(2)
    held.crawl.pause()
    held.until(lambda status: status.state is CrawlState.PAUSED)
    door.open()

    assert held.wait().complete


def test_max_time_runs_on_in_a_pause(hold: Hold) -> None:
    """A crawl that is paused for longer ends, and says why."""
    held = hold(web(10), max_time=0.3)
    held.crawl.pause()
    result = held.start().wait()

    assert result.stop_reason is StopReason.TIME_BUDGET
    assert list(result.pages) == []


@pytest.mark.parametrize("is_paused", [False, True], ids=["running", "paused"])
def test_stop_ends_it_and_a_second_one_does_no_harm(hold: Hold, gate: MakeGate, is_paused: bool) -> None:
    """What is in flight is cut, whether it is paused or not."""
    door = gate()
    held = hold(web(20, gate=door)).start()
    door.wait_for_arrivals(4)
    if is_paused:
        held.crawl.pause()
    held.crawl.stop()
    held.crawl.stop()
    result = held.wait()
    held.crawl.stop()
    held.crawl.pause()

    assert result.stop_reason is StopReason.INTERRUPTED
    assert not result.complete
    assert held.crawl.status().state is CrawlState.FINISHED


def test_stop_before_the_run_makes_it_end_before_the_first_request(hold: Hold) -> None:
    """The wish is older than the crawl."""
    fake = web(3)
    held = hold(fake)
    held.crawl.stop()
    result = held.start().wait()

    assert result.stop_reason is StopReason.INTERRUPTED
    assert fake.requests == []


def test_stop_event_ends_a_paused_crawl_too(hold: Hold) -> None:
    """`stop=` is looked at in a pause."""
    stop = threading.Event()
    held = hold(web(3), stop=stop)
    held.crawl.pause()
    held.start()
    held.until(lambda status: status.phase is Phase.CRAWLING)
    stop.set()

    assert held.wait().stop_reason is StopReason.INTERRUPTED


def test_pause_holds_the_check_of_links_to_outside(hold: Hold, gate: MakeGate) -> None:
    """--check-external is a part of the crawl: it waits, and goes on."""
    door = gate()
    fake = FakeWeb({f"{HOST}/": Page(links=tuple(f"http://out.test/{n}" for n in range(9)))})
    fake.pages |= {f"http://out.test/{n}": Page() for n in range(9)}
    fake.pages["http://out.test/robots.txt"] = Page(status=404, gate=door)
    held = hold(fake, check_external=True).start()
    door.wait_for_arrivals(1)
    held.crawl.pause()
    status = held.crawl.status(timeout=LIMIT)
    door.open()
    held.until(lambda status: status.in_flight == 0)
    asked = [task.url for task in fake.requests if "/robots" not in task.url]
    held.crawl.resume()
    held.wait()

    assert (status.state, status.phase, status.waiting) == (CrawlState.PAUSED, Phase.CHECKING, 9)
    assert asked == [f"{HOST}/"]
    assert len(fake.requests) == 12


@pytest.mark.alone
def test_accounting_names_the_pause_and_still_adds_up(hold: Hold, tmp_path: Path) -> None:
    """--stats has the seconds of the pause, the coordinator's time is whole, and the limit is that of the rest."""
    stats = tmp_path / "stats.json"
    held = hold(web(30), stats=str(stats))
    held.crawl.pause()
    held.start()
    held.thread.join(1.5)
    held.crawl.resume()
    result = held.wait()
    found = json.loads(stats.read_text(encoding="utf-8"))
    coordinator = found["coordinator"]

    assert found["paused_s"] > 1.0
    assert 0.5 * found["paused_s"] < coordinator["idle_for"]["paused"] <= found["paused_s"]
    parts = sum(coordinator[name] for name in ("dispatch_s", "merge_s", "journal_s", "idle_s", "unaccounted_s"))
    assert abs(parts - found["elapsed_s"]) < 1e-6
    assert "paused" not in found["limit"]["text"]
    assert result.summary.limit is not None


def test_ctrl_c_in_a_pause_ends_the_crawl(tmp_path: Path) -> None:
    """A program that runs the crawl in its main thread and pauses it is still the user's to interrupt."""
    program = (
        "import faulthandler, os, signal, threading, crawlr\n"
        "from crawlr.status import CrawlState\n"
        "faulthandler.dump_traceback_later(45, exit=True)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background job ignores it
        "crawl = crawlr.Crawl('http://127.0.0.1:9/', out='map.json', parse_procs=1)\n"
        "crawl.pause()\n"
        "def interrupt():\n"
        "    while crawl.status().state is not CrawlState.PAUSED:\n"
        "        pass\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Thread(target=interrupt).start()\n"
        "try:\n"
        "    crawl.run()\n"
        "except KeyboardInterrupt:\n"
        "    print(crawl.status().state, crawl.status().stop_reason, os.path.exists('map.json.crawl'))\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
    )

    assert not ran.stderr, ran.stderr
    assert (ran.returncode, ran.stdout.strip()) == (0, "finished interrupted True")
