"""A site that is a random graph made from a seed, and what a crawl of it must find, worked out without any of crawlr.

From: `python -m tests.servers.graph --seed S --size N --log FILE` serves it in a process of its own; `plan` gives the
same graph to the tests. To: hits in the log, opened O_APPEND; `oracle` gives pages, edges, skipped and unvisited URLs.

Numbers are pages: 0 is "/", n is "/p/n". Links and redirects mostly lead to higher numbers, so the graph is deep, with
short cuts and ways back, which make answers arrive by a longer way first. Some URLs are met only by unusable ways
(links on error pages) and belong to no result.
"""

from __future__ import annotations

import argparse
import heapq
import random
import threading
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from enum import StrEnum

from tests.servers.wire import Request, Wire, WireServer, run_until_stdin_closes

ELSEWHERE = "http://127.0.0.1:9/elsewhere"
"""Out of scope: another port."""
NEVER = "/never/"
ROBOTS = "User-agent: *\nDisallow: /private/\n"
CHAIN = 5
"""Hops of the chain that is made on purpose; with what leads into it, it stays under the default --max-redirects."""


class Kind(StrEnum):
    PAGE = "page"
    SLOW = "slow"
    HEAVY = "heavy"
    FLAKY = "flaky"  # 500 the first time, then 200
    BROKEN = "broken"  # 500 always
    MISSING = "missing"  # 404
    REDIRECT = "redirect"
    PRIVATE = "private"  # robots.txt forbids it


_WEIGHTS = {
    Kind.PAGE: 74,
    Kind.SLOW: 3,
    Kind.HEAVY: 2,
    Kind.FLAKY: 3,
    Kind.BROKEN: 1,
    Kind.MISSING: 5,
    Kind.REDIRECT: 9,
    Kind.PRIVATE: 3,
}
HAS_LINKS = frozenset([Kind.PAGE, Kind.SLOW, Kind.HEAVY, Kind.FLAKY])


@dataclass(slots=True, kw_only=True)
class Node:
    """One URL of the graph."""

    number: int
    kind: Kind
    links: list[int] = field(default_factory=list)
    """Numbers in document order; doubles and the page itself may be among them."""
    to: int | None = None
    """Where a redirect leads; None: out of scope."""
    status: int = 200
    has_link_elsewhere: bool = False
    delay: float = 0.0

    @property
    def path(self) -> str:
        if self.number == 0:
            return "/"
        return f"/private/{self.number}" if self.kind is Kind.PRIVATE else f"/p/{self.number}"


