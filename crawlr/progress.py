"""Draws a crawl on the screen: page lines, the bar, notes and the last lines. The only module that knows how it looks.

From: api.run and the coordinator (the Reporter calls), cli (log records). To: stdout and stderr. Main thread, but for
`note`, which any thread may call.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self, TextIO
from urllib.parse import urlsplit

from crawlr.formats import Written
from crawlr.options import Options
from crawlr.parse.urls import resolve
from crawlr.records import Outcome, PageRecord, SkipReason, StopReason
from crawlr.reporting import Status, Summary
from crawlr.scrub import scrub

if TYPE_CHECKING:
    from tqdm import tqdm

__all__ = ["Screen", "open_screen", "wrote"]

_INTERVAL = 0.1
"""Seconds for which page lines are gathered: one write for many lines, and nobody sees the delay."""
_MOST_GATHERED = 2_000
_URL_WIDTH, _MOST_URL_WIDTH = 22, 50
"""Columns for the URL: a few in a file, more on a terminal that has them; a longer URL moves the rest of its line."""
_REASONS = {
    SkipReason.ROBOTS_DISALLOWED: "blocked by robots.txt",
    SkipReason.ROBOTS_UNREACHABLE: "robots.txt unreachable",
    SkipReason.NOFOLLOW: "only nofollow links lead here",
    SkipReason.BLOCKED_ADDRESS: "address not allowed",
    SkipReason.URL_TOO_LONG: "URL too long",
    SkipReason.TRAP: "looks like a trap",
}
_SAID_BY_STATUS = frozenset({Outcome.OK, Outcome.HTTP_ERROR, Outcome.NOT_HTML, Outcome.REDIRECT})
_BUDGETS = {StopReason.PAGE_BUDGET: "--max-pages", StopReason.TIME_BUDGET: "--max-time"}


class Screen:
    """A Reporter for people. `lines` gets page lines and the summary, `notes` the bar, notices and what went wrong.

    A stream that cannot be written any more (the reader of a pipe has gone) is left alone from then on; the crawl goes
    on. Use as a context: at the end everything gathered is written and the bar is gone.
    """

    def __init__(
        self,
        *,
        lines: TextIO,
        notes: TextIO,
        is_quiet: bool = False,
        has_bar: bool = False,
        has_colour: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lines = _Stream(lines)
        self._notes = _Stream(notes) if notes is not lines else self._lines
        self._is_one_place = self._lines.is_same_place(self._notes)
        self._is_quiet = is_quiet
        self._has_bar = has_bar
        self._has_colour = has_colour
        room = _columns(lines) - 50 if lines.isatty() else 0
        self._url_width = max(_URL_WIDTH, min(_MOST_URL_WIDTH, room))
        self._clock = clock
        self._lock = threading.RLock()
        self._gathered: list[str] = []  # filled by page and skipped, emptied by _write_gathered
        self._written_at = float("-inf")
        self._bar: _Bar | None = None
        self._home: str | None = None
        """Host and port of the first seed, whose pages are shown without it."""
        self._is_cancelled = False
        self._is_mid_line = False
        """The last thing written is "cancelling: ...", whose line is still open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Writes what was gathered and removes the bar. More than once does no harm."""
        with self._lock:
            self._write_gathered()
            self._end_line()
            if self._bar is not None:
                self._bar.close()
                self._bar = None

    # Reporter

    def started(self, options: Options, *, parse_procs: int) -> None:
        seeds = options.seeds
        self._home = _host_of(resolve(seeds[0], "") or seeds[0]) if seeds else None
        if self._is_quiet:
            return
        more = f" and {len(seeds) - 1:,} more" if len(seeds) > 1 else ""
        what = scrub(_without_userinfo(seeds[0])) + more if seeds else "the rest of an earlier crawl"
        depth = "all" if options.depth is None else f"{options.depth:,}"
        self._gathered.append(
            f"crawling {what}  depth={depth} concurrency={options.concurrency} rps/host={options.rps:g} "
            f"parse-procs={parse_procs}"
        )
        with self._lock:
            self._write_gathered()
            if self._has_bar:
                self._bar = _Bar(self._notes, most_pages=options.max_pages)

    def page(self, record: PageRecord) -> None:
        if self._is_quiet:
            return
        if record.status is None:
            said = f"{record.outcome}: {record.error}" if record.error else str(record.outcome)
            self._gather("--", record.url, scrub(said), _RED)
            return
        said = f"{record.links:>2} links {record.millis:>5}ms"
        if record.redirect_url is not None:
            said += f"  -> {self._shown(record.redirect_url)}"
        if record.outcome not in _SAID_BY_STATUS:
            said += f"  {record.outcome}" + (f": {scrub(record.error)}" if record.error else "")
        if record.extract_error is not None:
            said += f"  extract: {scrub(record.extract_error)}"
        is_well = record.status < 400 and record.outcome in _SAID_BY_STATUS
        colour = _RED if not is_well else _CYAN if record.status >= 300 else _GREEN
        self._gather(str(record.status), record.url, said, colour)

    def skipped(self, url: str, reason: SkipReason, error: str | None) -> None:
        if self._is_quiet:
            return
        said = _REASONS[reason] + (f": {scrub(error)}" if error else "")
        self._gather("--", url, said, _YELLOW)

    def status(self, status: Status) -> None:
        with self._lock:
            self._write_gathered()
            if self._bar is not None:
                self._bar.show(status)

    def notice(self, text: str) -> None:
        self.note(f"note: {scrub(text, limit=500)}")

    def cancelling(self, fetches: int) -> None:
        with self._lock:
            self.close()
            self._notes.write(f"cancelling: interrupting {fetches:,} fetches...")
            self._is_cancelled = self._is_mid_line = True

    def finished(self, summary: Summary) -> None:
        with self._lock:
            if self._is_cancelled and summary.out:
                space = " " if self._is_mid_line else ""
                places = ", ".join(_file(each.path) for each in summary.out)
                self._notes.write(f"{space}flushed partial results to {places}\n")
                self._is_mid_line = False
            self.close()
            if not self._is_quiet:
                self._write_lines("".join(f"{line}\n" for line in _last_lines(summary)))
            if summary.stop_reason is StopReason.INTERRUPTED and summary.state is not None:
                self._notes.write("to go on, run the same command with --resume\n")

    # for cli

    def note(self, text: str) -> None:
        """Writes a line to stderr, above the bar; for any thread."""
        with self._lock:
            self._write_gathered()
            with self._room_on(self._notes):
                self._notes.write(f"{text}\n")

    # inside

    def _gather(self, status: str, url: str, said: str, colour: str) -> None:
        painted = f"\x1b[{colour}m{status}\x1b[0m" if self._has_colour else status
        line = f"  {painted}{' ' * (4 - len(status))} {self._shown(url):<{self._url_width}} {said}"
        with self._lock:  # `note` empties it in other threads
            self._gathered.append(line)
            is_time = self._clock() - self._written_at >= _INTERVAL and not self._is_mid_line
            if is_time or len(self._gathered) >= _MOST_GATHERED:
                self._write_gathered()

    def _write_gathered(self) -> None:
        if not self._gathered:
            return
        text = "\n".join(self._gathered) + "\n"
        self._gathered.clear()
        self._written_at = self._clock()
        self._write_lines(text)

    def _write_lines(self, text: str) -> None:
        with self._room_on(self._lines):
            problem = self._lines.write(text)
        if problem is not None and self._lines is not self._notes:
            self.note(f"note: {problem}: no more page lines, the crawl goes on")

    @contextmanager
    def _room_on(self, stream: _Stream) -> Iterator[None]:
        """While the block writes where the notes go, the bar is out of the way; it is drawn again below."""
        if stream is not self._notes and not self._is_one_place:
            yield
            return
        self._end_line()
        if self._bar is not None:
            self._bar.hide()
        yield
        if self._bar is not None:
            self._bar.draw()

    def _end_line(self) -> None:
        if self._is_mid_line:
            self._notes.write("\n")
            self._is_mid_line = False

    def _shown(self, url: str) -> str:
        """The URL without scheme and host when the host is the first seed's; scrubbed and not too long."""
        host = _host_of(url)
        if self._home is None:
            self._home = host
        if host != self._home:
            return scrub(url)
        start = url.find("/", url.find("://") + 3)
        return scrub(url[start:]) if start > 0 else "/"


