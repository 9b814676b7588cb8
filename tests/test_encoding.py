"""Which encoding a page is in, and how its bytes are read and its queries written."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlr.parse.encoding import LABELS, decode, name_of, sniff
from crawlr.parse.encoding_codecs import encode_query
from tests.growth import assert_linear

NAMES = sorted(set(LABELS.values()))
MANY = settings(max_examples=300, deadline=None)

# ---- labels


def test_the_label_table_is_the_standards() -> None:
    """40 encodings of 228 labels; the digest is that of encodings.json of WHATWG Encoding, May 2026."""
    rows = "\n".join(f"{label} {LABELS[label]}" for label in sorted(LABELS))

    assert (len(NAMES), len(LABELS)) == (40, 228)
    assert hashlib.sha256(rows.encode()).hexdigest()[:16] == "d9153e22e1ff5385"


@pytest.mark.parametrize("label", sorted(LABELS))
def test_every_label_counts_in_header_and_page(label: str) -> None:
    """In any case and with white space round it; in a page UTF-16 means UTF-8 and x-user-defined windows-1252."""
    name = LABELS[label]
    in_page = {"utf-16le": "utf-8", "utf-16be": "utf-8", "x-user-defined": "windows-1252"}.get(name, name)

    assert name_of(f" \t{label.upper()}\n") == name
    assert sniff(b"<p>", f'text/html; charset="{label}"') == (name, "header")
    assert sniff(f"<meta charset=' {label.upper()} '>".encode(), None) == (in_page, "meta")
    assert sniff(f"<?xml version='1.0' encoding='{label}'?>".encode(), None) == (in_page, "meta")


@pytest.mark.parametrize("label", ["", "utf", "utf-8 x", "utf_8", "cp949", "\u212aoi8-r", "latin-1", "none"])
def test_what_is_no_label_is_none(label: str) -> None:
    """Only what the table has, and no letter outside ASCII that looks like one."""
    assert name_of(label) is None


# ---- what wins

LATIN_2 = b"<!doctype html><meta charset=iso-8859-2><p>x"


def test_a_byte_order_mark_beats_all() -> None:
    """It is the only evidence that cannot be a mistake."""
    header = "text/html; charset=koi8-r"

    assert sniff(b"\xef\xbb\xbf" + LATIN_2, header) == ("utf-8", "bom")
    assert sniff(b"\xff\xfe<\0", header) == ("utf-16le", "bom")
    assert sniff(b"\xfe\xff\0<", header) == ("utf-16be", "bom")


HEADERS = {
    "text/html; charset=utf-8": "utf-8",
    "text/html;charset=UTF-8": "utf-8",
    'text/html; charset="utf-8"': "utf-8",
    'text/html; charset="utf-8': "utf-8",
    'text/html; charset="u\\tf-8"': "utf-8",
    "text/html; charset=utf-8; foo=bar": "utf-8",
    "text/html; foo=bar; CharSet=utf-8 ": "utf-8",
    'text/html; foo="; charset=koi8-r"; charset=utf-8': "utf-8",
    "text/html; charset=utf-8; charset=koi8-r": "utf-8",
    "text/html; charset=; charset=utf-8": "utf-8",
    "text/html;charset=utf-8, text/html": "utf-8",
    "text/html;charset=koi8-r, text/html;charset=utf-8": "utf-8",
    "text/html, text/html;charset=utf-8": "utf-8",
    "text/html;charset=latin1": "windows-1252",
    "foo=bar; charset=utf-8": "utf-8",
    ";charset=utf-8": "utf-8",
    "text/html;charset=utf-16": "utf-16le",
    "text/html;charset=x-user-defined": "x-user-defined",
}
NO_HEADERS = [
    None,
    "",
    "text/html",
    "text/html; charset",
    "text/html; charset=",
    "text/html; charset=UNKNOWN",
    "text/html; charset = utf-8",
    "text/html; charset=utf-8 x",
    "text/html; mycharset=utf-8",
    "text/html charset=utf-8",
    "text/html;charset=utf-8, text/plain",
    "text/html; charset='utf-8'",
    "text/html; charset=unknown; charset=utf-8",
    "\u212a; \x00",
]


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_beats_the_page(header: str) -> None:
    """Whatever the parameter looks like, as long as it is one."""
    assert sniff(LATIN_2, header) == (HEADERS[header], "header")


@pytest.mark.parametrize("header", NO_HEADERS)
def test_a_header_that_names_no_encoding_leaves_it_to_the_page(header: str | None) -> None:
    """A misspelt, unknown or empty charset is none."""
    assert sniff(LATIN_2, header) == ("iso-8859-2", "meta")


DECLARED = [
    "<meta charset=koi8-r>",
    "<meta charset='KOI8-R'/>",
    "<META\tCHARSET\n=\r'koi8-r' >",
    "<meta/charset=koi8-r>",
    "<meta x=1 charset=koi8-r y>",
    '<meta " charset=koi8-r>',
    "<meta charset=koi8-r charset=utf-8>",
    "<meta charset=bogus><meta charset=koi8-r>",
    "<meta http-equiv=content-type content='text/html; charset=koi8-r'>",
    "<meta content='text/html; charset=koi8-r' http-equiv=Content-Type>",
    "<meta http-equiv=content-type content='charset charset = koi8-r;x'>",
    "<meta http-equiv=content-type content='charset=\"koi8-r\"'>",
    "<meta http-equiv=content-type content=\"charset='koi8-r'\">",
    "<meta http-equiv=content-type content=text/html;charset=koi8-r>",
    "<meta http-equiv=content-type content='text/html; charset=utf-8' charset=koi8-r>",
    "<meta charset=bogus http-equiv=content-type content='text/html; charset=koi8-r'>",
    "<!-- <meta charset=utf-8> --><meta charset=koi8-r>",
    "<!--><meta charset=koi8-r>",
    "<!-- --!> <meta charset=utf-8> --><meta charset=koi8-r>",
    "<p title='<meta charset=utf-8>'><meta charset=koi8-r>",
    '<p title="x>"><meta charset=koi8-r>',
    "<p title=x' \"><meta charset=koi8-r>",
    "</p a='>'><meta charset=koi8-r>",
    "<!x '><meta charset=koi8-r>",
    "<? '><meta charset=koi8-r>",
    "</ '><meta charset=koi8-r>",
    "<metax charset=utf-8><meta charset=koi8-r>",
    "a < b <<meta charset=koi8-r>",
    "<body><p><meta charset=koi8-r>",
    "<script><meta charset=koi8-r></script>",
    "<?xml version='1.0' encoding='utf-8'?><meta charset=koi8-r>",
    "<?xml version='1.0' encoding = 'koi8-r' ?><p>",
    '<?xml encoding="koi8-r">',
]
NOT_DECLARED = [
    "<meta charset=koi8-r",
    "<meta charset='koi8-r>",
    "<meta charset=",
    "<meta charset",
    "<meta",
    "<",
    "< meta charset=koi8-r>",
    "<meta name=content-type content='text/html; charset=koi8-r'>",
    "<meta http-equiv='content-type ' content='text/html; charset=koi8-r'>",
    "<meta http-equiv=content-type content='text/html; charset=\"koi8-r'>",
    "<meta http-equiv=content-type content='text/html; charset koi8-r'>",
    "<meta http-equiv=content-type content='charset'>",
    "<meta charset=bogus>",
    "<!-- <meta charset=koi8-r>",
    "<p title='><meta charset=koi8-r>",
    " <?xml version='1.0' encoding='koi8-r'?>",
    "<?xml version='1.0' encoding='koi8 r'?>",
    "<?xml version='1.0' encoding='koi8-r",
    "<?xml version='1.0' encoding=koi8-r?>",
]


@pytest.mark.parametrize("page", DECLARED)
def test_a_declaration_is_found(page: str) -> None:
    """The prescan of the HTML standard, in its corners."""
    assert sniff(page.encode(), None) == ("koi8-r", "meta")


@pytest.mark.parametrize("page", NOT_DECLARED)
def test_what_is_no_declaration_is_not_believed(page: str) -> None:
    """Nor is one that a broken tag swallows."""
    assert sniff(page.encode(), None) == ("utf-8", "guess")


LATE = {
    "a comment": (b"<!-- " + b"x" * 20_000 + b" -->", b""),
    "a script": (b'<script>if (a<b && c == \'"\') s = "<meta charset=utf-8>"</script' + b" " * 1024 + b">", b""),
    "a title": (b"<title>" + b"x" * 2000 + b"<meta charset=utf-8></title>", b""),
    "the edge of the prescan": (b" " * 1010, b""),
    "tags": (b"<p class='a>b'>x</p>" * 2000, b"<p>" * 2000),
}


@pytest.mark.parametrize("before", LATE)
def test_a_declaration_after_the_first_kilobyte_counts(before: str) -> None:
    """As in browsers, which do not look for it in scripts and other raw text there."""
    head, tail = LATE[before]

    assert sniff(head + b"<meta charset=koi8-r>" + tail, None) == ("koi8-r", "meta")


HOSTILE = [
    b"<",
    b"<a ",
    b"<a b=",
    b'<a "',
    b"<a><!>",
    b"<!--",
    b"<meta ",
    b"<meta charset=",
    b"<title>charset",
    b"<script>a</script>",
    b"<meta c",
    b"\x81\x82 ",
    b"\xc3",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_time_stays_linear(piece: bytes) -> None:
    """A page made to be slow is sniffed in proportion to its size."""

    def prepare(size: int) -> Callable[[], object]:
        return partial(sniff, piece * (size // len(piece)) + b"<meta charset=bogus>", None)

    assert_linear(prepare, 1_000_000, within=2.0)


# ---- nothing is said

TEXTS = {
    "windows-1252": "L'été dernier nous avons décidé de créer un site à l'usage des élèves où ça commence",
    "windows-1250": "Dziękujemy za wizytę, życzymy miłego dnia. Zażółć gęślą jaźń, proszę",
    "windows-1254": "Türkiye'nin başkenti Ankara'dır. Hoş geldiniz, şimdi sayfamızı görüntülüyorsunuz, ışık",
    "windows-1257": "Sveiki atvykę į mūsų svetainę. Čia rasite informaciją apie įmonę, ačiū už dėmesį",
    "windows-1251": "Добро пожаловать на наш сайт. Здесь вы найдете информацию о компании",
    "koi8-r": "Добро пожаловать на наш сайт. Здесь вы найдете информацию о компании",
    "iso-8859-5": "Добро пожаловать на наш сайт. Здесь вы найдете информацию о компании",
    "ibm866": "Добро пожаловать на наш сайт. Здесь вы найдете информацию о компании",
    "koi8-u": "Ласкаво просимо на наш сайт. Тут ви знайдете інформацію про її ціни",
    "windows-1253": "Καλώς ήρθατε στην ιστοσελίδα μας. Εδώ θα βρείτε πληροφορίες",
    "windows-1255": "ברוכים הבאים לאתר שלנו. כאן תמצאו מידע על החברה",
    "windows-1256": "مرحبا بكم في موقعنا. هنا ستجدون معلومات عن الشركة",
    "windows-874": "ยินดีต้อนรับสู่เว็บไซต์ของเรา ที่นี่คุณจะพบข้อมูลเกี่ยวกับบริษัท",
    "shift_jis": "ようこそ私たちのウェブサイトへ。会社の情報、サービスについて",
    "euc-jp": "ようこそ私たちのウェブサイトへ。会社の情報、サービスについて",
    "iso-2022-jp": "ようこそ私たちのウェブサイトへ。会社の情報、サービスについて",
    "gbk": "欢迎来到我们的网站。在这里您可以找到有关公司、服务和价格的信息",
    "big5": "歡迎來到我們的網站。在這裡您可以找到有關公司、服務和價格的資訊",
    "euc-kr": "우리 웹사이트에 오신 것을 환영합니다. 회사 정보와 서비스 및 가격",
    "utf-16le": "plain",
    "utf-16be": "plain",
    "utf-8": "Ünïcödé 中文 текст",
}
CODECS = {"windows-874": "cp874", "ibm866": "cp866", "shift_jis": "cp932", "euc-kr": "cp949", "gbk": "gb18030"}
CODECS |= {"utf-16le": "utf-16-le", "utf-16be": "utf-16-be"}


@pytest.mark.parametrize("name", TEXTS)
def test_an_undeclared_page_can_be_read(name: str) -> None:
    """The guess reads the text of a plain sentence as it was written."""
    page = f"<html><head><title>x</title></head><body class='main'><p>{TEXTS[name]}</p>"
    body = page.encode(CODECS.get(name, name))

    guessed, evidence = sniff(body, "text/html")

    assert evidence == "guess"
    assert decode(body, guessed) == page


def test_utf_8_with_a_fault_is_utf_8() -> None:
    """A page cut in the middle of a character, or with a foreign byte in it."""
    text = "<p>Grüße, œuvre, 中文</p>" * 20

    assert sniff(text.encode()[:-5], None)[0] == "utf-8"
    assert sniff(("é" * 50).encode()[:-1], None)[0] == "utf-8"
    assert sniff(text.encode() + b"caf\xe9" + text.encode(), None)[0] == "utf-8"


# ---- reading and writing


def sequences(name: str) -> Iterator[bytes]:
    """Every sequence that an encoding can tell apart, good and bad."""
    yield from (bytes([b]) for b in range(256))
    if name in ("gbk", "big5", "euc-kr", "shift_jis", "euc-jp"):
        yield from (bytes((a, b)) for a in range(0x80, 0x100) for b in range(256))
    if name == "euc-jp":
        yield from (bytes((0x8F, a, b)) for a in range(0xA1, 0xFF) for b in range(0xA1, 0xFF))
    if name == "gbk":
        middle, last = range(0x81, 0xFF), range(0x30, 0x3A)
        yield from (bytes((a, 0x30, c, d)) for a in middle for c in middle for d in last)
    if name == "iso-2022-jp":
        low = range(0x20, 0x80)
        yield from (b"\x1b" + e + bytes((a, b)) for e in (b"(B", b"(J", b"(I", b"$B", b"$@") for a in low for b in low)


# Of each encoding: what all sequences are read as, what all characters up to U+FFFF are written as. The digests were
# made by decoders and encoders that follow the standard's steps byte by byte, from its index files of May 2026.
TABLES = {
    "big5": ("3089c866310b5788", "6b61df984ea0d7c7"),
    "euc-jp": ("c3acd506455f7288", "a1cf73cbfd23cb11"),
    "euc-kr": ("f421ebee147d7d3f", "ffee26377b033559"),
    "gbk": ("e6149bb46a1b8540", "3ee1e2f3d857922a"),
    "ibm866": ("e4d6ff5ca5ada13a", "fe25262d6ba9d607"),
    "iso-2022-jp": ("e61e169b9ff49410", "eb88648e164650f3"),
    "iso-8859-10": ("4f9e6ea68a80234a", "055cd35e3bd0b1a8"),
    "iso-8859-13": ("e0dc2e83c4600e7f", "af8aa116766a30c8"),
    "iso-8859-14": ("cc0467a122c68308", "f71ed8fe32e9a549"),
    "iso-8859-15": ("02da73e6cb687359", "a91aa81f90bb151f"),
    "iso-8859-16": ("1695e6848a2fa540", "314e371c0030d231"),
    "iso-8859-2": ("f06000761c8bcf26", "d011399e5a4c8c63"),
    "iso-8859-3": ("202a1b363622d2ae", "37455d8e0ed8573f"),
    "iso-8859-4": ("f7076eceae60e496", "7b2c9c4036eb8c06"),
    "iso-8859-5": ("93b826201406f5c1", "6ed2b34d1bd37356"),
    "iso-8859-6": ("7bd8ab9b93da30d5", "29cb0f1c38ed02ac"),
    "iso-8859-7": ("6990b4f2c0f41585", "4838460e64bc7faf"),
    "iso-8859-8": ("3fece254a648dccd", "f7e3966461aadcdb"),
    "iso-8859-8-i": ("3fece254a648dccd", "f7e3966461aadcdb"),
    "koi8-r": ("4864274e118185ef", "26134c2e11435eff"),
    "koi8-u": ("0fdfdda8e9261a58", "28bdbc2b12ffb13e"),
    "macintosh": ("07da6af6067c9558", "aea0b990a2d1fcea"),
    "shift_jis": ("afe61df68127c081", "851fc1cb6e9dc748"),
    "windows-1250": ("01dd09bae2d209f4", "5e3e02bd84db03fa"),
    "windows-1251": ("64bc96a197c74f59", "289e02c92287ccb0"),
    "windows-1252": ("d486335e5257b059", "767701bd3774be09"),
    "windows-1253": ("9e4c70ccbbd0778f", "e6817f85cf3cea30"),
    "windows-1254": ("390edd6fb0372487", "07fc80e9afb3a1ac"),
    "windows-1255": ("eb0725777360879e", "a6c48e78e980474d"),
    "windows-1256": ("5526d72d1fce45fa", "0c43173a414357ef"),
    "windows-1257": ("6df262bb978fac4d", "531c1f4be41dccea"),
    "windows-1258": ("4744ca2fc1f4eb72", "27d6969c8ab6736a"),
    "windows-874": ("17408160a539642a", "b13b8817d606a270"),
    "x-mac-cyrillic": ("ce302a812a98d7f3", "c80f5aea7c6fc132"),
}


def digest(lines: Iterator[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", TABLES)
def test_every_sequence_is_read_as_the_standard_reads_it(name: str) -> None:
    """The whole table of each encoding, with what is no character in it."""
    assert digest(decode(sequence, name) for sequence in sequences(name)) == TABLES[name][0]


@pytest.mark.parametrize("name", TABLES)
def test_every_character_is_written_as_the_standard_writes_it(name: str) -> None:
    """Those that an encoding does not have included."""
    characters = map(chr, (*range(0x80, 0xD800), *range(0xE000, 0x10000)))

    assert digest(encode_query(character, name) for character in characters) == TABLES[name][1]


READ = [
    ("utf-8", b"\xef\xbb\xbfx\xc3\xa9", "xé"),
    ("utf-8", b"a\xe2\x82b\xff\xed\xa0\x80", "a\ufffdb\ufffd\ufffd\ufffd\ufffd"),
    ("utf-16le", b"\xff\xfea\0\0\xd8b\0x", "a\ufffdb\ufffd"),
    ("utf-16be", b"\xfe\xff\0a\xd8\x3d\xde\x00", "a\U0001f600"),
    ("utf-16le", b"\xfe\xff", "\ufffe"),
    ("iso-8859-1", b"\x93hi\x94\x81", "“hi”\x81"),
    ("iso-8859-8-i", b"\xe0", "א"),
    ("x-user-defined", b"a\x80\xff", "a\uf780\uf7ff"),
    ("replacement", b"<a href=/x>", "\ufffd"),
    ("hz-gb-2312", b"~{VP~}", "\ufffd"),
    ("replacement", b"", ""),
    ("windows-31j", b"\x87@\xfa\xb1", "①﨑"),
    ("gb2312", b"\x80\xa2\xe3\x81\x30\x81\x30", "€€\x80"),
    # markup after a lone lead byte survives
    ("gbk", b"\xd6<p>\x81\x30<", "\ufffd<p>\ufffd0<"),
    ("shift_jis", b"\x93<p>\x93", "\ufffd<p>\ufffd"),
    ("euc-kr", b"\xc7<p>\xc7\xff", "\ufffd<p>\ufffd"),
    ("big5", b"\xa4<p>\xa2A\xa1\xfe\x87\x40\x88\x62", "\ufffd<p>\u2215／䏰Ê̄"),
    ("euc-jp", b"\x8f\xa1<p>\x8e\xb1\xad\xa1", "\ufffd<p>ｱ①"),
    ("iso-2022-jp", b"\x1b$B0l\x1b(B<p>\x1b(I1\x1b(J\\~\x1b(B\xff", "一<p>ｱ¥‾\ufffd"),
    ("iso-2022-jp", b"\x1b$B\x1b(Ba\x1b[b", "\ufffda\ufffd[b"),
    ("nobody knows", b"\xc3\xa9", "é"),
]


@pytest.mark.parametrize(("name", "body", "text"), READ)
def test_bytes_are_read_as_in_a_browser(name: str, body: bytes, text: str) -> None:
    """Names and labels, marks, faults, and how reading goes on after them."""
    assert decode(body, name) == text


BYTES = st.binary(max_size=40) | st.lists(
    st.sampled_from(
        [b"<", b">", b"meta", b" charset=", b"'", b'"', b"\x1b$B", b"\x8f", b"\xa4", b"\xa2A", b"\x81\x30", b"\xff"]
    )
).map(b"".join)


@MANY
@given(BYTES, st.none() | st.text(max_size=30).map("text/html;charset=".__add__))
def test_sniffing_never_fails(body: bytes, content_type: str | None) -> None:
    """Any bytes under any header get one of the standard's names, and can be read by it."""
    name, evidence = sniff(body, content_type)

    assert name in NAMES
    assert evidence in ("bom", "header", "meta", "guess")
    assert "\ufffe" not in decode(body, name) or name.startswith("utf")


