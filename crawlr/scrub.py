"""Makes text that came from the web safe to print: no control character of a page reaches a terminal or a log line.

From: URLs, titles, headers and error texts of pages. To: progress (screen) and log lines. Pure; any thread.
"""

from __future__ import annotations

import re

__all__ = ["scrub"]

# C0, DEL and C1 can move the cursor, change colours or the window's title; the bidi marks and isolates reverse what a
# reader sees; NEL, LS and PS are line ends to many programs. A lone surrogate cannot be written in any encoding.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def scrub(text: str, *, limit: int = 200) -> str:
    r"""The text with unsafe characters as `\xNN` or `\uNNNN`, at most `limit` characters; a cut ends in an ellipsis."""
    safe = _UNSAFE.sub(_escape, text[: limit + 1])
    if len(safe) > limit:
        safe = safe[: limit - 1] + "…"
    return safe


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
