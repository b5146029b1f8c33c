"""A real server on a real port: other people's clients, those that leave, overload, signals."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from libretranslatepy import LibreTranslateAPI

from bothends.serve.limits import Limits
from bothends.serve.server import KEEP_ALIVE, configure
from bothends.serve.service import ServeOptions
from bothends.serve.translating import TranslateBatch
from command_line import error_line
from serve_fixtures import Running, running

HUNGRY, HUNGER = "I am hungry.", "Estou com fome."
PAIR = {"source": "en", "target": "pt"}
#: Seconds that anything may take on a machine that is busy.
PATIENCE = 120


@pytest.fixture(scope="module")
def live() -> Iterator[Running]:
    with running() as server:
        yield server


class Gate:
    """Holds up every batch until it is opened, and counts what was run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open = threading.Event()
        self.entered = threading.Event()
        self.lines: list[str] = []
        run = TranslateBatch.__call__

        def held(kind: TranslateBatch, items: Any) -> Any:
            self.entered.set()
            assert self.open.wait(PATIENCE)
            self.lines.extend(items)
            return run(kind, items)

        monkeypatch.setattr(TranslateBatch, "__call__", held)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate(monkeypatch)
    yield gate
    gate.open.set()


def wait_until(condition: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.005)


def test_a_client_of_libretranslate(live: Running) -> None:
    api = LibreTranslateAPI(live.url)
    assert api.translate(HUNGRY, "en", "pt") == HUNGER
    assert api.translate("It is 5 % more & “good”.", "en", "pt")
    assert {each["code"] for each in api.languages()} >= set(PAIR.values())
    assert api.detect(HUNGRY)[0]["language"] == PAIR["source"]
    assert api.translate(HUNGRY, "auto", PAIR["target"]) == HUNGER


def test_many_clients_get_their_own_answers(live: Running) -> None:
    texts = [f"Tom has {number} dogs." for number in range(3, 43)]
    with httpx.Client(base_url=live.url, timeout=PATIENCE) as client:
        expected = client.post("/translate", json={"q": texts, **PAIR}).json()["translatedText"]

    def ask(text: str) -> str:
        answer = httpx.post(
            f"{live.url}/translate", json={"q": text, **PAIR}, timeout=PATIENCE
        ).json()
        return str(answer["translatedText"])

    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(ask, texts)) == expected


def test_a_client_that_leaves_frees_its_work(gate: Gate) -> None:
    with running(ServeOptions(threads=1)) as server:
        blocker = threading.Thread(
            target=httpx.post,
            args=(f"{server.url}/translate",),
            kwargs={"json": {"q": HUNGRY, **PAIR}, "timeout": PATIENCE},
        )
        blocker.start()
        assert gate.entered.wait(PATIENCE)
        body = json.dumps({"q": ["Never mind.", "Forget it."], **PAIR}).encode()
        with socket.create_connection(("127.0.0.1", server.port)) as leaving:
            leaving.sendall(
                b"POST /translate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
                b"content-length: %d\r\n\r\n%s" % (len(body), body)
            )
            wait_until(lambda: server.service.batcher.waiting == 2)
            assert server.service.room.requests == 2
        wait_until(lambda: server.service.room.requests == 1)
        gate.open.set()
        blocker.join()
        wait_until(lambda: server.service.room.requests == 0)
        assert gate.lines == [HUNGRY]
        assert (
            "bothends_abandoned_total 1.0"
            in httpx.get(f"{server.url}/metrics", timeout=PATIENCE).text
        )


