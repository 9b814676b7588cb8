"""What a link means, and which links mean one page."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlr.parse.urls import TRACKING_PARAMETERS, Resolver, identity, make_identity, resolve, without_userinfo

BASE = "http://h.test/d/page.html?p=1#top"

# ---- what hrefs mean

MEANINGS = {
    # white space, tabs, newlines
    " \t\n\x00 x.html \x1f\r\n": "http://h.test/d/x.html",
    "a\tb\nc\rd.html": "http://h.test/d/abcd.html",
    "ht\ntp://o.test/": "http://o.test/",
    "a b.html": "http://h.test/d/a%20b.html",
    "\u3000x": "http://h.test/d/%E3%80%80x",
    # letters that are no ASCII, though some of them fold to it: no scheme
    "java\u017fcript:x": "http://h.test/d/java%C5%BFcript:x",
    "ma\u0131lto:x": "http://h.test/d/ma%C4%B1lto:x",
    # backslashes are slashes, but not in the query and not when escaped
    "..\\SHIPS\\A.HTML": "http://h.test/SHIPS/A.HTML",
    "\\top\\b.html": "http://h.test/top/b.html",
    "http:\\\\o.test\\c.html": "http://o.test/c.html",
    "\\\\o.test\\c": "http://o.test/c",
    "/keep%5Cd.html": "http://h.test/keep%5Cd.html",
    "/e?p=a\\b": "http://h.test/e?p=a\\b",
    # other hosts and shortened forms
    "//o.test/net": "http://o.test/net",
    "///o.test/three": "http://o.test/three",
    "http:rel.html": "http://h.test/d/rel.html",
    "https:o.test": "https://o.test/",
    "http:/root": "http://h.test/root",
    # queries and fragments
    "": "http://h.test/d/page.html?p=1",
    "#": "http://h.test/d/page.html?p=1",
    "#other": "http://h.test/d/page.html?p=1",
    "?": "http://h.test/d/page.html?",
    "?p=3": "http://h.test/d/page.html?p=3",
    "x#a?b#c": "http://h.test/d/x",
    "x?a#b": "http://h.test/d/x?a",
    "x?": "http://h.test/d/x?",
    "s?b=2&a=1&&c": "http://h.test/d/s?b=2&a=1&&c",
    "t?x=a+b'": "http://h.test/d/t?x=a+b%27",
    'q?"<>`': "http://h.test/d/q?%22%3C%3E`",
    # dot segments
    ".": "http://h.test/d/",
    "..": "http://h.test/",
    "../../../x": "http://h.test/x",
    "./a/./b/../c": "http://h.test/d/a/c",
    "%2e%2E/x": "http://h.test/x",
    "a/.%2e/x": "http://h.test/d/x",
    "%2e": "http://h.test/d/",
    "...": "http://h.test/d/...",
    ".hidden/..x/x..": "http://h.test/d/.hidden/..x/x..",
    "a//b/": "http://h.test/d/a//b/",
    "a/..//b": "http://h.test/d//b",
    # escapes stay as they are
    "a%c3%a9": "http://h.test/d/a%c3%a9",
    "%7Ejoe": "http://h.test/d/%7Ejoe",
    "100%": "http://h.test/d/100%",
    "%zz%2": "http://h.test/d/%zz%2",
    "%2561": "http://h.test/d/%2561",
    "café?é": "http://h.test/d/caf%C3%A9?%C3%A9",
    "a\ud800b": "http://h.test/d/a%EF%BF%BDb",
    "a\ud83d\ude00b": "http://h.test/d/a%F0%9F%98%80b",
    # colons behind the first slash are data
    "/a:b": "http://h.test/a:b",
    "a/b:c": "http://h.test/d/a/b:c",
    "./a:b": "http://h.test/d/a:b",
    # hosts
    "HTTP://O.Test:80/A": "http://o.test/A",
    "https://o.test:443": "https://o.test/",
    "https://o.test:80/": "https://o.test:80/",
    "http://o.test:/": "http://o.test/",
    "http://o.test:0081/": "http://o.test:81/",
    "http://bücher.test/": "http://xn--bcher-kva.test/",
    "http://b%C3%BCcher.test/": "http://xn--bcher-kva.test/",
    "http://xn--bcher-kva.test/": "http://xn--bcher-kva.test/",
    "http://XN--A/": "http://xn--a/",  # no Punycode, but ASCII names are not looked into
    "http://faß.test/": "http://xn--fa-hia.test/",
    "http://o。test/": "http://o.test/",
    "http://a_b.o-.test/": "http://a_b.o-.test/",
    "http://o.test./": "http://o.test./",
    "http://0x7f.1/": "http://127.0.0.1/",
    "http://2130706433/": "http://127.0.0.1/",
    "http://0177.0.0.01/": "http://127.0.0.1/",
    "http://127。0。0。1/": "http://127.0.0.1/",
    "http://[0:0::0:1]:80/": "http://[::1]/",
    "http://[::FFFF:1.2.3.4]/": "http://[::ffff:102:304]/",
}


@pytest.mark.parametrize("href", MEANINGS, ids=ascii)
def test_an_href_means_what_it_means_in_a_browser(href: str) -> None:
    """The URL standard decides, the fragment is taken off, the escapes are as the page has them."""
    assert resolve(BASE, href) == MEANINGS[href]


@pytest.mark.parametrize("href", MEANINGS, ids=ascii)
def test_the_resolver_of_a_page_agrees(href: str) -> None:
    """Its short cuts lead to the same place."""
    assert Resolver(BASE).resolve(href) == MEANINGS[href]


NONE = [
    "javascript:void(0)",
    "JavaScript:go()",
    " java\nscript:void(0)",
    "MAILTO:a@h.test",
    "mailto:a@h.test?subject=x",
    " Tel:+1",
    "data:text/html,<a href=/no>",
    "about:blank",
    "ftp://h.test/x",
    "file:///etc/passwd",
    "ws://h.test/",
    "whatsapp://send",
    "C:\\dir\\f.html",
    "blob:http://h.test/1",
    "view-source:http://h.test/",
    "urn:x",
    "http://",
    "http://[IP",
    "http://[::1",
    "http://[::g]/",
    "http://h.test:99999/",
    "http://h.test:abc/",
    "http://h.test:-1/",
    "http://%zz/",
    "http://a b/",
    "http://a<b/",
    "http://1.2.3.256/",
    "http://1.2.3.4.5/",
    "http://09/",
    "http://\u00ad/",
    "http://%00/",
    "http:///?x",
    "http://user@/",
    "http://:80/",
    "//",
    "//:0",
    "\\\\",
    "http:#",
    "https:///",
]


@pytest.mark.parametrize("href", NONE, ids=ascii)
def test_what_is_no_web_address_is_none(href: str) -> None:
    """Other schemes in any case and spacing, and what does not parse."""
    base = "https://h.test/" if href == "http:#" else BASE

    assert resolve(base, href) is None
    assert Resolver(base).resolve(href) is None


def test_one_bad_link_does_not_cost_the_others() -> None:
    """A resolver that has refused a link still resolves."""
    resolver = Resolver(BASE)

    found = [resolver.resolve(href) for href in ("a", "http://[IP", "http://h.test:99999/", "b")]

    assert found == ["http://h.test/d/a", None, None, "http://h.test/d/b"]


@pytest.mark.parametrize(
    "base", ["", "about:blank", "no base", "data:text/html,x", "http://[bad", "\ud800", "file:///x"]
)
def test_without_a_usable_base_only_absolute_addresses_mean_something(base: str) -> None:
    """A base that does not parse, or has no place below it, is not held against an absolute address."""
    assert resolve(base, "http://o.test/x#y") == "http://o.test/x"
    assert resolve(base, "x") is None
    assert Resolver(base).resolve("http://o.test/x#y") == "http://o.test/x"
    assert Resolver(base).resolve("x") is None
    assert Resolver(base).resolve("#x") is None


BASES = {
    "http://h.test": ("http://h.test/", "http://h.test/x"),
    "HTTP://H.test:80/a/b?c/d#e": ("http://h.test/a/b?c/d", "http://h.test/a/x"),
    "http://u:p@h.test/a//b/c": ("http://h.test/a//b/c", "http://h.test/a//b/x"),
    "about:blank": (None, None),
}


@pytest.mark.parametrize("base", BASES)
def test_a_resolver_shows_its_base_as_an_address(base: str) -> None:
    """Serialised, without fragment and userinfo; what lies beside it begins like it."""
    resolver = Resolver(base)

    assert (resolver.address, resolver.resolve("x")) == BASES[base]


def test_folders_above_the_root_are_the_root() -> None:
    """However many steps up a link takes, and over empty segments one by one."""
    resolver = Resolver("http://h.test/a//b/c")

    assert [resolver.resolve("../" * up + "x") for up in range(5)] == [
        "http://h.test/a//b/x",
        "http://h.test/a//x",
        "http://h.test/a/x",
        "http://h.test/x",
        "http://h.test/x",
    ]


def test_a_base_of_a_million_slashes_is_no_trouble() -> None:
    """Time stays linear: the folders of a hostile base are not written out."""
    resolver = Resolver("http://h.test" + "/" * 1_000_000)

    assert resolver.resolve("../x") == "http://h.test" + "/" * 999_999 + "x"


# ---- the page's charset

QUERIES = {
    ("windows-1252", "/café?q=café"): "/caf%C3%A9?q=caf%E9",
    ("windows-1252", "/h?q=♥"): "/h?q=%26%239829%3B",
    ("windows-1252", "/h?q=\x81€"): "/h?q=%81%80",
    ("gbk", "/search?w=中"): "/search?w=%D6%D0",
    ("gbk", "/search?w=€"): "/search?w=%80",
    ("gb18030", "/search?w=€😀"): "/search?w=%A2%E3%949%FC6",
    ("shift_jis", "/s?q=日本"): "/s?q=%93%FA%96{",
    ("shift_jis", "/s?q=−"): "/s?q=%81|",
    ("euc-jp", "/s?q=日本"): "/s?q=%C6%FC%CB%DC",
    ("iso-2022-jp", "/s?q=日本!"): "/s?q=%1B$BF|K\\%1B(B!",
    ("iso-2022-jp", "/s?q=\x0eA"): "/s?q=%26%2365533%3BA",
    ("iso-2022-jp", "/s?q=‾\\"): "/s?q=%1B(J~%1B(B\\",
    ("euc-kr", "/s?q=한"): "/s?q=%C7%D1",
    ("big5", "/s?q=中"): "/s?q=%A4%A4",
    ("koi8-r", "/s?q=да"): "/s?q=%C4%C1",
    ("latin1", "/s?q=é"): "/s?q=%E9",
    ("UTF8", "/s?q=é"): "/s?q=%C3%A9",
    ("utf-16le", "/s?q=é"): "/s?q=%C3%A9",
    ("replacement", "/s?q=é"): "/s?q=%C3%A9",
    ("no such charset", "/s?q=é"): "/s?q=%C3%A9",
    # what the parser takes off is not encoded before
    ("windows-1252", "/s?q=é\t\n é \x1f "): "/s?q=%E9%20%E9",
    ("windows-1252", "/s?q=é #é"): "/s?q=%E9%20",
    ("windows-1252", "/s?q='é'#?é"): "/s?q=%27%E9%27",
    ("windows-1252", "/é#?é"): "/%C3%A9",
    ("windows-1252", "/s?q=é%E9%"): "/s?q=%E9%E9%",
    ("windows-1252", "/s?\ud800é"): "/s?%26%2365533%3B%E9",
}


@pytest.mark.parametrize(("encoding", "href"), QUERIES, ids=ascii)
def test_a_query_is_sent_in_the_charset_of_its_page(encoding: str, href: str) -> None:
    """The path is UTF-8 always; what the charset does not have is a numeric reference."""
    expected = "http://h.test" + QUERIES[encoding, href]

    assert resolve(BASE, href, encoding=encoding) == expected
    assert Resolver(BASE, encoding).resolve(href) == expected


# ---- userinfo

USERINFO = {
    "http://u:p@h.test/x?y@z": "http://h.test/x?y@z",
    "http://u@h.test": "http://h.test",
    "https://a@b@h.test/": "https://h.test/",
    "http://h.test/@": "http://h.test/@",
    "http://h.test?a@b": "http://h.test?a@b",
    "http://h.test#a@b": "http://h.test#a@b",
    "http://a\\@b/": "http://a\\@b/",
    "http://u:p@[::1]:8080/": "http://[::1]:8080/",
    "mailto:a@b": "mailto:a@b",
    "": "",
}


@pytest.mark.parametrize("url", USERINFO)
def test_userinfo_is_taken_off(url: str) -> None:
    """Only what stands before the host, by the rules of the authority that is requested."""
    assert without_userinfo(url) == USERINFO[url]


def test_a_page_cannot_make_us_send_or_keep_a_password() -> None:
    """Neither a link's own userinfo nor that of the page it is on comes out of a resolver or into a key."""
    resolver = Resolver("http://u:secret@h.test/d/")

    found = [resolver.resolve(href) for href in ("x", "a b", "#", "//v:secret@o.test/", "http://v:secret@o.test/a b")]

    assert found == [
        "http://h.test/d/x",
        "http://h.test/d/a%20b",
        "http://h.test/d/",
        "http://o.test/",
        "http://o.test/a%20b",
    ]
    assert identity("http://u:secret@h.test/") == "http://h.test/"


