"""Every option of a crawl with its default, checked once: nothing behind this module meets a bad value.

From: cli or crawlr.crawl(), by Options.make. To: everything. Looks at files that options name, changes nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct, structs

from crawlr import __version__, extract_rules
from crawlr.errors import OptionsError
from crawlr.extract_rules import ExtractRules
from crawlr.formats import Columns, Format, Output, outputs_of
from crawlr.gate_rules import Gate, read_gates
from crawlr.option_reading import (
    MASK,
    SEED,
    check_junit,
    check_name,
    check_outputs,
    check_writable,
    mask_userinfo,
    read_seeds,
    read_value,
    refusal,
)
from crawlr.option_values import KIB, MIB
from crawlr.records import KnownUrl, repr_without

__all__ = ["DEFAULT_FOLLOW", "KIB", "MIB", "PROJECT_URL", "Options"]

PROJECT_URL = "https://crawlr.example/bot"
DEFAULT_FOLLOW = ("a", "area", "iframe", "frame", "refresh")


class Options(Struct, frozen=True, kw_only=True):
    """The effective values of one crawl. Durations in seconds, sizes in bytes, None = no limit."""

    seeds: tuple[str, ...] = ()
    """With a scheme, else as the user gave them; resolved by the coordinator. Not in the repr: may hold a password."""
    depth: int | None = None
    max_pages: int | None = None
    max_time: float | None = None
    scope: str = "host"
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    order: str | Callable[[KnownUrl], float] = "breadth-first"
    """breadth-first, depth-first, or a function: the lower the number, the earlier."""
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
    header: tuple[tuple[str, str], ...] = ()
    cookie: str | None = None
    auth: str | None = None
    proxy: str | None = None
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
    extract: extract_rules.Function | None = None
    extract_css: tuple[tuple[str, str], ...] = ()
    """(name, selector)"""
    extract_xpath: tuple[tuple[str, str], ...] = ()
    """(name, expression)"""
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
    status: bool = False
    fail_on: tuple[str, ...] = ()
    """Gates as `gates` reads them."""
    junit: str | None = None

    @property
    def gates(self) -> tuple[Gate, ...]:
        """What makes the crawl fail, in order."""
        return read_gates(self.fail_on) if self.fail_on else ()

    @property
    def extraction(self) -> ExtractRules | None:
        """What is taken out of each page; None: nothing."""
        if self.extract is None and not self.extract_css and not self.extract_xpath:
            return None
        return ExtractRules(function=self.extract, css=self.extract_css, xpath=self.extract_xpath)

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

    @property
    def status_file(self) -> str:
        """Where --status goes: beside the first output that is a file; "" when there is none."""
        return next((f"{path}.status.json" for path in self.out if _is_file(path)), "")

    @classmethod
    def make(cls, seeds: str | Iterable[str] = (), **values: object) -> Options:
        """The checked options: seeds, and options as on the command line in snake_case, typed or as that text.

        `no_robots`, `same_host` and `input_file` are understood as the command line's switches are. None stands for the
        default, for no file with `out`. Raises OptionsError, which names the option, the value and what is accepted.
        """
        read: dict[str, Any] = {}
        for name, given in values.items():
            check_name(name)
            if given is not None:
                read[name] = read_value(name, given)
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
        read["seeds"] = read_seeds(seeds, read.pop("input_file", ()))
        options = cls(**read)
        _check_together(options)
        if options.per_host is None:
            read["per_host"] = options.concurrency
        if options.nofollow is None:
            read["nofollow"] = "page" if options.robots else "ignore"
        return cls(**read)

    def __repr__(self) -> str:
        return repr_without(self, {"seeds", "header", "cookie", "auth", "proxy"})  # each may hold a password

    def effective(self) -> dict[str, object]:
        """Every value but the seeds, ready for JSON, secrets masked: `options` of sitemap.json."""
        shown: dict[str, object] = structs.asdict(self)
        del shown["seeds"]
        shown["header"] = [f"{name}: {MASK}" for name, _ in self.header]
        shown["cookie"] = self.cookie and MASK
        shown["auth"] = self.auth and MASK
        shown["proxy"] = self.proxy and mask_userinfo(self.proxy)
        if not isinstance(self.order, str):
            shown["order"] = getattr(self.order, "__qualname__", type(self.order).__qualname__)
        shown["parse_procs"] = self.parse_procs or "auto"
        shown["extract"] = extract_rules.name_of(self.extract)
        shown["extract_css"] = dict(self.extract_css)
        shown["extract_xpath"] = dict(self.extract_xpath)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in shown.items()}


_EXTRAS = {
    # value of --fetcher or --parser: (module it needs, extra that brings it)
    "curl": ("pycurl", "fast"),
    "lexbor": ("selectolax", "fast"),
}


def _check_together(options: Options) -> None:
    """Refuses values that are good alone and cannot work together, or not on this machine."""
    if options.resume and options.fresh:
        raise OptionsError("--resume and --fresh exclude each other: go on from the kept state, or throw it away")
    check_outputs(options.outputs, Columns(options.columns))
    if options.resume and not options.state:
        raise OptionsError("--resume: a state is kept only beside a file; accepted with --out FILE")
    if options.status and not options.status_file:
        raise OptionsError("--status: it is written beside an output that is a file; accepted with --out FILE")
    if not options.seeds and not options.resume:
        raise OptionsError(f"URL: none is given; accepted: {SEED.accepted}, or --input-file FILE")
    if options.insecure and options.ca_bundle is not None:
        raise OptionsError("--insecure and --ca-bundle exclude each other: verify nothing, or by that file")
    if options.block_private and options.proxy is not None:
        raise OptionsError("--block-private and --proxy exclude each other: behind a proxy only it knows the address")
    check_junit(options.junit, has_gates=bool(options.fail_on))
    if options.stats == "-":
        raise refusal("stats", "-", "standard output has the page lines")
    if options.stats is not None:
        check_writable("stats", options.stats)
        if any(_is_same(options.stats, path) for path in options.out):
            raise OptionsError(f"--stats: {options.stats!r} is the file of --out too; accepted: another file")
    if options.junit is not None and any(
        _is_same(options.junit, path) for path in (*options.out, options.stats or "-")
    ):
        raise OptionsError(f"--junit: {options.junit!r} is the file of another output; accepted: another file")
    for name, path in (*(("out", path) for path in options.out), ("stats", options.stats), ("junit", options.junit)):
        if path is not None and options.state and _is_same(path, options.state):
            raise OptionsError(f"--{name}: {path!r} is where the state of the crawl is kept; accepted: another file")
        if path is not None and options.status and _is_same(path, options.status_file):
            raise OptionsError(f"--{name}: {path!r} is where --status goes; accepted: another file")
    both = {name for name, _ in options.extract_css} & {name for name, _ in options.extract_xpath}
    if both:
        raise OptionsError(
            f"--extract-xpath: {min(both)!r} is a name of --extract-css too; accepted: each name once in both"
        )
    sent = {name.lower() for name, _ in options.header}
    for name, secret in (("cookie", options.cookie), ("auth", options.auth)):
        header = "cookie" if name == "cookie" else "authorization"
        if secret is not None and header in sent:
            raise OptionsError(f"--{name} and --header {header!r} say the same thing twice; accepted: one of them")
    _check_installed(options)


def _is_same(path: str, other: str) -> bool:
    return os.path.abspath(path) == os.path.abspath(other)


def _is_file(path: str) -> bool:
    """Whether an output is a file, or will be one: something can lie beside it. Devices and pipes are none."""
    return path != "-" and (os.path.isfile(path) or not os.path.exists(path))


def _check_installed(options: Options) -> None:
    for option, value in (("--fetcher", options.fetcher), ("--parser", options.parser)):
        if value in _EXTRAS:
            from importlib.util import find_spec

            module, extra = _EXTRAS[value]
            if find_spec(module) is None:
                raise OptionsError(
                    f"{option}: {value!r} needs a package that is missing: pip install 'crawlr[{extra}]'"
                )
