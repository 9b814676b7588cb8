"""CSS selectors and XPath expressions, as lxml runs them: from a tree to texts.

From: extract_rules (to refuse what can't work), parse.extraction (to run it). To: the same. Pure; lxml and cssselect
are imported at the first use, so that a crawl without them does not pay for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

__all__ = ["Texts", "css", "xpath"]

Texts = Callable[[Any], Iterator[str]]
"""From an lxml element to the texts that were found under it, in document order."""

_NAMESPACES = {"re": "http://exslt.org/regular-expressions"}
_ATTRIBUTE = re.compile(r"[^\s\"'<>/=]+")


def css(selector: str) -> Texts:
    """What finds the texts of a CSS selector. ValueError says what is wrong with it.

    With `::text` at its end it means the text nodes of the elements themselves, with `::attr(name)` their attribute,
    both as they are; without, the text of each element with all that is in it, white space collapsed.
    """
    import cssselect

    try:
        parts = cssselect.parse(selector)
        found = [f"{_translator().selector_to_xpath(part)}{_ending(part.pseudo_element)}" for part in parts]
    except cssselect.SelectorError as error:
        raise ValueError(str(error)) from error
    return xpath(" | ".join(found))


def xpath(expression: str) -> Texts:
    """What finds the texts of an XPath 1.0 expression (with `re:test` and the like of EXSLT). ValueError says what is
    wrong with it.

    Text nodes and attributes come as they are, elements as their whole text with white space collapsed, numbers and
    truth values as XPath's string() writes them.
    """
    from lxml import etree

    try:
        run = etree.XPath(expression, namespaces=_NAMESPACES, regexp=True, smart_strings=False)
        run(_tree_to_try())  # names of functions and prefixes are looked up only now
    except (etree.XPathError, ValueError) as error:  # ValueError: a control character
        raise ValueError(str(error)) from error
    return lambda tree: _texts(run(tree))


@cache
def _translator() -> Any:
    from cssselect import HTMLTranslator

    return HTMLTranslator()


def _ending(pseudo_element: Any) -> str:
    if pseudo_element is None:
        return ""
    if pseudo_element == "text":
        return "/text()"
    if getattr(pseudo_element, "name", None) == "attr":
        values = [token.value for token in pseudo_element.arguments]
        if len(values) == 1 and _ATTRIBUTE.fullmatch(values[0]):
            return f"/@*[name()='{values[0].lower()}']"
        raise ValueError("::attr() takes the name of one attribute")
    name = getattr(pseudo_element, "name", pseudo_element)
    raise ValueError(f"there is no ::{name} here, only ::text and ::attr(name)")


@cache
def _tree_to_try() -> Any:
    from lxml import html

    return html.document_fromstring("<html><head><title>t</title></head><body><p id='p'>t</p></body></html>")


@cache
def _string() -> Callable[[Any], str]:
    from lxml import etree

    run: Callable[[Any], str] = etree.XPath("string()", smart_strings=False)
    return run


def _texts(found: Any) -> Iterator[str]:
    if isinstance(found, bool):
        yield "true" if found else "false"
    elif isinstance(found, float):
        yield (
            f"{found:.0f}"
            if found.is_integer()
            else {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(str(found), str(found))
        )
    elif isinstance(found, str):
        yield found
    else:
        string = _string()
        for each in found:
            if isinstance(each, str):
                yield each
            elif isinstance(each, tuple):  # of the namespace axis: prefix, address
                yield each[1]
            else:
                text = string(each) if isinstance(each.tag, str) else each.text  # a comment is no element
                yield " ".join((text or "").split())
