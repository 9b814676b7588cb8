"""Bytes to text and, for queries, text to bytes, by the Encoding standard: what a browser would read and send.

From: bodies and the names that parse.encoding.sniff gives. To: parse.document (text), parse.urls (queries).
Pure; runs in parse processes, and wherever a URL is resolved.

Python's own codecs do the work. They differ from the standard in some hundred characters and in how they go on after a
fault; the differences are the tables of this file. `tests/test_encoding.py` holds checksums of every whole table.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from functools import cache

from crawlr.parse.encoding_labels import name_of
from crawlr.parse.patterns import compiled

__all__ = ["decode", "encode_query"]

_REPLACEMENT = "\ufffd"

# Where Python's name for a single-byte encoding is not the standard's.
_SINGLE_BYTE = {
    "ibm866": "cp866",
    "iso-8859-8-i": "iso8859-8",
    "macintosh": "mac_roman",
    "windows-874": "cp874",
    "x-mac-cyrillic": "mac_cyrillic",
}
# Single bytes that the standard reads otherwise than Python does.
_SINGLE_BYTE_ODD = {
    "koi8-u": {0xAE: "\u045e", 0xBE: "\u040e"},
    "windows-1255": {0xCA: "\u05ba"},
}
_UTF_16 = {"utf-16le": "utf-16-le", "utf-16be": "utf-16-be"}
_BOMS = {"utf-8": codecs.BOM_UTF8, "utf-16le": codecs.BOM_UTF16_LE, "utf-16be": codecs.BOM_UTF16_BE}


def decode(body: bytes, encoding: str) -> str:
    """The text of a body in an encoding (a name as `sniff` gives it, or any label). Never fails.

    What cannot be read becomes U+FFFD, one for each faulty sequence, and reading goes on where a browser goes on
    (WHATWG Encoding §4.1 "decode"). A byte order mark of this very encoding is taken off. `replacement` gives one
    U+FFFD for the whole body, as browsers do: nobody sees a link of such a page. A name nobody knows is read as UTF-8.
    """
    name = encoding if encoding in _DECODERS else name_of(encoding) or "utf-8"
    mark = _BOMS.get(name)
    if mark is not None and body.startswith(mark):
        body = body[len(mark) :]
    return _decoder(name)(body)


def _decoder(name: str) -> Callable[[bytes], str]:
    return _DECODERS.get(name) or _single_byte_decoder(name)


# ---- UTF-8, UTF-16, replacement


def _decode_utf_8(body: bytes) -> str:
    return body.decode("utf-8", "replace")


def _decode_utf_16le(body: bytes) -> str:
    return body.decode("utf-16-le", "replace")


def _decode_utf_16be(body: bytes) -> str:
    return body.decode("utf-16-be", "replace")


def _decode_replacement(body: bytes) -> str:
    return _REPLACEMENT if body else ""


# ---- single bytes


@cache
def _single_byte_table(name: str) -> str:
    """256 characters, one a byte. A byte without one is U+FFFD, or its C1 control in the windows encodings."""
    if name == "x-user-defined":
        return "".join(map(chr, (*range(0x80), *range(0xF780, 0xF800))))
    table = [bytes([byte]).decode(_SINGLE_BYTE.get(name, name), "replace") for byte in range(256)]
    if name.startswith("windows-"):
        table[0x80:0xA0] = [chr(byte) if table[byte] == _REPLACEMENT else table[byte] for byte in range(0x80, 0xA0)]
    for byte, character in _SINGLE_BYTE_ODD.get(name, {}).items():
        table[byte] = character
    return "".join(table)


@cache
def _single_byte_decoder(name: str) -> Callable[[bytes], str]:
    table = _single_byte_table(name)
    return lambda body: codecs.charmap_decode(body, "strict", table)[0]


# ---- two bytes and more
#
# After a fault the standard takes both bytes when the second is not ASCII, and only the first when it is: so markup
# after a lone lead byte survives. Python takes one byte always, hence the error handlers.


def _handler(
    encoding: str, extra: dict[bytes, str], length: Callable[[bytes, int], int]
) -> Callable[[UnicodeError], tuple[str, int]]:
    """Reads what the standard knows and the Python codec does not, and goes on after faults as the standard does."""

    def resume(error: UnicodeError) -> tuple[str, int]:
        if not isinstance(error, UnicodeDecodeError):
            raise error
        body, start = error.object, error.start
        known = extra.get(body[start : start + 2]) or extra.get(body[start : start + 1])
        if known is not None:
            return known, start + (1 if body[start] == 0x80 else 2)
        return _REPLACEMENT, min(start + length(body, start), len(body))

    codecs.register_error(f"crawlr.{encoding}", resume)
    return resume


def _two_bytes(lead_end: int, *, single: bytes) -> Callable[[bytes, int], int]:
    """How many bytes a faulty sequence takes, where a lead byte is 0x81 to `lead_end` and not one of `single`."""

    def length(body: bytes, start: int) -> int:
        lead, trail = body[start], body[start + 1 : start + 2]
        has_lead = 0x81 <= lead <= lead_end and lead not in single
        return 2 if has_lead and trail >= b"\x80" else 1

    return length


def _euc_jp_length(body: bytes, start: int) -> int:
    lead, trail = body[start], body[start + 1 : start + 2]
    if lead == 0x8F and b"\xa1" <= trail <= b"\xfe":
        return 3 if body[start + 2 : start + 3] >= b"\x80" else 2
    return 2 if (lead in (0x8E, 0x8F) or 0xA1 <= lead <= 0xFE) and trail >= b"\x80" else 1


_FOUR_BYTES = re.compile(rb"[\x81-\xfe](?:[0-9](?:[\x81-\xfe](?:[0-9]|\Z)|\Z)|[\x80-\xff]|\Z)")


def _gb18030_length(body: bytes, start: int) -> int:
    found = _FOUR_BYTES.match(body, start)
    return found.end() - start if found else 1


def _pointers(runs: str, *, rows: int, first: int) -> dict[bytes, str]:
    """Byte pairs of index entries: `runs` holds a pointer, then the characters from there on."""
    pairs = {}
    words = runs.split()
    for pointer, characters in zip(words[::2], words[1::2], strict=True):
        for at, character in enumerate(characters, int(pointer)):
            trail = at % rows
            pairs[bytes((0x81 + at // rows, trail + (0x40 if trail < 0x3F else first)))] = character
    return pairs


# What HKSCS-2008 and vendors added to Big5 after the edition that Python has.
_BIG5_EXTRA = _pointers(
    """
    1000 㡵𡵓𣚞𦀡㻬𥣞㫵竼龗𤅡𨤍𣇪𠪊𣉞䌊蒄龖鐯䤰蘓墖靊鈘秐稲晠権袝瑌篅枂稬剏遆㓦珄𥶹瓆鿇垳䤯呌䄱𣚎堘穲𧭥讏䚮𦺈䆁
    1051 𥶙箮𢒼鿈𢓁𢓉𢓌鿉蔄𣖻䂴鿊䓡𪷿拁灮鿋
    2082 箸 2088 簆 2103 糎 2114 緒 2123 縝 2148 者 2151 耨 2221 菁 2239 蒨 2244 萏 2303 覦覩 2354 起
    2400 都 2413 銹 2477 靜 2498 響 2605 鼖 2673 蔃 2746 兙兛兝兞 2771 鍮 2780 瑹 2990 浧 3087 禛 3259 邗
    3301 靝 3436 瀞 3451 嬨 4136 爁 4138 矗 4141 纇 4182 駖 4206 釔 4220 惞 4230 澶 4241 輶 4258 侻 4273 營
    4279 鄄 4282 鷰 4294 菏 4329 尐秣 4349 婧 4419 輋 4422 筑 4494 拐 4624 恢 4694 痹 4708 汊 4742 鬮
    4748 鼗 4815 僭 4828 弌 4902 蠏 4922 拎 4982 瑨 4992 煢 4997 牐
    5432 ␀␁␂␃␄␅␆␇␈␉␊␋␌␍␎␏␐␑␒␓␔␕␖␗␘␙␚␛␜␝␞␟␡€
    10942 廴 10946 无 10948 癶 10950 隶 10957 〃仝
    19028 倩 19035 偽 19088 包 19096 卄 19112 卿 19162 嘅 19240 婷 19299 幵 19305 廐 19326 彘 19355 悤 19398 撐
    19439 晴 19454 杞 19553 沜渝 19557 港 19611 煮 19643 猪 19672 瑜 19697 瓩 19748 砉
    """,
    rows=157,
    first=0x62,
)
# Characters that Python reads from Big5 -> what the standard reads from the same bytes. Nothing else gives them.
_BIG5_ODD = dict(
    zip(
        "\u2022\uff64\u203e\u223c\u2641\u2609\u00a5\u00a2\u00a3",
        "\u2027\ufe51\u00af\uff5e\u2295\u2299\uffe5\uffe0\uffe1",
        strict=True,
    )
)
# These two Python reads as U+FF0F and U+FF3C, which other bytes give as well: only the bytes tell them apart.
_BIG5_SLASHES = {b"\xa2\x41": "\u2215", b"\xa2\x42": "\ufe68"}
_BIG5_PAIRS = compiled(rb"(\xa2[AB])|(?:[^\x81-\xfe]++|(?!\xa2[AB])[\x81-\xfe](?:[\x40-\x7e\x80-\xff])?)++")

# GB 18030-2005 as Python has it -> 2022 with the standard's U+3000. U+1E3F and U+E7C7 change places.
_GB18030_ODD = {
    "\ue5e5": "\u3000",
    **{chr(0xE78D + n): c for n, c in enumerate("\ufe10\ufe12\ufe11\ufe13\ufe14\ufe15\ufe16\ufe17\ufe18\ufe19")},
    **dict(
        zip(
            "\ue81e\ue826\ue82b\ue82c\ue832\ue843\ue854\ue864",
            "\u9fb4\u9fb5\u9fb6\u9fb7\u9fb8\u9fb9\u9fba\u9fbb",
            strict=True,
        )
    ),
    "\u1e3f": "\ue7c7",
    "\ue7c7": "\u1e3f",
}
_SHIFT_JIS_ODD = dict.fromkeys("\uf8f0\uf8f1\uf8f2\uf8f3", _REPLACEMENT)  # single bytes A0 and FD to FF
_EUC_JP_ODD = dict(zip("〜‖−¢£¬", "～∥－￠￡￢", strict=True))


@cache
def _euc_jp_extra() -> dict[bytes, str]:
    """NEC row 13 and NEC-selected IBM characters: the rows of JIS X 0208 as cp932 has them, in EUC-JP's bytes."""
    extra = {}
    for row in range(94):
        for cell in range(94):
            pair = bytes((0xA1 + row, 0xA1 + cell))
            lead, trail = (0x81 if row < 62 else 0xC1) + row // 2, cell + (0x9F if row % 2 else 0x40)
            shifted = bytes((lead, trail + (not row % 2 and trail >= 0x7F)))
            character = _DECODERS["shift_jis"](shifted)
            if character != _REPLACEMENT and len(character) == 1 and not pair.decode("euc_jp", "ignore"):
                extra[pair] = character
    return extra


