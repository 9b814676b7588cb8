"""The site of `crawlr demo`, on loopback, and the words that explain what the crawl of it found.

From: the files in demo_site/. To: whoever asks the server, in one thread a connection; cli prints the words.
The crawl itself is the same as any other.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from crawlr.scrub import scrub

__all__ = ["DemoSite", "explained"]

_FOLDER = Path(__file__).with_name("demo_site")
_SLOW_PATH, _SLOW_SECONDS = "/weather.html", 0.6
_LARGE_PATH, _LARGE_ROWS = "/varieties.html", 15_000
_REDIRECTS = {"/old-guide": "/guide/"}
_TYPES = {".html": "text/html; charset=utf-8", ".txt": "text/plain; charset=utf-8"}


class DemoSite:
    """A running server; `url` is its first page. Use as a context, which stops it."""

    def __enter__(self) -> Self:
        self._stopped = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Exchange)
        self._server.stopped = self._stopped
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}/"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    stopped: threading.Event

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Silence: a client that went away is no news, least of all in the middle of a progress bar."""


class _Exchange(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 10

    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, _Server)
        path = urlsplit(self.path).path
        if path == _SLOW_PATH:
            server.stopped.wait(_SLOW_SECONDS)
        if path in _REDIRECTS:
            self._answer(301, b"", "text/html", location=_REDIRECTS[path])
        elif path == _LARGE_PATH:
            self._answer(200, _large_page(), "text/html; charset=utf-8")
        elif (file := _file_of(path)) is not None:
            self._answer(200, file.read_bytes(), _TYPES[file.suffix])
        else:
            self._answer(404, b"<!doctype html><title>Not here</title>", "text/html; charset=utf-8")

    def _answer(self, status: int, body: bytes, content_type: str, *, location: str | None = None) -> None:
        self.send_response(status)
        if location is not None:
            self.send_header("Location", location)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name is the base class's
        """Silence: the crawl's own lines are what is to be seen."""


def _file_of(path: str) -> Path | None:
    """The file of a path, index.html for a folder's; None when there is none. Only what lies in demo_site/."""
    file = (_FOLDER / path.lstrip("/") / ("index.html" if path.endswith("/") else "")).resolve()
    return file if file.is_relative_to(_FOLDER.resolve()) and file.is_file() else None


def _large_page() -> bytes:
    rows = "".join(
        f'<tr id="v{number}"><td><a href="#v{number}">Variety {number}</a><td>sweet, early, keeps until spring\n'
        for number in range(_LARGE_ROWS)
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>All varieties</title>'
        f'<h1 id="pears">All varieties</h1><table>{rows}</table><p><a href="./">Home</a>'
    ).encode()


def explained(path: str) -> str:
    """What the sitemap in that file says, in sentences: the tour of the demonstration. Raises OSError."""
    with open(path, encoding="utf-8") as file:
        site_map = json.load(file)
    stats, pages = site_map["stats"], site_map["pages"]
    path_of = {row["id"]: urlsplit(row["url"]).path for row in [*pages, *site_map["skipped"]]}
    linking: dict[int, list[str]] = {}
    for source, target in site_map["edges"]:
        linking.setdefault(target, []).append(path_of[source])
    slowest = max(pages, key=lambda page: page["millis"])
    largest = max(pages, key=lambda page: page["bytes"])
    return "\n".join(
        [
            "",
            "What that was",
            f"  {stats['pages']} pages were requested, each once, several at a time; {stats['ok']} answered well.",
            *(
                f"  {scrub(path_of[page['id']])} answered {page['status']}: a broken link on "
                f"{' and '.join(linking.get(page['id'], ['no page']))}."
                for page in pages
                if page["outcome"] == "http_error"
            ),
            *(
                f"  {path_of[page['id']]} is a redirect to {path_of.get(page['redirect_to'], 'elsewhere')}: "
                "two pages, and the first names the second."
                for page in pages
                if page["outcome"] == "redirect"
            ),
            *(
                f"  {path_of[row['id']]} was not requested: robots.txt forbids it."
                for row in site_map["skipped"]
                if row["reason"] == "robots_disallowed"
            ),
            f"  {path_of[slowest['id']]} took {slowest['millis']} ms; no other page waited for it.",
            f"  {path_of[largest['id']]} has {largest['bytes'] / 1_000_000:.1f} MB; a process of its own parsed it.",
            f"  {stats['edges']} links between these URLs are the edges of the map.",
            "",
            f"Look at the map:  python3 -m json.tool {path} | less",
            "Your own site:    crawlr https://example.com --depth 2",
            "All options:      crawlr --help",
        ]
    )
