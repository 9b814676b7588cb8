"""A fork server of the pool's own, and the multiprocessing context whose processes are forked by it. Linux.

From: keeper (a parse process is wanted). To: a child of the fork server that runs what the executor asks for. The
server is a process with one thread: it holds the parser's modules already imported, so that a parse process is there in
milliseconds; `ForkServer` and the context are used in the keeper's thread.

Why not multiprocessing's own fork server: there is one for the whole program, and crawlr may be a guest in it. This one
- leaves the program's start method, its fork server and that server's list of modules alone;
- never imports the program's `__main__`: no main guard is needed, `python -c` and a script on stdin work;
- takes its requests from a socket pair: nothing listens, there is no name that another user or a crash could leave;
- never sees Ctrl-C, not even while the interpreter starts, and does not have the working folder on its import path;
- takes its children along when its owner dies, and leaves them alone when it dies itself.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import io
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from multiprocessing import connection, context, popen_fork, spawn, util
from multiprocessing.process import BaseProcess
from typing import Any, ClassVar, NoReturn

from crawlr.parse import child

__all__ = ["ForkServer", "ForkServerContext", "serve", "signals_held_off"]

PRELOAD = ("crawlr.parse.child", "concurrent.futures.process", "multiprocessing.queues", "multiprocessing.synchronize")
START_LIMIT = 30.0
"""Seconds in which the server must have forked: its own start and the import of the parser on a busy machine."""
_ENVIRONMENT = {"MALLOC_ARENA_MAX": "1"}
"""Else glibc reserves 64 MiB for each thread that allocates, out of the memory that a parse process may have."""
_NUMBER_BYTES = 8
_MAX_DESCRIPTORS = 32


class ForkServer:
    """The server as its owner sees it. It is started by the first `fork` at the latest, and again when it has died."""

    def __init__(self, modules: tuple[str, ...] = ()) -> None:
        """`modules`: what it imports beforehand, so that its children need not."""
        self._modules = modules
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None

    def start(self) -> None:
        """Have the server running; returns before it is ready. OSError when the machine cannot start it."""
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        ours, theirs = socket.socketpair()
        code = (
            f"import gc, sys; gc.disable(); sys.path[:] = {_import_path()!r}; "
            f"from {__name__} import serve; serve({theirs.fileno()}, {self._modules!r})"
        )
        # As the stdlib starts its own, but without -W: nobody reads what a parse process warns of.
        flags: list[str] = util._args_from_interpreter_flags()  # type: ignore[attr-defined]
        flags = [flag for flag in flags if not flag.startswith("-W")]
        try:
            with theirs, signals_held_off():
                self._process = subprocess.Popen(  # noqa: S603  # our own interpreter
                    # -P: no module is taken from the working folder
                    [os.fsdecode(spawn.get_executable()), *flags, "-P", "-c", code],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=None if _has_stderr() else subprocess.DEVNULL,
                    env=os.environ | _ENVIRONMENT,
                    pass_fds=[theirs.fileno()],
                )
        except BaseException:
            ours.close()
            raise
        self._channel = ours

    def fork(self, descriptors: list[int]) -> tuple[int, int, int]:
        """A new child: (its pid, descriptor that tells its end, descriptor that feeds it and whose closing ends it).

        The child gets duplicates of `descriptors`. Blocks until it exists; OSError when the machine refuses, EOFError
        when the server died, TimeoutError when it did not answer within START_LIMIT.
        """
        self.start()
        assert self._channel is not None
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            status, status_writer = os.pipe()
            ours.callback(os.close, status)
            theirs.callback(os.close, status_writer)
            feed_reader, feed = os.pipe()
            ours.callback(os.close, feed)
            theirs.callback(os.close, feed_reader)
            socket.send_fds(self._channel, [b"f"], [feed_reader, status_writer, *descriptors])
            theirs.close()
            if not connection.wait([status], START_LIMIT):
                self.kill()
                raise TimeoutError(errno.ETIMEDOUT, f"the fork server did not answer within {START_LIMIT:g} s")
            pid = _read_number(status)
            if pid < 0:
                raise OSError(-pid, os.strerror(-pid))
            ours.pop_all()
        return pid, status, feed

    def kill(self) -> None:
        """End the server at once, so that a `fork` under way in another thread fails."""
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """End the server and reap it. Its children are not touched."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process is not None:
            try:
                self._process.wait(1.0)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None


