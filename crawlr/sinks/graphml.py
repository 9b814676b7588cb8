"""GraphML for Gephi, yEd, networkx: a directed graph of every listed URL, streamed.

From: source. To: a text file. Main thread. Node ids are those of sitemap.json
(`networkx.read_graphml(path, node_type=int)`); what is not known is left out.
"""

from __future__ import annotations

from typing import TextIO

from crawlr.sinks.edge_columns import kinds_of_links
from crawlr.sinks.source import Source
from crawlr.sinks.texts import xml

__all__ = ["write"]

_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
"""
# (id, of what, name, type): the ids are short, since each value carries one
_KEYS = (
    ("u", "node", "url", "string"),
    ("k", "node", "kind", "string"),
    ("o", "node", "outcome", "string"),
    ("d", "node", "depth", "int"),
    ("s", "node", "status", "int"),
    ("m", "node", "millis", "int"),
    ("i", "node", "in_degree", "int"),
    ("x", "node", "out_degree", "int"),
    ("r", "node", "pagerank", "double"),
    ("l", "edge", "link", "string"),
    ("n", "edge", "nofollow", "boolean"),
)


def write(out: TextIO, source: Source) -> None:
    """Write the graph."""
    out.write(_HEAD)
    out.writelines(
        f'<key id="{key}" for="{owner}" attr.name="{name}" attr.type="{kind}"/>\n' for key, owner, name, kind in _KEYS
    )
    out.write('<graph edgedefault="directed">\n')
    into, outgoing, ranks = source.degrees.into, source.degrees.out, source.ranks
    for node in source.nodes():
        number = node.id
        known = (
            ("u", xml(node.url)),
            ("k", node.kind),
            ("o", node.outcome),
            ("d", node.depth),
            ("s", node.status),
            ("m", node.millis),
            ("i", into[number]),
            ("x", outgoing[number]),
            ("r", f"{ranks[number]:.6g}"),
        )
        cells = "".join([f'<data key="{key}">{value}</data>' for key, value in known if value is not None])
        out.write(f'<node id="{number}">{cells}</node>\n')
    ends = [
        f'<data key="l">{name}</data><data key="n">{"true" if nofollow else "false"}</data></edge>\n'
        for name, nofollow in kinds_of_links()
    ]
    for links in source.view.links():
        begin = f'<edge source="{links.source}" target="'
        if links.kinds is None:
            out.writelines([f'{begin}{target}"/>\n' for target in links.targets])
        else:
            out.writelines(
                [f'{begin}{target}">{ends[kind]}' for target, kind in zip(links.targets, links.kinds, strict=True)]
            )
    out.write("</graph>\n</graphml>\n")
