"""Documents and the links that a browser's tree of them holds: one table for every engine.

Paths are relative to http://h.test/d/p. A link is written `kind path`, with ` nofollow` behind it where it says so.
"""

from __future__ import annotations

TAGS = {
    "double quotes": ('<a href="b">', ["a /d/b"]),
    "single quotes": ("<a href='b'>", ["a /d/b"]),
    "no quotes": ("<a href=b>", ["a /d/b"]),
    "no quotes, slash": ("<a href=b/>", ["a /d/b/"]),
    "spaces around the equals sign": ("<a href \n=\t b>", ["a /d/b"]),
    "any case": ("<A HREF=b>", ["a /d/b"]),
    "no space between attributes": ('<a id="x"href="b">', ["a /d/b"]),
    "slash between attributes": ("<a/href=b>", ["a /d/b"]),
    "form feed": ("<a\x0chref=b>", ["a /d/b"]),
    "the first of two": ("<a href=b HREF=c>", ["a /d/b"]),
    "a quote in an unquoted value": ("<a x=y\"> <a href='b'>", ["a /d/b"]),
    "a stray quoted string": ('<a x=1 "y" href=b>', ["a /d/b"]),
    "an equals sign begins a name": ('<a ="href=b">', []),
    "> in quotes": ("<p title='>'><a title=\">\" href=b>", ["a /d/b"]),
    "a tag in quotes": ("<p title='<a href=no>'>", []),
    "< in a tag": ("<a href=b <p>x<a href=c>", ["a /d/b", "a /d/c"]),
    "an end tag with attributes": ("</a href=no x='<a href=no>'><a href=b>", ["a /d/b"]),
    "cut in the tag": ("<a href=b>x</a><a href=no", ["a /d/b"]),
    "cut in the value": ('<a href=b>x</a><a href="no', ["a /d/b"]),
    "another name": ("<abc href=no><a-b href=no><a:b href=no><_a href=no>", []),
    "no name": ("< a href=no><3 <a href=b>", ["a /d/b"]),
    "nul in a value": ("<a href=b\0>", ["a /d/b%EF%BF%BD"]),
    "nul in a name": ("<a\0 href=no><a hr\0ef=no>", []),
    "after nul": ("\0<p>\0</p>\0<a href=b>", ["a /d/b"]),
    "the Kelvin sign is no k": ("<lin\u212a rel=next href=no><a xlin\u212a:href=no>", []),
    "no href": ("<a>x</a><a name=b>", []),
    "an empty href": ("<a href>x</a><a href=''>", ["a /d/p", "a /d/p"]),
    "white space around": ('<a href=" \n/b\t ">', ["a /b"]),
    "fragments": ("<a href=#x><a href=b#x><a href=b#y>", ["a /d/p", "a /d/b", "a /d/b"]),
    "nested": ("<a href=b><a href=c></a></a>", ["a /d/b", "a /d/c"]),
    "in a table": ("<table><a href=b><tr><a href=c><td><a href=e></table>", ["a /d/b", "a /d/c", "a /d/e"]),
    "in a select": ("<select><option><a href=b></select>", ["a /d/b"]),
    "nothing around": ("<a href=b>", ["a /d/b"]),
    "behind the end": ("<body></body></html><a href=b>", ["a /d/b"]),
}

REFERENCES = {
    "named": ("<a href=/&hearts;?&hearts;>", ["a /%E2%99%A5?%E2%99%A5"]),
    "decimal and hexadecimal": ("<a href=&#98;&#X63;>", ["a /d/bc"]),
    "without a semicolon": ("<a href=?a&#98c>", ["a /d/p?abc"]),
    "legacy at the end": ("<a href=?&euml>", ["a /d/p?%C3%AB"]),
    "legacy before an equals sign": ("<a href=?a=1&copy=2>", ["a /d/p?a=1&copy=2"]),
    "legacy before a letter": ("<a href=?&ampx&notit;>", ["a /d/p?&ampx&notit;"]),
    "legacy before something else": ("<a href=?&amp-&lt.>", ["a /d/p?&-%3C."]),
    "with a semicolon before an equals sign": ("<a href=?a&amp;=2>", ["a /d/p?a&=2"]),
    "unknown": ("<a href=?&foo;&bar>", ["a /d/p?&foo;&bar"]),
    "two characters": ("<a href=?&NotEqualTilde;>", ["a /d/p?%E2%89%82%CC%B8"]),
    "windows-1252": ("<a href=?&#x80;&#150;>", ["a /d/p?%E2%82%AC%E2%80%93"]),
    "no character": ("<a href=?&#0;&#xD800;&#x110000;&#99999999999;>", ["a /d/p?" + 4 * "%EF%BF%BD"]),
    "a control character": ("<a href=?&#1;x>", ["a /d/p?%01x"]),
    "in a name": ("<a h&#114;ef=no>", []),
}

