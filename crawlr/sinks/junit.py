"""What the gates of --fail-on found, as JUnit's XML: the form in which CI systems show what failed.

From: crawlr.gates. To: a file (crawlr.sinks.files). Main thread.

A suite a gate; in it a failed case for each URL that it stopped at, or one passed case when there is none. A gate with
more violations than are kept says so in a case of its own, so that the numbers are true.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

from crawlr.gate_rules import Result
from crawlr.scrub import scrub
from crawlr.sinks.texts import xml

__all__ = ["write"]

_LONGEST = 8192


def write(out: TextIO, results: Sequence[Result], *, name: str) -> None:
    """Write the document; `name` says what was asked ("crawlr", "crawlr diff")."""
    suites = [list(_cases(result)) for result in results]
    tests = sum(len(cases) for cases in suites)
    failures = sum(bool(message) for cases in suites for _, message in cases)
    out.write('<?xml version="1.0" encoding="UTF-8"?>\n')
    out.write(f'<testsuites name="{xml(name)}" tests="{tests}" failures="{failures}" errors="0">\n')
    for result, cases in zip(results, suites, strict=True):
        failed = sum(bool(message) for _, message in cases)
        gate = xml(result.gate.text)
        out.write(f'<testsuite name="{gate}" tests="{len(cases)}" failures="{failed}" errors="0" skipped="0">\n')
        for case, message in cases:
            begin = f'<testcase classname="{xml(name)}.{gate}" name="{_text(case)}"'
            if message:
                text = _text(message)
                out.write(
                    f'{begin}><failure type="{gate}" message="{text}">{_text(case)}: {text}</failure></testcase>\n'
                )
            else:
                out.write(f"{begin}/>\n")
        out.write("</testsuite>\n")
    out.write("</testsuites>\n")


def _cases(result: Result) -> Iterator[tuple[str, str]]:
    """(name, message) of each case; a message is empty when it passed."""
    if not result.total:
        yield f"no violation of {result.gate.text}", ""
    for violation in result.violations:
        yield violation.url or "the crawl", violation.says
    left = result.total - len(result.violations)
    if left:
        yield f"{left:,} more", f"{result.total:,} violations in all, the first {len(result.violations):,} are listed"


def _text(text: str) -> str:
    return xml(scrub(text, limit=_LONGEST))
