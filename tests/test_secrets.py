"""Secrets: where they go, and where they never show."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable

import pytest

from crawlr.errors import OptionsError
from crawlr.fetch.proxies import parse_proxy
from tests.conftest import Crawl
from tests.servers.local import Site, page, redirect

MakeSite = Callable[..., Site]
SECRET = "s3cret-" + "word"


def header(site: Site, name: str) -> set[str | None]:
    """The values of a header in every request to a site; None where it was not sent."""
    return {{key.lower(): value for key, value in hit.headers}.get(name) for hit in site.requests}


def test_secrets_go_to_the_seeds_origin_and_to_no_other(crawl: Crawl, site: MakeSite) -> None:
    """Not by a link, not by a redirect, not with robots.txt of the other origin."""
    other = site({"/": page("/x")}, default=page())
    first = site({"/": page(other.url("/linked"), "/away"), "/away": redirect(other.url("/sent"))}, default=page())

    crawl(first.url(), scope="any", auth=f"me:{SECRET}", cookie=f"sid={SECRET}", header=(("X-Key", SECRET),))

    basic = "Basic " + base64.b64encode(f"me:{SECRET}".encode()).decode()
    assert {basic} == header(first, "authorization")
    assert {SECRET} == header(first, "x-key")
    assert other.requests
    for name in ("authorization", "cookie", "x-key"):
        assert {None} == header(other, name)


def test_a_proxy_is_shown_without_user_and_password() -> None:
    """In no form: it stands in messages and in what a debugger prints."""
    proxy = parse_proxy(f"http://me-{SECRET}:{SECRET}@proxy.test:8080")

    assert proxy.password == SECRET
    assert SECRET not in f"{proxy} {proxy!r}"
    assert "proxy.test" in repr(proxy)


def test_user_and_password_in_a_seed_are_sent_and_never_kept(crawl: Crawl, site: MakeSite) -> None:
    """They are for the request; no address in the map has them."""
    ground = site({"/": page("/a")}, default=page())
    seed = ground.url().replace("http://", f"http://me:{SECRET}@")

    crawled = crawl(seed)

    assert {"Basic " + base64.b64encode(f"me:{SECRET}".encode()).decode()} == header(ground, "authorization")
    assert SECRET not in json.dumps(crawled.map.document)


def test_user_and_password_of_one_seed_do_not_go_to_another(crawl: Crawl) -> None:
    """Two sites and one password: crawlr does not guess for whom it is."""
    with pytest.raises(OptionsError, match="go to all of them") as raised:
        crawl(f"http://me:{SECRET}@127.0.0.1:9/", "http://127.0.0.2:9/")

    assert SECRET not in str(raised.value)
