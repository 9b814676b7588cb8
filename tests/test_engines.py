"""What no page may break, by any engine: depth, length, number, lack of memory, time; and engines that agree."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlr.parse import engine_lxml, links, parse_html, plain, urls
from tests.growth import assert_linear
from tests.reading import INSTALLED, URL, XHTML, read_page


@pytest.fixture(params=INSTALLED)
def parser(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(autouse=True, scope="module")
def _engines_alone() -> Iterator[None]:
    """Each page is read by the engine that is asked for, also where none would have to be."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain, "scan", lambda *_, **__: None)
        yield


# ---- nothing breaks it


@pytest.mark.parametrize("levels", [300, 3_000, 100_000])
@pytest.mark.parametrize("tag", ["div", "b", "svg", "table", "template"])
def test_no_nesting_is_too_deep(tag: str, levels: int, parser: str) -> None:
    """Links below any nesting are found; an engine that gave up says so, and none of few levels does."""
    page = read_page(f"<{tag}>".encode() * levels + f"</{tag}>".encode() * levels + b"<a href=b>", parser=parser)

    assert [url for url, _, _ in page.links] == ["http://h.test/d/b"]
    assert not (page.is_truncated and levels <= 3_000)


def test_a_page_too_deep_for_libxml2_says_so() -> None:
    """Where counting was worth it, the scanner reads the page, and the page says that the engine did not."""
    deep = b"<div>" * 30_000 + b"</b>" * 30_000 + b"<a href=b>"

    assert read_page(deep, parser="lxml").is_truncated
    assert not read_page(b"<div></div>" * 30_000 + b"<a href=b>", parser="lxml").is_truncated


@pytest.mark.parametrize(
    "construct", ["<p>{}", "<p title='{}'>", "<!--{}-->", "<script>{}</script>", "<title>{}</title>"]
)
def test_no_text_is_too_long(construct: str, parser: str) -> None:
    """Eleven million characters in one piece, beyond libxml2's usual limit, hide nothing that follows."""
    page = read_page(construct.format("x" * 11_000_000).encode() + b"<a href=b>", parser=parser)

    assert ([url for url, _, _ in page.links], page.is_truncated) == (["http://h.test/d/b"], False)


def test_two_hundred_thousand_links(parser: str) -> None:
    """All are there, in order."""
    body = "".join(f"<a href={n}>x</a>" for n in range(200_000)).encode()

    page = read_page(body, parser=parser)

    assert [url for url, _, _ in page.links] == [f"http://h.test/d/{n}" for n in range(200_000)]


