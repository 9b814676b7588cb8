"""A diff as lines for people, and as one JSON object, piece by piece.

From: crawlr.diff. To: cli. Main thread. What came from the web is scrubbed in lines and escaped in JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from crawlr.diff import BrokenLink, Diff, Entry, What
from crawlr.scrub import scrub
from crawlr.sinks.sitemap_json import dumps

__all__ = ["document", "lines"]

_LONGEST = 8192
_HEADINGS = {
    "new": ("+", "new page", "new pages"),
    "gone": ("-", "page gone", "pages gone"),
    "broken": ("!", "new broken link", "new broken links"),
    "mended": ("*", "mended link", "mended links"),
    What.STATUS: ("~", "changed status", "changed statuses"),
    What.TITLE: ("~", "changed title", "changed titles"),
    What.CANONICAL: ("~", "changed canonical", "changed canonicals"),
    What.REDIRECT: ("~", "changed redirect", "changed redirects"),
    What.DEPTH: ("~", "changed depth", "changed depths"),
}


_HEAD = ("seeds", "started_at", "finished_at", "complete", "stop_reason")
_KEYS = {"new": "new_pages", "gone": "gone_pages", "broken": "broken_links", "mended": "mended_links"}


def lines(diff: Diff, *, old: str, new: str) -> Iterator[str]:
    """The diff of the files of these names, line by line."""
    yield f"old  {_side(diff.old_head, old)}"
    yield f"new  {_side(diff.new_head, new)}"
    for name, before, after in diff.differing_options():
        yield f"note: --{name.replace('_', '-')} differs: {_shown(dumps(before))} in old, {_shown(dumps(after))} in new"
    counts = diff.counts()
    for name, rows in diff.lists():
        if counts[name]:
            sign, one, many = _HEADINGS[name]
            yield f"{sign} {counts[name]:,} {one if counts[name] == 1 else many}"
            yield from (f"    {_line(name, row)}" for row in rows)
    yield f"= {counts['same']:,} {'page' if counts['same'] == 1 else 'pages'} without a change"


def document(diff: Diff) -> Iterator[str]:
    """The diff as JSON: the counts, and a list under each name."""
    yield "{\n"
    for side, head in (("old", diff.old_head), ("new", diff.new_head)):
        yield f'"{side}": {dumps({name: head.get(name) for name in _HEAD})},\n'
    options = {name: {"old": old, "new": new} for name, old, new in diff.differing_options()}
    yield f'"options": {dumps(options)},\n'
    yield f'"counts": {dumps(diff.counts())}'
    for name, rows in diff.lists():
        yield f',\n"{_KEYS.get(name, f"changed_{name}")}": ['
        before = "\n"
        for row in rows:
            yield before + dumps(_plain(name, row))
            before = ",\n"
        yield "\n]"
    yield "\n}\n"


def _side(head: Mapping[str, object], file: str) -> str:
    stats = head.get("stats")
    pages = stats.get("pages") if isinstance(stats, dict) else None
    counted = f"  {pages:,} pages" if isinstance(pages, int) else ""
    ended = "" if head.get("complete") is True else f"  not complete: {head.get('stop_reason')}"
    return _shown(f"{file}  {head.get('finished_at')}{counted}{ended}")


def _line(name: str, row: object) -> str:
    match name, row:
        case "new", (Entry() | None as old, Entry() as new):
            return f"{new.answer:<4} {_shown(new.url)}{'' if old is None else f'  (was {old.answer})'}"
        case "gone", (Entry() as old, Entry() | None as new):
            return f"{old.answer:<4} {_shown(old.url)}{'' if new is None else f'  (now {new.answer})'}"
        case "broken", BrokenLink(source, target, _):
            return f"{target.answer:<4} {_shown(target.url)}  linked from {_shown(source)}"
        case "mended", BrokenLink(source, target, now):
            return f"{target.answer:<4} {_shown(target.url)}  linked from {_shown(source)}: {now}"
        case _, (Entry() as old, Entry() as new):
            before, after = (What(name).of(each) for each in (old, new))
            return f"{_shown(new.url)}  {_said(before)} -> {_said(after)}"
    raise AssertionError(name)


def _plain(name: str, row: object) -> dict[str, object]:
    match name, row:
        case "new", (Entry() | None as old, Entry() as new):
            return {**_page(new), "was": None if old is None else old.reason}
        case "gone", (Entry() as old, Entry() | None as new):
            return {**_page(old), "now": None if new is None else new.reason}
        case "broken", BrokenLink(source, target, _):
            return {"source": source, "target": target.url, "status": target.status, "outcome": target.outcome}
        case "mended", BrokenLink(source, target, now):
            known = {"status": target.status, "outcome": target.outcome}
            return {"source": source, "target": target.url, **known, "now": now}
        case What.STATUS, (Entry() as old, Entry() as new):
            sides = {
                side: {"status": each.status, "outcome": each.outcome} for side, each in (("old", old), ("new", new))
            }
            return {"url": new.url, **sides}
        case _, (Entry() as old, Entry() as new):
            return {"url": new.url, "old": What(name).of(old), "new": What(name).of(new)}
    raise AssertionError(name)


def _page(entry: Entry) -> dict[str, object]:
    return {"url": entry.url, "status": entry.status, "outcome": entry.outcome, "depth": entry.depth}


def _said(value: str | int | None) -> str:
    return "none" if value is None else _shown(str(value)) if value != "" else '""'


def _shown(text: str) -> str:
    return scrub(text, limit=_LONGEST)
