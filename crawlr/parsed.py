"""What a parse result becomes: a record, edges, and URLs that may be requested.

From: the coordinator (outcomes of the parse pool). To: ledger (records, links), errands (sitemaps). Main thread.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Callable, Collection

from crawlr.errands import Errands
from crawlr.in_flight import InFlight, robots_of, unparsed
from crawlr.ledger import Finished, Ledger
from crawlr.options import Options
from crawlr.parse import facts
from crawlr.parse.pool import LinkTable, ParsedBatch, ParseFailed
from crawlr.parse.results import PageResult
from crawlr.records import FetchedPage, Outcome
from crawlr.stats import ParseSample, Stages
from crawlr.web_page import Content

__all__ = ["Parsed"]

# interface.md, Outcome: of several faults of one body the first in this order is told
_FAULT_RANK = (
    Outcome.TOTAL_TIMEOUT,
    Outcome.READ_TIMEOUT,
    Outcome.RESET,
    Outcome.PROTOCOL_ERROR,
    Outcome.DECODE_ERROR,
    Outcome.TOO_LARGE,
    Outcome.TRUNCATED,
    Outcome.NOT_HTML,
    Outcome.PARSE_TRUNCATED,
    Outcome.PARSE_MEMORY,
    Outcome.PARSE_TIMEOUT,
    Outcome.PARSER_CRASH,
)
_OTHERS = "such pages have an extract_error, and are crawled as all others"
_TRAPS = {
    "mirror": "a trap: one body under many addresses such as {url}; what only such pages lead to is not requested",
    "chain": "a trap: an endless chain of pages such as {url}; what only its end leads to is not requested",
}


class Parsed:
    """Takes in what the parse pool gives, one outcome at a time."""

    def __init__(
        self,
        options: Options,
        *,
        ledger: Ledger,
        in_flight: InFlight,
        errands: Errands,
        stages: Stages,
        sample: ParseSample,
        say_once: Callable[[str, str], None],
        canonicalise: Callable[[str], str | None] | None,
    ) -> None:
        self._ledger = ledger
        self._in_flight = in_flight
        self._errands = errands
        self._stages = stages
        self._sample = sample
        self._say_once = say_once
        self._canonicalise = canonicalise
        self._agent = options.agent
        self._nofollow = options.nofollow or ("page" if options.robots else "ignore")

    def take_in(self, outcomes: list[ParsedBatch | ParseFailed]) -> None:
        """Record every body of these outcomes."""
        for outcome in outcomes:
            match outcome:
                case ParsedBatch():
                    self._learn(outcome.table, outcome.new_links)
                    for result in outcome.results:
                        if isinstance(result, PageResult):
                            self._page(outcome.table, result)
                        else:
                            self._errands.sitemap_parsed(result)
                case ParseFailed():
                    self._failed(outcome)

    def _learn(self, table: LinkTable, links: list[tuple[str, str]]) -> None:
        """Give the links that a parse process names for the first time their ids; -1 drops one."""
        ids, learn = table.ids, self._ledger.learn
        if self._canonicalise is None:
            for url, key in links:
                ids.append(learn(url, key or url))
            return
        for url, _ in links:
            key_or_none = self._canonicalise(url)
            ids.append(-1 if key_or_none is None else learn(url, key_or_none))

    def _page(self, table: LinkTable, result: PageResult) -> None:
        number = result.id
        asked = self._in_flight.drop(number)
        page = asked.page
        assert page is not None
        self._account(result)
        outcome, error = _worst(page, result)
        ids = table.ids
        kinds, texts = result.flags, result.texts
        targets = [ids[i] for i in memoryview(result.targets).cast("I")]
        if self._canonicalise is not None or number in targets:
            # two spellings may be one page now, and a link to itself is none
            kept: dict[int, int] = {}
            for target, kind in zip(targets, kinds, strict=True):
                if target not in (-1, number):
                    kept[target] = kept.get(target, kind) | (kind & 1)
            if texts:
                texts = _texts_of(kept, targets, texts)
            targets, kinds = list(kept), bytes(kept.values())
        robots = robots_of(page, result.robots, self._agent)
        canonical = result.canonical
        if canonical is None and page.link:
            canonical = facts.canonical_from_link(page.link, asked.url)
        self._ledger.finish(
            Finished(
                id=number,
                url=asked.url,
                status=page.status,
                outcome=outcome,
                error=error,
                links=len(targets),
                millis=asked.millis,
                size=result.bytes,
                content_type=page.content_type,
                encoding=result.encoding,
                title=result.title,
                canonical=canonical,
                robots=robots,
                attempts=asked.attempt,
                targets=array("I", targets).tobytes(),
                kinds=kinds,
                texts=texts,
                body_hash=result.body_hash,
                last_modified=page.last_modified,
                extract=result.extract,
                extract_error=result.extract_error,
                content=None if result.html is None else _content(page, result.html, result.text or ""),
            )
        )
        if result.extract_error is not None:
            self._say_once("extract", f"extract failed for {asked.url}: {result.extract_error}; {_OTHERS}")
        trap = self._ledger.traps.judge(number, targets, result.body_hash)
        follows = self._follows(kinds, robots)
        if trap is None:
            self._ledger.reach_by_links(number, targets, follows)
        else:
            self._ledger.trap(number, targets, follows, can_pass=trap == "chain")
            self._say_once(f"trap {trap}", _TRAPS[trap].format(url=asked.url))

    def _account(self, result: PageResult) -> None:
        stages = self._stages
        stages.parse_decode += result.decode_us / 1e6
        stages.parse_parse += result.parse_us / 1e6
        stages.parse_resolve += result.resolve_us / 1e6
        stages.parse_extract += result.extract_us / 1e6
        stages.parsed += 1
        if result.parse_us:
            self._sample.add(result.bytes, result.decode_us + result.parse_us + result.resolve_us)

    def _follows(self, kinds: bytes, robots: tuple[str, ...]) -> bytes:
        """For each target, whether this page gives it the right to be queued."""
        if self._nofollow == "ignore":
            return b"\1" * len(kinds)
        if "nofollow" in robots:
            return bytes(len(kinds))
        return bytes(kind & 1 for kind in kinds) if self._nofollow == "all" else b"\1" * len(kinds)

    def _failed(self, failed: ParseFailed) -> None:
        if failed.id < 0:
            self._errands.sitemap_failed(failed.id, failed.error)
            return
        asked = self._in_flight.drop(failed.id)
        outcome, error = failed.outcome, failed.error
        if asked.page is not None and asked.page.fault is not None:
            outcome, error = asked.page.fault, asked.page.error or error
        self._ledger.finish(unparsed(failed.id, asked, outcome=outcome, error=error, agent=self._agent))


def _worst(page: FetchedPage, result: PageResult) -> tuple[Outcome, str | None]:
    """Of what went wrong with the transfer and with the body, what is told."""
    parsed = Outcome(result.outcome)
    if page.fault is None:
        return parsed, result.error
    if parsed is Outcome.OK or _FAULT_RANK.index(page.fault) <= _FAULT_RANK.index(parsed):
        return page.fault, page.error
    return parsed, result.error


def _content(page: FetchedPage, html: str, text: str) -> Content:
    headers = {name: ", ".join(values) for name, values in (page.headers or {}).items()}
    return Content(headers=headers, text=text, html=html)


def _texts_of(kept: Collection[int], targets: list[int], packed: bytes) -> bytes:
    """The texts of the targets that are kept, each that of its first place."""
    lines = zlib.decompress(packed).decode().split("\n")
    first = dict(zip(reversed(targets), reversed(lines), strict=True))
    return zlib.compress("\n".join([first[target] for target in kept]).encode(), 1) if kept else b""
