"""The commands that look at crawls which are over: export, why and diff. Nothing is requested.

From: cli (the words after the verb). To: export, why, diff; what they found is printed. Main thread. Loads nothing
heavy before the words are understood.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from crawlr import grammar
from crawlr.errors import OptionsError
from crawlr.streams import print_lines, say

if TYPE_CHECKING:
    from crawlr.gate_rules import Result

__all__ = ["diff_crawls", "explain_url", "export_crawl", "tell_gates"]

_FAILED = 10
"""The exit status when a gate of --fail-on was tripped."""


def export_crawl(words: list[str]) -> int:
    """Writes further outputs of a crawl; the exit status."""
    given = grammar.parse("export", words)
    found = given.get("file", [])
    if len(found) != 1:
        what = "no file is named" if not found else f"{found[1]!r} is one file too many"
        raise OptionsError(f"export: {what}; accepted: one sitemap.json[.gz], or the state of a crawl (.crawl)")
    if "out" not in given:
        raise OptionsError("export: nothing is to be written; accepted: --out FILE, once or more")

    from crawlr.option_reading import read_outputs

    outputs, columns = read_outputs(given["out"], format=given.get("format"), columns=given.get("columns"))

    from crawlr import export
    from crawlr.progress import wrote

    lines = sys.stderr if any(each.path == "-" for each in outputs) else sys.stdout
    for written in export.export(found[0], outputs, columns=columns):
        for note in written.notes:
            say(f"note: {note}", sys.stderr)
        if not given.get("quiet", False):
            say(wrote(written), lines)
    return 0


def explain_url(words: list[str]) -> int:
    """Explains one URL of a crawl; the exit status."""
    given = grammar.parse("why", words)
    asked = given.get("url", [])
    if len(asked) != 1:
        what = "no URL is named" if not asked else f"{asked[1]!r} is one URL too many"
        raise OptionsError(f"why: {what}; accepted: the address of a page, or a path on the first seed's host")
    path = given.get("in") or _default_crawl()

    from crawlr import why, why_lines
    from crawlr.export import open_crawl
    from crawlr.sinks.sitemap_json import dumps

    with open_crawl(path) as (view, head):
        answer = why.explain(view, head, asked[0])
    if given.get("json", False):
        _print_json([dumps(why.document(answer)), "\n"])
    else:
        print_lines(why_lines.lines(answer))
    return 0


def _default_crawl() -> str:
    """The file that a crawl without --out leaves here."""
    for path in ("sitemap.json", "sitemap.json.crawl"):
        if os.path.exists(path):
            return path
    raise OptionsError("why: there is no sitemap.json here; accepted: --in FILE")


def diff_crawls(words: list[str]) -> int:
    """Tells what changed between two crawls; the exit status."""
    given = grammar.parse("diff", words)
    found = given.get("file", [])
    if len(found) != 2:
        few = "no file is named" if not found else "only one file is named"
        what = few if len(found) < 2 else f"{found[2]!r} is one file too many"
        raise OptionsError(
            f"diff: {what}; accepted: OLD NEW, each a sitemap.json[.gz] or the state of a crawl (.crawl)"
        )

    from crawlr.option_reading import read_diff_gates, read_report

    report_path = read_report(given.get("report"))
    asked, junit_path = read_diff_gates(given.get("fail_on"), junit=given.get("junit"))

    from crawlr import diff_lines, gates
    from crawlr.diff import compare
    from crawlr.export import open_crawl
    from crawlr.sinks import files, junit

    with (
        open_crawl(found[0]) as old,
        open_crawl(found[1]) as new,
        compare(old, new) as diff,
    ):
        if given.get("json", False):
            _print_json(diff_lines.document(diff))
        elif not given.get("quiet", False):
            print_lines(diff_lines.lines(diff, old=found[0], new=found[1]))
        if report_path is not None:
            from crawlr import report

            with files.whole(report_path) as out:
                report.write(out, new[0], head=new[1], diff=diff)
        results = gates.check_diff(diff, asked)
    if junit_path is not None:
        with files.whole(junit_path) as out:
            junit.write(out, results, name="crawlr diff")
    return tell_gates(results, is_quiet=given.get("quiet", False), is_stdout_taken=given.get("json", False))


def tell_gates(results: Sequence[Result], *, is_quiet: bool, is_stdout_taken: bool) -> int:
    """Says what the gates found, on GitHub also as annotations of the workflow; the exit status."""
    from crawlr import gate_lines

    failed = [result for result in results if result.total]
    for line in gate_lines.lines(failed if is_quiet else results):
        say(line, sys.stderr)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for line in gate_lines.workflow_commands(failed):
            say(line, sys.stderr if is_stdout_taken else sys.stdout)
    return _FAILED if failed else 0


def _print_json(pieces: Iterable[str]) -> None:
    """Prints an answer in UTF-8 whatever the terminal's encoding is, as long as somebody reads."""
    from crawlr.sinks import files

    with suppress(BrokenPipeError), files.whole("-") as out:
        out.writelines(pieces)