def test_overload_is_refused_at_once_and_nothing_accepted_is_lost(gate: Gate) -> None:
    limits = Limits(waiting_requests=4, client_share=1)
    with running(ServeOptions(limits=limits, threads=1)) as server:

        def ask(number: int) -> httpx.Response:
            body = {"q": f"Tom has {number} dogs.", **PAIR}
            return httpx.post(f"{server.url}/translate", json=body, timeout=PATIENCE)

        with ThreadPoolExecutor(20) as pool:
            accepted = [pool.submit(ask, number) for number in range(4)]
            wait_until(lambda: server.service.room.requests == 4)
            refused = list(pool.map(ask, range(4, 12)))  # while nothing else is answered
            assert not any(future.done() for future in accepted)
            gate.open.set()
        for answer in refused:
            assert answer.status_code == 503
            assert int(answer.headers["retry-after"]) >= 1
        for number, future in enumerate(accepted):
            assert future.result().status_code == 200
            assert str(number) in future.result().json()["translatedText"]


@pytest.mark.parametrize("proxies", [(), ("127.0.0.0/8",)])
def test_a_proxy_that_is_named_tells_clients_apart(gate: Gate, proxies: tuple[str, ...]) -> None:
    options = ServeOptions(limits=Limits(waiting_requests=4), threads=1, proxies=proxies)
    with running(options) as server, ThreadPoolExecutor(3) as pool:

        def ask(number: int) -> int:
            headers = {"x-forwarded-for": f"10.0.0.{number}"}
            body = {"q": HUNGRY, **PAIR}
            url = f"{server.url}/translate"
            return httpx.post(url, json=body, headers=headers, timeout=PATIENCE).status_code

        first = [pool.submit(ask, number) for number in (1, 2)]
        wait_until(lambda: server.service.room.requests == 2)  # the share of one client
        third = pool.submit(ask, 3)
        wait_until(lambda: third.done() or server.service.room.requests == 3)
        gate.open.set()
        assert [each.result() for each in first] == [200, 200]
        assert third.result() == (200 if proxies else 503)


def test_an_idle_connection_outlives_that_of_a_proxy() -> None:
    assert configure(ServeOptions()).timeout_keep_alive > 60


def test_time_is_limited(gate: Gate) -> None:
    with running(ServeOptions(limits=Limits(seconds=0.3))) as server:
        answer = httpx.post(f"{server.url}/translate", json={"q": HUNGRY, **PAIR}, timeout=PATIENCE)
        assert answer.status_code == 504
        assert "0.3 seconds" in answer.json()["error"]
        wait_until(lambda: server.service.room.requests == 0)  # it leaves after its answer
        gate.open.set()


