"""Which answers are redirects, and what their Location says."""

from __future__ import annotations

import pytest

from crawlr.fetch.redirects import is_redirect, location
from crawlr.records import FetchedPage


@pytest.mark.parametrize("status", range(200, 600))
def test_only_five_statuses_are_redirects(status: int) -> None:
    """300, 304, 305 and 306 are ordinary answers."""
    assert is_redirect(status) is (status in (301, 302, 303, 307, 308))


LOCATIONS = {
    None: None,
    b"": None,
    b" \t": None,
    b"/n": "/n",
    b"  /n  ": "/n",
    b"//other.test/b": "//other.test/b",
    b"?y=2": "?y=2",
    b"/n#frag": "/n#frag",
    b"/a\tb\tc": "/a\tb\tc",
    b"http://[::1/x": "http://[::1/x",
    b"data:,x": "data:,x",
    b"../moo.html/?name=d a niel&testcase=/1": "../moo.html/?name=d a niel&testcase=/1",
    "/café".encode(): "/caf%C3%A9",
    b"/caf\xe9": "/caf%E9",
    b"/\x93\xfa": "/%93%FA",
    "http://bücher.test/ü?ü".encode(): "http://b%C3%BCcher.test/%C3%BC?%C3%BC",
    b"/%e9%E9": "/%e9%E9",
}


@pytest.mark.parametrize("value", LOCATIONS, ids=ascii)
def test_location_keeps_its_bytes(value: bytes | None) -> None:
    """Every byte above ASCII is percent-encoded as it is; what is blank or missing leads nowhere."""
    assert location(FetchedPage(status=302, location=value)) == LOCATIONS[value]
