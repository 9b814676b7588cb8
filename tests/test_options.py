"""Options.make: what each option accepts, what it refuses and how it says so, and what is shown of the secrets."""

from __future__ import annotations

import io
import json
import pickle
import re
import sys
from pathlib import Path

import pytest

from crawlr.errors import OptionsError
from crawlr.formats import Format
from crawlr.option_reading import accepted
from crawlr.options import Options
from crawlr.scrub import scrub

SEED = "https://example.com/"
MIB = 1024 * 1024

READ = [
    ("depth", "0", 0),
    ("depth", 3, 3),
    ("max_pages", "100", 100),
    ("max_time", "10", 10.0),
    ("max_time", "10s", 10.0),
    ("max_time", "500ms", 0.5),
    ("max_time", "2m", 120.0),
    ("max_time", "1h", 3600.0),
    ("max_time", "1.5h", 5400.0),
    ("max_time", "720h", 2_592_000.0),
    ("max_time", 2.5, 2.5),
    ("max_crawl_delay", "0", 0.0),
    ("timeout", ".5", 0.5),
    ("connect_timeout", 3, 3.0),
    ("scope", "domain", "domain"),
    ("include", r"/docs/", (r"/docs/",)),
    ("exclude", [r"\.zip$", "x"], (r"\.zip$", "x")),
    ("concurrency", "1", 1),
    ("per_host", "4", 4),
    ("rps", "0", 0.0),
    ("rps", "0.5", 0.5),
    ("rps", 7, 7.0),
    ("robots", False, False),
    ("user_agent", "mybot/2 (+https://me.example)", "mybot/2 (+https://me.example)"),
    ("retries", "0", 0),
    ("max_redirects", 0, 0),
    ("max_body", "4096", 4096),
    ("max_body", "512K", 512 * 1024),
    ("max_body", "32MiB", 32 * MIB),
    ("max_body", "1G", 1024 * MIB),
    ("max_body", "1.5m", 1_572_864),
    ("max_body", 9, 9),
    ("header", "X-One: a: b", (("X-One", "a: b"),)),
    ("header", ["A:1", "B:  2 "], (("A", "1"), ("B", "2"))),
    ("header", {"A": "1"}, (("A", "1"),)),
    ("header", [("A", "1"), ("A", "2")], (("A", "1"), ("A", "2"))),
    ("header", "X-Empty:", (("X-Empty", ""),)),
    ("cookie", "a=1; b=2", "a=1; b=2"),
    ("cookie", ["a=1;", "b=2"], "a=1; b=2"),
    ("auth", "me:pa:ss", "me:pa:ss"),
    ("auth", "me:", "me:"),
    ("proxy", "http://u:p@127.0.0.1:3128", "http://u:p@127.0.0.1:3128"),
    ("proxy", "env", "env"),
    ("insecure", True, True),
    ("ignore_param", ["sid", "from"], ("sid", "from")),
    ("parse_procs", "auto", None),
    ("parse_procs", "3", 3),
    ("parse_memory", "256M", 256 * MIB),
    ("follow", "a,img,a", ("a", "img")),
    ("follow", ("a", "link"), ("a", "link")),
    ("follow", "all", ("all",)),
    ("nofollow", "ignore", "ignore"),
    ("edges", "all", "all"),
    ("out", "-", ("-",)),
    ("out", "x.json", ("x.json",)),
    ("out", Path("x.json"), ("x.json",)),
    ("out", ["x.json", Path("y.csv"), "-"], ("x.json", "y.csv", "-")),
    ("out", [], ()),
    ("out", None, ()),
    ("format", "json", "json"),
]


@pytest.mark.parametrize(("name", "given", "expected"), READ, ids=lambda value: repr(value)[:30])
def test_value_is_read(name: str, given: object, expected: object) -> None:
    """A value arrives as the command line's text or typed, and is read alike."""
    options = Options.make(SEED, **{name: given})

    assert expected == getattr(options, name)


