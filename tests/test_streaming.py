"""crawlr.stream: a crawl as a loop."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import crawlr
from crawlr.errors import OptionsError
from tests.fakeweb import FakeWeb, Page, star

HOST = "http://site.test"


def many(count: int) -> FakeWeb:
    return FakeWeb(star(HOST, count, Page()))


def crawl_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("crawlr")]


def test_every_record_comes_once() -> None:
    """The loop sees what on_page would have seen."""
    urls = [record.url for record in crawlr.stream(HOST, fetcher=many(200), rps=0, parse_procs=1, out=None)]

    assert sorted([f"{HOST}/", *[f"{HOST}/{i}" for i in range(200)]]) == sorted(urls)
    assert [] == crawl_threads()


def test_leaving_the_loop_ends_the_crawl(tmp_path: Path) -> None:
    """Nothing runs on, and the state that --resume needs is there."""
    out = tmp_path / "map.json"
    records = crawlr.stream(HOST, fetcher=many(2000), rps=0, parse_procs=1, out=str(out))
    first = next(records)
    records.close()

    assert f"{HOST}/" == first.url
    assert [] == crawl_threads()
    assert out.exists()
    assert (tmp_path / "map.json.crawl").exists()


def test_crawl_is_never_far_ahead_of_the_loop() -> None:
    """What was requested and not yet taken is bounded by the buffer, a group commit and what is in flight."""
    fake = many(3000)
    ahead = [
        len(fake.requests) - taken
        for taken, _ in enumerate(crawlr.stream(HOST, fetcher=fake, rps=0, parse_procs=1, concurrency=4, out=None))
    ]

    assert 3001 == len(ahead)
    assert max(ahead) < 500


def test_what_the_crawl_raises_is_raised_in_the_loop() -> None:
    """A mistake in the options as well as a fault later on."""
    with pytest.raises(OptionsError):
        next(crawlr.stream("http://[bad", out=None))
    with pytest.raises(TypeError, match="on_page"):
        next(crawlr.stream(HOST, on_page=print))