TEXT = {
    "comments": ("<!-- <a href=no> --><a href=b>", ["a /d/b"]),
    "a comment that ends at once": ("<!--><a href=b>--><!---><a href=c>-->", ["a /d/b", "a /d/c"]),
    "a comment with bang": ("<!-- <a href=no> --!><a href=b>", ["a /d/b"]),
    "comments in a comment": ("<!-- <!-- <a href=no> --><a href=b>", ["a /d/b"]),
    "an endless comment": ("<a href=b><!-- <a href=no>", ["a /d/b"]),
    "bogus comments": ("<!a <a href=no><a href=b><? <a href=no><a href=c></ <a href=no>", ["a /d/b", "a /d/c"]),
    "a processing instruction": ("<?php echo '<a href=no>' ?><a href=b>", ["a /d/b"]),
    "CDATA in HTML": ("<![CDATA[<a href=no>]]><a href=b>", ["a /d/b"]),
    "script": ("<script>'<a href=no>'</script><a href=b>", ["a /d/b"]),
    "script, odd end tag": ("<script><a href=no></scriptx></script/x><a href=b>", ["a /d/b"]),
    "script, escaped": ("<script><!-- <script><a href=no></script> <a href=no> --></script><a href=b>", ["a /d/b"]),
    "script, escaped and cut": ("<script><!--<script></script><a href=no>", []),
    "script, escaped twice": ("<script><!--<!--><script></script><a href=b>", ["a /d/b"]),
    "script, not escaped": ("<script><!--></script><a href=b>", ["a /d/b"]),
    "script, no script in it": ("<script><script></script><a href=b>", ["a /d/b"]),
    "style": ("<style><!-- <a href=no> </style><a href=b>", ["a /d/b"]),
    "title": ("<title><a href=no></title><a href=b>", ["a /d/b"]),
    "textarea": ("<textarea><a href=no></TEXTAREA ><a href=b>", ["a /d/b"]),
    "iframe": ("<iframe><a href=no></iframe><a href=b>", ["a /d/b"]),
    "noembed, noframes, xmp": (
        "<noembed><a href=no></noembed><noframes><a href=no></noframes><xmp><a href=no></xmp><a href=b>",
        ["a /d/b"],
    ),
    "noscript": ("<noscript><a href=b></noscript><head><noscript><a href=c></noscript>", ["a /d/b", "a /d/c"]),
    "plaintext": ("<a href=b><plaintext><a href=no></plaintext><a href=no>", ["a /d/b"]),
    "raw text is not closed by a slash": ("<script/><a href=no></script><a href=b><textarea/><a href=no>", ["a /d/b"]),
    "a slash in the value closes nothing": ("<script x=y/><a href=no></script><a href=b>", ["a /d/b"]),
    "an endless script": ("<a href=b><script><a href=no>", ["a /d/b"]),
    "template": ("<template><a href=no></template><a href=b>", ["a /d/b"]),
    "template in template": ("<template><template></template><a href=no></template><a href=b>", ["a /d/b"]),
    "template, odd case": ("<TemPlate><a href=no></tEMPLATE><a href=b>", ["a /d/b"]),
    "template is not closed by others": ("<p><template><a href=no></p><a href=no></template><a href=b>", ["a /d/b"]),
    "an endless template": ("<a href=b><template><svg><a href=no></svg><a href=no>", ["a /d/b"]),
    "an end tag of no template": ("</template><a href=b>", ["a /d/b"]),
    "a pre": ("<pre><a href=b></pre>", ["a /d/b"]),
}

