"""robots.txt by RFC 9309: groups, agents, paths, delays, sitemaps, and files that are no robots.txt."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlr.fetch.robots import MAX_BYTES, parse
from tests.growth import assert_linear

SITE = "http://a.test"


def allows(text: str | bytes, path: str, agent: str = "crawlr") -> bool:
    body = text if isinstance(text, bytes) else text.encode()
    return parse(body).allows(SITE + path, agent)


AGENTS = {
    # agents line(s) of a group that forbids /x, and the agents that it is for
    "User-agent: crawlr": {"crawlr", "CRAWLR", "crawlr/0.1"},
    "User-agent: CrawlR": {"crawlr", "CRAWLR", "crawlr/0.1"},
    "User-agent: crawlr/2.0": {"crawlr", "CRAWLR", "crawlr/0.1"},
    "User-agent: crawlr/2.0 (+http://x)": {"crawlr", "CRAWLR", "crawlr/0.1"},
    "user-agent:crawlr # us": {"crawlr", "CRAWLR", "crawlr/0.1"},
    "User-agent: crawlr bot": {"crawlr", "CRAWLR", "crawlr/0.1"},
    "User-agent: crawlr*": {"crawlr", "CRAWLR", "crawlr/0.1"},
    "User-agent: other\nUser-agent: crawlr": {"crawlr", "CRAWLR", "crawlr/0.1", "other"},
    "User-agent: *": {"crawlr", "CRAWLR", "crawlr/0.1", "other", "crawl", "crawlrbot"},
    "User-agent: * # all": {"crawlr", "CRAWLR", "crawlr/0.1", "other", "crawl", "crawlrbot"},
    "User-agent: crawl": {"crawl"},
    "User-agent: crawlrbot": {"crawlrbot"},
    "User-agent:": set(),
    "User-agent: /": set(),
    "# User-agent: *": set(),
}


@pytest.mark.parametrize("lines", AGENTS)
def test_group_is_for_the_agents_it_names(lines: str) -> None:
    """The whole product token counts, in any case, without its version; a part of a name is another name."""
    rules = parse(f"{lines}\nDisallow: /x\n".encode())
    agents = {"crawlr", "CRAWLR", "crawlr/0.1", "other", "crawl", "crawlrbot"}

    assert {agent for agent in agents if not rules.allows(f"{SITE}/x", agent)} == AGENTS[lines]


def test_own_group_replaces_the_one_for_all() -> None:
    """Who has a group of its own is not bound by that for everybody, even when it forbids nothing."""
    text = "User-agent: *\nDisallow: /\n\nUser-agent: crawlr\nDisallow: /own\n\nUser-agent: free\nDisallow:\n"

    assert [allows(text, path) for path in ("/", "/own", "/x")] == [True, False, True]
    assert allows(text, "/x", "free")
    assert not allows(text, "/x", "other")


GROUPS = {
    "merged": "User-agent: crawlr\nDisallow: /a\n\nUser-agent: other\nDisallow: /b\n\nUser-agent: crawlr\nDisallow: /c",
    "blank-lines-end-nothing": "User-agent: crawlr\n\n\nDisallow: /a\n\nDisallow: /c",
    "unknown-lines-end-nothing": "User-agent: crawlr\nNoindex: /b\nUser-agent: x\nDisallow: /a\nHost: z\nDisallow: /c",
    "sitemaps-end-nothing": "User-agent: crawlr\nSitemap: /s\nUser-agent: x\nDisallow: /a\nSitemap: /t\nDisallow: /c",
    "delays-end-nothing": "User-agent: crawlr\nCrawl-delay: 5\nUser-agent: x\nDisallow: /a\nDisallow: /c",
    "rule-before-any-agent": "Disallow: /b\nUser-agent: crawlr\nDisallow: /a\nDisallow: /c",
    "rule-ends-the-agents": "User-agent: x\nDisallow: /b\nUser-agent: crawlr\nDisallow: /a\nDisallow: /c",
    "empty-rule-ends-the-agents": "User-agent: x\nDisallow:\nUser-agent: crawlr\nDisallow: /a\nDisallow: /c",
}


@pytest.mark.parametrize("name", GROUPS)
def test_groups_are_read_by_the_standard(name: str) -> None:
    """Only a rule ends a list of agents, and only an agent after a rule begins a group."""
    assert [allows(GROUPS[name], path) for path in ("/a", "/b", "/c")] == [False, True, False]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\n\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf", b"\xef\xbb", b"\xef"])
def test_line_ends_and_byte_order_marks(end: str, mark: bytes) -> None:
    """Any line end will do, and a mark before the first line is no part of it."""
    text = end.join(["User-agent: crawlr", "Disallow: /a", "Disallow: /b"]).encode()

    assert [allows(mark + text, path) for path in ("/a", "/b", "/c")] == [False, False, True]


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_with_a_mark_is_read(codec: str) -> None:
    """Files saved by a text editor of another kind are understood."""
    mark = {"utf-16": b"", "utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}[codec]

    assert not allows(mark + "User-agent: *\nDisallow: /a".encode(codec), "/a/b")


MATCHES = {
    # rules: (paths that are forbidden, paths that are allowed)
    "Disallow: /": (("/", "/a", "/?q"), ("/robots.txt",)),
    "Disallow:": ((), ("/", "/a")),
    "Disallow: /\nDisallow:": (("/a",), ()),
    "Disallow: /a": (("/a", "/a/b", "/abc", "/a?q"), ("/b", "/A", "/")),
    "Disallow: /a/": (("/a/", "/a/b"), ("/a", "/ab")),
    "Disallow: /a\nAllow: /a/b": (("/a", "/a/c"), ("/a/b", "/a/bc")),
    "Allow: /a\nDisallow: /a": ((), ("/a",)),
    "Disallow: /a/b\nAllow: /a": (("/a/b",), ("/a", "/a/c")),
    "Disallow: /*.pdf": (("/x.pdf", "/x.pdf?v=1", "/a/x.pdfs"), ("/pdf", "/x.PDF")),
    "Disallow: /*.pdf$": (("/x.pdf", "/a/b.pdf"), ("/x.pdf?v=1", "/x.pdfs")),
    "Disallow: /a$": (("/a",), ("/a/", "/ab", "/a?")),
    "Disallow: /$": (("/",), ("/a", "/?")),
    "Disallow: *": (("/", "/a"), ()),
    "Disallow: /*/b/*/c": (("/a/b/x/c", "/a/b/x/y/cd"), ("/b/x/c", "/a/b/c")),
    "Disallow: /a**b": (("/ab", "/axxb"), ("/a",)),
    "Disallow: /*?": (("/a?", "/a?q=1", "/?"), ("/a",)),
    "Disallow: /?s=": (("/?s=1",), ("/", "/?t=1")),
    "Disallow: /caf%C3%A9": (("/caf%C3%A9", "/caf%c3%a9"), ("/cafe", "/caf%E9", "/caf%C3%A8")),
    "Disallow: /café": (("/caf%C3%A9", "/caf%c3%a9x"), ("/cafe",)),
    "Disallow: /%7Ejoe": (("/~joe", "/%7Ejoe", "/%7ejoe/x"), ("/joe",)),
    "Disallow: /~joe": (("/~joe", "/%7Ejoe"), ()),
    "Disallow: /a%2Fb": (("/a%2Fb", "/a%2fb"), ("/a/b",)),
    "Disallow: /a/b": (("/a/b",), ("/a%2Fb",)),
    "Disallow: /a%3cd": (("/a%3Cd", "/a%3cd"), ()),
    "Disallow: /%E9": (("/%E9", "/%e9x"), ("/%E8", "/%C3%A9", "/%EF%BF%BD")),
    "Disallow: /a b": (("/a%20b",), ("/a", "/a+b")),
    "Disallow: /a # comment": (("/a", "/ax"), ()),
    "Disallow: a": ((), ("/a", "/")),
    "Allow: /index.html\nDisallow: /": (("/a", "/index"), ("/", "/index.html")),
    "Disallow /a": (("/a",), ()),
    "disAllow : /a": (("/a",), ("/b",)),
    "Dissalow: /a": (("/a",), ("/b",)),
}


@pytest.mark.parametrize("rules", MATCHES)
def test_paths_are_matched_by_the_standard(rules: str) -> None:
    """The longest rule wins, Allow among equals; * and $ are special, escapes are compared by what they mean."""
    forbidden, allowed = MATCHES[rules]
    text = f"User-agent: *\n{rules}\n"

    assert [path for path in forbidden if allows(text, path)] == []
    assert [path for path in allowed if not allows(text, path)] == []


def test_raw_bytes_are_compared_as_they_are() -> None:
    """A pattern in Latin-1 forbids the path with that byte."""
    body = b"User-agent: *\nDisallow: /caf\xe9\n"

    assert not allows(body, "/caf%E9")
    assert allows(body, "/caf%C3%A9")


NOT_RULES = (
    b"",
    b"\n\n\n",
    b"<!doctype html><title>Not found</title><p>User-agent: nobody home</p><a href=/x>Disallow: /</a>",
    b"\x00" * 1000,
    bytes(range(256)) * 10,
    b"\x1f\x8b\x08\x00" + b"\x99" * 100,
    b":::::\n: x\nx:\n",
    b"{'User-agent': '*'}",
)


@pytest.mark.parametrize("body", NOT_RULES, ids=lambda body: ascii(body[:20]))
def test_what_is_no_robots_file_forbids_nothing(body: bytes) -> None:
    """HTML, binaries and nonsense are no rules."""
    rules = parse(body)

    assert rules.allows(f"{SITE}/x", "crawlr")
    assert (rules.crawl_delay("crawlr"), rules.sitemaps) == (None, ())


def test_only_the_first_500_kib_count_and_no_half_line() -> None:
    """What is behind the limit is not read, and the line that it cuts is no rule."""
    begin = b"User-agent: *\nDisallow: /early\n"
    filler = b"#" * (MAX_BYTES - len(begin) - len(b"\nDisallow: /")) + b"\n"
    body = begin + filler + b"Disallow: /private\nDisallow: /late\n"
    assert body[:MAX_BYTES].endswith(b"Disallow: /")

    assert [allows(body, path) for path in ("/early", "/private", "/late", "/")] == [False, True, True, True]


REFUSALS = {
    # rules, path: the rule that refuses it
    ("User-agent: *\nDisallow: /private/", "/private/x"): "Disallow: /private/ for *",
    (
        "User-agent: *\nDisallow: /\n\nUser-agent: Crawlr/1.0\nDisallow: /own # ours",
        "/own",
    ): "Disallow: /own for crawlr",
    ("User-agent: *\nDisallow: /a\nDisallow: /a/b\nAllow: /a/b/c\nDisallow: /a/", "/a/b/d"): "Disallow: /a/b for *",
    ("User-agent: *\nDisallow: /*.pdf$\nDisallow: /x", "/y.pdf"): "Disallow: /*.pdf$ for *",
    ("User-agent: *\ndisalow /caf\u00e9 au lait", "/caf%C3%A9%20au%20lait"): "Disallow: /caf\u00e9 au lait for *",
    ("User-agent: *\nDisallow: /open\nAllow: /open/door", "/open/door"): None,
    ("User-agent: *\nDisallow: /", "/robots.txt"): None,
}


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case[1])
def test_refusal_quotes_the_rule(case: tuple[str, str]) -> None:
    """The longest that matches, as its author wrote it, and the agent of its group."""
    text, path = case

    assert parse(text.encode()).refusal(SITE + path, "crawlr") == REFUSALS[case]


@pytest.mark.parametrize("agent", ["crawlr", "other", "nobody"])
def test_group_decides_as_the_whole_file(agent: str) -> None:
    """What is kept for an agent says to it what the file says, and nothing to others."""
    text = b"User-agent: crawlr\nDisallow: /a\nAllow: /a/b$\nDisallow: /*.gif\n\nUser-agent: other\nDisallow: /\n"
    whole = parse(text)
    group = parse(whole.group(agent).encode())
    paths = ("/", "/a", "/a/b", "/a/bc", "/x.gif", "/%61")

    assert [whole.refusal(SITE + path, agent) for path in paths] == [
        group.refusal(SITE + path, agent) for path in paths
    ]
    assert (agent == "nobody") == (whole.group(agent) == "")


def test_refusal_can_be_stored_and_printed() -> None:
    """Bytes that are no UTF-8 are replaced, and a rule as long as the file is cut."""
    broken = parse(b"User-agent: *\nDisallow: /\xe9\n").refusal(f"{SITE}/%E9", "crawlr")
    endless = parse(b"User-agent: *\nDisallow: /" + b"*x" * 5000 + b"\n").refusal(f"{SITE}/{'x' * 5000}", "crawlr")

    assert broken == "Disallow: /\N{REPLACEMENT CHARACTER} for *"
    assert endless is not None
    assert len(endless) < 250


def test_refusals_of_many_rules_are_found_fast() -> None:
    """Each of ten thousand rules is found, within milliseconds."""
    rules = parse(b"User-agent: *\n" + b"".join(b"Disallow: /%d/\n" % number for number in range(10_000)))
    rules.refusal(f"{SITE}/9999/x", "crawlr")
    began = time.process_time()

    found = [rules.refusal(f"{SITE}/{number}/x", "crawlr") for number in range(0, 10_000, 500)]

    assert found == [f"Disallow: /{number}/ for *" for number in range(0, 10_000, 500)]
    assert time.process_time() - began < 1.0


DELAYS = {
    "5": 5.0,
    "0.5": 0.5,
    ".5": 0.5,
    "5.": 5.0,
    "0": 0.0,
    "86400": 86400.0,
    "5 s": 5.0,
    "5 # seconds": 5.0,
    "-3": None,
    "abc": None,
    "": None,
    "5x": None,
    "inf": None,
    "nan": None,
    "1e400": None,
    "٥": None,
    "9" * 400: None,
}


@pytest.mark.parametrize("value", DELAYS, ids=lambda value: value[:10])
def test_crawl_delay_is_a_number_or_nothing(value: str) -> None:
    """Fractions count; negative, endless and broken delays say nothing."""
    assert parse(f"User-agent: *\nCrawl-delay: {value}\n".encode()).crawl_delay("crawlr") == DELAYS[value]


def test_crawl_delay_is_for_the_agents_named_before_it() -> None:
    """The delay of one agent is not another's, though they share a group; the first one of an agent counts."""
    text = b"User-agent: a\nCrawl-delay: 1\nUser-agent: b\nDisallow: /x\n\nUser-agent: a\nCrawl-delay: 9\n\n"
    rules = parse(text + b"User-agent: *\nCrawl-delay: 4")

    assert [rules.crawl_delay(agent) for agent in ("a", "b", "c")] == [1.0, None, 4.0]
    assert not rules.allows(f"{SITE}/x", "a")


