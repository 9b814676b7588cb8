"""Proxies on loopback: HTTP (forwarding and CONNECT), SOCKS 4, 4a and 5. They note what they were asked for.

Every name leads to 127.0.0.1. One thread a connection, and one more for the way back.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import ssl
import threading


class Proxy:
    """`asked` gets a line for each connection: the request line and Proxy-Authorization, or kind, host and user."""

    def __init__(self, *, tls: ssl.SSLContext | None = None, answer: bytes | None = None) -> None:
        self.asked: list[str] = []
        self._tls = tls
        self._answer = answer
        """Sent to every client in the place of all that a proxy does."""
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self._run(self._accept)

    def close(self) -> None:
        for sock in [self._listener, *self._sockets]:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)
            if sock is self._listener:
                sock.close()
        for thread in self._threads:
            thread.join(5)
        for sock in self._sockets:
            sock.close()

    def _run(self, target: object, *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self._sockets.append(sock)
            self._run(self._serve, sock)

    def _serve(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError, IndexError):
            if self._tls is not None:
                sock = self._tls.wrap_socket(sock, server_side=True)
                self._sockets.append(sock)
            if self._answer is not None:
                sock.recv(65536)
                sock.sendall(self._answer)
                sock.close()
                return
            first = sock.recv(1)
            if first == b"\x05":
                self._socks5(sock)
            elif first == b"\x04":
                self._socks4(sock)
            else:
                self._http(sock, first)

    def _http(self, sock: socket.socket, head: bytes) -> None:
        while b"\r\n\r\n" not in head:
            head += sock.recv(1)
        lines = head.decode("latin-1").split("\r\n")
        secret = [line for line in lines if line.lower().startswith("proxy-authorization")]
        self.asked.append(" | ".join([lines[0], *secret]))
        method, target, _ = lines[0].split(" ")
        if method == "CONNECT":
            sock.sendall(b"HTTP/1.1 200 Connection established\r\nContent-Length: 9\r\n\r\n")  # a length means nothing
            self._join(sock, int(target.rpartition(":")[2]))
            return
        authority = target.split("/")[2]
        path = target.split(authority, 1)[1]
        with socket.create_connection(("127.0.0.1", int(authority.rpartition(":")[2]))) as origin:
            origin.sendall(head.replace(target.encode("latin-1"), path.encode("latin-1"), 1))
            self._copy(origin, sock, until_end=False)
        sock.close()

    def _socks5(self, sock: socket.socket) -> None:
        methods = sock.recv(sock.recv(1)[0])
        user = "-"
        if 2 in methods:
            sock.sendall(b"\x05\x02")
            sock.recv(1)
            user = sock.recv(sock.recv(1)[0]).decode() + ":" + sock.recv(sock.recv(1)[0]).decode()
            sock.sendall(b"\x01\x00" if user == "user:pass" else b"\x01\x01")
        else:
            sock.sendall(b"\x05\x00")
        kind = sock.recv(4)[3]
        if kind == 3:
            host = sock.recv(sock.recv(1)[0]).decode()
        else:
            host = str(ipaddress.ip_address(sock.recv(4 if kind == 1 else 16)))
        port = int.from_bytes(sock.recv(2), "big")
        self.asked.append(f"socks5 {host} {user}")
        if host == "refused.test":
            sock.sendall(b"\x05\x05\x00\x01" + bytes(6))
            sock.close()
            return
        sock.sendall(b"\x05\x00\x00\x03\x04name\x00\x00")
        self._join(sock, port)

    def _socks4(self, sock: socket.socket) -> None:
        _, high, low, *packed = sock.recv(7)
        host = str(ipaddress.ip_address(bytes(packed)))
        user = self._until_nul(sock)
        if host.startswith("0.0.0."):
            host = self._until_nul(sock)
        self.asked.append(f"socks4 {host} {user or '-'}")
        sock.sendall(b"\x00\x5a" + bytes(6))
        self._join(sock, high * 256 + low)

    @staticmethod
    def _until_nul(sock: socket.socket) -> str:
        text = b""
        while not text.endswith(b"\0"):
            text += sock.recv(1)
        return text[:-1].decode()

    def _join(self, sock: socket.socket, port: int) -> None:
        origin = socket.create_connection(("127.0.0.1", port))
        self._sockets.append(origin)
        self._run(self._copy, sock, origin)
        self._copy(origin, sock)

    @staticmethod
    def _copy(source: socket.socket, target: socket.socket, *, until_end: bool = True) -> None:
        with contextlib.suppress(OSError):
            source.settimeout(None if until_end else 0.3)
            while data := source.recv(65536):
                target.sendall(data)
        if until_end:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(target, socket.SHUT_WR)
