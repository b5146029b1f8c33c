"""The front of the application: every request passes here, before anything looks at it.

It limits the size and the time of a body, names the request, adds headers that protect the page,
turns a defect into an answer without a traceback, and logs and counts what was answered.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bothends.errors import BothendsError
from bothends.serve.interruption import LimitedTime
from bothends.serve.logs import is_logged, log
from bothends.serve.requests import SERVICE
from bothends.serve.service import ClientGoneError, Service

#: Requests are named by the process and their number.
_PROCESS = secrets.token_hex(5)
_NUMBERS = count(1)

#: The page needs nothing from elsewhere, and nothing may frame it.
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (
        b"content-security-policy",
        b"default-src 'self'; img-src 'self' data: blob:; frame-ancestors 'none'; "
        b"base-uri 'none'; form-action 'self'",
    ),
]


#: Of an answer to a program, which shows no page.
API_HEADERS = HEADERS[:1]


class BodyError(Exception):
    """A body that is too large, too slow or broken off."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


#: Answers a request.
Endpoint = Callable[[Request], Awaitable[Response]]


class Front:
    """ASGI middleware around the whole application.

    It calls the `busy` endpoints, by path, itself: on its way through the application, a request
    would take longer than the translation of a short sentence. `on_error` is how the application
    answers an error.
    """

    def __init__(
        self,
        app: ASGIApp,
        service: Service,
        busy: Mapping[str, Endpoint],
        on_error: Callable[[Request, Exception], Awaitable[Response]],
    ) -> None:
        self._app = app
        self._service = service
        self._busy = busy
        self._on_error = on_error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(self._service, scope, receive, send)
        try:
            if scope["method"] == "POST":
                endpoint = self._busy.get(scope["path"])
                exchange.route = scope["path"] if endpoint is not None else None
                if self._service.room.full:
                    # At ten times the load that can be served, even to look at requests takes too
                    # long.
                    self._service.metrics.refuse()
                    await exchange.refuse(self._service.room.retry_after())
                    return
                if endpoint is not None:
                    await self._answer(endpoint, exchange)
                    return
            await self._app(scope, exchange.receive, exchange.send)
        except BodyError as problem:
            await exchange.fail(problem.status, str(problem))
        except ClientGoneError:
            self._service.metrics.abandoned.inc()
            exchange.status = 499  # as nginx logs it; nobody is there to read an answer
            await exchange.fail(499, "the client went away")
        except Exception as error:
            # The traceback goes to the log. It may quote no text: locals are not printed.
            log("defect", level="error", exception=error, request=exchange.name)
            await exchange.fail(500, f"a defect of the server; the log has more ({exchange.name})")
        finally:
            exchange.report()

    async def _answer(self, endpoint: Endpoint, exchange: _Exchange) -> None:
        request = Request(exchange.scope, exchange.receive)
        try:
            response = await endpoint(request)
        except BothendsError as error:
            response = await self._on_error(request, error)
        await response(exchange.scope, exchange.receive, exchange.send)


class _Exchange:
    """One request and its answer."""

    def __init__(self, service: Service, scope: Scope, receive: Receive, send: Send) -> None:
        self._service = service
        self.scope = scope
        self._receive = receive
        self._send = send
        self._begin = time.perf_counter()
        self._received = 0
        self._complete = False
        self._started = False
        self.status = 500
        self.name = f"{_PROCESS}{next(_NUMBERS):x}"
        self.route: str | None = None
        scope[SERVICE] = service

    async def receive(self) -> Message:
        if self._complete:
            return await self._receive()
        limits = self._service.limits
        remaining = self._begin + limits.receive_seconds - time.perf_counter()
        late = BodyError(408, f"the body did not come within {limits.receive_seconds:g} seconds")
        with LimitedTime(self._service.deadlines, remaining, late):
            message = await self._receive()
        if message["type"] == "http.request":
            self._received += len(message.get("body", b""))
            if self._received > limits.body_bytes or self._announced() > limits.body_bytes:
                raise BodyError(413, f"a body may have {limits.body_bytes:,} bytes")
            self._complete = not message.get("more_body", False)
        return message

    def _announced(self) -> int:
        for name, value in self.scope["headers"]:
            if name == b"content-length" and value.isdigit():
                return int(value[:20])
        return 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._started = True
            self.status = message["status"]
            headers = [
                *message.get("headers", []),
                *(HEADERS if self.route is None else API_HEADERS),
                (b"x-request-id", self.name.encode()),
            ]
            message = {**message, "headers": headers}
        await self._send(message)

    async def refuse(self, retry_after: int) -> None:
        await self._answer(503, "the server is busy", (b"retry-after", str(retry_after).encode()))

    async def fail(self, status: int, text: str) -> None:
        if self._started:
            return  # the connection is closed by the server when an answer is left unfinished
        # If the body was not read to its end, the connection is of no more use. But a client that
        # is still sending too much would be cut off and not see why: what it sends is passed over,
        # for as long as headers may take to come.
        keep = self._complete or status == 413
        await self._answer(status, text, *([] if keep else [(b"connection", b"close")]))

    async def _answer(self, status: int, text: str, *more: tuple[bytes, bytes]) -> None:
        headers: list[Any] = [(b"content-type", b"application/json"), *more]
        body = json.dumps({"error": text}).encode()
        headers.append((b"content-length", str(len(body)).encode()))
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})

    def report(self) -> None:
        seconds = time.perf_counter() - self._begin
        route = self.route or getattr(self.scope.get("route"), "path", None) or "other"
        self._service.metrics.answered(route, self.status, seconds)
        if not is_logged("info"):
            return
        log(
            "request",
            request=self.name,
            client=self.scope.get("bothends.client"),
            method=self.scope["method"],
            route=route,
            status=self.status,
            milliseconds=round(1000 * seconds, 1),
            received_bytes=self._received,
        )
