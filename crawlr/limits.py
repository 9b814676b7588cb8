"""Names what limits a crawl, in words a person can act on.

From: stats.Stages and the sizes of the pools. To: the `limit` line and the live bar. Pure.

The theory: a stage that is busy nearly all the time is the limit; when none is, what the coordinator slept for is.
Its sleep has exactly one reason at a time (stats.Wait). Sleep in a pause says nothing of the crawl: shares are those of
the rest of the time.
"""

from __future__ import annotations

from msgspec import Struct

from crawlr.stats import Stages, Wait

__all__ = ["Load", "limiter", "limiter_word", "predict", "since"]

_FULL = 0.85
"""From this share of busy time on a stage is the limit."""


class Load(Struct, frozen=True, kw_only=True):
    """One period of a crawl. Seconds of parsing are summed over all processes, hand-off included."""

    stages: Stages
    elapsed: float
    procs: int
    """Parser processes at its end."""
    concurrency: int
    parse_busy: float
    parse_cpu: float
    """Of parse_busy the seconds on a core, not waiting for one."""
    parse_slots: float
    """Seconds that there were parser processes: their number may have changed."""
    main_cpu: float
    """Seconds that the main process was on cores, with its fetch threads: Python lets one of them run at a time."""
    cores: int
    """That this crawl may keep busy."""
    rate: str
    """How the host's rate came to be, for a person: "--rps 5" or "Crawl-delay 2s"."""

    @property
    def paused(self) -> float:
        """Seconds that the coordinator slept because the crawl was paused."""
        return self.stages.waits[Wait.PAUSED]

    @property
    def active(self) -> float:
        """Seconds without those."""
        return max(0.0, self.elapsed - self.paused)

    @property
    def parse_share(self) -> float:
        slots = self.parse_slots - self.procs * self.paused
        return max(0.0, self.parse_busy / slots) if slots > 0 else 0.0

    @property
    def fetch_share(self) -> float:
        return self.stages.fetch_busy / (self.concurrency * self.active) if self.active > 0 else 0.0

    @property
    def coordinator_share(self) -> float:
        return max(0.0, self.awake / self.active) if self.active > 0 else 0.0

    @property
    def main_share(self) -> float:
        """How busy the main process is: its thread that coordinates, awake or waiting for the disk, or all its threads,
        of which Python lets one run at a time."""
        return max(self.coordinator_share, self.main_cpu / self.active) if self.active > 0 else 0.0

    @property
    def awake(self) -> float:
        """Seconds that the coordinator did not sleep."""
        return self.elapsed - self.stages.idle


def since(now: Load, before: Load) -> Load:
    """The load of the period between two moments of one crawl."""
    a, b = now.stages, before.stages
    return Load(
        stages=Stages(
            fetch_busy=a.fetch_busy - b.fetch_busy,
            fetch_connect=a.fetch_connect - b.fetch_connect,
            fetch_first_byte=a.fetch_first_byte - b.fetch_first_byte,
            fetch_body=a.fetch_body - b.fetch_body,
            waits={wait: a.waits[wait] - b.waits[wait] for wait in Wait},
            parsed=a.parsed - b.parsed,
            requests=a.requests - b.requests,
            rate_hosts=a.rate_hosts,
        ),
        elapsed=now.elapsed - before.elapsed,
        procs=now.procs,
        concurrency=now.concurrency,
        parse_busy=now.parse_busy - before.parse_busy,
        parse_cpu=now.parse_cpu - before.parse_cpu,
        parse_slots=now.parse_slots - before.parse_slots,
        main_cpu=now.main_cpu - before.main_cpu,
        cores=now.cores,
        rate=now.rate,
    )


def predict(load: Load, procs: int) -> float:
    """How many times the pages a second `procs` parser processes would give, as far as these figures tell.

    What takes longest decides, before and after: the parsers' seconds of CPU over their number, the main process's (of
    its threads one runs at a time), the fetchers' busy time over their number, a host's rate, the lack of known URLs,
    or all seconds of CPU over the cores. `bench.stages` shows how far such predictions were off.
    """
    if not load.stages.parsed or load.elapsed <= 0 or load.parse_cpu <= 0 or load.parse_slots <= 0:
        return 1.0
    waits = load.stages.waits
    others = max(
        load.main_cpu,
        load.stages.fetch_busy / load.concurrency,
        waits[Wait.HOST],
        waits[Wait.EMPTY],
        (load.parse_cpu + load.main_cpu) / load.cores,
    )
    return max(load.parse_cpu / (load.parse_slots / load.elapsed), others) / max(load.parse_cpu / procs, others)


def limiter_word(load: Load) -> str:
    """The limit in a word: parse, coordinator, host, server, fetch or empty; paused when that is most of the time."""
    return "paused" if load.paused > load.elapsed / 2 else _word(load)


def _word(load: Load) -> str:
    waits = load.stages.waits
    longest = max((wait for wait in Wait if wait is not Wait.PAUSED), key=lambda wait: waits[wait])
    if load.coordinator_share >= _FULL and load.coordinator_share > load.parse_share:
        return "coordinator"
    if load.parse_share >= _FULL or (longest is Wait.PARSE and load.parse_share > load.fetch_share):
        return "parse"
    match longest:
        case Wait.HOST:
            return "host"
        case Wait.FETCH:
            stages = load.stages
            if load.main_share >= 0.5 and stages.fetch_busy < 0.5 * load.concurrency * waits[Wait.FETCH]:
                return "coordinator"  # every permit is out, and the process is too busy to use them
            waited = stages.fetch_first_byte + stages.fetch_connect
            return "server" if waited > 0.5 * max(stages.fetch_busy, 1e-9) else "fetch"
        case _:
            return "empty" if load.parse_share < 0.5 else "parse"


def limiter(load: Load) -> str:
    """The text of the `limit` line, without that word: of the time that the crawl was not paused."""
    stages = load.stages
    parse = f"{load.procs} procs {_percent(load.parse_share)} busy"
    fetch = f"fetchers {_percent(load.fetch_share)} busy"
    match _word(load):
        case "parse":
            return f"parse: {parse}, {fetch}"
        case "coordinator":
            return f"coordinator: {_percent(load.main_share)} busy, {fetch}, {parse}"
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
