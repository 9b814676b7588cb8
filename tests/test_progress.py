"""The screen: what a person sees of a crawl, on a terminal, in a pipe and in a file."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import pty
import re
import struct
import termios
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from crawlr.formats import Written
from crawlr.options import Options
from crawlr.progress import Screen, open_screen
from crawlr.records import Outcome, PageRecord, SkipReason, StopReason
from crawlr.reporting import Status, Summary

HOME = "https://example.com"


def record(path: str = "/", **values: Any) -> PageRecord:
    url = path if "://" in path else HOME + path
    defaults = {"id": 1, "url": url, "depth": 1, "parent": 0, "status": 200, "outcome": Outcome.OK, "links": 14}
    return PageRecord(**(defaults | {"millis": 82} | values))


def summary(**values: Any) -> Summary:
    defaults: dict[str, Any] = {
        "pages": 842,
        "ok": 820,
        "errors": 22,
        "skipped": 17,
        "unique_urls": 1204,
        "edges": 3118,
        "damaged": 0,
        "elapsed": 48.1,
        "out": (Written(path="sitemap.json", pages=842, edges=3118),),
        "complete": True,
        "stop_reason": StopReason.FINISHED,
    }
    return Summary(**(defaults | values))


def status(pages: int, **values: Any) -> Status:
    defaults: dict[str, Any] = {"queued": 100, "in_flight": 20, "errors": 3, "bytes": 5_000_000, "elapsed": pages / 10}
    return Status(pages=pages, **(defaults | values))


@pytest.fixture
def lines() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def notes() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def screen(lines: io.StringIO, notes: io.StringIO, clock: Any) -> Screen:
    return Screen(lines=lines, notes=notes, clock=clock)


def begin(screen: Screen, *seeds: str, **values: Any) -> None:
    screen.started(Options.make(seeds or [HOME], **values), parse_procs=8)


def test_screen_of_a_whole_crawl(screen: Screen, lines: io.StringIO, notes: io.StringIO) -> None:
    """The lines stand as the interface shows them."""
    begin(screen, depth=3)
    screen.page(record("/"))
    screen.page(record("/old-page", status=404, outcome=Outcome.HTTP_ERROR, links=0, millis=41))
    screen.skipped(HOME + "/admin", SkipReason.ROBOTS_DISALLOWED, None)
    screen.skipped(HOME + "/private/x", SkipReason.ROBOTS_DISALLOWED, "Disallow: /private/ for *")
    screen.finished(summary(limit="parse: 8 procs 97% busy, fetchers 34% busy"))

    assert lines.getvalue().splitlines() == [
        "crawling https://example.com  depth=3 concurrency=20 rps/host=5 parse-procs=8",
        "  200  /                      14 links    82ms",
        "  404  /old-page               0 links    41ms",
        "  --   /admin                 blocked by robots.txt",
        "  --   /private/x             blocked by robots.txt: Disallow: /private/ for *",
        "done  pages=842 ok=820 errors=22 skipped=17 unique_urls=1,204 elapsed=48s",
        "limit parse: 8 procs 97% busy, fetchers 34% busy",
        "wrote sitemap.json (842 pages, 3,118 edges)",
    ]
    assert notes.getvalue() == ""


LINES = [
    (record("/a?b=c"), "  200  /a?b=c                 14 links    82ms"),
    (record("https://other.example/x"), "  200  https://other.example/x 14 links    82ms"),
    (record("http://example.com/x"), "  200  /x                     14 links    82ms"),
    (record("https://example.com:8443/x"), "  200  https://example.com:8443/x 14 links    82ms"),
    (
        record("/old", status=301, outcome=Outcome.REDIRECT, links=0, redirect_url=HOME + "/new"),
        "  301  /old                    0 links    82ms  -> /new",
    ),
    (
        record("/out", status=302, outcome=Outcome.REDIRECT, links=0, redirect_url="https://b.example/"),
        "  302  /out                    0 links    82ms  -> https://b.example/",
    ),
    (record("/image.png", outcome=Outcome.NOT_HTML, links=0), "  200  /image.png              0 links    82ms"),
    (record("/big", outcome=Outcome.TOO_LARGE), "  200  /big                   14 links    82ms  too_large"),
    (
        record("/cut", outcome=Outcome.RESET, error="after 10 bytes"),
        "  200  /cut                   14 links    82ms  reset: after 10 bytes",
    ),
    (
        record("/gone", status=None, outcome=Outcome.REFUSED, error="Connection refused"),
        "  --   /gone                  refused: Connection refused",
    ),
    (record("/x", status=None, outcome=Outcome.EMPTY_REPLY), "  --   /x                     empty_reply"),
    (
        record("/evil\x1b[31m\u202e", outcome=Outcome.OK),
        "  200  /evil\\x1b[31m\\u202e    14 links    82ms",
    ),
]


@pytest.mark.parametrize(("page", "expected"), LINES, ids=[line for _, line in LINES])
def test_page_line(page: PageRecord, expected: str, screen: Screen, lines: io.StringIO) -> None:
    """Each kind of answer has its line, and nothing from the web reaches it unscrubbed."""
    begin(screen, HOME)
    screen.page(page)
    screen.close()

    assert lines.getvalue().splitlines()[1:] == [expected]


def test_skipped_line_says_why(screen: Screen, lines: io.StringIO) -> None:
    """Each reason has words of its own, and the error behind it is said."""
    begin(screen, HOME)
    for reason in SkipReason:
        screen.skipped(HOME + "/x", reason, "status 500\x07")
    screen.close()

    printed = lines.getvalue().splitlines()[1:]
    assert len(set(printed)) == len(SkipReason)
    assert "  --   /x                     robots.txt unreachable: status 500\\x07" in printed


@pytest.mark.parametrize(
    ("seeds", "expected"),
    [
        (["https://me:secret@example.com/a@b"], "crawling https://example.com/a@b  depth=all"),
        (["https://a.example", "https://b.example", "https://c.example"], "crawling https://a.example and 2 more  "),
        (["https://a.example/\x1b[2J"], "crawling https://a.example/\\x1b[2J  depth"),
    ],
)
def test_first_line_shows_the_seed(screen: Screen, lines: io.StringIO, seeds: list[str], expected: str) -> None:
    """The seed is shown without its password, scrubbed, and the others are counted."""
    begin(screen, *seeds)

    assert lines.getvalue().startswith(expected)


def test_seed_in_other_spelling_is_still_home(screen: Screen, lines: io.StringIO) -> None:
    """Pages of the first seed's host are shown by path, however the seed was spelled."""
    begin(screen, "HTTPS://BÜCHER.example:443")
    screen.page(record("https://xn--bcher-kva.example/x"))
    screen.close()

    assert "  200  /x  " in lines.getvalue()


