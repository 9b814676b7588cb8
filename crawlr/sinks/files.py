"""Output files that are whole or not there: written beside their place, flushed to the disk, then renamed.

From: sinks (what to write where). To: the disk, or standard output for "-". Main thread.

A link is followed, so that the file it names is replaced and the link stays. A device or pipe (/dev/null,
/dev/stdout) can't be replaced and is written to as it is.
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import os
import stat
import sys
from collections.abc import Iterator
from typing import BinaryIO, TextIO, cast

from crawlr import failpoints
from crawlr.errors import MachineError

__all__ = ["Beside", "together", "whole", "whole_binary"]


@contextlib.contextmanager
def whole(path: str) -> Iterator[TextIO]:
    """A text file (UTF-8) that takes the place of `path` when the block ends well; `.gz` compresses, "-" is standard
    output.

    MachineError when the disk is full or the folder can't be written; what was at `path` then stays. BrokenPipeError
    when nobody reads standard output any more.
    """
    if path == "-":
        with _standard_output() as raw:
            # a StreamWriter, since a TextIOWrapper would close what is beneath it
            yield cast("TextIO", codecs.getwriter("utf-8")(raw))
        return
    with whole_binary(path) as raw:
        text = io.TextIOWrapper(raw, encoding="utf-8", newline="\n")
        yield cast("TextIO", text)
        text.flush()
        text.detach()


@contextlib.contextmanager
def whole_binary(path: str) -> Iterator[BinaryIO]:
    """As `whole`, for bytes."""
    if path == "-":
        with _standard_output() as raw:
            yield raw
        return
    with together(path) as files:
        file = files.begin()
        yield file.out
        files.place(file, path)


@contextlib.contextmanager
def _standard_output() -> Iterator[BinaryIO]:
    try:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise  # nothing is wrong with this machine: cli says what it means
    except OSError as error:
        raise MachineError(f"cannot write standard output: {error.strerror or error}") from error


class Beside:
    """One file that is being written under a passing name. `out` takes its bytes, compressed when its place says so."""

    out: BinaryIO

    def __init__(self, place: str, number: int = 0) -> None:
        self.name = ""
        """Empty when it is written in place: a device or pipe."""
        if _is_special(place):
            self._raw = open(place, "wb")  # noqa: SIM115  # closed by finish or forget
        else:
            folder, last = os.path.split(place)
            # always the same name, so that what a kill left behind is gone after the next try
            self.name = os.path.join(folder, f".{last[:100]}.{f'{number}.' if number else ''}part")
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.name)
            handle = os.open(self.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            self._raw = open(handle, "wb")  # noqa: SIM115
        self.out = self._raw
        if place.endswith(".gz"):
            # no name and no time inside: the same crawl gives the same bytes
            packed = gzip.GzipFile(filename="", mode="wb", fileobj=self._raw, mtime=0, compresslevel=6)
            self.out = cast("BinaryIO", packed)

    def finish(self) -> None:
        """All bytes are on the disk when this returns. A second call does nothing."""
        if self._raw.closed:
            return
        if self.out is not self._raw:
            self.out.close()
        self._raw.flush()
        if self.name:
            os.fsync(self._raw.fileno())
        self._raw.close()

    def rename(self, place: str) -> None:
        """Take `place`, with the mode of the file that lies there, or the one that an ordinary `open` would give."""
        if not self.name:
            return
        try:
            mode = os.stat(place).st_mode & 0o777
        except OSError:
            mask = os.umask(0)
            os.umask(mask)
            mode = 0o666 & ~mask
        os.chmod(self.name, mode)
        failpoints.hit("during_export")
        os.replace(self.name, place)
        self.name = ""

    def forget(self) -> None:
        """Leave nothing behind."""
        with contextlib.suppress(OSError, ValueError):  # the disk that is full can't take what a close flushes either
            self.out.close()
        with contextlib.suppress(OSError):
            self._raw.close()
        if self.name:
            with contextlib.suppress(OSError):
                os.unlink(self.name)
            self.name = ""


class _Together:
    """Files that take their places when all of them are complete."""

    def __init__(self, path: str) -> None:
        self._path = os.path.realpath(path)
        self.begun: list[Beside] = []
        self.placed: list[tuple[Beside, str]] = []

    def begin(self) -> Beside:
        """A further file in the folder of the path, compressed as its name says."""
        self.begun.append(Beside(self._path, len(self.begun)))
        return self.begun[-1]

    def place(self, file: Beside, path: str) -> None:
        """The file is complete; `path` is its place once all are."""
        file.finish()
        self.placed.append((file, os.path.realpath(path)))


@contextlib.contextmanager
def together(path: str) -> Iterator[_Together]:
    """Several files in one folder: when the block ends well each takes its place, in the order of the `place` calls.

    MachineError when the disk is full or the folder can't be written; nothing has then been replaced, unless it is
    the renaming itself that failed.
    """
    files = _Together(path)
    try:
        yield files
        for file, place in files.placed:
            file.rename(place)
        _sync_folder(os.path.dirname(os.path.realpath(path)))
    except OSError as error:
        raise MachineError(f"cannot write {path}: {error.strerror or error}; what was crawled is kept") from error
    finally:
        for file in files.begun:
            file.forget()


def _is_special(place: str) -> bool:
    try:
        return not stat.S_ISREG(os.stat(place).st_mode)
    except OSError:
        return False


def _sync_folder(folder: str) -> None:
    with contextlib.suppress(OSError):  # some file systems have no fsync of a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
