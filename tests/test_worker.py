"""What a parse process makes of a body: facts, outcomes, links as numbers. `Worker` is called inline; a few run for
real."""

from __future__ import annotations

import contextlib
import gzip
import queue
import subprocess
import sys
import zlib
from array import array
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from crawlr.parse import document, sitemaps, worker
from crawlr.parse.pool import ParsedBatch, ParseFailed, ParsePool
from crawlr.parse.results import FAILED, PAGE, SITEMAP, FailedRow, PageResult, SitemapResult
from crawlr.parse.settings import WorkerSettings
from crawlr.parse.worker import KINDS, Worker
from crawlr.records import RawBody, TaskKind

MIB = 1024 * 1024
URL = "http://a.test/dir/page"


def gzipped(data: bytes) -> bytes:
    """Without the time: tests are named by what they are given."""
    return gzip.compress(data, mtime=0)


SETTINGS = WorkerSettings(
    parser="lxml",
    follow=("a", "area", "iframe", "frame", "refresh"),
    keep_params=False,
    ignore_param=(),
    agent="crawlr",
    max_body=MIB,
    parse_timeout=10.0,
    parse_memory=1024 * MIB,
)


class Reader:
    """A worker and, beside it, what the main process knows of its link table: the two must never disagree."""

    def __init__(self, **options: Any) -> None:
        self.worker = Worker(structs.replace(SETTINGS, **options))
        self.table: list[str] = []
        """Number -> URL as it was first spelled."""
        self.sent: list[tuple[str, str]] = []

    def rows(self, *rows: worker.Row) -> list[tuple[object, ...]]:
        must_reset, new_links, answers, rss = self.worker.parse_batch(rows)
        if must_reset:
            self.table.clear()
        self.table.extend(url for url, _ in new_links)
        self.sent = new_links
        assert rss > 0
        assert len(answers) == len(rows)
        return answers

    def page(self, html: str | bytes, **options: Any) -> PageResult:
        [answer] = self.rows(row(html, **options))
        assert answer[0] == PAGE, answer
        return PageResult._make(answer[1:])

    def links(self, result: PageResult) -> list[tuple[str, str, bool]]:
        """(URL, kind, whether it may be followed) of a page's targets."""
        numbers = memoryview(result.targets).cast("I")
        return [
            (self.table[number], KINDS[flag >> 1], bool(flag & 1))
            for number, flag in zip(numbers, result.flags, strict=True)
        ]


def row(
    body: str | bytes,
    *,
    number: int = 7,
    url: str = URL,
    kind: str = PAGE,
    content_type: str | None = "text/html",
    coding: str | None = None,
) -> worker.Row:
    return number, url, kind, body.encode() if isinstance(body, str) else body, content_type, coding


# texts


TEXTS = (
    '<a href="/a"> A  &amp;<br>a </a><a href="/b"><img src=i.png alt="The B"></a><area href="/c" alt=C>'
    '<a href="/a?utm_source=x">again</a><a href="#x">self</a><iframe src="/d"></iframe><a href="/e"></a>'
)


@pytest.mark.parametrize("parser", ["lxml", "lexbor", "scanner"])
def test_texts_are_those_of_the_first_link_to_each_target(parser: str) -> None:
    """One line a target, whichever engine found it: what the link says, an image's alt, or nothing."""
    reader = Reader(texts=True, parser=parser)
    result = reader.page(TEXTS)
    lines = zlib.decompress(result.texts).decode().split("\n")

    assert list(zip([url for url, _, _ in reader.links(result)], lines, strict=True)) == [
        ("http://a.test/a", "A & a"),
        ("http://a.test/b", "The B"),
        ("http://a.test/c", "C"),
        ("http://a.test/dir/page", "self"),
        ("http://a.test/d", ""),
        ("http://a.test/e", ""),
    ]


def test_no_texts_unless_they_are_wanted() -> None:
    """Texts cost nothing where no output has a place for them, nor on a page without links."""
    assert Reader().page(TEXTS).texts == b""
    assert Reader(texts=True).page("<p>no link").texts == b""
    before_times = PageResult._fields.index("decode_us")
    assert Reader().page(TEXTS)[:before_times] == Reader(texts=True).page(TEXTS)[:before_times]


# facts


