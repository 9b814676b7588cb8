"""Possessive groups mean the same on every Python: the first four of 3.11 get them wrong."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlr.parse import (
    encoding,
    encoding_codecs,
    facts,
    links,
    media_types,
    patterns,
    plain,
    scanner,
    sitemaps,
    tokens,
    urls,
)  # fmt: skip
from crawlr.parse.patterns import atomic, compiled

PACKAGE = Path(patterns.__file__).resolve().parents[1]
_POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{+[0-9,]+\}+)\+")


@pytest.mark.parametrize(
    ("pattern", "text", "matched"),
    [
        ("(?:ab?c)++", "aca", "ac"),
        ("(?:ab?c|abd)*+", "acabcabdab", "acabcabd"),
        ("(?:x(?:ab?c)?+y)*+", "xyxacyxaby", "xyxacy"),
        ('(?: [a-z-]++="[^"]*+")*+', ' a="b" c="d', ' a="b"'),
        ("(?:ab?c)?+", "ab", ""),
        ("(?:ab?c){0,2}+", "acacac", "acac"),
        ("(?:ab?c){0,9}+", "aca", "ac"),
    ],
)
def test_what_begins_and_fails_is_no_repetition(pattern: str, text: str, matched: str) -> None:
    """A possessive group keeps what has matched whole, and nothing of the next one."""
    for version in (compiled(pattern), re.compile(atomic(pattern)), compiled(pattern.encode())):
        found = version.match(text if isinstance(version.pattern, str) else text.encode())

        assert found is not None
        assert found.end() == len(matched)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("(?:a|b)*+c", "(?>(?:a|b)*)c"),
        ("(a)++(?:(b)?+c)*+", "(?>(a)+)(?>(?:(?>(b)?)c)*)"),
        (r"[^()]*+\)*+[\])]++(x)*", r"[^()]*+\)*+[\])]++(x)*"),
        ("[]()]*+([^]a)*+]b)?+", "[]()]*+(?>([^]a)*+]b)?)"),
        ("(?=a)(?!b)a*+", "(?=a)(?!b)a*+"),
        ("(?:a(b)?+){0,9}+c{2}+", "(?>(?:a(?>(b)?)){0,9})c{2}+"),
    ],
)
def test_groups_alone_are_said_in_another_way(written: str, meant: str) -> None:
    """Escapes and classes are passed over, groups in groups are not, and capturing groups keep their numbers."""
    assert atomic(written) == meant
    assert re.compile(meant).groups == re.compile(written).groups


def used() -> Iterator[re.Pattern[str]]:
    """Every pattern for text with a possessive group."""
    for module in (encoding, encoding_codecs, facts, links, media_types, plain, sitemaps, tokens, urls):
        for found in vars(module).values():
            if isinstance(found, re.Pattern) and isinstance(found.pattern, str):
                yield found
    wanted = links.wanted_names(None)
    yield scanner._stops(wanted)
    yield plain._sources(wanted, without_fragments=True)
    yield plain._drawing(wanted)


SOUP = st.lists(
    st.sampled_from([*"<>/='\" aAx.:?#%!-&;[](){}\n", "http://", "h.test", "..", "<a ", "<!--", "-->", '="', "svg"]),
    max_size=30,
).map("".join)


@pytest.mark.skipif(not patterns._IS_RIGHT, reason="this Python needs the other way")
@given(SOUP)
def test_both_ways_match_the_same(text: str) -> None:
    """On a Python that gets possessive groups right."""
    for pattern in used():
        other = re.compile(atomic(pattern.pattern), pattern.flags)

        assert [found.span() for found in other.finditer(text)] == [found.span() for found in pattern.finditer(text)]


def test_no_possessive_group_is_compiled_elsewhere() -> None:
    """Whoever writes one asks `compiled` for it, or it is wrong on some Pythons and right on the author's."""
    found = []
    for path in set(PACKAGE.rglob("*.py")) - {Path(patterns.__file__).resolve()}:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re."):
                texts = [
                    each.value.decode("latin-1") if isinstance(each.value, bytes) else str(each.value)
                    for each in ast.walk(node)
                    if isinstance(each, ast.Constant) and isinstance(each.value, (str, bytes))
                ]
                if _POSSESSIVE_GROUP.search("".join(texts)):
                    found.append(f"{path.name}:{node.lineno}")

    assert found == []
