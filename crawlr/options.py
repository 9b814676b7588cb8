"""Every option of a crawl with its default, checked once: nothing behind this module meets a bad value.

From: cli or crawlr.crawl(), by Options.make. To: everything. Looks at files that options name, changes nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from crawlr import __version__, option_values
from crawlr.errors import OptionsError
from crawlr.formats import Columns, Format, Output, check_columns, outputs_of
from crawlr.gate_rules import ACCEPTED, ACCEPTED_BY_DIFF, Gate, read_gates
from crawlr.option_values import DAY, KIB, LINK_KINDS, MIB, Reader

__all__ = [
    "DEFAULT_FOLLOW",
    "KIB",
    "MIB",
    "PROJECT_URL",
    "Options",
    "accepted",
    "read_diff_gates",
    "read_outputs",
    "read_report",
]

PROJECT_URL = "https://crawlr.example/bot"
DEFAULT_FOLLOW = ("a", "area", "iframe", "frame", "refresh")
_MASK = "***"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The effective values of one crawl. Durations in seconds, sizes in bytes, None = no limit."""

    seeds: tuple[str, ...] = field(default=(), repr=False)
    """With a scheme, else as the user gave them; resolved by the coordinator. Not in the repr: may hold a password."""
    depth: int | None = None
    max_pages: int | None = None
    max_time: float | None = None
    scope: str = "host"
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    concurrency: int = 20
    per_host: int | None = None
    """None: as concurrency (make puts the number)."""
    rps: float = 5.0
    robots: bool = True
    max_crawl_delay: float = 30.0
    user_agent: str = f"crawlr/{__version__} (+{PROJECT_URL})"
    timeout: float = 30.0
    connect_timeout: float = 5.0
    retries: int = 2
    max_redirects: int = 10
    max_body: int = 32 * MIB
    header: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    cookie: str | None = field(default=None, repr=False)
    auth: str | None = field(default=None, repr=False)
    proxy: str | None = field(default=None, repr=False)
    """A proxy's URL, or "env"."""
    insecure: bool = False
    ca_bundle: str | None = None
    block_private: bool = False
    sitemaps: bool = False
    keep_params: bool = False
    ignore_param: tuple[str, ...] = ()
    parse_procs: int | None = None
    """None: auto."""
    parse_timeout: float = 10.0
    parse_memory: int = 1024 * MIB
    fetcher: str = "urllib3"
    parser: str = "lxml"
    follow: tuple[str, ...] = DEFAULT_FOLLOW
    nofollow: str | None = None
    """page, all or ignore; None: page, or ignore without robots (make puts the word)."""
    edges: str = "in-scope"
    check_external: bool = False
    out: tuple[str, ...] = ("sitemap.json",)
    """Paths, "-" for stdout; none: nothing is written (crawlr.crawl)."""
    format: str | None = None
    """Of every output; None: by the endings of their names."""
    columns: str = Columns.NATIVE.value
    resume: bool = False
    fresh: bool = False
    durable: bool = False
    stats: str | None = None
    fail_on: tuple[str, ...] = ()
    """Gates as `gates` reads them."""
    junit: str | None = None

    @property
    def gates(self) -> tuple[Gate, ...]:
        """What makes the crawl fail, in order."""
        return read_gates(self.fail_on) if self.fail_on else ()

    @property
    def agent(self) -> str:
        """The product token of the user agent: the name by which robots.txt and robots meta elements know us."""
        return re.split(r"[/\s]", self.user_agent, maxsplit=1)[0]

    @property
    def outputs(self) -> tuple[Output, ...]:
        """What is to be written, in order."""
        return outputs_of(self.out, format=self.format)

    @property
    def state(self) -> str:
        """The path of the state: beside the first output that is a file; "" when it is to be a temporary file."""
        return next((f"{path}.crawl" for path in self.out if _is_file(path)), "")

    @classmethod
    def make(cls, seeds: str | Iterable[str] = (), **values: object) -> Options:
        """The checked options: seeds, and options as on the command line in snake_case, typed or as that text.

        `no_robots`, `same_host` and `input_file` are understood as the command line's switches are. None stands for the
        default, for no file with `out`. Raises OptionsError, which names the option, the value and what is accepted.
        """
        read: dict[str, Any] = {}
        for name, given in values.items():
            if name not in _RULES:
                raise OptionsError(_unknown(name))
            if given is not None:
                read[name] = _read(name, given)
            elif name == "out":
                read[name] = ()
        if read.pop("no_robots", False):
            read["robots"] = False
        if read.pop("same_host", False):
            read["scope"] = "host"
        if read.get("format") not in (None, Format.JSON) and "out" not in read:
            raise OptionsError(f"--format: where is {read['format']} to go? accepted with --out FILE, or --out -")
        if read.get("check_external") and read.setdefault("edges", "all") != "all":
            raise OptionsError("--check-external: its answers are told of links to outside; accepted with --edges all")
        read["seeds"] = _seeds(seeds, read.pop("input_file", ()))
        options = cls(**read)
        _check_together(options)
        if options.per_host is None:
            read["per_host"] = options.concurrency
        if options.nofollow is None:
            read["nofollow"] = "page" if options.robots else "ignore"
        return cls(**read)

    def effective(self) -> dict[str, object]:
        """Every value but the seeds, ready for JSON, secrets masked: `options` of sitemap.json."""
        shown: dict[str, object] = {each.name: getattr(self, each.name) for each in fields(self)}
        del shown["seeds"]
        shown["header"] = [f"{name}: {_MASK}" for name, _ in self.header]
        shown["cookie"] = self.cookie and _MASK
        shown["auth"] = self.auth and _MASK
        shown["proxy"] = self.proxy and re.sub(r"(?<=://)[^/?#]*@", f"{_MASK}@", self.proxy)
        shown["parse_procs"] = self.parse_procs or "auto"
        return {name: list(value) if isinstance(value, tuple) else value for name, value in shown.items()}


