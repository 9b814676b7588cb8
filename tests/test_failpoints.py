"""The places where a test may kill the program: they strike when told to, and only then."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

CALLS = """
from crawlr.failpoints import hit
for _ in range(5):
    hit("before_commit")
    hit("after_answer")
    print("alive", flush=True)
"""


def run(spec: str | None) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "CRAWLR_FAILPOINT"}
    if spec is not None:
        env["CRAWLR_FAILPOINT"] = spec
    return subprocess.run(
        [sys.executable, "-c", CALLS], env=env, capture_output=True, text=True, timeout=20, check=False
    )


@pytest.mark.parametrize("spec", [None, "", "inside_commit:1", "after_answer:6"])
def test_a_place_that_is_not_armed_or_not_reached_often_enough_does_nothing(spec: str | None) -> None:
    """Without the variable, with another place, or with too high a number the process lives on."""
    ended = run(spec)

    assert (ended.returncode, ended.stdout.count("alive"), ended.stderr) == (0, 5, "")


@pytest.mark.parametrize(("spec", "rounds"), [("before_commit:1", 0), ("after_answer:1", 0), ("before_commit:3", 2)])
def test_the_nth_call_of_an_armed_place_ends_the_process(spec: str, rounds: int) -> None:
    """The process dies of SIGKILL at exactly that call."""
    ended = run(spec)

    assert (-signal.SIGKILL, rounds) == (ended.returncode, ended.stdout.count("alive"))


@pytest.mark.parametrize("spec", ["nowhere:1", "after_answer", "after_answer:0", "after_answer:-1", "after_answer:x"])
def test_a_place_that_does_not_exist_is_an_error(spec: str) -> None:
    """A misspelt place fails loudly instead of letting a test pass unharmed."""
    ended = run(spec)

    assert ended.returncode == 1
    assert "CRAWLR_FAILPOINT" in ended.stderr
