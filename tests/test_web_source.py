"""A site as a source of pages for another program: what a consumer gets, when, and what happens when it fails."""

from __future__ import annotations

import gzip
import os
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import crawlr
from crawlr import coordinator
from crawlr.demo import DemoSite
from crawlr.errors import OptionsError
from crawlr.parse import worker
from crawlr.parse.visible_text import visible_text
from crawlr.records import Outcome, PageRecord
from tests import user_functions
from tests.conftest import Command
from tests.fakeweb import FakeWeb, Page
from tests.servers.local import Reply, Site, page, redirect
from tests.test_worker import Reader, row

MakeSite = Callable[..., Site]
HOST = "http://web.test"
README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")


def read(seed: str, **options: Any) -> list[crawlr.WebPage]:
    """Every page that a consumer gets, in order."""
    found: list[crawlr.WebPage] = []
    crawlr.WebSource(seed, **({"rps": 0, "retries": 0, "parse_procs": 1} | options)).read_into(found.append).close()
    return found


def test_a_page_is_shown_without_its_content() -> None:
    """A log line of one is a line."""
    record = PageRecord(id=1, url="http://a.test/", depth=0, parent=None, status=200, outcome=Outcome.OK)
    shown = repr(crawlr.WebPage(record=record, headers={"x": "field"}, text="words", html="<p>words"))

    assert "http://a.test/" in shown
    assert not any(each in shown for each in ("words", "field"))


def chain(count: int, text: str = "<p>word") -> FakeWeb:
    """Each page leads to the next."""
    return FakeWeb({f"{HOST}/{n}": Page(body=f"<a href=/{n + 1}>x</a>{text}".encode()) for n in range(count)})


# ---------------------------------------------------------------- the text


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<title>t</title><p>one\n  two<p>three", "one two\nthree"),
        ("<h1>A <b>b</b>c</h1>d<br>e<div>f<div>g</div>h</div>i", "A bc\nd\ne\nf\ng\nh\ni"),
        ("a<script>no</script>b<style>no</style>c<template>no<p>no</template>d<!-- no -->e", "abcde"),
        ("<table><tr><td>1<td>2<tr><th>3</th><td>4</table>end", "1 2\n3 4\nend"),
        ("<ul><li>one<li>two</ul><select><option>x<option>y</select>", "one\ntwo\nx\ny"),
        ("<p>&eacute;&amp;&nbsp;z<p> <p>\ufdd0", "é& z"),
        ("<noscript>without scripts</noscript><iframe>no</iframe>", "without scripts"),
        ("<pre>a\n  b</pre>", "a b"),
        ("", ""),
        ("<!-- nothing -->", ""),
    ],
)
def test_text_is_what_a_person_reads(html: str, expected: str) -> None:
    """A line for each block, white space collapsed, nothing of what shows nothing."""
    assert expected == visible_text(html, url=HOST)


# ---------------------------------------------------------------- what a consumer gets


@pytest.mark.parametrize("fetcher", ["urllib3", "curl"])
def test_each_document_comes_once_with_its_content(site: MakeSite, fetcher: str) -> None:
    """Whatever is no document is in the result alone; headers, encoding, text and html are those of the page."""
    fields = (("Content-Type", "text/html; charset=latin1"), ("X-Two", "a"), ("x-two", "b"))
    html = "<title>Caf\u00e9</title><a href=/moved>m</a><a href=/gone>g</a><a href=/data>d</a><p>cr\u00e8me"
    routes = {
        "/": Reply(headers=fields, body=html.encode("latin-1")),
        "/moved": redirect("/last"),
        "/last": page(title="Last"),
        "/data": Reply(headers=(("Content-Type", "application/pdf"),), body=b"%PDF-1"),
    }
    ground = site(routes)
    found: dict[str, crawlr.WebPage] = {}
    source = crawlr.WebSource(ground.url(), rps=0, parse_procs=1, fetcher=fetcher)
    with source.read_into(lambda each: found.update({each.url: each})) as result:
        records = {record.url: record for record in result.pages}

    assert {ground.url(), ground.url("/last")} == set(found)
    assert 5 == len(records)
    first = found[ground.url()]
    assert (200, "windows-1252", "Caf\u00e9") == (first.status, first.encoding, first.title)
    assert (html, "mgd\ncr\u00e8me") == (first.html, first.text)
    assert ("a, b", "text/html; charset=latin1") == (first.headers["x-two"], first.headers["content-type"])
    assert {url: each.record for url, each in found.items()} == {url: records[url] for url in found}


def test_a_cut_document_comes_as_far_as_it_goes() -> None:
    """The outcome says that it was cut."""
    [found] = read(f"{HOST}/", fetcher=FakeWeb({f"{HOST}/": Page(body=b"<p>word" * 1000)}), max_body=700)

    assert ("too_large", 700) == (found.record.outcome, len(found.html))


