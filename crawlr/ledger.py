"""The graph as far as it is known: merges finished pages and their links into the seen-set, the frontier and the
journal.

From: the coordinator (seeds, finished pages, skipped URLs). To: the frontier (what may be requested) and the journal
(group commits), and back to the coordinator (what has been committed). Main thread.

Depth is the shortest way over links (1) and redirects (0). With answers out of order a page may first be reached by
a longer way; when a shorter one appears its depth falls, and so do the depths behind it: `_sink` is that
breadth-first pass, run with the group commit in slices. Where the lowest depth is requested first it is rare; in any
other order it is what makes the depths right (`falls` counts it).
"""

from __future__ import annotations

import json
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import Struct, field

from crawlr import scope as scope_rules
from crawlr.frontier import Frontier, Origin
from crawlr.journal import Journal, PageRow, UrlRow
from crawlr.known import FAR, Flag, KnownUrls, State
from crawlr.records import Outcome, PageRecord, SkipReason
from crawlr.scope import Scope
from crawlr.traps import Traps, shape
from crawlr.web_page import Content

__all__ = ["Committed", "Finished", "Ledger", "Verdict"]

_TEXTS_KEPT = 50_000  # addresses of waiting URLs in memory; the others are read from the journal when their turn comes
_TEXTS_AHEAD = 256
_MOST_ROBOTS = 100
_LONGEST_ROBOTS = 64 * 1024
_SINK_SLICE = 2000  # pages whose links are looked at again in one commit


class Finished(Struct, kw_only=True):
    """One page's final answer before it is committed. Made by the coordinator, read here."""

    id: int
    url: str
    status: int | None
    outcome: Outcome
    error: str | None = None
    links: int = 0
    millis: int = 0
    size: int = 0
    content_type: str | None = None
    encoding: str | None = None
    title: str | None = None
    canonical: str | None = None
    robots: tuple[str, ...] = ()
    redirect_to: int | None = None
    redirect_url: str | None = None
    attempts: int = 1
    targets: bytes = b""
    kinds: bytes = b""
    texts: bytes = b""
    """As parse.results.PageResult has them; empty: not asked for."""
    body_hash: int | None = None
    """64 bits without a sign; SQLite's integers have one, so the journal has its two's complement."""
    last_modified: str | None = None
    extract: str | None = None
    """JSON."""
    extract_error: str | None = None
    content: Content | None = None
    """For the consumer of a WebSource; not stored."""

    def row(self) -> PageRow:
        return (
            self.id,
            self.status,
            self.outcome.value,
            self.error,
            self.links,
            self.millis,
            self.size,
            self.content_type,
            self.encoding,
            self.title,
            self.canonical,
            " ".join(self.robots),
            self.redirect_to,
            self.redirect_url,
            self.attempts,
            self.targets or None,
            self.kinds or None,
            self.body_hash if self.body_hash is None or self.body_hash < 1 << 63 else self.body_hash - (1 << 64),
            self.last_modified,
        )


class Verdict(Struct, frozen=True, kw_only=True):
    """Why every URL of an origin ends without a request: as a page with `outcome`, or skipped for `reason`."""

    outcome: Outcome | None = None
    reason: SkipReason | None = None
    error: str


class Committed(Struct):
    """What a group commit made final, in order. Made here, read by the coordinator for the screen and on_page."""

    pages: list[PageRecord] = field(default_factory=list)
    skipped: list[tuple[str, SkipReason, str | None]] = field(default_factory=list)