def _multibyte(
    encoding: str,
    codec: str,
    *,
    odd: dict[str, str],
    length: Callable[[bytes, int], int],
    extra: dict[bytes, str] | None = None,
) -> Callable[[bytes], str]:
    _handler(encoding, extra or {}, length)
    errors = f"crawlr.{encoding}"
    has_odd = re.compile("[" + "".join(odd) + "]").search if odd else None
    table = str.maketrans(odd)

    def decoder(body: bytes) -> str:
        text = body.decode(codec, errors)
        # Translating takes 30 times as long as looking whether there is anything to translate.
        return text.translate(table) if has_odd and has_odd(text) else text

    return decoder


_big5 = _multibyte("big5", "big5hkscs", odd=_BIG5_ODD, length=_two_bytes(0xFE, single=b""), extra=_BIG5_EXTRA)


def _decode_big5(body: bytes) -> str:
    if not any(pair in body for pair in _BIG5_SLASHES):
        return _big5(body)
    return "".join(_BIG5_SLASHES.get(run) or _big5(run) for run in (m[0] for m in _BIG5_PAIRS.finditer(body)))


@cache
def _euc_jp() -> Callable[[bytes], str]:
    return _multibyte("euc-jp", "euc_jp", odd=_EUC_JP_ODD, length=_euc_jp_length, extra=_euc_jp_extra())


