"""Which answers are redirects, and where their Location says to go.

From: the coordinator, with a FetchedPage. To: the coordinator, which resolves the text with parse.urls. Pure.
"""

from __future__ import annotations

import re

from crawlr.records import FetchedPage

__all__ = ["is_redirect", "location"]

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HIGH = re.compile(rb"[\x80-\xff]")
_BLANK = " \t\r\n\f"


def is_redirect(status: int) -> bool:
    """True for 301, 302, 303, 307 and 308; 300 and 304 are ordinary answers."""
    return status in _REDIRECTS


def location(page: FetchedPage) -> str | None:
    """Text of the Location, ready to be resolved against the page's URL; None when there is none or it is blank.

    ASCII: each byte above 0x7F becomes its percent-encoding as it is, because no charset is known for it (UTF-8 and
    Latin-1 servers both get their own bytes back).
    """
    if page.location is None:
        return None
    text = _HIGH.sub(lambda match: b"%%%02X" % match[0][0], page.location).decode("ascii").strip(_BLANK)
    return text or None
