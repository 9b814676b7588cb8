"""What robots.txt, sitemaps and spaces of URLs without end do to a crawl, row by row (tests/README.md).

Black box, as test_faults.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.conftest import Command
from tests.running import Ran
from tests.servers.local import Site
from tests.servers.process import ServerProcess
from tests.servers.wire import Request

MakeSite = Callable[..., Site]


# ---------------------------------------------------------------- robots.txt

UNREACHABLE = "robots_unreachable"
# origin, what becomes of "/", what becomes of /closed (None: "/" has no links to follow)
ROBOTS: list[tuple[str, str, str | None]] = [
    ("robots_good", "ok", "robots_disallowed"),
    ("robots_404", "ok", "ok"),
    ("robots_403", "ok", "ok"),
    ("robots_410", "ok", "ok"),
    ("robots_hang", UNREACHABLE, None),
    ("robots_drip", UNREACHABLE, None),
    ("robots_rst", UNREACHABLE, None),
    ("robots_503", UNREACHABLE, None),
    ("robots_500", UNREACHABLE, None),
    ("robots_429", UNREACHABLE, None),
    ("robots_huge", "ok", "robots_disallowed"),
    ("robots_one_line", "ok", "robots_disallowed"),
    ("robots_stars", "ok", "robots_disallowed"),
    ("robots_html", "ok", "ok"),
    ("robots_bom", "ok", "robots_disallowed"),
    ("robots_nuls", "ok", "robots_disallowed"),
    ("robots_delay", "ok", "robots_disallowed"),
    ("robots_elsewhere", "ok", "robots_disallowed"),
]
ANY_ROBOTS = ["robots_utf16", "robots_gzip_bomb", "robots_loop"]
"""Where several readings are right: only that the crawl goes on is tested."""


@pytest.fixture(scope="module")
def robots(misbehaving: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, list[Request]]:
    """One crawl from a seed on each of these origins."""
    seeds = [misbehaving.url("/", origin=name) for name in [*(row[0] for row in ROBOTS), *ANY_ROBOTS]]
    start = misbehaving.position()
    options = ["--timeout", "1s", "--retries", "0", "--max-crawl-delay", "50ms", "--concurrency", "16"]
    ran = Command(tmp_path_factory.mktemp("robots"))(*options, *seeds, limit=60)
    return ran, misbehaving.hits(start)


@pytest.mark.parametrize(("name", "of_root", "of_closed"), ROBOTS, ids=[row[0] for row in ROBOTS])
def test_whatever_robots_txt_answers_decides_for_its_own_origin(
    robots: tuple[Ran, list[Request]], misbehaving: ServerProcess, name: str, of_root: str, of_closed: str | None
) -> None:
    """Found or not, slow, broken, huge, redirected: what it forbids is not requested, unreachable is skipped."""
    ran, hits = robots
    verdicts = {row["url"]: row["outcome"] for row in ran.site_map["pages"]}
    verdicts |= {row["url"]: row["reason"] for row in ran.site_map["skipped"]}
    address = misbehaving.url("", origin=name)

    assert verdicts[f"{address}/"] == of_root
    assert verdicts.get(f"{address}/closed") == of_closed
    assert verdicts.get(f"{address}/open") == (None if of_closed is None else "ok")
    requested = {hit.target for hit in hits if hit.header("host") == address.removeprefix("http://")}
    assert ("/closed" in requested) == (of_closed == "ok")
    assert ("/" in requested) == (of_root == "ok")


def test_an_odd_robots_txt_does_not_stop_the_crawl(
    robots: tuple[Ran, list[Request]], misbehaving: ServerProcess
) -> None:
    """UTF-16, a bomb or a redirect to itself: the origin's URLs have a verdict."""
    ran, _ = robots
    known = set(ran.site_map.urls.values())

    assert {misbehaving.url("/", origin=name) for name in ANY_ROBOTS} <= known


def test_a_crawl_delay_that_is_cut_is_said_once(robots: tuple[Ran, list[Request]]) -> None:
    """A Crawl-delay of eleven days is cut to --max-crawl-delay, in one line."""
    ran, _ = robots

    assert len(re.findall(r"(?im)^.*crawl.?delay.*$", ran.err)) == 1


# ---------------------------------------------------------------- sitemaps and traps

SITEMAPS = [
    ("sitemap_good", True),
    ("sitemap_broken", True),
    ("sitemap_laughs", None),
    ("sitemap_entity", None),
    ("sitemap_loop", None),
    ("sitemap_endless", None),
    ("sitemap_bomb", None),
    ("sitemap_junk", None),
]


@pytest.fixture(scope="module")
def sitemaps(misbehaving: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, list[Request]]:
    """One crawl with --sitemaps from a seed on each of these origins."""
    seeds = [misbehaving.url("/", origin=name) for name, _ in SITEMAPS]
    start = misbehaving.position()
    ran = Command(tmp_path_factory.mktemp("sitemaps"))(
        "--sitemaps", "--retries", "0", "--timeout", "10s", *seeds, limit=60
    )
    return ran, misbehaving.hits(start)


@pytest.mark.parametrize(("name", "is_mapped"), SITEMAPS, ids=[row[0] for row in SITEMAPS])
def test_a_hostile_sitemap_costs_little_and_leaks_nothing(
    sitemaps: tuple[Ran, list[Request]], misbehaving: ServerProcess, name: str, is_mapped: bool | None
) -> None:
    """Loops, endless indexes, entities and bombs end; what a damaged one still lists is crawled."""
    ran, hits = sitemaps
    address = misbehaving.url("", origin=name)
    requested = [hit.target for hit in hits if hit.header("host") == address.removeprefix("http://")]

    assert ran.site_map.outcome(f"{address}/") == "ok"
    assert is_mapped is None or ("/mapped" in requested) == is_mapped
    assert len(requested) == len(set(requested))
    assert len(requested) <= 520
    assert not [target for target in requested if re.search("root:|/bin/|ha%20ha%20ha|leak-.*root", target)]


TRAPS = {
    "calendar": "/trap/calendar",
    "relative": "/trap/relative/",
    "session": "/trap/session",
    "mirror": "/mirror/",
}


@pytest.mark.parametrize("kind", TRAPS)
def test_a_trap_is_left_again(run_cli: Command, misbehaving: ServerProcess, kind: str) -> None:
    """Links that lead ever on, by path, by number, by token or by copies: the crawl ends by itself and says why."""
    ran = run_cli("--max-pages", "2000", misbehaving.url(TRAPS[kind]))

    assert ran.site_map["stop_reason"] == "finished"
    assert f"/page/{kind}" in ran.site_map.pages
    assert set(ran.site_map.reasons.values()) == {"trap"}
    assert len(ran.site_map.pages) < (10 if kind == "relative" else 300)


def test_a_page_of_a_hundred_thousand_links_is_listed_whole(run_cli: Command, misbehaving: ServerProcess) -> None:
    """No link is lost and nothing stands still."""
    ran = run_cli("--depth", "0", misbehaving.url("/links/100000"), limit=40)

    assert len(ran.site_map["unvisited"]) == 100_000
    assert ran.site_map.page("/links/100000")["links"] == 100_000
