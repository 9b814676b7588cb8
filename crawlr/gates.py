"""Asks the gates of --fail-on: what of a crawl, or of the change between two, is worse than was agreed.

From: a view with its head, or a diff. To: api and cli (exit status 10), the screen, sinks.junit. Pure but for reading.

A gate of a diff stops only at what is worse than before: a page that was broken in OLD too lets it pass.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from crawlr.diff import Diff, Entry, What, is_broken
from crawlr.gate_rules import Gate, Name, Result, Violation
from crawlr.records import ExternalClass, Outcome, SkipReason
from crawlr.view import CrawlView

__all__ = ["MOST_KEPT", "check", "check_diff"]

MOST_KEPT = 10_000
"""Violations of one gate that are kept and told; all are counted."""
_NAMED = 3  # pages that are named for one broken link


def check(view: CrawlView, head: Mapping[str, object], gates: Sequence[Gate]) -> tuple[Result, ...]:
    """What came of asking each gate about one crawl, in the order of the gates."""
    return tuple(_result(gate, _of_crawl(gate, view, head)) for gate in gates)


def check_diff(diff: Diff, gates: Sequence[Gate]) -> tuple[Result, ...]:
    """What came of asking each gate about the change between two crawls."""
    return tuple(_result(gate, _of_diff(gate, diff)) for gate in gates)


def _result(gate: Gate, found: Iterator[Violation]) -> Result:
    kept = tuple(islice(found, MOST_KEPT))
    return Result(gate=gate, total=len(kept) + sum(1 for _ in found), violations=kept)


# ---------------------------------------------------------------------- of a crawl


def _of_crawl(gate: Gate, view: CrawlView, head: Mapping[str, object]) -> Iterator[Violation]:
    match gate.name:
        case Name.BROKEN:
            return _broken(view)
        case Name.INCOMPLETE:
            return _incomplete(head)
        case Name.ROBOTS:
            return _stopped(gate, _skipped(view))
    return _stopped(gate, _pages(view))


def _pages(view: CrawlView) -> Iterator[Entry]:
    for page in view.pages():
        yield Entry(
            url=page.url,
            state="page",
            reason=None,
            status=page.status,
            outcome=page.outcome,
            error=page.error,
            title=page.title,
            canonical=page.canonical,
            redirect_url=page.redirect_url,
            depth=page.depth,
            millis=page.millis,
            bytes=page.bytes,
        )


def _skipped(view: CrawlView) -> Iterator[Entry]:
    for skipped in view.skipped():
        yield Entry(
            skipped.url,
            "skipped",
            skipped.reason,
            *(None,) * 2,
            skipped.error,
            *(None,) * 3,
            skipped.depth,
            *(None,) * 2,
        )


def _stopped(gate: Gate, entries: Iterable[Entry]) -> Iterator[Violation]:
    stops = _STOPS[gate.name]
    for entry in entries:
        if stops(gate, entry):
            yield Violation(url=entry.url, says=_says(gate, entry))


def _incomplete(head: Mapping[str, object]) -> Iterator[Violation]:
    if head.get("complete") is not True:
        reason = str(head.get("stop_reason")).replace("_", " ")
        yield Violation(url="", says=f"the crawl is not complete: {reason}")


def _broken(view: CrawlView) -> Iterator[Violation]:
    """What is broken and led to, with how many pages lead there and the first of them."""
    broken = {page.id for page in view.pages() if is_broken(page.status, page.outcome)}
    outside = {
        number: Violation(url=url, says=f"{error or status or outcome}, linked from ")
        for number, url, status, outcome, kind, error in view.external_answers()
        if kind == ExternalClass.BROKEN
    }
    broken |= outside.keys()
    counts: dict[int, int] = defaultdict(int)
    first: dict[int, list[int]] = defaultdict(list)

    def note(source: int, target: int) -> None:
        counts[target] += 1
        if len(first[target]) < _NAMED:
            first[target].append(source)

    if broken:
        for source, targets in view.edges():
            for target in targets:
                if target in broken:
                    note(source, target)
        for page in view.pages():
            if page.redirect_to in broken and page.redirect_to != page.id:
                note(page.id, page.redirect_to)
    for page in view.pages():
        if page.id in counts:
            sources = view.addresses(first[page.id])
            yield Violation(
                url=page.url,
                says=f"{_answer(page.status, page.outcome, page.error)}, linked from "
                + _named([sources[number].url for number in first[page.id]], counts[page.id]),
            )
    for target, violation in outside.items():
        sources = view.addresses(first[target])
        named = _named([sources[number].url for number in first[target]], counts[target])
        yield Violation(url=violation.url, says=violation.says + named)


def _named(names: list[str], total: int) -> str:
    more = f" and {total - len(names):,} more" if total > len(names) else ""
    return ", ".join(names) + more


# ---------------------------------------------------------------------- of a diff


def _of_diff(gate: Gate, diff: Diff) -> Iterator[Violation]:
    match gate.name:
        case Name.BROKEN:
            for link in diff.broken():
                says = _answer(link.target.status, link.target.outcome, link.target.error)
                yield Violation(url=link.target.url, says=f"{says}, linked from {link.source}")
        case Name.INCOMPLETE:
            yield from _incomplete(diff.new_head)
        case Name.NEW:
            yield from (Violation(url=new.url, says=f"new page: {new.answer}") for _, new in diff.new_pages())
        case Name.GONE:
            for old, now in diff.gone():
                yield Violation(url=old.url, says="gone" if now is None else f"no page any more: {now.answer}")
        case Name.STATUS | Name.TITLE | Name.CANONICAL | Name.REDIRECT | Name.DEPTH:
            what = What(gate.name.value)
            for old, new in diff.changed(what):
                yield Violation(url=new.url, says=f"{what} was {what.of(old)}, is {what.of(new)}")
        case _:
            stops = _STOPS[gate.name]
            for before, new in diff.pairs():
                if stops(gate, new) and not (before is not None and stops(gate, before)):
                    yield Violation(url=new.url, says=_says(gate, new))


# ---------------------------------------------------------------------- of one URL

_READ_WELL = (Outcome.OK, Outcome.NOT_HTML)
_BY_ROBOTS = (SkipReason.ROBOTS_DISALLOWED, SkipReason.ROBOTS_UNREACHABLE)
_Stops = Callable[[Gate, Entry], bool]
_STOPS: dict[Name, _Stops] = {
    Name.ERRORS: lambda _, each: each.state == "page" and (each.status is None or each.status >= 400),
    Name.DAMAGED: lambda _, each: (
        each.status is not None and 200 <= each.status < 300 and each.outcome not in _READ_WELL
    ),
    Name.REDIRECT_LOOP: lambda _, each: each.outcome == Outcome.REDIRECT_LOOP,
    Name.ROBOTS: lambda _, each: each.reason in _BY_ROBOTS,
    Name.SLOW: lambda gate, each: (each.millis or 0) > 1000 * (gate.limit or 0),
    Name.LARGE: lambda gate, each: (each.bytes or 0) > (gate.limit or 0),
    Name.DEEP: lambda gate, each: each.state == "page" and each.depth > (gate.limit or 0),
}


def _says(gate: Gate, entry: Entry) -> str:
    match gate.name:
        case Name.SLOW:
            return f"took {entry.millis:,} ms"
        case Name.LARGE:
            return f"has {entry.bytes:,} bytes"
        case Name.DEEP:
            return f"is {entry.depth:,} links away"
        case Name.ROBOTS:
            why = f": {entry.error}" if entry.error else ""
            is_rule = entry.reason == SkipReason.ROBOTS_DISALLOWED
            return f"{'blocked by robots.txt' if is_rule else 'robots.txt unreachable'}{why}"
    return _answer(entry.status, entry.outcome, entry.error)


def _answer(status: int | None, outcome: str | None, error: str | None) -> str:
    """An answer with its reason: "404 Not Found", "refused: connection refused"."""
    if status is not None and status >= 400:
        return error or str(status)
    return f"{outcome}: {error}" if error else str(outcome)