REFUSED = [
    ("depth", "x", "0 or more"),
    ("depth", "-1", "0 or more"),
    ("depth", "1.5", "0 or more"),
    ("depth", "٣", "0 or more"),
    ("depth", " 3", "0 or more"),
    ("depth", "", "0 or more"),
    ("depth", True, "0 or more"),
    ("depth", 1.0, "0 or more"),
    ("depth", "9" * 5000, "0 or more"),
    ("max_pages", "0", "1 or more"),
    ("max_time", "5x", "500ms"),
    ("max_time", "0", "500ms"),
    ("max_time", "-3s", "500ms"),
    ("max_time", "1h30m", "500ms"),
    ("max_time", "10 s", "500ms"),
    ("max_time", "9" * 400, "500ms"),
    ("max_time", "1e3", "500ms"),
    ("max_time", float("inf"), "500ms"),
    ("max_time", 10**400, "500ms"),
    ("max_crawl_delay", "25h", "24h"),
    ("timeout", "0s", "24h"),
    ("timeout", True, "24h"),
    ("connect_timeout", "48h", "24h"),
    ("scope", "site", "host, domain, prefix or any"),
    ("include", "(", "regular expression"),
    ("exclude", ["ok", "[z-a]"], "regular expression"),
    ("exclude", "", "regular expression"),
    ("concurrency", "0", "1 to 10,000"),
    ("concurrency", "10001", "1 to 10,000"),
    ("per_host", 0, "1 or more"),
    ("rps", "-1", "0 = no limit"),
    ("rps", "nan", "0 = no limit"),
    ("rps", float("nan"), "0 = no limit"),
    ("rps", "0.00000001", "0 = no limit"),
    ("robots", "no", "True or False"),
    ("no_robots", 1, "True or False"),
    ("user_agent", "", "mybot/1.0"),
    ("user_agent", "/1.0", "mybot/1.0"),
    ("user_agent", "a\r\nX: y", "mybot/1.0"),
    ("user_agent", "bot☃", "mybot/1.0"),
    ("retries", "many", "0 or more"),
    ("max_redirects", "ten", "0 or more"),
    ("max_body", "32T", "32MiB"),
    ("max_body", "0", "32MiB"),
    ("max_body", "1.5", "32MiB"),
    ("max_body", "32 MiB", "32MiB"),
    ("max_body", "32MB", "32MiB"),
    ("max_body", "9999999999999999G", "32MiB"),
    ("header", "no colon", "'Name: value'"),
    ("header", "Bad Name: x", "'Name: value'"),
    ("header", "X: a\r\nY: b", "'Name: value'"),
    ("header", "Content-Length: 5", "'Name: value'"),
    ("header", "user-agent: x", "'Name: value'"),
    ("header", [("A", 1)], "'Name: value'"),
    ("cookie", "novalue", "name=value"),
    ("cookie", "a=1\nb=2", "name=value"),
    ("auth", "nocolon", "USER:PASS"),
    ("auth", "a:b\n", "USER:PASS"),
    ("proxy", "127.0.0.1:3128", "http, https, socks4 or socks5"),
    ("proxy", "ftp://127.0.0.1", "http, https, socks4 or socks5"),
    ("proxy", "http://", "http, https, socks4 or socks5"),
    ("proxy", "http://127.0.0.1:99999", "http, https, socks4 or socks5"),
    ("proxy", "http://[::1", "http, https, socks4 or socks5"),
    ("ca_bundle", "/no/such/file.pem", "PEM"),
    ("ca_bundle", __file__, "PEM"),
    ("ignore_param", "", "query parameter"),
    ("parse_procs", "0", "auto"),
    ("parse_procs", "all", "auto"),
    ("parse_timeout", "never", "24h"),
    ("parse_memory", "much", "32MiB"),
    ("fetcher", "wget", "urllib3 or curl"),
    ("parser", "bs4", "lxml or lexbor"),
    ("follow", "a,b", "area,iframe"),
    ("follow", "", "area,iframe"),
    ("nofollow", "none", "page, all or ignore"),
    ("edges", "out", "in-scope or all"),
    ("input_file", "/no/such/list", "one a line"),
    ("out", "/no/such/folder/map.json", "folder that exists"),
    ("out", "/", "folder that exists"),
    ("out", "", "folder that exists"),
    ("out", ["x.json", ""], "folder that exists"),
    ("out", "x\0.json", "folder that exists"),
    ("out", 1, "folder that exists"),
    ("format", "xlsx", "json, jsonl, csv"),
    ("columns", "excel", "native, sf or advertools"),
    ("stats", "/no/such/folder/x", "folder that exists"),
    ("stats", "-", "folder that exists"),
]


