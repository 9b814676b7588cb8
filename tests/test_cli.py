"""The command: its words, its exit status, its streams and its signals."""

from __future__ import annotations

import argparse
import base64
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import crawlr
from crawlr import grammar
from crawlr.cli import main
from crawlr.option_row import rows
from crawlr.option_table import ABOUT, CONFIG, SCREEN
from crawlr.options import Options
from tests.servers.local import Reply, page

HEAVY = {"requests", "urllib3", "lxml", "sqlite3", "tqdm", "tldextract", "psutil", "multiprocessing", "ssl", "ada_url"}

# ---------------------------------------------------------------- words

OPTIONS = [
    ("-d 3", "depth", 3),
    ("--depth 3", "depth", 3),
    ("--max-pages 10", "max_pages", 10),
    ("--max-time 2m", "max_time", 120.0),
    ("--scope prefix", "scope", "prefix"),
    ("--scope any --same-host", "scope", "host"),
    ("--same-host --scope any", "scope", "any"),
    ("--include a --include b", "include", ("a", "b")),
    ("--exclude a --exclude b", "exclude", ("a", "b")),
    ("-c 5", "concurrency", 5),
    ("--concurrency=5", "concurrency", 5),
    ("--per-host 2", "per_host", 2),
    ("--rps 0.5", "rps", 0.5),
    ("--no-robots", "robots", False),
    ("--max-crawl-delay 1s", "max_crawl_delay", 1.0),
    ("-A bot/1", "user_agent", "bot/1"),
    ("--user-agent bot/1", "user_agent", "bot/1"),
    ("--timeout 500ms", "timeout", 0.5),
    ("--connect-timeout 3", "connect_timeout", 3.0),
    ("--retries 0", "retries", 0),
    ("--max-redirects 3", "max_redirects", 3),
    ("--max-body 8MiB", "max_body", 8 * 1024 * 1024),
    ("-H A:1 --header B:2", "header", (("A", "1"), ("B", "2"))),
    ("-b a=1 --cookie b=2", "cookie", "a=1; b=2"),
    ("--auth a:b", "auth", "a:b"),
    ("-x http://127.0.0.1:1", "proxy", "http://127.0.0.1:1"),
    ("--proxy env", "proxy", "env"),
    ("-k", "insecure", True),
    ("--insecure", "insecure", True),
    ("--ca-bundle CERT", "ca_bundle", "CERT"),
    ("--sitemaps", "sitemaps", True),
    ("--keep-params", "keep_params", True),
    ("--ignore-param a --ignore-param b", "ignore_param", ("a", "b")),
    ("--parse-procs 2", "parse_procs", 2),
    ("--parse-timeout 5", "parse_timeout", 5.0),
    ("--parse-memory 512M", "parse_memory", 512 * 1024 * 1024),
    ("--fetcher curl", "fetcher", "curl"),
    ("--parser lexbor", "parser", "lexbor"),
    ("--follow a,img", "follow", ("a", "img")),
    ("--nofollow all", "nofollow", "all"),
    ("--edges all", "edges", "all"),
    ("--check-external", "check_external", True),
    ("-o -", "out", ("-",)),
    ("--out x.json.gz", "out", ("x.json.gz",)),
    ("-o x.json --out y.csv", "out", ("x.json", "y.csv")),
    ("-o - --format csv", "format", "csv"),
    ("-o x.csv --columns sf", "columns", "sf"),
    ("--resume", "resume", True),
    ("--fresh", "fresh", True),
    ("--stats s.json", "stats", "s.json"),
    ("--fail-on broken --fail-on errors,slow=2s", "fail_on", ("broken", "errors", "slow=2s")),
    ("--fail-on broken --junit j.xml", "junit", "j.xml"),
]


def words_of(text: str) -> list[str]:
    import certifi

    return [certifi.where() if word == "CERT" else word for word in text.split()]


