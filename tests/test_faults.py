"""What goes wrong in exchanges and connections, row by row (tests/README.md): the outcome, and the crawl goes on.

Black box: `python -m crawlr` against servers that misbehave. Rows that one crawl can meet together share one run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Command
from tests.running import ROOT, Ran
from tests.servers.local import Site, page
from tests.servers.process import ServerProcess
from tests.servers.wire import Request

MakeSite = Callable[..., Site]
TIME_OUTS = frozenset(["total_timeout", "read_timeout"])


def one(*outcomes: str) -> frozenset[str]:
    return frozenset(outcomes)


# ---------------------------------------------------------------- one crawl of all that is wrong with one exchange

# target, outcomes that are right, status, a link of it that is to be followed
EXCHANGES: list[tuple[str, frozenset[str], int | None, str | None]] = [
    ("drip_body", TIME_OUTS, 200, None),
    ("drip_headers", TIME_OUTS, None, None),
    ("hang", TIME_OUTS, None, None),
    ("stall", TIME_OUTS, 200, None),
    ("inf_1xx", one("protocol_error"), None, None),
    ("inf_trailers", TIME_OUTS | {"too_large", "protocol_error"}, 200, None),
    ("early_hints", one("ok"), 200, "/page/hinted"),
    ("huge_chunk_line", one("protocol_error"), 200, None),
    ("bad_chunk", one("protocol_error"), 200, None),
    ("headers_101", one("protocol_error"), None, None),
    ("header_70k", one("protocol_error"), None, None),
    ("truncated", one("truncated"), 200, "/page/before"),
    ("truncated_chunked", one("truncated"), 200, "/page/before"),
    ("cl_te", one("ok"), 200, "/page/cl_te"),
    ("two_cl", one("protocol_error"), None, None),
    ("neg_cl", one("protocol_error"), None, None),
    ("huge_cl", one("too_large"), 200, None),
    ("http09", one("protocol_error"), None, None),
    ("empty", one("empty_reply"), None, None),
    ("rst", one("reset"), None, None),
    ("status_999", one("http_error"), 999, None),
    ("status_abc", one("protocol_error"), None, None),
    ("esc_reason", one("http_error"), 404, None),
    ("lf_only", one("ok"), 200, "/page/lf_only"),
    ("nul_header", one("ok", "protocol_error"), None, None),
    ("body_204", one("ok", "not_html"), 204, None),
    ("bad_gzip", one("decode_error"), 200, None),
    ("trunc_gzip", one("truncated"), 200, "/page/before"),
    ("bomb", one("too_large"), 200, "/page/before"),
    ("redirect_bomb", one("redirect"), 302, None),
    ("deflate_tail", one("ok"), 200, "/page/deflate"),
    ("enc6", one("decode_error"), 200, None),
    ("enc_unknown", one("decode_error"), 200, None),
    ("loc_file", one("bad_redirect"), 302, None),
    ("loc_ftp", one("bad_redirect"), 302, None),
    ("loc_data", one("bad_redirect"), 302, None),
    ("loc_javascript", one("bad_redirect"), 302, None),
    ("loc_bad", one("bad_redirect"), 302, None),
    ("loc_badport", one("bad_redirect"), 302, None),
    ("loc_controls", one("bad_redirect"), 302, None),
    ("loc_empty", one("bad_redirect"), 302, None),
    ("loc_missing", one("bad_redirect"), 301, None),
    ("loc_metadata", one("redirect"), 302, None),
    ("loop/1/0", one("redirect_loop"), 302, None),
    ("loop/3/0", one("redirect_loop"), 302, None),
    ("chain/10/short", one("redirect"), 302, None),
    ("chain/14/long", one("redirect"), 302, None),
    ("refresh_self", one("ok"), 200, None),
    ("base_javascript", one("ok"), 200, "/page/after"),
    ("base_bad", one("ok"), 200, "/page/after"),
    ("base_elsewhere", one("ok"), 200, None),
    ("hrefs", one("ok"), 200, "/page/after"),
    ("no_body", one("ok"), 200, None),
    ("whitespace", one("ok"), 200, None),
    ("comment_only", one("ok"), 200, None),
    ("pdf", one("ok", "not_html"), 200, None),
    ("png", one("ok", "not_html"), 200, None),
    ("gzip_magic", one("ok", "not_html"), 200, None),
    ("gzip_unsaid", one("ok"), 200, "/page/unsaid"),
    ("binary", one("ok", "not_html", "decode_error"), 200, None),
    ("nuls", one("ok"), 200, "/page/after"),
    ("long_href", one("ok", "too_large"), 200, "/page/before"),
    ("deep/300", one("ok"), 200, "/page/deep"),
    ("deep/50000", one("parse_truncated"), 200, "/page/deep"),
    ("names/20000", one("ok", "parse_truncated"), 200, "/page/after"),
    ("escapes", one("ok"), 200, None),
    ("userinfo", one("ok"), 200, "/echo_headers"),
    ("setcookie", one("ok"), 200, "/echo_headers"),
]


@pytest.fixture(scope="module")
def exchanges(misbehaving: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, list[Request]]:
    """One crawl of a page that links to every behaviour, and what the server saw of it."""
    seed = misbehaving.url("/index?" + "&".join(row[0] for row in EXCHANGES))
    command = Command(tmp_path_factory.mktemp("exchanges"))
    start = misbehaving.position()
    limits = ["--timeout", "2s", "--retries", "0", "--max-body", "11MiB", "--concurrency", "16"]
    ran = command(*limits, "--parse-procs", "2", "-vv", seed, limit=80)
    return ran, misbehaving.hits(start)


@pytest.mark.parametrize(("target", "outcomes", "status", "link"), EXCHANGES, ids=[row[0] for row in EXCHANGES])
def test_an_exchange_that_goes_wrong_is_recorded_as_what_it_is(
    exchanges: tuple[Ran, list[Request]], target: str, outcomes: frozenset[str], status: int | None, link: str | None
) -> None:
    """Each behaviour has its outcome, is asked for once, and the links that came before the trouble are followed."""
    ran, hits = exchanges
    row = ran.site_map.page(f"/{target}")

    assert row["outcome"] in outcomes, row
    assert status is None or row["status"] == status, row
    assert [hit.target for hit in hits].count(f"/{target}") == 1
    if link is not None:
        assert (f"/{target}", link) in ran.site_map.edges
        assert ran.site_map.outcome(link) == "ok"
    if row["outcome"] not in ("ok", "redirect", "not_html", "http_error"):
        assert row["error"], row


def test_nothing_is_requested_that_must_not_be(exchanges: tuple[Ran, list[Request]]) -> None:
    """No link of what was not decoded, not HTML, behind a base elsewhere or in an answer that nobody asked for."""
    _, hits = exchanges
    strange = [
        hit.target for hit in hits if "/page/never" in hit.target or "passwd" in hit.target or len(hit.target) > 5000
    ]

    assert strange == []


def test_a_hop_too_many_is_the_end_of_a_chain(exchanges: tuple[Ran, list[Request]]) -> None:
    """Ten redirects in a row lead to a page, the eleventh does not: --max-redirects is 10."""
    ran, _ = exchanges
    pages = ran.site_map.pages

    assert "/page/short" in pages
    assert (pages["/chain/5/long"]["outcome"], pages["/chain/4/long"]["outcome"]) == ("redirect", "redirect_loop")
    assert pages["/chain/4/long"]["redirect_to"] is None
    assert not {"/chain/3/long", "/page/long"} & set(pages)
    assert [pages[f"/loop/3/{n}"]["outcome"] for n in (1, 2, 0)] == ["redirect_loop"] * 3


def test_a_redirect_to_a_metadata_address_is_not_followed(exchanges: tuple[Ran, list[Request]]) -> None:
    """It is out of scope here; that nothing was connected to is checked in every run."""
    ran, _ = exchanges
    row = ran.site_map.page("/loc_metadata")

    assert row["redirect_to"] is None
    assert row["redirect_url"] == "http://169.254.169.254/latest/meta-data/"


def test_a_broken_header_block_is_not_called_a_failed_connection(exchanges: tuple[Ran, list[Request]]) -> None:
    """Too many or too long headers are said to be that."""
    ran, _ = exchanges

    assert all("header" in ran.site_map.page(f"/{name}")["error"].lower() for name in ("headers_101", "header_70k"))


def test_no_cookie_and_no_user_of_a_url_is_sent(exchanges: tuple[Ran, list[Request]]) -> None:
    """A cookie that was set and a user and password in a link stay where they were."""
    ran, hits = exchanges
    sent = {name.lower() for hit in hits for name, _ in hit.headers}

    assert not sent & {"cookie", "authorization", "proxy-authorization"}
    assert "secret" not in str(ran.site_map.document) + ran.out + ran.err


def test_nothing_of_the_web_reaches_the_terminal_as_a_control_code(exchanges: tuple[Ran, list[Request]]) -> None:
    """No escape, no C1 control, no direction override, whatever titles, reasons and addresses hold, even with -vv."""
    ran, _ = exchanges
    found = re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]", ran.out + ran.err)

    assert found == []


def test_links_that_do_not_parse_or_are_no_web_are_not_requested(exchanges: tuple[Ran, list[Request]]) -> None:
    """Backslash games, bad hosts and other schemes cost nothing: one good link of that page is left in scope."""
    ran, _ = exchanges

    assert {to for source, to in ran.site_map.edges if source == "/hrefs"} == {"/page/after"}


def test_an_address_of_ten_megabytes_is_listed_as_too_long(exchanges: tuple[Ran, list[Request]]) -> None:
    """It is skipped for its length and never requested."""
    ran, _ = exchanges
    skipped = [row for row in ran.site_map["skipped"] if row["reason"] == "url_too_long"]

    assert [len(row["url"]) > 1_000_000 for row in skipped] == [True]


def test_a_bomb_does_not_fill_the_memory(run_cli: Command, misbehaving: ServerProcess) -> None:
    """200 MiB in 200 kB, as a page and on a redirect: with --max-body 8MiB all processes stay far below its size."""
    options = ["--max-body", "8MiB", "--parse-procs", "1"]
    plain = run_cli.start(*options, misbehaving.url("/index?slow/600"))
    usual = plain.peak_memory()
    running = run_cli.start(*options, misbehaving.url("/index?bomb&bomb/2&redirect_bomb&slow/600"))
    peak = running.peak_memory()
    ran = running.wait()

    assert ran.site_map.outcome("/bomb") == "too_large"
    assert ran.site_map.page("/bomb")["bytes"] <= 8 << 20
    assert ran.site_map.outcome("/page/behind") == "ok"
    assert peak - usual < 100 << 20


ODDITIES = ["early_hints", "body_204", "extra_after_end", "cl_te", "status_999", "deflate_tail", "bad_gzip", "lf_only"]


def test_no_answer_is_taken_for_the_answer_to_another_request(run_cli: Command, misbehaving: ServerProcess) -> None:
    """One connection at a time, each oddity followed by pages that say who they are: every title is its page's own."""
    targets = [target for n, name in enumerate(ODDITIES) for target in (f"{name}?{n}", f"page/{n}a", f"page/{n}b")]
    ran = run_cli(
        "--concurrency", "1", "--depth", "1", misbehaving.url("/index?" + "&".join(targets).replace("?", "/"))
    )
    titles = {path: row["title"] for path, row in ran.site_map.pages.items() if path.startswith("/page/")}

    assert len(titles) == 2 * len(ODDITIES)
    assert titles == {path: path for path in titles}


