"""The models of a server: loaded on first use, within a limit of memory, and anew when they change.

A model is loaded beside the one that it replaces, and takes its place when it is ready. Requests
that are under way keep the model that they began with.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from bothends.errors import BothendsError, UsageError, nearest
from bothends.model.bundled import DEFAULT_MODEL, bundled_models, find_model
from bothends.model.directory import CARD, WEIGHTS, Description, read_description
from bothends.model.hub import short_name
from bothends.serve.limits import MEMORY_BYTES
from bothends.serve.logs import log
from bothends.text.languages import distance
from bothends.translating.load_options import LoadOptions
from bothends.translator import Translator

#: Seconds for which a directory is taken to be as it was when last looked at.
LOOK_EVERY = 1.0
#: Files that the runtime does not read. A change of any other is a new model.
IGNORED = (CARD, WEIGHTS)

#: Name, size and time of change of each file.
Signature = tuple[tuple[str, int, int], ...]


class UnknownModelError(UsageError):
    """No model of the server has this name, or translates between these languages."""


class ModelUnavailableError(BothendsError):
    """A model cannot be loaded."""


@dataclass
class ServedModel:
    """A model by name, loaded or not."""

    name: str
    directory: Path
    description: Description
    translator: Translator | None = None
    signature: Signature = ()
    #: files that could not be loaded: not to be tried again until they change
    rejected: Signature | None = None
    used: float = 0.0
    looked: float = 0.0
    loading: threading.Lock = field(default_factory=threading.Lock)

    @property
    def bytes(self) -> int:
        """What its files take, which is about what they take in memory."""
        return sum(size for _, size, _ in self.signature or sign(self.directory))


def sign(directory: Path) -> Signature:
    """The state of a model directory's files."""
    found = []
    try:
        for entry in os.scandir(directory):
            if entry.name not in IGNORED and entry.is_file():
                status = entry.stat()
                found.append((entry.name, status.st_size, status.st_mtime_ns))
    except OSError:
        return ()  # it is being replaced, or gone: loading says so
    return tuple(sorted(found))


class Models:
    """All models of a server. Any thread may use it."""

    def __init__(
        self,
        directories: Sequence[Path | str] = (),
        load: LoadOptions | None = None,
        memory_bytes: int = MEMORY_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Read all descriptions; without directories, serve the bundled models."""
        # Each batch runs in the thread of a worker of the server, on one core.
        self._load = load or LoadOptions(threads=1)
        self.memory_bytes = memory_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._models: dict[str, ServedModel] = {}
        for each in directories or _bundled():
            directory = find_model(each, weights=self._load.engine == "torch")
            name = short_name(directory)
            if name in self._models:
                raise UsageError(f"{each}: another model is called {name}, too; rename a directory")
            self._models[name] = ServedModel(name, directory, read_description(directory))
        if not self._models:
            raise UsageError("no model to serve: name a model directory (--model DIR)")
        for model in self._models.values():
            if model.bytes > memory_bytes:
                raise UsageError(
                    f"{model.directory}: {model.bytes / 1e6:.0f} MB, but models may take "
                    f"{memory_bytes / 1e6:.0f} MB; raise --memory"
                )

    @property
    def all(self) -> list[ServedModel]:
        return list(self._models.values())

    @property
    def loaded(self) -> list[ServedModel]:
        return [model for model in self._models.values() if model.translator is not None]

    def find(
        self, name: str | None = None, source: str | None = None, target: str | None = None
    ) -> ServedModel:
        """The model of a name, or the nearest for a pair of languages, the first of equal ones.

        `auto` is any source language. A model for `pt` serves `pt-BR` if none is nearer. Of a name
        and languages that contradict it, neither can be what was meant.
        """
        source = None if source == "auto" else source
        if name is not None:
            if name not in self._models:
                hint = nearest(name, self._models)
                raise UnknownModelError(f"no model is called {name!r}; {hint}")
            named = self._models[name]
            described = named.description
            for end, asked, own in (
                ("source", source, described.source_language),
                ("target", target, described.target_language),
            ):
                if asked is not None and own is not None and distance(asked, own) is None:
                    raise UnknownModelError(
                        f"the {end} language of {name} is {own!r}, not {asked!r}"
                    )
            return named
        far = {
            model.name: _distance(source, model.description.source_language)
            + _distance(target, model.description.target_language)
            for model in self.all
        }
        best = min(self.all, key=lambda model: far[model.name])
        if far[best.name] < inf:
            return best
        pairs = sorted(
            {
                f"{m.description.source_language} to {m.description.target_language}"
                for m in self.all
            }
        )
        asked = f"from {source or 'auto'!r} to {target!r}"
        raise UnknownModelError(f"no model translates {asked}; there is {', '.join(pairs)}")

    def translator(self, model: ServedModel) -> Translator:
        """The model, loaded and up to date. May take as long as loading does."""
        return self.ready(model) or self.look(model)

    def ready(self, model: ServedModel) -> Translator | None:
        """The model if there is nothing to wait for: loaded, and looked at a moment ago.

        Whoever gets None has to look. Meanwhile the others go on with the model that there is.
        """
        model.used = now = self._clock()
        if now - model.looked < LOOK_EVERY or model.loading.locked():
            return model.translator
        model.looked = now
        return None

    def look(self, model: ServedModel) -> Translator:
        """The model as its directory is now, which may have to be loaded for that."""
        with model.loading:
            model.looked = self._clock()
            signature = sign(model.directory)
            current = model.translator
            if current is not None and signature in (model.signature, model.rejected):
                return current
            return self._replace(model, current, signature)

    def _replace(
        self, model: ServedModel, current: Translator | None, signature: Signature
    ) -> Translator:
        begin = time.perf_counter()
        try:
            translator = self._load.load(model.directory)
            if sign(model.directory) != signature:
                translator.close()
                raise BothendsError(f"{model.directory}: changed while it was being read")
        except BothendsError as error:
            if current is None:
                raise ModelUnavailableError(str(error)) from None
            # The old one serves on until the directory is whole.
            model.rejected = signature
            log("model-kept", level="warning", model=model.name, reason=str(error))
            return current
        with self._lock:  # or of two that come at once, neither would see the other
            self._make_room(model, sum(size for _, size, _ in signature))
            model.description = translator.description
            model.signature, model.rejected = signature, None
            model.translator = translator
        seconds = round(time.perf_counter() - begin, 3)
        log("model-loaded", model=model.name, seconds=seconds, again=current is not None)
        return translator

    def _make_room(self, wanted: ServedModel, size: int) -> None:
        """Forget the models that were used longest ago. Their requests under way keep them."""
        loaded = sorted(
            (each for each in self.loaded if each is not wanted), key=lambda each: each.used
        )
        total = size + sum(each.bytes for each in loaded)
        for each in loaded:
            if total <= self.memory_bytes:
                return
            total -= each.bytes
            each.translator = None
            log("model-forgotten", model=each.name)


def _distance(asked: str | None, own: str | None) -> float:
    """How far a model's language is from the one that is asked for; infinite if it is another."""
    if asked is None:
        return 0
    found = None if own is None else distance(asked, own)
    return inf if found is None else found


def _bundled() -> list[str]:
    """The bundled models, the default one first."""
    return sorted(bundled_models(), key=lambda name: (name != DEFAULT_MODEL, name))