def test_nothing_is_written_unless_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source is no map: without out= there is no file."""
    monkeypatch.chdir(tmp_path)
    read(f"{HOST}/0", fetcher=chain(3))
    assert [] == list(tmp_path.iterdir())

    read(f"{HOST}/0", fetcher=chain(3), out="map.json")
    assert ["map.json"] == [path.name for path in tmp_path.iterdir()]


def test_extracted_values_come_along() -> None:
    """In the record, as everywhere."""
    [first, *_] = read(f"{HOST}/0", fetcher=chain(3), extract=user_functions.facts, extract_css={"p": "p"})

    assert (["word"], len(first.html)) == (first.record.extract["p"], first.record.extract["size"])


def test_a_wrong_option_is_refused() -> None:
    """When the crawl is to begin, as by crawl()."""
    with pytest.raises(OptionsError, match="dept: there is no such option; did you mean depth"):
        read(HOST, dept=3)


# ---------------------------------------------------------------- the consumer's pace, and its end


class ConsumerError(Exception):
    """What a consumer raises here."""


@pytest.mark.parametrize("error", [ConsumerError("index is full"), KeyboardInterrupt()])
def test_what_the_consumer_raises_ends_the_crawl(tmp_path: Path, error: BaseException) -> None:
    """In the middle of a group: it gets no further page, what was stored is kept, and the very error is raised."""
    given: list[str] = []

    def consume(found: crawlr.WebPage) -> None:
        given.append(found.url)
        if len(given) == 5:
            raise error

    out = tmp_path / "map.json"
    source = crawlr.WebSource(f"{HOST}/0", fetcher=chain(300), rps=0, parse_procs=1, out=str(out))
    with pytest.raises(type(error)) as caught:
        source.read_into(consume)

    assert error is caught.value
    assert 5 == len(given)
    assert out.exists()
    assert out.with_name("map.json.crawl").exists()


def test_no_page_is_left_out_after_the_consumer_failed(tmp_path: Path) -> None:
    """A resume gives again what it may not have kept, no more than a group of pages, and then all others."""

    def star() -> FakeWeb:
        pages = {f"{HOST}/{n}": Page() for n in range(300)}
        return FakeWeb({f"{HOST}/": Page(links=tuple(f"/{n}" for n in range(300))), **pages})

    given: list[str] = []

    def consume(found: crawlr.WebPage) -> None:
        given.append(found.url)
        if len(given) == 105:
            raise ConsumerError

    options: dict[str, Any] = {"rps": 0, "parse_procs": 1, "out": str(tmp_path / "map.json")}
    with pytest.raises(ConsumerError):
        crawlr.WebSource(f"{HOST}/", fetcher=star(), **options).read_into(consume)
    crawlr.WebSource(f"{HOST}/", fetcher=star(), resume=True, **options).read_into(consume).close()

    assert len(set(given)) == 301
    assert len(given) - 301 <= 105


@pytest.mark.parametrize("place", ["before_commit:1", "inside_commit:3"])
def test_no_page_is_left_out_after_a_kill(place: str, site: MakeSite, tmp_path: Path) -> None:
    """Killed between the consumer and the disk: over both runs every page has come."""
    ground = site({"/": page(*[f"/{n}" for n in range(200)])}, default=page())
    program = (
        "import crawlr, sys\n"
        "with open('given.txt', 'a', buffering=1) as file:\n"
        "    source = crawlr.WebSource(sys.argv[1], rps=0, out='map.json', resume=len(sys.argv) > 2)\n"
        "    source.read_into(lambda found: file.write(found.url + '\\n')).close()\n"
    )

    def run(*words: str, **env: str) -> int:
        words = (sys.executable, "-c", program, ground.url(), *words)
        return subprocess.run(words, cwd=tmp_path, env=os.environ | env, timeout=60, check=False).returncode

    assert [-9, 0] == [run(CRAWLR_FAILPOINT=place), run("resume")]
    given = (tmp_path / "given.txt").read_text().split()
    assert len(set(given)) == 201


def test_a_consumer_has_to_be_a_function() -> None:
    """That is told before anything is requested."""
    fake = chain(1)
    with pytest.raises(TypeError, match="takes a function that takes a WebPage, not 3"):
        crawlr.WebSource(f"{HOST}/0", fetcher=fake).read_into(3)  # type: ignore[arg-type]  # the mistake

    assert [] == fake.requests


def test_consumer_is_called_in_the_calling_thread() -> None:
    """It needs no lock, and an SQLite connection will do."""
    threads = set()
    crawlr.WebSource(f"{HOST}/0", fetcher=chain(3), rps=0, parse_procs=1).read_into(
        lambda _: threads.add(threading.current_thread())
    ).close()

    assert {threading.current_thread()} == threads


def test_stop_ends_a_crawl_from_inside() -> None:
    """As for crawl(): set the event, and what is committed is still given."""
    stop = threading.Event()
    given: list[str] = []

    def consume(found: crawlr.WebPage) -> None:
        given.append(found.url)
        stop.set()

    result = crawlr.WebSource(f"{HOST}/0", fetcher=chain(500), rps=0, parse_procs=1, stop=stop).read_into(consume)
    with result:
        recorded = [record.url for record in result.pages]

    assert given == recorded
    assert len(given) < 200


def test_crawl_waits_for_a_slow_consumer() -> None:
    """What is requested ahead of it is bounded by a group and by what is in flight."""
    fake = FakeWeb(
        {f"{HOST}/": Page(links=tuple(f"/{n}" for n in range(1500))), **{f"{HOST}/{n}": Page() for n in range(1500)}}
    )
    ahead: list[int] = []
    crawlr.WebSource(f"{HOST}/", fetcher=fake, rps=0, parse_procs=1, concurrency=4).read_into(
        lambda _: ahead.append(len(fake.requests) - len(ahead))
    ).close()

    assert 1501 == len(ahead)
    assert max(ahead) < 500


def test_large_documents_do_not_gather(monkeypatch: pytest.MonkeyPatch) -> None:
    """When enough of them wait the group is committed at once, whatever its clock and its number of pages say."""
    monkeypatch.setattr(coordinator, "COMMIT_SECONDS", 3600.0)
    monkeypatch.setattr(coordinator, "COMMIT_PAGES", 10_000)
    monkeypatch.setattr(coordinator, "CONTENT_SIZE", 5_000)
    fake = chain(60, text="<p>" + "word " * 400)  # some 4,000 characters a page
    ahead: list[int] = []
    crawlr.WebSource(f"{HOST}/0", fetcher=fake, rps=0, parse_procs=1).read_into(
        lambda _: ahead.append(len(fake.requests) - len(ahead))
    ).close()

    assert 60 == len(ahead)
    assert max(ahead) < 10


def test_a_batch_holds_so_much_content(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page after that is said to need too much memory, which the pool answers with another try, alone."""
    monkeypatch.setattr(worker, "CONTENT_LIMIT", 100)
    large = row("<p>" + "x" * 200)
    outcomes = [answer[2] for answer in Reader(content=True).rows(large, large)]

    assert ["ok", "parse_memory"] == outcomes
    assert ["ok", "ok"] == [answer[2] for answer in Reader().rows(large, large)]


