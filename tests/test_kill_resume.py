"""A crawl that dies at any moment goes on where it was: nothing lost, nothing finished asked for again."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.conftest import Command
from tests.gates import Gate
from tests.killing import Campaign, differences, kill_for_rounds, read_state
from tests.running import Running
from tests.servers.graph import GraphServer, Kind, Node, oracle, plan
from tests.servers.local import Reply, Site, page

SEED = 20260131


def assert_clean(campaigns: list[Campaign]) -> None:
    found = [line for campaign in campaigns for line in campaign.violations]
    assert not found, f"{len(found)} violations: {found[:10]}"


# ---------------------------------------------------------------- the harness can fail


NODES = [
    Node(number=0, kind=Kind.PAGE, links=[1, 2]),
    Node(number=1, kind=Kind.REDIRECT, to=3, status=302),
    Node(number=2, kind=Kind.MISSING, status=404),
    Node(number=3, kind=Kind.PAGE, links=[0]),
]
SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE urls (id INTEGER PRIMARY KEY, url TEXT, depth INTEGER, parent INTEGER, root INTEGER);
CREATE TABLE pages (id INTEGER PRIMARY KEY, status INTEGER, outcome TEXT, targets BLOB, redirect_to INTEGER);
CREATE TABLE skipped (id INTEGER PRIMARY KEY, reason TEXT, error TEXT);
INSERT INTO urls VALUES (0,'http://h/',0,NULL,0), (1,'http://h/p/1',1,0,0), (2,'http://h/p/2',1,0,0), (3,'http://h/p/3',1,1,0);
INSERT INTO pages VALUES (1, 302, 'redirect', NULL, 3), (2, 404, 'http_error', NULL, NULL);
"""

SPOILS = [
    ("", []),
    ("DELETE FROM urls WHERE id=2", ["page 2 is None, which is not of the graph"]),
    ("DELETE FROM urls WHERE id=2", ["/ is finished and its link /p/2 is not known"]),
    ("UPDATE pages SET status=200 WHERE id=2", ["/p/2 is recorded with 200, it is 404"]),
    ("UPDATE pages SET outcome='truncated' WHERE id=0", ["/ is recorded as truncated"]),
    ("UPDATE pages SET redirect_to=9 WHERE id=1", ["/p/1 leads to id 9, which is unknown"]),
    ("UPDATE urls SET parent=9 WHERE id=1", ["parent or root of /p/1 is unknown"]),
    ("INSERT INTO skipped VALUES (2, 'trap', NULL)", ["/p/2 is a page and skipped"]),
]  # fmt: skip


@pytest.mark.parametrize(("spoil", "expected"), SPOILS, ids=[row[0] or "nothing" for row in SPOILS])
def test_a_state_file_is_checked_against_the_graph(tmp_path: Path, spoil: str, expected: list[str]) -> None:
    """A state that lost a link, a row or the truth is found out, a good one is not blamed."""
    path = tmp_path / "state.crawl"
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(SCHEMA)
        db.execute("INSERT INTO pages VALUES (0, 200, 'ok', ?, NULL)", (array("I", [1, 2]).tobytes(),))
        db.execute(spoil)
        db.commit()

    found = read_state(path, origin="http://h", nodes=NODES).found
    assert set(expected) <= set(found)
    assert bool(expected) == bool(found)


def test_a_missing_and_an_empty_state_are_empty(tmp_path: Path) -> None:
    """Before the first commit there is nothing to resume."""
    empty = tmp_path / "empty.crawl"
    empty.touch()

    assert read_state(empty, origin="http://h", nodes=NODES).is_empty
    assert read_state(tmp_path / "none.crawl", origin="http://h", nodes=NODES).is_empty


# ---------------------------------------------------------------- kill -9


def test_five_kills_at_random_moments_lose_nothing(tmp_path: Path) -> None:
    """kill -9 of the main process or its group, uniform over the length of the run, five times."""
    campaigns = kill_for_rounds(tmp_path, rounds=5, seed=SEED, size=400)

    assert_clean(campaigns)
    assert sum(len(campaign.deaths) for campaign in campaigns) == 5


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_three_hundred_kills_at_random_moments_lose_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """300 clean kills bound the chance of a loss a kill below 1 % at 95 % confidence."""
    campaigns = kill_for_rounds(tmp_path, rounds=300, seed=SEED + 1000, size=600)
    with capsys.disabled():
        for campaign in campaigns:
            print(campaign.summary())  # noqa: T201  # the summary is the point of the long run

    assert_clean(campaigns)