def _decode_euc_jp(body: bytes) -> str:
    # The one pair of JIS X 0212 that Python reads as an ASCII character; 0x8F is a lead byte wherever it stands.
    return _euc_jp()(body.replace(b"\x8f\xa2\xb7", b"\xa1\xc1"))


# ---- ISO-2022-JP

_ESCAPES = {b"(B": "ascii", b"(J": "roman", b"(I": "katakana", b"$@": "jis0208", b"$B": "jis0208"}
_JIS_PAIRS = compiled(rb"(?:[!-~]{2})++|[!-~].?|.", re.DOTALL)
_TO_HIGH = bytes(byte | 0x80 for byte in range(256))


def _seven_bits(odd: dict[int, str]) -> str:
    table = [chr(byte) if byte < 0x80 else _REPLACEMENT for byte in range(256)]
    table[0x0E] = table[0x0F] = _REPLACEMENT
    for byte, character in odd.items():
        table[byte] = character
    return "".join(table)


_JIS_TABLES = {
    "ascii": _seven_bits({}),
    "roman": _seven_bits({0x5C: "¥", 0x7E: "‾"}),
    "katakana": "".join(chr(0xFF40 + byte) if 0x21 <= byte <= 0x5F else _REPLACEMENT for byte in range(256)),
}