@pytest.mark.parametrize(("name", "given", "says"), REFUSED, ids=lambda value: repr(value)[:30])
def test_refusal_names_option_value_and_what_is_accepted(name: str, given: object, says: str) -> None:
    """A bad value is an OptionsError of one line that names the option, the value and what is accepted."""
    with pytest.raises(OptionsError) as caught:
        Options.make(SEED, **{name: given})

    message = str(caught.value)
    assert message.startswith(f"--{name.replace('_', '-')}: ")
    assert repr(given)[:100] in message
    assert says in message.partition("accepted: ")[2]
    assert accepted(name) in message
    assert "\n" not in message


SEEDS = [
    ("example.com", "https://example.com"),
    (" example.com/a?b#c ", "https://example.com/a?b#c"),
    ("example.com:8080/x", "https://example.com:8080/x"),
    ("//example.com/x", "https://example.com/x"),
    ("bücher.example", "https://bücher.example"),
    ("http://example.com", "http://example.com"),
    ("HTTPS://example.com", "HTTPS://example.com"),
    ("localhost", "http://localhost"),
    ("LocalHost:8000/x", "http://LocalHost:8000/x"),
    ("app.localhost", "http://app.localhost"),
    ("localhost.", "http://localhost."),
    ("127.0.0.1:8471/index.html", "http://127.0.0.1:8471/index.html"),
    ("127.8.9.10", "http://127.8.9.10"),
    ("127.1", "http://127.1"),
    ("2130706433", "http://2130706433"),
    ("[::1]:8000/", "http://[::1]:8000/"),
    ("[0:0:0:0:0:0:0:1]", "http://[0:0:0:0:0:0:0:1]"),
    ("[::ffff:127.0.0.1]", "http://[::ffff:127.0.0.1]"),
    ("[2001:db8::1]", "https://[2001:db8::1]"),
    ("128.0.0.1", "https://128.0.0.1"),
    ("localhost.example.com", "https://localhost.example.com"),
    ("notlocalhost", "https://notlocalhost"),
]


@pytest.mark.parametrize(("given", "expected"), SEEDS)
def test_seed_gets_a_scheme(given: str, expected: str) -> None:
    """A seed without a scheme gets https, a loopback name or address http; one with a scheme stays as it is."""
    assert (expected,) == Options.make(given).seeds


@pytest.mark.parametrize(
    "given",
    [
        "ftp://example.com",
        "http//example.com",
        "file:///etc/passwd",
        "/index.html",
        "./x",
        "",
        "a@b.example",
        "mailto:a@b.example",
        "#x",
    ],
)
def test_seed_that_is_no_page_is_refused(given: str) -> None:
    """What cannot be the address of a page is refused by name, before anything is asked for."""
    with pytest.raises(OptionsError, match="^URL: " + re.escape(repr(given))):
        Options.make(given)


def test_no_seed_is_refused_except_on_resume(tmp_path) -> None:
    """Without a URL there is nothing to crawl, unless a kept state says what."""
    assert Options.make([], resume=True, out=tmp_path / "map.json").seeds == ()

    with pytest.raises(OptionsError, match="URL: none is given"):
        Options.make([])


TOGETHER = [
    ({"resume": True, "fresh": True}, "--resume and --fresh"),
    ({"resume": True, "out": "-"}, "--resume"),
    ({"resume": True, "out": None}, "--resume"),
    ({"insecure": True, "ca_bundle": "CERT"}, "--insecure and --ca-bundle"),
    ({"resume": True, "out": ["-", "/dev/null"]}, "--resume"),
    ({"out": "x.json", "stats": "./x.json"}, "--stats"),
    ({"out": ["y.csv", "x.json"], "stats": "./x.json"}, "--stats"),
    ({"out": "x.json", "stats": "x.json.crawl"}, "--stats: .*where the state"),
    ({"out": ["x.json", "./x.json.crawl"], "format": "json"}, "--out: .*where the state"),
    ({"out": ["x.json", "./x.json"]}, "--out: './x.json' is given twice"),
    ({"out": "x.cvs"}, "--out: 'x.cvs' has an ending that names no format"),
    ({"format": "csv"}, "--format: where is csv to go.*--out"),
    ({"columns": "sf"}, "--columns: sf is for tables; accepted with --out FILE.csv"),
    ({"columns": "sf", "out": "x.xml"}, "--columns: sf is for tables"),
    ({"header": "Authorization: Bearer t", "auth": "a:b"}, "--auth and --header"),
    ({"header": "cookie: a=1", "cookie": "a=1"}, "--cookie and --header"),
]


