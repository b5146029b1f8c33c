"""The process around the application: sockets, signals, and connections that say nothing.

SIGTERM and SIGINT stop the server as soon as all that was accepted is answered.
"""

from __future__ import annotations

import asyncio
import gc
import re
import signal
import socket
import sys
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from bothends.errors import BothendsError
from bothends.serve.app import create_app
from bothends.serve.interruption import CONNECTION, Connection, Deadline, Deadlines
from bothends.serve.logs import write_logs
from bothends.serve.service import ServeOptions

#: Seconds between switches of Python's threads. The workers compute, the event loop answers: with
#: the usual 5 ms, a refusal would wait for both workers' turns.
SWITCH_INTERVAL = 0.0005
#: Seconds for which an idle connection stays open: more than the minute of most proxies, or one of
#: them would now and then send a request into a connection that is just being closed.
KEEP_ALIVE = 75
#: Bytes of a request's headers. The parser takes time with the square of a header's length.
HEADER_BYTES = 128 * 1024
TOO_LONG = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)
#: A header that asks for another protocol, as Java's client does with every request.
UPGRADE = re.compile(rb"\r\nupgrade:", re.IGNORECASE)


class ImpatientProtocol(HttpToolsProtocol):
    """HTTP that closes connections whose headers do not come or do not end, tells when a client
    leaves, and stays HTTP.

    uvicorn waits for the first headers of a connection, and for begun ones, without end: some
    hundred such connections would use up the server. And its parser drops the body of a request
    that would rather be HTTP/2.
    """

    header_seconds = 10.0
    deadlines = Deadlines()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._patience: Deadline | None = None
        self._header_bytes: int | None = None  # of the headers that have begun, if any have
        self._connection = Connection()
        super().connection_made(transport)
        self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._headers_are_there()
        super().connection_lost(exc)
        self._connection.lose()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._patience is None:  # it came in one piece with the end of the request before
            self._expect_headers()
        self._header_bytes = 0
        self.scope[CONNECTION] = self._connection  # type: ignore[literal-required]

    def data_received(self, data: bytes) -> None:
        if self._patience is None and (self.cycle is None or self.cycle.response_complete):
            self._expect_headers()
        if self._patience is not None:
            data = without_upgrade(data)
        super().data_received(data)
        if self._header_bytes is not None:
            self._header_bytes += len(data)
            if self._header_bytes > HEADER_BYTES and not self.transport.is_closing():
                self.transport.write(TOO_LONG)
                self.transport.close()

    def on_headers_complete(self) -> None:
        self._header_bytes = None
        self._headers_are_there()
        super().on_headers_complete()

    def _expect_headers(self) -> None:
        self._patience = self.deadlines.add(self.header_seconds, self._lose_patience)

    def _headers_are_there(self) -> None:
        if self._patience is not None:
            self.deadlines.discard(self._patience)
            self._patience = None

    def _lose_patience(self) -> None:
        self._patience = None
        if not self.transport.is_closing():
            self.transport.close()


def without_upgrade(data: bytes) -> bytes:
    """The beginning of a request that asks for no other protocol: a server may stay with HTTP/1.1.

    The header gets another name of the same length, so that nothing moves.
    """
    head, end, body = data.partition(b"\r\n\r\n")
    return UPGRADE.sub(b"\r\nignored:", head) + end + body


def impatient_protocol(seconds: float) -> type[ImpatientProtocol]:
    """The protocol of one server, which waits so long for headers."""
    settings = {"header_seconds": seconds, "deadlines": Deadlines()}
    return type("Protocol", (ImpatientProtocol,), settings)


class Server(uvicorn.Server):
    """uvicorn, which says where it can be reached once it can."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            # Modules stay: to look through them for garbage would hold up answers time and again.
            gc.collect()
            gc.freeze()
            for each in self.servers:
                for bound in each.sockets:
                    print(f"bothends serves at {_address(bound)}", flush=True)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        # uvicorn would now send the signal again, to end the process with its status. To have been
        # stopped in order is a success.
        self._captured_signals = [each for each in self._captured_signals if each != signal.SIGTERM]


def _address(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def serve(options: ServeOptions, host: str, port: int, log_level: str = "info") -> None:
    """Serve until a signal comes."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    listening = _listen(host, port)
    write_logs(log_level)
    Server(configure(options)).run(sockets=[listening])


def configure(options: ServeOptions) -> uvicorn.Config:
    """The application of these options, and how uvicorn is to run it."""
    protocol: Any = impatient_protocol(options.limits.receive_seconds)
    return uvicorn.Config(
        create_app(options),
        http=protocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(options.proxies),
        forwarded_allow_ips=list(options.proxies),
        limit_concurrency=options.limits.connections,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=int(options.limits.seconds) + 5,
    )


def _listen(host: str, port: int) -> socket.socket:
    """A socket of our own, so that an address in use is one line."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(2048)
    except (OSError, OverflowError) as error:
        listening.close()
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BothendsError(
            f"{host}, port {port}: cannot listen there ({reason}); choose another with --port"
        ) from None
    return listening
