"""SIGUSR1 and --status: how a crawl stands, seen from outside. Real processes, real signals, real disks."""

from __future__ import annotations

import json
import os
import signal
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

import crawlr
from crawlr.errors import OptionsError
from crawlr.options import Options
from crawlr.status import CrawlStatus, HostStatus, document, lines
from crawlr.watching import Watch, asked_by_signal
from tests.conftest import Command
from tests.fakeweb import FakeWeb, Page
from tests.gates import Gate
from tests.running import Running
from tests.servers.local import Reply, Site, page

MakeSite = Callable[..., Site]
MakeGate = Callable[..., Gate]
pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="this system has no SIGUSR1")
LIMIT = 20.0


def waits_for(running: Running, is_so: Callable[[], bool]) -> None:
    """Return once it is so, looked at twenty times a second; fails when the program ends before, or after the limit."""
    for _ in range(int(LIMIT / 0.05)):
        if is_so():
            return
        assert not running.has_ended_within(0.05), "the program ended before"
    raise AssertionError(f"not within {LIMIT} s")


def said(running: Running) -> str:
    return (running.folder / "stderr.txt").read_text(encoding="utf-8")


def is_listening(pid: int) -> bool:
    """Whether SIGUSR1 is caught or ignored: from then on it can't end the process."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    masks = [int(line.split()[1], 16) for line in lines if line.startswith(("SigIgn", "SigCgt"))]
    return any(mask >> signal.SIGUSR1 - 1 & 1 for mask in masks)


def held_site(site: MakeSite, door: Gate) -> Site:
    """A start page that leads to ten others, all of them behind the gate."""
    return site({"/": page(*(f"/{n}" for n in range(10)))}, default=Reply(gate=door))


# ---------------------------------------------------------------- SIGUSR1


@pytest.mark.parametrize("look", [[], ["--quiet"]], ids=["loud", "quiet"])
def test_signal_prints_the_status_to_stderr(run_cli: Command, site: MakeSite, gate: MakeGate, look: list[str]) -> None:
    """With --quiet too, each time that it is asked, and the crawl goes on to its end."""
    door = gate()
    ground = held_site(site, door)
    running = run_cli.start(ground.url(), "--concurrency", "4", *look)
    door.wait_for_arrivals(4)
    for count in (1, 2):
        running.signal(signal.SIGUSR1)
        waits_for(running, lambda count=count: said(running).count("status running: crawling") == count)  # type: ignore[misc]
    door.open()
    ran = running.wait()

    assert ran.rc == 0
    assert len(ran.site_map.pages) == 11
    assert f"{ground.url().split('/')[2]}: 6 waiting, 4 in flight" in ran.err
    assert "known=11 waiting=6 in_flight=4 parsing=0" in ran.err


def test_signal_to_the_group_ends_no_process(run_cli: Command, site: MakeSite, gate: MakeGate) -> None:
    """Parser processes, their server and multiprocessing's tracker pass it by."""
    door = gate()
    ground = held_site(site, door)
    running = run_cli.start(ground.url(), "--concurrency", "4", "--parse-procs", "2")
    door.wait_for_arrivals(4)
    waits_for(running, lambda: len(running.parsers()) == 2)
    before = {member.pid for member in running.members()}
    for count in (1, 2, 3):
        running.signal_group(signal.SIGUSR1)
        waits_for(running, lambda count=count: said(running).count("status running") == count)  # type: ignore[misc]
    after = {member.pid for member in running.members()}
    door.open()
    ran = running.wait()

    assert len(before) >= 4
    assert after == before
    assert (ran.rc, len(ran.site_map.pages), ran.left) == (0, 11, ())


def test_flood_from_the_first_moment_to_the_last_ends_nothing(run_cli: Command, site: MakeSite) -> None:
    """While modules load, processes come up, outputs are written and the program exits: status 0, everything there."""
    ground = site({"/": page(*(f"/{n}" for n in range(60)))}, default=page("http://127.0.0.1:9/outside"))
    outputs = ("--out", "map.html", "--out", "edges.csv", "--check-external", "--retries", "0")
    running = run_cli.start(ground.url(), "--parse-procs", "2", "--no-robots", *outputs)
    waits_for(running, lambda: is_listening(running.pid))
    count = 0
    while not running.has_ended_within(0.002):
        running.signal_group(signal.SIGUSR1)
        count += 1
    ran = running.wait()

    assert ran.rc == 0, ran.err[-2000:]
    assert count > 50
    assert len(ran.site_map.pages) == 61
    assert "Traceback" not in ran.err
    assert ran.left == ()