@pytest.mark.parametrize(("values", "says"), TOGETHER, ids=lambda value: str(value)[:40])
def test_values_that_exclude_each_other_are_refused(values: dict[str, object], says: str) -> None:
    """Two values that are good alone and contradict each other are refused, both by name."""
    import certifi

    values = {name: certifi.where() if value == "CERT" else value for name, value in values.items()}

    with pytest.raises(OptionsError, match=says):
        Options.make(SEED, **values)


STATES = [
    ("x.json", "x.json.crawl"),
    (["-", "y.csv", "x.json"], "y.csv.crawl"),
    (["/dev/null", "x.json"], "x.json.crawl"),
    ("-", ""),
    (None, ""),
]


@pytest.mark.parametrize(("out", "expected"), STATES, ids=[str(out) for out, _ in STATES])
def test_the_state_lies_beside_the_first_output_that_is_a_file(out: object, expected: str) -> None:
    """Standard output and devices have no beside; without a file the state is temporary."""
    assert Options.make(SEED, out=out).state == expected


def test_outputs_have_the_formats_of_their_names_or_the_one_that_is_forced() -> None:
    """What crawlr.outputs gets is what the three options say together."""
    options = Options.make(SEED, out=["x.json", "y.csv", "edges.csv"], columns="sf")
    forced = Options.make(SEED, out=["-", "y.txt"], format="edges.csv")

    assert [each.format for each in options.outputs] == [Format.JSON, Format.CSV, Format.EDGES_CSV]
    assert [each.format for each in forced.outputs] == [Format.EDGES_CSV] * 2
    assert Options.make(SEED, format="json").outputs == Options.make(SEED).outputs


def test_engine_that_is_not_installed_is_a_usage_error(monkeypatch) -> None:
    """An extra that is missing is said at once, with the command that brings it."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    for values, extra in (
        ({"fetcher": "curl"}, "fast"),
        ({"parser": "lexbor"}, "fast"),
    ):
        with pytest.raises(OptionsError, match=rf"^--{next(iter(values))}: .*pip install 'crawlr\[{extra}\]'"):
            Options.make(SEED, **values)


def test_unknown_name_is_refused_with_the_nearest() -> None:
    """A misspelt keyword is no silent default."""
    with pytest.raises(OptionsError, match="max_page: there is no such option; did you mean max_pages"):
        Options.make(SEED, max_page=3)


def test_switches_of_the_command_line_are_understood() -> None:
    """crawl(no_robots=True, same_host=True) means what the command line's switches mean."""
    options = Options.make(SEED, no_robots=True, same_host=True, scope="any")

    assert (options.robots, options.scope) == (False, "host")
    assert Options.make(SEED, no_robots=False).robots is True


def test_defaults_that_follow_from_others() -> None:
    """per_host follows concurrency, nofollow follows robots, and both can be said apart."""
    assert Options.make(SEED).per_host == 20
    assert Options.make(SEED, concurrency=7).per_host == 7
    assert Options.make(SEED).nofollow == "page"
    assert Options.make(SEED, robots=False).nofollow == "ignore"
    assert Options.make(SEED, robots=False, nofollow="all").nofollow == "all"


@pytest.mark.parametrize(
    ("user_agent", "agent"),
    [("mybot/2.0 (+x)", "mybot"), ("mybot", "mybot"), ("My bot 1", "My"), ("a.b_c-d/1/2", "a.b_c-d")],
)
def test_agent_is_the_product_token(user_agent: str, agent: str) -> None:
    """robots.txt is read for what stands before the slash."""
    assert agent == Options.make(SEED, user_agent=user_agent).agent


def test_default_user_agent_names_version_and_address() -> None:
    """A site's owner finds out who asks."""
    import crawlr

    options = Options.make(SEED)

    assert re.fullmatch(rf"crawlr/{re.escape(crawlr.__version__)} \(\+https://\S+\)", options.user_agent)
    assert options.agent == "crawlr"


