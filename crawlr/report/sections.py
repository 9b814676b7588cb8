"""All sections of the page, and the passes over the crawl that fill them.

From: Source, the accounting. To: findings and document. Main thread.

The pages are read up to three times, the links four times and once a round of PageRank; what is kept is bounded by the
caps of the sections, whatever the crawl's size, but for some 60 bytes a known URL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crawlr.report.broken import Broken
from crawlr.report.duplicates import Duplicates
from crawlr.report.external import External
from crawlr.report.facts import Facts, pages_with_hashes
from crawlr.report.hosts import Hosts
from crawlr.report.link_graph import LinkGraph
from crawlr.report.listed import Listed
from crawlr.report.overview import Overview
from crawlr.report.performance import Performance
from crawlr.report.redirects import Redirects
from crawlr.report.tables import Table, Urls
from crawlr.report.unasked import Unasked
from crawlr.report.weight import Weight
from crawlr.sinks.source import Source

__all__ = ["Sections"]


class Sections:
    """Every section of one crawl, complete after `gather`."""

    def __init__(self, source: Source, stats: Mapping[str, Any] | None) -> None:
        self.source = source
        self.urls = Urls(source.view)
        self.facts = Facts(source)
        self.overview = Overview(source.head)
        self.broken = Broken(source, self.facts)
        self.external = External(source, self.facts)
        self.redirects = Redirects(source, self.facts)
        self.weight = Weight()
        self.unasked = Unasked(source, self.urls)
        self.duplicates = Duplicates(self.facts)
        self.listed = Listed(source, self.facts, self.urls)
        self.graph = LinkGraph(source)
        self.hosts = Hosts(source, stats)
        self.performance = Performance(stats)
        self.tables: dict[str, Table] = {}

    def gather(self) -> None:
        """Show every section every page, then let them make their tables."""
        for page, body_hash in pages_with_hashes(self.source):
            self.overview.see(page)
            self.broken.see(page)
            self.redirects.see(page)
            self.weight.see(page)
            self.duplicates.see(page, body_hash)
            self.listed.see(page)
            self.graph.see(page)
            self.hosts.see(page)
        self.listed.see_unasked()
        self.redirects.choose()
        self.duplicates.choose()
        if self.redirects.needs_review or self.duplicates.needs_review:
            for page, body_hash in pages_with_hashes(self.source):
                self.redirects.review(page)
                self.duplicates.review(page, body_hash)
        self.graph.draw()
        urls, tables = self.urls, self.tables
        tables["broken"] = self.broken.table(urls)
        if self.external.is_asked:
            tables["external"] = self.external.table(urls)
        tables["redirects"], tables["redirects-noise"] = self.redirects.tables(urls)
        tables["slow"], tables["large"] = self.weight.tables(urls)
        tables["unasked"] = self.unasked.table()
        tables["bodies"] = self.duplicates.bodies(urls)
        tables["titles"] = self.duplicates.titles(urls)
        tables["untitled"] = self.duplicates.untitled_table(urls)
        tables["orphans"], tables["missing"], tables["unfit"] = self.listed.tables()
        tables["sitemaps"] = self.listed.files()
        tables["top"] = self.graph.table(urls)
        tables["hosts"] = self.hosts.table()
        if self.performance.rows:
            tables["timeline"] = self.performance.table()