def test_a_kept_connection_that_is_closed_is_no_failure(run_cli: Command, misbehaving: ServerProcess) -> None:
    """The server closes idle connections as a request comes: it is sent again on a new one, and is no attempt."""
    targets = [f"close_on_second/{n}" for n in range(6)]
    start = misbehaving.position()
    ran = run_cli(
        "--concurrency", "1", "--retries", "0", "--depth", "1", misbehaving.url("/index?" + "&".join(targets))
    )
    rows = [ran.site_map.page(f"/{target}") for target in targets]

    assert [(row["outcome"], row["attempts"]) for row in rows] == [("ok", 1)] * 6
    assert max(misbehaving.targets(start).count(f"/{target}") for target in targets) == 2


RETRY_AFTER = ["negative", "junk", "past", "1", "date"]


def test_any_retry_after_is_survived(run_cli: Command, misbehaving: ServerProcess, tmp_path: Path) -> None:
    """Seconds, a date, the past or nonsense: each page is there at the second try."""
    targets = [f"retry_after/{tmp_path.name}/{key}" for key in RETRY_AFTER]
    ran = run_cli("--retries", "1", misbehaving.url("/index?" + "&".join(targets)))
    rows = [ran.site_map.page(f"/{target}") for target in targets]

    assert [(row["outcome"], row["attempts"]) for row in rows] == [("ok", 2)] * len(targets)


