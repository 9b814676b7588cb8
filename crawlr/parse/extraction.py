"""Takes out of a page what the user asked for: by CSS selectors, XPath expressions, and a function of the user's own.

From: worker (a ParsedDocument). To: worker: JSON text, or what went wrong, in words. Runs in parse processes, under the
limits of a page: what hangs or eats memory is ended as a parser that does so is.

The function is not ours. Whatever it raises, or returns that is no JSON, is trouble of this page and is told as that;
only MemoryError goes on, to where that of a parser goes. What it prints goes nowhere.
"""

from __future__ import annotations

import contextlib
import io
import os
import traceback
from collections.abc import Callable
from types import TracebackType

from crawlr import extract_rules, json_text, selectors
from crawlr.extract_rules import ExtractRules
from crawlr.parse.parsed_document import ParsedDocument

__all__ = ["LIMIT", "Extractor"]

LIMIT = 256 * 1024
"""Bytes of a page's result as JSON."""
_ERROR_LIMIT = 500


class Extractor:
    """Selectors that are compiled, and a function that is imported. ValueError, ImportError, ... when it can't be."""

    def __init__(self, rules: ExtractRules) -> None:
        found = rules.function
        # Descriptor 2 says how a process ended: nothing of the function's may stand there. A handler of logging that
        # its module makes keeps the stderr that it finds.
        self._stderr = _Nowhere()
        with contextlib.redirect_stderr(self._stderr):
            self._function: Callable[[ParsedDocument], object] | None = (
                extract_rules.load(found) if isinstance(found, str) else found
            )
        self.has_function = self._function is not None
        self._selectors = [(name, selectors.css(text)) for name, text in rules.css]
        self._selectors += [(name, selectors.xpath(text)) for name, text in rules.xpath]

    def run(self, document: ParsedDocument) -> tuple[str | None, str | None]:
        """(the result as JSON, what went wrong): one of them at most; neither when the function returned None."""
        try:
            value = self._value(document)
            return (None if value is None else json_text.dumps(value, most=LIMIT)), None
        except MemoryError:
            raise
        except BaseException as error:  # noqa: BLE001  # the outermost frame of what is not ours: SystemExit, too
            return None, _in_words(error)

    def _value(self, document: ParsedDocument) -> object:
        selected = self._select(document) if self._selectors else None
        if self._function is None:
            return selected
        process = os.getpid()
        try:
            with contextlib.redirect_stderr(self._stderr):
                result = self._function(document)
        finally:
            if os.getpid() != process:
                os._exit(0)  # a child that the function forked came back, or left by sys.exit: it is no parser
        if selected is None:
            return result
        if result is None:
            return selected
        if not isinstance(result, dict):
            raise TypeError(
                f"the function returned {type(result).__name__}; beside --extract-css and --extract-xpath it has to be"
                " a dict"
            )
        return selected | result

    def _select(self, document: ParsedDocument) -> dict[str, list[str]]:
        size = 0
        found: dict[str, list[str]] = {}
        for name, texts in self._selectors:
            values = found[name] = []
            for text in texts(document.tree):
                size += len(text) + 3
                if size > LIMIT:
                    raise ValueError(f"{name}: the texts that were found are more than {LIMIT:,} bytes as JSON")
                values.append(text)
        return found


class _Nowhere(io.TextIOBase):
    def write(self, text: str) -> int:
        return len(text)


def _in_words(error: BaseException) -> str:
    """`ValueError: no price (shop.py, line 12)`: the place is the last one in the function's own file."""
    try:
        said = str(error)
    except BaseException:  # noqa: BLE001  # its own __str__ is the user's, too
        said = ""
    words = type(error).__name__ + (f": {said}" if said else "")
    place = _place(error.__traceback__)
    return (words[: _ERROR_LIMIT - len(place)] + place).encode("utf-8", "replace").decode()


def _place(trace: TracebackType | None) -> str:
    """Where the user's function failed; empty when it is our own code that did."""
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(trace)]
    if len(frames) < 3 or frames[1][0] is not Extractor._value.__code__ or frames[2][0].co_filename == __file__:
        return ""
    path = frames[2][0].co_filename
    line = next(line for code, line in reversed(frames) if code.co_filename == path)
    return f" ({os.path.basename(path)}, line {line})"