def test_damaged_pages_are_counted_only_when_there_are_any(screen: Screen, lines: io.StringIO) -> None:
    """A cut body is no error and no quiet success either."""
    screen.finished(summary(damaged=3, pages=12_345, elapsed=4.26))

    assert "done  pages=12,345 ok=820 errors=22 skipped=17 unique_urls=1,204 elapsed=4.3s damaged=3" in lines.getvalue()


def test_budget_is_named_and_how_to_go_on(screen: Screen, lines: io.StringIO) -> None:
    """A crawl that a bound ended says which, and how to go on when its state is kept."""
    screen.finished(summary(stop_reason=StopReason.PAGE_BUDGET, complete=False, state="sitemap.json.crawl"))

    assert lines.getvalue().startswith("done  pages=842")
    assert "bound --max-pages reached; to go on, run the same command with --resume" in lines.getvalue()


def test_interruption_says_what_was_saved_and_how_to_go_on(screen: Screen, lines: Any, notes: io.StringIO) -> None:
    """Ctrl-C gives one line, completed when the file is written, and the way to go on."""
    begin(screen)
    screen.cancelling(20)

    assert notes.getvalue() == "cancelling: interrupting 20 fetches..."

    screen.page(record("/late"))
    screen.finished(summary(stop_reason=StopReason.INTERRUPTED, signal=2, state="sitemap.json.crawl"))

    assert notes.getvalue().splitlines() == [
        "cancelling: interrupting 20 fetches... flushed partial results to sitemap.json",
        "to go on, run the same command with --resume",
    ]
    assert "interrupted  pages=842" in lines.getvalue()


