"""A light client for load: many connections in one thread, each with one request at a time.

It shares the machine with the server that it measures, so it does as little as it can: HTTP by
hand over asyncio's streams.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    seconds: float
    retry_after: str | None = None

    @property
    def text(self) -> str:
        return str(json.loads(self.body)["translatedText"])


@dataclass(frozen=True)
class Served:
    """`bothends serve` in a process of its own."""

    process: subprocess.Popen[str]
    port: int

    @property
    def memory(self) -> int:
        """Resident bytes."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def served(*arguments: str, port: int = 0) -> Iterator[Served]:
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "bothends", "serve", "--log-level", "error"),
            *("--port", str(port), *arguments),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().split()[-1]
        yield Served(process, int(address.rstrip("/").rsplit(":", 1)[1]))
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


async def request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, body: bytes
) -> Answer:
    begin = time.perf_counter()
    writer.write(
        b"POST %s HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
        b"\r\n%s" % (path.encode(), len(body), body)
    )
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
    content = await reader.readexactly(int(headers["content-length"]))
    seconds = time.perf_counter() - begin
    return Answer(int(lines[0].split()[1]), content, seconds, headers.get("retry-after"))


async def drive(
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
    answers: list[tuple[int, Answer]] = []
    numbers = iter(range(len(bodies))) if seconds is None else iter(int, 1)
    begin = time.perf_counter()
    sent = 0

    async def client(offset: float) -> None:
        nonlocal sent
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        due = begin + offset
        for _ in numbers:
            if seconds is not None and time.perf_counter() - begin > seconds:
                break
            if interval:
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                due = max(due + interval, time.perf_counter())
            number, sent = sent % len(bodies), sent + 1
            answers.append((number, await request(reader, writer, path, bodies[number])))
        writer.close()

    await asyncio.gather(*(client(number * interval / clients) for number in range(clients)))
    return answers


def translate_bodies(lines: Sequence[str]) -> list[bytes]:
    return [json.dumps({"q": line, "source": "en", "target": "de"}).encode() for line in lines]


def percentile(values: Sequence[float], part: float) -> float:
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(part * len(ranked)))]