def test_signal_during_a_pause_for_a_host_is_answered_at_once(run_cli: Command, site: MakeSite) -> None:
    """The loop sleeps for a minute's Retry-After, and says when the next request may be."""
    ground = site({"/": Reply(status=503, headers=(("Retry-After", "60"),))})
    running = run_cli.start(ground.url(), "--no-robots")
    waits_for(running, lambda: len(ground.hits) == 1)
    waits_for(running, lambda: ask(running) and "next in" in said(running))
    running.signal(signal.SIGINT)
    ran = running.wait()

    assert ran.rc == 130
    assert "1 waiting, 0 in flight, next in" in ran.err


def ask(running: Running) -> bool:
    running.signal(signal.SIGUSR1)
    return True


def test_questions_faster_than_the_answers_get_one(tmp_path: Path) -> None:
    """A hundred signals while one status is being printed give one more."""
    door, told = Gate(), []
    printed = threading.Semaphore(0)

    def tell(text: str) -> None:
        door.enter()
        told.append(text)
        printed.release()

    with Watch(CrawlStatus, tell=tell) as watch, asked_by_signal(watch.ask):
        os.kill(os.getpid(), signal.SIGUSR1)
        door.wait_for_arrivals(1)
        for _ in range(100):
            os.kill(os.getpid(), signal.SIGUSR1)
        door.open()
        assert printed.acquire(timeout=LIMIT)
        assert printed.acquire(timeout=LIMIT)

    assert len(told) == 2


def test_handler_is_put_back() -> None:
    """A program that calls the library keeps its own handler."""
    before = signal.getsignal(signal.SIGUSR1)
    with asked_by_signal(lambda: None):
        during = signal.getsignal(signal.SIGUSR1)

    assert signal.getsignal(signal.SIGUSR1) is before
    assert during is not before


def test_names_from_the_web_are_scrubbed() -> None:
    """A host cannot move the cursor of who looks."""
    host = HostStatus(host="a\x1b[2Jb", waiting=1, in_flight=0, next_in=None, requests=0, interval=0.0)
    text = "\n".join(lines(CrawlStatus(hosts=(host,), hosts_active=1)))

    assert "\x1b" not in text


# ---------------------------------------------------------------- --status


def test_status_file_is_whole_at_every_look_and_stays_at_the_end(
    run_cli: Command, site: MakeSite, gate: MakeGate
) -> None:
    """It is there while the crawl runs, is renewed, is never half, and says how it ended."""
    door = gate()
    ground = held_site(site, door)
    running = run_cli.start(ground.url(), "--concurrency", "4", "--status")
    path = running.folder / "sitemap.json.status.json"
    door.wait_for_arrivals(4)
    seen: list[dict[str, Any]] = []

    def look() -> bool:
        if path.exists():
            seen.append(json.loads(path.read_text(encoding="utf-8")))
        return len({each["written_at"] for each in seen if each["pages"] == 1}) == 2

    waits_for(running, look)
    door.open()
    ran = running.wait()
    last = json.loads(path.read_text(encoding="utf-8"))

    assert seen[-1] | {"format": "crawlr-status/1", "state": "running", "phase": "crawling", "waiting": 6} == seen[-1]
    assert seen[-1]["hosts"][0]["in_flight"] == 4
    assert seen[-1]["pid"] == running.pid
    assert (ran.rc, last["state"], last["stop_reason"], last["pages"]) == (0, "finished", "finished", 11)
    assert sorted(each.name for each in running.folder.iterdir() if "status" in each.name) == [path.name]