def test_facts_of_a_page() -> None:
    """Title, canonical address, robots, encoding and size come with the page."""
    html = (
        "<meta charset=latin2><title> A\n title </title><link rel=canonical href='/c'><meta name=robots content='none'>"
        "<meta name=crawlr content='NoArchive'><p>text"
    )
    result = Reader().page(html)

    assert result[:8] == (
        7,
        "ok",
        None,
        "A title",
        "http://a.test/c",
        ("noarchive", "nofollow", "noindex"),
        "iso-8859-2",
        len(html),
    )


def test_title_is_cut() -> None:
    """A title has at most 1,000 characters."""
    assert Reader().page(f"<title>{'x' * 5000}</title>").title == "x" * 1000


def test_stages_are_timed() -> None:
    """A large page took some time in each stage."""
    result = Reader().page("<a href=/x>x</a>" * 20_000)

    assert min(result.decode_us, result.parse_us, result.resolve_us) > 0


def test_hash_is_of_the_decoded_body_and_the_same_everywhere() -> None:
    """Equal content has equal hashes in every process, however it was packed; other content has another."""
    hashes = [
        Reader().page("<p>same").body_hash,
        Reader().page(gzipped(b"<p>same"), coding="gzip").body_hash,
        134571272137517389,
    ]

    assert len(set(hashes)) == 1
    assert Reader().page("<p>other").body_hash != hashes[0]


PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)
NOT_PLAIN = b'<body title=">">'
"""Before a page: an engine reads it, and not crawlr.parse.plain."""
PACKED = gzipped(b"<p>text<a href=/x>x</a>" * 200)


@pytest.mark.parametrize(
    ("body", "options", "outcome", "links"),
    [
        (b"", {}, "ok", 0),
        (b"   \n", {}, "ok", 0),
        (b"<!-- -->", {}, "ok", 0),
        (b"<a href=/x>", {"content_type": None}, "ok", 1),
        (PNG, {}, "not_html", 0),
        (b"{}", {"content_type": "application/json"}, "not_html", 0),
        (PACKED, {"coding": "gzip"}, "ok", 1),
        (PACKED[:-20], {"coding": "gzip"}, "truncated", 1),
        (b"hello", {"coding": "gzip"}, "decode_error", 0),
        (PACKED, {"coding": "gzip, gzip, gzip, gzip, gzip, gzip"}, "decode_error", 0),
        (PACKED[:30] + b"\xff" * 30, {"coding": "gzip"}, "decode_error", 0),
        (b"<a href=/x>x</a>" + b" " * MIB, {}, "too_large", 1),
        (gzipped(b"<a href=/x>x</a>" + b" " * (50 * MIB)), {"coding": "gzip"}, "too_large", 1),
        (b"<div>" * 30_000 + b"<a href=/x>", {}, "parse_truncated", 1),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_outcomes(body: bytes, options: dict[str, Any], outcome: str, links: int) -> None:
    """Each kind of damage has its outcome, says what it is, and leaves the links that are there for sure."""
    result = Reader().page(body, **options)

    assert (result.outcome, len(result.flags)) == (outcome, links)
    assert (result.error is None) == (outcome in ("ok", "not_html"))
    assert result.bytes <= MIB


# links


def test_links_in_document_order_distinct_by_identity() -> None:
    """Two spellings of one page are one target, and the first is sent; other schemes are no targets."""
    reader = Reader()
    result = reader.page(
        "<a href='/b?utm_source=x'>1<a href=/a>2<a href=/b#f>3<a href=/b>4"
        "<a href=mailto:x@y.z>5<a href=page>6<a href=/%62>7"
    )

    assert [url for url, _, _ in reader.links(result)] == ["http://a.test/b?utm_source=x", "http://a.test/a", URL]
    assert reader.sent == [("http://a.test/b?utm_source=x", "http://a.test/b"), ("http://a.test/a", ""), (URL, "")]


def test_known_link_crosses_as_its_number_only() -> None:
    """What stood on a page before is not sent again, on whatever page, in whatever spelling."""
    reader = Reader()
    first = reader.page("<a href=/a>1<a href=/b>2")
    again = reader.page("<a href=/c>1<a href=/b?utm_campaign=q>2<a href=/a>3", url="http://a.test/")

    assert reader.sent == [("http://a.test/c", "")]
    assert array("I", first.targets) == array("I", [0, 1])
    assert array("I", again.targets) == array("I", [2, 1, 0])


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<a href=/x>", ("a", True)),
        ("<a rel=nofollow href=/x>", ("a", False)),
        ("<a rel=nofollow href=/x><a href=/x>", ("a", True)),
        ("<a href=/x><a rel=nofollow href=/x>", ("a", True)),
        ("<a rel=nofollow href=/x><area rel=nofollow href=/x>", ("a", False)),
        ("<map><area href=/x></map><a href=/x>", ("area", True)),
        ("<iframe src=/x></iframe>", ("iframe", True)),
        ("<meta http-equiv=refresh content='0;url=/x'>", ("refresh", True)),
        ("<link rel=next href=/x>", ("link", True)),
        ("<img src=/x>", ("img", True)),
        ("<script src=/x></script>", ("script", True)),
        ("<video src=/x></video>", ("video", True)),
    ],
)
def test_flags(html: str, expected: tuple[str, bool]) -> None:
    """A target says of what kind its first link is and whether any of its links may be followed."""
    reader = Reader(follow=("all",))

    assert reader.links(reader.page(html)) == [("http://a.test/x", *expected)]


