"""The answer to a why, line by line for people.

From: crawlr.why. To: cli. Pure. What came from the web is scrubbed.
"""

from __future__ import annotations

from collections.abc import Iterator

from crawlr.scrub import scrub
from crawlr.why import Answer, Step, plural

__all__ = ["lines"]

_LONGEST = 8192


def lines(answer: Answer) -> Iterator[str]:
    """The answer, line by line. Nothing that came from the web can disturb a terminal."""
    yield _shown(answer.url)
    if answer.listed_as is not None and answer.listed_as != answer.url:
        yield f"  one page with {_shown(answer.listed_as)}, which was found first"
        yield from (f"    because {_shown(why)}" for why in answer.merged_because)
    yield f"  {_verdict(answer)}"
    if answer.external_class is not None:
        status = f"status {answer.status}" if answer.status is not None else str(answer.outcome)
        error = f" ({_shown(answer.error)})" if answer.error else ""
        yield f"  --check-external: {answer.external_class}, {status}{error}"
    if answer.error and answer.state == "page":
        yield f"  error: {_shown(answer.error)}"
    if answer.state == "page" or answer.tries:
        yield f"  asked {plural(answer.tries, 'time')}"
    if answer.title is not None:
        yield f"  title: {_shown(answer.title)}"
    if answer.canonical is not None and answer.canonical != answer.listed_as:
        yield f"  canonical: {_shown(answer.canonical)}"
    if answer.robots:
        yield f"  robots: {_shown(', '.join(answer.robots))}"
    if answer.redirects:
        yield "  redirects:"
        yield from (f"    {_status(step)}  {_shown(step.url)}" for step in answer.redirects)
    if answer.way:
        yield f"  found by the shortest way{'' if answer.depth is None else f' (depth {answer.depth})'}:"
        yield from (f"    {step.by:<8}  {_shown(step.url)}" for step in answer.way)
    if answer.state != "unknown":
        redirecting = sum(1 for each in answer.referrers if each.by == "redirect")
        linking = len(answer.referrers) - redirecting
        and_redirects = f", redirected to by {redirecting:,}" if redirecting else ""
        yield f"  linked from {plural(linking, 'page')}{and_redirects}{':' if answer.referrers else ''}"
    for each in answer.referrers:
        said = [each.kind or each.by, *(["nofollow"] if each.nofollow else [])]
        text = f'  "{_shown(each.text, limit=200)}"' if each.text else ""
        yield f"    {_shown(each.url)}  ({', '.join(said)}){text}"


def _verdict(answer: Answer) -> str:
    if answer.verdict is not None:
        word = {"external": "known, not crawled", "unknown": "never seen"}.get(answer.state, answer.state)
        return f"{word} ({answer.verdict.rule}): {_shown(answer.verdict.says)}"
    status = "no answer" if answer.status is None else f"status {answer.status}"
    counted = "" if answer.links is None else f", {plural(answer.links, 'link')}"
    return f"requested: {status}, {answer.outcome}{counted}, {answer.millis or 0:,} ms"


def _status(step: Step) -> str:
    if step.outcome is None:
        return " " * 3 if step.depth is None else "-- "
    return f"{step.status if step.status is not None else '--':<3}"


def _shown(text: str, *, limit: int = _LONGEST) -> str:
    return scrub(text, limit=limit)
