"""What the benches print and write: a table of text, JSON, and a line that says on what machine.

From: the benches. To: the terminal and files. The machine belongs to the figures: none is worth anything without it.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from importlib.metadata import version

__all__ = ["Cell", "machine", "table", "write_json"]

Cell = str | int | float | None
"""A float is shown with two digits behind the point, None as nothing."""
_PACKAGES = ("lxml", "urllib3", "requests")


def machine() -> str:
    """The machine and what runs on it, in a line."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    parts = [f"{cores} cores", platform.machine(), f"{platform.python_implementation()} {platform.python_version()}"]
    parts += [f"{package} {version(package)}" for package in _PACKAGES]
    parts.append(f"load {os.getloadavg()[0]:.1f} before")
    return ", ".join(parts)


def table(head: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Rows under a head, texts to the left, numbers to the right."""
    shown = [[_shown(cell) for cell in row] for row in rows]
    widths = [max(len(text) for text in column) for column in zip(head, *shown, strict=True)]
    is_text = [
        any(isinstance(cell, str) and not cell.endswith("%") for cell in column) for column in zip(*rows, strict=True)
    ]
    lines = []
    for row in (head, *shown):
        cells = [
            text.ljust(width) if left else text.rjust(width)
            for text, width, left in zip(row, widths, is_text, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _shown(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:,.2f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def write_json(path: str, document: object) -> None:
    with open(path, "w", encoding="utf-8") as out:
        json.dump(document, out, indent=1)
        out.write("\n")
