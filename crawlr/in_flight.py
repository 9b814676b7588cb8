"""URLs in flight: what is known of each from its request until its record is written, and the bytes they hold.

From: the coordinator (requests), answers (what came back). To: answers and parsed, which write the records. Main
thread.

Each URL in flight holds a share of the byte budget: a guess while it is fetched, its real size from then on, until
what was parsed of it is handed to the ledger. So memory is bounded however heavy pages are and however slow parsing
is.
"""

from __future__ import annotations

from msgspec import Struct

from crawlr.frontier import Frontier, Host
from crawlr.ledger import Finished, Ledger
from crawlr.parse import facts
from crawlr.records import FetchedPage, Outcome

__all__ = ["Asked", "InFlight", "robots_of", "unparsed"]

BYTE_BUDGET = 128 * 1024 * 1024
FIRST_GUESS = 2 * 1024 * 1024
"""The size of a body while nothing is known of their size."""


class Asked(Struct, kw_only=True):
    """One URL in flight."""

    url: str
    host: Host
    attempt: int
    reserved: int
    """Bytes of the budget."""
    millis: int = 0
    page: FetchedPage | None = None
    """Its last answer; None while there is none, and when there was no status."""


class InFlight:
    """Every URL in flight by its id, and how often those were asked that wait for another try."""

    def __init__(self, *, frontier: Frontier, ledger: Ledger) -> None:
        self._frontier = frontier
        self._ledger = ledger
        self._asked: dict[int, Asked] = {}  # filled by ask, emptied by drop and put_back
        self._attempts = ledger.journal.tries()  # filled from the journal at a resume and by put_back, emptied by ask
        self._reserved = 0
        self._guess = FIRST_GUESS

    @property
    def has_room(self) -> bool:
        """True when one more body of the usual size has a place in the budget; one alone always has."""
        return not self._asked or self._reserved + self._guess <= BYTE_BUDGET

    def __getitem__(self, number: int) -> Asked:
        return self._asked[number]

    def ask(self, number: int, url: str, host: Host) -> Asked:
        """Note that `number` is requested now."""
        attempt = self._attempts.pop(number, 0) + 1
        self._reserved += self._guess
        asked = self._asked[number] = Asked(url=url, host=host, attempt=attempt, reserved=self._guess)
        return asked

    def answered(self, asked: Asked, page: FetchedPage) -> None:
        """Put the real size of a body in the place of what was reserved for it."""
        asked.page = page
        size = len(page.body)
        self._reserved += size - asked.reserved
        asked.reserved = size
        self._guess += (max(16384, 2 * size) - self._guess) // 16

    def drop(self, number: int) -> Asked:
        """What is known of a URL whose record is written now; its share of the budget is free again."""
        asked = self._asked.pop(number)
        self._reserved -= asked.reserved
        return asked

    def put_back(self, number: int, at: float, *, attempts: int) -> None:
        """Let a URL wait again, not before `at`; it has been asked `attempts` times."""
        self.drop(number)
        self._attempts[number] = attempts
        self._ledger.note_try(number, attempts)
        self._frontier.retry(number, at)


def robots_of(page: FetchedPage, meta: tuple[str, ...], agent: str) -> tuple[str, ...]:
    """The robots directives of a page that apply to us: those of its document and those of its headers."""
    if not page.x_robots_tag:
        return meta
    return facts.merge(meta, facts.robots_from_headers(page.x_robots_tag, agent))


def unparsed(
    number: int,
    asked: Asked,
    *,
    outcome: Outcome,
    error: str | None,
    agent: str,
    redirect_to: int | None = None,
    redirect_url: str | None = None,
) -> Finished:
    """The final answer of a URL whose body was not parsed."""
    page = asked.page
    return Finished(
        id=number,
        url=asked.url,
        status=None if page is None else page.status,
        outcome=outcome,
        error=error,
        millis=asked.millis,
        size=0 if page is None else len(page.body),
        content_type=None if page is None else page.content_type,
        robots=() if page is None else robots_of(page, (), agent),
        redirect_to=redirect_to,
        redirect_url=redirect_url,
        attempts=asked.attempt,
        last_modified=None if page is None else page.last_modified,
    )
