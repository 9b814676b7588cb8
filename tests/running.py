"""`python -m crawlr` as a user starts it: a process in a session of its own, with limits, watched to its end."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from signal import Signals
from typing import Self

import psutil

from tests.contract import SiteMap, violations

ROOT = Path(__file__).resolve().parents[1]
GUARD = ROOT / "tests" / "loopback"
LEFT_LIMIT = 4.0
"""Seconds after the program's end within which every process of its session must have ended."""
_NOT_INHERITED = frozenset(["http_proxy", "https_proxy", "all_proxy", "no_proxy", "netrc", "github_actions"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One finished run. `map` is None when there is no output file."""

    rc: int
    out: str
    err: str
    map: SiteMap | None
    seconds: float
    left: tuple[str, ...]
    """Processes of its session that were still there some seconds after the end."""
    folder: Path
    """Where it ran."""

    @property
    def site_map(self) -> SiteMap:
        assert self.map is not None, f"no sitemap.json; exit status {self.rc}, stderr: {self.err[-2000:]}"
        return self.map


class Running:
    """A started program. `wait` gives the finished run; leaving the `with` block kills what is left of its session."""

    def __init__(
        self,
        *args: str,
        folder: Path,
        out: Path | None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        stdout: int | None = None,
        stdout_pipe: bool = False,
        module: Sequence[str] = ("-m", "crawlr"),
        limits: Mapping[int, int] | None = None,
    ) -> None:
        self.out = out
        self.folder = folder
        self.args = args
        self._stdout, self._stderr, self._refused = folder / "stdout.txt", folder / "stderr.txt", folder / "refused.txt"
        self._started = time.monotonic()
        self._pump: threading.Thread | None = None
        with self._stdout.open("wb") as stdout_file, self._stderr.open("wb") as stderr_file:
            self.process = subprocess.Popen(
                [*_limited(limits or {}), sys.executable, *module, *args],
                stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
                stdout=subprocess.PIPE if stdout_pipe else stdout if stdout is not None else stdout_file,
                stderr=stderr_file,
                cwd=folder,
                env=self._environment(env or {}),
                start_new_session=True,
            )
        if stdout_pipe:
            self._pump = threading.Thread(target=self._drain, name="reader of a pipe", daemon=True)
            self._pump.start()
        if stdin is not None:
            assert self.process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.write(stdin)
            self.process.stdin.close()

    @property
    def pid(self) -> int:
        return self.process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members():
            with contextlib.suppress(psutil.Error):
                member.kill()
        self.process.wait(10)
        if self._pump is not None:
            self._pump.join(10)

    def members(self) -> list[psutil.Process]:
        """Live processes of the program's session, itself included; zombies are dead."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if os.getsid(process.pid) == self.pid and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def parsers(self) -> list[psutil.Process]:
        """Its parser processes: those below it that have no child, multiprocessing's resource tracker excepted."""
        members = {process.pid: process for process in self.members() if process.pid != self.pid}
        leaves = []
        for process in members.values():
            with contextlib.suppress(psutil.Error):
                is_tracker = "resource_tracker" in " ".join(process.cmdline())
                is_server = "forkserver" in " ".join(process.cmdline()) and process.ppid() == self.pid
                if not is_tracker and not is_server and not process.children():
                    leaves.append(process)
        return leaves

    def signal(self, number: Signals) -> None:
        self.process.send_signal(number)

    def signal_group(self, number: Signals) -> None:
        """To every process of the group, as a terminal's Ctrl-C or a shell's `kill %1` does."""
        os.killpg(self.pid, number)

    def has_ended_within(self, seconds: float) -> bool:
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def peak_memory(self) -> int:
        """Run to the end and give the most memory that all processes together had: proportional set size, sampled."""
        peak = 0
        while not self.has_ended_within(0.05):
            size = 0
            for member in self.members():
                with contextlib.suppress(psutil.Error):
                    size += member.memory_full_info().pss
            peak = max(peak, size)
        return peak

    def has_reader_ended_within(self, seconds: float) -> bool:
        """Whether the reader of a `stdout_pipe` has seen its end."""
        assert self._pump is not None
        self._pump.join(seconds)
        return not self._pump.is_alive()

    def wait(self, limit: float = 60.0) -> Ran:
        """The finished run; fails when it did not end within `limit` seconds or tried to reach beyond loopback."""
        has_ended = self.has_ended_within(limit)
        seconds = time.monotonic() - self._started
        if not has_ended:
            stuck = [self._describe(process) for process in self.members()]
            self.__exit__()
            raise AssertionError(
                f"{self.args} did not end within {limit} s: {stuck}; stderr: {self._text(self._stderr)}"
            )
        _, alive = psutil.wait_procs(self.members(), timeout=LEFT_LIMIT)
        left = tuple(self._describe(process) for process in alive)
        self.__exit__()
        refused = self._text(self._refused) if self._refused.exists() else ""
        assert not refused, f"the program tried to reach beyond loopback: {refused}"
        return Ran(
            rc=self.process.returncode,
            out=self._text(self._stdout),
            err=self._text(self._stderr),
            map=SiteMap.read(self.out) if self.out is not None and self.out.exists() else None,
            seconds=seconds,
            left=left,
            folder=self.folder,
        )

    def _drain(self) -> None:
        """What `crawlr | cat > file` does."""
        assert self.process.stdout is not None
        with self.process.stdout as pipe, self._stdout.open("wb") as file:
            for line in pipe:
                file.write(line)

    def _environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        env = {name: value for name, value in os.environ.items() if name.lower() not in _NOT_INHERITED}
        for name in [name for name in env if name.startswith("CRAWLR_") and not name.startswith("CRAWLR_TEST_")]:
            del env[name]  # options of whoever runs the tests
        env["PYTHONPATH"] = os.pathsep.join([os.fspath(GUARD), os.fspath(ROOT)])
        env["CRAWLR_TEST_REFUSED"] = os.fspath(self._refused)
        return env | dict(extra)

    @staticmethod
    def _text(path: Path) -> str:
        return path.read_bytes().decode("utf-8", "backslashreplace")

    @staticmethod
    def _describe(process: psutil.Process) -> str:
        try:
            return f"{process.pid} {process.status()} {' '.join(process.cmdline())[:160]}"
        except psutil.Error:
            return f"{process.pid} gone"


def _limited(limits: Mapping[int, int]) -> list[str]:
    """Words before a command that give it these resource limits: another Python that becomes the command."""
    if not limits:
        return []
    code = "import os, resource, sys\n" + "".join(
        f"resource.setrlimit({name}, ({value}, {value}))\n" for name, value in limits.items()
    )
    return [sys.executable, "-c", code + "os.execv(sys.argv[1], sys.argv[1:])"]


def problems(ran: Ran) -> list[str]:
    """What is wrong with any run, whatever it crawled: a traceback, a process left, a file that breaks the format."""
    return [
        *(["a traceback on stderr: " + ran.err[-3000:]] if "Traceback (most recent call last)" in ran.err else []),
        *(f"process left: {line}" for line in ran.left),
        *(violations(ran.map) if ran.map is not None else []),
    ]
