"""What was not requested: URLs that a rule refused, and URLs that a bound came before, with an example of each.

From: the skipped and unvisited lists of the view. To: the tab Not requested. Main thread.
"""

from __future__ import annotations

from msgspec import Struct

from crawlr import scope
from crawlr.records import SkippedRecord, SkipReason, UnvisitedReason, UnvisitedRecord
from crawlr.report.tables import Column, Kind, Row, Table, Urls, shown
from crawlr.sinks.source import Source

__all__ = ["Reason", "Unasked"]

ROWS = 10_000
_MOST_REASONS = 200

_MEANINGS: dict[str, str] = {
    SkipReason.ROBOTS_DISALLOWED: "The site's robots.txt forbids it.",
    SkipReason.ROBOTS_UNREACHABLE: "robots.txt could not be read, which forbids everything.",
    SkipReason.NOFOLLOW: "Only links marked nofollow lead to it.",
    SkipReason.BLOCKED_ADDRESS: "Its host has an address that may not be asked.",
    SkipReason.URL_TOO_LONG: "The URL has more than 4,096 characters.",
    SkipReason.TRAP: "The URL, or what links to it, looks like an endless maze of pages.",
    UnvisitedReason.DEPTH_LIMIT: "It is further from the start than --depth allows.",
    UnvisitedReason.PAGE_BUDGET: "--max-pages was reached first.",
    UnvisitedReason.TIME_BUDGET: "--max-time was reached first.",
    UnvisitedReason.INTERRUPTED: "The crawl was interrupted first.",
}

_OF_URL = (SkipReason.URL_TOO_LONG, SkipReason.TRAP)


class Reason(Struct, kw_only=True):
    """One rule or bound, with what it kept from being requested."""

    name: str
    meaning: str
    rule: str | None
    """The very rule, where it is known; one about the URL alone is that of the example."""
    is_rule: bool
    """False: a bound."""
    count: int
    example: str
    found_on: str | None
    """The page that first led to the example."""


class Unasked:
    """Reads both lists; the rows that are kept are the first ones, what a rule refused before the rest."""

    def __init__(self, source: Source, urls: Urls, *, rows: int = ROWS) -> None:
        self._reasons: dict[tuple[str, str | None], Reason] = {}
        self._parents: dict[tuple[str, str | None], int] = {}
        self._rows: list[Row] = []
        self._most = rows
        self.skipped = self.unvisited = 0
        for skipped in source.view.skipped():
            self.skipped += 1
            self._see(skipped, skipped.error, urls)
        for unvisited in source.view.unvisited():
            self.unvisited += 1
            self._see(unvisited, None, urls)
        known = source.view.addresses(self._parents.values())
        for key, parent in self._parents.items():
            self._reasons[key].found_on = known[parent].url

    def _see(self, record: SkippedRecord | UnvisitedRecord, rule: str | None, urls: Urls) -> None:
        key: tuple[str, str | None] = (record.reason, rule)
        if key not in self._reasons and len(self._reasons) >= _MOST_REASONS:
            key = (record.reason, None)
        said = rule or (scope.rule_against(record.url) if record.reason in _OF_URL else None)
        reason = self._reasons.get(key)
        if reason is None:
            self._reasons[key] = Reason(
                name=_words(record.reason),
                meaning=_MEANINGS[record.reason],
                rule=shown(key[1] or said),
                is_rule=isinstance(record, SkippedRecord),
                count=1,
                example=record.url,
                found_on=None,
            )
            if record.parent is not None:
                self._parents[key] = record.parent
        else:
            reason.count += 1
        if len(self._rows) < self._most:
            parent = None if record.parent is None else urls.of(record.parent)
            self._rows.append((urls.of(record.id), _words(record.reason), shown(said), record.depth, parent))

    def reasons(self, *, is_rule: bool) -> list[Reason]:
        """Rules, or bounds, the most frequent first."""
        found = (reason for reason in self._reasons.values() if reason.is_rule is is_rule)
        return sorted(found, key=lambda reason: -reason.count)

    def table(self) -> Table:
        """Every URL that is kept."""
        return Table(
            columns=(
                Column("URL", Kind.URL),
                Column("Reason", Kind.CHOICE),
                Column("Rule", Kind.TEXT),
                Column("Depth", Kind.WHOLE),
                Column("First found on", Kind.URL),
            ),
            rows=self._rows,
            total=self.skipped + self.unvisited,
            sorted_by=-1,
        )


def _words(reason: str) -> str:
    return {"url_too_long": "URL too long"}.get(reason, reason.replace("_", " ").replace("robots", "robots.txt"))