def open_screen(*, is_stdout_taken: bool, is_quiet: bool, has_progress: bool, has_colour: bool) -> Screen:
    """A Screen on this process's streams; where stdout is taken by an output (--out -), page lines go to stderr.

    The bar needs a terminal; colours need one that is not dumb, and no NO_COLOR (no-color.org) in the environment.
    """
    lines = sys.stderr if is_stdout_taken else sys.stdout
    may_colour = lines.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"
    return Screen(
        lines=lines,
        notes=sys.stderr,
        is_quiet=is_quiet,
        has_bar=has_progress and not is_quiet and sys.stderr.isatty(),
        has_colour=has_colour and may_colour,
    )


_RED, _GREEN, _YELLOW, _CYAN = "31", "32", "33", "36"


class _Stream:
    """A text stream that turns silent when its other end is gone, instead of raising at every write and at exit."""

    def __init__(self, stream: TextIO) -> None:
        self.raw = stream
        self._is_open = not stream.closed

    def write(self, text: str) -> str | None:
        """Writes now. Returns what went wrong, once, unless it is only that nobody reads any more."""
        if not self._is_open:
            return None
        try:
            self.raw.write(text)
            self.raw.flush()
        except OSError as error:
            self._is_open = False
            self._discard_rest()
            return None if isinstance(error, BrokenPipeError) else f"{error.strerror or error}"
        return None

    def is_same_place(self, other: _Stream) -> bool:
        """Does what is written to both mix: one terminal, one pipe or one file?"""
        try:
            mine, others = os.fstat(self.raw.fileno()), os.fstat(other.raw.fileno())
        except (OSError, ValueError):
            return self.raw is other.raw
        return os.path.samestat(mine, others)

    def _discard_rest(self) -> None:
        """What is left in the stream's buffer would raise again when the interpreter flushes it at exit."""
        try:
            number = self.raw.fileno()
        except (OSError, ValueError):
            return
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)


