"""What people read on the links of a page."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlr.parse import anchors
from tests.growth import assert_linear

CASES = [
    ("plain", "<a href=x>text</a>", {"x": "text"}),
    ("white space", "<a href=x>\n a\tb&#10;c&nbsp; d \n</a>", {"x": "a b c d"}),
    ("references", "<a href=x>R&amp;D &lt;b&gt; &copy; a < b</a>", {"x": "R&D <b> © a < b"}),
    ("inline elements join", "<a href=x>W<b>or</b>d<wbr>s</a>", {"x": "Words"}),
    ("blocks part", "<a href=x><h3>Title</h3><p>More<br>text</p></a>", {"x": "Title More text"}),
    ("a comment is none", "<a href=x>a<!-- no </a> -->b</a>", {"x": "ab"}),
    ("scripts and styles are none", "<a href=x>a<script>'</a>'</script><style>b</style>c</a>", {"x": "ac"}),
    ("alt of an image alone", "<a href=x> <img src=i alt=' The  image '></a>", {"x": "The image"}),
    ("text wins over alt", "<a href=x><img src=i alt=no>yes</a>", {"x": "yes"}),
    ("the first alt", "<a href=x><img src=i><img alt=one><img alt=two></a>", {"x": "one"}),
    ("a picture drawn in place", "<a href=x><svg><path d='M0>0'/></svg> Home</a>", {"x": "Home"}),
    ("nothing", "<a href=x></a>", {"x": ""}),
    ("the first with an href", "<a href=x>one</a><a href=x>two</a>", {"x": "one"}),
    ("never closed", "<a href=x>one<a href=y>two<p>three", {"x": "one", "y": "two three"}),
    ("no href", "<a name=n>no</a><a href>self</a><a>no</a>", {"": "self"}),
    ("href as it is decoded", "<a href='?a=1&amp;b'>t</a>", {"?a=1&b": "t"}),
    ("case", "<A HREF=x>t</A>", {"x": "t"}),
    ("in a comment", "<!-- <a href=x>old</a> --><a href=x>new</a>", {"x": "new"}),
    ("in a template", "<template><a href=x>no</a></template><a href=x>yes</a>", {"x": "yes"}),
    ("in raw text", "<textarea><a href=x>no</a></textarea><title><a href=y>no</a></title>", {}),
    ("behind plaintext", "<a href=x>a<plaintext>b</a><a href=y>c</a>", {"x": "a"}),
    ("cut", f"<a href=x>{'word ' * 1000}</a>", {"x": ("word " * 40)[:200].strip()}),
    ("a tag that never ends", "<a href=x>a<b title='", {"x": "a<b title='"}),
]


@pytest.mark.parametrize(("source", "expected"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_text_of_an_anchor(source: str, expected: dict[str, str]) -> None:
    """The text is what a reader sees on the link, on one line."""
    assert anchors.texts(source, is_xml=False) == expected


def test_xml_closes_elements_with_a_slash() -> None:
    """In XHTML `<script/>` and `<a/>` are whole elements; in HTML they are begun."""
    source = "<script src='s'/><a href='x'/>no<a href='y'>yes</a>"

    assert anchors.texts(source, is_xml=True) == {"x": "", "y": "yes"}
    assert anchors.texts(source, is_xml=False) == {}


@given(st.text(st.sampled_from("<>/!-a bx=\"'&;\n") | st.characters(), max_size=60))
def test_no_text_breaks_a_line_or_is_too_long(source: str) -> None:
    """Whatever the markup: no failure, and texts that can be kept a line each."""
    found = anchors.texts(f"<a href=x>{source}</a>{source}<a href=y>{source}", is_xml=False)

    assert all("\n" not in text and len(text) <= anchors.LIMIT and text == text.strip() for text in found.values())


@pytest.mark.parametrize(
    "piece", ["<div>word </div>", "<a href=x><!---->", "<b", "<a href=x ", "<img alt=''>", "&amp;"]
)
def test_time_is_linear(piece: str) -> None:
    """Whatever is repeated, markup is read in proportion to its size."""
    assert_linear(lambda count: partial(anchors.texts, "<a href=x>" + piece * count, is_xml=False), 40_000)
