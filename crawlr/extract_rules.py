"""What a crawl takes out of each page beside its links: `--extract`, `--extract-css`, `--extract-xpath`, read and
checked.

From: options (values as given). To: options, and parse processes (ExtractRules, pickled). A function is imported here,
in the main process, before the crawl begins, so that what can't be had is told at once. Readers raise ValueError, whose
message says why; options adds the option and what is accepted.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from crawlr import selectors

__all__ = ["ExtractRules", "Function", "css", "function", "load", "name_of", "xpath"]

Function = str | Callable[..., object]
"""`module:function`, or the function itself, which pickles."""
_NAME = re.compile(r"\w[\w .:-]{0,99}")


class ExtractRules(Struct, frozen=True, kw_only=True):
    """What is taken out of each page. Made by options, read by parse.extraction in parse processes."""

    function: Function | None = None
    css: tuple[tuple[str, str], ...] = ()
    """(name, selector)"""
    xpath: tuple[tuple[str, str], ...] = ()
    """(name, expression)"""


def function(given: object) -> Function:
    """`module:function`, or a callable that parser processes can have: by that name, if it has one, else pickled."""
    if isinstance(given, str):
        _check_signature(load(given))
        return given
    if not callable(given):
        raise ValueError
    _check_signature(given)
    if _is_found_by(name_of(given), given):
        return name_of(given) or ""
    import pickle  # for this alone: no crawl from the command line needs it

    try:
        pickled = pickle.dumps(given)
    except Exception as error:
        raise ValueError(
            "it can't be sent to parser processes, as lambdas and functions inside functions can't: "
            + str(error).splitlines()[0]
        ) from error
    if b"__main__" in pickled:
        raise ValueError(_OF_MAIN)
    return given


_OF_MAIN = "it is of the script itself, which parser processes do not run; put it into a module beside the script"


def load(path: str) -> Callable[..., object]:
    """The function that `module:function` names. ValueError when there is none."""
    module_name, colon, names = path.partition(":")
    if not colon or not all(part.isidentifier() for part in (*module_name.split("."), *names.split("."))):
        raise ValueError
    if module_name == "__main__":
        raise ValueError(_OF_MAIN)
    try:
        found: object = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise ValueError(f"importing {module_name} failed: {type(error).__name__}: {error}") from error
    for name in names.split("."):
        try:
            found = getattr(found, name)
        except AttributeError as error:
            raise ValueError(str(error)) from error
    if not callable(found):
        raise ValueError(f"{names} is no function")
    return found


def name_of(given: Function | None) -> str | None:
    """What a function is called in sitemap.json and in a state: `module:function`."""
    if given is None or isinstance(given, str):
        return given
    named = given if hasattr(given, "__qualname__") else type(given)
    return f"{named.__module__}:{named.__qualname__}"


def _is_found_by(name: str | None, given: object) -> bool:
    module_name, _, names = (name or "").partition(":")
    found: object = sys.modules.get(module_name)
    for each in names.split("."):
        found = getattr(found, each, None)
    return found is given and module_name != "__main__"


def css(given: object) -> tuple[tuple[str, str], ...]:
    """(name, CSS selector) of each: from `NAME=SELECTOR` texts, from pairs, or from a mapping."""
    return _pairs(given, selectors.css)


def xpath(given: object) -> tuple[tuple[str, str], ...]:
    """(name, XPath expression), likewise."""
    return _pairs(given, selectors.xpath)


def _check_signature(found: Callable[..., object]) -> None:
    import inspect  # takes 5 ms, and most crawls have no function

    if inspect.iscoroutinefunction(found):
        raise ValueError("it is async, and nobody awaits it")
    try:
        signature = inspect.signature(found)
    except ValueError:  # of a builtin
        return
    try:
        signature.bind(None)
    except TypeError as error:
        raise ValueError(f"it does not take a ParsedDocument alone: {error}") from error


def _pairs(given: object, compile_: Callable[[str], object]) -> tuple[tuple[str, str], ...]:
    if isinstance(given, str):
        given = [given]
    items = given.items() if isinstance(given, Mapping) else given
    if not isinstance(items, Iterable) or isinstance(items, (bytes, bytearray)):
        raise ValueError
    found: dict[str, str] = {}
    for item in items:
        if isinstance(item, str) and "=" not in item:
            raise ValueError(f"{item!r} has no NAME= before it")
        pair = item.partition("=")[::2] if isinstance(item, str) else item
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
            raise ValueError
        name, text = pair[0].strip(), pair[1].strip()
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name")
        if name in found:
            raise ValueError(f"{name!r} is named twice")
        try:
            compile_(text)
        except ValueError as error:
            raise ValueError(f"{text!r}: {error}") from error
        found[name] = text
    return tuple(found.items())
