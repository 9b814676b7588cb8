"""What a crawl runs on: the fetcher and the parser settings that its options ask for.

From: run (options). To: run (a Fetcher, settings and number of the parse processes). Main thread, before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from crawlr import machine
from crawlr.errors import OptionsError
from crawlr.fetch.pool import Fetcher
from crawlr.formats import Columns, wants_texts
from crawlr.options import Options
from crawlr.parse.settings import WorkerSettings
from crawlr.scope import origin_of
from crawlr.tuning import first_number

__all__ = ["load_fetcher", "network", "parse_procs", "worker_settings"]


def parse_procs(options: Options) -> int:
    """--parse-procs, or what to begin with."""
    if options.parse_procs is not None:
        return options.parse_procs
    return first_number(cores=machine.cores(), memory=machine.memory)


def worker_settings(options: Options, *, content: bool = False) -> WorkerSettings:
    """What parse processes are told; `content`: whether somebody wants the documents themselves."""
    return WorkerSettings(
        parser=options.parser,
        follow=options.follow,
        keep_params=options.keep_params,
        ignore_param=options.ignore_param,
        agent=options.agent,
        max_body=options.max_body,
        parse_timeout=options.parse_timeout,
        parse_memory=options.parse_memory,
        texts=wants_texts(options.outputs, Columns(options.columns)),
        extract=options.extraction,
        content=content,
    )


def network(options: Options, seeds: tuple[str, ...], auth: str | None) -> Fetcher:
    """The fetcher of --fetcher; secrets go to the seeds' origins only."""
    from crawlr.fetch.addresses import AddressPolicy

    try:
        return load_fetcher(options.fetcher)(
            user_agent=options.user_agent,
            timeout=options.timeout,
            connect_timeout=options.connect_timeout,
            max_body=options.max_body,
            concurrency=options.concurrency,
            headers=options.header,
            cookie=options.cookie,
            auth=auth,
            secret_origins=frozenset(origin_of(seed) for seed in seeds),
            proxy=options.proxy,
            insecure=options.insecure,
            ca_bundle=options.ca_bundle,
            address_policy=AddressPolicy(
                block_private=options.block_private,
                seed_hosts=frozenset(urlsplit(seed).hostname or "" for seed in seeds),
            ),
        )
    except (ValueError, OSError) as error:
        raise OptionsError(str(error)) from error


def load_fetcher(name: str) -> Callable[..., Fetcher]:
    """What makes the fetcher of that name, with all that it needs imported."""
    if name == "curl":
        from crawlr.fetch.curl import CurlFetcher

        return CurlFetcher
    from crawlr.fetch.http import HttpFetcher

    return HttpFetcher