def test_interruption_is_one_line_on_a_terminal_too(terminal: type[Terminal], clock: Any) -> None:
    """Pages that are committed last do not come between the two halves of the line."""
    made = terminal(120)
    with Screen(lines=made.stream, notes=made.stream, has_bar=True, clock=clock) as screen:
        begin(screen)
        clock.advance(1)
        screen.status(status(1))
        screen.cancelling(3)
        clock.advance(1)
        screen.page(record("/late"))
        screen.finished(summary(stop_reason=StopReason.INTERRUPTED, signal=2, state="sitemap.json.crawl"))
    rows = made.rows()

    assert [row[:30] for row in rows[1:4]] == [
        "cancelling: interrupting 3 fet",
        f"  200  {'/late':<23}",
        "interrupted  pages=842 ok=820 ",
    ]
    assert rows[1].endswith("... flushed partial results to sitemap.json")


def test_interruption_that_wrote_nothing_does_not_say_so(screen: Screen, notes: io.StringIO) -> None:
    """Without a file there are no flushed results, and the open line is ended."""
    screen.cancelling(1)
    screen.finished(summary(stop_reason=StopReason.INTERRUPTED, signal=15, out=()))

    assert notes.getvalue() == "cancelling: interrupting 1 fetches...\n"


def test_quiet_screen_prints_only_notes(lines: io.StringIO, notes: io.StringIO) -> None:
    """-q leaves what went wrong, nothing else."""
    screen = Screen(lines=lines, notes=notes, is_quiet=True)
    begin(screen)
    screen.page(record())
    screen.skipped(HOME, SkipReason.TRAP, None)
    screen.status(status(1))
    screen.notice("Crawl-delay of example.com cut from 86400s to 30s\n")
    screen.finished(summary())

    assert lines.getvalue() == ""
    assert notes.getvalue() == "note: Crawl-delay of example.com cut from 86400s to 30s\\x0a\n"


def test_lines_are_written_in_groups_and_in_time(screen: Screen, lines: io.StringIO, clock: Any) -> None:
    """Lines reach a pipe with the next tick, and thousands a second do not cost a write each."""
    begin(screen)
    clock.advance(1)
    screen.page(record("/first"))

    assert "/first" in lines.getvalue()

    screen.page(record("/second"))

    assert "/second" not in lines.getvalue()

    screen.status(status(2))

    assert "/second" in lines.getvalue()


def test_notes_come_after_the_lines_before_them(lines: io.StringIO, clock: Any) -> None:
    """Where both go to one place, the order is the order of what happened."""
    screen = Screen(lines=lines, notes=lines, clock=clock)
    begin(screen)
    screen.page(record("/before"))
    screen.notice("something")

    assert re.search(r"/before .*\nnote: something\n$", lines.getvalue())


def test_closed_pipe_silences_the_lines_only() -> None:
    """`crawlr ... | head -1`: nothing raises, nothing is said, stderr goes on."""
    reader, writer = os.pipe()
    with open(writer, "w", encoding="utf-8") as lines, contextlib.closing(io.StringIO()) as notes:
        screen = Screen(lines=lines, notes=notes)
        begin(screen)
        os.close(reader)
        for number in range(5_000):
            screen.page(record(f"/{number}"))
        screen.status(status(1))
        screen.notice("still here")
        screen.finished(summary())

        assert notes.getvalue() == "note: still here\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_full_disk_under_the_lines_is_said_once() -> None:
    """Lines that cannot be kept are no reason to stop, and none to be silent."""
    with open("/dev/full", "w", encoding="utf-8") as lines, contextlib.closing(io.StringIO()) as notes:
        screen = Screen(lines=lines, notes=notes)
        begin(screen)
        for _ in range(3):
            screen.page(record())
            screen.status(status(1))
        screen.finished(summary())

        assert notes.getvalue() == "note: No space left on device: no more page lines, the crawl goes on\n"


