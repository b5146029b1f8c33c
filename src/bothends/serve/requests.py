"""HTTP requests as values: who asks, with which key, and what the body says."""

from __future__ import annotations

from typing import TypeVar
from urllib.parse import parse_qsl

from fastapi import Request
from pydantic import BaseModel, ValidationError

from bothends.errors import UsageError
from bothends.serve.service import ClientGoneError, Service
from bothends.storage.schemas import first_problem

Model = TypeVar("Model", bound=BaseModel)

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"

#: In a request's scope: whom it is for.
SERVICE = "bothends.service"


class MediaTypeError(UsageError):
    """A body in a format that is not read."""


class KeyRequiredError(UsageError):
    """No key, or one that is not known."""


def service_of(request: Request) -> Service:
    service: Service = request.scope[SERVICE]
    return service


async def read_json(request: Request, model: type[Model]) -> Model:
    """The body as JSON, whatever its type says."""
    return parse_json(await read_body(request), model)


async def read_json_or_form(request: Request, model: type[Model]) -> Model:
    """The body as JSON or as a form; a field that comes several times is a list."""
    kind = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    body = await read_body(request)
    if kind == FORM:
        return parse_form(body, model)
    if kind != JSON:
        raise MediaTypeError(f"the body must be {JSON} or {FORM}, not {kind[:80]!r}")
    return parse_json(body, model)


async def read_body(request: Request) -> bytes:
    """The whole body, which the front keeps from becoming too long or taking too long."""
    parts = []
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts) if len(parts) > 1 else parts[0]


def parse_json(body: bytes, model: type[Model]) -> Model:
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise UsageError(f"the request is not understood: {_problem(error)}") from None


def parse_form(body: bytes, model: type[Model]) -> Model:
    try:
        pairs = parse_qsl(body.decode("utf-8"), keep_blank_values=True, errors="strict")
    except ValueError:
        raise UsageError("the request is not understood: not a form in UTF-8") from None
    if body.lstrip().startswith(b"{"):  # curl calls whatever it sends a form
        raise UsageError(f"the body is JSON, but its content-type says {FORM}: say {JSON}")
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    fields = {name: each[0] if len(each) == 1 else each for name, each in values.items()}
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise UsageError(f"the request is not understood: {_problem(error)}") from None


def _problem(error: ValidationError) -> str:
    """The first complaint, in one line.

    A text or a list of texts has two, in which pydantic names types of Python: of a list, that
    about its first wrong text is meant.
    """
    first, *others = error.errors()
    name, *rest = first["loc"] or ("",)
    if rest != ["str"]:
        return first_problem(error)
    for other in others:
        if other["loc"][0] == name and len(other["loc"]) == 3:
            return f"{name}.{other['loc'][2]}: {other['msg']}"
    return f"{name}: expected a text or a list of texts"


def identify(request: Request, key: str | None = None) -> str:
    """The client's name, for fairness and logs: the owner of its key, or else its address."""
    keys = service_of(request).options.keys
    if keys is None:
        name = request.client.host if request.client else "local"
    else:
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        given = key or (bearer.strip() if scheme.lower() == "bearer" else "")
        owner = keys.owner(given) if given else None
        if owner is None:
            raise KeyRequiredError(
                "this API key is not known" if given else "this server wants an API key"
            )
        name = f"key:{owner}"
    request.scope["bothends.client"] = name
    return name
