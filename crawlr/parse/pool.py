"""The parse pool: which process parses which bodies, and what becomes of both when one of them goes wrong.

From: coordinator (bodies), keeper and executors (messages through the coordinator's mailbox). To: coordinator (exactly
one outcome for each body). Main thread; it never blocks. Processes are started, watched and cleared away in keeper's
thread.

The theory. A slot is a place for one parse process; when the process dies, or grows, another takes the place. Slots
are opened and closed by `resize`; what a closed one has under way is finished. A process is two calls deep, so that it
need not wait for us. A process that dies leaves a mark that says on which page it was:
that page is under suspicion, all others of its calls are innocent and wait again. A suspect is parsed once more, alone,
in a process that has not parsed anything yet. A page that kills that one too is guilty, and recorded so. Before a
process gets anything to do it has parsed a sample; processes that can't do even this are the machine's fault, and stop
the crawl.
"""

from __future__ import annotations

import collections
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Future

from msgspec import Struct, field

from crawlr.errors import MachineError
from crawlr.parse import child, job
from crawlr.parse.batches import take
from crawlr.parse.keeper import Ended, Keeper, KeeperFailed, StartFailed
from crawlr.parse.parse_process import Call, CallDone, Greeted, LinkTable, ParseProcess, Work
from crawlr.parse.results import FAILED, PAGE, FailedRow, PageResult, SitemapResult
from crawlr.parse.settings import SAMPLE, WorkerSettings
from crawlr.parse.start_method import Birthplace, birthplace, modules_of
from crawlr.records import Outcome, RawBody, TaskKind

__all__ = ["PARSE_MESSAGES", "LinkTable", "ParseFailed", "ParsePool", "ParsedBatch"]

logger = logging.getLogger(__name__)
PARSE_MESSAGES = (CallDone, Greeted, Ended, StartFailed, KeeperFailed)
"""What `deliver` is given, for isinstance."""

CALLS_DEEP = 2
SECOND_CALL_PAGES = 12
"""So many must wait before a busy process gets a second call. Fewer go together when its first is done, for a call
costs the main process 0.2 ms: a crawl of small pages takes 4% less than with second calls from 4 on."""
UP_LIMIT = 30.0
"""Seconds in which a process must have greeted."""
GRACE = 5.0
"""Seconds beyond a page's limit before the pool ends a process that has not ended itself."""
TOLD_LIMIT = 2.0
"""Seconds in which the executor must have failed the calls of a process that has ended."""
MAX_FAILED_STARTS = 5
"""So often in a row a slot may fail to start before the machine is held unable; it takes 3 s."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
WORN_BYTES = 300 * 1024 * 1024
WORN_PAGES = 50_000
"""Growth of resident memory, and pages, after which a process is replaced: lxml keeps every tag name it ever saw. By
pages alone it costs: a new process sends each link's text again."""


class ParsedBatch(Struct, frozen=True, kw_only=True):
    """What one call gave. Made by pool, read by the coordinator, which appends an id to table.ids for each of new_links
    first."""

    table: LinkTable
    new_links: list[tuple[str, str]]
    """(url, its identity, or "" when that is the url itself)"""
    results: list[PageResult | SitemapResult]


class ParseFailed(Struct, frozen=True, kw_only=True):
    """A body without a result. Made by pool, read by the coordinator."""

    id: int
    kind: TaskKind
    outcome: Outcome
    """parser_crash, parse_timeout or parse_memory"""
    error: str


class _Slot(Struct):
    index: int
    is_open: bool = True
    """A closed one has processes in `leaving` only. It keeps its seconds and may be opened again."""
    current: ParseProcess | None = None
    """Gets calls."""
    coming: ParseProcess | None = None
    """Ordered, has not greeted yet; it takes the place of `current`."""
    leaving: list[ParseProcess] = field(default_factory=list)
    """Finish their calls."""
    failed_starts: int = 0
    retry_at: float | None = None
    busy: float = 0.0
    cpu: float = 0.0

    def processes(self) -> Iterator[ParseProcess]:
        if self.current is not None:
            yield self.current
        if self.coming is not None:
            yield self.coming
        yield from self.leaving

    def worth(self) -> tuple[bool, bool, int]:
        """Which of two slots is the greater loss: one that works before one that comes up; then the one whose links
        cross as numbers, because it has parsed much."""
        return self.current is not None, self.coming is not None, self.current.pages_done if self.current else 0


