"""What users give to extract=, good and bad; parser processes import it by this name. Which one a page gets it says in
its path: /raises is given to `raises`, and so on; any other path to `facts`."""

from __future__ import annotations

import ctypes
import os
import sys
from urllib.parse import urlsplit

from crawlr import ParsedDocument

NEVER = "a lambda that is no attribute of the module under its own name"
nameless = lambda document: document.url  # noqa: E731  # what is tried


def facts(document: ParsedDocument) -> dict[str, object]:
    return {
        "path": urlsplit(document.url).path,
        "links": [link.url for link in document.links],
        "type": document.content_type,
        "encoding": document.encoding,
        "title": document.title,
        "canonical": document.canonical,
        "robots": list(document.robots),
        "size": len(document.html),
        "root": document.tree.tag,
    }


def nothing(_: ParsedDocument) -> None:
    return None


def a_list(document: ParsedDocument) -> list[str]:
    return [document.url]


def many_names(document: ParsedDocument) -> dict[str, int]:
    return {f"{document.url} {number}": number for number in range(201)}


async def later(document: ParsedDocument) -> str:
    return document.url


def of_two(document: ParsedDocument, other: object) -> None:
    """Takes one too many."""


class Prefix:
    """A function with a setting, which pickles."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def __call__(self, document: ParsedDocument) -> str:
        return self.prefix + document.url


class _MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even that")


def raises(_: ParsedDocument) -> None:
    raise ValueError("no price here: \x1b[31m\ud800")


def mute(_: ParsedDocument) -> None:
    raise _MuteError


def exits(_: ParsedDocument) -> None:
    sys.exit(3)


def recurses(document: ParsedDocument) -> object:
    return recurses(document)


def octets(document: ParsedDocument) -> object:
    return {"body": document.html.encode()}


def nan(_: ParsedDocument) -> object:
    return [1.0, float("nan")]


def huge(_: ParsedDocument) -> object:
    return "x" * 300_000


def cyclic(_: ParsedDocument) -> object:
    found: list[object] = []
    found.append(found)
    return found


def deep(_: ParsedDocument) -> object:
    found: list[object] = []
    for _ in range(400):
        found = [found]
    return found


def half(_: ParsedDocument) -> object:
    return "half of a pair: \ud800, NUL: \0, end"


def prints(document: ParsedDocument) -> object:
    print("on stdout")  # noqa: T201  # what is tried
    print("Timeout (0:00:10)!\nMemoryError", file=sys.stderr)  # noqa: T201
    return document.title


def spoils(document: ParsedDocument) -> object:
    """Takes the tree to pieces."""
    document.tree.clear()
    return "spoilt"


def hangs(_: ParsedDocument) -> None:
    while True:
        pass


def eats(_: ParsedDocument) -> object:
    return "x" * (4 << 30)


def dies(_: ParsedDocument) -> None:
    os._exit(7)


def crashes(_: ParsedDocument) -> None:
    ctypes.string_at(0)


def forks(_: ParsedDocument) -> object:
    return "parent" if os.fork() else "child"


def forks_and_exits(_: ParsedDocument) -> object:
    child = os.fork()
    if not child:
        sys.exit(0)
    os.waitpid(child, 0)
    return "parent"


def any_of_them(document: ParsedDocument) -> object:
    return globals().get(urlsplit(document.url).path.strip("/"), facts)(document)