class _Inherited:
    """A descriptor on its way into the child: its place among those sent along. Pickled here, read there."""

    numbers: ClassVar[list[int]] = []  # filled in the child, once, right after the fork

    def __init__(self, index: int) -> None:
        self._index = index

    def detach(self) -> int:
        return self.numbers[self._index]


class _Popen(popen_fork.Popen):
    """How BaseProcess sees a child of our server."""

    method = "forkserver"
    DupFd = _Inherited

    def __init__(self, process: _Process) -> None:
        # Unlike its base, it flushes no stdio first: nothing is forked here, and a closed stdout must not keep parsers
        # away.
        self.returncode: int | None = None
        self.finalizer: util.Finalize | None = None
        self._descriptors: list[int] = []
        self._reading = threading.Lock()
        self._launch(process)

    def duplicate_for_child(self, fd: int) -> int:
        self._descriptors.append(fd)
        return len(self._descriptors) - 1

    def poll(self, flag: int = os.WNOHANG) -> int | None:
        if self.returncode is None:
            if not connection.wait([self.sentinel], 0 if flag == os.WNOHANG else None):
                return None
            with self._reading:  # several threads may ask, the number can be read once
                if self.returncode is None:
                    try:
                        self.returncode = _read_number(self.sentinel)
                    except (OSError, EOFError):
                        self.returncode = 255  # the server died before its child, so nobody has collected the status
        return self.returncode

    def _send_signal(self, sig: int) -> None:
        if self.poll() is None:  # its pid is its own as long as it lives
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, sig)

    def _launch(self, process: _Process) -> None:
        message = io.BytesIO()
        context.set_spawning_popen(self)  # type: ignore[arg-type]  # it asks for duplicate_for_child only
        try:
            # The first part is multiprocessing's preparation. What it leaves out matters: no main module, no start
            # method.
            context.reduction.dump({"name": process.name, "sys_path": _import_path()}, message)  # type: ignore[attr-defined]
            context.reduction.dump(process, message)  # type: ignore[attr-defined]
        finally:
            context.set_spawning_popen(None)
        self.pid, self.sentinel, feed = process.server.fork(self._descriptors)
        # `feed` stays open on purpose: the child takes its closing for our end and ends too.
        self.finalizer = util.Finalize(self, util.close_fds, (feed, self.sentinel))  # type: ignore[attr-defined]
        with open(feed, "wb", closefd=False) as stream:
            stream.write(message.getbuffer())


class _Process(context.ForkServerProcess):
    """A process of the context below; `server` stays here, all else goes to the child."""

    def __init__(self, server: ForkServer, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.server = server

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "server"}

    @staticmethod
    def _Popen(process_obj: BaseProcess) -> Any:  # noqa: N802  # the name multiprocessing calls
        assert isinstance(process_obj, _Process)
        return _Popen(process_obj)


class ForkServerContext(context.ForkServerContext):
    """A multiprocessing context for executors: their processes come from `server`."""

    def __init__(self, server: ForkServer) -> None:
        super().__init__()
        self._server = server

    def Process(self, *args: Any, **kwargs: Any) -> _Process:  # type: ignore[override]  # noqa: N802  # as in its base
        return _Process(self._server, *args, **kwargs)


