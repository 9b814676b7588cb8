"""The command `crawlr`, and `python -m crawlr`.

From: the shell. To: cli.main, and its exit status back to the shell. Main process only.
"""

from __future__ import annotations

import gc
import sys

__all__ = ["main"]


def main() -> int:
    """Runs the command with the process's words and returns its exit status. Raises nothing: a Ctrl-C that comes while
    modules are loaded ends it as a later one does."""
    try:
        from crawlr import cli

        return cli.main()
    except KeyboardInterrupt:
        return 130
    finally:
        gc.freeze()  # the process ends: to look for garbage once more takes longer than to leave it


# Parser processes that are spawned import this module under another name; they must not start a crawl.
if __name__ == "__main__":
    sys.exit(main())
