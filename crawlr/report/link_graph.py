"""The pages that the links make important, and a picture of how they link to each other.

From: PageRank and the edges (Source), the pages (second pass). To: the tab Structure. Main thread.

The picture is laid out here by springs and repulsion (Fruchterman and Reingold, 1991), from a fixed beginning, so that
the same crawl gives the same picture. A node bears the number of its row in the table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from crawlr.records import PageRecord
from crawlr.report.tables import Column, Kind, Largest, Row, Table, Urls, shown
from crawlr.sinks.source import Source

__all__ = ["Edge", "LinkGraph", "Node", "lay_out", "set_apart"]

ROWS = 100
DRAWN = 40
WIDTH, HEIGHT = 1000.0, 640.0
_MARGIN = 40.0
_ROUNDS = 200
_GRAVITY = 0.2
"""How much each node is drawn to the middle: what has few links would else fly so far that the rest has no room."""
_MOST_PUSHES = 1000  # 20 are enough for pictures of real sites
_GAP = 8.0
"""Between two circles; a ring around one takes a part of it."""


class Node(Struct, frozen=True, kw_only=True):
    """One page of the picture, in its coordinates."""

    number: int
    url: str
    title: str | None
    x: float
    y: float
    radius: float
    is_broken: bool


class Edge(Struct, frozen=True, kw_only=True):
    """A link between two pages of the picture. `source` and `target` are numbers of nodes."""

    source: int
    target: int
    x1: float
    y1: float
    x2: float
    y2: float
    is_mutual: bool


class _Page(Struct, frozen=True):
    id: int
    url: str
    title: str | None
    is_broken: bool


class LinkGraph:
    """Collects the pages with the highest PageRank."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._top: Largest[_Page] = Largest(ROWS)
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []

    def see(self, page: PageRecord) -> None:
        """Take a page in."""
        is_broken = page.status is None or page.status >= 400
        rank = self._source.ranks[page.id]
        self._top.offer((rank, -page.id), _Page(page.id, page.url, shown(page.title), is_broken))

    def table(self, urls: Urls) -> Table:
        """The top pages; the first DRAWN are in the picture."""
        into, out, ranks = self._source.degrees.into, self._source.degrees.out, self._source.ranks
        rows: list[Row] = [
            (number, urls.of(page.id), round(100 * ranks[page.id], 4), into[page.id], out[page.id], page.title)
            for number, page in enumerate(self._top.best(), 1)
        ]
        return Table(
            columns=(
                Column("No.", Kind.WHOLE),
                Column("URL", Kind.URL),
                Column("PageRank, %", Kind.REAL),
                Column("Linked from", Kind.WHOLE),
                Column("Links to", Kind.WHOLE),
                Column("Title", Kind.TEXT),
            ),
            rows=rows,
            total=self._top.total,
            sorted_by=2,
        )

    def draw(self) -> None:
        """Lay the picture out."""
        pages = self._top.best()[:DRAWN]
        place = {page.id: number for number, page in enumerate(pages)}
        pairs: set[tuple[int, int]] = set()
        for source, targets in self._source.view.edges():
            if source in place:
                pairs.update((place[source], place[target]) for target in targets if target in place)
        ranks = self._source.ranks
        most = max((ranks[page.id] for page in pages), default=0.0) or 1.0
        radii = [round(11 + 15 * math.sqrt(ranks[page.id] / most), 1) for page in pages]
        spots = set_apart(lay_out(len(pages), [(a, b) for a, b in pairs if a < b or (b, a) not in pairs]), radii)
        for number, (page, (x, y)) in enumerate(zip(pages, spots, strict=True), 1):
            self.nodes.append(
                Node(
                    number=number,
                    url=page.url,
                    title=page.title,
                    x=x,
                    y=y,
                    radius=radii[number - 1],
                    is_broken=page.is_broken,
                )
            )
        for a, b in sorted(pairs):
            is_mutual = (b, a) in pairs
            if is_mutual and b < a:
                continue
            (x1, y1), (x2, y2) = spots[a], spots[b]
            self.edges.append(Edge(source=a + 1, target=b + 1, x1=x1, y1=y1, x2=x2, y2=y2, is_mutual=is_mutual))


def lay_out(count: int, pairs: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
    """A place in the picture for each of `count` nodes, those that a pair joins near each other."""
    # a sunflower: no two nodes begin at one place, and the first, the most important, in the middle
    xs = [math.sqrt(n + 0.5) * math.cos(2.399963 * n) for n in range(count)]
    ys = [math.sqrt(n + 0.5) * math.sin(2.399963 * n) for n in range(count)]
    spring = 1.0
    heat = 0.8
    for _ in range(_ROUNDS):
        dx, dy = [0.0] * count, [0.0] * count
        for a in range(count):
            for b in range(a + 1, count):
                x, y = xs[a] - xs[b], ys[a] - ys[b]
                push = spring / max(x * x + y * y, 1e-3)
                dx[a] += x * push
                dy[a] += y * push
                dx[b] -= x * push
                dy[b] -= y * push
        pull_of = [0.0] * count
        for a, b in pairs:
            pull_of[a] += 1
            pull_of[b] += 1
        for a, b in pairs:
            x, y = xs[a] - xs[b], ys[a] - ys[b]
            # a page that links to all would draw all together: its links pull the less, the more they are
            pull = math.hypot(x, y) / spring * 4 / max(pull_of[a], pull_of[b], 4)
            dx[a] -= x * pull
            dy[a] -= y * pull
            dx[b] += x * pull
            dy[b] += y * pull
        for n in range(count):
            dx[n] -= _GRAVITY * xs[n]
            dy[n] -= _GRAVITY * ys[n]
            length = math.hypot(dx[n], dy[n])
            if length:
                step = min(length, heat) / length
                xs[n] += dx[n] * step
                ys[n] += dy[n] * step
        heat *= 0.98
    return list(zip(_fitted(xs, WIDTH), _fitted(ys, HEIGHT), strict=True))


def set_apart(spots: Sequence[tuple[float, float]], radii: Sequence[float]) -> list[tuple[float, float]]:
    """The places that `lay_out` gave, with circles of these radii moved off each other as far as is needed, inside the
    picture."""
    # a little off, each in a direction of its own: what stands in a row would be pushed along the row alone
    xs = [x + math.cos(n) for n, (x, _) in enumerate(spots)]
    ys = [y + math.sin(n) for n, (_, y) in enumerate(spots)]
    for _ in range(_MOST_PUSHES):
        is_moved = False
        for a in range(len(spots)):
            for b in range(a + 1, len(spots)):
                x, y = xs[a] - xs[b], ys[a] - ys[b]
                distance = math.hypot(x, y)
                lacking = radii[a] + radii[b] + _GAP - distance
                if lacking <= 0.1:
                    continue
                is_moved = True
                step = lacking / 2 / max(distance, 0.01)
                for n, way in ((a, step), (b, -step)):
                    xs[n] = min(max(xs[n] + x * way, _MARGIN), WIDTH - _MARGIN)
                    ys[n] = min(max(ys[n] + y * way, _MARGIN), HEIGHT - _MARGIN)
        if not is_moved:
            break
    return [(round(x, 1), round(y, 1)) for x, y in zip(xs, ys, strict=True)]


def _fitted(values: list[float], size: float) -> list[float]:
    low, high = min(values, default=0.0), max(values, default=0.0)
    width = high - low or 1.0
    if high == low:
        return [size / 2] * len(values)
    return [round(_MARGIN + (value - low) / width * (size - 2 * _MARGIN), 1) for value in values]