FOREIGN = {
    "svg": ("<svg><a href=b></a><a xlink:href=c></a></svg>", ["a /d/b", "a /d/c"]),
    "xlink:href without a value": ("<svg><a xlink:href></a></svg>", ["a /d/p"]),
    "href before xlink:href": ("<svg><a xlink:href=no href=b>", ["a /d/b"]),
    "title in svg": ("<svg><title>x<a href=b></title></svg>", ["a /d/b"]),
    "closed elements": ("<svg><title/><style/><a href=b /><a href=c></svg>", ["a /d/b", "a /d/c"]),
    "svg scripts and styles": (
        "<svg><style><a href=no></style><script>'<a href=no>'</script><a href=b></svg><a href=c>",
        ["a /d/b", "a /d/c"],
    ),
    "CDATA": ("<svg><![CDATA[ > <a href=no> ]]><a href=b></svg>", ["a /d/b"]),
    "CDATA in HTML in SVG": ("<svg><desc><p><![CDATA[ > <a href=b> ]]></desc></svg>", ["a /d/b"]),
    "HTML in SVG": ("<svg><foreignObject><style><a href=no></style><a href=b></foreignObject></svg>", ["a /d/b"]),
    "left by a block": ("<svg><g><p><title><a href=no></title><a href=b>", ["a /d/b"]),
    "left by an end tag of the HTML around": ("<div><svg><g></div><textarea/><a href=no>", []),
    "not left through HTML in it": ("<div><svg><title></div><style/><a href=no>", []),
    "not left by what was closed": ("<a></a><a><a></a><svg></a><textarea/><a href=b>", ["a /d/b"]),
    "not left by other end tags": ("<svg></div></g></svg2><textarea/><a href=b>", ["a /d/b"]),
    "left by font with a colour": ("<svg><font color=x><textarea/><a href=no>", []),
    "not left by font": ("<svg><font x=y><textarea/><a href=b>", ["a /d/b"]),
    "base and form in svg": ("<svg><base href=/no/><form action=no></form></svg><a href=b>", ["a /d/b"]),
    "a template in svg": ("<svg><template><a href=b></template></svg>", ["a /d/b"]),
    "a template in HTML in svg": (
        "<svg><desc><template><a href=no></template><a href=b></desc></svg>",
        ["a /d/b"],
    ),
    "math": ("<math><mi><a href=b></a></mi><style/><a href=c></math>", ["a /d/b", "a /d/c"]),
    "math, HTML in text": ("<math><mi><style><a href=no></style><a href=b></mi></math>", ["a /d/b"]),
    "annotation-xml": (
        "<math><annotation-xml encoding='TEXT/HTML'><style><a href=no></style><a href=b></annotation-xml></math>",
        ["a /d/b"],
    ),
    "annotation-xml of something else": ("<math><annotation-xml><style/><a href=b></math>", ["a /d/b"]),
    "a closed svg": ("<svg/><textarea/><a href=no>", []),
    "image": (
        "<svg><image href=b /><image xlink:href=c /></svg><image src=e>",
        ["image /d/b", "image /d/c", "img /d/e"],
    ),
    "use and script": (
        "<svg><use href=s.svg#x /><script xlink:href=x.js /><feImage href=f></svg>",
        ["use /d/s.svg", "script /d/x.js", "image /d/f"],
    ),
}

