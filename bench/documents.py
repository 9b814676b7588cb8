"""What a page costs a parse process, by engine, from bytes to links; and lxml's own ways to the same tags.

    python -m bench.documents                                  # the documentation of Python or OpenJDK, where installed
    python -m bench.documents ~/site --min 20000 --max 40000 --files 300

Microseconds of CPU a page. `as in a crawl` reads plain pages without an engine (crawlr.parse.plain), the rows below it
read every page with that engine. The rows take turns, each value is the best of `--rounds`: other work on the machine
makes a round slower, never faster. `cold` is a first round, in which every href of every folder is resolved.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

from lxml import etree

from bench import tables
from crawlr.options import DEFAULT_FOLLOW
from crawlr.parse import document, links, plain, urls

__all__ = ["Cost", "main", "measure"]

TREES = ("/usr/share/doc/openjdk-17-jre-headless/api", "/usr/share/doc/python3/html")
FOLLOW = frozenset(DEFAULT_FOLLOW)
AS_IN_A_CRAWL = "as in a crawl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """A row: microseconds a page. Made by measure."""

    name: str
    warm: int
    cold: int | None
    """With no href resolved yet; None: nothing is resolved."""


def pages(folder: Path, *, smallest: int, largest: int, files: int) -> list[tuple[str, bytes]]:
    """(URL, body) of HTML files of that size, the same ones each time."""
    found = sorted(path for path in folder.glob("**/*.html") if smallest <= path.stat().st_size <= largest)
    random.Random(1).shuffle(found)
    return [(f"http://bench.invalid/{path.relative_to(folder)}", path.read_bytes()) for path in found[:files]]


def measure(taken: Sequence[tuple[str, bytes]], *, rounds: int) -> list[Cost]:
    """A row for a crawl, for each engine that is installed, and for lxml with a target and with a tree."""
    engines = [name for name in document.PARSERS if name != "lexbor" or find_spec("selectolax")]
    ways: dict[str, Callable[[str, bytes], object]] = {AS_IN_A_CRAWL: partial(_read, "lxml")}
    ways |= {name: partial(_read_by_engine, name) for name in engines}
    ways |= {"lxml, a target alone": _by_target, "lxml, a tree and iter": _by_tree}
    cold: dict[str, int] = {}
    for name in (AS_IN_A_CRAWL, *engines):
        urls.forget()
        plain.forget()
        cold[name] = _microseconds(ways[name], taken)
    warm = [{name: _microseconds(way, taken) for name, way in ways.items()} for _ in range(rounds)]
    return [Cost(name=name, warm=min(each[name] for each in warm), cold=cold.get(name)) for name in ways]


def _microseconds(way: Callable[[str, bytes], object], taken: Sequence[tuple[str, bytes]]) -> int:
    began = time.process_time()
    for url, body in taken:
        way(url, body)
    return round(1e6 * (time.process_time() - began) / len(taken))


def _read(parser: str, url: str, body: bytes) -> object:
    return document.read(body, url=url, content_type="text/html", agent="bench", parser=parser, follow=FOLLOW)


def _read_by_engine(parser: str, url: str, body: bytes) -> object:
    with mock.patch.object(plain, "scan", _nothing_is_plain):
        return _read(parser, url, body)


def _nothing_is_plain(*_: object, once: bool) -> None:
    pass


class _Hrefs:
    """A parser target that keeps what the engine keeps."""

    def __init__(self) -> None:
        self.found: list[tuple[str, Any]] = []

    def start(self, name: str, attributes: Any) -> None:
        if name in _NAMES:
            self.found.append((name, attributes))

    def close(self) -> None:
        """lxml wants one."""


_NAMES = links.wanted_names(FOLLOW) | {"title"}


def _by_target(_: str, body: bytes) -> None:
    target: Any = _Hrefs()
    etree.fromstring(body, etree.HTMLParser(target=target, encoding="utf-8", huge_tree=True))


def _by_tree(_: str, body: bytes) -> None:
    tree = etree.fromstring(body, etree.HTMLParser(encoding="utf-8", huge_tree=True))
    for element in tree.iter(*_NAMES):
        element.get("href")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.documents", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, help="HTML files")
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--min", type=int, default=20_000, help="bytes of the smallest file taken")
    parser.add_argument("--max", type=int, default=40_000, help="bytes of the largest file taken")
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    folder = given.folder or next((Path(tree) for tree in TREES if Path(tree).is_dir()), None)
    taken = pages(folder, smallest=given.min, largest=given.max, files=given.files) if folder else []
    if not taken:
        sys.exit("bench.documents: no HTML files of that size; name a folder")
    print(tables.machine())
    print(f"{len(taken)} pages of {sum(len(body) for _, body in taken) // len(taken):,} bytes from {folder}")
    rows = measure(taken, rounds=given.rounds)
    print(tables.table(("", "us a page", "cold"), [(row.name, row.warm, row.cold) for row in rows]))


if __name__ == "__main__":
    main()
