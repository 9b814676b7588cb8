"""What a link costs a parse process: resolving hrefs, and the key of what comes out.

    python -m bench.links

Microseconds a call, the best of five rounds of 20,000. `resolve` is the function for single hrefs, `Resolver` the
object that a page's hrefs go through: for an href that this process knows, and for a new one.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable

from crawlr.parse.urls import Resolver, forget, identity, resolve

ROUNDS, CALLS = 5, 20_000
BASE = "https://docs.example.com/en/java.base/java/lang/String.html"
HREFS = (
    "Other.html",
    "../../../java.base/java/lang/Object.html#equals(java.lang.Object)",
    "/a/b/c?x=1&y=2",
    "#fragment",
    "https://docs.example.com/en/x.html",
    "./x",
    "x y",
    "?p=2",
    "javascript:void(0)",
    "http://[broken",
)
URLS = (
    "https://docs.example.com/en/java.base/java/lang/String.html",
    "http://127.0.0.1:8080/a/b/c.html",
    "https://docs.example.com/a/b?x=1&page=3",
    "https://docs.example.com/caf%C3%A9",
    "https://docs.example.com/caf%c3%a9/%7Ejoe",
    "https://docs.example.com/?utm_source=a&x=1",
    "https://xn--bcher-kva.de/x",
)


def microseconds(call: Callable[[], object]) -> float:
    return min(timeit.repeat(call, number=CALLS, repeat=ROUNDS)) / CALLS * 1e6


def main() -> None:
    resolver = Resolver(BASE)
    nothing = microseconds(forget)
    print(f"{'href':66} resolve  Resolver  new")
    for href in HREFS:
        one = microseconds(lambda href=href: resolve(BASE, href))  # type: ignore[misc]  # a default binds the loop's
        page = microseconds(lambda href=href: resolver.resolve(href))  # type: ignore[misc]  # a default binds the loop's
        new = microseconds(lambda href=href: forget() or resolver.resolve(href)) - nothing  # type: ignore[misc, func-returns-value]
        print(f"{href:66} {one:7.2f}  {page:8.2f} {new:4.2f}")
    print(f"\n{'url':66} identity")
    for url in URLS:
        print(f"{url:66} {microseconds(lambda url=url: identity(url)):8.2f}")  # type: ignore[misc]  # the same


if __name__ == "__main__":
    main()
