"""Scripts that let a shell complete the words of `crawlr`: options, values, files. Made of the commands and the table.

From: grammar. To: cli (--completion), as the text of a script for bash, zsh or fish. Pure.

A library that reads parsers (shtab) was tried: it knows neither values with commas, nor bash's `--scope=d`, nor that a
verb of ours is one only as the first word.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from crawlr.grammar import COMMANDS, Command
from crawlr.option_reading import refusal
from crawlr.option_row import Row, rows
from crawlr.option_table import ABOUT

__all__ = ["lines"]

_VERBS = tuple(verb for verb in COMMANDS if verb)


def lines(shell: str) -> Iterator[str]:
    """The script for that shell. OptionsError when it is none of ours."""
    kind = next(row.kind for row in ABOUT.rows if row.name == "completion")
    if shell not in kind.words:
        raise refusal("completion", shell, "", kind)
    return _SCRIPTS[shell]()


# ---------------------------------------------------------------- bash


def _bash() -> Iterator[str]:
    yield "# Completion of crawlr for bash, made by `crawlr --completion bash`."
    yield "_crawlr() {"
    yield "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb=crawl words= list= flags="
    yield "    if [[ $cur == = ]]; then cur="  # bash parts --scope=d into three words
    yield "    elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi"
    yield f"    case ${{COMP_WORDS[1]}} in {'|'.join(_VERBS)}) (( COMP_CWORD > 1 )) && verb=${{COMP_WORDS[1]}};; esac"
    yield "    COMPREPLY=()"
    yield '    case "$verb $prev" in'
    for verb, command in COMMANDS.items():
        for row in _with_values(command):
            labels = "|".join(f"'{verb or 'crawl'} {flag}'" for flag in row.flags)
            yield f"        {labels}) {_bash_value(row)};;"
    yield "    esac"
    yield "    if [[ -n $list ]]; then"
    yield "        compopt -o nospace"
    yield '        COMPREPLY=($(compgen -W "$list" -P "${cur%"${cur##*,}"}" -- "${cur##*,}"))'
    yield '    elif [[ -n $words ]]; then COMPREPLY=($(compgen -W "$words" -- "$cur"))'
    yield "    elif [[ $cur == -* ]]; then"
    yield "        case $verb in"
    for verb, command in COMMANDS.items():
        flags = " ".join(flag for row in rows(*command.groups) for flag in row.flags)
        yield f"            {verb or 'crawl'}) flags={shlex.quote(flags)};;"
    yield "        esac"
    yield '        COMPREPLY=($(compgen -W "$flags" -- "$cur"))'
    yield f'    elif (( COMP_CWORD == 1 )); then COMPREPLY=($(compgen -W {shlex.quote(" ".join(_VERBS))} -- "$cur"))'
    yield f"    else case $verb in {'|'.join(_verbs_with_files())}) compopt -o default;; esac"
    yield "    fi"
    yield "}"
    yield "complete -F _crawlr crawlr"


def _bash_value(row: Row) -> str:
    if row.kind.is_path:
        return "compopt -o default; return"  # readline knows files best
    if row.kind.words:
        return f"{'list' if row.kind.is_list else 'words'}={shlex.quote(' '.join(row.kind.words))}"
    return "return"  # nobody can guess it


# ---------------------------------------------------------------- zsh


def _zsh() -> Iterator[str]:
    yield "#compdef crawlr"
    yield "# Completion of crawlr for zsh, made by `crawlr --completion zsh`."
    yield "_crawlr() {"
    yield "  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then"
    yield "    local -a verbs=("
    for verb in _VERBS:
        yield f"      {shlex.quote(f'{verb}:{COMMANDS[verb].summary}')}"
    yield "    )"
    yield "    _describe command verbs"
    yield "    return"
    yield "  fi"
    yield "  local verb=crawl"
    yield f"  case $words[2] in ({'|'.join(_VERBS)}) verb=$words[2]; shift words; (( CURRENT-- ));; esac"
    yield "  case $verb in"
    for verb, command in COMMANDS.items():
        yield f"    ({verb or 'crawl'}) _arguments -s -S \\"
        for row in rows(*command.groups):
            yield f"      {_zsh_option(row)} \\"
        if command.operands:
            yield f"      '*:{command.operands[1]}:{'_files' if verb in _verbs_with_files() else '()'}' \\"
        yield "      ;;"
    yield "  esac"
    yield "}"
    yield 'if [[ $funcstack[1] == _crawlr ]]; then _crawlr "$@"; else compdef _crawlr crawlr; fi'


def _zsh_option(row: Row) -> str:
    value = ""
    if not row.is_switch:
        action = " "
        if row.kind.is_path:
            action = "_files"
        elif row.kind.is_list:
            action = f"_values -s , {row.metavar} {' '.join(row.kind.words)}"
        elif row.kind.words:
            action = f"({' '.join(row.kind.words)})"
        value = f":{_zsh_text((row.metavar or '').strip(chr(39)))}:{action}"
    marks = {True: ("", ""), False: ("+", "=")}[row.is_switch]
    flags = [flag + marks[flag.startswith("--")] for flag in row.flags]
    before = "*" if row.is_repeatable else f"({' '.join(row.flags)})"
    return " ".join(shlex.quote(f"{before}{flag}[{_zsh_text(row.help)}]{value}") for flag in flags)


def _zsh_text(text: str) -> str:
    return re.sub(r"([\\\[\]:])", r"\\\1", text)


# ---------------------------------------------------------------- fish


def _fish() -> Iterator[str]:
    yield "# Completion of crawlr for fish, made by `crawlr --completion fish`."
    yield "function __crawlr_is"
    yield "    set -l words (commandline -opc)"
    yield "    set -l verb crawl"
    yield f'    contains -- "$words[2]" {" ".join(_VERBS)}; and set verb $words[2]'
    yield "    test $verb = $argv[1]"
    yield "end"
    yield "complete -c crawlr -f"
    for verb in _VERBS:
        yield f"complete -c crawlr -n __fish_is_first_token -a {verb} -d {_fish_text(COMMANDS[verb].summary)}"
    for verb, command in COMMANDS.items():
        where = f"complete -c crawlr -n '__crawlr_is {verb or 'crawl'}'"
        for row in rows(*command.groups):
            names = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in row.flags)
            yield f"{where} {names}{_fish_value(row)} -d {_fish_text(row.help)}"
        if verb in _verbs_with_files():
            yield f"{where} -F"


def _fish_value(row: Row) -> str:
    if row.is_switch:
        return ""
    words = " ".join(row.kind.words)
    if row.kind.is_path:
        return " -r -F"
    if row.kind.is_list:
        return f" -x -a '(__fish_append , {words})'"
    return f" -x -a '{words}'" if words else " -x"


def _fish_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


# ----------------------------------------------------------------


def _with_values(command: Command) -> Iterator[Row]:
    return (row for row in rows(*command.groups) if not row.is_switch)


def _verbs_with_files() -> tuple[str, ...]:
    return tuple(verb for verb, command in COMMANDS.items() if command.operands and command.operands[1] == "FILE")


_SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
