"""Character references in HTML text and attributes, as a browser reads them.

From: scanner (attribute values, titles). To: scanner. Runs in parse processes. Pure.

The standard library's `html.unescape` is for text only, and it drops what the standard keeps (`&#8;` is U+0008).
"""

from __future__ import annotations

import re
from html.entities import html5

__all__ = ["in_attribute", "in_text"]

# HTML §13.2.5.80: numbers of the C1 range mean windows-1252.
_C1 = {
    0x80 + i: ord(c)
    for i, c in enumerate("€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ")
}  # fmt: skip
_REFERENCE = re.compile(r"&(?:#(?:[xX]([0-9a-fA-F]+)|([0-9]+));?|([A-Za-z][A-Za-z0-9]*)(;?)(=?))")
_LONGEST_LEGACY = max(len(name) for name in html5 if not name.endswith(";"))


def in_attribute(value: str) -> str:
    """An attribute's value with its references replaced.

    A legacy name without its semicolon is none where `=` or a letter or digit follows, "for historical reasons"
    (HTML §13.2.5.73 named character reference state): `?a=1&copy=2` keeps its parameter.
    """
    return _REFERENCE.sub(_replace_in_attribute, value) if "&" in value else value


def in_text(text: str) -> str:
    """Text with its references replaced; the longest name that fits counts, with or without its semicolon."""
    return _REFERENCE.sub(_replace_in_text, text) if "&" in text else text


def _replace_in_attribute(match: re.Match[str]) -> str:
    name = match[3]
    if name is None:
        return _numeric(match)
    if match[4]:
        found = html5.get(name + ";")
        return match[0] if found is None else found + match[5]
    return match[0] if match[5] else html5.get(name, match[0])


def _replace_in_text(match: re.Match[str]) -> str:
    name = match[3]
    if name is None:
        return _numeric(match)
    if match[4] and name + ";" in html5:
        return html5[name + ";"] + match[5]
    for length in range(min(len(name), _LONGEST_LEGACY), 1, -1):
        if name[:length] in html5:
            return html5[name[:length]] + match[0][1 + length :]
    return match[0]


def _numeric(match: re.Match[str]) -> str:
    digits = (match[1] or match[2]).lstrip("0")[:8]  # eight digits are out of range in either base
    number = int(digits or "0", 16 if match[1] else 10)
    if number == 0 or number > 0x10FFFF or 0xD800 <= number <= 0xDFFF or len(digits) == 8:
        return "\ufffd"
    return chr(_C1.get(number, number))