PLACES = [
    "after_answer:1",
    "after_answer:60",
    "before_commit:1",
    "inside_commit:1",
    "inside_commit:2",
    "during_export:1",
    "during_schema:1",
]
FAR_PLACES = [f"{name}:{number}" for name in ("after_answer", "before_commit", "inside_commit") for number in (2, 5, 7)]


@pytest.mark.parametrize("place", PLACES)
def test_a_death_at_the_worst_place_loses_nothing(tmp_path: Path, place: str) -> None:
    """The process dies at an exact place of the program, and the next run completes the crawl."""
    with Campaign(tmp_path / "campaign", seed=SEED, size=150, depth=6) as campaign:
        has_died = campaign.die_at(place)
        campaign.finish()

    assert has_died, f"{place} was never reached"
    assert_clean([campaign])


@pytest.mark.long
@pytest.mark.parametrize("place", FAR_PLACES)
def test_a_death_at_a_late_commit_loses_nothing(tmp_path: Path, place: str) -> None:
    """The same, later in a longer crawl."""
    with Campaign(tmp_path / "campaign", seed=SEED, size=1500) as campaign:
        has_died = campaign.die_at(place)
        campaign.finish()

    assert has_died, f"{place} was never reached"
    assert_clean([campaign])


def test_a_death_while_resuming_loses_nothing(tmp_path: Path) -> None:
    """The run that goes on dies in its own first transaction, and the third completes the crawl."""
    with Campaign(tmp_path / "campaign", seed=SEED, size=150) as campaign:
        has_died = campaign.die_at("before_commit:2"), campaign.die_at("during_resume:1")
        campaign.finish()

    assert has_died == (True, True)
    assert_clean([campaign])


def test_dying_at_every_commit_still_comes_to_an_end(tmp_path: Path) -> None:
    """A run that always dies at its third commit makes progress each time."""
    with Campaign(tmp_path / "campaign", seed=SEED + 1, size=150) as campaign:
        for _ in range(30):
            if not campaign.die_at("inside_commit:3"):
                break
        campaign.finish()

    assert len(campaign.deaths) < 30
    assert_clean([campaign])


def test_an_old_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    """A death between the temporary file and its rename leaves the sitemap.json of an earlier crawl as it was."""
    with Campaign(tmp_path / "campaign", seed=SEED, size=40) as campaign:
        campaign.finish()
        old = campaign.out.read_bytes()
        campaign.is_finished = False
        has_died = campaign.die_at("during_export:1")
        after_death = campaign.out.read_bytes()

    assert has_died
    assert old == after_death


# ---------------------------------------------------------------- other ways to be disturbed


@pytest.fixture
def ground() -> Iterator[GraphServer]:
    """A graph served in this process, so that a test can wait for requests."""
    server = GraphServer(plan(SEED, 400))
    yield server
    server.close()


def start(run_cli: Command, server: GraphServer, *args: str, folder: Path) -> Running:
    folder.mkdir(exist_ok=True)
    options = ["--concurrency", "8", "--parse-procs", "2", "--retries", "1"]
    return run_cli.start(*options, *args, server.origin() + "/", folder=folder)


def test_parser_processes_killed_in_the_middle_cost_nothing(
    run_cli: Command, ground: GraphServer, tmp_path: Path
) -> None:
    """Every parser is killed twice; the crawl ends by itself and is whole."""
    running = start(run_cli, ground, folder=tmp_path / "run")
    killed = 0
    for moment in (60, 200):
        ground.wait_for_requests(moment)
        for parser in running.parsers():
            with contextlib.suppress(psutil.Error):
                parser.kill()
                killed += 1
    ran = running.wait()

    assert killed >= 2
    assert ran.rc == 0, ran.err
    assert ran.left == ()
    assert differences(ran.site_map, oracle(SEED, 400)) == []