def test_bodies_that_unpack_to_very_much_all_come() -> None:
    """Eight pages of some kB that are 8 MB each: they fit in one batch on the way in, and not on the way out."""
    packed = gzip.compress(b"<p>" + b"a" * 8_000_000)
    heavy = Page(body=packed, headers={"Content-Type": "text/html", "Content-Encoding": "gzip"})
    pages = {f"{HOST}/{n}": heavy for n in range(8)}
    fake = FakeWeb({f"{HOST}/": Page(links=tuple(f"/{n}" for n in range(8))), **pages})
    sizes: list[tuple[str, int]] = []
    crawlr.WebSource(f"{HOST}/", fetcher=fake, rps=0, parse_procs=1).read_into(
        lambda found: sizes.append((found.record.outcome, len(found.html)))
    ).close()

    assert [("ok", 8_000_003)] * 8 == sorted(sizes, key=lambda each: each[1])[1:]


def test_resume_gives_each_page_once(tmp_path: Path) -> None:
    """Over both runs together, every page and none twice."""
    out = str(tmp_path / "map.json")
    first = read(f"{HOST}/0", fetcher=chain(30), out=out, max_pages=11)
    second = read(f"{HOST}/0", fetcher=chain(30), out=out, resume=True)

    assert [f"{HOST}/{n}" for n in range(30)] == [found.url for found in (*first, *second)]
    assert 11 == len(first)


# ---------------------------------------------------------------- the example of README.md


def test_the_example_of_an_index_finds_a_page_of_the_demo_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The text of README.md, with another site and another word: the whole ingestion, then a search."""
    monkeypatch.chdir(tmp_path)
    [program] = re.findall(r"^```python\n([^`]*WebSource.*?)^```$", README, re.MULTILINE | re.DOTALL)
    with DemoSite() as demo:
        program = program.replace('"https://example.com"', f'"{demo.url}", rps=0').replace("'contact'", "'crosses'")
        names: dict[str, Any] = {}
        exec(program, names)  # as a reader runs it
        names["index"].close()
        [line] = capsys.readouterr().out.splitlines()

        assert line.startswith(f"{demo.url}guide/pruning.html ")
    index = sqlite3.connect("site.db")
    [(count,)] = index.execute("SELECT count(*) FROM pages")
    index.close()

    assert 8 == count


def test_command_line_needs_none_of_it(run_cli: Command, site: MakeSite) -> None:
    """A crawl without a consumer takes nothing along: the parse processes do not even load what makes texts."""
    names = run_cli.folder / "loaded.py"
    names.write_text("import sys\ndef loaded(document):\n    return sorted(sys.modules)\n")
    ran = run_cli(site({"/": page()}).url(), "--extract", "loaded:loaded", folder=run_cli.folder)

    assert "crawlr.parse.extraction" in ran.site_map["pages"][0]["extract"]
    assert "crawlr.parse.visible_text" not in ran.site_map["pages"][0]["extract"]
