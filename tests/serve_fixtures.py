"""A server in a thread of the test process, on a port of its own, for tests that need real HTTP."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn

from bothends.serve.server import configure
from bothends.serve.service import ServeOptions, Service


@dataclass(frozen=True)
class Running:
    url: str
    port: int
    service: Service
    server: uvicorn.Server


@contextmanager
def running(options: ServeOptions | None = None) -> Iterator[Running]:
    """A server for as long as the block takes."""
    options = options or ServeOptions()
    config = configure(options)
    app: Any = config.app
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        yield Running(f"http://127.0.0.1:{port}", port, app.state.service, server)
    finally:
        server.should_exit = True
        thread.join(120)
        assert not thread.is_alive()