def test_an_absurd_retry_after_holds_its_host_and_nothing_else(
    run_cli: Command, misbehaving: ServerProcess, site: MakeSite, tmp_path: Path
) -> None:
    """99999999 seconds: the other host is crawled meanwhile, and a time limit ends the wait."""
    other = site({"/": page("/a")}, default=page())
    target = f"/retry_after/{tmp_path.name}/huge"
    ran = run_cli("--max-time", "3s", misbehaving.url(target), other.url(), limit=20)

    assert ran.site_map.why(target) == "time_budget"
    assert ran.site_map.outcome(other.url("/a")) == "ok"


def test_the_table_of_faults_names_only_tests_that_exist() -> None:
    """tests/README.md: each test and each exchange that it names is there, and all 84 rows are."""
    table = (ROOT / "tests" / "README.md").read_text()
    defined = {
        name for path in (ROOT / "tests").glob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    named = {name for name in re.findall(r"\b(test_\w+)", table) if not (ROOT / "tests" / f"{name}.py").exists()}
    numbers = [int(n) for cell in re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE) for n in cell.split(",")]

    assert named - defined == set()
    assert set(re.findall(r"\bE\[([^\]]+)\]", table)) - {row[0] for row in EXCHANGES} == set()
    assert numbers == list(range(1, 85))
