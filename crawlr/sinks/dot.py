"""DOT for Graphviz: a directed graph of every listed URL, streamed.

From: source. To: a text file. Main thread. Node ids are those of sitemap.json; what is not known is left out.
"""

from __future__ import annotations

from typing import TextIO

from crawlr.sinks.edge_columns import kinds_of_links
from crawlr.sinks.source import Source
from crawlr.sinks.texts import storable

__all__ = ["write"]


def write(out: TextIO, source: Source) -> None:
    """Write the graph."""
    out.write("digraph crawl {\n")
    into, outgoing, ranks = source.degrees.into, source.degrees.out, source.ranks
    for node in source.nodes():
        number = node.id
        url = _quoted(node.url)
        known = (
            ("label", url),
            ("url", url),
            ("kind", node.kind),
            ("outcome", node.outcome),
            ("depth", node.depth),
            ("status", node.status),
            ("millis", node.millis),
            ("in_degree", into[number]),
            ("out_degree", outgoing[number]),
            ("pagerank", f'"{ranks[number]:.6g}"'),
        )
        cells = ", ".join([f"{name}={value}" for name, value in known if value is not None])
        out.write(f"{number} [{cells}];\n")
    ends = [
        f" [link={_quoted(name)}, nofollow={'true' if nofollow else 'false'}];\n" for name, nofollow in kinds_of_links()
    ]
    for links in source.view.links():
        begin = f"{links.source} -> "
        if links.kinds is None:
            out.writelines([f"{begin}{target};\n" for target in links.targets])
        else:
            out.writelines(
                [f"{begin}{target}{ends[kind]}" for target, kind in zip(links.targets, links.kinds, strict=True)]
            )
    out.write("}\n")


def _quoted(text: str) -> str:
    r"""A quoted string of DOT. A backslash is doubled, so that none begins an escape such as \N in a label."""
    return '"' + storable(text).replace("\\", "\\\\").replace('"', '\\"') + '"'
