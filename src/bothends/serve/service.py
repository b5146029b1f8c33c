"""What a server consists of, and how a request goes through it; HTTP is left to others.

A request is measured, let into the waiting room, translated in batches that it may share, and
counted. It ends early when its client goes away or its time is up, and its work with it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from starlette.types import Receive, Scope

from bothends.documents import Glossary
from bothends.errors import BothendsError
from bothends.filling import Filling
from bothends.jobs.processes import available_cores
from bothends.serve.batching import Batcher
from bothends.serve.detection import Detected, Detector
from bothends.serve.interruption import Deadlines, LimitedWork
from bothends.serve.keys import ApiKeys, KeyFile
from bothends.serve.limits import MEMORY_BYTES, Limits, TooLargeError, WaitingRoom, check_size
from bothends.serve.logs import log
from bothends.serve.metrics import Metrics
from bothends.serve.models import Models, ServedModel
from bothends.serve.translating import (
    OnSentence,
    Task,
    TranslatedText,
    deliver_to_event_loop,
    run_alone,
    translate_texts,
)
from bothends.translating.load_options import LoadOptions
from bothends.translator import Translator


@dataclass(frozen=True)
class ServeOptions:
    """How a server is set up."""

    models: tuple[Path | str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    memory_bytes: int = MEMORY_BYTES
    #: batches at once; by default one per core
    threads: int | None = None
    #: each batch runs on one core, in a worker of the server
    load: LoadOptions = field(default_factory=lambda: LoadOptions(threads=1))
    keys: ApiKeys | KeyFile | None = None
    #: origins whose pages may use the server from a browser
    cors: tuple[str, ...] = ()
    #: addresses and networks of proxies in front, which say for whom they ask
    proxies: tuple[str, ...] = ()
    glossary: Glossary | None = None
    #: log what is translated, too
    log_text: bool = False


#: Every length of a gap is searched, so that time grows with the cube of a sentence's tokens.
#: Alternatives are for words in sentences: so many tokens, and so many more than there were.
MAX_TOKENS = 64
EXTRA_TOKENS = 2


class ClientGoneError(Exception):
    """Nobody waits for the answer any more."""


class TimeUpError(BothendsError):
    """A request took longer than a request may."""


class Service:
    """Models, batcher, waiting room and figures of one server."""

    def __init__(self, options: ServeOptions) -> None:
        self.options = options
        self.limits = options.limits
        self.metrics = Metrics()
        self.models = Models(options.models, options.load, options.memory_bytes)
        self.room = WaitingRoom(options.limits)
        self.deadlines = Deadlines()
        self.batcher = Batcher(
            options.threads or available_cores(),
            deliver=deliver_to_event_loop,
            observe=self.metrics.observe_batch,
        )
        described = [model.description for model in self.models.all]
        pairs = [(each.source_language, each.target_language) for each in described]
        self.detector = Detector(code for pair in pairs for code in pair if code)
        self._loading = ThreadPoolExecutor(8, thread_name_prefix="bothends-load")
        watch = self.metrics.watch
        watch("waiting_lines", "Sentences that wait for a batch.", lambda: self.batcher.waiting)
        watch("waiting_requests", "Requests accepted, not answered.", lambda: self.room.requests)
        watch("models_loaded", "Models in memory.", lambda: len(self.models.loaded))

    async def translator(self, model: ServedModel) -> Translator:
        """The model, loaded. The event loop goes on meanwhile."""
        ready = self.models.ready(model)
        if ready is not None:
            return ready
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._loading, self.models.look, model)

    async def detect(self, text: str) -> list[Detected]:
        """The languages that a text may be in, of those that the models name."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._loading, self.detector.detect, text)

    async def translate(
        self,
        client: str,
        model: ServedModel,
        task: Task,
        on_sentence: OnSentence = lambda sentence: None,
    ) -> list[TranslatedText]:
        """Translate the texts of a request, or refuse them at once."""
        characters = check_size(list(task.texts), self.limits)
        with self.room.admit(client, characters):
            translator = await self.translator(model)
            texts = await translate_texts(self.batcher, translator, task, client, on_sentence)
        sentences = [each for text in texts for each in text.sentences]
        self.metrics.translated(
            model.name, len(sentences), sum(each.translation.steps for each in sentences)
        )
        if self.options.log_text:
            for source, text in zip(task.texts, texts, strict=True):
                log("translated", model=model.name, source=source, target=text.text)
        return texts

    async def alternatives(
        self,
        client: str,
        model: ServedModel,
        source: str,
        translation: str,
        span: tuple[int, int],
        n_best: int,
    ) -> list[Filling]:
        """Other ways to say a part of a translation."""
        characters = check_size([source, translation], self.limits)
        with self.room.admit(client, characters):
            translator = await self.translator(model)
            length = _check_tokens(translator, source, translation)
            find: Callable[[], list[Filling]] = lambda: translator.alternatives(  # noqa: E731
                source, translation, span, n_best, max_length=length + EXTRA_TOKENS
            )
            found: list[Filling] = await run_alone(self.batcher, client, characters, find)
        return found

    def until_answered(self, scope: Scope, receive: Receive) -> LimitedWork:
        """A block for a request's work: it ends early if its client leaves or its time is up."""
        seconds = self.limits.seconds
        late = TimeUpError(f"not done within {seconds:g} seconds; send the text in parts")
        return LimitedWork(self.deadlines, seconds, late, ClientGoneError(), scope, receive)

    async def start(self) -> None:
        """Load the first model, so that the first request need not wait for it."""
        begin = time.perf_counter()
        model = self.models.all[0]
        try:
            await self.translator(model)
        except BothendsError as error:
            log("model-unavailable", level="error", model=model.name, reason=str(error))
        log("ready", seconds=round(time.perf_counter() - begin, 3))

    async def close(self) -> None:
        """Answer what has been accepted, then stop."""
        await asyncio.to_thread(self.batcher.close)
        self._loading.shutdown(wait=False, cancel_futures=True)


def _check_tokens(translator: Translator, source: str, translation: str) -> int:
    """The tokens of a translation, or an error if it is too long for alternatives."""
    vocabularies = translator.vocabularies
    length = len(vocabularies.target.encode([translation])[0])
    longest = max(length, len(vocabularies.source.encode([source])[0]))
    if longest > MAX_TOKENS:
        raise TooLargeError(
            f"alternatives are for a sentence of at most {MAX_TOKENS} tokens, not {longest}"
        )
    return length