class _Bar:
    """tqdm's bar, below everything else. It is removed at the end: the summary says all it said."""

    def __init__(self, stream: _Stream, *, most_pages: int | None) -> None:
        self._stream = stream
        self._most_pages = most_pages
        self._samples: deque[tuple[float, int]] = deque([(0.0, 0)], maxlen=50)
        self._tqdm: tqdm[None] = _new_tqdm(stream.raw)

    def show(self, status: Status) -> None:
        total = status.pages + status.queued + status.in_flight
        if self._most_pages is not None:
            total = max(status.pages, min(total, self._most_pages))
        self._samples.append((status.elapsed, status.pages))
        (since, before), (now, pages) = self._samples[0], self._samples[-1]
        rate = (pages - before) / (now - since) if now > since else 0.0
        parts = [
            f"{status.pages:,}/{total:,} pages",
            f"{rate:,.1f}/s" if rate < 100 else f"{rate:,.0f}/s",
            f"{status.errors:,} errors",
            f"{status.queued:,} queued",
            _as_size(status.bytes),
            *([f"limit {status.limiter}"] if status.limiter else []),
        ]
        room = _columns(self._stream.raw) - len("100%|██████████| ")
        while len(parts) > 1 and len("  ".join(parts)) > room:
            parts.pop()
        self._tqdm.total, self._tqdm.n = total, status.pages
        self._tqdm.set_description_str("  ".join(parts), refresh=False)
        self.draw()

    def draw(self) -> None:
        self._tqdm.refresh()

    def hide(self) -> None:
        self._tqdm.clear()

    def close(self) -> None:
        self._tqdm.close()


def _new_tqdm(stream: TextIO) -> tqdm[None]:
    """A bar of tqdm that starts no thread of its own and takes no lock between processes: one process draws."""
    from tqdm import tqdm

    class Quiet(tqdm):  # type: ignore[type-arg]  # not generic at run time
        monitor_interval = 0

    Quiet.set_lock(threading.RLock())
    return Quiet(file=stream, total=1, leave=False, dynamic_ncols=True, bar_format="{percentage:3.0f}%|{bar}| {desc}")


def _last_lines(summary: Summary) -> Iterator[str]:
    word = {StopReason.INTERRUPTED: "interrupted", StopReason.ERROR: "failed"}.get(summary.stop_reason, "done")
    elapsed = f"{summary.elapsed:,.0f}s" if summary.elapsed >= 10 else f"{summary.elapsed:.1f}s"
    yield (
        f"{word}  pages={summary.pages:,} ok={summary.ok:,} errors={summary.errors:,} skipped={summary.skipped:,} "
        f"unique_urls={summary.unique_urls:,} elapsed={elapsed}"
        + (f" damaged={summary.damaged:,}" if summary.damaged else "")
    )
    if summary.limit is not None:
        yield f"limit {summary.limit}"
    if summary.stop_reason in _BUDGETS:
        again = "; to go on, run the same command with --resume and a larger one" if summary.state else ""
        yield f"bound {_BUDGETS[summary.stop_reason]} reached{again}"
    yield from map(wrote, summary.out)


def wrote(output: Written) -> str:
    """The line that says what was written and what is in it."""
    counts = [
        *([f"{output.pages:,} pages"] if output.pages is not None else []),
        *([f"{output.edges:,} edges"] if output.edges is not None else []),
    ]
    return f"wrote {_file(output.path)}" + (f" ({', '.join(counts)})" if counts else "")


def _file(out: str) -> str:
    return "stdout" if out == "-" else out


def _host_of(url: str) -> str | None:
    """Host and port, as --scope compares them: http and https on their default ports are one. None: there is none."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    return f"{parts.hostname}:{port}" if port not in (None, 80, 443) else parts.hostname


def _without_userinfo(url: str) -> str:
    before, mark, rest = url.partition("://")
    authority = rest.split("/", 1)[0]
    return before + mark + rest[authority.rfind("@") + 1 :]


def _as_size(count: int) -> str:
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:,.1f} GiB"


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
