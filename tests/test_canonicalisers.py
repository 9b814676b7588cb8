"""Rules that a user who knows a site puts together."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlr.parse import canonicalisers as c
from crawlr.parse.urls import identity, resolve

RULES: dict[str, c.Rule] = {
    "drop_params": c.drop_params("sid", "größe"),
    "keep_params": c.keep_params("id", "page"),
    "drop_query": c.drop_query,
    "sort_params": c.sort_params,
    "index_is_folder": c.index_is_folder(),
    "index_is_folder, own names": c.index_is_folder(names=("index", "default.aspx"), slash=False),
    "strip_trailing_slash": c.strip_trailing_slash,
    "add_trailing_slash": c.add_trailing_slash,
    "merge_slashes": c.merge_slashes,
    "lower_case_path": c.lower_case_path,
    "drop_session_path": c.drop_session_path,
    "one_scheme": c.one_scheme,
    "drop_www": c.drop_www,
    "drop_matching": c.drop_matching(r"/print/|\?sort="),
}

CASES: dict[str, dict[str, str | None]] = {
    "drop_params": {
        "http://h/?sid=1&a=2": "http://h/?a=2",
        "http://h/?sid": "http://h/",
        "http://h/?gr%c3%b6%c3%9fe=2": "http://h/",
        "http://h/?SID=1&xsid=2&a=sid": "http://h/?SID=1&xsid=2&a=sid",
        "http://h/?utm_source=x": "http://h/?utm_source=x",
        "http://h/sid=1": "http://h/sid=1",
    },
    "keep_params": {
        "http://h/?x=1&id=2&page=3&id=4": "http://h/?id=2&page=3&id=4",
        "http://h/a?x=1": "http://h/a",
        "http://h/a": "http://h/a",
        "http://h/?id": "http://h/?id",
    },
    "drop_query": {"http://h/a?b=c?d": "http://h/a", "http://h/a?": "http://h/a", "http://h/a": "http://h/a"},
    "sort_params": {
        "http://h/?b=2&a=1": "http://h/?a=1&b=2",
        "http://h/?b=2&a=9&b=1": "http://h/?a=9&b=2&b=1",
        "http://h/?": "http://h/?",
        "http://h/": "http://h/",
    },
    "index_is_folder": {
        "http://h/about/index.html": "http://h/about/",
        "http://h/about/index.php?x=1": "http://h/about/?x=1",
        "http://h/index.htm": "http://h/",
        "http://h/about/": "http://h/about/",
        "http://h/about": "http://h/about",
        "http://h/myindex.html": "http://h/myindex.html",
        "http://h/index.html/": "http://h/index.html/",
        "http://h/?/index.html": "http://h/?/index.html",
    },
    "index_is_folder, own names": {
        "http://h/about/index": "http://h/about",
        "http://h/a/default.aspx?x": "http://h/a?x",
        "http://h/index": "http://h/",
        "http://h/index/index": "http://h/",
        "http://h/about/index.html": "http://h/about/index.html",
    },
    "strip_trailing_slash": {
        "http://h/a/": "http://h/a",
        "http://h/a/?x=/": "http://h/a?x=/",
        "http://h/a//": "http://h/a",
        "http://h//": "http://h/",
        "http://h/": "http://h/",
        "http://h/?x/": "http://h/?x/",
    },
    "add_trailing_slash": {
        "http://h/a": "http://h/a/",
        "http://h/a?x": "http://h/a/?x",
        "http://h/a/": "http://h/a/",
        "http://h/a.html": "http://h/a.html",
        "http://h/v1.2/a": "http://h/v1.2/a/",
    },
    "merge_slashes": {"http://h//a///b//?x=//": "http://h/a/b/?x=//", "http://h/a": "http://h/a"},
    "lower_case_path": {"http://h/A/B.HTM?Q=X": "http://h/a/b.htm?Q=X", "http://h/%C3%A9A%2F": "http://h/%C3%A9a%2F"},
    "drop_session_path": {
        "http://h/cart;jsessionid=1A2B?x": "http://h/cart?x",
        "http://h/a;JSESSIONID=1/b;v=2": "http://h/a/b;v=2",
        "http://h/?;jsessionid=1": "http://h/?;jsessionid=1",
    },
    "one_scheme": {
        "http://h/a?b": "https://h/a?b",
        "https://h/": "https://h/",
        "http://h:8080/": "http://h:8080/",
        "http://[::1]/": "https://[::1]/",
    },
    "drop_www": {
        "http://www.h.test/": "http://h.test/",
        "http://www.test/": "http://www.test/",
        "http://www.www.test/": "http://www.test/",
        "http://www/": "http://www/",
        "http://www/a.b": "http://www/a.b",
        "http://wwwx.h.test/www.": "http://wwwx.h.test/www.",
    },
    "drop_matching": {"http://h/print/1": None, "http://h/?sort=a": None, "http://h/a": "http://h/a"},
}


def test_every_rule_is_tried() -> None:
    """What the module offers is in the tables of this file."""
    assert {name.partition(",")[0] for name in RULES} == set(CASES) - {"index_is_folder, own names"}
    assert {name.partition(",")[0] for name in RULES} | {"Rule", "compose"} == set(c.__all__)


@pytest.mark.parametrize(("rule", "url"), [(rule, url) for rule, urls in CASES.items() for url in urls])
def test_a_rule_merges_what_it_says_and_nothing_else(rule: str, url: str) -> None:
    """One address, one key, None for a link that is dropped."""
    assert RULES[rule](url) == CASES[rule][url]


def test_rules_compose_from_left_to_right() -> None:
    """Each sees what the one before gave, none at all changes nothing, and what is dropped stays dropped."""
    folder = c.compose(c.index_is_folder(), c.strip_trailing_slash, c.drop_params("sid"))
    never = c.compose(c.drop_matching("x"), c.drop_query, c.compose(c.sort_params))

    assert {folder(f"http://h/about{end}") for end in ("", "/", "/index.html", "/index.php?sid=1")} == {
        "http://h/about"
    }
    assert c.compose()("http://h/") == "http://h/"
    assert never("http://h/?x") is None
    assert never("http://h/?y") == "http://h/"


def test_a_pattern_that_is_none_is_the_callers_mistake() -> None:
    """It is said when the rule is made, not at the first link."""
    with pytest.raises(re.error):
        c.drop_matching("(")


PARTS = st.sampled_from(
    ["a", "A", "/", "//", "index.html", "index", "?", "&", "sid=1", "id=2", ";jsessionid=1", "%2f", "."]
)
URLS = st.tuples(st.sampled_from(["http://h/", "https://www.h.test/"]), st.lists(PARTS, max_size=6).map("".join))


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=100, deadline=None)
@given(URLS)
def test_a_key_under_a_rule_is_its_own_key(rule: str, url: tuple[str, str]) -> None:
    """Every rule is idempotent, and its key is still the address of a page."""
    found = resolve("".join(url), "")
    assert found is not None

    key = RULES[rule](found)

    if key is not None:
        assert RULES[rule](key) == key
        assert resolve(key, "") is not None
        assert identity(key)