@pytest.mark.parametrize(("text", "name", "expected"), OPTIONS, ids=[text for text, _, _ in OPTIONS])
def test_option_reaches_the_crawl(text: str, name: str, expected: object) -> None:
    """Each option of the command is an option of the crawl, wherever it stands among the URLs."""
    for words in (["x.example", *words_of(text), "y.example"], [*words_of(text), "x.example", "y.example"]):
        given = vars(grammar.build_parser().parse_intermixed_args(words))
        options = Options.make(given.pop("seeds"), **given)

        assert options.seeds == ("https://x.example", "https://y.example")
        assert getattr(options, name) == (words_of(text)[-1] if expected == "CERT" else expected)


def test_every_option_of_the_crawl_is_in_the_grammar() -> None:
    """What can be set from Python can be set from the command line."""
    parsed = {action.dest for action in grammar.build_parser()._actions}
    fields = set(Options.__struct_fields__)

    assert fields - parsed == set()
    assert parsed - fields == {row.name for row in rows(SCREEN, CONFIG, ABOUT)} | {"input_file"}


MISTAKES = [
    ("", "URL", "none is given"),
    ("", "URL", "see crawlr --help, or crawlr demo"),
    ("x.example --threads 4", "--threads", "did you mean --concurrency?"),
    ("x.example --delay 1", "--delay", "did you mean --rps?"),
    ("x.example --output x.json", "--output", "did you mean --out?"),
    ("x.example --max_pages 3", "--max_pages", "did you mean --max-pages?"),
    ("x.example -V", "-V", "did you mean --version?"),
    ("x.example --url y.example", "--url", "crawlr --help"),
    ("-depth 3 x.example", "-depth", "did you mean --depth?"),
    ("export x.json -out y.csv", "-out", "did you mean --out?"),
    ("diff a b --threads 4", "--threads", "crawlr diff --help"),
    ("--depth", "--depth", "a whole number, 0 or more"),
    ("-d", "--depth", "a whole number, 0 or more"),
    ("x.example --depth x", "--depth: 'x'", "a whole number, 0 or more"),
    ("x.example --depth -1", "--depth: '-1'", "a whole number, 0 or more"),
    ("x.example --max-time 5x", "--max-time: '5x'", "10s, 500ms, 2m or 1h"),
    ("x.example --max-body 1T", "--max-body: '1T'", "512K, 32MiB or 1G"),
    ("x.example --scope site", "--scope: 'site'", "host, domain, prefix or any"),
    ("x.example -H nocolon", "--header: ['nocolon']", "'Name: value'"),
    ("x.example --include (", "--include: ['(']", "a Python regular expression"),
    ("x.example --bogus", "--bogus", "crawlr --help"),
    ("x.example --depht 3", "--depht", "did you mean --depth?"),
    ("x.example --dep 3", "--dep", "did you mean --depth?"),
    ("x.example --resume=yes", "--resume", "takes no value"),
    ("x.example -Z", "-Z", "crawlr --help"),
    ("ftp://x.example", "'ftp://x.example'", "http or https"),
    ("http://[bad", "'http://[bad'", "http or https"),
    ("x.example -o /no/such/folder/x", "--out: '/no/such/folder/x'", "a folder that exists"),
    ("-i /no/such/file", "--input-file: '/no/such/file'", "one a line"),
    ("--resume -o -", "--resume", "--out FILE"),
    ("x.example -o x.cvs", "--out: 'x.cvs'", ".json, .jsonl"),
    ("x.example -o x.csv -o ./x.csv", "--out: './x.csv'", "each file once"),
    ("x.example --format csv", "--format", "--out FILE"),
    ("x.example --columns sf", "--columns", "--out FILE.csv"),
    ("export", "export: no file is named", "one sitemap.json[.gz], or the state"),
    ("export x.json", "export: nothing is to be written", "--out FILE"),
    ("export x.json y.json -o z.csv", "export: 'y.json'", "one sitemap.json[.gz]"),
    ("export -o z.csv", "export: no file is named", "one sitemap.json[.gz]"),
    ("export x.json -o", "-o", "a file in a folder that exists"),
    ("export x.json -o z.cvs", "--out: 'z.cvs'", ".json, .jsonl"),
    ("export x.json -o /no/such/folder/z.csv", "--out: '/no/such/folder/z.csv'", "a folder that exists"),
    ("export x.json -o z.xml --columns sf", "--columns", "--out FILE.csv"),
    ("export x.json -o z.csv --columns xls", "--columns: 'xls'", "native, sf or advertools"),
    ("export x.json -o z --format xls", "--format: 'xls'", "json, jsonl, csv"),
    ("export x.json -o z.csv --depth 3", "--depth", "crawlr export --help"),
    ("export /no/such/x.json -o z.csv", "/no/such/x.json", "No such file"),
    ("x.example export", "'export'", "https://export"),
    ("why", "why: no URL is named", "the address of a page"),
    ("why /a /b", "why: '/b'", "the address of a page"),
    ("why / --in", "--in", "a sitemap.json[.gz], or the state"),
    ("why / --in /no/such/x.json", "/no/such/x.json", "No such file"),
    ("why / --depth 3", "--depth", "crawlr why --help"),
    ("diff", "diff: no file is named", "OLD NEW"),
    ("diff a.json", "diff: only one file is named", "OLD NEW"),
    ("diff a.json b.json c.json", "diff: 'c.json'", "OLD NEW"),
    ("diff /no/such/x.json b.json", "/no/such/x.json", "No such file"),
    ("diff a.json b.json --fail-on brokn", "--fail-on: ['brokn']", "new,gone,status"),
    (
        "diff a.json b.json --report /no/such/folder/r.html",
        "--report: '/no/such/folder/r.html'",
        "a folder that exists",
    ),
    ("diff a.json b.json --report", "--report", "a file in a folder"),
    ("diff a.json b.json --junit j.xml", "--junit", "accepted with --fail-on"),
    (
        "diff a.json b.json --fail-on broken --junit /no/such/folder/j.xml",
        "--junit: '/no/such/folder/j.xml'",
        "a folder",
    ),
    ("x.example --fail-on brokn", "--fail-on: ['brokn']", "broken,errors,damaged"),
    ("x.example --fail-on gone", "--fail-on: ['gone']", "'gone' is a gate of crawlr diff"),
    ("x.example --fail-on slow", "--fail-on: ['slow']", "a duration, such as slow=2s"),
    ("x.example --fail-on", "--fail-on", "some of broken,errors"),
    ("x.example --junit j.xml", "--junit", "accepted with --fail-on"),
    ("x.example --fail-on broken --junit -", "--junit: '-'", "a file in a folder that exists"),
    ("x.example --fail-on broken --junit sitemap.json", "--junit: 'sitemap.json'", "another file"),
    ("x.example --fail-on broken --junit sitemap.json.crawl", "--junit: 'sitemap.json.crawl'", "another file"),
    ("x.example why", "'why'", "https://why"),
    ("-q demo", "'demo'", "https://demo"),
    ("x.example diff", "'diff'", "https://diff"),
    ("demo --depth 3", "--depth", "crawlr demo --help"),
    ("demo x.example", "x.example", "crawlr demo --help"),
]


