"""Files that are whole or not there."""

from __future__ import annotations

import gzip
import os
import stat
from pathlib import Path

import pytest

from crawlr.errors import MachineError
from crawlr.sinks import files


def write(path: Path, text: str = "new", *, then: Exception | None = None) -> None:
    with files.whole(str(path)) as out:
        out.write(text)
        if then is not None:
            raise then


def write_two(first: Path, *, then: Exception) -> None:
    """A part that is complete and one that breaks."""
    with files.together(str(first)) as group:
        group.place(group.begin(), str(first))
        group.begin()
        raise then


def test_the_file_is_there_when_the_block_ends(tmp_path: Path) -> None:
    """Its content is UTF-8, its mode that of an ordinary file, nothing lies beside it."""
    path = tmp_path / "out.txt"
    write(path, "neu „ä“\n")

    assert path.read_bytes() == "neu „ä“\n".encode()
    assert list(tmp_path.iterdir()) == [path]
    plain = tmp_path / "plain"
    plain.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


@pytest.mark.parametrize("name", ["out.txt", "out.gz"])
def test_an_error_leaves_what_was_there(tmp_path: Path, name: str) -> None:
    """The old file stays, and no piece of the new one."""
    path = tmp_path / name
    path.write_bytes(b"old")
    with pytest.raises(KeyError):
        write(path, "half", then=KeyError("something else broke"))

    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_mode_of_a_replaced_file_stays(tmp_path: Path) -> None:
    """A private file does not become public."""
    path = tmp_path / "out.txt"
    path.touch(mode=0o600)
    write(path)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_compressed_files_are_the_same_for_the_same_content(tmp_path: Path) -> None:
    """Neither a name nor a time is inside."""
    for name in ("a.gz", "b.gz"):
        write(tmp_path / name, "text")

    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"text"
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_a_link_is_followed(tmp_path: Path) -> None:
    """The file that a link names is replaced, the link stays."""
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "out.txt", tmp_path / "link.txt"
    target.write_text("old")
    link.symlink_to(target)
    write(link)

    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_device_is_written_to_and_stays_a_device() -> None:
    """`--out /dev/null` by root must not make a file of it."""
    write(Path(os.devnull))

    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_a_fault_of_the_machine() -> None:
    """What can't be written says where and why."""
    with pytest.raises(MachineError, match="cannot write /dev/full: No space left"):
        write(Path("/dev/full"), "x" * 1_000_000)


def test_a_folder_that_is_not_there_is_a_fault_of_the_machine(tmp_path: Path) -> None:
    """The message names the path."""
    with pytest.raises(MachineError, match=r"cannot write .*/none/out\.txt: No such file"):
        write(tmp_path / "none" / "out.txt")


def test_several_files_take_their_places_together(tmp_path: Path) -> None:
    """None is there before the block ends, all are after it."""
    first, second = tmp_path / "one", tmp_path / "two"
    with files.together(str(first)) as group:
        for path in (first, second):
            file = group.begin()
            file.out.write(path.name.encode())
            group.place(file, str(path))
        assert not first.exists()
        assert not second.exists()

    assert (first.read_bytes(), second.read_bytes()) == (b"one", b"two")
    assert sorted(tmp_path.iterdir()) == [first, second]


def test_an_error_in_one_of_several_leaves_none(tmp_path: Path) -> None:
    """A part that is complete does not take its place when a later one fails."""
    with pytest.raises(MachineError):
        write_two(tmp_path / "one", then=OSError(28, "No space left on device"))

    assert list(tmp_path.iterdir()) == []
