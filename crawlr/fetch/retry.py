"""Whether a failed exchange is tried again, and when.

From: the coordinator, with what a Fetcher returned. To: the frontier, as a delay. Pure: time and jitter come in.
"""

from __future__ import annotations

import re
from datetime import UTC
from email.utils import parsedate_to_datetime

from msgspec import Struct

from crawlr.records import FetchedPage, FetchFailure, Outcome

__all__ = ["MAX_RETRY_AFTER", "PASSING", "Retry", "decide"]

MAX_RETRY_AFTER = 120.0
"""Seconds; a server may ask for more, a crawl that sleeps for days helps nobody."""
PASSING = ("temporary", "handshake_timeout", "handshake_cut")
"""How the error of a dns_error or tls_error begins that can pass; an unknown name and a bad certificate cannot."""

_FIRST_DELAY = 0.5
_MAX_DELAY = 30.0
_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
_FAULTS = frozenset(
    {
        Outcome.REFUSED,
        Outcome.RESET,
        Outcome.EMPTY_REPLY,
        Outcome.CONNECT_TIMEOUT,
        Outcome.READ_TIMEOUT,
        Outcome.TOTAL_TIMEOUT,
        Outcome.TRUNCATED,
    }
)
_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]+)?")


class Retry(Struct, frozen=True, kw_only=True):
    """One more try. `delay` in seconds; `holds_host`: until then nothing else of that host is asked for, either."""

    delay: float
    holds_host: bool


def decide(
    result: FetchedPage | FetchFailure, *, attempt: int, retries: int, now_wall: float, jitter: float
) -> Retry | None:
    """The next try after `attempt` tries of which this was the result; None: the result is final.

    `now_wall` is seconds since the epoch (Retry-After can be a date), `jitter` any number in [0, 1). The delay grows
    from 0.5 s, doubling, to at most 30 s; a Retry-After wins over it, is cut to 120 s and holds the whole host; so does
    a 429 without one. A fault of this machine (`is_local`) is not the page's and not decided here: None.
    """
    if attempt > retries:
        return None
    delay = min(_FIRST_DELAY * 2 ** min(attempt - 1, 16) * (1 + jitter), _MAX_DELAY)
    match result:
        case FetchFailure(is_local=True):
            return None
        case FetchFailure(outcome=Outcome.DNS_ERROR | Outcome.TLS_ERROR):
            can_pass = result.error.startswith(PASSING)
            return Retry(delay=delay, holds_host=False) if can_pass else None
        case FetchFailure():
            return Retry(delay=delay, holds_host=False) if result.outcome in _FAULTS else None
    if result.status in _STATUSES:
        wanted = _retry_after(result.retry_after, now_wall)
        if wanted is not None:
            return Retry(delay=min(wanted, MAX_RETRY_AFTER), holds_host=True)
        return Retry(delay=delay, holds_host=result.status == 429)
    if 200 <= result.status < 300 and result.fault in _FAULTS:
        return Retry(delay=delay, holds_host=False)
    return None


def _retry_after(value: str | None, now_wall: float) -> float | None:
    """Seconds that the server asks for (RFC 9110 §10.2.3: seconds or a date); None for nonsense, zero and the past."""
    if value is None:
        return None
    value = value.strip()
    if _SECONDS.fullmatch(value):
        seconds = float(value)
    else:
        try:
            date = parsedate_to_datetime(value)
            seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now_wall
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
    return seconds if seconds > 0 else None
