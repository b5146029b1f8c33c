"""LibreTranslate's interface, for the clients that people already have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from bothends.documents.options import DocumentReport
from bothends.errors import UsageError
from bothends.serve.detection import SURE, Detected
from bothends.serve.limits import Limits, check_size
from bothends.serve.models import Models
from bothends.serve.requests import (
    FORM,
    JSON,
    identify,
    read_json_or_form,
    service_of,
)
from bothends.serve.schemas import (
    DetectedLanguage,
    DetectRequest,
    Language,
    LibreTranslateRequest,
    LibreTranslateResponse,
    Problem,
)
from bothends.serve.service import Service
from bothends.serve.translating import Task, TranslatedText
from bothends.text.languages import distance
from bothends.translating.translation import TranslationOptions

router = APIRouter(tags=["LibreTranslate"])

#: What can go wrong with a request, for the description of the interface.
PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "Not understood."},
    401: {"model": Problem, "description": "No key, or an unknown one."},
    408: {"model": Problem, "description": "The body came too slowly."},
    413: {"model": Problem, "description": "Beyond a limit."},
    415: {"model": Problem, "description": "Neither JSON nor a urlencoded form."},
    503: {"model": Problem, "description": "Busy; `Retry-After` says when to come back."},
    504: {"model": Problem, "description": "Took too long."},
}

NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "cs": "Czech", "da": "Danish", "de": "German",
    "el": "Greek", "en": "English", "es": "Spanish", "et": "Estonian", "fi": "Finnish",
    "fr": "French", "he": "Hebrew", "hi": "Hindi", "hu": "Hungarian", "id": "Indonesian",
    "it": "Italian", "ja": "Japanese", "ko": "Korean", "lt": "Lithuanian", "lv": "Latvian",
    "nb": "Norwegian", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian",
    "ru": "Russian", "sk": "Slovak", "sl": "Slovenian", "sv": "Swedish", "tr": "Turkish",
    "uk": "Ukrainian", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip


def body_schema(model: str, *kinds: str) -> dict[str, Any]:
    """The description of a body that is parsed by hand."""
    schema = {"schema": {"$ref": f"#/components/schemas/{model}"}}
    return {"requestBody": {"required": True, "content": dict.fromkeys(kinds, schema)}}


@router.post(
    "/translate",
    response_model=LibreTranslateResponse,
    responses=PROBLEMS,
    openapi_extra=body_schema("LibreTranslateRequest", JSON, FORM),
    summary="Translate a text, or several",
)
async def translate(request: Request) -> Response:
    service = service_of(request)
    body = await read_json_or_form(request, LibreTranslateRequest)
    client = identify(request, body.api_key)
    texts = [body.q] if isinstance(body.q, str) else body.q
    detected = await _detect(service, texts, body.source, body.target)
    done = [each is not None and _is_in(each.language, body.target) for each in detected]
    foreign = [number for number, is_done in enumerate(done) if not is_done]
    count = body.alternatives
    found = {
        number: TranslatedText(text, (), DocumentReport()) for number, text in enumerate(texts)
    }
    if foreign or not texts:
        languages = _sources(service.models, [detected[each] for each in foreign], body.target)
        by_source: dict[str, list[int]] = {} if texts else {body.source: []}
        for number, language in zip(foreign, languages, strict=True):
            by_source.setdefault(language or body.source, []).append(number)
        models = [service.models.find(None, source, body.target) for source in by_source]
        options = _options(count, service.limits.beam)
        with service.until_answered(request.scope, request.receive):
            for model, numbers in zip(models, by_source.values(), strict=True):
                some = [texts[number] for number in numbers]
                task = Task(some, body.format, options, service.options.glossary, count)
                answers = await service.translate(client, model, task)
                found.update(zip(numbers, answers, strict=True))
    told = [each for each in detected if each is not None]
    several = not isinstance(body.q, str)
    translated = [each.text for each in found.values()]
    others = [list(each.alternatives) for each in found.values()]
    answer = LibreTranslateResponse(
        translatedText=translated if several else translated[0],
        alternatives=None if not count else others if several else others[0],
        detectedLanguage=(told if several else told[0]) if told and None not in detected else None,
    )
    return Response(answer.model_dump_json(exclude_none=True), media_type=JSON)


@router.post(
    "/detect",
    response_model=list[DetectedLanguage],
    responses={
        **{status: PROBLEMS[status] for status in (400, 401, 408, 413, 415, 503)},
        501: {"model": Problem, "description": "This server detects no languages."},
    },
    openapi_extra=body_schema("DetectRequest", JSON, FORM),
    summary="The languages that a text may be in",
)
async def detect(request: Request) -> list[DetectedLanguage]:
    service = service_of(request)
    body = await read_json_or_form(request, DetectRequest)
    identify(request, body.api_key)
    check_size([body.q], service.limits)
    return [_detected(each) for each in await service.detect(body.q)]


def _detected(found: Detected) -> DetectedLanguage:
    return DetectedLanguage(confidence=found.confidence, language=found.language)


async def _detect(
    service: Service, texts: Sequence[str], source: str, target: str
) -> list[DetectedLanguage | None]:
    """The language of each text if the source is `auto`, where it can be told.

    A text that is asked to be translated is likely to need it: it is taken to be in the target
    language only if that is sure, and otherwise in the likeliest other one.
    """
    if source != "auto" or not service.detector.available:
        return [None] * len(texts)
    check_size(list(texts), service.limits)
    found = [await service.detect(text) for text in texts]
    likely = [
        next(
            (
                each
                for each in ranked
                if not _is_in(each.language, target) or each.confidence >= SURE
            ),
            None,
        )
        for ranked in found
    ]
    return [None if each is None else _detected(each) for each in likely]


def _sources(
    models: Models, detected: Sequence[DetectedLanguage | None], target: str
) -> list[str | None]:
    """The language to translate each text from, where there is anything to tell it by.

    It is the text's own if that is sure, and otherwise the one that most texts are in: a few words
    are likely to be in the language of the others. A text that is surely in a language that no
    model translates from is an error: a model would write nonsense.
    """
    told = [each for each in detected if each is not None]
    for each in told:
        if each.confidence >= SURE:
            models.find(None, each.language, target)
    sources = {
        model.description.source_language
        for model in models.all
        if _is_in(model.description.target_language, target)
    }
    votes = Counter(each.language for each in told if each.language in sources)
    usual = votes.most_common(1)[0][0] if votes else None
    return [usual if each is None or each.confidence < SURE else each.language for each in detected]


def _is_in(language: str | None, target: str) -> bool:
    """Whether a language of a model or a text is the one that is asked for."""
    return language is not None and distance(target, language) is not None


@cache
def _options(alternatives: int, widest: int) -> TranslationOptions:
    if alternatives >= widest:
        raise UsageError(f"{alternatives} alternatives: this server allows {widest - 1}")
    beam = max(min(TranslationOptions.beam, widest), alternatives + 1)
    return TranslationOptions(beam=beam, n_best=alternatives + 1)


@router.get("/languages", response_model=list[Language], summary="The languages of the models")
async def languages(request: Request) -> list[Language]:
    return known_languages(service_of(request).models)


@router.get("/frontend/settings", summary="What LibreTranslate's page asks for first")
async def frontend_settings(request: Request) -> dict[str, Any]:
    service = service_of(request)
    return _settings(service.models, service.limits, service.options.keys is not None)


def known_languages(models: Models) -> list[Language]:
    """Each language of a model, with those that it can be translated to."""
    targets: dict[str, list[str]] = {}
    for model in models.all:
        source, target = model.description.source_language, model.description.target_language
        if source is None or target is None:
            continue
        if target not in targets.setdefault(source, []):
            targets[source].append(target)
        targets.setdefault(target, [])
    return [
        Language(code=code, name=NAMES.get(code, code), targets=reached)
        for code, reached in targets.items()
    ]


def _settings(models: Models, limits: Limits, keys: bool) -> dict[str, Any]:
    first = models.all[0].description
    source, target = first.source_language or "", first.target_language or ""
    return {
        "apiKeys": keys,
        "keyRequired": keys,
        "charLimit": limits.characters,
        "beamLimit": limits.beam,
        "frontendTimeout": 300,
        "language": {
            "source": {"code": source, "name": NAMES.get(source, source)},
            "target": {"code": target, "name": NAMES.get(target, target)},
        },
        "suggestions": False,
        "filesTranslation": False,
        "supportedFilesFormat": [],
    }