@pytest.mark.parametrize(
    ("number", "rc", "group"), [(signal.SIGTERM, 143, False), (signal.SIGTERM, 143, True), (signal.SIGINT, 130, True)]
)
def test_a_crawl_that_is_told_to_stop_flushes_and_goes_on_later(
    run_cli: Command, ground: GraphServer, tmp_path: Path, number: signal.Signals, rc: int, group: bool
) -> None:
    """SIGTERM or Ctrl-C: a whole partial sitemap.json, the right exit status, and --resume completes the crawl."""
    folder = tmp_path / "run"
    running = start(run_cli, ground, folder=folder)
    ground.wait_for_requests(120)
    (running.signal_group if group else running.signal)(number)
    stopped = running.wait(10)
    finished_paths = set(stopped.site_map.pages)
    before = len(ground.requests)
    ran = start(run_cli, ground, "--resume", folder=folder).wait()

    assert (stopped.rc, ran.rc) == (rc, 0), stopped.err + ran.err
    assert stopped.left == ()
    assert (stopped.site_map["stop_reason"], stopped.site_map["complete"]) == ("interrupted", False)
    assert {request.path for request in ground.requests[before:]} & finished_paths == set()
    assert differences(ran.site_map, oracle(SEED, 400)) == []
    assert sorted(path.name for path in folder.iterdir() if "sitemap" in path.name) == ["sitemap.json"]


@pytest.mark.long
def test_a_stopped_process_goes_on_when_it_is_continued(run_cli: Command, ground: GraphServer, tmp_path: Path) -> None:
    """SIGSTOP for five seconds, as a suspended laptop: time-outs of pages in flight are retried, the crawl is whole."""
    running = start(run_cli, ground, folder=tmp_path / "run")
    ground.wait_for_requests(120)
    running.signal_group(signal.SIGSTOP)
    assert not running.has_ended_within(5.0)
    running.signal_group(signal.SIGCONT)
    ran = running.wait()

    assert ran.rc == 0, ran.err
    assert differences(ran.site_map, oracle(SEED, 400)) == []


def test_two_crawls_cannot_share_a_state_file(run_cli: Command, tmp_path: Path) -> None:
    """The second one says so and exits 2; the first one does not notice."""
    door = Gate(limit=60)
    ground = Site({"/": page("/held"), "/held": Reply(body='<a href="/last">x</a>', gate=door)}, default=page())
    try:
        folder = tmp_path / "run"
        folder.mkdir()
        first = run_cli.start(ground.url(), folder=folder)
        door.wait_for_arrivals(1)
        out = ["--out", str(folder / "sitemap.json")]
        refused = [run_cli(*out, *more, ground.url(), out=None, rc=2) for more in ([], ["--resume"])]
        door.open()
        ran = first.wait()
    finally:
        door.open()
        ground.close()

    assert all("sitemap.json.crawl" in other.err for other in refused)
    assert ran.rc == 0
    assert set(ran.site_map.pages) == {"/", "/held", "/last"}
    assert ground.targets().count("/held") == 1


REFUSALS: list[tuple[str, Callable[[Path], object]]] = [
    ("junk", lambda path: path.write_bytes(b"this is no database" * 100)),
    ("cut", lambda path: path.write_bytes(path.read_bytes()[:-100])),
    ("another program's", lambda path: _other_database(path)),
    ("a later version", lambda path: _bump(path)),
]


@pytest.mark.parametrize(("name", "spoil"), REFUSALS, ids=[name for name, _ in REFUSALS])
def test_a_state_file_that_cannot_be_used_is_refused_and_kept(
    run_cli: Command, ground: GraphServer, tmp_path: Path, name: str, spoil: Callable[[Path], object]
) -> None:
    """Junk, cut off, foreign or of another version: exit 2, one line that names the file, and the file stays."""
    folder = tmp_path / "run"
    running = start(run_cli, ground, folder=folder)
    ground.wait_for_requests(120)
    running.signal(signal.SIGTERM)
    running.wait(10)
    state = folder / "sitemap.json.crawl"
    spoil(state)
    kept = state.read_bytes()
    ran = start(run_cli, ground, "--resume", folder=folder).wait()

    assert ran.rc == 2, ran.err
    assert "sitemap.json.crawl" in ran.err
    assert "Traceback" not in ran.err
    assert len(ran.err.strip().splitlines()) <= 3
    assert kept == state.read_bytes()


def _other_database(path: Path) -> None:
    path.unlink()
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript("PRAGMA application_id=77; CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)")


def _bump(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version=999")