class _Rule(NamedTuple):
    accepted: str
    read: Reader


_COUNT = _Rule("a whole number, 0 or more", option_values.whole(0))
_AT_LEAST_1 = _Rule("a whole number, 1 or more", option_values.whole(1))
_DURATION_FORMS = "a duration such as 10, 10s, 500ms, 2m or 1h"
_WAIT = _Rule(f"{_DURATION_FORMS}, up to 24h", option_values.duration(longest=DAY))
_SIZE = _Rule("a size in bytes, such as 65536, 512K, 32MiB or 1G", option_values.size)
_SWITCH = _Rule("True or False", option_values.flag)
_PATH = _Rule("a path", option_values.text)
_PATTERNS = _Rule("a Python regular expression", option_values.patterns)


def _one_of(*words: str) -> _Rule:
    return _Rule(f"{', '.join(words[:-1])} or {words[-1]}", option_values.choice(*words))


def _parse_procs(given: object) -> int | None:
    return None if given == "auto" else option_values.whole(1, 256)(given)  # type: ignore[return-value]  # whole reads int


_RULES = {
    "depth": _COUNT,
    "max_pages": _AT_LEAST_1,
    "max_time": _Rule(_DURATION_FORMS, option_values.duration(longest=10_000 * DAY)),
    "scope": _one_of("host", "domain", "prefix", "any"),
    "same_host": _SWITCH,
    "include": _PATTERNS,
    "exclude": _PATTERNS,
    "concurrency": _Rule("a whole number from 1 to 10,000", option_values.whole(1, 10_000)),
    "per_host": _AT_LEAST_1,
    "rps": _Rule("requests per second, such as 5 or 0.5; 0 = no limit", option_values.number(least=1e-4, most=1e6)),
    "robots": _SWITCH,
    "no_robots": _SWITCH,
    "max_crawl_delay": _Rule(f"{_DURATION_FORMS}, up to 24h", option_values.duration(longest=DAY, zero=True)),
    "user_agent": _Rule("a text that begins with the name for robots.txt, such as mybot/1.0", option_values.user_agent),
    "timeout": _WAIT,
    "connect_timeout": _WAIT,
    "retries": _COUNT,
    "max_redirects": _COUNT,
    "max_body": _SIZE,
    "header": _Rule("'Name: value'", option_values.headers),
    "cookie": _Rule("'name=value; name2=value2'", option_values.cookie),
    "auth": _Rule("USER:PASS, or @FILE with that on its first line", option_values.auth),
    "proxy": _Rule("the URL of an http, https, socks4 or socks5 proxy, or env", option_values.proxy),
    "insecure": _SWITCH,
    "ca_bundle": _Rule("a file of certificates in PEM form", option_values.ca_bundle),
    "block_private": _SWITCH,
    "sitemaps": _SWITCH,
    "keep_params": _SWITCH,
    "ignore_param": _Rule("the name of a query parameter", option_values.names),
    "parse_procs": _Rule("auto, or a whole number from 1 to 256", _parse_procs),
    "parse_timeout": _WAIT,
    "parse_memory": _SIZE,
    "fetcher": _one_of("urllib3", "curl"),
    "parser": _one_of("lxml", "lexbor"),
    "follow": _Rule(f"some of {','.join(LINK_KINDS)}", option_values.kinds),
    "nofollow": _one_of("page", "all", "ignore"),
    "edges": _one_of("in-scope", "all"),
    "check_external": _SWITCH,
    "input_file": _Rule("a file of URLs, one a line, or - for standard input", option_values.names),
    "out": _Rule("a file in a folder that exists, or - for standard output", option_values.paths),
    "format": _one_of(*Format),
    "columns": _one_of(*Columns),
    "resume": _SWITCH,
    "fresh": _SWITCH,
    "durable": _SWITCH,
    "stats": _Rule("a file in a folder that exists", option_values.text),
    "fail_on": _Rule(ACCEPTED, lambda given: tuple(gate.text for gate in read_gates(given))),
    "junit": _Rule("a file in a folder that exists", option_values.text),
}
_DIFF_GATES = _Rule(ACCEPTED_BY_DIFF, lambda given: read_gates(given, is_diff=True))
_REPORT = _Rule("a file in a folder that exists", option_values.text)
_CRAWL_FILE = "a sitemap.json[.gz], or the state of a crawl (.crawl)"
_SEED = _Rule("the address of an http or https page, such as https://example.com", option_values.seed)
_EXTRAS = {
    # value of --fetcher or --parser: (module it needs, extra that brings it)
    "curl": ("pycurl", "fast"),
    "lexbor": ("selectolax", "fast"),
}