def test_an_engine_that_ends_without_a_word_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """libxml2 may just stop (out of memory): then the scanner reads the page, and the page says so."""
    real = engine_lxml.etree.fromstring

    def stops_early(source: bytes, parser: object) -> object:
        return real(source[: len(source) // 2], parser)

    monkeypatch.setattr(engine_lxml.etree, "fromstring", stops_early)
    page = read_page(b"".join(b"<a href=%d>" % n for n in range(100)), parser="lxml")

    assert (len(page.links), page.is_truncated) == (100, True)


def test_no_memory_is_a_memory_error_or_the_whole_page() -> None:
    """With little memory a page is whole, or flagged, or a MemoryError: links are never lost without a word."""
    code = """
import resource, sys, json
from crawlr.parse.document import read
body = b'<a class="x" href=b>' * 400_000
read(b'<a href=b>', url='http://h.test/', content_type='text/html', agent='x')
used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (int(sys.argv[1]) << 20),) * 2)
try:
    page = read(body, url='http://h.test/', content_type='text/html', agent='x')
    answer = [len(page.links), page.is_truncated]
except MemoryError:
    answer = 'MemoryError'
print(json.dumps(answer))
"""
    if not Path("/proc/self/statm").exists():
        pytest.skip("needs /proc to see the size of the process")

    answers = []
    for room in (40, 80, 160):
        ran = subprocess.run([sys.executable, "-c", code, str(room)], capture_output=True, text=True, timeout=60)
        answers.append(json.loads(ran.stdout.splitlines()[-1]) if ran.stdout else "MemoryError")

    assert all(answer == "MemoryError" or answer[0] == 400_000 for answer in answers), answers
    assert "MemoryError" in answers or any(answer[1] for answer in answers), (
        "there was memory enough; the test shows nothing"
    )


HARD: dict[str, Callable[[int], str]] = {
    "open and close": lambda n: "<div>" * n + "</b>" * n,
    "paragraphs": lambda n: "<span>" * n + "</p>" * n,
    "fonts": lambda n: "".join(f"<p><font x={i}>" for i in range(n)),
    "comments": lambda n: "<!--" * n,
    "quotes": lambda n: "<a href='" * n,
    "attributes": lambda n: "<a " + "".join(f"x{i}=1 " for i in range(n)) + "href=b>",
    "ampersands": lambda n: "<a href='" + "&amp" * n + "'>",
    "scripts": lambda n: "<script>" + "<!--<script>" * n,
    "titles": lambda n: "".join(f"<title>{i}</title><a href={i}>" for i in range(n // 2)),
    "raw text in raw text": lambda n: "<style>" * n + "<!--</styl>",
    "scripts before a comment": lambda n: "<script>" * n + "<!--<script></script>",
    "drawings that never end": lambda n: '<g a="> <svg b="c">' * n,
    "drawings": lambda n: "<svg><g><desc>" * n + ">",
    "fragments": lambda n: "".join(f'<a href="x#{i}"></a><a href="#{i}" title="#"></a>' for i in range(n)),
    "svg": lambda n: "<svg>" + "<g>" * n + "</x>" * n,
    "html in svg": lambda n: "<svg><desc>" + "<p><span>" * n + "</b>" * n,
    "svgs": lambda n: "<svg></div></svg>" * n,
    "framesets": lambda n: "x<frameset>" * n,
    "srcset": lambda n: "<img srcset='" + "a (" * n + "'>",
    "refresh": lambda n: "<meta http-equiv=refresh content=x></meta>" * n,
    "directives": lambda n: "<meta name=robots content='" + "unavailable_after," * n + "'>",
    "doctypes": lambda n: '<!DOCTYPE "' * n,
}


@pytest.mark.parametrize("content_type", ["text/html", XHTML])
@pytest.mark.parametrize("name", HARD)
def test_time_is_linear(name: str, content_type: str) -> None:
    """Markup that others read in squares is read in proportion to its size."""

    def prepare(count: int) -> Callable[[], object]:
        body = HARD[name](count).encode()
        plain.forget()  # what a page is remembered by is not taken for its time
        urls.forget()
        return lambda: read_page(body, content_type=content_type)

    assert_linear(prepare, 40_000)


# ---- properties

PIECES = [
    "<a href=1>", '<a href="2" rel=nofollow>', "</a>", "<p>", "</p>", "<b>", "</b>", "<table>", "<td>",
    "</table>", "<svg>", "</svg>", "<math>", "<mi>", "</math>", "<desc>", "</desc>", "<title>", "</title>",
    "<title/>", "<style>", "</style>", "<style/>", "<script>", "</script>", "<script/>", "<!--", "-->", "<!-->",
    "<![CDATA[", "]]>", "<template>", "</template>", '<img srcset="3, 4 2x">', "<base href=/x/>", "<iframe>",
    "</iframe>", "<textarea>", "</textarea>", "<form action=5>", "</form>", "<link rel=next href=6>",
    '<meta http-equiv=refresh content="0;7">', "<frame src=8>", "<plaintext>", "<", ">", '"', "'", "=", "/", "&",
    "&amp;", "x", " ", "\n", "\x0c", "\x00", "<font color=1>", "</div>", "<div>", "<g>", "</g>", "<noscript>",
    "</noscript>", "<select>", "<option>", "<?x?>", "<!x>", "</",
]  # fmt: skip
MARKUP = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)
FRAMESETS = [
    "<frameset>", "</frameset>", "<frame src=1>", "<noframes>", "</noframes>", "<a href=2>", "<p>", "<li>",
    "<link rel=next href=3>", "<html>", "<head>", "</head>", "<title>x</title>", "<script>", "</script>",
    "<!--x-->", "<?x>", "<input type=hidden>", "<br>", "<form action=4>", "x", " ", "</html>",
]  # fmt: skip
DOCUMENTS = MARKUP | st.lists(st.sampled_from(FRAMESETS), max_size=12).map("".join)


@given(st.binary(max_size=300) | DOCUMENTS.map(str.encode))
@settings(deadline=None)
def test_no_body_is_too_strange(body: bytes) -> None:
    """Any bytes give a page, by every engine and as XHTML too, with absolute addresses only."""
    for name, content_type in [*((parser, "text/html") for parser in INSTALLED), ("lxml", XHTML), ("lxml", "")]:
        page = parse_html(body, url=URL, content_type=content_type or None, parser=name)

        assert all(link.url.startswith(("http://", "https://")) and "#" not in link.url for link in page.links)
        assert {link.kind for link in page.links} <= set(links.KINDS)


@given(DOCUMENTS)
@settings(deadline=None, max_examples=300)
def test_engines_agree_on_any_markup(markup: str) -> None:
    """The same distinct links and facts by every engine."""
    found = {name: read_page(markup.encode(), parser=name) for name in INSTALLED}

    answers = {name: (set(page.links), page.base_url, page.title, page.robots) for name, page in found.items()}
    assert all(answer == answers["scanner"] for answer in answers.values()), answers
    assert not any(page.is_truncated for page in found.values())


@given(
    st.lists(
        st.sampled_from(["<a href=1>", "<p>", "</p>", "<b>", "</b>", "<svg>", "</svg>", "<img src=2>", "text", "<td>"])
    ),
    st.data(),
)
@settings(deadline=None)
def test_comments_and_white_space_change_no_link(parts: list[str], data: st.DataObject) -> None:
    """The same document with comments and spaces between its tags has the same links."""
    between = st.sampled_from(["", " ", "\n\t", "<!-- x -->", "<!-- <a href=no> -->", "<!---->", " <!-- --> "])
    filled = "".join(part + data.draw(between) for part in parts)

    for name in INSTALLED:
        alone, with_more = (read_page(text.encode(), parser=name).links for text in ("".join(parts), filled))
        if name == "lexbor":  # an element may stand twice in its tree, and text decides where
            assert set(alone) == set(with_more)
        else:
            assert alone == with_more


# ---- whole documentation trees, where they are

TREES = ("/usr/share/doc/python3/html", "/usr/share/doc/openjdk-17-jre-headless/api")


@pytest.mark.long
@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("mutations", [0, 3])
@pytest.mark.timeout(1800)
def test_engines_agree_on_real_pages(tree: str, mutations: int) -> None:
    """Every page of the installed documentation, and damaged copies, give the same links by every engine."""
    files = sorted(Path(tree).glob("**/*.html"))
    if not files:
        pytest.skip(f"no documentation in {tree}")
    source = random.Random(7)

    for path in files:
        body = path.read_bytes()
        for copy in [body] if not mutations else [_damaged(body, source) for _ in range(mutations)]:
            found = {name: read_page(copy, parser=name) for name in INSTALLED}
            answers = {n: (set(p.links), p.base_url, p.title, p.canonical, p.robots) for n, p in found.items()}
            assert all(answer == answers["scanner"] for answer in answers.values()), path


PIECES = [
    b"<",
    b">",
    b'"',
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<a href=",
    b"<svg>",
    b"</svg>",
    b"<template>",
    b"</template>",
]
PIECES += [
    b"<script>",
    b"</script>",
    b"<title>",
    b"/>",
    b"&amp",
    b"<table>",
    b"<p>",
    b"\0",
    b"<textarea>",
    b"<![CDATA[",
]


DAMAGE = [
    b"<", b">", b'"', b"'", b"<!--", b"-->", b"</", b"<a href=", b"<svg>", b"</svg>", b"<template>", b"</template>",
    b"<script>", b"</script>", b"<title>", b"/>", b"&amp", b"<table>", b"<p>", b"\0", b"<textarea>", b"<![CDATA[",
]  # fmt: skip


def _damaged(body: bytes, source: random.Random) -> bytes:
    """A copy with bytes changed, cut out, put in and doubled."""
    copy = bytearray(body)
    for _ in range(source.choice((1, 3, 10, 100))):
        at = source.randrange(len(copy) + 1)
        match source.randrange(4):
            case 0:
                copy[at : at + 1] = source.choice(DAMAGE)
            case 1:
                del copy[at : at + source.randrange(1, 20)]
            case 2:
                copy[at:at] = source.choice(DAMAGE)
            case _:
                copy[at:at] = copy[(begin := source.randrange(len(copy))) : begin + source.randrange(200)]
    return bytes(copy)
