"""Whole crawls through crawlr.crawl: what is requested, what is recorded, in whatever order the answers come."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import responses

import crawlr
from crawlr.records import FetchFailure, Outcome, PageRecord, TaskKind
from tests.conftest import Command, Crawl
from tests.fakeweb import FakeWeb, Page
from tests.gates import Gate
from tests.killing import differences
from tests.servers.graph import GraphServer, oracle, plan
from tests.servers.local import Once, Reply, Site, page, redirect

MakeSite = Callable[..., Site]
MakeGate = Callable[..., Gate]
HOST = "http://web.test"


def web(**pages: Page) -> FakeWeb:
    """A FakeWeb on HOST: `root` is "/", any other name is "/name"."""
    return FakeWeb({f"{HOST}/{'' if name == 'root' else name}": made for name, made in pages.items()})


# ---------------------------------------------------------------- what is requested


def test_a_page_is_requested_once_and_a_forbidden_one_never(crawl: Crawl, site: MakeSite) -> None:
    """/, /a, /a#x and a /private that robots.txt forbids: one request for /a, none for /private, three records."""
    robots = Reply(headers=(("Content-Type", "text/plain"),), body="User-agent: *\nDisallow: /private\n")
    ground = site({"/robots.txt": robots, "/": page("/a", "/a#x", "/private"), "/a": page("/"), "/private": page()})
    crawled = crawl(ground.url())

    assert sorted(ground.targets()) == ["/", "/a"]
    assert set(crawled.map.pages) == {"/", "/a"}
    assert crawled.map.reasons == {"/private": "robots_disallowed"}
    assert [row["error"] for row in crawled.map["skipped"]] == ["Disallow: /private for *"]
    assert crawled.map["stats"]["unique_urls"] == 3


def test_robots_is_asked_before_the_first_page_and_once(crawl: Crawl, site: MakeSite) -> None:
    """robots.txt is the first request of an origin; its pages wait behind it."""
    ground = site({"/": page(*(f"/{n}" for n in range(20)))}, default=page())
    crawl(ground.url(), concurrency=8)

    assert ground.hits[0].target == "/robots.txt"
    assert [hit.target for hit in ground.hits].count("/robots.txt") == 1


def test_two_pages_that_link_to_a_third_at_once_fetch_it_once(crawl: Crawl) -> None:
    """Both answers arrive in the same moment, and what they share is one URL."""
    barrier = threading.Barrier(2)
    fake = web(
        root=Page(links=("/a", "/b")),
        a=Page(links=("/third",), barrier=barrier),
        b=Page(links=("/third",), barrier=barrier),
        third=Page(),
    )
    crawled = crawl(f"{HOST}/", fetcher=fake)

    assert fake.urls().count(f"{HOST}/third") == 1
    assert len(crawled.map["pages"]) == 4
    assert {("/a", "/third"), ("/b", "/third")} <= crawled.map.edges


def test_an_empty_queue_with_a_fetch_in_flight_is_not_the_end(crawl: Crawl, gate: MakeGate) -> None:
    """The only page left is being fetched: the crawl waits for it and follows what it finds."""
    door = gate()
    fake = web(root=Page(links=("/held",)), held=Page(links=("/last",), gate=door), last=Page())
    started = crawl.start(f"{HOST}/", fetcher=fake)
    door.wait_for_arrivals(1)
    started.join(0.7)  # longer than any interval in which an idle crawl looks around
    was_running = started.is_running()
    door.open()
    crawled = started.wait()

    assert was_running
    assert set(crawled.map.pages) == {"/", "/held", "/last"}


def test_never_more_requests_at_once_than_allowed(crawl: Crawl, gate: MakeGate) -> None:
    """--concurrency is a bound and is reached."""
    door = gate()
    fake = FakeWeb(
        {f"{HOST}/": Page(links=tuple(f"/{n}" for n in range(30)))}
        | {f"{HOST}/{n}": Page(gate=door) for n in range(30)}
    )
    started = crawl.start(f"{HOST}/", fetcher=fake, concurrency=5)
    door.wait_for_arrivals(5)
    door.open()
    started.wait()

    assert fake.most_at_once == 5


# ---------------------------------------------------------------- what fails