def test_sitemaps_are_listed_once_wherever_they_stand() -> None:
    """Sitemap lines belong to no group; they keep their case and order, and count once."""
    text = """Sitemap: http://a.test/One.xml
User-agent: x
SITEMAP: http://a.test/2.xml#part
Disallow: /
sitemap:http://a.test/One.xml
Site-map: /relative.xml
Sitemap https://a.test/3.xml
Sitemap:
http://a.test/dir/my-sitemap.xml
http://a.test/other.xml
Sitemap: http://a.test/é.xml"""
    expected = (
        *("http://a.test/One.xml", "http://a.test/2.xml", "/relative.xml", "https://a.test/3.xml"),
        *("http://a.test/dir/my-sitemap.xml", "http://a.test/é.xml"),
    )

    assert parse(text.encode()).sitemaps == expected


HOSTILE = {
    "many-agents-and-rules": (b"User-agent: a%d\n", b"Disallow: /b%d\n"),
    "many-agents-and-delays": (b"User-agent: a%d\n", b"Crawl-delay: 1%d\n"),
    "many-groups": (b"User-agent: *\nDisallow: /b%d\n", b"Allow: /c%d\n"),
    "many-wildcards": (b"User-agent: *\n#%d\n", b"Disallow: /*a*b%d$\n"),
    "many-sitemaps": (b"Sitemap: /%d\n", b"Sitemap: /x%d\n"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_file_costs_linear_time(name: str) -> None:
    """Anything is read, and asked once, in proportion to its size; the quadratic way would take minutes."""
    first, second = HOSTILE[name]

    def prepare(size: int) -> Callable[[], object]:
        half = size // 2
        body = b"".join(first % number for number in range(half // len(first)))[:half].rpartition(b"\n")[0] + b"\n"
        body += b"".join(second % number for number in range(half // len(second)))
        return partial(_read_and_ask, body)

    assert_linear(prepare, MAX_BYTES, within=4.0)


def _read_and_ask(body: bytes) -> None:
    rules = parse(body)
    rules.allows(f"{SITE}/{'ab' * 500}", "a1")
    rules.allows(f"{SITE}/{'ab' * 500}", "crawlr")


def test_asking_a_hostile_file_is_bounded() -> None:
    """However many patterns a file holds, a URL is judged within milliseconds, and plain paths all count."""
    wild = b"".join(b"Disallow: /*a*b%d$\n" % number for number in range(20_000))
    rules = parse(b"User-agent: *\n" + wild[: MAX_BYTES // 2] + b"x\n" + b"Disallow: /plain\n")
    rules.allows(SITE, "crawlr")
    began = time.process_time()

    verdicts = [rules.allows(f"{SITE}/ab/{number}", "crawlr") for number in range(20)]

    assert time.process_time() - began < 0.5
    assert all(verdicts)
    assert not rules.allows(f"{SITE}/plain", "crawlr")


def test_pattern_of_many_asterisks_is_matched_in_linear_time() -> None:
    """The pattern that blows up a regular expression costs nothing here."""
    rules = parse(b"User-agent: *\nDisallow: /" + b"*a" * 2000 + b"$\n")
    began = time.process_time()

    assert rules.allows(f"{SITE}/{'a' * 4000}b", "crawlr")
    assert time.process_time() - began < 0.5


@given(st.binary(max_size=300), st.text(max_size=20))
def test_any_bytes_are_read(body: bytes, agent: str) -> None:
    """No file and no agent raises."""
    rules = parse(body)

    assert rules.allows(f"{SITE}/a%E9?b", agent) in (True, False)
    assert rules.crawl_delay(agent) is None or rules.crawl_delay(agent) >= 0


@given(st.text(alphabet="/ab*$%Ee9é ?#\t", max_size=30), st.text(alphabet="/ab*$%Ee9?", max_size=30))
def test_any_pattern_meets_any_path(pattern: str, path: str) -> None:
    """No pattern raises, and one that is a path without special characters forbids that path."""
    text = f"User-agent: *\nDisallow: /{pattern}\n"

    assert allows(text, f"/{path}") in (True, False)
    if not set(pattern) & set("*$%#? \t"):
        assert not allows(text, "/" + pattern.replace("é", "%C3%A9"))


@given(
    st.lists(st.tuples(st.booleans(), st.text(alphabet="/ab*$%Ee9é ", max_size=8)), max_size=12),
    st.text(alphabet="/ab*$%Ee9?", max_size=12),
)
def test_whatever_is_refused_has_a_rule(lines: list[tuple[bool, str]], path: str) -> None:
    """One of those that are written, and only where the answer is no."""
    written = [f"{'Allow' if is_allowed else 'Disallow'}: /{pattern}" for is_allowed, pattern in lines]
    rules = parse("\n".join(["User-agent: *", *written]).encode())
    found = rules.refusal(f"{SITE}/{path}", "crawlr")

    assert (found is None) == rules.allows(f"{SITE}/{path}", "crawlr")
    assert found is None or found.removesuffix(" for *") in {line.strip() for line in written}
