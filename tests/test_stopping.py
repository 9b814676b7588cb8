"""stopping.catch: one message for the first signal, the end for the second, and nothing left behind."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlr import api
from crawlr.options import Options
from crawlr.records import StopReason, StopRequested
from crawlr.reporting import SilentReporter
from crawlr.state import OpenState, open_state
from crawlr.stopping import catch
from tests.fakeweb import FakeWeb, Page

SIGNALS = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture(autouse=True)
def own_handlers() -> Iterator[None]:
    """This process keeps its handlers, whatever a test leaves."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_first_signal_is_one_message(number: signal.Signals) -> None:
    """A signal wakes whoever waits at the mailbox with one StopRequested that names it."""
    mailbox: queue.SimpleQueue[StopRequested] = queue.SimpleQueue()
    with catch(mailbox.put):
        os.kill(os.getpid(), number)
        received = mailbox.get(timeout=10)

    assert received == StopRequested(reason=StopReason.INTERRUPTED, signal=number)
    assert mailbox.empty()


def test_handlers_are_put_back_even_after_an_error() -> None:
    """A program that calls the library keeps its own handlers."""
    before = [signal.getsignal(number) for number in SIGNALS]
    during = []

    def fail() -> None:
        with catch(lambda message: None):
            during.extend(signal.getsignal(number) for number in SIGNALS)
            raise LookupError

    with pytest.raises(LookupError):
        fail()

    assert [signal.getsignal(number) for number in SIGNALS] == before
    assert all(now is not old for now, old in zip(during, before, strict=True))


@pytest.mark.parametrize(("first", "second"), [(s, t) for s in SIGNALS for t in SIGNALS])
def test_second_signal_forces_the_end(first: signal.Signals, second: signal.Signals) -> None:
    """A program that does not end by itself is ended by the second signal, with the status a shell expects."""
    code = (
        "import os, queue; from crawlr.stopping import catch\n"
        "box = queue.SimpleQueue()\n"
        f"with catch(box.put):\n    os.kill(os.getpid(), {first:d}); box.get(timeout=10)\n"
        f"    os.kill(os.getpid(), {second:d}); box.get(timeout=10)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30, check=False)

    assert (ended.returncode, ended.stdout, ended.stderr) == (128 + second, b"", b"\nforced\n")


@pytest.mark.parametrize("number", SIGNALS)
def test_second_signal_after_the_crawl_still_forces_the_end(number: signal.Signals) -> None:
    """Between the last page and the exit of the program a second Ctrl-C has the same status, and no traceback."""
    program = (
        "import os\nfrom crawlr.stopping import catch\n"
        f"with catch(lambda message: None):\n    os.kill(os.getpid(), {int(number)})\n"
        f"os.kill(os.getpid(), {int(number)})\nprint('went on')\n"
    )

    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20)

    assert (ran.returncode, ran.stdout, ran.stderr.strip()) == (128 + number, "", "forced")


@pytest.mark.parametrize("number", SIGNALS)
def test_signal_at_the_moment_a_state_is_made_ends_that_crawl_in_order(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever leaves a state has said so, and has written the outputs, however early the signal came."""

    def opened(options: Options, seeds: tuple[str, ...]) -> OpenState:
        state = open_state(options, seeds)
        signal.raise_signal(number)
        return state

    monkeypatch.setattr(api, "open_state", opened)
    out = tmp_path / "map.json"
    options = Options.make("http://site.test/", out=str(out), parse_procs=1)
    summary = api.run(
        options, reporter=SilentReporter(), fetcher=FakeWeb({"http://site.test/": Page()}), catch_signals=True
    )

    assert (summary.signal, summary.stop_reason) == (number, StopReason.INTERRUPTED)
    assert summary.state is not None
    assert out.exists()
