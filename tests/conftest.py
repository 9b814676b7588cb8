"""Fixtures of the whole suite (site, clock, gate, crawl, run_cli, misbehaving) and the checks around every test."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests import leaks
from tests.contract import SiteMap, violations
from tests.gates import Gate
from tests.loopback import sitecustomize as guard
from tests.running import Ran, Running, problems
from tests.servers.local import Answer, Site
from tests.servers.process import ServerProcess

pytest_plugins = ["tests.alone"]

CRAWL_LIMIT = 60.0
for _name in [name for name in os.environ if name.startswith("CRAWLR_") and name != "CRAWLR_SHARED"]:
    del os.environ[_name]  # options of whoever runs the tests
os.environ["CRAWLR_TEST_RUN"] = leaks.RUN  # for the processes that tests start


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Iterator[None]:
    """Every test ends with the threads, processes and descriptors it began with, and has stayed on this machine."""
    before, refused = leaks.take(), len(guard.refused)
    yield
    left = leaks.since(before)
    assert not left, f"left behind: {left}"
    assert not guard.refused[refused:], f"reached beyond loopback: {guard.refused[refused:]}"


@pytest.fixture
def site() -> Iterator[Callable[..., Site]]:
    """Makes sites on loopback: site({"/": page("/a"), ...}). They are closed at the end of the test."""
    made: list[Site] = []

    def make(routes: Mapping[str, Answer] | None = None, **options: Any) -> Site:
        made.append(Site(routes or {}, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def gate() -> Iterator[Callable[..., Gate]]:
    """Makes gates. At the end all are opened, and a caller that waited longer than a gate's limit is a failure."""
    made: list[Gate] = []

    def make(**options: float) -> Gate:
        made.append(Gate(**options))
        return made[-1]

    yield make
    for each in made:
        each.open()
    overdue = sum(each.overdue for each in made)
    assert not overdue, f"{overdue} callers waited at a closed gate until its limit"


class Clock:
    """A monotonic clock that a test sets by hand; called, it gives seconds."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> float:
        assert seconds >= 0, "a monotonic clock never goes back"
        self.now += seconds
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@dataclass(slots=True)
class Crawled:
    """A finished crawl: what crawlr.crawl returned and the file it wrote."""

    result: Any
    map: SiteMap


@dataclass(slots=True)
class StartedCrawl:
    """A crawl in a thread of its own, for tests that act while it runs."""

    stop: threading.Event
    _thread: threading.Thread
    _box: list[Crawled | BaseException] = field(default_factory=list)

    def is_running(self) -> bool:
        return self._thread.is_alive()

    def join(self, seconds: float) -> None:
        """Wait that long for its end, and go on if it does not come."""
        self._thread.join(seconds)

    def wait(self, limit: float = CRAWL_LIMIT) -> Crawled:
        """The finished crawl; what it raised is raised here, and a crawl that does not end fails."""
        self._thread.join(limit)
        assert not self._thread.is_alive(), f"the crawl did not end within {limit} s"
        outcome = self._box[0]
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


class Crawl:
    """Runs crawlr.crawl with small options; `start` does so in a thread. Each file is checked against the format."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count()
        self.started: list[StartedCrawl] = []
        self.results: list[Any] = []

    def __call__(self, *seeds: str, **options: Any) -> Crawled:
        import crawlr

        out = Path(options.pop("out", self._folder / f"sitemap-{next(self._numbers)}.json"))
        defaults = {"rps": 0, "retries": 0, "concurrency": 4, "parse_procs": 1}
        result = crawlr.crawl(list(seeds), out=str(out), **(defaults | options))
        self.results.append(result)
        site_map = SiteMap.read(out)
        broken = violations(site_map)
        assert not broken, "sitemap.json breaks its format: " + "; ".join(broken[:10])
        return Crawled(result=result, map=site_map)

    def start(self, *seeds: str, **options: Any) -> StartedCrawl:
        stop = options.setdefault("stop", threading.Event())
        started = StartedCrawl(stop=stop, _thread=threading.Thread(name="crawl under test"))

        def run() -> None:
            try:
                started._box.append(self(*seeds, **options))
            except BaseException as error:  # raised again in the test's thread
                started._box.append(error)

        started._thread = threading.Thread(target=run, name="crawl under test", daemon=True)
        started._thread.start()
        self.started.append(started)
        return started


@pytest.fixture
def crawl(tmp_path: Path) -> Iterator[Crawl]:
    """crawl(url, depth=1) runs crawlr.crawl and gives result and map; crawl.start(...) runs it in a thread."""
    made = Crawl(tmp_path)
    yield made
    for each in made.started:
        each.stop.set()
        each._thread.join(CRAWL_LIMIT)
    for result in made.results:
        result.close()


class Command:
    """Runs `python -m crawlr`: `--rps 0` and `--out` in the test's folder are added unless they are given."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = itertools.count()
        self.running: list[Running] = []

    def start(
        self, *args: str, out: str | None = "sitemap.json", folder: Path | None = None, **options: Any
    ) -> Running:
        """The running program, for tests that act while it runs."""
        if folder is None:
            folder = self.folder / f"run-{next(self._numbers)}"
            folder.mkdir()
        given = [] if "--rps" in args or args[:1] in (("export",), ("demo",), ("why",), ("diff",)) else ["--rps", "0"]
        path = None
        if out is not None:
            path = folder / out
            given += ["--out", str(path)]
        self.running.append(Running(*given, *args, folder=folder, out=path, **options))
        return self.running[-1]

    def __call__(self, *args: str, rc: int | None = 0, limit: float = CRAWL_LIMIT, **options: Any) -> Ran:
        """The finished run; its exit status is `rc` (None: any), with no traceback, no process left, no bad file."""
        ran = self.start(*args, **options).wait(limit)
        wrong = problems(ran)
        assert not wrong, "; ".join(wrong[:10])
        assert rc is None or ran.rc == rc, f"exit status {ran.rc}, expected {rc}; stderr: {ran.err[-3000:]}"
        return ran


@pytest.fixture
def run_cli(tmp_path: Path) -> Iterator[Command]:
    """run_cli("--depth", "1", url) runs the command and gives rc, out, err and map; run_cli.start gives it running."""
    made = Command(tmp_path)
    yield made
    for each in made.running:
        each.__exit__()


@pytest.fixture(scope="session")
def misbehaving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """The server of tests/servers/misbehaving.py, one for the whole session: its log grows, take position() first."""
    server = ServerProcess("misbehaving", log=tmp_path_factory.mktemp("misbehaving") / "hits.jsonl")
    yield server
    server.close()