@MANY
@given(BYTES, st.sampled_from(NAMES))
def test_reading_never_fails(body: bytes, name: str) -> None:
    """Whatever the bytes are, what comes out is text that UTF-8 can hold."""
    decode(body, name).encode()


@MANY
@given(
    BYTES,
    st.sampled_from([name for name in NAMES if name not in ("utf-16le", "utf-16be", "replacement", "iso-2022-jp")]),
)
def test_markup_is_read_as_markup(body: bytes, name: str) -> None:
    """Whatever stands before it: no lead byte swallows a tag."""
    assert decode(body + b"<p>", name).endswith("<p>")


@MANY
@given(st.text(), st.sampled_from(NAMES))
def test_a_written_query_is_a_query(query: str, name: str) -> None:
    """ASCII without anything that ends a query or is encoded in one, in any encoding and for any text."""
    written = encode_query(query, name)

    assert written.isascii()
    assert not set(written) & set("\t\n\r \"#<>'\x1b")


@MANY
@given(
    st.text(alphabet=st.characters(min_codepoint=0xA0, max_codepoint=0x9FFF, exclude_categories=["Cs"])),
    st.sampled_from(["gb18030", "utf-8"]),
)
def test_what_is_written_is_read_again(query: str, name: str) -> None:
    """Where an encoding has every character."""
    written = encode_query(query, name)
    parts = written.split("%")
    body = parts[0].encode() + b"".join(bytes.fromhex(part[:2]) + part[2:].encode() for part in parts[1:])

    assert decode(body, name) == query


@pytest.mark.parametrize(
    ("label", "name"), [("latin-1", "windows-1252"), ("ISO8859_2", "iso-8859-2"), ("nonsense", "windows-1252")]
)
def test_label_that_only_others_know_is_a_hint(label: str, name: str) -> None:
    """No declaration by the standard, but a better guess than none when the page is no UTF-8."""
    page = f"<meta charset={label}>".encode() + b"<p>sample_\xf1 \xe1 \xf6"

    assert sniff(page, None) == (name, "guess")


def test_utf_8_goes_before_a_hint() -> None:
    """What can be read as UTF-8 is UTF-8, whatever an unknown label meant."""
    page = "<meta charset=latin-1><p>ñ".encode()

    assert sniff(page, None) == ("utf-8", "guess")
