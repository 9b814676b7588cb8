"""Reads values by the table of options, and says what is wrong with one in the same words everywhere.

From: options.Options.make; cli, for the verbs that have options of their own. To: the same. Looks at files that options
name, changes nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from crawlr import option_values
from crawlr.errors import OptionsError
from crawlr.formats import Columns, Format, Output, check_columns, outputs_of
from crawlr.gate_rules import Gate, read_gates
from crawlr.option_row import Kind, rows
from crawlr.option_table import CRAWL, DIFF

__all__ = [
    "MASK",
    "SEED",
    "accepted",
    "check_junit",
    "check_name",
    "check_outputs",
    "check_writable",
    "mask_userinfo",
    "read_diff_gates",
    "read_outputs",
    "read_report",
    "read_seeds",
    "read_value",
    "refusal",
]

_KINDS = {row.name: row.kind for row in rows(*CRAWL)}
_KINDS["robots"] = _KINDS["no_robots"]  # as Options, and so Python, has it
_KINDS_OF_DIFF = {row.name: row.kind for row in DIFF.rows}
MASK = "***"
"""Stands for a secret wherever values are shown."""
SEED = Kind("the address of an http or https page, such as https://example.com", option_values.seed)
"""What stands where the command line has URL."""


def accepted(name: str) -> str:
    """What the option of that name (snake_case) accepts, in a few words, for error messages."""
    return _KINDS[name].accepted


def check_name(name: str) -> None:
    """OptionsError when no option of a crawl has that name (snake_case)."""
    if name not in _KINDS:
        from difflib import get_close_matches

        near = get_close_matches(name, _KINDS, n=1)
        raise OptionsError(f"{name}: there is no such option" + (f"; did you mean {near[0]}?" if near else ""))


def read_value(name: str, given: object) -> object:
    """The checked value of the option of that name (snake_case). OptionsError when it is not accepted."""
    if name == "auth" and isinstance(given, str) and given.startswith("@"):
        return _auth_in(given)
    try:
        return _KINDS[name].read(given)
    except ValueError as error:
        raise refusal(name, given, str(error)) from error


def _auth_in(given: str) -> object:
    """The secret in a file. Its content is not shown, whatever is wrong with it."""
    try:
        return option_values.auth(option_values.secret_in(given[1:]))
    except OSError as error:
        raise refusal("auth", given, error.strerror or str(error)) from error
    except ValueError as error:
        raise refusal("auth", given, "its first line is not USER:PASS") from error


def read_seeds(given: object, files: tuple[str, ...]) -> tuple[str, ...]:
    """The seeds of the command line or a caller, then those of the files, each with a scheme."""
    listed: list[object] = []
    for path in files:
        try:
            listed += option_values.seeds_in(path)
        except OSError as error:
            raise refusal("input_file", path, error.strerror or str(error)) from error
        except UnicodeDecodeError as error:
            raise refusal("input_file", path, "it is not UTF-8 text") from error
    if not isinstance(given, Iterable):
        raise refusal("URL", given, "", SEED)
    found = []
    for each in [*([given] if isinstance(given, str) else given), *listed]:
        try:
            found.append(option_values.seed(each))
        except ValueError as error:
            raise refusal("URL", each, str(error), SEED) from error
    return tuple(found)


def read_outputs(
    out: object,
    *,
    format: object = None,  # noqa: A002  # the option
    columns: object = None,
) -> tuple[tuple[Output, ...], Columns]:
    """What an export is to write: the three options, read and checked as those of a crawl."""
    wanted = outputs_of(
        option_values.names(read_value("out", out)),
        format=None if format is None else str(read_value("format", format)),
    )
    names = Columns.NATIVE if columns is None else Columns(str(read_value("columns", columns)))
    check_outputs(wanted, names)
    return wanted, names


def read_report(given: object) -> str | None:
    """The file for the report of a diff, checked as an output of a crawl is."""
    if given is None:
        return None
    path, kind = str(given), _KINDS_OF_DIFF["report"]
    if not path or path == "-":
        raise refusal("report", given, "", kind)
    check_writable("report", path, kind)
    outputs_of((path,), format=Format.HTML)  # the package that it needs may be missing
    return path


def read_diff_gates(fail_on: object, *, junit: object = None) -> tuple[tuple[Gate, ...], str | None]:
    """The gates of a diff and the file for them: both options, read and checked as those of a crawl."""
    try:
        gates = read_gates(fail_on, is_diff=True) if fail_on else ()
    except ValueError as error:
        raise refusal("fail_on", fail_on, str(error), _KINDS_OF_DIFF["fail_on"]) from error
    path = None if junit is None else str(read_value("junit", junit))
    check_junit(path, has_gates=bool(gates))
    return gates, path


def check_outputs(outputs: tuple[Output, ...], columns: Columns) -> None:
    """OptionsError when one of them cannot be written, or columns are named and none has any."""
    for each in outputs:
        if each.path != "-":
            check_writable("out", each.path)
    check_columns(outputs, columns)


def check_junit(path: str | None, *, has_gates: bool) -> None:
    """OptionsError for a file of gates without gates, and for one that cannot be written."""
    if path is None:
        return
    if not has_gates:
        raise OptionsError("--junit: nothing is asked that could fail; accepted with --fail-on")
    if path == "-":
        raise refusal("junit", "-", "standard output is for people")
    check_writable("junit", path)


def check_writable(name: str, path: str, kind: Kind | None = None) -> None:
    """OptionsError, for the option of that name, when no file can be made at that path."""
    folder = os.path.dirname(path) or os.curdir
    if os.path.isdir(path):
        raise refusal(name, path, "it is a folder", kind)
    if not os.path.isdir(folder):
        raise refusal(name, path, f"there is no folder {folder!r}", kind)


def mask_userinfo(text: str) -> str:
    """The text with what stands before the @ in URLs masked."""
    return re.sub(r"(?<=://)[^/?#]*@", f"{MASK}@", text)


def refusal(name: str, given: object, why: str, kind: Kind | None = None) -> OptionsError:
    """The error that names the option, the value and what is accepted. A password in a URL is not shown."""
    kind = kind or _KINDS[name]
    option = name if name == "URL" else f"--{name.replace('_', '-')}"
    shown = mask_userinfo(repr(given))
    shown = shown if len(shown) <= 120 else shown[:119] + "…"
    return OptionsError(f"{option}: {shown} is not accepted{f' ({why})' if why else ''}; accepted: {kind.accepted}")
