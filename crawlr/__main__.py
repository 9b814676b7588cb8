"""`python -m crawlr` is the command `crawlr`.

From: the shell. To: cli.main, and its exit status back to the shell. Main process only.
"""

from __future__ import annotations

import sys

from crawlr.cli import main

# Parser processes that are spawned import this module under another name; they must not start a crawl.
if __name__ == "__main__":
    sys.exit(main())