class Ledger:
    """Known URLs, and the rows that wait for the next group commit."""

    def __init__(
        self,
        *,
        known: KnownUrls,
        frontier: Frontier,
        journal: Journal,
        scope: Scope,
        identity: Callable[[str], str],
        depth_limit: int | None,
        max_redirects: int,
    ) -> None:
        self.known = known
        self.frontier = frontier
        self.journal = journal
        self.scope = scope
        self._identity = identity
        self._depth_limit = FAR - 1 if depth_limit is None else depth_limit
        self._max_redirects = max_redirects
        self._verdicts: dict[int, Verdict] = {}  # by the number of a closed origin
        self._texts: dict[int, str] = {}  # filled by learn and text, emptied by text
        self._committed_urls = 0  # ids below are in the journal
        self._new: list[tuple[int, str, str | None]] = []  # from _committed_urls on; filled by learn, emptied by commit
        self._moved: set[int] = set()  # committed URLs whose place changed
        self._finished: list[Finished] = []
        self._skipped: list[tuple[int, str, str | None]] = []
        self._skipped_now: list[tuple[str, SkipReason, str | None]] = []
        self._tries: dict[int, int] = {}
        self._sitemaps: list[tuple[str, int, int, str | None]] = []
        self._corrected: dict[int, tuple[str, str | None, int | None]] = {}
        self._fallen: deque[int] = deque()  # finished pages whose depth fell: filled by _reach, emptied by _sink
        self._kept_fallen: list[int] = []  # as the journal has them
        self._committed = Committed()  # filled by commit, emptied by take_committed
        self._joined: list[str] = []  # where seeds moved to; as the journal has it
        self.traps = Traps(known)
        self._trapped: dict[int, bytes] = {}  # ends of chains: filled by trap and load, emptied by _sink
        self._is_trapped_kept = True
        self._robots: dict[str, str] = {}  # rules by origin: filled by note_robots and load, never emptied
        self._are_robots_kept = True
        self.redirects: dict[int, int] = {}
        """Redirecting page to its target, for finding loops."""
        self.moving: set[int] = set()
        """Seeds, and what their redirects lead to so far: where these end joins the scope."""
        self.falls = 0
        self.content_size = 0
        """Characters that wait to be taken by the consumer of a WebSource."""

    # ------------------------------------------------------------------ becoming known

    def learn(self, url: str, key: str) -> int:
        """The id of `url`, whose identity is `key`; it becomes known when it is not.

        No way leads to it by this alone.
        """
        number = self.known.find(key)
        if number is not None:
            return number
        if self.scope.has(url):
            number = self.known.add(key, flags=self._rules(url), origin=self._origin(url), shape=shape(url))
        else:
            number = self.known.add(key, flags=0, origin=-1)
        self._new.append((number, url, None if key == url else key))
        if len(self._texts) < _TEXTS_KEPT:
            self._texts[number] = url
        return number

    def _rules(self, url: str) -> int:
        if scope_rules.is_too_long(url):
            return Flag.IN_SCOPE | Flag.TOO_LONG
        if scope_rules.is_trap(url):
            return Flag.IN_SCOPE | Flag.TRAP
        return Flag.IN_SCOPE

    def _origin(self, url: str) -> int:
        name = scope_rules.origin_of(url)
        return self.frontier.origin(name, scope_rules.host_key(name)).number

    def plant(self, url: str, *, is_seed: bool) -> int:
        """Make a seed or a sitemap's URL known: depth 0, no parent, its own root.

        A seed is in scope whatever the filters say.
        """
        number = self.learn(url, self._identity(url))
        known = self.known
        if is_seed:
            known.flags[number] |= Flag.SEED
            self._admit(number, url)
            self.moving.add(number)
        elif not known.flags[number] & Flag.IN_SITEMAP:
            known.flags[number] |= Flag.IN_SITEMAP
            self._touch(number)
        if known.flags[number] & Flag.IN_SCOPE:
            self._reach(number, depth=0, parent=-1, root=number, hops=0, is_followed=True)
        return number

    def _admit(self, number: int, url: str) -> None:
        known = self.known
        if not known.flags[number] & Flag.IN_SCOPE:
            known.flags[number] |= self._rules(url)
            known.origin[number] = self._origin(url)
            known.shape[number] = shape(url)
            known.state[number] = State.HELD
            self._touch(number)

    def text(self, number: int) -> str:
        """The address of a URL that is about to be requested; it is not kept after that."""
        url = self._texts.pop(number, None)
        if url is not None:
            return url
        if number >= self._committed_urls:
            return self._new[number - self._committed_urls][1]
        ahead = [number, *self.frontier.upcoming(number, _TEXTS_AHEAD)]
        self._texts.update(self.journal.texts(i for i in ahead if i not in self._texts and i < self._committed_urls))
        return self._texts.pop(number)

    def url_of(self, number: int) -> str:
        """The address of any known URL."""
        url = self._texts.get(number)
        if url is not None:
            return url
        if number >= self._committed_urls:
            return self._new[number - self._committed_urls][1]
        return self.journal.texts([number])[number]

    # ------------------------------------------------------------------ ways

    def _touch(self, number: int) -> None:
        if number < self._committed_urls:
            self._moved.add(number)

    def _reach(self, number: int, *, depth: int, parent: int, root: int, hops: int, is_followed: bool) -> None:
        """A way of length `depth` leads to `number`; `is_followed` gives it the right to be queued."""
        known = self.known
        old_depth = known.depth[number]
        if depth < old_depth:
            known.depth[number] = depth
            known.parent[number] = parent
            known.root[number] = root
            self._touch(number)
            if old_depth != FAR:
                self.falls += 1
            match known.state[number]:
                case State.WAITING:
                    self.frontier.move(number)
                case State.DONE:
                    self._fallen.append(number)
        if hops == 0:
            if known.hops and number in known.hops:
                del known.hops[number]
                self._touch(number)
                if known.state[number] == State.DONE:
                    self._fallen.append(number)
        elif old_depth == FAR or hops < known.hops.get(number, 0):
            known.hops[number] = hops
            self._touch(number)
            if known.state[number] == State.DONE:
                self._fallen.append(number)
        if is_followed and not known.flags[number] & Flag.FOLLOWED:
            known.flags[number] |= Flag.FOLLOWED
            self._touch(number)
        if known.state[number] == State.HELD:
            self._release(number)

    def _release(self, number: int) -> None:
        """Let a HELD URL wait when neither a rule nor the depth limit keeps it."""
        known = self.known
        flags = known.flags[number]
        if not flags & Flag.FOLLOWED or flags & (Flag.TOO_LONG | Flag.TRAP) or known.depth[number] > self._depth_limit:
            return
        verdict = self._verdicts.get(known.origin[number]) if self._verdicts else None
        if verdict is None:
            self.frontier.add(number)
        else:
            self._end_unasked(number, verdict)

    def reach_by_links(self, source: int, targets: Iterable[int], follows: Iterable[int]) -> None:
        """The links of a finished page: one step further than it.

        `follows`: for each target, whether it may be queued.
        """
        known = self.known
        depth = known.depth[source] + 1
        root = known.root[source]
        depths, flags, hops = known.depth, known.flags, known.hops
        for number, follow in zip(targets, follows, strict=True):
            # nothing to do for nearly every link: this test is what an edge costs
            if depths[number] > depth or (follow and not flags[number] & Flag.FOLLOWED) or (hops and number in hops):
                self._reach(number, depth=depth, parent=source, root=root, hops=0, is_followed=bool(follow))

    def trap(self, source: int, targets: Iterable[int], follows: bytes, *, can_pass: bool) -> None:
        """Merge the links of a trapped page: what nothing else leads to is skipped as a trap.

        `follows`: as for `reach_by_links`, were it none. `can_pass`: a shorter way to it may show that it is none.
        """
        targets = list(targets)
        for number in targets:
            if not self.known.flags[number] & Flag.TRAPPED:
                self.known.flags[number] |= Flag.TRAPPED
                self._touch(number)
        if can_pass:
            self._trapped[source] = follows
            self._is_trapped_kept = False
        self.reach_by_links(source, targets, bytes(len(targets)))

    def reach_by_redirect(self, source: int, url: str) -> tuple[int | None, Outcome, str | None]:
        """A redirect of `source` to `url`: (the target's id or None, the outcome of `source`, its error).

        Every page on a cycle is a redirect_loop: those that were recorded before are corrected. A page that is
        `max_redirects` hops away from a link, seed or sitemap and redirects again is one too, and its target is
        not made known by it.
        """
        known = self.known
        if known.hops.get(source, 0) >= self._max_redirects:
            return None, Outcome.REDIRECT_LOOP, f"more than {self._max_redirects} redirects"
        target = self.learn(url, self._identity(url))
        if target == source:
            if url == self.url_of(source):
                self.redirects[source] = source
                return source, Outcome.REDIRECT_LOOP, "redirects to itself"
            # another spelling of the same identity (a tracking parameter is dropped, an escape is tidied): it answers
            # what this one doesn't, so it is a page of its own that only this redirect leads to
            target = self.learn(url, f"redirect:{url}")
        self.redirects[source] = target
        if source in self.moving:
            self._admit(target, url)
            self.moving.add(target)
        loop = self._loop(source)
        self._reach_redirected(source, target)
        if loop:
            for member in loop:
                if member != source:
                    self._correct(member, Outcome.REDIRECT_LOOP, "redirects in a circle", self.redirects[member])
            return target, Outcome.REDIRECT_LOOP, "redirects in a circle"
        return target, Outcome.REDIRECT, None

    def _reach_redirected(self, source: int, target: int) -> None:
        known = self.known
        self._reach(
            target,
            depth=known.depth[source],
            parent=source,
            root=known.root[source],
            hops=known.hops.get(source, 0) + 1,
            is_followed=True,
        )

    def _loop(self, source: int) -> list[int]:
        """The pages of the redirect cycle that goes through `source`, empty when there is none."""
        path = [source]
        number = self.redirects[source]
        while number != source:
            if number in path or number not in self.redirects:
                return []
            path.append(number)
            number = self.redirects[number]
        return path

    def _correct(self, number: int, outcome: Outcome, error: str | None, redirect_to: int | None) -> None:
        for finished in self._finished:
            if finished.id == number:
                finished.outcome, finished.error, finished.redirect_to = outcome, error, redirect_to
                return
        self._corrected[number] = (outcome.value, error, redirect_to)

    # ------------------------------------------------------------------ the scope grows

    def join(self, url: str) -> None:
        """Take the place of `url` into the scope, and in what was known of it as outside."""
        self.scope.join(url)
        self._joined.append(url)
        self.commit({"joined": self._joined})
        known = self.known
        for number, outside, _ in self.journal.outside(Flag.IN_SCOPE):
            if known.flags[number] & Flag.IN_SCOPE or not self.scope.has(outside):
                continue
            self._admit(number, outside)
            if known.depth[number] < FAR:
                self._release(number)

    # ------------------------------------------------------------------ endings

    def finish(self, finished: Finished) -> None:
        """Record the final answer of a URL in flight, or of one that its dead origin decided for."""
        if finished.content is not None:
            self.content_size += finished.content.size
        known = self.known
        if known.state[finished.id] == State.IN_FLIGHT:
            self.frontier.settle(finished.id, State.DONE)
        else:
            known.state[finished.id] = State.DONE
        self._finished.append(finished)

    def skip(self, number: int, url: str, reason: SkipReason, error: str | None) -> None:
        """Record that a rule forbids the request of a URL whose turn had come."""
        known = self.known
        if known.state[number] == State.IN_FLIGHT:
            self.frontier.settle(number, State.SKIPPED)
        else:
            known.state[number] = State.SKIPPED
        self._skipped.append((number, reason.value, error))
        self._skipped_now.append((url, reason, error))

    def has_verdict(self, origin: Origin) -> bool:
        """True when the URLs of `origin` end without a request."""
        return origin.number in self._verdicts

    def close_origin(self, origin: Origin, verdict: Verdict) -> None:
        """End every URL of `origin` without a request: those that wait, and from now on those that become known."""
        self._verdicts[origin.number] = verdict
        for number in self.frontier.close(origin):
            self._end_unasked(number, verdict)

    def _end_unasked(self, number: int, verdict: Verdict) -> None:
        url = self._texts.pop(number, None) or self.url_of(number)
        if verdict.reason is not None:
            self.skip(number, url, verdict.reason, verdict.error)
            return
        assert verdict.outcome is not None
        if self.frontier.spend():
            self.finish(
                Finished(id=number, url=url, status=None, outcome=verdict.outcome, error=verdict.error, attempts=0)
            )
        else:
            self.frontier.add(number)  # the page budget is used up: it stays waiting behind the closed gate

    def note_try(self, number: int, attempts: int) -> None:
        """Keep how often a URL that waits for a retry has been asked, so that a resume does not begin to count anew."""
        self._tries[number] = attempts

    def note_sitemap(self, url: str, *, level: int, is_done: bool, error: str | None = None) -> None:
        self._sitemaps.append((url, level, int(is_done), error))

    def note_robots(self, origin: str, rules: str) -> None:
        """Keep what robots.txt of an origin says to us, for who asks later which rule would decide; of so many origins
        and so much text as every commit may carry."""
        has_place = origin in self._robots or len(self._robots) < _MOST_ROBOTS
        if has_place and len(rules) <= _LONGEST_ROBOTS and self._robots.get(origin) != rules:
            self._robots[origin] = rules
            self._are_robots_kept = False

    # ------------------------------------------------------------------ group commits

    @property
    def uncommitted(self) -> int:
        """Finished pages, skipped URLs and tries that wait for the next group commit."""
        return len(self._finished) + len(self._skipped) + len(self._tries)

    @property
    def is_settled(self) -> bool:
        """True when no fall of a depth is still to be carried on, and all that was learned without a page (where a
        fall ended, what a sitemap names) is in the journal."""
        learned = self._fallen or self._moved or self._new or self._corrected or self._sitemaps
        return not learned and self._are_robots_kept

    @property
    def is_committed(self) -> bool:
        """True when nothing waits for a group commit."""
        return not self.uncommitted and self.is_settled

    def commit(self, meta: dict[str, object] | None = None) -> None:
        """One group commit of all that has been learned since the last one, then a slice of the falling depths."""
        known = self.known
        values: dict[str, object] = dict(meta or ())
        fallen = list(self._fallen)
        if fallen != self._kept_fallen:
            values["fallen"] = fallen  # so that a resume carries them on
        if not self._is_trapped_kept:
            values["trapped"] = {str(number): follows.hex() for number, follows in self._trapped.items()}
            self._is_trapped_kept = True
        if not self._are_robots_kept:
            values["robots"] = self._robots
            self._are_robots_kept = True
        self.journal.commit(
            urls=[self._url_row(*new) for new in self._new],
            moved=[
                (known.depth[i], _none(known.parent[i]), known.root[i], known.hops.get(i, 0), known.flags[i], i)
                for i in self._moved
            ],
            pages=[finished.row() for finished in self._finished],
            texts=[(finished.id, finished.texts) for finished in self._finished if finished.texts],
            extracts=[
                (each.id, each.extract, each.extract_error)
                for each in self._finished
                if each.extract is not None or each.extract_error is not None
            ],
            corrected=[(*change, number) for number, change in self._corrected.items()],
            skipped=self._skipped,
            sitemaps=self._sitemaps,
            tries=list(self._tries.items()),
            meta=values,
        )
        self._kept_fallen = fallen
        self._committed_urls = len(known)
        self._committed.pages.extend(self._record(finished) for finished in self._finished)
        self._committed.skipped.extend(self._skipped_now)
        for rows in (
            self._new,
            self._moved,
            self._finished,
            self._corrected,
            self._skipped,
            self._skipped_now,
            self._sitemaps,
            self._tries,
        ):
            rows.clear()
        self.content_size = 0
        self._sink()

    def take_committed(self) -> Committed:
        """What has been committed since the last call, in order."""
        committed, self._committed = self._committed, Committed()
        return committed

    def contents(self) -> Iterator[tuple[PageRecord, Content]]:
        """Of the pages in the next group commit those whose content is wanted."""
        for finished in self._finished:
            if finished.content is not None:
                yield self._record(finished), finished.content

    def _record(self, finished: Finished) -> PageRecord:
        known = self.known
        number = finished.id
        target = finished.redirect_to
        return PageRecord(
            id=number,
            url=finished.url,
            depth=known.depth[number],
            parent=_none(known.parent[number]),
            status=finished.status,
            outcome=finished.outcome,
            error=finished.error,
            links=finished.links,
            millis=finished.millis,
            bytes=finished.size,
            content_type=finished.content_type,
            encoding=finished.encoding,
            title=finished.title,
            canonical=finished.canonical,
            robots=finished.robots,
            root=known.root[number],
            redirect_to=None if target is None or not known.flags[target] & Flag.IN_SCOPE else target,
            redirect_url=finished.redirect_url,
            attempts=finished.attempts,
            last_modified=finished.last_modified,
            extract=None if finished.extract is None else json.loads(finished.extract),
            extract_error=finished.extract_error,
        )

    def _url_row(self, number: int, url: str, key: str | None) -> UrlRow:
        known = self.known
        return (
            number,
            url,
            key,
            known.depth[number],
            _none(known.parent[number]),
            known.root[number],
            known.hops.get(number, 0),
            known.flags[number],
        )

    def _sink(self) -> None:
        """Carry fallen depths on along the links of finished pages, a slice of them."""
        known = self.known
        for _ in range(min(_SINK_SLICE, len(self._fallen))):
            source = self._fallen.popleft()
            found = self.journal.links_of(source)
            if found is None:  # finished after the last commit: the next slice has it
                self._fallen.append(source)
                continue
            if found.targets:
                targets = array("I", found.targets)
                if source in self._trapped and not self.traps.is_at_the_end(source):
                    self.reach_by_links(source, targets, self._trapped.pop(source))
                    self._is_trapped_kept = False
                    continue
                depth, root = known.depth[source] + 1, known.root[source]
                for target in targets:
                    if known.depth[target] > depth or target in known.hops:
                        self._reach(target, depth=depth, parent=source, root=root, hops=0, is_followed=False)
            elif source in self.redirects:
                if self.redirects[source] != source:
                    self._reach_redirected(source, self.redirects[source])
            elif found.redirect_url is not None and known.hops.get(source, 0) < self._max_redirects:
                # it was one redirect too many; now a shorter way leads to it
                target_or_none, outcome, error = self.reach_by_redirect(source, found.redirect_url)
                self._correct(source, outcome, error, target_or_none)

    # ------------------------------------------------------------------ resume

    def load(self) -> int:
        """Take up what the journal knows; the number of pages that were requested before."""
        known = self.known
        meta = self.journal.meta()
        self._joined = _list(meta.get("joined"))
        for url in self._joined:
            self.scope.join(url)
        for number, url, key, depth, parent, root, hops, flags in self.journal.urls():
            is_inside = flags & Flag.IN_SCOPE
            added = known.add(
                url if key is None else key,
                flags=flags,
                origin=self._origin(url) if is_inside else -1,
                shape=shape(url) if is_inside else 0,
            )
            assert added == number, (added, number)
            known.depth[number] = depth
            known.parent[number] = -1 if parent is None else parent
            known.root[number] = root
            if hops:
                known.hops[number] = hops
        self._committed_urls = len(known)
        self.journal.forget_unreachable()
        pages = 0
        for number, is_page in self.journal.settled():
            known.state[number] = State.DONE if is_page else State.SKIPPED
            pages += is_page
        self.redirects.update(self.journal.redirects())
        for number in range(len(known)):
            if known.flags[number] & Flag.SEED:
                self._follow_moving(number)
            if known.state[number] == State.HELD and known.depth[number] < FAR:
                self._release(number)
        robots = meta.get("robots")
        self._robots = {str(name): str(rules) for name, rules in robots.items()} if isinstance(robots, dict) else {}
        trapped = meta.get("trapped")
        if isinstance(trapped, dict):
            self._trapped = {int(number): bytes.fromhex(follows) for number, follows in trapped.items()}
        self._kept_fallen = _list(meta.get("fallen"))
        self._fallen.extend(self._kept_fallen)
        return pages

    def _follow_moving(self, number: int) -> None:
        while number not in self.moving:
            self.moving.add(number)
            number = self.redirects.get(number, number)


def _list(value: object) -> list[Any]:
    """A list that was kept in the journal as JSON; empty when there is none yet."""
    return value if isinstance(value, list) else []


def _none(number: int) -> int | None:
    return None if number < 0 else number
