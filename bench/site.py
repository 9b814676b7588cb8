"""A site on loopback to crawl: generated files, served by nginx when there is one, else by own_server.

    python -m bench.site --pages 2000 --weight 30000 --links 40 --latency 20ms --errors 0.02

From: a Recipe (how many pages, how heavy, how many links, how slow, how many broken). To: whoever crawls it; the
benches use it as a context. The same recipe gives the same bytes on every machine. It listens on 127.0.0.1 only, and
is ended by the pid that it was started with.
"""

from __future__ import annotations

import argparse
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from crawlr.option_values import duration

__all__ = ["ROOT", "Made", "Recipe", "Site", "add_knobs", "make", "recipe_of", "version_of_nginx"]

ROOT = Path(__file__).resolve().parents[1]
START_SECONDS = 10.0
END_SECONDS = 5.0
GONE = "gone"
"""The folder whose pages answer with the error status."""
_FOLDERS = 40
_WORDS = """
address answer archive balance barrel basket bridge candle carrier cellar channel chapter circle corner
cotton current degree distance drawer engine evening fabric feather figure forest frame garden glass grain
hammer harbour hedge island journey kettle ladder lantern ledger letter lever market meadow measure method
mirror morning mountain needle number orchard orbit parcel pattern pebble pencil picture pocket powder
quarter railway record ribbon river saddle sample season shadow signal silver spring station summer surface
system table thread timber tower valley vessel village volume wagon window winter yellow
""".split()  # noqa: SIM905  # as a list it is twice as long


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What the site is like. Made by the benches, read by make and Site."""

    pages: int = 1000
    weight: int = 20_000
    """Bytes of a page, or what its links need when that is more."""
    links: int = 30
    """Distinct links of a page to others."""
    latency: float = 0.0
    """Seconds before every answer, for any number of requests at once."""
    errors: float = 0.0
    """Share of the pages that answer with `error_status`."""
    error_status: int = 404
    seed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a whole crawl of the site has to find. Made by make, read by the benches and their tests."""

    pages: int
    errors: int
    edges: int
    bytes: int
    """Of the pages that answer well."""


# ---- the files


