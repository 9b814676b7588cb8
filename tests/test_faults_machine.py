"""What documents and the machine itself do to a crawl, row by row (tests/README.md).

Black box, as test_faults.py.
"""

from __future__ import annotations

import ast
import json
import re
import resource
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.conftest import Command
from tests.running import ROOT
from tests.servers.local import Once, Reply, Site, page
from tests.servers.wire import Request, Wire

MakeSite = Callable[..., Site]


# ---------------------------------------------------------------- documents that hurt


def test_a_parser_over_its_memory_is_recorded_and_the_rest_is_whole(run_cli: Command, site: MakeSite) -> None:
    """A page that needs more than --parse-memory is parse_memory; the pages around it are parsed."""
    monster = "".join(f"<b{n} c{n}=d>" for n in range(600_000))
    ground = site({"/": page("/a", "/monster", "/b"), "/monster": Reply(body=monster)}, default=page("/c"))
    options = ["--parse-memory", "128MiB", "--parse-procs", "1", "--parse-timeout", "20s"]
    ran = run_cli(*options, ground.url(), limit=60)

    assert ran.site_map.outcome("/monster") in ("parse_memory", "parse_truncated", "ok")
    assert {ran.site_map.outcome(path) for path in ("/", "/a", "/b", "/c")} == {"ok"}


FAMILIES = {
    "open tags": "<a href=/x>" * 200_000,
    "unclosed comment": "<!--" * 200_000,
    "attributes": "<a " + "b=c " * 300_000 + ">",
    "tables": "<table>" * 100_000 + "<a href=/x>",
    "formatting": "<b><i><u><a>" * 60_000,
    "entities": "&amp" * 300_000,
    "half tags": "<" * 500_000,
    "scripts": "<script>" * 100_000,
    "quotes": "<a href='" * 150_000,
}


def test_pathological_markup_is_read_in_time(run_cli: Command, site: MakeSite) -> None:
    """Families of markup that made parsers quadratic: each is done or given up in time, and the crawl is whole."""
    routes = {f"/{n}": Reply(body=text) for n, text in enumerate(FAMILIES.values())}
    ground = site({"/": page(*routes, "/last")} | routes, default=page())
    ran = run_cli("--parse-timeout", "3s", "--parse-procs", "2", ground.url(), limit=60)
    outcomes = {ran.site_map.outcome(path) for path in routes}

    assert outcomes <= {"ok", "parse_truncated", "parse_timeout"}
    assert ran.site_map.outcome("/last") == "ok"


# ---------------------------------------------------------------- the machine


def test_a_full_disk_is_said_and_nothing_committed_is_lost(run_cli: Command, site: MakeSite, tmp_path: Path) -> None:
    """The state file may not grow: exit 1 and one message that says how to go on; --resume then completes the crawl."""
    links = [f"/{n}?{'q' * 300}" for n in range(3_000)]
    ground = site({"/": page(*links)}, default=page(title="t" * 900))
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "sitemap.json").write_text("old")
    limits = {resource.RLIMIT_FSIZE: 1_500_000}
    arguments = ["--max-pages", "1000", "--out", str(folder / "sitemap.json"), ground.url()]
    ended = run_cli.start(*arguments, folder=folder, limits=limits, out=None).wait(60)

    assert ended.rc == 1, ended.err
    assert "Traceback" not in ended.err
    assert "sitemap.json.crawl" in ended.err
    assert "--resume" in ended.err
    written = (folder / "sitemap.json").read_text()
    assert written == "old" or json.loads(written)["stop_reason"] == "error"
    ran = run_cli("--max-pages", "1000", "--resume", ground.url(), folder=folder)
    assert len(ran.site_map["pages"]) == 1000


def test_a_full_disk_behind_stdout_is_a_fault_of_the_machine(run_cli: Command, site: MakeSite) -> None:
    """`crawlr --out - > /dev/full` exits 1 with a message."""
    ground = site({"/": page(*(f"/{n}" for n in range(200)))}, default=page())
    with Path("/dev/full").open("wb") as full:
        ran = run_cli("--out", "-", ground.url(), out=None, stdout=full.fileno(), rc=1)

    assert ran.err.endswith("crawlr: cannot write standard output: No space left on device\n")
    assert "Traceback" not in ran.err


def test_a_reader_that_goes_away_changes_nothing(run_cli: Command, site: MakeSite) -> None:
    """`crawlr ... | head -1`: no BrokenPipeError, the exit status and the file are as always."""
    ground = site({"/": page(*(f"/{n}" for n in range(100)))}, default=page())
    reader, writer = socket.socketpair()
    with writer:
        running = run_cli.start(ground.url(), stdout=writer.fileno())
    reader.recv(10)
    reader.close()
    ran = running.wait()

    assert ran.rc == 0
    assert len(ran.site_map["pages"]) == 101
    assert not re.search("BrokenPipe|Traceback", ran.err)


def test_orphans_do_not_hold_a_pipe_open(run_cli: Command, site: MakeSite) -> None:
    """After a kill -9 of the main process, `crawlr | tee` ends: whoever reads the pipe sees its end within seconds."""
    ground = site({"/": page(*(f"/{n}" for n in range(200)))}, default=Reply(body="x", delay=0.05))
    running = run_cli.start("--parse-procs", "2", ground.url(), stdout_pipe=True)
    ground.wait_for_requests(30)
    running.signal(signal.SIGKILL)
    running.process.wait(5)
    has_ended = running.has_reader_ended_within(3.0)
    _, orphans = psutil.wait_procs(running.members(), timeout=3.0)

    assert has_ended
    assert orphans == []


_EXECUTED = frozenset(["pickle", "marshal", "shelve", "eval", "exec"])


def test_nothing_is_stored_that_would_be_executed_when_read_back() -> None:
    """No pickle, marshal or shelve on disk and no eval or exec: whoever can write the state file can run nothing.

    Left out are crawlr/parse, which pickles what it sends to its own child processes, and extract_rules, which tries
    whether a function of the caller can be sent there. Neither touches a disk.
    """
    found = []
    for path in (ROOT / "crawlr").rglob("*.py"):
        if path.parent.name == "parse" or path.name == "extract_rules.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [node.func.id] if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else []
            found += [f"{path.name}: {name}" for name in names if name in _EXECUTED]

    assert found == []


@pytest.mark.long
@pytest.mark.timeout(300)
def test_many_large_pages_do_not_pile_up_in_memory(run_cli: Command, site: MakeSite) -> None:
    """A fast server with 600 pages of 1 MB and one parser: memory stays near the byte budget."""
    text = "<p>some text\n" * 80_000
    ground = site({"/": page(*(f"/{n}" for n in range(600)))}, default=Reply(body=text))
    running = run_cli.start("--concurrency", "32", "--parse-procs", "1", ground.url())
    peak = running.peak_memory()
    ran = running.wait()

    assert len(ran.site_map["pages"]) == 601
    assert peak < 500 << 20


def test_a_page_that_fails_for_a_while_costs_only_itself(run_cli: Command, site: MakeSite) -> None:
    """Resets and empty answers are tried again with growing delays while the others go on."""

    def reset(request: Request, wire: Wire) -> None:
        wire.reset()

    failing = Once(Reply(status=502), page("/more"))
    ground = site({"/": page("/gone", "/late", "/a"), "/gone": reset, "/late": failing}, default=page())
    ran = run_cli("--retries", "1", ground.url())

    assert (ran.site_map.outcome("/gone"), ran.site_map.page("/gone")["attempts"]) == ("reset", 2)
    assert ran.site_map.outcome("/more") == "ok"
