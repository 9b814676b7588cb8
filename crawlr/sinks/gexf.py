"""GEXF 1.2 for Gephi and networkx: a directed graph of every listed URL, streamed.

From: source. To: a text file. Main thread. Node ids are those of sitemap.json; what is not known is left out.
"""

from __future__ import annotations

from typing import TextIO

from crawlr.sinks.edge_columns import kinds_of_links
from crawlr.sinks.source import Source
from crawlr.sinks.texts import xml

__all__ = ["write"]

_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2">
<graph mode="static" defaultedgetype="directed">
"""
# the place in the tuple is the id of the attribute
_NODE = (
    ("url", "string"),
    ("kind", "string"),
    ("outcome", "string"),
    ("depth", "integer"),
    ("status", "integer"),
    ("millis", "integer"),
    ("in_degree", "integer"),
    ("out_degree", "integer"),
    ("pagerank", "double"),
)
_EDGE = (("link", "string"), ("nofollow", "boolean"))


def write(out: TextIO, source: Source) -> None:
    """Write the graph."""
    out.write(_HEAD)
    for owner, attributes in (("node", _NODE), ("edge", _EDGE)):
        out.write(f'<attributes class="{owner}">\n')
        out.writelines(f'<attribute id="{n}" title="{t}" type="{k}"/>\n' for n, (t, k) in enumerate(attributes))
        out.write("</attributes>\n")
    out.write("<nodes>\n")
    into, outgoing, ranks = source.degrees.into, source.degrees.out, source.ranks
    for node in source.nodes():
        url, number = xml(node.url), node.id
        rank = f"{ranks[number]:.6g}"
        known = (
            url, node.kind, node.outcome, node.depth, node.status, node.millis, into[number], outgoing[number], rank,
        )  # fmt: skip
        cells = "".join(
            [f'<attvalue for="{place}" value="{value}"/>' for place, value in enumerate(known) if value is not None]
        )
        out.write(f'<node id="{number}" label="{url}"><attvalues>{cells}</attvalues></node>\n')
    out.write("</nodes>\n<edges>\n")
    ends = [
        f'<attvalues><attvalue for="0" value="{name}"/><attvalue for="1" value="{_flag(nofollow)}"/></attvalues></edge>'
        for name, nofollow in kinds_of_links()
    ]
    count = 0
    for links in source.view.links():
        middle = f'" source="{links.source}" target="'
        if links.kinds is None:
            out.writelines([f'<edge id="{n}{middle}{t}"/>\n' for n, t in enumerate(links.targets, count)])
        else:
            pairs = zip(links.targets, links.kinds, strict=True)
            out.writelines([f'<edge id="{n}{middle}{t}">{ends[kind]}\n' for n, (t, kind) in enumerate(pairs, count)])
        count += len(links.targets)
    out.write("</edges>\n</graph>\n</gexf>\n")


def _flag(value: bool) -> str:
    return "true" if value else "false"