@pytest.mark.parametrize(
    ("follow", "expected"),
    [
        (("a",), ["a"]),
        (("img", "link"), ["link", "img"]),
        (("a", "area", "iframe", "frame", "refresh"), ["a", "iframe"]),
        (("a", "all"), ["link", "a", "img", "iframe", "script", "stylesheet"]),
    ],
)
def test_followed_kinds_only(follow: tuple[str, ...], expected: list[str]) -> None:
    """Links of other kinds than those asked for are no targets."""
    reader = Reader(follow=follow)
    result = reader.page(
        "<link rel=alternate href=/1><link rel=stylesheet href=/6><a href=/2>a</a><img src=/3>"
        "<iframe src=/4></iframe><script src=/5></script>"
    )

    assert sorted(kind for _, kind, _ in reader.links(result)) == sorted(expected)


@pytest.mark.parametrize(
    ("options", "count"), [({}, 1), ({"keep_params": True}, 2), ({"ignore_param": ("v",)}, 1), ({"agent": "x"}, 1)]
)
def test_parameters_that_do_not_count(options: dict[str, Any], count: int) -> None:
    """--keep-params and --ignore-param decide which spellings are one page."""
    result = Reader(**options).page("<a href='/x?utm_id=1'><a href=/x>")

    assert len(result.flags) == count


def test_full_table_begins_anew() -> None:
    """When the table is over its limit it is emptied before the next batch, and numbers start at 0 again."""
    reader = Reader(link_table_limit=3)
    reader.page("<a href=/1><a href=/2><a href=/3><a href=/4>")
    result = reader.page("<a href=/4><a href=/9>")

    assert reader.sent == [("http://a.test/4", ""), ("http://a.test/9", "")]
    assert array("I", result.targets) == array("I", [0, 1])
    assert [url for url, _, _ in reader.links(result)] == ["http://a.test/4", "http://a.test/9"]


class OutOfMemory:
    """An identity that fails at some URLs, as any step of a page may when memory ends."""

    def __init__(self, inner: Callable[[str], str]) -> None:
        self.inner = inner

    def __call__(self, url: str) -> str:
        if url.endswith("/boom"):
            raise MemoryError
        return self.inner(url)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.lists(st.sampled_from(["/1", "/2", "/2?utm_id=3", "/%33", "/3", "/4", "/boom", "x/", "../5"]), max_size=6),
        min_size=1,
        max_size=8,
    ),
    st.integers(1, 4),
    st.integers(1, 6),
)
def test_table_agrees_with_the_main_process_whatever_fails(pages: list[list[str]], size: int, limit: int) -> None:
    """Numbers mean the same links on both sides, whichever pages failed in the middle and whenever the table was
    emptied."""
    reader = Reader(link_table_limit=limit)
    reader.worker._identity = OutOfMemory(reader.worker._identity)
    for start in range(0, len(pages), size):
        batch = pages[start : start + size]
        answers = reader.rows(*(row("".join(f"<a href='{href}'>" for href in hrefs)) for hrefs in batch))
        for hrefs, answer in zip(batch, answers, strict=True):
            result = PageResult._make(answer[1:])
            if "/boom" in hrefs:
                assert (result.outcome, result.targets) == ("parse_memory", b"")
                continue
            expected = Reader()
            wanted = expected.page("".join(f"<a href='{href}'>" for href in hrefs))
            keys = [reader.worker._identity(url) for url, _, _ in reader.links(result)]
            assert keys == [reader.worker._identity(url) for url, _, _ in expected.links(wanted)]


