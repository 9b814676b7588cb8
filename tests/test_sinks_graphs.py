"""GraphML, GEXF and DOT, as networkx loads them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from crawlr.export import export
from crawlr.formats import outputs_of
from crawlr.outputs import write_all
from crawlr.ranking import count_degrees, pagerank
from tests.made_crawl import HEAD, LINKS, SITE, made_view, page

LISTED = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 13, 14]


def load(path: Path) -> Any:
    """The graph with whole ids, values as their types."""
    match path.name.removesuffix(".gz").rpartition(".")[2]:
        case "graphml":
            return nx.read_graphml(path, node_type=int)
        case "gexf":
            return nx.read_gexf(path, node_type=int)
        case _:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # pydot's own use of pyparsing
                return _typed(nx.nx_pydot.read_dot(path))


def _typed(read: Any) -> Any:
    graph = nx.DiGraph()
    for node, cells in read.nodes(data=True):
        graph.add_node(int(node), **{name: _value(cell) for name, cell in cells.items()})
    for source, target, cells in read.edges(data=True):
        graph.add_edge(int(source), int(target), **{name: _value(cell) for name, cell in cells.items()})
    return graph


def _value(cell: str) -> Any:
    text = cell[1:-1].replace('\\"', '"').replace("\\\\", "\\") if cell.startswith('"') else cell
    if text in ("true", "false"):
        return text == "true"
    try:
        return float(text) if "." in text or "e-" in text else int(text)
    except ValueError:
        return text


FORMATS = ["graphml", "gexf", "dot", "graphml.gz", "gexf.gz"]


@pytest.fixture(params=FORMATS)
def ending(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def graph_of(folder: Path, ending: str, **options: Any) -> Any:
    path = folder / f"site.{ending}"
    with made_view(**options) as view:
        write_all(view, outputs_of([str(path)]), head=HEAD)
    return load(path)


def test_nodes_carry_what_is_known_of_each_url(tmp_path: Path, ending: str) -> None:
    """Every listed URL is a node with url, status, depth, degrees, rank and millis; edges have kind and nofollow."""
    graph = graph_of(tmp_path, ending)
    with made_view() as view:
        ranks = pagerank(view, nodes=LISTED, degrees=count_degrees(view))

    assert graph.is_directed()
    assert not graph.is_multigraph()
    assert sorted(graph) == LISTED
    expected = {(s, t) for s, links in LINKS.items() for t, _, _ in links if t != 9}
    assert set(graph.edges) == expected
    home = dict(graph.nodes[0])
    home.pop("label", None)
    assert home.pop("pagerank") == pytest.approx(ranks[0], rel=1e-4)
    assert home == {
        "url": f"{SITE}/",
        "kind": "page",
        "outcome": "ok",
        "depth": 0,
        "status": 200,
        "millis": 5,
        "in_degree": 2,
        "out_degree": 9,
    }
    for number in LISTED:
        assert graph.nodes[number]["in_degree"] == graph.in_degree(number)
        assert graph.nodes[number]["out_degree"] == graph.out_degree(number)
    assert sum(cells["pagerank"] for _, cells in graph.nodes(data=True)) == pytest.approx(1, abs=1e-4)
    assert (graph.nodes[4]["kind"], graph.nodes[4]["outcome"]) == ("skipped", "robots_disallowed")
    assert (graph.nodes[5]["kind"], graph.nodes[5]["outcome"]) == ("unvisited", "depth_limit")
    assert "status" not in graph.nodes[10]
    edge = {name: cell for name, cell in graph.edges[0, 3].items() if name != "id"}
    assert edge == {"link": "a", "nofollow": True}
    assert graph.edges[0, 10]["link"] == "refresh"


def test_targets_out_of_scope_are_nodes_with_all_edges(tmp_path: Path, ending: str) -> None:
    """--edges all adds the external URLs, which have no depth."""
    graph = graph_of(tmp_path, ending, all_edges=True)

    assert (0, 9) in graph.edges
    assert graph.nodes[9]["url"] == "https://other.test/"
    assert graph.nodes[9]["kind"] == "external"
    assert "depth" not in graph.nodes[9]


HOSTILE = f"""{SITE}/q?a="<&>'\\N\\" ]]>--%22;{{}}[]"""


def test_a_hostile_url_stays_a_url(tmp_path: Path, ending: str) -> None:
    """Quotes, backslashes, angle brackets and braces come back as they were, in every format."""
    graph = graph_of(tmp_path, ending, extra=[(HOSTILE, page(15))])

    assert graph.nodes[15]["url"] == HOSTILE


@pytest.mark.parametrize("name", ["graphml", "gexf"])
def test_characters_that_xml_has_not_are_replaced(tmp_path: Path, name: str) -> None:
    """A control character or U+FFFE in a URL does not make the file unreadable."""
    graph = graph_of(tmp_path, name, extra=[(f"{SITE}/\x00\x1b\ufffe", page(15))])

    assert graph.nodes[15]["url"] == f"{SITE}/\ufffd\ufffd\ufffd"


def test_edges_without_kinds_are_plain(tmp_path: Path, ending: str) -> None:
    """A crawl read from sitemap.json knows no kinds of links."""
    with made_view() as view:
        write_all(view, outputs_of([str(tmp_path / "sitemap.json")]), head=HEAD)
    path = tmp_path / f"again.{ending}"
    export(str(tmp_path / "sitemap.json"), outputs_of([str(path)]))
    graph = load(path)

    assert graph.number_of_edges() == 15
    assert {name for _, _, cells in graph.edges(data=True) for name in cells} <= {"id"}