# ---- identity

ONE_PAGE = [
    ("http://h.test/~joe", "http://h.test/%7Ejoe", "http://h.test/%7ejoe"),
    ("http://h.test/caf%c3%a9", "http://h.test/caf%C3%A9"),
    ("http://h.test/a%2fb", "http://h.test/a%2Fb"),
    ("http://h.test/%66oo.ht%6d%6c?%70=%31", "http://h.test/foo.html?p=1"),
    ("HTTP://H.Test:80", "http://h.test/", "http://h.test/#x", " http://h.test/./ "),
    ("http://h.test/a/../b", "http://h.test/b", "http://h.test/%2e/b"),
    ("http://bücher.test/", "http://xn--bcher-kva.test/"),
    ("http://u:p@h.test/", "http://@h.test/", "http://h.test/"),
    ("http://0x7f.1/", "http://127.0.0.1/"),
    ("http://h.test/?utm_source=a&x=1", "http://h.test/?x=1&utm_medium=b", "http://h.test/?x=1&gclid=c"),
    ("http://h.test/?fbclid=1", "http://h.test/?utm%5Fid=2&mc_eid", "http://h.test/"),
]


@pytest.mark.parametrize("urls", ONE_PAGE)
def test_spellings_of_one_page_have_one_key(urls: tuple[str, ...]) -> None:
    """By the URL standard, by RFC 3986, and because a parameter only says where a visitor came from."""
    assert len({identity(url) for url in urls}) == 1


