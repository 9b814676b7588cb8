"""Exchanges that go wrong below the document: in time, framing, connection, status line, headers or Location."""

from __future__ import annotations

import threading
import time
from collections import Counter
from email.utils import formatdate

from tests.servers.behaviour import BEHAVIOURS, HTML, LINK_BEFORE, OK, argument, behaviour, document, to_location
from tests.servers.wire import Request, Wire

# ---------------------------------------------------------------- time


@behaviour
def drip_body(request: Request, wire: Wire) -> bool:
    body = LINK_BEFORE.encode() + b"x" * 100_000
    wire.send(OK, f"Content-Length: {len(body)}\r\n\r\n", body[: len(LINK_BEFORE)])
    for number in range(len(LINK_BEFORE), len(body)):
        wire.send(body[number : number + 1])
        if not wire.pause(0.1):
            break
    return False


@behaviour
def drip_headers(request: Request, wire: Wire) -> bool:
    for letter in OK + "X-Slow: " + "y" * 100_000:
        wire.send(letter)
        if not wire.pause(0.1):
            break
    return False


@behaviour
def hang(request: Request, wire: Wire) -> bool:
    wire.pause(60)
    return False


@behaviour
def stall(request: Request, wire: Wire) -> bool:
    """Headers and the beginning of the body, then nothing."""
    wire.send(OK, "Content-Length: 5000\r\n\r\n", LINK_BEFORE)
    wire.pause(60)
    return False


@behaviour
def slow(request: Request, wire: Wire) -> bool:
    """A good answer after as many milliseconds."""
    wire.pause(argument(request) / 1000)
    wire.answer(document(title=request.target))
    return True


@behaviour
def inf_1xx(request: Request, wire: Wire) -> bool:
    while not wire.server.closing.is_set():
        wire.send("HTTP/1.1 100 Continue\r\n\r\n" * 10)
        if not wire.pause(0.01):
            break
    return False


@behaviour
def inf_trailers(request: Request, wire: Wire) -> bool:
    wire.send(OK, "Transfer-Encoding: chunked\r\n\r\n", "5\r\nhello\r\n0\r\n")
    while not wire.server.closing.is_set():
        wire.send("X-Trailer: and one more\r\n" * 10)
        if not wire.pause(0.01):
            break
    return False


# ---------------------------------------------------------------- interim answers, lengths, connections


@behaviour
def early_hints(request: Request, wire: Wire) -> bool:
    wire.send("HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n")
    wire.pause(0.15)
    wire.answer(document("/page/hinted", title=request.target))
    return True


@behaviour
def huge_chunk_line(request: Request, wire: Wire) -> bool:
    wire.send(OK, "Transfer-Encoding: chunked\r\n\r\n", "1;ext=")
    for _ in range(12):
        wire.send(b"a" * (1 << 20))
    wire.pause(30)
    return False


@behaviour
def bad_chunk(request: Request, wire: Wire) -> bool:
    wire.send(OK, "Transfer-Encoding: chunked\r\n\r\n", "zz\r\nhello\r\n0\r\n\r\n")
    return False


@behaviour
def headers_101(request: Request, wire: Wire) -> bool:
    wire.send(OK, "".join(f"X-{number}: y\r\n" for number in range(101)), "Content-Length: 2\r\n\r\nhi")
    return False


@behaviour
def header_70k(request: Request, wire: Wire) -> bool:
    wire.send(OK, "X-Long: " + "y" * 70_000 + "\r\n", "Content-Length: 2\r\n\r\nhi")
    return False


@behaviour
def truncated(request: Request, wire: Wire) -> bool:
    wire.send(OK, "Content-Length: 1000\r\n\r\n", LINK_BEFORE)
    return False


@behaviour
def truncated_chunked(request: Request, wire: Wire) -> bool:
    wire.send(OK, "Transfer-Encoding: chunked\r\n\r\n", f"{len(LINK_BEFORE):x}\r\n{LINK_BEFORE}\r\n40\r\nand")
    return False


@behaviour
def cl_te(request: Request, wire: Wire) -> bool:
    body = document("/page/cl_te", title=request.target)
    wire.send(OK, "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", f"{len(body):x}\r\n{body}\r\n0\r\n\r\n")
    return True


@behaviour
def two_cl(request: Request, wire: Wire) -> bool:
    wire.send(OK, "Content-Length: 2\r\nContent-Length: 5\r\n\r\nhello")
    return False


@behaviour
def neg_cl(request: Request, wire: Wire) -> bool:
    wire.send(OK, "Content-Length: -5\r\n\r\nhello")
    return False


@behaviour
def huge_cl(request: Request, wire: Wire) -> bool:
    wire.send(OK, f"Content-Length: {10**15}\r\n\r\n", LINK_BEFORE)
    return False


@behaviour
def body_204(request: Request, wire: Wire) -> bool:
    wire.send("HTTP/1.1 204 No Content\r\n\r\n", document("/page/never", title="body of a 204"))
    wire.pause(0.05)
    return True


