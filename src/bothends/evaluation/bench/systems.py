"""What is measured: anything that turns source ids into target ids, and where its time goes.

Ours is the search over an engine, with a stopwatch between the two. A system uses several cores in
one of two ways, and a benchmark that fixes one of them is unfair to somebody: `workers` share out
the sentences of a batch, or all sentences go through products of several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Generic, NamedTuple, Protocol

from bothends.engines.protocol import (
    Engine,
    FloatArray,
    RestrictedSteps,
    Searched,
    SearchRequest,
    State,
    TopK,
    WholeSearch,
)
from bothends.model.config import ModelConfig
from bothends.model.shortlist import Shortlist
from bothends.order import Block, GenerationOrder, IntArray
from bothends.search.generator import Generator
from bothends.search.options import SearchOptions


class Threads(NamedTuple):
    """How a system uses its cores."""

    workers: int = 1
    #: threads inside one product of one worker
    each: int = 1

    def __str__(self) -> str:
        if self == OWN_THREADS:
            return "its own"
        if self.workers == 1:
            return str(self.each)
        return f"{self.workers * self.each} ({self.workers} workers)"


#: Of a system that decides for itself.
OWN_THREADS = Threads(1, 0)


@dataclass(frozen=True)
class Label:
    """What a system is. Systems of one family are compared with each other."""

    family: str
    name: str
    order: str
    engine: str
    precision: str
    #: whether each sentence uses the words of a shortlist alone
    shortlist: bool = False
    #: of the processor, as far as the system tells
    instruction_set: str | None = None
    #: whether others of its family may be compared with it
    baseline: bool = True

    def __str__(self) -> str:
        words = " with a shortlist" if self.shortlist else ""
        return f"{self.name} {self.order} {self.engine} {self.precision}{words}"


@dataclass(frozen=True)
class Request:
    """How a batch is to be translated.

    Lengths are in tokens of text. A text at the limit has a last step of its own, in which its end
    symbol could be: a system takes at most `max_length + 1` steps of one token.
    """

    beam: int
    min_length: int
    #: of the batch, for a system that has no limit for each sentence
    max_length: int
    #: each sentence has its own limit, as in every translation; `max_length` is the largest
    limits_by_source: bool = False

    @property
    def options(self) -> SearchOptions:
        """What our search is asked for."""
        return SearchOptions(
            beam=self.beam,
            min_length=self.min_length,
            max_length=None if self.limits_by_source else self.max_length,
        )


@dataclass
class Parts:
    """Seconds, by where they went, and the number of calls of the decoder they paid for."""

    encoder: float = 0.0
    decoder: float = 0.0
    search: float = 0.0
    text: float = 0.0
    steps: int = 0

    def __add__(self, other: Parts) -> Parts:
        return Parts(
            self.encoder + other.encoder,
            self.decoder + other.decoder,
            self.search + other.search,
            self.text + other.text,
            self.steps + other.steps,
        )

    @property
    def seconds(self) -> float:
        return self.encoder + self.decoder + self.search + self.text


@dataclass(frozen=True)
class TimedOutcome:
    """What came out of one call."""

    #: target tokens of each sentence, in text order, without the end symbol
    tokens: list[list[int]]
    #: decoder steps of each sentence
    steps: list[int]
    #: None where a system does not let us look inside
    parts: Parts | None


class TimedSystem(Protocol):
    """Something that translates."""

    @property
    def label(self) -> Label: ...

    def arrangements(self, cores: int) -> list[Threads]:
        """The ways in which the system can use that many cores."""
        ...

    def translate(
        self, sources: Sequence[IntArray], request: Request, threads: Threads
    ) -> TimedOutcome: ...


class TimedEngine(Generic[State]):
    """An engine with a stopwatch. Selecting rows is part of what a decoder step costs."""

    def __init__(self, engine: Engine[State]) -> None:
        self.engine = engine
        self.parts = Parts()

    def encode(self, source: IntArray) -> State:
        started = perf_counter()
        state = self.engine.encode(source)
        self.parts.encoder += perf_counter() - started
        return state

    def step(self, state: State, tokens: IntArray, block: Block, k: int) -> TopK:
        started = perf_counter()
        best = self.engine.step(state, tokens, block, k)
        self.parts.decoder += perf_counter() - started
        self.parts.steps += 1
        return best

    def step_and_force(
        self, state: State, tokens: IntArray, block: Block, k: int, targets: IntArray
    ) -> tuple[TopK, FloatArray]:
        started = perf_counter()
        answer = self.engine.step_and_force(state, tokens, block, k, targets)
        self.parts.decoder += perf_counter() - started
        self.parts.steps += 1
        return answer

    def select(self, state: State, rows: IntArray) -> State:
        started = perf_counter()
        selected = self.engine.select(state, rows)
        self.parts.decoder += perf_counter() - started
        return selected

    def force(self, state: State, tokens: IntArray, block: Block, targets: IntArray) -> FloatArray:
        return self.engine.force(state, tokens, block, targets)


class TimedSearch(TimedEngine[Any]):
    """An engine with a search of its own, which knows where its time goes."""

    def search(self, request: SearchRequest) -> Searched:
        engine: Any = self.engine
        searched: Searched = engine.search(request)
        self.parts += Parts(searched.encoder, searched.decoder, steps=searched.steps)
        return searched


class Bothends:
    """Our search over an engine, which `load(threads)` brings."""

    def __init__(
        self,
        label: Label,
        order: GenerationOrder,
        config: ModelConfig,
        load: Callable[[int], Engine[Any]],
        shortlist: Shortlist | None = None,
    ) -> None:
        self.label = label
        self._order = order
        self._config = config
        self._load = load
        self._shortlist = shortlist
        self._engines: dict[int, Engine[Any]] = {}

    def arrangements(self, cores: int) -> list[Threads]:
        return arrangements(cores)

    def translate(
        self, sources: Sequence[IntArray], request: Request, threads: Threads
    ) -> TimedOutcome:
        engine = self._engine(threads.each)
        if threads.workers == 1:
            return self._search(engine, sources, request)
        shares = split(sources, threads.workers)
        with ThreadPoolExecutor(len(shares)) as pool:
            outcomes = list(pool.map(lambda share: self._search(engine, share, request), shares))
        return merge(outcomes)

    def _engine(self, threads: int) -> Engine[Any]:
        if threads not in self._engines:
            engine = self._engines[threads] = self._load(threads)
            if self._shortlist is not None and isinstance(engine, RestrictedSteps):
                engine.share_words(self._shortlist.always)  # as a generator does that stays
        return self._engines[threads]

    def _search(
        self, engine: Engine[Any], sources: Sequence[IntArray], request: Request
    ) -> TimedOutcome:
        started = perf_counter()
        timed = TimedSearch(engine) if isinstance(engine, WholeSearch) else TimedEngine(engine)
        generator = Generator(
            timed, self._order, self._config.special, self._config, self._shortlist
        )
        # Sources come with the tokens around them, as peers want them.
        texts = [self._config.unframed(source).tolist() for source in sources]
        found = generator.search(texts, request.options)
        best = [hypotheses[0] for hypotheses in found]
        parts = timed.parts
        parts.search = perf_counter() - started - parts.encoder - parts.decoder
        return TimedOutcome([each.tokens for each in best], [each.steps for each in best], parts)


def arrangements(cores: int) -> list[Threads]:
    """All cores inside a product, or one core for each share of the sentences."""
    return [Threads()] if cores == 1 else [Threads(1, cores), Threads(cores, 1)]


def split(sources: Sequence[IntArray], shares: int) -> list[Sequence[IntArray]]:
    """Neighbouring sentences in at most `shares` parts, none of them empty."""
    size = -(-len(sources) // shares)
    return [sources[start : start + size] for start in range(0, len(sources), size)]


def merge(outcomes: Sequence[TimedOutcome]) -> TimedOutcome:
    """The outcome of workers side by side: its parts are those of the slowest of them."""
    return TimedOutcome(
        [tokens for outcome in outcomes for tokens in outcome.tokens],
        [steps for outcome in outcomes for steps in outcome.steps],
        max((outcome.parts or Parts() for outcome in outcomes), key=lambda parts: parts.seconds),
    )