TWO_PAGES = [
    ("http://h.test/", "https://h.test/"),
    ("http://h.test/", "http://www.h.test/"),
    ("http://h.test/", "http://h.test./"),
    ("http://h.test/", "http://h.test:8080/"),
    ("http://h.test/a", "http://h.test/a/"),
    ("http://h.test/a", "http://h.test/A"),
    ("http://h.test/a", "http://h.test//a"),
    ("http://h.test/", "http://h.test/index.html"),
    ("http://h.test/", "http://h.test/?"),
    ("http://h.test/?&", "http://h.test/?"),
    ("http://h.test/?a", "http://h.test/?a="),
    ("http://h.test/?a=1", "http://h.test/?&a=1"),
    ("http://h.test/?a=1&b=2", "http://h.test/?b=2&a=1"),
    ("http://h.test/?a=+", "http://h.test/?a=%20"),
    ("http://h.test/?a;b", "http://h.test/?a&b"),
    ("http://h.test/a%2Fb", "http://h.test/a/b"),
    ("http://h.test/a%3Fb", "http://h.test/a?b"),
    ("http://h.test/?a%26b", "http://h.test/?a&b"),
    ("http://h.test/%25", "http://h.test/%"),
    ("http://h.test/%2561", "http://h.test/a"),
    ("http://h.test/%25%36%31", "http://h.test/a"),
    ("http://h.test/%%36%31", "http://h.test/a"),
    ("http://h.test/%%36%31", "http://h.test/%61"),
    ("http://h.test/?%%36%31", "http://h.test/?a"),
    ("http://h.test/caf%E9", "http://h.test/caf%C3%A9"),
    ("http://h.test/x;jsessionid=1", "http://h.test/x"),
    ("http://h.test/?ref=a", "http://h.test/"),
    ("http://h.test/?UTM_SOURCE=a", "http://h.test/"),
    ("http://h.test/?xutm_source=a", "http://h.test/"),
    ("http://h.test/?x=utm_source=a", "http://h.test/?x"),
    ("http://h.test/utm_source=a", "http://h.test/"),
]