class ParsePool:
    """`procs` parse processes. Bodies go in by submit and flush; outcomes come from receive and tick."""

    def __init__(
        self,
        *,
        procs: int,
        settings: WorkerSettings,
        deliver: Callable[[object], None],
        clock: Callable[[], float] = time.monotonic,
        work: Work | None = None,
        place: Birthplace | None = None,
    ) -> None:
        self._work = work = work or _work(settings)
        self._deliver = deliver
        self._clock = clock
        self._place = place
        self._keeper: Keeper | None = None
        self._slots = [_Slot(index) for index in range(procs)]
        self._procs = procs  # of them are open
        self._waiting: collections.deque[RawBody] = collections.deque()  # filled by submit and _spare, emptied by flush
        # Filled by _lose and _call_done, emptied by flush; with each whether it has ended a process already.
        self._suspects: collections.deque[tuple[RawBody, bool]] = collections.deque()
        self._in_flight = 0
        self._done = (0, 0.0)  # bytes of bodies as they were submitted, and the seconds of CPU that they took
        self._slot_seconds = 0.0  # up to _counted_at
        self._counted_at: float | None = None
        self._call_limit = work.page_seconds + GRACE
        self._worn_bytes = min(WORN_BYTES, work.memory // 2)

    @property
    def procs(self) -> int:
        """Slots that are open, whether a process is up in them or not."""
        return self._procs

    @property
    def waiting(self) -> int:
        """Bodies not yet given to a process."""
        return len(self._waiting) + len(self._suspects)

    @property
    def in_flight(self) -> int:
        """Bodies given to a process, without an outcome yet."""
        return self._in_flight

    @property
    def busy(self) -> tuple[float, ...]:
        """Seconds of work up to now, a slot; also of slots that are closed."""
        now = self._clock()
        return tuple(slot.busy + sum(now - p.began for p in slot.processes() if p.calls) for slot in self._slots)

    @property
    def cpu(self) -> float:
        """Seconds of CPU of all slots: less than `busy` where cores are short. A call under way counts whole."""
        now = self._clock()
        return sum(slot.cpu + sum(now - p.began for p in slot.processes() if p.calls) for slot in self._slots)

    @property
    def backlog(self) -> float:
        """Seconds of CPU that the waiting bodies will take, suspects aside, by what a byte has taken so far."""
        size, seconds = self._done
        return sum(len(body.body) for body in self._waiting) * seconds / size if size else 0.0

    @property
    def slot_seconds(self) -> float:
        """Seconds since the start, times the slots that were open: what could have been work."""
        if self._counted_at is None:
            return 0.0
        return self._slot_seconds + self.procs * (self._clock() - self._counted_at)

    def start(self) -> None:
        """Have the processes started; returns at once. MachineError when not even that can be ordered."""
        assert self._keeper is None
        place = self._place or birthplace(modules=self._work.modules)
        try:
            self._keeper = Keeper(place=place, deliver=self._deliver)
        except (OSError, RuntimeError) as error:  # no descriptors; no thread
            raise MachineError(f"parser processes cannot run: {error}") from error
        self._counted_at = self._clock()
        for slot in self._open_slots():
            self._launch(slot)

    def resize(self, procs: int) -> None:
        """Have so many processes from now on; returns at once. Those that go finish the calls that they have."""
        assert procs > 0
        self._slot_seconds, self._counted_at = self.slot_seconds, self._clock()
        while self._procs > procs:
            self._close_slot(min(self._open_slots(), key=_Slot.worth))
        while self._procs < procs:
            slot = next((slot for slot in self._slots if not slot.is_open), None)
            if slot is None:
                slot = _Slot(len(self._slots))
                self._slots.append(slot)
            slot.is_open = True
            self._procs += 1
            self._launch(slot)

    def submit(self, body: RawBody) -> None:
        """Queue a body. It goes to a process at the next flush with room."""
        self._waiting.append(body)

    def flush(self) -> None:
        """Give waiting bodies to processes with room. To be called after every round of submit, receive and tick."""
        if self._suspects:
            self._try_suspects()
        if not self._waiting:
            return
        idle = [slot.current for slot in self._slots if slot.current is not None and not slot.current.calls]
        for left, free in zip(range(len(idle), 0, -1), idle, strict=True):
            self._send(free, share=-(-len(self._waiting) // left))
        if not self._waiting:
            return
        for slot in self._slots:
            process = slot.current
            if len(self._waiting) < SECOND_CALL_PAGES or process is None:
                continue
            if len(process.calls) == CALLS_DEEP - 1 and not process.calls[0].is_alone:
                self._send(process, share=len(self._waiting))

    def receive(self, message: object) -> list[ParsedBatch | ParseFailed]:
        """The outcomes that a message brings. MachineError when parse processes cannot run on this machine."""
        match message:
            case CallDone(process, number, call_future):
                return self._call_done(process, number, call_future)
            case Greeted(process, greeting):
                self._greeted(process, greeting)
            case Ended(process):
                self._ended(process)
            case StartFailed(process, reason):
                self._start_failed(process, reason)
            case KeeperFailed(error):
                raise error
            case _:
                raise TypeError(f"no message of the parse pool: {message!r}")
        return []

    def due(self) -> float | None:
        """When `tick` wants to be called, in the clock's seconds; None: never."""
        times = [slot.retry_at for slot in self._slots if slot.retry_at is not None]
        times += [p.deadline for slot in self._slots for p in slot.processes() if p.deadline is not None]
        return min(times, default=None)

    def tick(self, now: float) -> list[ParsedBatch | ParseFailed]:
        """The outcomes of what is overdue at `now`. MachineError as in receive."""
        found: list[ParsedBatch | ParseFailed] = []
        for slot in self._slots:
            if slot.retry_at is not None and now >= slot.retry_at:
                slot.retry_at = None
                self._launch(slot)
            for process in list(slot.processes()):
                if process.deadline is not None and now >= process.deadline:
                    found += self._overdue(slot, process, now)
        return found

    def close(self, *, kill: bool) -> None:
        """Every process, thread and descriptor of the pool is gone when it returns, within about 2 s. What is in flight
        is lost."""
        if self._keeper is not None:
            self._keeper.close(kill=kill)
            self._keeper = None

    # processes

    def _open_slots(self) -> list[_Slot]:
        return [slot for slot in self._slots if slot.is_open]

    def _close_slot(self, slot: _Slot) -> None:
        slot.is_open, slot.retry_at, slot.failed_starts = False, None, 0
        self._procs -= 1
        if slot.coming is not None:
            self._discard(slot.coming)
        if slot.current is not None:
            self._retire(slot, slot.current)
        slot.coming = slot.current = None

    def _launch(self, slot: _Slot) -> None:
        assert self._keeper is not None
        assert slot.coming is None
        slot.coming = ParseProcess(slot=slot.index, work=self._work, deliver=self._deliver)
        slot.coming.deadline = self._clock() + UP_LIMIT
        self._keeper.start(slot.coming)

    def _greeted(self, process: ParseProcess, greeting: Future[tuple[str | None, int]]) -> None:
        slot = self._slots[process.slot]
        if slot.coming is not process:
            return
        error = None if greeting.cancelled() else greeting.exception()
        if error is not None or greeting.cancelled():
            self._start_failed(process, self._how_it_went(process, error)[1])
            return
        reason, rss = greeting.result()
        if reason is not None:
            self._start_failed(process, reason)
            return
        process.first_rss, process.deadline = rss, None
        slot.coming = None
        if slot.current is not None:
            self._retire(slot, slot.current)
        slot.current = process

    def _start_failed(self, process: ParseProcess, reason: str) -> None:
        slot = self._slots[process.slot]
        if slot.coming is not process:
            return
        slot.coming = None
        self._discard(process)
        self._pause(slot, reason)

    def _pause(self, slot: _Slot, reason: str) -> None:
        """Another try later; MachineError when there were enough and nothing else can do the work."""
        slot.failed_starts += 1
        logger.info("parse.start_failed slot=%d times=%d reason=%s", slot.index, slot.failed_starts, reason)
        is_alive = any(each.current is not None for each in self._slots) and not self._suspects
        if slot.failed_starts > MAX_FAILED_STARTS and not is_alive:
            raise MachineError(f"parser processes cannot run: {reason}")
        slot.retry_at = self._clock() + min(FIRST_PAUSE * 2.0 ** (slot.failed_starts - 1), LONGEST_PAUSE)

    def _ended(self, process: ParseProcess) -> None:
        slot = self._slots[process.slot]
        if process is slot.coming:
            return  # its greeting fails too, and says why
        if process.calls:
            process.deadline = self._clock() + TOLD_LIMIT  # its calls fail any moment
        elif process is slot.current:
            slot.current = None
            reason = self._how_it_went(process, None)[1]
            self._discard(process)
            if slot.coming is not None:
                return
            if process.pages_sent:
                self._launch(slot)
            else:
                self._pause(slot, reason)
        elif process in slot.leaving:
            slot.leaving.remove(process)
            self._discard(process)

    def _retire(self, slot: _Slot, process: ParseProcess) -> None:
        if process.calls:
            slot.leaving.append(process)
        else:
            self._discard(process)

    def _discard(self, process: ParseProcess) -> None:
        assert self._keeper is not None
        process.deadline = None
        self._keeper.end(process)

    def _overdue(self, slot: _Slot, process: ParseProcess, now: float) -> list[ParsedBatch | ParseFailed]:
        if process is slot.coming:
            self._start_failed(process, f"no sign of life within {UP_LIMIT:g} s")
            return []
        if process.how_it_ended() is not None:
            return self._lose(process, process.calls[0], None)  # and its executor has not told
        mark = process.mark()
        if mark == process.seen:
            return self._lose(process, process.calls[0], TimeoutError())
        process.seen, process.deadline = mark, now + self._call_limit
        return []

    # calls

    def _send(self, process: ParseProcess, *, share: int) -> None:
        pages = take(self._waiting, share=share)
        if pages and not self._hand_over(process, pages):
            self._waiting.extendleft(reversed(pages))

    def _hand_over(
        self, process: ParseProcess, pages: tuple[RawBody, ...], *, is_alone: bool = False, is_last_try: bool = False
    ) -> bool:
        if not process.send(pages, is_alone=is_alone, is_last_try=is_last_try):
            return False  # its end is about to be told
        self._in_flight += len(pages)
        if len(process.calls) == 1:
            process.began = self._clock()
            process.seen, process.deadline = None, self._clock() + self._call_limit
        return True

    def _try_suspects(self) -> None:
        """Each suspect alone into a process that has parsed nothing yet; when there is none, one is ordered."""
        for slot in self._slots:
            process = slot.current
            if self._suspects and process is not None and not process.pages_sent:
                page, is_last_try = self._suspects.popleft()
                if not self._hand_over(process, (page,), is_alone=True, is_last_try=is_last_try):
                    self._suspects.appendleft((page, is_last_try))
        if self._suspects and not any(slot.coming is not None or slot.retry_at is not None for slot in self._slots):
            self._launch(
                min(self._open_slots(), key=lambda slot: len(slot.current.calls) if slot.current is not None else 0)
            )

    def _call_done(
        self, process: ParseProcess, number: int, future: Future[tuple[float, child.Answer, float]]
    ) -> list[ParsedBatch | ParseFailed]:
        call = next((each for each in process.calls if each.number == number), None)
        if call is None or future.cancelled():
            return []  # the process was given up before
        error = future.exception()
        if error is not None:
            return self._lose(process, call, error)
        assert call is process.calls[0], "one worker answers in order"
        slot = self._slots[process.slot]
        seconds, (table_was_reset, new_links, rows, rss), cpu = future.result()
        assert len(rows) == len(call.pages), "one row a body"
        process.calls.popleft()
        process.began = self._clock()
        process.seen, process.deadline = None, process.began + self._call_limit if process.calls else None
        process.pages_done += len(rows)
        slot.busy += seconds
        slot.cpu += cpu
        self._in_flight -= len(rows)
        self._done = self._done[0] + sum(len(page.body) for page in call.pages), self._done[1] + cpu
        for each in self._slots:
            each.failed_starts = 0
        if table_was_reset:
            process.table = LinkTable()  # a new one: batches given out before keep theirs
        batch = ParsedBatch(table=process.table, new_links=new_links, results=[])
        found: list[ParsedBatch | ParseFailed] = [batch]
        for page, row in zip(call.pages, rows, strict=True):
            if row[0] == FAILED:
                found.append(_failed(page, FailedRow._make(row[1:])))
            elif row[0] == PAGE:
                result = PageResult._make(row[1:])
                if result.outcome == Outcome.PARSE_MEMORY and not call.is_alone:
                    self._suspects.append((page, True))  # the memory may have been others'
                    process.is_worn = True
                else:
                    batch.results.append(result)
            else:
                batch.results.append(SitemapResult._make(row[1:]))
        if process is not slot.current:
            if not process.calls:
                slot.leaving.remove(process)
                self._discard(process)
        elif (
            (process.is_worn or rss - process.first_rss > self._worn_bytes or process.pages_done >= WORN_PAGES)
            and slot.coming is None
            and slot.retry_at is None
        ):
            self._launch(slot)  # it goes on until its replacement greets
        return found

    def _lose(self, process: ParseProcess, call: Call, error: BaseException | None) -> list[ParsedBatch | ParseFailed]:
        """The process is given up because `call` failed: the suspects are kept, all else waits again."""
        slot, mark = self._slots[process.slot], process.mark()
        outcome, reason = self._how_it_went(process, error)
        others = [page for each in process.calls if each is not call for page in each.pages]
        if mark.call == call.number and mark.state == child.PAGE:
            accused = [call.pages[mark.page]]
            others = [page for page in call.pages if page is not accused[0]] + others
        else:
            accused = list(call.pages)  # it died over the batch as such: while reading it or writing the result
        self._in_flight -= len(accused) + len(others)
        lost = self._clock() - process.began
        slot.busy += lost
        slot.cpu += lost
        process.calls.clear()
        self._waiting.extendleft(reversed(others))
        self._discard(process)
        if process is slot.current:
            slot.current = None
            if slot.coming is None and slot.retry_at is None:
                self._launch(slot)
        else:
            slot.leaving.remove(process)
        logger.info(
            "parse.process_lost slot=%d reason=%s suspects=%s", slot.index, reason, [page.url for page in accused]
        )
        if call.is_last_try:
            return [ParseFailed(id=page.id, kind=page.kind, outcome=outcome, error=reason) for page in accused]
        self._suspects.extend((page, len(accused) == 1) for page in accused)
        return []

    def _how_it_went(self, process: ParseProcess, error: BaseException | None) -> tuple[Outcome, str]:
        """(what a page is recorded with if this is its fault, the same in words)"""
        words = process.last_words()
        if isinstance(error, TimeoutError) or process.is_out_of_time():
            return Outcome.PARSE_TIMEOUT, f"parsing took longer than {self._work.page_seconds:g} s"
        if isinstance(error, MemoryError) or _last_line(words).startswith("MemoryError"):
            return Outcome.PARSE_MEMORY, f"parsing needed more than {self._work.memory // (1024 * 1024)} MiB"
        if error is None or isinstance(error, BrokenExecutor):
            ended = process.how_it_ended()
            if ended is not None:
                said = f": {_last_line(words)}" if words and ended.startswith("ended") else ""
                return Outcome.PARSER_CRASH, f"the parser process {ended}{said}"[:500]
        cause = error.__cause__ if error is not None and error.__cause__ is not None else error
        return Outcome.PARSER_CRASH, f"the parser process failed: {_last_line(str(cause))}"[:500]


def _work(settings: WorkerSettings) -> Work:
    return Work(
        initializer=job.initialise,
        arguments=(settings,),
        function=job.parse_batch,
        sample=SAMPLE,
        page_seconds=settings.parse_timeout,
        memory=settings.parse_memory,
        modules=modules_of(settings.parser),
    )


def _failed(page: RawBody, row: FailedRow) -> ParseFailed:
    logger.error("parse.failed url=%s reason=%s\n%s", page.url, row.error, row.trace)
    return ParseFailed(id=page.id, kind=page.kind, outcome=Outcome(row.outcome), error=row.error)


def _last_line(text: str) -> str:
    lines = text.strip("\n\"' ").splitlines()
    return lines[-1].strip() if lines else ""
