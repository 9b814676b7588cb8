"""Numbers in words, as the page's templates show them. The page's script does the same for cells of tables.

From: sections. To: templates. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

__all__ = ["FILTERS", "duration", "millis", "percent", "phrase", "plural", "size", "thousands"]


def thousands(number: int) -> str:
    """A whole number with a comma after each thousand."""
    return f"{number:,}"


def plural(count: int, one: str, many: str | None = None) -> str:
    """The number with its noun: "1 page", "1,204 pages"."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def size(count: float) -> str:
    """Bytes by powers of 1,024, three digits at most."""
    number, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if number < 1000 or unit == "TiB":
            break
        number /= 1024
    return f"{number:.0f} {unit}" if unit == "B" or number >= 100 else f"{number:.3g} {unit}"


def millis(number: float) -> str:
    """Milliseconds, from one second on as seconds."""
    return f"{number:.0f} ms" if number < 1000 else f"{number / 1000:.1f} s"


def duration(seconds: float) -> str:
    """Seconds as a person says them."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    whole = round(seconds)
    if seconds < 7200:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def percent(share: float) -> str:
    """A share of 0 to 1: nothing and all are only said of nothing and all."""
    if 0 < share < 0.001:
        return "<0.1%"
    if 0.995 <= share < 1:
        return f"{min(100 * share, 99.9):.1f}%"
    return f"{100 * share:.0f}%" if share == 0 or share >= 0.1 else f"{100 * share:.1f}%"


def phrase(status: int) -> str:
    """What a status is called, RFC 9110 §15; empty for one that has no name."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


FILTERS: dict[str, Callable[..., str]] = {
    "duration": duration,
    "millis": millis,
    "percent": percent,
    "size": size,
    "thousands": thousands,
}
