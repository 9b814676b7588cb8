"""What is tried again, after how long, and when that holds the whole host."""

from __future__ import annotations

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlr.fetch.retry import Retry, decide
from crawlr.records import FetchedPage, FetchFailure, Outcome

NOW = 1_800_000_000.0


def after(
    result: FetchedPage | FetchFailure, *, attempt: int = 1, retries: int = 2, jitter: float = 0.0
) -> Retry | None:
    return decide(result, attempt=attempt, retries=retries, now_wall=NOW, jitter=jitter)


def failed(outcome: Outcome, error: str = "x") -> FetchFailure:
    return FetchFailure(outcome=outcome, error=error)


PASSING = {
    Outcome.REFUSED,
    Outcome.RESET,
    Outcome.EMPTY_REPLY,
    Outcome.CONNECT_TIMEOUT,
    Outcome.READ_TIMEOUT,
    Outcome.TOTAL_TIMEOUT,
}


@pytest.mark.parametrize("outcome", Outcome)
def test_failures_that_can_pass_are_tried_again(outcome: Outcome) -> None:
    """Of failures without a status only those of the moment are."""
    expected = outcome in PASSING or outcome is Outcome.TRUNCATED

    assert (after(failed(outcome)) is not None) is expected


@pytest.mark.parametrize("status", range(200, 600))
def test_statuses_that_can_pass_are_tried_again(status: int) -> None:
    """408, 429 and four of 5xx; a 501 or a 404 is final."""
    assert (after(FetchedPage(status=status)) is not None) is (status in (408, 429, 500, 502, 503, 504))


@pytest.mark.parametrize("fault", Outcome)
def test_bodies_that_broke_off_are_tried_again(fault: Outcome) -> None:
    """A body that was short or late is; one that is too large or badly framed is not, nor that of an error."""
    expected = fault in PASSING or fault is Outcome.TRUNCATED

    assert (after(FetchedPage(status=200, fault=fault)) is not None) is expected
    assert after(FetchedPage(status=404, fault=fault)) is None


ERRORS = {
    (Outcome.DNS_ERROR, "temporary: a.test: try again"): True,
    (Outcome.DNS_ERROR, "unknown name a.test"): False,
    (Outcome.TLS_ERROR, "handshake_timeout: late"): True,
    (Outcome.TLS_ERROR, "handshake_cut: closed"): True,
    (Outcome.TLS_ERROR, "expired: certificate has expired"): False,
    (Outcome.TLS_ERROR, "handshake: no shared cipher"): False,
}


@pytest.mark.parametrize("case", ERRORS, ids=lambda case: case[1])
def test_names_and_handshakes_are_told_by_their_error(case: tuple[Outcome, str]) -> None:
    """An unknown name and a bad certificate stay; a resolver that is busy and a handshake that was cut can pass."""
    assert (after(failed(*case)) is not None) is ERRORS[case]


def test_local_fault_is_not_decided_here() -> None:
    """What this machine lacks costs the page nothing."""
    assert after(FetchFailure(outcome=Outcome.RESET, error="no descriptors", is_local=True)) is None


@pytest.mark.parametrize(("attempt", "retries", "again"), [(1, 0, False), (1, 1, True), (2, 1, False), (2, 2, True)])
def test_retries_are_counted(attempt: int, retries: int, *, again: bool) -> None:
    """With N retries there are N + 1 attempts."""
    assert (after(failed(Outcome.RESET), attempt=attempt, retries=retries) is not None) is again


def test_delay_grows_and_is_capped() -> None:
    """Half a second, then twice as long each time, never over half a minute."""
    delays = [after(failed(Outcome.RESET), attempt=n, retries=99) for n in range(1, 60)]

    assert [retry.delay for retry in delays if retry][:4] == [0.5, 1.0, 2.0, 4.0]
    assert max(retry.delay for retry in delays if retry) == 30.0
    assert not any(retry.holds_host for retry in delays if retry)


@given(st.integers(1, 100), st.floats(0, 0.999), st.floats(0, 0.999))
def test_delay_grows_whatever_the_jitter(attempt: int, one: float, other: float) -> None:
    """The next wait is never shorter than the one before."""
    first = after(failed(Outcome.RESET), attempt=attempt, retries=200, jitter=one)
    second = after(failed(Outcome.RESET), attempt=attempt + 1, retries=200, jitter=other)

    assert first is not None
    assert second is not None
    assert second.delay >= first.delay > 0


RETRY_AFTER = {
    "7": 7.0,
    " 7 ": 7.0,
    "1.5": 1.5,
    "119": 119.0,
    "120": 120.0,
    "99999999": 120.0,
    "9" * 5000: 120.0,
    formatdate(NOW + 60, usegmt=True): 60.0,
    formatdate(NOW + 86400, usegmt=True): 120.0,
    "Friday, 15-Jan-27 08:01:00 GMT": 60.0,
    "Fri Jan 15 08:01:00 2027": 60.0,
}
NO_RETRY_AFTER = (
    *("", "0", "-1", "soon", "1e3", "0x10", "7 seconds", "7, 8", "inf", "nan", "١٢"),
    formatdate(NOW - 60, usegmt=True),
    "Wed, 99 Foo 2026 99:99:99 GMT",
    "Wed, 21 Oct 99999 07:28:00 GMT",
    "\x00",
)


@pytest.mark.parametrize("value", RETRY_AFTER, ids=lambda value: value[:40])
@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_wins_and_holds_the_host(value: str, status: int) -> None:
    """What the server asks for, in seconds or as a date of any of three forms, cut to two minutes."""
    expected = Retry(delay=RETRY_AFTER[value], holds_host=True)

    assert after(FetchedPage(status=status, retry_after=value), jitter=0.9) == expected


@pytest.mark.parametrize("value", NO_RETRY_AFTER, ids=ascii)
def test_nonsense_in_retry_after_is_ignored(value: str) -> None:
    """Garbage, zero, negative numbers and the past leave the ordinary delay."""
    assert after(FetchedPage(status=503, retry_after=value)) == Retry(delay=0.5, holds_host=False)


def test_429_holds_the_host_in_any_case() -> None:
    """Too many requests are the host's complaint, not the page's."""
    assert after(FetchedPage(status=429)) == Retry(delay=0.5, holds_host=True)


@given(st.text())
def test_any_retry_after_is_understood_or_ignored(value: str) -> None:
    """No text raises, and none makes a crawl wait longer than two minutes."""
    retry = after(FetchedPage(status=503, retry_after=value))

    assert retry is not None
    assert 0 < retry.delay <= 120
