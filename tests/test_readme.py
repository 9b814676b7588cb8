"""README.md says what is true: every option is in it, every default, every command and program in it runs."""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from crawlr import grammar
from crawlr.formats import Format
from crawlr.option_row import rows
from crawlr.option_table import ABOUT, CONFIG, CRAWL, SCREEN
from crawlr.options import Options
from crawlr.records import Outcome, SkipReason, UnvisitedReason
from crawlr.sinks import sitemap_json
from tests.made_crawl import HEAD, made_view
from tests.running import GUARD, ROOT
from tests.servers.local import Reply, page

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
SETUP = ("python3 -m venv", ".venv/bin/pytest")
COMMANDS = [text for kind, text in BLOCKS if kind == "sh" and not text.startswith(SETUP)]
(TOML,) = (text for kind, text in BLOCKS if kind == "toml")
PROGRAMS = [text for kind, text in BLOCKS if kind == "python"]
ROWS = re.findall(r"^\| `(-[^`]+)` \| ?(.*?) ?\| (.*) \|$", README, re.MULTILINE)
ELSEWHERE = {"--check"}
"""Options in README.md that are those of another program."""


def actions() -> list[Any]:
    parser = grammar.build_parser()
    return [action for action in parser._actions if action.option_strings and action.help != argparse.SUPPRESS]


def test_every_option_has_its_row() -> None:
    """The tables list each option once, spelled as the command takes it, with its placeholder."""
    expected = {
        ", ".join(action.option_strings) + (f" {action.metavar}" if action.nargs != 0 else "") for action in actions()
    }

    assert sorted(spelling for spelling, _, _ in ROWS) == sorted(expected)


def test_no_option_is_made_up() -> None:
    """Every --option in the text is one of the command."""
    parsers = [grammar.build_parser(verb) for verb in grammar.COMMANDS]
    existing = {option for parser in parsers for action in parser._actions for option in action.option_strings}

    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", README)) - existing - ELSEWHERE == set()


def test_defaults_are_those_of_the_program() -> None:
    """What the tables give as a default is what happens without the option."""
    dest = {row.flag: row.name for row in rows(*CRAWL, SCREEN, CONFIG, ABOUT)}
    checked = 0
    for spelling, default, _ in ROWS:
        name = dest[re.findall(r"--[a-z-]+", spelling)[0]]
        if found := re.fullmatch(r"`([^`-]\S*)`", default):
            assert Options.make("x.example", **{name: found[1]}) == Options.make("x.example"), spelling
            checked += 1
        elif default == "no limit":
            assert getattr(Options(), name) is None, spelling
        elif default == "off" and name in Options.__struct_fields__:
            assert getattr(Options(), name) is False, spelling

    assert checked >= 15


def test_outcomes_and_reasons_are_all_named() -> None:
    """A reader of sitemap.json finds every word of it explained."""
    words = set(re.findall(r"`(\w+)`", README))

    assert {str(each) for each in (*Outcome, *SkipReason, *UnvisitedReason)} - words == set()


def test_every_format_has_its_ending_in_the_table() -> None:
    """What can be written is listed where a reader looks for it."""
    table = README.partition("## Other outputs")[2].partition("\n## ")[0]
    named = {ending.removeprefix(".") for ending in re.findall(r"`(\.?[a-z.]+)`", table)}

    assert set(Format) - named == set()


def test_every_dependency_is_justified() -> None:
    """Each package that is installed has a line that says what it replaces, and no other has."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = [
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    ]
    packages = {re.match(r"[\w.-]+", each)[0] for each in required} - {"crawlr"}
    table = README.partition("## Dependencies")[2].partition("## ")[0]
    named = {
        name for row in re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE) for name in re.findall(r"`([\w-]+)`", row)
    }

    assert named - set(project["optional-dependencies"]) == packages


def test_json_example_is_a_map() -> None:
    """The example of the format has the fields that the program writes."""
    (example,) = (json.loads(text) for kind, text in BLOCKS if kind == "json")

    with made_view() as view:
        out = io.StringIO()
        sitemap_json.write(out, view, head=HEAD)
    written = json.loads(out.getvalue())

    for name in ("pages", "skipped", "unvisited"):
        assert list(example[name][0]) == list(written[name][0])
    assert example["format"] == "crawlr-sitemap/1"


def test_set_up_is_two_commands_that_ci_runs() -> None:
    """A newcomer copies two lines; .ci/run reads the same two."""
    setup = [text for kind, text in BLOCKS if kind == "sh" and text.startswith(SETUP)]

    assert [text.count("\n") for text in setup] == [1, 1]
    assert "crawlr demo" in setup[0]
    assert "'^python3 -m venv .venv' README.md" in (ROOT / ".ci/run").read_text()


@pytest.fixture
def example(site: Any) -> str:
    """A site that stands for https://example.com: its root as README's texts write it."""
    routes = {"/": page("/docs/", "/blog/"), "/docs/": page("/docs/a", "/docs/b?c"), "/blog/": page()}
    return site(routes, default=page()).url("")


def environment(folder: Path) -> dict[str, str]:
    """An environment in which `crawlr` is this program, and crawls without a delay unless one is asked for."""
    program = folder / "bin" / "crawlr"
    program.parent.mkdir()
    program.write_text(
        '#!/bin/sh\ncase "$1" in export|why|diff) ;; *) set -- --rps 0 "$@" ;; esac\n'
        f'exec "{sys.executable}" -m crawlr "$@"\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return os.environ | {
        "PATH": os.pathsep.join([str(program.parent), str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join([str(GUARD), str(ROOT)]),
    }


@pytest.mark.parametrize("text", COMMANDS, ids=[text.strip().splitlines()[-1][:50] for text in COMMANDS])
def test_commands_run(text: str, example: str, site: Any, tmp_path: Path) -> None:
    """Each block of commands does what it says, line by line, against a site on loopback."""
    if "--resume" in text:  # the first command has to leave something for the second
        example = site({"/": page(*[f"/{number}" for number in range(150)])}, default=page()).url("")
    env = environment(tmp_path)
    (tmp_path / "nightly.toml").write_text(TOML)
    for line in text.replace("https://example.com", example).strip().splitlines():
        ended = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60
        )

        assert ended.returncode == 0, f"{line}: {ended.stderr[-2000:]}"
        assert "Traceback" not in ended.stderr
    if "--resume" in text:
        assert len(json.loads((tmp_path / "site.json").read_text())["pages"]) == 151


@pytest.mark.parametrize("text", PROGRAMS, ids=range(len(PROGRAMS)))
def test_programs_run(text: str, site: Any, tmp_path: Path) -> None:
    """Each example in Python runs as a script and prints what it found."""
    made = site({"/": page("/contact", "/gone"), "/contact": page(title="Contact"), "/gone": Reply(status=404)})
    script = tmp_path / "example.py"
    script.write_text(text.replace("https://example.com", made.url("")))
    ended = subprocess.run(
        [sys.executable, script.name],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(GUARD), str(ROOT)])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    assert made.url("") in ended.stdout