def plan(seed: int, size: int) -> list[Node]:
    """The graph of that seed: the same on every machine and every run."""
    dice = random.Random(f"{seed}/{size}")
    kinds = [Kind.PAGE, *dice.choices(list(_WEIGHTS), weights=list(_WEIGHTS.values()), k=size - 1)]
    nodes = [Node(number=number, kind=kind) for number, kind in enumerate(kinds)]
    for node in nodes:
        node.delay = dice.uniform(0.05, 0.15) if node.kind is Kind.SLOW else dice.uniform(0.001, 0.004)
        node.status = _status(node.kind, dice)
    _grow_tree(nodes, dice)
    for node in nodes:
        if node.kind in HAS_LINKS or node.kind in (Kind.MISSING, Kind.BROKEN):
            _add_links(node, nodes, dice)
    _tie_redirects(nodes, dice)
    return nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a finished crawl finds, by path."""

    pages: dict[str, tuple[int, str, int, int]]
    """path -> (status, outcome, depth, links)"""
    edges: set[tuple[str, str]]
    skipped: dict[str, tuple[str, int]]
    """path -> (reason, depth)"""
    unvisited: dict[str, tuple[str, int]]


def oracle(seed: int, size: int, *, depth: int | None = None) -> Expected:
    """What a crawl from "/" with that depth limit finds: depth is the shortest way, a link costs 1, a redirect 0."""
    nodes = plan(seed, size)
    depths: dict[int, int] = {}
    edges: set[tuple[str, str]] = set()
    heap = [(0, 0)]
    while heap:
        distance, number = heapq.heappop(heap)
        if number in depths:
            continue
        depths[number] = distance
        node = nodes[number]
        if depth is not None and distance > depth:
            continue
        if node.kind in HAS_LINKS:
            for target in set(node.links) - {number}:
                edges.add((node.path, nodes[target].path))
                heapq.heappush(heap, (distance + 1, target))
        elif node.kind is Kind.REDIRECT and node.to is not None:
            heapq.heappush(heap, (distance, node.to))
    known = [(nodes[number], distance) for number, distance in depths.items()]
    fitting = [(node, distance) for node, distance in known if depth is None or distance <= depth]
    return Expected(
        pages={
            node.path: (node.status, _outcome(node, nodes), distance, _link_count(node))
            for node, distance in fitting
            if node.kind is not Kind.PRIVATE
        },
        edges=edges,
        skipped={node.path: ("robots_disallowed", distance) for node, distance in fitting if node.kind is Kind.PRIVATE},
        unvisited={
            node.path: ("depth_limit", distance) for node, distance in known if depth is not None and distance > depth
        },
    )


class GraphServer(WireServer):
    """Serves a plan; only a flaky page has a memory, and only of its first time."""

    def __init__(self, nodes: list[Node], *, log: str | None = None) -> None:
        self._nodes = {node.path: node for node in nodes}
        self._by_number = nodes
        self._times: Counter[str] = Counter()
        self._times_lock = threading.Lock()
        super().__init__(log=log)

    def respond(self, request: Request, wire: Wire) -> bool:
        node = self._nodes.get(request.path)
        if request.path == "/robots.txt":
            wire.answer(ROBOTS, headers=(("Content-Type", "text/plain"),))
            return True
        if node is None:
            wire.answer("no such page", status=404)
            return True
        with self._times_lock:
            self._times[node.path] += 1
            is_first = self._times[node.path] == 1
        self.closing.wait(node.delay)
        if node.kind is Kind.REDIRECT:
            location = self._by_number[node.to].path if node.to is not None else ELSEWHERE
            wire.answer(_never(node), status=node.status, headers=(("Location", location),))
        else:
            status = 500 if node.kind is Kind.FLAKY and is_first else node.status
            body = self._body(node) + (_never(node) if status >= 400 else f"<!-- {_never(node)} -->")
            wire.answer(body, status=status, method=request.method)
        return True

    def _body(self, node: Node) -> str:
        dice = random.Random(node.number)
        parts = [f"<!doctype html><title>page {node.number}</title>"]
        if node.kind is Kind.HEAVY:
            parts.append("<p>some text that has to be read</p>\n" * 6000)
        for target in node.links:
            parts.append(f'<p><a href="{_spelling(self._by_number[target].path, dice)}">to {target}</a>')
        if node.has_link_elsewhere:
            parts.append(f'<a href="{ELSEWHERE}">out</a><a href="mailto:a@b.example">mail</a>')
        return "".join(parts)


def _never(node: Node) -> str:
    """A link that stands where no link is taken: in the body of an error or a redirect, or in a comment."""
    return f'<a href="{NEVER}{node.number}">never</a>'


def _status(kind: Kind, dice: random.Random) -> int:
    if kind is Kind.REDIRECT:
        return dice.choice([301, 302, 303, 307, 308])
    return {Kind.BROKEN: 500, Kind.MISSING: 404}.get(kind, 200)


def _grow_tree(nodes: list[Node], dice: random.Random) -> None:
    """Give nearly every node a way to it, from a lower number not far away: depth grows with the size."""
    window = max(12, len(nodes) // 8)
    for node in nodes[1:]:
        candidates = [nodes[dice.randrange(max(0, node.number - window), node.number)] for _ in range(4)]
        for parent in candidates:
            if parent.kind in HAS_LINKS:
                parent.links.append(node.number)
                break
            if parent.kind is Kind.REDIRECT and parent.to is None:
                parent.to = node.number
                break
        else:
            nodes[0].links.append(node.number)


def _add_links(node: Node, nodes: list[Node], dice: random.Random) -> None:
    for _ in range(dice.choice([0, 1, 2, 3, 5, 8])):
        node.links.append(dice.randrange(len(nodes)) if dice.random() < 0.05 else dice.randrange(node.number + 1))
    if dice.random() < 0.2:
        node.links.append(node.number)  # to itself
    if node.links and dice.random() < 0.3:
        node.links.append(dice.choice(node.links))  # twice
    node.has_link_elsewhere = dice.random() < 0.2
    dice.shuffle(node.links)


def _tie_redirects(nodes: list[Node], dice: random.Random) -> None:
    """Turn redirects that led out of scope into a few cycles of two and one chain of several hops; some stay."""
    free = [node for node in nodes if node.kind is Kind.REDIRECT and node.to is None]
    dice.shuffle(free)
    in_cycles = free[: len(free) // 3]
    for first, second in zip(in_cycles[::2], in_cycles[1::2], strict=False):
        first.to, second.to = second.number, first.number
    in_chain = free[len(in_cycles) : len(in_cycles) + CHAIN]
    for hop, following in zip(in_chain, [*in_chain, nodes[0]][1:], strict=True):
        hop.to = following.number


def _outcome(node: Node, nodes: list[Node]) -> str:
    if node.kind is Kind.REDIRECT:
        return "redirect_loop" if _is_on_cycle(node, nodes) else "redirect"
    return "ok" if node.status == 200 else "http_error"


def _is_on_cycle(node: Node, nodes: list[Node]) -> bool:
    hop, seen = node, set()
    while hop.kind is Kind.REDIRECT and hop.to is not None and hop.number not in seen:
        seen.add(hop.number)
        hop = nodes[hop.to]
    return hop is node and len(seen) > 0 and node.number in seen


def _link_count(node: Node) -> int:
    """Distinct http targets, in scope or not, the page itself left out."""
    if node.kind not in HAS_LINKS:
        return 0
    return len(set(node.links) - {node.number}) + int(node.has_link_elsewhere)


def _spelling(path: str, dice: random.Random) -> str:
    """One of several ways to write the same address; which of them is requested first makes no difference."""
    return dice.choice([path, path, path, path + "#part", "/x/.." + path, f"/%2e{path}"])


def longest_chain(nodes: list[Node]) -> int:
    """Hops of the longest chain of redirects that is no cycle."""
    lengths: defaultdict[int, int] = defaultdict(int)
    for node in nodes:
        hop, seen = node, set()
        while hop.kind is Kind.REDIRECT and hop.to is not None and hop.number not in seen:
            seen.add(hop.number)
            hop = nodes[hop.to]
        if hop.number not in seen:
            lengths[node.number] = len(seen)
    return max(lengths.values(), default=0)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seed", type=int, required=True)
    arguments.add_argument("--size", type=int, required=True)
    arguments.add_argument("--log")
    chosen = arguments.parse_args()
    run_until_stdin_closes(GraphServer(plan(chosen.seed, chosen.size), log=chosen.log))