@pytest.mark.parametrize("urls", TWO_PAGES)
def test_pages_that_may_differ_keep_two_keys(urls: tuple[str, str]) -> None:
    """A wrong merge loses a page, and nobody sees it."""
    assert identity(urls[0]) != identity(urls[1])


def test_what_is_no_url_is_its_own_key() -> None:
    """The function never raises and never drops."""
    assert [identity(text) for text in ("", "x", "mailto:a%61@b", "http://[bad", "\ud800")] == [
        "",
        "x",
        "mailto:a%61@b",
        "http://[bad",
        "\ud800",
    ]


@pytest.mark.parametrize("name", [*TRACKING_PARAMETERS, "utm_source", "utm_anything"])
def test_known_tracking_parameters_are_left_out(name: str) -> None:
    """With a value or without, first, last or alone, and nothing else goes with them."""
    for query in (f"{name}=1", f"{name}", f"{name}=&{name}=2"):
        assert identity(f"http://h.test/?{query}") == "http://h.test/"
        assert identity(f"http://h.test/?a=1&{query}&b") == "http://h.test/?a=1&b"
    assert identity(f"http://h.test/?{name}x_=1") == (
        "http://h.test/" if name[:4] == "utm_" else f"http://h.test/?{name}x_=1"
    )


def test_tracking_parameters_can_be_kept_and_others_left_out() -> None:
    """--keep-params and --ignore-param, apart and together."""
    url = "http://h.test/?utm_source=a&sid=1&gr%c3%b6%c3%9fe=2&a.b=3&x=4"
    cases = {
        (True, ()): "?utm_source=a&sid=1&gr%C3%B6%C3%9Fe=2&a.b=3&x=4",
        (False, ()): "?sid=1&gr%C3%B6%C3%9Fe=2&a.b=3&x=4",
        (True, ("sid", "größe", "")): "?utm_source=a&a.b=3&x=4",
        (False, ("sid", "gr%C3%B6%c3%9fe", "a.b", "x")): "",
        (True, ("a_b", "aXb", "SID")): "?utm_source=a&sid=1&gr%C3%B6%C3%9Fe=2&a.b=3&x=4",
    }

    for (keep, ignore), expected in cases.items():
        assert make_identity(keep_params=keep, ignore=ignore)(url) == f"http://h.test/{expected}"


