"""Options from crawlr.toml and from variables: what is read, which place wins, and what is said about mistakes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from crawlr import config
from crawlr.cli import main
from crawlr.config import gather
from crawlr.errors import OptionsError
from crawlr.option_row import rows
from crawlr.option_table import CRAWL, SCREEN
from crawlr.options import Options
from tests.servers.local import page

SEED = "https://x.example"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder of our own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(text: str | bytes, name: str = "crawlr.toml") -> str:
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


def options_of(words: Mapping[str, object] | None = None, environ: Mapping[str, str] | None = None) -> Options:
    """The options of a crawl with these words and variables, and the file of the folder."""
    asked = gather({"seeds": [SEED]} | dict(words or {}), environ or {})
    values: dict[str, Any] = {name: value for name, value in asked.values.items() if name not in config.NOT_OF_A_CRAWL}
    return Options.make(asked.values["urls"], **values)  # type: ignore[arg-type]  # what gather gives is unread


READ = [
    ("depth = 3", "depth", 3),
    ("depth = '3'", "depth", 3),
    ("rps = 0.5", "rps", 0.5),
    ("max-time = '10s'", "max_time", 10.0),
    ("max_time = 10", "max_time", 10.0),
    ("max-body = '8MiB'", "max_body", 8 * 1024 * 1024),
    ("max-body = 0x10", "max_body", 16),
    ("sitemaps = true", "sitemaps", True),
    ("sitemaps = false", "sitemaps", False),
    ("no-robots = true", "robots", False),
    ("no-robots = false", "robots", True),
    ("same-host = true", "scope", "host"),
    ("same-host = false", "scope", "host"),
    ("scope = 'any'", "scope", "any"),
    ("include = ['a,b', 'c']", "include", ("a,b", "c")),
    ("include = 'a'", "include", ("a",)),
    ("include = []", "include", ()),
    ("header = ['A: 1', 'B: 2']", "header", (("A", "1"), ("B", "2"))),
    ("cookie = ['a=1', 'b=2']", "cookie", "a=1; b=2"),
    ("auth = 'me:word'", "auth", "me:word"),
    ("follow = ['a', 'img']", "follow", ("a", "img")),
    ("follow = 'a,img'", "follow", ("a", "img")),
    ("fail-on = ['broken', 'slow=2s']", "fail_on", ("broken", "slow=2s")),
    ("out = ['x.json', 'y.csv']", "out", ("x.json", "y.csv")),
    ("parse-procs = 2", "parse_procs", 2),
    ("parse-procs = 'auto'", "parse_procs", None),
    ("[crawlr]\ndepth = 3", "depth", 3),
    ("rps = 1\n[crawlr]\ndepth = 3", "depth", 3),
    ("\ufeffdepth = 3", "depth", 3),
    ("depth = 3\r\nrps = 1\r\n", "depth", 3),
    ("", "depth", None),
    ("# nothing", "depth", None),
]


@pytest.mark.parametrize(("text", "name", "expected"), READ, ids=[ascii(text) for text, _, _ in READ])
def test_file_is_read(text: str, name: str, expected: object) -> None:
    """Numbers, booleans, texts and arrays mean what the words of the command line mean."""
    write(text)

    assert getattr(options_of(), name) == expected


VARIABLES = [
    ("CRAWLR_RPS", "2", "rps", 2.0),
    ("CRAWLR_PARSE_PROCS", "4", "parse_procs", 4),
    ("CRAWLR_MAX_TIME", "2m", "max_time", 120.0),
    ("CRAWLR_SITEMAPS", "1", "sitemaps", True),
    ("CRAWLR_SITEMAPS", "Yes", "sitemaps", True),
    ("CRAWLR_SITEMAPS", "off", "sitemaps", False),
    ("CRAWLR_NO_ROBOTS", "true", "robots", False),
    ("CRAWLR_SAME_HOST", "1", "scope", "host"),
    ("CRAWLR_INCLUDE", "a,b", "include", ("a,b",)),
    ("CRAWLR_INCLUDE", "a\n\n b \r\n", "include", ("a", "b")),
    ("CRAWLR_HEADER", "A: 1\nB: 2, 3", "header", (("A", "1"), ("B", "2, 3"))),
    ("CRAWLR_FOLLOW", "a,img", "follow", ("a", "img")),
    ("CRAWLR_FAIL_ON", "broken,slow=2s", "fail_on", ("broken", "slow=2s")),
    ("CRAWLR_AUTH", "me:word", "auth", "me:word"),
    ("CRAWLR_RPS", "", "rps", 5.0),
    ("CRAWLR_AUTH", "", "auth", None),
]


@pytest.mark.parametrize(
    ("variable", "text", "name", "expected"), VARIABLES, ids=[f"{v}={t!r}" for v, t, *_ in VARIABLES]
)
def test_variable_is_read(variable: str, text: str, name: str, expected: object) -> None:
    """A variable is the option in upper case; one that is repeatable has a value a line; an empty one is none."""
    assert getattr(options_of(environ={variable: text}), name) == expected


def test_every_option_can_be_in_the_file_and_in_a_variable() -> None:
    """A new row of the table is known there without another word."""
    for row in rows(*CRAWL, SCREEN):
        assert row.name in config.NAMES, row.flag


def test_command_line_goes_before_variable_before_file_before_default() -> None:
    """Each place is asked in turn, and says that it was it."""
    write("depth = 1\nretries = 1\nrps = 1\n")
    environ = {"CRAWLR_DEPTH": "2", "CRAWLR_RETRIES": "3"}
    asked = gather({"seeds": [SEED], "depth": "3"}, environ)
    options = options_of({"depth": "3"}, environ)

    assert (options.depth, options.retries, options.rps, options.timeout) == (3, 3, 1.0, 30.0)
    assert {name: asked.origins.get(name) for name in ("depth", "retries", "rps", "timeout")} == {
        "depth": "command line",
        "retries": "CRAWLR_RETRIES",
        "rps": "rps in crawlr.toml",
        "timeout": None,
    }


def test_repeatable_options_are_replaced_whole() -> None:
    """What is said nearer does not add to what is said farther away."""
    write("exclude = ['file', 'file2']\n")

    assert options_of().exclude == ("file", "file2")
    assert options_of(environ={"CRAWLR_EXCLUDE": "variable"}).exclude == ("variable",)
    assert options_of({"exclude": ["word"]}, {"CRAWLR_EXCLUDE": "variable"}).exclude == ("word",)


def test_only_the_value_that_counts_is_looked_at() -> None:
    """What another place replaces does no harm, whatever it is."""
    write("depth = 'deep'\n")

    assert options_of({"depth": "1"}, {"CRAWLR_DEPTH": "deeper", "CRAWLR_AUTH": ""}).depth == 1
    assert options_of({"depth": "1", "auth": "a:b"}, {"CRAWLR_AUTH": "bad"}).auth == "a:b"


def test_urls_of_the_command_line_replace_those_of_the_file() -> None:
    """URLs and --input-file are one thing: who gives either says where the crawl begins."""
    write("https://listed.example\n", "seeds.txt")
    write("urls = ['https://a.example', 'b.example']\n")

    def seeds(words: Mapping[str, object], environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
        asked = gather(words, environ or {})
        files = asked.values.get("input_file", [])
        return Options.make(asked.values.get("urls", ()), input_file=files).seeds  # type: ignore[arg-type]  # unread

    assert seeds({"seeds": []}) == ("https://a.example", "https://b.example")
    assert seeds({"seeds": ["c.example"]}) == ("https://c.example",)
    assert seeds({"seeds": [], "input_file": ["seeds.txt"]}) == ("https://listed.example",)
    assert seeds({"seeds": []}, {"CRAWLR_URLS": "d.example\ne.example"}) == ("https://d.example", "https://e.example")


def test_a_switch_can_be_unsaid() -> None:
    """--sitemaps=no on the command line, or 0 in a variable, goes before true in the file."""
    write("sitemaps = true\nno-robots = true\n")

    assert main(["--sitemaps=no", "--no-robots=no", "http://[bad"]) == 2  # the grammar knows it
    assert options_of({"sitemaps": False, "robots": True}).sitemaps is False
    assert options_of(environ={"CRAWLR_SITEMAPS": "0"}).sitemaps is False
    assert options_of(environ={"CRAWLR_NO_ROBOTS": "0"}).robots is True


MISTAKES = [
    ("rps = true", "--rps: True", "such as 5 or 0.5; 0 = no limit; --rps is given by rps in crawlr.toml"),
    ("rps = 'fast'", "--rps: 'fast'", "given by rps in crawlr.toml"),
    ("depth = 1.5", "--depth: 1.5", "given by depth in crawlr.toml"),
    ("depth = [1]", "--depth: [1]", "given by depth in crawlr.toml"),
    ("depth = nan", "--depth: nan", "given by depth in crawlr.toml"),
    ("depth = 2026-01-01", "--depth: ", "given by depth in crawlr.toml"),
    ("depth = 99999999999999999999", "--depth: 9999", "given by depth in crawlr.toml"),
    ("max-pages = 0", "--max-pages: 0", "given by max-pages in crawlr.toml"),
    ("sitemaps = 1", "--sitemaps: 1", "True or False; --sitemaps is given by sitemaps in crawlr.toml"),
    ("sitemaps = 'no'", "--sitemaps: 'no'", "True or False"),
    ("no-robots = 'yes'", "--no-robots: 'yes'", "true or false; given by no-robots in crawlr.toml"),
    ("verbose = 3", "verbose in crawlr.toml: 3", "0, 1 or 2"),
    ("quiet = 'no'", "quiet in crawlr.toml: 'no'", "True or False"),
    ("include = ['(']", "--include: ['(']", "given by include in crawlr.toml"),
    ("include = [1]", "--include: [1]", "given by include in crawlr.toml"),
    ("urls = ['ftp://x.example']", "URL: 'ftp://x.example'", "URL is given by urls in crawlr.toml"),
    ("urls = 5", "URL: 5", "URL is given by urls in crawlr.toml"),
    ("resume = true\nfresh = true", "--resume and --fresh", "--resume is given by resume in crawlr.toml, --fresh is"),
    ("insecure = true", "'insecure'", "--config crawlr.toml"),
    ("depht = 3", "'depht' is no option", "did you mean depth?"),
    ("max_page = 3", "'max_page' is no option", "did you mean max-pages?"),
    ("xyz = 3", "'xyz' is no option", "crawlr --help"),
    ("config = 'x'", "'config' is no option", ""),
    ("help = true", "'help' is no option", ""),
    ("depth = 1\ndepth = 2\n", "crawlr.toml: is not TOML", "line 2"),
    ("max-pages = 1\nmax_pages = 2", "'max_pages' is given twice", "each option once"),
    ("depth = 1\n[crawlr]\ndepth = 2", "'depth' is given twice", "each option once"),
    ("scope = 'any'\nsame-host = true", "same-host in crawlr.toml and scope in crawlr.toml", "one of them"),
    ("[proxy]\nurl = 'x'", "'proxy' is a table", "below [crawlr]"),
    ("header = {A = '1'}", "'header' is a table", "option = value"),
    ("[crawlr.depth]\nx = 1", "'depth' is a table", "option = value"),
    ("crawlr = 1", "'crawlr' is no option", "[crawlr]"),
    ("depth", "crawlr.toml: is not TOML", "depth = 3"),
    ("depth = " + "9" * 5000, "too long or too deep", "depth = 3"),
    ("depth = " + "[" * 5000, "crawlr.toml: is not TOML", "depth = 3"),
    (b"# caf\xe9\ndepth = 3", "line 1 is not UTF-8", "--no-config"),
    (b"depth = 3\n# caf\xe9", "line 2 is not UTF-8", "--no-config"),
    (b"depth = 3\0", "crawlr.toml: is not TOML", "depth = 3"),
    (b"#" * (1024 * 1024 + 1), "larger than 1 MiB", "--no-config"),
]


@pytest.mark.parametrize(("text", "names", "says"), MISTAKES, ids=[ascii(text)[:40] for text, _, _ in MISTAKES])
def test_mistake_in_the_file_is_one_line_and_status_2(text: str | bytes, names: str, says: str, capsys: Any) -> None:
    """It names option and value, what is accepted, and the file with its key."""
    write(text)

    assert main([] if "urls" in str(text) else [SEED]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "crawlr.toml" in err
    assert names in err
    assert says in err


VARIABLE_MISTAKES = [
    ("CRAWLR_RPS", "fast", "--rps: 'fast'", "--rps is given by CRAWLR_RPS"),
    ("CRAWLR_SITEMAPS", "maybe", "CRAWLR_SITEMAPS: 'maybe'", "1, true, yes or on"),
    ("CRAWLR_INCLUDE", "a\n(", "--include: ['a', '(']", "--include is given by CRAWLR_INCLUDE"),
    ("CRAWLR_URLS", "ftp://x.example", "URL: 'ftp://x.example'", "URL is given by CRAWLR_URLS"),
    ("CRAWLR_RESUME", "1", "--resume: there is no state file", "--resume is given by CRAWLR_RESUME"),
    ("CRAWLR_CONFIG", "none.toml", "none.toml: cannot be read", "No such file"),
    ("CRAWLR_NO_CONFIG", "si", "CRAWLR_NO_CONFIG: 'si'", "1, true, yes or on"),
    ("CRAWLR_VERBOSE", "much", "CRAWLR_VERBOSE: 'much'", "0, 1 or 2"),
    ("CRAWLR_FORMAT", "csv", "--format: where is csv to go", "--format is given by CRAWLR_FORMAT"),
]


@pytest.mark.parametrize(
    ("variable", "text", "names", "says"), VARIABLE_MISTAKES, ids=[v for v, *_ in VARIABLE_MISTAKES]
)
def test_mistake_in_a_variable_names_it(
    variable: str, text: str, names: str, says: str, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody remembers what a profile exports."""
    monkeypatch.setenv(variable, text)

    assert main([] if variable == "CRAWLR_URLS" else [SEED]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert names in err
    assert says in err


def test_command_line_is_not_named_as_a_place(capsys: Any) -> None:
    """Who typed a value knows where it is."""
    write("rps = 1\n")

    assert main([SEED, "--depth", "x"]) == 2
    assert "given by" not in capsys.readouterr().err


SECRETS = [
    ("auth = 'hush'", {}, "auth in crawlr.toml"),
    ("auth = 123456", {}, "auth in crawlr.toml"),
    ("header = ['hush']", {}, "header in crawlr.toml"),
    ("cookie = 'hush'", {}, "cookie in crawlr.toml"),
    ("", {"CRAWLR_AUTH": "hush"}, "CRAWLR_AUTH"),
    ("", {"CRAWLR_HEADER": "hush"}, "CRAWLR_HEADER"),
    ("", {"CRAWLR_COOKIE": "hush"}, "CRAWLR_COOKIE"),
]


@pytest.mark.parametrize(
    ("text", "environ", "place"), SECRETS, ids=[f"{text}{environ}" for text, environ, _ in SECRETS]
)
def test_a_wrong_secret_is_not_shown(text: str, environ: dict[str, str], place: str) -> None:
    """Logs of CI are public more often than people think."""
    write(text)

    with pytest.raises(OptionsError) as caught:
        options_of(environ=environ)
    assert str(caught.value).startswith(f"{place}: its value (not shown) is not accepted; accepted: ")
    assert "hush" not in str(caught.value)
    assert "123456" not in str(caught.value)


# ---------------------------------------------------------------- which file, and whether it is trusted


def test_named_file_goes_before_the_one_that_is_found() -> None:
    """--config, then CRAWLR_CONFIG, then crawlr.toml; --no-config: none; and a variable can say that, too."""
    write("depth = 1\n")
    write("depth = 2\n", "two.toml")
    write("depth = 3\n", "three.toml")
    variable = {"CRAWLR_CONFIG": "two.toml"}

    assert options_of().depth == 1
    assert options_of(environ=variable).depth == 2
    assert options_of({"config": "three.toml"}, variable).depth == 3
    assert options_of({"no_config": True}, variable).depth is None
    assert options_of(environ={"CRAWLR_NO_CONFIG": "1"}).depth is None
    assert options_of({"no_config": False}, {"CRAWLR_NO_CONFIG": "1"}).depth == 1  # --no-config=no
    assert options_of({"config": "three.toml"}, {"CRAWLR_NO_CONFIG": "1"}).depth == 3
    with pytest.raises(OptionsError, match="--config and --no-config exclude each other"):
        options_of({"config": "two.toml", "no_config": True})


UNREADABLE = {
    "a folder": lambda path: path.mkdir(),
    "a pipe": os.mkfifo,
    "a link to nothing": lambda path: path.symlink_to("nothing"),
    "not for us": lambda path: (path.write_text("depth = 1"), path.chmod(0)),
}


@pytest.mark.parametrize("make", UNREADABLE.values(), ids=UNREADABLE)
def test_a_file_that_cannot_be_read_is_not_passed_over(make: Any, folder: Path) -> None:
    """It may have had an --exclude in it; and nothing waits for a pipe."""
    make(folder / "crawlr.toml")
    if (folder / "crawlr.toml").is_file() and os.access(folder / "crawlr.toml", os.R_OK):
        pytest.skip("this user reads every file, whatever its mode says")

    with pytest.raises(OptionsError, match=r"^crawlr\.toml: .*accepted: .*--no-config"):
        options_of()
    assert options_of({"no_config": True}).depth is None


@pytest.mark.parametrize("path", ["folder", "nothing.toml", "", "a\0b", "/dev/zero"])
def test_a_named_file_that_cannot_be_read_is_a_mistake(path: str, folder: Path) -> None:
    """Whoever names a file wants it."""
    (folder / "folder").mkdir()

    with pytest.raises(OptionsError, match="accepted: a file of options in TOML"):
        options_of({"config": path})


DISTRUSTED = [
    ("extract = 'stranger:run'", "'extract' is not accepted"),
    ("proxy = 'http://127.0.0.1:1'", "'proxy' is not accepted"),
    ("insecure = true", "'insecure' is not accepted"),
    ("ca-bundle = 'x.pem'", "'ca-bundle' is not accepted"),
    ("out = '/tmp/x.json'", "out: '/tmp/x.json' is outside"),
    ("out = ['x.json', '../y.csv']", "out: '../y.csv' is outside"),
    ("out = 'away/x.json'", "out: 'away/x.json' is outside"),
    ("stats = '../x'", "stats: '../x' is outside"),
    ("junit = '../x'", "junit: '../x' is outside"),
    ("input-file = '/etc/passwd'", "input-file: '/etc/passwd' is outside"),
    ("auth = '@/etc/passwd'", "auth: '/etc/passwd' is outside"),
    ("auth = '@key'", "auth: 'key' is outside"),
    ("[crawlr]\nproxy = 'http://127.0.0.1:1'", "'proxy' is not accepted"),
]


@pytest.mark.parametrize(("text", "says"), DISTRUSTED, ids=[text for text, _ in DISTRUSTED])
def test_a_found_file_may_not_do_what_a_stranger_would_want(text: str, says: str, folder: Path) -> None:
    """A folder that came from somewhere cannot redirect what is sent, nor read or write elsewhere; named, it may."""
    (folder / "away").symlink_to("/tmp")
    (folder / "key").symlink_to("/etc/hostname")
    path = write(text)

    with pytest.raises(OptionsError, match="merely found here; accepted in a file that you name: --config") as caught:
        gather({"seeds": [SEED]}, {})
    assert says in str(caught.value)
    assert gather({"seeds": [SEED], "config": path}, {}).file == path
    assert gather({"seeds": [SEED]}, {"CRAWLR_CONFIG": path}).file == path


def test_a_found_file_may_use_its_own_folder(folder: Path) -> None:
    """What a project needs is accepted without a word."""
    (folder / "maps").mkdir()
    write("me:word\n", "secret.txt")
    write("out = ['maps/x.json', '-']\nauth = '@secret.txt'\nstats = './s.json'\n")
    options = options_of()

    assert (options.out, options.auth, options.stats) == (("maps/x.json", "-"), "me:word", "./s.json")


def test_secrets_of_the_environment_do_not_go_to_urls_of_a_found_file() -> None:
    """Otherwise `crawlr` in a stranger's folder would send them to the stranger."""
    path = write("urls = ['https://stranger.example']\n")
    environ = {"CRAWLR_AUTH": "me:word"}

    with pytest.raises(OptionsError, match=r"^CRAWLR_AUTH: is not sent") as caught:
        gather({"seeds": []}, environ)
    assert "word" not in str(caught.value)
    assert gather({"seeds": [SEED]}, environ).values["auth"] == "me:word"
    assert gather({"seeds": [], "config": path}, environ).values["auth"] == "me:word"
    assert gather({"seeds": [], "auth": "a:b"}, environ).values["auth"] == "a:b"


# ---------------------------------------------------------------- what is said


def test_verbose_tells_every_value_and_where_it_was_said(run_cli: Any, site: Any, folder: Path) -> None:
    """With -v one sees the file, every option with its value, and who said it; no secret."""
    made = site({"/": page()})
    home = folder / "home"
    home.mkdir()
    (home / "crawlr.toml").write_text("depth = 2\nheader = ['X-Key: hush']\n")
    env = {"CRAWLR_COOKIE": "a=hush", "CRAWLR_MAX_PAGES": "9", "CRAWLR_PORT": "tcp://10.0.0.1:80"}
    ran = run_cli("-v", "--check-external", made.url(), folder=home, env=env, rc=0)

    for line in (
        f"file {home.resolve() / 'crawlr.toml'}",
        "variable CRAWLR_PORT is none of crawlr's",
        "depth=2 (depth in crawlr.toml)",
        'header=["X-Key: ***"] (header in crawlr.toml)',
        'cookie="***" (CRAWLR_COOKIE)',
        "max_pages=9 (CRAWLR_MAX_PAGES)",
        "rps=0.0 (command line)",
        "retries=2 (default)",
        'edges="all" (follows from other options)',
        "verbose=1 (command line)",
    ):
        assert f"INFO crawlr.cli: {line}\n" in ran.err
    for name in Options.__struct_fields__:
        assert f" {'urls' if name == 'seeds' else name}=" in ran.err
    assert "hush" not in ran.err
    assert ran.site_map.document["options"]["depth"] == 2


def test_without_verbose_nothing_is_said(run_cli: Any, site: Any, folder: Path) -> None:
    """A file in its place is no news."""
    made = site({"/": page()})
    home = folder / "home"
    home.mkdir()
    (home / "crawlr.toml").write_text(f"urls = ['{made.url()}']\nno-color = true\n")
    ran = run_cli(folder=home, env={"CRAWLR_PORT": "x"}, rc=0)

    assert ran.err == ""


def test_verbose_and_quiet_can_be_in_the_file(run_cli: Any, site: Any, folder: Path) -> None:
    """What concerns the screen is an option as others are, for the demo too."""
    made = site({"/": page()})
    home = folder / "home"
    home.mkdir()
    (home / "crawlr.toml").write_text("quiet = true\nverbose = 1\ndepth = 0\n")
    ran = run_cli(made.url(), folder=home, rc=0)

    assert ran.out == ""
    assert "quiet=true (quiet in crawlr.toml)" in ran.err
    assert run_cli("demo", folder=home, out=None, rc=0).out == ""
    demo = json.loads((home / "crawlr-demo.json").read_text())
    assert demo["options"]["depth"] is None  # the demo is the same everywhere


def test_a_variable_that_looks_misspelt_is_noted(run_cli: Any, site: Any) -> None:
    """It is no error: other programs may have variables that begin so."""
    made = site({"/": page()})
    ran = run_cli(made.url(), env={"CRAWLR_DEPHT": "3"}, rc=0)

    assert ran.err == "note: CRAWLR_DEPHT: there is no such variable; did you mean CRAWLR_DEPTH?\n"
    assert run_cli("-q", made.url(), env={"CRAWLR_DEPHT": "3"}, rc=0).err == ""


@pytest.mark.parametrize("verb", ["export x.json -o y.csv", "why /", "diff a b"])
def test_other_commands_do_not_read_the_file(verb: str, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its options are those of a crawl: an export must not write over the outputs that they name."""
    write("this is no TOML")
    monkeypatch.setenv("CRAWLR_RPS", "fast")

    assert main(verb.split()) == 2
    err = capsys.readouterr().err
    assert "crawlr.toml" not in err
    assert "RPS" not in err


def test_resume_with_a_file_that_changed(run_cli: Any, site: Any, folder: Path) -> None:
    """A bound may change between the runs of a crawl; other URLs are another crawl, and the file is named for it."""
    made = site({"/": page("/a", "/b")}, default=page())
    home = folder / "home"
    home.mkdir()
    file = home / "crawlr.toml"
    file.write_text(f"urls = '{made.url()}'\nmax-pages = 1\n")
    run_cli(folder=home, rc=0)
    file.write_text(f"urls = '{made.url('/other')}'\nmax-pages = 2\n")
    refused = run_cli("--resume", folder=home, rc=2)
    file.write_text(f"urls = '{made.url()}'\nmax-pages = 2\n")
    bounded = run_cli("--resume", folder=home, rc=0)
    file.write_text("")
    ran = run_cli("--resume", folder=home, rc=0)

    assert "URL is given by urls in crawlr.toml" in refused.err
    assert (len(bounded.site_map.document["pages"]), len(ran.site_map.document["pages"])) == (2, 3)