def test_a_slow_page_times_out_and_the_crawl_ends(crawl: Crawl, site: MakeSite) -> None:
    """An answer after 5 s with a limit of 200 ms is a time-out, and the other page is there."""
    ground = site({"/": page("/slow", "/good"), "/slow": Reply(delay=5.0), "/good": page()})
    crawled = crawl(ground.url(), timeout=0.2)

    assert crawled.map.outcome("/slow") in ("total_timeout", "read_timeout")
    assert crawled.map.page("/slow")["status"] is None
    assert crawled.map.outcome("/good") == "ok"
    assert crawled.map["stats"]["elapsed_s"] < 4


class OddError(BaseException):
    """Not even an Exception, and it cannot be pickled by its arguments."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


RAISED = [
    ValueError("bad"),
    RuntimeError(),
    OSError(5, "input"),
    KeyboardInterrupt(),
    SystemExit(3),
    OddError(1, 2),
]


@pytest.mark.parametrize("error", RAISED, ids=[type(error).__name__ for error in RAISED])
def test_a_fetch_that_raises_anything_is_recorded_and_the_pool_keeps_its_size(
    crawl: Crawl, error: BaseException
) -> None:
    """Each thread survives: afterwards as many fetches as before are held at a barrier at the same time."""
    size = 3
    barrier = threading.Barrier(size)
    bad = [f"/bad{n}" for n in range(2 * size)]
    fake = FakeWeb(
        {f"{HOST}/": Page(links=(*bad,))}
        | {HOST + path: Page(error=error) for path in bad}
        | {f"{HOST}/next": Page(links=tuple(f"/held{n}" for n in range(size)))}
        | {f"{HOST}/held{n}": Page(barrier=barrier) for n in range(size)}
    )
    fake.pages[f"{HOST}/"] = Page(links=(*bad, "/next"))
    crawled = crawl.start(f"{HOST}/", fetcher=fake, concurrency=size).wait(15)

    assert {crawled.map.outcome(path) for path in bad} == {"protocol_error"}
    assert all(type(error).__name__ in crawled.map.page(path)["error"] for path in bad)
    assert [crawled.map.outcome(f"/held{n}") for n in range(size)] == ["ok"] * size


def test_a_fault_of_this_machine_is_no_outcome_of_a_page(crawl: Crawl) -> None:
    """A fetch that finds no descriptor goes back to the queue, and the page is there in the end."""

    class Short(FakeWeb):
        def fetch(self, task):  # type: ignore[no-untyped-def]
            answer = super().fetch(task)
            is_first = self.urls().count(task.url) == 1
            if task.url.endswith("/a") and is_first:
                return FetchFailure(outcome=Outcome.REFUSED, error="[Errno 24] Too many open files", is_local=True)
            return answer

    fake = Short({f"{HOST}/": Page(links=("/a",)), f"{HOST}/a": Page()})
    crawled = crawl(f"{HOST}/", fetcher=fake)

    assert (crawled.map.outcome("/a"), crawled.map.page("/a")["status"]) == ("ok", 200)
    assert fake.urls().count(f"{HOST}/a") == 2


def test_many_faults_of_this_machine_at_one_moment_do_not_end_the_crawl(crawl: Crawl) -> None:
    """Forty fetches find no descriptor at once: that is one shortage, not forty, and all pages are there in the end."""
    size = 40
    barrier = threading.Barrier(size)

    class ShortOnce(FakeWeb):
        def fetch(self, task):  # type: ignore[no-untyped-def]
            answer = super().fetch(task)
            if task.url == f"{HOST}/" or self.urls().count(task.url) > 1 or task.kind is not TaskKind.PAGE:
                return answer
            barrier.wait(10)
            return FetchFailure(outcome=Outcome.REFUSED, error="[Errno 24] Too many open files", is_local=True)

    fake = ShortOnce(
        {f"{HOST}/": Page(links=tuple(f"/{n}" for n in range(size)))} | {f"{HOST}/{n}": Page() for n in range(size)}
    )
    crawled = crawl(f"{HOST}/", fetcher=fake, concurrency=size)

    assert {row["outcome"] for row in crawled.map["pages"]} == {"ok"}
    assert len(crawled.map["pages"]) == size + 1


def test_a_failure_that_passes_is_retried(crawl: Crawl, site: MakeSite) -> None:
    """500, then 200: two attempts, one page."""
    ground = site({"/": page("/flaky"), "/flaky": Once(Reply(status=500), page("/more")), "/more": page()})
    crawled = crawl(ground.url(), retries=2)

    assert (crawled.map.outcome("/flaky"), crawled.map.page("/flaky")["attempts"]) == ("ok", 2)
    assert ground.targets().count("/flaky") == 2
    assert "/more" in crawled.map.pages


def test_what_on_page_raises_ends_the_crawl_and_is_raised(crawl: Crawl, site: MakeSite, tmp_path: Path) -> None:
    """The caller's own mistake is not swallowed; threads and processes have ended (the check around each test)."""
    ground = site({"/": page(*(f"/{n}" for n in range(50)))}, default=page())
    seen: list[PageRecord] = []

    def on_page(record: PageRecord) -> None:
        seen.append(record)
        if len(seen) == 3:
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        crawl(ground.url(), on_page=on_page)

    assert len(seen) == 3