def _decode_iso_2022_jp(body: bytes) -> str:
    """WHATWG Encoding §12.2.1, by runs between escape sequences."""
    text: list[str] = []
    state, follows_escape, at = "ascii", False, 0
    while at < len(body):
        escape = body.find(b"\x1b", at)
        run = body[at:] if escape < 0 else body[at:escape]
        if run:
            follows_escape = False
            if state == "jis0208":
                text.extend(map(_decode_jis_pairs, _JIS_PAIRS.findall(run)))
            else:
                text.append(codecs.charmap_decode(run, "strict", _JIS_TABLES[state])[0])
        if escape < 0:
            break
        entered = _ESCAPES.get(body[escape + 1 : escape + 3])
        # "Return continue, if output is false, and error otherwise": two escapes with nothing between are an attack.
        if entered is None or follows_escape:
            text.append(_REPLACEMENT)
        follows_escape = entered is not None
        state, at = (state, escape + 1) if entered is None else (entered, escape + 3)
    return "".join(text)


def _decode_jis_pairs(run: bytes) -> str:
    if len(run) % 2 or not 0x21 <= run[1] <= 0x7E:
        return _REPLACEMENT
    return _decode_euc_jp(run.translate(_TO_HIGH))


_DECODERS: dict[str, Callable[[bytes], str]] = {
    "utf-8": _decode_utf_8,
    "utf-16le": _decode_utf_16le,
    "utf-16be": _decode_utf_16be,
    "replacement": _decode_replacement,
    "big5": _decode_big5,
    "gbk": _multibyte("gbk", "gb18030", odd=_GB18030_ODD, length=_gb18030_length, extra={b"\x80": "€"}),
    "euc-kr": _multibyte("euc-kr", "cp949", odd={}, length=_two_bytes(0xFE, single=b"")),
    "shift_jis": _multibyte(
        "shift_jis", "cp932", odd=_SHIFT_JIS_ODD, length=_two_bytes(0xFC, single=bytes(range(0xA0, 0xE0)))
    ),
    "euc-jp": _decode_euc_jp,
    "iso-2022-jp": _decode_iso_2022_jp,
}
_DECODERS["gb18030"] = _DECODERS["gbk"]


# ---- queries

# URL standard §1.3, the special-query percent-encode set: C0 controls, space and these; all bytes from 0x7F on.
_ENCODED_IN_QUERY = {byte: f"%{byte:02X}" for byte in (*range(0x21), *b"\"#<>'", *range(0x7F, 0x100))}
_IN_QUERY = [_ENCODED_IN_QUERY.get(byte, chr(byte)) for byte in range(0x100)]


def encode_query(query: str, encoding: str) -> str:
    """The query of an http(s) URL as ASCII: in the page's encoding, then percent-encoded.

    URL standard §1.3 "percent-encode after encoding". A character that the encoding does not have becomes its numeric
    reference (`%26%239829%3B`). Percent signs stay as they are. UTF-16 and `replacement` pages send UTF-8, and so do
    pages in an encoding that nobody knows. Lone surrogates are U+FFFD.
    """
    name = encoding if encoding in _DECODERS else name_of(encoding) or "utf-8"
    if name == "iso-2022-jp":
        return _encode_iso_2022_jp(query)
    if name in ("utf-8", "utf-16le", "utf-16be", "replacement"):
        return "".join(map(_IN_QUERY.__getitem__, query.encode("utf-8", "surrogatepass")))
    table = _encode_table(name)
    return "".join(_encode_character(character, name, table) for character in query)