def make(recipe: Recipe, folder: Path) -> Made:
    """Write the site into `folder`. ValueError for a recipe that no site has."""
    fan_out = max(1, min(recipe.links // 2, 20))
    # a tree, so that every page can be reached; only its leaves may be broken
    first_leaf = -(-(recipe.pages - 1) // fan_out)
    errors = round(recipe.pages * recipe.errors)
    if recipe.pages < 1 or not 0 <= errors <= recipe.pages - first_leaf:
        raise ValueError(f"--errors: of {recipe.pages} pages at most {recipe.pages - first_leaf} can be broken")
    broken = set(random.Random(f"{recipe.seed} errors").sample(range(first_leaf, recipe.pages), errors))
    for name in (GONE, *(f"part-{number}" for number in range(_FOLDERS))):
        (folder / name).mkdir(parents=True)
    blocks = _blocks(recipe.seed)
    edges = size = 0
    for number in range(recipe.pages):
        if number in broken:
            continue
        targets = _targets(number, recipe, fan_out)
        text = _page(number, targets, broken, blocks, recipe)
        (folder / _path(number, broken)).write_bytes(text)
        edges += len(targets)
        size += len(text)
    (folder / "robots.txt").write_text("User-agent: *\nDisallow: /private/\n")
    return Made(pages=recipe.pages, errors=errors, edges=edges, bytes=size)


def _targets(number: int, recipe: Recipe, fan_out: int) -> list[int]:
    """The pages that a page leads to: those below it in the tree, some that every page leads to, others by chance."""
    pages = recipe.pages
    found = dict.fromkeys(range(number * fan_out + 1, min(number * fan_out + fan_out + 1, pages)))
    wanted = min(recipe.links, pages - 1)
    draw = random.Random(recipe.seed << 32 | number)
    for target in range(max(0, (wanted - len(found)) // 2)):
        found[target] = None
    while len(found) - (number in found) < wanted:
        found[draw.randrange(pages)] = None
    found.pop(number, None)
    return list(found)


def _path(number: int, broken: set[int]) -> str:
    if number == 0:
        return "index.html"
    return f"{GONE if number in broken else f'part-{number % _FOLDERS}'}/page-{number}.html"


def _blocks(seed: int) -> list[str]:
    """Paragraphs with as many tags as documentation has: one in 45 bytes."""
    draw = random.Random(f"{seed} words")
    blocks = []
    for _ in range(64):
        words = draw.choices(_WORDS, k=36)
        words[3] = f"<code>{words[3]}</code>"
        words[11] = f'<span class="term">{words[11]}</span>'
        words[23] = f"<em>{words[23]}</em>"
        blocks.append(f'<div class="block"><p>{" ".join(words)}.</p></div>\n')
    return blocks


def _page(number: int, targets: list[int], broken: set[int], blocks: list[str], recipe: Recipe) -> bytes:
    up = "" if number == 0 else "../"
    draw = random.Random(recipe.seed << 33 | number)
    title = " ".join(draw.choices(_WORDS, k=4))
    head = f"<head><meta charset=utf-8><title>{title} {number}</title></head>"
    parts = [f"<!DOCTYPE html>\n<html lang=en>\n{head}\n<body>\n<h1>{title}</h1>\n<ul>\n"]
    parts += [
        f'<li><a class="reference internal" href="{up}{_path(target, broken)}">'
        f"{_WORDS[target % len(_WORDS)]} {target}</a></li>\n"
        for target in targets
    ]
    parts.append("</ul>\n")
    end = "</body>\n</html>\n"
    room = recipe.weight - sum(map(len, parts)) - len(end)
    while room > 0:
        block = blocks[draw.randrange(len(blocks))]
        if len(block) > room:
            block = f"<p>{'.' * (room - 8)}</p>\n" if room > 8 else " " * room
        parts.append(block)
        room -= len(block)
    parts.append(end)
    return "".join(parts).encode("ascii")


# ---- the server


def version_of_nginx() -> str | None:
    """The nginx of this machine as "nginx/1.22.1", None when there is none."""
    program = _nginx()
    if program is None:
        return None
    said = subprocess.run([program, "-v"], capture_output=True, text=True, check=False, timeout=10).stderr
    return said.strip().rpartition(" ")[2] or "nginx"


def _nginx() -> str | None:
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/local/bin")


class Site:
    """A served site; `url` is its first page. Use as a context, which ends the server and removes the files.

    `server`: "nginx", "own", or "auto" for nginx where there is one. RuntimeError when the server does not start.
    """

    def __init__(self, recipe: Recipe, *, server: str = "auto") -> None:
        self.recipe = recipe
        program = _nginx() if server in ("auto", "nginx") else None
        if server == "nginx" and program is None:
            raise RuntimeError("there is no nginx on this machine")
        self._program = program
        self.served_by = (version_of_nginx() or "nginx") if program else "bench.own_server (Python, a process a core)"

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="crawlr-bench-"))
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self.made = make(self.recipe, self._folder / "files")
            self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/index.html"

    def cpu(self) -> float:
        """Seconds of CPU that the server has used so far: it must not be the bottleneck."""
        assert self._process is not None
        server = psutil.Process(self._process.pid)
        times = [each.cpu_times() for each in (server, *server.children(recursive=True))]
        return float(sum(each.user + each.system for each in times))

    def _start(self) -> None:
        for _ in range(5):  # another program may take the port between our look and the server's
            self.port = _free_port()
            log = self._folder / "error.log"
            command = self._nginx_command(log) if self._program else self._own_command()
            with log.open("ab") as said:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=ROOT, start_new_session=True
                )
            if self._is_up():
                return
            self._process.kill()
            self._process.wait()
        raise RuntimeError(f"{self.served_by} did not start: {log.read_text(errors='replace')[-500:]}")

    def _is_up(self) -> bool:
        assert self._process is not None
        end = time.monotonic() + START_SECONDS
        while self._process.poll() is None and time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                time.sleep(0.01)
            else:
                return True
        return False

    def _own_command(self) -> list[str]:
        recipe = self.recipe
        return [
            sys.executable, "-m", "bench.own_server", str(self._folder / "files"), "--port", str(self.port),
            "--latency", str(recipe.latency), "--error-status", str(recipe.error_status),
        ]  # fmt: skip

    def _nginx_command(self, log: Path) -> list[str]:
        assert self._program is not None
        path = self._folder / "nginx.conf"
        path.write_text(_nginx_configuration(self._folder, self.port, self.recipe))
        return [self._program, "-c", str(path), "-e", str(log), "-p", str(self._folder)]


def _nginx_configuration(folder: Path, port: int, recipe: Recipe) -> str:
    """One worker: it answers some 30,000 of these requests a second on a core, and must leave the others to the crawl.

    The delay: auth_delay holds a 401 back without holding the worker, and error_page makes the real answer of it.
    """
    user = f"user {pwd.getpwuid(os.geteuid()).pw_name};" if os.geteuid() == 0 else ""
    status = recipe.error_status
    if recipe.latency:
        delay = f"auth_basic bench; auth_basic_user_file /dev/null; auth_delay {round(1000 * recipe.latency)}ms;"
        places = f"""
    location / {{ {delay} error_page 401 = @page; }}
    location @page {{ auth_basic off; }}
    location /{GONE}/ {{ {delay} error_page 401 = @gone; }}
    location @gone {{ auth_basic off; return {status}; }}"""
    else:
        places = f"\n    location /{GONE}/ {{ return {status}; }}"
    temporary = " ".join(
        f"{name}_temp_path {folder}/temporary-{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return f"""{user}
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log crit;
events {{ worker_connections 4096; }}
http {{
  types {{ text/html html; text/plain txt; }}
  default_type application/octet-stream;
  access_log off; log_not_found off; server_tokens off;
  sendfile on; tcp_nopush on; keepalive_requests 10000000; keepalive_timeout 75;
  open_file_cache max=20000;
  {temporary}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    root {folder}/files;{places}
  }}
}}
"""


def _free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        port: int = asked.getsockname()[1]
        return port


# ---- the command line, here and in the benches


def add_knobs(parser: argparse.ArgumentParser) -> None:
    """The options that describe a site."""
    known = Recipe()
    group = parser.add_argument_group("the local site")
    group.add_argument("--pages", type=int, default=known.pages)
    group.add_argument("--weight", type=int, default=known.weight, help="bytes of a page")
    group.add_argument("--links", type=int, default=known.links, help="distinct links of a page")
    group.add_argument("--latency", type=duration(longest=60, zero=True), default=0.0, help="before every answer: 30ms")
    group.add_argument("--errors", type=float, default=0.0, help="share of pages that answer with --error-status")
    group.add_argument("--error-status", type=int, default=known.error_status)
    group.add_argument("--seed", type=int, default=known.seed, help="other numbers give other sites of the same kind")
    group.add_argument("--server", choices=("auto", "nginx", "own"), default="auto")


def recipe_of(given: argparse.Namespace) -> Recipe:
    """The recipe that add_knobs' options describe."""
    return Recipe(
        pages=given.pages,
        weight=given.weight,
        links=given.links,
        latency=given.latency,
        errors=given.errors,
        error_status=given.error_status,
        seed=given.seed,
    )


def main() -> None:
    """Serve a site until Ctrl-C or SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m bench.site", description="A site on loopback to crawl.")
    add_knobs(parser)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with Site(recipe_of(given), server=given.server) as site:
            made = site.made
            print(f"{site.url}  served by {site.served_by}", flush=True)
            print(f"{made.pages} pages ({made.errors} broken), {made.edges} edges, {made.bytes} bytes", flush=True)
            signal.pause()
    except KeyboardInterrupt:
        pass
    except (RuntimeError, ValueError) as error:
        sys.exit(f"bench.site: {error}")


if __name__ == "__main__":
    main()
