"""The shape of the program: who may import whom, and what a parser process loads. Read from the source, not run."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1] / "crawlr"

LAYERS = [
    # lowest first; a module imports only from layers below its own; a package is one room here
    {"errors", "records", "scrub", "failpoints", "help_texts", "content_coding", "option_values", "machine"},
    {"json_text", "selectors", "option_row", "streams", "web_page"},
    {"formats", "gate_rules", "extract_rules"},
    {"option_table"},
    {"option_reading"},
    {"options", "config_file"},
    {"reporting", "known", "scope", "stopping", "config"},
    {"order", "journal", "traps", "fetch", "parse"},
    {"frontier"},
    {"ledger", "state", "stats", "view"},
    {"limits", "progress", "ranking", "lookup", "diff", "gate_lines", "map_head", "result", "status"},
    {"sinks", "sitemap_file", "tuning", "why", "gates", "control", "watching"},
    {"report"},
    {"outputs", "diff_lines", "why_lines"},
    {"errands", "external"},
    {"in_flight", "monitor"},
    {"answers", "parsed"},
    {"engines"},
    {"coordinator"},
    {"run"},
    {"api", "export"},
    {"demo", "grammar", "streaming", "web_source"},
    {"completion", "man", "verbs"},
    {"cli"},
    {"__main__"},
]
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
SEE_BOTH = {"errands", "external", "answers", "coordinator", "engines", "run", "api", "why"}
"""The only modules that may see fetch/ and parse/: the coordinator with what it decides, what puts the stages together,
and what tells later how it was decided."""
NOT_IN_A_PARSER = {"requests", "urllib3", "sqlite3", "tqdm", "tldextract"}


def modules() -> dict[str, Path]:
    """Dotted name below crawlr -> file. `crawlr/__init__.py`, which exports lazily, is left out."""
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name:
            found[name] = path
    return found


def imports(name: str, path: Path) -> set[str]:
    """The modules of crawlr that this one imports, anywhere in it: at the top, in functions, for types only."""
    known, found = modules(), set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: a relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    targets = set()
    for dotted in found:
        if dotted.startswith("crawlr."):
            inner = dotted.removeprefix("crawlr.")
            while inner and inner not in known:  # a name inside a module
                inner = inner.rpartition(".")[0]
            targets |= {inner} if inner else set()
    return targets - {name}


MODULES = modules()


def room(module: str) -> str:
    return module.partition(".")[0]


def test_every_module_has_its_layer() -> None:
    """A new room is put into the table, where a reader finds its place."""
    rooms = {room(name) for name in MODULES}

    assert rooms - set(LEVEL) == set(), "not in the table of tests/test_layers.py"


@pytest.mark.parametrize("name", sorted(MODULES))
def test_imports_go_downward(name: str) -> None:
    """A module imports only from lower layers, or inside its own package."""
    upward = [
        other
        for other in imports(name, MODULES[name])
        if room(other) != room(name) and LEVEL.get(room(other), -1) >= LEVEL.get(room(name), -1)
    ]

    assert upward == []


def test_nothing_imports_in_a_circle() -> None:
    """Inside a package there is an order too."""
    order = graphlib.TopologicalSorter({name: imports(name, path) for name, path in MODULES.items()})

    order.prepare()  # raises CycleError


def test_fetch_and_parse_meet_only_in_the_coordinator() -> None:
    """The two halves know nothing of each other, so each can be understood, tested and replaced alone."""
    both = set()
    for name, path in MODULES.items():
        rooms = {room(other) for other in imports(name, path)} | {room(name)}
        if {"fetch", "parse"} <= rooms:
            both.add(name)

    assert both <= SEE_BOTH


@pytest.mark.parametrize("name", ["errors", "records", "scrub", "option_values"])
def test_lowest_layer_needs_the_standard_library_and_structs_alone(name: str) -> None:
    """What everything imports costs nothing to import; msgspec is what values are made of."""
    imported = set()
    for node in ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported.add(node.module.partition(".")[0])

    assert imported <= {*sys.stdlib_module_names, "msgspec"}


@pytest.mark.parametrize(
    ("module", "forbidden"),
    [
        ("crawlr.parse.worker", NOT_IN_A_PARSER),
        ("crawlr", NOT_IN_A_PARSER | {"lxml", "multiprocessing", "argparse", "dataclasses"}),
        ("crawlr.cli", NOT_IN_A_PARSER | {"lxml", "multiprocessing", "ssl", "psutil"}),
    ],
)
def test_what_a_fresh_interpreter_loads(module: str, forbidden: set[str]) -> None:
    """Parser processes and the help start fast, because they load little."""
    code = f"import sys, {module}; print(*sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True, cwd=ROOT.parent
    )

    assert {name.partition(".")[0] for name in ended.stdout.split()} & forbidden == set()


def test_a_crawl_begins_without_a_parser() -> None:
    """What parses is loaded by those who do, while the main process loads what fetches."""
    code = "import sys, crawlr.run, crawlr.engines; print(*sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True, cwd=ROOT.parent
    )

    assert set(ended.stdout.split()) & {"crawlr.parse.document", "crawlr.parse.worker", "lxml"} == set()