@contextlib.contextmanager
def signals_held_off() -> Iterator[None]:
    """SIGINT and SIGUSR1 are blocked in this thread, and so they are, for good, in what is started meanwhile: neither
    Ctrl-C nor a question to the whole group can hit it half awake."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, child.NOT_FOR_PARSERS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def serve(channel_descriptor: int, modules: tuple[str, ...]) -> NoReturn:
    """The server's whole life: fork on request, report ends, until the other side of the channel is closed."""
    child.ignore_signals()
    for name in (*PRELOAD, *modules):
        # What cannot be imported here cannot be imported in the child either, which says so where it is heard.
        with contextlib.suppress(Exception):
            __import__(name)
    gc.collect()
    gc.freeze()  # the children's collections leave what is shared alone
    gc.enable()  # it was off while all this was imported
    signal.signal(signal.SIGCHLD, lambda *_: None)
    wake, wake_writer = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(wake_writer, False)
    signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
    channel = socket.socket(fileno=channel_descriptor)
    statuses: dict[int, int] = {}  # pid -> where its end is told; filled by a fork, emptied by _report_ends
    with selectors.DefaultSelector() as selector:
        selector.register(channel, selectors.EVENT_READ)
        selector.register(wake, selectors.EVENT_READ)

        def leave_server() -> None:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            selector.close()
            channel.close()
            for descriptor in (wake, wake_writer, *statuses.values()):
                os.close(descriptor)

        while True:
            ready = {key.fileobj for key, _ in selector.select()}
            if wake in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(wake, 65536)
                _report_ends(statuses)
            if channel in ready:
                try:
                    message, descriptors, _, _ = socket.recv_fds(channel, 1, _MAX_DESCRIPTORS)
                except ConnectionError:
                    message, descriptors = b"", []
                if not message:
                    # Our owner is gone. Its parsers notice that themselves, unless one holds the GIL for ever.
                    for pid in statuses:
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGKILL)
                    os._exit(0)
                _fork(descriptors, statuses, leave_server)


def _has_stderr() -> bool:
    """Whether a child would get our stderr: it may be closed, and its number that of something else."""
    try:
        return os.get_inheritable(2)
    except OSError:
        return False


def _import_path() -> list[str]:
    """This program's import path, for processes that were started elsewhere: '' means the working folder."""
    try:
        return [os.path.abspath(entry) for entry in sys.path if isinstance(entry, str)]
    except FileNotFoundError:  # the working folder is gone
        return [entry for entry in sys.path if isinstance(entry, str) and os.path.isabs(entry)]


def _fork(descriptors: list[int], statuses: dict[int, int], leave_server: Callable[[], None]) -> None:
    feed, status, *inherited = descriptors
    try:
        pid = os.fork()
    except OSError as error:
        _write_number(status, -(error.errno or errno.EAGAIN))
        pid = -1
    if pid == 0:
        _live_as_child(feed, inherited, leave_server)
    for descriptor in (feed, *inherited):
        os.close(descriptor)
    if pid < 0:
        os.close(status)
    else:
        _write_number(status, pid)
        statuses[pid] = status


def _live_as_child(feed: int, inherited: list[int], leave_server: Callable[[], None]) -> NoReturn:
    # The child keeps its `status` open too: if the server is killed, the pipe is at its end when the child has ended,
    # not before.
    code = 1
    try:
        leave_server()
        _Inherited.numbers = inherited
        code = spawn._main(feed, os.dup(feed))  # reads preparation and process, runs it
    except BaseException:  # noqa: BLE001  # the outermost frame of the child
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)


def _report_ends(statuses: dict[int, int]) -> None:
    while True:
        try:
            pid, raw = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        status = statuses.pop(pid, None)
        if status is not None:
            _write_number(status, os.waitstatus_to_exitcode(raw))
            os.close(status)


def _write_number(descriptor: int, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):  # nobody wants to know any more
        os.write(descriptor, number.to_bytes(_NUMBER_BYTES, "little", signed=True))  # atomic: far below PIPE_BUF


def _read_number(descriptor: int) -> int:
    raw = os.read(descriptor, _NUMBER_BYTES)
    if len(raw) < _NUMBER_BYTES:
        raise EOFError("the fork server ended")
    return int.from_bytes(raw, "little", signed=True)
