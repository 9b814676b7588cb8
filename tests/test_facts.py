"""What documents and headers say of themselves: robots directives, canonical addresses, titles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlr.parse import facts

BASE = "http://h.test/d/p"

# content of one meta robots element -> directives
CONTENTS = {
    "noindex": ["noindex"],
    "NoIndex, NOFOLLOW": ["nofollow", "noindex"],
    "none": ["nofollow", "noindex"],
    "none,nofollow": ["nofollow", "noindex"],
    "all": ["all"],
    " , ,\n": [],
    "noindex nofollow": ["nofollow", "noindex"],
    "noindex;nofollow": ["noindex;nofollow"],
    "no index": ["no index"],
    "max-snippet:20, max-image-preview : Large": ["max-image-preview:large", "max-snippet:20"],
    "unavailable_after: 25 Jun 2010 15:00:00 PST, noindex": ["noindex", "unavailable_after:25 jun 2010 15:00:00 pst"],
    "unavailable_after: Friday, 25-Jun-10 15:00:00 UTC, noindex": [
        "noindex",
        "unavailable_after:friday, 25-jun-10 15:00:00 utc",
    ],
    "unavailable_after: Friday": ["unavailable_after:friday"],
}

# values of X-Robots-Tag -> directives for crawlr
HEADERS = {
    ("noindex",): {"noindex"},
    ("noindex, nofollow", "noarchive"): {"noindex", "nofollow", "noarchive"},
    ("NONE",): {"noindex", "nofollow"},
    ("crawlr: noindex",): {"noindex"},
    ("Crawlr: noindex, nofollow",): {"noindex", "nofollow"},
    ("crawlr/2.0: noindex",): {"noindex"},
    ("*: noindex",): {"noindex"},
    ("googlebot: noindex, nofollow",): set(),
    ("googlebot: noindex", "nofollow"): {"nofollow"},
    ("noarchive, googlebot: noindex, nofollow",): {"noarchive"},
    ("googlebot: noindex, crawlr: nofollow, noarchive",): {"nofollow", "noarchive"},
    ("crawlrx: noindex", "crawl: noindex"): set(),
    ("max-snippet: 20, noindex",): {"max-snippet:20", "noindex"},
    ("max-new-thing: 1, noindex",): {"max-new-thing:1", "noindex"},
    ("unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT, noindex",): {
        "unavailable_after:fri, 25 jun 2010 15:00:00 gmt",
        "noindex",
    },
    ("unavailable_after: 25 Jun 2010 15:00:00 PST",): {"unavailable_after:25 jun 2010 15:00:00 pst"},
    ("googlebot: unavailable_after: 25 Jun 2010 15:00:00 PST",): set(),
    ("crawlr: unavailable_after: 25 Jun 2010 15:00:00 PST",): {"unavailable_after:25 jun 2010 15:00:00 pst"},
    ("crawlr : noindex",): {"noindex"},
    ("",): set(),
    (",:,: ,",): {":"},
    (): set(),
}

# values of Link -> canonical address
LINKS = {
    ("<c>; rel=canonical",): "http://h.test/d/c",
    ('</c>; rel="canonical"',): "http://h.test/c",
    ('<//o.test/c>;REL="Canonical"',): "http://o.test/c",
    ('</i.png>; rel="image_src", </c>; rel="canonical"',): "http://h.test/c",
    ("</i>; rel=next", "</c>; rel=canonical"): "http://h.test/c",
    ('</a,b;c>; title="x, <no>; rel=canonical"; rel="next canonical"',): "http://h.test/a,b;c",
    ('</c>; title="a\\", </no>; rel=canonical"; rel=canonical',): "http://h.test/c",
    ("</no>; rel=next; rel=canonical",): None,
    ("</no>; rel=canonical; anchor=/other",): None,
    ("</no>; anchor='#x'; rel=canonical, </c>; rel=canonical",): "http://h.test/c",
    ("<>; rel=canonical", "< >; rel=canonical", "</c>; rel=canonical"): "http://h.test/c",
    ("<mailto:x>; rel=canonical, </c>; rel=canonical",): "http://h.test/c",
    ("</c#f>;rel=canonical",): "http://h.test/c",
    ("<http://u:p@h.test/c>; rel=canonical",): "http://h.test/c",
    ("</c>;; rel = canonical ;",): "http://h.test/c",
    (" , ,</c>\t;\trel=canonical",): "http://h.test/c",
    ("</c> rel=canonical",): None,
    ("</no; rel=canonical",): None,
    ("no; rel=canonical",): None,
    ("</caf\u00c3\u00a9>; rel=canonical",): "http://h.test/caf%C3%A9",
    ("</caf\u00e9>; rel=canonical",): "http://h.test/caf%C3%A9",
    ("</no>",): None,
    ("</no>; rel",): None,
    ("</no>; rel=",): None,
    ("</no>; rel=canonicals",): None,
    ("",): None,
    (): None,
}


@pytest.mark.parametrize("content", CONTENTS)
def test_directives_of_a_meta_element(content: str) -> None:
    """Lower case, sorted, `none` as both of its parts; a list without commas is still a list."""
    found = facts.robots_of([("meta", {"name": "robots", "content": content})], "crawlr")

    assert list(found) == CONTENTS[content]


def test_meta_elements_of_others_do_not_count() -> None:
    """Only `robots` and our product token, whatever stands behind its slash; an empty element says nothing."""
    elements = [
        ("meta", {"name": "googlebot", "content": "noindex"}),
        ("meta", {"name": " CRAWLR ", "content": "noarchive"}),
        ("meta", {"property": "robots", "content": "noindex"}),
        ("meta", {"name": "robots", "content": None}),
        ("meta", {"name": None}),
    ]

    assert facts.robots_of(elements, "crawlr/1.0") == ("noarchive",)


@pytest.mark.parametrize("values", HEADERS)
def test_directives_of_the_header(values: tuple[str, ...]) -> None:
    """Fields for every agent and for ours count, alone or joined by a proxy; dates keep their commas and colons."""
    assert facts.robots_from_headers(values, "crawlr") == HEADERS[values]


def test_what_either_forbids_is_forbidden() -> None:
    """Directives of document and header are one sorted list."""
    assert facts.merge(("noindex",), frozenset({"nofollow", "noindex"}), ()) == ("nofollow", "noindex")


@pytest.mark.parametrize("values", LINKS)
def test_canonical_of_the_link_header(values: tuple[str, ...]) -> None:
    """RFC 8288: quoted commas, repeated parameters, anchors; the first usable one is taken."""
    assert facts.canonical_from_link(values, BASE) == LINKS[values]


@given(st.lists(st.text(alphabet='<>;,="\\ \tacnolire:*/', max_size=60), max_size=3))
def test_no_header_is_too_strange(values: list[str]) -> None:
    """Any text gives an answer: a set of words without commas, and an address or none."""
    directives = facts.robots_from_headers(tuple(values), "crawlr")
    canonical = facts.canonical_from_link(tuple(values), BASE)

    assert all(each == each.strip().lower() and each for each in directives)
    assert canonical is None or canonical.startswith(("http://", "https://"))


def test_a_long_title_costs_no_more_than_its_beginning() -> None:
    """A title that is never closed holds the rest of the page; white space at its start does not count."""
    assert facts.collapse(" \n" + "x " * 10_000_000) == ("x " * 49_999).strip()
    assert facts.collapse(None) is None
