"""A small site in the test's own process: a dict of paths and replies, and the list of requests that came."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.gates import Gate
from tests.servers.wire import Request, Wire, WireServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer. `gate` is passed first, then `delay` seconds are waited; `keep` False closes the connection."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | str = ""
    delay: float = 0.0
    gate: Gate | None = None
    keep: bool = True


Answer = Reply | Callable[[Request, Wire], Reply | None]
"""A callable returns the reply to send, or None when it wrote the answer itself and the connection is to be closed."""


def page(*links: str, title: str | None = None, text: str = "") -> Reply:
    """An HTML page with these links."""
    head = f"<title>{title}</title>" if title is not None else ""
    return Reply(body=f"<!doctype html>{head}{text}" + "".join(f'<a href="{link}">x</a>' for link in links))


def redirect(location: str, status: int = 302) -> Reply:
    return Reply(status=status, headers=(("Location", location),))


class Site(WireServer):
    """Serves `routes` (target or path -> answer). What is not there is 404, robots.txt included."""

    def __init__(self, routes: Mapping[str, Answer], *, default: Answer | None = None, **options: Any) -> None:
        self.routes = dict(routes)
        self.default: Answer = default if default is not None else Reply(status=404, body="no such page")
        super().__init__(**options)

    def url(self, target: str = "/") -> str:
        return self.origin() + target

    @property
    def hits(self) -> list[Request]:
        """Requests in order of arrival."""
        with self._lock:
            return list(self.requests)

    def targets(self, *, files: bool = False) -> list[str]:
        """Targets in order of arrival; robots.txt only with `files`."""
        return [hit.target for hit in self.hits if files or hit.path != "/robots.txt"]

    def respond(self, request: Request, wire: Wire) -> bool:
        answer = self.routes.get(request.target, self.routes.get(request.path))
        if answer is None:
            answer = Reply(status=404, body="none") if request.path == "/robots.txt" else self.default
        reply = answer if isinstance(answer, Reply) else answer(request, wire)
        if reply is None:
            return False
        if reply.gate is not None:
            reply.gate.enter()
        if reply.delay and not wire.pause(reply.delay):
            return False
        wire.answer(reply.body, status=reply.status, headers=reply.headers, method=request.method)
        return reply.keep


class Once:
    """An answer that gives its replies one after the other, the last one for ever."""

    def __init__(self, *replies: Reply) -> None:
        self._replies = list(replies)
        self._lock = threading.Lock()

    def __call__(self, request: Request, wire: Wire) -> Reply:
        with self._lock:
            return self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
