"""The scripts of --completion, in the shells that they are for; and the manual page, in what reads manual pages."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crawlr import completion, man
from crawlr.cli import main
from crawlr.grammar import COMMANDS
from crawlr.option_row import Row, rows

SHELLS = ("bash", "zsh", "fish")
LIMIT = 20.0
"""Seconds for a shell to do what is asked."""
TYPED = [
    ("--sco\tdom\t", ["--scope", "domain"]),
    ("--scope=dom\t", ["--scope", "domain"]),
    ("https://x.example --fetc\tcur\t", ["https://x.example", "--fetcher", "curl"]),
    ("--follow a,im\t", ["--follow", "a,img"]),
    ("-i rep\t", ["-i", "report.html"]),
    ("expo\trep\t-o rep\t", ["export", "report.html", "-o", "report.html"]),
    ("diff rep\t--fail-on broken,gon\t", ["diff", "report.html", "--fail-on", "broken,gone"]),
    ("why / --i\trep\t", ["why", "/", "--in", "report.html"]),
    ("demo --qui\t", ["demo", "--quiet"]),
    ("--completion fi\t", ["--completion", "fish"]),
    ("-i a\t", ["-i", "a b.txt"]),
]
STARTS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source {}; crawlr() {{ printf '<%s>' \"$@\"; echo; }}"),
    "zsh": (
        ["zsh", "-f", "-i"],
        "autoload -Uz compinit; compinit -u -D; source {}; crawlr() {{ printf '<%s>' \"$@\"; echo; }}",
    ),
    "fish": (["fish", "--no-config", "-i"], "source {}; function crawlr; printf '<%s>' $argv; echo; end"),
}


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed here")
    return found


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    program(request.param)
    program("setsid")
    return str(request.param)


def script_of(shell: str, folder: Path) -> Path:
    path = folder / f"completion.{shell}"
    path.write_text("\n".join(completion.lines(shell)) + "\n")
    return path


class Terminal:
    """An interactive shell at a terminal of its own."""

    def __init__(self, words: list[str], folder: Path) -> None:
        self._terminal, other = pty.openpty()
        self._process = subprocess.Popen(
            ["setsid", "--ctty", *words],  # the shell owns its terminal
            stdin=other,
            stdout=other,
            stderr=other,
            cwd=folder,
            env=os.environ | {"HOME": str(folder), "TERM": "xterm", "PS1": "$ "},
        )
        os.close(other)
        self._seen = ""

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def wait_for(self, pattern: str) -> re.Match[str]:
        """What matches in the output from here on."""
        deadline = time.monotonic() + LIMIT
        while (found := re.search(pattern, self._seen)) is None:
            ready = select.select([self._terminal], [], [], max(0.0, deadline - time.monotonic()))[0]
            assert ready, f"{pattern} did not come: {self._seen[-2000:]!r}"
            self._seen += os.read(self._terminal, 65536).decode(errors="replace")
        self._seen = self._seen[found.end() :]
        return found

    def close(self) -> None:
        self._process.kill()
        self._process.wait(LIMIT)
        os.close(self._terminal)


@pytest.fixture
def terminal(shell: str, tmp_path: Path) -> Iterator[Terminal]:
    """The shell with its script loaded, and a crawlr that prints its words; in a folder with two files."""
    (tmp_path / "report.html").touch()
    (tmp_path / "a b.txt").touch()
    words, begin = STARTS[shell]
    made = Terminal(words, tmp_path)
    with contextlib.closing(made):
        made.type(begin.format(shlex.quote(str(script_of(shell, tmp_path)))) + "; echo READ''Y\n")
        made.wait_for("READY")
        yield made


def test_the_shell_accepts_the_script(shell: str, tmp_path: Path) -> None:
    """It parses."""
    ended = subprocess.run([shell, "-n", script_of(shell, tmp_path)], capture_output=True, text=True, timeout=LIMIT)

    assert (ended.returncode, ended.stderr) == (0, "")


def test_tab_completes_what_was_begun(terminal: Terminal) -> None:
    """Typed at a real shell: options, their words, lists with commas, files, verbs."""
    for typed, expected in TYPED:
        terminal.type(f"crawlr {typed}\n")
        found = terminal.wait_for(r"(<[^\r\n]*>)\r?\n")[1]

        # zsh puts = after an option that has a value, which is the same to crawlr
        assert re.findall("<([^>]*)>", re.sub("<(--[^>=]+)=", r"<\1><", found)) == expected, typed


# ---------------------------------------------------------------- bash, every row of the table

FILES = ["-o", "default"]
"""What the function says when readline is to offer files."""
DRIVE = r"""
compopt() { COMPREPLY=("$@"); }  # only works below a key press
offered() {
    COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); COMPREPLY=()
    _crawlr crawlr "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
    echo "${COMPREPLY[@]}"
}
"""


def offered(folder: Path, *lines: list[str]) -> list[list[str]]:
    """What bash offers for each of these lines, the last word of which is being typed."""
    calls = "\n".join(f"offered {shlex.join(line)}" for line in lines)
    ended = subprocess.run(
        ["bash", "--norc", "-c", f". {script_of('bash', folder)}\n{DRIVE}\n{calls}"],
        capture_output=True, text=True, timeout=LIMIT, check=True, cwd=folder,
    )  # fmt: skip

    assert ended.stderr == ""
    return [line.split() for line in ended.stdout.splitlines()]


def test_every_option_of_every_command_is_offered(tmp_path: Path) -> None:
    """A new row of the table needs no other place."""
    program("bash")
    lines = [["crawlr", *([verb] if verb else []), "-"] for verb in COMMANDS]
    found = offered(tmp_path, *lines)

    assert found == [[flag for row in rows(*command.groups) for flag in row.flags] for command in COMMANDS.values()]


def test_every_word_of_every_value_is_offered(tmp_path: Path) -> None:
    """What an error names as accepted can be had by a key, after each spelling of the option."""
    program("bash")
    cases: list[tuple[list[str], Row]] = []
    for verb, command in COMMANDS.items():
        for row in rows(*command.groups):
            cases += [(["crawlr", *([verb] if verb else []), flag, ""], row) for flag in row.flags if not row.is_switch]
    found = offered(tmp_path, *[line for line, _ in cases])

    for (line, row), words in zip(cases, found, strict=True):
        assert words == (FILES if row.kind.is_path else list(row.kind.words)), line


def test_verbs_and_operands(tmp_path: Path) -> None:
    """A verb is offered as the first word only, files where a command takes files."""
    program("bash")
    lines = [
        ["crawlr", ""],
        ["crawlr", "-q", ""],
        ["crawlr", "export", "m"],
        ["crawlr", "why", "m"],
        ["crawlr", "x", "m"],
    ]
    found = offered(tmp_path, *lines)

    assert found == [[verb for verb in COMMANDS if verb], [], FILES, [], []]


# ---------------------------------------------------------------- the command, and the manual page


def test_script_is_printed_and_nothing_else_happens(capsys: Any, tmp_path: Path, monkeypatch: Any) -> None:
    """Not even a broken crawlr.toml in the folder is read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "crawlr.toml").write_text("?")
    for shell in SHELLS:
        assert main(["--completion", shell]) == 0
        assert capsys.readouterr().out == "\n".join(completion.lines(shell)) + "\n"
    assert main(["--completion", "tcsh"]) == 2
    assert "--completion: 'tcsh' is not accepted; accepted: bash, zsh or fish" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["crawlr.toml"]


