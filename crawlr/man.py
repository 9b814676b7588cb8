"""The manual page, crawlr(1), in the macros of man(7). Made of commands, the table of options and the texts of help.

From: grammar, help_texts. To: cli (--man), as lines. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from crawlr import __version__, help_texts
from crawlr.grammar import COMMANDS
from crawlr.option_row import Group, Row

__all__ = ["lines"]


def lines() -> Iterator[str]:
    """The page, line by line."""
    crawl = COMMANDS[""]
    yield f'.TH CRAWLR 1 "" "crawlr {__version__}" "User Commands"'
    yield ".SH NAME"
    yield f"crawlr \\- {_text(crawl.summary)}"
    yield ".SH SYNOPSIS"
    yield ".nf"
    for line in crawl.usage.splitlines():
        yield _line(line.strip())
    yield ".fi"
    yield ".SH DESCRIPTION"
    yield from _paragraph(crawl.description)
    for text in (help_texts.FORMATS, help_texts.VALUES, help_texts.ELSEWHERE):
        yield ".PP"
        yield from _paragraph(text)
    yield ".SH OPTIONS"
    yield from _options(crawl.groups)
    yield ".SH COMMANDS"
    for verb, command in COMMANDS.items():
        if verb:
            yield f".SS {_text(command.usage)}"
            yield from _paragraph(command.description)
            yield from _options(command.groups[:-1], has_titles=False)
    for title, table in (
        ("EXIT STATUS", help_texts.EXIT_STATUS),
        ("FILES", help_texts.FILES),
        ("ENVIRONMENT", help_texts.ENVIRONMENT),
        ("EXAMPLES", help_texts.EXAMPLES),
    ):
        yield f".SH {title}"
        for term, meaning in table:
            yield ".TP"
            yield f".B {_text(term)}"
            yield _line(meaning)


def _options(groups: Iterable[Group], *, has_titles: bool = True) -> Iterator[str]:
    for group in groups:
        if has_titles:
            yield f".SS {_text(group.title.capitalize())}"
        for row in group.rows:
            yield ".TP"
            yield _spelling(row)
            yield _line(row.help)


def _spelling(row: Row) -> str:
    flags = ", ".join(f"\\fB{_text(flag)}\\fR" for flag in row.flags)
    return flags if row.metavar is None else f"{flags} \\fI{_text(row.metavar)}\\fR"


def _paragraph(text: str) -> Iterator[str]:
    return map(_line, text.splitlines())


def _line(text: str) -> str:
    """A line of text: what begins like a request of roff does not become one."""
    shown = _text(text)
    return f"\\&{shown}" if shown.startswith((".", "'", "\\(aq")) else shown


def _text(text: str) -> str:
    r"""Text as roff prints it unchanged: a hyphen that can be copied, no escapes, straight quotes."""
    for given, escaped in (("\\", "\\e"), ("-", "\\-"), ("'", "\\(aq"), ("^", "\\(ha"), ("~", "\\(ti"), ("`", "\\(ga")):
        text = text.replace(given, escaped)
    return text
