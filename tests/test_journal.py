"""The state file: what is refused and left alone, what is kept, and who may open it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from crawlr.errors import MachineError, StateError
from crawlr.journal import DamagedStateError, Journal, PageRow


def page(number: int, targets: bytes | None = None) -> PageRow:
    return (number, 200, "ok", None, 0, 1, 1, None, None, None, None, "", None, None, 1, targets, None, None, None)


def kept(path: Path) -> bytes:
    return path.read_bytes()


def test_what_was_committed_is_there_after_a_reopening(tmp_path: Path) -> None:
    """Rows and meta values come back as they went in."""
    path = str(tmp_path / "x.crawl")
    journal = Journal.create(path, {"seeds": ["http://h/"]})
    journal.commit(urls=[(0, "http://h/", None, 0, None, 0, 0, 3)], pages=[page(0)], meta={"a": [1]})
    journal.close()

    again = Journal.open(path)
    assert again is not None
    found = (again.meta(), list(again.urls()), list(again.settled()), again.count_pages())
    again.close()

    assert ({"seeds": ["http://h/"], "a": [1]}, [(0, "http://h/", None, 0, None, 0, 0, 3)], [(0, 1)], 1) == found


def test_second_crawl_on_the_same_file_is_told_so(tmp_path: Path) -> None:
    """The file belongs to one process at a time."""
    path = str(tmp_path / "x.crawl")
    journal = Journal.create(path, {})

    with pytest.raises(StateError, match="in use"):
        Journal.open(path)
    journal.close()


@pytest.mark.parametrize("content", [b"hello, this is no database at all" * 10, b"SQLite format 3\0", b"\0" * 4096])
def test_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    """Whatever lies there is not crawlr's to change."""
    path = tmp_path / "x.crawl"
    path.write_bytes(content)

    with pytest.raises(StateError, match="not a state file"):
        Journal.open(str(path))

    assert content == kept(path)


def test_journal_that_nobody_holds_is_closed(tmp_path: Path) -> None:
    """A result of crawl() need not be closed by hand, as a file need not."""
    journal = Journal.create(str(tmp_path / "x.crawl"), {})
    connection = journal._db
    del journal

    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


def test_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    """An application id or tables that are not ours."""
    path = tmp_path / "x.crawl"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE bookmarks (url TEXT)")
    db.close()
    before = kept(path)

    with pytest.raises(StateError, match="another program"):
        Journal.open(str(path))

    assert before == kept(path)


def test_other_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    """A state of a later crawlr is named as such."""
    path = tmp_path / "x.crawl"
    Journal.create(str(path), {}).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    before = kept(path)

    with pytest.raises(DamagedStateError, match="another version"):
        Journal.open(str(path))

    assert before == kept(path)


def test_file_that_is_cut_short_is_refused_and_left_alone(tmp_path: Path) -> None:
    """A hundred bytes less are noticed before anything is written."""
    path = tmp_path / "x.crawl"
    journal = Journal.create(str(path), {})
    journal.commit(urls=[(i, f"http://h/{i}", None, 0, None, 0, 0, 3) for i in range(1000)])
    journal.close()
    path.write_bytes(path.read_bytes()[:-100])
    before = kept(path)

    with pytest.raises(DamagedStateError, match="cut short"):
        Journal.open(str(path))

    assert before == kept(path)


def test_commit_that_fails_changes_nothing_and_the_next_one_works(tmp_path: Path) -> None:
    """A group commit is there as a whole or not at all."""
    path = str(tmp_path / "x.crawl")
    journal = Journal.create(path, {})
    journal.commit(pages=[page(0)])

    with pytest.raises(sqlite3.IntegrityError):
        journal.commit(urls=[(1, "http://h/", None, 0, None, 0, 0, 3)], pages=[page(1), page(0)])
    after = (list(journal.urls()), journal.count_pages())
    journal.commit(pages=[page(1)])
    journal.close()

    assert ([], 1) == after


def test_nothing_committed_is_no_state(tmp_path: Path) -> None:
    """An empty file, as a kill before the first commit leaves it, holds no crawl."""
    path = tmp_path / "x.crawl"
    path.touch()

    assert Journal.open(str(path)) is None


def test_unlinked_journal_stays_readable(tmp_path: Path) -> None:
    """The result of a complete crawl is read after its state file has gone, and what SQLite keeps beside it: of a
    journal that is larger than its cache."""
    path = tmp_path / "x.crawl"
    journal = Journal.create(str(path), {})
    for start in range(0, 2_000, 50):
        journal.commit(pages=[page(number, bytes(4_000)) for number in range(start, start + 50)])
    journal.unlink()

    assert [] == list(tmp_path.iterdir())
    assert 2_000 == journal.count_pages()
    assert {bytes(4_000)} == {row[0] for row in journal.query("SELECT targets FROM pages")}
    journal.close()
    assert [] == list(tmp_path.iterdir())


def test_folder_that_does_not_take_the_file_is_the_machines_fault(tmp_path: Path) -> None:
    """The message names the path."""
    path = str(tmp_path / "none" / "x.crawl")

    with pytest.raises(MachineError, match=r"none/x\.crawl"):
        Journal.create(path, {})
