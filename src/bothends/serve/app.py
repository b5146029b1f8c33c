"""The application: routes, errors as answers, the page, and what describes the interface."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.openapi.utils import get_openapi
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from bothends import __version__
from bothends.errors import BothendsError
from bothends.serve import libretranslate, v1
from bothends.serve.detection import DetectionUnavailableError
from bothends.serve.front import Endpoint, Front
from bothends.serve.limits import OverloadedError, TooLargeError
from bothends.serve.metrics import CONTENT_TYPE
from bothends.serve.models import ModelUnavailableError
from bothends.serve.requests import KeyRequiredError, MediaTypeError, service_of
from bothends.serve.schemas import (
    AlternativesRequest,
    DetectRequest,
    LibreTranslateRequest,
    V1Request,
)
from bothends.serve.service import ServeOptions, Service, TimeUpError

PAGE = Path(__file__).parent / "page"

#: The first that fits counts; all others are the user's to mend.
STATUSES: dict[type[BothendsError], int] = {
    OverloadedError: 503,
    ModelUnavailableError: 503,
    TooLargeError: 413,
    MediaTypeError: 415,
    KeyRequiredError: 401,
    TimeUpError: 504,
    DetectionUnavailableError: 501,
}


#: What the front calls itself.
BUSY: dict[str, Endpoint] = {"/translate": libretranslate.translate, "/v1/translate": v1.translate}


class Application(FastAPI):
    """FastAPI behind our front, which is outermost: most requests need nothing of it."""

    _front: ASGIApp | None = None

    def put_in_front(self, service: Service) -> None:
        front: ASGIApp = Front(super().__call__, service, BUSY, _answer_error)
        if service.options.cors:
            front = CORSMiddleware(
                front,
                allow_origins=list(service.options.cors),
                allow_methods=["GET", "POST"],
                allow_headers=["authorization", "content-type"],
                expose_headers=["retry-after", "x-request-id"],
            )
        self._front = front

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self._front is not None
        await self._front(scope, receive, send)


def create_app(options: ServeOptions | None = None) -> FastAPI:
    """A server with these options, ready for uvicorn or a test client."""
    service = Service(options or ServeOptions())

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        starting = asyncio.ensure_future(service.start())
        yield
        starting.cancel()
        await service.close()

    app = Application(
        title="bothends",
        version=__version__,
        summary="Translation that writes a sentence from both ends at once.",
        docs_url=None,  # FastAPI's pages load scripts from elsewhere; ours does not
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.service = service
    app.include_router(libretranslate.router)
    app.include_router(v1.router)
    _add_state_routes(app, service)
    _add_page(app)
    app.put_in_front(service)
    app.add_exception_handler(BothendsError, _answer_error)
    app.add_exception_handler(HTTPException, _answer_http_error)
    app.add_exception_handler(RequestValidationError, _answer_bad_parameters)
    app.openapi = lambda: _describe(app)  # type: ignore[method-assign]
    return app


def _add_state_routes(app: FastAPI, service: Service) -> None:
    @app.head("/health", include_in_schema=False)
    @app.get("/health", tags=["state"], summary="Whether the server is up")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/metrics", tags=["state"], summary="Figures for Prometheus", response_class=Response)
    async def metrics() -> Response:
        return Response(service.metrics.render(), media_type=CONTENT_TYPE)


def _add_page(app: FastAPI) -> None:
    @app.head("/", include_in_schema=False)
    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(PAGE / "index.html", headers={"cache-control": "no-cache"})

    @app.get("/docs", include_in_schema=False)
    async def docs() -> FileResponse:
        return FileResponse(PAGE / "docs.html", headers={"cache-control": "no-cache"})

    app.mount("/page", StaticFiles(directory=PAGE))


async def _answer_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, BothendsError)
    status = next((STATUSES[kind] for kind in STATUSES if isinstance(error, kind)), 400)
    headers = {}
    if status == 503:
        headers["retry-after"] = str(error.retry_after if isinstance(error, OverloadedError) else 5)
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    reason = error.reason if isinstance(error, OverloadedError) else type(error).__name__
    service_of(request).metrics.refused.labels(reason).inc()
    return JSONResponse({"error": str(error)}, status, headers)


async def _answer_http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": str(error.detail)}, error.status_code, error.headers)


async def _answer_bad_parameters(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"error": "the request is not understood"}, 400)


def _describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI description, with the bodies that are parsed by hand."""
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title, version=app.version, summary=app.summary, routes=app.routes
        )
        bodies = (LibreTranslateRequest, DetectRequest, V1Request, AlternativesRequest)
        _, definitions = models_json_schema(
            [(body, "validation") for body in bodies], ref_template="#/components/schemas/{model}"
        )
        schema.setdefault("components", {}).setdefault("schemas", {}).update(definitions["$defs"])
        app.openapi_schema = schema
    return app.openapi_schema
