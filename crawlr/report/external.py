"""What --check-external found out: link targets out of scope that are broken, apart from those that only turn
programs away, each with the pages that link there.

From: the view. To: the tab Links out, which is there when a target was asked. Main thread.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from crawlr.records import ExternalClass, Outcome, SkipReason
from crawlr.report.facts import Facts
from crawlr.report.linking import linking_pages
from crawlr.report.tables import Column, Kind, Largest, Table, Urls, shown
from crawlr.report.weight import Bar, bars
from crawlr.report.words import phrase
from crawlr.sinks.source import Source

__all__ = ["External"]

ROWS = 10_000
_WORST_FIRST = (ExternalClass.BROKEN, ExternalClass.BLOCKED, ExternalClass.UNCHECKED)
_MEANINGS = {
    ExternalClass.OK: "there",
    ExternalClass.BROKEN: "an error, or no answer",
    ExternalClass.BLOCKED: "401, 403, 429 or 999",
    ExternalClass.UNCHECKED: "robots.txt or its address forbids it",
}


class _Row(NamedTuple):
    id: int
    kind: str
    status: int | None
    happened: str
    inlinks: int


class External:
    """Reads the answers; rows are those that are not ok, the worst class first and those with the most links first."""

    def __init__(self, source: Source, facts: Facts, *, rows: int = ROWS) -> None:
        self._source = source
        self._facts = facts
        self._largest: Largest[_Row] = Largest(rows)
        self.kinds: Counter[str] = Counter()
        self.unasked = 0
        """Targets that were not to be asked, or not any more."""
        for number, _, status, outcome, kind, error in source.view.external_answers():
            if kind is None or outcome is None:
                self.unasked += 1
                continue
            self.kinds[kind] += 1
            if kind != ExternalClass.OK:
                inlinks = source.degrees.into[number]
                row = _Row(number, kind, status, _happened(status, outcome, error), inlinks)
                self._largest.offer((-_WORST_FIRST.index(ExternalClass(kind)), inlinks, -number), row)

    @property
    def is_asked(self) -> bool:
        """True when some target was asked."""
        return bool(self.kinds)

    def classes(self) -> list[Bar]:
        """Targets by class, each with what it means."""
        return bars([(str(kind), self.kinds[kind], _MEANINGS[kind]) for kind in ExternalClass if self.kinds[kind]])

    def table(self, urls: Urls) -> Table:
        """The table of what is kept, each row with the pages that link there."""
        rows = self._largest.best()
        inlinks = {row.id: row.inlinks for row in rows}
        return Table(
            columns=(
                Column("URL", Kind.URL),
                Column("Class", Kind.CHOICE),
                Column("Status", Kind.WHOLE),
                Column("What happened", Kind.TEXT),
                Column("Linked from", Kind.WHOLE),
            ),
            rows=[(urls.of(row.id), row.kind, row.status, shown(row.happened), row.inlinks) for row in rows],
            total=self._largest.total,
            sorted_by=-1,
            details=linking_pages(self._source, self._facts, urls, inlinks, opens=4).details,
        )


def _happened(status: int | None, outcome: str, error: str | None) -> str:
    """The answer in words."""
    if outcome == SkipReason.ROBOTS_DISALLOWED:
        return f"robots.txt{f': {error}' if error else ' forbids it'}"
    if error:
        return error
    if status is not None and outcome == Outcome.HTTP_ERROR:
        return phrase(status) or f"status {status}"
    return outcome.replace("_", " ")
