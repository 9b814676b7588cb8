"""Output files that are whole or not there: written beside their place, flushed to the disk, then renamed.

From: api (what to write where). To: the disk, or standard output for "-". Main thread.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import sys
import tempfile
from collections.abc import Iterator
from typing import TextIO

from crawlr import failpoints
from crawlr.errors import MachineError

__all__ = ["whole"]


@contextlib.contextmanager
def whole(path: str) -> Iterator[TextIO]:
    """A text file (UTF-8) that takes the place of `path` when the block ends well; `.gz` compresses, "-" is standard
    output.

    MachineError when the disk is full or the folder can't be written; what was at `path` then stays.
    """
    if path == "-":
        yield sys.stdout
        sys.stdout.flush()
        return
    folder = os.path.dirname(path) or "."
    beside = ""
    try:
        handle, beside = tempfile.mkstemp(prefix=f".{os.path.basename(path)[:100]}.", suffix=".part", dir=folder)
        with open(handle, "wb") as raw:
            with _text(raw, is_compressed=path.endswith(".gz")) as text:
                yield text
            raw.flush()
            os.fsync(raw.fileno())
        _set_mode(beside, path)
        failpoints.hit("during_export")
        os.replace(beside, path)
        _sync_folder(folder)
    except OSError as error:
        _forget(beside)
        raise MachineError(f"cannot write {path}: {error.strerror or error}; what was crawled is kept") from error
    except BaseException:
        _forget(beside)
        raise


@contextlib.contextmanager
def _text(raw: io.BufferedWriter, *, is_compressed: bool) -> Iterator[TextIO]:
    if not is_compressed:
        text = io.TextIOWrapper(raw, encoding="utf-8", newline="\n", write_through=False)
        yield text
        text.flush()
        text.detach()
        return
    # no name and no time inside: the same crawl gives the same bytes
    with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as packed:
        text = io.TextIOWrapper(packed, encoding="utf-8", newline="\n")  # type: ignore[arg-type]  # a GzipFile will do
        yield text
        text.flush()
        text.detach()


def _set_mode(beside: str, path: str) -> None:
    """Give the new file the mode that an ordinary `open` would have given it, or the one of the file it replaces."""
    try:
        mode = os.stat(path).st_mode & 0o777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o666 & ~mask
    os.chmod(beside, mode)


def _sync_folder(folder: str) -> None:
    with contextlib.suppress(OSError):  # some file systems have no fsync of a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _forget(beside: str) -> None:
    if beside:
        with contextlib.suppress(OSError):
            os.unlink(beside)
