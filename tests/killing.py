"""Kill-and-resume: a crawl of a random graph, killed again and again, with every promise checked after each death.

From: a seed. To: a Campaign whose `violations` stay empty, and a summary in numbers. The graph server runs in a process
of its own, so its log of hits survives each kill; the state file is looked at in a copy, never opened in its place.

What is checked after each kill, beside the state's own consistency:
- nothing that was finished is ever requested again;
- finished and known URLs never become fewer, and every link of a finished page is known;
- what is requested anew is at most what was in flight or not yet parsed, plus one commit group;
- sitemap.json is whole or not there, and no process is left.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import signal
import sqlite3
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import psutil

from tests import leaks
from tests.contract import SiteMap, violations
from tests.running import Ran, Running, problems
from tests.servers.graph import HAS_LINKS, Expected, Kind, Node, oracle, plan
from tests.servers.process import ServerProcess

COMMIT_GROUP = 64
RETRIES = 1
RUN_LIMIT = 90.0
ORPHAN_LIMIT = 3.0
"""Seconds after the death of the main process within which all others have ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What a state file says, by path. `found` is what is wrong with it."""

    known: frozenset[str] = frozenset()
    pages: frozenset[str] = frozenset()
    skipped: frozenset[str] = frozenset()
    found: tuple[str, ...] = ()
    is_empty: bool = True
    """Nothing was ever committed."""

    @property
    def done(self) -> frozenset[str]:
        return self.pages | self.skipped


def read_state(path: Path, *, origin: str, nodes: Sequence[Node]) -> State:
    """The content of a state file (a copy: it is opened for real), checked against itself and against the graph."""
    if not path.exists():
        return State()
    with contextlib.closing(sqlite3.connect(path)) as db:
        integrity = [row[0] for row in db.execute("PRAGMA integrity_check")]
        if integrity != ["ok"]:
            return State(found=tuple(f"integrity: {line}" for line in integrity), is_empty=False)
        if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            return State()
        urls = {number: str(url).removeprefix(origin) for number, url in db.execute("SELECT id, url FROM urls")}
        pages = list(db.execute("SELECT id, status, outcome, targets, redirect_to FROM pages"))
        skipped = [number for (number,) in db.execute("SELECT id FROM skipped")]
        parents = list(db.execute("SELECT id, parent, root FROM urls"))
    by_path = {node.path: node for node in nodes}
    found = [f"{urls[number]} twice" for number, count in Counter(urls.values()).items() if count > 1]
    found += [f"parent or root of {urls[n]} is unknown" for n, p, r in parents if (p or n) not in urls or r not in urls]
    found += [f"skipped {number} is unknown" for number in skipped if number not in urls]
    found += [f"{urls[number]} is a page and skipped" for number in {row[0] for row in pages} & set(skipped)]
    known = set(urls.values())
    for number, status, outcome, targets, redirect_to in pages:
        path_of_page = urls.get(number)
        node = by_path.get(path_of_page or "")
        if path_of_page is None or node is None:
            found.append(f"page {number} is {path_of_page}, which is not of the graph")
            continue
        found += _page(node, nodes, status=status, outcome=outcome, known=known)
        led_to = [*array("I", targets or b""), *([redirect_to] if redirect_to is not None else [])]
        found += [f"{path_of_page} leads to id {target}, which is unknown" for target in led_to if target not in urls]
    return State(
        known=frozenset(known),
        pages=frozenset(urls.get(row[0], f"id {row[0]}") for row in pages),
        skipped=frozenset(urls.get(number, f"id {number}") for number in skipped),
        found=tuple(found),
        is_empty=False,
    )


def _page(node: Node, nodes: Sequence[Node], *, status: int, outcome: str, known: set[str]) -> list[str]:
    """What is wrong with the record of one finished page, and which of the URLs that it leads to are missing."""
    wrong = [] if status == node.status else [f"{node.path} is recorded with {status}, it is {node.status}"]
    if node.kind in HAS_LINKS:
        if outcome != "ok":
            wrong.append(f"{node.path} is recorded as {outcome}")
        wrong += [
            f"{node.path} is finished and its link {nodes[target].path} is not known"
            for target in node.links
            if nodes[target].path not in known
        ]
    elif node.kind is Kind.REDIRECT and node.to is not None and nodes[node.to].path not in known:
        wrong.append(f"{node.path} is finished and its target {nodes[node.to].path} is not known")
    return wrong


@dataclass(slots=True)
class Death:
    """One kill: when in the log it was, what was finished then, and what had been asked for in vain."""

    how: str
    position: int
    done: frozenset[str]
    in_vain: frozenset[str]
    """Requested in the run that died, and not finished: what a resume asks for again."""


@dataclass(slots=True)
class Campaign:
    """One crawl that dies many times. Use it in a `with` block."""

    folder: Path
    seed: int
    size: int
    depth: int | None = None
    concurrency: int = 8
    procs: int = 2
    deaths: list[Death] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    is_finished: bool = False
    nodes: list[Node] = field(init=False)
    expected: Expected = field(init=False)
    server: ServerProcess = field(init=False)
    _state: State = field(default_factory=State)

    def __post_init__(self) -> None:
        self.nodes = plan(self.seed, self.size)
        self.expected = oracle(self.seed, self.size, depth=self.depth)

    def __enter__(self) -> Self:
        (self.folder / "out").mkdir(parents=True)
        self.server = self._serve("hits.jsonl")
        return self

    def __exit__(self, *_: object) -> None:
        self.server.close()

    @property
    def out(self) -> Path:
        return self.folder / "out" / "sitemap.json"

    @property
    def state_path(self) -> Path:
        return self.folder / "out" / "sitemap.json.crawl"

    @property
    def bound(self) -> int:
        """Requests that one death may cost: in flight and not yet parsed (as the program limits them), and a group."""
        return 2 * self.concurrency + 64 * self.procs + COMMIT_GROUP

    def measure(self) -> float:
        """Seconds of the same crawl when nobody disturbs it, on a server and in a folder of its own."""
        server = self._serve("measured.jsonl")
        try:
            out = self.folder / "measured.json"
            with Running(*self._arguments(server, out), folder=self._run_folder("measured"), out=out) as running:
                ran = running.wait(RUN_LIMIT)
        finally:
            server.close()
        self._blame("the undisturbed run", problems(ran))
        self._blame("the undisturbed run", differences(ran.site_map, self.expected))
        return ran.seconds

    def start(self, *extra: str, failpoint: str | None = None) -> Running:
        """Start the crawl, or go on with it when there is something to go on with."""
        resume = [] if self._state.is_empty else ["--resume"]
        env = {"CRAWLR_FAILPOINT": failpoint} if failpoint else {}
        folder = self._run_folder(f"run-{len(self.deaths)}")
        arguments = self._arguments(self.server, self.out)
        return Running(*arguments, *resume, *extra, folder=folder, out=self.out, env=env)

    def kill_at(self, moment: float, *, group: bool = False) -> None:
        """Let the crawl run for that many seconds and kill it; when it ends before, the campaign is finished."""
        with self.start() as running:
            if running.has_ended_within(moment):
                self._end(running.wait(1.0))
                return
            with contextlib.suppress(ProcessLookupError):
                (running.signal_group if group else running.signal)(signal.SIGKILL)
            self.note_death(running, f"{'group' if group else 'main'} at {moment:.2f} s")

    def die_at(self, failpoint: str) -> bool:
        """Run into that failpoint; False when the crawl ended without reaching it."""
        with self.start(failpoint=failpoint) as running:
            assert running.has_ended_within(RUN_LIMIT), f"{failpoint}: did not end"
            if running.process.returncode != -signal.SIGKILL:
                self._end(running.wait(1.0))
                return False
            self.note_death(running, failpoint)
        return True

    def finish(self) -> None:
        """Run to the end and compare with the oracle."""
        if not self.is_finished:
            with self.start() as running:
                self._end(running.wait(RUN_LIMIT))

    def note_death(self, running: Running, how: str) -> None:
        """Check every promise at this death; the main process has been killed or has died."""
        running.process.wait(10)
        _, orphans = psutil.wait_procs(running.members(), timeout=ORPHAN_LIMIT)
        self._blame(how, [f"process left: {orphan}" for orphan in orphans])
        if self._is_complete():
            # killed after its last act: the file is whole, the state is gone, only the exit was missing
            self.deaths.append(Death(how=how, position=self.server.position(), done=frozenset(), in_vain=frozenset()))
            self._conclude(SiteMap.read(self.out))
            leaks.clear_semaphores()
            return
        state = read_state(self._copy_state(), origin=self.server.url(""), nodes=self.nodes)
        self._blame(how, state.found)
        self._blame(how, [f"{path} was finished and is not any more" for path in self._state.done - state.done])
        self._blame(how, [f"{path} was known and is not any more" for path in self._state.known - state.known])
        self._blame(how, self._repeated())
        since = self.deaths[-1].position if self.deaths else 0
        in_vain = frozenset(self.server.targets(since)) - state.done
        repeats = sum(self._tries(path) == 1 for path in in_vain)  # what waits for a retry is asked again anyway
        if repeats > self.bound:
            self._blame(how, [f"{repeats} requests were in vain, at most {self.bound} may be"])
        if self.out.exists():
            self._blame(how, violations(SiteMap.read(self.out)))
        self.deaths.append(Death(how=how, position=self.server.position(), done=state.done, in_vain=in_vain))
        self._state = state
        leaks.clear_semaphores()

    @property
    def refetches(self) -> int:
        """Requests beyond the first of each URL that no retry explains."""
        counts = Counter(self.server.targets())
        return sum(count - 1 for path, count in counts.items() if self._tries(path) == 1)

    def summary(self) -> str:
        first = f": {self.violations[0][:300]}" if self.violations else ""
        worst = max((len(death.in_vain) for death in self.deaths), default=0)
        return (
            f"seed={self.seed} pages={len(self.expected.pages)} kills={len(self.deaths)} refetches={self.refetches} "
            f"(worst kill {worst}, bound {self.bound} a kill) violations={len(self.violations)}{first}"
        )

    def _is_complete(self) -> bool:
        return not self.state_path.exists() and self.out.exists() and SiteMap.read(self.out)["complete"] is True

    def _end(self, ran: Ran) -> None:
        self._blame("the last run", problems(ran))
        if ran.rc != 0 or ran.map is None:
            self.is_finished = True
            self._blame("the last run", [f"exit status {ran.rc}, stderr: {ran.err[-1500:]}"])
        else:
            self._conclude(ran.map)

    def _conclude(self, site_map: SiteMap) -> None:
        """The crawl is complete: compare it with the oracle, and its requests with what the deaths explain."""
        self.is_finished = True
        self._blame("the end", violations(site_map))
        self._blame("the end", differences(site_map, self.expected))
        self._blame("the end", self._repeated())
        for path, count in Counter(self.server.targets()).items():
            allowed = self._tries(path) * (1 + sum(path in death.in_vain for death in self.deaths))
            if count > allowed:
                self._blame("the end", [f"{path} was requested {count} times, at most {allowed} are explained"])
        left = sorted(path.name for path in self.out.parent.iterdir() if path != self.out)
        self._blame("the end", [f"left beside the output: {left}"] if left else [])

    def _tries(self, path: str) -> int:
        """Requests of one URL in one undisturbed crawl."""
        kinds = {node.path: node.kind for node in self.nodes}
        return {Kind.FLAKY: 2, Kind.BROKEN: 1 + RETRIES}.get(kinds.get(path, Kind.PAGE), 1)

    def _repeated(self) -> list[str]:
        """The strong promise: what was finished at a death is not requested after it."""
        return [
            f"{path}, finished at kill {number} ({death.how}), was requested again"
            for number, death in enumerate(self.deaths)
            for path in set(self.server.targets(death.position)) & death.done
        ]

    def _blame(self, where: str, found: Sequence[str]) -> None:
        self.violations += [f"{where}: {line}" for line in found]

    def _copy_state(self) -> Path:
        copy = self.folder / f"copy-{len(self.deaths)}" / self.state_path.name
        copy.parent.mkdir()
        for suffix in ("", "-wal", "-journal"):
            source = self.state_path.with_name(self.state_path.name + suffix)
            if source.exists():
                shutil.copyfile(source, copy.with_name(copy.name + suffix))
        return copy

    def _serve(self, log: str) -> ServerProcess:
        return ServerProcess("graph", "--seed", str(self.seed), "--size", str(self.size), log=self.folder / log)

    def _arguments(self, server: ServerProcess, out: Path) -> list[str]:
        depth = [] if self.depth is None else ["--depth", str(self.depth)]
        numbers = ["--concurrency", str(self.concurrency), "--parse-procs", str(self.procs), "--retries", str(RETRIES)]
        return [*numbers, *depth, "--rps", "0", "--out", str(out), server.url("/")]

    def _run_folder(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        return folder


def differences(site_map: SiteMap, expected: Expected) -> list[str]:
    """Everything in which a finished map is not what the oracle expects."""
    pages = {path: (row["status"], row["outcome"], row["depth"], row["links"]) for path, row in site_map.pages.items()}
    found = [f"{path} is missing, expected {row}" for path, row in expected.pages.items() if path not in pages]
    found += [
        f"{path} is {row}, expected {expected.pages.get(path)}"
        for path, row in pages.items()
        if row != expected.pages.get(path)
    ]
    found += [f"edge {edge} is missing" for edge in expected.edges - site_map.edges]
    found += [f"edge {edge} is too much" for edge in site_map.edges - expected.edges]
    for name, rows in (("skipped", expected.skipped), ("unvisited", expected.unvisited)):
        got = {site_map.path(row["url"]): (row["reason"], row["depth"]) for row in site_map[name]}
        if got != rows:
            found.append(f"{name} differ: {sorted(set(got.items()) ^ set(rows.items()))[:10]}")
    return found


def kill_for_rounds(folder: Path, *, rounds: int, seed: int, size: int, depth: int | None = None) -> list[Campaign]:
    """Campaign after campaign until so many kills are dealt, each at a moment uniform over the measured length."""
    dice = random.Random(seed)
    campaigns: list[Campaign] = []
    kills = 0
    while kills < rounds:
        number = len(campaigns)
        with Campaign(folder / f"campaign-{number}", seed=seed + number, size=size, depth=depth) as campaign:
            campaigns.append(campaign)
            length = campaign.measure()
            while not campaign.is_finished and kills < rounds:
                before = len(campaign.deaths)
                campaign.kill_at(dice.uniform(0.0, length), group=dice.random() < 0.25)
                kills += len(campaign.deaths) - before
            campaign.finish()
            print(campaign.summary())  # noqa: T201  # shown by pytest when the test fails, or with -s
    return campaigns
