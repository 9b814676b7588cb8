"""What the gates of --fail-on found, as lines for people and as annotations of GitHub's workflows.

From: crawlr.gates. To: cli. Pure. What came from the web is scrubbed, so it can neither disturb a terminal nor begin a
command of the workflow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest

from crawlr.gate_rules import Result, Violation
from crawlr.scrub import scrub

__all__ = ["lines", "workflow_commands"]

_MOST_LINES = 100
"""Of one gate on the screen; --junit has all that are kept."""
_MOST_ANNOTATIONS = 10
"""GitHub shows no more errors of one step."""
_LONGEST = 2000


def lines(results: Sequence[Result]) -> Iterator[str]:
    """Each gate with what it stopped at."""
    for result in results:
        if not result.total:
            yield f"gate {result.gate.text}: passed"
            continue
        yield f"gate {result.gate.text}: {result.total:,} {'violation' if result.total == 1 else 'violations'}"
        yield from (f"  {_said(each)}" for each in result.violations[:_MOST_LINES])
        left = result.total - min(len(result.violations), _MOST_LINES)
        if left:
            yield f"  and {left:,} more (--junit FILE)"


def workflow_commands(results: Sequence[Result]) -> Iterator[str]:
    """Workflow commands for the first violations, of each gate in turn, and one for those that have no place."""
    total = sum(result.total for result in results)
    room = _MOST_ANNOTATIONS if total <= _MOST_ANNOTATIONS else _MOST_ANNOTATIONS - 1
    columns = [[(result.gate.text, each) for each in result.violations[:room]] for result in results]
    in_turn = [each for each in chain.from_iterable(zip_longest(*columns)) if each is not None][:room]
    for gate, violation in in_turn:
        yield _command(gate, _said(violation))
    if total > len(in_turn):
        yield _command("", f"{total - len(in_turn):,} more violations; the log and --junit FILE list them")


def _said(violation: Violation) -> str:
    url = f"{violation.url}  " if violation.url else ""
    return scrub(f"{url}{violation.says}", limit=_LONGEST)


def _command(gate: str, message: str) -> str:
    """As GitHub's toolkit writes one: percent signs and line ends are escaped, in a property colons and commas too."""
    title = f"crawlr {gate}".strip()
    for character, escape in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A")):
        title, message = title.replace(character, escape), message.replace(character, escape)
    title = title.replace(":", "%3A").replace(",", "%2C")
    return f"::error title={title}::{message}"
