"""How fast the crawl was and what held it back, as the accounting has it (stats_json, format crawlr-stats/1).

From: the accounting; None when the page is made without it. To: the tab Performance. Main thread.

`parse_sample` of the accounting, where it is there, is a list of [bytes, microseconds] of some pages, chosen among
`parse_sample_of`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from crawlr.report.tables import Column, Kind, Table

__all__ = ["LIMITERS", "Performance", "Period", "Stage"]

LIMITERS: dict[str, str] = {
    "parse": "reading pages: the parser processes were busy",
    "server": "the server: most of the time went into waiting for its answers",
    "host": "politeness: the rate, the Crawl-delay or a Retry-After of a host",
    "fetch": "the fetchers: all requests that may be out at once were out",
    "coordinator": "the coordinator: choosing, merging and storing",
    "empty": "too few known URLs at once",
    "paused": "nobody but its owner: the crawl was paused",
}
"""What a limiter means, for a person."""


class Period(Struct, frozen=True, kw_only=True):
    """A stretch of time with one limiter, in seconds since the run began; `x`, `width`: of the whole, 0 to 1000."""

    limiter: str
    begin: float
    end: float
    x: float
    width: float


class Stage(Struct, frozen=True, kw_only=True):
    """Where the time of one stage went: (part, seconds)."""

    name: str
    slots: int
    share: float
    parts: list[tuple[str, float]]


class Performance:
    """The accounting in the shapes of the tab."""

    def __init__(self, stats: Mapping[str, Any] | None) -> None:
        self.stats = stats
        rows = list((stats or {}).get("timeline", ()))
        self.columns: dict[str, list[float]] | None = _columns(rows) if rows else None
        self.rows = rows
        self.periods, self.shares = _periods(rows)
        self.stages = [] if stats is None else _stages(stats)
        sample = (stats or {}).get("parse_sample")
        self.parse_points: list[tuple[int, float]] | None = (
            sorted((int(size), micros / 1000) for size, micros in sample) if sample else None
        )
        self.parsed = int((stats or {}).get("parse_sample_of") or len(sample or ()))
        """Pages among which these were chosen."""

    @property
    def is_accounted(self) -> bool:
        return self.stats is not None

    def table(self) -> Table:
        """The timeline, a period a row."""
        return Table(
            columns=(
                Column("Until, s", Kind.REAL),
                Column("Pages a second", Kind.REAL),
                Column("Bytes a second", Kind.SIZE),
                Column("Errors", Kind.WHOLE),
                Column("Fetchers busy, %", Kind.REAL),
                Column("Parsers busy, %", Kind.REAL),
                Column("Coordinator busy, %", Kind.REAL),
                Column("Limiter", Kind.CHOICE),
                Column("Waiting URLs", Kind.WHOLE),
            ),
            rows=[
                (
                    round(row["at"], 1),
                    round(row["pages"] / (row["seconds"] or 1.0), 1),
                    round(row["bytes"] / (row["seconds"] or 1.0)),
                    row["errors"],
                    round(100 * row["fetch_share"]),
                    round(100 * row["parse_share"]),
                    round(100 * row["coordinator_share"]),
                    row["limiter"],
                    row["queued"],
                )
                for row in self.rows
            ],
            total=len(self.rows),
            sorted_by=-1,
        )


def _columns(rows: list[Mapping[str, Any]]) -> dict[str, list[float]]:
    """The timeline as the plots take it: a list of values for each line."""

    def rate(name: str) -> list[float]:
        return [round(row[name] / row["seconds"], 2) if row["seconds"] else 0.0 for row in rows]

    def percent(name: str) -> list[float]:
        return [round(100 * min(row[name], 1.0), 1) for row in rows]

    return {
        "at": [round(row["at"], 2) for row in rows],
        "pages": rate("pages"),
        "bytes": rate("bytes"),
        "errors": rate("errors"),
        "fetch": percent("fetch_share"),
        "parse": percent("parse_share"),
        "coordinator": percent("coordinator_share"),
        "queued": [row["queued"] for row in rows],
        "inFlight": [row["in_flight"] for row in rows],
    }


def _periods(rows: list[Mapping[str, Any]]) -> tuple[list[Period], list[tuple[str, float]]]:
    """(stretches with one limiter, (limiter, share of the time) the longest first)."""
    runs: list[list[Any]] = []
    seconds: Counter[str] = Counter()
    for row in rows:
        limiter = str(row["limiter"])
        seconds[limiter] += row["seconds"]
        if runs and runs[-1][0] == limiter:
            runs[-1][2] = row["at"]
        else:
            runs.append([limiter, max(0.0, row["at"] - row["seconds"]), row["at"]])
    if not runs:
        return [], []
    begin, end = runs[0][1], runs[-1][2]
    scale = 1000 / (end - begin or 1.0)
    periods = [
        Period(
            limiter=limiter,
            begin=first,
            end=last,
            x=round((first - begin) * scale, 2),
            width=round((last - first) * scale, 2),
        )
        for limiter, first, last in runs
    ]
    total = sum(seconds.values()) or 1.0
    return periods, [(limiter, each / total) for limiter, each in seconds.most_common()]


def _stages(stats: Mapping[str, Any]) -> list[Stage]:
    fetch, parse, coordinator = stats["fetch"], stats["parse"], stats["coordinator"]
    return [
        Stage(
            name="Fetching",
            slots=fetch["slots"],
            share=fetch["busy_share"],
            parts=[
                ("connecting", fetch["connect_s"]),
                ("waiting for the first byte", fetch["first_byte_s"]),
                ("reading bodies", fetch["body_s"]),
            ],
        ),
        Stage(
            name="Parsing",
            slots=parse["slots"],
            share=parse["busy_share"],
            parts=[
                ("decoding", parse["decode_s"]),
                ("parsing", parse["parse_s"]),
                ("resolving links", parse["resolve_s"]),
                *([("extracting", parse["extract_s"])] if parse.get("extract_s") else []),
                ("handing over", parse["hand_off_s"]),
            ],
        ),
        Stage(
            name="Coordinator",
            slots=1,
            share=coordinator["busy_share"],
            parts=[
                ("choosing what to request", coordinator["dispatch_s"]),
                ("merging answers and links", coordinator["merge_s"]),
                ("storing", coordinator["journal_s"]),
                ("idle", coordinator["idle_s"]),
            ],
        ),
    ]
