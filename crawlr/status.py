"""How a running crawl stands, as a value: what Crawl.status() gives, SIGUSR1 prints and --status writes.

From: control, which fills one in the crawl's main thread. To: any thread that asks; `lines` for people, `document` for
programs. Pure.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from msgspec import Struct, structs, to_builtins

from crawlr.frontier import Frontier, Host
from crawlr.records import StopReason
from crawlr.scrub import scrub

__all__ = ["MOST_HOSTS", "CrawlState", "CrawlStatus", "HostStatus", "Phase", "document", "fill_in", "lines"]

MOST_HOSTS = 100
"""Hosts in one status; a crawl may know very many."""
_HOSTS_FOR_PEOPLE = 10


class CrawlState(StrEnum):
    """Whether a crawl goes on."""

    READY = "ready"
    """`run` has not been called."""
    RUNNING = "running"
    PAUSED = "paused"
    """No request is started until it is resumed."""
    STOPPING = "stopping"
    """It was asked to end, or interrupted, or --max-time is over; what there is is being written."""
    FINISHED = "finished"
    """`run` has returned or raised, and every thread and process has ended."""


class Phase(StrEnum):
    """What a crawl is doing."""

    STARTING = "starting"
    """The state is opened and what it knows is loaded."""
    CRAWLING = "crawling"
    CHECKING = "checking links to outside"
    """--check-external"""
    WRITING = "writing"
    """The outputs are written."""
    ENDED = "ended"


class HostStatus(Struct, frozen=True, kw_only=True):
    """One host (host and port). Times in seconds."""

    host: str
    waiting: int
    """Requests that wait: URLs, retries, and what is asked besides (sitemaps, link targets of --check-external)."""
    in_flight: int
    """Requests under way."""
    next_in: float | None
    """Until the next request may start: 0 when it may now, None when nothing waits or an answer must come first."""
    requests: int
    """Started in this run."""
    interval: float
    """Between the starts of two of its requests: --rps or Crawl-delay; 0: no limit."""


class CrawlStatus(Struct, frozen=True, kw_only=True):
    """A crawl at one moment. Pages, errors and bytes are counted over all of its runs, when they are committed."""

    state: CrawlState = CrawlState.READY
    phase: Phase = Phase.STARTING
    pages: int = 0
    ok: int = 0
    """Pages with status 200-399."""
    errors: int = 0
    bytes: int = 0
    """Bytes of bodies, decoded."""
    known: int = 0
    """URLs known so far, in scope or not."""
    waiting: int = 0
    """Requests that wait, of all hosts."""
    in_flight: int = 0
    """Requests under way."""
    parsing: int = 0
    """Bodies that have been fetched and are not parsed yet."""
    elapsed: float = 0.0
    """Seconds of this run, pauses included."""
    paused: float = 0.0
    """Seconds of it that the crawl was paused."""
    limiter: str | None = None
    """What holds the crawl back, in a word, as the bar shows it; None when that is not known yet."""
    stop_reason: StopReason | None = None
    """Why it ended; None until it has finished."""
    hosts: tuple[HostStatus, ...] = ()
    """The hosts with something waiting or in flight, most of it first; at most 100."""
    hosts_active: int = 0
    """How many such hosts there are."""


def fill_in(status: CrawlStatus, frontier: Frontier, now: float) -> CrawlStatus:
    """The status with what waits and is in flight by this frontier. It costs a look at each host, some 2 us."""
    delayed: dict[str, list[float]] = {}
    for host, at in frontier.delayed():
        delayed.setdefault(host.name, []).append(at)
    active = []
    for host in frontier.hosts.values():
        waiting = sum(origin.waiting for origin in host.origins) + len(delayed.get(host.name, ()))
        if waiting or host.in_flight:
            active.append((-waiting - host.in_flight, host.name, waiting))
    hosts = []
    for _, name, waiting in heapq.nsmallest(MOST_HOSTS, active):
        host = frontier.hosts[name]
        starts_at = _starts_at(frontier, host, delayed.get(name, []))
        hosts.append(
            HostStatus(
                host=name,
                waiting=waiting,
                in_flight=host.in_flight,
                next_in=None if starts_at is None else round(max(0.0, starts_at - now), 3),
                requests=host.requests,
                interval=round(host.interval, 6),
            )
        )
    return structs.replace(
        status,
        waiting=sum(waiting for _, _, waiting in active),
        in_flight=sum(host.in_flight for host in frontier.hosts.values()),
        hosts=tuple(hosts),
        hosts_active=len(active),
    )


def _starts_at(frontier: Frontier, host: Host, delayed: list[float]) -> float | None:
    if host.in_flight >= host.limit:
        return None
    times = [max(at, host.next_at) for at in delayed]
    if any(origin.has_work(new_pages=frontier.has_budget) for origin in host.origins):
        times.append(host.next_at)
    return min(times, default=None)


def lines(status: CrawlStatus) -> Iterator[str]:
    """The status for a person."""
    limit = f", limit {status.limiter}" if status.limiter else ""
    paused = f", paused for {_seconds(status.paused)}" if status.paused else ""
    yield f"status {status.state}: {status.phase}, elapsed {_seconds(status.elapsed)}{paused}{limit}"
    yield (
        f"  pages={status.pages:,} ok={status.ok:,} errors={status.errors:,} known={status.known:,} "
        f"waiting={status.waiting:,} in_flight={status.in_flight:,} parsing={status.parsing:,}"
    )
    for host in status.hosts[:_HOSTS_FOR_PEOPLE]:
        following = f", next in {_seconds(host.next_in)}" if host.next_in else ""
        yield f"  {scrub(host.host)}: {host.waiting:,} waiting, {host.in_flight:,} in flight{following}"
    if status.hosts_active > _HOSTS_FOR_PEOPLE:
        yield f"  and {status.hosts_active - _HOSTS_FOR_PEOPLE:,} more hosts"


def document(status: CrawlStatus) -> dict[str, object]:
    """The status for programs, ready for JSON; its seconds end in `_s`."""
    found: dict[str, Any] = to_builtins(status)
    for name in ("elapsed", "paused"):
        found[f"{name}_s"] = round(found.pop(name), 3)
    hosts = list(found.pop("hosts"))
    for host in hosts:
        host["next_in_s"] = host.pop("next_in")
        host["interval_s"] = host.pop("interval")
    return {"format": "crawlr-status/1", **found, "hosts": hosts}


def _seconds(seconds: float) -> str:
    return f"{seconds:,.0f}s" if seconds >= 10 else f"{seconds:.1f}s"
