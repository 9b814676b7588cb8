"""The rules of sitemaps.org's protocol 0.9 that a file must keep, as an XML schema and in words: no network needed."""

from __future__ import annotations

import gzip
from pathlib import Path

from lxml import etree

NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
_RULES = """
<xsd:schema xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns="{namespace}" targetNamespace="{namespace}"
            elementFormDefault="qualified">
  <xsd:simpleType name="address"><xsd:restriction base="xsd:anyURI">
    <xsd:minLength value="12"/><xsd:maxLength value="2048"/></xsd:restriction></xsd:simpleType>
  <xsd:simpleType name="moment"><xsd:union>
    <xsd:simpleType><xsd:restriction base="xsd:date"/></xsd:simpleType>
    <xsd:simpleType><xsd:restriction base="xsd:dateTime"/></xsd:simpleType></xsd:union></xsd:simpleType>
  <xsd:complexType name="entry"><xsd:all>
    <xsd:element name="loc" type="address"/>
    <xsd:element name="lastmod" type="moment" minOccurs="0"/></xsd:all></xsd:complexType>
  <xsd:element name="urlset"><xsd:complexType><xsd:sequence>
    <xsd:element name="url" type="entry" maxOccurs="unbounded"/></xsd:sequence></xsd:complexType></xsd:element>
  <xsd:element name="sitemapindex"><xsd:complexType><xsd:sequence>
    <xsd:element name="sitemap" type="entry" maxOccurs="unbounded"/></xsd:sequence></xsd:complexType></xsd:element>
</xsd:schema>
""".replace("{namespace}", NAMESPACE)
_SCHEMA = etree.XMLSchema(etree.fromstring(_RULES))


def read_sitemap(path: Path) -> tuple[str, list[tuple[str, str | None]]]:
    """(urlset or sitemapindex, (loc, lastmod) of each entry) of a file that keeps the rules; fails for another."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    assert len(content) <= 52_428_800, "over 50 MiB"
    assert content.startswith(b'<?xml version="1.0" encoding="UTF-8"?>')
    content.decode("utf-8")
    root = etree.fromstring(content, etree.XMLParser(huge_tree=True, resolve_entities=False))
    _SCHEMA.assertValid(root)
    assert len(root) <= 50_000, "over 50,000 entries"
    entries = [(each.findtext(f"{{{NAMESPACE}}}loc"), each.findtext(f"{{{NAMESPACE}}}lastmod")) for each in root]
    return etree.QName(root).localname, [(str(loc), lastmod) for loc, lastmod in entries]
