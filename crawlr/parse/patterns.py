"""Regular expressions with possessive groups, right on every Python that has them.

From: the modules of parse (patterns as written). To: the same, compiled. Pure.

Up to 3.11.4 a possessive group takes the beginning of a repetition that fails for a whole one, when something inside of
it had to go back (python/cpython gh-106052): `(?:ab?c)++` matches all of "aca". There `(?:...)*+` is compiled as the
atomic group that it stands for, `(?>(?:...)*)`. Elsewhere it is left as it is, for an atomic group takes up to twice
the time, and memory for each repetition.
"""

from __future__ import annotations

import re
from typing import AnyStr

__all__ = ["atomic", "compiled"]

_found = re.match("(?:ab?c)++", "aca")
_IS_RIGHT = _found is not None and _found.end() == 2


def compiled(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """The pattern, whatever this Python does to possessive groups. Not for re.VERBOSE."""
    return re.compile(pattern if _IS_RIGHT else atomic(pattern), flags)


def atomic(pattern: AnyStr) -> AnyStr:
    """The same pattern with each possessive group as an atomic one."""
    if isinstance(pattern, bytes):
        return _atomic(pattern.decode("latin-1")).encode("latin-1")
    return _atomic(pattern)


_PART = re.compile(r"\\.|\[\^?\]?(?:[^\]\\]|\\.)*\]|\)(?:[*+?]|\{[0-9,]+\})\+|.", re.DOTALL)
"""An escape, a class, the end of a possessive group, or a character."""


def _atomic(pattern: str) -> str:
    parts: list[str] = []
    groups: list[int] = []  # where those that are open begin in parts
    for part in _PART.findall(pattern):
        is_possessive = part[0] == ")" and len(part) > 1
        if part == "(":
            groups.append(len(parts))
        elif part[0] == ")":
            begin = groups.pop()
            if is_possessive:
                parts[begin] = "(?>("
        parts.append(f"{part[:-1]})" if is_possessive else part)
    return "".join(parts)
