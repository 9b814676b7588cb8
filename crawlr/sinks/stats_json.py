"""The accounting as JSON (--stats): where the time of each stage went, what limited the crawl, and a row a second.

From: the coordinator's stages and timeline. To: a file. Main thread.

All times are seconds. Each stage's parts add up to its whole; `unaccounted_s` says by how much they don't.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TextIO

from msgspec import structs

from crawlr import limits
from crawlr.frontier import Host
from crawlr.stats import ParseSample, Timeline, Wait

__all__ = ["document", "write"]


def write(out: TextIO, found: dict[str, object]) -> None:
    """Write what `document` made."""
    json.dump(found, out, indent=1)
    out.write("\n")


def document(
    *,
    load: limits.Load,
    timeline: Timeline,
    sample: ParseSample,
    hosts: Iterable[Host],
    pages: dict[str, object],
    paused: float = 0.0,
) -> dict[str, object]:
    """The accounting as plain values. `pages` are the counts that sitemap.json has, too; `paused` are seconds.

    Of `hosts` those with the most requests are told; one that is there twice, of --check-external too, is one.
    """
    stages = load.stages
    fetch_parts = stages.fetch_connect + stages.fetch_first_byte + stages.fetch_body
    parse_parts = stages.parse_busy
    awake = stages.dispatch + stages.merge + stages.journal
    return {
        "format": "crawlr-stats/1",
        "elapsed_s": load.elapsed,
        "paused_s": paused,
        "pages": pages,
        "limit": {
            "word": limits.limiter_word(load),
            "text": limits.limiter(load),
            "with_parse_procs": {str(n): round(limits.predict(load, n), 2) for n in (1, 2, 4, 8, 16)},
        },
        "fetch": {
            "slots": load.concurrency,
            "busy_s": stages.fetch_busy,
            "busy_share": load.fetch_share,
            "queue_s": stages.fetch_queued,
            "politeness_s": stages.waits[Wait.HOST],
            "connect_s": stages.fetch_connect,
            "first_byte_s": stages.fetch_first_byte,
            "body_s": stages.fetch_body,
            "unaccounted_s": stages.fetch_busy - fetch_parts,
            "bytes": stages.wire_bytes,
            "requests": stages.requests,
            "retries": stages.retries,
        },
        "parse": {
            "slots": load.procs,
            "slot_s": load.parse_slots,
            "busy_s": load.parse_busy,
            "busy_share": load.parse_share,
            "cpu_s": load.parse_cpu,
            "decode_s": stages.parse_decode,
            "parse_s": stages.parse_parse,
            "resolve_s": stages.parse_resolve,
            "extract_s": stages.parse_extract,
            "hand_off_s": max(0.0, load.parse_busy - parse_parts),
            "pages": stages.parsed,
        },
        "main": {"cpu_s": load.main_cpu},
        "machine": {"cores": load.cores},
        "coordinator": {
            "busy_share": load.coordinator_share,
            "dispatch_s": stages.dispatch,
            "merge_s": stages.merge,
            "journal_s": stages.journal,
            "idle_s": stages.idle,
            "idle_for": {str(wait): seconds for wait, seconds in stages.waits.items()},
            "unaccounted_s": load.elapsed - stages.idle - awake,
        },
        "hosts": [_host(host) for host in sorted(_by_name(hosts), key=lambda host: -host.requests)[:1000]],
        "timeline": [structs.asdict(row) for row in timeline.rows],
        "parse_sample": sample.rows,
        "parse_sample_of": sample.seen,
    }


def _by_name(hosts: Iterable[Host]) -> Iterable[Host]:
    found: dict[str, Host] = {}
    for host in hosts:
        other = found.get(host.name)
        if other is None or not host.requests:
            found.setdefault(host.name, host)
            continue
        found[host.name] = structs.replace(
            other,
            requests=other.requests + host.requests,
            held_for=other.held_for + host.held_for,
            first_at=min(other.first_at, host.first_at) if other.requests else host.first_at,
            last_at=max(other.last_at, host.last_at),
            origins=[*other.origins, *host.origins],
        )
    return found.values()


def _host(host: Host) -> dict[str, object]:
    """`interval_s`: at least so far apart were its requests; `active_s`: from the first to the last of them;
    `crawl_delay_s`: what its robots.txt asks for; `robots`: what became of asking for it."""
    said = dict.fromkeys(origin.robots for origin in host.origins if origin.robots is not None)
    return {
        "host": host.name,
        "requests": host.requests,
        "interval_s": host.interval,
        "held_s": host.held_for,
        "active_s": host.last_at - host.first_at,
        "crawl_delay_s": host.crawl_delay,
        "robots": "; ".join(said) or None,
    }
