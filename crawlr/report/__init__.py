"""The report of a crawl as one HTML page that needs nothing else: no network, no server, no other file.

From: crawlr.outputs (a view, the head of sitemap.json, the accounting). To: a text file. Main thread.
"""

from crawlr.report.document import write

__all__ = ["write"]