def test_status_file_that_cannot_be_written_is_told_once(run_cli: Command, site: MakeSite, gate: MakeGate) -> None:
    """The place is taken by a folder: one note, and the crawl ends well."""
    door = gate()
    ground = held_site(site, door)
    folder = run_cli.folder / "taken"
    (folder / "sitemap.json.status.json").mkdir(parents=True)
    running = run_cli.start(ground.url(), "--status", folder=folder)
    door.wait_for_arrivals(4)
    assert not running.has_ended_within(2.2)  # it is tried again each second
    door.open()
    ran = running.wait()

    assert ran.rc == 0
    assert ran.err.count("cannot write") == 1
    assert "the crawl goes on" in ran.err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_disk_is_told_once_and_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written goes to a device that is always full."""
    real = os.open
    monkeypatch.setattr(
        "crawlr.watching.os.open",
        lambda path, *rest: real("/dev/full", os.O_WRONLY) if str(path).endswith(".part") else real(path, *rest),
    )
    told: list[str] = []
    with Watch(CrawlStatus, tell=told.append) as watch:
        watch.write_to(str(tmp_path / "map.json.status.json"))

    assert len(told) == 1
    assert "No space left" in told[0]
    assert list(tmp_path.iterdir()) == []


def test_status_of_a_library_call_is_written_too(tmp_path: Path) -> None:
    """status=True is an option like the others, and the mode of the file is that of any new file."""
    out = tmp_path / "map.json"
    fake = FakeWeb({"http://web.test/": Page()})
    crawlr.crawl("http://web.test/", fetcher=fake, parse_procs=1, rps=0, out=str(out), status=True).close()
    path = tmp_path / "map.json.status.json"
    mask = os.umask(0)
    os.umask(mask)

    assert json.loads(path.read_text(encoding="utf-8"))["state"] == "finished"
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


def test_second_crawl_of_one_state_leaves_the_status_of_the_first_alone(
    run_cli: Command, site: MakeSite, gate: MakeGate
) -> None:
    """It is refused, and was never a crawl that could be looked at."""
    door = gate()
    ground = held_site(site, door)
    first = run_cli.start(ground.url(), "--status")
    path = first.folder / "sitemap.json.status.json"
    waits_for(first, path.exists)
    second = run_cli(ground.url(), "--status", rc=2, folder=first.folder)
    found = json.loads(path.read_text(encoding="utf-8"))
    door.open()
    first.wait()

    assert "in use" in second.err
    assert found["pid"] == first.pid
    assert found["state"] == "running"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"out": "-"}, "--status: it is written beside an output that is a file; accepted with --out FILE"),
        ({"out": None}, "--status: it is written beside"),
        ({"out": "x.json", "stats": "x.json.status.json"}, "--stats: 'x.json.status.json' is where --status goes"),
    ],
    ids=["stdout", "nothing", "stats"],
)
def test_place_of_the_status_has_to_be_its_own(options: dict[str, Any], said: str) -> None:
    """Beside a file, and no other output there."""
    with pytest.raises(OptionsError, match=said):
        Options.make("http://web.test", status=True, **options)


def test_document_names_its_seconds() -> None:
    """What is a time says so, as in the other files."""
    host = HostStatus(host="a", waiting=1, in_flight=0, next_in=0.5, requests=3, interval=0.2)
    found = document(CrawlStatus(elapsed=1.23456, hosts=(host,), hosts_active=1))

    assert found["elapsed_s"] == 1.235
    assert found["hosts"] == [
        {"host": "a", "waiting": 1, "in_flight": 0, "requests": 3, "next_in_s": 0.5, "interval_s": 0.2}
    ]


def test_interrupted_crawl_says_so_in_its_last_status(run_cli: Command, site: MakeSite, gate: MakeGate) -> None:
    """Ctrl-C is an end like others."""
    door = gate()
    ground = held_site(site, door)
    running = run_cli.start(ground.url(), "--status")
    door.wait_for_arrivals(4)
    running.signal(signal.SIGINT)
    ran = running.wait()
    door.open()
    last = json.loads((running.folder / "sitemap.json.status.json").read_text(encoding="utf-8"))

    assert ran.rc == 130
    assert (last["state"], last["stop_reason"], last["in_flight"]) == ("finished", "interrupted", 0)
    assert not psutil.pid_exists(running.pid)
