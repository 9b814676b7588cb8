"""A guess at the encoding of a body that says nothing about it and is no UTF-8.

From: parse.encoding.sniff, which asks only then. To: its caller. Pure; runs in parse processes.

Every candidate reads a sample; the one whose reading has the largest share of characters that are frequent in its
languages wins. That is one table and one number, a few milliseconds at most, and no language model.
"""

from __future__ import annotations

import re

from crawlr.parse.encoding_codecs import decode

__all__ = ["guess"]

_WINDOW = 64 * 1024
"""Bytes looked at, from the first one that is not ASCII."""
_SAMPLE = 4 * 1024
"""Bytes of words with something outside ASCII that the candidates read."""

_CYRILLIC = "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэ"
_UKRAINIAN = "іїєґў"
_HEBREW = "אבגדהוזחטיךכלםמןנסעףפץצקרשת"
_ARABIC = "ابتجحدرسشعفقكلمنهويىةأإ"
_GREEK = "αβγδεζηθικλμνξοπρςστυφχψωάέήίόύώ"
_THAI = "กขคงจฉชซญฎฐณดตถทธนบปผพฟภมยรลวศษสหอะัาำิีึืุูเแโใไ็่้์"

_LATIN = {
    "windows-1252": "éèàêçôâîùûëïüöäßñáíóúãõåøæœÉÀÖÜÄ’‘“”–—…«»°©®\xa0·¿¡",
    "windows-1250": "ąćęłńóśźżáčďéěíňřšťúůýžőűöüăâîşľĺôäđĄĆĘŁŃŚŹŻČŘŠŽ",
    "iso-8859-2": "ąćęłńóśźżáčďéěíňřšťúůýžőűöüăâîşľĺôäđĄĆĘŁŃŚŹŻČŘŠŽ",
    "windows-1254": "ğşıçöüİĞŞÇÖÜâî",
    "windows-1257": "āčēģīķļņšūžąęėįųõäöüćłńóśź",
}
_OTHER_SCRIPTS = {
    "windows-1251": _CYRILLIC + _UKRAINIAN,
    "koi8-r": _CYRILLIC,
    "koi8-u": _CYRILLIC + _UKRAINIAN,
    "iso-8859-5": _CYRILLIC + _UKRAINIAN,
    "ibm866": _CYRILLIC,
    "x-mac-cyrillic": _CYRILLIC,
    "windows-1253": _GREEK,
    "windows-1255": _HEBREW,
    "windows-1256": _ARABIC,
    "iso-8859-6": _ARABIC,
    "windows-874": _THAI,
}
_JAPANESE = (
    "のにはをたがでてとしれさいもなかっらくこるうあまよりきんすーアイスントルラリ。、日本人年大会国中社事報情品合問"
)
_EAST_ASIAN = {
    "shift_jis": _JAPANESE,
    "euc-jp": _JAPANESE,
    "gbk": "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里，。",
    "big5": "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發後作裡，。",
    "euc-kr": "이다는의에을가고하지한로은기사아인그도시어대나리자정를해서니스라보일수부전있과게제주소개품공안내회사",
}
# Chinese and Korean have more characters than a set holds: what is there stands for three times as much.
_EAST_ASIAN_WEIGHT = {"shift_jis": 1.3, "euc-jp": 1.3, "gbk": 3.0, "big5": 3.0, "euc-kr": 2.0}

_WORDS = re.compile(rb"[\x40-\x7f]*[\x80-\xff][\x40-\xff]*")  # trail bytes may be ASCII from 0x40 on
_NOT_ASCII = re.compile(rb"[\x80-\xff]")
_FAULTS = re.compile("[\ufffd\x80-\x9f\ue000-\uf8ff]")
_UTF_8_CHARACTER = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")


def guess(body: bytes) -> str:
    """The name of the encoding that makes most sense of the body; windows-1252 when none does."""
    first = _NOT_ASCII.search(body)
    if first is None:
        return "utf-8"
    window = body[first.start() : first.start() + _WINDOW]
    sample = b" ".join(_WORDS.findall(window))[:_SAMPLE]
    high = len(_NOT_ASCII.findall(sample))
    # A UTF-8 page with a few broken bytes (cut in the middle of a character, a foreign snippet) is a UTF-8 page.
    if sum(map(len, _UTF_8_CHARACTER.findall(sample))) > 0.9 * high:
        return "utf-8"
    # Letters of other scripts stand together, accented Latin letters stand among ASCII letters.
    together = len(re.findall(rb"[\x80-\xff](?=[\x80-\xff])", sample)) / high
    scores = {"windows-1252": 0.1}
    for names, weight in ((_LATIN, 1 - together), (_OTHER_SCRIPTS, together)):
        for name, frequent in names.items():
            scores[name] = max(scores.get(name, 0), weight * _share(decode(sample, name), frequent))
    for name, frequent in _EAST_ASIAN.items() if together > 0.25 else ():
        scores[name] = min(1.0, _EAST_ASIAN_WEIGHT[name] * _share(decode(sample, name), frequent))
    return max(scores, key=scores.__getitem__)


def _share(text: str, frequent: str) -> float:
    """The part of the characters outside ASCII that are frequent ones; faults count ten times against it."""
    characters = len(text) - len(re.findall(r"[\x00-\x7f]", text))
    hits = sum(map(text.count, frequent))
    return max(0.0, (hits - 10 * len(_FAULTS.findall(text))) / characters) if characters else 0.0
