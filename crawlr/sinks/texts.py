"""Text from the web in a form that a file format can hold.

From: sinks. To: sinks. Pure.
"""

from __future__ import annotations

import re

__all__ = ["storable", "xml"]

_SURROGATE = re.compile("[\ud800-\udfff]")
# XML 1.0 §2.2 Char: what is not in it can't be written in any way, not even as a reference
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
)


def storable(text: str) -> str:
    """The text with lone surrogates, which no UTF can hold, replaced by U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def xml(text: str) -> str:
    """The text as content or attribute value of XML 1.0; a character that XML has no way to write becomes U+FFFD."""
    return _NO_XML.sub("\ufffd", text).translate(_ESCAPES)
