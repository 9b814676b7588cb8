"""A user's value as JSON that is sure to be read again: no NaN, no endless or very deep nesting, bounded in size.

From: parse.extraction (what a function or selectors gave), sitemap_file (what an earlier crawl stored). To: the
journal, as text. Runs in parse processes and in the main process. Pure.
"""

from __future__ import annotations

import json

__all__ = ["NESTING", "dumps"]

NESTING = 64
"""Lists and objects in one another. What json writes at one depth of calls it may fail to read at another."""

_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":")).encode
_encode_ascii = json.JSONEncoder(check_circular=False, allow_nan=False, separators=(",", ":")).encode


def dumps(value: object, *, most: int | None = None) -> str:
    """`value` as JSON that UTF-8 can hold, of at most `most` bytes. TypeError or ValueError say why it can't be had."""
    _check_nesting(value, NESTING)
    text = _encode(value)
    try:
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError:  # half of a surrogate pair
        text = _encode_ascii(value)
        size = len(text)
    if most is not None and size > most:
        raise ValueError(f"{size:,} bytes as JSON, more than {most:,}")
    return text


def _check_nesting(value: object, left: int) -> None:
    if isinstance(value, dict):
        parts = value.values()
    elif isinstance(value, (list, tuple)):
        parts = value  # type: ignore[assignment]  # walked through, as the values are
    else:
        return
    if not left:
        raise ValueError(f"nested in itself, or more than {NESTING} deep")
    for part in parts:
        if isinstance(part, (dict, list, tuple)):
            _check_nesting(part, left - 1)
