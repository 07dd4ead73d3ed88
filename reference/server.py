"""Accepts connections (asyncio)."""

import asyncio
from collections.abc import Callable

from streamgauge.reference.connection import Connection
from streamgauge.reference.responder import Responder
from streamgauge.reference.turns import Turns

__all__ = ["Server", "serve"]


async def serve(
    responder: Responder, host: str, port: int, *, ready: Callable[[int], None], stop: asyncio.Event
) -> None:
    """
    Serve until `stop` is set.

    Args:
        responder: makes the replies.
        host: address to listen on.
        port: 0 for a free one.
        ready: called with the port once connections are accepted.
        stop: ends the server; replies in progress are cut off.

    Raises:
        OSError: the address cannot be listened on.
    """
    server = Server(responder)
    # asyncio sets TCP_NODELAY on every TCP connection by itself.
    listening = await asyncio.start_server(server.connected, host, port, backlog=1024)
    try:
        ready(listening.sockets[0].getsockname()[1])
        await stop.wait()
    finally:
        listening.close()
        await server.close()


class Server:
    """
    All connections of one process, and the pace that their answers share.

    Args:
        responder: makes the replies.
    """

    def __init__(self, responder: Responder) -> None:
        self._responder = responder
        self._turns = Turns(responder.new_pace(), responder.metrics)
        self._tasks: set[asyncio.Task[None]] = set()

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a new connection from now on."""
        connection = Connection(self._responder, self._turns, reader, writer)
        task = asyncio.get_running_loop().create_task(connection.run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Cut off every connection."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._turns.close()
