"""What of a crawl wants a person's attention, in sentences.

From: the sections. To: the tab Overview. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

from crawlr.records import ExternalClass
from crawlr.report.redirects import RedirectKind
from crawlr.report.sections import Sections
from crawlr.report.words import millis, plural

__all__ = ["Finding", "Severity", "findings"]

_SLOW_MS = 1000


class Severity(StrEnum):
    """How bad a finding is, the worst first."""

    BAD = "problem"
    LOOK = "look"
    NOTE = "note"
    GOOD = "good"


class Finding(Struct, frozen=True, kw_only=True):
    """One line of what was found, and the tab that has more of it."""

    severity: Severity
    tab: str
    text: str


def findings(sections: Sections) -> list[Finding]:
    """What a person should look at, the worst first."""
    found = [
        *_whole(sections),
        *(
            Finding(severity=severity, tab=tab, text=f"{plural(count, one, many)}.")
            for count, severity, tab, one, many in _counted(sections)
            if count
        ),
    ]
    order = list(Severity)
    return sorted(found, key=lambda finding: order.index(finding.severity))


def _whole(sections: Sections) -> Iterator[Finding]:
    """Findings that are more than one number."""
    broken, times, head = sections.broken, sections.weight.times, sections.source.head
    if not head.get("complete"):
        reason = str(head.get("stop_reason")).replace("_", " ")
        left = plural(sections.unasked.unvisited, "known URL was", "known URLs were")
        text = f"The crawl is not complete ({reason}): {left} not requested."
        yield Finding(severity=Severity.LOOK, tab="unasked", text=text)
    if broken.total:
        linking = broken.linking_pages()
        pages = f", linked from {plural(linking, 'page')}" if linking else ""
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in broken.kinds.most_common())
        text = f"{plural(broken.total, 'broken URL')}{pages} ({kinds})."
        yield Finding(severity=Severity.BAD, tab="broken", text=text)
    elif sections.overview.pages:
        text = "No page of the site is broken." if sections.external.is_asked else "Nothing is broken."
        yield Finding(severity=Severity.GOOD, tab="broken", text=text)
    if times.total and not _slow(sections):
        text = f"No page took longer than a second; half took {millis(times.percentile(0.5))} at most."
        yield Finding(severity=Severity.GOOD, tab="weight", text=text)


def _slow(sections: Sections) -> int:
    classes = sections.weight.times.classes()
    return sum(count for begin, _, count in classes if begin is not None and begin >= _SLOW_MS)


def _counted(sections: Sections) -> Iterator[tuple[int, Severity, str, str, str]]:
    """(count, severity, tab, what follows a count of one, what follows another count)."""
    bad, look, note = Severity.BAD, Severity.LOOK, Severity.NOTE
    redirects, duplicates, listed = sections.redirects, sections.duplicates, sections.listed
    out, outside = sections.external.kinds, "out of the crawl"
    broken, blocked = "broken", "blocked: a person may see it, a program may not"
    yield (
        out[ExternalClass.BROKEN],
        bad,
        "external",
        f"link target {outside} is {broken}",
        f"link targets {outside} are {broken}",
    )
    yield (
        out[ExternalClass.BLOCKED],
        note,
        "external",
        f"link target {outside} is {blocked}",
        f"link targets {outside} are {blocked}",
    )
    kinds = redirects.kinds
    yield kinds[RedirectKind.LOOP], bad, "redirects", "redirect goes in a circle", "redirects go in a circle"
    yield kinds[RedirectKind.DEAD_END], bad, "redirects", "redirect ends at an error", "redirects end at an error"
    yield kinds[RedirectKind.CHAIN], look, "redirects", "redirect leads to another", "redirects lead to another"
    yield redirects.links, look, "redirects", "link leads to a redirect", "links lead to a redirect"
    yield _slow(sections), look, "weight", "page took longer than a second", "pages took longer than a second"
    for count, what in ((duplicates.body_groups, "body"), (duplicates.title_groups, "title")):
        yield count, look, "duplicates", f"group of pages has the same {what}", f"groups of pages have the same {what}"
    yield duplicates.untitled, look, "duplicates", "page has no title", "pages have no title"
    named, fit = "of the XML sitemap", "not for search engines"
    yield listed.unfit, look, "listed", f"URL {named} is {fit}", f"URLs {named} are {fit}"
    unread = "could not be read, or not in full"
    yield listed.failed, look, "listed", f"XML sitemap {unread}", f"XML sitemaps {unread}"
    yield listed.orphans, look, "listed", f"page {named} has no link to it", f"pages {named} have no link to them"
    if listed.listed:
        missing = "missing from the XML sitemap"
        yield listed.missing, look, "listed", f"page is {missing}", f"pages are {missing}"
    busy = "asked for fewer requests (429 or 503)"
    yield sections.hosts.busy, look, "hosts", f"answer {busy}", f"answers {busy}"
    refused = "not requested because a rule forbids it"
    yield sections.unasked.skipped, note, "unasked", f"URL was {refused}", f"URLs were {refused}"