def accepted(name: str) -> str:
    """What the option of that name (snake_case) accepts, in a few words, for error messages."""
    return {"crawl_file": _CRAWL_FILE, "report": _REPORT.accepted}.get(name) or _RULES[name].accepted


def read_report(given: object) -> str | None:
    """The file for the report of a diff, checked as an output of a crawl is."""
    if given is None:
        return None
    path = str(given)
    if not path or path == "-":
        raise _refusal("report", given, "", _REPORT)
    _check_writable("report", path, _REPORT)
    outputs_of((path,), format=Format.HTML)  # the package that it needs may be missing
    return path


def read_diff_gates(fail_on: object, *, junit: object = None) -> tuple[tuple[Gate, ...], str | None]:
    """The gates of a diff and the file for them: both options, read and checked as those of a crawl."""
    try:
        gates = read_gates(fail_on, is_diff=True) if fail_on else ()
    except ValueError as error:
        raise _refusal("fail_on", fail_on, str(error), _DIFF_GATES) from error
    path = None if junit is None else str(_read("junit", junit))
    _check_junit(path, has_gates=bool(gates))
    return gates, path


def read_outputs(
    out: object,
    *,
    format: object = None,  # noqa: A002  # the option
    columns: object = None,
) -> tuple[tuple[Output, ...], Columns]:
    """What an export is to write: the three options, read and checked as those of a crawl."""
    wanted = outputs_of(
        option_values.names(_read("out", out)), format=None if format is None else str(_read("format", format))
    )
    names = Columns.NATIVE if columns is None else Columns(str(_read("columns", columns)))
    _check_outputs(wanted, names)
    return wanted, names


def _read(name: str, given: object) -> object:
    if name == "auth" and isinstance(given, str) and given.startswith("@"):
        return _auth_in(given)
    try:
        return _RULES[name].read(given)
    except ValueError as error:
        raise _refusal(name, given, str(error)) from error


def _auth_in(given: str) -> object:
    """The secret in a file. Its content is not shown, whatever is wrong with it."""
    try:
        return option_values.auth(option_values.secret_in(given[1:]))
    except OSError as error:
        raise _refusal("auth", given, error.strerror or str(error)) from error
    except ValueError as error:
        raise _refusal("auth", given, "its first line is not USER:PASS") from error


def _seeds(given: object, files: tuple[str, ...]) -> tuple[str, ...]:
    listed: list[object] = []
    for path in files:
        try:
            listed += option_values.seeds_in(path)
        except OSError as error:
            raise _refusal("input_file", path, error.strerror or str(error)) from error
        except UnicodeDecodeError as error:
            raise _refusal("input_file", path, "it is not UTF-8 text") from error
    if not isinstance(given, Iterable):
        raise _refusal("URL", given, "", _SEED)
    found = []
    for each in [*([given] if isinstance(given, str) else given), *listed]:
        try:
            found.append(option_values.seed(each))
        except ValueError as error:
            raise _refusal("URL", each, str(error), _SEED) from error
    return tuple(found)