def page(capsys: Any) -> str:
    assert main(["--man"]) == 0
    return str(capsys.readouterr().out)


def test_manual_page_is_sound_to_groff(capsys: Any) -> None:
    """No warning, and each option, command and heading is on the page as it is typed."""
    program("groff")
    ended = subprocess.run(
        ["groff", "-man", "-ww", "-Tascii", "-P-cbou", "-rLL=200n"],
        input=page(capsys), capture_output=True, text=True, timeout=LIMIT, check=True,
    )  # fmt: skip

    assert ended.stderr == ""
    for command in COMMANDS.values():
        assert command.usage.splitlines()[0] in ended.stdout
        for row in rows(*command.groups):
            assert f"{', '.join(row.flags)}{f' {row.metavar}' if row.metavar else ''}" in ended.stdout
    for heading in ("NAME", "OPTIONS", "COMMANDS", "EXIT STATUS", "FILES", "ENVIRONMENT", "EXAMPLES"):
        assert f"\n{heading}\n" in ended.stdout
    assert r"--exclude '\?'" in ended.stdout


def test_manual_page_is_sound_to_mandoc(capsys: Any) -> None:
    """Likewise by the other reader; only the date, which would make the page another one each day, is missed."""
    ended = subprocess.run(
        [program("mandoc"), "-Tlint", "-Wwarning"], input=page(capsys), capture_output=True, text=True, timeout=LIMIT
    )

    assert [line for line in ended.stdout.splitlines() if "missing date" not in line] == []


def test_manual_page_has_no_requests_by_accident() -> None:
    """A line of text that begins with a dot or a quote stays text."""
    known = (".TH ", ".SH ", ".SS ", ".TP", ".PP", ".B ", ".nf", ".fi")

    assert [line for line in man.lines() if line.startswith((".", "'")) and not line.startswith(known)] == []
