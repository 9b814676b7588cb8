"""What a host was asked for and how it answered: what an operator can show the owner of a site.

From: the pages and skipped URLs of the view, and the accounting of the crawl (stats_json) where there is one. To: the
tabs Hosts and Performance. Main thread.

Of a host in the accounting these fields are read: `requests`, `interval_s`, `held_s`, and, when they are there,
`crawl_delay_s`, `robots` (a sentence), `active_s` (seconds between its first and its last request). So many requests
have one space less between them: the rate is that of the spaces, and two requests at --rps 5 are 5 a second, not 10.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from crawlr.records import PageRecord, SkipReason
from crawlr.report.tables import Column, Kind, Row, Table
from crawlr.report.weight import Bar
from crawlr.scope import host_key, origin_of
from crawlr.sinks.source import Source

__all__ = ["Hosts"]

ROWS = 1000
SLOWEST = 15
_ENOUGH = 3  # answers, below which a mean says nothing beside others
_BUSY = (429, 503)


class _Host(Struct):
    pages: int = 0
    answers: int = 0
    errors: int = 0
    busy: int = 0
    """Answers that ask for less: 429 and 503."""
    bytes: int = 0
    millis: int = 0
    disallowed: int = 0
    unreachable: str | None = None

    @property
    def mean(self) -> float:
        return self.millis / self.answers if self.answers else 0.0


class Hosts:
    """Counts by host."""

    def __init__(self, source: Source, stats: Mapping[str, Any] | None) -> None:
        options = source.head.get("options")
        self._options: Mapping[str, Any] = options if isinstance(options, Mapping) else {}
        self._asked: dict[str, Mapping[str, Any]] = {host["host"]: host for host in (stats or {}).get("hosts", ())}
        self._hosts: dict[str, _Host] = {}
        self._of_origin: dict[str, _Host] = {}
        self.busy = 0
        for skipped in source.view.skipped():
            if skipped.reason is SkipReason.ROBOTS_DISALLOWED:
                self._host(skipped.url).disallowed += 1
            elif skipped.reason is SkipReason.ROBOTS_UNREACHABLE:
                self._host(skipped.url).unreachable = skipped.error or "robots.txt unreachable"

    @property
    def is_accounted(self) -> bool:
        """False: rates and waits are not known."""
        return bool(self._asked)

    def _host(self, url: str) -> _Host:
        origin = origin_of(url)
        found = self._of_origin.get(origin)
        if found is None:
            found = self._of_origin[origin] = self._hosts.setdefault(host_key(origin), _Host())
        return found

    def see(self, page: PageRecord) -> None:
        """Take a page in."""
        host = self._host(page.url)
        host.pages += 1
        status = page.status
        if status is not None:
            host.answers += 1
            host.bytes += page.bytes
            host.millis += page.millis
            if status in _BUSY:
                host.busy += 1
                self.busy += 1
        if status is None or status >= 400:
            host.errors += 1

    def held(self) -> float:
        """Seconds that Retry-After held hosts, all together."""
        return float(sum(host.get("held_s", 0.0) for host in self._asked.values()))

    def slowest(self) -> list[Bar]:
        """The hosts with the longest mean time of an answer."""
        known = [(host.mean, name, host) for name, host in self._hosts.items() if host.answers >= _ENOUGH]
        known.sort(key=lambda entry: (-entry[0], entry[1]))
        most = known[0][0] if known and known[0][0] else 1.0
        return [
            Bar(label=name, count=round(mean), share=0.0, width=mean / most, note=f"{host.answers:,}")
            for mean, name, host in known[:SLOWEST]
        ]

    def table(self) -> Table:
        """A host a row, those with the most pages first."""
        names = sorted(self._hosts.keys() | self._asked.keys(), key=lambda name: (-self._pages(name), name))
        return Table(
            columns=(
                Column("Host", Kind.TEXT),
                Column("Pages", Kind.WHOLE),
                Column("Errors", Kind.WHOLE),
                Column("429 or 503", Kind.WHOLE),
                Column("Requests", Kind.WHOLE),
                Column("Rate limit", Kind.RATE),
                Column("Rate achieved", Kind.RATE),
                Column("Active for", Kind.SECONDS),
                Column("Crawl-delay", Kind.SECONDS),
                Column("Held by Retry-After", Kind.SECONDS),
                Column("robots.txt", Kind.TEXT),
                Column("Mean time", Kind.MILLIS),
                Column("Bytes", Kind.SIZE),
            ),
            rows=[self._row(name) for name in names[:ROWS]],
            total=len(names),
            sorted_by=1,
        )

    def _pages(self, name: str) -> int:
        host = self._hosts.get(name)
        return host.pages if host else 0

    def _row(self, name: str) -> Row:
        host = self._hosts.get(name, _Host())
        asked = self._asked.get(name)
        rates: list[int | float | None] = [None] * 6
        if asked is not None:
            interval = float(asked["interval_s"])
            active = float(asked.get("active_s") or 0.0)
            rates = [
                asked["requests"],
                round(1 / interval, 3) if interval else None,
                round((asked["requests"] - 1) / active, 2) if active else None,
                round(active, 1) if active else None,
                self._crawl_delay(asked, interval),
                round(float(asked["held_s"]), 1),
            ]
        mean = round(host.mean) if host.answers else None
        return (name, host.pages, host.errors, host.busy, *rates, self._robots(host, asked), mean, host.bytes)

    def _crawl_delay(self, asked: Mapping[str, Any], interval: float) -> float | None:
        """What robots.txt asked for, or at least got: an interval that is longer than --rps makes it."""
        named = asked.get("crawl_delay_s")
        if named is not None:
            return float(named)
        rps = self._options.get("rps")
        if not isinstance(rps, int | float) or not interval:
            return None
        return round(interval, 3) if not rps or interval > 1 / rps + 1e-9 else None

    def _robots(self, host: _Host, asked: Mapping[str, Any] | None) -> str:
        named = (asked or {}).get("robots")
        if named:
            text = str(named)
        elif host.unreachable is not None:
            text = f"nothing requested: {host.unreachable}"
        elif self._options.get("robots") is False:
            text = "not asked (--no-robots)"
        elif host.answers or host.disallowed:
            text = "asked and obeyed"
        else:
            text = "not answered"
        return f"{text}; {host.disallowed:,} URLs refused" if host.disallowed else text