def talk(server: Running, *parts: bytes, pause: float = 0.0) -> bytes:
    """Send some bytes and read until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
        for part in parts:
            connection.sendall(part)
            time.sleep(pause)
        received = b""
        while data := connection.recv(65536):
            received += data
        return received


def test_connections_that_say_nothing_are_closed() -> None:
    head = b"POST /translate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    with running(ServeOptions(limits=Limits(receive_seconds=0.3))) as server:
        assert talk(server) == b""
        assert talk(server, b"POST /trans") == b""
        assert talk(server, head) == b""
        # one that sends its headers byte by byte has no more time than others
        with pytest.raises(ConnectionError):
            talk(server, *(bytes([byte]) for byte in head), pause=0.05)
    # what is sent at once has to arrive in time, on a busy machine too
    with running(ServeOptions(limits=Limits(receive_seconds=1.2))) as server:
        assert b" 408 " in talk(server, head + b"content-length: 100\r\n\r\n{")
        # nor has a second request of a connection, whether it comes with the first or after it
        health = b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n"
        begin = time.monotonic()
        for parts in ((health + b"GET /he",), (health, b"GET /he")):
            assert talk(server, *parts, pause=0.2).count(b"200 OK") == 1
        assert time.monotonic() - begin < KEEP_ALIVE
        assert httpx.get(f"{server.url}/health", timeout=PATIENCE).status_code == 200


def test_noise_is_no_request(live: Running) -> None:
    assert b" 400 " in talk(live, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")
    big = b"GET /health HTTP/1.1\r\n" + b"".join(
        b"x-%d: %s\r\n" % (n, b"y" * 900) for n in range(99)
    )
    assert talk(live, big + b"connection: close\r\n\r\n")[:9] == b"HTTP/1.1 "
    assert httpx.get(f"{live.url}/health", timeout=PATIENCE).status_code == 200


def test_a_client_that_sends_too_much_can_read_why() -> None:
    head = b"POST /translate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    last = b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    rest = b"x" * 5_000_000
    begun = head + b"content-length: %d\r\n\r\n{" % (len(rest) + 1)
    with running(ServeOptions(limits=Limits(body_bytes=1000))) as server:
        received = talk(server, begun, rest, last)
        assert b" 413 " in received
        assert b"1,000 bytes" in received
        assert b" 200 OK" in received  # the connection is as good as new
    # but nobody goes on for ever
    limits = Limits(body_bytes=1000, receive_seconds=0.3)
    with running(ServeOptions(limits=limits)) as server, pytest.raises(ConnectionError):
        talk(server, begun, *[b"x" * 1000] * 200, pause=0.05)


def test_headers_end_somewhere(live: Running) -> None:
    # Two seconds' worth, and time for headers is ten.
    endless = [b"GET /health HTTP/1.1\r\nhost: x\r\nx: ", *[b"y" * 65536] * 200]
    with pytest.raises(ConnectionError):
        talk(live, *endless, b"\r\nconnection: close\r\n\r\n", pause=0.01)
    assert httpx.get(f"{live.url}/health", timeout=PATIENCE).status_code == 200


@pytest.mark.parametrize("name", [b"Upgrade", b"upgrade"])
def test_a_client_that_would_rather_speak_http_2(live: Running, name: bytes) -> None:
    # Java's client asks so by default, and sends the body after the headers.
    body = json.dumps({"q": HUNGRY, **PAIR}).encode()
    head = b"POST /translate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    wish = b"Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAEAAEAA\r\n%s: h2c\r\n" % name
    whole = b"content-length: %d\r\n\r\n" % len(body), body
    chunks = b"transfer-encoding: chunked\r\n\r\n", b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    last = b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    for framing, sent in (whole, chunks):
        received = talk(live, head + wish + framing, sent, last)
        assert HUNGER.encode() in received
        assert received.count(b" 200 OK") == 2


def start(*arguments: str) -> tuple[subprocess.Popen[str], str]:
    """`bothends serve` in a process of its own, and the address that it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bothends", "serve", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("bothends serves at http://127.0.0.1:"), line
    return process, line.split()[-1]


def test_the_command_serves_and_drains_when_it_is_told_to_stop() -> None:
    process, url = start()
    try:
        texts = [f"Tom has {number} dogs." for number in range(300)]
        with ThreadPoolExecutor(1) as pool:
            body = {"q": texts, **PAIR}
            answer = pool.submit(httpx.post, f"{url}translate", json=body, timeout=PATIENCE)
            wait_until(
                lambda: "waiting_requests 1.0" in httpx.get(f"{url}metrics", timeout=PATIENCE).text
            )
            process.send_signal(signal.SIGTERM)
            assert len(answer.result().json()["translatedText"]) == 300
        assert process.wait(PATIENCE) == 0
        assert process.stderr is not None
        lines = process.stderr.read().splitlines()
        assert all(json.loads(line)["event"] for line in lines)
        assert "Tom" not in "".join(lines)
    finally:
        process.kill()
        process.communicate()


def test_the_command_says_what_is_wrong(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, live: Running
) -> None:
    taken = ["serve", "--port", str(live.port)]
    assert error_line(taken, capsys)[1].endswith("choose another with --port")
    assert "no such model" in error_line(["serve", "--model", "nowhere"], capsys)[1]
    assert error_line(["serve", "--new-key", "ann"], capsys)[0] == 2
    for seconds in ("0", "nan", "inf"):
        assert error_line(["serve", "--timeout", seconds], capsys)[0] == 2
    assert error_line(["serve", "--log-level", "loud"], capsys)[0] == 2
    assert "--proxy nginx" in error_line(["serve", "--proxy", "nginx"], capsys)[1]
    assert "cannot be read" in error_line(["serve", "--api-keys", str(tmp_path / "x")], capsys)[1]
