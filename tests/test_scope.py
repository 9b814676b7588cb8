"""Which URLs belong to a crawl, and which are traps by their spelling alone."""

from __future__ import annotations

import pytest

from crawlr.scope import Scope, is_too_long, is_trap, registrable_domain


@pytest.mark.parametrize(
    ("kind", "inside", "outside"),
    [
        (
            "host",
            ["http://a.test/", "https://a.test/x", "http://a.test/docs/x"],
            ["http://a.test:8080/", "http://b.a.test/"],
        ),
        ("domain", ["https://www.a.test/", "http://a.test:8080/"], ["http://b.test/", "http://a.test.b.test/"]),
        ("prefix", ["http://a.test/docs/y", "https://a.test/docs/x/y"], ["http://a.test/", "http://a.test/docsx"]),
        ("any", ["http://b.test/"], []),
    ],
)
def test_scope_of_a_seed(kind: str, inside: list[str], outside: list[str]) -> None:
    """Each kind of scope around http://a.test/docs/index.html."""
    scope = Scope(kind)
    scope.join("http://a.test/docs/index.html")

    assert [] == [url for url in inside if not scope.has(url)]
    assert [] == [url for url in outside if scope.has(url)]


def test_exclude_wins_over_include_and_own_filters_are_asked() -> None:
    """All filters have to agree."""
    scope = Scope("any", include=["/a"], exclude=["secret"], filters=[lambda url: "no" not in url])

    verdicts = {url: scope.has(url) for url in ["http://h/a", "http://h/b", "http://h/a/secret", "http://h/a/no"]}

    assert [True, False, False, False] == list(verdicts.values())


def test_joining_later_changes_the_verdict() -> None:
    """A host that was outside is inside when it has joined."""
    scope = Scope("host")
    scope.join("http://a.test/")
    before = scope.has("http://b.test/")
    scope.join("http://b.test/")

    assert [False, True] == [before, scope.has("http://b.test/x")]


@pytest.mark.parametrize(
    ("path", "trap"),
    [
        ("/a/a/b", False),
        ("/x/x/x/x/", False),
        ("/x/x/x/x/x/", True),
        ("/" + "/".join(str(i) for i in range(32)), False),
        ("/" + "/".join(str(i) for i in range(33)), True),
        ("/" + "/" * 50, False),
        ("/q?x=/a/a/a/a/a/a", False),
    ],
)
def test_trap_by_its_path(path: str, trap: bool) -> None:
    """More than 32 segments, or one more than four times; a query and empty segments don't count."""
    assert trap == is_trap("http://h.test" + path)


def test_length_limit_is_exact() -> None:
    """4,096 characters are allowed, 4,097 are not."""
    url = "http://h.test/" + "a" * (4096 - 14)

    assert [False, True] == [is_too_long(url), is_too_long(url + "a")]


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("www.example.co.uk", "example.co.uk"),
        ("user.github.io", "user.github.io"),
        ("127.0.0.1:80", "127.0.0.1"),
        ("localhost:8000", "localhost"),
        ("[::1]:8000", "[::1]"),
        ("example.com.", "example.com"),
    ],
)
def test_registrable_domain(host: str, domain: str) -> None:
    """By the public suffix list with its private part; addresses stand for themselves."""
    assert domain == registrable_domain(host)
