"""Pages whose tags can be told without a tokenizer: what is taken for plain reads as the tokenizer reads it."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crawlr.parse import plain, scanner
from crawlr.parse.elements import Elements
from crawlr.parse.links import wanted_names

FOLLOWED = wanted_names(frozenset({"a", "area", "iframe", "frame", "refresh"}))
EVERYTHING = wanted_names(None)
_OF_LINKS = ("href", "rel", "xlink:href")


def told(elements: Elements) -> tuple[list[tuple[str, dict[str, str | None]]], str | None]:
    """What anybody may ask of them: links keep three attributes, other elements all."""
    return [
        (name, {key: value for key, value in attributes.items() if name != "a" or key in _OF_LINKS})
        for name, attributes in elements.found
    ], elements.title


PLAIN = {
    "usual": '<!doctype html><html><head><title>T &amp; t</title><base href="/b"></head><body><a href="x">y</a>',
    "attributes": '<a class="a b" href="x" title="it\'s"><a href="x" rel="nofollow">',
    "ways of quoting": '<A HREF="y"><a href=\'z\'><a href=w><a href><a href="">',
    "references": '<a href="?a=1&amp;b=2"><a href="?a=1&copy=2"><a title="&quot;" href="&#x78;">',
    "text with quotes": '<p>"don\'t" = "x" ="y" a > b <a href="x">',
    "comment": '<!-- <a href="no"> --><a href="x"><!--> <a href="y"> <!-- never closed <a href="no">',
    "script": '<script>if (a<b) document.write("<a href=\'no\'>")</script><a href="x">',
    "script in two ways": '<script src="s.js"/><a href="no"></script><a href="x"><style>a > b {}</style>',
    "raw text": '<textarea><a href="no"></textarea><iframe src="f"><a href="no"></iframe><noscript><a href="x">',
    "icon in disorder": '<svg><g><path d="M0"><g></g><circle/></g><PATH></path></svg><a href="x">',
    "icon": '<svg viewBox="0 0 1 1"><title>t</title><g><path d="M0"/></g></svg><a href="x"><svg/><a href="y">',
    "value with =": '<meta name="viewport" content="width=device-width, initial-scale=1"><a href="?q=1">',
    "value in value": '<a onclick=\'go("x=1")\' href="x"><a onclick="go(\'x\')" href="y">',
    "twice": '<a href="x" href="y"><a rel="nofollow" rel="me" href="z">',
    "image": '<image src="i"><img src="j" alt="<3">'.replace("<3", "3"),
    "bogus": '<?php echo ?><a href="x"></ x><![CDATA[<a href="y">]]><a href="z"><3><a href="v">',
    "brackets in values and text": '<div title="<!--"> <a href=x> <!-- --><p title="a<b">1 < 2 <a href="y">',
    "value that ends like the beginning of one": '<a href="?q=">',
    "space around =": "<a href = \"x\" rel= nofollow><a href=\n'y' class= >",
    "quotes in names and bare values": '<a b"c d=e"f href=x><a ="y href=z><a href=="w">',
    "end tag with attributes": '</p class="x"><a href="x"></a title="y"></><a href="z"></title><a href="v">',
    "script that looks like another": '<script>"<script>"; a<!--b</script><a href="x"><script>x<y<!-- --></SCRIPT >',
    "script that never ends": '<a href="x"><script>if (a<b) "<a href=no>"',
    "marks of control": '<a href="x" title="\x01\x02">',
    "brackets in values": '<li title="a>b <a href=x>"><p title="<a href=x>"><p id="<script>"><a href="y">',
    "common elements": '<span class="a" id="b"><li><br /><td data-1="x"/><pre class=y><a href="x"><SPAN><link>',
    "names that begin as common ones": '<spanner class="a"><thing><base href="/b"><b><a href="x"><lin><link href="l">',
    "not ASCII": '<a href="/ü?é=ñ" title="\u2028">\U0001f600<a href="x">',
}


@pytest.mark.parametrize("wanted", [FOLLOWED, EVERYTHING], ids=["followed", "all"])
@pytest.mark.parametrize("name", PLAIN)
def test_a_plain_page_reads_as_the_tokenizer_reads_it(name: str, wanted: frozenset[str]) -> None:
    """Each of these is told to be plain, and its elements and title are the scanner's."""
    found = plain.scan(PLAIN[name], wanted)

    assert found is not None
    assert told(scanner.scan(PLAIN[name], wanted)) == told(found)