# ---- what holds for any text

# fmt: off
PIECES = st.sampled_from([
    "/", "/", ".", "..", "../", "a", "b.html", "%2e", "%2E", "%41", "%c3", "%", "?", "#", ":", "@", "//", "\\", "&",
    "utm_source=q", "x=1", "http:", "https://", "h.test", "127.0.0.1", "0x7f", "1", "xn--a", "-", "_", "~", "'", "\"",
    "^", "{", "|", "[", "]", "::1", ";", "=", "+", "80", "443", ":80", "C:", "..a", "a..", "%%3", "61", "30",
    "HTTP://", "H.Test", "%2", "%zz", "<", ">", "`", "é", "$", "!", "*", "(", ")", ",", " ", "\t", "\n", "\x00",
    "\x7f", "\ud800", "\udc00", "\x0e",
])
# fmt: on
HREFS = st.lists(PIECES, max_size=8).map("".join) | st.text(max_size=12)
ANY_BASE = st.sampled_from(
    [
        "http://h.test/",
        "https://h.test/a/b/c.html?q=1",
        "http://u:p@h.test:8080/a//b/../c/",
        "http://127.0.0.1:81/x/y/z",
        "https://[::1]/p/q",
        "about:blank",
        "",
        "data:text/html,x",
        "http://bücher.test/é/ü",
    ]
)
CHARSETS = st.sampled_from(["utf-8", "windows-1252", "gbk", "shift_jis", "iso-2022-jp", "big5", "utf-16le"])
MANY = settings(max_examples=500, deadline=None)


@MANY
@given(ANY_BASE, HREFS, CHARSETS)
def test_resolving_never_raises_and_its_short_cuts_never_lie(base: str, href: str, encoding: str) -> None:
    """A resolver gives what `resolve` gives, less userinfo: http(s), without fragment, resolving to itself."""
    url = resolve(base, href, encoding=encoding)

    assert Resolver(base, encoding).resolve(href) == (None if url is None else without_userinfo(url))
    if url is not None:
        assert re.match(r"https?://[^/?#]", url)
        assert url.isascii()
        assert "#" not in url
        assert resolve(url, "") == url


@MANY
@given(ANY_BASE, HREFS)
def test_a_key_is_its_own_key(base: str, href: str) -> None:
    """identity is idempotent, for URLs and for any text, and has no userinfo in it."""
    url = resolve(base, href)

    assert identity(identity(href)) == identity(href)
    if url is not None:
        assert identity(identity(url)) == identity(url) == identity(without_userinfo(url))
        assert "@" not in identity(url).split("/")[2]


UNRESERVED = re.compile("%(2[DE]|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])")
NEARLY_EQUAL = st.lists(
    st.sampled_from(["%", "2", "5", "6", "1", "e", "E", "a", "%61", "%2F", "%2f", "/", "&"]), max_size=6
)


@MANY
@given(NEARLY_EQUAL.map("".join), NEARLY_EQUAL.map("".join))
def test_one_key_is_only_for_what_rfc_3986_calls_equivalent(a: str, b: str) -> None:
    """Two queries with one key are equal after §6.2.2, written down here a second time."""
    key = make_identity(keep_params=True, ignore=())

    def normal(text: str) -> str:
        text = re.sub("%[0-9A-Fa-f]{2}", lambda escape: escape[0].upper(), text)
        return UNRESERVED.sub(lambda escape: chr(int(escape[1], 16)), text)

    if key(f"http://h.test/?{a}") == key(f"http://h.test/?{b}"):
        assert normal(a) == normal(b)
