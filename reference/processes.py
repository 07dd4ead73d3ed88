"""
Several processes that serve side by side.

The first one listens, and hands each connection to the next process in turn (SCM_RIGHTS): so all have the same share, which the
kernel does not see to. The link that carries the connections also says whether the other end is there. When the first process
ends, however it ends, the others read the end of their links and end too; when one of those dies, the first one stops them all.
"""

import asyncio
import itertools
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from streamgauge.errors import CannotTellError
from streamgauge.reference.responder import Responder
from streamgauge.reference.server import Server

__all__ = ["Fleet"]

_READ_LIMIT = 2**16
_SECONDS_TO_STOP = 5.0


@dataclass(frozen=True, slots=True)
class _Child:
    pid: int
    link: socket.socket


class Fleet:
    """
    Processes forked from this one, which serve what it hands them.

    Args:
        responder: makes the replies; each process has a copy.
        count: how many processes.
    """

    def __init__(self, responder: Responder, count: int) -> None:
        self._children: list[_Child] = []
        for number in range(count):
            self._children.append(self._fork(responder, number))
        self._next = itertools.cycle(self._children)

    async def serve(self, host: str, port: int, *, ready: Callable[[int], None], stop: asyncio.Event) -> None:
        """
        Hand out connections until `stop` is set; the arguments are those of `server.serve`.

        Raises:
            OSError: the address cannot be listened on.
            CannotTellError: one of the processes ended by itself.
        """
        loop = asyncio.get_running_loop()
        dead: list[int] = []

        def ended(child: _Child) -> None:
            # Nothing is ever said on this end of the link, so that it can be read means that the other is closed.
            loop.remove_reader(child.link)
            dead.append(child.pid)
            stop.set()

        for child in self._children:
            loop.add_reader(child.link, ended, child)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            with socket.create_server((host, port), family=family, backlog=1024) as listener:
                listener.setblocking(False)
                loop.add_reader(listener, self._hand_out, listener)
                try:
                    ready(listener.getsockname()[1])
                    await stop.wait()
                finally:
                    loop.remove_reader(listener)
        finally:
            for child in self._children:
                loop.remove_reader(child.link)
        if dead:
            raise CannotTellError("a process of the reference endpoint ended by itself", where=f"process {dead[0]}")

    def close(self) -> None:
        """End all processes and wait until they have gone."""
        for child in self._children:
            child.link.shutdown(socket.SHUT_WR)
        for child in self._children:
            child.link.settimeout(_SECONDS_TO_STOP)
            try:
                child.link.recv(1)
            except TimeoutError:
                os.kill(child.pid, signal.SIGKILL)
            except ConnectionError:
                pass  # it has died, with connections that it had not taken up
            os.waitpid(child.pid, 0)
            child.link.close()

    def _hand_out(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except OSError:
            return  # the client has gone already, or there is no descriptor left
        with connection:
            try:
                socket.send_fds(next(self._next).link, [b"\0"], [connection.fileno()])
            except OSError:
                return  # it has died; the reader of its link says so

    def _fork(self, responder: Responder, number: int) -> _Child:
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            # An end of a link that a brother holds open would hide the first process's death from him.
            for link in (ours, *(child.link for child in self._children)):
                link.close()
            _live(responder, number, theirs)
        theirs.close()
        return _Child(pid, ours)


def _live(responder: Responder, number: int, link: socket.socket) -> NoReturn:
    """What a forked process does until its link ends."""
    code = 1
    try:
        # Ctrl-C in the terminal reaches every process; the first one winds up.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        responder.become(number)
        asyncio.run(_serve_from(responder, link))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


async def _serve_from(responder: Responder, link: socket.socket) -> None:
    """Serve the connections that come over the link until it ends."""
    loop = asyncio.get_running_loop()
    server = Server(responder)
    stop = asyncio.Event()
    starting: set[asyncio.Task[None]] = set()

    async def start(connection: socket.socket) -> None:
        reader = asyncio.StreamReader(_READ_LIMIT, loop)
        protocol = asyncio.StreamReaderProtocol(reader, server.connected, loop)
        await loop.connect_accepted_socket(lambda: protocol, connection)

    def taken() -> None:
        said, descriptors, _, _ = socket.recv_fds(link, 1, 1)
        if not said:
            stop.set()
        for descriptor in descriptors:
            task = loop.create_task(start(socket.socket(fileno=descriptor)))
            starting.add(task)
            task.add_done_callback(starting.discard)

    loop.add_reader(link, taken)
    await stop.wait()
    loop.remove_reader(link)
    await server.close()
