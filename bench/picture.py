"""Charts as SVG: lines over numbers, bars over words. A few lines of our own rather than a plotting library.

From: the benches (names and values). To: a file that every browser shows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Line", "bars", "lines", "write"]

_WIDTH, _HEIGHT = 820, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 200, 50, 60
_COLOURS = ("#2f6fb3", "#c4622d", "#3c8d4f", "#8a4f9e", "#b5932b", "#5b6770", "#b03a55", "#2a9d94")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a chart."""

    name: str
    points: tuple[tuple[float, float], ...]
    is_dashed: bool = False


def lines(title: str, *, x_name: str, y_name: str, drawn: Sequence[Line], is_log: bool = False) -> str:
    """A chart of lines; y begins at 0. `is_log`: x by its logarithm."""
    xs = sorted({x for line in drawn for x, _ in line.points})
    top = _nice_top(max((y for line in drawn for _, y in line.points), default=1.0))
    scale = math.log10 if is_log else float
    low, high = scale(xs[0]), scale(xs[-1])

    def place(x: float, y: float) -> tuple[float, float]:
        part = (scale(x) - low) / (high - low) if high > low else 0.5
        return _LEFT + part * (_WIDTH - _LEFT - _RIGHT), _y(y, top)

    parts = [_frame(title, x_name, y_name, top)]
    for x in xs:
        at, _ = place(x, 0)
        parts.append(_text(at, _HEIGHT - _BOTTOM + 18, _number(x), anchor="middle"))
    for number, line in enumerate(drawn):
        colour = _COLOURS[number % len(_COLOURS)]
        places = [place(x, y) for x, y in sorted(line.points)]
        dash = ' stroke-dasharray="6 4"' if line.is_dashed else ""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        parts.append(_key(number, line.name, colour))
    return _svg(parts)


def bars(title: str, *, y_name: str, names: Sequence[str], stacks: Sequence[tuple[str, Sequence[float]]]) -> str:
    """A chart of bars, one for each of `names`; `stacks` are what they are made of, from the bottom: (name, values)."""
    sums = [sum(values[i] for _, values in stacks) for i in range(len(names))]
    top = _nice_top(max(sums, default=1.0))
    step = (_WIDTH - _LEFT - _RIGHT) / max(1, len(names))
    parts = [_frame(title, "", y_name, top)]
    for i, name in enumerate(names):
        x, below = _LEFT + i * step + 0.15 * step, 0.0
        for number, (_, values) in enumerate(stacks):
            low, high = _y(below, top), _y(below + values[i], top)
            colour = _COLOURS[number % len(_COLOURS)]
            size = f'width="{0.7 * step:.1f}" height="{low - high:.1f}"'
            parts.append(f'<rect x="{x:.1f}" y="{high:.1f}" {size} fill="{colour}"/>')
            below += values[i]
        parts.append(_text(x + 0.35 * step, _y(below, top) - 5, _number(below), anchor="middle"))
        letters = 12 if step > 60 else 9
        for row, word in enumerate(name.split(" ", 1)):
            at = _HEIGHT - _BOTTOM + 16 + 13 * row
            parts.append(_text(x + 0.35 * step, at, word, anchor="middle", size=letters))
    parts += [_key(number, name, _COLOURS[number % len(_COLOURS)]) for number, (name, _) in enumerate(stacks)]
    return _svg(parts)


def write(path: str, svg: str) -> None:
    with open(path, "w", encoding="utf-8") as out:
        out.write(svg)


def _nice_top(value: float) -> float:
    """The end of the scale: 1, 1.5, 2, 3, 4, 5, 6 or 8 times a power of ten."""
    if value <= 0:
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * power >= value * 0.999)


def _number(value: float) -> str:
    return f"{round(value):,}" if value >= 1000 else f"{value:.3g}"


def _y(value: float, top: float) -> float:
    return _HEIGHT - _BOTTOM - value / top * (_HEIGHT - _TOP - _BOTTOM)


def _frame(title: str, x_name: str, y_name: str, top: float) -> str:
    parts = [_text(_LEFT, 24, title, size=16)]
    for i in range(6):
        value = top * i / 5
        at = _y(value, top)
        shade = "#333" if i == 0 else "#ddd"
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="{shade}"/>')
        parts.append(_text(_LEFT - 8, at + 4, _number(value), anchor="end"))
    parts.append(_text(_LEFT, _TOP - 8, y_name))
    parts.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 12, x_name, anchor="middle"))
    return "\n".join(parts)


def _key(number: int, name: str, colour: str) -> str:
    x, y = _WIDTH - _RIGHT + 16, _TOP + 10 + 20 * number
    return f'<rect x="{x}" y="{y - 9}" width="12" height="10" fill="{colour}"/>' + _text(x + 18, y, name)


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif">'
    return "\n".join([head, f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>', *parts, "</svg>", ""])
