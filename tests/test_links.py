"""The small grammars of links (meta refresh, srcset), what an engine is asked for, and the memory of addresses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlr.options import DEFAULT_FOLLOW
from crawlr.parse import links, urls
from crawlr.parse.document import read
from crawlr.parse.remembered import Remembered

# content -> what it leads to; "" reloads the page, None does nothing
REFRESHES = {
    "0;x": "x",
    "0; url=x": "x",
    "0, URL=x": "x",
    "0 url=x": "x",
    "0\t\n\x0c\r;\t\n\x0c\rurl\t=\nx": "x",
    "  1  ;  url  =  x  ": "x",
    "1;x y": "x y",
    "1": "",
    " 1 ": "",
    "1;": "",
    "1,": "",
    "1;url=": "",
    "1; url = ": "",
    "1;;url=x": ";url=x",
    "1;,x": ",x",
    "1.9;x": "x",
    "1...;x": "x",
    ".5;x": "x",
    ".;x": "x",
    "": None,
    " ": None,
    ";x": None,
    "x": None,
    "url=x": None,
    "-1;x": None,
    "+1;x": None,
    "1x;y": None,
    "1e0;x": None,
    "1:x": None,
    "0url=x": None,
    "\u0661;x": None,
    "\x0b1;x": None,
    "1\xa0;x": None,
    "1;u": "u",
    "1;ur=x": "ur=x",
    "1;urlx": "urlx",
    "1;url x": "url x",
    "1;uRl=x": "x",
    "1;url='x'y": "x",
    '1;url="x"y': "x",
    "1;url='x": "x",
    "1;'x'y": "x",
    '1;"x\'y"z': "x'y",
    "1;url=x'y": "x'y",
    "1;url=''": "",
    "1;url=a;b,c": "a;b,c",
    "1;url==x": "=x",
}

SRCSETS = {
    "": [],
    " , ,\t": [],
    "a": ["a"],
    "a,": ["a"],
    "a,,": ["a"],
    "a,b": ["a,b"],
    "a, b": ["a", "b"],
    "a ,b": ["a", "b"],
    "a 1x,b 2x": ["a", "b"],
    "a 1x, b 2x": ["a", "b"],
    ",a": ["a"],
    "a 1x": ["a"],
    "a\n1x\t,\x0cb\r2x": ["a", "b"],
    "a,b,c 1x": ["a,b,c"],
    "a (,b), c": ["a", "c"],
    "a (,b , c": ["a"],
    "a 1x (x,y) 2x, b": ["a", "b"],
    "a ) , b": ["a", "b"],
    "a nonsense, b -1x": ["a", "b"],
    "data:image/gif;base64,AA== 1x, b": ["data:image/gif;base64,AA==", "b"],
    "a\xa01x": ["a\xa01x"],
}


@pytest.mark.parametrize("content", REFRESHES)
def test_refresh_follows_the_standards_steps(content: str) -> None:
    """HTML §4.2.5.3, step by step; white space around the URL is taken off as the URL parser would."""
    assert links.refresh_target(content) == REFRESHES[content]


@pytest.mark.parametrize("srcset", SRCSETS)
def test_srcset_is_split_as_the_standard_splits_it(srcset: str) -> None:
    """Commas belong to the URL unless they end it, and to descriptors in parentheses."""
    assert list(links.srcset_candidates(srcset)) == SRCSETS[srcset]


@given(st.text(alphabet="ab,() \t1x"))
def test_srcset_never_loses_the_first_candidate(text: str) -> None:
    """The first word that is more than commas is a candidate, without its commas at the end."""
    words = [word for word in text.strip(" \t,").split() if word]

    found = list(links.srcset_candidates(text))

    assert (found[:1] == [words[0].rstrip(",")]) if words else not found


def test_every_kind_of_the_option_exists() -> None:
    """The names of --follow are names of kinds, the default ones first: their numbers fit into a flag."""
    assert set(links.KINDS) >= {*DEFAULT_FOLLOW, "link", "img", "script"}
    assert links.KINDS[: len(DEFAULT_FOLLOW)] == DEFAULT_FOLLOW
    assert len(links.KINDS) == len(set(links.KINDS)) <= 32


def test_an_engine_is_asked_for_no_more_than_is_wanted() -> None:
    """Elements that say something about the page always, the others by kind."""
    facts = {"base", "link", "meta"}

    assert links.wanted_names(frozenset()) == facts
    assert links.wanted_names(frozenset(DEFAULT_FOLLOW)) == facts | {"a", "area", "iframe", "frame"}
    assert links.wanted_names(frozenset({"img"})) == facts | {"img", "source", "video"}
    assert links.wanted_names(None) >= facts | {"a", "form", "input", "use"}


# ---- the memory of addresses


def test_the_memory_of_addresses_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """When it is full it begins anew, long hrefs and those of one page only are never kept, and answers stay right."""
    urls.forget()
    monkeypatch.setattr(urls, "_resolved", Remembered(25_000))
    monkeypatch.setattr(urls, "_levels", Remembered(100))

    most = [0, 0]
    for number in range(50):
        body = "".join(
            f"<a href={number}-{n}><a href=?{n}><a href={number}é{n}><a href={'x' * 2000}>" for n in range(9)
        )
        page = read(body.encode(), url=f"http://h.test/{number}/p", content_type="text/html", agent="x")
        assert [url for url, _, _ in page.links][1:3] == [
            f"http://h.test/{number}/p?0",
            f"http://h.test/{number}/{number}%C3%A90",
        ]
        most = [max(most[0], len(urls._resolved)), max(most[1], len(urls._levels))]

    assert 50 < most[0] < 150
    assert 90 < most[1] <= 100
    assert all(len(href) < 2000 for href in urls._levels)


@pytest.mark.parametrize("href", ["x #f", "x?q #f", "x\x1f#f", "é #f", " x#f", "x#f ", " #f", "x", "x #", "#f #g"])
def test_white_space_before_a_fragment_belongs_to_the_address(href: str) -> None:
    """It is stripped where it ends an href, and there it does not."""
    page = read(
        f'<a href="{href}">'.encode(), url="http://h.test/d/p", content_type="text/html;charset=utf-8", agent="x"
    )

    assert [url for url, _, _ in page.links] == [urls.resolve("http://h.test/d/p", href)]


@pytest.mark.parametrize(
    "href",
    ["", "?x", "#x", "http:", "http:?x", "HTTP:?x", "\t?x", "h\nttp:?x", "http\n:?x", "http:\n?x", " ", "\x01?x"],
)
def test_an_href_that_takes_from_its_own_page_is_not_remembered(href: str) -> None:
    """Two pages of one folder resolve it apart."""
    quoted = href.replace('"', "&quot;")
    body = f'<a href="{quoted}">'.encode()

    found = [
        [url for url, _, _ in read(body, url=url, content_type="text/html", agent="x").links]
        for url in ("http://h.test/d/p?a", "http://h.test/d/q?b", "https://h.test/d/r")
    ]

    assert found == [
        [resolved for resolved in [urls.resolve(url, href)] if resolved]
        for url in ("http://h.test/d/p?a", "http://h.test/d/q?b", "https://h.test/d/r")
    ]
    assert len({str(each) for each in found}) == 3
