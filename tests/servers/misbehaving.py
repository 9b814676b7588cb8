"""A server that does everything wrong: the first segment of a URL's path names what happens when it is asked for.

From: `python -m tests.servers.misbehaving --log FILE`, a process of its own, raw sockets. To: hits in the log, opened
O_APPEND, with target, headers and connection. `/index?a&b/7&c` is a good page that links to /a, /b/7 and /c, and
`/page/...` one whose title is its target. What is wrong with robots.txt or a sitemap has an origin (a port) of its own,
named like the behaviour, where every other target is a good page.
"""

from __future__ import annotations

import argparse

from tests.servers import bad_contents, bad_exchanges, bad_files
from tests.servers.behaviour import BEHAVIOURS, ORIGINS, behaviour, document, no_such_behaviour
from tests.servers.wire import Request, Wire, WireServer, run_until_stdin_closes

SOURCES = (bad_contents, bad_exchanges, bad_files)
"""Importing them fills the register."""


class MisbehavingServer(WireServer):
    def __init__(self, *, log: str | None = None) -> None:
        super().__init__(origins=("", *ORIGINS), log=log)

    def respond(self, request: Request, wire: Wire) -> bool:
        if wire.origin:
            return ORIGINS[wire.origin](request, wire)
        name = request.path.strip("/").partition("/")[0]
        return BEHAVIOURS.get(name, no_such_behaviour)(request, wire)


@behaviour
def index(request: Request, wire: Wire) -> bool:
    wire.answer(document(*(f"/{name}" for name in request.query.split("&")), title="index"))
    return True


@behaviour
def page(request: Request, wire: Wire) -> bool:
    wire.answer(document(title=request.target))
    return True


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--log")
    run_until_stdin_closes(MisbehavingServer(log=arguments.parse_args().log))
