"""Names what limits a crawl, in words a person can act on.

From: stats.Stages and the sizes of the pools. To: the `limit` line and the live bar. Pure.

The theory: a stage that is busy nearly all the time is the limit; when none is, what the coordinator slept for is.
Its sleep has exactly one reason at a time (stats.Wait).
"""

from __future__ import annotations

from dataclasses import dataclass

from crawlr.stats import Stages, Wait

__all__ = ["Load", "limiter", "limiter_word"]

_FULL = 0.85
"""From this share of busy time on a stage is the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One period of a crawl. `parse_busy`: seconds over all processes, hand-off included."""

    stages: Stages
    elapsed: float
    procs: int
    concurrency: int
    parse_busy: float
    rate: str
    """How the host's rate came to be, for a person: "--rps 5" or "Crawl-delay 2s"."""

    @property
    def parse_share(self) -> float:
        return self.parse_busy / (self.procs * self.elapsed) if self.elapsed > 0 else 0.0

    @property
    def fetch_share(self) -> float:
        return self.stages.fetch_busy / (self.concurrency * self.elapsed) if self.elapsed > 0 else 0.0

    @property
    def coordinator_share(self) -> float:
        return max(0.0, 1 - self.stages.idle / self.elapsed) if self.elapsed > 0 else 0.0


def limiter_word(load: Load) -> str:
    """The limit in a word: parse, coordinator, host, server, fetch or empty."""
    waits = load.stages.waits
    longest = max(waits, key=lambda wait: waits[wait])
    if load.coordinator_share >= _FULL and load.coordinator_share > load.parse_share:
        return "coordinator"
    if load.parse_share >= _FULL or (longest is Wait.PARSE and load.parse_share > load.fetch_share):
        return "parse"
    match longest:
        case Wait.HOST:
            return "host"
        case Wait.FETCH:
            stages = load.stages
            waited = stages.fetch_first_byte + stages.fetch_connect
            return "server" if waited > 0.5 * max(stages.fetch_busy, 1e-9) else "fetch"
        case _:
            return "empty" if load.parse_share < 0.5 else "parse"


def limiter(load: Load) -> str:
    """The text of the `limit` line, without that word."""
    stages = load.stages
    parse = f"{load.procs} procs {_percent(load.parse_share)} busy"
    fetch = f"fetchers {_percent(load.fetch_share)} busy"
    match limiter_word(load):
        case "parse":
            return f"parse: {parse}, {fetch}"
        case "coordinator":
            return f"coordinator: {_percent(load.coordinator_share)} busy, {fetch}, {parse}"
        case "host":
            host = max(stages.rate_hosts, key=lambda name: stages.rate_hosts[name], default="")
            return f"host rate: {load.rate} on {host}" if host else f"host rate: {load.rate}"
        case "server":
            wait = 1000 * (stages.fetch_first_byte + stages.fetch_connect) / max(1, stages.requests)
            return f"server: {wait:.0f} ms to first byte, {load.concurrency} requests at once, {parse}"
        case "fetch":
            return f"fetch threads: {load.concurrency} {_percent(load.fetch_share)} busy, {parse}"
        case _:
            return f"frontier empty: too few URLs known at once, {fetch}, {parse}"


def _percent(share: float) -> str:
    return f"{100 * min(share, 1.0):.0f}%"