NOT_PLAIN = {
    "bracket in a value": '<body title="a>b <a href=x>">',
    "tag in a value": '<body title="<a href=x>">',
    "script in a value": '<body title="<script>"><a href="x"></script>',
    "quote that never closes": '<a href="x>text</a> <a href="y">',
    "quote that never closes behind a number sign": '<a href="x#>text</a> <a href="y">',
    "bracket in an address": '<a href="x>b#c">',
    "quote in a name and one that never closes": '<a b"c d="e> <a href=x> <b title="f">',
    "quote in a bare value and one that never closes": '<a b=c"d e="f> <a href=x> <b title="f">',
    "late quote": '<a b=c="d e= "> <a href=x> <b title=" f">',
    "comment that ends in a value": '<div title="<!-- > <a href=x> -->" >',
    "bracket in a value of an end tag": '</p title="> <a href=x>">',
    "script in a script": '<script><!-- <script> "</script>" <a href=x> --></script>',
    "script with a bracket in a value": '<script a="></script><a href=x>"></script>',
    "script that begins in a value": "<script a='<script>' b='>'<g</script >",
    "tag that never ends": '<a href="x"',
    "template": '<template><a href="x"></template>',
    "frameset": '<frameset><frame src="x"></frameset>',
    "link in an svg": '<svg><a href="x"></a></svg>',
    "html in an svg": '<svg><p><a href="x"></svg>',
    "svg that an end tag ends with what is around it": "<g><svg></g><title>t</title></svg>",
    "svg that such an end tag ends from within": "<path><svg><g></path><title>t</title></svg>",
    "label that closes itself in an svg": "<desc><svg><desc/></desc><title>t</title></svg>",
    "open title in an svg": '<svg><title>t</svg><base href="x"></title></svg>',
    "math": '<math><mi><a href="x">',
}


@pytest.mark.parametrize("name", NOT_PLAIN)
def test_what_may_be_mistaken_is_not_plain(name: str) -> None:
    """Where a tag could be taken for something else an engine is to look."""
    found = plain.scan(NOT_PLAIN[name], FOLLOWED)
    once = plain.scan(NOT_PLAIN[name], FOLLOWED, once=True)

    assert found is None
    assert once is None


def test_a_form_in_a_form_is_left_to_engines() -> None:
    """Two forms may be nested; one is none of the engines' business."""
    one, two = (plain.scan('<form action="x">' * count, EVERYTHING) for count in (1, 2))

    assert one is not None
    assert two is None


SOUP = st.lists(
    st.sampled_from([
        *("<", ">", '"', "'", "=", " ", "/", "\n", "a", "x", "\0", "&", "#", "\x01"),
        *('="', "='", '= "', "<a ", "<a href=", "<a href='", '<a href="', '">', "'>", "/>", "</a>", "<p", "<b>"),
        *('<base href="', "<meta ", "<title>", "</title>", "<script>", "</script", "<script ", "<!--", "-->", "--!>"),
        *("<svg>", "</svg>", "<svg ", "<path/>", "<g", "<textarea>", "</textarea>", "<!", "<?", "</", "<iframe src=x>"),
        *('<a href="x#', '<a href="#', "<a href=#", '" title="#', "&#61;", "<lin\u212a href=x>", " rel=nofollow "),
        *('<span class="', "<div>", '<li id="', ' class="', '" href="', '<a class="b" href="x#', ' rel="'),
        *("</iframe>", "<style>", "</style>", "<frame src=y>", "<IMG SRC=z>", "<desc>", "</desc>", "é"),
    ]),
    max_size=40,
).map("".join)  # fmt: skip


@settings(max_examples=1500, deadline=None)
@given(SOUP)
@example("<a b=\"c' d='e\"> <a href=x> <b f='>")
@example('<a b=c="d" e="> <a href=x>">')
@example('<a ="> <a href=x> " b="">')
@example("<?--!><iframe src=x>--!>")
@example("<svg x=/><iframe src=x></svg>")
@example("<script =\"='\">='<iframe src=x>")
def test_soup_is_read_as_the_tokenizer_reads_it_or_not_at_all(text: str) -> None:
    """Whatever brackets and quotes come in a row: what passes for plain is read right."""
    found = plain.scan(text, FOLLOWED)
    once = plain.scan(text, FOLLOWED, once=True)

    assert found is None or told(scanner.scan(text, FOLLOWED)) == told(found)
    assert found is None or once is not None
    assert once is None or places(once) == places(scanner.scan(text, FOLLOWED))


TREES = ("/usr/share/doc/python3/html", "/usr/share/doc/openjdk-17-jre-headless/api")


@pytest.mark.long
@pytest.mark.parametrize("tree", TREES)
@pytest.mark.timeout(1800)
def test_real_pages_are_read_as_the_tokenizer_reads_them(tree: str) -> None:
    """Every page of the installed documentation, and what is left of it with some bytes in its middle gone."""
    source = random.Random(11)
    pages = [path.read_text("utf-8", "replace") for path in sorted(Path(tree).glob("**/*.html"))]
    if not pages:
        pytest.skip(f"no documentation in {tree}")

    taken = 0
    for page in pages:
        cut = source.randrange(len(page) + 1)
        for text in (page, page[:cut] + page[cut + source.randrange(1, 4) :]):
            found = plain.scan(text, FOLLOWED)
            taken += found is not None
            assert found is None or told(scanner.scan(text, FOLLOWED)) == told(found)
    assert taken > len(pages)  # of twice as many


