"""Reads crawlr.toml: which keys it may have, and what a file may not say that was merely found in the current folder.

From: config. To: config, as values by key, typed as TOML has them; what they mean is decided where every value is read.
Main thread.

A file that nobody named may have come with a folder that somebody else made. It may say what to crawl and how; it may
not run code, name a proxy or switch off the check of certificates (rows that need trust), nor have files read or
written outside of its folder. With --config, or CRAWLR_CONFIG, it is the user's word, and all of that is accepted.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping

from crawlr.errors import OptionsError
from crawlr.option_row import Row, rows
from crawlr.option_table import CRAWL, SCREEN

__all__ = ["FOUND", "NAMES", "URLS", "nearest", "read_file"]

FOUND = "crawlr.toml"
"""The file that is read without being named."""
URLS = "urls"
"""The key for what stands on the command line as URL."""
NAMES: dict[str, Row | None] = {URLS: None} | {row.name: row for row in rows(*CRAWL, SCREEN)}
"""What a file and variables may set, in snake_case."""
_LARGEST = 1024 * 1024
"""Bytes: nobody writes more options than that, and /dev/zero has no end."""


def read_file(path: str, *, is_named: bool) -> dict[str, object]:
    """The values of a file by name (snake_case): numbers, booleans, texts and arrays of them; dates pass, too.

    `is_named`: the user named it, so it is trusted. OptionsError when it cannot be read, or says what it may not.
    """
    found = _parsed(path, _text_of(path, is_named=is_named))
    inner = found.pop("crawlr", {})
    if not isinstance(inner, Mapping):
        raise OptionsError(f"{path}: 'crawlr' is no option; accepted: a table [crawlr], or options without a table")
    values: dict[str, object] = {}
    for key, value in [*found.items(), *inner.items()]:
        name = key.replace("-", "_")
        row = NAMES.get(name)
        if isinstance(value, Mapping) and (row is None or not row.kind.is_table):
            raise OptionsError(f"{path}: {key!r} is a table; accepted: option = value, at the top or below [crawlr]")
        if name not in NAMES:
            raise OptionsError(f"{path}: {key!r} is no option{nearest(name, is_key=True)}")
        if name in values:
            raise OptionsError(f"{path}: {key!r} is given twice; accepted: each option once")
        if not is_named:
            _check_trust(path, name, value)
        values[name] = value
    return values


def nearest(name: str, *, is_key: bool) -> str:
    """What a misspelt name may mean, as the end of a message; "" when it is like none."""
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), NAMES, n=1, cutoff=0.7)
    if not near:
        return "; crawlr --help lists them, without their dashes" if is_key else ""
    return f"; did you mean {near[0].replace('_', '-') if is_key else 'CRAWLR_' + near[0].upper()}?"


def _text_of(path: str, *, is_named: bool) -> str:
    accepted = "a file of options in TOML" if is_named else "a file of options in TOML, or --no-config"
    try:
        if not is_named and not stat.S_ISREG(os.stat(path).st_mode):
            raise OptionsError(f"{path}: is no regular file; accepted: {accepted}")
        with open(path, "rb") as file:
            content = file.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise OptionsError(f"{path}: is larger than 1 MiB; accepted: {accepted}")
        return content.decode("utf-8-sig")
    except OSError as error:
        raise OptionsError(f"{path}: cannot be read ({error.strerror or error}); accepted: {accepted}") from error
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise OptionsError(f"{path}: line {line} is not UTF-8 text; accepted: {accepted}") from error


def _parsed(path: str, text: str) -> dict[str, object]:
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, or a number with thousands of digits
        why = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "a value that is too long or too deep"
        raise OptionsError(f"{path}: is not TOML ({why}); accepted: lines such as depth = 3") from error


def _check_trust(path: str, name: str, value: object) -> None:
    row = NAMES[name]
    if row is None:
        return
    named = f"accepted in a file that you name: --config {path}"
    if row.needs_trust:
        raise OptionsError(f"{path}: {row.key!r} is not accepted from a file that was merely found here; {named}")
    for other in _paths(row, value):
        if not _is_below(other, os.curdir):
            raise OptionsError(
                f"{path}: {row.key}: {other!r} is outside of this folder, and this file was merely found here; {named}"
            )


def _paths(row: Row, value: object) -> Iterator[str]:
    """The paths in a value, whatever its type is; "-" is none."""
    for each in value if isinstance(value, list) else [value]:
        if not isinstance(each, str):
            continue
        if row.kind.is_path and each != "-":
            yield each
        elif row.name == "auth" and each.startswith("@"):
            yield each[1:]


def _is_below(path: str, folder: str) -> bool:
    """Whether the file is inside of the folder, wherever links lead."""
    place, inside = os.path.realpath(path.replace("\0", "")), os.path.realpath(folder)
    return os.path.commonpath([place, inside]) == inside