@pytest.mark.parametrize(("text", "names", "says"), MISTAKES, ids=[text or "no words" for text, _, _ in MISTAKES])
def test_mistake_is_one_line_and_status_2(text: str, names: str, says: str, capsys: Any) -> None:
    """A mistake is said in one line that names what was given and what is accepted; nothing else happens."""
    status = main(text.split())

    out, err = capsys.readouterr()
    assert status == 2
    assert out == ""
    assert err.startswith("crawlr: ")
    assert err.count("\n") == 1
    assert names in err
    assert says in err


NOTED = [
    ("help", "'help' is taken for a host; did you mean crawlr --help?"),
    ("man", "did you mean crawlr --man?"),
    ("exprot", "did you mean crawlr export?"),
    ("seeds.txt", "'seeds.txt' is taken for a host, though it is a file here; --input-file reads URLs"),
]


@pytest.mark.parametrize(("seed", "says"), NOTED, ids=[seed for seed, _ in NOTED])
def test_a_host_that_may_be_a_mistake_is_noted(
    seed: str, says: str, capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a host all the same, since one may have any name; quietly nothing is said."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "seeds.txt").touch()
    bad = "http://[bad"  # so that nothing is crawled

    assert main([seed, bad]) == 2
    note, error = capsys.readouterr().err.splitlines()
    assert note.startswith("note: ")
    assert says in note
    assert bad in error
    assert main(["-q", seed, bad]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("seed", ["intranet", "main", "example.invalid", "https://man", "export.example", "localhost"])
def test_a_host_of_another_name_is_not_noted(seed: str, capsys: Any) -> None:
    """Neither is an address with a scheme."""
    assert main([seed, "http://[bad"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_help_and_version(capsys: Any) -> None:
    """--help names every option with its help and ends well; so does --version."""
    assert main(["--help"]) == 0

    shown = capsys.readouterr().out
    for action in grammar.build_parser()._actions:
        assert action.help == argparse.SUPPRESS or all(option in shown for option in action.option_strings)
    assert "usage: crawlr [OPTIONS] URL" in shown

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"crawlr {crawlr.__version__}\n"


@pytest.mark.parametrize(
    "verb", [[], ["demo"], ["export"], ["why"], ["diff"]], ids=lambda verb: "".join(verb) or "crawl"
)
def test_help_fits_a_terminal_of_80_columns(verb: list[str], monkeypatch: Any, capsys: Any) -> None:
    """Nobody reads wrapped help; examples may be longer."""
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*verb, "--help"]) == 0

    options = capsys.readouterr().out.partition("examples:")[0]
    assert max(len(line) for line in options.splitlines()) <= 80
    assert [row.flag for row in rows(*grammar.COMMANDS["".join(verb)].groups) if len(row.help) > 48] == []


def test_help_loads_nothing_heavy() -> None:
    """`crawlr --help` answers at once: no library of the crawl is loaded for it."""
    code = "import sys; from crawlr.cli import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)

    assert HEAVY & set(ended.stderr.split()) == set()


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param("sys.meta_path.insert(0, Interrupted)", id="while modules are loaded"),
        pytest.param("from crawlr import cli; cli.prepare_streams = interrupted", id="before the words are read"),
        pytest.param("from crawlr import cli; cli.flush_streams = interrupted", id="when all is done"),
    ],
)
def test_ctrl_c_that_comes_early_or_late_is_no_traceback(moment: str) -> None:
    """As soon as anything of crawlr runs, and as long."""
    code = f"""
import sys

def interrupted(*_):
    raise KeyboardInterrupt

class Interrupted:
    @staticmethod
    def find_spec(name, *_):
        if name == "crawlr.grammar":
            interrupted()

from crawlr.__main__ import main
{moment}
sys.argv[1:] = ["--version"]
sys.exit(main())
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)

    assert (130, "") == (ended.returncode, ended.stderr)


@pytest.mark.parametrize("is_enabled", [True, False])
def test_command_within_a_program_leaves_its_garbage_collector_alone(
    is_enabled: bool, site: Callable[..., Any], tmp_path: Path
) -> None:
    """It is off for imports only, on again where it was on, and what is garbage there is found afterwards."""

    class Knot:
        def __init__(self) -> None:
            self.itself = self

    knot = weakref.ref(Knot())
    was_enabled, frozen = gc.isenabled(), gc.get_freeze_count()
    try:
        (gc.enable if is_enabled else gc.disable)()
        out = str(tmp_path / "s.json")
        statuses = [
            main(["h.test", "--depth", "x"]),
            main([site({"/": page()}).url("/"), "-q", "--rps", "0", "-o", out]),
        ]

        assert statuses == [2, 0]
        assert gc.isenabled() == is_enabled
        assert gc.get_freeze_count() == frozen
        gc.collect()
        assert knot() is None
    finally:
        (gc.enable if was_enabled else gc.disable)()


def test_command_and_module_are_the_same_program() -> None:
    """`crawlr` and `python -m crawlr` print the same help."""
    script = Path(sys.executable).with_name("crawlr")
    if not script.exists():
        pytest.skip("the command is not installed beside this interpreter")
    printed = [
        subprocess.run([*words, "--help"], capture_output=True, timeout=30, check=True).stdout
        for words in ([str(script)], [sys.executable, "-m", "crawlr"])
    ]

    assert printed[0] == printed[1] != b""


# ---------------------------------------------------------------- exit status


def test_status_0_with_dead_links(site: Callable[..., Any], run_cli: Callable[..., Any]) -> None:
    """Broken links are what a crawl is for: it is done, and done well."""
    made = site({"/": page("/gone", "/gone2")})
    ran = run_cli(made.url(), rc=0)

    assert ran.site_map.document["stats"]["errors"] == 2
    assert "done  pages=3 ok=1 errors=2 skipped=0 unique_urls=3" in ran.out
    assert "wrote " in ran.out.splitlines()[-1]
    assert ran.err == ""


def test_status_0_for_a_seed_that_is_no_html(site: Callable[..., Any], run_cli: Callable[..., Any]) -> None:
    """A seed that answers well is a page, whatever it holds."""
    made = site({"/": Reply(headers=(("Content-Type", "image/png"),), body=b"\x89PNG\r\n\x1a\n")})

    run_cli(made.url(), rc=0)


UNREACHED = {
    "status 500": ({"/": Reply(status=500, body="x")}, "500"),
    "status 404": ({}, "404"),
    "robots.txt forbids": ({"/robots.txt": Reply(body="User-agent: *\nDisallow: /\n")}, "robots"),
    "robots.txt unreachable": ({"/robots.txt": Reply(status=500, body="x")}, "robots"),
}


@pytest.mark.parametrize(("routes", "why"), UNREACHED.values(), ids=UNREACHED)
def test_status_3_when_no_page_could_be_had(routes: Any, why: str, site: Any, run_cli: Any) -> None:
    """A crawl that got nothing is no success, and the last line on stderr says why."""
    ran = run_cli("--retries", "0", site(routes).url(), rc=3)

    last = ran.err.splitlines()[-1]
    assert last.startswith("crawlr: no page answered with a status of 200-399: http://127.0.0.1:")
    assert why in last
    assert ran.site_map.document["complete"] is True


def test_status_3_when_nobody_listens(run_cli: Callable[..., Any]) -> None:
    """A refused connection is the same, with quiet output too."""
    for words in ([], ["-q"]):
        ran = run_cli("--retries", "0", *words, "http://127.0.0.1:9/", rc=3)

        assert "refused" in ran.err.lower()
        assert not words or ran.out == ""


def test_page_budget_is_done(site: Callable[..., Any], run_cli: Callable[..., Any]) -> None:
    """A bound that was reached counts as done, and the screen says which and how to go on."""
    made = site({"/": page("/a", "/b"), "/a": page(), "/b": page()})
    ran = run_cli("--max-pages", "2", made.url(), rc=0)

    assert "bound --max-pages reached; to go on" in ran.out
    assert ran.site_map.document["stop_reason"] == "page_budget"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_flushes_what_there_is(number: signal.Signals, site: Any, run_cli: Any, gate: Any) -> None:
    """An interrupted crawl writes its map, says how to go on, and its status tells the signal."""
    held = gate()
    made = site({"/": page("/slow", "/slow2"), "/slow": Reply(gate=held), "/slow2": Reply(gate=held)})
    running = run_cli.start(made.url())
    held.wait_for_arrivals(2)
    running.signal_group(number)
    ran = running.wait(20)
    held.open()

    assert ran.rc == 128 + number
    assert "cancelling: interrupting 2 fetches... flushed partial results to " in ran.err
    assert "--resume" in ran.err
    assert "Traceback" not in ran.err
    assert ran.site_map.document["stop_reason"] == "interrupted"
    assert [row["reason"] for row in ran.site_map.document["unvisited"]] == ["interrupted"] * 2


def test_two_signals_at_once_end_the_program(site: Any, run_cli: Any, gate: Any) -> None:
    """An impatient Ctrl-C, Ctrl-C ends within moments, without a traceback or a process left."""
    held = gate()
    made = site({"/": page("/slow"), "/slow": Reply(gate=held)})
    running = run_cli.start(made.url())
    held.wait_for_arrivals()
    running.signal_group(signal.SIGINT)
    running.signal_group(signal.SIGINT)
    ran = running.wait(20)
    held.open()

    assert ran.rc == 130
    assert "Traceback" not in ran.err
    assert "Warning" not in ran.err
    assert ran.left == ()


# ---------------------------------------------------------------- streams


def test_page_lines_and_nothing_else_on_stdout(site: Callable[..., Any], run_cli: Callable[..., Any]) -> None:
    """In a pipe there are plain lines, without colours and carriage returns, and stderr is empty."""
    ran = run_cli("--depth", "1", site({"/": page("/a", title="\x1b[2J"), "/a": page()}).url())

    lines = ran.out.splitlines()
    assert lines[0].startswith("crawling http://127.0.0.1:")
    assert " depth=1 concurrency=20 rps/host=0 parse-procs=" in lines[0]
    assert sorted(line.split()[1] for line in lines[1:3]) == ["/", "/a"]
    assert "\r" not in ran.out
    assert "\x1b" not in ran.out
    assert ran.err == ""


def test_map_on_stdout_is_alone_there(site: Callable[..., Any], run_cli: Callable[..., Any]) -> None:
    """--out - gives a document to the next program, and the lines to the person."""
    ran = run_cli("--out", "-", site({"/": page("/a"), "/a": page()}).url(), out=None)

    assert len(json.loads(ran.out)["pages"]) == 2
    assert "pages=2" in ran.err
    assert "  200  /a " in ran.err


@pytest.mark.parametrize("closed", ["2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_keep_nothing_from_working(
    closed: str, site: Callable[..., Any], tmp_path: Path
) -> None:
    """Started without stderr, or without any stream, a crawl finds and writes what it always does."""
    made = site({"/": page("/a"), "/a": page()})
    words = [sys.executable, "-m", "crawlr", "--rps", "0", "--out", str(tmp_path / "map.json"), made.url()]
    ended = subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", *words], timeout=60, check=False)

    assert ended.returncode == 0
    assert len(json.loads((tmp_path / "map.json").read_text())["pages"]) == 2


def test_closed_stdout_does_not_end_the_crawl(site: Callable[..., Any], run_cli: Callable[..., Any]) -> None:
    """`crawlr ... | head -1`: the map is written all the same, and nobody hears of a broken pipe."""
    made = site({"/": page(*[f"/{number}" for number in range(300)])}, default=page())
    reader, writer = os.pipe()
    thread = threading.Thread(target=lambda: (os.read(reader, 10), os.close(reader)))
    thread.start()
    ran = run_cli(made.url(), stdout=writer)
    os.close(writer)
    thread.join(10)

    assert len(ran.site_map.document["pages"]) == 301
    assert ran.err == ""


def test_map_into_a_closed_pipe_is_one_line_and_status_1(site: Callable[..., Any], run_cli: Callable[..., Any]) -> None:
    """`crawlr --out - | head -c 1`: the map is lost, which is a fault and no accident of the program."""
    reader, writer = os.pipe()
    os.close(reader)
    ran = run_cli("--out", "-", "-q", site({"/": page()}).url(), out=None, stdout=writer, rc=1)
    os.close(writer)

    assert ran.err == "crawlr: standard output was closed before the map was written\n"


def test_quiet_prints_nothing(site: Callable[..., Any], run_cli: Callable[..., Any]) -> None:
    """-q leaves both streams empty when all is well."""
    ran = run_cli("-q", site({"/": page()}).url())

    assert (ran.out, ran.err) == ("", "")


def test_each_output_is_written_and_told(site: Callable[..., Any], run_cli: Callable[..., Any]) -> None:
    """-o several times writes several files, with a line for each that says what is in it."""
    made = site({"/": page("/a", "/gone"), "/a": page("/")})
    ran = run_cli("-o", "pages.csv", "-o", "edges.jsonl", "-o", "site.gexf", "-o", "map.xml", made.url())
    folder = ran.folder

    assert ran.out.splitlines()[-5:] == [
        f"wrote {folder / 'sitemap.json'} (3 pages, 3 edges)",
        "wrote pages.csv (3 pages)",
        "wrote edges.jsonl (3 edges)",
        "wrote site.gexf (3 pages, 3 edges)",
        "wrote map.xml",
    ]
    assert (folder / "pages.csv").read_text().startswith("id,url,depth,")
    assert len((folder / "edges.jsonl").read_text().splitlines()) == 3
    assert "<gexf" in (folder / "site.gexf").read_text()
    assert sorted(each.name for each in folder.iterdir()) == [
        "edges.jsonl", "map.xml", "pages.csv", "site.gexf", "sitemap.json", "stderr.txt", "stdout.txt",
    ]  # fmt: skip


def test_what_an_output_leaves_out_is_a_notice(site: Callable[..., Any], run_cli: Callable[..., Any]) -> None:
    """What the writer of an output has to say is said on stderr, by a crawl and by an export."""
    made = site({"/": Reply(headers=(("Content-Type", "image/png"),), body=b"\x89PNG\r\n\x1a\n")})
    note = "note: map.xml lists no page: none answered 200 with HTML that may be indexed\n"
    ran = run_cli("-o", "map.xml", made.url())
    again = run_cli("export", "sitemap.json", "-o", "map.xml", folder=ran.folder, out=None)

    assert (ran.err, again.err, again.out) == (note, note, "wrote map.xml\n")


def test_the_state_is_beside_the_first_file(site: Callable[..., Any], run_cli: Callable[..., Any]) -> None:
    """A crawl of several outputs is gone on from beside the first of them that is a file."""
    made = site({"/": page("/a", "/b", "/c")}, default=page())
    words = ["-q", "-o", "-", "-o", "pages.csv", "-o", "map.json", "--format", "json"]
    first = run_cli(*words, "--max-pages", "2", made.url(), out=None)
    second = run_cli(*words, "--resume", folder=first.folder, out=None)

    assert (len(json.loads(first.out)["pages"]), len(json.loads(second.out)["pages"])) == (2, 4)
    assert json.loads((first.folder / "map.json").read_text()) == json.loads(second.out)
    assert sorted(made.targets()) == ["/", "/a", "/b", "/c"]


def test_export_writes_what_a_crawl_writes(site: Callable[..., Any], run_cli: Callable[..., Any]) -> None:
    """The verb makes further outputs of a map, or of the state of a crawl that is not finished."""
    made = site({"/": page("/a", "/b", "/c")}, default=page())
    ran = run_cli("-o", "direct.csv", "--columns", "sf", "--max-pages", "2", made.url())
    for source in ("sitemap.json", "sitemap.json.crawl"):
        again = run_cli(
            "export", source, "-o", "later.csv", "-o", "site.dot", "--columns", "sf", folder=ran.folder, out=None
        )

        assert again.out == "wrote later.csv (2 pages)\nwrote site.dot (2 pages, 3 edges)\n"
        later = (ran.folder / "later.csv").read_text(encoding="utf-8-sig").splitlines()
        direct = (ran.folder / "direct.csv").read_text(encoding="utf-8-sig").splitlines()
        if source.endswith(".crawl"):
            assert later == direct
        assert [line.split(",")[0] for line in later] == [line.split(",")[0] for line in direct]


def test_export_to_stdout_is_alone_there(site: Callable[..., Any], run_cli: Callable[..., Any]) -> None:
    """What goes to the next program has nothing else in it, whatever the encoding of the terminal."""
    ran = run_cli(site({"/": page(title="Größe ☃")}).url())
    again = run_cli(
        *("export", "sitemap.json", "-o", "-", "--format", "jsonl"),
        folder=ran.folder,
        out=None,
        env={"PYTHONIOENCODING": "latin-1"},
    )
    quiet = run_cli("export", "sitemap.json", "-q", "-o", "x.csv", folder=ran.folder, out=None)

    assert json.loads(again.out)["title"] == "Größe ☃"
    assert again.err == "wrote stdout (1 pages)\n"
    assert (quiet.out, quiet.err) == ("", "")


def test_seeds_from_stdin(site: Callable[..., Any], run_cli: Callable[..., Any]) -> None:
    """`-i -` takes the seeds from another program."""
    made = site({"/a": page(), "/b": page()})
    ran = run_cli("-i", "-", stdin=f"{made.url('/a')}\n# none\n\n{made.url('/b')}\n".encode())

    assert sorted(made.targets()) == ["/a", "/b"]
    assert "and 1 more" in ran.out.splitlines()[0]


def test_secrets_reach_the_site_and_nothing_else(site: Any, run_cli: Any, tmp_path: Path) -> None:
    """CRAWLR_AUTH, @FILE, -H and -b are sent, and are in no output, not even in the options of the map."""
    (tmp_path / "auth").write_text("me:hush1\n")
    cases = [
        (["-H", "X-Key: hush2", "-b", "sid=hush3"], {"CRAWLR_AUTH": "me:hush1"}),
        (["--auth", f"@{tmp_path / 'auth'}"], {}),
    ]
    for words, env in cases:
        made = site({"/": page()})
        ran = run_cli(*words, made.url(), env=env)

        sent = {name.lower(): value for name, value in made.hits[-1].headers}
        assert sent["authorization"] == "Basic " + base64.b64encode(b"me:hush1").decode()
        assert ("x-key" not in sent) or (sent["x-key"], sent["cookie"]) == ("hush2", "sid=hush3")
        assert "hush" not in ran.out + ran.err + json.dumps(ran.site_map.document)
        assert ran.site_map.document["options"]["auth"] == "***"


def test_auth_variable_that_is_none_is_refused_unseen(capsys: Any, monkeypatch: Any) -> None:
    """The value of CRAWLR_AUTH is a secret, a wrong one too."""
    monkeypatch.setenv("CRAWLR_AUTH", "hush")

    assert main(["x.example"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("crawlr: CRAWLR_AUTH: ")
    assert "hush" not in err


def test_options_in_the_map_are_the_effective_ones(site: Callable[..., Any], run_cli: Callable[..., Any]) -> None:
    """The map says by which values it was made."""
    options = run_cli("--depth", "1", "--no-robots", site({"/": page()}).url()).site_map.document["options"]

    assert (options["depth"], options["robots"], options["nofollow"], options["rps"]) == (1, False, "ignore", 0)
    assert options["user_agent"].startswith(f"crawlr/{crawlr.__version__} (+https://")
