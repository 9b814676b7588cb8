"""What was asked for, from everywhere: the command line, then CRAWLR_* variables, then crawlr.toml; and where it was.

From: cli (words as the grammar read them), the environment, config_file. To: cli, which makes Options of it, tells with
-v where each value is from, and adds that to an error. Main thread.

A value of a higher place replaces one of a lower place whole: an --exclude on the command line means that those of the
file do not count. URLs and --input-file are one thing here: who gives either replaces both. Only the value that counts
is read, so only it can be wrong.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from crawlr.config_file import FOUND, NAMES, URLS, nearest, read_file
from crawlr.errors import CrawlrError, OptionsError, StateError
from crawlr.option_reading import mask_userinfo
from crawlr.option_row import Row
from crawlr.option_table import SCREEN
from crawlr.options import Options

__all__ = ["COMMAND_LINE", "NAMES", "NOT_OF_A_CRAWL", "URLS", "Asked", "gather", "placed", "told"]

COMMAND_LINE = "command line"
_PREFIX = "CRAWLR_"
_NOT_OPTIONS = {"CRAWLR_CONFIG", "CRAWLR_NO_CONFIG", "CRAWLR_FAILPOINT"}
"""Variables that are read elsewhere."""
_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
_SCREEN = {row.name for row in SCREEN.rows}
NOT_OF_A_CRAWL = {URLS, *_SCREEN}
"""Names that Options does not have."""


class Asked(Struct, frozen=True, kw_only=True):
    """The values that count, as they were given. Made by gather, read by cli."""

    values: dict[str, object]
    """By name of Options; `urls` and `input_file` beside. Unread, so that an error is made in one place."""
    origins: dict[str, str]
    """Where each of them was said: "command line", "CRAWLR_RPS", "rps in crawlr.toml". What is absent is a default."""
    file: str | None
    """The file that was read."""
    notes: tuple[str, ...] = ()
    """Variables that look like a misspelt option."""
    others: tuple[str, ...] = ()
    """Variables that begin like ours and are none."""


def gather(given: Mapping[str, object], environ: Mapping[str, str]) -> Asked:
    """What counts, of the words (by name of Options, `seeds` for URLs), the variables and the file.

    Takes `config` and `no_config` from the words. OptionsError for a file or a variable that cannot be understood.
    """
    words = dict(given)
    path, is_named = _file(words, environ)
    in_file = read_file(path, is_named=is_named) if path else {}
    layers = [
        _sets(in_file, {name: f"{_key(name)} in {path}" for name in in_file}),
        _sets(_variables(environ), {name: _variable(name) for name in NAMES}),
        {
            (URLS if name == "seeds" else name): (value, COMMAND_LINE)
            for name, value in words.items()
            if value or name != "seeds"
        },
    ]
    found: dict[str, tuple[object, str]] = {}
    for layer in layers:
        if URLS in layer or "input_file" in layer:
            found = {name: each for name, each in found.items() if name not in (URLS, "input_file")}
        found |= layer
    if path and not is_named:
        _check_secrets(path, found)
    unknown = [name for name in environ if name.startswith(_PREFIX) and not _is_known(name)]
    near = {name: nearest(name.removeprefix(_PREFIX).lower(), is_key=False) for name in sorted(unknown)}
    return Asked(
        values={
            name: value if origin == COMMAND_LINE else _checked(name, value, origin)
            for name, (value, origin) in found.items()
        },
        origins={name: origin for name, (_, origin) in found.items()},
        file=path,
        notes=tuple(f"{name}: there is no such variable{near}" for name, near in near.items() if near),
        others=tuple(name for name, near in near.items() if not near),
    )


def told(asked: Asked, options: Options) -> Iterator[str]:
    """Lines about every value that counts and where it was said; secrets are masked."""
    if asked.file is not None:
        yield f"file {os.path.abspath(asked.file)}"
    for name in asked.others:
        yield f"variable {name} is none of crawlr's"
    values: dict[str, object] = {
        URLS: [mask_userinfo(seed) for seed in options.seeds],
        **options.effective(),
        **{name: asked.values.get(name, False) for name in sorted(_SCREEN)},
    }
    origins = {URLS: asked.origins.get("input_file")} | asked.origins
    defaults = Options().effective()
    for name, value in values.items():
        origin = origins.get(name)
        if origin is None:
            origin = "default" if value == defaults.get(name, value) else "follows from other options"
        yield f"{name}={json.dumps(value, ensure_ascii=False)} ({origin})"


def placed(error: OptionsError | StateError, asked: Asked) -> CrawlrError:
    """The error with where those options were said that it is about, when that was not on the command line.

    It is about what it names, as --option, URL or seeds, before it goes on to what is accepted.
    """
    about = re.split(r"; accepted|\baccepted with\b", str(error))[0]
    names = [flag.replace("-", "_") for flag in re.findall(r"--([a-z][a-z-]*[a-z])", about)]
    names += [URLS] * bool(re.search(r"^URL:|\bseeds\b", about))
    where = {name: asked.origins.get(_sets_of(name), COMMAND_LINE) for name in dict.fromkeys(names)}
    said = [f"{_shown(name)} is given by {place}" for name, place in where.items() if place != COMMAND_LINE]
    return type(error)(f"{error}; {', '.join(said)}" if said else str(error))


def _file(words: dict[str, object], environ: Mapping[str, str]) -> tuple[str | None, bool]:
    """The file to read, if any, and whether the user named it."""
    named, none = words.pop("config", None), words.pop("no_config", None)
    if named is not None and none:
        raise OptionsError("--config and --no-config exclude each other: read that file, or none")
    if none:
        return None, False
    if named is None:
        if none is None and _word("CRAWLR_NO_CONFIG", environ.get("CRAWLR_NO_CONFIG") or "0"):
            return None, False
        named = environ.get("CRAWLR_CONFIG") or None
    if named is not None:
        if not str(named) or "\0" in str(named):
            raise OptionsError(f"--config: {named!r} is not accepted; accepted: a file of options in TOML")
        return str(named), True
    return (FOUND, False) if os.path.lexists(FOUND) else (None, False)


def _variables(environ: Mapping[str, str]) -> dict[str, object]:
    """The values of variables, by name; an empty one is none."""
    found: dict[str, object] = {}
    for name, row in NAMES.items():
        text = environ.get(_variable(name))
        if not text:
            continue
        if row is None or (row.is_repeatable and not row.is_switch):
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            found[name] = lines or text
        elif row.is_switch and not row.is_repeatable:
            found[name] = _word(_variable(name), text)
        else:
            found[name] = text
    return found


def _word(variable: str, text: str) -> bool:
    if text.lower() not in _WORDS:
        raise OptionsError(f"{variable}: {text!r} is not accepted; accepted: 1, true, yes or on; 0, false, no or off")
    return _WORDS[text.lower()]


def _sets(values: Mapping[str, object], origins: Mapping[str, str]) -> dict[str, tuple[object, str]]:
    """What the values of one place set, by name of Options; switches are put in terms of what they stand for."""
    found: dict[str, tuple[object, str]] = {}
    for name, value in values.items():
        row, origin = NAMES[name], origins[name]
        meant = value if row is None or row.stands_for is None else _meant(row, value, origin)
        if meant is None:
            continue
        target = _sets_of(name)
        if target in found:
            raise OptionsError(f"{origin} and {found[target][1]} exclude each other; accepted: one of them")
        found[target] = meant, origin
    return found


def _meant(row: Row, value: object, origin: str) -> object:
    """What a switch that is another spelling sets; None: nothing."""
    assert row.stands_for is not None
    if not isinstance(value, bool):
        raise OptionsError(f"{row.flag}: {value!r} is not accepted; accepted: true or false; given by {origin}")
    on = row.stands_for[1]
    if value:
        return on
    return not on if isinstance(on, bool) else None


def _checked(name: str, value: object, origin: str) -> object:
    """The value of a file or a variable, read where Options does not read it, or must not show it."""
    row = NAMES.get(name)
    if row is None:
        return value
    try:
        if name in _SCREEN:
            return row.kind.read(int(value) if row.is_repeatable and isinstance(value, bool) else value)
        if row.is_secret and not str(value).startswith("@"):  # the path of a secret is none
            row.kind.read(value)
    except ValueError as error:
        shown = "its value (not shown)" if row.is_secret else repr(value)
        raise OptionsError(f"{origin}: {shown} is not accepted; accepted: {row.kind.accepted}") from error
    return value


def _check_secrets(path: str, found: Mapping[str, tuple[object, str]]) -> None:
    """A folder that somebody else made must not get the secrets of the environment by naming the URLs."""
    if not any(found.get(name, (None, ""))[1].endswith(f" in {path}") for name in (URLS, "input_file")):
        return
    for name, (_, origin) in found.items():
        row = NAMES.get(name)
        if row is not None and row.is_secret and origin.startswith(_PREFIX):
            raise OptionsError(
                f"{origin}: is not sent to the URLs of a file that was merely found here; accepted: --config {path}, "
                "or a URL on the command line"
            )


def _is_known(variable: str) -> bool:
    name = variable.removeprefix(_PREFIX)
    return variable in _NOT_OPTIONS or (name.isupper() and name.lower() in NAMES)


def _variable(name: str) -> str:
    return _PREFIX + name.upper()


def _key(name: str) -> str:
    return name.replace("_", "-")


def _sets_of(name: str) -> str:
    row = NAMES.get(name)
    return row.sets if row is not None else name


def _shown(name: str) -> str:
    return "URL" if name == URLS else f"--{_key(name)}"