@behaviour
def extra_after_end(request: Request, wire: Wire) -> bool:
    """A complete answer, and right behind it another one that nobody asked for."""
    unasked = document("/page/never", title="an answer to no question")
    wire.send(OK, "Content-Length: 2\r\n\r\nhi", OK, f"Content-Length: {len(unasked)}\r\n\r\n", unasked)
    return True


@behaviour
def close_on_second(request: Request, wire: Wire) -> bool:
    """A keep-alive connection that is closed without a byte when its second request comes."""
    if request.nth > 1:
        return False
    wire.answer(document(title=request.target))
    return True


@behaviour
def rst(request: Request, wire: Wire) -> bool:
    wire.reset()
    return False


@behaviour
def empty(request: Request, wire: Wire) -> bool:
    return False


# ---------------------------------------------------------------- status lines and headers


@behaviour
def http09(request: Request, wire: Wire) -> bool:
    wire.send("<title>no status line</title>hello\r\n\r\n")
    return False


@behaviour
def status_999(request: Request, wire: Wire) -> bool:
    wire.send("HTTP/1.1 999 Request denied\r\n", HTML, "Content-Length: 2\r\n\r\nno")
    return True


@behaviour
def status_abc(request: Request, wire: Wire) -> bool:
    wire.send("HTTP/1.1 abc OK\r\n", HTML, "Content-Length: 2\r\n\r\nno")
    return False


@behaviour
def esc_reason(request: Request, wire: Wire) -> bool:
    wire.send("HTTP/1.1 404 \x1b[31mred\x9b1m\x07\r\n", HTML, "Content-Length: 2\r\n\r\nno")
    return True


@behaviour
def lf_only(request: Request, wire: Wire) -> bool:
    body = document("/page/lf_only", title=request.target)
    wire.send(f"HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: {len(body)}\n\n{body}")
    return True


@behaviour
def nul_header(request: Request, wire: Wire) -> bool:
    wire.send(OK, "X-Nul: a\0b\r\n", "Content-Length: 2\r\n\r\nhi")
    return True


@behaviour
def setcookie(request: Request, wire: Wire) -> bool:
    wire.answer(
        document("/echo_headers"), headers=(("Set-Cookie", "a=1; Path=/"), ("Set-Cookie", "b=2; Domain=127.0.0.1"))
    )
    return True


@behaviour
def echo_headers(request: Request, wire: Wire) -> bool:
    names = " ".join(sorted(name.lower() for name, _ in request.headers))
    wire.answer(document(title=names))
    return True


_asked: Counter[str] = Counter()
_asked_lock = threading.Lock()


@behaviour
def retry_after(request: Request, wire: Wire) -> bool:
    """503 with the Retry-After that the path's end names, the first time that its target is asked for; then good."""
    with _asked_lock:
        _asked[request.target] += 1
        is_first = _asked[request.target] == 1
    if not is_first:
        wire.answer(document(title=request.target))
        return True
    values = {"huge": "99999999", "negative": "-1", "junk": "soon", "past": "Wed, 21 Oct 2015 07:28:00 GMT"}
    key = request.path.rpartition("/")[2]
    value = formatdate(time.time() + 2, usegmt=True) if key == "date" else values.get(key, key)
    wire.answer("later", status=503, headers=(("Retry-After", value),))
    return True


# ---------------------------------------------------------------- redirects

for _name, _value in {
    "loc_file": "file:///etc/passwd",
    "loc_ftp": "ftp://127.0.0.1/",
    "loc_data": "data:text/html,<a href=/page/never>x</a>",
    "loc_javascript": "javascript:alert(1)",
    "loc_bad": "http://[::1/x",
    "loc_empty": "",
    "loc_badport": "http://127.0.0.1:99999/",
    "loc_controls": "http://\x1b[31m[bad/",
}.items():
    BEHAVIOURS[_name] = to_location(_value)


@behaviour
def loc_missing(request: Request, wire: Wire) -> bool:
    wire.answer("moved, but where to?", status=301)
    return True


@behaviour
def loc_metadata(request: Request, wire: Wire) -> bool:
    return to_location("http://169.254.169.254/latest/meta-data/")(request, wire)


@behaviour
def loop(request: Request, wire: Wire) -> bool:
    """/loop/N/K leads to /loop/N/(K+1), and the last of the N back to the first."""
    size = argument(request, 1)
    place = request.path.rpartition("/")[2]
    number = int(place) if request.path.count("/") > 2 and place.isdigit() else 0
    return to_location(f"/loop/{size}/{(number + 1) % size}")(request, wire)


@behaviour
def chain(request: Request, wire: Wire) -> bool:
    """/chain/N/NAME leads over N redirects to the good page /page/NAME."""
    left, name = argument(request), request.path.rpartition("/")[2]
    return to_location(f"/chain/{left - 1}/{name}" if left > 1 else f"/page/{name}")(request, wire)


@behaviour
def refresh_self(request: Request, wire: Wire) -> bool:
    wire.answer(f'<meta http-equiv="refresh" content="0; url=/refresh_self"><title>{request.target}</title>')
    return True