KINDS = {
    "area": ("<map><area href=b></map><area href=c>", ["area /d/b", "area /d/c"]),
    "frames": (
        "<frameset><frame src=b><frameset><frame src=c></frameset><frame src=e>",
        ["frame /d/b", "frame /d/c", "frame /d/e"],
    ),
    "nothing else in a frameset": (
        (
            "<html><head><title>x</title></head><frameset><a href=no><frame src=b></frameset><a href=no>"
            "<noframes><a href=no></noframes>"
        ),
        ["frame /d/b"],
    ),
    "a frameset instead of an empty body": (
        "<link rel=next href=b><p><a href=no><link rel=next href=no><frameset><frame src=c>",
        ["link /d/b", "frame /d/c"],
    ),
    "a frameset behind much else": (
        "<!doctype html><!-- x --><?x><style>p</style><noscript></noscript><input type=hidden><frameset><frame src=b>",
        ["frame /d/b"],
    ),
    "no frameset behind what is seen": (
        "<p><br><frameset><a href=b></frameset></br><frameset><a href=c>",
        ["a /d/b", "a /d/c"],
    ),
    "no frameset behind a body": ("<p>x<frameset><a href=b>", ["a /d/b"]),
    "no frameset behind text": ("x<frameset><a href=b>", ["a /d/b"]),
    "a frame anywhere": ("<p><frame src=b>", ["frame /d/b"]),
    "iframe": ("<iframe src=b></iframe><iframe src=''></iframe><iframe>", ["iframe /d/b"]),
    "link": (
        (
            "<link rel=canonical href=1><link rel='x NEXT' href=2><link rel=prev href=3><link rel=alternate href=4>"
            "<link rel=previous href=5>"
        ),
        ["link /d/1", "link /d/2", "link /d/3", "link /d/4", "link /d/5"],
    ),
    "other links": (
        (
            "<link rel=stylesheet href=1><link rel='alternate stylesheet' href=2><link rel=icon href=3>"
            "<link rel=help href=4><link href=no><link rel='' href=no><link rel=preconnect href=no><link rel=next>"
            "<link rel='dns-prefetch' href=no>"
        ),
        ["stylesheet /d/1", "stylesheet /d/2", "resource /d/3", "resource /d/4"],
    ),
    "preloaded pictures": ("<link rel=preload as=image imagesrcset='1 1x, 2 2x'>", ["img /d/1", "img /d/2"]),
    "pictures": (
        "<img src=1 srcset='2 2x, 3 3x'><picture><source srcset=4><img src=5></picture><img src='' lowsrc=6>",
        ["img /d/1", "img /d/2", "img /d/3", "img /d/4", "img /d/5", "img /d/6"],
    ),
    "media": (
        "<audio src=1></audio><video src=2 poster=3><source src=4><track src=5></video>",
        ["audio /d/1", "video /d/2", "img /d/3", "source /d/4", "track /d/5"],
    ),
    "embedded": ("<object data=1></object><embed src=2>", ["object /d/1", "embed /d/2"]),
    "script": ("<script src=1></script><script>src='no'</script>", ["script /d/1"]),
    "input": ("<input type=IMAGE src=1><input src=no><input type=text src=no>", ["input /d/1"]),
    "forms by GET": (
        (
            "<form action=1></form><form method=GET action=2></form><form method=odd action=3></form>"
            "<form method=POST action=no></form><form method=dialog action=no></form><form></form>"
            "<form action=''></form>"
        ),
        ["form /d/1", "form /d/2", "form /d/3"],
    ),
    "a form in a form": ("<form action=1><form action=no></form><form action=2>", ["form /d/1", "form /d/2"]),
    "cite": (
        "<blockquote cite=1></blockquote><q cite=2></q><ins cite=3></ins><del cite=4></del>",
        ["cite /d/1", "cite /d/2", "cite /d/3", "cite /d/4"],
    ),
    "background": (
        "<body background=1><table background=2><tr><td background=3>",
        ["background /d/1", "background /d/2", "background /d/3"],
    ),
    "other schemes": (
        (
            "<a href=mailto:x@y><a href=javascript:x()><a href=tel:1><a href=data:,x><a href=ftp://h/><a href=file:///x>"
            "<a href=JavaScript:x><a href=' \tjava\nscript:x'><img src=data:image/gif;base64,AA==><a href=b>"
        ),
        ["a /d/b"],
    ),
    "what does not parse": ("<a href=http://[::1/x><a href=http://a:b/><a href='//exa mple/'><a href=b>", ["a /d/b"]),
    "nofollow": (
        (
            "<a rel=nofollow href=1><a rel='noopener NoFollow' href=2><a rel=ugc href=3>"
            "<a rel='sponsored no follow' href=4><area rel=nofollow href=5><a rel href=6>"
        ),
        ["a /d/1 nofollow", "a /d/2 nofollow", "a /d/3", "a /d/4", "area /d/5 nofollow", "a /d/6"],
    ),
    "refresh": ("<META HTTP-EQUIV=ReFresh content='0; URL=b'>", ["refresh /d/b"]),
    "the first refresh": (
        (
            "<meta http-equiv=refresh content=x><meta http-equiv=refresh content='1;b'>"
            "<meta http-equiv=refresh content='0;no'>"
        ),
        ["refresh /d/b"],
    ),
    "a reload comes first": ("<meta http-equiv=refresh content=5><meta http-equiv=refresh content='0;no'>", []),
    "refresh in noscript": ("<noscript><meta http-equiv=refresh content='0;b'></noscript>", ["refresh /d/b"]),
    "no refresh": ("<meta name=refresh content='0;no'><!-- <meta http-equiv=refresh content='0;no'> -->", []),
    "no links": (
        (
            "<a ping=no><applet codebase=no code=no></applet><param value=no><img longdesc=no usemap=#no>"
            "<iframe srcdoc='<a href=no>'></iframe><button formaction=no></button><meta property=og:url content=no>"
            "<div href=no src=no data-href=no style='background:url(no)'></div>http://h.test/no"
        ),
        [],
    ),
}