def _encode_character(character: str, name: str, table: dict[str, bytes]) -> str:
    encoded = character.encode() if character < "\x80" else table.get(character)
    if encoded is None and name == "gb18030" and character != "\ue5e5":
        encoded = character.translate(str.maketrans("\ue7c7", "\u1e3f")).encode("gb18030", "ignore") or None
    if encoded is None:
        return f"%26%23{ord(character)}%3B"
    return "".join(map(_IN_QUERY.__getitem__, encoded))


@cache
def _encode_table(name: str) -> dict[str, bytes]:
    """Character -> bytes: the decoder turned round, by the rule of each encoder which of several bytes is taken."""
    if name not in _DECODERS:
        single = _single_byte_table(name)
        return {single[byte]: bytes([byte]) for byte in range(0xFF, 0x7F, -1) if single[byte] != _REPLACEMENT}
    decoder = _DECODERS[name]
    table: dict[str, bytes] = {}
    for lead in range(0x81, 0xFF):
        for trail in range(0x40, 0xFF):
            pair = bytes((lead, trail))
            character = decoder(pair)
            if len(character) != 1 or character == _REPLACEMENT or not _is_encoded(name, pair, character):
                continue
            # "The first pointer is to be used", but for these in Big5 the last.
            if character not in table or (name == "big5" and character in "═╞╡╪十卅"):
                table[character] = pair
    return table | _ENCODERS_EXTRA.get(name, {})


def _is_encoded(name: str, pair: bytes, character: str) -> bool:
    """Whether an encoder may give these bytes: duplicates and private characters are only read, never written."""
    if name == "big5":
        return pair >= b"\xa1"  # no HKSCS
    if name == "shift_jis":
        return not (b"\xed" <= pair < b"\xef" or "\ue000" <= character <= "\uf8ff")  # not NEC's copies of IBM's
    return True


_HALF_WIDTH_KATAKANA = {chr(0xFF61 + n): n + 0xA1 for n in range(63)}
_ENCODERS_EXTRA: dict[str, dict[str, bytes]] = {
    # The asymmetric rows: what GB 18030-2005 had there is still written so.
    "gbk": {
        "€": b"\x80",
        **{old: old.encode("gb18030") for old in _GB18030_ODD if old not in "\ue5e5\ue7c7\u1e3f"},
    },
    "gb18030": {old: old.encode("gb18030") for old in _GB18030_ODD if old not in "\ue5e5\ue7c7\u1e3f"},
    "shift_jis": {
        "\x80": b"\x80",
        "¥": b"\x5c",
        "‾": b"\x7e",
        "−": b"\x81\x7c",
        **{character: bytes([byte]) for character, byte in _HALF_WIDTH_KATAKANA.items()},
    },
    "euc-jp": {
        "¥": b"\x5c",
        "‾": b"\x7e",
        "−": b"\xa1\xdd",
        **{character: bytes((0x8E, byte)) for character, byte in _HALF_WIDTH_KATAKANA.items()},
    },
}
# Half-width katakana, which ISO-2022-JP writes full-width: WHATWG index ISO-2022-JP katakana.
_FULL_WIDTH = dict(
    zip(
        map(chr, range(0xFF61, 0xFFA0)),
        "。「」、・ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン゛゜",
        strict=True,
    )
)


def _encode_iso_2022_jp(query: str) -> str:
    """WHATWG Encoding §12.2.2; the encoder keeps its state over characters it does not have."""
    table = _encode_table("euc-jp")
    encoded: list[str] = []
    state = "(B"

    def enter(wanted: str) -> None:
        nonlocal state
        if state != wanted:
            state = wanted
            encoded.append("%1B" + wanted)

    for original in query:
        character = original
        if character in "\x0e\x0f\x1b":
            if state == "$B":
                enter("(B")
            encoded.append("%26%2365533%3B")
        elif character < "\x80":
            if state != "(J" or character in "\\~":
                enter("(B")
            encoded.append(_IN_QUERY[ord(character)])
        elif character in "¥‾":
            enter("(J")
            encoded.append("\\" if character == "¥" else "~")
        else:
            character = _FULL_WIDTH.get(character, character)
            pair = table.get(character)
            if pair is None or len(pair) != 2:
                if state == "$B":
                    enter("(B")
                encoded.append(f"%26%23{ord(character)}%3B")
            else:
                enter("$B")
                encoded.extend(_IN_QUERY[byte & 0x7F] for byte in pair)
    enter("(B")
    return "".join(encoded)