def places(elements: Elements) -> list[tuple[object, ...]]:
    """Where links lead, and all that other elements say, each once."""
    found: dict[tuple[object, ...], None] = {}
    for name, attributes in elements.found:
        if name == "a":
            href = attributes.get("href", attributes.get("xlink:href"))
            place = href if href is None else re.sub(r"(?<![\0- ])#.*", "", href, flags=re.DOTALL)
            found[name, place, "nofollow" in (attributes.get("rel") or "")] = None
        else:
            found[name, *sorted(attributes.items(), key=repr)] = None
    return list(found)


BRACKETS = {
    "fragment": '<a href="x#a>b <c"><a href="y">',
    "attribute before": '<a class="a>b" href="x#a"><a title="<c>" href="x#<d>"><a href="y">',
    "attribute behind": '<a href="x#a" title="> <a href=\'no\'>"><a href="y">',
}


@pytest.mark.parametrize("name", BRACKETS)
def test_links_to_parts_of_pages_may_have_brackets_in_them(name: str) -> None:
    """Where only the page counts, what stands in quotes does not."""
    found = plain.scan(BRACKETS[name], FOLLOWED, once=True)

    assert found is not None
    assert places(found) == places(scanner.scan(BRACKETS[name], FOLLOWED))


FRAGMENTS = {
    "one page": '<a href="x#1"><a href="x#2"><a href="x"><a href="#3"><a href="">',
    "other attributes": '<a title="C#" href="x#1"><a href="x#1" title="#2"><a rel="#nofollow" href="x#1">',
    "nofollow": '<a href="x#1" rel="nofollow"><a href="x#2">',
    "the same without": '<a href="x#1"><a href=#"x"><a href="#x"><a href="x" #a="b">',
    "quotes": '<a href=\'x#"\'><a href=x#"><a #href="x"><a href#="x">',
    "white space before them": '<a href="x #1"><a href="x"><a href=" #2"><a href="x ">',
    "brackets behind them": '<a href="x#"><a href="y#2" title="#> <b"><a href="z#3" title="#"> <a href="w" id="#">',
    "attributes behind them": '<a class="c" href="x#1" title="t"><a href="x#1" rel="nofollow"><a href="x#1" href="y">',
    "control characters before them": '<a href="x\x1f#1"><a href="\x01#2"><a href="y\0#3"><a href="\u00a0#4">',
    "references": '<a href="?a&#61;b"><a href="x#&quot;"><a href="?a&amp;b#c">',
}


@pytest.mark.parametrize("name", FRAGMENTS)
def test_links_to_parts_of_pages_lead_to_the_page(name: str) -> None:
    """`once` changes how often a place is named, and nothing else, whatever has been read before."""
    for page in (FRAGMENTS[name], FRAGMENTS[name] * 2, "".join(FRAGMENTS.values())):
        found = plain.scan(page, FOLLOWED, once=True)

        assert found is not None
        assert places(found) == places(scanner.scan(page, FOLLOWED))


def test_the_table_of_tags_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins anew when it is full, and long tags and titles are not kept."""
    plain.forget()
    monkeypatch.setattr(plain, "_MOST_CHARACTERS", 5_000)
    most = 0
    for number in range(100):
        names = [f"{number}-{n}" for n in range(9)]
        tags = "".join(f'<a href="{name}"><a href="{name}#x"><link id="{name}">' for name in names)
        odd = " ".join(f"y{n}" for n in range(20))
        links = f'<a href="{"x" * 600}"><a href="{"x" * 600}#y"><link {odd}>'
        found = plain.scan(f"<title>{number}</title>{tags}{links}", FOLLOWED, once=True)

        assert found is not None
        assert len(found.found) == 30

        kept = plain._tags(FOLLOWED)
        most = max(most, len(kept))
        assert not any("title" in source or "xx" in source or "y" in source for source in kept)

    assert 50 < most < 80


def test_what_is_never_closed_is_left_to_engines() -> None:
    """They say what so many open elements do to them; as many that are closed, or text without tags, are plain."""
    many, link = 30_000, '<a href="x">'

    assert plain.scan("<div>" * many + link, FOLLOWED) is None
    assert plain.scan("<div></div>" * many + link, FOLLOWED) is not None
    assert plain.scan("text " * many + link, FOLLOWED) is not None


@pytest.mark.timeout(20)
@pytest.mark.parametrize("odd", ["< 5", "<<", "<a", '<b c="', "<!-", '<a href="x#'])
def test_time_is_linear_in_what_is_passed_by(odd: str) -> None:
    """What opens nothing behind many tags does not have them looked at once more, each from its own place."""
    for tags in ("<p>", '<p class="c">', "</p>", '<a href="x#y">'):
        plain.scan((tags * 20_000 + odd) * 3 + ">", FOLLOWED, once=True)


def test_a_remembered_tag_reads_as_it_did_first() -> None:
    """The table of tags changes nothing, filled or empty."""
    page = PLAIN["attributes"] * 2
    plain.forget()
    first = plain.scan(page, FOLLOWED)
    again = plain.scan(page, FOLLOWED)

    assert first is not None
    assert first == again
