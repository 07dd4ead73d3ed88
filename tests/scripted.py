"""A server on loopback that sends exactly the bytes of a script, whatever they are."""

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator, Sequence

__all__ = ["CLOSE", "HOLD", "RESET", "SEEN", "Answer", "Server", "answer", "dead_port", "request_head", "scripted"]

WAIT = 30.0

CLOSE = "close"
"""Step: end the connection in order."""
RESET = "reset"
"""Step: end the connection with RST."""
HOLD = "hold"
"""Step: keep silent until the client goes away."""
SEEN = "seen"
"""Step: wait until the client has noted another read (see `Server.noted`)."""

Answer = Sequence[bytes | str]


def answer(status: int, body: bytes = b"{}", *fields: str, media_type: str = "application/json") -> Answer:
    """A whole response with Content-Length."""
    lines = [f"HTTP/1.1 {status} Said", f"Content-Type: {media_type}", *fields, f"Content-Length: {len(body)}", "", ""]
    return ["\r\n".join(lines).encode("latin-1") + body]


def request_head(request: bytes) -> tuple[str, dict[str, str]]:
    """Request line and fields of a request, names in lower case."""
    line, *fields = request.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
    return line, {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}


class Server:
    """What a test sees of the server: its address and what it was asked."""

    def __init__(self, choose: Callable[[int, bytes], Answer], tls: ssl.SSLContext | None) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self.noted = threading.Semaphore(0)
        self._choose = choose
        self._tls = tls
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self.port = self._listener.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Answer from now on."""
        self._threads[0].start()

    def stop(self) -> None:
        """Close everything and wait for the threads."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join(WAIT)
        self._listener.close()
        with self._lock:
            for link in self._open:
                with contextlib.suppress(OSError):
                    link.shutdown(socket.SHUT_RDWR)
        for thread in self._threads[1:]:
            thread.join(WAIT)
            assert not thread.is_alive()

    def _accept(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            link.settimeout(WAIT)
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            thread = threading.Thread(target=self._serve, args=(link,))
            with self._lock:
                self.connections += 1
                self._open.append(link)
                self._threads.append(thread)
            thread.start()

    def _serve(self, link: socket.socket) -> None:
        plain = link
        try:
            if self._tls is not None:
                link = self._tls.wrap_socket(link, server_side=True)
                with self._lock:
                    self._open[self._open.index(plain)] = link
            while request := _request(link):
                with self._lock:
                    number = len(self.requests)
                    self.requests.append(request)
                for step in self._choose(number, request):
                    if isinstance(step, bytes):
                        link.sendall(step)
                    elif step == SEEN:
                        assert self.noted.acquire(timeout=WAIT)
                    elif step == HOLD:
                        while link.recv(65536):
                            pass
                    elif step == RESET:
                        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    if step in (CLOSE, RESET):
                        return
        except OSError:
            pass  # the client went away, or did not like our certificate
        finally:
            with self._lock:
                if link in self._open:
                    self._open.remove(link)
            link.close()


def _request(link: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        if not (part := link.recv(65536)):
            return b""
        data += part
    head, _, _ = data.partition(b"\r\n\r\n")
    length = int(request_head(data)[1].get("content-length", "0"))
    while len(data) < len(head) + 4 + length:
        if not (part := link.recv(65536)):
            return b""
        data += part
    return data


@contextlib.contextmanager
def scripted(
    *answers: Answer, choose: Callable[[int, bytes], Answer] | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[Server]:
    """
    Serve.

    Args:
        answers: to the first request, the second, ...; the last one to all that follow.
        choose: finds the answer by number and bytes of a request instead.
        tls: speak TLS with this context.
    """
    server = Server(choose or (lambda number, _: answers[min(number, len(answers) - 1)]), tls)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def dead_port() -> Iterator[int]:
    """A port on loopback where nothing listens. It is held meanwhile, so that nobody else gets it and listens there."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]