# trouble


@pytest.mark.parametrize("trouble", [KeyError("x"), RecursionError("deep"), SystemExit("leave"), KeyboardInterrupt()])
def test_error_on_a_page_is_a_value(monkeypatch: pytest.MonkeyPatch, trouble: BaseException) -> None:
    """Whatever a page makes our code raise: it is told with its text and traceback, and the batch goes on."""
    read = document.read

    def fail(body: bytes, **options: Any) -> document.Document:
        if b"bad" in body:
            raise trouble
        return read(body, **options)

    monkeypatch.setattr(document, "read", fail)
    answers = Reader().rows(row("<a href=/1>", number=1), row("bad", number=2), row("<a href=/1>", number=3))

    assert [answer[:2] for answer in answers] == [(PAGE, 1), (FAILED, 2), (PAGE, 3)]
    failed = FailedRow._make(answers[1][1:])
    assert (failed.outcome, failed.error) == ("parser_crash", f"{type(trouble).__name__}: {trouble}")
    assert "in fail" in failed.trace


def test_memory_that_ends_on_a_sitemap(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sitemap has no outcome of its own for it: it fails."""

    def fail(*_: object, **__: object) -> sitemaps.Sitemap:
        raise MemoryError

    monkeypatch.setattr(sitemaps, "read", fail)
    [answer] = Reader().rows(row(b"", kind=SITEMAP))

    assert answer[:4] == (FAILED, 7, SITEMAP, "parse_memory")


@pytest.mark.parametrize(
    ("body", "coding", "expected"),
    [
        (b"<urlset><url><loc>http://a.test/1</loc></url></urlset>", None, ("urlset", ("http://a.test/1",), False)),
        (b"http://a.test/1\nhttp://a.test/2\n", None, ("text", ("http://a.test/1", "http://a.test/2"), False)),
        (gzipped(b"http://a.test/1\n"), None, ("text", ("http://a.test/1",), False)),
        (gzipped(b"http://a.test/1\n"), "gzip", ("text", ("http://a.test/1",), False)),
        (gzipped(b"http://a.test/1\n" * 99)[:-12], "gzip", ("text", ("http://a.test/1",), True)),
        (b"<html><p>not found", None, ("invalid", (), False)),
        (b"hello", "gzip", ("invalid", (), True)),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_sitemaps(body: bytes, coding: str | None, expected: tuple[str, tuple[str, ...], bool]) -> None:
    """A sitemap is unpacked and read; what is wrong with it is told."""
    [answer] = Reader().rows(row(body, kind=SITEMAP, coding=coding, content_type="application/xml"))
    result = SitemapResult._make(answer[1:])

    assert answer[0] == SITEMAP
    assert (result.kind, result.urls) == expected[:2]
    assert result.damaged >= expected[2]


def test_rows_are_flat_and_plain() -> None:
    """What crosses is made of str, int, bytes, bool, None and tuples of str, so nothing can fail to be unpickled."""
    answers = Reader().rows(row("<title>x</title><a href=/1>"), row(b"http://a.test/\n", kind=SITEMAP), row(PNG))

    kinds = {type(value) for answer in answers for value in answer}
    assert kinds <= {str, int, bytes, bool, tuple, type(None)}
    assert {type(each) for answer in answers for value in answer if type(value) is tuple for each in value} <= {str}


# for real


def bodies(*pages: bytes) -> Iterator[RawBody]:
    for number, body in enumerate(pages):
        yield RawBody(
            id=number, url=URL, kind=TaskKind.PAGE, body=body, content_type="text/html", content_encoding=None
        )


def parse_for_real(
    pages: list[RawBody],
    *,
    procs: int = 2,
    watch: Callable[[ParsePool], object] = lambda _: None,
    **options: Any,
) -> dict[int, PageResult | ParseFailed]:
    """The outcomes of these bodies in a real pool; `watch` is called after every message."""
    mailbox: queue.SimpleQueue[object] = queue.SimpleQueue()
    pool = ParsePool(procs=procs, settings=structs.replace(SETTINGS, **options), deliver=mailbox.put)
    found: dict[int, PageResult | ParseFailed] = {}
    pool.start()
    try:
        for body in pages:
            pool.submit(body)
        while pool.waiting + pool.in_flight:
            pool.flush()
            for outcome in pool.receive(mailbox.get(timeout=20)):
                for each in outcome.results if isinstance(outcome, ParsedBatch) else [outcome]:
                    assert isinstance(each, PageResult | ParseFailed)
                    assert each.id not in found
                    found[each.id] = each
                if isinstance(outcome, ParsedBatch):
                    outcome.table.ids.extend(
                        range(len(outcome.table.ids), len(outcome.table.ids) + len(outcome.new_links))
                    )
                    for each in outcome.results:
                        assert isinstance(each, PageResult)
                        assert all(target < len(outcome.table.ids) for target in memoryview(each.targets).cast("I"))
            watch(pool)
    finally:
        pool.close(kill=True)
    return found


def test_real_processes_give_what_the_worker_gives() -> None:
    """The same facts and as many links come through processes as inline."""
    pages = [f"<title>{i}</title><a href=/{i % 7}>x</a><a href=/{i}/>y</a>".encode() for i in range(100)]
    found = parse_for_real(list(bodies(*pages)))

    reader = Reader()
    for number, body in enumerate(pages):
        expected, got = reader.page(body, number=number), found[number]
        assert isinstance(got, PageResult)
        assert (*got[:8], got.flags, got.body_hash) == (*expected[:8], expected.flags, expected.body_hash)


def test_real_page_over_the_memory_limit() -> None:
    """Markup that needs more than the process may have is parse_memory; its neighbours are ok."""
    huge = b"<p><a href=/%06d>x</a>" * 600_000
    found = parse_for_real(list(bodies(b"<p>1", huge, b"<p>3")), parse_memory=48 * MIB, max_body=32 * MIB)

    assert {number: each.outcome for number, each in found.items()} == {0: "ok", 1: "parse_memory", 2: "ok"}


def test_names_that_the_parser_never_forgets() -> None:
    """libxml2 keeps tag names for ever, 2.5 MiB for each of these pages: its process is replaced in time."""
    pages = [NOT_PLAIN + "".join(f"<x{i}-{j}-{'n' * 250}>" for j in range(10_000)).encode() for i in range(40)]
    most: dict[int, int] = {}  # resident bytes by pid

    def watch(pool: ParsePool) -> None:
        for process in pool._slots[0].processes():
            if process._process is not None and process._process.pid is not None:
                with contextlib.suppress(psutil.Error):
                    seen = psutil.Process(process._process.pid).memory_info().rss
                    most[process._process.pid] = max(seen, most.get(process._process.pid, 0))

    found = parse_for_real(list(bodies(*pages)), procs=1, watch=watch, parse_memory=64 * MIB, max_body=4 * MIB)

    assert {each.outcome for each in found.values()} == {"ok"}
    assert len(most) >= 2
    assert max(most.values()) < 90 * MIB


@pytest.mark.parametrize("parser", ["lxml", "lexbor"])
def test_both_engines_run_in_processes(parser: str) -> None:
    """The engine that is asked for is there and finds the link."""
    if parser == "lexbor":
        pytest.importorskip("selectolax", reason="the engine lexbor needs selectolax")
    found = parse_for_real(list(bodies(b"<a href=/x>")), parser=parser)

    assert [len(each.flags) for each in found.values() if isinstance(each, PageResult)] == [1]


def test_parser_process_loads_little() -> None:
    """A process that has parsed a page has loaded no network, no database and no progress bar."""
    code = (
        "import sys, crawlr.parse.job as j, crawlr.parse.settings as s\n"
        "j.initialise(s.WorkerSettings(parser='lxml', follow=('a',), keep_params=False, ignore_param=(), agent='c',"
        " max_body=9, parse_timeout=1.0, parse_memory=9))\n"
        "assert j.parse_batch([s.SAMPLE])[2][0][2] == 'too_large'\nprint(*sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    loaded = {name.partition(".")[0] for name in ended.stdout.split()}

    assert not loaded & {"requests", "urllib3", "sqlite3", "tqdm", "tldextract", "ssl", "brotli", "zstandard"}