def _check_together(options: Options) -> None:
    """Refuses values that are good alone and cannot work together, or not on this machine."""
    if options.resume and options.fresh:
        raise OptionsError("--resume and --fresh exclude each other: go on from the kept state, or throw it away")
    _check_outputs(options.outputs, Columns(options.columns))
    if options.resume and not options.state:
        raise OptionsError("--resume: a state is kept only beside a file; accepted with --out FILE")
    if not options.seeds and not options.resume:
        raise OptionsError(f"URL: none is given; accepted: {_SEED.accepted}, or --input-file FILE")
    if options.insecure and options.ca_bundle is not None:
        raise OptionsError("--insecure and --ca-bundle exclude each other: verify nothing, or by that file")
    if options.block_private and options.proxy is not None:
        raise OptionsError("--block-private and --proxy exclude each other: behind a proxy only it knows the address")
    _check_junit(options.junit, has_gates=bool(options.fail_on))
    if options.stats == "-":
        raise _refusal("stats", "-", "standard output has the page lines")
    if options.stats is not None:
        _check_writable("stats", options.stats)
        if any(_is_same(options.stats, path) for path in options.out):
            raise OptionsError(f"--stats: {options.stats!r} is the file of --out too; accepted: another file")
    if options.junit is not None and any(
        _is_same(options.junit, path) for path in (*options.out, options.stats or "-")
    ):
        raise OptionsError(f"--junit: {options.junit!r} is the file of another output; accepted: another file")
    for name, path in (*(("out", path) for path in options.out), ("stats", options.stats), ("junit", options.junit)):
        if path is not None and options.state and _is_same(path, options.state):
            raise OptionsError(f"--{name}: {path!r} is where the state of the crawl is kept; accepted: another file")
    sent = {name.lower() for name, _ in options.header}
    for name, secret in (("cookie", options.cookie), ("auth", options.auth)):
        header = "cookie" if name == "cookie" else "authorization"
        if secret is not None and header in sent:
            raise OptionsError(f"--{name} and --header {header!r} say the same thing twice; accepted: one of them")
    _check_installed(options)


def _check_outputs(outputs: tuple[Output, ...], columns: Columns) -> None:
    for each in outputs:
        if each.path != "-":
            _check_writable("out", each.path)
    check_columns(outputs, columns)


def _check_junit(path: str | None, *, has_gates: bool) -> None:
    if path is None:
        return
    if not has_gates:
        raise OptionsError("--junit: nothing is asked that could fail; accepted with --fail-on")
    if path == "-":
        raise _refusal("junit", "-", "standard output is for people")
    _check_writable("junit", path)


def _is_same(path: str, other: str) -> bool:
    return os.path.abspath(path) == os.path.abspath(other)


def _is_file(path: str) -> bool:
    """Whether an output is a file, or will be one: something can lie beside it. Devices and pipes are none."""
    return path != "-" and (os.path.isfile(path) or not os.path.exists(path))


def _check_writable(name: str, path: str, rule: _Rule | None = None) -> None:
    folder = os.path.dirname(path) or os.curdir
    if os.path.isdir(path):
        raise _refusal(name, path, "it is a folder", rule)
    if not os.path.isdir(folder):
        raise _refusal(name, path, f"there is no folder {folder!r}", rule)


def _check_installed(options: Options) -> None:
    for option, value in (("--fetcher", options.fetcher), ("--parser", options.parser)):
        if value in _EXTRAS:
            from importlib.util import find_spec

            module, extra = _EXTRAS[value]
            if find_spec(module) is None:
                raise OptionsError(
                    f"{option}: {value!r} needs a package that is missing: pip install 'crawlr[{extra}]'"
                )


def _refusal(name: str, given: object, why: str, rule: _Rule | None = None) -> OptionsError:
    rule = rule or _RULES[name]
    option = name if name == "URL" else f"--{name.replace('_', '-')}"
    shown = re.sub(r"(?<=://)[^/?#]*@", f"{_MASK}@", repr(given))
    shown = shown if len(shown) <= 120 else shown[:119] + "…"
    return OptionsError(f"{option}: {shown} is not accepted{f' ({why})' if why else ''}; accepted: {rule.accepted}")


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, _RULES, n=1)
    return f"{name}: there is no such option" + (f"; did you mean {near[0]}?" if near else "")