BASES = {
    "relative": ("<base href=sub/><a href=b>", "/d/sub/", ["a /d/sub/b"]),
    "of the root": ("<base href=/x/y><a href=b>", "/x/y", ["a /x/b"]),
    "the first with an href": ("<base target=x><base href=/1/><base href=/2/><a href=b>", "/1/", ["a /1/b"]),
    "late": ("<a href=b><base href=/x/>", "/x/", ["a /x/b"]),
    "in a body": ("<body><p><a href=b><base href=/x/>", "/x/", ["a /x/b"]),
    "empty": ("<base href=''><a href=b>", "/d/p", ["a /d/b"]),
    "without a value": ("<base href><a href=b>", "/d/p", ["a /d/b"]),
    "of another scheme": ("<base href=javascript:x><base href=/no/><a href=b>", "/d/p", ["a /d/b"]),
    "data": ("<base href=data:/,x><a href=b>", "/d/p", ["a /d/b"]),
    "that does not parse": ("<base href=http://a:b/><a href=b>", "/d/p", ["a /d/b"]),
    "with a query and a fragment": ("<base href='?q#f'><a href=?r><a href=#g>", "/d/p?q", ["a /d/p?r", "a /d/p?q"]),
    "in a comment": ("<!-- <base href=/no/> --><a href=b>", "/d/p", ["a /d/b"]),
    "in a template": ("<template><base href=/no/></template><a href=b>", "/d/p", ["a /d/b"]),
    "of all kinds": (
        "<base href=/x/><img src=1><meta http-equiv=refresh content='0;2'><link rel=next href=3>",
        "/x/",
        ["img /x/1", "refresh /x/2", "link /x/3"],
    ),
}

TITLES = {
    "plain": ("<title>x</title>", "x"),
    "white space": ("<title>\n  a\t b\r\n\x0cc </title>", "a b c"),
    "other spaces stay": ("<title>a\u00a0 \u2003b</title>", "a\u00a0 \u2003b"),
    "references": ("<title>a &amp; b &notit; &#x41 &lt;b></title>", "a & b \u00acit; A <b>"),
    "tags are text": ("<title><b>x</b><!-- y --></title>", "<b>x</b><!-- y -->"),
    "the first": ("<title>a</title><title>b</title>", "a"),
    "not SVG's": ("<svg><title>no</title></svg><title>x</title>", "x"),
    "in a body": ("<p><title>x</title>", "x"),
    "not in a comment, a script, a template": (
        (
            "<!-- <title>no</title> --><script>'<title>no</title>'</script><template><title>no</title></template>"
            "<title>x</title>"
        ),
        "x",
    ),
    "empty": ("<title></title><title>no</title>", ""),
    "none": ("<p>x", None),
    "never closed": ("<title>x <p>y", "x <p>y"),
}