class Terminal:
    """A pseudo-terminal of some width: a stream to write to, and what a person would see, by a small emulator."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self._main, sub = pty.openpty()
        fcntl.ioctl(sub, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.stream = open(sub, "w", encoding="utf-8")  # noqa: SIM115  # closed by `rows`
        self.bytes = bytearray()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # Linux: EIO when the other side is closed
            while piece := os.read(self._main, 65536):
                self.bytes += piece

    def rows(self) -> list[str]:
        """Closes the stream and gives the rows of the screen, as many as were written, without colours."""
        self.stream.close()
        self._reader.join(10)
        os.close(self._main)
        text = re.sub(r"\x1b\[\d*m", "", self.bytes.decode())
        grid, row, column = [[]], 0, 0
        for character in text:
            if character == "\r":
                column = 0
            elif character == "\n":
                row += 1
            else:
                assert character.isprintable(), f"unexpected control character {character!a}"
                if column == self.columns:
                    row, column = row + 1, 0
                while len(grid) <= row:
                    grid.append([])
                grid[row] += [" "] * (column + 1 - len(grid[row]))
                grid[row][column] = character
                column += 1
            while len(grid) <= row:
                grid.append([])
        return ["".join(cells).rstrip() for cells in grid]


@pytest.fixture
def terminal() -> Iterator[type[Terminal]]:
    return Terminal


def drawn(terminal: Terminal, clock: Any, *, has_colour: bool = False, has_bar: bool = True) -> list[str]:
    """The rows of a crawl of 60 pages with a bar, on one terminal."""
    with Screen(
        lines=terminal.stream, notes=terminal.stream, has_bar=has_bar, has_colour=has_colour, clock=clock
    ) as screen:
        begin(screen)
        for number in range(60):
            screen.page(record(f"/{number}"))
            clock.advance(0.06)
            screen.status(status(number, queued=60 - number, limiter="politeness"))
            if number == 30:
                screen.notice("half way")
        screen.finished(summary())
    return terminal.rows()


@pytest.mark.parametrize("columns", [200, 100, 80])
def test_bar_and_lines_do_not_garble_each_other(columns: int, clock: Any, terminal: type[Terminal]) -> None:
    """With a bar on the same terminal each page line stands alone, and no bar is left behind at the end."""
    made = terminal(columns)
    rows = drawn(made, clock)

    width = {200: 50, 100: 50, 80: 30}[columns]
    expected = [f"  200  {f'/{number}':<{width}} 14 links    82ms" for number in range(60)]
    assert [row for row in rows if row.startswith("  200")] == expected
    assert rows[0].startswith("crawling ")
    assert rows[32] == "note: half way"
    assert rows[62:] == [
        "done  pages=842 ok=820 errors=22 skipped=17 unique_urls=1,204 elapsed=48s",
        "wrote sitemap.json (842 pages, 3,118 edges)",
        "",
    ]


def test_bar_tells_pages_rate_errors_queue_and_bytes(clock: Any, terminal: type[Terminal]) -> None:
    """On a wide terminal the bar says all it knows, and never more than 100 %."""
    made = terminal(120)
    drawn(made, clock)

    bars = [text for text in re.split(r"[\r\n]", made.bytes.decode()) if "%|" in text]
    assert "59/80 pages  10.0/s  3 errors  1 queued  4.8 MiB  limit politeness" in bars[-1]
    assert all(int(text.strip().split("%")[0]) <= 100 for text in bars)


def test_bar_measures_against_the_page_budget(clock: Any, terminal: type[Terminal]) -> None:
    """With --max-pages the bar is full when the budget is used up, however much is known."""
    made = terminal(100)
    with Screen(lines=io.StringIO(), notes=made.stream, has_bar=True, clock=clock) as screen:
        begin(screen, max_pages=50)
        screen.status(status(25, queued=1000))
        screen.status(status(50, queued=1000))
    made.rows()

    bars = [text for text in re.split(r"[\r\n]", made.bytes.decode()) if "pages" in text]
    assert [re.sub(r"\|.*\|", "", text)[:18] for text in bars] == [" 50% 25/50 pages  ", "100% 50/50 pages  "]


@pytest.mark.parametrize("columns", [20, 40, 1])
def test_bar_keeps_to_a_narrow_terminal(columns: int, clock: Any, terminal: type[Terminal]) -> None:
    """The bar never wraps: a wrapped bar could not be removed."""
    made = terminal(columns)
    rows = drawn(made, clock)

    bars = [text for text in re.split(r"[\r\n]", made.bytes.decode()) if "%|" in text]
    assert columns == 1 or bars
    assert all(len(text) <= columns for text in bars)
    assert not [row for row in rows if "%|" in row]


def test_colours_mark_the_status_only(clock: Any, terminal: type[Terminal]) -> None:
    """Green, cyan, red and yellow, around the status, so that a line is the same text without them."""
    made = terminal(100)
    with Screen(lines=made.stream, notes=made.stream, has_colour=True, clock=clock) as screen:
        begin(screen)
        screen.page(record("/a"))
        screen.page(record("/b", status=301, outcome=Outcome.REDIRECT))
        screen.page(record("/c", status=500, outcome=Outcome.HTTP_ERROR))
        screen.page(record("/d", status=200, outcome=Outcome.TRUNCATED))
        screen.skipped(HOME + "/e", SkipReason.NOFOLLOW, None)
    made.rows()

    colours = re.findall(r"\x1b\[(\d+)m(\S+)\x1b\[0m", made.bytes.decode())
    assert colours == [("32", "200"), ("36", "301"), ("31", "500"), ("31", "200"), ("33", "--")]


@pytest.mark.parametrize(
    ("env", "no_color", "expected"),
    [
        ({"TERM": "xterm"}, False, True),
        ({"TERM": "xterm"}, True, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, False, True),
        ({"TERM": "dumb"}, False, False),
        ({}, False, False),
    ],
)
def test_when_there_are_colours(env: dict[str, str], no_color: bool, expected: bool, monkeypatch, terminal) -> None:
    """Colours need a terminal that can show them and a person who has not asked for none."""
    made = terminal(80)
    for name in ("TERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout", made.stream)
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with open_screen(is_stdout_taken=False, is_quiet=False, has_progress=True, has_colour=not no_color) as screen:
        begin(screen)
        screen.page(record())
    made.rows()

    assert expected == (b"\x1b" in made.bytes)


@pytest.mark.parametrize(
    ("is_quiet", "has_progress", "expected"), [(False, True, True), (True, True, False), (False, False, False)]
)
def test_when_there_is_a_bar(is_quiet: bool, has_progress: bool, expected: bool, monkeypatch, terminal) -> None:
    """The bar is on stderr, when that is a terminal and nobody asked for silence."""
    made = terminal(80)
    lines = io.StringIO()
    monkeypatch.setattr("sys.stdout", lines)
    monkeypatch.setattr("sys.stderr", made.stream)
    with open_screen(is_stdout_taken=False, is_quiet=is_quiet, has_progress=has_progress, has_colour=True) as screen:
        begin(screen)
        screen.status(status(5))
    made.rows()

    assert expected == (b"%|" in made.bytes)
    assert not re.search("[\r\x1b]", lines.getvalue())


def test_lines_leave_stdout_to_the_sitemap(monkeypatch) -> None:
    """With --out - stdout is the document alone."""
    lines, notes = io.StringIO(), io.StringIO()
    monkeypatch.setattr("sys.stdout", lines)
    monkeypatch.setattr("sys.stderr", notes)
    with open_screen(is_stdout_taken=True, is_quiet=False, has_progress=True, has_colour=True) as screen:
        begin(screen)
        screen.finished(summary(out=(Written(path="-", pages=842, edges=3118),)))

    assert lines.getvalue() == ""
    assert "wrote stdout (842 pages" in notes.getvalue()


def test_notes_from_other_threads_are_whole_lines(clock: Any, terminal: type[Terminal]) -> None:
    """Log records come from any thread while the main thread draws."""
    made = terminal(80)
    with Screen(lines=made.stream, notes=made.stream, has_bar=True, clock=clock) as screen:
        begin(screen)
        threads = [
            threading.Thread(target=lambda name=name: [screen.note(f"from {name} {i}") for i in range(50)])
            for name in "abc"
        ]
        for each in threads:
            each.start()
        for number in range(50):
            clock.advance(1)
            screen.page(record(f"/{number}"))
            screen.status(status(number))
        for each in threads:
            each.join(20)
    rows = made.rows()

    assert sorted(row for row in rows if row.startswith("from ")) == sorted(
        f"from {name} {i}" for name in "abc" for i in range(50)
    )
    assert len([row for row in rows if row.startswith("  200")]) == 50