def test_on_page_is_told_each_page_once(crawl: Crawl, site: MakeSite) -> None:
    """One call for each page, in the calling thread, with the record that is in the file."""
    ground = site({"/": page(*(f"/{n}" for n in range(30)))}, default=page())
    seen: list[tuple[str, int]] = []
    crawled = crawl(ground.url(), on_page=lambda record: seen.append((record.url, threading.get_ident())))

    assert sorted(url for url, _ in seen) == sorted(row["url"] for row in crawled.map["pages"])
    assert {thread for _, thread in seen} == {threading.get_ident()}


# ---------------------------------------------------------------- parser processes


@pytest.fixture
def poison(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Parser processes that die or hang on pages under /poison/ (tests/loopback/crawlr_test_poison.py)."""
    folder = Path(__file__).parent / "loopback"
    monkeypatch.setenv("PYTHONPATH", f"{folder}:{folder.parents[1]}")
    monkeypatch.setenv("CRAWLR_TEST_POISON", str(tmp_path))


def poisoned_site(site: MakeSite, *poisons: str) -> Site:
    """Many good pages before and after the poisons."""
    before, after = [f"/before{n}" for n in range(25)], [f"/after{n}" for n in range(25)]
    return site({"/": page(*before, *poisons, *after)}, default=page("/", text="<p>text</p>" * 50))


ONCE = ["kill", "segfault", "leave", "half", "hang"]


@pytest.mark.usefixtures("poison")
@pytest.mark.parametrize("name", ONCE)
def test_a_parser_that_dies_once_costs_nothing(crawl: Crawl, site: MakeSite, name: str) -> None:
    """Killed in the middle of a page, or of its answer: the page gets a quiet second try, the crawl is whole."""
    ground = poisoned_site(site, f"/poison/{name}/once")
    crawled = crawl(ground.url(), parse_procs=2, parse_timeout=1.0)
    outcomes = {path: row["outcome"] for path, row in crawled.map.pages.items()}
    of_poison = outcomes.pop(f"/poison/{name}/once")

    assert of_poison == "ok" or (name == "hang" and of_poison == "parse_timeout")
    assert (set(outcomes.values()), len(outcomes)) == ({"ok"}, 51)
    assert ground.targets().count(f"/poison/{name}/once") == 1


ALWAYS = [
    ("kill", "parser_crash"),
    ("segfault", "parser_crash"),
    ("leave", "parser_crash"),
    ("half", "parser_crash"),
    ("hang", "parse_timeout"),
    ("spin", "parse_timeout"),
]


@pytest.mark.usefixtures("poison")
@pytest.mark.parametrize(("name", "outcome"), ALWAYS, ids=[row[0] for row in ALWAYS])
def test_a_page_that_ends_every_parser_is_recorded_and_the_rest_is_whole(
    crawl: Crawl, site: MakeSite, name: str, outcome: str
) -> None:
    """Only the page that does it is blamed; the pages that shared its parser are parsed."""
    ground = poisoned_site(site, f"/poison/{name}")
    crawled = crawl(ground.url(), parse_procs=2, parse_timeout=1.0)
    outcomes = {path: row["outcome"] for path, row in crawled.map.pages.items()}

    assert outcomes.pop(f"/poison/{name}") == outcome
    assert (set(outcomes.values()), len(outcomes)) == ({"ok"}, 51)
    assert crawled.map.page(f"/poison/{name}")["status"] == 200
    assert ground.targets().count(f"/poison/{name}") == 1


@pytest.mark.usefixtures("poison")
def test_several_deadly_pages_do_not_stop_the_crawl(crawl: Crawl, site: MakeSite) -> None:
    """Deaths that are the pages' fault are no reason to give up while other pages get through."""
    poisons = [f"/poison/kill/{n}" for n in range(6)]
    ground = poisoned_site(site, *poisons)
    crawled = crawl(ground.url(), parse_procs=2)

    assert {crawled.map.outcome(path) for path in poisons} == {"parser_crash"}
    assert len(crawled.map["pages"]) == 57


def test_a_parser_killed_from_outside_costs_nothing(crawl: Crawl, gate: MakeGate, site: MakeSite) -> None:
    """SIGKILL for every parser process while pages wait: each page is there in the end."""
    door = gate()
    routes = {"/": page(*(f"/{n}" for n in range(40)))} | {
        f"/{n}": Reply(body="<p>x" * 2000, gate=door) for n in range(5, 40)
    }
    ground = site(routes, default=page())
    started = crawl.start(ground.url(), parse_procs=2)
    door.wait_for_arrivals(1)
    leaves = [child for child in psutil.Process().children(recursive=True) if is_parser(child)]
    for parser in leaves:
        with contextlib.suppress(psutil.Error):
            parser.kill()
    door.open()
    crawled = started.wait()

    assert leaves
    assert {row["outcome"] for row in crawled.map["pages"]} == {"ok"}
    assert len(crawled.map["pages"]) == 41


def is_parser(process: psutil.Process) -> bool:
    """A parser process has no child and is no child of this process, or (spawned) runs no fork server."""
    with contextlib.suppress(psutil.Error):
        line = " ".join(process.cmdline())
        return not process.children() and "resource_tracker" not in line and process.ppid() != psutil.Process().pid
    return False


# ---------------------------------------------------------------- bounds and depth


@pytest.mark.parametrize("budget", [1, 2, 17, 64, 100])
def test_max_pages_is_exact_under_concurrency(crawl: Crawl, site: MakeSite, budget: int) -> None:
    """Exactly so many distinct URLs are requested; the rest that is known waits as page_budget."""
    ground = site({"/": page(*(f"/{n}" for n in range(150)))}, default=page("/", "/more"))
    crawled = crawl(ground.url(), max_pages=budget, concurrency=16)
    requested = set(ground.targets())

    assert len(requested) == budget == len(crawled.map["pages"])
    assert set(crawled.map.reasons.values()) == {"page_budget"} if budget > 1 else True
    assert (crawled.map["stop_reason"], crawled.map["complete"]) == ("page_budget", False)


def test_a_redirect_hop_counts_as_a_page_and_a_retry_does_not(crawl: Crawl, site: MakeSite) -> None:
    """--max-pages 3 is the seed, the redirect and its target, whatever was tried twice."""
    ground = site(
        {"/": Once(Reply(status=503), page("/hop", "/last")), "/hop": redirect("/to"), "/to": page(), "/last": page()}
    )
    crawled = crawl(ground.url(), max_pages=3, retries=1, concurrency=1)

    assert len(set(ground.targets())) == 3
    assert crawled.map["stop_reason"] == "page_budget"


@pytest.mark.parametrize("depth", [0, 1, 2, 5])
def test_depth_is_exact_on_a_random_graph(crawl: Crawl, depth: int) -> None:
    """Pages, depths, edges and what is out of depth are those of the oracle."""
    server = GraphServer(plan(11, 300))
    try:
        crawled = crawl(server.origin() + "/", depth=depth, concurrency=8, parse_procs=2, retries=1)
    finally:
        server.close()

    assert differences(crawled.map, oracle(11, 300, depth=depth)) == []


def test_two_crawls_of_one_site_give_the_same(crawl: Crawl) -> None:
    """Answers come in another order; pages, statuses, depths and edges are the same."""
    maps = []
    for concurrency in (1, 16):
        server = GraphServer(plan(12, 200))
        try:
            crawled = crawl(server.origin() + "/", concurrency=concurrency, parse_procs=2, retries=1)
        finally:
            server.close()
        maps.append((crawled.map.summary, crawled.map.edges, crawled.map.reasons))

    assert maps[0] == maps[1]


def late_short_way(door: Gate) -> FakeWeb:
    """To /far there is a long way over /x1 and /x2, and a short one over /short, whose answer is held back."""
    return web(
        root=Page(links=("/x1", "/short")),
        x1=Page(links=("/x2",)),
        x2=Page(links=("/far",)),
        short=Page(links=("/far",), gate=door),
        far=Page(links=("/beyond1",)),
        beyond1=Page(links=("/beyond2",)),
        beyond2=Page(links=("/beyond3",)),
        beyond3=Page(),
    )


def test_a_shorter_way_found_later_gives_the_right_depth(crawl: Crawl, gate: MakeGate) -> None:
    """/far and all below it were fetched by a long way; then a shorter way appears, and all depths drop."""
    door = gate()
    fake = late_short_way(door)
    pages_seen = threading.Event()

    def on_page(record: PageRecord) -> None:
        if record.url == f"{HOST}/beyond3":
            pages_seen.set()

    started = crawl.start(f"{HOST}/", fetcher=fake, on_page=on_page)
    assert pages_seen.wait(20), "the long way was not crawled while the short one was held"
    door.open()
    crawled = started.wait()
    depths = {path: row["depth"] for path, row in crawled.map.pages.items()}

    assert depths == {"/": 0, "/x1": 1, "/short": 1, "/x2": 2, "/far": 2, "/beyond1": 3, "/beyond2": 4, "/beyond3": 5}
    assert crawled.map.path(crawled.map.urls[crawled.map.page("/far")["parent"]]) == "/short"


FAR_ENDS = {
    "robots": Page(links=("/private",)),
    "nofollow": Page(body=b'<meta name=robots content=nofollow><a href="/private">x</a>'),
}


@pytest.mark.parametrize("name", FAR_ENDS)
def test_a_shorter_way_found_later_reaches_what_is_never_requested(crawl: Crawl, gate: MakeGate, name: str) -> None:
    """A URL behind /far that a rule forbids gets its right depth too, although no answer follows that would tell."""
    door = gate()
    fake = web(
        root=Page(links=("/x1", "/short")),
        x1=Page(links=("/x2",)),
        x2=Page(links=("/far",)),
        short=Page(links=("/far",), gate=door),
        far=FAR_ENDS[name],
    )
    fake.pages[f"{HOST}/robots.txt"] = Page(
        body=b"User-agent: *\nDisallow: /private\n", headers={"Content-Type": "text/plain"}
    )
    far_is_done = threading.Event()

    def on_page(record: PageRecord) -> None:
        if record.url == f"{HOST}/far":
            far_is_done.set()

    started = crawl.start(f"{HOST}/", fetcher=fake, on_page=on_page)
    assert far_is_done.wait(20), "the long way was not crawled while the short one was held"
    door.open()
    crawled = started.wait()
    depths = {crawled.map.path(row["url"]): row["depth"] for row in [*crawled.map["pages"], *crawled.map["skipped"]]}

    assert (depths["/far"], depths["/private"]) == (2, 3)


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_a_shorter_way_found_later_gives_the_right_set(crawl: Crawl, gate: MakeGate, depth: int) -> None:
    """What --depth had cut becomes a page when a shorter way shows that it fits."""
    door = gate()
    fake = late_short_way(door)
    pages_seen = threading.Event()

    def on_page(record: PageRecord) -> None:
        if record.url == f"{HOST}/x2":
            pages_seen.set()

    started = crawl.start(f"{HOST}/", fetcher=fake, on_page=on_page, depth=depth)
    assert pages_seen.wait(20), "the long way was not crawled while the short one was held"
    door.open()
    crawled = started.wait()
    true_depths = {"/": 0, "/x1": 1, "/short": 1, "/x2": 2, "/far": 2, "/beyond1": 3, "/beyond2": 4, "/beyond3": 5}

    assert {path: row["depth"] for path, row in crawled.map.pages.items()} == {
        path: value for path, value in true_depths.items() if value <= depth
    }
    assert crawled.map.reasons == {path: "depth_limit" for path, value in true_depths.items() if value == depth + 1}


def test_max_time_ends_the_crawl_and_cuts_what_is_in_flight(crawl: Crawl, site: MakeSite) -> None:
    """A page that would take a minute does not hold up a crawl of two seconds."""
    ground = site({"/": page("/slow"), "/slow": Reply(delay=60.0)})
    crawled = crawl(ground.url(), max_time=2.0)

    assert crawled.map["stop_reason"] == "time_budget"
    assert crawled.map.reasons == {"/slow": "time_budget"}
    assert crawled.map["stats"]["elapsed_s"] < 10


def test_the_stop_event_ends_a_crawl_as_an_interruption(crawl: Crawl, gate: MakeGate) -> None:
    """In-flight fetches are cut and wait again; what was parsed is in the file."""
    door = gate()
    fake = web(root=Page(links=("/held",)), held=Page(gate=door))
    started = crawl.start(f"{HOST}/", fetcher=fake)
    door.wait_for_arrivals(1)
    started.stop.set()
    crawled = started.wait(10)

    assert (crawled.map["stop_reason"], crawled.result.complete) == ("interrupted", False)
    assert crawled.map.reasons == {"/held": "interrupted"}


# ---------------------------------------------------------------- signals


INTERRUPTIONS = [(True, None), (True, 0.0), (True, 0.01), (True, 0.5), (False, None), (False, 0.0)]


@pytest.mark.parametrize(
    ("to_group", "pause"), INTERRUPTIONS, ids=[f"{'group' if g else 'main'}-{p}" for g, p in INTERRUPTIONS]
)
def test_ctrl_c_in_the_middle_of_a_crawl(run_cli: Command, site: MakeSite, pause: float | None, to_group: bool) -> None:
    """Once or twice, fast or slow, with stdout on a pipe: status 130 soon, no traceback, a whole file, nothing left."""
    links = [f"/{n}" for n in range(200)]
    ground = site({"/": page(*links)}, default=Reply(body="<p>x" * 500, delay=0.05))
    running = run_cli.start("--concurrency", "8", "--parse-procs", "2", ground.url(), stdout_pipe=True)
    ground.wait_for_requests(60)
    send = running.signal_group if to_group else running.signal
    send(signal.SIGINT)
    if pause is not None and not running.has_ended_within(pause):
        with contextlib.suppress(ProcessLookupError):
            send(signal.SIGINT)
    ran = running.wait(6)

    assert ran.rc == 130, ran.err
    assert ran.left == ()
    assert "Traceback" not in ran.err
    assert ran.map is None or ran.map["stop_reason"] == "interrupted"
    if pause is None:
        assert len(ran.site_map["pages"]) > 10
        assert "--resume" in ran.err


# ---------------------------------------------------------------- the library's neighbours


@responses.activate
def test_mocks_of_requests_work_with_the_default_fetcher(crawl: Crawl) -> None:
    """A test that mocks requests with `responses` can crawl: nothing is looked up or connected to."""
    responses.get("http://mocked.example/robots.txt", status=404)
    responses.get("http://mocked.example/", body='<a href="/a">x</a>', content_type="text/html")
    responses.get("http://mocked.example/a", body="<title>A</title>", content_type="text/html")
    crawled = crawl("http://mocked.example/")

    assert set(crawled.map.pages) == {"/", "/a"}
    assert crawled.map.page("/a")["title"] == "A"


def test_a_crawl_needs_no_main_thread(crawl: Crawl, site: MakeSite) -> None:
    """Called from any thread, twice at the same time, each crawl has its own state."""
    grounds = [site({"/": page("/a", "/b")}, default=page()) for _ in range(2)]
    started = [crawl.start(ground.url()) for ground in grounds]

    assert [len(each.wait().map["pages"]) for each in started] == [3, 3]


def test_canonicalise_gives_the_key_and_its_errors_name_it(crawl: Crawl) -> None:
    """Spellings with one key are one page, None drops a link, and what it raises ends the crawl and names it."""
    fake = web(root=Page(links=("/A", "/a", "/dropped")), A=Page(), a=Page(), dropped=Page())
    crawled = crawl(f"{HOST}/", fetcher=fake, canonicalise=lambda url: None if "dropped" in url else url.lower())

    assert set(crawled.map.pages) == {"/", "/A"}

    def broken(url: str) -> str:
        raise LookupError("mine")

    with pytest.raises(Exception, match="canonicalise"):
        crawl(f"{HOST}/", fetcher=web(root=Page(links=("/a",)), a=Page()), canonicalise=broken)


def test_filters_put_urls_out_of_scope(crawl: Crawl) -> None:
    """A URL that a filter refuses has no row and no edge, and still counts in links."""
    fake = web(root=Page(links=("/a", "/refused")), a=Page(), refused=Page())
    crawled = crawl(f"{HOST}/", fetcher=fake, filters=[lambda url: "refused" not in url])

    assert set(crawled.map.pages) == {"/", "/a"}
    assert crawled.map.page("/")["links"] == 2
    assert crawled.map.edges == {("/", "/a")}


def test_the_result_is_read_from_the_journal(crawl: Crawl, site: MakeSite) -> None:
    """pages, skipped, unvisited and edges of the result are those of the file, and can be read again."""
    ground = site({"/": page("/a", "/b"), "/a": page("/c")}, default=page())
    crawled = crawl(ground.url(), depth=1)
    result = crawled.result

    for _ in range(2):
        assert [(record.id, record.url) for record in result.pages] == [
            (r["id"], r["url"]) for r in crawled.map["pages"]
        ]
        assert [record.url for record in result.unvisited] == [row["url"] for row in crawled.map["unvisited"]]
        assert list(result.skipped) == []
        assert sorted(result.edges) == sorted(map(tuple, crawled.map["edges"]))
    assert result.stats["pages"] == crawled.map["stats"]["pages"]


def test_a_crawl_without_a_file_still_has_a_result(
    site: MakeSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """out=None writes nothing anywhere."""
    monkeypatch.chdir(tmp_path)
    ground = site({"/": page("/a")}, default=page())
    with crawlr.crawl(ground.url(), rps=0, out=None, parse_procs=1) as result:
        found = [record.url for record in result.pages]

    assert found == [ground.url("/"), ground.url("/a")]
    assert list(tmp_path.iterdir()) == []


def test_pages_say_whether_a_sitemap_names_them_and_when_they_changed(
    crawl: Crawl, site: MakeSite, tmp_path: Path
) -> None:
    """With --sitemaps each page has in_sitemap, a resume keeps it; last_modified is the header as it was sent."""
    listed = ["/", "/listed", "/late", "/gone"]
    links = ["/listed", "/only-linked", "/late"]
    headers = (("Content-Type", "text/html"), ("Last-Modified", "Tue, 03 Feb 2026 10:20:30 GMT"))
    ground = site({"/": page(*links), "/gone": Reply(status=404), "/listed": Reply(body="x", headers=headers)},
                  default=page())  # fmt: skip
    urls = "".join(f"<url><loc>{ground.url(path)}</loc></url>" for path in listed)
    ground.routes["/sitemap.xml"] = Reply(body=f"<urlset>{urls}</urlset>", headers=(("Content-Type", "text/xml"),))
    crawl(ground.url(), out=str(tmp_path / "x.json"), sitemaps=True, max_pages=2, fresh=True).result.close()
    pages = crawl(ground.url(), out=str(tmp_path / "x.json"), sitemaps=True, resume=True).map.pages
    plain = crawl(ground.url()).map.pages

    assert {path for path, row in pages.items() if row["in_sitemap"]} == set(listed)
    assert [path for path, row in pages.items() if not row["in_sitemap"]] == ["/only-linked"]
    assert (pages["/listed"]["last_modified"], pages["/late"]["last_modified"]) == (headers[1][1], None)
    assert "in_sitemap" not in plain["/listed"]


def test_what_the_last_sitemap_says_is_kept(crawl: Crawl, site: MakeSite, gate: MakeGate) -> None:
    """A sitemap that comes when every page is committed marks them all the same."""
    door = gate()
    told = threading.Event()
    ground = site({"/": page()})
    text = f"<urlset><url><loc>{ground.url()}</loc></url></urlset>"
    ground.routes["/sitemap.xml"] = Reply(body=text, headers=(("Content-Type", "text/xml"),), gate=door)
    started = crawl.start(ground.url(), sitemaps=True, on_page=lambda _: told.set())
    assert told.wait(10)
    door.open()

    assert [row["in_sitemap"] for row in started.wait().map["pages"]] == [True]


@pytest.mark.parametrize("name", ["pages", "skipped", "unvisited", "edges"])
def test_a_closed_result_says_that_it_is_closed(name: str) -> None:
    """Whoever reads it after its `with` block hears of that, and of no database."""
    with crawlr.crawl("http://site.test/", fetcher=FakeWeb({}), parse_procs=1, out=None) as result:
        pass

    with pytest.raises(ValueError, match="closed"):
        list(getattr(result, name))
