"""Standard output and standard error: what is printed there, as long as somebody reads.

From: cli, verbs. To: people and pipes. Main thread.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import TextIO

from crawlr.errors import MachineError

__all__ = ["flush_streams", "prepare_streams", "print_lines", "say"]


def say(text: str, stream: TextIO) -> None:
    """Prints, as long as somebody reads: the status of a crawl does not depend on that."""
    with suppress(OSError):
        print(text, file=stream, flush=True)


def print_lines(lines: Iterable[str]) -> None:
    """Prints an answer, as long as somebody reads. MachineError when it can't be written."""
    try:
        for line in lines:
            print(line)
        sys.stdout.flush()
    except BrokenPipeError:
        pass  # `crawlr diff a b | head` has seen enough
    except OSError as error:
        raise MachineError(f"cannot write standard output: {error.strerror or error}") from error


def prepare_streams() -> None:
    """Streams that exist and never raise for a character they cannot encode."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:  # closed by who started us: crawlr >&-
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # lives as long as the process
        elif mode == "w" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def flush_streams() -> None:
    """Writes what is buffered. When nobody reads any more, the interpreter must not find that out again at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
