"""A light client for load: many connections in one thread, each with one request at a time.

It shares the machine with the server that it measures, so it does as little as it can: HTTP by
hand over epoll, and answers are taken apart when the time is over.
"""

from __future__ import annotations

import heapq
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path


@dataclass(frozen=True)
class Answer:
    """What came back, and the seconds it took."""

    received: bytes
    seconds: float

    @property
    def status(self) -> int:
        return int(self.received[9:12])

    @property
    def retry_after(self) -> str | None:
        return header(self.received, b"retry-after")

    @property
    def body(self) -> bytes:
        return self.received.partition(b"\r\n\r\n")[2]

    @property
    def text(self) -> str:
        return str(json.loads(self.body)["translatedText"])


def header(received: bytes, name: bytes) -> str | None:
    begin = received.find(b"\r\n" + name + b": ")
    if begin < 0:
        return None
    begin += len(name) + 4
    return received[begin : received.index(b"\r\n", begin)].decode("latin-1")


@dataclass(frozen=True)
class Served:
    """`bothends serve` in a process of its own."""

    process: subprocess.Popen[str]
    port: int
    stderr: Path

    @property
    def said(self) -> str:
        """All that it has written to stderr."""
        return self.stderr.read_text(encoding="utf-8", errors="replace")

    @property
    def memory(self) -> int:
        """Resident bytes."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def served(*arguments: str, port: int = 0) -> Iterator[Served]:
    with tempfile.NamedTemporaryFile() as stderr:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "bothends", "serve", "--log-level", "error"),
                # Long: the machine may have other things to do.
                *("--timeout", "900", "--port", str(port), *arguments),
            ],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
        assert process.stdout is not None
        try:
            address = process.stdout.readline().split()[-1]
            yield Served(process, int(address.rstrip("/").rsplit(":", 1)[1]), Path(stderr.name))
        finally:
            process.kill()
            process.communicate()


def sentences(count: int) -> list[str]:
    """Different everyday sentences."""
    who = ["Tom", "My brother", "The old man", "Her best friend", "Our teacher", "The girl"]
    what = ["wants to buy", "has never seen", "is looking for", "cannot find", "really likes"]
    which = ["a new car", "the red house", "this book", "his keys", "an umbrella", "the station"]
    when = ["", " today", " in the morning", " because it is raining", " before the train leaves"]
    made = [f"{a} {b} {c}{d}." for a, b, c, d in product(who, what, which, when)]
    return [made[(7 * number) % len(made)] for number in range(count)]


class Client:
    """A connection, and the request that is under way on it."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.number = 0
        self.received = b""
        self.begin = 0.0
        self.due = 0.0

    def send(self, number: int, request: bytes) -> None:
        self.number, self.received = number, b""
        self.begin = time.perf_counter()
        self.socket.sendall(request)

    def receive(self) -> Answer | None:
        """The answer, if it is complete."""
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError("the server closed a connection")
        self.received += data
        head = self.received.find(b"\r\n\r\n")
        length = header(self.received[: head + 2], b"content-length") if head >= 0 else None
        if length is None or len(self.received) < head + 4 + int(length):
            return None
        return Answer(self.received, time.perf_counter() - self.begin)


def drive(
    port: int,
    bodies: Sequence[bytes],
    clients: int,
    path: str = "/translate",
    interval: float = 0.0,
    seconds: float | None = None,
) -> list[tuple[int, Answer]]:
    """Send the bodies over so many connections; answers with the numbers of their bodies.

    With an `interval`, a client begins a request that often, if the last one is done. With
    `seconds`, the bodies are sent again and again until that time is over.
    """
    requests = [
        b"POST %s HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n%s" % (path.encode(), len(body), body)
        for body in bodies
    ]
    answers: list[tuple[int, Answer]] = []
    connected = [Client(port) for _ in range(clients)]
    by_file = {each.socket.fileno(): each for each in connected}
    poll = select.epoll()
    for file in by_file:
        poll.register(file, select.EPOLLIN)
    begin = time.perf_counter()
    for number, client in enumerate(connected):
        client.due = begin + number * interval / clients
    idle = [(client.due, id(client), client) for client in connected]
    sent = busy = 0
    try:
        while True:
            now = time.perf_counter()
            over = sent == len(requests) if seconds is None else now - begin > seconds
            while idle and not over and idle[0][0] <= now:
                client = heapq.heappop(idle)[2]
                client.due = max(client.due + interval, now)
                client.send(sent % len(requests), requests[sent % len(requests)])
                sent, busy = sent + 1, busy + 1
                over = seconds is None and sent == len(requests)
            if over and not busy:
                return answers
            wait = idle[0][0] - now if idle and not over else 10.0
            for file, _ in poll.poll(max(0.0, wait)):
                client = by_file[file]
                answer = client.receive()
                if answer is not None:
                    answers.append((client.number, answer))
                    busy -= 1
                    heapq.heappush(idle, (client.due, id(client), client))
    finally:
        poll.close()
        for client in connected:
            client.socket.close()


def translate_bodies(lines: Sequence[str]) -> list[bytes]:
    return [json.dumps({"q": line, "source": "en", "target": "pt"}).encode() for line in lines]


def percentile(values: Sequence[float], part: float) -> float:
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(part * len(ranked)))]