def test_secrets_are_masked_in_effective_values_and_in_the_repr() -> None:
    """What sitemap.json and a log line get holds no secret, and still says which options were given."""
    options = Options.make(
        "http://user:hush@example.com/",
        header=["X-Token: hush", "Accept-Language: hush"],
        cookie="sid=hush",
        auth="me:hush",
        proxy="http://me:hush@127.0.0.1:3128/",
    )
    effective = options.effective()

    assert "hush" not in json.dumps(effective)
    assert "hush" not in repr(options)
    assert effective["header"] == ["X-Token: ***", "Accept-Language: ***"]
    assert effective["cookie"] == effective["auth"] == "***"
    assert effective["proxy"] == "http://***@127.0.0.1:3128/"


def test_effective_values_are_all_values_but_the_seeds() -> None:
    """Every option stands in sitemap.json with the value that counted, as JSON."""
    effective = Options.make(SEED, depth=2).effective()

    assert set(effective) == set(Options.__struct_fields__) - {"seeds"}
    assert json.loads(json.dumps(effective)) == effective
    assert (effective["depth"], effective["parse_procs"], effective["nofollow"]) == (2, "auto", "page")


def test_refusal_does_not_show_a_password_in_a_url() -> None:
    """Error lines end up in logs: a URL's userinfo is masked there too."""
    for values in ({"proxy": "ftp://me:hush@127.0.0.1"}, {}):
        with pytest.raises(OptionsError) as caught:
            Options.make("ftp://me:hush@127.0.0.1/", **values)

        assert "hush" not in str(caught.value)
        assert "127.0.0.1" in str(caught.value)


def test_auth_from_a_file(tmp_path) -> None:
    """@FILE is the first line of that file; what is wrong with it is said without showing it."""
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_text("me:secret\nsecond line\n")
    bad.write_text("hush\n")

    assert Options.make(SEED, auth=f"@{good}").auth == "me:secret"
    with pytest.raises(OptionsError, match=r"--auth: .*bad.*USER:PASS") as caught:
        Options.make(SEED, auth=f"@{bad}")
    assert "hush" not in str(caught.value)
    with pytest.raises(OptionsError, match="No such file"):
        Options.make(SEED, auth=f"@{tmp_path / 'none'}")


def test_seeds_from_files(tmp_path, monkeypatch) -> None:
    """One seed a line, after those of the command line; empty lines and comments are none; - is standard input."""
    listed = tmp_path / "seeds"
    listed.write_bytes("\ufeffexample.com\r\n\n# no seed\n  http://127.0.0.1:1/ \n".encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"b.example\n")))

    options = Options.make("a.example", input_file=[str(listed), "-"])

    assert options.seeds == ("https://a.example", "https://example.com", "http://127.0.0.1:1/", "https://b.example")


def test_seed_file_that_is_no_text_is_refused(tmp_path) -> None:
    """A file of another kind is a usage error, not a crawl of rubbish."""
    (tmp_path / "image").write_bytes(b"\x89PNG\xff")

    with pytest.raises(OptionsError, match="not UTF-8"):
        Options.make([], input_file=str(tmp_path / "image"))


def test_options_are_values() -> None:
    """Options can be compared, pickled and not changed."""
    options = Options.make(SEED, depth=1)

    assert pickle.loads(pickle.dumps(options)) == options == Options.make([SEED], depth="1")
    with pytest.raises(AttributeError):
        options.depth = 2  # type: ignore[misc]  # the point of the test


SCRUBBED = [
    ("plain é ✓", "plain é ✓"),
    ("a\x1b[2J", "a\\x1b[2J"),
    ("a\r\nb\tc\0", "a\\x0d\\x0ab\\x09c\\x00"),
    ("\x7f\x80\x9b31m\x85", "\\x7f\\x80\\x9b31m\\x85"),
    ("\u202eevil\u2066\u2028\u200f\u061c", "\\u202eevil\\u2066\\u2028\\u200f\\u061c"),
    ("\ud800", "\\ud800"),
]


@pytest.mark.parametrize(("given", "expected"), SCRUBBED, ids=ascii)
def test_scrub_leaves_nothing_that_can_move_a_cursor(given: str, expected: str) -> None:
    """Control characters, bidi marks, line separators and lone surrogates are spelled out; all else stays."""
    assert expected == scrub(given)


@pytest.mark.parametrize("given", ["x" * 201, "\x1b" * 100, "x" * 10**6])
def test_scrub_cuts_long_text(given: str) -> None:
    """A page cannot fill the screen: 200 characters, the last of which says that more was there."""
    assert len(scrub(given)) == 200
    assert scrub(given).endswith("…")
    assert scrub("x" * 200) == "x" * 200
