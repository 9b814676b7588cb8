"""The state file beside the output: which crawl it belongs to, and whether this one may go on from it, replace it or
must refuse.

From: api (options). To: api (a journal, with what it says of itself). Main thread, before anything is started.

What a resume must have in common with the crawl that began is listed in `_identity_of`; the rest (speed, limits,
secrets) may change. Secrets are never stored.
"""

from __future__ import annotations

import os

from msgspec import Struct

from crawlr.errors import OptionsError, StateError
from crawlr.extract_rules import name_of
from crawlr.journal import DamagedStateError, Journal
from crawlr.options import Options
from crawlr.records import StopReason

__all__ = ["OpenState", "open_state"]

_REPLACEABLE = (StopReason.PAGE_BUDGET, StopReason.TIME_BUDGET)


class OpenState(Struct, kw_only=True):
    """A journal that this crawl may write to, and what it was told when it was begun."""

    journal: Journal
    seeds: tuple[str, ...]
    is_resumed: bool


def open_state(options: Options, seeds: tuple[str, ...]) -> OpenState:
    """The journal to crawl into. StateError when the file that lies there may not be used; it is then left as it is."""
    path = options.state
    meta: dict[str, object] = {"seeds": list(seeds), "options": _identity_of(options), "ended": None}
    if options.resume:
        if not os.path.exists(path):
            raise StateError(f"--resume: there is no state file {path}; run without --resume to start")
        journal = Journal.open(path, is_durable=options.durable)
        if journal is not None:
            try:
                return OpenState(journal=journal, seeds=_agreed(journal, options, seeds, path), is_resumed=True)
            except BaseException:
                journal.close()
                raise
        if not seeds:
            raise StateError(f"--resume: nothing was kept in {path}; name the URLs again")
        Journal.remove(path)  # killed before anything was committed: there is nothing to go on from, and nothing lost
    elif path:
        _clear(path, is_fresh=options.fresh)
    return OpenState(journal=Journal.create(path, meta, is_durable=options.durable), seeds=seeds, is_resumed=False)


def _clear(path: str, *, is_fresh: bool) -> None:
    """Make room for a new state, unless an unfinished crawl lies there and nobody said to throw it away."""
    try:
        journal = Journal.open(path)
    except DamagedStateError:
        if not is_fresh:
            raise
        Journal.remove(path)
        return
    if journal is not None:
        ended = journal.meta().get("ended")
        journal.close()
        if not is_fresh and ended not in _REPLACEABLE:
            raise StateError(
                f"{path} is the state of a crawl that did not finish; go on with --resume, or start anew with --fresh"
            )
    Journal.remove(path)


def _identity_of(options: Options) -> dict[str, object]:
    """What a resume must have in common with the crawl that began, by the name of the option."""
    return {
        "scope": options.scope,
        "include": list(options.include),
        "exclude": list(options.exclude),
        "follow": sorted(options.follow),
        "nofollow": options.nofollow,
        "no-robots": not options.robots,
        "keep-params": options.keep_params,
        "ignore-param": sorted(options.ignore_param),
        "sitemaps": options.sitemaps,
        "edges": options.edges,
        "user-agent": options.agent,
        "extract": name_of(options.extract),
        "extract-css": dict(options.extract_css),
        "extract-xpath": dict(options.extract_xpath),
    }


def _agreed(journal: Journal, options: Options, seeds: tuple[str, ...], path: str) -> tuple[str, ...]:
    meta = journal.meta()
    kept = meta["seeds"]
    assert isinstance(kept, list)
    if seeds and list(seeds) != kept:
        raise StateError(
            f"--resume: {path} is of a crawl of other seeds ({', '.join(kept[:3])}); leave the URLs out, or use --fresh"
        )
    old = meta["options"]
    assert isinstance(old, dict)
    for name, value in _identity_of(options).items():
        if old.get(name) != value:
            raise StateError(
                f"--{name}: {value!r} now, {old.get(name)!r} when the crawl in {path} began;"
                " give the same, or use --fresh"
            )
    if not kept:
        raise OptionsError(f"--resume: {path} has no seeds")
    return tuple(kept)
