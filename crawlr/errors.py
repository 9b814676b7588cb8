"""The errors that crawlr raises on purpose, so that a caller can tell a mistake from a fault of the machine.

From: options, journal, the coordinator. To: cli (exit status and one line) or the caller of crawlr.crawl().
Any other exception is a bug.
"""

from __future__ import annotations


class CrawlrError(Exception):
    """Base of every error that crawlr raises on purpose."""


class OptionsError(CrawlrError):
    """A user's mistake: names the option, the value and what is accepted (exit status 2)."""


class StateError(CrawlrError):
    """The state file beside the output cannot be used: of another crawl, another version, damaged, in use (exit
    status 2).
    """


class MachineError(CrawlrError):
    """A fault of this machine: disk full, no descriptors, parser processes that cannot run (exit status 1)."""


class CallbackError(CrawlrError):
    """A function of the caller's failed (canonicalise=, order=): names it and the URL; what it raised is the cause."""
