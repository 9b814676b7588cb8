"""The grammar of the command line: which commands there are, and a parser for each, made of the table of options.

From: the words of the command. To: cli, as texts by name; option_reading reads the values. Pure.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from crawlr import __version__, help_texts
from crawlr.errors import OptionsError
from crawlr.option_row import Group, Row
from crawlr.option_table import ABOUT, CONFIG, CRAWL, DIFF, EXPORT, HELP, SCREEN, WHY

__all__ = ["COMMANDS", "Command", "build_parser", "parse"]


class Command(NamedTuple):
    """A command: the words after it, and what its help says."""

    summary: str
    """In a few words, for lists of commands."""
    usage: str
    description: str
    groups: tuple[Group, ...]
    operands: tuple[str, str] | None = None
    """What its words are: their name in the namespace, and their placeholder."""
    epilog: str | None = None


COMMANDS = {
    "": Command(
        "map a web site",
        "crawlr [OPTIONS] URL [URL ...]\n       crawlr export FILE -o FILE [-o FILE ...]\n"
        "       crawlr why URL [--in FILE]\n       crawlr diff OLD NEW [--fail-on GATES]\n       crawlr demo",
        help_texts.CRAWL,
        (*CRAWL, SCREEN, CONFIG, ABOUT),
        ("seeds", "URL"),
        help_texts.epilog(),
    ),
    "demo": Command(
        "see it work on a small site of its own", "crawlr demo [OPTIONS]", help_texts.DEMO, (SCREEN, CONFIG, HELP)
    ),
    "export": Command(
        "make further outputs of a crawl",
        "crawlr export FILE -o FILE [-o FILE ...] [OPTIONS]",
        help_texts.EXPORT,
        (*EXPORT, HELP),
        ("file", "FILE"),
    ),
    "why": Command(
        "explain one URL of a crawl", "crawlr why URL [--in FILE] [--json]", help_texts.WHY, (WHY, HELP), ("url", "URL")
    ),
    "diff": Command(
        "tell what changed between two crawls",
        "crawlr diff OLD NEW [OPTIONS]",
        help_texts.DIFF,
        (DIFF, HELP),
        ("file", "FILE"),
    ),
}
"""By their verb; "" is a crawl."""


_ELSEWHERE = {
    "--threads": "--concurrency",
    "--workers": "--concurrency",
    "--jobs": "--concurrency",
    "--parallel": "--concurrency",
    "--delay": "--rps",
    "--wait": "--rps",
    "--rate-limit": "--rps",
    "--level": "--depth",
    "--limit": "--max-pages",
    "--output": "--out",
    "--input": "--input-file",
    "--ignore-robots": "--no-robots",
    "--silent": "--quiet",
    "--debug": "--verbose",
    "--continue": "--resume",
    "-V": "--version",
    "-j": "--concurrency",
}
"""What other crawlers and clients call it."""


def parse(verb: str, words: Sequence[str]) -> dict[str, Any]:
    """What the words after a verb say, by name: texts, lists of texts, True or False. OptionsError for a mistake."""
    parser = build_parser(verb)
    for word in words:
        if word == "--":
            break
        if re.fullmatch(r"-[a-z][a-z-]+", word) and f"-{word}" in parser._option_string_actions:
            raise OptionsError(f"{word}: there is no such option; did you mean -{word}?")  # not -d with the value epth
    return vars(parser.parse_intermixed_args(words))


def build_parser(verb: str = "") -> argparse.ArgumentParser:
    """The parser of that command. Values stay text, options not given are absent: option_reading reads them."""
    command = COMMANDS[verb]
    parser = _Parser(
        prog=f"crawlr {verb}".rstrip(),
        usage=command.usage,
        description=command.description,
        epilog=command.epilog,
        formatter_class=_Layout,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
        add_help=False,
    )
    if command.operands:
        name, metavar = command.operands
        parser.add_argument(name, nargs="*", metavar=metavar, help=argparse.SUPPRESS)
    for group in command.groups:
        to = parser.add_argument_group(group.title)
        for row in group.rows:
            parser.add_row(to, row)
    return parser


class _Parser(argparse.ArgumentParser):
    """argparse with errors of one line that say what is accepted, raised as OptionsError."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._rows: dict[str, Row] = {}

    def add_row(self, group: argparse._ArgumentGroup, row: Row) -> None:
        """Makes the option of the table one of this parser."""
        self._rows |= dict.fromkeys(row.flags, row)
        if row.name == "version":
            group.add_argument(*row.flags, action="version", version=f"crawlr {__version__}", help=row.help)
        elif row.name == "help":
            group.add_argument(*row.flags, action="help", help=row.help)
        elif not row.is_switch:
            action = "append" if row.is_repeatable else "store"
            group.add_argument(*row.flags, dest=row.name, action=action, metavar=row.metavar, help=row.help)
        elif row.is_repeatable:
            group.add_argument(*row.flags, dest=row.name, action="count", help=row.help)
        else:
            name, value = row.stands_for or (row.name, True)
            group.add_argument(*row.flags, dest=name, action="store_const", const=value, help=row.help)
            if isinstance(value, bool):  # "--resume=no" unsays what a file or a variable says
                off, hidden = f"{row.flag}=no", argparse.SUPPRESS
                group.add_argument(off, dest=name, action="store_const", const=not value, help=hidden)

    def error(self, message: str) -> NoReturn:
        raise OptionsError(self._explained(message))

    def _explained(self, message: str) -> str:
        if found := re.match(r"argument (?:\S+/)?(-\S+?): expected .*argument", message):
            return f"{found[1]}: a value is missing; accepted: {self._rows[found[1]].kind.accepted}"
        if found := re.match(r"argument (?:\S+/)?(-\S+?): ignored explicit argument (.*)", message):
            return f"{found[1]}: takes no value, {found[2]} is given; accepted: {found[1]}, or {found[1]}=no"
        if message.startswith("unrecognized arguments: "):
            return self._unknown(message.removeprefix("unrecognized arguments: ").split())
        return message

    def _unknown(self, words: Sequence[str]) -> str:
        from difflib import get_close_matches

        unknown = next((word for word in words if word.startswith("-")), words[0]).partition("=")[0]
        if not unknown.startswith("-"):
            return f"{unknown}: is not expected here; see {self.prog} --help"
        known = {flag.lstrip("-"): flag for flag in self._rows if flag.startswith("--")}
        near = [known[name] for name in get_close_matches(unknown.lstrip("-"), known, n=1, cutoff=0.7)]
        if _ELSEWHERE.get(unknown) in self._rows:
            near = [_ELSEWHERE[unknown]]
        return f"{unknown}: there is no such option" + (
            f"; did you mean {near[0]}?" if near else f"; {self.prog} --help lists them"
        )


class _Layout(argparse.RawDescriptionHelpFormatter):
    """`-d, --depth N` on every Python; before 3.13 argparse writes `-d N, --depth N`."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        return f"{', '.join(action.option_strings)} {action.metavar}"
