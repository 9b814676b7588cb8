"""The register of what the misbehaving server can do, and what the behaviours share."""

from __future__ import annotations

from collections.abc import Callable

from tests.servers.wire import Request, Wire

Behaviour = Callable[[Request, Wire], bool]
"""Answers one request on the wire; True keeps the connection open."""
BEHAVIOURS: dict[str, Behaviour] = {}
"""By the first segment of the path."""
ORIGINS: dict[str, Behaviour] = {}
"""By the name of a port."""

HTML = "Content-Type: text/html; charset=utf-8\r\n"
OK = "HTTP/1.1 200 OK\r\n" + HTML
BOMB_SIZE = 200 << 20
LINK_BEFORE = '<a href="/page/before">before</a>'
LINK_AFTER = '<a href="/page/after">after</a>'


def behaviour(function: Behaviour) -> Behaviour:
    BEHAVIOURS[function.__name__] = function
    return function


def origin(function: Behaviour) -> Behaviour:
    ORIGINS[function.__name__] = function
    return function


def no_such_behaviour(request: Request, wire: Wire) -> bool:
    wire.answer("no such behaviour", status=404)
    return True


def argument(request: Request, default: int = 0) -> int:
    """The number in /name/NUMBER."""
    digits = request.path.strip("/").partition("/")[2].partition("/")[0]
    return int(digits) if digits.isdigit() else default


def document(*links: str, title: str = "", text: str = "") -> str:
    return f"<!doctype html><title>{title}</title>{text}" + "".join(f'<a href="{link}">x</a>' for link in links)


def to_location(value: str, status: int = 302) -> Behaviour:
    """A redirect with exactly that Location."""

    def answer(request: Request, wire: Wire) -> bool:
        wire.answer("moved", status=status, headers=(("Location", value),))
        return True

    return answer
