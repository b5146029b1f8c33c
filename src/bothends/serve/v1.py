"""The server's own interface: options, scores, tokens, steps, and a stream of them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from starlette.responses import Response

from bothends.documents import Glossary
from bothends.errors import BothendsError
from bothends.order import GenerationOrder
from bothends.serve.libretranslate import PROBLEMS, body_schema
from bothends.serve.models import ServedModel
from bothends.serve.replay import direction, replay, written_tokens
from bothends.serve.requests import JSON, identify, read_json, service_of
from bothends.serve.schemas import (
    Alternative,
    AlternativesRequest,
    AlternativesResponse,
    ModelInfo,
    Result,
    Sentence,
    V1Hypothesis,
    V1Request,
    V1Response,
)
from bothends.serve.service import Service
from bothends.serve.translating import Task, TranslatedSentence, TranslatedText
from bothends.translating.translation import Translation

router = APIRouter(prefix="/v1", tags=["v1"])

#: Of a stream: a proxy is to pass on each event as it comes. nginx would collect them.
UNBUFFERED = {"cache-control": "no-cache", "x-accel-buffering": "no"}
#: All but a body of another type: ours is JSON, whatever its type says.
V1_PROBLEMS = {status: problem for status, problem in PROBLEMS.items() if status != 415}


@router.get("/models", response_model=list[ModelInfo], summary="The models of this server")
async def models(request: Request) -> list[ModelInfo]:
    return [
        ModelInfo(
            name=model.name,
            order=str(model.description.order),
            source=model.description.source_language,
            target=model.description.target_language,
            task=model.description.task,
            loaded=model.translator is not None,
            bytes=model.bytes,
        )
        for model in service_of(request).models.all
    ]


@router.post(
    "/translate",
    response_model=V1Response,
    responses={
        **V1_PROBLEMS,
        200: {
            "model": V1Response,
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
            "description": "With `stream`: events `start`, then for each sentence `step` after "
            "each of its steps and `sentence`, and `result` (as without) or `error`.",
        },
    },
    openapi_extra=body_schema("V1Request", JSON),
    summary="Translate with all options",
)
async def translate(request: Request) -> Any:
    service = service_of(request)
    client = identify(request)
    body = await read_json(request, V1Request)
    model = service.models.find(body.model, body.source, body.target)
    task = Task(
        body.texts,
        body.format,
        body.options(service.limits.beam),
        _glossary(service, body.glossary),
        drafts=body.draft,
    )
    if body.stream:
        events = _stream(service, client, model, task, request)
        first = await events.__anext__()  # a request that is refused gets a status, not an event
        return StreamingResponse(
            _joined(first, events), headers=UNBUFFERED, media_type="text/event-stream"
        )
    begin = time.perf_counter()
    with service.until_answered(request.scope, request.receive):
        found = await service.translate(client, model, task)
    # Already the right shape: to check thousands of tokens again takes longer than to write them.
    answer = _answer(model, found, time.perf_counter() - begin)
    return Response(answer.model_dump_json(), media_type=JSON)


@router.post(
    "/alternatives",
    response_model=AlternativesResponse,
    responses=V1_PROBLEMS,
    openapi_extra=body_schema("AlternativesRequest", JSON),
    summary="Other ways to say a part of a translation",
)
async def alternatives(request: Request) -> AlternativesResponse:
    service = service_of(request)
    client = identify(request)
    body = await read_json(request, AlternativesRequest)
    model = service.models.find(body.model)
    with service.until_answered(request.scope, request.receive):
        found = await service.alternatives(
            client, model, body.source, body.translation, (body.start, body.end), body.n_best
        )
    return AlternativesResponse(
        model=model.name,
        alternatives=[
            Alternative(
                text=each.text,
                start=len(each.prefix),
                end=len(each.prefix) + len(each.middle),
                score=each.score,
            )
            for each in found
        ],
    )


def _glossary(service: Service, terms: dict[str, str]) -> Glossary | None:
    """The server's terms and the request's, which come first."""
    server = service.options.glossary
    if not terms:
        return server
    lines = [f"{source}\t{target}" for source, target in terms.items()]
    own = Glossary.parse(lines, "glossary")
    return own if server is None else Glossary({**server.terms, **own.terms})


async def _stream(
    service: Service, client: str, model: ServedModel, task: Task, request: Request
) -> AsyncGenerator[str, None]:
    """Events of a translation; see `replay` for what a `step` is."""
    begin = time.perf_counter()
    ready: asyncio.Queue[TranslatedSentence | None] = asyncio.Queue()

    async def translate() -> list[TranslatedText]:
        with service.until_answered(request.scope, request.receive):
            return await service.translate(client, model, task, ready.put_nowait)

    work = asyncio.ensure_future(translate())
    work.add_done_callback(lambda _: ready.put_nowait(None))
    try:
        # Refusals come before the first await in `translate`: give them a moment to show.
        await asyncio.wait({work}, timeout=0.001)
        if work.done() and work.exception() is not None:
            work.result()
        order = model.description.order
        yield _event("start", {"model": model.name, "order": str(order), "replayed": True})
        number = 0
        while (sentence := await ready.get()) is not None:
            for step in replay(order, sentence.translation):
                yield _event("step", {"sentence": number, **step.as_dict()})
            shown = _sentence(order, sentence).model_dump()
            yield _event("sentence", {"sentence": number, **shown})
            number += 1
        try:
            answer = _answer(model, work.result(), time.perf_counter() - begin)
        except BothendsError as error:
            yield _event("error", {"error": str(error)})
        else:
            yield _event("result", answer.model_dump())
    finally:
        work.cancel()


async def _joined(first: str, rest: AsyncGenerator[str, None]) -> AsyncGenerator[str, None]:
    try:
        yield first
        async for event in rest:
            yield event
    finally:
        await rest.aclose()


def _event(name: str, content: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(content, ensure_ascii=False)}\n\n"


def _answer(model: ServedModel, texts: list[TranslatedText], seconds: float) -> V1Response:
    order = model.description.order
    # Sentences of one batch have the same time: it is counted once.
    times = {each.translation.time for text in texts for each in text.sentences}
    return V1Response(
        model=model.name,
        order=str(order),
        seconds=round(seconds, 6),
        engine_seconds=round(sum(times), 6),
        results=[
            Result(
                text=text.text,
                sentences=[_sentence(order, each) for each in text.sentences],
                report=text.report.as_dict(),
            )
            for text in texts
        ],
    )


def _sentence(order: GenerationOrder, sentence: TranslatedSentence) -> Sentence:
    best = sentence.translation
    return Sentence(
        **_hypothesis(order, best).model_dump(),
        source=sentence.source,
        source_pieces=list(best.source_pieces),
        truncated=best.truncated,
        short=best.short,
        seconds=round(best.time, 6),
        hypotheses=[_hypothesis(order, each) for each in best.hypotheses],
    )


def _hypothesis(order: GenerationOrder, found: Translation) -> V1Hypothesis:
    written = written_tokens(order, found)
    return V1Hypothesis(
        text=found.text,
        score=found.score,
        logprob=found.logprob,
        tokens=list(found.tokens),
        pieces=list(found.pieces),
        steps=found.steps,
        steps_saved=found.steps_saved,
        written_in=[each.step for each in written],
        towards=[direction(each) for each in written],
        finished=found.finished,
    )
